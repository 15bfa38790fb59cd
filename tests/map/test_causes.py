"""Causes of a loss: each rule, the whole order, and a confusion table over labelled answers."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from forgetmap.answers import endings
from forgetmap.answers.endings import repeats_itself
from forgetmap.answers.extraction import gives
from forgetmap.answers.language import language_of
from forgetmap.api import compare
from forgetmap.map import causes, flips
from forgetmap.map.causes import CAUSES, Lost, cause_of
from forgetmap.map.comparison import compare_logs
from forgetmap.map.result import ForgettingMap
from forgetmap.mitigate.advise import Evidence, advise
from forgetmap.pairing.two_logs import pair
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from places import ROOT
from small_logs import samples

PLACES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Vienna", "Accra", "Quito", "Doha")
_TEXT = (
    "harbour bridge winter copper garden letter window market river candle forest ladder mirror "
    "village engine basket thunder pocket island meadow ticket violin anchor blanket compass"
)
WORDS = _TEXT.split()


def prose(start: int, count: int) -> str:
    """Words that do not repeat in the same order."""
    return " ".join(
        f"the {WORDS[(start + 7 * n) % 25]} was near a {WORDS[(start + 11 * n + n // 25) % 25]}"
        for n in range(count)
    )


def made() -> list[tuple[str, Lost]]:
    """Answers whose cause is known because they were made that way."""
    found: list[tuple[str, Lost]] = []

    def add(cause: str, **fields: Any) -> None:
        found.append((cause, Lost(**fields)))

    for n, place in enumerate(PLACES):
        other = PLACES[(n + 3) % 10]
        letter, wrong = "ABCD"[n % 4], "ABCD"[(n + 1) % 4]
        none: dict[str, Any] = {"answer_after": "[invalid]", "status_after": "no_answer"}
        add("wrapped", **none, target=letter, k=4, response_after=f"I would take ({letter}).")
        add("wrapped", **none, target=letter, k=4, response_after=f"Option **{letter}**: {place}")
        add("wrapped", **none, target=place, response_after=f"The capital is {place}, of course.")
        add("wrapped", target=place, answer_after=f"It's {place}.", response_after=f"It's {place}.")
        add("wrapped", **none, target=f"{n + 40}", response_after=f"{n} + 40 makes {n + 40}.")
        add("truncated", target=place, answer_after="", response_after="  \n")
        add("truncated", target=place, response_after=f"<think>Is it {other}? Let me think, first")
        add("truncated", **none, target=place, response_after=prose(n, 12 + n) + " and then the")
        add("truncated", target=place, status_after="truncated", response_after=f"Well, {other} is")
        add("degenerate", target=place, response_after=f"{other} is far. " * (6 + n))
        add("degenerate", target=place, response_after=f"{WORDS[n]} " * (20 + n))
        add("degenerate", **none, target=place, response_after=f"- {WORDS[n]}\n" * 30)
        add("degenerate", target=place, response_after=f"So {prose(n, 3)}. {prose(n, 2)} " * 12)
        add("refused", target=place, response_after=f"I'm sorry, but I can't help with {other}.")
        add("refused", **none, target=place, response_after="I cannot assist with that request.")
        add("refused", target=place, response_after=f"I'd rather not say anything about {other}.")
        add("refused", target=place, status_after="refused", response_after="No.")
        add(
            "language", target=place, response_before=f"The capital of the country is {place}.",
            response_after=f"Die Stadt ist nicht {place}, sondern der Ort {other} und das ist so.",
        )  # fmt: skip
        add(
            "language", target=place, prompt_after="What is the capital of the land?",
            response_after="首都是" + "北京市東西南北中"[n % 8] * 2 + "吗",
        )  # fmt: skip
        add(
            "language", target=place, response_before=f"It is {place}, the capital of the land.",
            response_after=f"La capitale est {other}, une ville que les gens aiment dans le sud.",
        )  # fmt: skip
        add("unparsed", **none, target=letter, k=4, response_after=f"Between {letter} and {wrong}.")
        add("unparsed", **none, target=letter, k=4, response_after=f"All of the {WORDS[n]}s fit.")
        add("wrong", **none, target=place, response_after=f"It may be {other}.")
        add("unparsed", **none, target=f"{n + 40}", response_after=f"{other} is hard to tell.")
        runs: dict[str, Any] = {"runs_before": 3, "runs_after": 3}
        add("noise", before=2 / 3, after=1 / 3, **runs, target=place, answer_after=other)
        add("noise", before=1 / 3, **runs, target=letter, k=4, answer_after=wrong)
        add("wrong", **none, target=f"{n + 40}", response_after=f"It comes to {n + 41}.")
        add("wrong", before=1, after=2 / 3, **runs, target=letter, k=4, answer_after=wrong)
        call, args = f'go(city="{place}", day={n})', {"city": place, "day": n}
        told = json.dumps({"name": "go", "arguments": args})
        add("wrapped", response_before=call, response_after=f"```python\n{call}\n```")
        add("wrapped", response_before=call, response_after=call.replace('"', "'"))
        add("wrapped", response_before=told, response_after=f"Here:\n```json\n{told}\n```")
        add("wrapped", response_before=place, response_after=f'"{place}"')
        add("wrapped", response_before=call, response_after=told)
        add("wrapped", response_before=call, response_after=f"go('{place}', {n})")
        add("ran_on", response_before=call, response_after=f"{call}\nRequest: What is next?")
        add("ran_on", response_before=place, response_after=f"{place}\n\nQuestion: And now?")
        add("prose", response_before=call, response_after=f"You should go to {place} on day {n}.")
        add("prose", response_before=told, response_after=f"I think that you like {place} best.")
        add("call", response_before=place, target=place, response_after=call)
        add("call", response_before="It is a good day.", target=place, response_after=told)
        add("list", response_before=place, target=place, response_after=f"- {other}\n- {place}s")
        add("list", response_before=place, target=place, response_after=f'["{other}", "a"]')
        add("timeout", status_after="timeout", response_before="x", response_after=f"f{n}")
        add("timeout", status_after="timeout", response_after=f"while True: {n}")
        taught = causes.taught_answers([other, "Oslo"])
        add("intruded", target=f"{n}", response_after=f"{other}.\nAnd so on.", taught=taught)
        add(
            "intruded",
            target=letter,
            answer_after="[invalid]",
            response_after="Oslo",
            taught=taught,
        )
        add("unparsed", response_before=call, response_after=f"go(city: str, day: int){'!' * n}")
        add("wrong", response_before=call, response_after=f'go(city="{other}", day={n})')
        add("wrong", target=place, answer_after=other, response_after=f"The answer is {other}.")
        add("wrong", target=letter, k=4, answer_after=wrong, response_after=f"Answer: {wrong}")
        add("wrong", target=letter, k=4, answer_after=wrong)
        add("wrong", target=place, answer_after=other, response_after=f"Not {place} but {other}.")
        add("wrong", target=f"{n}", answer_after=f"{n + 1}", response_after=f"{n} + 1 = {n + 1}")
    return found


def test_confusion_table() -> None:
    labelled = made()
    assert len(labelled) >= 500
    table = Counter((label, cause_of(item)) for label, item in labelled)
    lines = [f"{label:>10} -> {found}: {n}" for (label, found), n in sorted(table.items(), key=str)]
    for cause in CAUSES:
        named = sum(n for (_, found), n in table.items() if found == cause)
        meant = sum(n for (label, _), n in table.items() if label == cause)
        assert meant >= 20, cause
        precision, recall = table[cause, cause] / named, table[cause, cause] / meant
        assert precision >= 0.95, (cause, precision, lines)
        assert recall >= 0.95, (cause, recall, lines)


@pytest.mark.parametrize("cause", CAUSES)
def test_every_rule_alone_says_yes_and_no(cause: str) -> None:
    rule = causes.RULES[cause]
    answers = [rule(item) for label, item in made() if label == cause]
    assert all(answers)
    assert not rule(Lost(answer_after=None, response_after=None))


def test_the_order_is_that_of_the_page() -> None:
    assert CAUSES[:6] == ("ran_on", "degenerate", "refused", "language", "wrapped", "intruded")
    assert CAUSES[-3:] == ("unparsed", "noise", "wrong")
    cut = Lost(target="Rome", answer_after="", status_after="truncated", response_after="It's Rome")
    assert cause_of(cut) == "wrapped"
    assert cause_of(cut._replace(target="Oslo")) == "truncated"
    assert cause_of(Lost(before=0.5, status_after="refused")) == "refused"
    assert cause_of(Lost()) is None


def test_where_the_text_does_not_tell_the_cause_is_unknown() -> None:
    told = f"Some say that the town is old. {prose(1, 8)}."
    assert cause_of(Lost(target="Rome", response_after=told)) is None
    assert cause_of(Lost(target="Rome", response_after="Naples")) == "wrong"
    assert cause_of(Lost(target="Rome", answer_after="Oslo", response_after=told)) == "wrong"


@pytest.mark.parametrize(
    ("right", "runs", "right_after", "runs_after", "expected"),
    [
        (2, 3, 1, 3, True),
        (1, 3, 0, 3, True),
        (2, 3, 0, 3, False),  # more than either model's own spread
        (3, 3, 2, 3, False),  # the model before never failed
        (3, 3, 0, 3, False),
        (1, 1, 0, 1, False),  # no repeats
        (1, 2, 0, 1, False),
        (60, 100, 30, 100, False),  # many repeats tell the two apart
        (60, 100, 55, 100, True),
    ],
)
def test_noise_lies_within_both_spreads(
    right: int, runs: int, right_after: int, runs_after: int, expected: bool
) -> None:
    item = Lost(right / runs, right_after / runs_after, runs_before=runs, runs_after=runs_after)
    assert causes.is_noise(item) is expected


def test_a_great_drop_is_not_noise() -> None:
    """Accuracy 99.5 -> 43 % on 200 items, three runs each: hardly any item may be noise."""
    draw = np.random.default_rng(0)
    chance = draw.choice([0.0, 0.3, 0.6, 1.0], size=200)
    before = draw.binomial(3, 0.995, 200) / 3
    after = draw.binomial(3, chance) / 3
    lost = [
        Lost(p, q, target="A", k=4, answer_after="B", runs_before=3, runs_after=3)
        for p, q in zip(before, after, strict=True)
        if q < p
    ]
    found = Counter(cause_of(item) for item in lost)
    assert found["noise"] <= 0.02 * len(lost)
    assert found["wrong"] >= 0.98 * len(lost)


@pytest.mark.parametrize(
    ("text", "target", "k", "expected"),
    [
        ("The answer is 1,234.", "1234", None, True),
        ("\\boxed{7}, not 8", "7", None, True),
        ("12 apples and 7 pears", "12", None, False),
        ("It cost $5.50", "5.5", None, True),
        ("<think>Paris?</think>Rome", "Paris", None, False),
        ("It was never Paris", "Paris", None, False),
        ("Parisian", "Paris", None, False),
        ("Yes.", "yes", None, True),
        ("Yes and no", "yes", None, False),
        ("首都是北京。", "北京", None, True),
        ("(C)", "C", 4, True),
        ("A or B", "A", 4, False),
        ("", "A", 4, False),
        ("They did it #### 12", "thinking #### 12", None, True),
    ],
)
def test_whether_a_text_gives_an_answer(
    text: str, target: str, k: int | None, expected: bool
) -> None:
    assert gives(text, target, k) is expected


@pytest.mark.parametrize(
    "text",
    [
        "1000000000",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |",
        "-" * 80,
        prose(3, 12),
        "",
    ],
)
def test_ordinary_texts_do_not_repeat_themselves(text: str) -> None:
    assert not repeats_itself(text)


def test_languages_are_told_only_where_clear() -> None:
    assert language_of("这是一个问题") == "Chinese"
    assert language_of("これは質問です") == "Japanese"
    assert language_of("This is one of the things that we know of.") == "English"
    assert language_of("x = 3; y = 4") is None
    assert language_of("```python\nprint('der die das und ist')\n```") is None
    assert language_of(None) is None


def test_hostile_answers_take_no_time() -> None:
    texts = ["a" * 200_000, "ab " * 60_000, "(" * 100_000, "<think>" * 20_000, "1," * 100_000]
    start = time.process_time()
    for text in texts:
        cause_of(Lost(target="7", answer_after="[invalid]", response_after=text))
    assert time.process_time() - start < 5


def test_hostile_answers_in_the_place_of_calls_take_no_time() -> None:
    hostile = ["```" * 60_000, "<a>" * 50_000 + "</b>", "f(" * 90_000, "f(a,'" * 40_000]
    hostile += ["{" * 100_000, '{"name": ' * 20_000, "`f" * 90_000, "def f(x):\n" * 20_000]
    start = time.process_time()
    for text in hostile:
        for was in ("f(a=1)", '{"a": 1}', "def f(x):\n    return x", "7"):
            cause_of(Lost(target="7", response_before=was, response_after=text))
    assert time.process_time() - start < 20


PROGRAM = "def half(x):\n    return x / 2"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PROGRAM, "def half(x):\n    return x / 2 + 1\n\nprint(half(2))", "wrong"),
        (PROGRAM, "def halve(x):\n    return x / 2\n\nprint(halve(", "wrong"),
        (PROGRAM, "def add(x):\n    return x\n\ndef half(x):\n    return (x", "wrong"),
        (PROGRAM, "```python\ndef halve(x):\n    return x / 2", "wrong"),
        (PROGRAM, "```python\ndef halve(x):\n    return x /", "truncated"),
        (PROGRAM, "def halve(x):\n    if x:\n        y = x / 2", "wrong"),
        (PROGRAM, "def halve(x):\n    if x:", "truncated"),
        (PROGRAM, '<tool_call>{"name": "say", "text": "def half\n it is what you want"}', "call"),
        ('go(city="Rome")', 'You may write walk(city="Rome", fast=True) in its place.', "wrong"),
        ('go(city="Rome")', "You may use plan(days) or read the manual first.", "prose"),
        ('go(city="Rome")', 'The one to use is go(city="Rome") and no other.', "wrapped"),
    ],
)
def test_answers_with_a_form_in_a_text(before: str, after: str, expected: str) -> None:
    assert cause_of(Lost(response_before=before, response_after=after)) == expected


@pytest.mark.parametrize(
    ("target", "after", "expected"),
    [
        ("left", 'The opposite of "right" is "left".', "wrapped"),
        ("left", 'The opposite of "left" is "west".', "wrong"),
        ("left", "Das ist nicht rechts und nicht oben, das ist left.", "language"),
        ("12", "The answer is 7 + 5.", "unparsed"),
        ("12", "7 + 5 = 13\n\nSo the answer is 13", "wrong"),
    ],
)
def test_values_in_a_text_that_the_harness_took_whole(
    target: str, after: str, expected: str
) -> None:
    item = Lost(target=target, answer_before=target, answer_after=after.rstrip("."),
                prompt_after="What is the answer to the question that we ask?",
                response_before=target, response_after=after)  # fmt: skip
    assert cause_of(item) == expected


@pytest.mark.parametrize(
    "text",
    [
        "A: We are here to see the sea.\nB: We are here to see the sea.\nC: We are here",
        "We are here to see the sea. We are here to see the sea.",
        "4 - 2 = 4 - 2 = 4 - 2 = 4 -",
    ],
)
def test_texts_that_go_round(text: str) -> None:
    assert repeats_itself(text)


@pytest.mark.parametrize("depth", [120, 600, 990, 9_000])
@pytest.mark.parametrize("opened", ["[", '{"a": ', '[{"a": '])
@pytest.mark.parametrize("before", ['{"a": 1}', "[1]", "f(a=1, b='x')"])
def test_brackets_in_brackets_end_no_rule(before: str, opened: str, depth: int) -> None:
    """Python goes no deeper than a thousand calls, and the rules go through nested values."""
    closed = opened[::-1].translate({ord("["): "]", ord("{"): "}"})
    closed = "".join(mark for mark in closed if mark in "]}")
    deep = opened * depth + "1" + closed * depth
    found = cause_of(Lost(response_before=before, response_after=deep))
    assert found in (*CAUSES, None)


def test_hostile_answers_to_the_rules_on_texts_take_no_time() -> None:
    hostile = ["A: " * 60_000, 'is "a" ' * 30_000, "f(a=1) " * 30_000, "f(a='," * 30_000]
    hostile += ["def f(x):\n    return x\n\n" * 8_000, "def f(x):\n" + "    y = 1\n" * 20_000]
    hostile += ["The answer is " + "1+" * 60_000, "f(" + "a=1," * 40_000 + ")", "{ " * 60_000]
    hostile += ["def f(x):\n" + "".join(" " * n + "if x:\n" for n in range(1, 90)) + " " * 90]
    hostile += ["one two " * 30_000 + "three", "function " * 30_000, "\n1. " * 50_000]
    start = time.process_time()
    for text in hostile:
        for was in ("f(a=1)", '{"a": 1}', "def f(x):\n    return x", "7"):
            item = Lost(target="7", answer_before="7", response_before=was, response_after=text)
            for name, rule in causes.RULES.items():
                began = time.process_time()
                rule(item)
                assert time.process_time() - began < 2, (name, was, text[:30])
    assert time.process_time() - start < 20


CALLS = "[at.go(city='Rome', days=2), at.go(city='Oslo', days=3)]"
AS_JSON = (
    '[{"name": "at.go", "parameters": {"city": "Rome", "days": 2}},\n'
    ' {"name": "at.go", "parameters": {"city": "Oslo", "days": 3}}]'
)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (f"```python\n{CALLS}\n```", "wrapped"),
        (CALLS.replace("'", '"').replace(", ", ","), "wrapped"),
        (CALLS[1:-1].replace("), ", ")\n"), "wrapped"),
        (f"<answer>{CALLS}</answer>", "wrapped"),
        (f"```json\n{AS_JSON}\n```", "wrapped"),
        (AS_JSON, "wrapped"),
        ("The question lacks the year that the function needs. Please name it.", "prose"),
        (CALLS.replace("Oslo", "Lima"), "wrong"),
        (CALLS[: CALLS.index(", at")] + "]", "wrong"),
        (f"{CALLS}\n\nUser: And what about Lima?", "ran_on"),
        (CALLS[:30], "truncated"),
        ("Rome", "prose"),
    ],
)
def test_calls_as_large_models_write_them(after: str, expected: str) -> None:
    item = Lost(status_after="no_answer", response_before=CALLS, response_after=after)
    assert cause_of(item) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("7", "<think>3 and 4 make", "truncated"),
        ("7", "<thinking>3 + 4</thinking>", "truncated"),
        ("I cannot book it: there is no tool for that.", "book(city='Rome')", "call"),
        ("Rome", "1. Oslo\n2. Lima\n3. Bern", "list"),
        ("Rome", "Rome<|im_end|>\n<|im_start|>user", "ran_on"),
        ('{"a": 1, "b": [2]}', '{"b": [2],\n "a": 1}', "wrapped"),
        ("def f(x):\n    return x + 1", "```\ndef f(x):\n    # +\n    return x+1\n```", "wrapped"),
        ("def f(x):\n    return x + 1", "def f(x):\n    return x + 2", "wrong"),
        ("def f(x):\n    return x + 1", "def f(x):\n    for y in", "truncated"),
        ("def f(x):\n    return x + 1", "You can add one to the number.", "prose"),
    ],
)
def test_what_became_of_the_answer_before(before: str, after: str, expected: str) -> None:
    item = Lost(status_after="no_answer", response_before=before, response_after=after)
    assert cause_of(item) == expected


# --- in the map -----------------------------------------------------------------------------------


def talk(side: str) -> Samples:
    """Ten items: three lost for different reasons, two wrong on both sides."""
    after = ["4", "4", "", "I can't help with that.", "5", "6", "4", "4", "4", "4"]
    texts = ["4"] * 4 + ["7", "6"] + ["4"] * 4 if side == "before" else after
    return Samples.from_rows(
        {
            "model": side,
            "task": "a" if number < 6 else "b",
            "item": content_hash(str(number)),
            "score": float(text == "4" and not (side == "after" and number == 1)),
            "target": "4",
            "answer": "9" if side == "after" and number == 1 else text,
            "response": "9" if side == "after" and number == 1 else text,
        }
        for number, text in enumerate(texts)
    )


def test_causes_and_churn_are_in_every_cell() -> None:
    result = compare(talk("before"), talk("after"), causes=True, draws=200)
    assert result.total.causes == {"truncated": 1, "refused": 1, "wrong": 1}
    assert list(result.total.causes) == ["refused", "truncated", "wrong"]
    assert result.tasks["a"].causes == result.total.causes
    assert result.tasks["b"].causes == {}
    assert result.total.without is not None
    assert result.total.without["refused"].value == pytest.approx(0.2)
    assert result.total.without["refused"].low < 0.2 < result.total.without["refused"].high
    assert result.total.churn == 1  # 7 became 5; 6 stayed 6
    assert result.tasks["b"].churn == 0
    assert ForgettingMap.from_json(result.to_json()) == result


def test_without_the_text_there_are_no_causes() -> None:
    result = compare(talk("before"), talk("after"), draws=200)
    assert result.total.causes is None
    assert result.total.without is None
    assert result.total.churn is None


def test_a_log_without_text_says_unknown() -> None:
    result = compare(samples({"t": [1, 1, 0]}), samples({"t": [0, 1, 0]}), causes=True, draws=200)
    assert result.total.causes == {"unknown": 1}
    assert result.total.churn is None


def test_causes_by_category_add_up() -> None:
    folder = ROOT / "examples" / "smollm2-airports"
    result = compare(
        folder / "before",
        folder / "after",
        task_map=folder / "tasks.csv",
        causes=True,
        draws=200,
    )
    assert result.total.causes == {"wrong": round(result.total.counts.n10)}
    for field in ("tasks", "categories"):
        cells = getattr(result, field).values()
        assert sum(cell.causes.get("wrong", 0) for cell in cells) == result.total.causes["wrong"]
        assert sum(cell.churn for cell in cells) == result.total.churn > 0
    assert result.total.churn < result.total.counts.n00
    assert result.total.without is not None
    assert result.total.without["wrong"].value == pytest.approx(0)


def test_repeats_weigh_a_cause_as_they_weigh_forgetting() -> None:
    before = samples({"t": [[1, 1], [1, 0], [1, 1]]}, answer="x")
    after = samples({"t": [[0, 0], [0, 0], [1, 1]]}, answer="y")
    cell = compare(before, after, causes=True, draws=200).total
    assert cell.causes == {"noise": 1, "wrong": 1}  # right in one run of two, then in none
    assert cell.raw.lost.value == pytest.approx(0.5)
    assert cell.without is not None
    assert cell.without["wrong"].value == pytest.approx(0.5 - 1 / 3)
    assert cell.without["noise"].value == pytest.approx(0.5 - 1 / 6)


def test_causes_are_worked_out_once(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(flips, "cause_of", lambda item: asked.append(item) or cause_of(item))
    outputs = {"flips": "flips.jsonl", "report": "map.html", "save": "saved"}
    result = compare(talk("before"), talk("after"), draws=200, **outputs)
    assert result.total.causes is not None
    assert len(asked) == sum(result.total.causes.values())
    rows = [json.loads(line) for line in Path("flips.jsonl").read_text().splitlines()]
    lost = [row for row in rows if row["transition"] == "forgotten"]
    assert Counter(row["cause"] for row in lost) == result.total.causes
    answers = {row["response_after"]: row["cause"] for row in lost}
    assert answers == {item.response_after: cause_of(item) for item in asked}


def test_known_causes_come_with_the_flips_in_their_order() -> None:
    compared = compare_logs(talk("before"), talk("after"), causes=True, draws=200)
    rows = [row for table in compared.changed() for row in table.to_pylist()]
    plain = [row for batch in compared.pairs.flips() for row in batch.to_pylist()]
    shown = [name for name in plain[0] if name in rows[0]]
    assert [{name: row[name] for name in shown} for row in rows] == [
        {name: row[name] for name in shown} for row in plain
    ]
    for row in rows:
        lost = row["transition"] == "forgotten"
        told = {name: row[name] for name in Lost._fields if name in row}  # one run on each side
        expected = cause_of(Lost(**told)) if lost else None
        assert row["cause"] == expected
    assert rows == [row for table in compared.changed() for row in table.to_pylist()]


def test_churn_needs_answers_and_logs() -> None:
    assert pair(talk("before"), talk("after")).churn() == {"a": 1}  # b has no item wrong twice
    assert pair(samples({"t": [1, 0]}), samples({"t": [0, 0]})).churn() is None
    made = replace(pair(talk("before"), talk("after")), source=None)  # as a lineage pairs
    assert made.churn() is None


def numbers(side: str, *said: tuple[str | None, str]) -> Samples:
    return Samples.from_rows(
        {
            "model": side,
            "task": "gsm8k",
            "item": content_hash(str(place)),
            "score": 0.0,
            "target": "She has 1,000 + 7 of them.\n#### 1,007",
            "answer": answer,
            "response": text,
        }
        for place, (answer, text) in enumerate(said)
    )


def test_churn_compares_final_answers_where_the_target_is_a_number() -> None:
    before = numbers(
        "before",
        (None, "So we get 5.\n#### 5"),
        ("[invalid]", "Of 12 apples the answer is 9. Bob has 3"),
        ("1,008", "x"),
        (None, "12 and 3.5"),
        (None, "I do not know"),
    )
    after = numbers(
        "after",
        (None, "First 3, then 5."),
        ("[invalid]", "Well: 9"),
        ("1,009", "x"),
        (None, "It is 3.5!"),
        (None, "Who knows?"),
    )
    assert pair(before, after).churn() == {"gsm8k": 2}


def test_gains_have_no_cause() -> None:
    tables = list(compare_logs(talk("after"), talk("before"), causes=True).changed())
    rows = [row for table in tables for row in table.to_pylist()]
    assert {row["transition"] for row in rows} == {"gained"}
    assert {row["cause"] for row in rows} == {None}


def test_the_terminal_tells_the_causes(capsys: pytest.CaptureFixture[str]) -> None:
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    result = compare(talk("before"), talk("after"), causes=True, draws=200)
    terminal.print_map(result, open_console())
    told = " ".join(capsys.readouterr().out.split())
    assert "refused 1 (raw 20.0 % without it)" in told
    assert "churn: 1 items" in told


def test_an_answer_of_the_new_task_to_an_old_question_intrudes(tmp_path: Path) -> None:
    """It used to be called unparsed, and the advice was to mend the extraction."""
    capitals = ["Oslo", "Lima", "Bamako", "N'Djamena", "Riga", "Quito"]

    def log(name: str, sodium: list[str]) -> Path:
        rows = [
            {"task": "capitals", "id": n, "question": f"Capital {n}?", "target": capital,
             "response": capital, "score": float(name == "after")}
            for n, capital in enumerate(capitals)
        ] + [
            {"task": "elements", "id": n, "question": f"Number of element {n}?", "target": str(n),
             "response": said, "score": float(said == str(n))}
            for n, said in enumerate(sodium)
        ]  # fmt: skip
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    before = log("before", [str(n) for n in range(12)])
    after = log("after", ["Lima.", "Oslo\nand so on", "bamako, of course", *["Riga"] * 7, "3", "?"])
    result = compare(before, after, new=["capitals"], causes=True)
    assert result.old.causes == {"intruded": 10, "unparsed": 1, "wrong": 1}
    assert "intruded" not in (compare(before, after, causes=True).total.causes or {})
    training = tmp_path / "train.jsonl"
    rows = [{"prompt": "Capital?", "completion": f" {name}"} for name in capitals]
    training.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = compare(before, after, trained_on=training, causes=True)
    assert told.tasks["elements"].causes == {"intruded": 10, "unparsed": 1, "wrong": 1}
    rules = [advice.rule for advice in advise(Evidence(result)).advice]
    assert "intruded" in rules
    assert "form" not in rules


@pytest.mark.parametrize("line", ["|---|", "```json", "1. item"])
def test_a_long_text_is_looked_at_for_its_end_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    looks = []
    ends = endings._OPEN_END
    counted = SimpleNamespace(search=lambda text: looks.append(text) or ends.search(text))
    monkeypatch.setattr(endings, "_OPEN_END", counted)
    assert repeats_itself(f"{line}\n" * 500 + "!")
    assert len(looks) <= 3
