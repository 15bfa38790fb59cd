"""The probes of a training run: their folder, the numbers they give, and whether those are too bad.

The folder is a lineage: one evaluation per probe, and a pipeline file that strings them together.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute
import yaml
from pydantic import ValidationError

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, write_text
from forgetmap.base.words import percent
from forgetmap.evaluate.results import MANIFEST, SAMPLES, TASKS
from forgetmap.gate.judgement import judge
from forgetmap.gate.policy import Limit, Policy
from forgetmap.map.comparison import compare_logs
from forgetmap.map.result import Cell, ForgettingMap
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.table import THRESHOLD, Samples

if TYPE_CHECKING:
    from forgetmap.mitigate.forecast.sampling import Chosen

PIPELINE = "pipeline.yaml"
_BEFORE = "before"
_STEP = re.compile(r"step-(\d+)")
_ONE_PER_ITEM = ("acc", "exact_match")
"""An evaluation scores options in two ways; this one is what `compare` takes."""


class RunFolder:
    """Where the probes of one run lie: `step-0`, `step-100`, ..., each an evaluation of its own."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def start(self, step: int) -> None:
        """Make the folder ready for a run that begins at a step, or goes on from there.

        Probes of later steps belong to a stretch that is trained again; they are removed.
        """
        make_folder(self.path)
        if step == 0 and self._folders():
            raise InputError(
                f"{self.path}: holds the probes of another run; name another folder, or go on with "
                "that run by resume_from_checkpoint"
            )
        for probed, folder in self._folders().items():
            if probed > step or not (folder / MANIFEST).is_file():
                shutil.rmtree(folder)

    def step(self, step: int) -> Path:
        """The folder of a probe."""
        return self.path / f"step-{step}"

    @property
    def base(self) -> Path:
        """The folder of the model without its adapter, where that is the reference."""
        return self.path / _BEFORE

    def steps(self) -> list[int]:
        """The steps of the finished probes."""
        return sorted(
            step for step, folder in self._folders().items() if (folder / MANIFEST).is_file()
        )

    def chosen(self, step: int) -> Chosen | None:
        """Which items a probe asked, where they were drawn by risk; None where it asked all."""
        from forgetmap.mitigate.forecast.sampling import CHOSEN_FILE, read_chosen

        folder = self.step(step)
        return read_chosen(folder) if (folder / CHOSEN_FILE).is_file() else None

    def _folders(self) -> dict[int, Path]:
        return {
            int(step[1]): folder
            for folder in self.path.iterdir()
            if (step := _STEP.fullmatch(folder.name))
        }

    def take_reference(self, log: str | Path | Samples) -> None:
        """Keep a log from elsewhere as what all probes are compared with; the first one stays."""
        kept = self.path / f"{_BEFORE}.parquet"
        if not kept.exists():
            samples = log if isinstance(log, Samples) else read(log, ReadOptions(wording=True))
            samples.only(None).write(kept)

    def reference(self) -> Samples:
        """What all probes are compared with: a log from elsewhere, the base, or the first probe."""
        logs = (self.path / f"{_BEFORE}.parquet", self.base / SAMPLES, self.step(0) / SAMPLES)
        for log in logs:
            if log.is_file():
                return Samples.read(log)
        raise InputError(
            f"{self.path}: has no probe of step 0, and the model before training is gone; go on in "
            "the folder of the run's beginning, or give a log as before="
        )

    def write_pipeline(self, new_tasks: Collection[str] = ()) -> None:
        """Write the pipeline file for `forgetmap lineage`; it needs two checkpoints.

        A probe of chosen items is not among them: its shares are not those of all.
        """
        checkpoints: dict[str, dict[str, object]] = {}
        for log in (f"{_BEFORE}.parquet", _BEFORE):
            if (self.path / log).exists() and not checkpoints:
                checkpoints[_BEFORE] = {"log": log}
        whole = [step for step in self.steps() if self.chosen(step) is None]
        for step in whole:
            name = self.step(step).name
            parents = {"parents": list(checkpoints)[-1]} if checkpoints else {}
            checkpoints[name] = {"log": name, **parents, "steps": step}
        if len(checkpoints) > 1:
            last = self.step(whole[-1]) / TASKS
            named = {"new": sorted(new_tasks)} if new_tasks else {}
            task_map = os.path.relpath(last, self.path)
            content = {"task_map": task_map, **named, "checkpoints": checkpoints}
            write_text(self.path / PIPELINE, yaml.safe_dump(content, sort_keys=False))


@dataclass(frozen=True)
class Probe:
    """What a probe found against the reference."""

    map: ForgettingMap | None
    """Without the new tasks: the map that `forgetmap compare` makes of the two logs; None where
    only some items were asked, drawn by risk."""
    numbers: dict[str, float]
    """What is logged."""
    over: bool
    """Whether a limit is broken."""
    reasons: list[str]
    """How each limit stands."""


def examine(
    before: Samples,
    now: Samples,
    *,
    task_map: Path | None = None,
    new_tasks: Collection[str] = (),
    budget: Policy | None = None,
    chosen: Chosen | None = None,
    seen: Path | None = None,
) -> Probe:
    """Compare a probe with the reference and judge it.

    Tasks that are being learned (`new_tasks`) are not part of the map, but of `new_accuracy`. The
    other numbers are of the old tasks alone, and what was gained never makes up for what was lost.
    Where items were drawn by risk (`chosen`), totals lean on the last log of all items (`seen`).

    Example:
        >>> def log(*right):
        ...     return Samples.from_rows(
        ...         {"item": i, "score": s, "metric": "acc", "k": 4, "gold_probability": 0.9 * s}
        ...         for i, s in enumerate(right))
        >>> before, now = log(*[1] * 30, *[0] * 10), log(*[0] * 10, *[1] * 30)
        >>> probe = examine(before, now, budget=as_policy(0.05))
        >>> round(probe.numbers["lost"], 3), round(probe.numbers["gained"], 3), probe.over
        (0.225, 0.225, True)
    """
    if chosen is not None:
        return _weighed(chosen, before, now, seen, budget)
    sides = [_tasks(samples, new_tasks, inside=False) for samples in (before, now)]
    causes = budget is not None and budget.needs_causes
    result = compare_logs(*sides, task_map=task_map, causes=causes).map
    numbers = _numbers(result.old)
    if (mass := old_answer_mass(*sides)) is not None:
        numbers["old_answer_mass"] = mass
    if new_tasks:
        numbers["new_accuracy"] = _accuracy(_tasks(now, new_tasks, inside=True))
    if budget is None:
        return Probe(result, numbers, False, [])
    judgement = judge(result, budget)
    if judgement.verdict == "WITHHELD":
        raise InputError(f"the budget cannot be judged: {'; '.join(judgement.reasons())}")
    over = judgement.verdict == "BLOCK"
    return Probe(result, {**numbers, "over_budget": float(over)}, over, judgement.reasons())


def _weighed(
    chosen: Chosen, before: Samples, now: Samples, seen: Path | None, budget: Policy | None
) -> Probe:
    """A probe of items that were drawn by risk: each counts by the inverse of its chance."""
    from forgetmap.mitigate.forecast.sampling import weigh

    found = weigh(chosen, before, now, seen).total
    numbers = {
        f"{name}{end}": float(getattr(side, field))
        for name, side in (("lost", found.lost), ("gained", found.gained))
        for end, field in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    if budget is None:
        return Probe(None, numbers, False, [])
    limit = budget.limits[0].max or 0.0
    over = found.lost.low > limit
    told = f"surely lost {percent(found.lost.low)}, {percent(limit)} may be"
    return Probe(None, {**numbers, "over_budget": float(over)}, over, [told])


def _numbers(cell: Cell) -> dict[str, float]:
    """What is logged of a cell: the loss where it is exact, else what is sure, with its limits."""
    numbers = {"accuracy": cell.accuracy_after}
    for name, found in (("lost", cell.lost), ("gained", cell.gained)):
        numbers |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    flips = {"forgetting_raw": cell.raw.lost, "backward_transfer_raw": cell.raw.gained}
    return numbers | {name: flipped.value for name, flipped in flips.items()}


def old_answer_mass(before: Samples, now: Samples) -> float | None:
    """Mean chance of the right option, over the items that were right before.

    What the model would still answer as before if it drew among the options: the mass on the region
    of the old answers. It is not the weight of the old mode in a mixture, which
    `forgetmap theory estimate` finds from samples and two references. None where the logs have no
    such probabilities in common.

    Example:
        >>> def log(*rows):
        ...     return Samples.from_rows(
        ...         {"item": i, "score": s, "metric": "acc", "gold_probability": p}
        ...         for i, (s, p) in enumerate(rows))
        >>> old_answer_mass(log((1, 0.9), (0, 0.2), (1, 0.8)), log((1, 0.5), (1, 0.9), (0, 0.3)))
        0.4
    """
    columns = ["task", "item", "metric", "score", "gold_probability"]
    old, new = (
        {
            (row["task"], row["item"]): row
            for batch in samples.to_batches(columns)
            for row in batch.to_pylist()
            if row["metric"] == "acc"
        }
        for samples in (before, now)
    )
    masses = [
        new[key]["gold_probability"]
        for key, row in old.items()
        if _is_right(row) and key in new and new[key]["gold_probability"] is not None
    ]
    return float(np.mean(masses)) if masses else None


def as_policy(budget: float | str | Path | Policy | None) -> Policy | None:
    """The limits of a budget: a share of the old items that may be lost, or a whole policy.

    A number bounds what is surely lost, as `--gate max-forgetting` does: it is exceeded when the
    low end of the 95 % interval (`lost_low`) lies above it.

    Example:
        >>> as_policy(0.03).limits[0].max
        0.03
        >>> as_policy(3)
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: budget 3: must be a share between 0 and 1, or a policy
    """
    if budget is None or isinstance(budget, Policy):
        return budget
    if isinstance(budget, str | Path):
        return Policy.load(budget)
    try:
        return Policy(limits=[Limit(max=budget)])
    except ValidationError as error:
        raise InputError(
            f"budget {budget}: must be a share between 0 and 1, or a policy"
        ) from error


def _tasks(samples: Samples, names: Collection[str], *, inside: bool) -> Samples:
    """The rows of some tasks, or of all but these."""
    if not names:
        return samples
    table = pa.Table.from_batches(samples.to_batches())
    chosen = pa.compute.is_in(table["task"], pa.array(sorted(names)))
    return Samples(table.filter(chosen if inside else pa.compute.invert(chosen)), samples.meta)


def _is_right(row: Mapping[str, float | None]) -> bool:
    return row["score"] is not None and row["score"] >= THRESHOLD


def _accuracy(samples: Samples) -> float:
    right = [
        _is_right(row)
        for batch in samples.to_batches(["metric", "score"])
        for row in batch.to_pylist()
        if row["metric"] in _ONE_PER_ITEM and row["score"] is not None
    ]
    return float(np.mean(right)) if right else float("nan")
