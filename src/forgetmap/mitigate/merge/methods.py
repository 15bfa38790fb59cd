"""The arithmetic of merging: pure functions on arrays, one per method.

`weight` is the share of the model after: 0 gives the model before, 1 the model after (with density
and scale 1). A task vector is what training added to a base: tuned - base.

Fresh memory is slow: with `in_place` the functions use up the arrays that are given to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.mitigate.merge.weights import Block, Floats

Bits = NDArray[np.int32]

ALMOST_PARALLEL = 0.9995
"""Above this cosine the arc and the chord are one; slerp is then linear (as in mergekit)."""
_NOTHING = 1e-8
_DIGIT = 16
_ROW = 4096


def linear(before: Floats, after: Floats, weight: float, *, in_place: bool = False) -> Floats:
    """The straight line between two models: before + w (after - before).

    Example:
        >>> linear(np.array([0.0, 2.0]), np.array([4.0, 2.0]), 0.25)
        array([1., 2.])
    """
    merged = _change(after, before, in_place)
    merged *= weight
    merged += before
    return merged


def slerp(
    before: Floats,
    after: Floats,
    weight: float,
    cosine: float | None = None,
    *,
    in_place: bool = False,
) -> Floats:
    """The arc between two models: (sin((1-w) t) before + sin(w t) after) / sin(t).

    t is the angle between the two tensors as vectors; where the arrays are only a part of the
    tensors, give its `cosine`. Where the two are almost parallel, as a light fine-tune and its base
    are, this is `linear`.

    Example:
        >>> slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(4)
        array([0.7071, 0.7071])
    """
    if cosine is None:
        cosine = cosine_of([products(before, after)])
    if abs(cosine) > ALMOST_PARALLEL:
        return linear(before, after, weight, in_place=in_place)
    angle = math.acos(cosine)
    shares = math.sin((1 - weight) * angle), math.sin(weight * angle)
    parts = [
        np.multiply(part, share / math.sin(angle), out=part if in_place else None)
        for part, share in zip((before, after), shares, strict=True)
    ]
    parts[0] += parts[1]
    return parts[0]


def products(before: Floats, after: Floats) -> Floats:
    """Sums of before², after² and before * after; those of parts add up.

    Rows of a few thousand numbers are summed in their own type, which loses nothing that matters
    there, and the rows in float64.
    """
    whole = before.size // _ROW * _ROW
    flat = before.reshape(-1), after.reshape(-1)
    # Not by @, whose own threads get in the way of those that call this; a row is too short for it.
    rows = [array[:whole].reshape(-1, _ROW) for array in flat]
    rest = [array[whole:] for array in flat]
    pairs = (0, 0), (1, 1), (0, 1)
    sums = [np.vecdot(rows[i], rows[j]).sum(dtype=np.float64) for i, j in pairs]
    return np.add(sums, [np.vecdot(rest[i], rest[j]) for i, j in pairs], dtype=np.float64)


def cosine_of(parts: Iterable[Floats]) -> float:
    """The cosine between two tensors, from the `products` of their parts; 0 where one is zero.

    Example:
        >>> cosine_of([np.array([1.0, 4.0, 2.0])])
        1.0
    """
    squares = np.sum(list(parts), axis=0)
    lengths = math.sqrt(squares[0]), math.sqrt(squares[1])
    lengths = tuple(length if length > _NOTHING else 1.0 for length in lengths)  # type: ignore[assignment]
    return max(-1.0, min(1.0, float(squares[2]) / lengths[0] / lengths[1]))


def task_arithmetic(
    base: Floats,
    tuned: Sequence[Floats],
    weights: Sequence[float],
    scale: float = 1.0,
    *,
    in_place: bool = False,
) -> Floats:
    """Task vectors added to their base: base + s * sum of w_i (tuned_i - base).

    With the model before as base and scale 1 this is `linear`; a larger scale goes beyond.

    Example:
        >>> task_arithmetic(np.array([1.0]), [np.array([2.0]), np.array([5.0])], [0.5, 0.25])
        array([2.5])
    """
    changes = [_change(one, base, in_place) for one in tuned]
    return _add(base, _weighted(changes, weights), scale)


def ties(
    base: Floats,
    tuned: Sequence[Floats],
    weights: Sequence[float],
    density: float,
    scale: float = 1.0,
    thresholds: Sequence[float] | None = None,
    *,
    in_place: bool = False,
) -> Floats:
    """TIES (Yadav et al., 2023): trim task vectors, elect a sign for each weight, join what agrees.

    Of each task vector the `density` largest numbers stay (equals at the limit all stay). With one
    task vector v the result is base + s w v. With several, a weight's sign is that of the weighted
    sum; those that agree are averaged by their weights. Where the arrays are only parts of the
    tensors, `thresholds` are the smallest magnitudes that stay.

    Example:
        >>> ties(np.zeros(4), [np.array([4.0, -1.0, 0.5, 0.0])], [0.5], density=0.5)
        array([ 2. , -0.5,  0. ,  0. ])
        >>> ties(np.zeros(2), [np.array([4.0, 2.0]), np.array([-1.0, 4.0])], [0.5, 0.5], density=1)
        array([4., 3.])
    """
    changes = [_change(one, base, in_place) for one in tuned]
    limits = thresholds or [
        magnitude_at(lambda _block, whole=change: whole, [(0, change.size)], density)  # type: ignore[misc]
        for change in changes
    ]
    for change, limit in zip(changes, limits, strict=True):
        change *= (_ordered(change) >= np.float32(limit).view(np.int32)).reshape(change.shape)
    return _elect(base, changes, weights, scale, average=len(tuned) > 1)


def dare(
    base: Floats,
    tuned: Sequence[Floats],
    weights: Sequence[float],
    density: float,
    draws: Sequence[NDArray[np.unsignedinteger[Any]]],
    scale: float = 1.0,
    elect: bool = False,
    *,
    in_place: bool = False,
) -> Floats:
    """DARE (Yu et al., 2023): drop numbers of the task vectors at random, enlarge the others.

    Each number stays with probability `density` and is divided by it, so that the expected result
    is that of `task_arithmetic`. `draws` hold, per tuned model, a random whole number of 8 or 16
    bits for each of its numbers; with 16 bits the density is exact to 1/65536. With `elect` signs
    are elected as in `ties`, without averaging (mergekit's dare_ties).

    Example:
        >>> draw = np.random.default_rng(0).integers(0, 2**16, 1000, np.uint16)
        >>> merged = dare(np.zeros(1000), [np.ones(1000)], [1.0], 0.25, [draw])
        >>> sorted(set(merged.tolist()))
        [0.0, 4.0]
    """
    most = 256 ** draws[0].itemsize
    chances = max(1, round(density * most))
    changes = [_change(one, base, in_place) for one in tuned]
    for change, draw in zip(changes, draws, strict=True):
        change *= draw < chances
    enlarged = [weight * most / chances for weight in weights]
    if elect:
        return _elect(base, changes, enlarged, scale, average=False)
    return _add(base, _weighted(changes, enlarged), scale)


def magnitude_at(
    change: Callable[[Block], Floats],
    blocks: Sequence[Block],
    density: float,
) -> float:
    """The magnitude of the number at the limit, when the `density` largest of all stay.

    `change` gives the numbers of a block. Exact, in two passes over the blocks: one counts the
    upper halves of the numbers' bits, the other the lower halves of those at the limit. Compared
    in float32.

    Example:
        >>> numbers = np.array([3.0, -1.0, 2.0, -4.0])
        >>> magnitude_at(lambda block: numbers[slice(*block)], [(0, 2), (2, 4)], density=0.5)
        3.0
    """
    if density >= 1:
        return 0.0
    wanted = max(1, int(density * blocks[-1][1]))

    def upper(block: Block) -> NDArray[Any]:
        bits = _ordered(change(block)) >> _DIGIT
        return np.bincount(bits, minlength=2 ** (_DIGIT - 1))  # the sign is never set

    high, above = _place(sum(map(upper, blocks)), wanted)

    def lower(block: Block) -> NDArray[Any]:
        bits = _ordered(change(block))
        return np.bincount(bits[bits >> _DIGIT == high] & 2**_DIGIT - 1, minlength=2**_DIGIT)

    low, _ = _place(sum(map(lower, blocks)), wanted - above)
    return float(np.int32(high << _DIGIT | low).view(np.float32))


def _ordered(change: Floats) -> Bits:
    """Magnitudes as whole numbers: the bits of positive floats are ordered like the floats."""
    magnitudes = np.empty(change.size, np.float32)
    return np.abs(change.reshape(-1), out=magnitudes, casting="same_kind").view(np.int32)


def _place(counts: Any, wanted: int) -> tuple[int, int]:
    """The value that the wanted-th largest has, and how many are larger than that value."""
    from_top = np.cumsum(counts[::-1])
    place = int(np.searchsorted(from_top, wanted))
    return len(counts) - 1 - place, int(from_top[place - 1]) if place else 0


def _change(tuned: Floats, base: Floats, in_place: bool) -> Floats:
    """What training added; in place only where both are of one type."""
    out = tuned if in_place and tuned.dtype == base.dtype else None
    return np.subtract(tuned, base, out=out)


def _weighted(changes: Sequence[Floats], weights: Sequence[float]) -> list[Floats]:
    for change, weight in zip(changes, weights, strict=True):
        change *= weight
    return list(changes)


def _add(base: Floats, parts: Sequence[Floats], scale: float) -> Floats:
    total = parts[0]
    for part in parts[1:]:
        total += part
    if scale != 1:
        total *= scale
    total += base
    return total


def _elect(
    base: Floats,
    changes: Sequence[Floats],
    weights: Sequence[float],
    scale: float,
    *,
    average: bool,
) -> Floats:
    parts = _weighted(changes, weights)
    if len(parts) == 1:  # nobody to disagree with
        return _add(base, parts, scale)
    positive = sum(parts) >= 0
    share = np.zeros_like(base)
    for part, weight in zip(parts, weights, strict=True):
        agrees = np.where(positive, part > 0, part < 0)
        part *= agrees
        share += agrees * weight
    total: Floats = np.sum(parts, axis=0)
    if average:
        total /= np.where(share == 0, 1, share)
    return _add(base, [total], scale)
