"""Write tests/data/captrack: CapTrack response folders of two made-up models.

Hand-made to the documented layout, in all its file formats; the answers are drawn with a seed. The
model after is worse at word problems in other words, writes less, and calls tools more sloppily.
"""

import csv
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).parents[1] / "captrack"
ITEMS = 60
LETTERS = "ABCD"
CAPITALS = ["Rome", "Paris", "Oslo", "Lima", "Cairo", "Quito", "Riga", "Bern", "Doha", "Baku"]


def answered(rng: random.Random, share: float, right: str, wrong: str) -> str:
    return right if rng.random() < share else wrong


def choice_rows(rng: random.Random, share: float) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        options = [str(n + step) for step in (0, 3, 7, 11)]
        gold = LETTERS[n % 4]
        said = answered(rng, share, gold, LETTERS[(n + 1) % 4])
        prompt = f"Which number is {n} plus {(0, 3, 7, 11)[n % 4]}?"
        rows.append({"id": f"q{n}", "prompt": prompt, "choices": options, "gold": gold,
                     "outputs": f"The answer is ({said})."})  # fmt: skip
    return rows


def sum_rows(rng: random.Random, share: float, rephrased: bool) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        total = 1000 + 7 * n
        text = f"Ann has {total - 5} beads and gets 5. How many has she?"
        row = {"id": f"s{n}", "prompt": text, "gold": f"#### {total}"}
        if rephrased:
            row["prompt"] = f"After getting 5 beads on top of {total - 5}, how many has Ann?"
            row |= {"id": f"r{n}", "meta": {"original": f"s{n}"}}
        right, wrong = f"5 more.\nAnswer: {total:,}", f"Answer: {total + 10}"
        row["outputs"] = answered(rng, share, right, wrong)
        rows.append(row)
    return rows


def fact_rows(rng: random.Random, share: float) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        city, other = CAPITALS[n % 10], CAPITALS[(n + 3) % 10]
        rows.append({"id": f"c{n}", "prompt": f"Which city is number {n} on the list?",
                     "gold": [city, f"City of {city}"],
                     "outputs": f"It is {answered(rng, share, city, other)}."})  # fmt: skip
    return rows


def passage_rows(rng: random.Random, share: float) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        gold = "yes" if n % 2 else "no"
        said = answered(rng, share, gold, "no" if n % 2 else "yes")
        rows.append({"id": f"b{n}", "prompt": f"Is lamp {n} on?", "gold": gold,
                     "ctx": f"Lamp {n} is {'on' if n % 2 else 'off'}.",
                     "outputs": f"Answer: {said}"})  # fmt: skip
    return rows


def call_rows(rng: random.Random, share: float) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        right = f"maths.add(a={n}, b={n + 1})"
        said = answered(rng, share, right, f"maths.add(a={n}, b={n})")
        rows.append({"id": f"t{n}", "prompt": f"Add {n} and {n + 1}.", "gold": [right],
                     "outputs": f"Sure:\n{said}"})  # fmt: skip
    return rows


def chat_rows(rng: random.Random, words: int) -> list[dict]:
    rows = []
    for n in range(ITEMS):
        body = " ".join(rng.choices(["light", "water", "stone", "river", "green"], k=words + n % 9))
        bullets = "\n- one\n- two" if rng.random() < words / 60 else ""
        rows.append({"id": f"m{n}", "prompt": f"Write about subject {n}.", "gold": "",
                     "outputs": f"{body.capitalize()}.{bullets}"})  # fmt: skip
    return rows


def write(model: str, seed: int, skill: float, drop: float, words: int) -> None:
    rng = random.Random(seed)
    folder = OUT / model
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (
        ("mmlu_pro_core", choice_rows(rng, skill)),
        ("gsm8k_subset", sum_rows(rng, skill, rephrased=False)),
        ("gsm8k_rephrased", sum_rows(rng, skill - drop, rephrased=True)),
        ("bfcl_subset", call_rows(rng, skill - drop / 2)),
    ):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "boolq_core.json").write_text(json.dumps(passage_rows(rng, skill)))
    pq.write_table(pa.Table.from_pylist(fact_rows(rng, skill)), folder / "popqa_subset.parquet")
    with (folder / "mtbench_turn1.csv").open("w", newline="") as file:
        rows = chat_rows(rng, words)
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    write("before", 1, skill=0.85, drop=0.0, words=40)
    write("after", 2, skill=0.85, drop=0.45, words=25)
