"""Files that are whole or not there: atomic writing, and lines read in bounded memory."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import fnmatch
import glob
import os
import re
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from forgetmap.base.errors import InputError
from forgetmap.base.limits import LINE_MIB, MIB

PART = ".part"
"""How the names of files and folders end that are not whole yet."""
_YOUNG = 60.0
"""Seconds after which a part that nobody holds counts as left behind."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on failure it is removed.

    The data are flushed to disk before the rename, so a crash at any moment leaves either the old
    file or the new one under the final name, never half of one.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with replacing(target) as temporary:
        ...     _ = temporary.write_text("1 2 3")
        >>> target.read_text()
        '1 2 3'
    """
    target = Path(os.path.realpath(path))  # a link stays a link, what it leads to is replaced
    temporary = _make_beside(path)
    try:
        with in_use(temporary):
            yield temporary
        flush_to_disk(temporary)
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
        flush_to_disk(target.parent)
    except OSError as error:
        raise InputError(
            f"{path}: writing failed ({error.strerror or error}); what stood there is unchanged"
            f"{_advice(error, target)}"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _advice(error: OSError, target: Path) -> str:
    """Where to make room: beside the file, or where something else was written on the way to it."""
    if not full_disk(error):
        return ""
    elsewhere = error.filename and Path(error.filename).parent != target.parent
    where = f" at {error.filename}, or set TMPDIR to a folder with room," if elsewhere else ""
    return f"; make room{where} and run the same command again"


def full_disk(error: BaseException) -> str | None:
    """What an error says if a disk is full, or the share of it that one may use; None for others.

    Libraries that write by themselves have errors of their own, but all of them quote the system.

    Example:
        >>> full_disk(ValueError("IO Error: No space left on device")), full_disk(OSError())
        ('No space left on device', None)
    """
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        words = os.strerror(number)
        if getattr(error, "errno", None) == number or words in str(error):
            return words
    return None


def file_named_in(error: BaseException) -> str | None:
    r"""The file of which DuckDB complains.

    Example:
        >>> file_named_in(ValueError('Could not write file "/tmp/a.parquet": No space left'))
        '/tmp/a.parquet'
    """
    named = re.search(r'file \\?"([^"\\]+)', str(error))
    return named[1] if named else None


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before the work that leads there."""
    _make_beside(path).unlink()


def _make_beside(path: str | Path) -> Path:
    target = Path(os.path.realpath(path))
    folder = target.parent
    try:
        if target.is_dir():
            raise InputError(f"{path}: is a folder; name a file to write")
        if target.exists() and not target.is_file():
            raise InputError(f"{path}: is a device or pipe; name a plain file to write")
        if not folder.is_dir():
            where = Path(path).parent
            raise InputError(f"{path}: the folder {where} does not exist; create it first")
        begin = f".{target.name[:100]}."
        sweep(folder, begin)
        handle, name = tempfile.mkstemp(prefix=begin, suffix=PART, dir=folder)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    os.close(handle)
    return Path(name)


def sweep(folder: Path, begin: str) -> None:
    """Remove what killed programs left of files or folders that begin so; what is in use stays."""
    for path in folder.glob(f"{glob.escape(begin)}*{PART}"):
        with contextlib.suppress(OSError, ImportError):  # gone already, or not ours to remove
            if time.time() - path.stat().st_mtime < _YOUNG:
                continue
            with open_handle(path) as handle:
                _lock(handle)
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Mark a file or folder as in use, for `sweep`; the mark goes with the program if it dies."""
    with open_handle(path) as handle:
        with contextlib.suppress(OSError, ImportError):  # without locks nothing is swept
            _lock(handle)
        yield


def _lock(handle: int) -> None:
    """Lock what the handle leads to; OSError where another program holds it."""
    import fcntl  # not on Windows

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def open_handle(path: Path) -> Iterator[int]:
    """A handle of a file or folder, for calls to the system."""
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    with open_handle(path) as handle:
        os.fsync(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def temporary_folder(owner: object) -> Path:
    """Name a folder for temporary files, to be made when needed; it goes when its owner goes."""
    path = Path(tempfile.gettempdir()) / f"forgetmap-{uuid.uuid4().hex}"
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return path


def make_folder(path: str | Path) -> None:
    """Make a folder for results; one clear line if it cannot be."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made a folder ({error.strerror})") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def create_text(path: Path, text: str) -> None:
    """Write a text file that is not there yet, whole; FileExistsError if someone was faster."""
    temporary = _make_beside(path)
    try:
        temporary.write_text(text, encoding="utf-8")
        flush_to_disk(temporary)
        temporary.chmod(0o666 & ~_umask())
        _link(temporary, path)
        flush_to_disk(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise InputError(f"{path}: writing failed ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems say that know no hard links, such as exFAT and some network drives."""


def _link(temporary: Path, path: Path) -> None:
    """Give a whole file its name, unless the name is taken.

    Where there are no hard links, the name is taken first and the content follows in one write. A
    program that is killed between the two leaves an empty file.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_new(path, temporary.read_bytes())


def _write_new(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        if os.write(handle, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def lines(
    path: Path, most: int | None = None, advice: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of a file, without a byte order mark.

    Memory stays bounded: a line of more than `most` bytes is refused, with the advice; by default
    `LINE_MIB` (think of a sparse file).
    """
    most = most or LINE_MIB.value * MIB
    advice = advice or f"no record of a log should be so long; {LINE_MIB.advice}"
    with open_binary(path) as file:
        if file.read(len(_MARK)) != _MARK:
            file.seek(0)
        for number, line in enumerate(iter(partial(file.readline, most + 1), b""), 1):
            if len(line) > most:
                raise InputError(
                    f"{path}:{number}: the line is longer than {most // MIB} MiB; {advice}"
                )
            yield number, line


_MARK = b"\xef\xbb\xbf"


_BUFFER = 2**18
"""Bytes read at a time: lines of a log are long, and calls to the system cost."""


def not_an_address(path: Path) -> Path:
    """The path in a form that no library takes for an address, as Arrow does `run:1.parquet`.

    Example:
        >>> not_an_address(Path("run-1.parquet")), not_an_address(Path("run:1.csv")).is_absolute()
        (PosixPath('run-1.parquet'), True)
    """
    return path.absolute() if ":" in "".join(path.parts[:1]) else path


def read_small(path: Path, most: int, what: str, advice: str = "") -> bytes:
    """Read a whole file; one of more than `most` bytes is refused, as no such thing.

    `advice` says how to read it all the same.

    Example:
        >>> import tempfile
        >>> policy = Path(tempfile.mkdtemp()) / "gate.yaml"
        >>> _ = policy.write_text("alpha: 0.05")
        >>> read_small(policy, 1_000_000, "a gate policy")
        b'alpha: 0.05'
    """
    with open_binary(path) as file:
        size = os.fstat(file.fileno()).st_size  # Python makes room for all that is asked for
        content = file.read(min(size, most) + 1)
    if len(content) > most:
        raise InputError(f"{path}: is larger than {most // 10**6} MB; this is not {what}{advice}")
    return content


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; a failure becomes one clear line."""
    try:
        if not path.is_file():  # a pipe or device would keep us waiting
            raise InputError(f"{path}: is not a plain file")
        return path.open("rb", buffering=_BUFFER)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def head(path: Path, size: int = 4096) -> bytes:
    """The beginning of a file, without a byte order mark and leading white space."""
    with open_binary(path) as file:
        return file.read(size).removeprefix(_MARK).lstrip()


def find_files(path: Path, pattern: str) -> list[Path]:
    """The files under a folder whose names fit the pattern; or the path itself, if it is a file.

    Links to folders are followed, each folder once.
    """
    if not path.is_dir():
        return [path] if path.is_file() and fnmatch.fnmatchcase(path.name, pattern) else []
    fits = re.compile(fnmatch.translate(pattern)).match
    files = [
        os.path.join(folder, name)
        for folder, names in _folders(path)
        for name in names
        if fits(name)
    ]
    # By their parts, as paths sort: made into paths only then, since that takes longer.
    files = sorted(filter(os.path.isfile, files), key=lambda file: file.split(os.sep))
    return [Path(file) for file in files]


@contextmanager
def looking_once() -> Iterator[None]:
    """Within it, each folder is walked once: many readers ask for files of the same log.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp())
        >>> with looking_once():
        ...     _ = find_files(log, "*.json")
        ...     (log / "late.json").touch()
        ...     found = find_files(log, "*.json")
        >>> found, len(find_files(log, "*.json"))
        ([], 1)
    """
    known = _LOOKED_AT.get()
    token = _LOOKED_AT.set({} if known is None else known)
    try:
        yield
    finally:
        _LOOKED_AT.reset(token)


_Folders = list[tuple[str, list[str]]]
_LOOKED_AT: ContextVar[dict[Path, _Folders] | None] = ContextVar("_LOOKED_AT", default=None)


def _folders(path: Path) -> _Folders:
    """Each folder under a path, with the names in it."""
    known = _LOOKED_AT.get()
    if known is not None and path in known:
        return known[path]
    found: _Folders = []
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(path, followlinks=True, onerror=_cannot_read):
        real = place_on_disk(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        found.append((folder, names))
    if known is not None:
        known[path] = found
    return found


def place_on_disk(path: str | Path) -> tuple[int, int]:
    """What a path leads to: the same for all names and links of one file or folder."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _cannot_read(error: OSError) -> None:
    """A folder that cannot be looked into might hold logs: say so instead of leaving them out."""
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error


def file_hash(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            digest = sha256()
            while block := file.read(2**20):
                digest.update(block)
            return digest.hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def size_of(path: str | Path) -> int:
    """Bytes under a path, for a progress bar."""
    path = Path(path)
    files = [os.fspath(path)]
    if path.is_dir():
        files = [os.path.join(folder, name) for folder, names in _folders(path) for name in names]
    return sum(os.stat(file).st_size for file in files if os.path.isfile(file))


def _names_under(folder: Path) -> Iterator[str]:
    """The names of all files under a folder, without a look at the files themselves."""
    for place, names in _folders(folder):
        yield from (os.path.join(os.path.relpath(place, folder), name) for name in names)


def same_content(one: Path, other: Path) -> bool:
    """Whether two files or folders hold the same bytes under the same names.

    Example:
        >>> same_content(Path(__file__), Path(__file__))
        True
    """
    if not (one.exists() and other.exists()):
        return False
    if one.resolve() == other.resolve():
        return True
    if one.is_dir() and other.is_dir():
        ours, theirs = (sorted(_names_under(folder)) for folder in (one, other))
        pairs = [(one / name, other / name) for name in ours] if ours == theirs else []
        files = (pair for pair in pairs if any(path.is_file() for path in pair))
        return ours == theirs and all(same_content(*pair) for pair in files)
    if one.is_dir() or other.is_dir():
        return False
    return filecmp.cmp(one, other, shallow=False)
