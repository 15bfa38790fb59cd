"""A server whose echo tells the numbers of other tokens is found out before it is believed.

The replies are those of llama-cpp-python 0.3.36 with SmolLM2-135M, shortened to the fields that are
read. It gives each token of a prompt the numbers of the next place if the model has no first token.
"""

from __future__ import annotations

import pytest

from forgetmap.base.completions import Completion
from forgetmap.base.likelihoods import echo_agrees, read_echo

PROMPT = "A B C"


def wrote(value, text=" D"):
    told = {"tokens": [text], "text_offset": [5], "token_logprobs": [value]}
    return Completion(text, False, {"logprobs": told if text else None}, 3, 1)


def echo(*values, more=""):
    tokens = ["A", " B", " C", " D", *([more] if more else [])]
    places = [0, 1, 3, 5, *([7] if more else [])]
    told = {"tokens": tokens, "text_offset": places, "token_logprobs": [None, *values]}
    return Completion("A B C D" + more, False, {"logprobs": told}, 4, 1 if more else 0)


def test_the_replies_of_a_real_server_are_found_out():
    """It writes ` Saturday` with -0.92, and repeats it with the number of the place behind it."""
    start = "Monday, Tuesday, Wednesday, Thursday, Friday,"
    told = {"tokens": [" Saturday"], "text_offset": [45], "token_logprobs": [-0.9168009161949158]}
    said = Completion(" Saturday", False, {"logprobs": told}, 10, 1)
    days = ["Monday", " Tuesday", " Wednesday", " Thursday", " Friday"]
    tokens = [token for day in days for token in (day, ",")] + [" Saturday"]
    values = [None, *[-9.0] * 7, -8.22796630859375, -11.662383079528809, -9.505819320678711]
    places = [sum(map(len, tokens[:place])) for place in range(11)]
    repeated = {"tokens": tokens, "text_offset": places, "token_logprobs": values}
    whole = Completion(f"{start} Saturday,", False, {"logprobs": repeated}, 11, 1)
    assert not echo_agrees(said, whole, start)


def test_the_same_number_twice_is_believed():
    assert echo_agrees(wrote(-0.7), echo(-5.0, -2.0, -0.69), PROMPT)
    assert echo_agrees(wrote(-0.7), echo(-5.0, -2.0, -0.69, -1.0, more=" E"), PROMPT)


def test_numbers_that_are_shifted_by_a_token_are_not():
    assert not echo_agrees(wrote(-0.7), echo(-11.1, -11.0, -8.1), PROMPT)


@pytest.mark.parametrize("said", [wrote(-0.7, text=""), Completion(" D", True, {}, 3, 1)])
def test_a_server_that_writes_nothing_cannot_be_judged(said):
    assert echo_agrees(said, echo(-1.0, -1.0, -1.0), PROMPT)


def test_a_part_of_a_character_at_the_end_is_not_the_prompts():
    found = read_echo(echo(-5.0, -2.0, -0.5, -9.0, more="\ufffd"), PROMPT, " D")
    assert found == (-0.5, 1)
