"""The arithmetic of merging: pure functions on arrays, one per method.

`weight` is the share of the model after: 0 gives the model before, 1 the model after (with density
and scale 1). A task vector is what training added to a base: tuned - base.

Fresh memory is slow: with `in_place` the functions use up the arrays that are given to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.mitigate.merge.weights import Block, Each, Floats

Bits = NDArray[np.int32]
Over = Callable[[Callable[[Bits], Any]], Iterable[Any]]
"""Calls what it is given with every part of the numbers, and returns the results."""

ALMOST_PARALLEL = 0.9995
"""Above this cosine the arc and the chord are one; slerp is then linear (as in mergekit)."""
_NOTHING = 1e-8
_DIGIT = 16
_ROW = 4096
_SAMPLED = 2**15
_STRIDE = 61
_MARGIN = 0.01


def linear(before: Floats, after: Floats, weight: float, *, in_place: bool = False) -> Floats:
    """The straight line between two models: before + w (after - before).

    Example:
        >>> linear(np.array([0.0, 2.0]), np.array([4.0, 2.0]), 0.25)
        array([1., 2.])
    """
    found = _change(after, before, in_place)
    found *= weight
    found += before
    return found


def slerp(
    before: Floats,
    after: Floats,
    weight: float,
    cosine: float | None = None,
    *,
    in_place: bool = False,
) -> Floats:
    """The arc between two models: (sin((1-w) t) before + sin(w t) after) / sin(t).

    t is the angle between the two tensors as vectors. Where they are almost parallel, as a light
    fine-tune and its base are, this is `linear`.

    Args:
        before: Weights of the model before.
        after: Weights of the model after.
        weight: Share of the model after.
        cosine: Of the angle, where the arrays are only a part of the tensors.
        in_place: Whether the arrays may be used up.

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
    found = [np.vecdot(rows[i], rows[j]).sum(dtype=np.float64) for i, j in pairs]
    return np.add(found, [np.vecdot(rest[i], rest[j]) for i, j in pairs], dtype=np.float64)


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
    sum; those that agree are averaged by their weights.

    Args:
        base: Weights of the base.
        tuned: Weights of the models tuned from it.
        weights: One per tuned model.
        density: Share of each task vector that stays.
        scale: Factor of what is added to the base.
        thresholds: Smallest magnitude that stays, where the arrays are only parts of the tensors.
        in_place: Whether the tuned arrays may be used up.

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


class TiesAtOnce:
    """`ties` of one tuned model whose numbers are read only once, block by block.

    A sample tells between which magnitudes the limit must lie. At first all that is not below both
    stays. The few numbers between are noted, and taken back where the limit is above them.

    Args:
        change: The numbers of the task vector in a block, given its first and its end.
        blocks: All of them, in order.
        density: Share of the task vector that stays.
        store: Makes of results what is kept of them.

    Example:
        >>> base, tuned = np.zeros(4), np.array([3.0, -1.0, 2.0, -4.0])
        >>> found = TiesAtOnce(lambda block: tuned[slice(*block)], [(0, 2), (2, 4)], 0.5, np.copy)
        >>> for block in (0, 2), (2, 4):
        ...     found.add(block, base[slice(*block)], tuned[slice(*block)].copy(), weight=0.5)
        >>> found.is_settled(), found.take(0, 2), found.take(2, 4)
        (True, array([1.5, 0. ]), array([ 0., -2.]))
    """

    def __init__(
        self,
        change: Callable[[Block], Floats],
        blocks: Sequence[Block],
        density: float,
        store: Callable[[Floats], NDArray[Any]],
    ) -> None:
        self._wanted, self._store = _wanted(density, blocks), store
        self._band = _band(_sample(change, blocks), self._wanted / blocks[-1][1])
        self._held: dict[Block, tuple[NDArray[Any], _Look, NDArray[Any]]] = {}
        self._limit = 0

    def add(
        self, block: Block, base: Floats, tuned: Floats, weight: float, scale: float = 1.0
    ) -> None:
        """Merge a block as far as can be told; `tuned` is used up."""
        change = _change(tuned, base, in_place=True)
        stays, look = self._band.look(_ordered(change))
        without = change.take(look.places) * 0 + base.take(look.places)
        change *= stays
        found = _add(base, _weighted([change], [weight]), scale)
        self._held[block] = self._store(found), look, self._store(without)

    def is_settled(self) -> bool:
        """Whether, after all blocks, the limit is known; if not, the sample has misled."""
        limit = self._band.settle([look for _, look, _ in self._held.values()], self._wanted)
        self._limit = limit or 0
        return limit is not None

    def take(self, start: int, stop: int) -> NDArray[Any]:
        """A merged block, for good."""
        found, look, without = self._held.pop((start, stop))
        goes = look.numbers < self._limit
        found[look.places[goes]] = without[goes]
        return found


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
    is that of `task_arithmetic`. With `elect` signs are elected as in `ties`, without averaging
    (mergekit's dare_ties).

    Args:
        base: Weights of the base.
        tuned: Weights of the models tuned from it.
        weights: One per tuned model.
        density: Probability to stay, as exact as the draws are: with 16 bits to 1/65536.
        draws: Per tuned model a random whole number of 8 or 16 bits for each of its numbers.
        scale: Factor of what is added to the base.
        elect: Keep only what agrees with the sign of the weighted sum.
        in_place: Whether the tuned arrays may be used up.

    Example:
        >>> draw = np.random.default_rng(0).integers(0, 2**16, 1000, np.uint16)
        >>> found = dare(np.zeros(1000), [np.ones(1000)], [1.0], 0.25, [draw])
        >>> sorted(set(found.tolist()))
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
    each: Each = map,
) -> float:
    """The magnitude of the number at the limit, when the `density` largest of all stay.

    Exact, and mostly in one pass: a sample says between which magnitudes the limit must lie; those
    beyond are counted, those between are kept and sorted. Where the sample misled, the pass has
    taken a better one; where that misleads too, digits are counted. Compared in float32.

    Args:
        change: The numbers of a block, given its first and its end.
        blocks: All of them, in order.
        density: Share that stays; at least one number does.
        each: What calls a function with every block: `map`, or that of a pool of threads.

    Example:
        >>> numbers = np.array([3.0, -1.0, 2.0, -4.0])
        >>> magnitude_at(lambda block: numbers[slice(*block)], [(0, 2), (2, 4)], density=0.5)
        3.0
    """
    if density >= 1:
        return 0.0
    wanted = _wanted(density, blocks)

    def over(look: Callable[[Bits], Any]) -> Iterable[Any]:
        return each(lambda block: look(_ordered(change(block))), blocks)

    if len(blocks) == 1:
        found = _largest(_ordered(change(blocks[0])), wanted)
    else:
        found = _by_sample(over, _sample(change, blocks), wanted, blocks[-1][1])
    return float(np.int32(found).view(np.float32))


def _wanted(density: float, blocks: Sequence[Block]) -> int:
    return max(1, int(density * blocks[-1][1]))


def _sample(change: Callable[[Block], Floats], blocks: Sequence[Block]) -> Bits:
    return np.concatenate([_ordered(change(place)) for place in _places(blocks)])


def _places(blocks: Sequence[Block]) -> list[Block]:
    """Where to take a sample: two short pieces of every block, about `_SAMPLED` numbers in all."""
    length = max(64, _SAMPLED // (2 * len(blocks)))
    return [
        (place, min(place + length, stop))
        for start, stop in blocks
        for place in range(start, stop, max(length, (stop - start) // 2))
    ]


def _ordered(change: Floats) -> Bits:
    """Magnitudes as whole numbers: the bits of positive floats are ordered like the floats."""
    found = np.empty(change.size, np.float32)
    return np.abs(change.reshape(-1), out=found, casting="same_kind").view(np.int32)


def _largest(numbers: Bits, wanted: int) -> int:
    # In 16 bits many changes are equal; np.partition then takes many times as long as this.
    return int(np.sort(numbers)[-wanted])


class _Look(NamedTuple):
    """What part of the numbers lies above a band and in it."""

    above: int
    within: int
    places: NDArray[np.intp]
    """Of those in it; not told where they are all equal."""
    numbers: Bits
    """At those places."""


class _Band(NamedTuple):
    """Two magnitudes between which the limit should lie."""

    low: int
    high: int

    @property
    def is_one(self) -> bool:
        """Whether only one number lies between."""
        return self.high - self.low == 2

    def look(self, part: Bits) -> tuple[NDArray[np.bool_], _Look]:
        """Which numbers are not below the band, and what else there is to know."""
        stays, within = part > self.low, part >= self.high
        above = int(np.count_nonzero(within))
        within ^= stays
        places = np.flatnonzero(within[:0] if self.is_one else within)
        held = int(np.count_nonzero(within)) if self.is_one else len(places)
        return stays, _Look(above, held, places, part.take(places))

    def settle(self, looks: Sequence[_Look], wanted: int) -> int | None:
        """The wanted-th largest of all numbers; None where it does not lie in the band."""
        above, within = sum(look.above for look in looks), sum(look.within for look in looks)
        if not above < wanted <= above + within:
            return None
        if self.is_one:
            return self.low + 1
        return _largest(np.concatenate([look.numbers for look in looks]), wanted - above)


def _by_sample(over: Over, sample: Bits, wanted: int, count: int) -> int:
    """The wanted-th largest of all numbers, found around where it lies in a sample of them."""
    for _ in range(2):
        band = _band(sample, wanted / count)
        # The new sample is a copy, not a view, which would hold on to the whole part.
        looked = over(lambda part, band=band: (band.look(part)[1], part[::_STRIDE].copy()))  # type: ignore[misc]
        looks, spread = zip(*looked, strict=True)
        found = band.settle(looks, wanted)
        if found is not None:
            return found
        sample = np.concatenate(spread)
    return _by_digits(over, wanted)


def _band(sample: Bits, share: float) -> _Band:
    """Two numbers around the one with this share above it; right beside it, where many equal it.

    (In 16 bits many changes are equal, zero above all; to keep them would take too much memory.)
    """
    sample.sort()
    shares = np.array([1 - share - _MARGIN, 1 - share, 1 - share + _MARGIN])
    places = np.clip((shares * len(sample)).astype(int), 0, len(sample) - 1)
    low, middle, high = sample[places].tolist()
    low, high = min(low, middle - 1), max(high, middle + 1)
    first, end = np.searchsorted(sample, [low + 1, high])
    if end - first < 4 * _MARGIN * len(sample):
        return _Band(low, high)
    return _Band(middle - 1, middle + 1)


def _by_digits(over: Over, wanted: int) -> int:
    """The wanted-th largest in two passes: by the upper halves of all, then by the lower ones."""

    def upper(part: Bits) -> NDArray[Any]:
        return np.bincount(part >> _DIGIT, minlength=2 ** (_DIGIT - 1))  # the sign is never set

    high, above = _place(sum(over(upper)), wanted)

    def lower(part: Bits) -> NDArray[Any]:
        among = part[part >> _DIGIT == high] & 2**_DIGIT - 1
        return np.bincount(among, minlength=2**_DIGIT)

    low, _ = _place(sum(over(lower)), wanted - above)
    return high << _DIGIT | low


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
