"""The packed scorer as a model class of lm-eval: any of its multiple-choice tasks profits.

In Python: `lm_eval.simple_evaluate(model=register()(pretrained=FOLDER), tasks=[...])`. After
`register()` lm-eval knows the model as `forgetmap`, on its command line too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from forgetmap.evaluate.scoring import Choice, PackedScorer, plan_batches

_Encoded = tuple[tuple[str, str], list[int], list[int]]
"""As lm-eval passes it: the texts, the context's tokens, the option's tokens."""
_SAME_START = 24
"""Contexts that agree in so many tokens are taken for one task's, with one few-shot prefix."""


@cache
def register() -> type[Any]:
    """Tell lm-eval of the model `forgetmap`, and return its class.

    It is made here and not above, so that this module can be imported without lm-eval.
    """
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM

    class ForgetmapLM(HFLM):  # type: ignore[misc]
        """lm-eval's `hf` model, with options scored behind one context instead of one by one."""

        def _loglikelihood_tokens(
            self,
            requests: list[_Encoded],
            disable_tqdm: bool = False,
            override_bs: int | None = None,
        ) -> list[tuple[float, bool]]:
            if not hasattr(self, "_packed"):
                self._packed = PackedScorer(self.model)
            if self.backend == "causal" and self._packed.packs:
                return _score(self, self._packed, requests)
            answers: list[tuple[float, bool]] = super()._loglikelihood_tokens(
                requests, disable_tqdm, override_bs
            )
            return answers

    known: type[Any] = register_model("forgetmap")(ForgetmapLM)
    return known


def _score(model: Any, scorer: PackedScorer, requests: list[_Encoded]) -> list[tuple[float, bool]]:
    device = "cuda" if model.device.type == "cuda" else "cpu"
    scored: dict[int, tuple[float, bool]] = {}
    for numbers, choices in _by_start(requests, model.max_length):
        for batch in plan_batches(choices, device=device, vocabulary=model.vocab_size):
            results = scorer.score([choices[item] for item in batch.items], batch.shared)
            for item, options in zip(batch.items, results, strict=True):
                scored.update(
                    (number, (option.log_likelihood, option.greedy))
                    for number, option in zip(numbers[item], options, strict=True)
                )
    answers = [scored[number] for number in range(len(requests))]
    for (texts, _, _), answer in zip(requests, answers, strict=True):
        if texts is not None:
            model.cache_hook.add_partial("loglikelihood", texts, answer)
    return answers


def _by_start(requests: list[_Encoded], longest: int) -> list[tuple[list[list[int]], list[Choice]]]:
    """Gather the options of one context, and the contexts that begin alike.

    A text that is too long loses its beginning, as in lm-eval; its context is then its own.
    """
    options: dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for number, (_, context, option) in enumerate(requests):
        over = max(0, len(context) + len(option) - longest - 1)
        options.setdefault(tuple(context[over:]), []).append((number, tuple(option)))
    starts: dict[tuple[int, ...], tuple[list[list[int]], list[Choice]]] = {}
    for tokens, numbered in options.items():
        numbers, choices = starts.setdefault(tokens[:_SAME_START], ([], []))
        numbers.append([number for number, _ in numbered])
        choices.append(Choice(tokens, tuple(option for _, option in numbered)))
    return _pool_the_lonely(list(starts.values()))


def _pool_the_lonely(
    groups: list[tuple[list[list[int]], list[Choice]]], fewest: int = 8
) -> list[tuple[list[list[int]], list[Choice]]]:
    """Groups too small to share anything worth while are scored together."""
    kept = [group for group in groups if len(group[1]) >= fewest]
    lonely = [group for group in groups if len(group[1]) < fewest]
    pooled = (
        [number for numbers, _ in lonely for number in numbers],
        [choice for _, choices in lonely for choice in choices],
    )
    return [*kept, pooled] if lonely else kept
