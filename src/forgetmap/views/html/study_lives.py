"""What became of single items in every pair of a study, for its page."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.study.result import StudiedPair

MOST = 1000
"""Items whose lives are told: those that most pairs lost."""
MOST_STATES = 100_000_000
"""Items times pairs that are remembered; the rest is not told."""
_STATES = np.array(list("nglk"))
"""Never known, gained, lost, kept: by 2 x knew + knows."""
_NOT_ASKED = "-"
_TEXT = 600
_COLUMNS = ["task", "item", "prompt", "target"]
_STORED = ["task", "key", "item_ref", "knew", "knows"]


class _Seen(NamedTuple):
    """The items of one pair."""

    pair: int
    identity: NDArray[np.uint64]
    state: NDArray[np.int8]


class Lives:
    """Collects the outcomes of the items, pair by pair."""

    def __init__(self, pairs: list[str]) -> None:
        self.pairs = pairs
        self._seen: list[_Seen] = []
        self._names: dict[int, tuple[str, str, str | None]] = {}
        self._known: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._logs: dict[str, None] = {}
        self._states = 0
        self._texts: dict[tuple[str, str], tuple[str | None, str | None]] = {}

    @classmethod
    def of(cls, pairs: Sequence[StudiedPair]) -> Lives | None:
        """The lives in all pairs whose outcomes are stored; None where none are."""
        lives = cls([pair.name for pair in pairs])
        for number, pair in enumerate(pairs):
            if pair.outcomes is not None and pair.before_log is not None:
                lives._add(number, pq.read_table(pair.outcomes, columns=_STORED), pair)
        if not lives._seen:
            return None
        lives._read_texts()
        return lives

    def _add(self, number: int, outcomes: pa.Table, pair: StudiedPair) -> None:
        """Note what became of the old items of a pair."""
        new = pa.array(pair.new_tasks, pa.string())
        outcomes = outcomes.set_column(0, "task", outcomes["task"].cast(pa.string()))
        outcomes = outcomes.filter(pc.invert(pc.is_in(outcomes["task"], new)))
        if self._states + outcomes.num_rows > MOST_STATES:
            return
        self._states += outcomes.num_rows
        self._logs[pair.before_log or ""] = None
        codes = pc.dictionary_encode(outcomes["task"].combine_chunks())
        tags = np.array([_tag(task) for task in codes.dictionary.to_pylist()], np.uint64)
        keys = _numpy(outcomes["key"])
        identity = keys ^ tags[_numpy(codes.indices)] if len(keys) else keys
        knew, knows = (_numpy(outcomes[name]).astype(np.int8) for name in ("knew", "knows"))
        self._seen.append(_Seen(number, identity, 2 * knew + knows))
        self._remember(outcomes, identity)

    def _remember(self, outcomes: pa.Table, identity: NDArray[np.uint64]) -> None:
        """Keep the names of items that were not seen before."""
        new = np.flatnonzero(~np.isin(identity, self._known))
        rows = outcomes.select(["task", "key", "item_ref"]).take(pa.array(new))
        for one, task, key, ref in zip(
            identity[new].tolist(), *(column.to_pylist() for column in rows.columns), strict=True
        ):
            self._names[one] = (task, f"{key:016x}", ref)
        self._known = np.union1d(self._known, identity)

    def _chosen(self) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.intp]]:
        """The items that most pairs lost: who they are, how many pairs knew and lost them."""
        universe = self._known
        knew, lost = (np.zeros(len(universe), np.intp) for _ in range(2))
        for seen in self._seen:
            place = np.searchsorted(universe, seen.identity)
            knew[place] += seen.state >= 2
            lost[place] += seen.state == 2
        order = np.lexsort((universe, knew, -lost))[:MOST]
        order = order[lost[order] > 0]
        return universe[order], knew[order], lost[order]

    def _read_texts(self) -> None:
        """Read what was asked in the items that are told, from the logs before."""
        identities, _, _ = self._chosen()
        open_ = {self._names[int(one)][:2] for one in identities}
        for log in self._logs:
            if not open_:
                return
            try:
                samples = read(Path(log), ReadOptions(text=True))
                wanted = pa.array([int(item, 16) for _, item in open_], pa.uint64())
                for batch in samples.to_batches(_COLUMNS):
                    for row in batch.filter(pc.is_in(batch["item"], wanted)).to_pylist():
                        place = row["task"], f"{row['item']:016x}"
                        if place in open_:
                            self._texts[place] = (row["prompt"], row["target"])
                            open_.discard(place)
            except InputError:
                continue  # its pairs say so themselves

    def told(self) -> dict[str, Any]:
        """The lives, for the page: a letter for each pair."""
        identities, knew, lost = self._chosen()
        order = np.argsort(identities)
        states = np.full((len(identities), len(self.pairs)), _NOT_ASKED)
        for seen in self._seen:
            place = np.searchsorted(identities[order], seen.identity)
            place = np.minimum(place, max(len(order) - 1, 0))
            if not len(order):
                break
            found = identities[order][place] == seen.identity
            states[order[place[found]], seen.pair] = _STATES[seen.state[found]]
        items = []
        for row, one in enumerate(identities.tolist()):
            task, item, ref = self._names[one]
            prompt, target = self._texts.get((task, item), (None, None))
            items.append(
                {
                    "task": task,
                    "item": item,
                    "ref": ref,
                    "knew": int(knew[row]),
                    "lost": int(lost[row]),
                    "states": "".join(states[row].tolist()),
                    "prompt": _short(prompt),
                    "target": _short(target),
                }
            )
        return {"items": items, "all": len(self._known), "most": MOST}


def _tag(task: str) -> int:
    return int.from_bytes(sha256(task.encode("utf-8", "replace")).digest()[:8], "little")


def _numpy(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(flat.to_numpy(zero_copy_only=False))


def _short(text: str | None) -> str | None:
    """The end of a longer text: the question comes after examples."""
    if text is None:
        return None
    return text if len(text) <= _TEXT else f"… {text[-_TEXT:]}"
