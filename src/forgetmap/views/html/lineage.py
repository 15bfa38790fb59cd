"""The lineage as one HTML page: graph, heat map, lines along a path, and the items behind them.

The browser lays the graph out, because only it knows how wide it is. Everything from a log is text.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from forgetmap.base.files import write_text
from forgetmap.lineage.build import Builder
from forgetmap.lineage.result import Lineage
from forgetmap.views.html.lineage_data import doubt, finding, page_data
from forgetmap.views.html.lineage_items import listed_items
from forgetmap.views.html.shell import CONTROLS, FOREST, PICTURES, Page, packed

_ITEMS = (
    "shared/snippets.js",
    *(
        f"report/{part}.js"
        for part in ("outcomes", "difference", "sources", "table", "options", "detail", "items")
    ),
)
"""The table of items, as the report has it."""
_PARTS = ("basics", "layout", "graph", "chosen", "heat", "lines", "curves", "items", "main")
_PAGE = Page(
    "lineage.html",
    ("controls.css", "forest.css", "report.css", "lineage.css"),
    (
        *(*CONTROLS, *FOREST, *PICTURES, "lineage/basics.js"),
        *(*_ITEMS, *(f"lineage/{part}.js" for part in _PARTS[1:])),
    ),
    charts=False,
)


def write_page(result: Lineage, builder: Builder, path: str | Path) -> None:
    """Write the page: one HTML file that needs nothing else, not even a network."""
    items = listed_items(builder)
    data = page_data(result, builder) | {"items": items.facts}
    text = _PAGE.render(
        result=result,
        version=result.forgetmap_version,
        finding=finding(result),
        doubt=doubt(result),
        edges=sum(stage.edge for stage in result.comparisons),
        data=packed(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)),
        listing=items.listing,
        texts=items.texts,
    )
    write_text(path, text)
