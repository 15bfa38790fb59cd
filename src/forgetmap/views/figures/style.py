"""The look of all figures, and how they are saved.

matplotlib draws them, not plotly: plotly's static export (kaleido) needs a Chrome on the machine,
which a cluster node or a CI runner seldom has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from forgetmap.stats.estimate import Range
    from forgetmap.study.result import Share

INK, SOFT, LINE = "#1b1d21", "#5a6069", "#e3e4e6"
LOST, WON, KEPT, NEVER = "#b8440f", "#1f5fa8", "#8b929b", "#d9dbde"
"""Forgotten and gained keep apart for colour-blind eyes, and in print by their brightness."""
WAYS = (("lost", LOST), ("gained", WON))
PALE = 0.35
"""Opacity of the part of a bar that may or may not be lost."""
LONGEST_NAME = 40
SERIES = ("#1f5fa8", "#b8440f", "#2c6a4a", "#7a4fa3", "#8a6d00", "#5a6069")

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "svg.hashsalt": "forgetmap",  # the same figure gives the same file
    "svg.fonttype": "path",  # text as outlines: no font needed to look at it
    "text.usetex": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def style(formulas: bool = False) -> Iterator[None]:
    """Draw in forgetmap's look; `formulas` only where no text comes from a log."""
    try:
        import matplotlib
    except ImportError as error:
        raise need("--figures", "figures") from error
    matplotlib.use("agg")  # no window, ever
    with matplotlib.rc_context({**_STYLE, "text.parse_math": formulas}):
        yield


def check_figures(folder: Path) -> None:
    """Refuse what cannot be drawn or written, before the long part begins."""
    with style():
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file; name a folder for the figures")


def draw_range(axes: Axes, y: float, found: Range | Share, colour: str, height: float) -> None:
    """A bar in percent: full up to the low end, pale up to the high end; its interval as a line."""
    axes.barh(y, 100 * found.high_end, height=height, color=colour, alpha=PALE)
    axes.barh(y, 100 * found.low_end, height=height, color=colour)
    if found.low is not None and found.high is not None:
        axes.plot([100 * found.low, 100 * found.high], [y, y], color=INK, lw=0.9)


def label_ways(figure: Figure, *, ranges: bool) -> None:
    """Say which colour was lost and which gained; with `ranges`, what the pale ones are."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=way) for way, colour in WAYS]
    if ranges:
        handles += [Patch(color=colour, alpha=PALE, label=f"maybe {way}") for way, colour in WAYS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, whole or not at all; returns the files."""
    import matplotlib.pyplot as plt

    written = []
    for suffix, meta in (("svg", {"Date": None}), ("png", {"Software": None})):
        path = Path(folder, f"{name}.{suffix}")
        with replacing(path) as temporary:
            figure.savefig(temporary, format=suffix, dpi=200, metadata=meta)
        written.append(path)
    plt.close(figure)
    return written
