"""Posting JSON to a model server: what may pass is tried again, what cannot pass ends at once.

What may pass (429, 5xx, a broken connection, silence) is tried again after pauses that double, with
jitter, and are no shorter than the server asks for. Time and size of a reply are limited, so that a
server that trickles or never stops sending cannot hold up or fill up a run.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from forgetmap.base.errors import InputError
from forgetmap.base.words import brief

if TYPE_CHECKING:
    import httpx

LONGEST_PAUSE = 60.0
"""Seconds between two attempts at most, whatever the server asks for."""
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""HTTP codes that another attempt may get past."""
_HOPELESS = {401: "not authorised", 403: "forbidden", 404: "no such model or address"}
"""HTTP codes that every request would get: the run is wrong, not the item."""
_T = TypeVar("_T")


class AttemptFailed(Exception):
    """One attempt failed; another may succeed, after the pause the server asks for, if it does."""

    def __init__(self, reason: str, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


class RequestFailed(Exception):
    """No reply, and no further attempt is worth while; the text says what the last one met."""


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
            RequestFailed: If every attempt failed; the reason is that of the last one.

        Example:
            >>> async def busy():
            ...     raise AttemptFailed("HTTP 503")
            >>> asyncio.run(Patience(2, timeout=1, pause=0.001).keep_trying(busy))
            Traceback (most recent call last):
            ...
            forgetmap.base.http.RequestFailed: HTTP 503, 2 attempts
        """
        reason = ""
        for number in range(self.attempts):
            try:
                return await attempt()
            except AttemptFailed as failure:
                reason = str(failure)
                if number + 1 < self.attempts:
                    await asyncio.sleep(self._wait(number, failure.pause))
        raise RequestFailed(f"{reason}, {self.attempts} attempts")

    def _wait(self, number: int, asked: float) -> float:
        """Jitter keeps many clients from coming back at one moment."""
        backoff = self.pause * float(2**number) * random.uniform(0.5, 1.5)
        return min(LONGEST_PAUSE, max(backoff, asked))


class Response(NamedTuple):
    """What a server sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def check(self, who: str, advice: str) -> None:
        """Raise for a status that may pass, and for one that no request would get past.

        Args:
            who: What an error begins with: the address.
            advice: What to do about a status that cannot pass.

        Raises:
            AttemptFailed: For a status that another attempt may get past.
            InputError: For one that every request would get: wrong key, address or model.

        Example:
            >>> Response(404, {}, b"").check("http://localhost/v1", "check the model's name")
            Traceback (most recent call last):
            ...
            forgetmap.base.errors.InputError: http://localhost/v1: HTTP 404, ...
        """
        if self.status in _PASSING:
            pause = retry_after(self.headers.get("retry-after"))
            raise AttemptFailed(f"HTTP {self.status}", pause)
        if self.status in _HOPELESS:
            raise InputError(f"{who}: HTTP {self.status}, {_HOPELESS[self.status]}; {advice}")


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
    import httpx

    body = bytearray()
    try:
        async with (
            asyncio.timeout(timeout),
            client.stream("POST", url, content=payload) as response,
        ):
            async for part in response.aiter_bytes():
                body += part
                if len(body) > most_bytes:
                    raise RequestFailed(f"reply of more than {most_bytes // 2**20} MiB")
    except (TimeoutError, httpx.TimeoutException):
        raise AttemptFailed(f"no reply within {timeout:g} s") from None
    except httpx.ConnectError:
        raise AttemptFailed("cannot be reached") from None
    except httpx.TransportError as error:
        raise AttemptFailed(f"connection broke ({type(error).__name__})") from None
    except httpx.DecodingError:
        raise AttemptFailed("reply cannot be decoded") from None
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
        except ValueError:
            return 0.0
    return min(max(0.0, seconds), LONGEST_PAUSE)  # in this order NaN becomes 0
