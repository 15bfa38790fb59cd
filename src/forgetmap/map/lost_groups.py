"""What was lost, in words: lost items that are alike, by task, cause and wording.

Each item is a bag of words (tf-idf) with two more features, its task and its cause. K-means puts
items that are alike together. No model and no network are needed; with embeddings from a model the
words count by what they mean.
"""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.extras import need
from forgetmap.base.words import clean
from forgetmap.map.causes import UNKNOWN
from forgetmap.map.result import LostExample, LostGroup, LostSummary

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Embed = Callable[[list[str]], Any]
"""Texts in, one row of numbers for each out."""
MOST_GROUPS = 8
"""More than a person reads at once."""
MOST_ITEMS = 5_000
"""Items that are grouped; of more a sample is drawn, and the counts say so."""
_FEWEST = 4
"""Items that a group should have at least."""
_TERMS = 6
_EXAMPLES = 3
_SHOWN = 300
"""Characters of a text in an example."""
_LOOK = 1_000
"""Characters of a text that are compared; of a few-shot prompt the end is the question."""
_TAG_WEIGHT = 0.7
"""How much task and cause count, where the words count 1."""


def summarise(changed: Iterable[pa.Table], *, embed: Embed | None = None) -> LostSummary:
    """Group the lost items by task, cause and wording.

    Args:
        changed: The items that changed, as `Comparison.changed` gives them.
        embed: Turns texts into rows of numbers, where a model is at hand. Without it words count.
    """
    draw = random.Random(0)  # a sample, not a secret
    lost, kept = 0, list[dict[str, Any]]()
    for table in changed:
        for row in table.to_pylist():
            if row["transition"] != "forgotten":
                continue
            lost += 1
            if len(kept) < MOST_ITEMS:
                kept.append(row)
            elif (place := draw.randrange(lost)) < MOST_ITEMS:
                kept[place] = row
    if not kept:
        return LostSummary(lost=0, grouped=0, groups=[])
    words, names = _words(kept)
    features = words if embed is None else _unit(np.asarray(embed([_text(row) for row in kept])))
    labels = _labels(np.hstack([features, _tags(kept)]))
    groups = [
        _group([kept[at] for at in places], words[places], features[places], words.mean(0), names)
        for label in np.unique(labels)
        if len(places := np.flatnonzero(labels == label))
    ]
    groups.sort(key=lambda group: (-group.items, group.name))
    return LostSummary(lost=lost, grouped=len(kept), groups=groups)


def _text(row: dict[str, Any]) -> str:
    """What an item is about and what became of its answer."""
    asked = (row["prompt_after"] or row["prompt_before"] or "")[-_LOOK:]
    return f"{asked}\n{_said(row, 'after')[:_LOOK]}"


def _said(row: dict[str, Any], side: str) -> str:
    return row[f"response_{side}"] or row[f"answer_{side}"] or ""


def _words(rows: list[dict[str, Any]]) -> tuple[Floats, list[str]]:
    """Tf-idf of the words of each item, and the words; no column where the log holds no text."""
    text = _scikit("feature_extraction.text")
    counted = text.TfidfVectorizer(
        stop_words="english",
        token_pattern=r"(?u)\b[^\W\d_]{2,}\b",
        max_features=2_000,
        min_df=1 if len(rows) < 50 else 2,
        sublinear_tf=True,
    )
    try:
        found = counted.fit_transform([_text(row) for row in rows]).toarray()
    except ValueError:  # nothing but stop words and numbers
        return np.zeros((len(rows), 0)), []
    return found.astype(np.float64), list(counted.get_feature_names_out())


def _tags(rows: list[dict[str, Any]]) -> Floats:
    """Task and cause of each item as features."""
    columns = []
    for values in ([row["task"] for row in rows], [row["cause"] for row in rows]):
        known = sorted({value or UNKNOWN for value in values})
        columns += [
            [_TAG_WEIGHT * ((value or UNKNOWN) == one) for value in values] for one in known
        ]
    return np.array(columns, dtype=np.float64).T


def _labels(features: Floats) -> NDArray[np.int64]:
    """The group of each item; as many groups as part best by their silhouette."""
    cluster, metrics = _scikit("cluster"), _scikit("metrics")
    distinct = len(np.unique(features, axis=0))
    most = min(MOST_GROUPS, len(features) // _FEWEST, distinct)
    best = np.zeros(len(features), dtype=np.int64)
    best_score = 0.0
    for number in range(2, most + 1):
        labels = cluster.KMeans(number, n_init=4, random_state=0).fit_predict(features)
        score = metrics.silhouette_score(features, labels, sample_size=1_000, random_state=0)
        if score > best_score:
            best, best_score = labels, score
    return best


def _group(
    rows: Sequence[dict[str, Any]],
    words: Floats,
    features: Floats,
    everywhere: Floats,
    names: list[str],
) -> LostGroup:
    typical = words.mean(0) - everywhere if len(rows) else everywhere
    if not typical.any():  # one group alone: nothing sets it apart
        typical = everywhere
    ranked = np.argsort(-typical, kind="stable")[:_TERMS]
    distance = ((features - features.mean(0)) ** 2).sum(1)
    nearest = np.argsort(distance, kind="stable")[:_EXAMPLES]
    return LostGroup(
        items=len(rows),
        tasks=_counts(row["task"] for row in rows),
        causes=_counts(row["cause"] or UNKNOWN for row in rows),
        terms=[names[at] for at in ranked if typical[at] > 0],
        examples=[_example(rows[at]) for at in nearest],
    )


def _counts(values: Iterable[str]) -> dict[str, int]:
    ranked = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ranked)


def _example(row: dict[str, Any]) -> LostExample:
    prompt = row["prompt_after"] or row["prompt_before"] or ""
    return LostExample(
        task=row["task"],
        item=row["item_ref"] or row["item"] or "",
        cause=row["cause"] or UNKNOWN,
        prompt=clean(prompt.strip()[-_SHOWN:], _SHOWN),
        before=clean(_said(row, "before"), _SHOWN),
        after=clean(_said(row, "after"), _SHOWN),
    )


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Floats = rows / np.where(lengths == 0, 1, lengths)
    return result


def _scikit(module: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise need("--summarise", "summarise") from error
