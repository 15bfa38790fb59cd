"""What a server says about the model it serves, so that other weights are not taken for the same.

The card of `/v1/models` is the only sign: a path or an id (`root`), the longest context, sizes. Its
`created` is left out, as vLLM and llama.cpp put the time of the question there; so are all fields
that are not known to stay the same. New weights under the same path have the same card: then the
user has to name a revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.http import GaveUp, Patience, RequestFailed, get

_STEADY = ("id", "root", "parent", "owned_by", "max_model_len")
_STEADY_SIZES = ("n_params", "size", "n_vocab", "n_embd", "n_ctx_train", "vocab_type")
"""In the `meta` of llama.cpp's card."""
_MOST_BYTES = 8 * 2**20


def ask_card(
    url: str, model: str, headers: Mapping[str, str], patience: Patience
) -> dict[str, Any] | None:
    """Ask a server for the card of a model; None where it gives none.

    Raises:
        InputError: If the server cannot be reached.
    """
    import httpx

    async def ask() -> bytes:
        async with httpx.AsyncClient(headers=dict(headers), timeout=patience.timeout) as client:

            async def attempt() -> bytes:
                limit = patience.timeout
                response = await get(client, f"{url}/models", timeout=limit, most_bytes=_MOST_BYTES)
                response.check("check address, model and key")
                return response.body

            return await patience.keep_trying(attempt)

    try:
        with ThreadPoolExecutor(1) as pool:  # in a notebook an event loop is running already
            body = pool.submit(asyncio.run, ask()).result()
    except GaveUp as failure:
        raise InputError(f"{url}: {failure}; finished answers are kept") from None
    except RequestFailed:
        return None
    return read_card(body, model)


def read_card(body: bytes, model: str) -> dict[str, Any] | None:
    """The steady part of a model's card, out of the list of a server's models.

    Example:
        >>> body = b'{"data": [{"id": "m", "root": "/ckpt/7", "created": 1, "permission": []}]}'
        >>> read_card(body, "m"), read_card(body, "other")
        ({'id': 'm', 'root': '/ckpt/7'}, None)
    """
    try:
        listed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    cards = listed.get("data") if isinstance(listed, dict) else None
    for card in cards if isinstance(cards, list) else ():
        if isinstance(card, dict) and card.get("id") == model:
            sizes = card.get("meta")
            steady = {name: card[name] for name in _STEADY if card.get(name) is not None}
            if isinstance(sizes, dict):
                steady |= {name: sizes[name] for name in _STEADY_SIZES if name in sizes}
            return steady
    return None


def card_hash(card: Mapping[str, Any]) -> str:
    """The same for the same card."""
    return sha256(orjson.dumps(dict(card), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
