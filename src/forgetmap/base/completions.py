"""What an OpenAI-compatible server replied, read strictly: a failure never becomes an answer.

A reply counts only if it is one whole completion: one choice, a text, and a known reason for its
end. Anything else is a failure with its reason. What another attempt may get past is an
`AttemptFailed`; what the same question would meet again is a `RequestFailed`.
"""

from __future__ import annotations

from collections.abc import Mapping
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
_ABOUT_THE_PROMPT = ("prompt_logprobs", "prompt_token_ids")
"""vLLM puts them into the choice of a text, and beside the choices of a chat."""


class Completion(NamedTuple):
    """A whole reply."""

    text: str
    finished: bool
    """False for a text that was cut off at its limit."""
    choice: Mapping[str, Any]
    tokens_in: int | None
    """As the server counts them; None where it does not say, or says something odd."""
    tokens_out: int | None


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
    reply = read_object(body)
    choice = _only_choice(reply)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in _NOT_WRITTEN:
        raise RequestFailed(_NOT_WRITTEN[reason])
    if not (isinstance(reason, str) and reason in _ENDED | _CUT) and not (
        scored and reason is None
    ):
        said = "none given" if reason is None else clean(reason, 40)
        raise AttemptFailed(f"the text ended for an unknown reason ({said})")
    if scored:
        choice = {name: reply[name] for name in _ABOUT_THE_PROMPT if name in reply} | dict(choice)
    is_told = scored and choice.get("prompt_logprobs") is not None
    text = _message(choice) if chat and not is_told else choice.get("text", "" if chat else None)
    if not isinstance(text, str):
        raise AttemptFailed("the reply is not a completion (it has no text)")
    usage = reply.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    tokens = (as_count(counts.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Completion(text, reason not in _CUT, choice, *tokens)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a reply; AttemptFailed where it is none, or tells of an error."""
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


def as_count(value: object) -> int | None:
    """A whole number from 0 on; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
