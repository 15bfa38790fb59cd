"""How the results of the Python API show themselves. Each view has one function for each kind."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from forgetmap.base.display import Result, made_from
from forgetmap.base.errors import InputError
from forgetmap.base.words import clean, percent
from forgetmap.capabilities.drift_result import Drift
from forgetmap.lineage.result import Lineage
from forgetmap.map.result import FORGETTING_WORDS, ForgettingMap
from forgetmap.stats.estimate import Range
from forgetmap.study.result import Share, StudyResult
from forgetmap.views import words
from forgetmap.views.figures.style import LOST, WON

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MOST_ROWS = 30


class Bar(NamedTuple):
    """What is drawn of one pair, category or checkpoint: the value and the ends of its interval."""

    name: str
    lost: tuple[float, float, float]
    gained: tuple[float, float, float]


# --- one line -------------------------------------------------------------------------------------


@singledispatch
def in_one_line(result: Result) -> str:
    """What a result says, for a person at a prompt."""
    raise TypeError(type(result))


@in_one_line.register
def _(result: ForgettingMap) -> str:
    cell = result.old
    return clean(
        f"{result.before.name} -> {result.after.name}: lost {words.share_lost(cell.lost)}, "
        f"gained {words.share_lost(cell.gained)} of {cell.n:,} items; verdict: "
        f"{FORGETTING_WORDS[cell.verdict.forgetting]}",
        300,
    )


@in_one_line.register(Lineage)
@in_one_line.register(StudyResult)
@in_one_line.register(Drift)
def _(result: Any) -> str:
    return clean(result.headline(), 300)


# --- tables ---------------------------------------------------------------------------------------


@singledispatch
def to_arrow(result: Result) -> pa.Table:
    """Every cell of a result as a row."""
    raise TypeError(type(result))


@to_arrow.register
def _(result: ForgettingMap) -> pa.Table:
    from forgetmap.views.tables.maps import to_csv

    return _parsed(to_csv(result))


@to_arrow.register
def _(result: StudyResult) -> pa.Table:
    from forgetmap.views.tables.study import to_csv

    return _parsed(to_csv(result))


@to_arrow.register
def _(result: Drift) -> pa.Table:
    return _parsed(result.to_csv())


@to_arrow.register
def _(result: Lineage) -> pa.Table:
    from forgetmap.views.tables.lineage import to_csv

    return _parsed(to_csv(result))


def _parsed(text: str) -> pa.Table:
    """The rows of a CSV text, each column as what it holds."""
    how = pa.csv.ConvertOptions(strings_can_be_null=True)
    rows = pa.csv.ParseOptions(newlines_in_values=True)
    return pa.csv.read_csv(io.BytesIO(text.encode()), convert_options=how, parse_options=rows)


@singledispatch
def flips(result: Result) -> pa.Table:
    """The items that changed, with both answers."""
    raise InputError(
        f"a {type(result).__name__} has no list of items; look at the maps of its pairs"
    )


@flips.register
def _(result: ForgettingMap) -> pa.Table:
    from forgetmap.map.flips import COLUMNS

    return pa.concat_tables([COLUMNS.empty_table(), *made_from(result).changed()])


@flips.register
def _(result: Lineage) -> pa.Table:
    from forgetmap.views.tables.lineage import flips_to_csv

    return _parsed(flips_to_csv(made_from(result)[1]))


def widget(result: Result) -> Any:
    """The items that changed, to look through in a notebook."""
    from forgetmap.views.widget import items_widget

    return items_widget(flips(result))


# --- pictures -------------------------------------------------------------------------------------


def plot(result: Result) -> Figure:
    """What was lost and gained, as a figure: the worst first."""
    return _forest(bars(result))


@singledispatch
def bars(result: Result) -> list[Bar]:
    """What is drawn of a result."""
    raise TypeError(type(result))


@bars.register
def _(result: ForgettingMap) -> list[Bar]:
    names = words.marked_categories(result) or words.marked_tasks(result)
    cells = words.by_loss(result.categories or result.tasks)
    return [_bar(names[name], cell.lost, cell.gained) for name, cell in cells]


@bars.register
def _(result: Lineage) -> list[Bar]:
    steps = [step for step in result.comparisons if step.against_root]
    return [_bar(step.after, step.map.old.lost, step.map.old.gained) for step in steps]


@bars.register
def _(result: StudyResult) -> list[Bar]:
    pairs = sorted(result.pairs, key=lambda pair: -pair.old.lost.value)
    return [_bar(pair.name, pair.old.lost, pair.old.gained) for pair in pairs]


@bars.register
def _(result: Drift) -> list[Bar]:
    """Of every capability the most that can have got worse and better."""
    return [
        Bar(
            clean(f"{cell.code} {cell.name}", 60),
            *((e.value, e.low, e.high) for e in (cell.lost.at_most, cell.gained.at_most)),
        )
        for cell in result.capabilities
        if cell.lost is not None and cell.gained is not None
    ]


def _bar(name: str, lost: Range | Share, gained: Range | Share) -> Bar:
    return Bar(clean(name, 60), _ends(lost), _ends(gained))


def _ends(share: Range | Share) -> tuple[float, float, float]:
    """The value and its interval; published numbers have a deviation in place of one."""
    if share.low is not None and share.high is not None:
        return share.value, share.low, share.high
    spread = share.deviation or 0.0
    return share.value, max(0.0, share.value - spread), share.value + spread


def _forest(shown: Sequence[Bar]) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    names = [escape(bar.name) for bar in shown]  # plotly takes some markup in names
    for kind, colour, mark in (("lost", LOST, "triangle-left"), ("gained", WON, "triangle-right")):
        ends = [getattr(bar, kind) for bar in shown]
        figure.add_trace(
            Scatter(
                x=[value for value, _, _ in ends],
                y=names,
                name=kind,
                mode="markers",
                marker={"color": colour, "symbol": mark, "size": 9},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [high - value for value, _, high in ends],
                    "arrayminus": [value - low for value, low, _ in ends],
                    "color": colour,
                },
                hovertemplate="%{y}: %{x:.1%} " + kind + "<extra></extra>",
            )
        )
    figure.update_layout(
        template="plotly_white",
        height=120 + 24 * len(names),
        margin={"l": 10, "r": 10, "t": 30, "b": 40},
        xaxis={"tickformat": ".0%", "rangemode": "tozero", "title": "share of the items"},
        yaxis={"autorange": "reversed", "automargin": True},
        legend={"orientation": "h", "y": 1.05},
    )
    return figure


# --- pages ----------------------------------------------------------------------------------------


@singledispatch
def report(result: Result, path: str | Path) -> None:
    """Write the page of a result."""
    raise TypeError(f"{path}: no page for a {type(result)}")


@report.register
def _(result: ForgettingMap, path: str | Path) -> None:
    from forgetmap.views.html.report import write_report

    write_report(made_from(result), path)


@report.register
def _(result: Lineage, path: str | Path) -> None:
    from forgetmap.views.html.lineage import write_page

    again, builder = made_from(result)
    write_page(again, builder, path)


@report.register
def _(result: StudyResult, path: str | Path) -> None:
    """A folder with the page of the study; the pages of its pairs are `study(site=...)`."""
    from forgetmap.views.html.study import write_site

    write_site(result, path)


@report.register
def _(result: Drift, path: str | Path) -> None:
    from forgetmap.base.files import write_text
    from forgetmap.views.html.drift import heat_map

    write_text(path, heat_map(result, made_from(result)))


# --- notebooks ------------------------------------------------------------------------------------


@singledispatch
def to_html(result: Result) -> str:
    """What a notebook shows: what the result says, and its first rows."""
    rows = "".join(
        f"<tr><td>{escape(bar.name)}</td><td>{percent(bar.lost[0])}</td>"
        f"<td>{percent(bar.gained[0])}</td></tr>"
        for bar in bars(result)[:_MOST_ROWS]
    )
    head = "<tr><th></th><th>lost</th><th>gained</th></tr>"
    return f"<p>{escape(in_one_line(result))}</p><table>{head}{rows}</table>"


@to_html.register
def _(result: ForgettingMap) -> str:
    from forgetmap.views.notebook import to_html as map_to_html

    return map_to_html(result)
