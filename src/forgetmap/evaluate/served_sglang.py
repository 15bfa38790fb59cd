"""Likelihoods from an SGLang server, by the ids of the tokens.

Its `/v1/completions` echoes tokens without their places in the text, so its own `/generate` is
asked: it tells the id, the log-probability and the text of each token of a prompt. Written against
the source of SGLang 0.5.23; no card was at hand to run it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from forgetmap.base.completions import as_count
from forgetmap.base.http import AskJson, RequestFailed
from forgetmap.base.likelihoods import Echo, PromptTokens, likelihood_by_ids
from forgetmap.evaluate.prompts import Prompt


async def score(ask: AskJson, prompt: Prompt, options: Sequence[str]) -> list[Echo]:
    """The likelihood of each option behind a prompt.

    Raises:
        RequestFailed: If the server's tokens are not those of prompt and option.
    """
    context, *wholes = await asyncio.gather(
        *(_tokens(ask, prompt, option) for option in (None, *options))
    )
    pairs = zip(wholes, options, strict=True)
    return [likelihood_by_ids(whole, context, option) for whole, option in pairs]


async def _tokens(ask: AskJson, prompt: Prompt, option: str | None) -> PromptTokens:
    """What the server tells of the tokens of a prompt with an option, or alone."""
    if isinstance(prompt, str):
        what: dict[str, Any] = {"text": prompt.rstrip() if option is None else prompt + option}
    else:
        what = {"input_ids": await _chat_ids(ask, prompt, option)}
    told = await ask(
        "/generate",
        {
            **what,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0.0},
            "return_logprob": True,
            "logprob_start_len": 0,
            "return_text_in_logprobs": True,
        },
    )
    return read_generate(told)


async def _chat_ids(ask: AskJson, prompt: Sequence[Any], option: str | None) -> list[int]:
    messages = [{"role": role, "content": text} for role, text in prompt]
    asked: dict[str, Any] = {"messages": messages}
    if option is not None:
        messages.append({"role": "assistant", "content": option})
        asked["continue_final_message"] = True
    return ids_of(await ask("/tokenize", asked))


def ids_of(told: Mapping[str, Any]) -> list[int]:
    """The tokens that a server makes of a text.

    Example:
        >>> ids_of({"tokens": [1, 17], "count": 2})
        [1, 17]
    """
    ids = told.get("tokens")
    if not isinstance(ids, list) or any(as_count(one) is None for one in ids):
        raise RequestFailed("the server's tokens are not numbers")
    return ids


def read_generate(told: Mapping[str, Any]) -> PromptTokens:
    """The tokens of a prompt, out of a reply of `/generate`.

    Example:
        >>> told = {"input_token_logprobs": [[None, 1, "<s>"], [-0.5, 17, " is"]]}
        >>> read_generate({"text": "", "meta_info": {**told, "prompt_tokens": 2}})
        PromptTokens(ids=(1, 17), values=(None, -0.5), texts=('<s>', ' is'))
    """
    about = told.get("meta_info")
    if not isinstance(about, Mapping):
        raise RequestFailed("the reply has no `meta_info`")
    tokens = about.get("input_token_logprobs")
    if not isinstance(tokens, list) or not tokens or not all(map(_is_token, tokens)):
        raise RequestFailed("the server's `input_token_logprobs` are not a list of tokens")
    if about.get("prompt_tokens") not in (None, len(tokens)):
        raise RequestFailed("the server counts other tokens than it tells")
    values, ids, texts = zip(*tokens, strict=True)
    return PromptTokens(ids, values, texts)


def _is_token(one: object) -> bool:
    return isinstance(one, list) and len(one) == 3 and as_count(one[1]) is not None
