"""A study for people at a terminal: the leaderboard, what could be told, what failed."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from forgetmap.base.errors import InputError
from forgetmap.base.words import clean, nearest, percent, some
from forgetmap.stats.estimate import Estimate
from forgetmap.study.against import title
from forgetmap.study.result import (
    AtLearning,
    CapabilityCell,
    Claim,
    Effect,
    FactorModel,
    Finding,
    Share,
    Stages,
    Standing,
    StudiedPair,
    StudyResult,
    TradeOff,
)
from forgetmap.study.units import find_units, kind_name, show, telling
from forgetmap.views.terminal.console import (
    Row,
    make_table,
    say,
    say_notes,
    say_table,
    verdict_text,
)
from forgetmap.views.words import p_value, points, short_interval, short_range

_MOST_ROWS = 30
_FEW = 10
_WIDTH = 80
_SORTS: dict[str, Callable[[StudiedPair], float | str]] = {
    "lost": lambda pair: pair.old.lost.value,
    "gained": lambda pair: -pair.old.gained.value,
    "net": lambda pair: -pair.old.change.value,
    "name": lambda pair: pair.name,
}


def check_sort(sort: str, names: set[str]) -> None:
    """Refuse an order that there is not."""
    if sort not in _SORTS and sort not in names:
        known = [*_SORTS, *sorted(names)]
        raise InputError(f"--sort {clean(sort, 60)}: is not known{nearest(sort, known)}")


def print_study(result: StudyResult, out: Console, sort: str = "lost") -> None:
    """Print a study in 80 columns."""
    width = out.width = min(out.width, _WIDTH)
    say(out, result.headline(), "bold")
    out.print()
    _print_leaderboard(result, out, sort, width)
    _print_claims(result, out)
    _print_stages(result, out, width)
    _print_trade_off(result, out, width)
    _print_factors(result, out, width)
    _print_doses(result, out, width)
    _print_against(result, out, width)
    _print_replicates(result, out, width)
    _print_levels(result, out, width)
    _print_drifts(result, out, width)
    _print_items(result, out, width)
    if result.failures:
        say(out, "could not be compared", "bold")
        for failure in result.failures[:_MOST_ROWS]:
            say(out, f"{clean(failure.name, 60)}: {clean(failure.reason, 300)}")
        _more(out, len(result.failures), _MOST_ROWS)
        out.print()
    say_notes(out, result.warnings)
    for mark, meaning in result.marks.items():
        say(out, f"{mark}: {meaning}", "dim")


def _more(out: Console, count: int, shown: int) -> None:
    if count > shown:
        say(out, f"and {count - shown} more: --json has all", "dim")


def _print_leaderboard(result: StudyResult, out: Console, sort: str, width: int) -> None:
    standings = {row.name: row for row in result.answers.leaderboard}
    pairs = sorted(result.pairs, key=lambda pair: _order(pair, sort))
    rows = [_leaderboard_row(pair, standings[pair.name]) for pair in pairs[:_MOST_ROWS]]
    last = "marks" if result.source else "verdict"
    names = ("pair", "rank", "lost %", "gained %", "net", "hid", last)
    say_table(out, make_table(names, rows, left=(last,), width=width, gap=1))
    _more(out, len(pairs), _MOST_ROWS)
    sure = (
        "± the deviation over runs. "
        if result.source
        else "in brackets the 95 % interval over items. "
    )
    judged = (
        "marks: see below. "
        if result.source
        else "verdict: forgetting, net change, corrected over all pairs (Holm); ? is can't tell. "
    )
    say(
        out,
        "rank: 1 lost least; in brackets the ranks that cannot be told apart "
        f"({result.answers.compared_by}). lost, gained: of the old skills, {sure}"
        f"hid: points of loss and gain that cancel out in the average. {judged}"
        "* no other pair lost less and learned more.",
        "dim",
    )
    hidden = [
        pair
        for pair in result.pairs
        if pair.old.verdict and pair.old.verdict.forgetting == "lost" and pair.old.change.value >= 0
    ]
    if hidden:
        say(out, f"In {len(hidden)} pairs the average rose, and yet skills were surely lost.")
    out.print()


def _order(pair: StudiedPair, sort: str) -> tuple[bool, bool, float | str]:
    if sort in _SORTS:
        return False, False, _SORTS[sort](pair)
    value = pair.attributes.get(sort)
    return value is None, isinstance(value, str), value if value is not None else 0.0


def _leaderboard_row(pair: StudiedPair, row: Standing) -> Row:
    cell = pair.old
    rank = f"{row.rank} ({row.best}-{row.worst})" if row.best != row.worst else str(row.rank)
    return (
        f"{clean(pair.name, 60)}{'*' if row.pareto else ''}",
        rank,
        _share_words(cell.lost),
        points(cell.gained.value),
        f"{100 * cell.change.value:+.1f}",
        points(row.hidden),
        verdict_text(cell.verdict.forgetting, cell.verdict.net)
        if cell.verdict
        else " ".join(cell.marks),
    )


def _share_words(share: Share) -> str:
    """With its interval; without one, the deviation that was published in its place."""
    if share.range is None:
        spread = f" ±{points(share.deviation)}" if share.deviation is not None else ""
        return points(share.value) + spread
    return short_interval(share.estimate) if share.exact else short_range(share.range)


def _print_claims(result: StudyResult, out: Console) -> None:
    claims = result.answers.claims
    say(out, "what could be told", "bold")
    if not claims:
        say(out, "Nothing: it takes attributes that differ, each value in two or more pairs, or a")
        say(out, "size, examples, steps, tokens or weight_drift with three values or more.")
        out.print()
        return
    told = [claim for claim in claims if claim.claimed]
    if not told:
        say(out, f"None of the {len(claims)} statements below can be claimed: each may be chance.")
    for claim in claims[:_FEW]:
        say(out, *_claim_words(claim))
    _more(out, len(claims), _FEW)
    say(
        out,
        "95 % intervals in points; p corrected over all that the study claims (Holm); then what "
        "the interval takes as independent. Unless it says matched or trainings, pairs that differ "
        "in one attribute may differ in others.",
        "dim",
    )
    out.print()


def _claim_words(claim: Claim) -> tuple[str, str]:
    low, high = (f"{100 * end:+.2f}" for end in (claim.estimate.low, claim.estimate.high))
    mark = "yes" if claim.claimed else "can't tell"
    text = f"{mark}: {claim.text} ({low} to {high}; p {p_value(claim.p_adjusted)}; {claim.unit})"
    return text, "" if claim.claimed else "dim"


def print_glimpse(result: StudyResult, out: Console) -> None:
    """Print the headline, and what the stages of post-training lost and gained."""
    say(out, result.headline(), "bold")
    if result.answers.stages:
        _print_stage_means(result.answers.stages, out, min(out.width, _WIDTH))


def _print_stages(result: StudyResult, out: Console, width: int) -> None:
    found = result.answers.stages
    if found is None or not found.stages:
        return
    _print_stage_means(found, out, width)
    say(out, "do published findings hold here?", "bold")
    for finding in found.findings:
        say(out, *_finding_words(finding))
    say(
        out,
        "95 % intervals in points; p corrected over all that the study claims (Holm).",
        "dim",
    )
    out.print()


def _print_stage_means(found: Stages, out: Console, width: int) -> None:
    say(out, "stages: means over pairs, replicates as one", "bold")
    rows = [
        (
            stage.name,
            str(len(stage.pairs)),
            short_interval(stage.lost_interval) if stage.lost_interval else _alone(stage.lost),
            short_interval(stage.gained_interval)
            if stage.gained_interval
            else _alone(stage.gained),
        )
        for stage in found.stages
    ]
    names = ("stage", "pairs", "lost %", "gained %")
    say_table(out, make_table(names, rows, width=width, gap=1))
    for value, count in found.unknown.items():
        say(out, f"Not a known stage: {value} ({count} pairs).", "dim")


def _finding_words(finding: Finding) -> tuple[str, str]:
    told = finding.why
    if finding.estimate is not None and finding.p_adjusted is not None:
        value, low, high = (
            f"{100 * end:+.1f}"
            for end in (finding.estimate.value, finding.estimate.low, finding.estimate.high)
        )
        told = f"{finding.why}: {value} ({low} to {high}); p {p_value(finding.p_adjusted)}"
    style = "dim" if finding.verdict == "can't tell" else ""
    return f"{finding.verdict}: {finding.text} [{told}]", style


def _print_trade_off(result: StudyResult, out: Console, width: int) -> None:
    found = result.answers.trade_off
    if found is None or len(found.curves) < 2:
        return
    say(out, f"lost at equal learning, by {clean(found.attribute, 40)}", "bold")
    for start in dict.fromkeys(level.start for level in found.equal):
        if start:
            say(out, f"from {clean(start, 70)}")
        _print_levels_of_learning(found, start, out, width)
    meaning = "the rise on the new tasks" if found.learned_by == "new tasks" else "what was gained"
    if found.note:
        say(out, f"Nothing: {found.note}.")
    else:
        say(
            out,
            f"learned: {meaning}. Losses are interpolated between two trainings of a kind, never "
            f"beyond them. Intervals over: {found.unit}.",
            "dim",
        )
    out.print()


def _print_levels_of_learning(found: TradeOff, start: str, out: Console, width: int) -> None:
    """A row for every method that has a loss at a level; those that have none in one line."""
    rows: list[Row] = []
    without = []
    for level in found.equal:
        if level.start != start:
            continue
        at = percent(level.learned)
        rows += [
            (show(row.value), at, _at_learning(row))
            for row in level.methods
            if row.lost is not None
        ]
        reasons: dict[str, list[str]] = {}
        for row in level.methods:
            if row.lost is None:
                reasons.setdefault(row.why or "not known", []).append(show(row.value))
        without += [f"at {at}, {why}: {some(names, _FEW)}" for why, names in reasons.items()]
    names = (clean(found.attribute, 20), "learned", "lost %")
    say_table(out, make_table(names, rows, width=width, gap=1))
    for line in without:
        say(out, line, "dim")


def _at_learning(row: AtLearning) -> str:
    if row.lost is None:
        return "-"
    return short_interval(row.interval) if row.interval else points(row.lost)


def _print_factors(result: StudyResult, out: Console, width: int) -> None:
    found = result.answers.factors
    if found is None or not (found.models or found.left_out):
        return
    say(out, "what explains it, all other attributes equal", "bold")
    for model in found.models:
        say(out, f"{model.summary[:1].upper()}{model.summary[1:]}.")
    rows = [
        (
            _effect_words(effect),
            model.of,
            f"{100 * effect.estimate.value:+.2f}",
            f"{100 * effect.estimate.low:+.2f} to {100 * effect.estimate.high:+.2f}",
            p_value(effect.p_adjusted),
            "yes" if effect.claimed else "can't tell",
        )
        for model in found.models
        for effect in sorted(model.effects, key=lambda effect: effect.p_value)[:_FEW]
    ]
    if rows:
        names = ("attribute", "of", "points", "95 % interval", "p", "claim")
        say_table(out, make_table(names, rows, left=("of", "claim"), width=width, gap=1))
        _more(out, max(len(model.effects) for model in found.models), _FEW)
        model = found.models[0]
        say(
            out,
            f"{model.method}; {model.cells:,} cells of {model.pairs} pairs; independent: "
            f"{model.unit}; p corrected over all that the study claims (Holm). Explained: share of "
            "the variance by the attributes, and with all random effects: "
            + "; ".join(f"{model.of} {_explained(model)}" for model in found.models)
            + ".",
            "dim",
        )
    for note in dict.fromkeys(note for model in found.models for note in model.notes):
        say(out, f"Note: {note}.")
    for name, reason in found.left_out.items():
        say(out, f"Left out: {clean(name, 40)}: {reason}.", "dim")
    out.print()


def _effect_words(effect: Effect) -> str:
    if effect.value is None:
        return f"{clean(effect.attribute, 30)} doubles"
    reference = "" if effect.reference is None else f", not {show(effect.reference)}"
    return f"{clean(effect.attribute, 30)} {show(effect.value)}{reference}"


def _explained(model: FactorModel) -> str:
    if model.marginal_r2 is None or model.conditional_r2 is None:
        return "not known"
    return f"{percent(model.marginal_r2, 0)} and {percent(model.conditional_r2, 0)}"


def _print_doses(result: StudyResult, out: Console, width: int) -> None:
    doses = sorted(result.answers.doses, key=lambda dose: dose.p_value)
    if not doses:
        return
    say(out, "by dose and category: points lost more each time the dose doubles", "bold")
    rows = [
        (
            clean(dose.category, 40),
            dose.attribute,
            f"{100 * dose.per_doubling.value:+.2f}",
            f"{100 * dose.per_doubling.low:+.2f} to {100 * dose.per_doubling.high:+.2f}",
            p_value(dose.p_adjusted),
            "yes" if dose.claimed else "can't tell",
        )
        for dose in doses[:_FEW]
    ]
    names = ("category", "dose", "points", "95 % interval", "p", "claim")
    say_table(out, make_table(names, rows, left=("dose", "claim"), width=width, gap=1))
    _more(out, len(doses), _FEW)


def _print_replicates(result: StudyResult, out: Console, width: int) -> None:
    found = result.answers.replicates
    if not found:
        return
    say(out, "replicates: the same but for the seed, over trainings and items", "bold")
    names_of_kind = telling(find_units(result.pairs))
    rows = [
        (
            kind_name(group.attributes, names_of_kind) or "all",
            str(len(group.pairs)),
            short_interval(group.lost),
            short_interval(group.gained),
            points(group.deviation),
        )
        for group in found[:_FEW]
    ]
    names = ("kind", "seeds", "lost %", "gained %", "sd")
    say_table(out, make_table(names, rows, width=width, gap=1))
    _more(out, len(found), _FEW)


def _print_against(result: StudyResult, out: Console, width: int) -> None:
    found = result.answers.against
    if found is None:
        return
    say(out, f"{title(found)}: points more lost, on the same items", "bold")
    names_of_kind = telling(find_units(result.pairs))
    rows = [
        (
            kind_name(kind.attributes, names_of_kind) or clean(kind.pairs[0], 60),
            str(len(kind.pairs)),
            f"{100 * kind.more_lost.value:+.1f}",
            f"{100 * kind.more_lost.low:+.1f} to {100 * kind.more_lost.high:+.1f}",
            p_value(kind.p_adjusted),
            f"{100 * kind.more_right.value:+.1f}" if kind.more_right else "-",
        )
        for kind in found.kinds[:_MOST_ROWS]
    ]
    names = ("kind", "seeds", "points", "95 % interval", "p", "new right")
    say_table(out, make_table(names, rows, width=width, gap=1))
    _more(out, len(found.kinds), _MOST_ROWS)
    if found.left_out:
        name, why = next(iter(found.left_out.items()))
        say(out, f"{len(found.left_out)} pairs have no reference; {clean(name, 60)}: {why}", "dim")
    say(
        out,
        "new right: points more right on the new tasks. Intervals over items, with several seeds "
        "over trainings and items; p corrected over all rows (Holm).",
        "dim",
    )
    out.print()


def _print_levels(result: StudyResult, out: Console, width: int) -> None:
    levels = result.answers.levels
    if not levels:
        return
    say(out, "by attribute: means over pairs, replicates as one", "bold")
    rows = [
        (
            f"{clean(level.attribute, 30)} {show(level.value)}",
            str(level.pairs),
            str(level.units),
            short_interval(level.interval) if level.interval else _alone(level.lost),
            points(level.gained),
        )
        for level in levels[:_MOST_ROWS]
    ]
    names = ("attribute", "pairs", "units", "lost %", "gained %")
    say_table(out, make_table(names, rows, width=width, gap=1))
    _more(out, len(levels), _MOST_ROWS)


def _print_drifts(result: StudyResult, out: Console, width: int) -> None:
    pairs = [pair for pair in result.pairs if pair.drift and pair.drift.groups]
    if not pairs:
        return
    groups = list(dict.fromkeys(n for pair in pairs if pair.drift for n in pair.drift.groups))
    say(out, "behaviour: relative change by group of capabilities, in percent", "bold")
    rows = [
        (
            clean(pair.name, 60),
            *(_drift_words(pair.drift.groups.get(name) if pair.drift else None) for name in groups),
        )
        for pair in pairs[:_MOST_ROWS]
    ]
    say_table(out, make_table(("pair", *groups), rows, width=width, gap=1))
    _more(out, len(pairs), _MOST_ROWS)
    say(
        out,
        "negative is worse; in brackets the 95 % interval; ! is sure after correction over all "
        "pairs (Holm); withheld: the base is too small. --json has every capability.",
        "dim",
    )
    out.print()


def _drift_words(cell: CapabilityCell | None) -> str:
    if cell is None:
        return "-"
    if cell.relative is None:
        return "withheld"
    value, low, high = (
        f"{100 * end:+.0f}" for end in (cell.relative.value, cell.relative.low, cell.relative.high)
    )
    return f"{value} ({low}, {high}){'!' * (cell.verdict not in ('undecided', 'equivalent'))}"


def _alone(share: float) -> str:
    return f"{points(share)} (one unit)"


def _print_items(result: StudyResult, out: Console, width: int) -> None:
    items = result.answers.items
    if items is None:
        return
    say(out, "items over pairs", "bold")
    say(
        out,
        f"Of {items.known_twice:,} items that two or more models before knew, "
        f"{items.lost_in_all:,} were lost in every such pair and {items.lost_in_none:,} in none.",
    )
    for overlap in items.overlap:
        beyond = overlap.beyond_chance
        sure = f"; {_plain(beyond)} of the way from chance to alike" if beyond else ""
        say(
            out,
            f"{overlap.kind}: {overlap.together:,} items lost together, {overlap.expected:,.0f} "
            f"by chance ({overlap.comparisons:,} comparisons{sure})",
        )
    if any(overlap.kind != "other log before" for overlap in items.overlap):
        say(out, "Pairs with one log before share its lucky answers, which look like losses in all "
            "of them.", "dim")  # fmt: skip
    rows = [
        (clean(item.task, 40), clean(item.item_ref or item.item, 24), f"{item.lost} of {item.knew}")
        for item in items.most[:_FEW]
    ]
    if rows:
        out.print()
        table = make_table(("task", "item", "lost in"), rows, left=("item",), width=width)
        say_table(out, table)
    else:
        out.print()


def _plain(estimate: Estimate) -> str:
    return f"{percent(estimate.value, 0)} ({points(estimate.low, 0)} to {points(estimate.high, 0)})"
