"""Measure packed scoring beside lm-eval's `hf` model: same weights, same items, one run.

Usage: ``python benchmarks/scoring.py MODEL_FOLDER [--items 1000] [--five-shot-items 200]``

Multiple-choice items of the suite `atlas` with four options, float32, without and with five solved
examples. The two take turns, batch by batch, so that a busy machine slows both alike.
lm-eval runs at the best of the batch sizes tried. Loading models and data is not counted; making
tokens is. Prints a table; exits with 1 if a bar does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.prompts import Request

BATCH_SIZES = (8, 32)
LARGEST_DIFFERENCE = 1e-4
BARS = {0: 3.0, 5: 15.0}
"""By solved examples: how many times lm-eval's speed is wanted."""
TASKS = ("atlas_capitals", "atlas_currencies", "atlas_holidays")


class Measured(NamedTuple):
    """One row of the table."""

    shots: int
    items: int
    batch: int
    lm_eval: float
    """Seconds."""
    packed: float
    difference: float
    changed: int
    """Items whose best option is another one."""

    @property
    def gain(self) -> float:
        """How many times as fast."""
        return self.lm_eval / self.packed

    def holds(self) -> bool:
        """Whether speed and numbers keep to their bars."""
        same = self.difference <= LARGEST_DIFFERENCE and not self.changed
        return same and self.gain >= BARS[self.shots]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure packed scoring beside lm-eval.")
    parser.add_argument("model", help="a Hugging Face folder, e.g. of `forgetmap fetch-model`")
    parser.add_argument("--items", type=int, default=1000, help="without examples")
    parser.add_argument("--five-shot-items", type=int, default=200)
    parser.add_argument("--tasks", nargs="+", default=TASKS, help="tasks of the suite atlas")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # of lm-eval and transformers
    rows = [
        measure(arguments.model, arguments.tasks, shots, items)
        for shots, items in ((0, arguments.items), (5, arguments.five_shot_items))
        if items
    ]
    print(f"{os.cpu_count()} processors, load average at the end {os.getloadavg()[0]:.1f}\n")
    print("| examples | items | lm-eval, best batch | packed | gain | bar | difference | changed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row.shots} | {row.items} | {row.lm_eval:.1f} s (batch {row.batch}) "
            f"| {row.packed:.1f} s | {row.gain:.1f}x | {BARS[row.shots]:.0f}x "
            f"| {row.difference:.1e} | {row.changed} |"
        )
    if arguments.items:
        found = measure_bfloat16(arguments.model, arguments.tasks, arguments.items)
        print(
            f"\nPacked scoring in bfloat16 against float32, {found[2]} items without examples: "
            f"differences up to {found[0]:.2f} nats, {found[1] / found[2]:.1%} changed their "
            "best option."
        )
    sys.exit(0 if all(row.holds() for row in rows) else 1)


def measure(folder: str, names: Sequence[str], shots: int, items: int) -> Measured:
    from lm_eval.models.huggingface import HFLM

    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    tasks = load_tasks(names, shots, items)
    ours = LocalModel(folder, None, Running(device="cpu"))
    theirs = HFLM(pretrained=folder, dtype="float32", device="cpu", batch_size=1)
    score_packed(ours, tasks[0][:4])  # loads the model
    batch = best_batch(theirs, tasks[0])
    theirs.batch_size_per_gpu = batch
    seconds = [0.0, 0.0]
    difference, changed, done = 0.0, 0, 0
    for requests in tasks:
        begin = time.perf_counter()
        groups = ours.plan(requests)
        seconds[1] += time.perf_counter() - begin
        for group in groups:
            part = [requests[place] for place in group.places]
            begin = time.perf_counter()
            expected = score_by_lm_eval(theirs, part)
            middle = time.perf_counter()
            found = [list(reply.likelihoods) for reply in ours.run(part, group.hints)]
            seconds[0] += middle - begin
            seconds[1] += time.perf_counter() - middle
            done += len(part)
            for one, other in zip(found, expected, strict=True):
                difference = max(difference, *(abs(a - b) for a, b in zip(one, other, strict=True)))
                changed += one.index(max(one)) != other.index(max(other))
            print(
                f"{shots} examples, {done} items: {seconds[0] / seconds[1]:.1f}x, "
                f"difference {difference:.1e}, {changed} changed",
                file=sys.stderr,
            )
    return Measured(shots, done, batch, seconds[0], seconds[1], difference, changed)


def measure_bfloat16(folder: str, names: Sequence[str], items: int) -> tuple[float, int, int]:
    """Largest difference, changed items, all items."""
    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    tasks = load_tasks(names, 0, items)
    exact, rough = (
        [
            likelihoods
            for model in [LocalModel(folder, None, Running(dtype, "cpu"))]
            for part in tasks
            for likelihoods in score_packed(model, part)
        ]
        for dtype in ("float32", "bfloat16")
    )
    pairs = list(zip(exact, rough, strict=True))
    difference = max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))
    changed = sum(one.index(max(one)) != other.index(max(other)) for one, other in pairs)
    return difference, changed, len(pairs)


def load_tasks(names: Sequence[str], shots: int, items: int) -> list[list[Request]]:
    """About as many items of each task, drawn at random."""
    from forgetmap.evaluate import suites
    from forgetmap.evaluate.prompts import Asking, make_request

    by_name = {task.name: task for task in suites.load("atlas").tasks}
    tasks = []
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        questions = list(by_name[name].questions())
        wanted = (items - sum(map(len, tasks))) // left
        drawn = random.Random(0).sample(questions, min(wanted, len(questions)))
        tasks.append([make_request(by_name[name], each, Asking(shots=shots)) for each in drawn])
    return tasks


def best_batch(model: Any, requests: list[Request]) -> int:
    """The quickest batch size on a few items."""
    took = {}
    for size in BATCH_SIZES:
        model.batch_size_per_gpu = size
        begin = time.perf_counter()
        score_by_lm_eval(model, requests[:8])
        took[size] = time.perf_counter() - begin
    return min(took, key=took.__getitem__)


def score_by_lm_eval(model: Any, requests: list[Request]) -> list[list[float]]:
    from lm_eval.api.instance import Instance

    asked = [
        Instance("loglikelihood", {}, (request.prompt, option), number)
        for number, request in enumerate(requests)
        for option in request.options
    ]
    found = iter(model.loglikelihood(asked, disable_tqdm=True))
    return [[next(found)[0] for _ in request.options] for request in requests]


def score_packed(model: LocalModel, requests: list[Request]) -> list[list[float]]:
    found: dict[int, list[float]] = {}
    for group in model.plan(requests):
        replies = model.run([requests[place] for place in group.places], group.hints)
        for place, reply in zip(group.places, replies, strict=True):
            found[place] = list(reply.likelihoods)
    return [found[place] for place in range(len(requests))]


if __name__ == "__main__":
    main()
