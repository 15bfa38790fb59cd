"""A model behind an OpenAI-compatible address: vLLM, SGLang, the llama.cpp server.

Many requests are under way at a time, but never more than asked for. What may pass is tried again
with growing pauses. A request that fails for good becomes a reply that says so, never an answer;
the run decides how many of them are too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from forgetmap.base.completions import Completion, Echo, read_completion, read_echo
from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.http import (
    GaveUp,
    Patience,
    RequestFailed,
    Response,
    check_address,
    headers_with_key,
    post,
)
from forgetmap.evaluate.models import Reply, RequestGroup, Running, plain_groups
from forgetmap.evaluate.prompts import Request

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

KEY_VARIABLE = "FORGETMAP_ENDPOINT_KEY"
ATTEMPTS = 6
TIMEOUT = 600.0
"""Seconds for one attempt: a long answer on a busy server takes its time."""
FIRST_PAUSE = 0.5
MOST_BYTES = 32 * 2**20
"""Of a reply; half of what a line of the store may hold."""
_AT_A_TIME = 16
_TOO_LONG = ("context length", "context_length", "maximum context", "too long", "context size")

Arrived = tuple[int, Reply]
"""The place of a request, and the reply to it."""
HandOver = Callable[[Arrived], Awaitable[None]]
"""Gives a reply away, and waits until it has been taken care of."""


class _TooLong(RequestFailed):
    """The prompt does not fit: no matter of the server's, and the same whenever it is asked."""


class EndpointModel:
    """A served model, `http://host:port/v1#model`; a batch is how many requests run at a time."""

    def __init__(self, name: str, how: Running) -> None:
        self._url, _, self.name = name.partition("#")
        self._url = self._url.rstrip("/")
        check_address(self._url, "endpoint", KEY_VARIABLE)
        if not self.name:
            raise InputError(f"{name}: name the model after the address: {self._url}#MODEL")
        self._at_a_time = how.batch or _AT_A_TIME
        self.fingerprint = f"{self._url}#{self.name}"
        self.warnings = ["weights and numbers of a served model are not known to forgetmap"]
        self.settings = {"model type": "endpoint", "engine": self._url}

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """As many as run side by side."""
        return plain_groups(len(requests), self._at_a_time)

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:  # noqa: ARG002
        """Answer a group."""
        replies = dict(self.stream(requests))
        return [replies[place] for place in range(len(requests))]

    def stream(self, requests: Sequence[Request]) -> Iterator[Arrived]:
        """Answer requests side by side, each reply as soon as it is there, in any order.

        A reply holds its place among the requests under way until the next one is asked for here.
        So whoever stores replies one by one never has more to lose than those.
        """
        if any(request.options and not isinstance(request.prompt, str) for request in requests):
            raise InputError(
                f"{self._url}: an endpoint cannot score options behind a chat template; "
                "use --letters or --no-chat"
            )
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise need("an endpoint", "eval") from error
        headers = headers_with_key(KEY_VARIABLE)
        return _in_a_thread(lambda hand_over: self._answer_all(requests, headers, hand_over))

    async def _answer_all(
        self, requests: Sequence[Request], headers: Mapping[str, str], hand_over: HandOver
    ) -> None:
        import httpx

        todo = iter(enumerate(requests))
        limits = httpx.Limits(max_connections=self._at_a_time)
        async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT, limits=limits) as client:

            async def work() -> None:
                for place, request in todo:
                    await hand_over((place, await self._answer(client, request)))

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._at_a_time, len(requests))):
                        group.create_task(work())
            except* InputError as errors:
                raise errors.exceptions[0] from None

    async def _answer(self, client: httpx.AsyncClient, request: Request) -> Reply:
        try:
            return await (self._score if request.options else self._write)(client, request)
        except _TooLong as failure:
            return Reply("error", note=str(failure))
        except RequestFailed as failure:
            is_down = isinstance(failure, GaveUp)
            return Reply("down" if is_down else "failed", note=str(failure))

    async def _write(self, client: httpx.AsyncClient, request: Request) -> Reply:
        asked: dict[str, Any] = {
            "model": self.name,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            **({"stop": list(request.stop[:4])} if request.stop else {}),  # servers take four
            **({"seed": request.seed % 2**31} if request.temperature else {}),
        }
        if isinstance(request.prompt, str):
            reply = await self._ask(client, asked | {"prompt": request.prompt})
        else:
            turns = [{"role": role, "content": text} for role, text in request.prompt]
            reply = await self._ask(client, asked | {"messages": turns})
        return Reply(text=reply.text, finished=reply.finished, tokens=reply.tokens_out or 0)

    async def _score(self, client: httpx.AsyncClient, request: Request) -> Reply:
        """Have the server echo the prompt with each option, and take the option's part."""
        context = str(request.prompt)

        async def score(option: str) -> Echo:
            asked = {"model": self.name, "prompt": context + option, "max_tokens": 0}
            asked |= {"echo": True, "logprobs": 1, "temperature": 0.0}
            return read_echo(await self._ask(client, asked), context, option)

        # Together, so that a server reads what they share once; the client bounds connections.
        scored = await _all_or_none([score(option) for option in request.options])
        return Reply(
            likelihoods=tuple(one.likelihood for one in scored),
            tokens=sum(one.tokens for one in scored),
        )

    async def _ask(self, client: httpx.AsyncClient, asked: Mapping[str, Any]) -> Completion:
        """Ask until a whole reply comes; RequestFailed where none does."""
        chat = "messages" in asked
        url = f"{self._url}/{'chat/completions' if chat else 'completions'}"
        payload = orjson.dumps(asked)

        async def attempt() -> Completion:
            response = await post(client, url, payload, timeout=TIMEOUT, most_bytes=MOST_BYTES)
            _check(response)
            return read_completion(response.body, chat=chat, scored="echo" in asked)

        return await Patience(ATTEMPTS, TIMEOUT, FIRST_PAUSE).keep_trying(attempt)


async def _all_or_none(parts: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all; the first failure ends the rest."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _check(response: Response) -> None:
    said = response.said.lower()
    if response.status in (400, 413, 422) and any(words in said for words in _TOO_LONG):
        raise _TooLong("the prompt is longer than the model's context")
    response.check(f"check address, model and the key in {KEY_VARIABLE}")


def _in_a_thread(make: Callable[[HandOver], Coroutine[Any, Any, None]]) -> Iterator[Arrived]:
    """Yield what a coroutine hands over, while it runs in a thread of its own.

    In a notebook an event loop is running already, so this one needs another thread. Whoever stops
    early ends the requests that are under way.
    """
    loop = asyncio.new_event_loop()
    handed: SimpleQueue[tuple[Arrived, asyncio.Future[None]] | None] = SimpleQueue()

    async def hand_over(one: Arrived) -> None:
        taken = loop.create_future()
        handed.put((one, taken))
        await taken

    task = loop.create_task(make(hand_over))
    task.add_done_callback(lambda _task: handed.put(None))
    thread = Thread(target=_run, args=(loop, task), daemon=True)
    thread.start()
    try:
        while (found := handed.get()) is not None:
            one, taken = found
            yield one
            loop.call_soon_threadsafe(taken.set_result, None)
        task.result()
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    """Run to the end; how it ended, the task itself tells."""
    loop.run_until_complete(asyncio.wait([task]))
    loop.run_until_complete(loop.shutdown_asyncgens())
