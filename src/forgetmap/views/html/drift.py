"""The drift as one HTML page: a heat map coloured in both directions, and the items behind it.

Self-contained and still: no script, no network, a content security policy that allows nothing but
the page's own style. Everything from a log is text.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent, some
from forgetmap.capabilities.drift_result import signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forgetmap.capabilities.drift_result import CapabilityDrift, Drift, MetricDrift
    from forgetmap.pairing.scores import ChangedItem, ScoredAnswer, ScorePairs
    from forgetmap.stats.estimate import Estimate

_STEPS = (0.005, 0.02, 0.05, 0.10, 0.20)
"""Relative changes at which the colour deepens."""
_LINES, _LINE = 80, 400
"""Lines of an answer that are shown, and characters of a line."""

# Every common kind of colour blindness tells orange from blue, and purple from green, which mark
# drift that is neither better nor worse. Lightness by step keeps the text on them readable.
_HUES = {"worse": "24 90%", "better": "212 80%", "lower": "276 55%", "higher": "172 60%"}
_LIGHT = (97, 93, 88, 81, 73, 65)
_DARK = (14, 17, 20, 23, 26, 29)
_SURE = 2
"""Depth of colour that an undecided change cannot exceed."""

_STYLE = """
:root{color-scheme:light dark;--ink:#1c1d20;--soft:#5c6068;--line:#d9dbe0;--paper:#fff}
@media (prefers-color-scheme:dark){
:root{--ink:#e8e9ec;--soft:#a3a7b0;--line:#3a3d44;--paper:#16171a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:2rem 1.25rem 4rem;background:var(--paper);
color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.15rem;margin:2.25rem 0 .5rem}
p{margin:.25rem 0}.soft{color:var(--soft)}
table.map{border-collapse:collapse;width:100%;table-layout:fixed}
.map th,.map td{padding:.35rem .5rem .35rem 0;vertical-align:top;text-align:left;
border-top:1px solid var(--line)}
.map th{font-weight:600;width:22%}.map th+th{width:22%}.map th+th+th{width:auto}
@media (max-width:45rem){.map thead{position:absolute;left:-99rem}
.map,.map tbody,.map tr,.map th,.map td{display:block;width:auto}
.map td{border-top:0;padding-top:0}}
ul.tiles{display:flex;flex-wrap:wrap;gap:.35rem;list-style:none;margin:0;padding:0}
.tile{display:block;padding:.3rem .5rem;border-radius:.35rem;border:1px solid var(--line);
color:inherit;text-decoration:none;font-size:.85rem;line-height:1.3}
.tile b{display:block;font-variant-numeric:tabular-nums}
.tile.undecided{border:1px dashed var(--soft)}
a.tile:hover,a.tile:focus-visible{outline:2px solid currentColor}
details{border-top:1px solid var(--line);padding:.4rem 0}
details details{margin-left:1.25rem}
summary{cursor:pointer}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0;font-variant-numeric:tabular-nums}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(18rem,1fr));gap:1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:.25rem 0;padding:.6rem;
border:1px solid var(--line);border-radius:.35rem;font:.85rem/1.45 ui-monospace,monospace}
"""


def heat_map(result: Drift, scores: ScorePairs) -> str:
    """Draw the drift as one page, with the items that changed most under every metric.

    Args:
        result: The drift.
        scores: The scores it was computed from, to read the items from.
    """
    wanted = {
        (cell.task, cell.metric): -1 if cell.direction == "down" else 1 for cell in result.metrics
    }
    items = scores.changed(wanted)
    places = {(cell.task, cell.metric): f"m{n}" for n, cell in enumerate(result.metrics)}
    style = _STYLE + _colours()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = f"{clean(result.before, 60)} to {clean(result.after, 60)}: drift by capability"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>",
        *_head(result, title),
        *_map(result, places),
        *_details(result, places, items),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _colours() -> str:
    """Classes for every hue and depth, in both colour schemes."""
    lines = []
    for scheme, steps, ink in (("light", _LIGHT, "#1c1d20"), ("dark", _DARK, "#fff")):
        rules = "".join(
            f".{name}-{depth}{{background:hsl({hue} {light}%);color:{ink}}}"
            for name, hue in _HUES.items()
            for depth, light in enumerate(steps)
        )
        lines.append(f"@media (prefers-color-scheme:{scheme}){{{rules}}}")
    return "\n".join(lines)


def _head(result: Drift, title: str) -> list[str]:
    settings = result.settings
    legend = "".join(
        f'<li><span class="tile {name}-4">{escape(word)}</span></li>'
        for name, word in (
            ("worse", "worse"), ("better", "better"), ("lower", "lower, neither better nor worse"),
            ("higher", "higher, neither better nor worse"),
        )
    )  # fmt: skip
    notes = [f"{gap.task} {gap.metric}: {gap.reason}" for gap in result.gaps]
    notes += [f"confound: {found.setting} differs" for found in result.confounds]
    listed = "".join(f"<li>{_text(note)}</li>" for note in notes)
    missing = (
        f"<details><summary>{len(notes)} notes: what was not compared, and confounds</summary>"
        f"<ul>{listed}</ul></details>"
    )
    return [
        f"<h1>{_text(title)}</h1>",
        f"<p>{_text(result.headline())}</p>",
        f'<p class="soft">Manifest {_text(settings.manifest)}; margin {percent(settings.margin)}; '
        f"{settings.draws:,} draws; forgetmap {escape(result.forgetmap_version)}. Colours deepen "
        "at relative changes of "
        + ", ".join(percent(step, 1 if step < 0.01 else 0) for step in _STEPS)
        + ". An undecided change is pale, with a dashed border.</p>",
        f'<ul class="tiles" aria-label="Colours">{legend}</ul>',
        missing if notes else "",
    ]


def _map(result: Drift, places: dict[tuple[str, str], str]) -> list[str]:
    parts = []
    groups = {group.name: group for group in result.groups}
    for name in dict.fromkeys(metric.group for metric in result.metrics):
        group = groups.get(name)
        total = f": {_estimate(group.relative)}, {group.verdict}" if group else ""
        parts.append(f"<h2>{_text(name)}{escape(total)}</h2>")
        parts.append(
            '<table class="map"><thead><tr><th scope="col">Capability</th>'
            '<th scope="col">Mean relative change</th><th scope="col">Primary metrics</th></tr>'
            "</thead><tbody>"
        )
        parts += [
            _row(result, capability, places)
            for capability in result.capabilities
            if capability.group == name
        ]
        parts.append("</tbody></table>")
    return parts


def _row(result: Drift, cell: CapabilityDrift, places: dict[tuple[str, str], str]) -> str:
    tiles = [
        _tile(metric, places[metric.task, metric.metric])
        for metric in result.primary
        if metric.capability == cell.code
    ]
    missing = [f"{gap.task} {gap.metric}" for gap in result.gaps if gap.capability == cell.code]
    gaps = f'<p class="soft">Not compared: {_text(some(missing, 4))}</p>' if missing else ""
    out = cell.leave_one_out
    hinge = (
        f'<span class="soft">Without {_text(out.without)}: between {signed(out.low)} and '
        f"{signed(out.high)}</span>"
        if out
        else ""
    )
    share = cell.relative.value if cell.relative else 0.0
    colour = _colour(share, cell.two_sided, cell.verdict)
    return (
        f'<tr><th scope="row">{_text(cell.code)} {_text(cell.name)}</th>'
        f'<td class="sum"><span class="tile {cell.verdict} {colour}">'
        f"{escape(_estimate(cell.relative))}<b>{cell.verdict}</b></span>{hinge}</td>"
        f'<td><ul class="tiles">{"".join(tiles)}</ul>{gaps}</td></tr>'
    )


def _tile(cell: MetricDrift, place: str) -> str:
    share = cell.relative.value if cell.relative else cell.change.value
    if cell.direction == "down":
        share = -share
    colour = _colour(share, cell.direction == "two-sided", cell.verdict)
    shown = signed(cell.relative.value) if cell.relative else f"{cell.change.value:+.3g} absolute"
    return (
        f'<li><a class="tile {cell.verdict} {colour}" href="#{place}">{_text(cell.task)} '
        f"{_text(cell.metric)}<b>{escape(shown)}, {cell.verdict}</b></a></li>"
    )


def _colour(share: float, two_sided: bool, verdict: str) -> str:
    down, up = ("lower", "higher") if two_sided else ("worse", "better")
    depth = sum(abs(share) >= step for step in _STEPS)
    if verdict == "undecided":
        depth = min(depth, _SURE)
    return f"{down if share < 0 else up}-{depth}"


def _details(
    result: Drift,
    places: dict[tuple[str, str], str],
    items: dict[tuple[str, str], list[ChangedItem]],
) -> list[str]:
    parts = ["<h2>Every metric, and the items that changed most</h2>"]
    for cell in result.metrics:
        key = cell.task, cell.metric
        parts.append(
            f"<details><summary>{_text(cell.capability)} {_text(cell.name)}: "
            f"{cell.verdict}</summary>"
            # A link to something inside opens the details.
            f'<div id="{places[key]}">{_facts(cell)}{_items(items.get(key, []))}</div></details>'
        )
    return parts


def _facts(cell: MetricDrift) -> str:
    change = cell.change
    facts = {
        "items": f"{cell.n:,}",
        "before, after": f"{cell.before:.4g}, {cell.after:.4g}",
        "change": f"{change.value:+.4g} ({change.low:+.4g} to {change.high:+.4g})",
        "relative": _estimate(cell.relative) if cell.relative else f"withheld: {cell.withheld}",
        "direction, role": f"{cell.direction}, {cell.role}",
        "p, adjusted": f"{cell.p_value:.3g}, {cell.p_adjusted:.3g} ({cell.test})",
        "margin, smallest detectable": f"{cell.margin:.3g}, {cell.mde:.3g}",
        "failures": f"{percent(cell.failures_before)}, {percent(cell.failures_after)}",
    }
    if cell.flips:
        facts["flips 1→0, 0→1"] = f"{cell.flips.lost:g}, {cell.flips.gained:g}"
    if cell.size:
        standardised = "-" if cell.size.standardised is None else f"{cell.size.standardised:+.2f}"
        facts["standardised, KS distance"] = f"{standardised}, {cell.size.ks:.2f}"
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_text(fact)}</dd>" for name, fact in facts.items())
    return f"<dl>{rows}</dl>"


def _items(items: Sequence[ChangedItem]) -> str:
    if not items:
        return '<p class="soft">No item changed.</p>'
    return "".join(
        f"<details><summary>{_text(found.item.ref or 'item')}: {found.before.value:.3g} → "
        f"{found.after.value:.3g}</summary>"
        f'<p class="soft">Prompt</p>{_block(found.item.prompt)}'
        f'<p class="soft">Gold</p>{_block(found.item.target)}'
        f'<div class="two">{_side("Before", found.before)}{_side("After", found.after)}</div>'
        "</details>"
        for found in items
    )


def _side(name: str, side: ScoredAnswer) -> str:
    extracted = f"; extracted: {_text(side.answer)}" if side.answer is not None else ""
    return (
        f'<div><p class="soft">{name}, {_text(side.status)}{extracted}</p>'
        f"{_block(side.response)}</div>"
    )


def _block(text: str | None) -> str:
    """A longer text, line by line, without what a browser or a reader could be fooled by."""
    lines = (text or "").splitlines()
    shown = "\n".join(clean(line, _LINE) for line in lines[:_LINES])
    more = f"\n[{len(lines) - _LINES} more lines]" if len(lines) > _LINES else ""
    return f"<pre>{escape(shown + more)}</pre>"


def _text(text: object) -> str:
    return escape(clean(text))


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return "withheld"
    return f"{signed(found.value)} ({signed(found.low)} to {signed(found.high)})"
