"""Made-up logs of several kinds and any size, written as the harnesses write them."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

_SOME_WORDS = """the of and to in is that for it as was with be by on not he his are this at from or
have an they which one you were her all would there their we him been has when who will more"""
WORDS = _SOME_WORDS.split()
_AS_ARRAY = np.array(WORDS)


def make_lm_eval(folder: str, kind: str, lines: int = 0, megabytes: int = 0) -> int:
    """Write an lm-eval samples file of a kind: `zero-shot`, `five-shot` or `generated`.

    Ends at a number of lines or of megabytes, whichever is given; returns the lines.
    """
    luck = random.Random(0)
    shots = "".join(_shot(luck) for _ in range(5 if kind == "five-shot" else 0))
    path = Path(folder, f"samples_{kind}_2026-01-01T00-00-00.000000.jsonl")
    record = _generated if kind == "generated" else _choice
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while number < lines if lines else written < megabytes * 1_000_000:
            written += file.write(json.dumps(record(luck, number, shots)) + "\n")
            number += 1
    return number


def make_tables(folder: str, rows: int, kind: str) -> list[list[int]]:
    """Write before and after as plain tables; returns the items by outcome: 00, 01, 10, 11."""
    luck = np.random.default_rng(0)
    right = {"before": luck.random(rows) < 0.6}
    right["after"] = np.where(luck.random(rows) < 0.1, luck.random(rows) < 0.5, right["before"])
    for side, scores in right.items():
        order = luck.permutation(rows)
        path = Path(folder, f"{side}.{kind}")
        with _table_writer(path) as write:
            for part in np.array_split(order, max(1, rows // 250_000)):
                write(_table_part(part, scores[part], options=kind == "jsonl"))
    outcomes = 2 * right["before"] + right["after"]
    return [np.bincount(outcomes, minlength=4).tolist()]


def _table_part(numbers: np.ndarray, scores: np.ndarray, options: bool) -> pa.Table:
    """Some rows; all but the score hangs on the item's number alone."""
    words = [_AS_ARRAY[(numbers * factor) % len(WORDS)] for factor in (3, 7, 11, 13, 17, 19, 23)]
    texts = [pa.array(column) for column in words]
    number = pa.array(numbers).cast(pa.string())
    columns = {
        "id": pc.binary_join_element_wise("q", number, "-"),
        "question": pc.binary_join_element_wise(number, *texts, " "),
        "target": texts[0],
        "correct": pa.array(scores.astype(np.int8)),
    }
    if options:
        columns["choices"] = pa.array([list(row) for row in zip(*words[:4], strict=True)])
        columns["response"] = pc.binary_join_element_wise(*texts * 6, " ")
    return pa.table(columns)


@contextmanager
def _table_writer(path: Path) -> Iterator[Callable[[pa.Table], object]]:
    """Write the parts of a table, whatever its kind."""
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            yield lambda part: file.writelines(json.dumps(row) + "\n" for row in part.to_pylist())
        return
    schema = _table_part(np.arange(1), np.ones(1), options=False).schema
    kind = pq.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
    with kind(path, schema) as writer:
        yield writer.write_table


def _words(luck: random.Random, count: int) -> str:
    return " ".join(luck.choices(WORDS, k=count))


def _shot(luck: random.Random) -> str:
    return f"Question: {_words(luck, 40)}?\nAnswer: {luck.choice(WORDS)}\n\n"


def _choice(luck: random.Random, number: int, shots: str) -> dict[str, object]:
    """Four options scored by likelihood."""
    question = f"{number} {_words(luck, 25)}?"
    options = luck.sample(WORDS, 4)
    gold = luck.randrange(4)
    scores = [f"{-20 * luck.random():.4f}" for _ in options]
    answers = [[score, "False"] for score in scores]
    right = float(min(range(4), key=lambda place: -float(scores[place])) == gold)
    prompt = f"{shots}Question: {question}\nAnswer:"
    return {
        "doc_id": number,
        "doc": {"id": f"q-{number}", "question": question, "choices": options, "answer": gold},
        "target": str(gold),
        "arguments": {
            f"gen_args_{place}": {"arg_0": prompt, "arg_1": f" {option}"}
            for place, option in enumerate(options)
        },
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        **_hashes(luck),
        "acc": right,
        "acc_norm": right,
    }


def _generated(luck: random.Random, number: int, shots: str) -> dict[str, object]:
    """A worked answer of some sentences."""
    question = f"{number} {_words(luck, 40)}?"
    response = f"{_words(luck, 150)}. The answer is {number}."
    return {
        "doc_id": number,
        "doc": {"question": question, "answer": f"{_words(luck, 60)} #### {number}"},
        "target": f"#### {number}",
        "arguments": {
            "gen_args_0": {
                "arg_0": f"{shots}Question: {question}\nAnswer:",
                "arg_1": {"until": ["Question:"], "do_sample": False, "temperature": 0.0},
            }
        },
        "resps": [[response]],
        "filtered_resps": [str(number)],
        "filter": "flexible-extract",
        "metrics": ["exact_match"],
        **_hashes(luck),
        "exact_match": float(luck.random() < 0.6),
    }


def _hashes(luck: random.Random) -> dict[str, str]:
    return {
        name: f"{luck.getrandbits(256):064x}" for name in ("doc_hash", "prompt_hash", "target_hash")
    }


def make_inspect(folder: str, samples: int) -> int:
    """Write an Inspect log (a deflated .eval archive) with so many samples."""
    luck = random.Random(0)
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "made_up",
            "model": "mockllm/model",
            "created": "2026-01-01T00:00:00+00:00",
            "config": {"epochs": 1},
            "dataset": {"samples": samples},
            "packages": {"inspect_ai": "0.3.285"},
        },
        "results": {"total_samples": samples, "completed_samples": samples},
    }
    path = Path(folder, "2026-01-01T00-00-00_made-up.eval")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(samples):
            answer = _words(luck, 60)
            sample = {
                "id": number,
                "epoch": 1,
                "input": f"{number} {_words(luck, 40)}?",
                "target": str(number),
                "messages": [{"role": "assistant", "content": answer}],
                "output": {
                    "model": "m",
                    "choices": [{"message": {"role": "assistant", "content": answer}}],
                },
                "scores": {"match": {"value": luck.choice("CI"), "answer": str(number)}},
            }
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(header))
    return samples
