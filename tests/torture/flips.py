"""Flips single bits of files that forgetmap stores and reads again.

    python tests/torture/flips.py --each 2000

Reading a damaged file must be refused, or give what the whole file gives: the flip hit white space,
or the name of the checksum itself. A line of history that is damaged is counted and left out.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from counts import finish  # noqa: E402

import forgetmap  # noqa: E402
from forgetmap.api import lineage  # noqa: E402
from forgetmap.base.errors import InputError  # noqa: E402
from forgetmap.evaluate.store import FILE, Store  # noqa: E402
from forgetmap.gate import baseline  # noqa: E402
from forgetmap.lineage.result import Lineage  # noqa: E402
from forgetmap.map.saved import open_saved  # noqa: E402
from forgetmap.samples.table import Samples  # noqa: E402
from small_logs import random_scores, samples  # noqa: E402


class Stored(NamedTuple):
    """A kind of file, where one lies, and how it is read."""

    kind: str
    path: Path
    read: Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=2000, help="flips of each kind of file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the counts here")
    chosen = parser.parse_args()
    tried, faults = {}, []
    with tempfile.TemporaryDirectory(prefix="forgetmap-torture-") as folder:
        os.chdir(folder)
        for stored in make(Path(folder)):
            unseen = list(flip(stored, chosen.each, random.Random(chosen.seed)))
            tried[stored.kind] = chosen.each
            faults += [f"{stored.kind}: bit {bit} of byte {place}" for place, bit in unseen]
    finish(tried, faults, "flipped bits", chosen.json)


def flip(stored: Stored, count: int, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Flip bits one at a time; yields those that changed what is read without a word."""
    good, whole = stored.path.read_bytes(), stored.read()
    stored.path.chmod(0o644)
    for _ in range(count):
        place, bit = rng.randrange(len(good)), rng.randrange(8)
        stored.path.write_bytes(good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :])
        try:
            same = stored.read() == whole
        except InputError:
            continue
        if not same:
            yield place, bit
    stored.path.write_bytes(good)


def make(home: Path) -> Iterator[Stored]:
    """One file of each kind."""
    before, after = (
        samples(random_scores(seed), response="an answer", model=f"m{seed}") for seed in (1, 2)
    )
    before.write("log.parquet")
    yield Stored("Samples", home / "log.parquet", lambda: rows(home / "log.parquet"))
    after.write("after.parquet")
    result = forgetmap.compare("log.parquet", "after.parquet", save="saved")
    yield Stored("saved items", home / "saved/items.parquet", lambda: saved(home / "saved"))
    result.write("map.json")
    yield Stored("map", home / "map.json", lambda: _text("map.json", forgetmap.ForgettingMap))
    lines = "checkpoints:\n  one: {log: log.parquet}\n  two: {log: after.parquet, parents: one}\n"
    Path("pipeline.yaml").write_text(lines)
    Path("lineage.json").write_text(lineage("pipeline.yaml").to_json())
    yield Stored("lineage", home / "lineage.json", lambda: _text("lineage.json", Lineage))
    kept = baseline.save_baseline("base", "log.parquet", store="store")
    yield Stored("name of a baseline", home / "store/names/base.json", _baseline)
    yield Stored("content of a baseline", home / f"store/objects/{kept.sha256}.parquet", _baseline)
    for _ in range(3):
        baseline.compare_with_baseline("base", "after.parquet", store="store")
    yield Stored("history", home / "store/history.jsonl", _History())
    with Store("run") as store:
        store.append({f"k{i}": {"text": f"answer {i}"} for i in range(40)})
    yield Stored("answers", home / "run" / FILE, _Answers())


def rows(path: Path) -> Any:
    return [batch.to_pylist() for batch in Samples.read(path).to_batches()]


def saved(folder: Path) -> Any:
    opened = open_saved(folder)
    return opened.result, opened.store.groups, opened.store.sample(10_000).to_pylist()


def _text(name: str, kind: Any) -> Any:
    return kind.from_json(Path(name).read_bytes())


def _baseline() -> Any:
    return rows_of(baseline.open_baseline("base", "store"))


def rows_of(opened: Any) -> Any:
    kept, log = opened
    return kept, [batch.to_pylist() for batch in log.to_batches()]


class _History:
    """The entries that are left and how many were damaged: none may be lost without a word."""

    whole: Any = None

    def __call__(self) -> Any:
        history = baseline.read_history("base", "store")
        self.whole = self.whole or history.entries
        lost = len(self.whole) - len(history.entries)
        same = all(entry in self.whole for entry in history.entries)
        return same and lost <= history.damaged


class _Answers:
    """The stored answers that are left: a damaged one is asked again, never taken as it is."""

    whole: Any = None

    def __call__(self) -> Any:
        with Store("run") as store:
            left = {key: store[key] for key in (f"k{i}" for i in range(40)) if key in store}
        self.whole = self.whole or left
        return all(self.whole.get(key) == answer for key, answer in left.items())


if __name__ == "__main__":
    main()
