"""Calendar: public holidays, weekdays, sums with dates and times."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

from forgetmap.evaluate.suites.atlas.world import countries
from forgetmap.evaluate.suites.common import Fact, drawn, needed, sample

_YEARS = (2021, 2022, 2023, 2024)
_TOO_COMMON = 25
"""A holiday of so many countries (New Year, Labour Day) says little about any of them."""
_LEVELS = ("easy", "medium", "hard")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def spoken(day: datetime.date, with_year: bool = True) -> str:
    """A date in words.

    Example:
        >>> spoken(datetime.date(2024, 2, 9))
        '9 February 2024'
    """
    return f"{day.day} {MONTHS[day.month - 1]}" + (f" {day.year}" if with_year else "")


def public_holidays() -> Sequence[Fact]:
    """The date of each holiday that has had the same one for years; others of the country."""
    fixed = {code: _fixed_dates(code) for code in countries()}
    fixed = {code: dates for code, dates in fixed.items() if dates}
    common = Counter(name for dates in fixed.values() for name in dates)
    every = sorted({date for dates in fixed.values() for date in dates.values()})
    facts = []
    for code, dates in fixed.items():
        country = countries()[code]
        for name, date in sorted(dates.items()):
            if common[name] >= _TOO_COMMON:
                continue
            others = set(dates.values()) - {date}
            wrong = others if len(others) >= 5 else set(every) - {date}
            facts.append(
                Fact(
                    f"holiday-{code}-{name.replace(' ', '-')}",
                    f"On which date is the public holiday “{name}” in {country.spoken}?",
                    date, wrong, country.level, f"holidays: {code}, {_YEARS[0]} to {_YEARS[-1]}",
                )
            )  # fmt: skip
    return sample(facts, 700)


@cache
def _supported() -> frozenset[str]:
    return frozenset(
        needed("holidays", "suite atlas").list_supported_countries(include_aliases=False)
    )


def _fixed_dates(code: str) -> dict[str, str]:
    """Holidays, by their English name, that fall on one and the same day in each year."""
    if code not in _supported():
        return {}
    holidays = needed("holidays", "suite atlas")
    known = holidays.country_holidays(code, years=_YEARS, observed=False, language="en_US")
    languages = known.supported_languages
    if languages and not any(language.startswith("en") for language in languages):
        return {}
    days: dict[str, list[datetime.date]] = {}
    for day, names in known.items():
        for name in names.split("; "):
            days.setdefault(name, []).append(day)
    fixed = {}
    for name, dates in days.items():
        on = {spoken(day, with_year=False) for day in dates}
        if len(dates) == len(_YEARS) and len(on) == 1 and "(" not in name and name.isascii():
            fixed[name] = on.pop()
    return fixed


@drawn(180)
def weekdays(rng: random.Random, number: int) -> Fact:
    """The weekday of a date: told from one nearby, or from the year alone."""
    level = _LEVELS[number % 3]
    day = datetime.date(1950, 1, 1) + datetime.timedelta(days=rng.randrange(36_000))
    answer = DAYS[day.weekday()]
    prompt = f"Which day of the week is {spoken(day)}?"
    if level != "hard":
        away = rng.randint(2, 6) if level == "easy" else rng.randint(8, 60)
        before = day - datetime.timedelta(days=away)
        prompt = f"{spoken(before)} is a {DAYS[before.weekday()]}. {prompt}"
    return Fact(
        f"weekday-{level}-{day}", prompt, answer, set(DAYS) - {answer}, level,
        "Gregorian calendar",
    )  # fmt: skip


@drawn(180)
def date_sums(rng: random.Random, number: int) -> Fact:
    """The date so many days after another."""
    level = _LEVELS[number % 3]
    days = {"easy": (2, 9), "medium": (10, 45), "hard": (46, 400)}[level]
    away = rng.randint(*days)
    start = datetime.date(1990, 1, 1) + datetime.timedelta(days=rng.randrange(18_000))
    end = start + datetime.timedelta(days=away)
    wrong = [spoken(end + datetime.timedelta(days=off)) for off in (-7, -2, -1, 1, 2, 7, 30)]
    return Fact(
        f"date-{start}+{away}", f"Which date is {away} days after {spoken(start)}?",
        spoken(end), wrong, level, "Gregorian calendar",
    )  # fmt: skip


@drawn(180)
def clock(rng: random.Random, number: int) -> Fact:
    """The time so many hours and minutes after another."""
    level = _LEVELS[number % 3]
    step = {"easy": 30, "medium": 5, "hard": 1}[level]
    start = rng.randrange(0, 24 * 60, step)
    hours, minutes = rng.randint(1, 11), rng.randrange(step, 60, step)
    end = start + 60 * hours + minutes
    wrong = [_time(end + off) for off in (-60, -30, -10, -step, step, 10, 30, 60)]
    return Fact(
        f"clock-{start}+{60 * hours + minutes}",
        f"It is {_time(start)}. What time will it be in {hours} h {minutes} min?",
        _time(end), wrong, level, "24-hour clock",
    )  # fmt: skip


def _time(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
