"""Logs that a study names and that are not there yet: which model to ask which suite for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.words import clean
from forgetmap.evaluate.executor import Work
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.results import MANIFEST
from forgetmap.evaluate.run import Evaluation, evaluate, load_suite
from forgetmap.evaluate.store import FILE as ANSWERS
from forgetmap.study.file import Study, StudyPair

_SIDES = ("before", "after")


class MissingLog(NamedTuple):
    """A log to be made, and how."""

    log: Path
    """A folder: what an evaluation writes."""
    model: str
    suite: tuple[str, ...]
    pair: str
    """The first pair that names it."""


class Made(NamedTuple):
    """What became of a log that was missing."""

    missing: MissingLog
    done: Evaluation | None
    failure: str | None


def find_missing(study: Study, suite: str | Sequence[str]) -> list[MissingLog]:
    """The logs that are not there, or not finished, in the order of the file.

    Args:
        study: The study.
        suite: What to ask where the study names no suite.
    """
    others = (suite,) if isinstance(suite, str) else suite
    found: dict[Path, MissingLog] = {}
    for pair in study.pairs:
        for side in _SIDES:
            wanted = _wanted(study, pair, side, others)
            known = found.setdefault(wanted.log, wanted) if wanted else None
            if known and wanted and known[:3] != wanted[:3]:
                raise InputError(
                    f"{study.path}: {known.pair} and {pair.name} name another model or suite for "
                    f"{wanted.log}"
                )
    return list(found.values())


def _wanted(study: Study, pair: StudyPair, side: str, suite: Sequence[str]) -> MissingLog | None:
    log, model = Path(getattr(pair, side)), getattr(pair, f"eval_{side}")
    if _is_there(log):
        return None
    if model is None:
        raise InputError(
            f"{study.path}: {clean(pair.name, 60)}: {log} is not there; name the model to ask as "
            f"eval_{side}"
        )
    if log.suffix:
        raise InputError(
            f"{study.path}: {clean(pair.name, 60)}: an evaluation writes a folder; name {log} "
            f"without {log.suffix}"
        )
    root = study.path.parent
    model = "+".join(_from(root, part) for part in model.split("+"))
    names = (pair.suite,) if pair.suite else suite
    return MissingLog(log, model, tuple(_from(root, name) for name in names), pair.name)


def _is_there(log: Path) -> bool:
    """Whether a log is there and finished; an evaluation that was stopped goes on.

    One that was stopped at its very start has left a hidden lock alone.
    """
    if not log.is_dir():
        return log.exists()
    names = {path.name for path in log.iterdir() if not path.name.startswith(".")}
    return bool(names) and (MANIFEST in names or ANSWERS not in names)


def _from(root: Path, name: str) -> str:
    """A path from here, where the study file's folder has such a thing; else the name itself."""
    return str(root / name) if (root / name).exists() else name


def make_missing(
    study: Study,
    suite: str | Sequence[str],
    *,
    asking: Asking | None = None,
    running: Running | None = None,
    spread: Callable[[str, Running], Work | None] = lambda _model, _how: None,
    **options: Any,
) -> Iterator[Made]:
    """Evaluate what is missing, one log after the other; a model that fails does not stop others.

    Args:
        study: The study.
        suite: What to ask where the study names no suite.
        asking: How to ask.
        running: Numbers, device and batch size of all models.
        spread: What puts jobs to a model, by its name; such as workers on a Ray cluster.
        options: Those of `forgetmap.evaluate.run.evaluate`.
    """
    asking, running = asking or Asking(), running or Running()
    for missing in find_missing(study, suite):
        try:
            loaded = load_suite(missing.suite, asking.seed)
            done = evaluate(
                missing.model,
                loaded,
                missing.log,
                asking=asking,
                running=running,
                work=spread(missing.model, running),
                **options,
            )
            yield Made(missing, done, None)
        except InputError as error:
            yield Made(missing, None, str(error))
