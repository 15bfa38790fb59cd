"""The HTTP client of evaluation and judge: when to wait, when to try again, when to stop."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest

from forgetmap.base import http as http_client
from forgetmap.base.errors import InputError
from forgetmap.base.http import (
    AttemptFailed,
    Patience,
    Refused,
    RequestFailed,
    Response,
    retry_after,
)


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
    longest = http_client.LONGEST_PAUSE
    assert 20 <= pauses[0] <= 25
    assert pauses[1] >= 1e9, "what a header may ask for is limited where it is read"
    assert retry_after("1e9") == longest


def test_pauses_have_a_cap_and_jitter_there_too(pauses):
    asyncio.run(Patience(30, timeout=1, pause=1.0).keep_trying(failing(*[0] * 25)))
    late = pauses[10:]
    assert all(20 <= pause <= http_client.LONGEST_PAUSE for pause in late)
    assert len(set(late)) == len(late)


def test_a_busy_server_is_asked_more_often_than_a_broken_one(pauses):
    tried = {}
    for status in (429, 500):
        count = 0

        async def attempt(status=status):
            nonlocal count
            count += 1
            Response(status, {}, b"").check("")

        with pytest.raises(RequestFailed, match=f"HTTP {status}, "):
            asyncio.run(Patience(6, timeout=1, pause=0.001).keep_trying(attempt))
        tried[status] = count
    assert tried == {429: 24, 500: 6}


def test_after_the_last_attempt_nobody_waits(pauses):
    with pytest.raises(RequestFailed, match="HTTP 429, 3 attempts"):
        asyncio.run(Patience(3, timeout=1, pause=1.0).keep_trying(failing(*[0] * 9)))
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_what_may_pass_is_an_attempt_that_failed(status):
    with pytest.raises(AttemptFailed, match=str(status)) as failure:
        Response(status, {"retry-after": "7"}, b"").check("wait")
    assert failure.value.pause == 7


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_cannot_pass_says_what_to_check(status):
    with pytest.raises(Refused, match=rf"^HTTP {status}, .*; check the key$"):
        Response(status, {}, b"").check("check the key")


@pytest.mark.parametrize("status", [204, 206, 302, 400, 413, 418, 501])
def test_every_other_code_is_a_request_that_failed(status):
    with pytest.raises(RequestFailed, match=f"HTTP {status}"):
        Response(status, {}, b"{}").check("")


def test_only_200_is_a_reply():
    Response(200, {}, b"").check("")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("localhost:8000/v1", "is not an address"),
        ("http://:80/v1", "is not an address"),
        ("http://host:port/v1", "is not an address"),
        ("http://[::1/v1", "is not an address"),
        ("http://me:secret@host/v1", "no key in the address"),
    ],
)
def test_an_address_is_checked_and_holds_no_key(url, says):
    with pytest.raises(InputError, match=says) as refusal:
        http_client.check_address(url, "endpoint", "KEY")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("key", ["line\nbreak", "clé", "bell\x07"])
def test_a_key_that_no_header_can_hold_is_one_clear_line(monkeypatch, key):
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(InputError, match="SOME_KEY: holds characters"):
        http_client.headers_with_key("SOME_KEY")


def test_an_address_that_is_none_is_one_clear_line():
    httpx = pytest.importorskip("httpx", reason="needs httpx")

    async def ask():
        async with httpx.AsyncClient() as client:
            await http_client.post(client, "http://host:port/v1", b"{}", timeout=1, most_bytes=10)

    with pytest.raises(InputError, match="is not an address"):
        asyncio.run(ask())
