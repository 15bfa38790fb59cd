"""Stands in for vLLM 0.33: the names, arguments and replies that its source has, on transformers.

`vllm` needs a card and is not installed in the tests. `LLM.generate`, `SamplingParams`,
`LoRARequest` and the fields of `RequestOutput` were checked by hand against vllm-0.33.0.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

ENGINES: list[LLM] = []
"""All that were started."""


@dataclass
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 1.0
    stop: list[str] = field(default_factory=list)
    seed: int | None = None
    prompt_logprobs: int | None = None


@dataclass
class LoRARequest:
    lora_name: str
    lora_int_id: int
    lora_path: str = ""


class LLM:
    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        seed: int = 0,
        enable_prefix_caching: bool | None = None,
        enable_lora: bool = False,
        max_lora_rank: int = 16,
    ) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.given = {"enable_prefix_caching": enable_prefix_caching, "seed": seed}
        self.rank = max_lora_rank if enable_lora else 0
        self.folder, self.loras = model, [None]
        self.tokenizer = AutoTokenizer.from_pretrained(model)
        load = AutoModelForCausalLM.from_pretrained
        self.load = lambda: load(model, dtype=getattr(torch, dtype)).eval()
        self.models = {None: self.load()}
        ENGINES.append(self)

    def generate(
        self,
        prompts: list[dict[str, Any]],
        sampling_params: list[SamplingParams],
        *,
        use_tqdm: bool = True,
        lora_request: LoRARequest | None = None,
    ) -> list[Any]:
        path = lora_request.lora_path if lora_request else None
        if path and not self.rank:
            raise ValueError("Got lora_request but LoRA is not enabled!")
        if path not in self.models:
            from peft import PeftModel

            self.models[path] = PeftModel.from_pretrained(self.load(), path).merge_and_unload()
        self.loras.append(path)
        pairs = zip(prompts, sampling_params, strict=True)
        return [self._one(self.models[path], one["prompt_token_ids"], how) for one, how in pairs]

    def _one(self, model: Any, ids: list[int], how: SamplingParams) -> Any:
        import torch

        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
        told = None
        if how.prompt_logprobs is not None:
            values = [float(logits[n, one]) for n, one in enumerate(ids[1:])]
            told = [None, *({one: SimpleNamespace(logprob=v, rank=1, decoded_token=None)}
                            for one, v in zip(ids[1:], values, strict=True))]  # fmt: skip
        best = [int(logits[-1].argmax())]
        text = SimpleNamespace(
            text=self.tokenizer.decode(best), token_ids=best, finish_reason="length"
        )
        return SimpleNamespace(prompt_token_ids=ids, prompt_logprobs=told, outputs=[text])


def install(monkeypatch: Any) -> list[LLM]:
    """Put it where vLLM would be; the engines that are started from now on."""
    ENGINES.clear()
    whole, lora, request = (ModuleType(name) for name in ("vllm", "vllm.lora", "vllm.lora.request"))
    whole.LLM, whole.SamplingParams, whole.__version__ = LLM, SamplingParams, "0.33.0"
    request.LoRARequest = LoRARequest
    for module in (whole, lora, request):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return ENGINES
