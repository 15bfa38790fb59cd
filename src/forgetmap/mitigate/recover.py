"""Hidden or gone? Ask lost items again by cheap roads, beside items that were never known.

A road is a small change to the model after, or to how it is asked. Each brings some lost items
back, and turns some items right that were never known: that much is luck. What comes back beyond
it was hidden, not gone.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder
from forgetmap.base.model import Frozen
from forgetmap.base.words import some
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.prompts import Asking, make_request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.results import MANIFEST
from forgetmap.evaluate.run import Questions, evaluate, load_suite
from forgetmap.map.items import Filter
from forgetmap.map.saved import SavedComparison, open_saved
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.stats.estimate import Estimate, share

RECOVER_SCHEMA_VERSION = 1
LOST, NEVER = "lost", "never known"
ANY = "any road"
BACK = (0.1, 0.25, 0.5)
"""How much of the old weights the merges have."""
SHOTS, STEPS = 3, 10
_RATE, _BATCH = 2e-5, 8
Progress = Callable[[str], None]
Key = tuple[str, str]
"""Task and item."""


class Came(Frozen):
    """How many items of a group turned right on a road, beside the luck of the same road."""

    lost: int
    """Lost items of the group."""
    back: Estimate
    """Share of them that is right on the road."""
    control: int
    """Items of the group that were right neither before nor after."""
    luck: Estimate
    """Share of these that is right on the road."""
    beyond_luck: Estimate
    """The difference: the share that was hidden."""


class Recovery(Frozen):
    """Which losses were hidden, by road and by group of items."""

    schema_version: int = RECOVER_SCHEMA_VERSION
    before: str
    after: str
    roads: list[str]
    total: dict[str, Came]
    """By road, and by any of them."""
    categories: dict[str, Came]
    """By any road."""
    causes: dict[str, Came]
    """The same by cause; the control is that of all items."""
    unanswered: int
    """Items that some road did not ask; they are left out."""
    notes: list[str]

    def to_json(self) -> str:
        """The result as JSON."""
        return self.model_dump_json(indent=2)


class _Asked(NamedTuple):
    """What is asked again."""

    kind: str
    category: str
    cause: str


def recover(
    saved: str | Path,
    *,
    roads: Mapping[str, str | Path] | None = None,
    model: str | None = None,
    before: str | Path | None = None,
    suite: Questions | None = None,
    out: str | Path | None = None,
    most: int = 500,
    running: Running | None = None,
    asking: Asking | None = None,
    seed: int = 0,
    tell: Progress = lambda _text: None,
) -> Recovery:
    """Tell hidden losses from gone ones.

    Args:
        saved: A comparison that `compare --save` wrote.
        roads: Logs of the model after that were made on some road, by the name of the road.
        model: The model after, to make such logs with; needs `suite` and `out`.
        before: The model before, for the merges on the way back.
        suite: The questions of the map.
        out: Where the logs go; a stopped run goes on there.
        most: Lost items that are asked again at most, and as many that were never known.

    Example:
        >>> import tempfile
        >>> from forgetmap.map import compare_logs, example_logs, save_comparison
        >>> before, after = example_logs()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_comparison(compare_logs(before, after, causes=True), folder)
        ...     recover(folder, roads={"the old model": before}).total["any road"].back.value
        1.0
    """
    comparison = open_saved(Path(saved))
    asked = _asked(comparison, most, np.random.default_rng(seed))
    logs = dict(roads or {})
    notes: list[str] = []
    if model is not None:
        if suite is None or out is None:
            raise InputError("--model: give the questions with --suite, and a folder with --out")
        made = _Roads(load_suite(suite, seed), asked, model, before, Path(out), running, asking)
        logs |= made.travel(tell)
        notes += made.notes
    if not logs:
        raise InputError("give --model AFTER to make the logs, or --road NAME=LOG for each road")
    return _result(comparison, asked, logs, notes)


def _asked(comparison: SavedComparison, most: int, rng: np.random.Generator) -> dict[Key, _Asked]:
    """Lost items, and as many that were never known, in the same tasks as far as there are some."""
    new = set(comparison.result.settings.new)
    found: dict[str, dict[Key, _Asked]] = {LOST: {}, NEVER: {}}
    for kind, transition in ((LOST, "forgotten"), (NEVER, "never")):
        for batch in comparison.store.table(Filter(transition=transition)):
            for row in batch.select(["task", "item", "cause"]).to_pylist():
                if row["task"] not in new:
                    category = comparison.result.task_categories.get(row["task"], row["task"])
                    one = _Asked(kind, category, row["cause"] or "not told")
                    found[kind][row["task"], row["item"]] = one
    if not found[LOST]:
        raise InputError(f"{comparison.name}: no old item of the map was lost; nothing to recover")
    lost = _some(found[LOST], most, rng)
    wanted = Counter(task for task, _ in lost)
    near = {key: one for key, one in found[NEVER].items() if key[0] in wanted}
    return {**lost, **_some(near or found[NEVER], most, rng)}


def _some(found: Mapping[Key, _Asked], most: int, rng: np.random.Generator) -> dict[Key, _Asked]:
    keys = sorted(found)
    if len(keys) > most:
        keys = [keys[place] for place in np.sort(rng.choice(len(keys), most, replace=False))]
    return {key: found[key] for key in keys}


# --- the roads ------------------------------------------------------------------------------------


class _Roads:
    """Makes a log for every road, one after the other."""

    def __init__(
        self,
        suite: Suite,
        asked: Mapping[Key, _Asked],
        model: str,
        before: str | Path | None,
        out: Path,
        running: Running | None,
        asking: Asking | None,
    ) -> None:
        self.model, self.before, self.out = model, before, out
        self.running, self.asking = running, asking or Asking()
        self.notes: list[str] = []
        self.again, self.others = _split(suite, asked)

    def travel(self, tell: Progress) -> dict[str, Path]:
        """All roads that can be gone, with the logs they gave."""
        make_folder(self.out)
        logs = {}
        for name, go in self._roads():
            folder = self.out / name.replace(" ", "-")
            tell(name)
            if not (folder / MANIFEST).is_file():
                go(folder)
            logs[name] = folder
        return logs

    def _roads(self) -> Iterator[tuple[str, Callable[[Path], None]]]:
        if any(task.examples for task in self.again.tasks):
            yield f"{SHOTS} worked examples", self._with_examples
        else:
            self.notes.append("no items are left as worked examples: that road was not gone")
        if self.before is None:
            self.notes.append("without --before the merges on the way back were not made")
        else:
            for back in BACK:
                yield f"{100 * back:.0f} % of the old weights", partial(self._merged, back)
        if self.others:
            yield f"{STEPS} steps on other old items", self._trained
        else:
            self.notes.append("no other old items are left to train on: that road was not gone")

    def _ask(self, model: str | Path, folder: Path, asking: Asking) -> None:
        evaluate(str(model), self.again, folder, asking=asking, running=self.running)

    def _with_examples(self, folder: Path) -> None:
        fewest = min(len(task.examples) for task in self.again.tasks)
        self._ask(self.model, folder, replace(self.asking, shots=min(SHOTS, fewest)))

    def _merged(self, back: float, folder: Path) -> None:
        from forgetmap.mitigate.merge.merging import merge

        made = self.out / "merged"
        shutil.rmtree(made, ignore_errors=True)
        merge(str(self.before), self.model, made, weight=1 - back)
        self._ask(made, folder, self.asking)
        shutil.rmtree(made)

    def _trained(self, folder: Path) -> None:
        from forgetmap.mitigate.train.recipes import Materials, Recipe, train

        recipe = Recipe(steps=STEPS, batch=_BATCH, learning_rate=_RATE, longest=256)
        made = self.out / "trained"
        train(recipe, self.model, Materials(self.others), made)
        self._ask(made, folder, self.asking)
        shutil.rmtree(made)


def _split(suite: Suite, asked: Mapping[Key, _Asked]) -> tuple[Suite, list[dict[str, str]]]:
    """What is asked again, with worked examples; and the other items, to train on.

    Neither the examples nor what is trained on is ever asked.
    """
    tasks, others, found = list[Task](), list[dict[str, str]](), set[Key]()
    for task in suite.tasks:
        keys = {(task.name, f"{one.item:016x}"): one for one in task.questions()}
        again = tuple(one for key, one in keys.items() if key in asked)
        if not again:
            continue
        found |= keys.keys() & asked.keys()
        rest = [one for key, one in keys.items() if key not in asked]
        shown = (*task.examples, *rest[:SHOTS])[:SHOTS]
        others += [_example(task, one) for one in rest[SHOTS:]]
        tasks.append(replace(task, questions=partial(_fixed, again), examples=shown))
    if missing := asked.keys() - found:
        raise InputError(
            f"--suite: {len(missing):,} of {len(asked):,} items of the map are not in the suite "
            f"{suite.name}; name the suite that the map was made of"
        )
    return replace(suite, tasks=tuple(tasks)), others


def _fixed(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    return questions


def _example(task: Task, question: Question) -> dict[str, str]:
    prompt = str(make_request(task, question, Asking()).prompt)
    return {"prompt": prompt, "completion": f" {question.target}"}


# --- what came back -------------------------------------------------------------------------------


def _result(
    comparison: SavedComparison,
    asked: Mapping[Key, _Asked],
    logs: Mapping[str, str | Path],
    notes: list[str],
) -> Recovery:
    right = {name: _right(log) for name, log in logs.items()}
    kept = [key for key in asked if all(key in found for found in right.values())]
    if not kept:
        raise InputError(
            f"none of the {len(asked):,} items to ask again is in the logs of "
            f"{some(logs)}; were these items asked?"
        )
    ones = [asked[key] for key in kept]
    came = {name: np.array([found[key] for key in kept]) for name, found in right.items()}
    by_any = np.any(list(came.values()), axis=0)
    lost = np.array([one.kind == LOST for one in ones])
    every = np.ones(len(ones), bool)
    names = {one.category for one in ones if one.kind == LOST}
    causes = {one.cause for one in ones if one.kind == LOST}

    def inside(field: str, value: str) -> Any:
        return np.array([getattr(one, field) == value for one in ones])

    return Recovery(
        before=comparison.result.before.name,
        after=comparison.result.after.name,
        roads=list(logs),
        total={
            **{name: _came(found, lost, ~lost, every) for name, found in came.items()},
            ANY: _came(by_any, lost, ~lost, every),
        },
        categories={
            name: _came(by_any, lost, ~lost, inside("category", name)) for name in sorted(names)
        },
        causes={
            name: _came(by_any, lost & inside("cause", name), ~lost, every)
            for name in sorted(causes)
        },
        unanswered=len(asked) - len(kept),
        notes=notes,
    )


def _right(log: str | Path) -> dict[Key, bool]:
    """Which items of a log are right, by the rules by which logs are compared."""
    (samples,) = read_all([log], ReadOptions())
    outcomes = pair(samples, samples).outcomes()
    keys = zip(outcomes["task"].to_pylist(), outcomes["key"].to_pylist(), strict=True)
    return {
        (task, f"{key:016x}"): bool(knew)
        for (task, key), knew in zip(keys, outcomes["knew"].to_pylist(), strict=True)
    }


def _came(right: Any, lost: Any, never: Any, inside: Any) -> Came:
    sides = [right[group & inside] for group in (lost, never)]
    back, luck = (share(float(side.sum()), max(len(side), 1)) for side in sides)
    if not len(sides[1]):
        luck = Estimate(value=0.0, low=0.0, high=1.0)  # nothing to tell luck by
    return Came(
        lost=len(sides[0]),
        back=back,
        control=len(sides[1]),
        luck=luck,
        beyond_luck=_difference(back, luck),
    )


def _difference(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two independent shares, by Newcombe's interval from those of each.

    Example:
        >>> _difference(share(56, 70), share(48, 80))
        Estimate(value=0.2, low=0.0536..., high=0.3357...)
    """
    value = one.value - other.value
    down = np.hypot(one.value - one.low, other.high - other.value)
    up = np.hypot(one.high - one.value, other.value - other.low)
    return Estimate(
        value=round(value, 12), low=float(max(value - down, -1)), high=float(min(value + up, 1))
    )
