"""Likelihoods from llama.cpp's own server, token by token.

It repeats no prompt, but it tells the log-probability of a token that it writes, before any bias.
So every token of an option is forced by a bias, behind the tokens before it; what was read before
stays in the server's cache. llama-cpp-python has another server, which is asked for an echo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forgetmap.base.http import AskJson, RequestFailed
from forgetmap.base.likelihoods import Echo, log_probability, option_tokens
from forgetmap.evaluate.prompts import Prompt
from forgetmap.evaluate.served_sglang import ids_of

_FORCED = 1e9
"""Added to the logit of the token that is to be written: no model's own logits come near it."""


async def score(ask: AskJson, prompt: Prompt, options: Sequence[str]) -> list[Echo]:
    """The likelihood of each option behind a prompt.

    Raises:
        RequestFailed: If the server does not write the token that it is told to.
    """
    text = prompt if isinstance(prompt, str) else await _chat_text(ask, prompt)
    context = await _tokens(ask, text.rstrip())
    if not context:
        raise RequestFailed("a prompt without text cannot be scored by this server")
    return [
        await _likelihood(ask, context, option_tokens(context, await _tokens(ask, text + option)))
        for option in options
    ]


async def _chat_text(ask: AskJson, prompt: Sequence[Any]) -> str:
    messages = [{"role": role, "content": text} for role, text in prompt]
    text = (await ask("/apply-template", {"messages": messages})).get("prompt")
    if not isinstance(text, str) or not text.strip():
        raise RequestFailed("the server's chat template writes no text")
    return text


async def _tokens(ask: AskJson, text: str) -> list[int]:
    return ids_of(await ask("/tokenize", {"content": text, "add_special": True}))


async def _likelihood(ask: AskJson, context: Sequence[int], option: Sequence[int]) -> Echo:
    total = 0.0
    for place, token in enumerate(option):
        told = await ask(
            "/completion",
            {
                "prompt": [*context, *option[:place]],
                "n_predict": 1,
                "n_probs": 1,
                "logit_bias": [[token, _FORCED]],
                "temperature": 0.0,
                "cache_prompt": True,
            },
        )
        total += read_forced(told, token)
    return Echo(total, len(option))


def read_forced(told: Mapping[str, Any], token: int) -> float:
    """The log-probability of the token that the server was made to write.

    Example:
        >>> read_forced({"completion_probabilities": [{"id": 17, "logprob": -0.5}]}, 17)
        -0.5
    """
    written = told.get("completion_probabilities")
    if not isinstance(written, list) or not all(isinstance(one, Mapping) for one in written):
        raise RequestFailed("the reply has no `completion_probabilities`")
    if [one.get("id") for one in written] != [token]:
        raise RequestFailed("the server did not write the token of the option")
    return log_probability(written[0].get("logprob"))
