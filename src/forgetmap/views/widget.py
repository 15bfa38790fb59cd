"""The items that changed, as a table to look through in a notebook."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from forgetmap.base.extras import need
from forgetmap.base.words import clean

MOST_ITEMS = 2000
"""Items that a notebook is given; it keeps them in its file."""
_LONGEST = 2000
_ASSETS = Path(__file__).with_name("html") / "assets"
_COLUMNS = (
    *("task", "item_ref", "transition", "before", "after", "target", "cause"),
    *("answer_before", "answer_after", "prompt_before", "response_before", "response_after"),
)


def items_widget(changed: pa.Table) -> Any:
    """A widget with the items that changed: search, filters, both answers side by side."""
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError as error:
        raise need("the widget", "notebook") from error
    kind = type(
        "Items",
        (anywidget.AnyWidget,),
        {
            "_esm": _ASSETS / "widget.js",
            "_css": (_ASSETS / "widget.css").read_text(encoding="utf-8"),
            "rows": traitlets.List().tag(sync=True),
            "left_out": traitlets.Int(0).tag(sync=True),
        },
    )
    return kind(rows=shown_rows(changed), left_out=max(0, changed.num_rows - MOST_ITEMS))


def shown_rows(changed: pa.Table) -> list[dict[str, Any]]:
    """The first items, losses before gains, with texts that are safe and not endless."""
    order = pa.compute.sort_indices(changed, [("transition", "ascending")])
    rows = changed.take(order[:MOST_ITEMS]).select(list(_COLUMNS)).to_pylist()
    return [
        {name: clean(value, _LONGEST) if isinstance(value, str) else value
         for name, value in row.items()}
        for row in rows
    ]  # fmt: skip
