"""Log-likelihoods of options, without computing anything twice.

One row per item: the context once, then every option behind it. An option sees the context and
itself, never its neighbours (a 4-D mask), and counts its positions from the end of the context. The
beginning that all items of a task share (instruction, few-shot examples) is computed once and kept
as a key-value cache. The last token of an option is never fed, as nothing follows from it; logits
are computed only where an option's token is predicted.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from forgetmap.evaluate.loading import input_device

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel

SELF_CHECK_TOLERANCE = 1e-3
"""Packed and plain scores of a probe differ by less in float32, where a model can be packed."""
_MOST_LOGITS = {"cpu": 2**26, "cuda": 2**29}
"""Numbers in the logits of one batch: 256 MiB in float32 on a processor, 2 GiB on a card."""
_TOKENS_A_BATCH = {"cpu": 1024, "cuda": 32_768}
_FEWEST_SHARED = 4
"""A shared beginning shorter than this is not worth a cache."""
_FEWEST_SAVED = {"cpu": 0, "cuda": 4096}
"""Tokens that a cache must save: its own pass through the model costs a card some milliseconds."""
_BLOCK = 32
"""Of keys, in torch's attention for cards. With a mask, and one key head for all heads, it may go
wrong where one key is left over (pytorch/pytorch#191937)."""


class Scored(NamedTuple):
    """What the model thinks of one option."""

    log_likelihood: float
    """Summed over the option's tokens."""
    greedy: bool
    """Whether the model itself would have written it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tokens of one item: a context and the options behind it."""

    context: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]

    @property
    def fed(self) -> int:
        """Tokens that the options add to the row; the last of each is only predicted."""
        return sum(len(option) - 1 for option in self.options)

    @property
    def longest(self) -> int:
        """Positions needed: the context and the longest option, but for its last token."""
        return len(self.context) + max(len(option) for option in self.options) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that are scored together."""

    items: tuple[int, ...]
    """Their places in the list that was planned."""
    shared: int
    """Tokens at the beginning that all items of the list have in common."""


def plan_batches(
    choices: Sequence[Choice], *, device: str, vocabulary: int, rows: int | None = None
) -> list[Batch]:
    """Put items of like length together, the longest first.

    The plan depends on the whole list alone, so that a run that was stopped makes the same batches
    when it goes on, and with them the same numbers to the last bit. A batch has `rows` items, or as
    many as are quick on the device (`cpu` or `cuda`) and whose logits fit.

    Example:
        >>> ask = [Choice((1, 2, 3, 4, 5), ((6,), (7, 8))), Choice((1, 2, 3, 4, 9, 9), ((6,),))]
        >>> plan_batches(ask, device="cpu", vocabulary=100)
        [Batch(items=(0, 1), shared=4)]
    """
    shared = _common_beginning(choices)
    if shared * (len(choices) - 1) < _FEWEST_SAVED[device]:
        shared = 0
    shapes = [(len(choice.context) + choice.fed, choice.fed) for choice in choices]
    order = sorted(range(len(choices)), key=shapes.__getitem__, reverse=True)
    batches: list[Batch] = []
    held: list[int] = []
    width = logits = 0
    for place in order:
        choice = choices[place]
        wider = max(width, len(choice.context) - shared + choice.fed)
        more = max(logits, 1 + choice.fed)
        full = (
            len(held) >= rows if rows else _too_many(len(held) + 1, wider, more, device, vocabulary)
        )
        if held and full:
            batches.append(Batch(tuple(held), shared))
            held, wider, more = [], len(choice.context) - shared + choice.fed, 1 + choice.fed
        held.append(place)
        width, logits = wider, more
    if held:
        batches.append(Batch(tuple(held), shared))
    return batches


def _too_many(rows: int, width: int, logits: int, device: str, vocabulary: int) -> bool:
    return (
        rows * width > _TOKENS_A_BATCH[device] or rows * logits * vocabulary > _MOST_LOGITS[device]
    )


def _common_beginning(choices: Sequence[Choice]) -> int:
    """Tokens that all contexts begin with; each keeps at least one of its own."""
    if len(choices) < 2:
        return 0
    contexts = [choice.context for choice in choices]
    first, last = min(contexts), max(contexts)  # the two that differ earliest
    agreeing = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    common = min(sum(1 for _ in agreeing), min(map(len, contexts)) - 1)
    return common if common >= _FEWEST_SHARED else 0


class PackedScorer:
    """Scores items with a causal language model of transformers, in evaluation mode.

    `pad` is a token to fill rows with; which one does not matter, as nothing sees it. Whether
    options can be packed is tried, unless `packs` says what was found with other weights.
    """

    def __init__(self, model: PreTrainedModel, pad: int = 0, *, packs: bool | None = None) -> None:
        self._model = model
        self._pad = pad
        self._device = input_device(model)
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._kept: tuple[tuple[int, ...], DynamicCache] | None = None
        self._windows = _windows(model.config.get_text_config())
        self.packs = self._can_pack() if packs is None else packs
        """Whether options go behind one another; else each gets a row of its own."""

    def score(self, choices: Sequence[Choice], shared: int = 0) -> list[list[Scored]]:
        """Score a batch; the first `shared` tokens of all contexts must be the same."""
        import torch

        if not self.packs:
            return self._score_plainly(choices)
        with torch.inference_mode():
            return self._score_packed(choices, shared)

    def _score_packed(self, choices: Sequence[Choice], shared: int) -> list[list[Scored]]:
        rows = _Rows.pack(choices, shared, self._pad, self._device)
        cache = self._shared_cache(choices[0].context[:shared], len(choices)) if shared else None
        keep = {"logits_to_keep": rows.options + 1} if self._keeps_logits else {}
        logits = self._model(
            input_ids=rows.tokens,
            position_ids=rows.positions,
            attention_mask=self._mask(rows),
            past_key_values=cache,
            use_cache=cache is not None,
            **keep,
        ).logits[:, -(rows.options + 1) :]
        return _pick(logits, choices)

    def _mask(self, rows: _Rows) -> Any:
        """The mask in the form that the model's layers want: one, or one for each kind of layer."""
        masks = {kind: self._as_bias(rows, window) for kind, window in self._windows.items()}
        return masks.get("", masks)

    def _as_bias(self, rows: _Rows, window: int | None) -> torch.Tensor:
        import torch

        seen = rows.seen if window is None else rows.seen & rows.within(window)
        dtype = self._model.dtype
        bias = torch.zeros(seen.shape, dtype=dtype, device=self._device)
        return bias.masked_fill_(~seen, torch.finfo(dtype).min)[:, None]

    def _shared_cache(self, tokens: tuple[int, ...], rows: int) -> DynamicCache:
        import torch
        from transformers import DynamicCache

        if self._kept is None or self._kept[0] != tokens:
            fresh = DynamicCache()
            ids = torch.tensor([tokens], device=self._device)
            keep = {"logits_to_keep": 1} if self._keeps_logits else {}
            self._model(input_ids=ids, past_key_values=fresh, use_cache=True, **keep)
            self._kept = tokens, fresh
        widened = DynamicCache()
        for place, layer in enumerate(self._kept[1].layers):
            widened.update(
                layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1), place
            )
        return widened

    def _score_plainly(self, choices: Sequence[Choice]) -> list[list[Scored]]:
        """One row per option, padded on the right: works for every causal model."""
        import torch

        pairs = [(choice.context, option) for choice in choices for option in choice.options]
        width = max(len(context) + len(option) - 1 for context, option in pairs)
        width = _without_odd_key(width, self._device.type)
        tokens = torch.full((len(pairs), width), self._pad)
        seen = torch.zeros((len(pairs), width), dtype=torch.long)
        for row, (context, option) in enumerate(pairs):
            fed = (*context, *option[:-1])
            tokens[row, : len(fed)] = torch.tensor(fed)
            seen[row, : len(fed)] = 1
        with torch.inference_mode():
            logits = self._model(
                input_ids=tokens.to(self._device), attention_mask=seen.to(self._device)
            ).logits
            scored = iter(
                _one(logits[row, len(context) - 1 :][: len(option)], option)
                for row, (context, option) in enumerate(pairs)
            )
            return [[next(scored) for _ in choice.options] for choice in choices]

    def _can_pack(self) -> bool:
        """Score a probe both ways: without plain attention and positions nothing can be packed."""
        import torch

        some = tuple(range(3, 15))
        probe = [Choice(some, ((5, 6, 7), (8, 9))), Choice((*some[:6], 20), ((4, 4), (6,)))]
        try:
            with torch.inference_mode():
                packed = self._score_packed(probe, 5)
        except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError):
            return False
        finally:
            self._kept = None
        plain = self._score_plainly(probe)
        exact = self._model.dtype == torch.float32
        tolerance = SELF_CHECK_TOLERANCE if exact else 50 * SELF_CHECK_TOLERANCE
        return all(
            abs(one.log_likelihood - other.log_likelihood)
            <= tolerance * max(1.0, abs(other.log_likelihood))
            for ours, theirs in zip(packed, plain, strict=True)
            for one, other in zip(ours, theirs, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """A packed batch: contexts end in one column, so that the options begin in the next."""

    tokens: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor
    """Row, query, key: whether it may be looked at; the keys begin with the shared ones."""
    options: int
    """Columns of the options."""

    @classmethod
    def pack(cls, choices: Sequence[Choice], shared: int, pad: int, device: torch.device) -> _Rows:
        import torch

        before = max(len(choice.context) for choice in choices) - shared
        behind = max(choice.fed for choice in choices)
        before = _without_odd_key(shared + before + behind, device.type) - shared - behind
        tokens, positions, group = [], [], []
        for choice in choices:
            own = choice.context[shared:]
            left, right = before - len(own), behind - choice.fed
            first = len(choice.context)
            row = ([pad] * left + [*own], [0] * left + [*range(shared, first)])
            of = [-1] * left + [0] * len(own)  # 0 the context, then 1 for each option
            for number, option in enumerate(choice.options, 1):
                row[0].extend(option[:-1])
                row[1].extend(range(first, first + len(option) - 1))
                of.extend([number] * (len(option) - 1))
            tokens.append(row[0] + [pad] * right)
            positions.append(row[1] + [0] * right)
            group.append(of + [-1] * right)
        # One copy to the device each; the mask is made there, where it is large.
        whole = (torch.tensor(rows, device=device) for rows in (tokens, positions, group))
        tokens_there, positions_there, group_there = whole
        return cls(tokens_there, positions_there, _visible(group_there, shared), behind)

    def within(self, window: int) -> torch.Tensor:
        """Which keys are near enough for layers that look back `window` positions only."""
        import torch

        shared = self.seen.shape[2] - self.tokens.shape[1]
        first = torch.arange(shared, device=self.tokens.device).expand(len(self.tokens), shared)
        keys = torch.cat([first, self.positions], 1)
        return self.positions[:, :, None] - keys[:, None, :] < window


def _without_odd_key(keys: int, device: str) -> int:
    """How many keys a batch gets: on a card one of padding more where one would be left over.

    Example:
        >>> _without_odd_key(577, "cuda"), _without_odd_key(577, "cpu")
        (578, 577)
    """
    return keys + (device == "cuda" and keys % _BLOCK == 1)


def _visible(group: torch.Tensor, shared: int) -> torch.Tensor:
    import torch

    rows, width = group.shape
    query, key = group[:, :, None], group[:, None, :]
    earlier = torch.ones(width, width, dtype=torch.bool, device=group.device).tril()
    own = (query == key) | ((key == 0) & (query > 0))
    own = own & earlier  # padding sees padding, so that no row is empty; nothing else sees it
    return torch.cat([(query >= 0).expand(rows, width, shared), own], 2)


def _windows(config: Any) -> dict[str, int | None]:
    """How far back each kind of layer looks; one nameless kind where all layers are alike."""
    window = getattr(config, "sliding_window", None)
    if not getattr(config, "use_sliding_window", True):
        window = None
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds <= {"full_attention"}:
        return {"": window if not kinds else None}
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """In float32 at least; half precision is too coarse for a sum over the vocabulary.

    On a processor torch's float32 log-softmax is off by about 2e-5 for each token, always to the
    same side. lm-eval takes it, and so its numbers are met only by taking it too.
    """
    import torch

    return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)


def _pick(logits: torch.Tensor, choices: Sequence[Choice]) -> list[list[Scored]]:
    """Read the options' tokens off the logits; their first column belongs to the context's end."""
    import torch

    rows: list[int] = []
    columns: list[int] = []
    tokens: list[int] = []
    for row, choice in enumerate(choices):
        column = 1
        for option in choice.options:
            rows += [row] * len(option)
            columns += [0, *range(column, column + len(option) - 1)]
            tokens += option
            column += len(option) - 1
    where = torch.tensor([rows, columns], device=logits.device).unbind()
    wanted = torch.tensor(tokens, device=logits.device)
    chosen = _log_softmax(logits)[(*where, wanted)].tolist()
    greedy = (logits.argmax(-1)[where] == wanted).tolist()
    results, start = [], 0
    for choice in choices:
        scored = []
        for option in choice.options:
            place = slice(start, start := start + len(option))
            scored.append(Scored(sum(chosen[place]), all(greedy[place])))
        results.append(scored)
    return results


def _one(logits: torch.Tensor, option: tuple[int, ...]) -> Scored:
    import torch

    wanted = torch.tensor(option, device=logits.device)
    chosen = _log_softmax(logits).gather(1, wanted[:, None])[:, 0].tolist()
    return Scored(sum(chosen), bool((logits.argmax(1) == wanted).all()))
