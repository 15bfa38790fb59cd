"""Asking a model server over HTTP: what may pass is tried again, what cannot pass ends at once.

What may pass (429, 5xx, a broken connection, silence) is tried again after pauses that double, with
jitter, and are no shorter than the server asks for. A server that only says that it is busy is
asked more often than one that fails. Time and size of a reply are limited, so that a server that
trickles or never stops sending cannot hold up or fill up a run.
"""

from __future__ import annotations

import asyncio
import email.utils
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from forgetmap.base.errors import InputError
from forgetmap.base.words import brief, clean

if TYPE_CHECKING:
    import httpx

LONGEST_PAUSE = 60.0
"""Seconds between two attempts at most, whatever the server asks for."""
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""HTTP codes that another attempt may get past."""
_BUSY = {429, 529}
"""HTTP codes of a server that works, but not for everybody at once."""
_BUSY_COSTS = 0.25
"""Of an attempt: at a server that turns away every second request, each one still gets through."""
_LATER = 1.25
"""Times the pause that the server asks for, at most."""
_HOPELESS = {401: "not authorised", 403: "forbidden", 404: "no such model or address"}
"""HTTP codes that every request would get: the run is wrong, not the item."""
_ENCODINGS = ("gzip", "deflate")
"""Whose bytes grow a thousandfold at most; others can make gigabytes of one packet."""
_READABLE = {"", "identity", "x-gzip", *_ENCODINGS}
_T = TypeVar("_T")
AskJson = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Posts JSON to a path of a server, and gives the JSON object that it replies."""


class AttemptFailed(Exception):
    """One attempt failed; another may succeed, after the pause the server asks for, if it does."""

    def __init__(self, reason: str, pause: float = 0.0, cost: float = 1.0) -> None:
        super().__init__(reason)
        self.pause = pause
        self.cost = cost
        """How much patience it takes; less than 1 for a server that is only busy."""


class RequestFailed(Exception):
    """No reply, and no further attempt is worth while; the text says what the last one met."""


class Refused(RequestFailed):
    """What every request would meet, unless the server has answered some: the run is wrong."""


class GaveUp(RequestFailed):
    """Every attempt failed, with pauses in between: the server may be down."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a request is tried."""

    attempts: int
    timeout: float
    """Seconds for one attempt as a whole, so that a trickle of bytes ends too."""
    pause: float
    """Seconds before the second attempt, doubled before each further one."""

    async def keep_trying(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Call until it succeeds, with pauses in between.

        Raises:
            GaveUp: If every attempt failed; the reason is that of the last one.

        Example:
            >>> async def busy():
            ...     raise AttemptFailed("HTTP 503")
            >>> asyncio.run(Patience(2, timeout=1, pause=0.001).keep_trying(busy))
            Traceback (most recent call last):
            ...
            forgetmap.base.http.GaveUp: HTTP 503, 2 attempts
        """
        left, tried = float(self.attempts), 0
        while True:
            try:
                return await attempt()
            except AttemptFailed as failure:
                tried += 1
                left -= failure.cost
                if left <= 0:
                    raise GaveUp(f"{failure}, {tried} attempts") from None
                await asyncio.sleep(self._wait(tried - 1, failure.pause))

    def _wait(self, number: int, asked: float) -> float:
        """Seconds: never fewer than the server asks for, and not many more than a minute.

        Jitter keeps many clients from coming back at one moment.
        """
        longest = min(LONGEST_PAUSE, 1.5 * self.pause * 2.0 ** min(number, 50))
        return max(longest * random.uniform(1 / 3, 1), asked * random.uniform(1.0, _LATER))


class Response(NamedTuple):
    """What a server sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def check(self, advice: str) -> None:
        """Raise for every status but 200.

        Args:
            advice: What to do about a wrong key, address or model.

        Raises:
            AttemptFailed: For a status that another attempt may get past.
            Refused: For one that every request would get: wrong key, address or model.
            RequestFailed: For any other.

        Example:
            >>> Response(404, {}, b"").check("check the model's name")
            Traceback (most recent call last):
            ...
            forgetmap.base.http.Refused: HTTP 404, no such model or address; check the model's name
        """
        if self.status in _PASSING:
            asked = self.headers.get("retry-after")
            is_busy = self.status in _BUSY or (self.status == 503 and asked is not None)
            cost = _BUSY_COSTS if is_busy else 1.0
            raise AttemptFailed(f"HTTP {self.status}", retry_after(asked), cost)
        if self.status in _HOPELESS:
            raise Refused(f"HTTP {self.status}, {_HOPELESS[self.status]}; {advice}")
        if 300 <= self.status < 400:
            raise RequestFailed(f"HTTP {self.status}, the address leads elsewhere; {advice}")
        if self.status != 200:
            raise RequestFailed(f"HTTP {self.status} ({clean(self.said, 120)})")

    @property
    def said(self) -> str:
        """The beginning of the body, for people."""
        return self.body[:2000].decode("utf-8", "replace")


def check_address(url: str, who: str, key_variable: str) -> None:
    """Refuse what is not an address, and one that holds a key, which every error would print."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{who} {url}: is not an address; write e.g. http://localhost:8000/v1")
    if parts.username is not None:
        raise InputError(f"{who}: no key in the address; put it into {key_variable}")


def headers_with_key(key_variable: str) -> dict[str, str]:
    """The headers of a request, with the key that an environment variable holds."""
    headers = {"content-type": "application/json", "accept-encoding": ", ".join(_ENCODINGS)}
    if key := os.environ.get(key_variable, "").strip():
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{key_variable}: holds characters that no key has")
        headers["authorization"] = f"Bearer {key}"
    return headers


async def post(
    client: httpx.AsyncClient, url: str, payload: bytes, *, timeout: float, most_bytes: int
) -> Response:
    """Send one request and read the whole reply.

    Args:
        client: The open HTTP client.
        url: The address.
        payload: JSON.
        timeout: Seconds for all of it.
        most_bytes: The largest reply that is read.

    Raises:
        AttemptFailed: If no whole reply came; another attempt may succeed.
        RequestFailed: If the reply is too large.
        InputError: If the address is none.
    """
    return await _send(client, "POST", url, payload, timeout, most_bytes)


async def get(client: httpx.AsyncClient, url: str, *, timeout: float, most_bytes: int) -> Response:
    """Read the whole reply to a request without content; it raises what `post` raises."""
    return await _send(client, "GET", url, None, timeout, most_bytes)


async def _send(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    payload: bytes | None,
    timeout: float,
    most_bytes: int,
) -> Response:
    import httpx

    body = bytearray()
    try:
        async with (
            asyncio.timeout(timeout),
            client.stream(method, url, content=payload) as response,
        ):
            if response.headers.get("content-encoding", "identity").lower() not in _READABLE:
                raise AttemptFailed("reply cannot be decoded")
            async for part in response.aiter_bytes():
                body += part
                if len(body) > most_bytes:
                    raise RequestFailed(f"reply of more than {most_bytes // 2**20} MiB")
    except (TimeoutError, httpx.TimeoutException):
        raise AttemptFailed(f"no reply within {timeout:g} s") from None
    except httpx.ConnectError:
        raise AttemptFailed("cannot be reached") from None
    except httpx.DecodingError:
        raise AttemptFailed("reply cannot be decoded") from None
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise AttemptFailed(f"connection broke ({type(error).__name__})") from None
    except httpx.InvalidURL as error:
        raise InputError(f"{url}: is not an address ({brief(error)})") from error
    return Response(response.status_code, response.headers, bytes(body))


def retry_after(header: str | None) -> float:
    """Seconds to wait: the header holds a number or a date; 0 where it says nothing.

    Example:
        >>> retry_after("2.5"), retry_after("soon"), retry_after(None)
        (2.5, 0.0, 0.0)
    """
    try:
        seconds = float(header or 0)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return min(max(0.0, seconds), LONGEST_PAUSE)  # in this order NaN becomes 0
