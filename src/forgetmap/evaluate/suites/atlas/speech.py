"""Languages and money: what CLDR knows about the countries of the world."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from forgetmap.evaluate.suites.atlas.world import (
    Country,
    countries,
    gives_away,
    near,
    plain,
    sovereign,
)
from forgetmap.evaluate.suites.common import Fact, needed, sample

SOURCE = "CLDR, Babel"
_DAY = datetime.date(2026, 1, 1)
"""Money that was in use on this day, so that the answer does not depend on today's date."""
_NEW_MONEY = frozenset(("BG",))
"""Changed since the release of the data."""
_NEW_LANGUAGE = frozenset(("BF", "ET", "ME", "ML", "NE"))
"""Where law and CLDR differ on the official language, or did until lately."""

_ABROAD = {
    "de": "easy", "es": "easy", "fr": "easy", "it": "easy",
    "cs": "medium", "id": "medium", "nl": "medium", "pl": "medium", "sv": "medium", "tr": "medium",
    "fi": "hard", "hu": "hard", "sw": "hard",
}  # fmt: skip
_FAMILIES = (
    *(("ca", "es", "fr", "gl", "it", "pt", "ro"), ("cs", "hr", "pl", "sk", "sl")),
    *(("af", "da", "de", "is", "nl", "nb", "sv"), ("be", "bg", "mk", "ru", "sr", "uk")),
    *(("et", "fi", "hu", "lt", "lv"), ("az", "id", "ms", "sw", "tr", "vi")),
)
"""Languages that look alike to those who do not speak them."""
_WELL_KNOWN = frozenset(("de", "es", "fr", "it", "pt", "ru", "nl", "pl"))


def _babel(module: str) -> Any:
    return needed(f"babel.{module}", "suite atlas")


@cache
def _locale(code: str) -> Any:
    return _babel("core").Locale(code)


def _language(code: str) -> str:
    return str(_locale("en").languages.get(code, ""))


@cache
def _tender(code: str) -> frozenset[str]:
    """Codes of the money of a country."""
    codes = _babel("numbers").get_territory_currencies(code, start_date=_DAY)
    return frozenset(map(str, codes))


def _money(code: str) -> str:
    return str(_babel("numbers").get_currency_name(code, locale="en"))


def _only_money(country: Country) -> str:
    [code] = codes if len(codes := _tender(country.code)) == 1 else [""]
    return _money(code) if code else ""


def currencies() -> Sequence[Fact]:
    """The money of each country that has one kind of it."""
    return [
        Fact(
            f"currency-{code}", f"What is the currency of {country.spoken}?", _only_money(country),
            near(country, _only_money), country.level, f"{SOURCE}: territory {code}",
        )
        for code, country in countries().items()
        if _only_money(country) and code not in _NEW_MONEY
    ]  # fmt: skip


def currency_codes() -> Sequence[Fact]:
    """The ISO code of each kind of money; the others begin with the same letter or end with it."""
    used = sorted({code for country in countries() for code in _tender(country)})
    names = Counter(map(_money, used))
    facts = []
    for code in used:
        alike = [one for one in used if one != code and (one[0] == code[0] or one[2] == code[2])]
        if names[_money(code)] == 1 and len(alike) >= 3:
            facts.append(
                Fact(
                    f"code-{code}", f"What is the ISO 4217 code of the {_money(code)}?", code,
                    alike, "medium", f"{SOURCE}: currency {code}",
                )
            )  # fmt: skip
    return facts


@cache
def _official(code: str) -> frozenset[str]:
    languages = _babel("languages").get_official_languages(code, regional=True, de_facto=True)
    return frozenset(str(language).partition("_")[0] for language in languages)


def official_languages() -> Sequence[Fact]:
    """The official language of each country that has a single one."""
    names = {code: tuple(sorted(map(_language, _official(code)))) for code in countries()}

    def only(country: Country) -> str:
        languages = names[country.code]
        return languages[0] if len(languages) == 1 and country.code not in _NEW_LANGUAGE else ""

    return [
        Fact(
            f"official-{code}", f"What is the official language of {country.spoken}?",
            only(country), near(country, only), country.level, f"{SOURCE}: territory {code}",
        )
        for code, country in countries().items()
        if only(country) and not gives_away(country.name, only(country))
    ]  # fmt: skip


def countries_abroad() -> Sequence[Fact]:
    """What other languages call a country, where the name does not betray it."""
    facts: list[Fact] = []
    for language, level in _ABROAD.items():
        names = _locale(language).territories
        shared = Counter(plain(str(names.get(code, ""))) for code in countries())
        names_in_it = [
            Fact(
                f"abroad-{language}-{code}",
                f"Which country is called {names[code]} in {_language(language)}?",
                country.name, near(country, lambda other: other.name), level,
                f"{SOURCE}: territory {code} in {language}",
            )
            for code, country in sovereign().items()
            if code in names
            and shared[plain(names[code])] == 1
            and country.population > 500_000
            and SequenceMatcher(None, plain(names[code]), plain(country.name), False).ratio() < 0.6
        ]  # fmt: skip
        facts += sample(names_in_it, 60)
    return facts


def _calendar_words(code: str) -> Iterator[tuple[str, str]]:
    """(what it is, word) for the weekdays and months of a language, in all their forms."""
    for form in ("format", "stand-alone"):
        for word in _locale(code).days[form]["wide"].values():
            yield "a weekday", str(word)
        for word in _locale(code).months[form]["wide"].values():
            yield "a month", str(word)


def calendar_words() -> Sequence[Fact]:
    """The language that a name of a weekday or month comes from, if it is the only one."""
    known = {code: list(_calendar_words(code)) for family in _FAMILIES for code in family}
    speakers = Counter(
        word for entries in known.values() for word in {plain(word) for _, word in entries}
    )
    facts: dict[str, Fact] = {}
    for family in _FAMILIES:
        for code in family:
            level = "easy" if code in _WELL_KNOWN else "hard"
            for what, word in known[code]:
                if speakers[plain(word)] == 1 and not any(char.isdigit() for char in word):
                    ref = f"word-{code}-{plain(word).replace(' ', '-')}"
                    facts[ref] = Fact(
                        ref, f"In which language is “{word}” the name of {what}?", _language(code),
                        [_language(other) for other in family if other != code], level,
                        f"{SOURCE}: calendar names of {code}",
                    )  # fmt: skip
    return list(facts.values())
