"""What readers share: options, records with clear errors, settings, numbered repeats."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from forgetmap.base.errors import InputError
from forgetmap.base.files import lines
from forgetmap.base.json import parse_json, read_json
from forgetmap.base.values import file_name, number
from forgetmap.base.words import brief
from forgetmap.samples.table import Meta, Samples


@dataclass
class Tally:
    """What a reader went through, so that nothing is left out in silence."""

    files: set[Path] = field(default_factory=set)
    """Files that were read, whatever became of them."""
    records: int = 0
    """Answers that these files hold."""
    left_out: int = 0
    """Of these, how many gave no row; a warning says why."""

    def leave_out(self, records: int) -> None:
        """Count records that were seen and give no row."""
        self.records += records
        self.left_out += records


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log.

    Example:
        >>> import forgetmap
        >>> from forgetmap.map.example import example_logs
        >>> log = forgetmap.read(example_logs()[0], forgetmap.ReadOptions(text=True))
        >>> next(iter(log.to_batches()))["prompt"][0].as_py()
        'What is the capital of the United Arab Emirates?\\nAnswer:'
    """

    text: bool = False
    """Also keep prompts, targets, answers and responses; without it they are never loaded."""
    wording: bool = False
    """Also hash the items by their words alone, to pair logs of different harnesses."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """For plain tables: Samples column -> the table's own column name."""
    tick: Callable[[int], None] = lambda _bytes: None
    """Called with the number of bytes just read, for a progress bar."""
    tally: Tally = field(default_factory=Tally, compare=False)
    """Counts the files and records of one log."""


class Reader(Protocol):
    """What a reader offers."""

    __name__: str

    def sniff(self, path: Path) -> bool:
        """Say whether the file or folder is in this reader's format, by a cheap look."""

    def read(self, path: Path, how: ReadOptions) -> Samples:
        """Read it all."""


# --- records --------------------------------------------------------------------------------------


class malformed:
    """Turn whatever a malformed record raises into one line: the file, the place, what is wrong.

    An InputError passes as it is.

    Args:
        file: The file.
        place: The line as a number; or any text that names the place, such as ` row 3`.
        what: What the record should have been: `not a rollout`.

    Example:
        >>> with malformed(Path("run.jsonl"), 3, "not a rollout"):
        ...     {}["reward"]
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: run.jsonl:3: not a rollout (no 'reward')
    """

    # A class and not a generator: it is entered once per record, and this is quicker.
    __slots__ = ("file", "place", "what")

    def __init__(self, file: Path | str, place: int | str = "", what: str = "") -> None:
        self.file, self.place, self.what = file, place, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, InputError | MemoryError):
            return
        place = f":{self.place}" if isinstance(self.place, int) else self.place
        reason = f"{self.what} ({_reason(error)})" if self.what else _reason(error)
        raise InputError(f"{self.file}{place}: {reason}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError) and "does not exist" not in str(error):  # as pyarrow says it
        return f"no {error}"
    return "nested too deeply" if isinstance(error, RecursionError) else brief(error)


def as_object(value: Any) -> dict[str, Any]:
    """The value, which must be a JSON object."""
    if not isinstance(value, dict):
        raise TypeError("a JSON object was expected")
    return value


def json_object(file: Path, how: ReadOptions, what: str) -> dict[str, Any]:
    """Read a JSON file that holds one object; `what` says what the file is not if it does not."""
    content = read_json(file)
    how.tally.files.add(file)
    how.tick(file.stat().st_size)
    with malformed(file, what=what):
        return as_object(content)


def json_list(file: Path, how: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (index, object) of a JSON file that holds one list of objects."""
    content = read_json(file)
    how.tally.files.add(file)
    how.tick(file.stat().st_size)
    if not isinstance(content, list):
        raise InputError(f"{file}: a list of records was expected")
    for index, record in enumerate(content):
        with malformed(file, f"[{index}]"):
            yield index, as_object(record)


def json_lines(
    path: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSONL file.

    A last line that is cut off (a run that was killed) is left out with a warning; a broken line
    in the middle means that the file cannot be trusted, and is refused.
    """
    how.tally.files.add(path)
    broken: tuple[int, Exception] | None = None
    good = 0
    for place, raw in lines(path):
        how.tick(len(raw))
        line = raw.strip()
        if not line:
            continue
        if broken:
            break
        try:
            record = parse_json(line)
        except ValueError as error:
            broken = place, error
            continue
        if not isinstance(record, dict):
            raise InputError(f"{path}:{place}: a JSON object was expected, one per line")
        good += 1
        yield place, record
    else:
        if not broken and not good:
            warnings.append(f"{file_name(path)}: holds no records")
        if broken and good and _is_cut_off(broken[1]):
            how.tally.leave_out(1)
            warnings.append(
                f"{file_name(path)}: line {broken[0]}, the last, is cut off and was left out"
            )
            return
    if broken:
        raise InputError(f"{path}:{broken[0]}: not UTF-8 JSON lines ({brief(broken[1])})")


def _is_cut_off(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        return error.reason == "unexpected end of data"
    return isinstance(error, json.JSONDecodeError)


def note_count(what: str, told: Any, found: int, warnings: list[str]) -> None:
    """Warn where the harness counted other than was read; what is not a count says nothing.

    Example:
        >>> warnings = []
        >>> note_count("sums", 12, 10, warnings)
        >>> warnings
        ['sums: the harness counted 12 answers, 10 are here']
    """
    if not isinstance(told, int | float) or isinstance(told, bool) or told in (found, -1):
        return
    shown = int(told) if isinstance(told, float) and told.is_integer() else told
    warnings.append(f"{what}: the harness counted {shown!r:.30} answers, {found} are here")


def note_mean(what: str, told: Any, found: float, warnings: list[str]) -> None:
    """Warn where the harness tells another mean than its answers give.

    Example:
        >>> warnings = []
        >>> note_mean("sums: acc", 0.5, 0.5004, warnings)  # rounded
        >>> note_mean("sums: acc", 0.5, 0.4, warnings)
        >>> warnings
        ['sums: acc: the harness says 0.5 on average, its answers give 0.4']
    """
    if not isinstance(told, int | float) or isinstance(told, bool):
        return
    try:
        told = float(told)
    except OverflowError:  # a whole number beyond all floats
        told = math.inf
    if abs(told - found) <= 0.001:
        return
    warnings.append(f"{what}: the harness says {told:.4g} on average, its answers give {found:.4g}")


def asked(prompt: Any) -> Any:
    """What a prompt asks: a text as it is, turns without the system prompt.

    Example:
        >>> asked([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}])
        [['user', '2+2?']]
    """
    if not isinstance(prompt, list):
        return prompt
    turns = (turn if isinstance(turn, str) else as_object(turn) for turn in prompt)
    return [
        turn if isinstance(turn, str) else [turn.get("role"), turn.get("content")]
        for turn in turns
        if isinstance(turn, str) or turn.get("role") != "system"
    ]


def stored_options(options: Any, right: Any) -> dict[str, Any]:
    """The Samples columns of option probabilities that a log stores as they are.

    Whether they are a distribution is checked when the rows are collected.

    Example:
        >>> stored_options([0.25, "0.75"], 1)
        {'option_probabilities': [0.25, 0.75], 'right_option': 1}
    """
    if options in (None, ""):
        return {}
    if not isinstance(options, list):
        raise ValueError(f"option_probabilities {options!r:.40} is not a list of numbers")
    place = number(right, "right_option")
    if place is not None and (place != int(place) or abs(place) >= 2**31):
        raise ValueError(f"right_option {place:g} is not the number of an option, from 0 on")
    return {
        "option_probabilities": [number(value, "option_probabilities") for value in options],
        "right_option": None if place is None else int(place),
    }


# --- settings and repeats -------------------------------------------------------------------------


def note_settings(
    meta: Meta, model: str, settings: Mapping[str, Any], task: str | None = None
) -> None:
    """Keep what a log says about the settings of a model; what it leaves empty is not kept.

    With a task, the settings are those of that task alone. Without one they hold for all tasks; a
    value that is an object then gives the setting of each task by its name.

    Example:
        >>> from forgetmap.samples.table import Meta
        >>> meta = Meta(harness="h")
        >>> note_settings(meta, "m", {"limit": 100, "system prompt": None}, task="sums")
        >>> note_settings(meta, "m", {"dtype": "bfloat16"})
        >>> meta.settings
        {'m': {'limit': {'sums': 100}, 'dtype': 'bfloat16'}}
    """
    known = meta.settings.setdefault(model, {})
    for name, value in settings.items():
        if value in (None, "", [], {}):
            continue
        new = value if task is None else {task: value}
        old = known.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            old.update(new)  # in place: a log may have very many tasks
        else:
            known[name] = dict(new) if isinstance(new, dict) else new


def settings_text(values: Mapping[str, Any]) -> str:
    """Settings as one text, in the order of their names.

    Example:
        >>> settings_text({"top_p": 1, "temperature": 0})
        'temperature=0, top_p=1'
    """
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


_STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)\.\w+$")


def split_stamp(file: Path) -> tuple[str, str]:
    """A file's name and the time stamp that lm-eval and lighteval put behind it.

    Example:
        >>> split_stamp(Path("samples_arc_2025-01-31T12-30-00.5.jsonl"))
        ('samples_arc', '2025-01-31T12-30-00.5')
    """
    stamp = _STAMP.search(file.name)
    return (file.name[: stamp.start()], stamp[1]) if stamp else (file.stem, "")


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


REPEATS_PER_RUN = 1000
"""Repeats within one run are numbered below it, runs in multiples of it."""


def rows_of_runs(
    runs: Iterable[tuple[Run, Path, int]],
    rows_of: Callable[[Run, Path], Iterator[dict[str, Any]]],
    without: list[str],
) -> Iterator[dict[str, Any]]:
    """The rows of numbered runs, all repeats told apart; tasks of empty runs go to `without`."""
    for run, path, repeat in runs:
        empty = True
        for row in rows_of(run, path):
            empty = False
            row["repeat"] += repeat * REPEATS_PER_RUN
            yield row
        if empty:
            without.append(run.task)
