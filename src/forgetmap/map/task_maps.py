"""Task maps: which category a task belongs to, and how many options it shows.

A map is a CSV (`task,category` and optionally `k`), a YAML file, or a built-in one: `post-forget`
(the categories of Harmon et al. with the option counts that the prompts really show) and
`post-forget-published` (as their code has them, ARC lost to "Missing").
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.files import open_binary
from forgetmap.base.values import number
from forgetmap.base.words import brief

_LONGEST_NAME = 1000
UNMAPPED = "unmapped"
IGNORED = "ignored"
BUILT_IN = ("post-forget", "post-forget-published")

_DECORATION = frozenset(
    (
        *("community", "lighteval", "leaderboard", "custom", "helm", "original", "extended"),
        *("harness", "reasoning", "letter", "prompt", "few", "shot", "fewshot", "zero"),
        *("zeroshot", "cot", "main", "generative"),
    )
)
"""Words that harnesses add to a benchmark's name without changing what is asked."""


class Applied(NamedTuple):
    """What a task map says about the tasks of some logs."""

    ignored: list[str]
    options: dict[str, float]
    warnings: list[str]


@dataclass(frozen=True)
class TaskMap:
    """Category and number of options by task.

    Example:
        >>> categories = TaskMap.load("post-forget")
        >>> categories.category("community|bbh_reasoning_letter:navigate|0")
        'Logic'
        >>> categories.category("mmlu_anatomy"), categories.options("piqa")
        ('Science/Tech', 2.0)
        >>> categories.category("my_own_task")
        'unmapped'
    """

    name: str
    rows: dict[str, tuple[str, float | None]]
    """Canonical task name -> (category, options or None)."""
    fallback: str = UNMAPPED

    @classmethod
    def load(cls, source: str | Path) -> TaskMap:
        """Load a built-in map by name, or a CSV or YAML file."""
        if str(source) in BUILT_IN:
            return cls._built_in(str(source))
        path = Path(source)
        if not path.is_file():
            raise InputError(
                f"--task-map {source}: no such file, and not built in ({', '.join(BUILT_IN)})"
            )
        try:
            if path.suffix == ".csv":
                with open_binary(path) as file:
                    rows = _csv_rows(file.read().decode("utf-8-sig"))
            else:
                rows = _yaml_rows(yaml.read(path, "a task map").content)
            return cls(path.name, _checked(rows))
        except InputError:
            raise
        except (
            *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError),
            csv.Error,
        ) as error:
            raise InputError(
                f"{path}: not a task map ({brief(error)}); "
                "it needs the columns task, category and optionally k"
            ) from error

    @classmethod
    def _built_in(cls, name: str) -> TaskMap:
        text = files("forgetmap.map").joinpath("data/post_forget.csv").read_text(encoding="utf-8")
        prefix = "published_" if name.endswith("published") else ""
        rows = (
            (row["task"], row[f"{prefix}category"], number(row[f"{prefix}k"]))
            for row in csv.DictReader(_without_comments(text))
        )
        return cls(name, _checked(rows), "Missing" if prefix else UNMAPPED)

    def category(self, task: str) -> str:
        """The task's category; `unmapped` where the map does not know it."""
        return self.rows.get(canonical(task), (self.fallback, None))[0]

    def options(self, task: str) -> float | None:
        """How many options the task shows, None for an open answer or an unknown task."""
        return self.rows.get(canonical(task), (self.fallback, None))[1]

    def apply(self, tasks: Sequence[str]) -> Applied:
        """What the map says about the tasks of some logs; one that ignores them all is refused."""
        unmapped = [task for task in tasks if self.category(task) == UNMAPPED]
        ignored = [task for task in tasks if self.category(task) == IGNORED]
        if len(ignored) == len(tasks):
            raise InputError(f"the task map {self.name} says to ignore every task of the logs")
        warnings = []
        if unmapped:
            warnings.append(f"not in the task map {self.name}: {', '.join(unmapped)}")
        if ignored:
            warnings.append(f"left out, as the task map says: {', '.join(ignored)}")
        options = {task: k for task in tasks if (k := self.options(task))}
        return Applied(ignored, options, warnings)


def canonical(task: str) -> str:
    """Reduce the ways in which harnesses spell a task to one.

    Example:
        >>> canonical("community|arc_reasoning_custom_prompt_letter:easy|0"), canonical("arc_easy")
        ('arc_easy', 'arc_easy')
    """
    parts = task.lower().split("|")
    name = parts[1] if len(parts) == 3 else parts[0]
    words = re.split(r"[^a-z0-9]+", name.replace("judgement", "judgment"))
    return "_".join(word for word in words if word and word not in _DECORATION) or name


def _checked(rows: Iterable[tuple[str, str, float | None]]) -> dict[str, tuple[str, float | None]]:
    rows_read: dict[str, tuple[str, float | None]] = {}
    for task, category, k in rows:
        if not task or not category:
            raise ValueError("a row lacks its task or category")
        if len(task) > _LONGEST_NAME or len(category) > _LONGEST_NAME:
            raise ValueError(f"a name is longer than {_LONGEST_NAME} characters")
        if k is not None and not 2 <= k < math.inf:
            raise ValueError(f"task {task}: k must be at least 2, or empty for an open answer")
        key = canonical(task)
        if rows_read.get(key, (category, k)) != (category, k):
            raise ValueError(f"task {task} occurs twice with different values")
        rows_read[key] = category, k
    if not rows_read:
        raise ValueError("it is empty")
    return rows_read


def _without_comments(text: str) -> io.StringIO:
    kept = (line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return io.StringIO("".join(kept))


def _csv_rows(text: str) -> Iterator[tuple[str, str, float | None]]:
    for row in csv.DictReader(_without_comments(text)):
        yield row["task"].strip(), row["category"].strip(), number(row.get("k"))


def _yaml_rows(content: Any) -> Iterator[tuple[str, str, float | None]]:
    """Either {category: [tasks]} or {task: {category: ..., k: ...}}."""
    for key, value in content.items():
        if isinstance(value, list):
            yield from ((str(task), str(key), None) for task in value)
        else:
            yield str(key), str(value["category"]), number(value.get("k"))
