"""How often the rules of causes are right: precision and recall against labels written by hand.

    python table.py

The files of labels keep what the rules `found` when they were first run on the answers of a look.
In the fourth and the eighth look the rules were then mended on the half with even ids. `mended` is
what they found after that, where it differs; the half with odd ids was not read for it. Then they
were mended on all eight looks and frozen, and the ninth was labelled by two readers. Then they were
mended on the ninth too and frozen again, for the tenth; and so for the eleventh. `format`, a cause
of its own up to the tenth, counts as `wrapped`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from scipy import stats

from forgetmap.map.cause_checks import FORM
from forgetmap.map.causes import CAUSES, UNKNOWN, Lost, cause_of, taught_answers
from forgetmap.map.old_maps import MERGED
from forgetmap.stats.estimate import share

LABELLED = Path(__file__).parents[2] / "tests" / "map" / "causes"
Rows = list[dict[str, Any]]
BAR, ENOUGH = 0.9, 20
"""Precision and recall that are asked for, of every cause with so many cases."""
OLD_LOOKS = ("", "fourth_", "fifth_", "sixth_", "seventh_", "eighth_", "ninth_", "tenth_")
FRESH = "eleventh_"
"""The last look, labelled after the rules were frozen and before they were mended on it."""
FROZEN = ("ninth_", "tenth_", FRESH)
"""Looks by today's guide, each labelled by two readers, with the rules run once on it."""

TRUE = (0.95, 0.97, 0.99)
"""True precision and recall for which the page shows the chance to keep the bar."""

_TOLD = ("label", "label_a", "label_b", "found", "mended")
SWEDISH = "tenth-gemma-swedish"


def labelled(look: str = "", *, now: bool = False, merged: bool = True) -> Rows:
    """Every lost answer with its `label` and what the rules `found` when they were first run on it.

    The label is the one of that time, too. With `now`, both are those of today: what the guide
    says now, and what the rules find now. `merged`: a cause that was merged into another one later
    counts as that one.
    """
    labels = {row["id"]: row for row in _lines(LABELLED / f"{look}labels.jsonl")}
    rows = _lines(LABELLED / f"{look}lost_answers.jsonl")
    for row in rows:
        known = labels[row["id"]]
        row |= known | {"moved": "first" in known}
        if now or "found" not in known:
            row["found"] = found_now(row)
        if not now:
            row["label"] = known.get("first", known["label"])
        for name in _TOLD if merged else ():
            if name in row:
                row[name] = MERGED.get(row[name], row[name])
    return rows


def found_now(row: dict[str, Any]) -> str:
    """What the rules of today find."""
    known = {name: row[name] for name in Lost._fields if name in row}
    known["taught"] = taught_answers(row.get("taught", ()))
    return cause_of(Lost(**known)) or UNKNOWN


def developed_on(row: dict[str, Any]) -> bool:
    """Whether an answer is in the half that the rules were developed on."""
    return int(row["id"], 16) % 2 == 0


def scores(rows: Rows, cause: str) -> tuple[int, float | None, float | None]:
    """How many answers have a label, and the precision and recall of the rules on it."""
    table = Counter((row["label"], row["found"]) for row in rows)
    meant = sum(count for (label, _), count in table.items() if label == cause)
    named = sum(count for (_, found), count in table.items() if found == cause)
    hits = table[cause, cause]
    return meant, hits / named if named else None, hits / meant if meant else None


def unread_half(look: str = "eighth_", rows: Rows | None = None) -> Rows:
    """The answers of a look with an odd id, and what the rules found that were mended without them.

    Of a look that was run once, `mended` is there where that differs from `found`.
    """
    rows = labelled(look) if rows is None else rows
    unread = [row for row in rows if not developed_on(row)]
    return [row | {"found": row.get("mended", row["found"])} for row in unread]


def texts() -> list[str]:
    """What the page on causes shows; the last look from when it has labels."""
    labels = LABELLED / f"{FRESH}labels.jsonl"
    rows = labelled(FRESH) if labels.exists() else []
    fresh = [*fresh_look(rows), by_model(rows), *asked_for(rows), classifier(rows)] if rows else []
    fresh += form_or_knowledge()
    tenth = [before_the_merge(), unknown_language()]
    return [*fresh, *tenth, verdict(), *eighth_look().split("\n\n"), earlier_looks()]


def fresh_look(rows: Rows) -> list[str]:
    """How good the frozen rules are, how far the two readers agree, and the table."""
    kept, missed = bar(rows)
    return [
        f"On {len(rows)} answers that were labelled after the rules were frozen the rules agree "
        f"with the label on {_agree(rows)}. Of the {len(kept) + len(missed)} causes with {ENOUGH} "
        f"cases or more, {len(kept)} keep the bar: {_listed(kept) or 'none'}. {len(missed)} miss "
        f"it: {_listed(missed) or 'none'}.",
        _readers(rows),
        _looks({f"{FRESH.strip('_')} look, frozen rules": rows}),
    ]


def form_or_knowledge() -> list[str]:
    """How often the rules tell a matter of form from another answer, and what is right by cause."""
    looks = {look.strip("_"): labelled(look) for look in FROZEN}
    rows = [row for part in looks.values() for row in part]
    parts = [f"{_interval(_same_kind(part))} in the {name} look" for name, part in looks.items()]
    hits = {name: [row["label"] == name for row in rows if row["found"] == name] for name in CAUSES}
    lines = [
        f"| cause | found in {len(rows):,} answers | of these right |",
        "| --- | --- | --- |",
        *(f"| `{name}` | {len(own)} | {_interval(own)} |" for name, own in hits.items() if own),
    ]
    return [
        f"On {len(rows):,} answers they get that right in {_interval(_same_kind(rows))}: in "
        f"{', '.join(parts)}.",
        "\n".join(lines),
    ]


def _same_kind(rows: Rows) -> list[bool]:
    return [(row["label"] in FORM) == (row["found"] in FORM) for row in rows]


def by_model(rows: Rows) -> str:
    """How often rules and label agree on the answers of each model."""
    models: dict[str, Rows] = {}
    for row in rows:
        models.setdefault(row["source"].split(", ")[0], []).append(row)
    parts = [f"{_agree(own)} of {len(own)} ({name})" for name, own in models.items()]
    return f"By the model that answered, they agree on {', '.join(parts)}."


def classifier(rows: Rows) -> str:
    """What a classifier that `learn.py` trained on the looks before says of the last look."""
    pairs = [(row.get("learned", row["found"]), row) for row in rows]
    mended = sum(one == row["label"] != row["found"] for one, row in pairs)
    spoilt = sum(one != row["label"] == row["found"] for one, row in pairs)
    return (
        f"It agrees with the label on {_interval([one == row['label'] for one, row in pairs])} of "
        f"these {len(rows)} answers, the rules alone on {_agree(rows)}: it mends {mended} answers "
        f"and spoils {spoilt}."
    )


def before_the_merge() -> str:
    """What the tenth look found with the causes of its time."""
    rows = labelled("tenth_", merged=False)
    kept, missed = bar(rows)
    return (
        f"With `format` as a cause of its own, as it was then, they agreed on {_agree(rows)}, and "
        f"{len(missed)} of {len(kept) + len(missed)} causes missed the bar."
    )


def unknown_language() -> str:
    """What a language cost in the tenth look that the rules did not know: Swedish."""
    rows = labelled("tenth_")
    missed = [row for row in rows if row["label"] == "language" and row["found"] != "language"]
    known = [row for row in rows if row.get("pair") != SWEDISH]
    swedish = sum(row.get("pair") == SWEDISH for row in missed)
    return (
        f"{swedish} of the {len(missed)} answers that `language` misses are Swedish, which the "
        f"rules did not know then. Without the run in Swedish they agree on {_agree(known)} of "
        f"{len(known)}."
    )


def verdict() -> str:
    """Where the rules stood after the eighth look: on the half that nobody had read for them."""
    rows = unread_half()
    frozen = [row for row in labelled("eighth_") if not developed_on(row)]
    kept, missed = bar(rows)
    return (
        f"On {len(rows)} answers that were not read for them the rules agree with the label on "
        f"{_agree(rows)}; before they were mended it was {_agree(frozen)} of the same answers. Of "
        f"the {len(kept) + len(missed)} causes with {ENOUGH} cases or more there, {len(kept)} keep "
        f"the bar: {_listed(kept)}. {len(missed)} miss it: {_listed(missed)}."
    )


def bar(rows: Rows) -> tuple[list[str], list[str]]:
    """The causes with enough cases that keep the bar, and those that miss it."""
    known = {name: scores(rows, name) for name in (*CAUSES, *MERGED, UNKNOWN)}
    many = [name for name, (meant, _, _) in known.items() if meant >= ENOUGH]
    kept = [name for name in many if all((part or 0) >= BAR for part in known[name][1:])]
    return kept, [name for name in many if name not in kept]


def keeps_by_chance(n: int, total: int, precision: float, recall: float) -> float:
    """The chance that a cause with n of `total` cases keeps the bar, by what is true of the rules.

    Exact. Each case counts on its own: one with the cause is found with the chance `recall`, and
    one without it is taken for it so often that `precision` comes out on average.
    """
    hits = [count for count in range(1, n + 1) if count / n >= BAR]
    most = [int(count / BAR + 1e-9) - count for count in hits]  # false alarms that the bar allows
    alarm = n * recall * (1 - precision) / precision / (total - n)
    chances = stats.binom.pmf(hits, n, recall) * stats.binom.cdf(most, total - n, alarm)
    return float(chances.sum())


def all_keep(rows: Rows, quality: float | None = None) -> float:
    """The chance that all causes with enough cases keep the bar.

    `quality` is the true precision and recall of each; without it, those found in the rows are.
    """
    chance = 1.0
    for n, *found in (scores(rows, name) for name in CAUSES):
        if n >= ENOUGH:
            true = [part or 0 for part in found] if quality is None else [quality] * 2
            chance *= keeps_by_chance(n, len(rows), *true) if all(true) else 0
    return chance


def asked_for(rows: Rows) -> list[str]:
    """What it takes to keep the bar on a sample of this size, for rules and for a reader."""
    count = sum(map(len, bar(rows)))
    same = sum(row["label_a"] == row["label_b"] for row in rows) / len(rows)
    lines = [
        f"| true precision and recall of every cause | all {count} keep the bar |",
        "| --- | --- |",
        *(f"| {100 * true:.0f} % | {_percent(all_keep(rows, true))} |" for true in TRUE),
        f"| {_percent(same)}, as far as the readers agree | {_percent(all_keep(rows, same))} |",
    ]
    return ["\n".join(lines), *_one_reader_as_rules(rows)]


def _one_reader_as_rules(rows: Rows) -> list[str]:
    first = [row | {"label": row["label_a"], "found": row["label_b"]} for row in rows]
    second = [row | {"label": row["label_b"], "found": row["label_a"]} for row in rows]
    (kept, missed), (other, lost) = bar(first), bar(second)
    return [
        f"Held against the first reader, the second keeps the bar for {len(kept)} of "
        f"{len(kept) + len(missed)} causes and misses it for {_listed(missed) or 'none'}. The "
        f"other way round it is {len(other)} of {len(other) + len(lost)}, and {_listed(lost)} "
        f"miss it. If the second reader were always as good as here, the chance to keep the bar "
        f"for all {len(kept) + len(missed)} would be {_percent(all_keep(first))}.",
        _looks({"second reader by the first": first}, last="the two agree"),
    ]


def eighth_look(rows: Rows | None = None) -> str:
    """Two readers against each other, and the rules against the final label, before and after."""
    rows = labelled("eighth_") if rows is None else rows
    parts = {
        "eighth look, frozen rules": rows,
        "its unread half, mended": unread_half(rows=rows),
    }
    kept, missed = bar(rows)
    return (
        f"{_readers(rows)} The frozen rules kept the bar for {_listed(kept) or 'no cause'} and "
        f"missed it for {_listed(missed) or 'none'}.\n\n{_looks(parts)}"
    )


def _readers(rows: Rows) -> str:
    pairs = [(row["label_a"], row["label_b"]) for row in rows]
    same = _interval([a == b for a, b in pairs])
    return (
        f"Two readers labelled {len(rows)} answers. They agree on {same}, Cohen's kappa is "
        f"{kappa(pairs):.2f}."
    )


def earlier_looks() -> str:
    """Every look in a line: what came out when it was run, and how today's rules fit it."""
    lines = [
        "| look | n | agreed when run | kept the bar | missed it | labels moved | agree today |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for look in OLD_LOOKS:
        today = labelled(look, now=True)
        ran = ("-", "-", "-")
        if look:  # what the rules found in the first three looks was not kept
            then = labelled(look)
            kept, missed = bar(then)
            ran = (_agree(then), _listed(kept) or "none", _listed(missed) or "none")
        moved = sum(row["moved"] for row in today)
        cells = (look.strip("_") or "first to third", len(today), *ran, moved, _agree(today))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def kappa(pairs: list[tuple[str, str]]) -> float:
    """Cohen's kappa: how far two readers agree beyond chance.

    Example:
        >>> kappa([("a", "a"), ("a", "a"), ("b", "b"), ("a", "b")])
        0.5
    """
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    ours, theirs = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(count * theirs[name] for name, count in ours.items()) / n**2
    return (same - chance) / (1 - chance) if chance < 1 else 1.0


def _agree(rows: Rows) -> str:
    return _percent(sum(row["label"] == row["found"] for row in rows) / len(rows))


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _looks(parts: dict[str, Rows], last: str = "rules and label agree") -> str:
    heads = [f"{name}, {len(rows)}: n, precision, recall" for name, rows in parts.items()]
    lines = ["| cause | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(parts)]
    for name in (*CAUSES, UNKNOWN):
        if any(name == row["label"] for rows in parts.values() for row in rows):
            cells = " | ".join(_cell_with_intervals(rows, name) for rows in parts.values())
            lines.append(f"| `{name}` | {cells} |")
    agree = [_interval([row["label"] == row["found"] for row in rows]) for rows in parts.values()]
    lines.append(f"| {last} | " + " | ".join(agree) + " |")
    return "\n".join(lines)


def _cell_with_intervals(rows: Rows, cause: str) -> str:
    meant = [row["found"] == cause for row in rows if row["label"] == cause]
    named = [row["label"] == cause for row in rows if row["found"] == cause]
    return f"{len(meant)}, {_interval(named)}, {_interval(meant)}"


def _interval(hits: list[bool]) -> str:
    if not hits:
        return "-"
    part = share(sum(hits), len(hits))
    return f"{_percent(part.value)} ({100 * part.low:.0f} to {100 * part.high:.0f})"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _lines(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    print(*texts(), sep="\n\n")
