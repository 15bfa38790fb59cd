"""Text from a causal language model, in batches, each row only as far as its answer needs.

Rows leave the batch when they are done, so that one long answer does not keep the others waiting.
Sampling draws each row's numbers from its own seed: what an item gets does not depend on its
neighbours, nor on whether the run was stopped in between.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forgetmap.evaluate.loading import input_device

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class Opening:
    """One text to be continued."""

    tokens: tuple[int, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    """Strings that end the text; they are not part of it."""
    temperature: float = 0.0
    """0: always the likeliest token."""
    seed: int = 0
    is_complete: Callable[[str], bool] | None = None
    """Says that the answer has been given, and nothing that follows would change it."""


@dataclass(slots=True)
class Written:
    """A continuation."""

    text: str
    tokens: int
    finished: bool
    """Whether it ended by itself, at a stop string or with its answer; else it was cut off."""


@dataclass(slots=True)
class _Row:
    opening: Opening
    random: torch.Generator
    written: list[int] = field(default_factory=list)


class Writer:
    """Continues texts with a causal language model of transformers, in evaluation mode."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        agree: Callable[[list[int]], list[int]] = lambda tokens: tokens,
    ) -> None:
        self._model = model
        self._agree = agree  # processes with a part of the model each must go on with one token
        self._device = input_device(model)
        self._tokenizer = tokenizer
        self._pad = tokenizer.pad_token_id or 0
        self._ends = _end_tokens(model, tokenizer)
        can_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._keep = {"logits_to_keep": 1} if can_keep else {}

    def write(self, openings: Sequence[Opening]) -> list[Written]:
        """Continue a batch of texts."""
        import torch

        done: dict[int, Written] = {}
        rows = {
            place: _Row(opening, torch.Generator().manual_seed(opening.seed % 2**63))
            for place, opening in enumerate(openings)
        }
        with torch.inference_mode():
            self._decode(rows, done)
        return [done[place] for place in range(len(openings))]

    def _decode(self, rows: dict[int, _Row], done: dict[int, Written]) -> None:
        import torch
        from transformers import DynamicCache

        tokens, seen = self._pad_left([row.opening.tokens for row in rows.values()])
        cache = DynamicCache()
        while rows:
            positions = (seen.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
            logits = self._model(
                input_ids=tokens,
                attention_mask=seen,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                **self._keep,
            ).logits[:, -1]
            chosen = self._agree(_choose(logits, list(rows.values())))
            stay = self._advance(rows, chosen, done)
            if len(stay) < len(chosen) and stay:
                kept = torch.tensor(stay)  # not on a device: layers may lie on several
                cache.batch_select_indices(kept)
                seen = seen[kept]
            fed = [[chosen[place]] for place in stay]
            tokens = torch.tensor(fed, device=seen.device)
            seen = torch.cat([seen[: len(stay)], torch.ones_like(seen[: len(stay), :1])], 1)

    def _advance(
        self, rows: dict[int, _Row], chosen: Sequence[int], done: dict[int, Written]
    ) -> list[int]:
        """Add a token to each row; say which places in the batch go on."""
        stay = []
        for place, (number, row) in enumerate(list(rows.items())):
            if (written := self._add(row, chosen[place])) is None:
                stay.append(place)
            else:
                done[number] = written
                del rows[number]
        return stay

    def _add(self, row: _Row, token: int) -> Written | None:
        """Add a token to a row; what was written, if that ends it."""
        if token in self._ends:
            return Written(self._text(row.written), len(row.written), finished=True)
        row.written.append(token)
        count = len(row.written)
        opening = row.opening
        if not opening.stop and opening.is_complete is None and count < opening.max_tokens:
            return None  # nothing to look for in the text yet
        text = self._text(row.written)
        cuts = [cut for stop in opening.stop if (cut := text.find(stop)) >= 0]
        if cuts:
            return Written(text[: min(cuts)], count, finished=True)
        if opening.is_complete is not None and opening.is_complete(text):
            return Written(text, count, finished=True)
        if count >= opening.max_tokens:
            return Written(text, count, finished=False)
        return None

    def _text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))

    def _pad_left(self, texts: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        width = max(map(len, texts))
        tokens = torch.full((len(texts), width), self._pad)
        seen = torch.zeros((len(texts), width), dtype=torch.long)
        for row, text in enumerate(texts):
            tokens[row, width - len(text) :] = torch.tensor(text)
            seen[row, width - len(text) :] = 1
        return tokens.to(self._device), seen.to(self._device)


def _choose(logits: torch.Tensor, rows: Sequence[_Row]) -> list[int]:
    """The next token of each row: the likeliest, or drawn with one number of the row's own."""
    import torch

    chosen = list(logits.argmax(-1).unbind())
    for place, row in enumerate(rows):
        if row.opening.temperature > 0:
            chosen[place] = _draw(logits[place], row)
    tokens: list[int] = torch.stack(chosen).tolist()
    return tokens


def _draw(logits: torch.Tensor, row: _Row) -> torch.Tensor:
    """Where a number between 0 and 1 falls among the tokens' chances.

    All but the number stays where the logits are. `torch.multinomial` on the processor would take
    a number for every token of the vocabulary, of which Gemma has 262,144.
    """
    import torch

    device = logits.device
    if device.type == "mps":  # which has no double precision
        logits = logits.cpu()
    chances = (logits.float() / row.opening.temperature).softmax(0)
    reached = chances.cumsum(0, dtype=torch.double)
    number = torch.rand(1, generator=row.random, dtype=torch.double).item()
    place = torch.searchsorted(reached, reached[-1:] * number, right=True)
    return place[0].clamp(max=len(reached) - 1).to(device)


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Tokens that end a text: the tokenizer's, and those the model's own settings name."""
    named: Any = getattr(model.generation_config, "eos_token_id", None)
    ends = set(named if isinstance(named, list) else [named])
    return {end for end in (*ends, tokenizer.eos_token_id) if end is not None}
