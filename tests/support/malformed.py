"""A corpus of malformed logs: each golden log with its bytes, values or files damaged.

Everything is drawn from a seed, so that a case is known by its log and number. To look at some::

    PYTHONPATH=src:tests/support python tests/support/malformed.py lm_eval 20 CORPUS_FOLDER
"""

from __future__ import annotations

import csv
import fnmatch
import gzip
import io
import json
import math
import os
import random
import re
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from golden import LOGS, Files, Golden, parquet_bytes, write_files

if TYPE_CHECKING:
    from collections.abc import Callable

    ByteDamage = Callable[[bytes, random.Random], bytes]
    ValueDamage = Callable[[Any, random.Random], Any]


@dataclass(frozen=True)
class Case:
    """One malformed log."""

    name: str
    """What was done to which log."""
    path: Path
    more: float
    """By how many answers it may exceed the good log: without bound where something was copied."""


def make_case(log: Golden, number: int, folder: Path, side: str = "before", seed: int = 0) -> Case:
    """Write the malformed log of that number under an empty folder; another seed, another log."""
    chance = random.Random(f"{log.name} {number}" + (f" {seed}" if seed else ""))
    files = dict(log.load(side))
    if chance.random() < 0.2:
        path = write_files(files, folder)
        damage, path = _damage_folder(folder, path, sorted(files), chance)
        done = [damage]
    else:
        several = 1 + (chance.random() < 0.2)
        kinds = [_damage_bytes, _damage_values, _damage_values, _damage_values]
        done = [chance.choice(kinds)(files, chance) for _ in range(several)]
        path = write_files(files, folder)
    told = ", and ".join(damage.told for damage in done)
    name = f"{log.name}-{number}" + (f"-seed{seed}" if seed else "")
    return Case(f"{name}: {told}", path, sum(damage.more for damage in done))


@dataclass(frozen=True)
class Damage:
    """What was done."""

    told: str
    more: float


TOUCHED = 2
"""Where several records tell of one item, a changed one (two, if swapped) tells of another."""


# --- bytes ----------------------------------------------------------------------------------------


def _damage_bytes(files: Files, chance: random.Random) -> Damage:
    name = chance.choice(sorted(files))
    kind = chance.choice(sorted(BYTE_DAMAGES))
    files[name] = BYTE_DAMAGES[kind](files[name], chance)
    return Damage(f"{name}: {kind}", math.inf if kind in COPYING_BYTES else TOUCHED)


def _place(content: bytes, chance: random.Random) -> int:
    """A place to damage: anywhere, or at the ends, where headers and footers are."""
    length = len(content)
    near = chance.randrange(min(64, length + 1))
    return chance.choice([near, max(0, length - near), chance.randrange(length + 1)])


def _at(change: Callable[[bytes, bytes, random.Random], bytes]) -> ByteDamage:
    def damage(content: bytes, chance: random.Random) -> bytes:
        place = _place(content, chance)
        return change(content[:place], content[place:], chance)

    return damage


def _cut_at(mark: bytes, after: int) -> ByteDamage:
    """Cut behind (or within) one of the places where the mark stands."""

    def damage(content: bytes, chance: random.Random) -> bytes:
        places = [i for i in range(len(content)) if content.startswith(mark, i)]
        return content[: chance.choice(places) + after] if places else content[:-1]

    return damage


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 3, 20])):
        if changed:
            changed[_place(content, chance) % len(changed)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _copy_chunk(content: bytes, chance: random.Random) -> bytes:
    start = _place(content, chance)
    end = start + chance.choice([1, 10, 1000, len(content)])
    return content[:end] + content[start:]


def _lose_chunk(head: bytes, tail: bytes, chance: random.Random) -> bytes:
    return head + tail[chance.choice([1, 4, 100, 5000]) :]


def _copy_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    number = chance.randrange(len(lines))
    return b"".join([*lines[: number + 1], lines[number], *lines[number + 1 :]])


def _shuffle_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


NOT_UTF8 = (b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf8\x88\x80\x80\x80")
BYTE_DAMAGES: dict[str, ByteDamage] = {
    "emptied": lambda content, chance: b"",
    "cut anywhere": _at(lambda head, tail, chance: head),
    "cut behind a line": _cut_at(b"\n", 1),
    "cut within a key": _cut_at(b'":', 0),
    "cut within a character": _at(lambda head, tail, chance: head + "é".encode()[:1]),
    "cut in a zip directory": _cut_at(b"PK\x01\x02", 20),
    "beginning lost": lambda content, chance: content[_place(content, chance) :],
    "bits flipped": _flip,
    "zeros inserted": _at(lambda head, tail, chance: head + bytes(chance.choice([1, 9])) + tail),
    "zeros in place": _at(lambda head, tail, chance: head + bytes(min(8, len(tail))) + tail[8:]),
    "noise inserted": _at(lambda head, tail, chance: head + chance.randbytes(6) + tail),
    "not UTF-8": _at(lambda head, tail, chance: head + chance.choice(NOT_UTF8) + tail),
    "a chunk copied": _copy_chunk,
    "a chunk lost": _at(_lose_chunk),
    "a line copied": _copy_line,
    "lines shuffled": _shuffle_lines,
    "lines in reverse": lambda content, chance: b"\n".join(reversed(content.splitlines())),
    "byte order mark": lambda content, chance: b"\xef\xbb\xbf" + content,
    "two byte order marks": lambda content, chance: b"\xef\xbb\xbf" * 2 + content,
    "CRLF": lambda content, chance: content.replace(b"\n", b"\r\n"),
    "old Mac line ends": lambda content, chance: content.replace(b"\n", b"\r"),
    "UTF-16": lambda content, chance: content.decode("latin-1").encode("utf-16"),
    "twice": lambda content, chance: content + content,
    "noise behind it": lambda content, chance: content + chance.randbytes(100),
    "noise instead": lambda content, chance: chance.randbytes(500),
    "a null object instead": lambda content, chance: b"null\n",
    "a deep list instead": lambda content, chance: b"[" * 100_000,
    "an empty object instead": lambda content, chance: b"{}\n",
    "quotes lost": lambda content, chance: content.replace(b'"', b""),
    "commas lost": _at(lambda head, tail, chance: head + tail.replace(b",", b"", 1)),
}
COPYING_BYTES = {
    *("a chunk copied", "a line copied", "twice", "noise inserted", "bits flipped"),
    "quotes lost",  # of a cell with line ends, whose lines become rows
}


# --- values ---------------------------------------------------------------------------------------

DEEP = 3000
RAW = {  # written into the JSON as it stands: what json.dumps would not write
    "@giant@": "1e999",
    "@many digits@": "9" * 5000,
    "@deep@": "[" * DEEP + "]" * DEEP,
    "@two keys@": '{"id": 1, "id": 2}',
    "@half a character@": r'"\ud800"',
    "@zero@": r'"\u0000"',
}
VALUES: dict[str, ValueDamage] = {
    "null": lambda value, chance: None,
    "true": lambda value, chance: True,
    "0": lambda value, chance: 0,
    "7": lambda value, chance: 7,
    "-1": lambda value, chance: -1,
    "2^31": lambda value, chance: 2**31,
    "2^63": lambda value, chance: 2**63,
    "10^400": lambda value, chance: 10**400,
    "1e300": lambda value, chance: 1e300,
    "-0.0": lambda value, chance: -0.0,
    "NaN": lambda value, chance: float("nan"),
    "Infinity": lambda value, chance: float("inf"),
    "1e999": lambda value, chance: "@giant@",
    "5000 digits": lambda value, chance: "@many digits@",
    "a deep list": lambda value, chance: "@deep@",
    "the same key twice": lambda value, chance: "@two keys@",
    "half a character": lambda value, chance: "@half a character@",
    "a null character": lambda value, chance: "@zero@",
    "no text": lambda value, chance: "",
    "other text": lambda value, chance: "something else",
    "text of control characters": lambda value, chance: "\x1b[31m\r\n\u2028\u202e",
    "a long text": lambda value, chance: "long " * 20_000,
    "an empty list": lambda value, chance: [],
    "an empty object": lambda value, chance: {},
    "itself as text": lambda value, chance: str(value),
    "itself in a list": lambda value, chance: [value],
    "itself in an object": lambda value, chance: {"x": value},
    "itself three times": lambda value, chance: [value] * 3,
    "another version": lambda value, chance: chance.choice([99, "99.0", "0.99.0", -1]),
}
RAW_VALUES = {
    *("1e999", "5000 digits", "a deep list"),
    *("the same key twice", "half a character", "a null character"),
}
COPYING_VALUES = {"itself three times", "an entry copied"}
"""Damages that repeat an answer."""
_NOT_ITS_FORM = (AttributeError, TypeError, ValueError, csv.Error, zipfile.BadZipFile, zlib.error)


def _damage_values(files: Files, chance: random.Random) -> Damage:
    """Change one value of a file; what its format cannot hold is drawn again."""
    for _ in range(50):
        name = chance.choice(sorted(files))
        document = _parse(name, files[name])
        if document is None:
            continue
        told = _change(document, chance)
        try:
            files[name] = document.dump()
        except (pa.ArrowException, ArithmeticError, LookupError, *_NOT_ITS_FORM):
            continue
        # In one document an id may be that of a whole run, whose answers it then doubles.
        renamed = "given the" in told and document.write is _json
        copied = renamed or any(kind in told for kind in COPYING_VALUES)
        return Damage(f"{name}: {told}", math.inf if copied else TOUCHED)
    return _damage_bytes(files, chance)


@dataclass
class _Document:
    """The values of a file, and how they are written."""

    value: Any
    write: Callable[[Any], bytes]
    columnar: bool = False
    """All rows must be of one form: a value is changed in every one of them."""

    @property
    def kinds(self) -> list[str]:
        """What a value can become; only JSON can be written by hand."""
        if self.write in (_json, _json_lines, _archive):
            return sorted(VALUES)
        return sorted(kind for kind in VALUES if kind not in RAW_VALUES)

    def dump(self) -> bytes:
        return self.write(self.value)


def _parse(name: str, content: bytes) -> _Document | None:
    """The values of a file; None where it cannot be parsed (any more)."""
    try:
        if name.endswith(".parquet"):
            found = pq.read_table(pa.BufferReader(content))
            schema = found.schema
            return _Document(found.to_pylist(), lambda rows: _parquet(rows, schema), columnar=True)
        if name.endswith(".eval"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = {part: json.loads(archive.read(part)) for part in archive.namelist()}
            return _Document(members, _archive)
        text = content.decode()
        if name.endswith(".csv"):
            return _Document(list(csv.DictReader(io.StringIO(text))), _csv)
        try:
            return _Document(_loads(text), _json)
        except ValueError:
            return _Document([_loads(line) for line in text.splitlines()], _json_lines)
    except (pa.ArrowException, EOFError, OSError, RuntimeError, *_NOT_ITS_FORM):
        return None


def _loads(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _parquet(rows: list[Any], schema: pa.Schema) -> bytes:
    """Columns keep their type where the values still fit it."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values, schema.field(name).type)
        except (pa.ArrowException, ArithmeticError, LookupError, *_NOT_ITS_FORM):
            columns[name] = pa.array(values)
    return parquet_bytes(pa.table(columns).replace_schema_metadata(schema.metadata))


def _archive(members: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            entry = zipfile.ZipInfo(str(name))  # always of 1980, where the name alone means now
            archive.writestr(entry, _json(value), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _csv(rows: list[Any]) -> bytes:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _json(value: Any) -> bytes:
    """JSON as Python writes it: quickly where another parser writes the same."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # numbers beyond 64 bits
        return _marked(json.dumps(value))
    if b"null" in text or b'"@' in text:  # NaN may be among what became null
        return _marked(json.dumps(value))
    return text


def _marked(text: str) -> bytes:
    for mark, raw in RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode()


def _json_lines(records: list[Any]) -> bytes:
    return b"".join(_json(record) + b"\n" for record in records)


def _change(document: _Document, chance: random.Random) -> str:
    """Change the values somewhere; returns what was done."""
    value, kind = document.value, chance.choice(document.kinds)
    if document.columnar and value and chance.random() < 0.8:
        path = _walk(value[0], chance) or [chance.choice(list(value[0]))]
        drop = chance.random() < 0.2
        for row in value:
            _replace(row, path, None if drop else VALUES[kind], chance)
        return f"{_shown(path)} {'dropped' if drop else 'became ' + kind} in every row"
    path = _walk(value, chance)
    inner = _get(value, path)
    if chance.random() < 0.3 and isinstance(inner, list | dict) and inner:
        return f"{_shown(path)} {_rearrange(inner, chance)}"
    if not path:
        document.value = VALUES[kind](value, chance)
        return f"all became {kind}"
    if chance.random() < 0.2:
        _replace(value, path, None, chance)
        return f"{_shown(path)} dropped"
    if "version" in str(path[-1]) and chance.random() < 0.5:
        kind = "another version"
    _replace(value, path, VALUES[kind], chance)
    return f"{_shown(path)} became {kind}"


def edit(files: Files, name: str, path: tuple[Any, ...], change: ValueDamage) -> None:
    """Change the value at a path of the one file whose name fits."""
    (file,) = fnmatch.filter(files, name)
    document = _parse(file, files[file])
    assert document is not None
    _replace(document.value, list(path), change, random.Random(0))
    assert document.dump() != files[file]
    files[file] = document.dump()


def _walk(value: Any, chance: random.Random) -> list[Any]:
    """A path into nested values, more often short than long."""
    path: list[Any] = []
    while isinstance(value, dict | list) and value and chance.random() < 0.75:
        steps = list(value) if isinstance(value, dict) else range(len(value))
        step = chance.choice(steps)
        path.append(step)
        value = value[step]
    return path


def _get(value: Any, path: list[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _replace(
    value: Any, path: list[Any], change: ValueDamage | None, chance: random.Random
) -> None:
    """Change the value at a path, or drop it; where there is no such path nothing happens."""
    try:
        outer = _get(value, path[:-1])
        if change is None:
            del outer[path[-1]]
        else:
            outer[path[-1]] = change(outer[path[-1]], chance)
    except (LookupError, TypeError):
        return


def _shown(path: list[Any]) -> str:
    return ".".join(str(step)[:60] for step in path) or "the whole"


def _rearrange(inner: Any, chance: random.Random) -> str:
    """Drop, copy, swap or rename entries of a list or object."""
    done = _rearrange_list if isinstance(inner, list) else _rearrange_object
    return f"had {done(inner, chance)}"


def _rearrange_list(entries: list[Any], chance: random.Random) -> str:
    one, other = (chance.randrange(len(entries)) for _ in range(2))
    kind = chance.choice(["an entry dropped", "an entry copied", "two entries swapped", "an id"])
    if kind == "an entry dropped":
        del entries[one]
    elif kind == "an entry copied":
        entries.insert(other, entries[one])
    elif kind == "two entries swapped":
        entries[one], entries[other] = entries[other], entries[one]
    elif isinstance(entries[one], dict) and isinstance(entries[other], dict):
        return _give_id(entries[one], entries[other], chance)
    else:
        entries.reverse()
        kind = "its entries reversed"
    return kind


def _give_id(one: dict[str, Any], other: dict[str, Any], chance: random.Random) -> str:
    """Give an entry the id of another, or one that no entry can have."""
    ids = [name for name in one if re.search("id|index", str(name).lower())]  # a row too long: None
    names = ids or list(one)
    name = chance.choice(names or ["id"])
    other[name] = chance.choice([one.get(name), one.get(name), -1])
    return f"an entry given the {name} {str(other[name])[:40]!r}"


def _rearrange_object(entries: dict[str, Any], chance: random.Random) -> str:
    one, other = (chance.choice(list(entries)) for _ in range(2))
    kind = chance.choice(["two values swapped", "a key renamed", "an entry copied"])
    if kind == "two values swapped":
        entries[one], entries[other] = entries[other], entries[one]
    else:
        entries[f"{one}_"] = entries[one] if kind == "an entry copied" else entries.pop(one)
    return kind


# --- files ----------------------------------------------------------------------------------------


def _damage_folder(
    folder: Path, path: Path, names: list[str], chance: random.Random
) -> tuple[Damage, Path]:
    name = chance.choice(names)
    kind = chance.choice(sorted(FILE_DAMAGES))
    target = folder / name
    moved = FILE_DAMAGES[kind](target)
    if path == target and moved is not None:
        path = moved
    return Damage(f"{name}: {kind}", math.inf if kind in COPYING_FILES else 0), path


def _renamed(new: Callable[[Path], bytes]) -> Callable[[Path], Path]:
    def damage(file: Path) -> Path:
        renamed = Path(os.fsdecode(os.path.join(os.fsencode(file.parent), new(file))))
        file.rename(renamed)
        return renamed

    return damage


def _linked(file: Path) -> None:
    aside = file.parent / f".{file.name}.aside"
    file.rename(aside)
    file.symlink_to(aside)


def _in_place(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        file.unlink()
        make(file)

    return damage


def _beside(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        make(file.parent)

    return damage


def _copied(file: Path) -> None:
    file.with_name(f"copy_{file.name}").write_bytes(file.read_bytes())


def _packed(file: Path) -> Path:
    packed = file.with_name(f"{file.name}.gz")
    packed.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()
    return packed


FILE_DAMAGES: dict[str, Callable[[Path], Path | None]] = {
    "missing": lambda file: file.unlink(),
    "a folder in its place": _in_place(lambda file: file.mkdir()),
    "a pipe in its place": _in_place(os.mkfifo),
    "a link to it": _linked,
    "a link to nothing": _in_place(lambda file: file.symlink_to("nowhere")),
    "a link to itself": _in_place(lambda file: file.symlink_to(file.name)),
    "a link to its folder": _in_place(lambda file: file.symlink_to(".")),
    "a link to the folder beside it": _beside(lambda folder: (folder / "again").symlink_to(".")),
    "no UTF-8 in its name": _renamed(lambda file: b"\xff\xfe" + os.fsencode(file.name)),
    "no UTF-8 before the suffix": _renamed(
        lambda file: os.fsencode(file.stem) + b"\xff" + os.fsencode(file.suffix)
    ),
    "control characters in its name": _renamed(
        lambda file: b"\x1b[31m\n" + os.fsencode(file.name)
    ),
    "a very long name": _renamed(lambda file: b"x" * (250 - len(file.name)) + file.name.encode()),
    "another suffix": _renamed(lambda file: os.fsencode(file.stem) + b".txt"),
    "an upper-case name": _renamed(lambda file: os.fsencode(file.name.upper())),
    "packed": _packed,
    "a copy of it": _copied,
    "a hidden file beside it": _beside(lambda folder: (folder / ".DS_Store").write_bytes(b"\0")),
    "another harness beside it": _beside(
        lambda folder: (folder / "run.jsonl").write_bytes(b'{"question": "q", "correct": 1}\n')
    ),
    "an empty file beside it": _beside(lambda folder: (folder / "empty.jsonl").touch()),
    "an empty folder beside it": _beside(lambda folder: (folder / "results").mkdir(exist_ok=True)),
}  # fmt: skip
COPYING_FILES = {"a copy of it", "another harness beside it"}
"""Damages that bring answers."""


def main() -> None:
    """Write cases of one log into a folder and list them."""
    name, count, folder = sys.argv[1:]
    for number in range(int(count)):
        print(make_case(LOGS[name], number, Path(folder) / f"{name}-{number}").name)


if __name__ == "__main__":
    main()
