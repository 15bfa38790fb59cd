"""The logs of a study: on this machine, or in a lake where Spark pairs them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from forgetmap.base.errors import InputError
from forgetmap.pairing.pairs import Pairs
from forgetmap.pairing.two_logs import pair as pair_locally
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import find_reader, for_pairing, read
from forgetmap.samples.table import Samples
from forgetmap.study.file import Study
from forgetmap.study.store import Store, content_of, key_of

_Loaded = TypeVar("_Loaded")
_SAMPLES_READER = "forgetmap.readers.parquet"


class Logs(ABC):
    """The logs of a study; each is looked at once, and one that is broken is not tried again."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}
        self._read: dict[str, Samples] = {}
        self._broken: dict[str, InputError] = {}

    def key(self, log: str) -> str:
        """The key of a log: its place, what it holds, and how it is read."""
        if log not in self._keys:
            self._keys[log] = self._once(log, lambda: self._find_key(log))
        return self._keys[log]

    def samples(self, log: str) -> Samples:
        """What a log holds."""
        if log not in self._read:
            self._read[log] = self._once(log, lambda: self._load(log))
        return self._read[log]

    @abstractmethod
    def pair(self, *sides: Any, **options: Any) -> Pairs:
        """Pair two logs; see `forgetmap.pairing.two_logs.pair`."""

    @abstractmethod
    def _find_key(self, log: str) -> str: ...

    @abstractmethod
    def _load(self, log: str) -> Samples: ...

    def _once(self, log: str, load: Callable[[], _Loaded]) -> _Loaded:
        if log in self._broken:
            raise self._broken[log]
        try:
            return load()
        except InputError as error:
            self._broken[log] = error
            raise


class LocalLogs(Logs):
    """Logs on this machine, of any format."""

    def __init__(self, study: Study, store: Store) -> None:
        super().__init__()
        self.root = study.path.parent
        self.store = store
        logs = {log for pair in study.pairs for log in (pair.before, pair.after)}
        there = [log for log in sorted(logs) if Path(log).exists()]
        self.how = for_pairing(there, ReadOptions())

    def pair(self, *sides: Any, **options: Any) -> Pairs:
        """Pair two logs with DuckDB."""
        return pair_locally(*sides, **options)

    def _find_key(self, log: str) -> str:
        where = os.path.relpath(log, self.root)  # readers take names of models from it
        return key_of("log", where, content_of(Path(log)), self.how.wording)

    def _load(self, log: str) -> Samples:
        path, key = Path(log), self.key(log)
        if find_reader(path).reader.__name__ == _SAMPLES_READER:
            return read(path, self.how)
        return self.store.samples(key) or self.store.keep_samples(key, read(path, self.how))


class LakeLogs(Logs):
    """Samples Parquet wherever Spark can read it."""

    def pair(self, *sides: Any, **options: Any) -> Pairs:
        """Pair two logs with Spark."""
        from forgetmap.pairing import spark

        return spark.pair(*sides, **options)

    def _find_key(self, log: str) -> str:
        """Sizes and times of the files stand for their content: to hash a lake takes too long."""
        from forgetmap.pairing import spark

        files = spark.Lake(log).files()
        return key_of("lake", log, files if files is not None else uuid4().hex)

    def _load(self, log: str) -> Samples:
        from forgetmap.pairing import spark

        return spark.Lake(log)
