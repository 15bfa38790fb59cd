"""How far the weights moved, printed by layer and by kind of module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent
from forgetmap.mitigate.merge.weight_drift import DriftSummary, WeightDrift
from forgetmap.views.terminal.console import Row, make_table, say, say_table
from forgetmap.views.words import points

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS = ("tensors", "moved", "moved %", "cosine", "rank", "stable", "intruders")


def print_drift(result: WeightDrift, out: Console) -> None:
    """Print the drift by layer and by kind of module."""
    names = f"{clean(result.before, 40)} -> {clean(result.after, 40)}"
    moved = percent(result.total.relative, 2)
    say(out, f"weights moved by {moved} of their norm: {names}", "bold")
    out.print()
    for title, groups in (("layer", result.layers), ("module", result.modules)):
        rows = [_row(name, group) for name, group in {**groups, "all": result.total}.items()]
        say_table(out, make_table((title, *_COLUMNS), rows, width=out.width))
    say(
        out,
        "moved: norm of the change, and its share of the norm before. rank: mean effective "
        "rank of the change; stable: mean stable rank. intruders: of the "
        f"{result.top} leading directions of each matrix after, those whose cosine with every "
        f"direction before is below {result.strange:g}.",
        "dim",
    )


def _row(name: str, group: DriftSummary) -> Row:
    return (
        clean(name, 40),
        f"{group.tensors}",
        f"{group.norm:.3g}",
        points(group.relative, 2),
        f"{group.cosine:.5f}",
        *(
            "-" if rank is None else f"{rank:.1f}"
            for rank in (group.effective_rank, group.stable_rank)
        ),
        "-" if group.intruders is None else f"{group.intruders}",
    )
