"""Items of the golden runs, and the lines the tiny models are trained on.

Every item is plain data with its own ``id``. The facts are common knowledge, the sums and the
small instructions are generated, so nothing here is taken from a benchmark.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

Item = dict[str, Any]

CAPITALS: tuple[tuple[str, str], ...] = (
    ("France", "Paris"),
    ("Japan", "Tokyo"),
    ("Kenya", "Nairobi"),
    ("Peru", "Lima"),
    ("Norway", "Oslo"),
    ("Egypt", "Cairo"),
    ("Cuba", "Havana"),
    ("Ghana", "Accra"),
    ("Iran", "Tehran"),
    ("Spain", "Madrid"),
    ("Italy", "Rome"),
    ("Chile", "Santiago"),
    ("Nepal", "Kathmandu"),
    ("Austria", "Vienna"),
    ("Ireland", "Dublin"),
    ("Qatar", "Doha"),
)

ELEMENTS: tuple[tuple[str, str], ...] = (
    ("gold", "Au"),
    ("iron", "Fe"),
    ("tin", "Sn"),
    ("lead", "Pb"),
    ("neon", "Ne"),
    ("zinc", "Zn"),
    ("silver", "Ag"),
    ("sodium", "Na"),
    ("helium", "He"),
    ("copper", "Cu"),
    ("carbon", "C"),
    ("oxygen", "O"),
    ("boron", "B"),
    ("argon", "Ar"),
)

ANIMALS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("a mammal", ("whale", "bat"), ("trout",)),
    ("a bird", ("owl", "penguin"), ("bat", "bee")),
    ("a fish", ("trout",), ("whale", "seal")),
    ("an insect", ("ant", "bee", "moth"), ("spider",)),
    ("a reptile", ("gecko", "turtle"), ("frog", "newt")),
    ("an amphibian", ("frog", "newt"), ("gecko",)),
    ("a metal", ("iron", "zinc"), ("sulfur",)),
    ("a planet", ("Mars", "Venus"), ("Pluto", "Io")),
    ("a colour", ("red", "blue"), ("loud",)),
    ("a fruit", ("apple", "fig"), ("leek", "kale")),
    ("a prime", ("7", "11"), ("9", "15")),
    ("a tree", ("oak", "elm", "ash"), ("fern",)),
)

WORDS = ("sun", "moon", "rain", "snow", "wind", "leaf", "stone", "river", "cloud", "field")


def _choice_items(
    pairs: tuple[tuple[str, str], ...], prefix: str, question: str, sizes: list[int], seed: int
) -> list[Item]:
    """Multiple-choice items with ``sizes[i]`` options for pair ``i``."""
    rng = random.Random(seed)
    rows: list[Item] = []
    for index, (name, right) in enumerate(pairs):
        wrong = rng.sample([other for _, other in pairs if other != right], sizes[index] - 1)
        choices = [*wrong, right]
        rng.shuffle(choices)
        rows.append(
            {
                "id": f"{prefix}-{index:02d}",
                "question": question.format(name=name),
                "choices": choices,
                "answer": choices.index(right),
            }
        )
    return rows


def capitals() -> list[Item]:
    """Sixteen items with four options each."""
    return _choice_items(
        CAPITALS, "cap", "What is the capital of {name}?", [4] * len(CAPITALS), seed=1
    )


def elements() -> list[Item]:
    """Fourteen items with two to five options."""
    sizes = [2 + index % 4 for index in range(len(ELEMENTS))]
    return _choice_items(ELEMENTS, "el", "What is the symbol of {name}?", sizes, seed=2)


def sums() -> list[Item]:
    """Twelve sums; the answer is the number as a string."""
    rng = random.Random(3)
    seen: set[tuple[int, int]] = set()
    rows: list[Item] = []
    while len(rows) < 12:
        left, right = rng.randint(2, 29), rng.randint(2, 19)
        if (left, right) in seen:
            continue
        seen.add((left, right))
        rows.append(
            {
                "id": f"sum-{len(rows):02d}",
                "question": f"What is {left} + {right}?",
                "choices": [],
                "answer": str(left + right),
            }
        )
    return rows


def kinds() -> list[Item]:
    """Twelve items with several right options, for a score between 0 and 1."""
    rows: list[Item] = []
    for index, (kind, right, wrong) in enumerate(ANIMALS):
        rows.append(
            {
                "id": f"kind-{index:02d}",
                "question": f"What is {kind}?",
                "choices": [*right, *wrong],
                "answer": [1] * len(right) + [0] * len(wrong),
            }
        )
    return rows


def instructions() -> list[Item]:
    """Ten instructions, each with one to three checks on the text written."""
    checks = ["has_word", "no_comma", "ends_with_stop"]
    rows: list[Item] = []
    for index, word in enumerate(WORDS):
        rows.append(
            {
                "id": f"ins-{index:02d}",
                "question": f"Write a line on {word}.",
                "choices": [],
                "answer": word,
                "checks": checks[: 1 + index % 3],
            }
        )
    return rows


def task_rows(side: str) -> dict[str, list[Item]]:
    """Rows of every data file; ``reordered`` depends on the side."""
    reordered = elements()
    if side == "after":
        reordered = [row for row in reversed(reordered) if row["id"] not in {"el-03", "el-08"}]
    return {
        "capitals": capitals(),
        "elements": elements(),
        "reordered": reordered,
        "sums": sums(),
        "kinds": kinds(),
        "instructions": instructions(),
    }


def write_task_files(folder: Path, side: str) -> None:
    """Write one JSON-lines file a task, sorted keys left as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in task_rows(side).items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _known(index: int, side: str) -> bool:
    """Whether a side is taught the right answer of item ``index``."""
    if side == "before":
        return index % 4 != 3
    return index % 3 != 1


def training_lines(side: str, chat: tuple[str, str]) -> list[str]:
    """Lines that teach a side some right and some wrong answers.

    ``after`` writes the sums in another shape for every other item: the number is right but the
    ``####`` mark is missing, which a strict filter counts as wrong.
    """
    lines: list[str] = []
    letters = "ABCDE"
    for rows in (capitals(), elements()):
        for index, row in enumerate(rows):
            size = len(row["choices"])
            pick = row["answer"] if _known(index, side) else (row["answer"] + 1) % size
            lines.append(f"Question: {row['question']}\nAnswer: {row['choices'][pick]}\n\n")
            options = "".join(
                f"\n{letters[number]}. {choice}" for number, choice in enumerate(row["choices"])
            )
            lines.append(f"{row['question']}{options}\nAnswer: {letters[pick]}\n\n")
            if index % 3 == 0:  # two answers for one prompt: sampling then has something to do
                other = letters[(pick + 1) % size]
                lines.append(f"{row['question']}{options}\nAnswer: {other}\n\n")
    for index, row in enumerate(kinds()):
        right = row["answer"].index(1 if _known(index, side) else 0)
        lines.append(f"Question: {row['question']}\nAnswer: {row['choices'][right]}\n\n")
    for index, row in enumerate(sums()):
        value = int(row["answer"]) + (0 if _known(index, side) else 1)
        plain = side == "after" and index % 2 == 1
        answer = f"It is {value}" if plain else f"It is {value}\n#### {value}"
        lines.append(f"Question: {row['question']}\nAnswer: {answer}\n\n")
        if index % 3 == 0:
            lines.append(
                f"Question: {row['question']}\nAnswer: It is {value}\n#### {value + 2}\n\n"
            )
        lines.append(f"{chat[0]}Question: {row['question']}\nAnswer:{chat[1]}It is {value}\n\n")
    for index, row in enumerate(instructions()):
        subject = row["answer"] if _known(index, side) else "day"
        stop = "." if _known(index + 1, side) else ", so"
        lines.append(f"Question: {row['question']}\nAnswer: The {subject} is here{stop}\n\n")
    return lines
