"""`forgetmap theory`: what people see, what programs read, and what is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forgetmap import theory as lab
from forgetmap.base.errors import InputError
from forgetmap.cli.theory import app
from logs import write_jsonl


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def values(*arguments):
    done = run(*arguments, "--json", "-")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["assumption"]
    assert answer["do_not_trust_when"]
    return answer["values"]


def scores(delta, n, sources=("old", "new", "trained"), old_mass=0.35, seed=0, length=50):
    """Rows as two real references would give them, for Gaussian log-ratios."""
    rng = np.random.default_rng(seed)
    side = {"old": np.full(n, -1), "new": np.full(n, 1)}
    side["trained"] = np.where(rng.random(n) < old_mass, -1, 1)
    for source in sources:
        ratios = delta * rng.standard_normal(n) + side[source] * delta**2 / 2
        for ratio in ratios:
            base = -60.0 - abs(ratio)
            row = {"logp_old": base, "logp_new": base + ratio, "source": source}
            yield row if length is None else {**row, "length": length}


@pytest.fixture
def file(work):
    write_jsonl(work / "scores.jsonl", list(scores(3.0, 400)))
    return "scores.jsonl"


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "--old-mass", 0.05, "--batch", 32),
        ("mix", "--keep", 0.2),
        ("forecast", "--first", 0.4, "--second", 0.2, "--steps", 100),
        ("temperature", "--old-mass", 0.5, "--floor", 0.05, "--gap", 1),
        ("flow", "sft"),
        ("flow", "reverse", "--means"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_every_answer_tells_what_it_rests_on(arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "\nrests on: " in done.output
    assert "\ndo not trust it when: " in done.output
    assert max(map(len, done.output.splitlines())) <= 100


def test_replay():
    found = values("replay", "--old-mass", 0.05, "--batch", 32)
    assert found["smallest_batch"] == 90
    assert found["smallest_replay_share"] == pytest.approx(0.088458607)
    assert found["chance_a_batch_has_no_old_sample"] == pytest.approx(0.19371148)
    helped = values(
        "replay", "--old-mass", 0.05, "--batch", 32, "--risk", 0.05, "--batches", 1000,
        "--replay", 0.1,
    )  # fmt: skip
    assert helped["smallest_batch"] == 64


def test_an_old_mass_that_is_almost_nothing_starves_every_batch():
    found = values("replay", "--old-mass", 1e-300, "--batch", 1)
    assert found["chance_any_batch_has_none"] == 1
    assert found["smallest_replay_share"] == pytest.approx(0.99)


def test_mix():
    assert values("mix", "--keep", 0.1, "--stages", 5)["replay_share"] == pytest.approx(0.63095734)
    assert values("mix", "--keep", 0.2)["loss_weight"] == pytest.approx(0.25)


def test_forecast():
    found = values("forecast", "--first", 0.4, "--second", 0.2, "--steps", 100)
    assert found["steps_from_second"] == pytest.approx(2821.4, abs=0.05)
    assert found["rate_per_step"] == pytest.approx(0.0348083)
    never = run(
        "forecast", "--first", 0.4, "--second", 0.2, "--steps", 100, "--replay", 0.1
    )  # 1 % lies below the replay share
    assert "does not reach 1.0 %: it settles at the replay share" in never.output
    passed = run("forecast", "--first", 0.4, "--second", 0.2, "--steps", 100, "--below", 0.3)
    assert "has passed 30.0 % already" in passed.output


def test_temperature():
    found = values(
        "temperature", "--old-mass", 0.5, "--floor", 0.05, "--gap", 1, "--temperature", 5
    )
    assert found["most_syncs"] == 14
    assert found["lowest_temperature"] == pytest.approx(1 / (20 * 0.14722195))
    entropic = values("temperature", "--old-mass", 0.5, "--floor", 0.25, "--gap", math.log(4))
    assert entropic["ttt_penalty"] == pytest.approx(0.84022082)
    harmless = run(
        "temperature", "--old-mass", 0.5, "--floor", 0.05, "--gap", 0, "--temperature", 1
    )
    assert "any number of round(s) keep the floor" in harmless.output


def test_flow():
    path = values("flow", "sft", "--delta", 4)["path"]
    assert path[0] == {"time": 0.0, "old_weight": pytest.approx(0.5)}
    assert path[-1]["old_weight"] == pytest.approx(0.012236043, rel=1e-6)
    joint = values("flow", "sft", "--delta", 2, "--until", 200, "--means")["path"][-1]
    assert joint["old_weight"] == pytest.approx(0.272151, abs=1e-6)
    assert joint["old_behaviour"] == pytest.approx(0.0015082, abs=1e-7)
    lost = values("flow", "reverse", "--target", 0, "--delta", 3)["path"][-1]
    assert lost["old_weight"] == pytest.approx(0.0066961245, rel=1e-6)


def test_estimate(file):
    found = values("estimate", file)
    assert found["overlap"]["resolved"] is True
    assert found["overlap"]["value"] == pytest.approx(lab.bc(3), abs=4 * found["overlap"]["se"])
    assert found["separation"]["fit"] is True
    assert found["misassignment"]["old_to_new"]["value"] == pytest.approx(0.105, abs=0.04)
    assert found["old_mass"]["value"] == pytest.approx(0.35, abs=4 * found["old_mass"]["se"])
    assert found["old_mass"]["misfit"] < found["old_mass"]["misfit_by_chance"]
    per_token = -math.log(found["overlap"]["value"]) / 50
    assert found["minus_ln_overlap_per_token"] == pytest.approx(per_token)


def test_estimate_tells_a_bound_where_the_overlap_cannot_be_seen(work):
    write_jsonl(work / "far.jsonl", list(scores(25.0, 200)))
    found = values("estimate", "far.jsonl")
    assert found["overlap"]["resolved"] is False
    assert found["overlap"]["upper"] == pytest.approx(-math.expm1(-math.log(20) / 400), rel=1e-6)
    told = run("estimate", "far.jsonl").output
    assert "at most 0.0075 (95 %)" in told
    assert "-ln overlap is at least 0.09" in told


def test_estimate_says_when_the_trained_policy_does_something_else(work):
    rows = list(scores(6.0, 300, ("old", "new")))
    between = [
        {"logp_old": -60.0, "logp_new": -60.0 + 0.01 * n, "source": "trained"} for n in range(300)
    ]
    write_jsonl(work / "other.jsonl", rows + between)
    assert "no mix of the two references" in run("estimate", "other.jsonl").output


def test_estimate_without_trained_responses_or_lengths(work):
    write_jsonl(work / "two.jsonl", list(scores(2.0, 50, ("old", "new"), length=None)))
    found = values("estimate", "two.jsonl")
    assert found["old_mass"] is None
    assert found["minus_ln_overlap_per_token"] is None


def test_parquet_is_read_like_jsonl(work, file):
    rows = list(scores(3.0, 400))
    pq.write_table(pa.Table.from_pylist(rows), work / "scores.parquet")
    assert values("estimate", "scores.parquet") == values("estimate", file)


def test_json_to_a_file(work, file):
    done = run("estimate", file, "--json", "answer.json")
    assert "overlap (Bhattacharyya)" in done.output
    assert json.loads((work / "answer.json").read_text())["values"]["overlap"]["n_old"] == 400


ROW = {"logp_old": -3.0, "logp_new": -4.0, "source": "old"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "source": "base"}, "row 1: source must be old, new or trained; got 'base'"),
        ({**ROW, "logp_old": "x"}, "row 1: logp_old must be a finite number; got 'x'"),
        ({**ROW, "logp_new": None}, "row 1: logp_new must be a finite number; got None"),
        ({**ROW, "logp_new": True}, "row 1: logp_new must be a finite number; got True"),
        ({**ROW, "logp_new": 0.5}, "row 1: logp_new is 0.5, but a log-probability is never above"),
        ({**ROW, "length": 0}, "row 1: length must be positive; got 0"),
        (ROW, "1 rows with source old; at least two responses"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_bad_rows_are_refused(work, row, message):
    write_jsonl(work / "bad.jsonl", [row])
    done = run("estimate", "bad.jsonl")
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nan_in_jsonl_is_refused(work):
    (work / "nan.jsonl").write_text('{"logp_old": NaN, "logp_new": -1, "source": "old"}\n')
    assert "logp_old must be a finite number" in run("estimate", "nan.jsonl").stderr


def test_bad_files_are_refused(work):
    (work / "scores.csv").write_text("a\n")
    (work / "broken.parquet").write_bytes(b"PAR1 not really")
    pq.write_table(pa.table({"logp_old": [-1.0]}), work / "narrow.parquet")
    for name, message in {
        "scores.csv": "must end in .jsonl or .parquet",
        "missing.jsonl": "is not a plain file",
        "broken.parquet": "is not a readable Parquet file",
        "narrow.parquet": "no column 'logp_new'",
    }.items():
        done = run("estimate", name)
        assert done.exit_code == 2, name
        assert message in done.stderr


def test_hostile_text_cannot_reach_the_terminal(work):
    write_jsonl(work / "bad.jsonl", [{**ROW, "source": "\x1b[31mold"}])
    assert "\x1b" not in run("estimate", "bad.jsonl").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("replay", "--old-mass", 1.5, "--batch", 8), "old_mass: must lie strictly between"),
        (("replay", "--old-mass", 0.1, "--batch", 8, "--risk", 0), "risk: must lie strictly"),
        (("replay", "--old-mass", 0.1, "--batch", 0), "batch: must be a whole number, 1 or more"),
        (("mix", "--keep", 1), "keep: must lie strictly between 0 and 1"),
        (("forecast", "--first", 0.2, "--second", 0.4, "--steps", 9), "second: the old mass must"),
        (("temperature", "--old-mass", 0.1, "--floor", 0.2, "--gap", 1), "floor: must lie below"),
        (("flow", "dpo"), "objective: 'dpo' is unknown; known are sft, reverse"),
        (("flow", "sft", "--delta", -1), "delta: must not be negative; got -1"),
        (("flow", "sft", "--start", 0), "start: must lie strictly between 0 and 1"),
        (("flow", "reverse", "--target", 2), "target: must lie between 0 and 1"),
        (("flow", "sft", "--json", "no/such/folder.json"), "does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_options_end_with_one_line_and_code_2(work, arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("forgetmap: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command", ["replay", "mix", "forecast", "temperature", "estimate", "flow"]
)
def test_help_teaches_by_example(command):
    shown = run(command, "--help").output
    assert f"forgetmap theory {command}" in shown.split("Examples:")[1]


def test_the_library_reads_files_too(work, file):
    found = lab.read_logprobs(file)
    assert found.old.size == found.new.size == found.trained.size == 400
    assert found.mean_length == 50
    with pytest.raises(InputError, match="must end in"):
        lab.read_logprobs("scores.txt")


def test_swapped_references_are_refused(work):
    rows = [
        {"logp_old": row["logp_new"], "logp_new": row["logp_old"], "source": row["source"]}
        for row in scores(3.0, 50)
    ]
    write_jsonl(work / "swapped.jsonl", rows)
    done = run("estimate", "swapped.jsonl")
    assert done.exit_code == 2
    assert "are logp_old and logp_new swapped?" in done.stderr


def test_help_needs_no_numpy():
    code = "import sys, forgetmap.cli.theory; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
