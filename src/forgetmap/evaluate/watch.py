"""Watch a folder of checkpoints: each one that a trainer saves is asked, in a process of its own.

It needs nothing from the trainer but that it saves folders as transformers reads them. A checkpoint
that is still being written is waited for. What is finished stays, so a watch that was killed goes
on where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.base.model import read_sealed, sealed
from forgetmap.evaluate.check import ask_in_time
from forgetmap.evaluate.describe import weight_files
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.results import MANIFEST, read_manifest
from forgetmap.evaluate.run import Questions, evaluate, load_suite

BEFORE = "before"
"""The folder of the answers that all checkpoints are compared with."""
CHOSEN = "watch.json"
"""Keeps how many questions the time has chosen."""
_MOST_FAILURES = 3
"""Of one checkpoint, until it is left alone."""
_SAME = ("suite", "suite_version", "suite_seed", "seed", "requests")
"""Parts of the manifests of two models that were asked the same."""


@dataclass
class Watch:
    """What is watched, and how its checkpoints are asked."""

    folder: Path
    before: str
    """The model that training began with."""
    out: Path
    suite: Questions = "atlas"
    seconds: float = 60
    """For the questions to each checkpoint: as many are asked as the first model answers in it."""
    asking: Asking = field(default_factory=lambda: Asking(chat=None))
    running: Running = field(default_factory=Running)
    every: float = 10
    """Seconds between two looks at the folder."""
    idle: float | None = None
    """Minutes without a new checkpoint after which the watch ends; None: it never ends."""
    say: Callable[[str], None] = lambda _text: None
    limit: int | None = None
    """Questions of each task; None for all. `start` finds it."""
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    _told: set[str] = field(default_factory=set, init=False)

    def start(self) -> None:
        """Ask the model before; what it answers in the time is what all checkpoints are asked.

        A watch that goes on asks as much as it did: finished answers take no time, so more would
        fit into the time, and every checkpoint would be asked again.
        """
        path, terms = self.out / CHOSEN, self._terms()
        kept = read_sealed(path) if path.is_file() else {}
        again = kept.get("terms") == terms and "limit" in kept
        if again:
            self.limit = _checked_limit(path, kept["limit"])
            self._apart(self._work(self.before, BEFORE))
        else:
            self.limit = self._apart(
                partial(
                    ask_in_time, self.before, self.suite, self.out / BEFORE,
                    seconds=self.seconds, asking=self.asking, running=self.running,
                )
            )  # fmt: skip
            content = sealed({"terms": terms, "limit": self.limit})
            write_text(path, json.dumps(content, indent=2) + "\n")
        more = f", as many as before ({path})" if again else ""
        self.say(f"before: {self.before}, {_asked(self.out / BEFORE):,} questions{more}")

    def _terms(self) -> dict[str, Any]:
        """What the number of questions was chosen for; for anything else it is chosen anew."""
        suite = load_suite(self.suite, self.asking.seed)
        return {
            "suite": f"{suite.name} {suite.version}",
            "seed": self.asking.seed,
            "seconds": self.seconds,
        }

    def _work(self, model: str, name: str) -> Callable[[], None]:
        """To ask a model as many questions as all, into `OUT/NAME`."""
        return partial(
            _evaluate, model, self.suite, self.out / name, self.asking, self.running, self.limit
        )

    def checkpoints(self) -> Iterator[str]:
        """The name of each checkpoint once its answers are in `OUT/NAME`, in order of its steps.

        So are those that an earlier watch has asked and the trainer has removed since.
        """
        ended: set[str] = set()  # answered, or given up
        failures: Counter[str] = Counter()
        states: dict[str, Any] = {}
        bare: dict[str, Any] = {}
        news = self.clock()
        while True:
            found = {_name(path, self.folder): path for path in find_checkpoints(self.folder)}
            whole = {name for name, path in found.items() if is_whole(path)}
            before, states = states, {name: _state(found[name]) for name in sorted(whole)}
            earlier, bare = bare, _without_weights(found)
            self._tell(name for name in bare if earlier.get(name) == bare[name])
            names = sorted({*states, *self._finished()} - ended, key=_by_number)
            for name in names:
                finished = (self.out / name / MANIFEST).is_file()
                if finished and not (self.folder / name).exists():
                    ended.add(name)
                    if self._is_of_this_watch(name):
                        yield name
                elif name not in states:
                    continue  # it is not whole, or being removed
                elif not finished and before.get(name) != states[name]:
                    news = self.clock()  # it is new, or was still written since the last look
                elif self._ask(name, found[name], failures):
                    ended.add(name)
                    news = self.clock()
                    yield name
                elif failures[name] >= _MOST_FAILURES:
                    ended.add(name)
            quiet = self.clock() - news
            if self.idle is not None and quiet >= 60 * self.idle and states.keys() <= ended:
                self._tell(bare)
                return
            self.wait(self.every)

    def _finished(self) -> list[str]:
        """What has answers, whether its checkpoint is still there or not."""
        names = (path.parent.name for path in self.out.glob(f"*/{MANIFEST}"))
        return [name for name in names if name != BEFORE]

    def _is_of_this_watch(self, name: str) -> bool:
        """Whether a checkpoint that is gone was asked the same as the others; it is told."""
        with contextlib.suppress(InputError):  # something else has written there
            ours, before = (read_manifest(self.out / folder) or {} for folder in (name, BEFORE))
            if all(ours.get(part) == before.get(part) for part in _SAME):
                self.say(f"{name}: is gone, {_asked(self.out / name):,} questions asked before")
                return True
        self.say(f"{name}: is gone, and was not asked the same questions; it is left out")
        return False

    def _tell(self, bare: Iterable[str]) -> None:
        """Tell once of each checkpoint that has no weights, and is not about to get them."""
        for name in bare:
            if name not in self._told:
                self._told.add(name)
                self.say(f"{name}: has no weights that can be loaded; merge or gather them")

    def _ask(self, name: str, path: Path, failures: Counter[str]) -> bool:
        """Ask one checkpoint; what goes wrong is told, and tried again a few times."""
        began = self.clock()
        adapter = (path / "adapter_config.json").is_file()
        model = f"{self.before}+{path}" if adapter else str(path)
        try:
            self._apart(self._work(model, name))
        except InputError as error:
            failures[name] += 1
            left = _MOST_FAILURES - failures[name]
            more = "it is left out" if not left else "trying again"
            self.say(f"{name}: {error}; {more}")
            return False
        asked = _asked(self.out / name)
        self.say(f"{name}: {asked:,} questions in {self.clock() - began:.0f} s")
        return True

    def _apart(self, work: Callable[[], Any]) -> Any:
        """Do it in a process of its own, which gives all its memory back."""
        try:
            with ProcessPoolExecutor(1, get_context("spawn"), _end_with, (os.getpid(),)) as pool:
                return pool.submit(work).result()
        except BrokenProcessPool as error:
            raise InputError("its process died; finished answers are kept") from error


def _end_with(parent: int) -> None:
    """End this process soon after its parent has died, or it would hold its memory for minutes."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)  # the work holds the main thread, and nobody waits for what it finds

    threading.Thread(target=look, daemon=True).start()


def _evaluate(
    model: str, suite: Questions, out: Path, asking: Asking, running: Running, limit: int | None
) -> None:
    evaluate(model, suite, out, asking=asking, running=running, limit=limit)


def _checked_limit(path: Path, limit: Any) -> int | None:
    if limit is None or (type(limit) is int and limit > 0):
        return limit
    raise InputError(f"{path}: its limit is not a number of questions; remove the file")


def _asked(out: Path) -> int:
    return int((read_manifest(out) or {}).get("requests", 0))


def find_checkpoints(folder: Path) -> list[Path]:
    """The folders of checkpoints in a folder, in the order of the numbers in their names.

    Example:
        >>> import tempfile
        >>> run = Path(tempfile.mkdtemp())
        >>> for name in ("checkpoint-1000", "checkpoint-200", "logs"):
        ...     (run / name).mkdir()
        >>> for name in ("checkpoint-1000", "checkpoint-200"):
        ...     _ = (run / name / "config.json").write_text("{}")
        >>> [path.name for path in find_checkpoints(run)]
        ['checkpoint-200', 'checkpoint-1000']
    """
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith((".", "tmp-"))]
    except OSError as error:
        raise InputError(f"{folder}: cannot be watched ({error.strerror})") from error
    found = [loaded for path in paths if (loaded := _loaded_from(path))]
    return sorted(found, key=lambda path: _by_number(_name(path, folder)))


def _loaded_from(path: Path) -> Path | None:
    """The folder that transformers reads: this one, or its `huggingface`, as verl saves."""
    inner = (path / "huggingface", *sorted(path.glob("*/huggingface")))
    for place in (path, *inner):
        if any((place / name).is_file() for name in ("config.json", "adapter_config.json")):
            return place
    return None


def _name(checkpoint: Path, folder: Path) -> str:
    """What a checkpoint is called: the folder that the trainer made for it."""
    return checkpoint.relative_to(folder).parts[0]


def _without_weights(found: Mapping[str, Path]) -> dict[str, Any]:
    """The checkpoints without any file of weights, such as those of ZeRO-3, and their state."""
    states = {name: _state(path) for name, path in found.items() if not weight_files(path)}
    return {name: state for name, state in states.items() if state is not None}


def _by_number(name: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdecimal() and len(part) < 20 else (0, part)
        for part in re.split(r"(\d+)", name)
    ]


def is_whole(checkpoint: Path) -> bool:
    """Whether all weights of a checkpoint are there, each file as long as its header says."""
    try:
        files = set(checkpoint.glob("*.safetensors"))
        for index in checkpoint.glob("*.safetensors.index.json"):
            named = json.loads(index.read_bytes())["weight_map"].values()
            files |= {checkpoint / str(name) for name in named}
        return bool(files or weight_files(checkpoint)) and all(map(_has_all_bytes, files))
    except (OSError, ValueError, KeyError, AttributeError):  # it is being written, or removed
        return False


def _has_all_bytes(file: Path) -> bool:
    """Whether a safetensors file is as long as its header says."""
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        if length > file.stat().st_size:
            return False
        header = json.loads(content.read(length))
    ends = [about["data_offsets"][1] for name, about in header.items() if name != "__metadata__"]
    return file.stat().st_size == 8 + length + max(ends, default=0)


def _state(checkpoint: Path) -> Any:
    """What changes while a checkpoint is written: its files, their sizes and times."""
    try:
        stats = [(path.name, path.stat()) for path in sorted(checkpoint.iterdir())]
    except OSError:  # removed
        return None
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
