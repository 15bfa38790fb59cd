"""Can two runs be compared? What they share, settings that differ, signs that one was not run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from forgetmap.base.errors import InputError
from forgetmap.base.model import Frozen
from forgetmap.samples.table import Samples

Identity = Literal["content", "index", "row"]
"""What tells items apart: their content, the harness's ids, or the number of a table's row."""
CHOSEN = "chosen items"
"""The setting of a log whose items were drawn by risk, so that its shares are not those of all."""


def check_whole(sides: Mapping[str, Samples]) -> None:
    """Refuse a log whose items were drawn by risk: every share of it would be too high."""
    for name, samples in sides.items():
        if told := samples.settings.get(CHOSEN):
            raise InputError(
                f"{name}: the log holds {told}; shares of these are not shares of all. "
                "forgetmap forecast BEFORE --check AFTER weighs each item by its chance"
            )


class RowCounts(Frozen):
    """What became of the rows of one log; all of it adds up to what was read.

    Example:
        >>> counts = RowCounts(read=10, paired=7, one_sided=2, other_metrics=1)
        >>> counts.read - counts.accounted
        0
    """

    read: int = 0
    paired: int = 0
    """Rows with a score, of items that were compared."""
    one_sided: int = 0
    """Rows of items that the other log lacks, or has with other content."""
    unscored: int = 0
    """Rows of items in both logs that were not compared, since a score is missing."""
    duplicates: int = 0
    other_metrics: int = 0
    other_tasks: int = 0
    """Rows of tasks that were not compared."""
    other_models: int = 0
    records: int = 0
    """Answers in the files of the log, as the reader counted them; 0 where it did not."""
    left_out: int = 0
    """Of these, how many gave no row; the warnings say why."""

    @property
    def accounted(self) -> int:
        """The sum of all that became of the rows."""
        compared = self.paired + self.one_sided + self.unscored + self.duplicates
        return compared + self.other_metrics + self.other_tasks + self.other_models


class Coverage(Frozen):
    """What was and was not compared; nothing is dropped in silence.

    All counts include the items of tasks that only one log has.
    """

    items_before: int = 0
    items_after: int = 0
    matched: int = 0
    only_before: int = 0
    only_after: int = 0
    conflicts: int = 0
    unscored: int = 0
    """Items in both logs of which one has no score at all."""
    unscored_runs: int = 0
    """Repeats without a score of items that were compared by their other repeats."""
    duplicates: int = 0
    missing_before: list[str] = Field(default_factory=list)
    """Tasks of the other log that this one lacks, or holds under other metrics alone."""
    missing_after: list[str] = Field(default_factory=list)
    identity: Identity = "content"
    rows_before: RowCounts | None = None
    rows_after: RowCounts | None = None

    def share(self, side: str) -> float:
        """The share of one log's items that was compared; items of missing tasks were not."""
        items = self.items_before if side == "before" else self.items_after
        return self.matched / max(1, items)


class Confound(Frozen):
    """A setting in which the two runs differ: a reason for change other than training."""

    setting: str
    before: Any
    after: Any


def _numbers_only(setting: Any) -> Any:
    """A setting without what is no number, which would differ from itself and is no JSON."""
    if isinstance(setting, dict):
        return {name: _numbers_only(value) for name, value in setting.items()}
    if isinstance(setting, list | tuple):
        return [_numbers_only(value) for value in setting]
    return str(setting) if isinstance(setting, float) and not math.isfinite(setting) else setting


def find_confounds(
    before: Mapping[str, Any], after: Mapping[str, Any], tasks: list[str]
) -> list[Confound]:
    """List the settings in which two runs differ.

    A setting kept per task is compared over the given tasks; tasks that differ in the same way make
    one confound.

    Example:
        >>> find_confounds({"few-shot": {"a": 0, "b": 0}}, {"few-shot": {"a": 5, "b": 5}}, ["a"])
        [Confound(setting='few-shot', before=0, after=5)]
        >>> find_confounds({"seed": float("nan")}, {"seed": float("nan")}, [])
        []
    """
    confounds = []
    for name in sorted(before.keys() | after.keys()):
        ours, theirs = _numbers_only(before.get(name)), _numbers_only(after.get(name))
        if not isinstance(ours, dict) or not isinstance(theirs, dict):
            if ours != theirs:
                confounds.append(Confound(setting=name, before=ours, after=theirs))
            continue
        differing: dict[str, list[str]] = {}
        for task in tasks:
            if ours.get(task) != theirs.get(task):
                differing.setdefault(repr((ours.get(task), theirs.get(task))), []).append(task)
        for group in differing.values():
            everywhere = len(group) == len(tasks)
            where = "" if everywhere else f" ({', '.join(group[:3])}{', ...' * (len(group) > 3)})"
            confounds.append(
                Confound(
                    setting=name + where, before=ours.get(group[0]), after=theirs.get(group[0])
                )
            )
    return confounds


def suspicions(before: Samples, after: Samples, *, flipped: bool = False) -> list[str]:
    """What two runs reveal together that neither shows alone.

    Different weights that gave the same numbers in every sample were most likely not both run
    (a cache that goes by the name of a folder does this); equal weights under two names make a map
    of nothing but noise.

    Args:
        before: The first run's results.
        after: The second run's.
        flipped: Whether an item turned right or wrong, so that the runs are known to differ.

    Example:
        >>> from forgetmap.samples.table import Meta, Samples
        >>> def run(name, weights):
        ...     row = {"model": name, "item": 1, "score": 1.0, "gold_probability": 0.5}
        ...     return Samples.from_rows([row], Meta(settings={name: {"weights": weights}}))
        >>> suspicions(run("a", "1234"), run("b", "1234"))
        ['both models have the same weights (1234): only noise can differ']
        >>> suspicions(run("a", "1234"), run("b", "5678"))
        ['the weights differ but every sample is identical: was the second model really run?']
    """
    ours, theirs = (samples.settings.get("weights") for samples in (before, after))
    if ours is None or theirs is None:
        return []
    if ours == theirs:
        return [f"both models have the same weights ({ours}): only noise can differ"]
    if not flipped and _content(before) == _content(after):
        return [
            "the weights differ but every sample is identical: was the second model really run?"
        ]
    return []


def _content(samples: Samples) -> tuple[int, int]:
    """The number of rows and a sum of their hashes: the same for the same rows in any order."""
    columns = ["task", "item", "repeat", "metric", "score", "gold_probability", "response"]
    count = total = 0
    for batch in samples.to_batches(columns):
        count += len(batch)
        total += sum(map(hash, zip(*(batch[name].to_pylist() for name in columns), strict=True)))
    return count, total
