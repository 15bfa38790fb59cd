"""The pipeline file: which checkpoints there are, what each was made from, and where its log is.

A YAML file, checked when it is loaded. Every fault is one line with the file and the line in it.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.model import Strict
from forgetmap.base.words import nearest

if TYPE_CHECKING:
    Place = tuple[str | int, ...]

NUMBERS = ("steps", "tokens", "merge_weight", "learning_rate")
"""What a checkpoint may carry to draw curves over."""
_MAX_BYTES = 4 * 2**20
_LONGEST_NAME = 200


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Number = Annotated[float | None, Field(allow_inf_nan=False)]


class Checkpoint(Strict):
    """One model of the pipeline."""

    log: str
    """Its evaluation log; a relative path starts at the pipeline file's folder."""
    parents: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    """What it was trained or merged from; the first is its main line."""
    model: str | None = None
    """Which model to take from a log that holds several."""
    steps: Number = None
    tokens: Number = None
    merge_weight: Number = None
    learning_rate: Number = None

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers it carries, by name."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {name: value for name, value in numbers.items() if value is not None}


class Pipeline(Strict):
    """Checkpoints and their parents: a graph with one root.

    Example:
        >>> pipeline = Pipeline.of({
        ...     "base": Checkpoint(log="a"),
        ...     "sft": Checkpoint(log="b", parents="base"),
        ...     "code": Checkpoint(log="c", parents="base"),
        ...     "merged": Checkpoint(log="d", parents=("sft", "code"))})
        >>> pipeline.root, pipeline.paths
        ('base', [('base', 'code'), ('base', 'sft', 'merged')])
    """

    checkpoints: dict[str, Checkpoint] = Field(min_length=2)
    task_map: str | None = None
    new: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    """Tasks that the training was meant to teach."""
    """Categories of the tasks, as for `forgetmap compare`."""

    @classmethod
    def of(cls, checkpoints: dict[str, Checkpoint]) -> Pipeline:
        """Make a pipeline of checkpoints; a graph that makes no sense is refused."""
        pipeline = cls(checkpoints=checkpoints)
        try:
            _check_graph(pipeline)
        except yaml.MisplacedError as error:
            raise InputError(str(error)) from error
        return pipeline

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Load a pipeline file; paths in it start at its folder."""
        document = yaml.read(path, "a pipeline")
        with document.faults(cls):
            pipeline = cls.model_validate(document.content)
            _check_graph(pipeline)
            return _located(Path(path), pipeline)

    @cached_property
    def root(self) -> str:
        """The checkpoint that all others come from."""
        return next(name for name, checkpoint in self.checkpoints.items() if not checkpoint.parents)

    @cached_property
    def order(self) -> list[str]:
        """The checkpoints, parents first, otherwise as in the file."""
        return _ordered(self.checkpoints)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Every (parent, child)."""
        return [(parent, name) for name in self.order for parent in self.checkpoints[name].parents]

    def main_children(self, name: str) -> list[str]:
        """The checkpoints whose first parent this one is."""
        return [child for child in self.order if self.checkpoints[child].parents[:1] == (name,)]

    def main_line(self, name: str) -> tuple[str, ...]:
        """The way from the root to a checkpoint, along first parents."""
        line = [name]
        while parents := self.checkpoints[line[-1]].parents:
            line.append(parents[0])
        return tuple(reversed(line))

    @cached_property
    def paths(self) -> list[tuple[str, ...]]:
        """The main line of every checkpoint that nothing was made from along a main line.

        A leaf that only feeds a merge as its second parent has a path of its own, too.
        """
        leaves = [name for name in self.order if not self.main_children(name)]
        return [self.main_line(name) for name in leaves]


def open_pipeline(path: str | Path) -> Pipeline:
    """The pipeline of a file, or of a folder: its `pipeline.yaml`, else one training run."""
    path = Path(path)
    file = path / "pipeline.yaml"
    if path.is_dir() and not file.is_file():
        return from_run(path)
    return Pipeline.load(file if path.is_dir() else path)


def from_run(folder: str | Path) -> Pipeline:
    """Make a pipeline of one training run: a folder with one log per checkpoint.

    The last number in each name (`checkpoint-500`) is its step; the smallest is the root.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("step-20.csv", "step-3.csv", "step-100.csv"):
        ...     _ = (folder / name).write_text("question,correct\\nq,1\\n")
        >>> from_run(folder).order
        ['step-3', 'step-20', 'step-100']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; it must hold one log per checkpoint")
    by_step: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        digits = re.findall(r"\d+", path.stem if path.is_file() else path.name)
        if not digits:
            raise InputError(
                f"{path}: the name holds no number to order checkpoints by; number the logs by "
                "their steps, or write a pipeline file"
            )
        step = int(digits[-1])
        if step in by_step:
            raise InputError(f"{path}: has the same number as {by_step[step].name}; rename one")
        by_step[step] = path
    if len(by_step) < 2:
        raise InputError(f"{folder}: holds {len(by_step)} logs; a run needs two or more")
    checkpoints: dict[str, Checkpoint] = {}
    for step, path in sorted(by_step.items()):
        name = path.stem if path.is_file() else path.name
        parents = tuple(checkpoints)[-1:]
        checkpoints[name] = Checkpoint(log=str(path), parents=parents, steps=step)
    return Pipeline.of(checkpoints)


def _check_graph(pipeline: Pipeline) -> None:
    checkpoints = pipeline.checkpoints
    for name, checkpoint in checkpoints.items():
        if not name.strip() or len(name) > _LONGEST_NAME:
            text = f"a checkpoint's name must have 1 to {_LONGEST_NAME} characters"
            raise yaml.MisplacedError(("checkpoints", name), text)
        for number, parent in enumerate(checkpoint.parents):
            place = ("checkpoints", name, "parents", number)
            if parent not in checkpoints:
                text = f"checkpoint {name} has the unknown parent {parent!r}"
                raise yaml.MisplacedError(place, text + nearest(parent, checkpoints))
            if parent in checkpoint.parents[:number]:
                raise yaml.MisplacedError(
                    place, f"checkpoint {name} names its parent {parent} twice"
                )
    roots = [name for name, checkpoint in checkpoints.items() if not checkpoint.parents]
    ordered = set(_ordered(checkpoints))
    if cyclic := [name for name in checkpoints if name not in ordered]:
        text = f"the parents of {', '.join(cyclic[:5])} form a cycle; a checkpoint cannot come "
        raise yaml.MisplacedError(("checkpoints", cyclic[0], "parents"), text + "from itself")
    if len(roots) != 1:
        text = f"{', '.join(roots[:5])} have no parents; exactly one checkpoint must be the root"
        raise yaml.MisplacedError(("checkpoints", roots[1]), text)


def _ordered(checkpoints: dict[str, Checkpoint]) -> list[str]:
    """Parents first; what is part of a cycle, or comes from one, is left out."""
    done: dict[str, None] = {}
    waiting = list(checkpoints)
    while ready := [n for n in waiting if all(p in done for p in checkpoints[n].parents)]:
        done |= dict.fromkeys(ready)
        waiting = [name for name in waiting if name not in done]
    return list(done)


def _located(path: Path, pipeline: Pipeline) -> Pipeline:
    """Turn relative paths into paths from here, and refuse logs that are not there."""
    located = {}
    for name, checkpoint in pipeline.checkpoints.items():
        log = path.parent / checkpoint.log
        if not log.exists():
            text = f"checkpoint {name}: the log {log} is not there; paths start at {path.parent}/"
            raise yaml.MisplacedError(("checkpoints", name, "log"), text)
        located[name] = checkpoint.model_copy(update={"log": str(log)})
    task_map = pipeline.task_map
    if task_map is not None and (path.parent / task_map).is_file():
        task_map = str(path.parent / task_map)
    return pipeline.model_copy(update={"checkpoints": located, "task_map": task_map})
