"""Baselines: frozen, verified, with a history and a page that shows it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from test_gate import run
from typer.testing import CliRunner

from browser import chromium, serious_faults, visit
from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.base.files import create_text
from forgetmap.gate import baseline as baselines
from forgetmap.gate.baseline import (
    HISTORY,
    STORE,
    compare_with_baseline,
    list_baselines,
    log_or_baseline,
    open_baseline,
    read_history,
    save_baseline,
)
from forgetmap.gate.policy import Policy
from forgetmap.samples.table import Samples
from forgetmap.views.html.trend import write_trend
from logs import items, write_jsonl
from report_logs import HOSTILE

FAST: dict[str, Any] = {"draws": 200}


@pytest.fixture
def store(work: Any) -> Path:
    """A store with one baseline of forty items."""
    write_jsonl(work / "before.jsonl", items([1, 1, 1, 0] * 10))
    write_jsonl(work / "after.jsonl", items([1, 0, 1, 1] * 10))
    save_baseline("base", "before.jsonl", store="store")
    return Path("store")


def content(store: Path) -> Path:
    (found,) = (store / "objects").glob("*.parquet")
    return found


def test_a_baseline_is_named_by_its_content(store: Path) -> None:
    kept, reference = open_baseline("base", store)
    assert content(store).stem == kept.sha256
    assert len(reference) == kept.samples == 40
    assert content(store).stat().st_mode & 0o222 == 0
    assert not [path for path in store.rglob(".*") if path.is_file()]  # nothing left over
    assert reference.to_batches(["response"]) is not None


def test_the_same_rows_may_be_written_otherwise(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of pyarrow writes other bytes of the same rows: that is no other content."""
    kept = open_baseline("base", store)[0]
    plain = pq.ParquetWriter
    monkeypatch.setattr(pq, "ParquetWriter", lambda *a, **k: plain(*a, **{**k, "version": "1.0"}))
    assert save_baseline("base", "before.jsonl", store=store) == kept
    assert save_baseline("two", "before.jsonl", store=store).sha256 != kept.sha256
    with pytest.raises(InputError, match="is frozen with other content"):
        save_baseline("base", "after.jsonl", store=store)


def test_of_two_writers_of_one_name_one_wins(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one comes between the look and the write, and is not overwritten."""

    def late(path: Path, text: str) -> None:
        monkeypatch.setattr(baselines, "create_text", create_text)
        save_baseline("new", "after.jsonl", store=store)
        create_text(path, text)

    monkeypatch.setattr(baselines, "create_text", late)
    with pytest.raises(InputError, match="baseline new: is frozen with other content"):
        save_baseline("new", "before.jsonl", store=store)
    _, samples = open_baseline("new", store)
    assert compare(samples, "after.jsonl", **FAST).total.raw.lost.value == 0


@pytest.mark.parametrize("shared", [False, True])
def test_who_loses_a_name_leaves_nothing_behind(
    store: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Content that another name stands for stays, though it was put there by the loser."""
    Path("third.jsonl").write_text(Path("after.jsonl").read_text().replace("what", "which"))

    def late(path: Path, text: str) -> None:
        monkeypatch.setattr(baselines, "create_text", create_text)
        save_baseline("new", "after.jsonl", store=store)
        if shared:
            save_baseline("other", "third.jsonl", store=store)
        create_text(path, text)

    monkeypatch.setattr(baselines, "create_text", late)
    with pytest.raises(InputError, match="baseline new: is frozen with other content"):
        save_baseline("new", "third.jsonl", store=store)
    named = {kept.sha256 for kept in list_baselines(store)}
    assert {path.stem for path in (store / "objects").iterdir()} == named
    assert len(named) == 2 + shared


def test_a_name_that_cannot_be_written_leaves_no_content(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, _text: str) -> None:
        raise InputError(f"{path}: writing failed (No space left on device)")

    there = sorted((store / "objects").iterdir())
    monkeypatch.setattr(baselines, "create_text", fail)
    with pytest.raises(InputError, match="No space left"):
        save_baseline("new", "after.jsonl", store=store)
    assert sorted((store / "objects").iterdir()) == there


def test_content_that_the_loser_took_back_is_put_there_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when this program looked, and gone when its label was written."""

    def late(path: Path, text: str) -> None:
        for taken in set((store / "objects").glob("*.parquet")) - there:
            taken.unlink()
        create_text(path, text)

    there = set((store / "objects").glob("*.parquet"))
    kept = save_baseline("one", "after.jsonl", store=store)
    monkeypatch.setattr(baselines, "create_text", late)
    assert save_baseline("two", "after.jsonl", store=store).sha256 == kept.sha256
    assert open_baseline("two", store)[0].name == "two"


def test_a_line_of_history_that_is_cut_short_is_told(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.write
    with monkeypatch.context() as short:
        short.setattr(os, "write", lambda handle, data: plain(handle, data[:50]))
        with pytest.raises(InputError, match="only a part of the line could be written"):
            compare_with_baseline("base", "after.jsonl", store=store)
    compare_with_baseline("base", "after.jsonl", store=store)
    history = read_history("base", store)
    assert (len(history.entries), history.damaged) == (1, 1)


def test_a_changed_number_in_the_history_is_noticed(store: Path) -> None:
    compare_with_baseline("base", "after.jsonl", store=store)
    path = store / HISTORY
    path.write_text(path.read_text().replace('"n":40', '"n":41'))
    assert read_history("base", store) == ([], 1)


def test_what_a_killed_save_left_is_swept(store: Path) -> None:
    left = [store / "objects" / name for name in (".new.1.part", "..new.1.part.x.part")]
    for path in left:
        path.write_text("half")
        os.utime(path, (1, 1))
    save_baseline("base", "before.jsonl", store=store)
    assert not any(path.exists() for path in left)


def test_a_baseline_can_stand_where_a_log_does(store: Path) -> None:
    reference = log_or_baseline("baseline:base", store)
    assert isinstance(reference, Samples)
    assert reference.data == content(store)
    assert compare(reference, "after.jsonl", **FAST).total.raw.lost.value == 0.25
    assert log_or_baseline("before.jsonl", store) == "before.jsonl"
    with pytest.raises(InputError, match="no baseline is called gone; there are base"):
        log_or_baseline("baseline:gone", store)
    with pytest.raises(InputError, match="a name has"):
        log_or_baseline("baseline:", store)


def test_compare_takes_a_baseline_and_remembers_nothing(store: Path) -> None:
    from forgetmap.cli.app import app

    STORE.parent.mkdir()
    store.rename(STORE)
    done = CliRunner().invoke(app, ["compare", "baseline:base", "after.jsonl", "--json", "m.json"])
    assert done.exit_code == 0, done.output
    assert json.loads(Path("m.json").read_text())["total"]["n"] == 40
    assert not (STORE / HISTORY).exists()
    done = CliRunner().invoke(app, ["compare", "baseline:gone", "after.jsonl"])
    assert done.exit_code == 2
    assert "no baseline is called gone" in done.output


def test_saving_the_same_again_changes_nothing(store: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in store.rglob("*"))
    first = list_baselines(store)[0]
    assert save_baseline("base", "before.jsonl", store=store) == first
    after = sorted((path, path.stat().st_mtime_ns) for path in store.rglob("*"))
    assert [pair for pair in after if pair[0].is_file()] == [
        pair for pair in before if pair[0].is_file()
    ]
    second = save_baseline("copy", "before.jsonl", store=store)
    assert second.sha256 == first.sha256
    assert content(store).stem == first.sha256  # kept once


def test_a_name_is_given_once(store: Path) -> None:
    with pytest.raises(InputError, match="frozen with other content"):
        save_baseline("base", "after.jsonl", store=store)
    assert content(store).stem == list_baselines(store)[0].sha256


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 65, "a b", "ü"])
def test_names_cannot_leave_the_store(store: Path, name: str) -> None:
    for call in (
        lambda: save_baseline(name, "before.jsonl", store=store),
        lambda: open_baseline(name, store),
        lambda: read_history(name, store),
    ):
        with pytest.raises(InputError, match="a name has"):
            call()


def test_tampering_is_refused(store: Path) -> None:
    path = content(store)
    path.chmod(0o644)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    for call in (
        lambda: open_baseline("base", store),
        lambda: list_baselines(store),
        lambda: compare_with_baseline("base", "after.jsonl", store=store, **FAST),
    ):
        with pytest.raises(InputError, match="is not what was saved"):
            call()
    save_baseline("base", "before.jsonl", store=store)  # the same log mends it
    assert list_baselines(store)
    path.chmod(0o644)
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        open_baseline("base", store)


@pytest.mark.parametrize(
    "change",
    [{"sha256": "../../etc/passwd"}, {"name": "other"}, {"samples": "many"}],
)
def test_a_changed_label_is_refused(store: Path, change: dict[str, Any]) -> None:
    label = store / "names" / "base.json"
    label.write_text(json.dumps(json.loads(label.read_text()) | change))
    with pytest.raises(InputError, match=r"tampered|damaged"):
        open_baseline("base", store)


def test_an_unknown_name_lists_the_known(store: Path) -> None:
    with pytest.raises(InputError, match="no baseline is called bose; there are base"):
        open_baseline("bose", store)
    with pytest.raises(InputError, match="holds none"):
        open_baseline("base", store / "empty")


def test_two_lines_that_ran_together_count_as_two(store: Path) -> None:
    """A flipped bit can take the end of a line away."""
    for _ in range(2):
        compare_with_baseline("base", "after.jsonl", store=store)
    path = store / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\x8a", 1))
    history = read_history("base", store)
    assert (len(history.entries), history.damaged) == (0, 2)


def test_history_survives_a_cut_off_line(store: Path) -> None:
    rules = Policy.model_validate({"limits": [{"measure": "raw", "max": 0.01}]})
    result, judgement = compare_with_baseline("base", "after.jsonl", store=store, **FAST)
    assert judgement is None
    assert result.total.n == 40
    with (store / HISTORY).open("ab") as file:
        file.write(b'{"time": "20')
    _, judgement = compare_with_baseline("base", "after.jsonl", store=store, policy=rules, **FAST)
    assert judgement is not None
    history = read_history("base", store)
    assert [entry.verdict for entry in history.entries] == [None, "BLOCK"]
    assert history.damaged == 1
    assert history.entries[0].lost == result.old.lost
    assert read_history("other", store).entries == []


def test_the_trend_page_fetches_nothing_and_hostile_names_stay_text(store: Path) -> None:
    for name in ("first", HOSTILE):
        rows = [row | {"model": name} for row in items([1, 0, 1, 1] * 10)]
        write_jsonl(Path("after.jsonl"), rows)
        compare_with_baseline("base", "after.jsonl", store=store, **FAST)
    assert write_trend("base", "trend.html", store=store) == 2
    text = Path("trend.html").read_text(encoding="utf-8")
    assert "default-src 'none'; script-src 'sha256-" in text
    assert not re.search(r"https?:", text)
    assert "\u202e" not in text
    address = Path("trend.html").resolve().as_uri()
    with chromium() as browser:
        found = visit(browser, address)
        assert found.count("#trend-chart .scatterlayer .point") == 4  # lost and gained, apart
        assert found.count("tr") == 3
        found.page.hover("#trend-chart .scatterlayer .point >> nth=0", force=True)
        assert "<script>" in found.text("table")
        assert found.page.evaluate("window.pwned") is None
        assert found.count("img, main a, iframe, link, b") == 0
        assert serious_faults(found.page) == []
        found.assert_only_our_scripts()
        found.assert_quiet(address)


def test_the_trend_says_what_the_newest_lost_and_what_the_gate_allows(store: Path) -> None:
    write_jsonl(Path("after.jsonl"), items([1, 0, 1, 1] * 10))
    policy = Policy(limits=[{"where": "old", "measure": "forgetting", "max": 0.125}])
    result, judgement = compare_with_baseline(
        "base", "after.jsonl", store=store, policy=policy, **FAST
    )
    (entry,) = read_history("base", store).entries
    assert entry.limit == 0.125
    write_trend("base", "trend.html", store=store)
    with chromium() as browser:
        found = visit(browser, Path("trend.html").resolve().as_uri())
        lost = f"lost {100 * result.old.lost.value:.1f} % (limit 12.5 %); gate: "
        assert f"{lost}{judgement.verdict}." in found.text("h1")
        names = found.page.evaluate(
            "document.getElementById('trend-chart').data.map(({ name }) => name)"
        )
        assert names == ["lost", "gained", "limit of the gate"]
        assert entry.time[5:10] in found.page.locator("#trend-chart").text_content()


def test_there_is_no_trend_before_a_comparison(store: Path) -> None:
    with pytest.raises(InputError, match="nothing was compared"):
        write_trend("base", "trend.html", store=store)
    assert not Path("trend.html").exists()


def test_the_commands(work: Any) -> None:
    write_jsonl(work / "before.jsonl", items([1, 1, 1, 0] * 10))
    write_jsonl(work / "after.jsonl", items([1, 0, 1, 1] * 10))
    Path("gate.yaml").write_text("limits: [{measure: raw, max: 0.01}]")
    assert "no baseline yet" in run("baseline", "list").output
    done = run("baseline", "save", "base", "before.jsonl")
    assert done.exit_code == 0, done.output
    assert "base: 40 samples" in run("baseline", "list").output
    assert json.loads(run("baseline", "list", "--json", "-").output)[0]["name"] == "base"
    assert run("baseline", "save", "base", "after.jsonl").exit_code == 2
    done = run("baseline", "compare", "base", "after.jsonl", "--json", "map.json")
    assert done.exit_code == 0, done.output
    assert json.loads(Path("map.json").read_text())["total"]["n"] == 40
    done = run(
        *("baseline", "compare", "base", "after.jsonl", "--policy", "gate.yaml"),
        *("--junit", "g.xml", "--markdown", "g.md"),
    )
    assert done.exit_code == 1
    assert "gate: BLOCK" in done.output
    assert Path("g.xml").exists()
    assert run("baseline", "compare", "base", "after.jsonl", "--junit", "g.xml").exit_code == 2
    done = run("baseline", "trend", "base")
    assert (done.exit_code, done.output.strip()) == (0, "trend.html: 2 comparisons")
