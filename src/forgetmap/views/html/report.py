"""One page with everything in it: the map, the items, the charts' library, style and script.

The same page stands in a file, with the items inside, and behind `forgetmap serve`, which it then
asks for them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import tempfile
from functools import cache
from importlib import resources
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from forgetmap.base.files import write_text
from forgetmap.base.words import clean
from forgetmap.map.items import PAGE, ItemStore, write_items
from forgetmap.views.html import report_words as words

if TYPE_CHECKING:
    from forgetmap.map.comparison import Comparison
    from forgetmap.map.result import ForgettingMap

MOST_ITEMS = 100_000
"""Items listed in a file; `forgetmap serve` lists all."""
TEXT_BYTES = 14_000_000
"""Room for the texts of changed items in a file, as they stand there: packed, in base64."""
_PART = 256
"""Items whose texts are packed together: opening one item unpacks no more than these."""
_SCRIPTS = (
    "basics.js",
    "difference.js",
    "charts.js",
    "summary.js",
    "tasks.js",
    "sources.js",
    "items.js",
    "main.js",
)


class Listing(NamedTuple):
    """The items that go into a file."""

    facts: dict[str, Any]
    packed: str
    texts: list[str]


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Write the report: one HTML file that needs nothing else, not even a network.

    Args:
        comparison: The compared logs, read with their text.
        path: The file to write.

    Example:
        >>> import forgetmap
        >>> from forgetmap.map import example_logs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = forgetmap.compare(*example_logs(), report=f"{folder}/map.html")  # calls it
        ...     Path(folder, "map.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
    """
    with tempfile.TemporaryDirectory(prefix="forgetmap-") as folder:
        items = Path(folder, "items.parquet")
        write_items(comparison, items)
        write_text(path, render(comparison.map, ItemStore(items)))


def render(
    result: ForgettingMap, store: ItemStore, *, remote: bool = False, index: bool = False
) -> str:
    """The page of a comparison.

    `remote` leaves the items to a server, `index` says that it has a list of comparisons.
    """
    listing = Listing({}, "", []) if remote else _listing(store)
    facts = {
        "sentence": words.verdict_sentence(result),
        "basis": words.basis(result),
        "estimators": [explained._asdict() for explained in words.ESTIMATORS],
        "versions": {"forgetmap": result.forgetmap_version, "plotly": version("plotly")},
        "groups": [(g.task, g.transition, g.cause, g.size) for g in store.groups],
        "items": store.total,
        "changed": store.changed,
        "page": PAGE,
        "remote": remote,
        "index": index,
        **listing.facts,
    }
    return Template(read("page.html")).substitute(
        policy=policy(remote=remote),
        title=html.escape(f"{clean(result.before.name, 60)} → {clean(result.after.name, 60)}"),
        sentence=html.escape(words.verdict_sentence(result)),
        style=read("page.css"),
        map=embedded(result.model_dump_json().encode()),
        facts=embedded(orjson.dumps(facts)),
        listing=listing.packed,
        texts="\n".join(
            f'<script type="text/plain" class="texts">{t}</script>' for t in listing.texts
        ),
        plotly=_packed_plotly(),
        script=_script(),
    )


def policy(*, remote: bool) -> str:
    """The page's content security policy: nothing from anywhere, and only our two scripts run.

    Styles have to be allowed inline, because plotly sets them on what it draws; where nothing can
    be fetched, a style can do no more than look wrong.
    """
    scripts = " ".join(f"'sha256-{digest(text)}'" for text in (_script(), _plotly()))
    server = "'self'" if remote else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        f"connect-src {server}; base-uri 'none'; form-action 'none'"
    )


def embedded(data: bytes) -> str:
    r"""JSON that can stand inside a script element, whatever text is in it.

    Example:
        >>> embedded(b'{"name": "</script>&"}')
        '{"name": "\\u003c/script\\u003e\\u0026"}'
    """
    text = data.decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def packed(text: str | bytes) -> str:
    """Text as base64 of gzip; the same bytes for the same text."""
    data = text.encode() if isinstance(text, str) else text
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def _listing(store: ItemStore) -> Listing:
    rows = store.sample(MOST_ITEMS)
    keys = zip(*(rows[name].to_pylist() for name in ("task", "transition", "cause")), strict=True)
    groups = [(*key, sum(1 for _ in run)) for key, run in groupby(keys)]
    place = {number: index for index, number in enumerate(rows["file_row_number"].to_pylist())}
    texts: list[str] = []
    text_of: list[list[int]] = []
    room = TEXT_BYTES
    for numbers, contents in store.texts(MOST_ITEMS, _PART):
        part = packed(orjson.dumps(contents))
        room -= len(part)
        if room < 0:
            break
        texts.append(part)
        text_of.append([place.get(number, -1) for number in numbers])
    columns = ("item", "item_ref", "k", "before", "after")
    content = {name: rows[name].to_pylist() for name in columns}
    facts = {"listed": rows.num_rows, "with_text": sum(len(part) for part in text_of)}
    return Listing(
        facts, packed(orjson.dumps(content | {"groups": groups, "texts": text_of})), texts
    )


@cache
def read(name: str) -> str:
    """A file of the page."""
    return (resources.files("forgetmap.views.html") / "assets/report" / name).read_text(
        encoding="utf-8"
    )


@cache
def _script() -> str:
    """Our script: its files in order, in one scope of its own."""
    parts = "\n".join(read(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text


@cache
def _packed_plotly() -> str:
    return packed(_plotly())


def digest(text: str) -> str:
    """Hash of an inline script or style, as a content policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
