"""The map to look at: one offline HTML file, and the same page over a local server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from forgetmap.files import write_text
from forgetmap.report.items import ItemStore, write_items
from forgetmap.report.page import render
from forgetmap.report.saved import save_comparison

if TYPE_CHECKING:
    from forgetmap.map import ForgettingMap
    from forgetmap.pairing import Pairs

__all__ = ["save_comparison", "write_report"]


def write_report(result: ForgettingMap, pairs: Pairs, path: str | Path) -> None:
    """Write the report: one HTML file that needs nothing else, not even a network.

    Args:
        result: The map.
        pairs: What it was computed from, read with its text, for the list of items.
        path: The file to write.

    Example:
        >>> import forgetmap
        >>> from forgetmap.comparison import example_logs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = forgetmap.compare(*example_logs(), report=f"{folder}/map.html")  # calls it
        ...     Path(folder, "map.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
    """
    with tempfile.TemporaryDirectory(prefix="forgetmap-") as folder:
        items = Path(folder, "items.parquet")
        write_items(pairs, result.tasks, items)
        write_text(path, render(result, ItemStore(items)))
