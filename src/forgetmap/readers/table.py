"""Any CSV, JSONL or Parquet table with one row per answer, read by its column names.

The columns are guessed from their names. A warning says what was guessed, and flags override it
(`--column score=is_right`).
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from forgetmap.base.errors import InputError
from forgetmap.base.files import lines
from forgetmap.base.json import parse_json
from forgetmap.base.limits import LINE_MIB, MIB
from forgetmap.base.parquet import parquet_parts, parquet_schema
from forgetmap.base.values import file_name, number, optional_text
from forgetmap.base.words import brief
from forgetmap.readers.framework import ReadOptions, json_lines, malformed, stored_options
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.table import Meta, Samples

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")

NAMES: dict[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "input", "doc"),
    "choices": ("choices", "options"),
    "id": ("id", "item", "doc_id", "item_ref"),
    "task": ("task",),
    "score": ("correct", "score", "acc", "is_correct", "exact_match"),
    "target": ("target", "gold"),
    "answer": ("answer", "extracted"),
    "response": ("response", "output", "prediction"),
    "repeat": ("repeat", "seed", "epoch"),
    "k": ("k",),
    "model": ("model",),
    "cluster": ("cluster",),
    "metric": ("metric",),
    "gold_probability": ("gold_probability",),
    "option_probabilities": ("option_probabilities",),
    "right_option": ("right_option",),
}
"""What forgetmap needs -> the column names that are taken for it, in order of preference."""

_KNOWN = {name for names in NAMES.values() for name in names}
_INT32_MAX = 2**31 - 1
_NAMED_REPEATS = 2**30
"""Seeds that are whole numbers below it number their repeat; all others are numbered from it on."""


def sniff(path: Path) -> bool:
    """Go by the suffix; what is inside is checked when it is read."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and file.suffix.lower() in SUFFIXES]


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse a need that forgetmap does not have."""
    if unknown := sorted(set(columns) - set(NAMES)):
        raise InputError(f"--column {unknown[0]}=...: unknown; known are {', '.join(NAMES)}")


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one table, or all tables of a folder."""
    check_columns(how.columns)
    meta = Meta(harness="table")
    rows = (row for file in _files(path) for row in _rows(file, how, meta.warnings))
    return Samples.from_rows(rows, meta)


def _rows(file: Path, how: ReadOptions, warnings: list[str]) -> Iterator[dict[str, Any]]:
    names: dict[str, None] = {}  # in order; JSON lines may bring columns that others lack
    columns: dict[str, str] = {}
    asked = set(how.columns.values())
    repeats = Repeats()
    for row, record in table_records(file, how, warnings):
        if not record.keys() <= names.keys():
            new = [name for name in record if name not in names]
            names |= dict.fromkeys(new)
            if not columns or any(name.lower() in _KNOWN or name in asked for name in new):
                columns = match_columns(names, how.columns, file)
        value = {name: record.get(column) for name, column in columns.items()}
        how.tally.records += 1
        with malformed(file, f" row {row}"):
            yield _sample(value, file, row, repeats, how)
    if columns:
        guess = ", ".join(f"{name} from {column!r:.60}" for name, column in columns.items())
        warnings.append(f"{file_name(file)}: read {guess}")
        if not {"question", "id"} & columns.keys():
            warnings.append(f"{file_name(file)}: no column names the item; rows pair by number")


def match_columns(
    present: Iterable[str], given: Mapping[str, str], where: object = "table"
) -> dict[str, str]:
    """Match what forgetmap needs to a table's columns.

    Example:
        >>> match_columns(["prompt", "gold", "is_correct"], {})
        {'question': 'prompt', 'score': 'is_correct', 'target': 'gold'}
    """
    names = list(present)
    by_lower = {name.lower(): name for name in reversed(names)}
    columns = {}
    for need, candidates in NAMES.items():
        if need in given:
            if given[need] not in names:
                raise InputError(
                    f"{where}: no column {given[need]!r}; its columns are {_listed(names)}"
                )
            columns[need] = given[need]
            continue
        name = next((by_lower[name] for name in candidates if name in by_lower), None)
        if name is not None and name not in given.values():
            columns[need] = name
    if "score" not in columns:
        raise InputError(
            f"{where}: no column says what was right (columns: {_listed(names)}); "
            "name it with --column score=NAME"
        )
    return columns


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(f"{name:.30}" for name in names[:most]) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _sample(
    value: dict[str, Any], file: Path, row: int, repeats: Repeats, how: ReadOptions
) -> dict[str, Any]:
    question, target = (_content(value.get(name)) for name in ("question", "target"))
    choices = _choices(value.get("choices"))
    k = number(value.get("k"), "k")
    if k is None and isinstance(choices, list):
        k = len(choices)
    if k is not None and not 0 <= k <= _INT32_MAX:
        raise ValueError(f"k {k:g} is not a number of options")
    probability = number(value.get("gold_probability"), "gold_probability")
    if probability is not None and not 0 <= probability <= 1:
        raise ValueError(f"gold_probability {probability:g} is not between 0 and 1")
    has_content = question != ""
    by_row = None if has_content else str(row)
    sample: dict[str, Any] = {
        "model": str(value.get("model") or file_name(file).removesuffix(file.suffix)),
        "run": file_name(file),
        "task": str(value.get("task") or "all"),
        "item": content_hash(question, choices, target) if has_content else None,
        "item_ref": str(value["id"]) if value.get("id") not in (None, "") else by_row,
        "repeat": repeats.number(value.get("repeat")),
        "metric": str(value.get("metric") or "score"),
        "score": number(value.get("score"), "score"),
        "k": int(k) if k is not None and k > 1 else None,
        "gold_probability": probability,
        **stored_options(_choices(value.get("option_probabilities")), value.get("right_option")),
        "cluster": None if value.get("cluster") in (None, "") else str(value["cluster"]),
        "source": f"{file_name(file)}:{row}",
    }
    if how.wording and has_content:
        options = [str(option) for option in choices] if isinstance(choices, list) else []
        sample["wording"] = wording_hash(str(question), options, str(target))
    if how.text:
        sample["prompt"] = optional_text(question)
        sample |= {
            name: optional_text(value.get(name)) for name in ("target", "answer", "response")
        }
    return sample


def _content(value: Any) -> Any:
    """A number or nothing is the same content in JSON, which has types, and in CSV without."""
    if value is None:
        return ""
    return str(value) if isinstance(value, bool | int | float) else value


def _choices(value: Any) -> Any:
    """A list of options; in a CSV it comes as JSON text, and any other text stays text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return parse_json(value.encode())
        except ValueError:
            return value
    return _content(value)


class Repeats:
    """Numbers for the seeds of one table: no two seeds get the same one.

    A small whole number stays as it is; anything else is numbered in the order of the rows.

    Example:
        >>> repeats = Repeats()
        >>> [repeats.number(seed) for seed in (0, "7", 7.0, None)]
        [0, 7, 7, 1073741824]
        >>> [repeats.number(seed) - 2**30 for seed in (0.1, "run-a", 3_000_000_000, "0.10")]
        [1, 2, 3, 1]
    """

    def __init__(self) -> None:
        self._named: dict[int | str, int] = {}
        self._zero: int | str | None = None
        """Which seed is numbered 0: the number itself, or that there is none."""

    def number(self, value: Any) -> int:
        """The number of a seed."""
        if value is None and self._zero == "":  # as in most tables
            return 0
        seed = _seed(value)
        if seed in (0, ""):
            self._zero = seed if self._zero is None else self._zero
            if seed == self._zero:
                return 0
        elif isinstance(seed, int) and 0 < seed < _NAMED_REPEATS:
            return seed
        return _NAMED_REPEATS + self._named.setdefault(seed, len(self._named))


def _seed(value: Any) -> int | str:
    """A seed as one value, whether the table has types or not: 7, "7" and 7.0 are the same."""
    if value is None or isinstance(value, bool | int):
        return "" if value is None else str(value) if isinstance(value, bool) else value
    try:
        found = float(value)
        if not found.is_integer():
            return str(found)
        return int(found) if abs(found) < 2**53 else int(value)  # which keeps all its digits
    except (ValueError, TypeError, OverflowError):
        return str(value)


def table_records(
    file: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, values) of one table."""
    suffix = file.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        yield from json_lines(file, how, warnings)
        return
    row = 0
    for row, record in parquet_records(file, how) if suffix == ".parquet" else _csv(file, how):
        yield row, record
    if not row:
        warnings.append(f"{file_name(file)}: holds no records")


def parquet_records(file: Path, how: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, values) of a Parquet table."""
    row = 0
    how.tally.files.add(file)
    try:
        _check_names(file, parquet_schema(file).names)
        for batch in parquet_parts(file):
            how.tick(batch.nbytes)
            for record in batch.to_pylist():
                row += 1
                yield row, record
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is damaged ({brief(error)})") from error


def _csv(file: Path, how: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream a CSV; quoted cells may hold line ends, every row must be as long as the header."""
    how.tally.files.add(file)
    csv.field_size_limit(LINE_MIB.value * MIB)
    text = _decoded_lines(file, how)
    header_line = next(text, "")
    delimiter = max(",;\t|", key=header_line.count)
    reader = csv.reader(itertools.chain([header_line], text), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        _check_names(file, header)
        for row, cells in enumerate(filter(None, reader), start=1):
            if len(cells) != len(header):
                raise InputError(
                    f"{file}: line {reader.line_num} has {len(cells)} cells, the header "
                    f"{len(header)}; quote cells that hold a {delimiter!r}"
                )
            yield row, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num}: not a CSV row ({error})") from error


def _check_names(file: Path, names: Iterable[str]) -> None:
    """Refuse a table in which a name stands twice: which column is meant cannot be told."""
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        raise InputError(f"{file}: two columns are named {twice[0]!r:.60}; rename one of them")


def _decoded_lines(file: Path, how: ReadOptions) -> Iterator[str]:
    for count, line in lines(file):
        how.tick(len(line))
        if count == 1 and b"\x00" in line:
            raise InputError(f"{file}: holds zero bytes; it is not UTF-8 text (save it as UTF-8)")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{file}: line {count} is not UTF-8 ({error.reason}); save it as UTF-8"
            ) from error
