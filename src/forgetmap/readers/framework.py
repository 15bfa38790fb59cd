"""What readers share: options, JSON lines with clear errors, settings, numbered repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forgetmap.base.errors import InputError
from forgetmap.base.files import lines
from forgetmap.base.json import parse_json
from forgetmap.base.values import file_name
from forgetmap.base.words import brief

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from forgetmap.samples.table import Meta, Samples


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log."""

    text: bool = False
    """Also keep prompts, targets, answers and responses; without it they are never loaded."""
    wording: bool = False
    """Also hash the items by their words alone, to pair logs of different harnesses."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """For plain tables: Samples column -> the table's own column name."""
    tick: Callable[[int], None] = lambda _bytes: None
    """Called with the number of bytes just read, for a progress bar."""


class Reader(Protocol):
    """What a reader offers."""

    __name__: str

    def sniff(self, path: Path) -> bool:
        """Say whether the file or folder is in this reader's format, by a cheap look."""

    def read(self, path: Path, how: ReadOptions) -> Samples:
        """Read it all."""


STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.\w+$")
"""The time stamp that lm-eval and lighteval put into file names."""


def note_settings(meta: Meta, model: str, task: str, settings: Mapping[str, Any]) -> None:
    """Keep what a log tells of the settings of one task; what it leaves empty is not told.

    Example:
        >>> from forgetmap.samples.table import Meta
        >>> meta = Meta(harness="h")
        >>> note_settings(meta, "m", "sums", {"limit": 100, "system prompt": None})
        >>> meta.settings
        {'m': {'limit': {'sums': 100}}}
    """
    known = meta.settings.setdefault(model, {})
    for name, value in settings.items():
        if value:
            known.setdefault(name, {})[task] = value


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
