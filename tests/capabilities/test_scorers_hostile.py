"""Hostile answers never stop, slow or escape the scoring."""

from __future__ import annotations

import time

import pytest

from forgetmap.answers import text
from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.capabilities import scorers
from forgetmap.capabilities.scorers import json_format, mathematics

RULES = [name for name in scorers.SCORERS if name not in ("code", "mathematics")]
MILLION = 1_000_000
MOST_CPU_SECONDS = 6.0
"""For one answer of a megabyte; a pattern that is not linear takes hours."""

HOSTILE = {
    "spaces": "answer" + " " * MILLION + "x",
    "spaces and stops": ". " * (MILLION // 2),
    "line ends": "\n" * MILLION,
    "cues": "the answer is " * (MILLION // 14),
    "opened JSON": "[" * MILLION,
    "opened objects": '{"a":' * (MILLION // 5),
    "brackets": "(" * MILLION,
    "pairs of brackets": "()" * (MILLION // 2),
    "calls": "f(" * (MILLION // 2),
    "call lines": "a(b=1)\n" * (MILLION // 7),
    "digits": "9" * MILLION,
    "grouped digits": "1," * (MILLION // 2),
    "thousands": "1,234" * (MILLION // 5),
    "asterisks": "*" * MILLION,
    "bold": "**A " * (MILLION // 4),
    "fences": "```\n" * (MILLION // 4),
    "quotes": "> " * (MILLION // 2),
    "quotation marks": '"a b c d e f' * (MILLION // 12),
    "list items": "- a\n" * (MILLION // 4),
    "nested list": "".join(" " * (2 * level) + "- a\n" for level in range(900)),
    "table": "|a|b|\n|-|-|\n" + "|1|2|\n" * (MILLION // 6),
    "pipes": "|" * MILLION,
    "dashes": "a|b\n" + "-|" * (MILLION // 2),
    "boxes": "\\boxed{" * (MILLION // 7),
    "tags": "<tool_call>" * (MILLION // 11),
    "function tags": "<function=f>" * (MILLION // 12),
    "apostrophes": "a'" * (MILLION // 2),
    "dotted": "a." * (MILLION // 2),
    "null bytes": "\x00" * MILLION,
    "halves of characters": "\ud800" * 100_000,
    "ideographs": "中" * MILLION,
    "combining": "a" + "\u0301" * MILLION,
    "emoji": "👩‍👩‍👧" * (MILLION // 5),
    "negations": "not " * (MILLION // 4) + "Rome",
    "catastrophic": "a" * MILLION + "!",
    "placeholders": "[a" * (MILLION // 2),
    "titles": "<<a " * (MILLION // 4),
    "refusals": "I can't " * (MILLION // 8),
    "letters": "A B C D " * (MILLION // 8),
    "terminal codes": "\x1b[31m" * (MILLION // 5),
}
ITEM = {
    "gold": ["Rome"],
    "choices": ["Rome", "Paris", "Oslo", "Bern"],
    "context": "Rome is in Italy. " * 500,
    "schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "tools": [{"name": "f", "parameters": {"properties": {"x": {}}}}],
    "prompt": "Where?",
}
META = {
    "instruction_id_list": [
        "keywords:existence", "keywords:forbidden_words", "language:response_language",
        "length_constraints:number_sentences", "length_constraints:number_words",
        "length_constraints:number_paragraphs", "length_constraints:nth_paragraph_first_word",
        "detectable_content:number_placeholders", "detectable_content:postscript",
        "detectable_format:number_bullet_lists", "detectable_format:number_highlighted_sections",
        "detectable_format:multiple_sections", "detectable_format:json_format",
        "detectable_format:title", "combination:two_responses", "startend:quotation",
    ],
    "kwargs": [
        {"keywords": ["x"]}, {"forbidden_words": ["y", "z"]}, {"language": "en"},
        {"num_sentences": 3, "relation": "at least"}, {"num_words": 3, "relation": "less than"},
        {"num_paragraphs": 2}, {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "a"},
        {"num_placeholders": 1}, {"postscript_marker": "P.S."}, {"num_bullets": 2},
        {"num_highlights": 2}, {"section_spliter": "Part", "num_sections": 2}, {}, {}, {}, {},
    ],
    "commitments": [{"language": "en"}, {"max_words": 9}, {"format": "list"}, {"include": "Rome"}],
    "supporting": ["Rome is in Italy."], "columns": ["a", "b"], "language": "de",
}  # fmt: skip
GOLDS = {
    "multiple_choice": "A", "numbers": "12", "boolean": "yes", "tool_calls": ["f(x=1)"],
    "long_context": ["1234567", "Rome"], "citations": ["1"], "table_format": [["1", "2"]],
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_megabyte_of_anything_is_scored_in_moments(name):
    scorer = scorers.load(name)
    item = Item("t", "1", **(ITEM | {"gold": GOLDS.get(name, ITEM["gold"]), "meta": META}))
    for what, response in HOSTILE.items():
        started = time.process_time()
        found = scorer.score([item], [response])
        taken = time.process_time() - started
        assert taken < MOST_CPU_SECONDS, f"{name}, {what}: {taken:.1f} s"
        assert {len(values) for values in found.values()} == {1}, what


def test_of_an_endless_response_beginning_and_end_are_looked_at():
    response = f"It is Rome. {'blah ' * MILLION} Answer: 7"
    looked = text.looked_at(response)
    assert len(looked) <= text.LONGEST + 1
    assert looked.startswith("It is Rome.")
    assert looked.endswith("Answer: 7")
    item = Item("t", "1", gold="7")
    assert scorers.load("numbers").score([item], [response])["accuracy"][0].value == 1.0


def test_a_schema_fetches_nothing_and_its_patterns_end(monkeypatch):
    def no_network(*_args, **_kwargs):
        raise AssertionError("something is fetched")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    elsewhere = {"$ref": "http://127.0.0.1:9/schema.json"}
    values = json_format.score([Item("t", "1", schema=elsewhere)], ["{}"])
    assert values["schema"][0].status == "invalid_gold"
    evil = {"properties": {"a": {"pattern": "^(a|a)*$"}}}
    assert json_format.fits({"a": "a" * 50 + "!"}, evil) is False
    assert json_format.fits({"a": "aaa"}, evil) is True


@pytest.mark.parametrize("deep", ["[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500])
def test_deep_json_is_json_or_not_but_no_crash(deep):
    found = json_format.score([Item("t", "1", schema={}, gold={"a": 1})], [deep])
    assert all(value.status in ("ok", "no_answer") for (value,) in found.values())


# --- mathematics ----------------------------------------------------------------------------------


def test_a_worker_that_dies_is_replaced_and_takes_no_other_answer_with_it(monkeypatch):
    monkeypatch.setattr(mathematics, "CPU_SECONDS", 1.0)
    questions = [("\\boxed{7}", "\\boxed{9^{9^{9^9}}}"), *[("\\boxed{7}", "7")] * 5] * 2
    assert mathematics.verify(questions, count=1) == [None, *[True] * 5] * 2


def test_a_worker_that_only_waits_is_replaced(monkeypatch, tmp_path):
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import sys, time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(mathematics, "_WORKER", sleeper)
    monkeypatch.setattr(mathematics, "WALL_SECONDS", 1.0)
    assert mathematics.verify([("1", "1")] * 3, count=2) == [None] * 3


def test_a_worker_that_cannot_start_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(mathematics, "_WORKER", tmp_path / "none.py")
    with pytest.raises(InputError, match="does not start"):
        mathematics.verify([("1", "1")] * 3)
