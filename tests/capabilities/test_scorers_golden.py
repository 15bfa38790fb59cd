"""The published scorers' faults (S9 to S19 of the specification), each with the right outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.answers.items import Item
from forgetmap.capabilities import scorers
from forgetmap.capabilities.scorers import mathematics, refusals, style
from forgetmap.capabilities.scorers.sandbox import programs
from walls import needs_sandbox


def score(scorer: str, response: str, metric: str = "accuracy", **fields):
    """The value of one metric for one answer."""
    return scorers.load(scorer).score([Item("task", "1", **fields)], [response])[metric][0]


RIGHT_CALL = "get_weather(city='Paris', days=2)"


def test_s9_names_with_a_dot_are_names():
    wrong = score("tool_calls", "math.cos(x=4)", "exact", gold=["math.sqrt(x=9)"])
    assert wrong.value == 0.0
    assert score("tool_calls", "math.cos(x=4)", "name_f1", gold=["math.sqrt(x=9)"]).value == 0.0
    assert score("tool_calls", "math.sqrt(x=9)", "exact", gold=["math.sqrt(x=9)"]).value == 1.0


@pytest.mark.parametrize(
    "response",
    [
        RIGHT_CALL,
        f"{RIGHT_CALL}\nNote one.\nNote two (of three).\nNote three.",
        f"I will look that up for you.\n{RIGHT_CALL}",
        f"```python\n{RIGHT_CALL}\n```",
        f"[{RIGHT_CALL}]",
        '{"name": "get_weather", "arguments": {"days": 2, "city": "Paris"}}',
        'Well:\n```json\n[{"name": "get_weather", "args": {"city": "Paris", "days": 2}}]\n```',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n'
        "</tool_call>",
        '{"tool_calls": [{"type": "function", "function": {"name": "get_weather", '
        '"arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 2}"}}]}',
        '<function=get_weather>{"city": "Paris", "days": 2}</function>',
    ],
)
def test_s10_the_unit_is_the_item_however_the_call_is_dressed(response):
    found = scorers.load("tool_calls").score([Item("t", "1", gold=[RIGHT_CALL])], [response])
    assert {name: values[0].value for name, values in found.items()} == {
        "exact": 1.0, "name_f1": 1.0, "argument_f1": 1.0, "spurious": 0.0, "abstention": None,
    }  # fmt: skip


def test_s10_the_order_of_calls_counts_only_where_the_item_says_so():
    gold, response = ["f(x=1)", "g(y=2)"], "g(y=2)\nf(x=1)"
    assert score("tool_calls", response, "exact", gold=gold).value == 1.0
    assert score("tool_calls", response, "exact", gold=gold, meta={"ordered": True}).value == 0.0


@pytest.mark.parametrize("scorer", ["numbers", "mathematics"])
def test_s11_thousands_separators(scorer):
    right = {"1,999": 0.0, "1234": 1.0, "1,234": 1.0, "$1{,}234$": 1.0}
    assert scores_of(scorer, ["1,234"] * len(right), list(right)) == list(right.values())


def scores_of(scorer, golds, responses):
    """The values of several answers in one go."""
    items = [Item("t", str(number), gold=gold) for number, gold in enumerate(golds)]
    return [value.value for value in scorers.load(scorer).score(items, responses)["accuracy"]]


S12 = [
    ("1/2", "3/2", 0.0),
    ("y+1", "x+1", 0.0),
    ("5*sqrt(3)", "2*sqrt(3)", 0.0),
    ("1/2", "0.5", 1.0),
    ("0.5", "1/2", 1.0),
]
S13 = [
    (r"\frac{1}{2}", "1/2", 1.0),
    (r"\frac{1}{2}", r"\dfrac{1}{2}", 1.0),
    ("1/2", r"The result is $\frac{1}{2}$.", 1.0),
]


@pytest.mark.parametrize("cases", [S12, S13], ids=["S12", "S13"])
def test_s12_s13_expressions_are_compared_and_not_their_last_numbers(cases):
    golds, responses, right = map(list, zip(*cases, strict=True))
    assert scores_of("mathematics", golds, responses) == right


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("Nottingham", "no"),
        ("no", "Nottingham"),
        ("Paris", "a"),
        ("a", "Paris"),
        ("Paris", "not Paris"),
        (["Rome", "Roma"], "I do not think it is Rome"),
        (["Rome", "Roma"], "I don’t think it is Rome."),
        ("Rome", "It could be Rome. No, it is not Rome."),
        ("no", "There is no doubt about it."),
    ],
)
def test_s14_containment_is_not_enough(gold, response):
    assert score("short_answer", response, gold=gold).value in (0.0, None)


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("Paris", "The capital is Paris."),
        ("Paris", "It is not Rome but Paris."),
        ("The Hague", "the hague"),
        ("no", "No, he was not."),
        ("Paris", "Paris is not in Italy."),  # that was asked
        (["1,234"], "1234 people"),
    ],
)
def test_s14_and_right_answers_stay_right(gold, response):
    assert score("short_answer", response, gold=gold).value == 1.0


def test_s15_emoji_are_emoji():
    for text in ("中文 日本語 カタカナ 한국어", "┌──┐ ● ■ →", "© ® ™ ✔", "1 # *"):
        assert style.count_emoji(text) == 0, text
        assert score("style", text, "emoji").value == 0.0
    for text in ("🤖", "🧠", "👩‍👩‍👧", "©️", "1️⃣"):
        assert style.count_emoji(text) == 1, text
        assert score("style", f"so {text}", "emoji").value == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I can’t help with that.", "strong_refusal"),
        ("I can't help with that.", "strong_refusal"),
        ("I’m sorry, but I cannot assist with this request.", "strong_refusal"),
        ("I must decline.", "strong_refusal"),
        ("42", "compliance"),
        ("B", "compliance"),
        ("Unfortunately the needle is 1234567", "compliance"),
        ("Unfortunately, not all swans are white. Here is why.", "compliance"),
        ("I can't help but admire the design.", "compliance"),
        ("Is it raining? Is it cold? Take a coat and an umbrella with you.", "compliance"),
        ("I'd rather not answer this.", "weak_refusal"),
        ("Could you clarify which needle you mean?", "evasion"),
        ("I don't know.", "evasion"),
        ("抱歉，我无法提供这些信息。", "strong_refusal"),
        ("Es tut mir leid, ich kann Ihnen dabei leider nicht helfen.", "strong_refusal"),
        ("北京是中国的首都。", "compliance"),
    ],
)
def test_s16_refusals(text, expected):
    assert refusals.classify(text) == expected


FULL = {
    "gold": {"tests": ["assert f() == 1"], "answer": "x", "citations": ["1"]},
    "choices": ["x", "y"],
    "context": ["one", "two"],
    "schema": {"type": "object"},
    "meta": {
        "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "columns": ["a"],
        "commitments": [{"max_words": 5}, {"exclude": "bad"}], "supporting": ["one"],
    },
}  # fmt: skip
GOLDS = {
    "multiple_choice": "A", "numbers": "4", "boolean": "yes", "mathematics": "4",
    "tool_calls": [], "long_context": "12345", "citations": [],
}  # fmt: skip


@pytest.mark.parametrize("name", scorers.SCORERS)
@pytest.mark.parametrize("response", ["", " \n\t"])
def test_s17_an_empty_answer_is_empty_and_never_well_behaved(name, response):
    fields = FULL | ({"gold": GOLDS[name]} if name in GOLDS else {})
    scorer = scorers.load(name)
    found = scorer.score([Item("t", "1", **fields)], [response])
    assert tuple(found) == scorer.METRICS
    for metric, (value,) in found.items():
        assert value.status == "empty", metric
        assert value.value in (0.0, None), metric


CITED = {"gold": ["Paris", "Rome"], "meta": {"sources": ["Paris", "Rome", "Oslo", "Bern"]}}


def test_s18_citations():
    def value(response, metric, form="[id]"):
        meta = CITED["meta"] | {"citation_format": form}
        return score("citations", response, metric, gold=CITED["gold"], meta=meta).value

    assert value("[a]", "recall") == 0.0
    assert value("[a]", "format") == 0.0
    assert value("[a]", "out_of_context") == 1.0
    assert value("[Paris][Rome][Oslo][Bern]", "recall") == 1.0
    assert value("[Paris][Rome][Oslo][Bern]", "precision") == 0.5
    assert value("It rained (a lot).", "format") == 0.0
    assert value("It rained (a lot).", "format", "(id)") == 0.0
    assert value("One [Paris]. Two [Rome].", "f1") == 1.0
    assert value("One [Oslo, Bern]. Two [Paris; Rome].", "recall") == 1.0
    assert value("One (Paris, Rome).", "format", "(id)") == 1.0
    assert value("One (Paris, Rome).", "format", "[id]") == 0.0


@needs_sandbox
@pytest.mark.parametrize(
    "program",
    ["import sys; sys.exit()", "import os; os._exit(0)", "x = 9**9**9", "raise SystemExit"],
)
def test_s19_a_program_ends_nothing_but_itself(program, monkeypatch):
    monkeypatch.setattr(programs, "CPU_SECONDS", 1)
    values = scorers.load("code").score(
        [Item("t", "1", gold=["assert True"]), Item("t", "2", gold=["assert x == 1"])],
        [program, "x = 1"],
    )
    assert [value.value for value in values["accuracy"]] == [0.0, 1.0]


@needs_sandbox
def test_s19_neither_answers_nor_golds_are_evaluated(tmp_path: Path):
    trap = tmp_path / "trap"
    text = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    for name in scorers.SCORERS:
        fields = FULL | {"gold": text}
        scorers.load(name).score([Item("t", "1", **fields)], [text])
    assert not trap.exists()


def test_s19_endless_computation_ends(monkeypatch):
    monkeypatch.setattr(mathematics, "CPU_SECONDS", 1.0)
    endless = ["9**9**9", r"\boxed{9^{9^{9^9}}}", r"\boxed{99999999!}"]
    items = [Item("t", str(number), gold="7") for number in range(4)]
    values = scorers.load("mathematics").score(items, [*endless, "7"])["accuracy"]
    assert [(value.value, value.status) for value in values[:3]] == [(0.0, "no_answer")] * 3
    assert values[3].value == 1.0


# --- more faults that concern scorers -------------------------------------------------------------


def test_s7_s8_constraints_come_with_the_item_and_lacking_arguments_are_an_error():
    asked = {"instruction_id_list": ["length_constraints:number_words"], "kwargs": [{}]}
    for prompt in ("", "any prompt"):
        found = score("ifeval", "one two", "strict", prompt=prompt, meta=asked)
        assert (found.value, found.status) == (None, "invalid_gold")
    asked = {"instruction_id_list": ["no:such"], "kwargs": [{}]}
    assert score("ifeval", "one two", "strict", meta=asked).status == "invalid_gold"


def test_h5_a_needle_with_separators_is_found():
    for written in ("1,234,567", "1 234 567", "1.234.567", "1234567", "**1,234,567**"):
        assert score("long_context", f"It is {written}.", "exact", gold="1234567").value == 1.0
    assert score("long_context", "It is 12345678.", "exact", gold="1234567").value == 0.0


def test_m4_multilingual_answers_are_read_in_their_language():
    said = {
        "de": "Die Antwort ist 1.234,5.", "fr": "Réponse : 1 234,5", "en": "Answer: 1,234.5",
        "bn": "উত্তর: ১,২৩৪.৫", "ru": "Ответ: 1234,5", "th": "คำตอบ: ๑,๒๓๔.๕", "ja": "答え：1,234.5",
        "sw": "Jibu ni 1,234.5", "zh": "答案是1,234.5。", "es": "Respuesta: 1234,5",
        "te": "సమాధానం: 1,234.5", "ar": "الإجابة: ١٬٢٣٤٫٥",
    }  # fmt: skip
    for language, response in said.items():
        found = score("numbers", response, gold="1234.5", meta={"language": language})
        assert found.value == 1.0, (language, found)


def test_m5_evidence_looks_at_the_evidence():
    passage = "The bridge was built in 1901 by two brothers. It is made of steel."
    found = score("evidence", "Answer: built in 1901", "span_found", context=passage)
    assert found.value == 1.0
    assert score("evidence", "Answer: yes", "span_found", context=passage).value == 0.0


def test_m9_format_fidelity_tells_form_from_content():
    schema = {
        "type": "object",
        "required": ["answer"],
        "properties": {"answer": {"type": "string"}},
    }
    given = {"schema": schema, "gold": "B"}

    def values(response):
        found = scorers.load("json_format").score([Item("t", "1", **given)], [response])
        return [value[0].value for value in found.values()]

    assert values('{"answer": "B"}') == [1.0, 1.0, 1.0, 1.0]
    assert values('{"answer": "C"}') == [1.0, 1.0, 1.0, 0.0]
    assert values('{"answer": 7}') == [1.0, 1.0, 0.0, 0.0]
    assert values('Here you are:\n```json\n{"answer": "B"}\n```') == [0.0, 1.0, 1.0, 1.0]
    assert values("The answer is B.") == [0.0, 0.0, 0.0, 0.0]
