"""`forgetmap check`: two models asked as much as the time allows, and what then is told."""

from __future__ import annotations

import itertools
import json

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from test_evaluate import other, quiz, suite, tiny, write_jsonl  # noqa: F401 - fixtures

from forgetmap.base.errors import InputError
from forgetmap.evaluate.check import check_models
from logs import Workplace

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]


def ticking(seconds):
    """A clock on which so many seconds pass whenever somebody looks at it."""
    return itertools.count(0, seconds).__next__


def test_there_is_time_for_all(tiny, other, tmp_path):  # noqa: F811
    checked = check_models(tiny, other, tmp_path, suite=suite(), minutes=10, clock=ticking(0.01))
    assert checked.limit is None
    assert checked.before.asked == checked.after.asked == 80


def test_it_stops_before_the_time_is_over_and_goes_on_when_there_is_more(tiny, other, tmp_path):  # noqa: F811
    def check(minutes):
        return check_models(
            tiny, other, tmp_path, suite=suite(), minutes=minutes, clock=ticking(20)
        )

    short = check(1)  # the first round is asked in any case
    assert (short.limit, short.before.asked, short.after.asked) == (4, 8, 8)
    longer = check(4)
    assert longer.limit in (8, 16)
    assert longer.after.asked == 2 * longer.limit
    assert longer.after.evaluated == longer.after.asked - short.after.asked


def test_both_sides_are_asked_the_same_items(tiny, other, tmp_path):  # noqa: F811
    checked = check_models(tiny, other, tmp_path, suite=suite(), minutes=1, clock=ticking(20))
    sides = [
        {row["item"] for batch in side.samples.to_batches(["item"]) for row in batch.to_pylist()}
        for side in (checked.before, checked.after)
    ]
    assert sides[0] == sides[1]


@pytest.mark.parametrize("minutes", [0, -1, 1e9])
def test_a_time_that_makes_no_sense_is_refused(minutes, tmp_path):
    with pytest.raises(InputError, match="--minutes"):
        check_models("a", "b", tmp_path, suite=suite(), minutes=minutes)


def test_the_command_writes_a_report(tiny, other, work: Workplace):  # noqa: F811
    write_jsonl(work / "mine.jsonl", quiz(12))
    told = work.worked("check", tiny, other, "--suite", "mine.jsonl", "--json", "map.json")
    assert "The report: forgetmap-check/report.html" in told.stdout
    assert json.loads((work / "map.json").read_text())["coverage"]["matched"] == 12
    assert "</html>" in (work / "forgetmap-check" / "report.html").read_text()
    work.refused(
        "check", tiny, other, "--suite", "mine.jsonl", "--new", "air*", says=["--new air*"]
    )
