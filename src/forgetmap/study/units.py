"""What counts as one in a study: pairs that differ in their seed alone are one kind of training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.words import clean
from forgetmap.study.file import SCALES, SEED, Attribute
from forgetmap.study.result import LearnedBy, StudiedPair

DOSES = (*SCALES, "learning_rate")
"""Attributes whose doubling a slope is about."""
FAMILY = "family"
PAIRS = "pairs, replicates as one"
"""What most intervals of a study take as independent."""
TRAININGS = "trainings, on these items"
"""What the difference between two kinds of training with several seeds takes as independent."""
_MOST_LEVELS = 12


class Unit(NamedTuple):
    """Pairs that differ in their seed alone, as one."""

    attributes: dict[str, Attribute]
    members: list[int]
    lost: float
    gained: float
    losses: list[float]
    """Of every member."""


def find_units(pairs: Sequence[StudiedPair]) -> list[Unit]:
    """Replicates together. Only pairs that have a seed are replicates of each other."""
    groups: dict[object, list[int]] = {}
    for number, pair in enumerate(pairs):
        rest = {name: value for name, value in pair.attributes.items() if name != SEED}
        alone = None if SEED in pair.attributes else number
        groups.setdefault((alone, tuple(sorted(rest.items()))), []).append(number)
    return [_unit(pairs, members) for members in groups.values()]


def _unit(pairs: Sequence[StudiedPair], members: list[int]) -> Unit:
    attributes = pairs[members[0]].attributes
    return Unit(
        {name: value for name, value in attributes.items() if name != SEED},
        members,
        float(np.mean([pairs[number].old.lost.value for number in members])),
        float(np.mean([pairs[number].old.gained.value for number in members])),
        [pairs[number].old.lost.value for number in members],
    )


def by_value(units: Sequence[Unit]) -> Iterator[tuple[str, dict[Attribute, list[Unit]]]]:
    """The attributes that differ between units and repeat among them, with the units by value."""
    names = dict.fromkeys(name for unit in units for name in unit.attributes)
    for name in names:
        groups: dict[Attribute, list[Unit]] = {}
        for unit in units:
            if name in unit.attributes:
                groups.setdefault(unit.attributes[name], []).append(unit)
        repeated = any(len(members) > 1 for members in groups.values())
        if 1 < len(groups) <= _MOST_LEVELS and repeated:
            yield name, {value: groups[value] for value in in_order(groups)}


def varies(units: Sequence[Unit], name: str) -> bool:
    """Whether units differ in an attribute."""
    return len({unit.attributes.get(name) for unit in units}) > 1


def in_order(values: Iterable[Attribute]) -> list[Attribute]:
    """Values of an attribute in an order for people: numbers first."""
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def is_positive(value: Attribute | None) -> bool:
    """Whether an attribute has a logarithm."""
    return isinstance(value, float) and value > 0


def others(unit: Unit, *names: str) -> dict[str, Attribute]:
    """All attributes of a unit but some."""
    return {key: value for key, value in unit.attributes.items() if key not in names}


def find_told(units: Sequence[Unit]) -> dict[str, set[str]]:
    """By attribute, those whose values follow from it: a family has one size.

    Of two that tell each other, the first tells the second. An attribute that a unit lacks counts
    as a value of its own.

    Example:
        >>> pairs = [("a", 1.0, "x"), ("a", 1.0, "y"), ("b", 2.0, "x")]
        >>> units = [Unit(dict(zip(("family", "size", "method"), p)), [], 0, 0, []) for p in pairs]
        >>> find_told(units)
        {'family': {'size'}, 'size': set(), 'method': set()}
    """
    names = list(dict.fromkeys(name for unit in units for name in unit.attributes))
    columns = {name: [unit.attributes.get(name) for unit in units] for name in names}

    def tells(one: str, other: str) -> bool:
        both = set(zip(columns[one], columns[other], strict=True))
        return len(both) == len(set(columns[one]))

    return {
        one: {
            other
            for later, other in enumerate(names)
            if one != other and tells(one, other) and (place < later or not tells(other, one))
        }
        for place, one in enumerate(names)
    }


def telling(units: Sequence[Unit]) -> list[str]:
    """The first few attributes that tell all kinds of training apart; the others follow from them.

    Example:
        >>> pairs = [("a", 1.0, "x"), ("a", 1.0, "y"), ("b", 2.0, "x")]
        >>> units = [Unit(dict(zip(("family", "size", "method"), p)), [], 0, 0, []) for p in pairs]
        >>> telling(units)
        ['family', 'method']
    """
    names = list(dict.fromkeys(name for unit in units for name in unit.attributes))

    def kinds(chosen: Sequence[str]) -> int:
        return len({tuple(unit.attributes.get(name) for name in chosen) for unit in units})

    wanted = kinds(names)
    for name in reversed(names):
        rest = [other for other in names if other != name]
        if kinds(rest) == wanted:
            names = rest
    return names


def kind_name(attributes: Mapping[str, Attribute], names: Iterable[str]) -> str:
    """A kind of training in a few words: its values of the attributes that tell kinds apart."""
    return " ".join(show(attributes[name]) for name in names if name in attributes)


def learned(pairs: Sequence[StudiedPair]) -> NDArray[np.float64]:
    """How much every pair learned: of its new tasks where all have some, else what it gained."""
    if learned_by(pairs) == "new tasks":
        return np.array([pair.new.change.value for pair in pairs if pair.new])
    return np.array([pair.old.gained.value for pair in pairs])


def learned_by(pairs: Sequence[StudiedPair]) -> LearnedBy:
    """What learned means in a study."""
    return "new tasks" if all(pair.new for pair in pairs) else "gained"


def show(value: Attribute) -> str:
    """An attribute as people write it.

    Example:
        >>> show(7e9), show(0.5), show("SFT"), show(1e-5)
        ('7B', '0.5', 'SFT', '1e-05')
    """
    if isinstance(value, str):
        return clean(value, 40)
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.6g}"
