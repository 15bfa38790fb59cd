"""Measure how far the ways to run one model are apart: same weights, same items, other roads.

Usage: ``python benchmarks/parity.py MODEL_FOLDER [--items 500] [--out benchmarks/parity]
[--server http://127.0.0.1:8765/v1#name]``

Items of the suite `atlas` with four options. The reference is float32 in this process. Every other
road is compared with it: the largest difference between two log-likelihoods of one option, and the
items whose best option is another one. A road that is not installed is named as not run. With
``--server`` a llama.cpp server that serves the same weights is asked to write answers, as its echo
cannot be trusted (docs/how-to/evaluate.md); then an answer changes where its text does.

Writes ``OUT.json``, a road at a time: the same command again measures what is missing. The table
goes into ``OUT.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring import TASKS, load_tasks, score_packed

if TYPE_CHECKING:
    from forgetmap.evaluate.prompts import Request

SMALL_MEMORY = "cpu=300MB"
"""Less than SmolLM2 in float32 takes, so that a part of it lies on the disk until it is needed."""
Tasks = list[list["Request"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/parity"))
    parser.add_argument("--server")
    given = parser.parse_args()
    tasks = load_tasks(TASKS, 0, given.items)
    kept = given.out.with_suffix(".json")
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    reference: list[list[float]] | None = None
    for name, road in roads(given.folder).items():
        if "changed" in found.get(name, {}):
            continue
        reference = reference or local(given.folder)(tasks)
        found[name] = measured(road, tasks, reference)
        print(name, found[name], flush=True)
        kept.write_text(json.dumps(found, indent=2) + "\n")
    if given.server and "changed" not in found.get("llama.cpp server, written", {}):
        found["llama.cpp server, written"] = written(given.folder, given.server, tasks)
        kept.write_text(json.dumps(found, indent=2) + "\n")
    given.out.with_suffix(".md").write_text(page(found))
    print(page(found))


def roads(folder: str) -> dict[str, Callable[[Tasks], list[list[float]]]]:
    """Every way to score the options, by name."""
    return {
        "float32, batches of 7": local(folder, batch=7),
        "float32, eager attention": local(folder, attention="eager"),
        "float32, split by accelerate": local(folder, device="auto", max_memory=SMALL_MEMORY),
        "float32, two processes": lambda tasks: on_two(folder, tasks),
        "bfloat16": local(folder, dtype="bfloat16"),
        "8 bits": local(folder, quantize="8bit"),
    }


def local(folder: str, **how: Any) -> Callable[[Tasks], list[list[float]]]:
    """Score in this process."""

    def score(tasks: Tasks) -> list[list[float]]:
        from forgetmap.evaluate.local import LocalModel
        from forgetmap.evaluate.models import Running

        model = LocalModel(folder, None, Running(**{"dtype": "float32", "device": "cpu"} | how))
        return [likelihoods for part in tasks for likelihoods in score_packed(model, part)]

    return score


def on_two(folder: str, tasks: Tasks) -> list[list[float]]:
    """Score in two processes of a Ray cluster on this machine."""
    from forgetmap.evaluate.executor import Job, OnRay
    from forgetmap.evaluate.models import Running, open_model

    how = Running("float32", "cpu")
    model = open_model(folder, how)
    found: dict[str, list[float]] = {}
    jobs = [
        Job(
            tuple(f"{number} {place}" for place in group.places),
            tuple(part[place] for place in group.places),
            group.hints,
        )
        for number, part in enumerate(tasks)
        for group in model.plan(part)
    ]
    for job, replies in OnRay(folder, how, False, 2)(model, jobs):
        found |= zip(job.keys, (list(reply.likelihoods) for reply in replies), strict=True)
    return [
        found[f"{number} {place}"]
        for number, part in enumerate(tasks)
        for place in range(len(part))
    ]


def measured(
    road: Callable[[Tasks], list[list[float]]], tasks: Tasks, reference: Sequence[Sequence[float]]
) -> dict[str, Any]:
    from forgetmap.base.errors import InputError

    start = time.monotonic()
    try:
        theirs = road(tasks)
    except InputError as error:
        return {"not run": str(error)}
    pairs = list(zip(reference, theirs, strict=True))
    gaps = [abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]
    moved = [one for one, other in pairs if best(one) != best(other)]
    leads = [sorted(one)[-1] - sorted(one)[-2] for one in moved]
    return {
        "items": len(pairs),
        "apart": max(gaps),
        "changed": len(moved),
        "lead": max(leads, default=0.0),
        "seconds": round(time.monotonic() - start, 1),
    }


def best(likelihoods: Sequence[float]) -> int:
    return max(range(len(likelihoods)), key=likelihoods.__getitem__)


def written(folder: str, server: str, tasks: Tasks) -> dict[str, Any]:
    """Have both write a few tokens behind each question."""
    from dataclasses import replace

    from forgetmap.evaluate.models import Running, open_model

    asked = [replace(one, options=(), max_tokens=4, stop=("\n",)) for part in tasks for one in part]
    texts = []
    for name in (folder, server):
        model = open_model(name, Running("float32", "cpu", 1 if name == server else None))
        replies: dict[int, str | None] = {}
        for group in model.plan(asked):
            answers = model.run([asked[place] for place in group.places], group.hints)
            replies |= zip(group.places, (reply.text for reply in answers), strict=True)
        texts.append([(replies[place] or "").strip() for place in range(len(asked))])
    changed = sum(one != other for one, other in zip(*texts, strict=True))
    return {"items": len(asked), "apart": None, "changed": changed, "lead": None}


def page(found: dict[str, Any]) -> str:
    lines = [
        "# Parity of the ways to run a model",
        "",
        "SmolLM2-135M-Instruct (Q4_1 GGUF, converted to a folder), items of `atlas` with four",
        "options, each road against float32 in one process. One run on a processor, made by",
        "`python benchmarks/parity.py`.",
        "",
        "| road | items | largest difference of log-likelihoods, nats | changed answers | "
        "largest lead of a changed one, nats |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, row in found.items():
        if "changed" not in row:
            lines.append(f"| {name} | not run: {row['not run']} | | | |")
            continue
        apart = "-" if row["apart"] is None else f"{row['apart']:.2g}"
        lead = "-" if not row["lead"] else f"{row['lead']:.2f}"
        lines.append(f"| {name} | {row['items']:,} | {apart} | {row['changed']} | {lead} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
