"""A model behind an OpenAI-compatible address: vLLM, SGLang, the llama.cpp server.

Many requests are under way at a time, but never more than asked for. What may pass is tried again
with growing pauses. A request that fails for good becomes a reply that says so, never an answer;
the run decides how many of them are too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from forgetmap.base.completions import Completion, read_completion, read_object
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
from forgetmap.base.likelihoods import (
    OTHER_WAYS,
    Echo,
    NotEchoed,
    PromptTokens,
    Spoken,
    echo_agrees,
    likelihood_by_ids,
    read_echo,
    read_prompt_tokens,
    read_spoken,
)
from forgetmap.evaluate import served_llama, served_sglang
from forgetmap.evaluate.model_card import ask_card, card_hash
from forgetmap.evaluate.models import Reply, RequestGroup, Running, plain_groups
from forgetmap.evaluate.prompts import Message, Prompt, Request

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

KEY_VARIABLE = "FORGETMAP_ENDPOINT_KEY"
ATTEMPTS = 6
TIMEOUT = 600.0
"""Seconds for one attempt: a long answer on a busy server takes its time."""
CARD_TIMEOUT = 30.0
"""Seconds for the card of the model, which no server has to compute."""
FIRST_PAUSE = 0.5
MOST_BYTES = 32 * 2**20
"""Of a reply; half of what a line of the store may hold."""
_AT_A_TIME = 16
_TOO_LONG = ("context length", "context_length", "maximum context", "too long", "context size")

_BY_IDS = {"prompt_logprobs": 0, "return_token_ids": True}
"""Has vLLM tell the id and the log-probability of each token of a prompt."""

_NATIVE = {"sglang": served_sglang.score, "llamacpp": served_llama.score}
"""How to score options at servers that tell more by an interface of their own, by their owner."""

Arrived = tuple[int, Reply]
"""The place of a request, and the reply to it."""
HandOver = Callable[[Arrived], Awaitable[None]]
"""Gives a reply away, and waits until it has been taken care of."""


class _TooLong(RequestFailed):
    """The prompt does not fit: no matter of the server's, and the same whenever it is asked."""


class _UnknownField(RequestFailed):
    """The server does not know the fields by which vLLM tells token ids."""


class EndpointModel:
    """A served model, `http://host:port/v1#model`; a batch is how many requests run at a time."""

    def __init__(self, name: str, how: Running, *, chat: bool = False) -> None:
        self.is_chat = chat
        self._url, _, self.name = name.partition("#")
        self._url = self._url.rstrip("/")
        check_address(self._url, "endpoint", KEY_VARIABLE)
        if not self.name:
            raise InputError(f"{name}: name the model after the address: {self._url}#MODEL")
        self._at_a_time = how.batch or _AT_A_TIME
        self._by_ids = dict(_BY_IDS)
        self._echo_check: asyncio.Task[None] | None = None
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise need("an endpoint", "eval") from error
        self._card = card = self._ask_card()
        known = [f"card {card_hash(card)}"] if card else []
        known += [f"revision {how.revision}"] if how.revision else []
        self.fingerprint = " ".join([f"{self._url}#{self.name}", *known])
        self.address = self._url
        self.warnings = ["weights and numbers of a served model are not known to forgetmap"]
        if not known:
            self.warnings.append(
                "the server gives no card of its model: if you put other weights behind this "
                "address, say so with --revision, or old answers are taken for theirs"
            )
        # One server per model is the normal set-up: its address is no setting that must agree.
        self._engine = str(card["owned_by"]) if card and "owned_by" in card else "endpoint"
        self.settings = {
            "model type": "endpoint",
            "engine": self._engine,
            "weights": self.fingerprint,
        }

    def _ask_card(self) -> dict[str, Any] | None:
        patience = Patience(ATTEMPTS, min(TIMEOUT, CARD_TIMEOUT), FIRST_PAUSE)
        return ask_card(self._url, self.name, headers_with_key(KEY_VARIABLE), patience)

    def check_unchanged(self) -> None:
        """Refuse the answers of a run in which the server changed its model."""
        now = self._ask_card() if self._card else None
        if now and now != self._card:
            raise InputError(
                f"{self._url}: serves another model than when the run began; the answers may be of "
                "both: name another folder and run again"
            )

    def voice(self) -> tuple[Spoken, ...]:
        """What the model writes behind a fixed text; nothing where the server does not tell."""
        asked = {"model": self.name, "temperature": 0.0, "max_tokens": _SPOKEN}
        asked |= _as_sent((Message("user", _PROBE),)) if self.is_chat else _as_sent(_PROBE)
        asked |= {"logprobs": True if self.is_chat else 1}
        with ThreadPoolExecutor(1) as pool:  # in a notebook an event loop is running already
            return pool.submit(asyncio.run, self._speak(asked)).result()

    async def _speak(self, asked: Mapping[str, Any]) -> tuple[Spoken, ...]:
        import httpx

        headers = headers_with_key(KEY_VARIABLE)
        async with httpx.AsyncClient(headers=headers, timeout=CARD_TIMEOUT) as client:
            try:
                return read_spoken(await self._ask(client, asked, scored=True, attempts=1))
            except RequestFailed:
                return ()

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
        reply = await self._ask(client, asked | _as_sent(request.prompt))
        return Reply(text=reply.text, finished=reply.finished, tokens=reply.tokens_out or 0)

    async def _score(self, client: httpx.AsyncClient, request: Request) -> Reply:
        """Have the server tell the tokens of the prompt with each option; take the option's."""
        prompt = request.prompt
        if native := _NATIVE.get(self._engine):
            ask = partial(self._ask_json, client)
            return _scored(await native(ask, prompt, request.options))
        # Together, so that a server reads what they share once; the client bounds connections.
        replies = await _all_or_none(
            [self._tokens_of(client, prompt, option) for option in request.options]
        )
        wholes = [tokens for tokens in map(read_prompt_tokens, replies) if tokens]
        if len(wholes) == len(replies):
            context = read_prompt_tokens(await self._tokens_of(client, prompt))
            scored = _by_ids(wholes, context, request.options)
        elif isinstance(prompt, str):
            await self._check_echo(client)
            parts = zip(replies, request.options, strict=True)
            scored = [read_echo(reply, prompt, option) for reply, option in parts]
        else:
            raise NotEchoed(_NO_CHAT)
        return _scored(scored)

    async def _ask_json(
        self, client: httpx.AsyncClient, path: str, asked: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask the server's own interface, which lies beside `/v1`."""
        url, payload = self._url.removesuffix("/v1") + path, orjson.dumps(asked)

        async def attempt() -> dict[str, Any]:
            response = await post(client, url, payload, timeout=TIMEOUT, most_bytes=MOST_BYTES)
            _check(response)
            return read_object(response.body)

        return await Patience(ATTEMPTS, TIMEOUT, FIRST_PAUSE).keep_trying(attempt)

    async def _tokens_of(
        self, client: httpx.AsyncClient, prompt: Prompt, option: str | None = None
    ) -> Completion:
        """The prompt with an option, or alone, with what the server tells of its tokens."""
        asked: dict[str, Any] = {"model": self.name, "temperature": 0.0}
        if isinstance(prompt, str):
            text = prompt.rstrip() if option is None else prompt + option
            asked |= _echoed(text)
        else:
            asked |= _as_sent(prompt) | {"max_tokens": 1}
            if option is not None:
                asked["messages"].append({"role": "assistant", "content": option})
                asked |= {"continue_final_message": True, "add_generation_prompt": False}
        try:
            return await self._ask(client, asked | self._by_ids, scored=True)
        except _UnknownField:
            if not isinstance(prompt, str):
                raise NotEchoed(_NO_CHAT) from None
            self._by_ids = {}
            return await self._ask(client, asked, scored=True)

    async def _check_echo(self, client: httpx.AsyncClient) -> None:
        """Have the server tell the likelihood of a token twice: as it writes it, and in an echo."""
        if self._echo_check is None or self._echo_check.cancelled():
            self._echo_check = asyncio.create_task(self._compare_echo(client))
        await asyncio.shield(self._echo_check)

    async def _compare_echo(self, client: httpx.AsyncClient) -> None:
        asked = {"model": self.name, "temperature": 0.0}
        plain = {"prompt": _PROBE, "max_tokens": 1, "logprobs": 1}
        try:
            wrote = await self._ask(client, asked | plain, scored=True)
            echo = await self._ask(client, asked | _echoed(_PROBE + wrote.text), scored=True)
            agrees = echo_agrees(wrote, echo, _PROBE)
        except RequestFailed as failure:
            self.warnings.append(f"the server's echo could not be checked ({failure})")
            return
        if not agrees:
            raise NotEchoed(_SHIFTED)

    async def _ask(
        self,
        client: httpx.AsyncClient,
        asked: Mapping[str, Any],
        *,
        scored: bool = False,
        attempts: int | None = None,
    ) -> Completion:
        """Ask until a whole reply comes; RequestFailed where none does."""
        chat = "messages" in asked
        url = f"{self._url}/{'chat/completions' if chat else 'completions'}"
        payload = orjson.dumps(asked)

        async def attempt() -> Completion:
            response = await post(client, url, payload, timeout=TIMEOUT, most_bytes=MOST_BYTES)
            _check(response)
            return read_completion(response.body, chat=chat, scored=scored)

        return await Patience(attempts or ATTEMPTS, TIMEOUT, FIRST_PAUSE).keep_trying(attempt)


_NO_CHAT = (
    "this server cannot score options behind a chat template (it tells no `prompt_logprobs`); use "
    "--letters or --no-chat"
)


_PROBE = "Monday, Tuesday, Wednesday, Thursday, Friday,"
"""What follows is likely behind it, and very unlikely one token later."""
_SPOKEN = 16
"""Tokens of what a model writes to be known again."""
_SHIFTED = (
    "the likelihoods in this server's echo are not those with which it writes (llama-cpp-python "
    "shifts them by one token for models without a first token); use --letters"
)


def _echoed(text: str) -> dict[str, Any]:
    """Ask for the tokens of a text; one more is written, as 0 means no limit to some servers."""
    return {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1}


def _as_sent(prompt: Prompt) -> dict[str, Any]:
    if isinstance(prompt, str):
        return {"prompt": prompt}
    return {"messages": [{"role": role, "content": text} for role, text in prompt]}


def _scored(options: Sequence[Echo]) -> Reply:
    return Reply(
        likelihoods=tuple(one.likelihood for one in options),
        tokens=sum(one.tokens for one in options),
    )


def _by_ids(
    wholes: Sequence[PromptTokens], context: PromptTokens | None, options: Sequence[str]
) -> list[Echo]:
    if context is None:
        raise NotEchoed(f"the server tells token ids for some prompts alone; {OTHER_WAYS}")
    parts = zip(wholes, options, strict=True)
    return [likelihood_by_ids(whole, context, option) for whole, option in parts]


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
    if response.status in (400, 422) and any(name in said for name in _BY_IDS):
        raise _UnknownField(f"HTTP {response.status}")
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
