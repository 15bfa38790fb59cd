"""How far the weights moved, printed by layer and by kind of module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent
from forgetmap.mitigate.merge.weight_drift import DriftSummary, WeightDrift

if TYPE_CHECKING:
    from rich.console import Console


def print_drift(result: WeightDrift, out: Console) -> None:
    """Print the drift by layer and by kind of module."""
    names = f"{clean(result.before, 40)} -> {clean(result.after, 40)}"
    moved = percent(result.total.relative, 2)
    out.print(Text(f"weights moved by {moved} of their norm: {names}", style="bold"))
    out.print()
    for title, groups in (("layer", result.layers), ("module", result.modules)):
        out.print(_table(title, {**groups, "all": result.total}))
        out.print()
    out.print(
        Text(
            "moved: norm of the change, and its share of the norm before. rank: mean effective "
            "rank of the change; stable: mean stable rank. intruders: of the "
            f"{result.top} leading directions of each matrix after, those whose cosine with every "
            f"direction before is below {result.strange:g}.",
            style="dim",
        )
    )


def _table(title: str, groups: dict[str, DriftSummary]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(title, overflow="ellipsis", no_wrap=True)
    for name in ("tensors", "moved", "moved %", "cosine", "rank", "stable", "intruders"):
        table.add_column(name, justify="right")
    for name, found in groups.items():
        ranks = (
            "-" if value is None else f"{value:.1f}"
            for value in (found.effective_rank, found.stable_rank)
        )
        table.add_row(
            Text(clean(name, 40)),
            f"{found.tensors}",
            f"{found.norm:.3g}",
            percent(found.relative, 2).removesuffix(" %"),
            f"{found.cosine:.5f}",
            *ranks,
            "-" if found.intruders is None else f"{found.intruders}",
        )
    return table
