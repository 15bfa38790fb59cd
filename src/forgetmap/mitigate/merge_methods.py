"""The arithmetic of merging: pure functions on arrays, one per method.

`weight` is the share of the model after: 0 gives the model before, 1 the model after (with density
and scale 1). A task vector is what training added to a base: tuned - base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
"""float32 or float64; results have the type of the arguments."""

ALMOST_PARALLEL = 0.9995
"""Above this cosine the arc and the chord are one; slerp is then linear (as in mergekit)."""
_NOTHING = 1e-8
_DIGIT = 16
_ROW = 4096
_CHANCES = 2**16


def linear(before: Floats, after: Floats, weight: float) -> Floats:
    """The straight line between two models: before + w (after - before).

    Example:
        >>> linear(np.array([0.0, 2.0]), np.array([4.0, 2.0]), 0.25)
        array([1., 2.])
    """
    found = after - before
    found *= weight
    found += before
    return found


def slerp(before: Floats, after: Floats, weight: float, cosine: float | None = None) -> Floats:
    """The arc between two models: (sin((1-w) t) before + sin(w t) after) / sin(t).

    t is the angle between the two tensors as vectors. Where they are almost parallel, as a light
    fine-tune and its base are, this is `linear`.

    Args:
        before: Weights of the model before.
        after: Weights of the model after.
        weight: Share of the model after.
        cosine: Of the angle, where the arrays are only a part of the tensors.

    Example:
        >>> slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(4)
        array([0.7071, 0.7071])
    """
    if cosine is None:
        cosine = cosine_of([products(before, after)])
    if abs(cosine) > ALMOST_PARALLEL:
        return linear(before, after, weight)
    angle = math.acos(cosine)
    found: Floats = before * (math.sin((1 - weight) * angle) / math.sin(angle))
    found += after * (math.sin(weight * angle) / math.sin(angle))
    return found


def products(before: Floats, after: Floats) -> Floats:
    """Sums of before², after² and before * after; those of parts add up.

    Rows of a few thousand numbers are summed in their own type, which loses nothing that matters
    there, and the rows in float64.
    """
    one, other = before.reshape(-1), after.reshape(-1)
    pairs = (one, one), (other, other), (one, other)
    return np.array([_dot(*pair) for pair in pairs])


def _dot(one: Floats, other: Floats) -> float:
    # Not by @, whose own threads get in the way of those that call this.
    whole = one.size // _ROW * _ROW
    rows = (array[:whole].reshape(-1, _ROW) for array in (one, other))
    rest = np.einsum("i,i", one[whole:], other[whole:])
    return float(np.einsum("ij,ij->i", *rows).sum(dtype=np.float64) + rest)


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
    base: Floats, tuned: Sequence[Floats], weights: Sequence[float], scale: float = 1.0
) -> Floats:
    """Task vectors added to their base: base + s * sum of w_i (tuned_i - base).

    With the model before as base and scale 1 this is `linear`; a larger scale goes beyond.

    Example:
        >>> task_arithmetic(np.array([1.0]), [np.array([2.0]), np.array([5.0])], [0.5, 0.25])
        array([2.5])
    """
    return _add(base, _weighted([one - base for one in tuned], weights), scale)


def ties(
    base: Floats,
    tuned: Sequence[Floats],
    weights: Sequence[float],
    density: float,
    scale: float = 1.0,
    thresholds: Sequence[float] | None = None,
) -> Floats:
    """TIES (Yadav et al., 2023): trim task vectors, elect a sign for each weight, join what agrees.

    Of each task vector the `density` largest numbers stay (equals at the limit all stay). With one
    task vector v the result is base + s w v. With several, a weight's sign is that of the weighted
    sum; those that agree are averaged by their weights.

    Args:
        base: Weights of the base.
        tuned: Weights of the models tuned from it.
        weights: One per tuned model.
        density: Share of each task vector that stays.
        scale: Factor of what is added to the base.
        thresholds: Smallest magnitude that stays, where the arrays are only parts of the tensors.

    Example:
        >>> ties(np.zeros(4), [np.array([4.0, -1.0, 0.5, 0.0])], [0.5], density=0.5)
        array([ 2. , -0.5,  0. ,  0. ])
        >>> ties(np.zeros(2), [np.array([4.0, 2.0]), np.array([-1.0, 4.0])], [0.5, 0.5], density=1)
        array([4., 3.])
    """
    changes = [one - base for one in tuned]
    limits = thresholds or [
        magnitude_at(lambda look, change=change: [look(change)], change.size, density)  # type: ignore[misc]
        for change in changes
    ]
    for change, limit in zip(changes, limits, strict=True):
        change *= _magnitude(change) >= limit
    return _elect(base, changes, weights, scale, average=len(tuned) > 1)


def dare(
    base: Floats,
    tuned: Sequence[Floats],
    weights: Sequence[float],
    density: float,
    draws: Sequence[np.random.Generator],
    scale: float = 1.0,
    elect: bool = False,
) -> Floats:
    """DARE (Yu et al., 2023): drop numbers of the task vectors at random, enlarge the others.

    Each number stays with probability `density` and is divided by it, so that the expected result
    is that of `task_arithmetic`. With `elect` signs are elected as in `ties`, without averaging
    (mergekit's dare_ties).

    Args:
        base: Weights of the base.
        tuned: Weights of the models tuned from it.
        weights: One per tuned model.
        density: Probability to stay, rounded to 1/65536.
        draws: A source of random numbers per tuned model.
        scale: Factor of what is added to the base.
        elect: Keep only what agrees with the sign of the weighted sum.

    Example:
        >>> found = dare(np.zeros(1000), [np.ones(1000)], [1.0], 0.25, [np.random.default_rng(0)])
        >>> sorted(set(found.tolist()))
        [0.0, 4.0]
    """
    chances = max(1, round(density * _CHANCES))
    changes = []
    for one, draw in zip(tuned, draws, strict=True):
        change = one - base
        change *= draw.integers(0, _CHANCES, change.shape, np.uint16) < chances
        change *= _CHANCES / chances
        changes.append(change)
    if elect:
        return _elect(base, changes, weights, scale, average=False)
    return _add(base, _weighted(changes, weights), scale)


def magnitude_at(
    over: Callable[[Callable[[Floats], Floats]], Iterable[Floats]], count: int, density: float
) -> float:
    """The magnitude of the number at the limit, when the `density` largest of `count` stay.

    Exact, in two passes and little memory: the bits of positive floats are ordered like the floats,
    so counting the upper halves finds the upper half of the limit, and counting the lower halves
    among those finds the rest. Magnitudes are compared in float32.

    Args:
        over: Calls what it is given with every part of the numbers, and returns the results.
        count: How many numbers there are.
        density: Share that stays; at least one number does.

    Example:
        >>> parts = [np.array([3.0, -1.0]), np.array([2.0, -4.0])]
        >>> magnitude_at(lambda look: map(look, parts), 4, 0.5)
        3.0
    """
    if density >= 1:
        return 0.0
    wanted = max(1, int(density * count))

    def upper(part: Floats) -> Floats:
        bits = _magnitude(part).reshape(-1).view(np.uint32)
        return np.bincount(bits >> _DIGIT, minlength=2 ** (_DIGIT - 1))  # the sign bit is never set

    high, above = _place(sum(over(upper)), wanted)

    def lower(part: Floats) -> Floats:
        bits = _magnitude(part).reshape(-1).view(np.uint32)
        among = bits[bits >> _DIGIT == high] & np.uint32(2**_DIGIT - 1)
        return np.bincount(among, minlength=2**_DIGIT)

    low, _ = _place(sum(over(lower)), wanted - above)
    return float(np.uint32(high << _DIGIT | low).view(np.float32))


def _place(counts: Any, wanted: int) -> tuple[int, int]:
    """The value that the wanted-th largest has, and how many are larger than that value."""
    from_top = np.cumsum(counts[::-1])
    place = int(np.searchsorted(from_top, wanted))
    return len(counts) - 1 - place, int(from_top[place - 1]) if place else 0


def _magnitude(change: Floats) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.abs(change).astype(np.float32, copy=False)
    return found


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
