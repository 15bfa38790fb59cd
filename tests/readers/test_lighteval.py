"""The lighteval reader on logs that the real harness wrote, in both layouts (tests/data/make)."""

from __future__ import annotations

import math
import random

import pyarrow.parquet as pq
import pytest

from forgetmap.api import compare
from forgetmap.base import parquet as base_parquet
from forgetmap.base.parquet import Raw
from forgetmap.readers import lighteval, lighteval_details
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.lighteval import task_name
from forgetmap.readers.registry import read
from logs import write_parquet
from places import DATA

VERSIONS = ("0.10.0", "0.13.0")
LOGS = DATA / "lighteval"


def rows(path, text=True, **wanted):
    found = read(path, ReadOptions(text=text)).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def raw(version, task, folder="before/greedy"):
    (file,) = (LOGS / version / folder).rglob(f"details_*{task}*.parquet")
    return pq.read_table(file).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_score_is_read_under_its_plain_task_name(version):
    for task, metric in (("fm_capitals", "acc"), ("fm_letters", "extractive_match")):
        column = "metrics" if version == "0.10.0" else "metric"
        expected = [float(row[column][metric]) for row in raw(version, task)]
        found = rows(LOGS / version / "before/greedy", task=task, metric=metric)
        assert [row["score"] for row in found] == expected
        assert {row["model"] for row in found} == {"tiny-before"}


def test_both_layouts_identify_the_same_items():
    for task in ("fm_capitals", "fm_letters"):
        one, other = (
            {row["item"] for row in rows(LOGS / version / "before/greedy", task=task)}
            for version in VERSIONS
        )
        assert one == other
        assert len(one) == 16


def test_options_and_their_probabilities():
    for version in VERSIONS:
        found = rows(LOGS / version / "before/greedy", task="fm_capitals", metric="acc")
        assert {row["k"] for row in found} == {4}
        for row, source in zip(found, raw(version, "fm_capitals"), strict=True):
            if version == "0.10.0":
                values, gold = [pair[0] for pair in source["predictions"]], source["gold_index"][0]
            else:
                values = source["model_response"]["logprobs"]
                gold = source["doc"]["gold_index"]
            weights = [math.exp(value) for value in values]
            chances = [weight / sum(weights) for weight in weights]
            assert row["gold_probability"] == pytest.approx(chances[gold])
            assert row["option_probabilities"] == pytest.approx(chances, rel=1e-6)
            assert row["right_option"] == gold


def test_option_probabilities_of_one_item_by_hand():
    """The log says -0.0102, -8.437, -8.151, -6.743; the last is right."""
    row = rows(LOGS / "0.13.0/before/greedy", task="fm_capitals", metric="acc")[0]
    assert row["option_probabilities"] == pytest.approx(
        [0.998301, 0.000219, 0.000291, 0.00119], abs=1e-6
    )
    assert row["right_option"] == 3
    letters = rows(LOGS / "0.13.0/before/greedy", task="fm_letters")
    assert {row["option_probabilities"] for row in letters} == {None}


def test_the_flat_layout_stores_no_options_for_generated_answers():
    assert {row["k"] for row in rows(LOGS / "0.10.0/before/greedy", task="fm_letters")} == {None}
    assert {row["k"] for row in rows(LOGS / "0.13.0/before/greedy", task="fm_letters")} == {4}


@pytest.mark.parametrize("version", VERSIONS)
def test_seeds_are_repeats(version, tmp_path):
    for seed in range(3):
        (tmp_path / f"seed{seed}").symlink_to(LOGS / version / f"before/seed{seed}")
    found = [row for seed in range(3) for row in rows(tmp_path / f"seed{seed}")]
    assert len(found) == 48
    merged = read(LOGS / version / "before")
    letters = [row for row in merged.data.to_pylist() if row["task"] == "fm_letters"]
    assert len({row["repeat"] for row in letters}) == 3
    assert len(letters) == 48
    # The greedy run carries seed 0 too; the newest of the two counts, and it is said.
    assert any("older runs" in text for text in merged.meta.warnings)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_map_with_repeats(version):
    result = compare(LOGS / version / "before", LOGS / version / "after", draws=500)
    assert result.tasks["fm_letters"].lost.basis == "repeats"
    assert result.tasks["fm_capitals"].lost.basis == "probabilities"
    assert result.coverage.matched == 32


def test_logs_of_different_releases_pair():
    result = compare(LOGS / "0.10.0/before/greedy", LOGS / "0.13.0/before/greedy", draws=500)
    assert result.coverage.matched == 32


@pytest.mark.parametrize("version", VERSIONS)
def test_texts_are_there_on_request(version):
    letters = rows(LOGS / version / "before/greedy", task="fm_letters")
    assert all(row["prompt"].startswith("What is the capital") for row in letters)
    assert {row["target"] for row in letters} <= set("ABCD")
    assert {row["answer"] for row in letters} <= {*"ABCD", None}
    assert all(row["response"] for row in letters)
    capitals = rows(LOGS / version / "before/greedy", task="fm_capitals", metric="acc")
    assert all((row["answer"] == row["target"].strip()) == (row["score"] == 1) for row in capitals)
    assert {row["prompt"] for row in rows(LOGS / version / "before", text=False)} == {None}


def test_the_post_forget_protocol_runs_on_native_logs():
    result = compare(LOGS / "0.10.0/before", LOGS / "0.10.0/after", compat="post-forget", draws=500)
    assert result.compat.seeds >= 3
    assert [row.category for row in result.compat.rows] == ["Missing", "Missing", "Total", "Total"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("community|bbh_reasoning_letter:navigate|0", ("bbh_reasoning_letter:navigate", 0)),
        ("lighteval|gsm8k|5", ("gsm8k", 5)),
        ("gsm8k|5", ("gsm8k", 5)),
        ("a_task", ("a_task", None)),
    ],
)
def test_task_names_lose_suite_and_shots(name, expected):
    assert task_name(name) == expected


# --- what runs of one task share ------------------------------------------------------------------


def flat(chance):
    """Rows of the flat layout; a few questions, so that runs often ask the same."""
    likely = chance.random() < 0.4
    names = chance.choice([("choices", "gold"), ("choices", "gold_index"), ("gold",), ("choices",)])
    columns = {
        "example": [chance.choice(["a?", "b?", "", None]) for _ in range(2)],
        "choices": [chance.choice([["x", "y"], ["y", "x"], ["x"], []]) for _ in range(2)],
        "gold": [chance.choice([["x"], ["x", "y"], []]) for _ in range(2)],
        "gold_index": [chance.choice([[0], [1], [0, 1], [7]]) for _ in range(2)],
    }
    kept = {name: columns[name] for name in ("example", *names)}
    if "gold" in names:
        kept["choices"] = [["x", "y"]] * 2 if "choices" in names else [[]] * 2
    if likely:
        kept["predictions"] = [[-1.0, -2.0], chance.choice([[-1.0, -2.0], [-1.0]])]
    return [
        {name: values[row] for name, values in kept.items()}
        | {"metrics": {"acc": chance.random(), "em": chance.choice([0.0, 1.0, math.nan])}}
        for row in range(2)
    ]


def struct(chance):
    """The same for the structs of later releases."""
    return [
        {
            "doc": {
                "query": chance.choice(["a?", "b?", "", None]),
                "choices": chance.choice([["x", "y"], ["y", "x"], ["x"]]),
                "gold_index": chance.choice([[0], [1], [0, 1]]),
                "id": chance.choice("12"),
            },
            "metric": {"acc": chance.random()},
            "model_response": {"logprobs": chance.choice([[-1.0, -2.0], []]), "text": ["z"]},
        }
        for _ in range(2)
    ]


@pytest.mark.parametrize("part_bytes", [base_parquet.PART_BYTES, 60])
@pytest.mark.parametrize("how", [{}, {"text": True}, {"wording": True}])
def test_runs_of_one_task_read_together_are_what_each_is_alone(
    how, part_bytes, tmp_path, monkeypatch
):
    """What was asked is worked out once for runs that ask the same, and only for those."""
    monkeypatch.setattr(base_parquet, "PART_BYTES", part_bytes)
    chance = random.Random(5)
    for case in range(30):
        place = tmp_path / str(case)
        files = [
            write_parquet(
                place / f"run{run}" / f"details_sums|0_2025-01-31T12-30-{run:02d}.parquet",
                chance.choice([flat, struct])(chance),
            )
            for run in range(12)
        ]
        alone = {}
        for file in files:
            rows = read(file, ReadOptions(**how)).data.to_pylist()
            alone |= {(row["source"], row["metric"]): row | {"model": ""} for row in rows}
        merged = read(place, ReadOptions(**how)).data.to_pylist()
        found = {(row["source"], row["metric"]): row | {"model": ""} for row in merged}
        assert found.keys() == alone.keys()
        for key, row in found.items():
            assert row == alone[key] | {"repeat": row["repeat"]}


@pytest.mark.parametrize("layout", [flat, struct])
def test_the_columns_that_ask_are_read_once_for_runs_that_ask_the_same(
    layout, tmp_path, monkeypatch
):
    monkeypatch.setattr(lighteval_details, "_KNOWN", lighteval_details.Known())
    content = layout(random.Random(2))
    for run in range(4):
        name = f"details_sums|0_2025-01-31T12-30-{run:02d}.parquet"
        write_parquet(tmp_path / f"run{run}" / name, content if run < 3 else content[:1])
    read_columns = []
    parquet_parts = lighteval_details.parquet_parts

    def noted(path, columns):
        for part in parquet_parts(path, columns):
            read_columns.append(str(part.schema))
            yield part

    monkeypatch.setattr(lighteval_details, "parquet_parts", noted)
    assert len(rows(tmp_path, text=False, metric="acc")) == 7
    asking = "example" if layout is flat else "query"
    assert [asking in columns for columns in read_columns] == [True, False, False, True]


def test_what_one_log_asked_is_recalled_for_the_next_within_bounds(tmp_path, monkeypatch):
    known = lighteval_details.Known(most=4)
    monkeypatch.setattr(lighteval_details, "_KNOWN", known)
    worked_out = []
    flat_asked = lighteval_details._flat_asked
    monkeypatch.setattr(
        lighteval_details,
        "_flat_asked",
        lambda table: worked_out.append(len(table)) or flat_asked(table),
    )

    def items(seed):
        name = f"{len(list(tmp_path.iterdir()))}/details_sums|0_2025-01-31T12-30-00.parquet"
        log = write_parquet(tmp_path / name, flat(random.Random(seed)))
        return [row["item"] for row in rows(log, text=False)]

    first = items(2)
    assert items(2) == first
    assert worked_out == [2]  # the second log was not worked out again
    assert items(3) != first
    items(4)  # the third file of two items: the first is forgotten
    assert items(2) == first
    assert worked_out == [2] * 4


def test_what_few_items_with_long_texts_asked_is_kept_within_bounds():
    known = lighteval_details.Known(most_bytes=100)
    raws = [Raw((number,), (bytes([number]) * 40,)) for number in range(3)]
    for raw in raws:
        known.keep(raw, lighteval_details.Asked(["a?"], [[]], [["a"]]))
    assert [known.find(raw) is not None for raw in raws] == [False, True, True]


@pytest.mark.parametrize("place", ["queries", "options", "targets"])
def test_texts_count_as_they_are_and_not_as_they_are_stored(place):
    """A text that repeats itself takes next to no bytes of a file, and all of its own in memory."""
    known = lighteval_details.Known(most_bytes=100)
    raws = [Raw((number,), (bytes([number]),)) for number in range(3)]
    for raw in raws:
        texts = {"queries": ["a?"], "options": [[]], "targets": [["a"]]}
        texts[place] = ["a" * 45] if place == "queries" else [["a" * 45]]
        known.keep(raw, lighteval_details.Asked(**texts))
    assert [known.find(raw) is not None for raw in raws] == [False, True, True]


def test_columns_too_large_to_keep_are_read_each_time(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "x.parquet", [{"question": "a?"}])
    stored = []
    base_parquet.parquet_parts(path, lambda found: stored.append(found) or ["question"]).__next__()
    assert stored[0].raw(["question"]) == stored[0].raw(["question"])
    monkeypatch.setattr(base_parquet, "_KEPT", 0)
    assert stored[0].raw(["question"]) is None


def test_a_results_file_is_read_once_for_all_tasks_of_a_run(tmp_path, monkeypatch):
    looked_at = []
    read_json = lighteval.read_json
    monkeypatch.setattr(
        lighteval, "read_json", lambda path: (looked_at.append(path), read_json(path))[1]
    )
    log = LOGS / "0.13.0/before/greedy"
    assert len({row["task"] for row in rows(log)}) == 2
    assert len(looked_at) == len(set(looked_at)) == len(list(log.rglob("results_*.json")))
