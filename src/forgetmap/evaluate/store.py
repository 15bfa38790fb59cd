"""Replies that survive: appended as they come, found again by what was asked of which model.

One line per reply, with a checksum before it, flushed to disk before the next batch begins. A
crash can only harm the last lines; they are cut off when the store is opened again, and their
batch is the only work that has to be repeated. Older stores have a line per batch, which is read
in the same way. One process writes at a time; a lock, which the system takes back however the
process ends, sees to that.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.files import lines, make_folder

FILE = "answers.jsonl"
_LOCK = ".lock"
MAX_LINE_BYTES = 64 * 2**20
"""A longer reply is refused when it comes: its line could fill the memory later."""
_LONGEST_LINE = 2**30
"""Bytes of a line that is read: older stores hold the replies of a whole batch in one."""


class Store:
    """The replies of an output folder, which is made if it is not there; for one process at a time.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with Store(folder) as store:
        ...     store.append({"a1": {"text": "Paris"}})
        >>> with Store(folder) as store:
        ...     store["a1"], "b2" in store
        ({'text': 'Paris'}, False)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self.broken = 0
        """Lines that were damaged after they were written; their items are asked again."""
        self._found: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        make_folder(self.folder)
        try:
            self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._lock)
                raise InputError(
                    f"{self.folder}: another run is writing here; wait, or name another folder"
                ) from error
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from error
        self._load()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)
        os.close(self._lock)  # which also frees it

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._found[key]

    def __len__(self) -> int:
        return len(self._found)

    def append(self, batch: Mapping[str, dict[str, Any]]) -> None:
        """Add the replies of a batch; they are on the disk, all of them, when this returns."""
        rest = memoryview(b"".join(self._line(key, reply) for key, reply in batch.items()))
        size = os.fstat(self._file).st_size
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise InputError(
                f"{self.path}: writing failed ({error.strerror}); {len(self):,} finished answers "
                "are kept: make room and run the same command again"
            ) from error
        self._found.update(batch)

    def _line(self, key: str, reply: dict[str, Any]) -> bytes:
        body = orjson.dumps({key: reply})
        line = b"%08x %b\n" % (crc32(body), body)
        if len(line) > MAX_LINE_BYTES:
            raise InputError(
                f"{self.path}: an answer of {len(line) / 2**20:,.0f} MiB is more than the "
                f"{MAX_LINE_BYTES // 2**20} MiB that can be kept; set a lower --max-tokens"
            )
        return line

    def _load(self) -> None:
        end = sound = damaged = 0
        for _, line in lines(self.path, _LONGEST_LINE, "delete the file and run again"):
            end += len(line)
            batch = _read(line)
            if batch is None:
                damaged += 1
                continue
            self._found.update(batch)
            self.broken, sound = damaged, end
        if end > sound:  # what the last process was writing when it died
            os.ftruncate(self._file, sound)


def _read(line: bytes) -> dict[str, dict[str, Any]] | None:
    """The replies of a line; None where it is damaged."""
    if not line.endswith(b"\n") or line[8:9] != b" ":
        return None
    body = line[9:-1]
    if line[:8] != b"%08x" % crc32(body):
        return None
    try:
        batch = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return batch if isinstance(batch, dict) else None
