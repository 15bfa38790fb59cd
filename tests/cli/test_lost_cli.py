"""What was lost, from files to JSON by the command line: every property of the estimand."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from logs import Workplace, write_csv, write_jsonl

KINDS = ("options", "repeats", "single")
ENDS = ("low_end", "high_end", "low", "high")


def chances(seed: int, items: int = 60) -> tuple[list[float], list[float]]:
    """An item in five falls, one in five rises."""
    rng = random.Random(seed)
    before = [rng.random() for _ in range(items)]
    after = [
        p * 0.3 if place < 0.2 else 1 - (1 - p) * 0.4 if place < 0.4 else p
        for p, place in ((p, rng.random()) for p in before)
    ]
    return before, after


def with_options(path: Any, tasks: dict[str, list[float]], seed: int = 0) -> None:
    """Samples Parquet with the probabilities of four options, the right one at a known place."""
    rng, rows = random.Random(seed), []
    for task, shares in tasks.items():
        for number, right in enumerate(shares):
            rest = (1 - right) / 3
            rows.append(
                {
                    "task": task,
                    "item": content_hash(f"{task} {number}"),
                    "item_ref": str(number),
                    "score": float(right > rest),
                    "k": 4,
                    "gold_probability": right,
                    "option_probabilities": [rest, right, rest, rest],
                    "right_option": 1,
                }
            )
    rng.shuffle(rows)
    Samples.from_rows(rows).write(path)


def with_runs(path: Any, tasks: dict[str, list[float]], repeats: int, seed: int) -> None:
    """CSV with some runs of every item."""
    rng = random.Random(seed)
    rows = [
        {
            "task": task,
            "question": f"{task} {number}",
            "correct": int(rng.random() < p),
            "seed": repeat,
        }
        for task, shares in tasks.items()
        for number, p in enumerate(shares)
        for repeat in range(repeats)
    ]
    rng.shuffle(rows)
    write_csv(path, rows)


def write_pair(
    work: Workplace, kind: str, before: dict[str, list[float]], after: dict[str, list[float]]
) -> tuple[str, str]:
    if kind == "options":
        with_options(work / "before.parquet", before)
        with_options(work / "after.parquet", after)
        return "before.parquet", "after.parquet"
    for seed, (name, tasks) in enumerate((("before", before), ("after", after))):
        with_runs(work / f"{name}.csv", tasks, 3 if kind == "repeats" else 1, seed)
    return "before.csv", "after.csv"


def compared(work: Workplace, *arguments: object) -> dict[str, Any]:
    done = work.worked("compare", *arguments, "--json", "-")
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def ends(told: dict[str, Any]) -> list[float]:
    return [told[name] for name in ENDS]


# --- the six properties ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_gained_less_lost_is_the_change(work: Workplace, seed: int) -> None:
    """Property 1: exactly, where the chances are known."""
    p, q = chances(seed)
    total = compared(work, *write_pair(work, "options", {"t": p}, {"t": q}))["total"]
    lost, gained = total["lost"], total["gained"]
    assert lost["basis"] == gained["basis"] == "probabilities"
    assert gained["high_end"] - lost["high_end"] == pytest.approx(np.mean(q) - np.mean(p), abs=1e-6)
    assert lost["high_end"] == pytest.approx(np.maximum(np.array(p) - q, 0).mean(), abs=1e-6)
    raw = total["raw"]
    change = total["accuracy_after"] - total["accuracy_before"]
    assert raw["gained"]["value"] - raw["lost"]["value"] == pytest.approx(change)


@pytest.mark.parametrize("kind", KINDS)
def test_lost_lies_between_the_drop_and_the_flips(work: Workplace, kind: str) -> None:
    """Property 2, from runs; property 5: no pairing of the runs can show fewer flips."""
    p, q = chances(3)
    total = compared(work, *write_pair(work, kind, {"t": p}, {"t": q}))["total"]
    lost = total["lost"]
    assert 0 <= lost["low"] <= lost["low_end"] <= lost["high_end"] <= lost["high"] <= 1
    drop = total["accuracy_before"] - total["accuracy_after"]
    if kind == "options":
        flips = (np.array(p) * (1 - np.array(q))).mean()
        assert max(0, np.mean(p) - np.mean(q)) <= lost["high_end"] + 1e-9 <= flips
    else:
        assert max(0, drop) - 1e-9 <= lost["high_end"] <= total["raw"]["lost"]["value"] + 1e-9


def test_a_log_with_itself_has_lost_nothing(work: Workplace) -> None:
    """Property 2: the same model twice."""
    p, _ = chances(4)
    for kind in KINDS:
        log, _ = write_pair(work, kind, {"t": p}, {"t": p})
        done = work.run("compare", log, log, "--json", "map.json", "--gate", "max-forgetting=0")
        assert done.exit_code == 0, done.output
        told = json.loads((work / "map.json").read_text())
        for side in ("lost", "gained"):
            assert ends(told["total"][side]) == [0, 0, 0, 0]
        assert told["total"]["verdict"]["forgetting"] == "held"
        assert any("one and the same" in text for text in told["warnings"])


def test_of_models_without_noise_lost_is_the_flips(work: Workplace) -> None:
    """Property 2: deterministic models, as vouched for, and as repeats show."""
    before = [1.0] * 60 + [0.0] * 40
    after = [0.0] * 15 + [1.0] * 45 + [1.0] * 10 + [0.0] * 30
    single = write_pair(work, "single", {"t": before}, {"t": after})
    vouched = compared(work, *single, "--deterministic")["total"]
    assert (vouched["lost"]["basis"], vouched["lost"]["high_end"]) == ("deterministic", 0.15)
    assert vouched["gained"]["high_end"] == 0.1
    plain = compared(work, *single)["total"]["lost"]
    assert plain["basis"] == "single_run"
    assert (plain["low_end"], plain["high_end"]) == pytest.approx((0.05, 0.15))
    repeated = compared(work, *write_pair(work, "repeats", {"t": before}, {"t": after}))["total"]
    assert repeated["lost"]["low_end"] == pytest.approx(0.15)
    assert repeated["lost"]["high_end"] == pytest.approx(0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_only_gained_adds_nothing(work: Workplace, kind: str) -> None:
    """Property 3: the number of lost items adds up over tasks, whatever a task gained."""
    p, q = chances(5, 90)
    low, high = [0.0] * 50, [1.0] * 50
    alone = compared(work, *write_pair(work, kind, {"t": p}, {"t": q}))["total"]
    logs = write_pair(work, kind, {"t": p, "up": low}, {"t": q, "up": high})
    both = compared(work, *logs)
    assert both["tasks"]["up"]["lost"]["high_end"] == 0
    assert both["tasks"]["up"]["lost"]["low_end"] == 0
    flips = [told["raw"]["lost"]["value"] * told["n"] for told in (both["total"], alone)]
    assert flips[0] == pytest.approx(flips[1])
    if kind == "options":  # where the loss is exact
        lost = [told["lost"]["high_end"] * told["n"] for told in (both["total"], alone)]
        assert lost[0] == pytest.approx(lost[1])
        tasks = sum(cell["lost"]["high_end"] * cell["n"] for cell in both["tasks"].values())
        assert tasks == pytest.approx(lost[0])


@pytest.mark.parametrize("kind", KINDS)
def test_swapping_the_logs_swaps_lost_and_gained(work: Workplace, kind: str) -> None:
    """Property 4, and the order of rows changes nothing."""
    p, q = chances(6)
    before, after = write_pair(work, kind, {"t": p, "u": q}, {"t": q, "u": q})
    one, other = compared(work, before, after)["total"], compared(work, after, before)["total"]
    for mine, theirs in (("lost", "gained"), ("gained", "lost")):
        assert ends(one[mine]) == pytest.approx(ends(other[theirs]))
    if kind == "options":
        with_options(work / "before.parquet", {"u": q, "t": p}, seed=9)
    else:
        lines = (work / before).read_text().splitlines()
        random.Random(1).shuffle(rows := lines[1:])
        (work / before).write_text("\n".join([lines[0], *rows]) + "\n")
    assert compared(work, before, after)["total"] == one


@pytest.mark.parametrize("seed", range(3))
def test_the_old_numbers_are_bounds(work: Workplace, seed: int) -> None:
    """Property 6: (E d + E d^2) / 2 <= lost <= (E d + sqrt(E d^2)) / 2."""
    p, q = chances(seed)
    lost = compared(work, *write_pair(work, "options", {"t": p}, {"t": q}))["total"]["lost"]
    d = np.array(p) - np.array(q)
    assert (d.mean() + (d**2).mean()) / 2 <= lost["high_end"] + 1e-6
    assert lost["high_end"] <= (d.mean() + np.sqrt((d**2).mean())) / 2 + 1e-6


# --- what else is known of the models -------------------------------------------------------------


def test_new_tasks_are_told_apart(work: Workplace) -> None:
    before = {"old": [1.0] * 40, "airports": [0.0] * 40}
    after = {"old": [0.0] * 8 + [1.0] * 32, "airports": [1.0] * 40}
    logs = write_pair(work, "single", before, after)
    told = compared(work, *logs, "--new", "airports", "--deterministic")
    assert told["settings"]["new"] == ["airports"]
    assert (told["old"]["n"], told["new"]["n"], told["total"]["n"]) == (40, 40, 80)
    assert told["old"]["lost"]["high_end"] == 0.2
    assert told["old"]["lost"]["of_known"]["value"] == 0.2
    assert told["new"]["lost"]["high_end"] == 0
    assert told["total"]["lost"]["high_end"] == pytest.approx(0.1)
    work.refused("compare", *logs, "--new", "airport", says=("--new airport: no such task",))


def test_items_that_were_trained_on_are_new(work: Workplace) -> None:
    questions = [f"What is the capital of country number {number}?" for number in range(40)]
    for name, scores in (("before", [1] * 40), ("after", [0] * 10 + [1] * 30)):
        rows = [
            {"question": question, "prompt": question, "correct": score}
            for question, score in zip(questions, scores, strict=True)
        ]
        write_csv(work / f"{name}.csv", rows)
    write_jsonl(
        work / "train.jsonl", [{"prompt": text, "completion": "x"} for text in questions[:10]]
    )
    told = compared(work, "before.csv", "after.csv", "--trained-on", "train.jsonl")
    assert told["new"]["n"] == 10
    assert told["old"]["n"] == 30
    assert told["old"]["raw"]["lost"]["value"] == 0
    assert any("10 items are in the training data" in text for text in told["warnings"])
    work.refused(
        *("compare", "before.csv", "after.csv", "--trained-on", "gone.jsonl"), says=("gone.jsonl",)
    )


def test_second_runs_measure_the_noise(work: Workplace) -> None:
    """The same model four times: its flips are noise, and the noise is known."""
    p = [random.Random(number).choice([0.1, 0.5, 0.9]) for number in range(800)]
    for seed, name in enumerate(("before", "after", "before-2", "after-2")):
        with_runs(work / f"{name}.csv", {"t": p}, 1, seed)
    plain = compared(work, "before.csv", "after.csv")["total"]
    assert plain["noise_floor"] is None
    one = compared(work, "before.csv", "after.csv", "--noise-before", "before-2.csv")["total"]
    both = compared(
        *(work, "before.csv", "after.csv", "--noise-before", "before-2.csv"),
        *("--noise-after", "after-2.csv"),
    )["total"]
    for told in (one, both):
        assert told["lost"]["basis"] == "noise_run"
        assert told["lost"]["high_end"] < plain["lost"]["high_end"]
        assert told["noise_floor"] == pytest.approx(plain["raw"]["lost"]["value"], abs=0.05)
        assert told["verdict"]["forgetting"] != "lost"
    work.refused(
        *("compare", "before.csv", "after.csv", "--noise-before", "gone.csv"), says=("gone.csv",)
    )


# --- planning -------------------------------------------------------------------------------------


def test_a_plan_says_what_could_be_seen(work: Workplace) -> None:
    told = json.loads(
        work.worked("plan", "--items", "400", "--loss", "0.05", "--options", "--json", "-").stdout
    )
    assert told["asked"]["evidence"] == "options"
    assert told["asked"]["answers"] == 800
    assert told["asked"]["seen"] > 0.8
    assert told["smallest_seen"] <= 0.05
    assert {design["items"] for design in told["others"]} == {100, 200, 400, 800, 1600}
    weak = json.loads(
        work.worked("plan", "--items", "100", "--accuracy", "0.1", "--json", "-").stdout
    )
    assert weak["asked"]["evidence"] == "one run"
    assert weak["asked"]["seen"] < 0.2


@pytest.mark.parametrize(
    ("kind", "evidence"), [("options", "options"), ("repeats", "repeats"), ("single", "one run")]
)
def test_a_plan_from_a_log(work: Workplace, kind: str, evidence: str) -> None:
    p, _ = chances(7, 50)
    log, _ = write_pair(work, kind, {"t": p}, {"t": p})
    told = json.loads(work.worked("plan", log, "--json", "-").stdout)
    assert told["asked"]["items"] == 50
    assert told["asked"]["repeats"] == (3 if kind == "repeats" else 1)
    assert told["asked"]["evidence"] == evidence
    more = json.loads(work.worked("plan", log, "--items", "200", "--json", "-").stdout)
    assert more["asked"]["items"] == 200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give --items N, or a log of the model before"),
        (("--items", "0"), "--items 0: must be between"),
        (("--items", "500", "--repeats", "0"), "--repeats 0: must be between"),
        (("--items", "500", "--loss", "2"), "--loss 2.0: must be a fraction"),
        (("--items", "500", "--loss", "nan"), "--loss nan: must be a fraction"),
        (("--items", "500", "--gain", "-0.1"), "--gain -0.1: must be a fraction"),
        (("--items", "500", "--gain", "0.9"), "more than this model could show"),
        (("--items", "500", "--margin", "0.5"), "--margin 0.5: must be smaller than the loss"),
        (("--items", "500", "--accuracy", "1"), "--accuracy 1.0: must be a fraction"),
        (("--items", "500", "--seed", "-1"), "--seed -1: must not be negative"),
        (("gone.csv",), "gone.csv"),
    ],
)
def test_a_plan_of_nonsense_is_refused(
    work: Workplace, arguments: tuple[str, ...], says: str
) -> None:
    work.refused("plan", *arguments, "--json", "plan.json", says=(says,))
