"""A model behind an OpenAI-compatible address: vLLM, SGLang, the llama.cpp server.

Many requests are under way at a time, but never more than asked for. What may pass is tried again
with growing pauses; what every request would meet (a wrong key, address or model) ends the run at
once; what only this item meets (a prompt that is too long) becomes its status.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.http import AttemptFailed, Patience, RequestFailed, Response, post
from forgetmap.evaluate.models import Reply, RequestGroup, Running, extra_missing, plain_groups
from forgetmap.evaluate.prompts import Request

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "FORGETMAP_ENDPOINT_KEY"
ATTEMPTS = 6
TIMEOUT = 600.0
"""Seconds for one attempt: a long answer on a busy server takes its time."""
FIRST_PAUSE = 0.5
_AT_A_TIME = 16
_GROUP = 64
_MOST_BYTES = 64 * 2**20
_TOO_LONG = ("context length", "context_length", "maximum context", "too long", "context size")


class EndpointModel:
    """A served model, `http://host:port/v1#model`; a batch is how many requests run at a time."""

    def __init__(self, name: str, how: Running) -> None:
        self._url, _, self.name = name.partition("#")
        self._url = self._url.rstrip("/")
        if not self.name:
            raise InputError(f"{name}: name the model after the address: {self._url}#MODEL")
        self._at_a_time = how.batch or _AT_A_TIME
        self.fingerprint = f"{self._url}#{self.name}"
        self.warnings = ["weights and numbers of a served model are not known to forgetmap"]
        self.settings = {"model type": "endpoint", "engine": self._url}

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Groups are what is stored at a time; inside them requests run side by side."""
        return plain_groups(len(requests), max(_GROUP, self._at_a_time))

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:  # noqa: ARG002
        """Answer a group."""
        return asyncio.run(self._run(requests))

    async def _run(self, requests: Sequence[Request]) -> list[Reply]:
        try:
            import httpx
        except ImportError as error:
            raise extra_missing("httpx", "eval") from error
        key = os.environ.get(KEY_VARIABLE)
        headers = {"content-type": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        gate = asyncio.Semaphore(self._at_a_time)
        async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT) as client:

            async def one(request: Request) -> Reply:
                async with gate:
                    return await self._answer(client, request)

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(request)) for request in requests]
            except* InputError as errors:
                raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _answer(self, client: httpx.AsyncClient, request: Request) -> Reply:
        if request.options:
            return await self._score(client, request)
        reply = await self._post(client, *_writing(self.name, request))
        if isinstance(reply, Reply):
            return reply
        choice = reply["choices"][0]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        used = reply.get("usage") or {}
        return Reply(
            text=text or "",
            finished=choice.get("finish_reason") != "length",
            tokens=int(used.get("completion_tokens") or 0),
        )

    async def _score(self, client: httpx.AsyncClient, request: Request) -> Reply:
        """Have the server echo the prompt with each option, and take the option's part."""
        if not isinstance(request.prompt, str):
            raise InputError(
                f"{self._url}: an endpoint cannot score options behind a chat template; "
                "use --letters or --no-chat"
            )
        likelihoods, tokens = [], 0
        for option in request.options:
            asked = {"model": self.name, "prompt": request.prompt + option, "max_tokens": 0}
            asked |= {"echo": True, "logprobs": 1, "temperature": 0.0}
            reply = await self._post(client, "completions", asked)
            if isinstance(reply, Reply):
                return reply
            likelihood = _likelihood(reply, len(request.prompt.rstrip()))
            if likelihood is None:
                raise InputError(
                    f"{self._url}: the server does not tell the likelihood of a given text; "
                    "use --letters to have answers written instead"
                )
            likelihoods.append(likelihood[0])
            tokens += likelihood[1]
        return Reply(likelihoods=tuple(likelihoods), tokens=tokens)

    async def _post(
        self, client: httpx.AsyncClient, path: str, asked: Mapping[str, Any]
    ) -> dict[str, Any] | Reply:
        """Ask until an answer comes; a Reply where this item can have none."""
        url, payload = f"{self._url}/{path}", orjson.dumps(asked)

        async def attempt() -> dict[str, Any] | Reply:
            return self._read(
                await post(client, url, payload, timeout=TIMEOUT, most_bytes=_MOST_BYTES)
            )

        try:
            return await Patience(ATTEMPTS, TIMEOUT, FIRST_PAUSE).keep_trying(attempt)
        except RequestFailed as error:
            raise InputError(
                f"{self._url}: {error}; finished answers are kept, run the same command again"
            ) from None

    def _read(self, response: Response) -> dict[str, Any] | Reply:
        response.check(self._url, f"check address, model and the key in {KEY_VARIABLE}")
        said = response.body[:2000].decode("utf-8", "replace")
        too_long = any(words in said.lower() for words in _TOO_LONG)
        if response.status in (400, 413, 422) and too_long:
            return Reply("error", note="the prompt is longer than the model's context")
        if response.status != 200:
            raise InputError(f"{self._url}: HTTP {response.status} ({said[:120]})")
        try:
            reply = orjson.loads(response.body)
            _ = reply["choices"][0]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
            raise AttemptFailed("the reply is no completion") from None
        return dict(reply)


def _writing(model: str, request: Request) -> tuple[str, dict[str, Any]]:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        **({"stop": list(request.stop[:4])} if request.stop else {}),  # servers take four
        **({"seed": request.seed % 2**31} if request.temperature else {}),
    }
    if isinstance(request.prompt, str):
        return "completions", asked | {"prompt": request.prompt}
    turns = [{"role": role, "content": text} for role, text in request.prompt]
    return "chat/completions", asked | {"messages": turns}


def _likelihood(reply: Mapping[str, Any], start: int) -> tuple[float, int] | None:
    """Sum over the tokens that begin at or behind the end of the context."""
    told = reply["choices"][0].get("logprobs") or {}
    values, offsets = told.get("token_logprobs"), told.get("text_offset")
    if not values or not offsets or len(values) != len(offsets):
        return None
    wanted = [value for value, offset in zip(values, offsets, strict=True) if offset >= start]
    if not wanted or not all(isinstance(value, int | float) for value in wanted):
        return None
    return float(sum(wanted)), len(wanted)
