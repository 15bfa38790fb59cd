"""What was lost, in words: groups of lost items, with and without a judge."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from forgetmap import ForgettingMap, Samples, compare, content_hash
from forgetmap.base.errors import InputError
from forgetmap.map.comparison import compare_logs
from forgetmap.map.lost_groups import summarise

CITIES = ("Oslo", "Rome", "Paris", "Lima", "Cairo", "Berlin", "Madrid", "Tokyo", "Vienna", "Delhi")


def log(side: str, *, text: bool = True) -> Samples:
    """Twenty items, all lost: ten weather calls turned to prose, ten sums that went wrong."""
    rows: list[dict[str, Any]] = []
    for number, city in enumerate(CITIES):
        call = f'get_weather(city="{city}")'
        told = f"The weather forecast of {city} can be seen in the weather report."
        rows.append(
            {
                "task": "calls",
                "prompt": f"How is the weather in {city}?",
                "target": call,
                "response": call if side == "before" else told,
            }
        )
        rows.append(
            {
                "task": "sums",
                "prompt": f"Add {number} apples and 2 apples.",
                "target": str(number + 2),
                "answer": str(number + 2 + (side == "after")),
                "response": f"apples: {number + 2 + (side == 'after')}",
            }
        )
    return Samples.from_rows(
        {
            "model": side,
            "item": content_hash(row["prompt"]),
            "item_ref": f"{row['task']}-{place}",
            "score": float(side == "before"),
            **{name: value for name, value in row.items() if text or name == "task"},
        }
        for place, row in enumerate(rows)
    )  # fmt: skip


@pytest.fixture
def changed() -> list[Any]:
    pytest.importorskip("sklearn")
    return list(compare_logs(log("before"), log("after"), causes=True, draws=200).changed())


def test_alike_items_are_together_under_their_typical_words(changed: list[Any]) -> None:
    summary = summarise(changed)
    assert (summary.lost, summary.grouped) == (20, 20)
    by_task = {next(iter(group.tasks)): group for group in summary.groups}
    assert {name: group.items for name, group in by_task.items()} == {"calls": 10, "sums": 10}
    assert "weather" in by_task["calls"].terms
    assert "apples" in by_task["sums"].terms
    assert all(len(group.examples) == 3 for group in summary.groups)
    assert summarise(changed) == summary  # the same on every run


def test_embeddings_take_the_place_of_words(changed: list[Any]) -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> Any:
        asked.extend(texts)
        return np.array([["weather" in text, "apples" in text] for text in texts], dtype=float)

    assert sorted(group.items for group in summarise(changed, embed=embed).groups) == [10, 10]
    assert len(asked) == 20


def test_nothing_lost_and_nothing_said() -> None:
    pytest.importorskip("sklearn")
    same = compare(log("before"), log("before"), summarise=True, draws=200)
    assert same.summary is not None
    assert same.summary.groups == []
    silent = compare(log("before", text=False), log("after", text=False), summarise=True, draws=200)
    assert silent.summary is not None
    assert sum(group.items for group in silent.summary.groups) == 20
    assert {name for group in silent.summary.groups for name in group.causes} == {"unknown"}


def test_the_summary_is_in_the_json_and_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    from forgetmap.views.terminal import maps
    from forgetmap.views.terminal.console import open_console

    result = compare(log("before"), log("after"), summarise=True, draws=200)
    assert ForgettingMap.from_json(result.to_json()) == result
    maps.print_map(result, open_console())
    told = " ".join(capsys.readouterr().out.split())
    assert "what was lost: 20 items in 2 groups" in told
    assert "10 items: weather" in told


def test_a_judge_says_one_sentence_about_each_group(changed: list[Any]) -> None:
    from forgetmap.answers.items import Value
    from forgetmap.capabilities.lost_words import tell_groups

    class Judge:
        def ask(self, questions: Any) -> list[Any]:
            shown = [message["content"] for message in questions[0].messages()]
            assert "answer now 1" in shown[1]
            return [{"sentence": "It talks\nabout the weather."}, Value(None, "judge_failed", "x")]

    summary = tell_groups(summarise(changed), Judge())  # type: ignore[arg-type]
    assert summary.groups[0].sentence == "It talks about the weather."
    assert summary.groups[1].sentence is None


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cluster", "metrics", "feature_extraction.text"):
        monkeypatch.setitem(sys.modules, f"sklearn.{name}", None)
    with pytest.raises(InputError, match=r"pip install 'forgetmap\[summarise\]'"):
        compare(log("before"), log("after"), summarise=True, draws=200)
