"""Asking an OpenAI-compatible endpoint for a verdict, in a given form where it can keep to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from forgetmap.base.completions import read_completion
from forgetmap.base.http import Patience, Response, post

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 4 * 2**20
"""Of a reply: a judge says little."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What the judge said, and the tokens it took."""

    text: str
    tokens_in: int
    tokens_out: int


class Endpoint:
    """One model behind `URL/chat/completions`, for use inside one event loop.

    `sampling` goes along with each request, e.g. temperature and the limit of tokens.
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

    async def ask(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
    ) -> JudgeReply:
        """Ask until a reply comes, at most `attempts` times.

        RequestFailed if none came, with the reason of the last attempt; Refused for what every
        request would meet: wrong key, address or model.
        """
        return await self._patience.keep_trying(lambda: self._attempt(messages, schema))

    async def _attempt(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
    ) -> JudgeReply:
        structured = self._structured
        response = await self._post(self._payload(messages, schema, structured))
        if structured and response.status in (400, 422):
            # Either the server knows no structured output or the request itself is wrong: the same
            # request without it tells.
            response = await self._post(self._payload(messages, schema, False))
            if response.status == 200:
                self._structured = False
        response.check("check URL, model and the key in FORGETMAP_JUDGE_KEY")
        said = read_completion(response.body, chat=True)
        return JudgeReply(said.text, said.tokens_in or 0, said.tokens_out or 0)

    def _payload(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], structured: bool
    ) -> bytes:
        payload: dict[str, Any] = {**self._fixed, "messages": messages}
        if structured:
            wanted = {"name": "verdict", "strict": True, "schema": schema}
            payload["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return orjson.dumps(payload)

    async def _post(self, payload: bytes) -> Response:
        self.requests += 1
        return await post(
            self._client,
            self._address,
            payload,
            timeout=self._patience.timeout,
            most_bytes=MOST_BYTES,
        )
