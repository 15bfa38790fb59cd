"""Which reader fits a log? forgetmap's own readers, and those of other packages.

Other packages add readers through the entry point group ``forgetmap.readers``. Each one is a
module, or any object, with the two functions of `forgetmap.readers.framework.Reader`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple, cast

from forgetmap.base.errors import InputError
from forgetmap.base.files import (
    find_files,
    head,
    looking_once,
    not_an_address,
    place_on_disk,
    size_of,
)
from forgetmap.base.values import file_name
from forgetmap.base.words import brief
from forgetmap.readers.framework import Reader, ReadOptions, Tally
from forgetmap.samples.table import Samples


class Fit(NamedTuple):
    """The reader that fits a log, and the problems of plug-ins that were passed over."""

    reader: Reader
    problems: list[str]


def read(path: str | Path, how: ReadOptions | None = None) -> Samples:
    """Read the log at `path`, a file or a folder, whatever harness wrote it.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "results.csv"
        >>> _ = log.write_text("question,correct\\n2+2?,1\\n2+3?,0\\n")
        >>> len(read(log))
        2
    """
    with looking_once():
        return _read(not_an_address(Path(path)), how)


def _read(path: Path, how: ReadOptions | None) -> Samples:
    try:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if not path.is_dir() and not path.is_file():  # a pipe or device would keep us waiting
            raise InputError(f"{path}: is not a plain file")
        if path.is_dir() and not any(path.iterdir()):
            raise InputError(f"{path}: the folder is empty")
        if path.is_file() and head(path, len(_POINTER)) == _POINTER:
            raise InputError(f"{path}: is a Git LFS pointer, not the file itself; run git lfs pull")
        fit = find_reader(path)
        tally, told = Tally(), _Told((how or ReadOptions()).tick)
        samples = fit.reader.read(path, replace(how or ReadOptions(), tally=tally, tick=told))
        told(max(0, size_of(path) - told.bytes))  # a reader may open a file and read it later
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not len(samples):
        raise InputError(f"{path}: holds no samples")
    samples.meta.warnings += fit.problems
    samples.meta.records = tally.records or samples.meta.records
    samples.meta.left_out += tally.left_out
    if path.is_dir() and tally.files and not isinstance(fit.reader, _PlugIn):
        samples.meta.warnings += _not_read(path, fit.reader, tally.files)
    return samples


class _Told:
    """Counts the bytes that a reader told of, and tells them on."""

    def __init__(self, tick: Callable[[int], None]) -> None:
        self.bytes = 0
        self.tick = tick

    def __call__(self, count: int) -> None:
        self.bytes += count
        self.tick(count)


def _not_read(folder: Path, reader: Reader, read: set[Path]) -> list[str]:
    """Name and count the files of a folder that were not read; hidden ones aside."""
    companions = getattr(reader, "COMPANIONS", ())
    left = [
        file
        for file in find_files(folder, "*")
        if file not in read
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and not any(file.match(pattern) for pattern in companions)
    ]
    if left:  # under another name, it may be
        known = {place_on_disk(file) for file in read if file.exists()}
        left = [file for file in left if place_on_disk(file) not in known]
    if not left:
        return []
    listed = ", ".join(f"{file_name(file)[:80]}{_why(file, reader)}" for file in left[:_NAMED])
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    return [f"{len(left)} files in the folder were not read: {listed}{more}"]


_NAMED = 6
_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that stands for one which was not fetched."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".tar")


def _why(file: Path, reader: Reader) -> str:
    """Why a file was not read, where that can be told."""
    if not file.stat().st_size:
        return " (empty)"
    if head(file, len(_POINTER)) == _POINTER:
        return " (a Git LFS pointer: run git lfs pull)"
    if file.suffix.lower() in _PACKED:
        return " (packed: unpack it)"
    if file.name != file.name.lower() and file.suffix != file.suffix.lower():
        return " (its ending is in upper case)"
    try:
        name = find_reader(file).reader.__name__
    except (InputError, OSError):
        return ""
    told = name.rpartition(".")[2]
    return "" if told in ("table", "captrack") or name == reader.__name__ else f" ({told})"


def read_all(sources: Sequence[str | Path | Samples], how: ReadOptions) -> list[Samples]:
    """Read logs that are to be paired, each of them once."""
    how = for_pairing(sources, how)
    return [source if isinstance(source, Samples) else read(source, how) for source in sources]


def for_pairing(sources: Sequence[str | Path | Samples], how: ReadOptions) -> ReadOptions:
    """The options to read logs with that are to be paired.

    Logs of different harnesses pair by the words of their items, which takes a second hash. So the
    reader of each log is found first, and the hash is asked for only if the readers differ.
    """
    paths = [Path(source) for source in sources if not isinstance(source, Samples)]
    formats = {_format(path) for path in paths}
    mixed = len(formats) > 1 or len(paths) < len(sources) or None in formats
    return replace(how, wording=how.wording or mixed)


def _format(path: Path) -> str | None:
    """The reader that a log needs; None if the format does not say which harness wrote it."""
    try:
        name = find_reader(path).reader.__name__ if path.exists() else None
    except (InputError, OSError):
        return None  # reading the log will say why
    return None if name == "forgetmap.readers.every_eval_ever" else name


def find_reader(path: Path) -> Fit:
    """Find the reader whose format the path is in."""
    path = not_an_address(path)
    tried: list[str] = []
    problems: list[str] = []
    with looking_once():
        for reader in _readers(path, problems):
            if isinstance(reader, _PlugIn) or reader.sniff(path):  # a plug-in was asked already
                return Fit(reader, problems)
            tried.append(reader.__name__.rpartition(".")[2])
    broken = "".join(f"; {problem}" for problem in problems)
    packed = "; unpack it first" if path.suffix.lower() in _PACKED else ""
    raise InputError(
        f"{path}: not a log that forgetmap knows (tried: {', '.join(tried)}){packed}{broken}"
    )


def _readers(path: Path, problems: list[str]) -> Iterator[Reader]:
    """Own formats first: looking for the readers of other packages takes time."""
    yield from map(_own, ("parquet", "evaluation"))
    yield from _plugged_in(path, problems)
    yield from map(_own, _HARNESSES)


_HARNESSES = (
    *("lm_eval", "lighteval", "inspect", "helm", "opencompass", "every_eval_ever", "promptfoo"),
    *("evalplus", "openai_evals", "bfcl", "verifiers", "nemo"),
    *("ifeval", "humaneval", "swebench"),
    *("livecodebench", "tau_bench", "bigcodebench"),
    *("nemo_skills", "math_harness", "alpaca_eval"),
    *("lmms_eval", "olmes", "evalscope", "terminal_bench", "verl"),
    *("captrack", "table"),
)
"""In the order they are asked; the last takes any table."""


def _own(name: str) -> Reader:
    """A reader of forgetmap, imported only when its turn comes."""
    return cast("Reader", import_module(f"forgetmap.readers.{name}"))


def _plugged_in(path: Path, problems: list[str]) -> Iterator[Reader]:
    """Readers of other packages that take the log; a broken one is named and passed over."""
    for point in _entry_points(tuple(sys.path)):
        plug_in = _PlugIn(point)
        try:
            fits = plug_in.sniff(path)
        except Exception as error:  # other people's code: whatever it raises
            problems.append(f"{plug_in.title} failed and was passed over ({_problem(error)})")
            continue
        if fits:
            yield plug_in


@cache
def _entry_points(search_path: tuple[str, ...]) -> list[EntryPoint]:  # noqa: ARG001 - the key
    """Find the readers of other packages: once for each `sys.path`, as it takes 10 ms and more."""
    return sorted(entry_points(group="forgetmap.readers"))


class _PlugIn:
    """A reader of another package; a failure to read becomes one line that names the plug-in."""

    def __init__(self, point: EntryPoint) -> None:
        package = point.dist.name if point.dist else "unknown package"
        self.__name__ = point.name
        self.title = f"the reader plug-in {point.name!r} of {package}"
        self.point = point

    def sniff(self, path: Path) -> bool:
        return bool(self.point.load().sniff(path))

    def read(self, path: Path, how: ReadOptions) -> Samples:
        try:
            samples = self.point.load().read(path, how)
            if not isinstance(samples, Samples):
                raise TypeError(f"it returned {type(samples).__name__}, not Samples")
        except InputError:
            raise
        except Exception as error:  # other people's code: whatever it raises
            raise InputError(f"{path}: {self.title} failed ({_problem(error)})") from error
        return samples


def _problem(error: Exception) -> str:
    return f"{type(error).__name__}: {brief(error)}"
