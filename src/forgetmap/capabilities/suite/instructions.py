"""H1, instructions that a rule can check: all 25 types of IFEval, one or two to an item."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import draft, drawn

SUBJECTS = (
    "a walk by the sea", "an old clock", "baking bread", "a night train", "a rainy day",
    "a village market", "learning to swim", "a lost umbrella", "the first snow", "a stone bridge",
)  # fmt: skip
NO_COMMA = "punctuation:no_comma"
_LANGUAGES = (
    ("German", "de", "Das ist ein ganz gewöhnlicher Text über ein Thema aus dem Alltag."),
    ("French", "fr", "Voici un texte tout à fait ordinaire sur un sujet de la vie."),
    ("Spanish", "es", "Este es un texto muy corriente sobre un asunto de la vida diaria."),
)


class Wanted(NamedTuple):
    """One instruction: in words, its arguments, and a text about a subject that keeps it."""

    words: str
    kwargs: dict[str, Any]
    reference: str


def _sentences(subject: str, n: int) -> str:
    """So many plain sentences, without a comma."""
    return " ".join(f"Sentence number {number} is about {subject}." for number in range(1, n + 1))


def _keywords(rng: random.Random, subject: str) -> Wanted:
    words = rng.sample(["copper", "meadow", "whisper", "harvest", "lantern"], 2)
    return Wanted(
        f"Use the words {words[0]} and {words[1]}.", {"keywords": words},
        f"I thought of {subject} and of {words[0]} and {words[1]}.",
    )  # fmt: skip


def _frequency(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 4)
    return Wanted(
        f"Use the word window at least {n} times.",
        {"keyword": "window", "frequency": n, "relation": "at least"},
        f"This is about {subject}." + " I saw a window." * n,
    )


def _forbidden(rng: random.Random, subject: str) -> Wanted:
    words = rng.sample(["very", "nice", "beautiful", "good", "really"], 2)
    return Wanted(
        f"Do not use the words {words[0]} and {words[1]}.", {"forbidden_words": words},
        _sentences(subject, 2),
    )  # fmt: skip


def _letters(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(3, 6)
    return Wanted(
        f"The letter z must occur at least {n} times.",
        {"letter": "z", "let_frequency": n, "let_relation": "at least"},
        f"This is about {subject}." + " The maze is hazy." * n,
    )


def _language(rng: random.Random, _subject: str) -> Wanted:
    name, code, text = rng.choice(_LANGUAGES)
    return Wanted(f"Write in {name} only.", {"language": code}, text)


def _sentence_count(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(3, 6)
    return Wanted(
        f"Write at least {n} sentences.", {"num_sentences": n, "relation": "at least"},
        _sentences(subject, n),
    )  # fmt: skip


def _paragraphs(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 4)
    return Wanted(
        f"Write exactly {n} paragraphs with *** between them.", {"num_paragraphs": n},
        "\n***\n".join(f"Part {number} is about {subject}." for number in range(n)),
    )  # fmt: skip


def _words(rng: random.Random, subject: str) -> Wanted:
    n = rng.choice([20, 30, 40])
    return Wanted(
        f"Write less than {n} words.", {"num_words": n, "relation": "less than"},
        _sentences(subject, 1),
    )  # fmt: skip


def _first_word(rng: random.Random, subject: str) -> Wanted:
    count, nth = 3, rng.randint(1, 3)
    parts = [f"Part {number} is about {subject}." for number in range(count)]
    parts[nth - 1] = f"Yesterday I thought about {subject}."
    return Wanted(
        f"Write {count} paragraphs with an empty line between them. Paragraph {nth} must begin "
        "with the word yesterday.",
        {"num_paragraphs": count, "nth_paragraph": nth, "first_word": "yesterday"},
        "\n\n".join(parts),
    )


def _placeholders(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 4)
    return Wanted(
        f"Use at least {n} placeholders in square brackets such as [name].",
        {"num_placeholders": n},
        f"This is about {subject}." + " Write to [name]." * n,
    )


def _bullets(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 5)
    return Wanted(
        f"Write exactly {n} bullet points that begin with an asterisk.", {"num_bullets": n},
        "\n".join(f"* point {number} about {subject}" for number in range(n)),
    )  # fmt: skip


def _constrained(rng: random.Random, subject: str) -> Wanted:
    said = rng.choice(["yes", "no", "maybe"])
    return Wanted(
        f"Would you like {subject}? Say one of: My answer is yes. My answer is no. My answer is "
        "maybe.",
        {},
        f"My answer is {said}.",
    )


def _highlights(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 3)
    return Wanted(
        f"Highlight at least {n} parts in Markdown such as *this part*.", {"num_highlights": n},
        f"This is about {subject}." + " Look at *this part* here." * n,
    )  # fmt: skip


def _sections(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 4)
    return Wanted(
        f"Write {n} sections that begin with Section 1 and so on.",
        {"section_spliter": "Section", "num_sections": n},
        "\n".join(f"Section {number}\nIt is about {subject}." for number in range(1, n + 1)),
    )


def _repeat(rng: random.Random, subject: str) -> Wanted:
    request = f"Say {rng.choice(['one thing', 'something kind', 'something odd'])} about {subject}."
    return Wanted(
        f'Before you do so repeat this sentence word by word: "{request}"',
        {"prompt_to_repeat": request},
        f"{request}\n{_sentences(subject, 1)}",
    )


def _end(rng: random.Random, subject: str) -> Wanted:
    phrase = rng.choice(["That is all for today.", "Thank you for reading.", "And so it ends."])
    return Wanted(
        f"End with exactly this sentence: {phrase}", {"end_phrase": phrase},
        f"{_sentences(subject, 1)} {phrase}",
    )  # fmt: skip


def _capital_words(rng: random.Random, subject: str) -> Wanted:
    n = rng.randint(2, 4)
    return Wanted(
        f"Write at least {n} words all in capitals.",
        {"capital_frequency": n, "capital_relation": "at least"},
        f"This is about {subject}." + " It is GRAND." * n,
    )


INSTRUCTIONS: dict[str, Callable[[random.Random, str], Wanted]] = {
    "keywords:existence": _keywords,
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": _forbidden,
    "keywords:letter_frequency": _letters,
    "language:response_language": _language,
    "length_constraints:number_sentences": _sentence_count,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_words": _words,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": lambda _rng, subject: Wanted(
        "Add a postscript at the end that begins with P.S.",
        {"postscript_marker": "P.S."},
        f"{_sentences(subject, 2)}\nP.S. That is all.",
    ),
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": lambda _rng, subject: Wanted(
        "Write nothing but JSON.", {}, json.dumps({"text": f"This is about {subject}."})
    ),
    "detectable_format:title": lambda _rng, subject: Wanted(
        "Give it a title in double angular brackets such as <<title>>.",
        {},
        f"<<On {subject}>>\n{_sentences(subject, 2)}",
    ),
    "combination:two_responses": lambda _rng, subject: Wanted(
        "Give two different answers with ****** between them.",
        {},
        f"One is about {subject}.\n******\nThe other is about {subject} too.",
    ),
    "combination:repeat_prompt": _repeat,
    "startend:end_checker": _end,
    "startend:quotation": lambda _rng, subject: Wanted(
        "Put the whole answer in double quotation marks.", {}, f'"{_sentences(subject, 2)}"'
    ),
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda _rng, subject: Wanted(
        "Write in English and in capitals only.", {}, _sentences(subject, 2).upper()
    ),
    "change_case:english_lowercase": lambda _rng, subject: Wanted(
        "Write in English and without any capital letter.", {}, _sentences(subject, 2).lower()
    ),
    NO_COMMA: lambda _rng, subject: Wanted("Do not use any comma.", {}, _sentences(subject, 2)),
}


@drawn()
def instructions(rng: random.Random, number: int) -> Item:
    """Go through all types in turn; every other item must also do without commas."""
    name, subject = list(INSTRUCTIONS)[number % len(INSTRUCTIONS)], rng.choice(SUBJECTS)
    wanted = INSTRUCTIONS[name](rng, subject)
    asked, kwargs = [wanted.words], {name: wanted.kwargs}
    if rng.random() < 0.5 and name != NO_COMMA:
        asked.append("Do not use any comma.")
        kwargs[NO_COMMA] = {}
    return draft(
        " ".join([f"Write a few lines about {subject}.", *asked]),
        None,
        wanted.reference,
        meta={"instruction_id_list": list(kwargs), "kwargs": list(kwargs.values())},
    )
