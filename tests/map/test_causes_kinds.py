"""Lost answers of eight kinds, each written as a plain case of its cause."""

from __future__ import annotations

from typing import Any

import pytest

from forgetmap.answers.language import language_of
from forgetmap.map.causes import UNKNOWN, Lost, cause_of

S = "Stockholm"
CAPITAL = "What is the capital of Sweden? Answer in one word or number."
OPTIONS = (
    "Which is a fruit?\nA) hammer\nB) pear\nC) tea\nD) Spain\nReply with Answer: and a letter."
)
WORKED = "5 + 7 = 12.\n#### 12"
STORY = "A shop has 5 tulips. It gets 7 more. How many tulips does it have?"
CALL = '[convert(amount=30, source="EUR", target="USD")]'
J = '{"customer": {"name": "Mia", "city": "Riga"}, "order": {"item": "mugs", "count": 12}}'
P = "def is_even(data):\n    return data % 2 == 0"
TYPED = '''```python
def is_even(n: int) -> bool:
    """Even?"""
    return n % 2 == 0  # no rest
```
This works.'''
UNREAD: dict[str, Any] = {"answer_after": "[invalid]", "status_after": "no_answer"}


def val(target: str, after: str) -> Lost:
    """A value; the harness compares the whole text."""
    return Lost(target=target, answer_before=target, answer_after=after.strip().rstrip("."),
                prompt_after=CAPITAL, response_before=target, response_after=after)  # fmt: skip


def ch(after: str) -> Lost:
    """A letter, which the harness did not find."""
    return Lost(target="B", k=4, answer_before="B", prompt_after=OPTIONS,
                response_before="Answer: B", response_after=after, **UNREAD)  # fmt: skip


def st(after: str) -> Lost:
    """A word problem, of which the harness did not find the number."""
    return Lost(target=WORKED, answer_before="12", prompt_after=STORY, response_before=WORKED,
                response_after=after, **UNREAD)  # fmt: skip


def form(before: str, after: str, status: str) -> Lost:
    return Lost(target=before, answer_before=before, status_after=status,
                response_before=before, response_after=after,
                prompt_after="Give what the text asks for, and nothing else.")  # fmt: skip


def tool(after: str) -> Lost:
    return form(CALL, after, "no_answer")


def js(after: str, status: str = "no_answer") -> Lost:
    return form(J, after, status)


def code(after: str) -> Lost:
    return form(P, after, "ok")


CASES = [
    (val(S, "<div>Stockholm</div>"), "wrapped"),
    (val(S, "**Stockholm**"), "wrapped"),
    (val(S, '{"answer": "Stockholm"}'), "wrapped"),
    (val(S, '{"question": "the capital of Sweden", "answer": "Stockholm"}'), "wrapped"),
    (val(S, '{"question": "the capital of Sweden", "answer": "Oslo"}'), "wrong"),
    (val(S, "Answer: Stockholm"), "wrapped"),
    (val(S, "The capital of Sweden is Stockholm."), "wrapped"),
    (val(S, "The capital of Sweden is Oslo."), "wrong"),
    (val(S, "La capitale de la Suède est Stockholm."), "language"),
    (val(S, "- Stockholm\n- That is the capital.\n- No more is known."), "wrapped"),
    (val(S, "- Oslo\n- That is the capital.\n- No more is known."), "wrong"),
    (val(S, "- Oslo\n- Stockholm\n- Helsinki"), "list"),
    (val(S, "Stockholm, Oslo, Helsinki"), "list"),
    (val(S, "<think>\nThe user wants to know the capital of Sweden. Let me think"), "truncated"),
    (val(S, "<think>\nThe user wants it. I know this.\n</think>\nStockholm"), "wrapped"),
    (val(S, "<think>\nThe user wants it.\n</think>\nOslo"), "wrong"),
    (
        val(
            S,
            "I'm sorry, but I cannot help with the capital of Sweden. Ask somebody who knows.",
        ),
        "refused",
    ),
    (val(S, "Stockholm\nStockholm\nStockholm\nStock"), "ran_on"),
    (val(S, "Stockholm\n\nWhat is the capital of Norway?\nOslo"), "ran_on"),
    (val(S, "Oslo (Norway)"), "wrong"),
    (
        val(
            S,
            "The capital of Sweden is a city that is",
        ),
        "truncated",
    ),
    (val(S, "Oslo"), "wrong"),
    (val("7", "There are seven days in a week."), "wrapped"),
    (val("7", "five"), "wrong"),
    (val("yes", "No, the sun is not a star."), "wrong"),
    (val("[pear]", "pear"), "wrapped"),
    (val("PEAR", "Pear"), "wrapped"),
    (val("PEAR", "*PEAR*"), "wrapped"),
    (val("Final: pear", "The first word is pear."), "wrapped"),
    (val("[pear]", "[PLUM]"), "wrong"),
    (ch("B"), "wrapped"),
    (ch("pear"), "wrapped"),
    (ch("B) pear"), "wrapped"),
    (ch("tea"), "wrong"),
    (ch("I think that the answer is C."), "wrong"),
    (ch("All of them can be eaten."), "unparsed"),
    (ch("```\nAnswer: B\n```"), "wrapped"),
    (ch("**Answer:** B"), "wrapped"),
    (ch("A hammer is a tool that"), "truncated"),
    (st("12"), "wrapped"),
    (st("5 + 7 = 12"), "wrapped"),
    (st("5 + 7 = 13."), "wrong"),
    (st("We add the tulips."), "unparsed"),
    (st("The shop has 5 tulips and gets"), "truncated"),
    (st("5 + 7 ="), "truncated"),
    (st("```\n5 + 7 = 12.\n#### 12\n```"), "wrapped"),
    (tool('convert(amount=30, source="EUR", target="USD")'), "wrapped"),
    (tool('Sure! Here it is: convert(amount=30, source="EUR", target="USD")'), "wrapped"),
    (tool('- convert(amount=30, source="EUR", target="USD")'), "wrapped"),
    (tool('{"answer": "[convert(amount=30, source=\\"EUR\\", target=\\"USD\\")]"}'), "wrapped"),
    (tool('[convert(30, "EUR", "USD")]'), "wrapped"),
    (
        tool('{"name": "convert", "arguments": {"amount": 30, "source": "EUR", "target": "USD"}}'),
        "wrapped",
    ),
    (tool('[convert(amount=3, source="EUR", target="USD")]'), "wrong"),
    (tool("[convert(amount: int, source: str, target: str)]"), "unparsed"),
    (tool("You can use `convert(amount, source, target)` for this."), "prose"),
    (tool("def convert(amount, source, target):\n    return amount * 2"), "unparsed"),
    (tool('[convert(amount=30, source="EUR"'), "truncated"),
    (tool("30 EUR"), "prose"),
    (tool("Change 30 EUR into USD."), "prose"),
    (tool("Here is the list of the"), "prose"),
    (tool("La respuesta a esta pregunta es 30 EUR, y no es difícil de ver."), "language"),
    (js("Customer: Mia\nCity: Riga\nItem: mugs\nCount: 12"), "wrapped"),
    (js('{"name": "Mia", "city": "Riga", "item": "mugs", "count": 12}'), "wrapped"),
    (
        js("Here you go: " + J.replace(": ", ":") + " Enjoy!"),
        "wrapped",
    ),
    (
        js(J.replace("12", '"12"')),
        "wrapped",
    ),
    (
        js(f"[{J}]"),
        "wrapped",
    ),
    (
        js('{"customer": {"name": "Mia", "city": "Riga"}, "order": {"item": "mugs"', "truncated"),
        "truncated",
    ),
    (js("Mia from Riga ordered 12 mugs."), "prose"),
    (js('{"customer": "Mia"}'), "wrong"),
    (js(J + "\n\nText: Omar from Porto ordered"), "ran_on"),
    (
        code(TYPED),
        "wrapped",
    ),
    (code("def is_even(n):\n    if n % 2 == 0:\n        return True\n    return False"), "wrong"),
    (
        code("Here is the code:\n\ndef is_even(n):\n    return n % 2 == 0\n\nIt is short."),
        "wrapped",
    ),
    (code("```python\ndef is_even(data):\n    if data"), "truncated"),
    (code("The function checks whether the number is even."), "prose"),
    (code("is_even(data=4)"), "call"),
    (code("def odd(x):\n    return x % 2 == 0"), "wrong"),
    (code("True"), "prose"),
]


@pytest.mark.parametrize(("item", "expected"), CASES)
def test_plain_cases_of_eight_kinds(item: Lost, expected: str) -> None:
    assert (cause_of(item) or UNKNOWN) == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Jag tror att svaret är A eftersom det står så.", "Scandinavian"),
        ("Det måste vara rot i det här fallet.", "Scandinavian"),
        ("Jeg tror at svaret er Oslo.", "Scandinavian"),
        ("Det er ikke det rigtige ord.", "Scandinavian"),
        ("Er is een man in de tuin.", "Dutch"),
        ("Das ist der Hund, und er geht.", "German"),
        ("I told her that the men are here.", "English"),
    ],
)
def test_a_sentence_has_its_own_language(text: str, language: str) -> None:
    assert language_of(text) == language
