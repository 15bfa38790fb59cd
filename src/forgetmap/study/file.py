"""The study file: which pairs of checkpoints there are, their logs, and what is known of them.

A YAML file, or a CSV with one row per pair. One entry may stand for many pairs: `for` lists values
that are filled in for `{name}`, and a `{name}` that no value is known for, or a `*`, is looked for
on disk. Every fault is one line with the file and the line in it.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.files import read_small
from forgetmap.base.model import Frozen, Strict
from forgetmap.base.words import clean, nearest
from forgetmap.study.about import read_about

Attribute = float | str
SCALES = ("size", "examples", "steps", "tokens", "weight_drift")
"""Attributes whose logarithm a slope is fitted on; 7B and 10k are numbers there."""
SEED = "seed"
"""The attribute in which replicates differ."""
MOST_PAIRS = 10_000
_MOST_BYTES = 4 * 2**20
_LONGEST = 200
_DRIFTS = ("drift", "drift_before", "drift_after")
_EVALS = ("eval_before", "eval_after", "suite")
_TEXTS = ("before", "after", "name", "before_model", "after_model", *_DRIFTS, *_EVALS)
RESERVED = (*_TEXTS, "new", "for", "about", "take")
_ADDRESS = "://"
_PLACE = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SHORT_NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?([kKmMbBtT])")
_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


class StudyPair(Frozen):
    """Two checkpoints to compare, and what is known of the training between them."""

    name: str
    before: str
    """The log of the checkpoint before; a path from here."""
    after: str
    before_model: str | None = None
    after_model: str | None = None
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    new: tuple[str, ...] = ()
    """Tasks that the training was meant to teach."""
    drift: str | None = None
    """A saved drift by capability."""
    drift_before: str | None = None
    """Scores of the model before, to compute the drift from."""
    drift_after: str | None = None
    eval_before: str | None = None
    """The model to evaluate where the log before is missing."""
    eval_after: str | None = None
    suite: str | None = None
    """What to ask there."""
    about: tuple[str, ...] = ()
    """The JSON files that its attributes were taken from."""


class Study(NamedTuple):
    """A study file that was read."""

    path: Path
    pairs: list[StudyPair]
    task_map: str | None
    deterministic: bool
    notes: list[str]
    """What the file names and the disk lacks."""
    curve: str | None = None
    """The attribute that tells the curves of the trade-off apart."""
    manifest: str = "captrack"
    """Which capabilities by which metrics."""
    ignore: tuple[str, ...] = ()
    """Tasks that do not count, as names or patterns, unless a pair has them as new."""
    against: tuple[str, Attribute] | None = None
    """The attribute and its value that all other kinds of training are held against."""

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Load a study file; paths in it start at its folder."""
        path = Path(path)
        if path.is_dir():
            raise InputError(
                f"{path}: is a folder; write a study file with forgetmap study init {path}"
            )
        settings, entries = _from_csv(path) if path.suffix.lower() == ".csv" else _from_yaml(path)
        notes: list[str] = []
        drafts: list[_Draft] = []
        for entry in entries:
            drafts += _expanded(entry, path.parent, notes)
            if len(drafts) > MOST_PAIRS:
                raise entry.fault("for", f"the study has more than {MOST_PAIRS:,} pairs")
        if not drafts:
            told = f": {notes[0]}" if notes else ""
            raise InputError(f"{path}: names no pair that is there{told}")
        notes += _never_taken(drafts)
        pairs = _named(drafts, settings.new)
        _check_attribute(path, "curve", settings.curve, pairs)
        return cls(
            path=path,
            pairs=pairs,
            task_map=_beside(path, settings.task_map),
            deterministic=settings.deterministic,
            notes=notes,
            curve=settings.curve,
            manifest=_beside(path, settings.manifest) or "captrack",
            ignore=settings.ignore,
            against=_reference(path, settings.against, pairs),
        )


def _beside(path: Path, name: str | None) -> str | None:
    """A file next to the study file, or else the name of something built in."""
    return str(path.parent / name) if name and (path.parent / name).is_file() else name


def _check_attribute(path: Path, key: str, wanted: str | None, pairs: list[StudyPair]) -> None:
    names = {name for pair in pairs for name in pair.attributes}
    if wanted is not None and wanted not in names:
        told = nearest(wanted, sorted(names))
        raise InputError(f"{path}: {key}: no pair has the attribute {clean(wanted, 60)!r}{told}")


def _reference(
    path: Path, given: dict[str, Any] | None, pairs: list[StudyPair]
) -> tuple[str, Attribute] | None:
    """What other kinds of training are held against: one attribute and its value."""
    if given is None:
        return None
    if len(given) != 1 or SEED in given:
        raise InputError(f"{path}: against: name one attribute and its value, as {{method: sft}}")
    ((name, value),) = given.items()
    _check_attribute(path, "against", name, pairs)
    known = {pair.attributes[name] for pair in pairs if name in pair.attributes}
    wanted = parse_attribute(name, value)
    if wanted not in known:
        told = nearest(str(wanted), sorted(map(str, known)))
        raise InputError(
            f"{path}: against: no pair has the {clean(name, 60)} {clean(str(value), 60)!r}{told}"
        )
    return name, wanted


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class _File(Strict):
    """The top of a study file."""

    pairs: list[dict[str, Any]] = Field(min_length=1)
    defaults: dict[str, Any] = Field(default_factory=dict)
    task_map: str | None = None
    new: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    deterministic: bool = False
    curve: str | None = None
    manifest: str | None = None
    against: dict[str, Any] | None = None
    ignore: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()


class _Entry(NamedTuple):
    """One entry of the file, which may stand for many pairs."""

    file: str
    values: dict[str, Any]
    line: Callable[[str], int]
    """The line of a key."""

    def fault(self, key: str, text: str) -> InputError:
        return InputError(f"{self.file}:{self.line(key)}: {text}")


class _Draft(NamedTuple):
    """A pair before it has its name."""

    entry: _Entry
    pair: StudyPair
    label: str
    """What was filled in, or else the name of the log after; empty where the file gives a name."""
    after: str
    """The log after, as the file has it."""


def _from_yaml(path: Path) -> tuple[_File, Iterator[_Entry]]:
    document = yaml.read(path, "a study file")
    with document.faults(_File):
        settings = _File.model_validate(document.content)

    def line_of(number: int) -> Callable[[str], int]:
        def line(key: str) -> int:
            listed = key not in settings.pairs[number] and key in settings.defaults
            return document.line(["defaults", key] if listed else ["pairs", number, key])

        return line

    def entries() -> Iterator[_Entry]:
        for number, values in enumerate(settings.pairs):
            yield _Entry(str(path), {**settings.defaults, **values}, line_of(number))

    return settings, entries()


def _from_csv(path: Path) -> tuple[_File, Iterator[_Entry]]:
    try:
        text = read_small(path, _MOST_BYTES, "a study file").decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason})") from error
    except csv.Error as error:
        raise InputError(f"{path}: is not CSV ({error})") from error
    if len(rows) < 2:
        raise InputError(f"{path}: needs a row with names and a row for each pair")
    names = [name.strip() for name in rows[0][1]]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{path}:1: the column {twice[0]!r:.60} occurs twice; name it once")
    if "for" in names:
        raise InputError(f"{path}:1: a table has no 'for'; write a row per pair, or use YAML")

    def entries() -> Iterator[_Entry]:
        for line, row in rows[1:]:
            if len(row) != len(names):
                raise InputError(
                    f"{path}:{line}: has {len(row)} cells, the first row has {len(names)}"
                )
            cells = zip(names, (cell.strip() for cell in row), strict=True)
            values: dict[str, Any] = {name: cell for name, cell in cells if cell}
            values |= {key: values[key].split() for key in ("new", "take") if key in values}
            yield _Entry(str(path), values, lambda _key, at=line: at)  # type: ignore[misc]

    return _File(pairs=[{}]), entries()


# --- one entry, many pairs -----------------------------------------------------------------------


def _expanded(entry: _Entry, folder: Path, notes: list[str]) -> Iterator[_Draft]:
    """The pairs that an entry stands for."""
    _check_keys(entry)
    choices = _choices(entry)
    given = dict(_attributes(entry))
    if both := given.keys() & choices.keys():
        name = min(both)
        raise entry.fault("for", f"{name!r:.60} is an attribute and in 'for'; name it once")
    for chosen in product(*choices.values()):
        filled = dict(zip(choices, chosen, strict=True))
        known = {**given, **filled}
        after = _fill(entry, "after", {name: _shown(value) for name, value in known.items()})
        if "**" in after:
            raise entry.fault("after", "after: ** is not known; use one * for each folder")
        found = list(_on_disk(folder, after))
        if not found:
            notes.append(f"{entry.file}:{entry.line('after')}: nothing fits {clean(after)}")
        for place, names, stars in found:
            every, told = {**known, **names}, {**filled, **names}
            yield _draft(entry, folder, place, every, told, stars, notes)


def _draft(
    entry: _Entry,
    folder: Path,
    after: str,
    known: Mapping[str, Any],
    labels: Mapping[str, Any],
    stars: list[str],
    notes: list[str],
) -> _Draft:
    texts = {name: _shown(value) for name, value in known.items()}
    paths = {"before": _starred(entry, _fill(entry, "before", texts), stars), "after": after}
    for key, path in paths.items():
        if left := _PLACE.search(path):
            raise entry.fault(key, f"{key}: nothing says what {left[0][:60]} is; add it to 'for'")
    about = _about(entry, folder, texts, notes)
    known = {**known, **_from_about(entry, about, texts)}
    named = _fill(entry, "name", texts) if "name" in entry.values else ""
    if left := _PLACE.search(named):
        raise entry.fault("name", f"name: nothing says what {left[0][:60]} is")
    more = {key: _fill(entry, key, texts) for key in (*_DRIFTS, *_EVALS) if key in entry.values}
    for key, name in more.items():
        if left := _PLACE.search(name):
            raise entry.fault(key, f"{key}: nothing says what {left[0][:60]} is")
    label = "-".join([*(_shown(value) for value in labels.values()), *stars])
    pair = StudyPair(
        name=named,
        before=_place(folder, paths["before"]),
        after=_place(folder, after),
        before_model=_fill(entry, "before_model", texts) or None,
        after_model=_fill(entry, "after_model", texts) or None,
        attributes={name: parse_attribute(name, value) for name, value in known.items()},
        new=tuple(_as_tuple(entry.values.get("new", ()))),
        about=tuple(map(str, about)),
        **{key: str(folder / name) if key in _DRIFTS else name for key, name in more.items()},
    )
    return _Draft(entry, pair, "" if named else label or _stem(after), after)


def _place(folder: Path, name: str) -> str:
    """Where a log is: in the folder of the study file, or at an address such as s3a://."""
    return name if _ADDRESS in name else str(folder / name)


def _about(entry: _Entry, folder: Path, texts: Mapping[str, str], notes: list[str]) -> list[Path]:
    """The JSON files that `about` names and that are there."""
    found = []
    for place in _as_tuple(entry.values.get("about", ())):
        name = _filled(entry, "about", place, texts)
        if left := _PLACE.search(name):
            raise entry.fault("about", f"about: nothing says what {left[0][:60]} is")
        path = folder / name
        if path.exists():
            found.append(path)
        else:
            notes.append(f"{entry.file}:{entry.line('about')}: about: {path} is not there")
    return found


def _from_about(entry: _Entry, files: list[Path], texts: Mapping[str, str]) -> dict[str, Any]:
    """Attributes from the JSON files that `about` names; the entry's own win over them."""
    found: dict[str, Any] = {}
    for path in files:
        found |= read_about(path, _as_tuple(entry.values.get("take", ())))
    found = {name: value for name, value in found.items() if name not in texts}
    for name, value in found.items():
        _check_value(entry, "about", value)
        if name in RESERVED:
            raise entry.fault(
                "about", f"about: {name!r} has a meaning here; pass it over by 'take'"
            )
    return found


def _never_taken(drafts: list[_Draft]) -> Iterator[str]:
    """What `take` names and no file has: most likely a typing error."""
    known = {name for draft in drafts for name in draft.pair.attributes}
    wanted = {
        name: draft.entry
        for draft in drafts
        for name in _as_tuple(draft.entry.values.get("take", ()))
    }
    for name, entry in wanted.items():
        if name not in known:
            yield f"{entry.file}:{entry.line('take')}: take: no file has {clean(name, 60)!r}"


def _check_keys(entry: _Entry) -> None:
    for key in entry.values:
        if not isinstance(key, str) or not key.strip() or len(key) > _LONGEST:
            raise entry.fault(str(key), f"{key!r:.60}: a name must be a text; put it in quotes")
        if key.casefold() != key and key.casefold() in RESERVED:
            raise entry.fault(key, f"unknown key {key!r:.60}; did you mean {key.casefold()!r}?")
    for key in ("before", "after"):
        if key not in entry.values:
            text = f"a pair needs {key!r}: the log of the checkpoint {key}"
            raise entry.fault(key, text + _typo(key, entry.values))
    for key in _TEXTS:
        value = entry.values.get(key, "-")
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise entry.fault(key, f"{key}: must be a text, not {value!r:.60}")
    for key, what in (("new", "the name of a task"), ("about", "a file"), ("take", "a name")):
        listed = _as_tuple(entry.values.get(key, ()))
        texts = isinstance(listed, list | tuple) and all(isinstance(one, str) for one in listed)
        if not texts or not all(one.strip() and "\0" not in one for one in listed):
            raise entry.fault(key, f"{key}: must be {what}, or a list of them")


def _typo(key: str, names: Iterable[str]) -> str:
    told = nearest(key, [name for name in names if name not in RESERVED])
    return told if "did you mean" in told else ""


def _choices(entry: _Entry) -> dict[str, list[Any]]:
    """What `for` lists, checked."""
    listed = entry.values.get("for", {})
    if not isinstance(listed, dict):
        raise entry.fault("for", "for: must name lists, such as {size: [1B, 7B]}")
    for name, values in listed.items():
        if not isinstance(name, str) or name in RESERVED:
            raise entry.fault("for", f"for: {name!r:.60} cannot be listed; choose another name")
        if not isinstance(values, list) or not values:
            raise entry.fault("for", f"for: {name!r:.60} must be a list of values")
        for value in values:
            _check_value(entry, "for", value)
    if math.prod(map(len, listed.values())) > MOST_PAIRS:
        raise entry.fault("for", f"for: stands for more than {MOST_PAIRS:,} pairs")
    return dict(listed)


def _attributes(entry: _Entry) -> Iterator[tuple[str, Any]]:
    """The attributes that an entry gives; those in a group are named `group.name`."""
    for key, value in entry.values.items():
        if key in RESERVED or value is None:
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for name, single in inner:
            _check_value(entry, key, single)
            yield (f"{key}.{name}" if name else key), single


def _check_value(entry: _Entry, key: str, value: Any) -> None:
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float) or not finite or not str(value).strip():
        raise entry.fault(key, f"{key}: must be a number or a text, not {value!r:.60}")
    if len(str(value)) > _LONGEST:
        raise entry.fault(key, f"{key}: has more than {_LONGEST} characters")


def parse_attribute(name: str, value: Any) -> Attribute:
    """An attribute as a number where it is one.

    Example:
        >>> parse_attribute("size", "7B"), parse_attribute("method", "7B")
        (7000000000.0, '7B')
    """
    text = _shown(value).strip()
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    short = _SHORT_NUMBER.fullmatch(text) if name in SCALES else None
    return float(short[1]) * _TIMES[short[2].lower()] if short else text


def _shown(value: Any) -> str:
    """A value as it is filled in."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _fill(entry: _Entry, key: str, known: Mapping[str, str]) -> str:
    """A text of the entry with what is known filled in."""
    return _filled(entry, key, entry.values.get(key, ""), known)


def _filled(entry: _Entry, key: str, text: str, known: Mapping[str, str]) -> str:

    def value(match: re.Match[str]) -> str:
        if not match[1].strip():
            raise entry.fault(key, f"{key}: {{}} needs a name in its braces")
        return known.get(match[1], match[0])

    return _PLACE.sub(value, text)


def _starred(entry: _Entry, path: str, stars: list[str]) -> str:
    """A path with what the stars of `after` stand for, in their order."""
    parts = [path] if _ADDRESS in path else path.split("*")
    if len(parts) > 1 and len(parts) - 1 != len(stars):
        raise entry.fault("before", "before: must have as many * as 'after', or none")
    filled = [part for both in zip(parts, stars, strict=False) for part in both]
    return path if len(parts) == 1 else "".join([*filled, *parts[len(stars) :]])


# --- on disk -------------------------------------------------------------------------------------

_Found = tuple[str, dict[str, str], list[str]]


def _on_disk(folder: Path, pattern: str) -> Iterator[_Found]:
    """The paths that fit a pattern, each with its names and what its stars stand for.

    A pattern without names and stars is taken as it is: whether the log is there is told later.
    """
    if not _is_open(pattern) or _ADDRESS in pattern:  # Spark has patterns of its own
        yield pattern, {}, []
        return
    start, parts = ("/", pattern.split("/")[1:]) if pattern.startswith("/") else ("", [])
    yield from _walk(folder, start, parts or pattern.split("/"), {}, [])


def _is_open(pattern: str) -> bool:
    return "*" in pattern or bool(_PLACE.search(pattern))


def _walk(
    folder: Path, begun: str, parts: list[str], names: dict[str, str], stars: list[str]
) -> Iterator[_Found]:
    if not parts:
        if (folder / begun).exists():
            yield begun, names, stars
        return
    part = _PLACE.sub(lambda match: names.get(match[1], match[0]), parts[0])
    if not _is_open(part):
        yield from _walk(folder, os.path.join(begun, part), parts[1:], names, stars)
        return
    fits = _regex(part)
    try:
        entries = sorted(entry.name for entry in os.scandir(folder / begun))
    except OSError:  # it is not a folder, or is not there: nothing fits
        return
    for name in entries:
        match = fits.fullmatch(name)
        if match is None or (name.startswith(".") and not part.startswith(".")):
            continue
        keys = dict.fromkeys(_PLACE.findall(part))
        found = {key: match[f"n{number}"] for number, key in enumerate(keys)}
        starred = [match[f"s{number}"] for number in range(part.count("*"))]
        where = os.path.join(begun, name)
        yield from _walk(folder, where, parts[1:], {**names, **found}, [*stars, *starred])


def _regex(part: str) -> re.Pattern[str]:
    """One part of a path with names and stars; a name that occurs twice is the same twice."""
    numbers: dict[str, int] = {}
    stars = 0
    pieces = []
    for piece in re.split(r"(\{[^{}]*\}|\*)", part):
        if piece == "*":
            pieces.append(f"(?P<s{stars}>.*)")
            stars += 1
        elif _PLACE.fullmatch(piece):
            name = piece[1:-1]
            known = name in numbers
            number = numbers.setdefault(name, len(numbers))
            pieces.append(f"(?P=n{number})" if known else f"(?P<n{number}>.+)")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL)


# --- names ---------------------------------------------------------------------------------------


def _named(drafts: list[_Draft], new: tuple[str, ...]) -> list[StudyPair]:
    """The pairs with their names; a pair that occurs twice is refused, as it would count twice."""
    seen: dict[tuple[str | None, ...], _Draft] = {}
    for draft in drafts:
        pair = draft.pair
        key = (pair.before, pair.after, pair.before_model, pair.after_model)
        if key in seen:
            where = seen[key].entry.line("after")
            text = f"the pair {clean(draft.after)} occurs twice, first in line {where}"
            raise draft.entry.fault("after", text)
        seen[key] = draft
    names = [draft.pair.name or draft.label for draft in drafts]
    taken = Counter(names)
    pairs = []
    final: set[str] = set()
    for draft, name in zip(drafts, names, strict=True):
        if taken[name] > 1 and not draft.pair.name:
            name = draft.after if draft.after not in final else f"{draft.pair.before} -> {name}"
        if name in final or not name.strip() or len(name) > _LONGEST:
            text = f"the name {clean(name, 60)!r} is taken, empty or too long; give another"
            raise draft.entry.fault("name", f"{text}, such as name: '{{seed}}'")
        final.add(name)
        update = {"name": name, "new": tuple(dict.fromkeys((*new, *draft.pair.new)))}
        pairs.append(draft.pair.model_copy(update=update))
    return pairs


def _stem(path: str) -> str:
    return Path(path).stem or path
