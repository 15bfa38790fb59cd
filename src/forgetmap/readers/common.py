"""What several readers need: JSON lines with clear errors, numbers from untidy values, repeats."""

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from forgetmap.errors import InputError
from forgetmap.files import lines, open_binary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from forgetmap.readers import ReadOptions

STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.\w+$")
"""The time stamp that lm-eval and lighteval put into file names."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "right", "c"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "wrong", "i"), 0.0),
}
_NOTHING = {"", "nan", "null", "none", "na", "n/a", "<na>"}


def parse_json(text: bytes) -> Any:
    """Parse JSON fast; accept the bare NaN and Infinity that Python harnesses write."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def read_json(path: Path) -> Any:
    """Read one JSON file."""
    with open_binary(path) as file:
        content = file.read()
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON ({_short(error)})") from error


def json_lines(
    path: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSONL file.

    A last line that is cut off (a run that was killed) is left out with a warning; a broken line
    in the middle means that the file cannot be trusted, and is refused.
    """
    broken: tuple[int, Exception] | None = None
    for number, line in lines(path):
        if broken:
            raise InputError(f"{path}:{broken[0]}: not valid JSON ({_short(broken[1])})")
        how.tick(len(line))
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            broken = number, error
            continue
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: a JSON object was expected, one per line")
        yield number, record
    if broken:
        if isinstance(broken[1], UnicodeDecodeError) or broken[0] == 1:
            raise InputError(f"{path}:{broken[0]}: not UTF-8 JSON lines ({_short(broken[1])})")
        warnings.append(f"{path.name}: line {broken[0]}, the last, is cut off and was left out")


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120]


def find_files(path: Path, pattern: str) -> list[Path]:
    """The files under a folder whose name fits the pattern; links to folders are followed, once."""
    found: list[Path] = []
    seen: set[str] = set()
    for folder, folders, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        found.extend(Path(folder, name) for name in files if fnmatch.fnmatch(name, pattern))
    return sorted(found)


def number(value: object) -> float | None:
    """Read a score: a number, a truth value, or either as text; None where there is none.

    Example:
        >>> [number(value) for value in (True, "0.5", "False", "nan", None)]
        [1.0, 0.5, 0.0, None, None]
    """
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _NOTHING:
            return None
        if word in _WORDS:
            return _WORDS[word]
        found = float(word)  # a ValueError is the caller's to explain
        return None if math.isnan(found) else found
    raise ValueError(f"{type(value).__name__} is not a score")


class Run(NamedTuple):
    """One run of one task: runs that differ in their seed alone are repeats."""

    model: str
    task: str
    seed: Hashable
    stamp: str


def number_repeats(
    runs: Iterable[tuple[Run, Path]], warnings: list[str]
) -> list[tuple[Run, Path, int]]:
    """Number the repeats of each task: one per seed, the newest run where a seed was run twice."""
    newest: dict[tuple[Hashable, ...], tuple[Run, Path]] = {}
    aside = 0
    for run, path in sorted(runs, key=lambda pair: (pair[0].stamp, str(pair[1]))):
        aside += run[:3] in newest
        newest[run[:3]] = run, path
    if aside:
        warnings.append(
            f"{aside} older runs of the same task and seed were set aside; the newest count"
        )
    seeds: dict[tuple[str, str], list[Hashable]] = {}
    for run, _ in sorted(newest.values(), key=lambda pair: repr(pair[0].seed)):
        seeds.setdefault((run.model, run.task), []).append(run.seed)
    return [
        (run, path, seeds[run.model, run.task].index(run.seed)) for run, path in newest.values()
    ]
