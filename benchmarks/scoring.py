"""Measure packed scoring beside lm-eval's `hf` model: same weights, same items, one run.

Usage: ``python benchmarks/scoring.py MODEL_FOLDER [--items 1000] [--five-shot-items 200]``

Multiple-choice items of the suite `atlas` with four options, float32, without and with five solved
examples. The two take turns, batch by batch, so that a busy machine slows both alike. lm-eval runs
at the best of the batch sizes tried. Loading models and data is not counted; making tokens is. Some
items are scored in float64 too, to see which of the two is off. Prints tables; exits with 1 if a
bar does not hold.

With ``--dtype bfloat16`` it measures instead what that does: packed scoring against float32.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import median
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Reply
    from forgetmap.evaluate.prompts import Request

BATCH_SIZES = (8, 32)
CLOSE = 1e-4
"""Nats between two log-likelihoods of one option."""
BARS = {0: 3.0, 5: 15.0}
"""By solved examples: how many times lm-eval's speed is wanted."""
TASKS = ("atlas_capitals", "atlas_currencies", "atlas_holidays")


class Option(NamedTuple):
    """One option of one item, by three roads."""

    tokens: int
    lm_eval: float
    packed: float
    exact: float | None
    """In float64; None where that was not computed."""


@dataclass
class Measured:
    """What came of one number of solved examples."""

    shots: int
    batch: int
    """Of lm-eval: the best of those tried."""
    lm_eval: float = 0.0
    """Seconds."""
    packed: float = 0.0
    items: list[list[Option]] = field(default_factory=list)

    @property
    def gain(self) -> float:
        """How many times as fast."""
        return self.lm_eval / self.packed

    @property
    def changed(self) -> int:
        """Items whose best option is another one."""
        return sum(best(item, "lm_eval") != best(item, "packed") for item in self.items)

    def holds(self) -> bool:
        """Whether speed and numbers keep to their bars."""
        options = [option for item in self.items for option in item]
        same = max(apart(options, "packed", "lm_eval")) <= CLOSE and not self.changed
        return same and self.gain >= BARS[self.shots]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure packed scoring beside lm-eval.")
    parser.add_argument("model", help="a Hugging Face folder, e.g. of `forgetmap fetch-model`")
    parser.add_argument("--items", type=int, default=1000, help="without examples")
    parser.add_argument("--five-shot-items", type=int, default=200)
    parser.add_argument("--exact-items", type=int, default=90, help="of these, also in float64")
    parser.add_argument("--tasks", nargs="+", default=TASKS, help="tasks of the suite atlas")
    parser.add_argument("--dtype", help="bfloat16 or float16: only measure what it changes")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # of lm-eval and transformers
    if arguments.dtype:
        print(halved(arguments.model, arguments.tasks, arguments.items, arguments.dtype))
        return
    rows = [
        measure(arguments.model, arguments.tasks, shots, items, arguments.exact_items)
        for shots, items in ((0, arguments.items), (5, arguments.five_shot_items))
        if items
    ]
    print(f"{os.cpu_count()} processors, load average at the end {os.getloadavg()[0]:.1f}\n")
    print("\n".join([*speed_table(rows), "", *number_table(rows)]))
    if arguments.exact_items:
        print(f"\n{lean(rows)}")
    sys.exit(0 if all(row.holds() for row in rows) else 1)


def speed_table(rows: Sequence[Measured]) -> Iterator[str]:
    yield "| examples | items | lm-eval, best batch | packed | gain | bar | best option changed |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row.shots} | {len(row.items):,} | {row.lm_eval:.1f} s (batch {row.batch}) "
            f"| {row.packed:.1f} s | {row.gain:.1f}x | {BARS[row.shots]:.0f}x | {row.changed} |"
        )


def number_table(rows: Sequence[Measured]) -> Iterator[str]:
    """Largest differences between the roads, by the options' length."""
    options = [option for row in rows for item in row.items for option in item]
    most = max(option.tokens for option in options)
    groups = {"1-2": (1, 2), "3-4": (3, 4), "5-8": (5, 8), "9 or more": (9, most), "all": (1, most)}
    yield (
        f"| tokens of the option | options | packed to lm-eval | of these above {CLOSE:.0e} "
        "| in float64 too | packed to float64 | lm-eval to float64 |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, (low, high) in groups.items():
        some = [option for option in options if low <= option.tokens <= high]
        if some:
            above = sum(gap > CLOSE for gap in apart(some, "packed", "lm_eval"))
            exact = [option for option in some if option.exact is not None]
            yield (
                f"| {name} | {len(some):,} | {worst(some, 'packed', 'lm_eval')} | {above} "
                f"| {len(exact):,} | {worst(exact, 'packed', 'exact')} "
                f"| {worst(exact, 'lm_eval', 'exact')} |"
            )


def lean(rows: Sequence[Measured]) -> str:
    """By how much each road is off float64 for a token, with its sign: noise would be near 0."""
    exact = [
        option for row in rows for item in row.items for option in item if option.exact is not None
    ]
    lm_eval = median((option.lm_eval - option.exact) / option.tokens for option in exact)
    packed = median((option.packed - option.exact) / option.tokens for option in exact)
    return f"median beyond float64 for each token: lm-eval {lm_eval:+.1e}, packed {packed:+.1e}"


def worst(options: Sequence[Option], one: str, other: str) -> str:
    return f"{max(apart(options, one, other)):.1e}" if options else "-"


def apart(options: Sequence[Option], one: str, other: str) -> list[float]:
    return [abs(getattr(option, one) - getattr(option, other)) for option in options]


def best(item: Sequence[Option], road: str) -> int:
    values = [getattr(option, road) for option in item]
    return values.index(max(values))


def measure(
    folder: str, names: Sequence[str], shots: int, items: int, exact_items: int
) -> Measured:
    from lm_eval.models.huggingface import HFLM

    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    tasks = load_tasks(names, shots, items)
    ours = LocalModel(folder, None, Running(device="cpu"))
    exact = exact_model(folder)
    theirs = HFLM(pretrained=folder, dtype="float32", device="cpu", batch_size=1)
    score_packed(ours, tasks[0][:4])  # loads the model
    found = Measured(shots, best_batch(theirs, tasks[0]))
    theirs.batch_size_per_gpu = found.batch
    for requests in tasks:
        begin = time.perf_counter()
        groups = ours.plan(requests)
        found.packed += time.perf_counter() - begin
        for group in groups:
            part = [requests[place] for place in group.places]
            begin = time.perf_counter()
            expected = score_by_lm_eval(theirs, part)
            middle = time.perf_counter()
            replies = ours.run(part, group.hints)
            found.lm_eval += middle - begin
            found.packed += time.perf_counter() - middle
            left = exact_items - len(found.items) if requests is tasks[0] else 0
            truth = score_packed(exact, part[: max(0, left)])
            both = zip(part, expected, replies, strict=True)
            for (request, *values), true in zip_longest(both, truth):
                found.items.append(by_option(theirs, request, *values, true))
            print(f"{shots} examples, {len(found.items)} items: {found.gain:.1f}x", file=sys.stderr)
    return found


def by_option(
    model: Any, request: Request, lm_eval: list[float], packed: Reply, exact: list[float] | None
) -> list[Option]:
    tokens = [len(model.tok_encode(text, add_special_tokens=False)) for text in request.options]
    true = exact or [None] * len(tokens)
    whole = zip(tokens, lm_eval, packed.likelihoods, true, strict=True)
    return [Option(*option) for option in whole]


def exact_model(folder: str) -> LocalModel:
    """The model in float64, norms included, which transformers computes in float32 otherwise."""
    import torch

    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    def norm(self: Any, hidden: torch.Tensor) -> torch.Tensor:
        spread = hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon
        return self.weight * hidden * spread.rsqrt()

    model = LocalModel(folder, None, Running(device="cpu"))
    network = model._network.double()
    for module in network.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = MethodType(norm, module)
    return model


def halved(folder: str, names: Sequence[str], items: int, dtype: str) -> str:
    """How many items change their best option, and how far apart their two best were."""
    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    tasks = load_tasks(names, 0, items)
    exact, rough = (
        [
            likelihoods
            for model in [LocalModel(folder, None, Running(kind, "cpu"))]
            for part in tasks
            for likelihoods in score_packed(model, part)
        ]
        for kind in ("float32", dtype)
    )
    pairs = list(zip(exact, rough, strict=True))
    gaps = [abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]
    margins = [
        sorted(one)[-1] - sorted(one)[-2]
        for one, other in pairs
        if one.index(max(one)) != other.index(max(other))
    ]
    return (
        f"{dtype} against float32, {len(pairs):,} items: log-likelihoods up to {max(gaps):.2f} "
        f"nats apart; {len(margins)} items ({len(margins) / len(pairs):.1%}) changed their best "
        f"option, whose lead had been at most {max(margins, default=0.0):.2f} nats"
    )


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
