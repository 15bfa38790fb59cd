"""The HTTP client of evaluation and judge: when to wait, when to try again, when to stop."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest

from forgetmap.base import http as http_client
from forgetmap.base.errors import InputError
from forgetmap.base.http import AttemptFailed, Patience, RequestFailed, Response, retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("2.5", 2.5), ("99999", 60), ("-4", 0), ("nan", 0), ("soon", 0), ("", 0), (None, 0)],
)
def test_retry_after_in_its_odd_forms(header, seconds):
    assert retry_after(header) == seconds


def test_retry_after_may_be_a_date():
    assert 20 < retry_after(formatdate(time.time() + 30, usegmt=True)) <= 30
    assert retry_after(formatdate(time.time() - 30, usegmt=True)) == 0


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that would have been slept."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(http_client.asyncio, "sleep", sleep)
    return slept


def failing(*pauses):
    """Fails once for each pause the server asks for, then succeeds."""
    left = list(pauses)

    async def attempt():
        if left:
            raise AttemptFailed("HTTP 429", left.pop(0))
        return "done"

    return attempt


def test_pauses_double_with_jitter(pauses):
    asyncio.run(Patience(6, timeout=1, pause=1.0).keep_trying(failing(0, 0, 0, 0)))
    assert len(pauses) == 4
    assert all(0.5 * 2**n <= pause <= 1.5 * 2**n for n, pause in enumerate(pauses))


def test_the_server_may_ask_for_longer_but_not_for_ever(pauses):
    patience = Patience(3, timeout=1, pause=0.001)
    assert asyncio.run(patience.keep_trying(failing(20.0, 1e9))) == "done"
    assert pauses == [20.0, http_client.LONGEST_PAUSE]


def test_after_the_last_attempt_nobody_waits(pauses):
    with pytest.raises(RequestFailed, match="HTTP 429, 3 attempts"):
        asyncio.run(Patience(3, timeout=1, pause=1.0).keep_trying(failing(*[0] * 9)))
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_what_may_pass_is_an_attempt_that_failed(status):
    with pytest.raises(AttemptFailed, match=str(status)) as failure:
        Response(status, {"retry-after": "7"}, b"").check("here", "wait")
    assert failure.value.pause == 7


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_cannot_pass_says_what_to_check(status):
    with pytest.raises(InputError, match=rf"^here: HTTP {status}, .*; check the key$"):
        Response(status, {}, b"").check("here", "check the key")


@pytest.mark.parametrize("status", [200, 400, 413, 418])
def test_other_codes_are_the_caller_s_to_judge(status):
    Response(status, {}, b"").check("here", "")


def test_an_address_that_is_none_is_one_clear_line():
    httpx = pytest.importorskip("httpx", reason="needs httpx")

    async def ask():
        async with httpx.AsyncClient() as client:
            await http_client.post(client, "http://host:port/v1", b"{}", timeout=1, most_bytes=10)

    with pytest.raises(InputError, match="is not an address"):
        asyncio.run(ask())
