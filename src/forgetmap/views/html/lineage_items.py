"""The items of a lineage that its page lists: their outcome at every checkpoint, and the texts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from forgetmap.lineage.build import Builder
from forgetmap.lineage.lives import KINDS
from forgetmap.pairing.many_logs import ItemText
from forgetmap.views.html.shell import packed

MOST_ITEMS = 4000
"""Items listed on a page; the tables of --flips and --lives list all."""
TEXT_BYTES = 10_000_000
"""Room for the texts of a page, packed and in base64."""
_PART = 128
"""Items whose texts are packed together: opening one item unpacks no more than these."""
_FETCHED = 8 * _PART
_MOST_CHARACTERS = 4000


class ListedItems(NamedTuple):
    """The items that go into a page."""

    facts: dict[str, int]
    listing: str
    texts: list[str]


def listed_items(builder: Builder) -> ListedItems:
    """The items that changed between a checkpoint and one of its parents, drawn at random."""
    outcomes = builder.outcomes
    changed = _changed(builder)
    chosen = changed
    if len(changed) > MOST_ITEMS:
        luck = np.random.default_rng(builder.plan.seed)
        chosen = np.sort(luck.choice(changed, MOST_ITEMS, replace=False))
    names = outcomes.logs.item_names(chosen) if len(chosen) else {}
    # By task, so that a filter by task is a run of rows.
    rows = sorted(chosen.tolist(), key=lambda item: (names[item].task, item))
    right = np.where(outcomes.runs > 0, outcomes.right / np.maximum(outcomes.runs, 1), np.nan)
    listing = {
        "numbers": rows,
        "task": [names[item].task for item in rows],
        "item": [names[item].item for item in rows],
        "item_ref": [names[item].item_ref for item in rows],
        "shares": [_shares(line) for line in right[:, rows]],
        "kinds": [lives.kinds[rows].tolist() for lives in builder.lives.values()],
        "kind_names": KINDS,
    }
    texts = _texts(builder, rows)
    facts = {
        "changed": len(changed),
        "listed": len(rows),
        "with_text": min(len(rows), _PART * len(texts)),
        "part": _PART,
    }
    return ListedItems(facts, packed(orjson.dumps(listing)), texts)


def _changed(builder: Builder) -> NDArray[np.int64]:
    found = np.zeros(builder.states.shape[1], bool)
    for before, after in builder.pipeline.edges:
        was, now = (builder.states[builder.outcomes.index(name)] for name in (before, after))
        found |= (was >= 0) & (now >= 0) & (was != now)
    return np.flatnonzero(found)


def _shares(line: NDArray[np.float64]) -> list[float | int | None]:
    """How often each item was right; null where it is missing."""
    return [
        None if np.isnan(share) else int(share) if share == int(share) else round(share, 4)
        for share in line.tolist()
    ]


def _texts(builder: Builder, rows: list[int]) -> list[str]:
    """The texts in parts, as many as there is room for."""
    parts: list[str] = []
    room = TEXT_BYTES
    texts: dict[int, dict[int, ItemText]] = {}
    for start in range(0, len(rows), _PART):
        if start % _FETCHED == 0:  # asking goes through all logs
            texts = builder.outcomes.logs.item_texts(np.array(rows[start : start + _FETCHED]))
        items = rows[start : start + _PART]
        part = packed(orjson.dumps([_told(texts.get(item, {})) for item in items]))
        room -= len(part)
        if room < 0:
            break
        parts.append(part)
    return parts


def _told(answers: dict[int, ItemText]) -> list[Any]:
    """The question and the target once, then what each checkpoint said."""
    prompt = next((text.prompt for text in answers.values() if text.prompt), None)
    target = next((text.target for text in answers.values() if text.target), None)
    said = {
        str(node): [_cut(text.answer), _cut(text.response), text.status]
        for node, text in answers.items()
    }
    return [_cut(prompt), _cut(target), said]


def _cut(text: str | None) -> str | None:
    """A longer text is cut where it is shown; the end of it, where a question stands, is kept."""
    return (
        text if text is None or len(text) <= _MOST_CHARACTERS else f"… {text[-_MOST_CHARACTERS:]}"
    )
