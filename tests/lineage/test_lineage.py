"""Lineage: a known history comes back exactly, and every map equals the comparison of two logs."""

from __future__ import annotations

import csv
import os
import random
import shutil
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import forgetmap
from forgetmap.api import lineage
from forgetmap.base.errors import InputError
from forgetmap.lineage.lives import KINDS, Lives, share
from forgetmap.lineage.pipeline import Checkpoint, Pipeline, open_pipeline
from forgetmap.readers.registry import read
from forgetmap.samples.identity import content_hash, hash_contents
from forgetmap.samples.table import Samples
from lineage_logs import HISTORY, STAGES, write_history
from logs import items, lm_eval_record, write_jsonl, write_lm_eval
from places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from forgetmap.lineage.result import LifeLines, Lineage

DRAWS = 200
SAME = ("comparisons", "life_lines", "worst_stages", "merges", "dose_curves", "runs")
"""What must not depend on how the logs are written."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Lineage:
    path = write_history(tmp_path_factory.mktemp("history"))
    return lineage(path, draws=DRAWS)


def questions(lines: LifeLines, kind: Any) -> set[str]:
    by_hash = {f"{content_hash(item, '', ''):016x}": item for item in HISTORY}
    by_hash |= {f"{content_hash(item, [], ''):016x}": item for item in HISTORY}
    parts = [pa.array(list(HISTORY)), *[pa.array([""] * len(HISTORY))] * 2]
    hashes = hash_contents(parts, duckdb.connect()).to_pylist()  # of plain tables
    by_hash |= {f"{one:016x}": item for one, item in zip(hashes, HISTORY, strict=True)}
    return {by_hash[item.item] for item in lines.listed[kind]}


# --- the known history ----------------------------------------------------------------------------


def test_the_graph(found: Lineage) -> None:
    assert found.root == "base"
    assert [node.name for node in found.nodes] == ["base", "sft", "code", "rl", "merged"]
    assert {(c.before, c.after) for c in found.comparisons if c.edge} == {
        ("base", "sft"), ("sft", "rl"), ("base", "code"), ("rl", "merged"), ("code", "merged"),
    }  # fmt: skip
    against = {c.after for c in found.comparisons if c.against_root}
    assert against == {"sft", "rl", "code", "merged"}
    assert found.node("rl").missing == 1
    assert found.node("base").known == 7
    assert [lines.path for lines in found.life_lines] == [
        ["base", "code"], ["base", "sft", "rl", "merged"],
    ]  # fmt: skip


def test_every_kind_of_life_line(found: Lineage) -> None:
    lines = found.life_lines[1]
    assert lines.items == 12
    assert lines.counts == {
        "kept": 1, "lost for good": 2, "recovered": 2, "oscillating": 2, "learned": 2,
        "learned and lost": 1, "never known": 1, "incomplete": 1,
    }  # fmt: skip
    assert questions(lines, "lost for good") == {"lost at sft", "lost at merged"}
    assert questions(lines, "recovered") == {"recovered at rl", "recovered at merged"}
    assert questions(lines, "oscillating") == {"oscillating", "oscillating from nothing"}
    assert questions(lines, "learned") == {"learned at sft", "learned by merging"}
    assert questions(lines, "learned and lost") == {"learned and lost"}
    assert questions(lines, "incomplete") == {"missing at rl"}
    assert lines.listed["incomplete"][0].states == "11?1"


def test_the_stages_of_loss_and_return(found: Lineage) -> None:
    fates = {(f.kind, f.lost_at, f.learned_at): f.count for f in found.life_lines[1].fates}
    assert fates == {
        ("kept", None, None): 1,
        ("lost for good", "sft", None): 1,
        ("lost for good", "merged", None): 1,
        ("recovered", "sft", "rl"): 1,
        ("recovered", "sft", "merged"): 1,
        ("oscillating", "sft", "rl"): 1,
        ("oscillating", "rl", "merged"): 1,
        ("learned", None, "sft"): 1,
        ("learned", None, "merged"): 1,
        ("learned and lost", "rl", "sft"): 1,
        ("never known", None, None): 1,
        ("incomplete", None, None): 1,
    }


def test_the_branch_has_its_own_life_lines(found: Lineage) -> None:
    counts = found.life_lines[0].counts
    assert counts["kept"] == 5  # kept, lost at sft, both recovered, missing at rl
    assert counts["lost for good"] == 2  # lost at merged, oscillating
    assert counts["learned"] == 1
    assert counts["never known"] == 4
    assert counts["incomplete"] == 0


def test_what_a_merge_took_from_whom(found: Lineage) -> None:
    (merge,) = found.merges
    assert (merge.items, merge.incomplete) == (11, 1)
    parts = {tuple(part.known_to): (part.items, part.kept) for part in merge.parts}
    assert parts == {
        ("rl", "code"): (2, 2),  # kept, recovered at rl
        ("rl",): (3, 1),  # lost at merged, oscillating; learned at sft stays
        ("code",): (3, 2),  # lost at sft; recovered at merged and the other stay
        (): (3, 1),  # learned by merging
    }
    assert (merge.lost, merge.new) == (3, 1)
    assert merge.groups == {"lost": 2, "oscillating": 1}
    assert sorted(item.known_to for item in merge.listed) == [["code"], ["rl"], ["rl"]]


def test_where_each_group_lost_most(found: Lineage) -> None:
    stages = {stage.group: stage for stage in found.worst_stages["merged"]}
    recovered = stages["recovered"]
    assert (recovered.before, recovered.after, recovered.flipped) == ("base", "sft", 2)
    assert recovered.flipped_on_path == 2
    assert recovered.lost.low_end == recovered.lost.high_end == 1
    assert stages["oscillating"].flipped_on_path == 3
    assert stages["lost"].flipped == 1
    assert not recovered.clear  # two items tell nothing


def test_the_dose_curve_counts_what_the_origin_knew(found: Lineage) -> None:
    (curve,) = found.dose_curves
    assert (curve.number, curve.origin, curve.form) == ("steps", "base", "run")
    sft, rl = curve.points
    assert (sft.checkpoint, sft.dose) == ("sft", 100)
    assert sft.kept is not None
    assert sft.kept.value == pytest.approx(3 / 7)
    assert sft.gained is not None
    assert sft.gained.value == pytest.approx(3 / 5)
    assert rl.kept is not None
    assert rl.kept.value == pytest.approx(4 / 6)  # the missing item is not in it


def test_events_of_a_run(found: Lineage) -> None:
    (run,) = found.runs
    assert run.path == ["base", "sft", "rl", "merged"]
    assert run.times_forgotten == {0: 4, 1: 6, 2: 1}
    top = run.most_forgotten[0]
    assert (top.states, top.times_forgotten, top.times_flipped) == ("1010", 2, 3)
    assert (top.first_learned, top.first_lost) == ("base", "sft")
    assert run.moments[0].recovered is None  # nothing was lost before
    rl, merged = run.moments[1:]
    assert rl.recovered is not None
    assert merged.recovered is not None
    assert (rl.lost_before, rl.recovered.value) == (4, 0.5)
    assert merged.lost_before == 6
    assert merged.recovered.value == pytest.approx(3 / 6)


# --- equal to comparing two logs ------------------------------------------------------------------


def test_every_map_equals_the_comparison_of_its_logs(found: Lineage) -> None:
    for comparison in found.comparisons:
        logs = [found.node(name).log for name in (comparison.before, comparison.after)]
        alone = forgetmap.compare(*logs, draws=DRAWS)
        assert comparison.map.coverage == alone.coverage
        assert comparison.map.total == alone.total
        assert comparison.map.macro == alone.macro
        assert comparison.map.tasks == alone.tasks
        assert comparison.map.confounds == alone.confounds
        assert comparison.map.settings == alone.settings


def messy_log(name: str, seed: int, **features: bool) -> Samples:
    """A log with what makes pairing hard: gaps, unscored rows, repeats, copies, clusters."""
    rng = random.Random(f"{name} {seed}")
    rows: list[dict[str, Any]] = []
    for task in ("a", "b", "c"):
        for number in range(150):
            if rng.random() < 0.05:
                continue
            content = f"{task} {number} other" if rng.random() < 0.03 else f"{task} {number}"
            for repeat in range(3 if features.get("repeats") else 1):
                right = rng.random() < (0.8 if number % 3 else 0.3)
                row = {
                    "model": name, "task": task, "item": content_hash(content),
                    "item_ref": str(number), "repeat": repeat, "k": 4 if task == "a" else None,
                    "score": None if rng.random() < 0.03 else float(right),
                    "prompt_hash": content_hash(task, number, rng.random() < 0.1),
                }  # fmt: skip
                if features.get("clusters"):
                    row["cluster"] = f"passage {number // 10}"
                if features.get("probabilities"):
                    wrong = rng.random()
                    row["gold_probability"] = chance = rng.random()
                    shares = (chance, (1 - chance) * wrong, (1 - chance) * (1 - wrong), 0.0)
                    row |= {"option_probabilities": list(shares), "right_option": 0}
                rows.append(row)
                if features.get("copies") and rng.random() < 0.05:
                    rows.append(dict(row))
    rng.shuffle(rows)
    return Samples.from_rows(rows)


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"copies": True},
        {"repeats": True},
        {"clusters": True},
        {"probabilities": True},
        {"repeats": True, "copies": True, "clusters": True, "probabilities": True},
    ],
    ids=lambda features: " ".join(features) or "plain",
)
def test_messy_logs_give_the_same_maps(tmp_path: Path, features: dict[str, bool]) -> None:
    checkpoints = {}
    for number, name in enumerate(("base", "sft", "rl")):
        messy_log(name, 5, **features).write(tmp_path / f"{name}.parquet")
        parents = tuple(checkpoints)[-1:]
        log = str(tmp_path / f"{name}.parquet")
        checkpoints[name] = Checkpoint(log=log, parents=parents, steps=number)
    found = lineage(Pipeline.of(checkpoints), draws=DRAWS)
    assert len(found.comparisons) == 3
    for comparison in found.comparisons:
        logs = [found.node(name).log for name in (comparison.before, comparison.after)]
        alone = forgetmap.compare(*logs, draws=DRAWS)
        assert comparison.map.coverage == alone.coverage
        assert alone.coverage.conflicts > 0
        assert comparison.map.confounds == alone.confounds
        for mine, theirs in [
            (comparison.map.total, alone.total),
            *((comparison.map.tasks[task], alone.tasks[task]) for task in alone.tasks),
        ]:
            assert mine.counts == theirs.counts
            assert mine.clustered == theirs.clustered
            for ours, alone_ours in ((mine.lost, theirs.lost), (mine.gained, theirs.gained)):
                assert ours.basis == alone_ours.basis
                for name in ("low_end", "high_end", "low", "high"):
                    assert getattr(ours, name) == pytest.approx(getattr(alone_ours, name), abs=1e-9)


# --- rules ----------------------------------------------------------------------------------------


def write_stages(folder: Path, **scores: list[Any]) -> Pipeline:
    """A linear pipeline; a score that is a list holds the item's repeats."""
    checkpoints = {}
    for name, found in scores.items():
        rows = [
            {"question": f"q{number}", "correct": score, "seed": seed}
            for number, given in enumerate(found)
            for seed, score in enumerate(given if isinstance(given, list) else [given])
        ]
        log = write_jsonl(folder / f"{name}.jsonl", rows)
        checkpoints[name] = Checkpoint(log=str(log), parents=tuple(checkpoints)[-1:])
    return Pipeline.of(checkpoints)


def test_with_repeats_the_majority_decides(tmp_path: Path) -> None:
    pipeline = write_stages(
        tmp_path,
        base=[[1, 1, 0], [1, 0], [1, 1, 1], [1, 1]],
        tuned=[[0, 0, 1], [1, 1], [1, 1, 0], [1, 0]],
    )
    counts = lineage(pipeline, draws=DRAWS).life_lines[0].counts
    assert counts["lost for good"] == 2  # 2 of 3 -> 1 of 3; 2 of 2 -> 1 of 2: half is no majority
    assert counts["learned"] == 1  # 1 of 2 -> 2 of 2
    assert counts["kept"] == 1


def test_missing_is_never_wrong(tmp_path: Path) -> None:
    pipeline = write_stages(tmp_path, base=[1, 1, 0], sft=[1, None, 0], rl=[0, 1, 1])
    lines = lineage(pipeline, draws=DRAWS).life_lines[0]
    assert lines.counts["incomplete"] == 1
    assert lines.listed["incomplete"][0].states == "1?1"
    assert lines.listed["incomplete"][0].times_forgotten == 0
    assert lines.counts["lost for good"] == 1
    assert lines.counts["learned"] == 1


def test_a_task_of_one_checkpoint_only_is_told(tmp_path: Path) -> None:
    logs = {"base": ["a", "b"], "sft": ["a", "c"], "rl": ["a", "b"]}
    checkpoints: dict[str, Checkpoint] = {}
    for name, tasks in logs.items():
        rows = [row for task in tasks for row in items([1, 0, 1], task=task)]
        log = str(write_jsonl(tmp_path / f"{name}.jsonl", rows))
        checkpoints[name] = Checkpoint(log=log, parents=tuple(checkpoints)[-1:])
    found = lineage(Pipeline.of(checkpoints), draws=DRAWS)
    assert "task b is missing in sft" in found.warnings
    assert "task c left out: only sft has it" in found.warnings
    assert found.life_lines[0].groups["b"]["incomplete"] == 3


def test_an_edge_without_common_items_is_refused(tmp_path: Path) -> None:
    pipeline = write_stages(tmp_path, base=[1, 1], sft=[None, None], rl=[1, 1])
    with pytest.raises(InputError, match="base -> sft: none of the 2 common items has a score"):
        lineage(pipeline)


@pytest.mark.parametrize("number", ["merge_weight", "learning_rate", "tokens"])
def test_alternatives_with_a_number_are_a_sweep(tmp_path: Path, number: str) -> None:
    write_stages(tmp_path, base=[1, 1, 0, 0], low=[1, 1, 0, 0], high=[0, 1, 1, 1])
    log = {name: str(tmp_path / f"{name}.jsonl") for name in ("base", "low", "high")}
    pipeline = Pipeline.of(
        {
            "base": Checkpoint(log=log["base"]),
            "high": Checkpoint(log=log["high"], parents="base", **{number: 0.9}),
            "low": Checkpoint(log=log["low"], parents="base", **{number: 0.1}),
        }
    )
    (curve,) = lineage(pipeline, draws=DRAWS).dose_curves
    assert (curve.number, curve.form, curve.origin) == (number, "sweep", "base")
    values = [
        (point.dose, point.kept and point.kept.value, point.gained and point.gained.value)
        for point in curve.points
    ]
    assert values == [(0.1, 1.0, 0.0), (0.9, 0.5, 1.0)]


def test_kinds_by_brute_force() -> None:
    """Every sequence of up to five stages, classified by a plain reading of the definitions."""
    for stages in range(2, 6):
        codes = np.arange(3**stages)
        states = np.stack([codes // 3**s % 3 - 1 for s in range(stages)]).astype(np.int8)
        lives = Lives(states)
        for item in codes.tolist():
            line = states[:, item].tolist()
            changes = [b - a for a, b in pairwise(line)]
            flips = sum(change != 0 for change in changes)
            if -1 in line:
                expected = "incomplete"
            elif flips > 2:
                expected = "oscillating"
            elif line[0]:
                expected = ("kept", "lost for good", "recovered")[flips]
            else:
                expected = ("never known", "learned", "learned and lost")[flips]
            assert lives.kind_of(item) == expected, line
            if expected != "incomplete":
                lost = [stage for stage, change in enumerate(changes, 1) if change < 0]
                assert lives.first_lost[item] == (lost[0] if lost else -1)
                assert lives.times_forgotten[item] == len(lost)


def test_counts_add_up(found: Lineage) -> None:
    for lines in found.life_lines:
        assert sum(lines.counts.values()) == lines.items
        assert sum(fate.count for fate in lines.fates) == lines.items
        for kind in KINDS:
            assert sum(group[kind] for group in lines.groups.values()) == lines.counts[kind]


def test_clusters_widen_the_interval_of_a_share() -> None:
    hits = np.repeat([True, False, True, False], 25)
    apart, together = share(hits), share(hits, np.repeat(np.arange(4), 25))
    assert apart is not None
    assert together is not None
    assert together.high - together.low > 3 * (apart.high - apart.low)
    assert share(np.array([], bool)) is None


def test_the_interval_of_a_share_covers() -> None:
    rng = np.random.default_rng(0)
    for truth, n in ((0.1, 60), (0.5, 40), (0.02, 400)):
        covered = 0
        for _ in range(1000):
            found = share(rng.random(n) < truth)
            assert found is not None
            covered += found.low <= truth <= found.high
        assert 0.92 <= covered / 1000 <= 0.98


# --- the same answer however the logs are written -------------------------------------------------


def told(found: Lineage) -> dict[str, Any]:
    content = found.model_dump(include=set(SAME), mode="json")
    for comparison in content["comparisons"]:
        comparison["map"].pop("warnings")  # they name the files
        for side in ("before", "after"):
            comparison["map"][side].pop("harness")
            comparison["map"]["coverage"].pop(f"rows_{side}")  # also those of other models
    return content


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_order_of_rows_and_format_do_not_matter(
    found: Lineage, tmp_path: Path, suffix: str, seed: int
) -> None:
    again = lineage(write_history(tmp_path, suffix, seed), draws=DRAWS)
    assert told(again) == told(found)


def test_converted_logs_give_the_same(found: Lineage, tmp_path: Path) -> None:
    path = write_history(tmp_path)
    for stage in STAGES:
        read(tmp_path / f"{stage}.jsonl").write(tmp_path / f"{stage}.parquet")
    path.write_text(path.read_text().replace(".jsonl", ".parquet"))
    assert told(lineage(path, draws=DRAWS)) == told(found)


def test_one_log_may_hold_all_checkpoints(found: Lineage, tmp_path: Path) -> None:
    path = write_history(tmp_path)
    batches = [b for s in STAGES for b in read(tmp_path / f"{s}.jsonl").to_batches()]
    Samples.collect(iter(batches), read(tmp_path / "base.jsonl").meta).write(
        tmp_path / "all.parquet"
    )
    text = path.read_text()
    for stage in STAGES:
        text = text.replace(f"log: {stage}.jsonl", f"log: all.parquet, model: {stage}")
    path.write_text(text)
    assert told(lineage(path, draws=DRAWS)) == told(found)


# --- runs, tables, JSON ---------------------------------------------------------------------------


def test_a_folder_of_checkpoints_is_a_run(tmp_path: Path) -> None:
    for step, scores in {0: [1, 1, 0], 10: [1, 0, 0], 9: [0, 1, 1]}.items():
        write_jsonl(tmp_path / f"checkpoint-{step}.jsonl", items(scores))
    (tmp_path / ".hidden").write_text("")
    pipeline = open_pipeline(tmp_path)
    assert pipeline.order == ["checkpoint-0", "checkpoint-9", "checkpoint-10"]
    found = lineage(pipeline, draws=DRAWS)
    (run,) = found.runs
    assert run.number == "steps"
    assert [moment.dose for moment in run.moments] == [9, 10]
    assert sorted(item.states for item in run.most_forgotten) == ["010", "101", "110"]
    assert run.times_forgotten == {1: 3}


def test_the_tables_hold_every_item_and_every_flip(tmp_path: Path) -> None:
    names = ("csv", "flips", "lives")
    outputs = {name: tmp_path / f"{name}.csv" for name in names}
    found = lineage(write_history(tmp_path), draws=DRAWS, **outputs)
    with outputs["lives"].open(newline="") as file:
        lives = list(csv.DictReader(file))
    for lines in found.life_lines:
        mine = [row["kind"] for row in lives if row["path_end"] == lines.path[-1]]
        assert {kind: mine.count(kind) for kind in KINDS} == lines.counts
    with outputs["flips"].open(newline="") as file:
        flips = list(csv.DictReader(file))
    for comparison in found.comparisons:
        if comparison.edge:
            lost = [
                row
                for row in flips
                if (row["before"], row["after"]) == (comparison.before, comparison.after)
                and row["transition"] == "forgotten"
            ]
            assert len(lost) == comparison.map.total.counts.n10
    with outputs["csv"].open(newline="") as file:
        cells = list(csv.DictReader(file))
    totals = [row for row in cells if (row["level"], row["name"]) == ("total", "all items")]
    assert len(totals) == len(found.comparisons)
    assert float(totals[0]["lost_high_end"]) == found.comparisons[0].map.total.lost.high_end


def test_the_benchmark_runs() -> None:
    command = [sys.executable, ROOT / "benchmarks/lineage_job.py"]
    sizes = ["--checkpoints", "2", "3", "--tasks", "2", "--items", "20"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*command, *sizes], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert [line[:11] for line in done.stdout.splitlines()[-2:]] == ["| 2 | 1 | 4", "| 3 | 3 | 4"]


def test_json_comes_back_whole(found: Lineage) -> None:
    again = type(found).model_validate_json(found.to_json())
    assert again == found
    assert again.schema_version == 2


def test_what_the_task_map_leaves_out_is_told(tmp_path: Path) -> None:
    path = write_history(tmp_path)
    (tmp_path / "tasks.csv").write_text(
        "task,category,k\nkept,Good,4\nlost,Bad,4\nlearned,ignored,\n"
        "never,Bad,\nrecovered,Good,\nmissing,Good,\n"
    )
    found = lineage(path, draws=DRAWS, task_map=tmp_path / "tasks.csv")
    assert "not in the task map tasks.csv: oscillating" in found.warnings
    assert "left out, as the task map says: learned" in found.warnings
    lines = found.life_lines[1]
    assert set(lines.groups) == {"Good", "Bad", "unmapped"}
    assert lines.items == 9
    for comparison in found.comparisons:
        logs = [found.node(name).log for name in (comparison.before, comparison.after)]
        alone = forgetmap.compare(*logs, draws=DRAWS, task_map=tmp_path / "tasks.csv")
        assert comparison.map.total == alone.total
        assert comparison.map.categories == alone.categories


def test_logs_of_two_harnesses_are_paired_by_their_words(tmp_path: Path) -> None:
    questions = [f"What is {number} plus one?" for number in range(8)]
    for name, scores in {"base": "11110000", "rl": "10110011"}.items():
        rows = [
            {"task": "sums", "question": question, "target": str(number + 1), "correct": int(score)}
            for number, (question, score) in enumerate(zip(questions, scores, strict=True))
        ]
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    records = [
        lm_eval_record(
            number,
            float(score),
            doc={"question": question},
            target=str(number + 1),
            arguments={"gen_args_0": {"arg_0": f"Question: {question}\nAnswer:", "arg_1": {}}},
        )
        for number, (question, score) in enumerate(zip(questions, "11000011", strict=True))
    ]
    write_lm_eval(tmp_path / "sft", records)
    pipeline = Pipeline.of(
        {
            "base": Checkpoint(log=str(tmp_path / "base.jsonl")),
            "sft": Checkpoint(log=str(tmp_path / "sft"), parents="base"),
            "rl": Checkpoint(log=str(tmp_path / "rl.jsonl"), parents="sft"),
        }
    )
    found = lineage(pipeline, draws=DRAWS)
    counts = {kind: count for kind, count in found.life_lines[0].counts.items() if count}
    assert counts == {
        "kept": 1, "lost for good": 1, "recovered": 2, "learned": 2, "never known": 2,
    }  # fmt: skip
    assert "logs of two harnesses: items are paired by their words" in found.warnings
    alone = forgetmap.compare(tmp_path / "base.jsonl", tmp_path / "sft", draws=DRAWS)
    assert found.comparison("base", "sft").total == alone.total
    assert found.comparison("base", "sft").settings == alone.settings


def test_the_validations_of_verl_are_a_run_by_their_names(tmp_path: Path) -> None:
    """It writes one file for each validation into one folder, named by the step alone."""
    data = ROOT / "tests/data/verl"
    for dump in (data / "before/0.jsonl", data / "after/40.jsonl"):
        shutil.copy(dump, tmp_path)
    later = (tmp_path / "40.jsonl").read_text().replace('"step": 40', '"step": 120')
    (tmp_path / "120.jsonl").write_text(later)
    found = lineage(tmp_path, draws=DRAWS)
    (lines,), (run,) = found.life_lines, found.runs
    assert lines.path == ["0", "40", "120"]  # by number, not by letters
    assert [moment.dose for moment in run.moments] == [40, 120]
    counts = {kind: count for kind, count in lines.counts.items() if count}
    assert counts == {"kept": 1, "lost for good": 1, "learned": 1, "never known": 1}
    alone = forgetmap.compare(data / "before", data / "after", draws=DRAWS).old
    for step in ("40", "120"):
        assert found.comparison("0", step).old.lost == alone.lost
