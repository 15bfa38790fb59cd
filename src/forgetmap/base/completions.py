"""What an OpenAI-compatible server replied, read strictly: a failure never becomes an answer.

A reply counts only if it is one whole completion: one choice, a text, and a known reason for its
end. Anything else is a failure with its reason. What another attempt may get past is an
`AttemptFailed`; what the same question would meet again is a `RequestFailed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from forgetmap.base.http import AttemptFailed, RequestFailed
from forgetmap.base.words import clean

_ENDED = frozenset({"stop", "stop_sequence", "end_turn", "eos", "eos_token"})
"""Reasons for which a text ends by itself; servers have several words for it."""
_CUT = frozenset({"length", "max_tokens", "model_length"})
"""Reasons for which a text is cut off at its limit."""
_NOT_WRITTEN = {
    "content_filter": "the server's filter withheld the answer",
    "tool_calls": "the model called a tool instead of writing an answer",
    "function_call": "the model called a tool instead of writing an answer",
}
"""Reasons that the same question meets again."""
_SLACK = 1e-3
"""A log-probability may lie above 0 by this much, from rounding in half precision."""
_LONGEST_MARK = 64
"""Characters of a token before the prompt, such as `<|begin_of_text|>`."""


class Completion(NamedTuple):
    """A whole reply."""

    text: str
    finished: bool
    """False for a text that was cut off at its limit."""
    choice: Mapping[str, Any]
    tokens_in: int | None
    """As the server counts them; None where it does not say, or says something odd."""
    tokens_out: int | None


class Echo(NamedTuple):
    """The likelihood of a given text, of which the server told the log-probabilities."""

    likelihood: float
    tokens: int


class NotEchoed(RequestFailed):
    """The server does not tell the likelihood of a given text."""


def read_completion(body: bytes, *, chat: bool, scored: bool = False) -> Completion:
    """Take the one completion out of a reply.

    Args:
        body: What the server sent.
        chat: Whether a message is expected, or a plain text.
        scored: Whether a given text was only scored; then nobody needs to know why it ended.

    Raises:
        AttemptFailed: If the reply is broken, or tells of a failure that may pass.
        RequestFailed: If the reply is whole and is not a text.

    Example:
        >>> body = b'{"choices": [{"text": "Paris", "finish_reason": "stop"}]}'
        >>> read_completion(body, chat=False).text
        'Paris'
        >>> read_completion(body.replace(b"stop", b"abort"), chat=False)
        Traceback (most recent call last):
        ...
        forgetmap.base.http.AttemptFailed: the text ended for an unknown reason (abort)
    """
    reply = _envelope(body)
    choice = _only_choice(reply)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in _NOT_WRITTEN:
        raise RequestFailed(_NOT_WRITTEN[reason])
    if not (isinstance(reason, str) and reason in _ENDED | _CUT) and not (
        scored and reason is None
    ):
        said = "none given" if reason is None else clean(reason, 40)
        raise AttemptFailed(f"the text ended for an unknown reason ({said})")
    text = _message(choice) if chat else choice.get("text")
    if not isinstance(text, str):
        raise AttemptFailed("the reply is not a completion (it has no text)")
    usage = reply.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    tokens = (_count(counts.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Completion(text, reason not in _CUT, choice, *tokens)


def _envelope(body: bytes) -> dict[str, Any]:
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise AttemptFailed("the reply is not a completion (not JSON)") from None
    if not isinstance(reply, dict):
        raise AttemptFailed("the reply is not a completion (not a JSON object)")
    _check_error(reply)
    return reply


def _check_error(part: Mapping[str, Any]) -> None:
    if error := part.get("error"):
        said = error.get("message") if isinstance(error, Mapping) else error
        raise AttemptFailed(f"the server reports an error ({clean(said, 120)})")


def _only_choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise AttemptFailed("the reply is not a completion (no choices)")
    if len(choices) > 1:
        raise AttemptFailed(f"the reply has {len(choices)} choices, one was asked for")
    [choice] = choices
    if not isinstance(choice, Mapping):
        raise AttemptFailed("the reply is not a completion (its choice is not an object)")
    _check_error(choice)
    if choice.get("index") not in (None, 0):
        raise AttemptFailed("the reply's choice has another number than 0, one was asked for")
    return choice


def _message(choice: Mapping[str, Any]) -> str:
    """The text of a message, which may come in parts."""
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise AttemptFailed("the reply is not a completion (it has no message)")
    _check_error(message)
    content = message.get("content")
    if isinstance(content, list) and content:
        content = "".join(_part(part) for part in content)
    if isinstance(content, str):
        return content
    if message.get("tool_calls") or message.get("function_call"):
        raise RequestFailed(_NOT_WRITTEN["tool_calls"])
    if message.get("reasoning_content") or message.get("reasoning"):
        raise RequestFailed("the reply holds reasoning but no answer; allow more tokens")
    raise AttemptFailed("the reply is not a completion (it has no text)")


def _part(part: object) -> str:
    if isinstance(part, Mapping) and part.get("type") in ("text", "output_text"):
        text = part.get("text")
        if isinstance(text, str):
            return text
    raise RequestFailed("the reply holds parts that are not text")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# --- likelihoods of a given text ------------------------------------------------------------------


def read_echo(reply: Completion, context: str, option: str) -> Echo:
    """Sum the log-probabilities of an option's tokens, behind a context.

    The server was asked to repeat context and option with the log-probability of each token. Where
    it did something else, its numbers belong to another text: offsets and counts are checked.

    Raises:
        RequestFailed: If the numbers are not those of this text.
        NotEchoed: If the server tells none at all, or those of a text of its own.

    Example:
        >>> told = {"token_logprobs": [None, -0.5, -2.0], "text_offset": [0, 4, 7]}
        >>> read_echo(Completion("The sky is", True, {"logprobs": told}, 3, 0), "The sky", " is")
        Echo(likelihood=-2.0, tokens=1)
    """
    asked = context + option
    told = reply.choice.get("logprobs")
    values = told.get("token_logprobs") if isinstance(told, Mapping) else None
    offsets = told.get("text_offset") if isinstance(told, Mapping) else None
    if not isinstance(values, list) or not isinstance(offsets, list) or not values:
        raise NotEchoed("the server does not tell the likelihood of a given text; use --letters")
    if not 0 <= reply.text.find(asked) <= _LONGEST_MARK:
        raise NotEchoed("the server does not repeat the prompt (it ignores `echo`); use --letters")
    places = _places(offsets, len(values))
    shift = _shift(told.get("tokens") if isinstance(told, Mapping) else None, places, asked)
    end = shift + len(asked)
    inside = sum(offset < end for offset in places)
    if inside < len(places) and reply.text.endswith(asked):
        raise RequestFailed("the reply's offsets lie behind the end of its text")
    _check_count(reply.tokens_in, inside, first_is_told=values[0] is not None)
    start = shift + len(context.rstrip())
    wanted = [place for place, offset in enumerate(places) if start <= offset < end]
    latest = shift + len(context) + len(option) - len(option.lstrip())
    if not wanted or places[wanted[0]] > latest:
        raise RequestFailed("no token begins where the option begins")
    return Echo(sum(_log_probability(values[place]) for place in wanted), len(wanted))


def _places(offsets: Sequence[object], count: int) -> list[int]:
    places = [place for place in offsets if _count(place) is not None and isinstance(place, int)]
    in_order = all(one <= two for one, two in pairwise(places))
    if len(places) != len(offsets) or len(places) != count or not in_order or places[0] != 0:
        raise RequestFailed("the reply's offsets do not fit its log-probabilities")
    return places


def _shift(tokens: object, places: Sequence[int], asked: str) -> int:
    """How far offsets are moved by a mark before the prompt, such as `<|begin_of_text|>`."""
    if tokens is None:
        return 0
    if not isinstance(tokens, list) or len(tokens) != len(places):
        raise RequestFailed("the reply's tokens do not fit its log-probabilities")
    if not all(isinstance(token, str) for token in tokens):
        raise RequestFailed("the reply's tokens are not text")
    whole = "".join(tokens)
    at = whole.find(asked)
    if at < 0 and ("\ufffd" in whole or "bytes:" in whole):
        return 0  # parts of characters cannot be put together again
    if not 0 <= at <= _LONGEST_MARK:
        raise RequestFailed("the reply's tokens are not those of the prompt")
    in_tokens = places[-1] + len(tokens[-1]) == len(whole)
    return at if in_tokens else 0


def _check_count(counted: int | None, told: int, *, first_is_told: bool) -> None:
    """Tokens of the prompt as the server counts them, against those that it gave numbers for.

    A server that leaves out the mark before the prompt tells one fewer, and then it knows the
    probability of the first token.
    """
    if counted is not None and counted - told not in ((0, 1) if first_is_told else (0,)):
        raise RequestFailed(f"the server counts {counted} tokens in the prompt and tells {told}")


def _log_probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestFailed("a log-probability of the option is missing or not a number")
    if value > _SLACK:
        raise RequestFailed(f"a log-probability of the option lies above 0 ({value:g})")
    return min(float(value), 0.0)
