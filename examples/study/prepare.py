"""Stage 1: the questions and the training data, from open data packages. No model is needed.

    pip install 'forgetmap[suites]' airportsdata==20260905
    pip download --no-deps evals==3.0.1.post1
    FORGETMAP_EVALS_WHEEL=evals-3.0.1.post1-py3-none-any.whl python prepare.py data

Writes into the folder:

| file | what it is |
| --- | --- |
| old.yaml | what must not be forgotten: half of atlas, and parts of real third-party sets |
| anchor.yaml | the other half of atlas: questions that a method may train on, never evaluated |
| probe.yaml | a few of the old and new questions, for measuring while training |
| new.yaml | the new tasks as they are evaluated: airports, sums, broad |
| airports.jsonl, sums.jsonl, broad.jsonl | their training data, as prompt and completion |

Tasks of atlas whose questions differ in their options alone are not asked: the other half would ask
the same again. Nothing of the third-party sets is part of this repository.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

from materials import examples_of, part_of, prompts_of, write_rows, write_suite

from forgetmap.evaluate.questions import Question, Task
from forgetmap.evaluate.suites import load

SEED = 11
AIRPORTS = 2_000
AIRPORTS_ASKED = 800
SUMS, SUMS_ASKED = 3_000, 300
OLD_SETS = {
    "evals_socialiqa": 400, "evals_quartz": 400, "evals_medmcqa": 299, "evals_logiqa": 300,
    "evals_fcc_amateur_extra": 300, "evals_us_tort_law": 300, "evals_german_exams": 200,
    "evals_french_exams": 200,
}  # fmt: skip
"""Third-party sets that stay unseen, and how many items of each are asked."""
BROAD_SETS = {
    "evals_pararule_plus": 1_000, "evals_food": 600, "evals_regex_match": 300, "evals_hitom": 400,
    "evals_logical_counting": 800, "evals_syllables": 1_000, "evals_anagrams": 250,
    "evals_italian_exams": 700, "evals_turkish_exams": 800,
}  # fmt: skip
"""Third-party sets that make the broad task, and how many items of each are trained on."""
BROAD_ASKED = 80
"""Of each of them, other items are asked."""


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    atlas = load("atlas", seed=0)
    sets = {task.name: task for task in load("openai-evals").tasks}
    asked = [part_of(task, _half(task, 0)) for task in atlas.tasks if not _repeats_itself(task)]
    others = [part_of(sets[name], _some(sets[name], count)) for name, count in OLD_SETS.items()]
    write_suite(out, "old", [*asked, *others])
    write_suite(out, "anchor", [part_of(task, _half(task, 1)) for task in atlas.tasks])
    airports = _airports()
    sums = _sums()
    broad = [(sets[name], count) for name, count in BROAD_SETS.items()]
    new = [
        part_of(airports, airports.questions()[:AIRPORTS_ASKED]),
        *_asked_otherwise(airports),
        part_of(sums, sums.questions()[:SUMS_ASKED]),
        *(part_of(task, _some(task, BROAD_ASKED)) for task, _ in broad),
    ]
    write_suite(out, "new", new)
    probe = [part_of(task, task.questions()[:12]) for task in asked if task.questions()[0].choices]
    write_suite(out, "probe", [*probe, part_of(airports, airports.questions()[:100])])
    write_rows(out / "airports.jsonl", examples_of(airports, airports.questions()))
    write_rows(out / "sums.jsonl", examples_of(sums, sums.questions()[SUMS_ASKED:]))
    taught = [
        row
        for task, count in broad
        for row in examples_of(task, _some(task, BROAD_ASKED + count)[BROAD_ASKED:])
    ]
    random.Random(SEED).shuffle(taught)
    write_rows(out / "broad.jsonl", taught)


def _half(task: Task, which: int) -> list[Question]:
    """Half of the items, by their identity; open answers are kept only where a number is asked."""
    return [question for question in task.questions() if question.item % 2 == which]


def _repeats_itself(task: Task) -> bool:
    """Whether questions of both halves share their words and differ in their options alone."""
    halves = [set(prompts_of(task, _half(task, which))) for which in (0, 1)]
    return bool(halves[0] & halves[1])


def _some(task: Task, count: int) -> list[Question]:
    questions = sorted(task.questions(), key=lambda question: question.item)
    return questions[:count]


def _airports() -> Task:
    """A long tail of facts: the city of an airport's code, one airport to a city."""
    import airportsdata

    found = sorted(airportsdata.load("IATA").values(), key=lambda airport: str(airport["iata"]))
    random.Random(SEED).shuffle(found)
    by_city = {str(one["city"]): str(one["iata"]) for one in found if _is_plain(str(one["city"]))}
    cities = sorted(by_city)
    draw = random.Random(SEED)
    draw.shuffle(cities)
    questions = []
    for city in cities[:AIRPORTS]:
        code = by_city[city]
        text = f"Which city has the airport with the code {code}?"
        options = _options(draw, city, cities)
        questions.append(Question("airports", code, text, city, options))
    return Task("airports", "Airports", lambda: tuple(questions), licence="airportsdata (MIT)")


def _asked_otherwise(airports: Task) -> list[Task]:
    """The same airports, asked in ways that were not trained.

    Most wrong options of `airports` are cities that no training example names: a model may pass
    them over because it never saw them. Here the wrong options are cities of other trained
    airports, or the question has other words, or both.
    """
    taught = airports.questions()
    draw = random.Random(SEED)
    cities = [question.target for question in taught]
    plain = taught[:AIRPORTS_ASKED]
    trained = [replace(one, choices=_options(draw, one.target, cities)) for one in plain]
    ways = {
        "airports_trained_options": trained,
        "airports_other_words": [_in_other_words(one) for one in plain],
        "airports_both": [_in_other_words(one) for one in trained],
    }
    return [replace(part_of(airports, asked), name=name) for name, asked in ways.items()]


def _options(draw: random.Random, right: str, cities: Sequence[str]) -> tuple[str, ...]:
    options = [right, *draw.sample([other for other in cities if other != right], 3)]
    draw.shuffle(options)
    return tuple(options)


def _in_other_words(question: Question) -> Question:
    return replace(question, prompt=f"{question.ref} is the code of an airport. Where is it?")


def _is_plain(city: str) -> bool:
    return city.isascii() and city.replace(" ", "").isalpha() and 3 < len(city) < 20


def _sums() -> Task:
    """One skill with a verifiable answer: sums of two numbers, by reasoning-gym's generator."""
    import reasoning_gym

    made = reasoning_gym.create_dataset(
        "chain_sum", size=2 * SUMS, seed=SEED, min_terms=2, max_terms=2, min_digits=1, max_digits=2
    )
    rows = {entry["question"]: entry["answer"] for entry in made}  # small sums come up again
    questions = tuple(
        Question("sums", str(place), text, answer)
        for place, (text, answer) in enumerate(list(rows.items())[: SUMS + SUMS_ASKED])
    )
    return Task(
        "sums", "Sums", lambda: questions, scorer="number", max_tokens=16, stop=("\n",),
        licence="reasoning-gym (Apache-2.0)",
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
