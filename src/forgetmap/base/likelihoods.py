"""The likelihood of a given text, from what a server tells of the tokens of a prompt.

Two forms are read. vLLM tells the id of each token with its log-probability (`prompt_logprobs`);
the option's tokens are then those beyond the context's, as for a local model. Other servers repeat
the prompt (`echo`) with the text of each token. These texts must join to the prompt, character by
character: a server that decodes tokens one by one loses the spaces of SentencePiece, and then its
offsets point at other words. Whatever cannot be verified is refused, never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from forgetmap.base.completions import Completion, as_count
from forgetmap.base.http import RequestFailed

OTHER_WAYS = "use --letters or lm-eval:local-completions"
_SLACK = 1e-3
"""A log-probability may lie above 0 by this much, from rounding in half precision."""
_ECHO_SLACK = 0.25
"""Nats between a token's likelihood when it is written and when it is repeated: batches differ, and
half precision adds to it. A shift by one token is apart by several nats."""
_VOICE_SLACK = 0.1
"""Nats by which a token that one model writes twice may differ, in half precision."""
_CLOSE_CALL = math.log(0.55)
"""A token that is less likely than this may lose against another one by rounding."""
_LONGEST_MARK = 64
"""Characters of a token before the prompt, such as `<|begin_of_text|>`."""
_PART_OF_A_CHARACTER = re.compile(r"\ufffd+|(?:<0x[0-9A-Fa-f]{2}>)+|bytes:(?:\\x[0-9a-f]{2})+")
"""How servers write a token that is no whole character; it may stand for anything."""


class Echo(NamedTuple):
    """The likelihood of a given text, of which the server told the log-probabilities."""

    likelihood: float
    tokens: int


class NotEchoed(RequestFailed):
    """The server does not tell the likelihood of a given text."""


# --- by token ids ---------------------------------------------------------------------------------


class PromptTokens(NamedTuple):
    """The tokens of a prompt: id, log-probability and text of each."""

    ids: tuple[int | None, ...]
    """None for a first token that the server does not name."""
    values: tuple[object, ...]
    texts: tuple[object, ...]


def read_prompt_tokens(reply: Completion) -> PromptTokens | None:
    """The tokens of the prompt by their ids; None where the server does not tell them.

    With `prompt_logprobs` of 0, vLLM tells one token for each place but the first. Newer versions
    also list all ids (`return_token_ids`).

    Raises:
        RequestFailed: If what the server tells does not fit together.

    Example:
        >>> told = [None, {"17": {"logprob": -0.5, "rank": 1, "decoded_token": " is"}}]
        >>> read_prompt_tokens(Completion("", True, {"prompt_logprobs": told}, 2, 0))
        PromptTokens(ids=(None, 17), values=(None, -0.5), texts=(None, ' is'))
    """
    told, listed = (reply.choice.get(name) for name in ("prompt_logprobs", "prompt_token_ids"))
    if told is None:
        return None
    if not isinstance(told, list) or not told or not all(map(_is_place, told)):
        raise RequestFailed("the server's `prompt_logprobs` are not a list of tokens")
    if listed is None:
        if any(entry is not None and len(entry) != 1 for entry in told):
            return None  # which of several tokens the prompt has, nobody says
        listed = [_id(next(iter(entry))) if entry else None for entry in told]
    elif not isinstance(listed, list) or any(as_count(one) is None for one in listed):
        raise RequestFailed("the server's `prompt_token_ids` are not numbers")
    if len(listed) != len(told) or reply.tokens_in not in (None, len(told)):
        raise RequestFailed("the server's token ids do not fit its log-probabilities")
    places = [(entry or {}).get(str(one), {}) for entry, one in zip(told, listed, strict=True)]
    if not all(isinstance(place, Mapping) for place in places):
        raise RequestFailed("the server's `prompt_logprobs` are not a list of tokens")
    return PromptTokens(
        tuple(listed),
        tuple(place.get("logprob") for place in places),
        tuple(place.get("decoded_token") for place in places),
    )


def _is_place(entry: object) -> bool:
    return entry is None or (isinstance(entry, Mapping) and len(entry) > 0)


def _id(key: object) -> int:
    if not isinstance(key, str) or not (key.isascii() and key.isdigit()):
        raise RequestFailed("the server's `prompt_logprobs` have keys that are no token ids")
    return int(key)


def likelihood_by_ids(whole: PromptTokens, context: PromptTokens, option: str) -> Echo:
    """Sum the log-probabilities of the tokens that a text has beyond its context.

    White space at the seam belongs to the option, as lm-eval and local models have it.

    Raises:
        RequestFailed: If the text does not begin with the context, or ends with anything else than
            the option.
    """
    pairs = zip(whole.ids, context.ids, strict=False)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if start == 0 or not all(map(_is_blank, context.texts[start:])):
        raise RequestFailed(f"the option changes the tokens of its context; {OTHER_WAYS}")
    while start > 1 and _is_blank(whole.texts[start - 1]):
        start -= 1
    told = whole.texts[start:]
    texts = [text for text in told if isinstance(text, str)]
    if len(texts) < len(told) or not _fits(_squeezed("".join(texts)), _squeezed(option)):
        raise RequestFailed(f"the tokens behind the context are not the option's; {OTHER_WAYS}")
    return Echo(sum(map(log_probability, whole.values[start:])), len(told))


class Spoken(NamedTuple):
    """A token that a model wrote."""

    text: str
    value: float


def read_spoken(reply: Completion) -> tuple[Spoken, ...]:
    """The tokens that a server wrote, with their log-probabilities; none where it does not tell.

    Example:
        >>> told = {"tokens": [" Saturday"], "token_logprobs": [-0.9]}
        >>> read_spoken(Completion(" Saturday", False, {"logprobs": told}, 10, 1))
        (Spoken(text=' Saturday', value=-0.9),)
        >>> told = {"content": [{"token": "Saturday", "logprob": -0.9}]}
        >>> read_spoken(Completion("Saturday", False, {"logprobs": told}, 10, 1))
        (Spoken(text='Saturday', value=-0.9),)
    """
    told = reply.choice.get("logprobs")
    told = told if isinstance(told, Mapping) else {}
    listed = told.get("content")
    if isinstance(listed, list) and all(isinstance(one, Mapping) for one in listed):
        names = ("token", "logprob")
        told = dict(zip(("tokens", "token_logprobs"), _columns(listed, names), strict=True))
    texts, values = told.get("tokens"), told.get("token_logprobs")
    if not isinstance(texts, list) or not isinstance(values, list) or len(texts) != len(values):
        return ()
    if not all(isinstance(text, str) for text in texts):
        return ()
    return tuple(map(Spoken, texts, map(log_probability, values)))


def _columns(rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[list[object]]:
    return [[row.get(name) for row in rows] for name in names]


def is_another_voice(one: Sequence[Spoken], other: Sequence[Spoken]) -> bool:
    """Whether two models wrote: a token whose likelihood is another, or a likely one replaced.

    The same model in half precision differs a little from run to run, and may take the other one of
    two tokens that are about as likely.

    Example:
        >>> said = [Spoken(" Saturday", -0.9), Spoken(",", -0.1)]
        >>> is_another_voice(said, [Spoken(" Saturday", -0.91), Spoken(",", -0.1)])
        False
        >>> is_another_voice(said, [Spoken(" Saturday", -0.9), Spoken(" and", -0.1)])
        True
    """
    for mine, theirs in zip(one, other, strict=False):
        if mine.text != theirs.text:
            return max(mine.value, theirs.value) > _CLOSE_CALL
        if abs(mine.value - theirs.value) > _VOICE_SLACK:
            return True
    return False


def option_tokens(context: Sequence[int], whole: Sequence[int]) -> list[int]:
    """The tokens that a text has beyond its context, as lm-eval counts them; one at least.

    Example:
        >>> option_tokens([1, 2], [1, 2, 3]), option_tokens([1, 2], [1, 4])
        ([3], [4])
    """
    return list(whole[len(context) :] or whole[-1:])


def _is_blank(text: object) -> bool:
    return isinstance(text, str) and not text.strip()


def _squeezed(text: str) -> str:
    """Without white space, which single tokens of SentencePiece lose; the ids are what counts."""
    return "".join(text.split()).replace("\u2581", "")


# --- by an echo -----------------------------------------------------------------------------------


def read_echo(reply: Completion, context: str, option: str) -> Echo:
    """Sum the log-probabilities of an option's tokens, behind a context.

    The server was asked to repeat context and option with the log-probability of each token. Where
    it did something else, its numbers belong to another text: tokens, offsets and counts are
    checked.

    Raises:
        RequestFailed: If the numbers are not those of this text.
        NotEchoed: If the server tells none at all, or those of a text of its own.

    Example:
        >>> told = {"token_logprobs": [None, -0.5, -2.0], "text_offset": [0, 3, 7]}
        >>> told["tokens"] = ["The", " sky", " is"]
        >>> read_echo(Completion("The sky is", True, {"logprobs": told}, 3, 0), "The sky", " is")
        Echo(likelihood=-2.0, tokens=1)
    """
    asked = context + option
    told = reply.choice.get("logprobs")
    told = told if isinstance(told, Mapping) else {}
    values, offsets = told.get("token_logprobs"), told.get("text_offset")
    if not isinstance(values, list) or not isinstance(offsets, list) or not values:
        raise NotEchoed(f"the server does not tell the likelihood of a given text; {OTHER_WAYS}")
    if not 0 <= (at := reply.text.find(asked)) <= _LONGEST_MARK:
        raise NotEchoed(f"the server does not repeat the prompt (it ignores `echo`); {OTHER_WAYS}")
    tokens = _texts(told.get("tokens"), len(values))
    inside = tokens
    if "".join(tokens) != reply.text[: at + len(asked)]:  # some servers tell the prompt's alone
        inside = list(_without_end(tokens, reply.text[at + len(asked) :], reply.tokens_out))
    first = _first_of_option(inside, context, option)
    begins = len(asked) - len("".join(inside[first:]))
    shift = _shift(inside[:first], asked[:begins])
    _check_offsets(offsets, tokens, shift)
    _check_count(reply.tokens_in, len(inside), first_is_told=values[0] is not None)
    wanted = values[first : len(inside)]
    return Echo(sum(map(log_probability, wanted)), len(wanted))


def echo_agrees(wrote: Completion, echo: Completion, prompt: str) -> bool:
    """Whether a token that a server wrote has the same likelihood when the server repeats it.

    True also where nothing can be said: no token was written, or the echo splits the text
    otherwise.
    """
    told = wrote.choice.get("logprobs")
    values = told.get("token_logprobs") if isinstance(told, Mapping) else None
    if not wrote.text or not isinstance(values, list) or len(values) != 1:
        return True
    repeated = read_echo(echo, prompt, wrote.text)
    if repeated.tokens != 1:
        return True
    return abs(repeated.likelihood - log_probability(values[0])) <= _ECHO_SLACK


def _texts(tokens: object, count: int) -> list[str]:
    if tokens is None:
        raise RequestFailed(f"the server tells offsets without their tokens; {OTHER_WAYS}")
    if not isinstance(tokens, list) or len(tokens) != count:
        raise RequestFailed("the reply's tokens do not fit its log-probabilities")
    texts = [token for token in tokens if isinstance(token, str)]
    if len(texts) < count:
        raise RequestFailed("the reply's tokens are not text")
    return texts


def _without_end(tokens: Sequence[str], written: str, count: int | None) -> Sequence[str]:
    """The tokens but for those that the server went on to write."""
    if count and count < len(tokens) and not written.strip("\ufffd"):
        last = tokens[-count:]  # a part of a character, which is written as nothing
        return tokens[:-count] if any(map(_PART_OF_A_CHARACTER.fullmatch, last)) else tokens
    end, length = len(tokens), len(written)
    while length > 0 and end > 0:
        end -= 1
        length -= len(tokens[end])
    if "".join(tokens[end:]) != written:
        raise RequestFailed("the reply's tokens are not those of the prompt")
    return tokens[:end]


def _first_of_option(tokens: Sequence[str], context: str, option: str) -> int:
    """The place of the option's first token, counted back from the end of the text.

    White space at the seam belongs to the option. The text of these tokens must be the option's.
    """
    asked, earliest = context + option, len(context.rstrip())
    latest = len(context) + len(option) - len(option.lstrip())
    place, begins = len(tokens), len(asked)
    while place > 0 and begins - len(tokens[place - 1]) >= earliest:
        place -= 1
        begins -= len(tokens[place])
    joined = "".join(tokens[place:])
    if joined != asked[begins:]:
        raise RequestFailed(_not_joined(joined))
    if begins > latest or place == len(tokens):
        if not "".join(tokens).endswith(asked):
            raise RequestFailed(_not_joined("".join(tokens)))
        raise RequestFailed("no token begins where the option begins")
    if not tokens[place]:
        raise RequestFailed(f"a token without text stands before the option; {OTHER_WAYS}")
    return place


def _shift(tokens: Sequence[str], context: str) -> int | None:
    """How many characters a mark before the prompt has, such as `<|begin_of_text|>`.

    None where tokens are parts of characters, so that nobody can count. The tokens must be those of
    the context; a space that SentencePiece puts before a text is part of the mark.
    """
    joined = "".join(tokens)
    if joined.endswith(context):
        mark = joined[: len(joined) - len(context)]
        if len(mark) <= _LONGEST_MARK and mark.strip() in ("", tokens[0].strip()):
            return len(mark)
    elif _fits(joined, context) or _fits("".join(tokens[1:]), context):
        return None
    raise RequestFailed(_not_joined(joined))


def _not_joined(joined: str) -> str:
    if _PART_OF_A_CHARACTER.search(joined):
        return f"the reply's tokens are parts of characters; {OTHER_WAYS}"
    return f"the reply's tokens do not join to the prompt (lost spaces?); {OTHER_WAYS}"


def _fits(joined: str, text: str) -> bool:
    """Whether tokens join to a text; parts of characters may stand for anything."""
    first, *others = _PART_OF_A_CHARACTER.split(joined)
    if not others:
        return joined == text
    if not text.startswith(first) or not text.endswith(others[-1]):
        return False
    at, end = len(first), len(text) - len(others[-1])
    for piece in others[:-1]:
        if (at := text.find(piece, at)) < 0:
            return False
        at += len(piece)
    return at <= end


def _check_offsets(offsets: Sequence[object], tokens: Sequence[str], shift: int | None) -> None:
    """Offsets must be those of the tokens, with or without the mark before the prompt."""
    places = [as_count(place) for place in offsets]
    wrong = RequestFailed("the reply's offsets do not fit its tokens")
    if None in places or len(places) != len(tokens):
        raise wrong
    if shift is not None:
        counted = list(accumulate(map(len, tokens[:-1]), initial=0))
        if places not in (counted, [max(0, place - shift) for place in counted]):
            raise wrong


def _check_count(counted: int | None, told: int, *, first_is_told: bool) -> None:
    """Tokens of the prompt as the server counts them, against those that it gave numbers for.

    A server that leaves out the mark before the prompt tells one fewer, and then it knows the
    probability of the first token.
    """
    if counted is not None and counted - told not in ((0, 1) if first_is_told else (0,)):
        raise RequestFailed(f"the server counts {counted} tokens in the prompt and tells {told}")


def log_probability(value: object) -> float:
    """A log-probability as a server told it; RequestFailed for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestFailed("a log-probability of the option is missing or not a number")
    if value > _SLACK:
        raise RequestFailed(f"a log-probability of the option lies above 0 ({value:g})")
    return min(float(value), 0.0)
