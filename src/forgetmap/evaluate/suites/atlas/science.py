"""Science: the elements, constants of nature, units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from forgetmap.evaluate.suites.common import Fact, needed

_ELEMENTS = "periodictable"
_CODATA = "CODATA, scipy.constants"

_CONSTANTS = (
    *("speed of light in vacuum", "Planck constant", "reduced Planck constant"),
    *("Boltzmann constant", "Avogadro constant", "molar gas constant", "elementary charge"),
    *("electron mass", "proton mass", "neutron mass", "muon mass", "alpha particle mass"),
    *("atomic mass constant", "Newtonian constant of gravitation"),
    *("standard acceleration of gravity", "Stefan-Boltzmann constant"),
    *("Wien wavelength displacement law constant", "Faraday constant", "Rydberg constant"),
    *("Bohr radius", "Bohr magneton", "nuclear magneton", "classical electron radius"),
    *("Compton wavelength", "fine-structure constant", "inverse fine-structure constant"),
    *("Thomson cross section", "Hartree energy", "conductance quantum", "mag. flux quantum"),
    *("Josephson constant", "von Klitzing constant", "vacuum mag. permeability"),
    *("vacuum electric permittivity", "characteristic impedance of vacuum"),
    *("proton-electron mass ratio", "Planck length", "Planck mass", "Planck time"),
    "standard atmosphere",
)
"""Names in CODATA; a question puts `the` before, or says what `_SPOKEN` has."""
_SPOKEN = {
    "electron mass": "the mass of the electron",
    "proton mass": "the mass of the proton",
    "neutron mass": "the mass of the neutron",
    "muon mass": "the mass of the muon",
    "alpha particle mass": "the mass of the alpha particle",
    "Newtonian constant of gravitation": "the constant of gravitation",
    "Wien wavelength displacement law constant": "the Wien wavelength displacement constant",
    "Compton wavelength": "the Compton wavelength of the electron",
    "inverse fine-structure constant": "the inverse of the fine-structure constant",
    "mag. flux quantum": "the magnetic flux quantum",
    "vacuum mag. permeability": "the magnetic permeability of the vacuum",
    "vacuum electric permittivity": "the electric permittivity of the vacuum",
    "characteristic impedance of vacuum": "the characteristic impedance of the vacuum",
    "proton-electron mass ratio": "the ratio of the mass of the proton to that of the electron",
}

_UNITS: dict[str, dict[str, str | float]] = {
    "length": {
        "millimetres": 1e-3, "centimetres": 1e-2, "metres": 1.0, "kilometres": 1e3,
        "inches": "inch", "feet": "foot", "yards": "yard", "miles": "mile",
        "nautical miles": "nautical_mile", "astronomical units": "astronomical_unit",
        "light years": "light_year", "parsecs": "parsec",
    },
    "mass": {
        "grams": 1e-3, "kilograms": 1.0, "tonnes": "metric_ton", "ounces": "oz", "pounds": "pound",
        "stones": "stone", "grains": "grain", "carats": "carat", "long tons": "long_ton",
    },
    "time": {
        "seconds": 1.0, "minutes": "minute", "hours": "hour", "days": "day", "weeks": "week",
        "Julian years": "Julian_year",
    },
    "volume": {
        "millilitres": 1e-6, "litres": "liter", "cubic metres": 1.0, "US gallons": "gallon_US",
        "imperial gallons": "gallon_imp", "US fluid ounces": "fluid_ounce_US",
        "oil barrels": "barrel",
    },
    "pressure": {
        "pascals": 1.0, "bars": "bar", "standard atmospheres": "atm", "torrs": "torr",
        "pounds per square inch": "psi",
    },
    "energy": {
        "joules": 1.0, "kilowatt hours": 3.6e6, "calories": "calorie", "electronvolts": "eV",
        "ergs": "erg", "British thermal units": "Btu",
    },
    "speed": {
        "metres per second": 1.0, "kilometres per hour": "kmh", "miles per hour": "mph",
        "knots": "knot",
    },
    "area": {
        "square metres": 1.0, "hectares": "hectare", "acres": "acre", "square kilometres": 1e6,
    },
    "angle": {"arc seconds": "arcsec", "arc minutes": "arcmin", "degrees": "degree"},
}  # fmt: skip
"""Dimension -> units; a name stands for what scipy.constants says, a number for SI base units."""


@cache
def _elements() -> tuple[Any, ...]:
    table = needed("periodictable", "suite atlas").elements
    return tuple(element for element in table if element.number > 0)


def _level(number: int) -> str:
    if number <= 36:
        return "easy"
    return "medium" if number <= 86 else "hard"


def element_symbols() -> Sequence[Fact]:
    """The symbol of each element; the others begin with the same letter where three do."""
    symbols = [str(element.symbol) for element in _elements()]
    facts = []
    for element in _elements():
        alike = [one for one in symbols if one[0] == element.symbol[0] and one != element.symbol]
        if len(alike) < 3:
            alike = [one for one in symbols if one != element.symbol and len(one) == 2]
        facts.append(
            Fact(
                f"symbol-{element.number}", f"What is the chemical symbol of {element.name}?",
                element.symbol, alike, _level(element.number),
                f"{_ELEMENTS}: element {element.number}",
            )
        )  # fmt: skip
    return facts


def element_numbers() -> Sequence[Fact]:
    """The atomic number of each element, as an open question."""
    return [
        Fact(
            f"number-{element.number}", f"What is the atomic number of {element.name}?",
            str(element.number), (), _level(element.number),
            f"{_ELEMENTS}: element {element.number}",
        )
        for element in _elements()
    ]  # fmt: skip


def element_groups() -> Sequence[Fact]:
    """The element that stands in a group of the periodic table, among others of its period."""
    names = {element.number: str(element.name) for element in _elements()}
    facts = []
    for number, name in names.items():
        group = group_of(number)
        others = [
            other
            for place, other in names.items()
            if group_of(place) not in (None, group) and abs(place - number) <= 12
        ]
        if group is not None:
            facts.append(
                Fact(
                    f"group-{number}",
                    f"Which of these elements stands in group {group} of the periodic table?",
                    name, others, _level(number), f"{_ELEMENTS}: element {number}, IUPAC groups",
                )
            )  # fmt: skip
    return facts


def group_of(number: int) -> int | None:
    """The group of an element, from its atomic number; None for those of the f-block.

    Example:
        >>> [group_of(number) for number in (1, 2, 6, 26, 57, 79, 118)]
        [1, 18, 14, 8, None, 11, 18]
    """
    if number in (1, 2):
        return 1 if number == 1 else 18
    if 57 <= number <= 71 or 89 <= number <= 103:
        return None
    for noble_gas, period in ((2, 8), (10, 8), (18, 18), (36, 18), (54, 32), (86, 32)):
        place = number - noble_gas
        if place <= period:
            return place if place <= 2 else place - period + 18
    return None


def constants() -> Sequence[Fact]:
    """The value of a constant; the others have its digits at another power of ten, or are near."""
    from scipy import constants as codata

    facts = []
    for key in _CONSTANTS:
        name = _SPOKEN.get(key, f"the {key}")
        value, unit, _ = codata.physical_constants[key]
        wrong = [
            _scientific(value * factor, unit) for factor in (1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3)
        ]
        wrong += [_scientific(value * factor, unit) for factor in (0.37, 0.61, 1.53, 2.29)]
        facts.append(
            Fact(
                f"constant-{key.replace(' ', '-')}", f"What is the value of {name}?",
                _scientific(value, unit), wrong, "hard", f"{_CODATA}: {key}",
            )
        )  # fmt: skip
    return facts


def _scientific(value: float, unit: str) -> str:
    digits, power = f"{value:.2e}".split("e")
    return f"{digits} × 10^{int(power)} {unit}".strip()


def units() -> Sequence[Fact]:
    """How many of a smaller unit go into a larger one, up to ten million."""
    from scipy import constants as codata

    facts = []
    for dimension, names in _UNITS.items():
        sizes = {
            name: float(getattr(codata, size)) if isinstance(size, str) else size
            for name, size in names.items()
        }
        for one, other in itertools.permutations(sizes, 2):
            ratio = sizes[one] / sizes[other]
            if 1 < ratio < 1e7:
                wrong = [figure(ratio * factor) for factor in _OFF]
                facts.append(
                    Fact(
                        f"unit-{one}-{other}".replace(" ", "-"),
                        f"About how many {other} are equal to one {singular(one)}?",
                        figure(ratio), wrong, "easy" if ratio.is_integer() else "medium",
                        f"{_CODATA}: units of {dimension}",
                    )
                )  # fmt: skip
    return facts


_OFF = (0.1, 0.25, 0.4, 0.62, 1.6, 2.5, 4.0, 10.0)
"""How far the wrong numbers are off; no rounding brings one near the right one."""
_SINGULAR = {"inches": "inch", "feet": "foot"}


def singular(unit: str) -> str:
    """One of a unit.

    Example:
        >>> singular("miles"), singular("pounds per square inch"), singular("feet")
        ('mile', 'pound per square inch', 'foot')
    """
    if unit in _SINGULAR:
        return _SINGULAR[unit]
    first, per, rest = unit.partition(" per ")
    return f"{first.removesuffix('s')}{per}{rest}"


def figure(value: float) -> str:
    """A number with three digits that count.

    Example:
        >>> figure(1609.344), figure(2.54), figure(0.035274), figure(60.0)
        ('1,610', '2.54', '0.0353', '60')
    """
    places = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, places):,.{max(0, places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
