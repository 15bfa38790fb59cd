"""Kinds of training beside a reference: on the same items, all else equal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from forgetmap.base.errors import InputError
from forgetmap.samples.table import Meta, Samples, complete
from forgetmap.study import Study, run_study
from forgetmap.study.against import beside
from study_logs import lose, write_log

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 400
TASKS = ("task0", "task1", "task2")
LOST = {"sft": 0.2, "anchor": 0.1, "quiet": 0.2}


def made(folder: Path, more: str = "", against: str = "{method: sft}") -> Path:
    """Three methods with three seeds each, and one task of four that they learn."""
    rng = np.random.default_rng(0)
    before = rng.random(ITEMS) < 0.7
    before[-ITEMS // 4 :] = False
    write_log(folder / "base.parquet", before, tasks=4)
    for method, share in LOST.items():
        for seed in range(3):
            after = lose(before, share, rng)
            after[-ITEMS // 4 :] = np.arange(ITEMS // 4) < (90 if method == "sft" else 80)
            write_log(folder / f"{method}-{seed}.parquet", after, tasks=4)
    file = folder / "study.yaml"
    file.write_text(
        f"deterministic: true\nnew: task3\nagainst: {against}\ndefaults: {{before: base.parquet}}\n"
        "pairs:\n- {after: '{method}-{seed}.parquet', rate: 1, name: '{method}-{seed}'}\n" + more,
        encoding="utf-8",
    )
    return file


def losses(folder: Path, name: str) -> np.ndarray:
    """Item by item of the old tasks: whether it was lost."""
    before, after = (
        pq.read_table(folder / f"{log}.parquet").sort_by("item") for log in ("base", name)
    )
    old = before["task"].to_numpy() != "task3"
    return np.maximum(before["score"].to_numpy() - after["score"].to_numpy(), 0)[old]


def test_replicates_are_held_against_the_same_seeds(tmp_path: Path) -> None:
    result = run_study(made(tmp_path))
    found = result.answers.against
    assert found is not None
    assert (found.attribute, found.value, found.left_out) == ("method", "sft", {})
    rows = {kind.attributes["method"]: kind for kind in found.kinds}
    assert set(rows) == {"anchor", "quiet"}
    anchor = rows["anchor"]
    assert anchor.pairs == [f"anchor-{seed}" for seed in range(3)]
    assert anchor.references == [f"sft-{seed}" for seed in range(3)]
    assert (anchor.unit, anchor.items) == ("trainings and items", 300)
    old = ITEMS / 300  # lost of all items, told of the old ones
    assert anchor.lost == pytest.approx(0.1 * old)
    assert anchor.reference_lost == pytest.approx(0.2 * old)
    assert anchor.more_lost.value == pytest.approx(-0.1 * old)
    assert anchor.more_lost.high < 0
    assert anchor.p_adjusted < 0.001
    assert anchor.more_right is not None
    assert anchor.more_right.value == pytest.approx(-0.1)
    assert rows["quiet"].more_lost.low < 0 < rows["quiet"].more_lost.high
    assert rows["quiet"].p_adjusted > 0.05


def test_items_that_are_all_alike_do_not_prove_that_all_are(tmp_path: Path) -> None:
    file = made(tmp_path)
    for seed in range(3):  # other trainings, the same answers
        shutil.copy(tmp_path / f"sft-{seed}.parquet", tmp_path / f"anchor-{seed}.parquet")
    result = run_study(file)
    reach = stats.binomtest(0, 300).proportion_ci().high  # of 300 items none differs
    for seeds in ([0], [0, 1, 2]):
        pairs, references = (
            [result.pair(f"{method}-{seed}") for seed in seeds] for method in ("anchor", "sft")
        )
        found = beside(pairs, references).more_lost
        assert (found.low, found.value, found.high) == pytest.approx((-reach, 0, reach))


def test_one_training_has_the_paired_interval_over_items(tmp_path: Path) -> None:
    result = run_study(made(tmp_path))
    one, other = result.pair("anchor-0"), result.pair("sft-0")
    found = beside([one], [other])
    apart = losses(tmp_path, "anchor-0") - losses(tmp_path, "sft-0")
    test = stats.ttest_1samp(apart, 0)
    interval = test.confidence_interval()
    assert found.unit == "items"
    assert found.more_lost.value == pytest.approx(apart.mean())
    assert found.more_lost.low == pytest.approx(interval.low)
    assert found.more_lost.high == pytest.approx(interval.high)
    assert found.p_value == pytest.approx(test.pvalue)
    parts = [beside([one], [other], lambda task, name=name: task == name) for name in TASKS]
    assert found.more_lost.value == pytest.approx(
        sum(part.more_lost.value * part.items for part in parts) / found.items
    )
    assert beside([one], [one]).more_lost.value == beside([one], [one]).more_lost.high == 0
    with pytest.raises(InputError, match="shares no old item"):
        beside([one], [other], lambda _task: False)


def test_pairs_on_fewer_items_are_compared_on_those_that_both_have(tmp_path: Path) -> None:
    file = made(tmp_path, "- {after: short.parquet, method: short, seed: 0, rate: 1}\n")
    write_log(tmp_path / "short.parquet", np.zeros(ITEMS // 2, bool), tasks=2)
    found = run_study(file).answers.against
    assert found is not None
    (short,) = (kind for kind in found.kinds if kind.attributes["method"] == "short")
    assert short.items <= ITEMS // 2
    assert short.lost > 0.5
    assert short.right is None


def test_pairs_that_share_no_old_item_are_told(tmp_path: Path) -> None:
    file = made(tmp_path, "- {after: far.parquet, before: far0.parquet, method: far, rate: 1}\n")
    for name in ("far", "far0"):
        columns = {"model": ["m"], "task": ["other"], "item": [1], "score": [1.0]}
        batch = complete({key: pa.array(values) for key, values in columns.items()})
        Samples.collect([batch], Meta(harness="made")).write(tmp_path / f"{name}.parquet")
    found = run_study(file).answers.against
    assert found is not None
    assert found.left_out == {"far": "far: shares no old item with its reference"}


def test_pairs_without_a_reference_are_told(tmp_path: Path) -> None:
    kinds = {
        "fast": "method: anchor, rate: 2",
        "a": "method: sft, rate: 3, note: a",
        "b": "method: sft, rate: 3, note: b",
        "known": "method: anchor, rate: 3, note: b",
        "c": "method: sft, rate: 4",
        "d": "method: sft, rate: 4",
        "torn": "method: anchor, rate: 4",
    }
    more = "".join(f"- {{after: {n}.parquet, name: {n}, {k}}}\n" for n, k in kinds.items())
    file = made(tmp_path, more)
    for name in kinds:
        shutil.copy(tmp_path / "anchor-0.parquet", tmp_path / f"{name}.parquet")
    found = run_study(file).answers.against
    assert found is not None
    assert found.left_out == {
        "fast": "no reference is alike in rate",
        "torn": "several references are as alike: c, d",
    }
    (known,) = (kind for kind in found.kinds if kind.pairs == ["known"])
    assert known.references == ["b"]


def test_the_reference_must_be_in_the_study(tmp_path: Path) -> None:
    for against, told in (
        ("{methid: sft}", "against: no pair has the attribute 'methid'; did you mean 'method'?"),
        ("{method: stf}", "against: no pair has the method 'stf'; did you mean 'sft'?"),
        ("{method: sft, seed: 0}", "against: name one attribute and its value"),
        ("{seed: 0}", "against: name one attribute and its value"),
        ("sft", "against"),
    ):
        with pytest.raises(InputError) as error:
            Study.load(made(tmp_path, against=against))
        assert told in str(error.value)
