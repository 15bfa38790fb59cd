"""C3, C4, W2 and H6: made-up passages, so that what they say cannot be known from elsewhere."""

from __future__ import annotations

import random
from typing import NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import (
    COLOURS,
    DAYS,
    NAMES,
    OBJECTS,
    PLACES,
    draft,
    drawn,
    lettered,
    options,
)

NOT_SAID = "The passage does not say"


class Errand(NamedTuple):
    """Somebody brought something somewhere, on some day."""

    name: str
    thing: str
    place: str
    day: str

    @property
    def sentence(self) -> str:
        """The errand as a passage tells it."""
        return f"On {self.day} {self.name} brought the {self.thing} to the {self.place}."


def _errands(rng: random.Random, n: int = 5) -> list[Errand]:
    """Errands that share neither person, thing, place nor day."""
    parts = [rng.sample(kind, n) for kind in (NAMES, OBJECTS, PLACES, DAYS)]
    return [Errand(*errand) for errand in zip(*parts, strict=True)]


def _passage(errands: list[Errand]) -> str:
    return " ".join(errand.sentence for errand in errands)


_QUESTIONS = {
    "thing": "What did {name} bring to the {place}?",
    "place": "Where did {name} bring the {thing}?",
    "day": "On which day did {name} bring the {thing} to the {place}?",
    "name": "Who brought the {thing} to the {place}?",
}


@drawn(list(_QUESTIONS))
def reading_short(rng: random.Random, _number: int, kind: str) -> Item:
    """A question about a passage, to be answered with the sentence that tells it."""
    errands = _errands(rng)
    asked, passage = rng.choice(errands), _passage(errands)
    gold = getattr(asked, kind)
    return draft(
        f"Passage: {passage}\n\n{_QUESTIONS[kind].format(**asked._asdict())} First quote the "
        'sentence that tells it, in quotation marks. Then write "Answer:" and only the answer.',
        gold,
        f'"{asked.sentence}"\nAnswer: {gold}',
        context=passage,
        meta={"supporting": [asked.sentence]},
    )


@drawn([True, False])
def reading_boolean(rng: random.Random, _number: int, is_true: bool) -> Item:
    """A statement about a passage, true or not."""
    errands = _errands(rng)
    asked, other = rng.sample(errands, 2)
    claimed = asked if is_true else asked._replace(place=other.place)
    gold = "yes" if is_true else "no"
    return draft(
        f"Passage: {_passage(errands)}\n\nDid {claimed.name} bring the {claimed.thing} to the "
        f"{claimed.place}? Answer yes or no.",
        gold,
        gold.capitalize() + ".",
        context=_passage(errands),
    )


@drawn([True, False], range(4))
def grounded(rng: random.Random, _number: int, is_said: bool, place: int) -> Item:
    """Half of the questions have their answer in the passage; to the others it says nothing."""
    errands = _errands(rng)
    asked = rng.choice(errands)
    things = [errand.thing for errand in errands if errand != asked]
    if is_said:
        name, right = asked.name, asked.thing
        wrong = [*rng.sample(things, 2), NOT_SAID]
    else:
        name = rng.choice([name for name in NAMES if name not in {e.name for e in errands}])
        right, wrong = NOT_SAID, rng.sample(things, 3)
    choices, letter = options(rng, right, wrong, place)
    question = f"Passage: {_passage(errands)}\n\nGoing by the passage, what did {name} bring?"
    return draft(
        lettered(question, choices), letter, letter, choices=choices,
        context=_passage(errands), meta={"answerable": is_said},
    )  # fmt: skip


@drawn()
def quotes(rng: random.Random, _number: int) -> Item:
    """Quote word for word; a quotation that is not in the passage is made up."""
    errands = _errands(rng)
    asked = rng.choice(errands)
    return draft(
        f"Passage: {_passage(errands)}\n\nQuote, word for word and in quotation marks, the "
        f"sentence that says what happened on {asked.day}.",
        asked.sentence,
        f'"{asked.sentence}"',
        context=_passage(errands),
        meta={"supporting": [asked.sentence]},
    )


@drawn()
def selections(rng: random.Random, number: int) -> Item:
    """Name all that fits and nothing else: coverage is recall, keeping to scope is precision."""
    owner, others = rng.choice(NAMES), list(NAMES)
    others.remove(owner)
    wanted = sorted(rng.sample(range(1, 10), 2 + number % 3))
    parcels = [
        f"Parcel {index} is {rng.choice(COLOURS)} and goes to "
        f"{owner if index in wanted else rng.choice(others)}."
        for index in range(1, 10)
    ]
    return draft(
        "\n".join(parcels)
        + f"\n\nWhich parcels go to {owner}? Give the number of each in square brackets, such "
        "as [0], and name no other parcel.",
        [str(index) for index in wanted],
        " ".join(f"[{index}]" for index in wanted),
        context=parcels,
    )


@drawn()
def summaries(rng: random.Random, _number: int) -> Item:
    """Retell a passage in full and without additions; what is missing or added is for a judge."""
    errands = _errands(rng)
    by_name = sorted(errands)
    gold = " ".join(f"{e.name} took the {e.thing} to the {e.place} on {e.day}." for e in by_name)
    return draft(
        f"Passage: {_passage(errands)}\n\nRetell the passage with the people in alphabetical "
        "order: who brought what, where and on which day. Add nothing.",
        gold,
        gold,
        context=_passage(errands),
        meta={"supporting": [f"{e.name} {e.thing} {e.place} {e.day}" for e in errands]},
    )


_FORMS = ("[id]", "(id)", "<cite>id</cite>")


@drawn(_FORMS)
def citations(rng: random.Random, _number: int, form: str) -> Item:
    """An answer that rests on two of seven passages, which must be cited in a given form."""
    errands = _errands(rng, 3)
    colours = rng.sample(COLOURS, 3)
    asked = rng.randrange(3)
    sentences = [errand.sentence for errand in errands]
    sentences += [f"The {e.thing} is {c}." for e, c in zip(errands, colours, strict=True)]
    sentences.append(f"The {errands[asked].place} was closed on the day after.")
    needed = {sentences[asked], sentences[3 + asked]}
    rng.shuffle(sentences)
    sources = sorted(1 + sentences.index(sentence) for sentence in needed)
    numbered = "\n".join(f"{index}. {text}" for index, text in enumerate(sentences, start=1))
    colour = colours[asked]
    shown = " ".join(form.replace("id", str(source)) for source in sources)
    return draft(
        f"Sources:\n{numbered}\n\nWhat colour is the thing that {errands[asked].name} brought? "
        "Cite every source that the answer rests on, and no other, by its number in the form "
        f"{form.replace('id', '12')}. Give each its own marker.",
        {"answer": colour, "citations": [str(source) for source in sources]},
        f"It is {colour} {shown}.",
        context=sentences,
        meta={"citation_format": form},
    )
