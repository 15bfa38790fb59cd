"""A served model gives the numbers of the same model here, or a clear refusal; never others."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from forgetmap.base.errors import InputError
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate
from served_llama import ServedModel
from tiny_llama import TEXT, make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
WORDS = sorted(set(TEXT.replace("?", "").replace(".", "").split()))


@pytest.fixture(scope="module", params=["bytes", "sentencepiece"])
def tiny(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / request.param
    return make_tiny_model(folder, like_sentencepiece=request.param == "sentencepiece")


def suite():
    draw = random.Random(0)
    asked = [
        Question("quiz", f"q{n}", f"{' '.join(draw.choices(WORDS, k=9))}?", choices[0], choices)
        for n in range(12)
        if (choices := tuple(" ".join(draw.sample(WORDS, k)) for k in (1, 2, 3, 1)))
    ]
    return Suite("quiz", "1", (Task("quiz", "Quiz", lambda: asked),))


def rows(samples):
    """By item and metric: the answer, and the probabilities where the metric has them."""
    found = [row for batch in samples.to_batches() for row in batch.to_pylist()]
    return {(row["item_ref"], row["metric"]): row for row in found}


def assert_same_numbers(ours, theirs):
    ours, theirs = rows(ours.samples), rows(theirs.samples)
    assert len(ours) == 24
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        assert row["answer"] == theirs[key]["answer"], key
        assert row["score"] == theirs[key]["score"]
        if key[1] == "acc":
            expected = pytest.approx(row["option_probabilities"], abs=5e-6)
            assert theirs[key]["option_probabilities"] == expected


@pytest.mark.parametrize("chat", [False, True])
def test_token_ids_give_the_numbers_of_a_local_model(tiny, tmp_path, chat):
    asking = Asking(chat=chat)
    local = evaluate(str(tiny), suite(), tmp_path / "local", asking=asking)
    with ServedModel(tiny, tells_ids=True) as server:
        served = evaluate(server.name, suite(), tmp_path / "served", asking=asking)
    assert_same_numbers(local, served)
    scored = [asked for asked in server.asked if asked["max_tokens"] == 1]
    assert {asked["return_token_ids"] for asked in scored} == {True}


@pytest.mark.parametrize("chat", [False, True])
def test_sglang_gives_the_numbers_of_a_local_model(tiny, tmp_path, chat):
    """Its own `/generate` is asked, as its echo does not say where tokens lie."""
    if chat and tiny.name == "sentencepiece":
        pytest.skip("SGLang puts no first token before a chat; this template does not write it")
    asking = Asking(chat=chat)
    local = evaluate(str(tiny), suite(), tmp_path / "local", asking=asking)
    with ServedModel(tiny, tells_ids=False, owner="sglang") as server:
        served = evaluate(server.name, suite(), tmp_path / "served", asking=asking)
    assert_same_numbers(local, served)
    scored = [asked for asked in server.asked if "return_logprob" in asked]
    assert len(scored) == 12 * 5
    assert {asked["logprob_start_len"] for asked in scored} == {0}


def test_an_echo_gives_the_numbers_of_a_local_model_or_none(tiny, tmp_path):
    """One that loses the spaces of SentencePiece is refused."""
    with ServedModel(tiny, tells_ids=False) as server:
        if tiny.name == "sentencepiece":
            with pytest.raises(InputError, match=r"do not join .*lm-eval:local-completions"):
                evaluate(server.name, suite(), tmp_path / "served")
            return
        served = evaluate(server.name, suite(), tmp_path / "served")
    assert_same_numbers(evaluate(str(tiny), suite(), tmp_path / "local"), served)


def test_options_behind_a_chat_template_need_token_ids(tiny, tmp_path):
    with (
        ServedModel(tiny, tells_ids=False) as server,
        pytest.raises(InputError, match="use --letters or --no-chat"),
    ):
        evaluate(server.name, suite(), tmp_path, asking=Asking(chat=True))


def test_a_server_that_begins_another_turn_is_refused(tiny, tmp_path):
    """It ignores `continue_final_message`: the last tokens are not the option's."""
    with (
        ServedModel(tiny, tells_ids=True, ends_turns=True) as server,
        pytest.raises(InputError, match="tokens behind the context are not the option's"),
    ):
        evaluate(server.name, suite(), tmp_path, asking=Asking(chat=True))
