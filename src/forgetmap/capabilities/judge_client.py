"""Asking an OpenAI-compatible endpoint, and seeing what went wrong when no answer comes."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from forgetmap.errors import InputError

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 4 * 2**20
"""Of a reply. A judge says little; a server that never stops sending must not fill the memory."""
LONGEST_PAUSE = 60.0
"""Seconds between two attempts at most, whatever the server asks for."""
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""HTTP codes that another attempt may get past."""
_HOPELESS = {401: "not authorised", 403: "forbidden", 404: "no such model or address"}
"""HTTP codes that every request would get: the run is wrong, not the item."""


class RequestFailed(Exception):
    """No reply after all attempts; the text says what the last one met."""


class _AttemptFailed(Exception):
    """One attempt failed; another may succeed, after the pause the server asks for, if it does."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Reply:
    """What the judge said, and the tokens it took."""

    text: str
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a request is tried."""

    attempts: int
    timeout: float
    """Seconds for one attempt as a whole, so that a trickle of bytes ends too."""
    pause: float
    """Seconds before the second attempt, doubled before each further one."""


class Endpoint:
    """One model behind `URL/chat/completions`, for use inside one event loop.

    Args:
        client: The open HTTP client.
        url: Base address, e.g. `http://localhost:8000/v1`.
        model: The model's name there.
        sampling: Sent along with each request, e.g. temperature and the limit of tokens.
        patience: How long and how often a request is tried.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        model: str,
        sampling: Mapping[str, Any],
        patience: Patience,
    ) -> None:
        self._client = client
        self._address = f"{url.rstrip('/')}/chat/completions"
        self._fixed = {"model": model, **sampling}
        self._patience = patience
        self._structured = True
        self.requests = 0

    async def ask(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> Reply:
        """Ask until a reply comes, at most `attempts` times.

        Raises:
            RequestFailed: If none came; the reason is that of the last attempt.
            InputError: If no request can succeed: wrong key, address or model.
        """
        reason = ""
        for attempt in range(1, self._patience.attempts + 1):
            try:
                return await self._attempt(messages, schema)
            except _AttemptFailed as failure:
                reason = str(failure)
                if attempt < self._patience.attempts:
                    await asyncio.sleep(self._wait(attempt, failure.pause))
        raise RequestFailed(f"{reason}, {self._patience.attempts} attempts")

    def _wait(self, attempt: int, asked: float | None) -> float:
        """Doubling pauses with jitter, so that many clients do not come back at one moment."""
        backoff = self._patience.pause * float(2 ** (attempt - 1)) * random.uniform(0.5, 1.5)
        return min(LONGEST_PAUSE, max(backoff, asked or 0.0))

    async def _attempt(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
    ) -> Reply:
        structured = self._structured
        status, headers, body = await self._post(self._payload(messages, schema, structured))
        if structured and status in (400, 422):
            # Either the server knows no structured output or the request itself is wrong: the same
            # request without it tells.
            status, headers, body = await self._post(self._payload(messages, schema, False))
            if status == 200:
                self._structured = False
        if status in _HOPELESS:
            raise InputError(
                f"judge {self._address}: HTTP {status}, {_HOPELESS[status]}; check URL, model and "
                "the key in FORGETMAP_JUDGE_KEY"
            )
        if status in _PASSING:
            raise _AttemptFailed(f"HTTP {status}", _retry_after(headers.get("retry-after")))
        if status != 200:
            raise RequestFailed(f"HTTP {status}")
        return _reply(body)

    def _payload(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], structured: bool
    ) -> bytes:
        payload: dict[str, Any] = {**self._fixed, "messages": messages}
        if structured:
            wanted = {"name": "verdict", "strict": True, "schema": schema}
            payload["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return orjson.dumps(payload)

    async def _post(self, payload: bytes) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        self.requests += 1
        body = bytearray()
        try:
            async with (
                asyncio.timeout(self._patience.timeout),
                self._client.stream("POST", self._address, content=payload) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise RequestFailed(f"reply of more than {MOST_BYTES // 2**20} MiB")
        except (TimeoutError, httpx.TimeoutException):
            raise _AttemptFailed(f"no reply within {self._patience.timeout:g} s") from None
        except httpx.ConnectError:
            raise _AttemptFailed("cannot be reached") from None
        except httpx.TransportError as error:
            raise _AttemptFailed(f"connection broke ({type(error).__name__})") from None
        except httpx.DecodingError:
            raise _AttemptFailed("reply cannot be decoded") from None
        return response.status_code, response.headers, bytes(body)


def _reply(body: bytes) -> Reply:
    """Take the message out of the envelope; one that is broken may be whole the next time."""
    try:
        parsed = orjson.loads(body)
        choice = parsed["choices"][0]
        text = choice["message"]["content"]
        usage = parsed.get("usage") or {}
        tokens = [usage.get(name) or 0 for name in ("prompt_tokens", "completion_tokens")]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError):
        raise _AttemptFailed("reply is no chat completion") from None
    if not all(isinstance(count, int) for count in tokens):
        raise _AttemptFailed("reply is no chat completion")
    return Reply(text if isinstance(text, str) else "", *tokens)


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait: the header holds a number or a date."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(0.0, seconds), LONGEST_PAUSE)  # in this order NaN becomes 0
