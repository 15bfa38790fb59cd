"""Building a study: nothing is done twice, and nothing that is broken stops the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.study import build, logs
from forgetmap.study.build import run_study
from forgetmap.study.result import StudyResult
from study_logs import lose, write_log, write_made_study

if TYPE_CHECKING:
    from pathlib import Path

SHARES = {"little": 0.01, "some": 0.05, "much": 0.2}


def test_every_pair_is_what_compare_says(tmp_path: Path) -> None:
    result = run_study(write_made_study(tmp_path, SHARES))
    assert [pair.name for pair in result.pairs] == list(SHARES)
    for pair in result.pairs:
        alone = forgetmap.compare(pair.before_log, pair.after_log, deterministic=True, draws=1000)
        assert pair.old.lost.range == alone.old.lost
        assert pair.old.lost.value == pytest.approx(SHARES[pair.name])
        assert pair.tasks["task0"].n == alone.tasks["task0"].n == 200
        assert pair.coverage == alone.coverage
    again = StudyResult.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    here = [pair.model_copy(update={"outcomes": None}) for pair in result.pairs]
    assert again == result.model_copy(update={"pairs": here})  # all but where items are stored


def test_a_changed_result_is_refused(tmp_path: Path) -> None:
    text = run_study(write_made_study(tmp_path, SHARES)).to_json()
    with pytest.raises(InputError, match="was changed after it was written"):
        StudyResult.from_json(text.replace('"little"', '"none"'))
    with pytest.raises(InputError, match="schema version 9"):
        StudyResult.from_json(text.replace('"schema_version": 1', '"schema_version": 9', 1))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the logs that were read, and `map` for every map that was made."""
    done: list[str] = []
    reading, mapping = logs.read, build.build_map

    def read(path, how):
        done.append(path.name)
        return reading(path, how)

    def build_map(*args, **named):
        done.append("map")
        return mapping(*args, **named)

    monkeypatch.setattr(logs, "read", read)
    monkeypatch.setattr(build, "build_map", build_map)
    return done


def as_csv(folder: Path, name: str, right: np.ndarray) -> None:
    rows = [f"t,q{number},{int(score)}" for number, score in enumerate(right)]
    (folder / name).write_text("\n".join(["task,question,correct", *rows]), encoding="utf-8")


def test_nothing_is_done_twice(tmp_path: Path, counted: list[str]) -> None:
    rng = np.random.default_rng(0)
    before = rng.random(100) < 0.7
    as_csv(tmp_path, "base.csv", before)
    for number in range(3):
        as_csv(tmp_path, f"sft-{number}.csv", lose(before, 0.1, rng))
    file = tmp_path / "study.yaml"
    file.write_text("pairs:\n- {before: base.csv, after: 'sft-{seed}.csv'}\n", encoding="utf-8")

    first = run_study(file)
    assert sorted(counted) == ["base.csv", *["map"] * 3, "sft-0.csv", "sft-1.csv", "sft-2.csv"]
    counted.clear()
    assert run_study(file) == first
    assert counted == []

    as_csv(tmp_path, "sft-1.csv", lose(before, 0.3, rng))
    changed = run_study(file)
    assert counted == ["sft-1.csv", "map"]
    assert changed.pairs[0] == first.pairs[0]
    assert changed.pairs[1].old.lost.value == pytest.approx(0.3)

    counted.clear()
    run_study(file, margin=0.05)  # another setting: maps are made again, logs are not read again
    assert counted == ["map"] * 3


def test_a_damaged_cache_is_made_again(tmp_path: Path, counted: list[str]) -> None:
    file = write_made_study(tmp_path, SHARES)
    first = run_study(file)
    counted.clear()
    stored = sorted((tmp_path / ".forgetmap" / "study").glob("*.items.parquet"))
    content = bytearray(stored[0].read_bytes())
    content[len(content) // 2] ^= 1
    stored[0].write_bytes(content)
    maps = sorted((tmp_path / ".forgetmap" / "study").glob("*.pair.json"))
    other = next(path for path in maps if path.name[:9] != stored[0].name[:9])
    other.write_text(other.read_text().replace("0", "1", 1), encoding="utf-8")
    assert run_study(file) == first
    assert counted.count("map") == 2


def test_what_is_broken_or_missing_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    (tmp_path / "bad.csv").write_bytes(b"\x00\x01\x02 not a log")
    (tmp_path / "other.csv").write_text("question,correct\nunheard of,1\n", encoding="utf-8")
    with file.open("a") as text:
        for name in ("bad.csv", "none.csv", "other.csv"):
            text.write(f"- {{before: base.parquet, after: {name}}}\n")
    result = run_study(file)
    assert [pair.name for pair in result.pairs] == list(SHARES)
    reasons = {failure.name: failure.reason for failure in result.failures}
    assert reasons["none"].startswith("after: ")
    assert "no such file or folder" in reasons["none"]
    assert "bad.csv" in reasons["bad"]
    assert reasons["other"]
    assert "3 could not be compared" in result.headline()


def test_a_study_without_a_pair_that_can_be_compared(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("pairs:\n- {before: a, after: b}\n", encoding="utf-8")
    with pytest.raises(InputError, match="none of its 1 pairs could be compared; b: before: "):
        run_study(file)


def test_partial_logs_are_compared_on_what_they_share(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    short = np.random.default_rng(1).random(100) < 0.7
    write_log(tmp_path / "short.parquet", short, tasks=1)
    with file.open("a") as text:
        text.write("- {before: base.parquet, after: short.parquet}\n")
    result = run_study(file)
    assert result.pair("short").coverage.matched == 100
    assert any("do not share all tasks" in text for text in result.warnings)
    assert any("1 pairs are partial: short compares 100 of 400" in t for t in result.warnings)


def test_a_log_with_several_models_wants_a_name(tmp_path: Path) -> None:
    rows = "".join(f"{m},q{i},{(i + n) % 2}\n" for n, m in enumerate("ab") for i in range(50))
    (tmp_path / "both.csv").write_text(f"model,question,correct\n{rows}", encoding="utf-8")
    file = tmp_path / "study.yaml"
    entry = "- {before: both.csv, after: both.csv, before_model: a, name: NAME, after_model: MODEL}"
    chosen = entry.replace("NAME", "fine").replace("MODEL", "b")
    wrong = entry.replace("NAME", "wrong").replace("MODEL", "c")
    file.write_text(f"pairs:\n{chosen}\n{wrong}\n", encoding="utf-8")
    result = run_study(file)
    assert result.pair("fine").old.n == 50
    assert "no model 'c' in the log" in result.failures[0].reason


def test_new_tasks_are_reported_apart(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    text = file.read_text(encoding="utf-8")
    file.write_text(f"new: [task1, nowhere]\n{text}", encoding="utf-8")
    result = run_study(file)
    pair = result.pairs[0]
    assert pair.new is not None
    assert (pair.old.n, pair.new.n) == (200, 200)
    assert result.answers.items is not None
    assert result.answers.items.items == 200
    assert "new: no pair has the task nowhere" in result.warnings


def test_ignored_tasks_do_not_count_unless_they_are_new(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    text = file.read_text(encoding="utf-8")
    file.write_text(f"ignore: task*\nnew: task1\n{text}", encoding="utf-8")
    result = run_study(file)
    assert [list(pair.tasks) for pair in result.pairs] == [["task1"]] * len(SHARES)
    assert "left out, as the study says: task*" in result.warnings
    assert "left out, as the study says: task0" in result.pairs[0].warnings
    file.write_text(f"ignore: task0\n{text}", encoding="utf-8")
    result = run_study(file)  # another setting: nothing of it comes from the cache
    assert [list(pair.tasks) for pair in result.pairs] == [["task1"]] * len(SHARES)
    assert result.pairs[0].new is None
    file.write_text(f"ignore: ['*']\n{text}", encoding="utf-8")
    with pytest.raises(InputError, match="says to ignore every task of this pair"):
        run_study(file)


def test_verdicts_are_corrected_over_pairs(tmp_path: Path) -> None:
    """Twelve pairs just beyond the margin: one alone says lost, twelve together do not."""
    shares = {f"p{number}": 0.036 for number in range(12)}
    result = run_study(write_made_study(tmp_path, shares, items=700))
    alone = forgetmap.compare(
        result.pairs[0].before_log, result.pairs[0].after_log, deterministic=True
    )
    assert alone.old.verdict.forgetting == "lost"
    assert {pair.old.verdict.forgetting for pair in result.pairs} == {"undecided"}
