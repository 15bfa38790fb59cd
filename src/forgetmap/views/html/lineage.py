"""The lineage as one HTML page: graph, heat map, flow, curves, and the items behind them.

Self-contained and still: no script, no network, a content security policy that allows nothing but
the page's own style. Everything from a log is text.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetmap.base.files import write_text
from forgetmap.base.words import clean, percent
from forgetmap.lineage.lives import KINDS, MEANINGS
from forgetmap.stats.estimate import interval
from forgetmap.views.html import lineage_drawings as drawings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from forgetmap.lineage.build import Builder
    from forgetmap.lineage.result import DoseCurve, Lineage, Merge, TrainingRun
    from forgetmap.map.result import Cell
    from forgetmap.pairing.many_logs import ItemName, ItemText
    from forgetmap.stats.estimate import Estimate

    Ints = NDArray[np.int64]

PER_LIST = 10
"""Items shown behind one cell of the heat map, one kind of life line, one merge."""
MOST_ITEMS = 600
"""Items shown in all; a page must stay quick to open."""
MOST_GROUPS = 60
"""Rows of the heat map."""
_STEPS = (0.005, 0.02, 0.05, 0.10, 0.20)
"""Shares forgotten at which the colour deepens."""
_LINES, _LINE = 12, 300
"""Lines of a text that are shown, and characters of a line."""


def write_page(result: Lineage, builder: Builder, path: str | Path) -> None:
    """Write the page: one HTML file that needs nothing else, not even a network."""
    write_text(path, _Page(result, builder).render())


class _Page:
    """Collects which items are shown while the sections are written."""

    def __init__(self, result: Lineage, builder: Builder) -> None:
        self.result = result
        self.builder = builder
        self.shown: dict[int, None] = {}

    def render(self) -> str:
        """The whole page."""
        style = (resources.files("forgetmap.views.html") / "assets/lineage/page.css").read_text(
            "utf-8"
        )
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        )
        sections = [
            *self._head(),
            *self._graph(),
            *self._heat_map(),
            *self._flows(),
            *(part for merge in self.result.merges for part in self._merge(merge)),
            *(part for curve in self.result.dose_curves for part in self._dose_curve(curve)),
            *(part for run in self.result.runs for part in self._run(run)),
        ]
        return "\n".join(
            [
                "<!doctype html>",
                '<html lang="en"><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>Lineage of {_text(self.result.root, 60)} · forgetmap</title>",
                f"<style>{style}</style></head><body><main>",
                *sections,
                *self._items(),
                "</main></body></html>\n",
            ]
        )

    def _head(self) -> list[str]:
        settings = self.result.settings
        notes = "".join(f"<li>{_text(note)}</li>" for note in self.result.warnings)
        links = {"graph": "Graph", "heat": "Where it was lost", "lives": "Life lines"}
        links |= {"merges": "Merges"} if self.result.merges else {}
        links |= {"doses": "Doses"} if self.result.dose_curves else {}
        links |= {"runs": "Runs"} if self.result.runs else {}
        links["items"] = "Items"
        return [
            f"<h1>{_text(self.result.headline(), 400)}</h1>",
            '<nav aria-label="Sections">',
            *(f'<a href="#{place}">{name}</a>' for place, name in links.items()),
            "</nav>",
            f'<p class="soft">{len(self.result.nodes)} checkpoints; task map '
            f"{_text(settings.task_map or 'none')}; {settings.draws:,} draws; forgetmap "
            f"{escape(self.result.forgetmap_version)}. In life lines, merges and doses "
            f"{escape(settings.majority)}; an item that is missing somewhere is counted as "
            "incomplete, never as wrong. Intervals are 95 %.</p>",
            f"<details><summary>{len(self.result.warnings)} notes</summary><ul>{notes}</ul>"
            "</details>"
            if notes
            else "",
        ]

    # --- the graph ------------------------------------------------------------------------------

    def _graph(self) -> list[str]:
        rows = [
            [
                _text(found.before, 60),
                _text(found.after, 60),
                "step" if found.edge else "against the root",
                *_cell(found.map.total),
            ]
            for found in self.result.comparisons
        ]
        names = ("before", "after", "", "items", "forgot %", "gained %", "forgetting", "net")
        return [
            '<h2 id="graph">The graph</h2>',
            '<p class="soft">An edge is as thick as the share forgotten on it, which is '
            "written beside it.</p>",
            drawings.graph(self.result),
            f"<details><summary>All {len(rows)} comparisons as a table</summary>"
            f"{_table(names, rows, 'Comparisons', text=3)}</details>",
        ]

    # --- where it was lost ----------------------------------------------------------------------

    def _heat_map(self) -> list[str]:
        edges = [found for found in self.result.comparisons if found.edge]
        cells = [
            found.map.categories if self.builder.task_map else found.map.tasks for found in edges
        ]
        groups = sorted(
            (group for group in self.builder.groups if any(group in part for part in cells)),
            key=lambda group: -max(p[group].forgot.value for p in cells if group in p),
        )
        heads = "".join(
            f'<th scope="col">{_text(found.before, 40)} → {_text(found.after, 40)}</th>'
            for found in edges
        )
        rows, lists = [], []
        for number, group in enumerate(groups[:MOST_GROUPS]):
            row = [f'<th scope="row">{_text(group, 60)}</th>']
            for column, found in enumerate(edges):
                cell = cells[column].get(group)
                if cell is None:
                    row.append('<td class="soft">none</td>')
                    continue
                lost = self._lost(found.before, found.after, group)
                place = f"lost-{column}-{number}"
                title = f"{found.before} → {found.after}, {group}"
                if len(lost):
                    head = f"{_text(title)}: {len(lost):,} lost"
                    lists.append(f'<div id="{place}"><p>{head}</p>{self._entries(lost)}</div>')
                row.append(_heat_cell(cell, place if len(lost) else None))
            rows.append(f"<tr>{''.join(row)}</tr>")
        left_out = len(groups) - MOST_GROUPS
        more = f" The {MOST_GROUPS} that lost most of {len(groups)}." if left_out > 0 else ""
        kind = "category" if self.builder.task_map else "task"
        return [
            '<h2 id="heat">Where it was lost</h2>',
            f'<p class="soft">Share forgotten by {kind} and stage, with its interval; the colour '
            f"deepens at {', '.join(percent(step, 1 if step < 0.01 else 0) for step in _STEPS)}."
            f"{more} A number leads to the items.</p>",
            '<div class="scroll" tabindex="0" role="region" aria-label="Heat map">'
            f'<table class="heat"><thead><tr><th scope="col">{kind}</th>{heads}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>",
            f"<details><summary>The items behind the numbers</summary>{''.join(lists)}</details>"
            if lists
            else "",
        ]

    def _lost(self, before: str, after: str, group: str) -> Ints:
        outcomes, builder = self.builder.outcomes, self.builder
        was, now = (builder.states[outcomes.index(name)] for name in (before, after))
        inside = builder.group == builder.groups.index(group)
        return np.flatnonzero((was == 1) & (now == 0) & inside)

    def _list(self, place: str, title: str, items: Ints) -> str:
        """A list of items behind a title."""
        return (
            f"<details><summary>{_text(title)}</summary>"
            f'<div id="{place}">{self._entries(items)}</div></details>'
        )

    def _entries(self, items: Ints) -> str:
        """A list of items that leads to each; as many as there is room for."""
        outcomes = self.builder.outcomes
        chosen = items[:PER_LIST].tolist()
        chosen = [i for i in chosen if i in self.shown or len(self.shown) < MOST_ITEMS]
        self.shown |= dict.fromkeys(chosen)
        entries = "".join(
            f'<li><a href="#item-{item}">item {item}</a> '
            f"{_text(outcomes.tasks[outcomes.task[item]], 60)}</li>"
            for item in chosen
        )
        more = len(items) - len(chosen)
        rest = f"<li>{more:,} more; --csv lists all</li>" if more > 0 else ""
        return f"<ul>{entries}{rest}</ul>"

    # --- life lines -----------------------------------------------------------------------------

    def _flows(self) -> list[str]:
        key = {"kept": "stayed known", "lost": "lost", "won": "gained", "never": "stayed not known"}
        parts = [
            '<h2 id="lives">Life lines</h2>',
            '<ul class="key">',
            *(f"<li>{drawings.swatch(style)}{name}</li>" for style, name in key.items()),
            "</ul>",
        ]
        for number, lines in enumerate(self.result.life_lines):
            lives = self.builder.lives[tuple(lines.path)]
            way = " → ".join(clean(name, 40) for name in lines.path)
            parts += [f"<h3>{_text(way, 600)}</h3>", drawings.flow(lines.path, lives)]
            rows = [
                [kind, f"{count:,}", percent(count / lines.items), escape(MEANINGS[kind]),
                 _text(lines.stages(kind), 300)]
                for kind, count in lines.counts.items()
                if count
            ]  # fmt: skip
            names = ("life line", "items", "share", "meaning", "stages")
            parts.append(_table(names, rows, f"Life lines to {lines.path[-1]}", text=1, tail=2))
            parts += [
                self._list(f"life-{number}-{place}", f"{kind}: {lines.counts[kind]:,} items",
                           lives.of_kind(kind))
                for place, kind in enumerate(KINDS)
                if lines.counts[kind] and kind not in ("kept", "never known")
            ]  # fmt: skip
        return parts

    # --- merges and curves ----------------------------------------------------------------------

    def _merge(self, merge: Merge) -> list[str]:
        first = merge.name == self.result.merges[0].name
        rows = [
            [
                _text(" and ".join(part.known_to) or "no parent"),
                f"{part.items:,}",
                f"{part.kept:,}",
                interval(part.share),
            ]
            for part in merge.parts
        ]
        names = ("known to", "items", "known after merging", "share %")
        lost = np.array([item.number for item in merge.listed], np.int64)
        return [
            '<h2 id="merges">Merges</h2>' if first else "",
            f"<h3>{_text(merge.name)}</h3>",
            f"<p>{merge.lost:,} of {merge.items:,} items were known to a parent and lost by "
            f"merging, {merge.new:,} are known to the merge alone; {merge.incomplete:,} are "
            "incomplete.</p>",
            _table(names, rows, f"Merge {merge.name}", text=1),
            self._list(f"merge-{merge.name.encode().hex()}", f"{merge.lost:,} lost by merging",
                       lost) if merge.lost else "",
        ]  # fmt: skip

    def _dose_curve(self, curve: DoseCurve) -> list[str]:
        first = curve is self.result.dose_curves[0]
        title = f"{curve.number} ({curve.form}), against {clean(curve.origin, 60)}"
        rows = [
            [_text(p.checkpoint, 60), f"{p.dose:g}", *map(_or_dash, (p.kept, p.gained))]
            for p in curve.points
        ]
        series = [
            drawings.Series("kept", [point.kept for point in curve.points]),
            drawings.Series("won", [point.gained for point in curve.points]),
        ]
        doses = [point.dose for point in curve.points]
        return [
            '<h2 id="doses">Doses</h2>' if first else "",
            f"<h3>{_text(title)}</h3>",
            _key({"kept": "old knowledge kept", "won": "new knowledge gained"}),
            drawings.curves(doses, series, f"Kept and gained over {title}", curve.number),
            _table(("checkpoint", curve.number, "old kept %", "new gained %"), rows, title, text=1),
        ]

    def _run(self, run: TrainingRun) -> list[str]:
        first = run is self.result.runs[0]
        doses = [
            float(stage) if moment.dose is None else moment.dose
            for stage, moment in enumerate(run.moments, 1)
        ]
        number = run.number or "stage"
        rows = [
            [
                _text(moment.checkpoint, 60),
                f"{dose:g}",
                percent(moment.accuracy).removesuffix(" %"),
                *map(_or_dash, (moment.forgotten, moment.gained, moment.recovered)),
            ]
            for dose, moment in zip(doses, run.moments, strict=True)
        ]
        names = ("checkpoint", number, "accuracy %", "forgot %", "gained %", "recovered %")
        series = [
            drawings.Series("lost", [moment.forgotten for moment in run.moments]),
            drawings.Series("won", [moment.recovered for moment in run.moments]),
        ]
        events = "".join(
            f"<li>{items:,} items forgotten {times} times</li>"
            for times, items in run.times_forgotten.items()
        )
        often = np.array([i.number for i in run.most_forgotten if i.times_forgotten > 1], np.int64)
        key = {
            "lost": "forgotten, against the first checkpoint",
            "won": "recovered, of the items lost before",
        }
        return [
            '<h2 id="runs">Runs</h2>' if first else "",
            f"<h3>{_text(run.path[0], 60)} to {_text(run.path[-1], 60)}</h3>",
            _key(key),
            drawings.curves(doses, series, f"Forgotten and recovered over {number}", number),
            _table(names, rows, f"Run to {run.path[-1]}", text=1),
            f"<details><summary>Forgetting events</summary><ul>{events}</ul></details>",
            self._list(f"often-{run.path[-1].encode().hex()}", "forgotten more than once", often)
            if len(often)
            else "",
        ]

    # --- the items ------------------------------------------------------------------------------

    def _items(self) -> Iterable[str]:
        numbers = np.array(sorted(self.shown), np.int64)
        yield f'<h2 id="items">{len(numbers):,} items</h2>'
        yield (
            '<p class="soft">The items that the lists above name, with what each checkpoint '
            "answered. 1 known, 0 not known, ? missing, in the order of the checkpoints.</p>"
        )
        if not len(numbers):
            return
        logs = self.builder.outcomes.logs
        names, texts = logs.item_names(numbers), logs.item_texts(numbers)
        for item in numbers.tolist():
            states = ["?" if s < 0 else str(s) for s in self.builder.states[:, item].tolist()]
            name, said = names[item], texts.get(item, {})
            asked = next((text for text in said.values() if text.prompt), None)
            prompt = _block("Question", asked.prompt) if asked else ""
            target = next((text.target for text in said.values() if text.target), None)
            sides = "".join(
                _side(checkpoint, state, said.get(number))
                for number, (checkpoint, state) in enumerate(
                    zip(self.builder.outcomes.names, states, strict=True)
                )
            )
            yield (
                f'<details><summary>item {item} <span class="strip">{"".join(states)}</span> '
                f"{_text(name.task, 60)}: {_text(_what(name, asked), 90)}</summary>"
                # A link to something inside opens the details.
                f'<div id="item-{item}">{prompt}'
                f"{_block('Right answer', target) if target else ''}"
                f'<div class="two">{sides}</div></div></details>'
            )


def _what(name: ItemName, asked: ItemText | None) -> str:
    """What tells an item best: its question, else its id."""
    return (asked.prompt if asked else None) or name.item_ref or name.item


def _side(checkpoint: str, state: str, text: ItemText | None) -> str:
    if text is None:
        return f'<div><p class="soft">{_text(checkpoint, 60)}: not in its log</p></div>'
    word = {"1": "known", "0": "not known", "?": "not scored"}[state]
    answer = f"; extracted: {_text(text.answer)}" if text.answer is not None else ""
    said = _block("", text.response) if text.response else ""
    return (
        f'<div><p class="soft">{_text(checkpoint, 60)}: {word}, {_text(text.status)}{answer}</p>'
        f"{said}</div>"
    )


def _block(title: str, text: str | None) -> str:
    """A longer text, line by line, without what a browser or a reader could be fooled by."""
    lines = (text or "").splitlines()
    shown = "\n".join(clean(line, _LINE) for line in lines[:_LINES])
    more = f"\n[{len(lines) - _LINES} more lines]" if len(lines) > _LINES else ""
    head = f'<p class="soft">{escape(title)}</p>' if title else ""
    return f"{head}<pre>{escape(shown + more)}</pre>"


def _heat_cell(cell: Cell, place: str | None) -> str:
    depth = sum(cell.forgot.value >= step for step in _STEPS)
    value = percent(cell.forgot.value)
    shown = f'<a href="#{place}">{value}</a>' if place else value
    ends = (percent(end).removesuffix(" %") for end in (cell.forgot.low, cell.forgot.high))
    return f'<td class="h{depth}">{shown}<small>{" to ".join(ends)}</small></td>'


def _cell(cell: Cell) -> list[str]:
    return [
        f"{cell.n:,}",
        interval(cell.forgot),
        interval(cell.gained),
        cell.verdict.forgetting,
        cell.verdict.net,
    ]


def _key(names: dict[str, str]) -> str:
    entries = (f"<li>{drawings.swatch(style)}{name}</li>" for style, name in names.items())
    return f'<ul class="key">{"".join(entries)}</ul>'


def _table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], label: str, *, text: int, tail: int = 0
) -> str:
    """A table whose first `text` and last `tail` columns are text; the cells are safe already."""

    def style(column: int) -> str:
        is_text = column < text or column >= len(names) - tail
        return ' class="text"' if is_text else ""

    head = "".join(f'<th scope="col"{style(n)}>{_text(name)}</th>' for n, name in enumerate(names))
    body = "".join(
        f"<tr>{''.join(f'<td{style(n)}>{value}</td>' for n, value in enumerate(row))}</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(label)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _or_dash(found: Estimate | None) -> str:
    return "-" if found is None else interval(found)


def _text(text: object, most: int = 200) -> str:
    return escape(clean(text, most))
