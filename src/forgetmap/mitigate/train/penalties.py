"""What is added to the loss so that training keeps what the model knew.

Each penalty is a term beside the loss on the new data: more of the old data (replay), a distance to
the model before (anchor), or the margin of answers that were right before (retention). The last one
is an answer to an open question: it penalises exactly the 1 -> 0 transitions, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100
"""Label of a token that is not learned, as transformers has it."""


@dataclass(frozen=True)
class Row:
    """One tokenised text; the loss counts only the tokens from `start` on."""

    tokens: tuple[int, ...]
    start: int = 0


class Rows:
    """Tokenised texts, drawn by the number of the step: a resumed run draws the same again."""

    def __init__(self, rows: Sequence[Row], pad: int, batch: int, seed: int) -> None:
        self._rows, self._pad, self._batch, self._seed = list(rows), pad, batch, seed

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, step: int, device: Any) -> dict[str, Tensor]:
        """The batch of a step: every row once an epoch, in a new order each time."""
        size = min(self._batch, len(self._rows))
        a_pass = max(len(self._rows) // size, 1)
        order = list(range(len(self._rows)))
        random.Random(f"{self._seed}-{step // a_pass}").shuffle(order)
        start = step % a_pass * size
        return pad_rows(
            [self._rows[place] for place in order[start : start + size]], self._pad, device
        )


def pad_rows(rows: Sequence[Row], pad: int, device: Any) -> dict[str, Tensor]:
    """Rows as one batch, padded on the right."""
    width = max(len(row.tokens) for row in rows)
    tokens = [[*row.tokens, *[pad] * (width - len(row.tokens))] for row in rows]
    labels = [
        [*[IGNORED] * row.start, *row.tokens[row.start :], *[IGNORED] * (width - len(row.tokens))]
        for row in rows
    ]
    mask = [[1] * len(row.tokens) + [0] * (width - len(row.tokens)) for row in rows]
    named = {"input_ids": tokens, "attention_mask": mask, "labels": labels}
    return {name: torch.tensor(values, device=device) for name, values in named.items()}


def tokenise(
    tokenizer: PreTrainedTokenizerBase, examples: Sequence[Mapping[str, Any]]
) -> list[Row]:
    """Examples in TRL's forms: `prompt` and `completion`, `messages`, or `text`."""
    return [_row(tokenizer, example) for example in examples]


def _row(tokenizer: PreTrainedTokenizerBase, example: Mapping[str, Any]) -> Row:
    end = [tokenizer.eos_token_id]
    if "messages" in example:
        turns = list(example["messages"])
        prompt = tokenizer.apply_chat_template(
            turns[:-1], add_generation_prompt=True, return_dict=False
        )
        whole = tokenizer.apply_chat_template(turns, return_dict=False)
        return Row(tuple(whole), len(prompt))
    if "text" in example:
        return Row((*tokenizer(example["text"])["input_ids"], *end))
    prompt = tokenizer(example["prompt"])["input_ids"]
    completion = tokenizer(example["completion"], add_special_tokens=False)["input_ids"]
    return Row((*prompt, *completion, *end), len(prompt))


class Before:
    """The model before training, as a reference: a frozen copy, or the base under an adapter."""

    def __init__(self, frozen: PreTrainedModel | None = None) -> None:
        self._frozen = frozen.eval().requires_grad_(False) if frozen else None

    def logits(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """Its logits; `model` is the one in training, whose adapter is left out."""
        with torch.no_grad():
            if self._frozen is None:
                with model.disable_adapter():
                    return _logits(model, batch)
            self._frozen.to(batch["input_ids"].device)
            return _logits(self._frozen, batch)


def _logits(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
    logits: Tensor = model(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False
    ).logits
    return logits.float()


def token_kl(logits: Tensor, before: Tensor, counted: Tensor, direction: str = "forward") -> Tensor:
    """Mean divergence per counted token between a model and the one before it.

    Logits are (rows, tokens, vocabulary), `counted` is (rows, tokens). `forward` is
    KL(before, model): cover all that the model before could say. `reverse` is KL(model, before):
    say nothing that the model before would not.

    Example:
        >>> import torch
        >>> before = torch.log(torch.tensor([[[0.5, 0.5]]]))
        >>> now = torch.log(torch.tensor([[[0.8, 0.2]]]))
        >>> everything = torch.ones(1, 1, dtype=torch.bool)
        >>> round(float(token_kl(now, before, everything)), 4)
        0.2231
        >>> round(float(token_kl(now, before, everything, "reverse")), 4)
        0.1927
    """
    now, then = logits[counted].log_softmax(-1), before[counted].log_softmax(-1)
    first, second = (then, now) if direction == "forward" else (now, then)
    return (first.exp() * (first - second)).sum(-1).mean()


def retention_hinge(likelihoods: Tensor, gold: Tensor, margin: float) -> Tensor:
    """How far the right option is from leading by the margin, averaged over items.

    Zero for an item whose right option leads by at least `margin` nats: an item that is safe pulls
    at nothing. An item that is about to flip from right to wrong costs the whole of its gap.
    Log-likelihoods are (items, options), minus infinity where there is no option.

    Example:
        >>> import torch
        >>> likelihoods = torch.tensor([[-1.0, -3.0], [-2.0, -1.5]])
        >>> float(retention_hinge(likelihoods, torch.tensor([0, 0]), margin=1.0))
        0.75
    """
    right = likelihoods.gather(1, gold[:, None])[:, 0]
    others = likelihoods.scatter(1, gold[:, None], float("-inf")).amax(1)
    return (margin - (right - others)).clamp(min=0).mean()


Penalty = Callable[[Any, Mapping[str, "Tensor"], int], "Tensor"]
"""Of the model in training, the batch of new data and the step: the term to add."""


class Replay:
    """The usual loss on old data: what replay adds to a batch."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __call__(self, model: Any, new: Mapping[str, Tensor], step: int) -> Tensor:
        """The loss on the old batch of this step."""
        batch = self._rows.draw(step, new["input_ids"].device)
        logits, labels = _logits(model, batch)[:, :-1], batch["labels"][:, 1:]
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED
        )


class Anchor:
    """Divergence from the model before, on old data or, where none is given, on the new."""

    def __init__(
        self, before: Before, direction: str, rows: Rows | None, autocast: Callable[[], Any]
    ) -> None:
        self._before, self._direction, self._rows = before, direction, rows
        self._autocast = autocast

    def __call__(self, model: Any, new: Mapping[str, Tensor], step: int) -> Tensor:
        """The divergence on the batch of this step."""
        batch = self._rows.draw(step, new["input_ids"].device) if self._rows else new
        with self._autocast():
            before = self._before.logits(model, batch)
        return token_kl(
            _logits(model, batch), before, batch["attention_mask"].bool(), self._direction
        )


class Retention:
    """The hinge on items that the model before got right, found by scoring it once."""

    def __init__(
        self, items: Sequence[tuple[list[Row], int]], pad: int, margin: float, batch: int, seed: int
    ) -> None:
        self._items, self._pad, self._margin = list(items), pad, margin
        self._batch, self._seed = batch, seed
        self.kept: list[int] = list(range(len(self._items)))
        """Places of the items that count."""

    def keep_right(
        self, model: Any, device: Any, autocast: Callable[[], Any] = nullcontext
    ) -> None:
        """Leave only the items whose right option leads in `model`, the model before."""
        kept = []
        with torch.no_grad(), autocast():
            for start in range(0, len(self._items), self._batch):
                places = range(start, min(start + self._batch, len(self._items)))
                likelihoods, gold = self._score(model, places, device)
                right = likelihoods.argmax(1) == gold
                kept += [place for place, yes in zip(places, right.tolist(), strict=True) if yes]
        self.kept = kept

    def __call__(self, model: Any, new: Mapping[str, Tensor], step: int) -> Tensor:
        """The hinge on the questions of this step."""
        chosen = random.Random(f"{self._seed}-{step}").sample(
            self.kept, min(self._batch, len(self.kept))
        )
        likelihoods, gold = self._score(model, chosen, new["input_ids"].device)
        return retention_hinge(likelihoods, gold, self._margin)

    def _score(self, model: Any, places: Sequence[int], device: Any) -> tuple[Tensor, Tensor]:
        items = [self._items[place] for place in places]
        batch = pad_rows([row for rows, _ in items for row in rows], self._pad, device)
        logs = _logits(model, batch)[:, :-1].log_softmax(-1)
        labels = batch["labels"][:, 1:]
        picked = logs.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        sums = (picked * (labels != IGNORED)).sum(1)
        most = max(len(rows) for rows, _ in items)
        parts = sums.split([len(rows) for rows, _ in items])
        padded = [
            torch.nn.functional.pad(part, (0, most - len(part)), value=-torch.inf) for part in parts
        ]
        return torch.stack(padded), torch.tensor([gold for _, gold in items], device=device)
