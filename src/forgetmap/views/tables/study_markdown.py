"""A study as Markdown: every table that it has, whole, with one row for each kind of training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from forgetmap.base.words import clean, code_span
from forgetmap.stats.estimate import Estimate, interval
from forgetmap.study.against import title
from forgetmap.study.result import (
    Against,
    CapabilityCell,
    Level,
    Overlap,
    Share,
    StudiedPair,
    StudyResult,
    TradeOff,
)
from forgetmap.study.units import find_units, kind_name, show, telling
from forgetmap.views.words import p_value, points, short_range

Row = Sequence[str]


def to_markdown(result: StudyResult) -> str:
    """All tables of a study, in percent and points, with 95 % intervals.

    Example:
        >>> from forgetmap.study.published import published_study
        >>> to_markdown(published_study()).splitlines()[0]
        '# Study: 47 pairs lost 1.3 to 33.5 %, as published by Harmon et al., arXiv:2510.17776'
    """
    parts = [f"# Study: {clean(result.headline(), 300)}"]
    for name, words, table in _sections(result):
        parts += [f"## {name}", *([words] if words else []), table]
    if told := [*result.warnings, *(f"{name}: {why}" for name, why in _missing(result))]:
        parts += ["## Notes", "\n".join(f"- {code_span(note, 300)}" for note in told)]
    return "\n\n".join(parts) + "\n"


def _sections(result: StudyResult) -> Iterator[tuple[str, str, str]]:
    """The name, what to know, and the table of every part that has something."""
    answers = result.answers
    yield "Kinds of training", _KINDS, _kinds(result)
    yield "Leaderboard", f"Rank 1 lost least. Ranks rest on: {answers.compared_by}.", _board(result)
    if answers.claims:
        told = "Points lost, with p corrected over all that the study claims (Holm)."
        yield "What could be told", told, _claims(result)
    if answers.against and answers.against.kinds:
        yield _upper(title(answers.against)), _AGAINST, _against(answers.against, result)
    if answers.trade_off and answers.trade_off.equal:
        found = answers.trade_off
        yield "Lost at equal learning", f"Intervals over: {found.unit}.", _equal(found)
    if answers.levels:
        yield "By attribute", "Means over pairs, replicates as one.", _levels(answers.levels)
    if asked := [pair for pair in result.pairs if pair.drift and pair.drift.groups]:
        yield "Behaviour", "Change by group of capabilities, in points.", _behaviour(asked)
    if answers.items and answers.items.overlap:
        yield "Items lost together", _OVERLAP, _overlap(answers.items.overlap)


_KINDS = (
    "Lost and gained are in percent of the old items, of known is what was lost in percent of what "
    "was known. Right is in percent, before to after. One training has an interval over items, "
    "several have one over trainings and items."
)
_AGAINST = (
    "More lost and more right than the reference, in points, on the same items. p is of what was "
    "lost, corrected over all rows (Holm). One training has an interval over items, several have "
    "one over trainings and items."
)
_OVERLAP = (
    "Of what one pair lost, how much another lost too. Beyond chance is 0 as chance within tasks "
    "has it, and 100 as alike as can be."
)


def _missing(result: StudyResult) -> Iterator[tuple[str, str]]:
    yield from ((failure.name, failure.reason) for failure in result.failures)
    if result.answers.against:
        yield from result.answers.against.left_out.items()


# --- tables --------------------------------------------------------------------------------------


def _kinds(result: StudyResult) -> str:
    units = find_units(result.pairs)
    names = telling(units)
    pooled = {group.pairs[0]: group for group in result.answers.replicates}
    rows = []
    for unit in units:
        same = [result.pairs[number] for number in unit.members]
        first = same[0]
        several = pooled.get(first.name)
        named = [_value(unit.attributes.get(name)) for name in names] or [code_span(first.name)]
        rows.append(
            [
                *named,
                str(len(same)),
                interval(several.lost) if several else _share(first.old.lost),
                _of_known(same),
                interval(several.gained) if several else _share(first.old.gained),
                _rightness(same, "old"),
                _rightness(same, "new"),
            ]
        )
    head = [code_span(name) for name in names] or ["pair"]
    more = ("trainings", "lost", "of known", "gained", "old right", "new right")
    return _table([*head, *more], rows)


def _board(result: StudyResult) -> str:
    rows = []
    for row in result.answers.leaderboard:
        cell = result.pair(row.name).old
        verdict = cell.verdict
        rows.append(
            [
                code_span(row.name),
                f"{row.rank} ({row.best} to {row.worst})",
                _share(cell.lost),
                _share(cell.gained),
                f"{100 * cell.change.value:+.1f}",
                points(row.hidden),
                f"{verdict.forgetting}, {verdict.net}" if verdict else " ".join(cell.marks),
            ]
        )
    last = "marks" if result.source else "verdict"
    return _table(["pair", "rank", "lost", "gained", "net", "hidden", last], rows)


def _claims(result: StudyResult) -> str:
    rows = [
        [
            code_span(claim.text, 300),
            _signed(claim.estimate),
            p_value(claim.p_adjusted),
            "yes" if claim.claimed else "can't tell",
            claim.unit,
        ]
        for claim in result.answers.claims
    ]
    return _table(["statement", "points", "p", "claim", "over"], rows)


def _against(found: Against, result: StudyResult) -> str:
    names = telling(find_units(result.pairs))
    reference = {pair.name: pair for pair in result.pairs}
    rows = [
        [
            code_span(kind_name(kind.attributes, names) or kind.pairs[0]),
            code_span(kind_name(reference[kind.references[0]].attributes, names)),
            str(len(kind.pairs)),
            *(points(share) for share in (kind.reference_lost, kind.lost)),
            _signed(kind.more_lost),
            p_value(kind.p_adjusted),
            *(_or_dash(share) for share in (kind.reference_right, kind.right)),
            _signed(kind.more_right),
        ]
        for kind in found.kinds
    ]
    head = ("kind", "reference", "trainings", "reference lost", "lost", "more lost", "p",
            "reference right", "right", "more right")  # fmt: skip
    return _table(head, rows)


def _equal(found: TradeOff) -> str:
    rows = [
        [
            code_span(level.start or "all"),
            points(level.learned),
            _value(method.value),
            interval(method.interval) if method.interval else _or_dash(method.lost),
            method.why or "",
        ]
        for level in found.equal
        for method in level.methods
    ]
    return _table(["from", "learned", clean(found.attribute, 40), "lost", "why not more"], rows)


def _levels(levels: Iterable[Level]) -> str:
    rows = [
        [
            code_span(level.attribute),
            _value(level.value),
            str(level.pairs),
            str(level.units),
            interval(level.interval) if level.interval else points(level.lost),
            points(level.gained),
        ]
        for level in levels
    ]
    return _table(["attribute", "value", "pairs", "kinds", "lost", "gained"], rows)


def _behaviour(pairs: Sequence[StudiedPair]) -> str:
    groups = list(dict.fromkeys(name for p in pairs if p.drift for name in p.drift.groups))
    rows = []
    for pair in pairs:
        cells = pair.drift.groups if pair.drift else {}
        changes = (_change(cells.get(name)) for name in groups)
        rows.append([code_span(pair.name), points(pair.old.lost.value), *changes])
    return _table(["pair", "lost", *groups], rows)


def _overlap(kinds: Iterable[Overlap]) -> str:
    rows = [
        [
            kind.kind,
            f"{kind.comparisons:,}",
            f"{kind.together:,}",
            f"{kind.expected:,.0f}",
            interval(kind.beyond_chance) if kind.beyond_chance else "-",
        ]
        for kind in kinds
    ]
    return _table(["two pairs", "comparisons", "lost in both", "by chance", "beyond chance"], rows)


# --- cells ---------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _value(value: float | str | None) -> str:
    return (
        "" if value is None else code_span(show(value)) if isinstance(value, str) else show(value)
    )


def _share(share: Share) -> str:
    if share.range is None:
        spread = f" ± {points(share.deviation)}" if share.deviation is not None else ""
        return points(share.value) + spread
    return interval(share.range.estimate) if share.exact else short_range(share.range)


def _of_known(pairs: Sequence[StudiedPair]) -> str:
    found = [pair.old.lost.of_known for pair in pairs]
    known = [each.value for each in found if each is not None]
    return points(float(np.mean(known))) if len(known) == len(found) else "-"


def _rightness(pairs: Sequence[StudiedPair], which: str) -> str:
    cells = [getattr(pair, which) for pair in pairs]
    if any(cell is None or cell.accuracy_before is None for cell in cells):
        return "-"
    before, after = (
        points(float(np.mean([getattr(cell, f"accuracy_{side}") for cell in cells])))
        for side in ("before", "after")
    )
    return f"{before} to {after}"


def _or_dash(share: float | None) -> str:
    return "-" if share is None else points(share)


def _change(cell: CapabilityCell | None) -> str:
    return "-" if cell is None else _signed(cell.change)


def _signed(found: Estimate | None) -> str:
    """A difference in points with its interval."""
    if found is None:
        return "-"
    value, low, high = (f"{100 * end:+.1f}" for end in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"
