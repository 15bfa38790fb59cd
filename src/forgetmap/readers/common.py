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
from forgetmap.files import lines, read_small
from forgetmap.samples import storable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from forgetmap.readers import ReadOptions
    from forgetmap.samples import Meta

STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.\w+$")
"""The time stamp that lm-eval and lighteval put into file names."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "right", "c"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "wrong", "i"), 0.0),
}
_NOTHING = {"", "nan", "null", "none", "na", "n/a", "<na>"}


MAX_JSON_BYTES = 512 * 2**20
"""A results file beyond it is not one."""


def parse_json(text: bytes) -> Any:
    """Parse JSON fast; accept what Python harnesses write beyond it: NaN, halves of characters."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        found = json.loads(text)
    if b"\\ud" in text.lower():  # a lone surrogate can be neither stored nor printed
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found


def read_json(path: Path) -> Any:
    """Read one JSON file."""
    content = read_small(path, MAX_JSON_BYTES, "a results file")
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON ({brief(error)})") from error


def first_record(path: Path) -> dict[str, Any]:
    """The object on the first line of a JSONL file; empty where there is none.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "run.jsonl"
        >>> _ = log.write_text('{"id": 1}\\n{"id": 2}')
        >>> first_record(log)
        {'id': 1}
    """
    try:
        record = parse_json(next(iter(lines(path)), (0, b"{}"))[1])
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def json_lines(
    path: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSONL file.

    A last line that is cut off (a run that was killed) is left out with a warning; a broken line
    in the middle means that the file cannot be trusted, and is refused.
    """
    broken: tuple[int, Exception] | None = None
    good = 0
    for number, raw in lines(path):
        how.tick(len(raw))
        line = raw.strip()
        if not line:
            continue
        if broken:
            break
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            broken = number, error
            continue
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: a JSON object was expected, one per line")
        good += 1
        yield number, record
    else:
        if broken and good and _is_cut_off(broken[1]):
            warnings.append(
                f"{file_name(path)}: line {broken[0]}, the last, is cut off and was left out"
            )
            return
    if broken:
        raise InputError(f"{path}:{broken[0]}: not UTF-8 JSON lines ({brief(broken[1])})")


def _is_cut_off(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        return error.reason == "unexpected end of data"
    return not isinstance(error, RecursionError)


def note_settings(meta: Meta, model: str, task: str, settings: Mapping[str, Any]) -> None:
    """Keep what a log tells of the settings of one task; what it leaves empty is not told.

    Example:
        >>> from forgetmap.samples import Meta
        >>> meta = Meta(harness="h")
        >>> note_settings(meta, "m", "sums", {"limit": 100, "system prompt": None})
        >>> meta.settings
        {'m': {'limit': {'sums': 100}}}
    """
    known = meta.settings.setdefault(model, {})
    for name, value in settings.items():
        if value:
            known.setdefault(name, {})[task] = value


def brief(error: BaseException) -> str:
    """The gist of an error, for one line."""
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    return text[:120]


def _cannot_read(error: OSError) -> None:
    """A folder that cannot be looked into might hold logs: say so instead of leaving them out."""
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error


def file_name(path: Path) -> str:
    """The name of a file as text that can be stored, whatever bytes it is made of."""
    return storable(path.name)


def some(names: Iterable[object], most: int = 6) -> str:
    """A list for one line: not endless, whatever it holds.

    Example:
        >>> some(["b", "a", "c"], most=2)
        'a, b and 1 more'
    """
    listed = sorted(str(name) for name in names)
    shown = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def find_files(path: Path, pattern: str) -> list[Path]:
    """The files under a folder whose name fits the pattern; links to folders are followed, once."""
    found: list[Path] = []
    seen: set[str] = set()
    for folder, folders, files in os.walk(path, followlinks=True, onerror=_cannot_read):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        found.extend(Path(folder, name) for name in files if fnmatch.fnmatchcase(name, pattern))
    return sorted(file for file in found if file.is_file())


def number(value: object) -> float | None:
    """Read a score: a number, a truth value, or either as text; None where there is none.

    Example:
        >>> [number(value) for value in (True, "0.5", "False", "nan", None)]
        [1.0, 0.5, 0.0, None, None]
    """
    if value is None:
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _NOTHING:
            return None
        value = _WORDS.get(word, word)
    try:
        found = float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        found = math.inf
    if math.isinf(found):
        raise ValueError(f"{value!r:.40} is not a number")
    return None if math.isnan(found) else found


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
