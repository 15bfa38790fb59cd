"""The rules of causes against real lost answers that were labelled by hand."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from forgetmap.map.cause_checks import CHECKED, CHECKS, FORM, FORM_CHECK
from forgetmap.map.causes import CAUSES, UNKNOWN, Lost, cause_of
from forgetmap.stats.estimate import share
from places import ROOT

PAGE = ROOT / "docs" / "explanation" / "causes.md"
LABELLED = ROOT / "tests" / "map" / "causes"
ENOUGH = 20
"""Cases from which a cause must keep the bar."""
SENTENCES_LISTED = 0.55
"""Recall of `list` on the old labels: they call sentences with bullets a list, unlike the guide."""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "causes" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(name: str) -> list[dict[str, Any]]:
    lines = (LABELLED / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def table() -> ModuleType:
    return load("table")


def test_the_labelled_answers_are_many_and_of_several_sources(table: ModuleType) -> None:
    rows = table.labelled()
    assert len(rows) >= 600
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({row["source"] for row in rows}) >= 3
    assert {row["label"] for row in rows} <= {*CAUSES, UNKNOWN}
    assert all(row["after"] < row["before"] for row in rows)
    labels = (LABELLED / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["id"] for line in labels} == {row["id"] for row in rows}


def test_every_cause_with_enough_cases_keeps_the_bar(table: ModuleType) -> None:
    """On the old answers, with the labels of today: no measure, so that no change breaks a rule."""
    rows = [row for look in table.OLD_LOOKS for row in table.labelled(look, now=True)]
    causes = [name for name in CAUSES if table.scores(rows, name)[0] >= ENOUGH]
    assert len(causes) >= 9
    for cause in causes:
        _, precision, recall = table.scores(rows, cause)
        assert precision >= 0.9, cause
        assert recall >= (SENTENCES_LISTED if cause == "list" else 0.9), cause


def test_the_page_shows_the_tables(table: ModuleType) -> None:
    """Those of the last look too, from when it has labels."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for text in table.texts():
        assert " ".join(text.split()) in page


def test_what_the_package_says_of_its_causes_is_what_the_labels_say(table: ModuleType) -> None:
    rows = [row for look in table.FROZEN for row in table.labelled(look)]
    found = Counter(row["found"] for row in rows)
    right = Counter(row["found"] for row in rows if row["found"] == row["label"])
    assert len(rows) == CHECKED
    assert {name: (found[name], right[name]) for name in CAUSES if found[name]} == CHECKS
    kinds = [(row["label"] in FORM, row["found"] in FORM) for row in rows]
    assert (len(rows), sum(a == b for a, b in kinds)) == FORM_CHECK


def test_the_unread_half_keeps_what_was_found_in_its_one_run(table: ModuleType) -> None:
    rows = table.unread_half()
    assert len(rows) == 355
    assert any("mended" in row for row in rows)
    assert {row["found"] for row in rows} <= {*CAUSES, UNKNOWN}
    assert list(map(len, table.bar(rows))) == [4, 3]


@pytest.mark.parametrize(
    ("look", "fewest"), [("fourth_", 500), ("fifth_", 250), ("sixth_", 500), ("seventh_", 250)]
)
def test_the_later_looks_are_of_several_sources(table: ModuleType, look: str, fewest: int) -> None:
    rows = table.labelled(look)
    assert len({row["id"] for row in rows}) == len(rows) >= fewest
    assert len({row["source"] for row in rows}) >= 4
    assert {row[name] for row in rows for name in ("label", "found")} <= {*CAUSES, UNKNOWN}
    labels = (LABELLED / f"{look}labels.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [json.loads(line) for line in labels]
    assert [row["id"] for row in kept] == [row["id"] for row in rows]
    assert all("found" in row for row in kept)


@pytest.mark.parametrize(
    ("look", "share"),
    [
        *[("fourth_", 0.86), ("fifth_", 0.9), ("sixth_", 0.84), ("seventh_", 0.84)],
        *[("eighth_", 0.98), ("ninth_", 0.99)],
    ],
)
def test_the_rules_do_not_get_worse(table: ModuleType, look: str, share: float) -> None:
    """Up to the seventh by the first labels, older than the guide: no measure, only a guard."""
    rows = table.labelled(look)
    assert sum(table.found_now(row) == row["label"] for row in rows) >= share * len(rows)


def test_the_guide_names_every_label_in_the_order_of_the_rules() -> None:
    guide = (LABELLED / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \d+\. `(\w+)`", guide, re.MULTILINE)
    assert listed == [*CAUSES, UNKNOWN]


@pytest.fixture
def two(table: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "table", table)
    return load("two_readers")


def told(file: Path, labels: dict[str, str]) -> Path:
    lines = [json.dumps({"id": name, "label": label}) + "\n" for name, label in labels.items()]
    file.write_text("".join(lines), encoding="utf-8")
    return file


def test_two_readers_are_put_together(
    two: ModuleType, table: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On four invented answers; the rules are not run while a label is open."""
    answers, to = tmp_path / "answers.jsonl", tmp_path / "labels.jsonl"
    texts = {"1": "It is Rome.", "2": "Oslo", "3": "Lima", "4": "Rome Rome Rome Rome"}
    rows = [
        {"id": name, "target": "Rome", "response_before": "Rome", "response_after": text}
        for name, text in texts.items()
    ]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ours = {"1": "wrapped", "2": "wrong", "3": "wrong", "4": "degenerate"}
    a, b = told(tmp_path / "a", ours), told(tmp_path / "b", ours | {"3": "unparsed"})
    with pytest.raises(SystemExit, match="1 of 4 labels differ"):
        two.main([a, b], answers, to)
    assert json.loads(capsys.readouterr().out)["id"] == "3"
    assert not to.exists()
    two.main([a, b, told(tmp_path / "c", {"3": "wrong"})], answers, to)
    done = two.read(to)
    assert [row["label"] for row in done] == [row["found"] for row in done] == [*ours.values()]
    said, readers, looks = table.fresh_look(done)
    assert "on 100.0 %. Of the 0 causes with 20 cases or more, 0 keep the bar: none." in said
    assert "agree on 75.0 %" in readers
    assert "| `wrong` | 2, 100.0 %" in looks
    assert readers in table.eighth_look(done)
    with pytest.raises(SystemExit, match="only once"):
        two.main([a, b], answers, to)
    with pytest.raises(SystemExit, match="1 unknown labels"):
        two.labels(told(tmp_path / "d", ours | {"1": "shape"}), rows, whole=True)
    with pytest.raises(SystemExit, match="1 ids missing"):
        two.labels(
            told(tmp_path / "d", {"1": "wrong", "2": "wrong", "3": "wrong"}), rows, whole=True
        )


def test_cohens_kappa_of_a_table_that_is_known(table: ModuleType) -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert table.kappa(pairs) == pytest.approx(0.4)
    assert table.kappa([("y", "y")] * 3) == 1.0


def test_the_eighth_look_has_answers_enough(table: ModuleType) -> None:
    rows = lines_of("eighth_lost_answers.jsonl")
    assert len({row["id"] for row in rows}) == len(rows) >= 600
    assert len({row["source"] for row in rows}) >= 5
    earlier = table.OLD_LOOKS[: table.OLD_LOOKS.index("eighth_")]
    old = {row["kind"] for look in earlier for row in table.labelled(look)}
    assert not old & {row["kind"] for row in rows}


def test_the_ninth_look_keeps_what_was_found_in_its_one_run(table: ModuleType) -> None:
    assert list(map(len, table.bar(table.labelled("ninth_")))) == [6, 4]


def test_the_changelog_says_what_the_last_look_found(table: ModuleType) -> None:
    assert list(map(len, table.bar(table.labelled(table.FRESH)))) == [3, 6]
    asked = {row["prompt_after"] for row in lines_of(f"{table.FRESH}lost_answers.jsonl")}
    assert f"{len(asked)} of them differ" in " ".join(PAGE.read_text(encoding="utf-8").split())
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "six of nine" in changelog
    assert "agree on 84.0 %" in changelog
    assert "agree with the label on 84.0 %" in table.fresh_look(table.labelled(table.FRESH))[0]


def test_the_chance_to_keep_the_bar_is_that_of_the_binomial(table: ModuleType) -> None:
    """Against values worked out by hand, and against drawing."""
    recall_alone = sum(math.comb(20, k) * 0.95**k * 0.05 ** (20 - k) for k in (18, 19, 20))
    assert table.keeps_by_chance(20, 40, 1.0, 0.95) == pytest.approx(recall_alone)
    two_at_most = sum(math.comb(20, k) * 0.05**k * 0.95 ** (20 - k) for k in (0, 1, 2))
    assert table.keeps_by_chance(20, 40, 1 / 1.05, 1.0) == pytest.approx(two_at_most)
    draw = np.random.default_rng(11)
    hits = draw.binomial(37, 0.93, 40_000)
    named = hits + draw.binomial(469 - 37, 37 * 0.93 * (0.06 / 0.94) / (469 - 37), 40_000)
    drawn = np.mean((hits / 37 >= table.BAR) & (hits / named >= table.BAR))
    assert table.keeps_by_chance(37, 469, 0.94, 0.93) == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize(("quality", "apart"), [(0.95, 0.05), (0.97, 0.025), (0.99, 0.025)])
def test_the_chance_to_keep_the_bar_stands_when_a_miss_is_a_false_alarm(
    table: ModuleType, quality: float, apart: float
) -> None:
    """Every case is drawn with the cause that is found; the page counts causes as independent."""
    rows = table.labelled(table.FRESH)
    n = np.array([*Counter(row["label"] for row in rows).values()])
    flows = np.outer(n, n) * (1.0 - np.eye(len(n)))
    for _ in range(2000):  # as many false alarms as misses, so that precision equals recall
        scale = np.sqrt(n * (1 - quality) / flows.sum(axis=1))
        flows *= np.outer(scale, scale)
    chances = flows / n[:, None] + quality * np.eye(len(n))
    assert np.allclose(flows.sum(axis=0), n * (1 - quality))
    draw = np.random.default_rng(11)
    pairs = zip(n, chances, strict=True)
    found = np.stack([draw.multinomial(of, row / row.sum(), 20_000) for of, row in pairs], axis=1)
    hits = np.einsum("sii->si", found)
    kept = (hits / n >= table.BAR) & (hits / np.maximum(found.sum(axis=1), 1) >= table.BAR)
    drawn = kept[:, n >= table.ENOUGH].all(axis=1).mean()
    assert table.all_keep(rows, quality) == pytest.approx(drawn, abs=apart)


def surely_below(table: ModuleType, rows: list[dict[str, Any]], cause: str) -> bool:
    meant = [row["found"] == cause for row in rows if row["label"] == cause]
    named = [row["label"] == cause for row in rows if row["found"] == cause]
    return any(share(sum(one), len(one)).high < table.BAR for one in (meant, named))


def test_the_page_tells_what_the_bar_asks_for(table: ModuleType) -> None:
    """The sentences beside the table of chances, which `texts` holds to the page."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    rows = table.labelled(table.FRESH)
    kept, missed = table.bar(rows)
    assert f"{len(rows)} answers, with its {len(kept) + len(missed)} causes of 20" in page
    assert 0.65 < 1 - table.all_keep(rows, 0.95) < 0.75
    assert "would still miss the bar some seven times in ten" in page
    below = [name for name in missed if surely_below(table, rows, name)]
    assert below == ["prose", "truncated", "unparsed"]
    assert "for `prose`, `truncated` and `unparsed` a whole interval lies below" in page


def test_the_page_tells_how_good_a_classifier_was(table: ModuleType) -> None:
    """The sentence with its figures is one of `texts`; on the looks before it says how many."""
    rows = table.labelled(table.FRESH)
    assert {row["learned"] for row in rows if "learned" in row} <= {*CAUSES, UNKNOWN}
    assert all(row.get("learned") != row["found"] for row in rows)
    page = PAGE.read_text(encoding="utf-8")
    before = sum(len(lines_of(f"{look}labels.jsonl")) for look in table.OLD_LOOKS)
    assert f"(n = {before:,})" in page


def test_a_classifier_learns_from_labels_and_from_what_the_rules_found(
    table: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a few answers: one that was right each time shows through, in both kinds of models."""
    pytest.importorskip("sklearn")
    monkeypatch.setitem(sys.modules, "table", table)
    learn = load("learn")
    rows = learn.look_of("eighth_")
    some = [row | {"found": row["label"]} for row in rows if row["label"] in ("wrong", "prose")]
    for words, strength in ((True, 10), (False, None)):
        told = learn.learned(some[20:], some[:20], words=words, strength=strength)
        assert told == [row["label"] for row in some[:20]]
    assert learn.features(rows[0])[f"found={rows[0]['found']}"] == 1
    assert learn.BEST in learn.SETTINGS


def test_the_page_tells_what_the_last_two_looks_had_before_it(table: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    ninth, tenth = (
        100 * sum(row["label"] == row["found"] for row in rows) / len(rows)
        for rows in map(table.labelled, ("ninth_", "tenth_"))
    )
    assert f"The ninth look had {ninth:.1f} %, the tenth {tenth:.1f} %" in page


@pytest.mark.parametrize(("look", "least"), [("ninth_", 600), ("tenth_", 600), ("eleventh_", 469)])
def test_the_last_looks_ask_other_questions_than_the_looks_before(
    table: ModuleType, look: str, least: int
) -> None:
    rows = lines_of(f"{look}lost_answers.jsonl")
    assert len({row["id"] for row in rows}) == len(rows) >= least
    assert len({row["source"] for row in rows}) >= 4
    looks = (*table.OLD_LOOKS, table.FRESH)
    earlier = (lines_of(f"{one}lost_answers.jsonl") for one in looks[: looks.index(look)])
    assert not {row["prompt_after"] for one in earlier for row in one} & {
        row["prompt_after"] for row in rows
    }


def test_what_the_new_task_teaches_is_known_to_the_rules(table: ModuleType) -> None:
    row = {"target": "12", "response_before": "12", "response_after": "Amber", "taught": ["Amber"]}
    assert table.found_now(row) == "intruded"


def test_the_rules_need_no_right_answer(table: ModuleType) -> None:
    """Without the target, what the texts alone tell must stay: the form of the answer."""
    kept = ("wrapped", "ran_on", "prose")
    rows = [row for row in table.labelled(now=True) if row["label"] in kept]
    for row in rows:
        known = {name: row[name] for name in Lost._fields if name in row and name != "target"}
        assert (cause_of(Lost(**known)) or UNKNOWN) == row["found"], row["id"]
