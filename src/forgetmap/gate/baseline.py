"""Baselines: a frozen reference log, and the history of what was compared with it.

A store is a folder::

    objects/SHA256.parquet   Samples, named by the hash of their bytes, never written again
    names/NAME.json          what a name stands for
    history.jsonl            one line per comparison

A name is given once. What it stands for is checked against its hash whenever it is read.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import model_validator

from forgetmap.base.errors import InputError
from forgetmap.base.files import (
    PART,
    create_text,
    file_hash,
    in_use,
    lines,
    open_binary,
    sweep,
)
from forgetmap.base.model import CHECKSUM, Frozen, parse_result, sealed_json
from forgetmap.gate.judgement import Judgement
from forgetmap.gate.policy import Policy
from forgetmap.map.comparison import compare_logs
from forgetmap.map.old_maps import old_range
from forgetmap.map.result import ForgettingMap
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.table import SCHEMA, Samples
from forgetmap.stats.estimate import Estimate, Range

STORE = Path(".forgetmap/baselines")
HISTORY = "history.jsonl"
_FRESH = ".new."
"""How the name of an object begins before it is whole."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Baseline(Frozen):
    """What a name stands for."""

    name: str
    sha256: str
    saved: str
    model: str
    harness: str
    samples: int


class Entry(Frozen):
    """One comparison with a baseline."""

    time: str
    baseline: str
    sha256: str
    """Of the baseline."""
    before: str
    after: str
    n: int
    lost: Range
    """Of the old skills, as all that follows."""
    gained: Range
    change: Estimate
    accuracy_after: float
    verdict: str | None = None
    """Of the gate, where a policy was given."""
    limit: float | None = None
    """The most that this policy lets the old skills lose; None where it does not say."""

    @model_validator(mode="before")
    @classmethod
    def _from_older(cls, content: Any) -> Any:
        """A line of an older version, as a range."""
        if not (isinstance(content, dict) and "forgot" in content):
            return content
        try:
            fell, rose = content["forgot"], content["gained"]
            headline = content.get("headline", "raw")
            lost, gained = old_range(fell, rose, headline), old_range(rose, fell, headline)
            return {**content, "lost": lost, "gained": gained}
        except (KeyError, TypeError) as error:
            raise ValueError("a damaged line") from error


class History(NamedTuple):
    """The comparisons, oldest first, and how many lines could not be read."""

    entries: list[Entry]
    damaged: int


def save_baseline(
    name: str,
    log: str | Path,
    *,
    store: str | Path = STORE,
    model: str | None = None,
    text: bool = True,
    tick: Callable[[int], None] | None = None,
) -> Baseline:
    """Freeze a log under a name.

    The same content under the same name may be saved again; other content is refused.

    Args:
        name: Letters, digits, dot, dash and underscore.
        log: The reference model's log.
        store: Folder of the baselines.
        model: Which model to take where the log holds several.
        text: Keep prompts and answers, which the causes need.
        tick: Called with the number of bytes just read.

    Example:
        >>> import tempfile
        >>> from forgetmap.map import example_logs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = save_baseline("base", example_logs()[0], store=folder)
        ...     [baseline.name for baseline in list_baselines(folder)], kept.samples
        (['base'], 4070)
    """
    home = Path(store)
    _check_name(name)
    how = ReadOptions(text=text, wording=True, tick=tick or (lambda _bytes: None))
    samples = read(log, how).only(model)
    for folder in (home / "objects", home / "names"):
        _make_folder(folder)
    for begin in (_FRESH, f".{_FRESH}"):
        sweep(home / "objects", begin)
    fresh = home / "objects" / f"{_FRESH}{uuid.uuid4().hex}{PART}"
    try:
        samples.write(fresh)
        with in_use(fresh):
            kept = Baseline(
                name=name,
                sha256=file_hash(fresh),
                saved=_now(),
                model=samples.model or samples.models[0],
                harness=samples.meta.harness,
                samples=len(samples),
            )
            return _freeze(home, kept, fresh)
    finally:
        fresh.unlink(missing_ok=True)


def _freeze(home: Path, kept: Baseline, fresh: Path) -> Baseline:
    """Give the content its name; first the object, then the label, which makes it count."""
    label = home / "names" / f"{kept.name}.json"
    if label.exists():
        return _freeze_again(home, kept, fresh)
    target = _object(home, kept.sha256)
    is_ours = _put(fresh, target, kept.sha256)
    try:
        create_text(label, sealed_json(kept) + "\n")
    except (FileExistsError, InputError) as error:
        if is_ours:
            _take_back(home, target, fresh)
        if isinstance(error, InputError):
            raise
        return _freeze_again(home, kept, fresh)  # someone else gave the name in the meantime
    if not target.exists():  # whoever put it there took it back before our label was there
        _put(fresh, target, kept.sha256)
    return kept


def _freeze_again(home: Path, kept: Baseline, fresh: Path) -> Baseline:
    """The baseline that has the name already, if it holds the same rows."""
    known = read_label(home, kept.name)
    target = _object(home, known.sha256)
    ours = fresh if fresh.exists() else _object(home, kept.sha256)
    if known.sha256 == kept.sha256:
        _put(fresh, target, known.sha256)  # damage is mended by the same log
    elif not (_is_whole(target, known.sha256) and _same_rows(target, ours)):
        raise InputError(
            f"baseline {kept.name}: is frozen with other content (sha256 {known.sha256[:12]}); "
            "save this log under another name"
        )
    return known


def _put(fresh: Path, target: Path, digest: str) -> bool:
    """Move content to its place, unless it is there and whole; says whether it was moved."""
    if not fresh.exists() or _is_whole(target, digest):
        return False
    fresh.chmod(0o444)
    fresh.replace(target)
    return True


def _take_back(home: Path, target: Path, fresh: Path) -> None:
    """Remove content that got no name, so that it does not lie there for ever.

    Another program may be naming the same content. So it is moved away first, and put back if a
    label asks for it by then. A label that comes later finds it missing and puts its own there.
    """
    if _is_named(home, target):
        return
    target.replace(fresh)
    if _is_named(home, target):
        fresh.replace(target)


def _is_named(home: Path, target: Path) -> bool:
    """Whether a name stands for the content; a damaged label might."""
    try:
        labels = [read_label(home, path.stem) for path in (home / "names").glob("*.json")]
    except InputError:
        return True
    return any(_object(home, label.sha256) == target for label in labels)


def _is_whole(path: Path, digest: str) -> bool:
    return path.is_file() and file_hash(path) == digest


def _same_rows(one: Path, other: Path) -> bool:
    """Whether two files hold the same rows; other versions of pyarrow write them otherwise."""
    sides = [Samples.read(path) for path in (one, other)]
    return sides[0].meta == sides[1].meta and all(
        pa.Table.from_batches(sides[0].to_batches([name])).equals(
            pa.Table.from_batches(sides[1].to_batches([name]))
        )
        for name in SCHEMA.names
    )


def open_baseline(name: str, store: str | Path = STORE) -> tuple[Baseline, Samples]:
    """Open a baseline; one whose bytes are not those that were saved is refused."""
    kept = read_label(Path(store), name)
    path = _object(Path(store), kept.sha256)
    _verify(kept, path)
    return kept, Samples.read(path)


def log_or_baseline(source: str, store: str | Path = STORE) -> str | Samples:
    """What a command's argument stands for: `baseline:NAME` for a baseline, else a log's path.

    Example:
        >>> log_or_baseline("runs/base")
        'runs/base'
    """
    prefix, colon, name = source.partition(":")
    return open_baseline(name, store)[1] if (prefix, colon) == ("baseline", ":") else source


def list_baselines(store: str | Path = STORE) -> list[Baseline]:
    """All baselines by name, each verified."""
    folder = Path(store) / "names"
    names = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    baselines = [read_label(Path(store), name) for name in names]
    for kept in baselines:
        _verify(kept, _object(Path(store), kept.sha256))
    return baselines


def compare_with_baseline(
    name: str,
    log: str | Path,
    *,
    store: str | Path = STORE,
    policy: Policy | None = None,
    causes: bool = False,
    **options: Any,
) -> tuple[ForgettingMap, Judgement | None]:
    """Compare a log with a baseline, judge it where a policy is given, and remember the result.

    Other options are those of `forgetmap.compare`.
    """
    from forgetmap.gate.judgement import judge

    kept, reference = open_baseline(name, store)
    causes = causes or (policy is not None and policy.needs_causes)
    result = compare_logs(reference, log, causes=causes, **options).map
    judgement = judge(result, policy) if policy else None
    cell = result.old
    _append(
        Path(store) / HISTORY,
        Entry(
            time=_now(),
            baseline=name,
            sha256=kept.sha256,
            before=result.before.name,
            after=result.after.name,
            n=cell.n,
            lost=cell.lost,
            gained=cell.gained,
            change=cell.change,
            accuracy_after=cell.accuracy_after,
            verdict=judgement.verdict if judgement else None,
            limit=_most_lost(policy) if policy else None,
        ),
    )
    return result, judgement


def _most_lost(policy: Policy) -> float | None:
    """The strictest limit on what the old skills may lose, as a share of all items."""
    limits = [
        limit.max
        for limit in policy.limits
        if (limit.where, limit.measure) == ("old", "forgetting") and limit.max is not None
    ]
    return min(limits, default=None)


def read_history(name: str, store: str | Path = STORE) -> History:
    """The comparisons with a baseline so far; a line that a crash cut off is counted, not fatal."""
    _check_name(name)
    path = Path(store) / HISTORY
    entries, damaged = [], 0
    for _, line in lines(path) if path.exists() else ():
        try:
            entry = parse_result(Entry, "history", 1, line)
        except InputError:
            # Where the end of a line is damaged, two comparisons stand in one.
            damaged += max(bool(line.strip()), line.count(f'"{CHECKSUM}"'.encode()))
            continue
        if entry.baseline == name:
            entries.append(entry)
    return History(entries, damaged)


# --- files ----------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"baseline {name!r:.60}: a name has up to 64 letters, digits, dots, dashes, underscores"
        )


def _object(store: Path, digest: str) -> Path:
    return store / "objects" / f"{digest}.parquet"


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made a folder ({error.strerror})") from error


def read_label(store: Path, name: str) -> Baseline:
    """What a name stands for."""
    _check_name(name)
    path = store / "names" / f"{name}.json"
    if not path.exists():
        known = sorted(file.stem for file in (store / "names").glob("*.json"))[:20]
        listed = f"there are {', '.join(known)}" if known else f"{store} holds none"
        raise InputError(f"no baseline is called {name}; {listed}")
    with open_binary(path) as file:
        raw = file.read(100_000)
    try:
        kept = parse_result(Baseline, "baseline", 1, raw)
    except InputError as error:
        raise InputError(f"{path}: is damaged; save the baseline under another name") from error
    if kept.name != name or not re.fullmatch(r"[0-9a-f]{64}", kept.sha256):
        raise InputError(f"{path}: does not belong to the baseline {name}; it was tampered with")
    return kept


def _verify(kept: Baseline, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"baseline {kept.name}: its content {path} is missing")
    if file_hash(path) != kept.sha256:
        raise InputError(
            f"baseline {kept.name}: {path} is not what was saved (its checksum differs); "
            "restore it, or save a new baseline"
        )


def _append(path: Path, entry: Entry) -> None:
    """Add a line in one write, so that two processes at once do not mix theirs."""
    line = sealed_json(entry, indent=None).encode() + b"\n"
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            cut_off = size and os.pread(handle, 1, size - 1) != b"\n"
            line = (b"\n" if cut_off else b"") + line
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, "only a part of the line could be written")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
