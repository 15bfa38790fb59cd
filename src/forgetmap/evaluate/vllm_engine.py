"""A model in this process by vLLM: the weights, tokens and options of a local model, its speed.

Tokens are made here, as for every local model, so that both engines score the same ids. An adapter
goes along with each request, so that a base and its adapters share one engine. Written against the
source of vLLM 0.33.0; no card was at hand to run it: `forgetmap doctor --backend vllm MODEL` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.words import brief
from forgetmap.evaluate.describe import read_json_or_none
from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import Model, Reply, RequestGroup, Running, plain_groups
from forgetmap.evaluate.prompts import Request

_GROUP = 512
"""Requests that are stored at a time; vLLM makes batches of them itself."""
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Largest ranks of adapters that vLLM makes room for."""
_LARGEST_SEED = 2**63


class VllmModel(LocalModel):
    """A folder or hub id, perhaps with a LoRA adapter, run by vLLM."""

    def __init__(
        self, base: str, adapter: str | None, how: Running, *, chat: bool | None = False
    ) -> None:
        version = _version()
        _check_told(how)
        super().__init__(base, adapter, how, chat=chat)
        self.settings |= {"model type": "vllm", "engine": f"vllm {version}"}
        self.fingerprint += "/vllm"
        self._shared = _Engine(self._base, how, self._dtype)
        if self._adapter:
            self._shared.make_room(self._adapter)

    def share(self, before: Model) -> None:
        """Use the engine of the model before, if it has the same base."""
        if isinstance(before, VllmModel) and before._base == self._base:
            if self._adapter:
                before._shared.make_room(self._adapter)
            self._shared = before._shared

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Options and texts apart; vLLM orders and batches them itself."""
        kinds: tuple[list[int], list[int]] = ([], [])
        for place, request in enumerate(requests):
            kinds[bool(request.options)].append(place)
        return [
            RequestGroup(tuple(places[place] for place in group.places))
            for places in kinds
            for group in plain_groups(len(places), self._how.batch or _GROUP)
        ]

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:  # noqa: ARG002
        """Answer a group; all of its requests are of one kind."""
        return (self._options if requests[0].options else self._texts)(requests)

    def _options(self, requests: Sequence[Request]) -> list[Reply]:
        choices = self._as_choices(requests)
        fits = [choice.longest < self._positions for choice in choices]  # one more is written
        rows = [
            ([*choice.context, *option], len(option))
            for choice, fit in zip(choices, fits, strict=True)
            for option in (choice.options if fit else ())
        ]
        how = {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}
        outputs = self._shared.generate([ids for ids, _ in rows], [how] * len(rows), self._adapter)
        found = iter(
            _likelihood(output, ids, count)
            for output, (ids, count) in zip(outputs, rows, strict=True)
        )
        return [
            Reply(
                likelihoods=tuple(next(found) for _ in choice.options),
                tokens=sum(map(len, choice.options)),
            )
            if fit
            else _too_long(choice.longest, self._positions)
            for choice, fit in zip(choices, fits, strict=True)
        ]

    def _texts(self, requests: Sequence[Request]) -> list[Reply]:
        prompts = [self._encode(request.prompt) for request in requests]
        needs = [
            len(ids) + request.max_tokens for ids, request in zip(prompts, requests, strict=True)
        ]
        fits = [tokens <= self._positions for tokens in needs]
        asked = [
            (ids, _writing(request))
            for ids, request, fit in zip(prompts, requests, fits, strict=True)
            if fit
        ]
        outputs = iter(
            self._shared.generate(
                [ids for ids, _ in asked], [how for _, how in asked], self._adapter
            )
        )
        return [
            _written(next(outputs)) if fit else _too_long(tokens, self._positions)
            for tokens, fit in zip(needs, fits, strict=True)
        ]


class _Engine:
    """vLLM with one base, started when it is first asked; adapters are numbered as they come."""

    def __init__(self, base: Path, how: Running, dtype: str) -> None:
        self._base, self._how, self._dtype = base, how, dtype
        self._adapters: list[Path] = []

    def make_room(self, adapter: Path) -> None:
        """Say, before the engine starts, that an adapter will be asked for."""
        if adapter not in self._adapters:
            self._adapters.append(adapter)

    def generate(
        self, prompts: list[list[int]], how: list[dict[str, Any]], adapter: Path | None
    ) -> list[Any]:
        """Have vLLM work on tokens; one output for each prompt, in their order."""
        if not prompts:
            return []
        llm = self._llm
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest

        lora = None
        if adapter:
            number = self._adapters.index(adapter) + 1
            lora = LoRARequest(adapter.name, number, str(adapter))
        try:
            found: list[Any] = llm.generate(
                [{"prompt_token_ids": ids} for ids in prompts],
                [SamplingParams(**one) for one in how],
                use_tqdm=False,
                lora_request=lora,
            )
        except Exception as error:  # whatever the engine raises
            raise InputError(f"vLLM failed ({brief(error)}); finished answers are kept") from error
        return found

    @cached_property
    def _llm(self) -> Any:
        from vllm import LLM

        how = self._how
        given: dict[str, Any] = {"enable_prefix_caching": True, "seed": 0}
        if self._adapters:
            given |= {"enable_lora": True, "max_lora_rank": _room(self._adapters)}
        if how.device == "auto":
            import torch

            given["tensor_parallel_size"] = max(1, torch.cuda.device_count())
        try:
            return LLM(
                str(self._base), dtype=self._dtype, trust_remote_code=how.trust_code, **given
            )
        except Exception as error:  # whatever the engine raises
            raise InputError(f"{self._base}: vLLM cannot load it ({brief(error)})") from error


def _version() -> str:
    try:
        import vllm
    except ImportError as error:
        raise InputError(
            "--backend vllm: needs vllm; install with: pip install vllm (it needs a card)"
        ) from error
    return str(vllm.__version__)


def _check_told(how: Running) -> None:
    """Refuse what vLLM cannot be told from here."""
    for option in ("quantize", "max_memory", "attention"):
        if getattr(how, option):
            raise InputError(f"--{option.replace('_', '-')}: is for transformers, not for vLLM")
    if how.device not in (None, "auto", "cuda"):
        raise InputError(
            f"--device {how.device}: vLLM takes the cards that CUDA_VISIBLE_DEVICES names; auto "
            "splits the model over all of them"
        )


def _room(adapters: Sequence[Path]) -> int:
    """The smallest of vLLM's ranks that all adapters fit into."""
    ranks = [
        int((read_json_or_none(adapter / "adapter_config.json") or {}).get("r") or 1)
        for adapter in adapters
    ]
    fitting = [rank for rank in _RANKS if rank >= max(ranks)]
    if not fitting:
        raise InputError(f"{adapters[0]}: rank {max(ranks)} is more than vLLM takes ({_RANKS[-1]})")
    return fitting[0]


def _likelihood(output: Any, ids: Sequence[int], count: int) -> float:
    """The sum over the last tokens of a prompt; vLLM tells one entry for each place."""
    told = output.prompt_logprobs
    if told is None or len(told) != len(ids):
        raise InputError("vLLM told the likelihoods of other tokens than it was given")
    last = range(len(ids) - count, len(ids))
    return sum(float(told[place][ids[place]].logprob) for place in last)


def _writing(request: Request) -> dict[str, Any]:
    how: dict[str, Any] = {"max_tokens": request.max_tokens, "temperature": request.temperature}
    how |= {"stop": list(request.stop)} if request.stop else {}
    return how | ({"seed": request.seed % _LARGEST_SEED} if request.temperature else {})


def _written(output: Any) -> Reply:
    (text,) = output.outputs
    return Reply(
        text=text.text, finished=text.finish_reason != "length", tokens=len(text.token_ids)
    )


def _too_long(needed: int, positions: int) -> Reply:
    return Reply("error", note=f"needs {needed} tokens, the model takes {positions}")
