"""A model server on loopback that misbehaves in many named ways, and what must come of each.

Each mode says what it does to the replies, and what must follow: the right answer all the same, or
a failure that is counted. `broken_promises` runs an evaluation against a mode and returns what went
wrong: a number made of a failure, an error that is not one clear line, a wait beyond the time-out.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import re
import ssl
import threading
import time
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from forgetmap.base import http as http_client
from forgetmap.base.errors import InputError
from forgetmap.evaluate import endpoint
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT = 0.3
"""Seconds for one attempt."""
MOST_BYTES = 2**18
"""Of a reply."""
ATTEMPTS = 2
LONGEST_RUN = 8.0
"""Seconds that an evaluation of a few items may take under the limits above, on a busy machine."""

# --- the server -----------------------------------------------------------------------------------


@dataclass
class Exchange:
    """One request, and the wire on which to reply."""

    asked: dict[str, Any]
    attempt: int
    """1 for the first request with this prompt."""
    writer: asyncio.StreamWriter

    @property
    def prompt(self) -> str:
        return str(self.asked.get("prompt") or self.asked["messages"][-1]["content"])

    def send(
        self,
        body: bytes | object,
        status: int = 200,
        headers: str = "content-type: application/json\r\n",
        length: int | None = None,
    ) -> None:
        """Reply as HTTP wants it, but for what the caller changes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        size = len(content) if length is None else length
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {size}\r\n{headers}\r\n"
        self.writer.write(head.encode("latin-1") + content)

    def hang_up(self) -> None:
        self.writer.transport.abort()

    def honest(self) -> dict[str, Any]:
        """The reply of a server that does what it is asked."""
        if self.asked.get("echo"):
            return echo_of(self.prompt)
        if "logprobs" in self.asked:  # with which likelihood does it write? It writes nothing
            silent = {"index": 0, "finish_reason": "stop", "text": ""}
            return {"choices": [silent], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}
        number = int(re.findall(r"(\d+) plus", self.prompt)[-1])
        text = f" {2 * number}\n"
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if "messages" in self.asked:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        return {"id": "x", "object": "completion", "choices": [choice], "usage": usage}


def echo_of(prompt: str, first: str = "") -> dict[str, Any]:
    """A prompt with the log-probability of each word: the further from the end, the less likely."""
    tokens = ([first] if first else []) + re.findall(r"\s*\S+|\s+$", prompt)
    places = [sum(map(len, tokens[:n])) for n in range(len(tokens))]
    whole = len("".join(tokens))
    told = {
        "tokens": tokens,
        "text_offset": places,
        "token_logprobs": [None, *(-0.1 * (whole - place) for place in places[1:])],
        "top_logprobs": None,
    }
    choice = {"index": 0, "text": prompt, "logprobs": told, "finish_reason": "length"}
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 0, "total_tokens": len(tokens)}
    return {"id": "x", "object": "text_completion", "choices": [choice], "usage": usage}


def ids_of(prompt: str, *, listed: bool = True, last: str = "") -> dict[str, Any]:
    """The reply of vLLM to `prompt_logprobs` and `return_token_ids`, behind a first token.

    Tokens are decoded one by one, so they have lost their spaces; with `echo` and ids vLLM repeats
    no text.
    """
    echoed = echo_of(prompt, first="<s>")
    told = echoed["choices"][0].pop("logprobs")
    tokens = [*told["tokens"], *([last] if last else [])]
    values = [*told["token_logprobs"], *([-1.0] if last else [])]
    ids = [zlib.crc32(token.encode()) % 32_000 for token in tokens]
    echoed["choices"][0] |= {
        "text": "",
        "prompt_logprobs": [
            None if value is None else {str(one): _entry(value, token.strip())}
            for one, value, token in zip(ids, values, tokens, strict=True)
        ],
        **({"prompt_token_ids": ids} if listed else {}),
    }
    echoed["usage"]["prompt_tokens"] = len(ids)
    return echoed


def _entry(value: float, token: str) -> dict[str, Any]:
    return {"logprob": value, "rank": 1, "decoded_token": token}


class HostileEndpoint:
    """Serves on loopback; prompts that `is_hit` picks get the mode's reply, others an honest one.

    Example: `with HostileEndpoint(MODES["HTML"], lambda prompt: True) as server: ... server.name`
    """

    def __init__(self, mode: Mode, is_hit: Callable[[str], bool]) -> None:
        self.mode, self.is_hit = mode, is_hit
        self.attempts: Counter[str] = Counter()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    def __enter__(self) -> HostileEndpoint:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _main(self) -> None:
        self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            self.name = f"http://127.0.0.1:{port}/v1#toy"
            self._ready.set()
            await self._stop.wait()
            for task, writer in self._open.items():
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open[task] = writer
        try:
            while not writer.transport.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                if head.startswith("GET "):  # its models: it has no such list
                    Exchange({}, 0, writer).send(b"no", 404)
                    await writer.drain()
                    continue
                found = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
                asked = json.loads(await reader.readexactly(int(found[1]) if found else 0))
                await self._reply(asked, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        exchange = Exchange(asked, 0, writer)
        self.attempts[exchange.prompt] += 1
        exchange.attempt = self.attempts[exchange.prompt]
        if not self.is_hit(exchange.prompt):
            exchange.send(exchange.honest())
            return
        waiting = self.mode.behave(exchange)
        if waiting is not None:
            await waiting


# --- ways to misbehave ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Mode:
    """One way to misbehave, and what must come of it."""

    name: str
    asks: Literal["text", "chat", "options"]
    must: Literal["right", "fail", "be unanswerable"]
    """Be answered right all the same; be counted as failed; or be counted, and not asked again."""
    behave: Any = field(repr=False)
    says: str = ""
    """A part of the reason that is given."""


MODES: dict[str, Mode] = {}


def _add(name: str, asks: Any, must: Any, behave: Any, says: str = "") -> None:
    assert name not in MODES, name
    MODES[name] = Mode(name, asks, must, behave, says)


def _reply(change: Callable[[dict[str, Any], Exchange], Any]) -> Any:
    """Change an honest reply; what the change returns goes out instead, if it returns anything."""

    def behave(exchange: Exchange) -> None:
        reply = exchange.honest()
        changed = change(reply, exchange)
        exchange.send(reply if changed is None else changed)

    return behave


def _choice(**fields: Any) -> Any:
    """Set fields of the choice; `...` takes one away."""

    def change(reply: dict[str, Any], _exchange: Exchange) -> None:
        for name, value in fields.items():
            reply["choices"][0].pop(name, None)
            if value is not ...:
                reply["choices"][0][name] = value

    return _reply(change)


def _top(**fields: Any) -> Any:
    return _reply(lambda reply, _exchange: {**reply, **fields})


def _body(content: bytes, headers: str = "content-type: application/json\r\n") -> Any:
    return lambda exchange: exchange.send(content, headers=headers)


def _status(code: int, headers: str = "", body: bytes = b"no") -> Any:
    return lambda exchange: exchange.send(body, code, headers)


def _first(times: int, trouble: Any) -> Any:
    """Trouble at first; then an honest reply."""

    def behave(exchange: Exchange) -> Any:
        if exchange.attempt <= times:
            return trouble(exchange)
        return exchange.send(exchange.honest())

    return behave


_add("honest", "text", "right", _reply(lambda *_: None))
_add("cut off behind the answer", "text", "right", _choice(finish_reason="length"))
for _word in ("abort", "error", "cancelled", "STOP", ""):
    _add(f"finish_reason {_word!r}", "text", "fail", _choice(finish_reason=_word), "unknown reason")
for _odd in (None, 7, ["stop"], {"type": "stop"}, True):
    _add(f"finish_reason is {_odd!r}", "text", "fail", _choice(finish_reason=_odd), "unknown")
_add("finish_reason missing", "text", "fail", _choice(finish_reason=...), "none given")
_add("content filter", "text", "fail", _choice(finish_reason="content_filter"), "filter")
for _label, _choices in {
    "null": None,
    "missing": ...,
    "empty": [],
    "[null]": [None],
    "of a string": ["4"],
    "of a number": [4],
    "of a list": [["text", "4"]],
    "an object": {"text": "4"},
    "a string": "4",
}.items():
    _add(
        f"choices {_label}",
        "text",
        "fail",
        _reply(
            lambda reply, _exchange, _choices=_choices: {
                **{name: value for name, value in reply.items() if name != "choices"},
                **({} if _choices is ... else {"choices": _choices}),
            }
        ),
        "not a completion",
    )
for _label, _text in {"missing": ..., "null": None, "4": 4, "true": True, "a list": ["4"]}.items():
    _add(f"text {_label}", "text", "fail", _choice(text=_text), "no text")
_add("text where a message was asked for", "chat", "fail", _choice(message=..., text=" 4"))
_add("message where a text was asked for", "text", "fail", _choice(text=..., message={}))
_add("error object with 200", "text", "fail", _body(b'{"error": {"message": "no"}}'), "error (no)")
_add("error text beside an answer", "text", "fail", _top(error="overloaded"), "overloaded")
_add("error object beside an answer", "chat", "fail", _top(error={"code": 500}), "error")
_add("error inside the choice", "text", "fail", _choice(error={"message": "upstream"}), "upstream")
_add("error null", "text", "right", _top(error=None))
for _label, _usage in {
    "null": None,
    "a string": "many",
    "a list": [1],
    "of strings": {"completion_tokens": "two"},
    "negative": {"completion_tokens": -2},
    "a fraction": {"completion_tokens": 1.5},
    "a list inside": {"completion_tokens": [2], "prompt_tokens": {}},
}.items():
    _add(f"usage {_label}", "text", "right", _top(usage=_usage))
_add("duplicated choices", "text", "fail", _reply(lambda r, _: {**r, "choices": 2 * r["choices"]}))
for _odd in (1, -1, "0", [0]):
    _add(f"index is {_odd!r}", "text", "fail", _choice(index=_odd), "number")

_parts = [{"type": "text", "text": " "}, {"type": "text", "text": "PART"}]


def _content(content: Any, **more: Any) -> Any:
    """A message with this content; PART stands for the right answer."""

    def change(reply: dict[str, Any], _exchange: Exchange) -> Any:
        said = reply["choices"][0]["message"]["content"].strip()
        message = {"role": "assistant", **more}
        if content is not ...:
            message["content"] = content
        reply["choices"][0]["message"] = message
        return json.loads(json.dumps(reply).replace("PART", said))

    return _reply(change)


_image = {"type": "image_url", "image_url": {"url": "data:,"}}
_add("honest chat", "chat", "right", _reply(lambda *_: None))
_add("content in parts", "chat", "right", _content(_parts))
_add("content in parts, one an image", "chat", "fail", _content([*_parts, _image]), "not text")
_add("content in parts without a type", "chat", "fail", _content([{"text": "PART"}]), "not text")
_add("content in parts of null", "chat", "fail", _content([None]), "not text")
_add("content in parts of strings", "chat", "fail", _content(["PART"]), "not text")
_add(
    "content in parts with a null text", "chat", "fail", _content([{"type": "text", "text": None}])
)
_add("content in no parts", "chat", "fail", _content([]), "no text")
_add("content null", "chat", "fail", _content(None), "no text")
_add("content missing", "chat", "fail", _content(...), "no text")
_add("content a number", "chat", "fail", _content(4), "no text")
_add("content an object", "chat", "fail", _content({"text": "PART"}), "no text")
_add("reasoning alone", "chat", "fail", _content(None, reasoning_content="It is PART"), "reasoning")
_add("reasoning alone, other name", "chat", "fail", _content(None, reasoning="PART"), "reasoning")
_add("reasoning before an answer", "chat", "right", _content("PART", reasoning_content="Hm."))
_add("tool calls", "chat", "fail", _content(None, tool_calls=[{"id": "1"}]), "called a tool")
_add("tool calls as the reason", "chat", "fail", _choice(finish_reason="tool_calls"), "tool")
_add("refusal", "chat", "fail", _content(None, refusal="I will not."), "no text")
for _label, _message in {"missing": ..., "null": None, "a string": "4", "a list": ["4"]}.items():
    _add(f"message {_label}", "chat", "fail", _choice(message=_message), "no message")
_add("a piece of a stream", "chat", "fail", _choice(message=..., delta={"content": "4"}))

# What is no reply at all.

_honest_bytes = b'{"choices": [{"text": " 4", "finish_reason": "stop"}]}'
for _label, _bytes in {
    "empty": b"",
    "HTML": b"<!DOCTYPE html><title>busy</title>",
    "a JSON number": b"4",
    "a JSON string": b'"4"',
    "a JSON list": b'[{"choices": []}]',
    "JSON null": b"null",
    "half of a JSON": _honest_bytes[:30],
    "two JSONs": 2 * _honest_bytes,
    "an event stream": b"data: " + _honest_bytes + b"\n\ndata: [DONE]\n\n",
    "not UTF-8": _honest_bytes.replace(b"4", b"\xff\xfe"),
    "UTF-16": _honest_bytes.decode().encode("utf-16"),
    "NaN in JSON": _honest_bytes.replace(b'" 4"', b"NaN"),
    "half a character": _honest_bytes.replace(b"4", b"\\ud83d"),
    "very deep": b"[" * 20_000 + b"]" * 20_000,
    "a number without end": b'{"choices": ' + b"9" * 5000 + b"}",
}.items():
    _add(f"the body is {_label}", "text", "fail", _body(_bytes), "not a completion")
_add("a byte order mark", "text", "fail", _body(b"\xef\xbb\xbf" + _honest_bytes), "not JSON")


# The wire.


async def _drip(exchange: Exchange) -> None:
    exchange.send(b"", length=10_000)
    for _ in range(1000):
        exchange.writer.write(b" ")
        await exchange.writer.drain()
        await asyncio.sleep(TIMEOUT / 8)


async def _flood(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.writer.write(b"x" * 2**16)
        await exchange.writer.drain()


def _encoded(name: str, content: bytes | None = None) -> Any:
    def behave(exchange: Exchange) -> None:
        body = gzip.compress(json.dumps(exchange.honest()).encode()) if content is None else content
        exchange.send(body, headers=f"content-encoding: {name}\r\n")

    return behave


def _chunked(end: bytes) -> Any:
    def behave(exchange: Exchange) -> None:
        body = json.dumps(exchange.honest()).encode()
        halves = b"".join(b"%x\r\n%b\r\n" % (len(half), half) for half in (body[:9], body[9:]))
        exchange.writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + halves + end
        )
        if end != b"0\r\n\r\n":
            exchange.writer.close()

    return behave


def _raw(content: bytes) -> Any:
    def behave(exchange: Exchange) -> None:
        exchange.writer.write(content)
        exchange.writer.close()

    return behave


def _closing(exchange: Exchange) -> None:
    exchange.send(exchange.honest())
    exchange.writer.close()


def _without_length(exchange: Exchange) -> None:
    body = json.dumps(exchange.honest()).encode()
    exchange.writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
    exchange.writer.close()


def _continued(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    exchange.send(exchange.honest())


def _half(exchange: Exchange) -> None:
    exchange.send(b'{"choices": [{"te', length=500)
    exchange.writer.close()


def _plain_text(exchange: Exchange) -> None:
    exchange.send(exchange.honest(), headers="content-type: text/plain; charset=utf-16\r\n")


async def _hang(_exchange: Exchange) -> None:
    await asyncio.sleep(60)


_add("wrong content type", "text", "right", _plain_text)
_add("keep-alive that is closed", "text", "right", _closing)
_add("no length, closed at the end", "text", "right", _without_length)
_add("100 Continue first", "text", "right", _continued)
_add("chunks", "text", "right", _chunked(b"0\r\n\r\n"))
_add("chunks without an end", "text", "fail", _chunked(b""), "connection broke")
_add("chunks of an odd size", "text", "fail", _chunked(b"zz\r\n"), "connection broke")
_add("gzip", "text", "right", _encoded("gzip"))
_add("gzip that is none", "text", "fail", _encoded("gzip", b"none"), "cannot be decoded")
_add("gzip bomb", "text", "fail", _encoded("gzip", gzip.compress(b" " * 2**24)), "more than")
_add("zstd", "text", "fail", _encoded("zstd", b"\x28\xb5\x2f\xfd"), "cannot be decoded")
_add("unknown encoding", "text", "fail", _encoded("rot13", _honest_bytes), "cannot be decoded")
_add("hangs", "text", "fail", _hang, "no reply within")
_add("hangs in the body", "text", "fail", lambda e: e.send(b"{", length=99), "no reply within")
_add("slow drip", "text", "fail", _drip, "no reply within")
_add("endless body", "text", "fail", _flood, "more than")
_add("huge body", "text", "fail", _body(b" " * (MOST_BYTES + 1)), "more than")
_add("half a body", "text", "fail", _half, "connection broke")
_add(
    "longer than its length",
    "text",
    "fail",
    _raw(b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n" + _honest_bytes),
)
_add("reset", "text", "fail", lambda exchange: exchange.hang_up(), "connection broke")
_add("reset, then an answer", "text", "right", _first(1, lambda exchange: exchange.hang_up()))
_add("not HTTP", "text", "fail", _raw(b"SSH-2.0-hello\r\n\r\n"), "connection broke")
_add("a status of letters", "text", "fail", _raw(b"HTTP/1.1 two OK\r\n\r\n"), "connection broke")
_add(
    "two lengths",
    "text",
    "fail",
    _raw(b"HTTP/1.1 200 X\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
)
_add("a negative length", "text", "fail", _raw(b"HTTP/1.1 200 X\r\ncontent-length: -2\r\n\r\n{}"))
_add("headers without end", "text", "fail", _raw(b"HTTP/1.1 200 X\r\n" + b"a: b\r\n" * 30_000))
_add(
    "headers that are not ASCII",
    "text",
    "right",
    lambda e: e.send(e.honest(), headers="x: \xff\xfe\r\n"),
)

# Statuses.

for _code in (204, 206, 400, 401, 403, 404, 405, 413, 418, 422, 451, 500, 501, 502, 503, 504, 520):
    _empty = b"" if _code == 204 else b"no"
    _add(f"HTTP {_code}", "text", "fail", _status(_code, body=_empty), f"HTTP {_code}")
_long = b'{"error": {"message": "maximum context length is 8 tokens"}}'
_add("too long for the model", "text", "be unanswerable", _status(400, body=_long), "context")
for _code in (301, 302, 307, 308):
    _away = "location: http://127.0.0.1:9/elsewhere\r\n"
    _add(f"HTTP {_code} to elsewhere", "text", "fail", _status(_code, _away), "leads elsewhere")
_add("HTTP 302 without a place", "text", "fail", _status(302), "leads elsewhere")
for _code in (429, 503, 529):
    _add(f"HTTP {_code}, then an answer", "text", "right", _first(1, _status(_code)))
for _wait in ("0", "0.001", "-5", "soon", "nan", "inf", "1e999", "9" * 400, "", "\xff", "1, 2"):
    _busy = _status(429, f"retry-after: {_wait}\r\n")
    _add(f"HTTP 429, retry-after {_wait[:9]!r}", "text", "right", _first(4, _busy))
for _date in ("Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Xyz, 99 Foo"):
    _busy = _status(503, f"retry-after: {_date}\r\n")
    _add(f"HTTP 503, retry-after {_date}", "text", "right", _first(4, _busy))
_add("HTTP 429 for ever", "text", "fail", _status(429), "HTTP 429")

# Likelihoods of a given text.


def _told(**fields: Any) -> Any:
    """Change the lists of log-probabilities; each field is a function of the honest list."""

    def change(reply: dict[str, Any], _exchange: Exchange) -> None:
        told = reply["choices"][0]["logprobs"]
        for name, value in fields.items():
            told[name] = value(told[name]) if callable(value) else value

    return _reply(change)


def _bare(reply: dict[str, Any], _exchange: Exchange) -> None:
    told = reply["choices"][0]["logprobs"]
    reply["choices"][0]["logprobs"] = {n: told[n] for n in ("token_logprobs", "text_offset")}
    del reply["usage"], reply["choices"][0]["finish_reason"], reply["choices"][0]["index"]


def _marked(_reply: dict[str, Any], exchange: Exchange) -> Any:
    return echo_of(exchange.prompt, first="<|begin_of_text|>")


def _marked_but_not_counted(reply: dict[str, Any], exchange: Exchange) -> Any:
    """The mark is among the tokens; offsets are those of the prompt alone."""
    marked = echo_of(exchange.prompt, first="<s>")
    told = marked["choices"][0]["logprobs"]
    told["text_offset"] = [0, *(place - 3 for place in told["text_offset"][1:])]
    return marked


def _marked_without_tokens(_reply: dict[str, Any], exchange: Exchange) -> Any:
    marked = _marked(_reply, exchange)
    del marked["choices"][0]["logprobs"]["tokens"]
    return marked


def _lost_spaces(first: str = "") -> Any:
    """As a server replies that decodes each token of SentencePiece by itself."""

    def change(_reply: dict[str, Any], exchange: Exchange) -> Any:
        echoed = echo_of(exchange.prompt, first)
        told = echoed["choices"][0]["logprobs"]
        told["tokens"] = [token.strip() for token in told["tokens"]]
        sizes = list(map(len, told["tokens"]))
        told["text_offset"] = [sum(sizes[:n]) for n in range(len(sizes))]
        return echoed

    return _reply(change)


def _split_characters(reply: dict[str, Any], _exchange: Exchange) -> None:
    """Letters of two bytes are two tokens each, which nobody can read."""
    told = reply["choices"][0]["logprobs"]
    told["tokens"] = [re.sub("[^ -~]", "\ufffd\ufffd", token) for token in told["tokens"]]


def _ids(**how: Any) -> Any:
    return _reply(lambda _reply, exchange: ids_of(exchange.prompt, **how))


def _odd_ids(change: Callable[[dict[str, Any]], Any]) -> Any:
    def behave(_reply: dict[str, Any], exchange: Exchange) -> Any:
        reply = ids_of(exchange.prompt)
        change(reply["choices"][0])
        return reply

    return _reply(behave)


def _other_context(choice: dict[str, Any]) -> None:
    """Tokens of the context that depend on what follows."""
    choice["prompt_token_ids"][1] = len(choice["prompt_token_ids"])
    choice["prompt_logprobs"][1] = {str(len(choice["prompt_token_ids"])): _entry(-1.0, "x")}


def _several(choice: dict[str, Any]) -> None:
    """The likeliest token beside the prompt's own, and no list that says which is which."""
    del choice["prompt_token_ids"]
    for entry in choice["prompt_logprobs"][1:]:
        entry["7"] = _entry(-0.1, "x")


def _unknown_fields(exchange: Exchange) -> None:
    """A server that refuses fields it does not know."""
    if "prompt_logprobs" in exchange.asked:
        exchange.send(b'{"detail": "prompt_logprobs: extra fields not permitted"}', 422)
    else:
        exchange.send(exchange.honest())


def _one_more(reply: dict[str, Any], exchange: Exchange) -> None:
    choice, told = reply["choices"][0], reply["choices"][0]["logprobs"]
    choice["text"] += " and"
    told["tokens"].append(" and")
    told["text_offset"].append(len(exchange.prompt))
    told["token_logprobs"].append(-9.0)
    reply["usage"]["completion_tokens"] = 1


def _generated(start: int | None) -> Any:
    """The server ignores `echo`: these are the numbers of what it wrote itself."""

    def change(_reply: dict[str, Any], exchange: Exchange) -> Any:
        words = [" Paris", ",", " of", " course", "."] * 8
        begin = len(exchange.prompt) if start is None else start
        places = [begin + sum(map(len, words[:n])) for n in range(len(words))]
        told = {"tokens": words, "text_offset": places, "token_logprobs": [-0.1] * len(words)}
        choice = {"text": "".join(words), "logprobs": told, "finish_reason": "length", "index": 0}
        return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": len(words)}}

    return _reply(change)


def _cut_left(_reply: dict[str, Any], exchange: Exchange) -> Any:
    return echo_of(exchange.prompt[12:])


def _cut_right(_reply: dict[str, Any], exchange: Exchange) -> Any:
    return echo_of(exchange.prompt.rpartition(" ")[0])


def _in_bytes(reply: dict[str, Any], _exchange: Exchange) -> None:
    """Offsets of a server that counts bytes: questions hold letters of two bytes."""
    told = reply["choices"][0]["logprobs"]
    sizes = [len(token.encode()) for token in told.pop("tokens")]
    told["text_offset"] = [sum(sizes[:n]) for n in range(len(sizes))]


def _merged(reply: dict[str, Any], _exchange: Exchange) -> None:
    """The option's first word hangs together with the word before it."""
    told = reply["choices"][0]["logprobs"]
    at = max(n for n, token in enumerate(told["tokens"]) if ":" in token) + 1
    told["tokens"][at - 1 : at + 1] = ["".join(told["tokens"][at - 1 : at + 1])]
    del told["text_offset"][at], told["token_logprobs"][at]
    reply["usage"]["prompt_tokens"] -= 1


_add("honest echo", "options", "right", _reply(lambda *_: None))
_add("echo, bare", "options", "fail", _reply(_bare), "without their tokens")
_add("echo behind a mark", "options", "right", _reply(_marked))
_add("echo behind a mark, not counted", "options", "right", _reply(_marked_but_not_counted))
_add("echo behind a mark, no tokens", "options", "fail", _reply(_marked_without_tokens), "tokens")
_add("lost spaces", "options", "fail", _lost_spaces(), "lm-eval:local-completions")
_add("lost spaces behind a mark", "options", "fail", _lost_spaces("<s>"), "do not join")
_add("lost spaces, no text for the mark", "options", "fail", _lost_spaces(" "), "do not join")
_add("split characters before the option", "options", "right", _reply(_split_characters))
_add("token ids", "options", "right", _ids())
_add("token ids, not listed", "options", "right", _ids(listed=False))
_add("token ids and a token behind the end", "options", "fail", _ids(last="</s>"), "option")
_add("fields that are not known", "options", "right", _unknown_fields)
for _label, _change in {
    "too few": lambda choice: choice["prompt_token_ids"].pop(),
    "of other tokens": lambda choice: choice["prompt_token_ids"].reverse(),
    "text": lambda choice: choice.update(prompt_token_ids="1 2"),
    "negative": lambda choice: choice["prompt_token_ids"].__setitem__(-1, -5),
    "of another context": _other_context,
    "that nobody tells apart": _several,
}.items():
    _add(f"token ids {_label}", "options", "fail", _odd_ids(_change))
for _label, _change in {
    "too few": lambda told: told[:-1],
    "none": lambda told: [],
    "text": lambda told: "x",
    "null at the end": lambda told: [*told[:-1], None],
    "empty at the end": lambda told: [*told[:-1], {}],
    "numbers": lambda told: [None, *range(len(told) - 1)],
    "odd keys": lambda told: [None, *({"a": entry} for entry in told[1:])],
    "without text": lambda told: [
        entry and {one: {"logprob": -1.0} for one in entry} for entry in told
    ],
    "above 0": lambda told: [
        entry and {one: _entry(9.0, place["decoded_token"]) for one, place in entry.items()}
        for entry in told
    ],
}.items():
    _add(
        f"prompt_logprobs {_label}",
        "options",
        "fail",
        _odd_ids(
            lambda choice, _change=_change: choice.update(
                prompt_logprobs=_change(choice["prompt_logprobs"])
            )
        ),
    )
_add("echo and one more token", "options", "right", _reply(_one_more))
_add("echo ignored", "options", "fail", _generated(0), "echo")
_add("echo ignored, offsets behind the prompt", "options", "fail", _generated(None), "echo")
_add("echo without its beginning", "options", "fail", _reply(_cut_left), "echo")
_add("echo without its end", "options", "fail", _reply(_cut_right), "echo")
_add("echo that aborted", "options", "fail", _choice(finish_reason="abort"), "unknown reason")
_add("offsets in bytes", "options", "fail", _reply(_in_bytes))
_add("option within a token", "options", "fail", _reply(_merged), "no token begins")
for _label, _odd in {
    "missing": ...,
    "null": None,
    "empty": {},
    "a list": [-1],
    "text": "x",
}.items():
    _add(f"logprobs {_label}", "options", "fail", _choice(logprobs=_odd), "--letters")
_add("logprobs of a chat", "options", "fail", _choice(logprobs={"content": [{"logprob": -1}]}))
for _label, _change in {
    "too few": lambda values: values[:-1],
    "too many": lambda values: [*values, -1.0],
    "none": [],
    "null": None,
    "an object": {},
    "text": "x",
    "all null": lambda values: [None] * len(values),
    "null at the end": lambda values: [*values[:-1], None],
    "above 0": lambda values: [None, *(-value for value in values[1:])],
    "text inside": lambda values: [str(value) for value in values],
    "true inside": lambda values: [*values[:-1], True],
    "lists inside": lambda values: [[value] for value in values],
}.items():
    _add(f"token_logprobs {_label}", "options", "fail", _told(token_logprobs=_change))
for _label, _change in {
    "too few": lambda places: places[:-1],
    "too many": lambda places: [*places, places[-1] + 1],
    "null": None,
    "all 0": lambda places: [0] * len(places),
    "backwards": lambda places: places[::-1],
    "negative": lambda places: [place - 5 for place in places],
    "moved": lambda places: [place + 4 for place in places],
    "far away": lambda places: [0, *(place + 10**9 for place in places[1:])],
    "fractions": lambda places: [place + 0.5 for place in places],
    "text inside": lambda places: [str(place) for place in places],
    "null inside": lambda places: [*places[:-1], None],
}.items():
    _add(f"text_offset {_label}", "options", "fail", _told(text_offset=_change))
for _label, _change in {
    "too few": lambda tokens: tokens[:-1],
    "too many": lambda tokens: [*tokens, "x"],
    "of another text": lambda tokens: [token.upper() for token in tokens],
    "numbers": lambda tokens: list(range(len(tokens))),
    "an object": {},
}.items():
    _add(f"tokens {_label}", "options", "fail", _told(tokens=_change), "tokens")
_add("more tokens counted than told", "options", "fail", _top(usage={"prompt_tokens": 900}), "900")
_add(
    "fewer tokens counted than told", "options", "fail", _top(usage={"prompt_tokens": 1}), "counts"
)
_nan = b'{"choices": [{"text": "x", "logprobs": {"token_logprobs": [NaN], "text_offset": [0]}}]}'
_add("NaN among the numbers", "options", "fail", _body(_nan), "not JSON")
_add("-Infinity among the numbers", "options", "fail", _body(_nan.replace(b"NaN", b"-Infinity")))
_add("1e999 among the numbers", "options", "fail", _body(_nan.replace(b"NaN", b"-1e999")))

# --- what must come of it -------------------------------------------------------------------------


def suite(asks: str, count: int = 3) -> Suite:
    """Sums for written answers; for options, questions whose shortest option is right."""
    if asks == "options":
        asked = [
            Question(
                "pick", f"s{n}", f"Größe {n}: welches Wort ist kürzer?", "b", ("a longer one", "b")
            )
            for n in range(count)
        ]
        return Suite("pick", "1", (Task("pick", "Quiz", lambda: asked),))
    asked = [Question("sums", f"s{n}", f"{n} plus {n} =", str(2 * n)) for n in range(2, count + 2)]
    return Suite("sums", "1", (Task("sums", "Maths", lambda: asked, scorer="number"),))


_certificates = functools.cache(ssl.create_default_context)
"""Loading them takes half of the time of these tests, which need none."""


@contextmanager
def short_patience(mode: Mode) -> Iterator[None]:
    """Limits that a test has time for; a server that does reply may do so on a busy machine."""
    timeout = TIMEOUT if "no reply within" in mode.says else LONGEST_RUN / 2
    limits = {"TIMEOUT": timeout, "MOST_BYTES": MOST_BYTES, "ATTEMPTS": ATTEMPTS}
    with (
        mock.patch("ssl.create_default_context", _certificates),
        mock.patch.multiple(endpoint, **limits, FIRST_PAUSE=0.001),
        mock.patch.object(http_client, "LONGEST_PAUSE", 0.01),
    ):
        yield


def broken_promises(mode: Mode, folder: Path) -> list[str]:
    """Evaluate against a mode, once where it hits one item and once where it hits all of them."""
    began = time.monotonic()
    with short_patience(mode):
        wrong = [*_one_item_hit(mode, folder / "one"), *_all_hit(mode, folder / "all")]
    if (took := time.monotonic() - began) > LONGEST_RUN:
        wrong.append(f"took {took:.1f} s")
    return wrong


def _one_item_hit(mode: Mode, out: Path) -> Iterator[str]:
    """The others are answered right; the one that is hit is right or has no score."""
    asked = suite(mode.asks)
    hit = asked.tasks[0].questions()[0]
    with HostileEndpoint(mode, lambda prompt: hit.prompt in prompt) as server:
        try:
            done = evaluate(server.name, asked, out, asking=_asking(mode), allow_failed=0.5)
        except InputError as error:
            yield f"one item ended the run: {error}"
            return
    rows = [row for batch in done.samples.to_batches() for row in batch.to_pylist()]
    for row in rows:
        expected = (1.0, "ok")
        if row["item_ref"] == hit.ref and mode.must != "right":
            expected = (None, "error")
        if (row["score"], row["status"]) != expected:
            yield f"{row['item_ref']}: {row['score']}, {row['status']}, not {expected}"
    manifest = json.loads((out / "manifest.json").read_text())
    told = " ".join(manifest["failed_because"])
    if manifest["failed"] != (mode.must != "right") or mode.says not in told:
        yield f"the manifest says: {manifest['failed']} failed ({told}), not {mode.says!r}"


def _all_hit(mode: Mode, out: Path) -> Iterator[str]:
    """A server of which every reply is bad ends the run in one clear line."""
    with HostileEndpoint(mode, lambda _prompt: True) as server:
        try:
            evaluate(server.name, suite(mode.asks), out, asking=_asking(mode))
        except InputError as error:
            said = str(error)
            if mode.must != "fail" or mode.says not in said or "\n" in said or len(said) > 600:
                yield f"all items: {said}"
        else:
            if mode.must == "fail":
                yield "all items failed, and the run did not say so"


def _asking(mode: Mode) -> Asking:
    return Asking(chat=mode.asks == "chat")
