"""Open answers: what is extracted, what is right, when to stop."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.base.errors import InputError
from forgetmap.evaluate import answers
from forgetmap.evaluate.questions import Question, Task

CITIES = ("Oslo", "Rome", "Paris", "Lima")


def task(scorer, cue="Answer:"):
    return Task("t", "c", lambda: [], cue=cue, scorer=scorer)


@pytest.mark.parametrize(
    ("scorer", "cue", "response", "answer"),
    [
        ("exact", "Answer:", " Rome\nQuestion: Next?", "Rome"),
        ("exact", "Answer:", "Sure, here it is:\n\n**Rome**", "Rome"),
        ("exact", "Answer:", "Answer: Rome.", "Rome."),
        ("exact", "", "It could be Oslo.\nAnswer: Rome\n", "Rome"),
        ("exact", "", "So it is \\boxed{Rome}", "Rome"),
        ("number", "Answer:", " 1,204 apples", "1,204"),
        ("number", "Answer:", "12 + 5 = 17", "17"),
        ("number", "", "3 and 4 make 7.\nAnswer: 7\n\nQuestion: 9?", "7"),
        ("number", "", "First 3. Then 4. #### 7", "7"),
        ("letter", "Answer:", " B", "B"),
        ("letter", "Answer:", "(C) Paris", "C"),
        ("letter", "", "Not A, as it is cold.\n**Answer: B**", "B"),
        ("letter", "", "Thus the answer is Paris.", "C"),
        ("letter", "Answer:", "<think>A or B?</think>D", "D"),
        ("contains", "Answer:", "I think Rome, of course", "I think Rome, of course"),
        ("reasoning-gym", "", "I count.\n<answer> 7 </answer> and on", "7"),
        ("reasoning-gym", "", "7\n\nNext problem", "7"),
        ("letter-published", "", "Final answer is B. I hope it is correct", "B"),
        ("letter-published", "", "Hmm. Certainly difficult", "C"),  # inside a word: its fault
    ],
)  # fmt: skip
def test_answers_are_found(scorer, cue, response, answer):
    found = answers.extract(task(scorer, cue), response, CITIES)
    assert found == (answer, "ok")


@pytest.mark.parametrize("scorer", ["number", "letter"])
@pytest.mark.parametrize("cue", ["Answer:", ""])
@pytest.mark.parametrize("response", ["I cannot help with that.", "???", "<think>is it B? 7?"])
def test_a_response_without_an_answer_is_a_status_and_no_guess(scorer, cue, response):
    assert answers.extract(task(scorer, cue), response, CITIES) == (None, "no_answer")


@pytest.mark.parametrize("scorer", answers.SCORERS)
def test_nothing_is_said_to_be_empty(scorer):
    assert answers.extract(task(scorer), " \n ") == (None, "empty")


@pytest.mark.parametrize(
    ("scorer", "target", "answer", "right"),
    [
        ("exact", "The Hague", "the hague.", True),
        ("exact", "-5", "5", False),
        ("exact", "a", "the", False),
        ("exact", "abc", "“ABC”", True),
        ("number", "1200", "1,200.0", True),
        ("number", "-5", "−5", True),
        ("number", "0.1", "0.10000001", True),
        ("number", "12", "13", False),
        ("number", "12", "twelve", False),
        ("letter", "Rome", "B", True),
        ("letter", "Rome", "A", False),
        ("contains", "Rome", "It must be Rome.", True),
        ("contains", "Rome", "It is not Rome.", False),
        ("letter-published", "E", "E", True),
    ],
)
def test_right_and_wrong(scorer, target, answer, right):
    choices = CITIES if target in CITIES else ()
    question = Question("t", "1", "?", target, choices)
    assert answers.is_right(task(scorer), question, answer) is right


def test_aliases_are_right_too():
    question = Question("t", "1", "?", "Rome", CITIES, aliases=("Lima",))
    assert [answers.is_right(task("letter"), question, letter) for letter in "ABCD"] == [
        *(False, True, False, True)
    ]


def test_an_unknown_scorer_is_named():
    with pytest.raises(InputError, match="unknown scorer 'vibes'; known are exact, number"):
        answers.extract(task("vibes"), "x")


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["Answer: B", "answer: 12", "Rome", "I think so:", "", "7 of 9", "<think>", "(C)",
             "Question: who?", "B", "The answer is", "<answer>3</answer>", "\\boxed{4}", "a\u2028b"]
        ),
        st.text(max_size=30).filter(lambda text: "think" not in text),
    ),
    max_size=6,
)  # fmt: skip


@given(
    LINES, LINES, st.sampled_from(answers.SCORERS), st.sampled_from(["Answer:", "", "Reasoning:"])
)
def test_stopping_early_never_changes_the_answer(before, after, scorer, cue):
    asked = task(scorer, cue)
    text = "\n".join([*before, ""])
    whole = text + "\n".join(line.replace("<think>", "") for line in after)
    if answers.is_complete(asked, text, CITIES):
        found = answers.extract(asked, text, CITIES)
        assert found.status == "ok"
        assert found == answers.extract(asked, whole, CITIES)


@given(st.text(max_size=200), st.sampled_from(answers.SCORERS), st.sampled_from(["Answer:", ""]))
def test_any_text_gets_a_status(text, scorer, cue):
    found = answers.extract(task(scorer, cue), text, CITIES)
    assert (found.text is None) == (found.status != "ok")


@pytest.mark.parametrize("scorer", answers.SCORERS)
@pytest.mark.parametrize("cue", ["Answer:", ""])
@pytest.mark.parametrize(
    "piece",
    ["<answer>", "answer ", "Answer: ", "\n", " ", "1,", "A.\n", "(", "final answer is ", "x\n"],
)
def test_long_hostile_text_is_read_in_no_time(scorer, cue, piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    answers.extract(task(scorer, cue), text, CITIES)
    answers.is_complete(task(scorer, cue), text, CITIES)
    assert time.process_time() - started < 5
