"""The report: one page with the map, the items and everything that shows them.

In a file the page holds the items. Behind `forgetmap serve` it asks the server for them.
"""

from __future__ import annotations

import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.map.cause_checks import CHECKED, CHECKS, FORM, FORM_CHECK
from forgetmap.map.comparison import Comparison
from forgetmap.map.flips import PROBABILITIES
from forgetmap.map.items import PAGE, ItemStore, write_items
from forgetmap.map.result import FORGETTING_WORDS, NET_WORDS, ForgettingMap
from forgetmap.stats.estimate import share
from forgetmap.views import words
from forgetmap.views.html.report_words import ESTIMATORS
from forgetmap.views.html.shell import CONTROLS, FOREST, Page, embedded, packed

MOST_ITEMS = 100_000
"""Items listed in a file; `forgetmap serve` lists all."""
TEXT_BYTES = 14_000_000
"""Room for the texts of changed items in a file, packed and in base64."""
_PART = 256
"""Items whose texts are packed together: opening one item unpacks no more than these."""
_CODED = ("task", "transition", "cause")
_PLAIN = ("item", "item_ref", "k", "before", "after")
_PARTS = (
    *("basics", "outcomes", "difference", "charts", "forest", "summary", "tasks"),
    *("sources", "table", "options", "detail", "items", "main"),
)


class Listing(NamedTuple):
    """The items that go into a file."""

    facts: dict[str, Any]
    packed: str
    texts: list[str]


def write_report(comparison: Comparison, path: str | Path, *, study: str = "") -> None:
    """Write the report: one HTML file that needs nothing else, not even a network.

    Args:
        comparison: The compared logs, read with their text.
        path: The file to write.
        study: The address of the study that the comparison is part of.

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
        try:
            write_items(comparison, items)
        except OSError as error:
            raise InputError(
                f"{items}: writing failed ({error.strerror or error}); make room there, or set "
                f"TMPDIR to a folder with room; {path} was not written"
            ) from error
        write_text(path, render(comparison.map, ItemStore(items), study=study))


def render(
    result: ForgettingMap,
    store: ItemStore,
    *,
    remote: bool = False,
    index: bool = False,
    study: str = "",
) -> str:
    """The page of a comparison.

    `remote` leaves the items to a server, `index` says that it has a list of comparisons, `study`
    is the address of the study that it is part of.
    """
    listing = Listing({}, "", []) if remote else _listing(store)
    facts = {
        "finding": words.finding(result),
        "doubt": words.doubt(result),
        "populations": words.populations(result.old),
        "estimators": [explained._asdict() for explained in ESTIMATORS],
        "verdicts": {"forgetting": FORGETTING_WORDS, "net": NET_WORDS},
        "split": words.is_split(result),
        "marks": {
            "category": words.category_marks(result),
            "task": {name: words.mark(result, [name]) for name in result.tasks},
        },
        "versions": {"forgetmap": result.forgetmap_version, "plotly": version("plotly")},
        "checks": _checks(),
        "groups": [(g.task, g.transition, g.cause, g.size) for g in store.groups],
        "items": store.total,
        "changed": store.changed,
        "with_probability": store.with_probability,
        "page": PAGE,
        "remote": remote,
        "index": index,
        "study": study,
        **listing.facts,
    }
    return page(remote=remote).render(
        before=result.before.name,
        after=result.after.name,
        sentence=f"{words.headline(result)} {words.verdict(result)} {words.basis(result)}",
        version=result.forgetmap_version,
        map=embedded(result.model_dump_json().encode()),
        facts=facts,
        listing=listing,
    )


@cache
def _checks() -> dict[str, Any]:
    """How often the rules of causes were right, for the table of causes."""
    return {
        "answers": CHECKED,
        "form": FORM_CHECK.right / FORM_CHECK.found,
        "formal": FORM,
        "right": {name: share(one.right, one.found).model_dump() for name, one in CHECKS.items()},
    }


@cache
def page(*, remote: bool) -> Page:
    """The shell of the report; `remote` lets it ask its own server."""
    scripts = (*CONTROLS, *FOREST, "shared/snippets.js", *(f"report/{part}.js" for part in _PARTS))
    styles = ("controls.css", "forest.css", "report.css")
    return Page("report.html", styles, scripts, connect="'self'" if remote else "'none'")


def _listing(store: ItemStore) -> Listing:
    rows = store.sample(MOST_ITEMS)
    texts, numbers = _packed_texts(store)
    codes = {name: rows[name].dictionary_encode().combine_chunks() for name in _CODED}
    content: dict[str, Any] = {name: rows[name].to_pylist() for name in _PLAIN}
    if store.with_probability:
        content |= {name: rows[name].to_pylist() for name in PROBABILITIES}
    for name, coded in codes.items():
        content[name] = coded.indices.fill_null(len(coded.dictionary)).to_pylist()
        content[f"{name}_names"] = [*coded.dictionary.to_pylist(), None]
    content["has_text"] = [int(n in numbers) for n in rows["file_row_number"].to_pylist()]
    facts = {"listed": rows.num_rows, "with_text": len(numbers), "part": _PART}
    return Listing(facts, packed(orjson.dumps(content)), texts)


def _packed_texts(store: ItemStore) -> tuple[list[str], set[int]]:
    """The texts of changed items in the order of the list, and the rows that have them.

    Rows that are looked at together are packed together. Where there is no room for all, some are
    drawn; a quick packing says how many fit, and the thorough one is not larger.
    """
    fit, room = 0, TEXT_BYTES
    for part in store.texts(MOST_ITEMS, _PART, drawn=True):
        room -= len(packed(orjson.dumps(part.contents), level=1))
        if room < 0:
            break
        fit += len(part.numbers)
    texts: list[str] = []
    numbers: set[int] = set()
    for part in store.texts(fit, _PART):
        texts.append(packed(orjson.dumps(part.contents)))
        numbers.update(part.numbers)
    return texts, numbers
