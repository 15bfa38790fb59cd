"""The page of a study, and the folder that holds it with a page for each pair.

The folder is a whole site: it needs no server and no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.files import make_folder, write_text
from forgetmap.map.comparison import compare_logs
from forgetmap.map.task_maps import TaskMap
from forgetmap.study.file import Study
from forgetmap.study.result import StudyResult
from forgetmap.views.html.report import write_report
from forgetmap.views.html.shell import CONTROLS, PICTURES, Page, packed, policy_of
from forgetmap.views.html.study_data import page_data
from forgetmap.views.html.study_lives import Lives

INDEX, RESULT, PAIRS = "index.html", "study.json", "pairs"
"""The files of a site."""
_PARTS = (
    *("basics", "state", "save", "heat", "compare", "trade", "scale"),
    *("board", "findings", "items", "drift", "main"),
)
_PAGE = Page(
    "study.html",
    ("controls.css", "study.css"),
    (*CONTROLS, *PICTURES, *(f"study/{part}.js" for part in _PARTS)),
    images="data:",  # a chart is saved as PNG by way of a picture
)
_NO_LOGS = "the single items are not known: these numbers were published without them"
_NOT_STORED = "what became of them is not stored on this machine; run forgetmap study again"


def write_site(
    result: StudyResult,
    folder: str | Path,
    plan: Study | None = None,
    *,
    task_map: str | Path | TaskMap | None = None,
    pages: bool = True,
    tick: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Write the page of a study, and the report of every pair whose logs are at hand.

    Args:
        result: The study.
        folder: Made if it is not there; a site written to it before is replaced.
        plan: The study file, which says where the logs are; without it pairs get no pages.
        task_map: Categories of the tasks; by default the one that the study file names.
        pages: Whether to write a page for each pair; this reads the text of the logs.
        tick: Called with the number of pages that are written, and of all.

    Returns:
        What could not be written, and why.
    """
    folder = Path(folder)
    check_site(folder)
    make_folder(folder)
    written: dict[str, str] = {}
    notes: list[str] = []
    if plan is not None and pages:
        asked = task_map if task_map is not None else plan.task_map
        categories = asked if isinstance(asked, TaskMap | None) else TaskMap.load(asked)
        writer = _Pages(result, plan, folder, categories)
        written, notes = writer.write(tick)
    _remove_old(folder, written)
    reason = _NO_LOGS if result.source else _NOT_STORED
    write_text(folder / INDEX, render(result, written, Lives.of(result.pairs), reason))
    result.write(folder / RESULT)
    return notes


def check_site(folder: Path) -> None:
    """Refuse a folder that holds something else than a site."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULT).is_file():
        raise InputError(f"{folder}: holds other files; name a new folder for the site")


def _remove_old(folder: Path, written: Mapping[str, str]) -> None:
    """Remove the pages of pairs that an earlier run wrote and this one did not."""
    for address, path in find_pages(folder).items():
        if address.startswith(PAIRS) and address not in written.values():
            with suppress(InputError):  # not ours
                policy_of(path)
                path.unlink()


def render(
    result: StudyResult,
    pages: Mapping[str, str],
    lives: Lives | None = None,
    no_lives: str = _NOT_STORED,
) -> str:
    """The page of a study; `pages` has the address of the page of each pair that has one."""
    told = lives.told() if lives else None
    data = page_data(result, pages, told, no_lives)
    return _PAGE.render(
        version=result.forgetmap_version,
        headline=data["headline"],
        hidden=data["hidden"],
        pairs=len(result.pairs),
        has_drift=any(pair.drift for pair in result.pairs),
        data=packed(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)),
    )


def find_pages(folder: Path) -> dict[str, Path]:
    """The pages of a site by their address; empty where a folder holds none.

    Links that lead out of the folder are left out.
    """
    if not ((folder / RESULT).is_file() and (folder / INDEX).is_file()):
        return {}
    files = [folder / INDEX, *sorted((folder / PAIRS).glob("*.html"))]
    inside = [path for path in files if path.resolve().is_relative_to(folder.resolve())]
    return {"": folder / INDEX} | {path.relative_to(folder).as_posix(): path for path in inside}


def file_names(names: Iterable[str], ending: str = ".html") -> dict[str, str]:
    """A file name for each name: safe on every system and in an address, no two alike.

    Example:
        >>> file_names(["smollm2-sft", "a/b", "A b", "../x"])["A b"]
        'A-b-2.html'
    """
    taken: set[str] = set()
    found = {}
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80].strip(".-") or "pair"
        free, number = stem, 2
        while free.lower() in taken:
            free, number = f"{stem}-{number}", number + 1
        taken.add(free.lower())
        found[name] = free + ending
    return found


def _alike(one: float, other: float) -> bool:
    return abs(one - other) < 1e-9


class _Pages:
    """Writes the page of every pair."""

    def __init__(
        self, result: StudyResult, plan: Study, folder: Path, categories: TaskMap | None
    ) -> None:
        self.result, self.plan, self.folder = result, plan, folder
        self.categories = categories

    def write(self, tick: Callable[[int, int], None] | None) -> tuple[dict[str, str], list[str]]:
        """The addresses of the pages, and what could not be written."""
        make_folder(self.folder / PAIRS)
        names = [pair.name for pair in self.result.pairs]
        files = file_names(names)
        planned = {pair.name: pair for pair in self.plan.pairs}
        written: dict[str, str] = {}
        notes = []
        for number, pair in enumerate(self.result.pairs):
            if tick:
                tick(number, len(names))
            log = planned.get(pair.name)
            if log is None:
                notes.append(f"{pair.name}: no page, since the study file does not name it")
                continue
            try:
                comparison = compare_logs(
                    log.before,
                    log.after,
                    before_model=log.before_model,
                    after_model=log.after_model,
                    metric=pair.metric,
                    new=pair.new_tasks,
                    causes=True,
                    **self._how(),
                )
                address = f"{PAIRS}/{files[pair.name]}"
                write_report(comparison, self.folder / address, study=f"../{INDEX}")
                if not _alike(comparison.map.old.lost.value, pair.old.lost.value):
                    notes.append(f"{pair.name}: its page pairs other items than the study does")
            except (InputError, WithheldError) as error:
                notes.append(f"{pair.name}: no page: {error}")
                continue
            written[pair.name] = address
        if tick:
            tick(len(names), len(names))
        return written, notes

    def _how(self) -> dict[str, Any]:
        settings = self.result.settings
        return {
            "task_map": self.categories,
            "threshold": settings.threshold,
            "margin": settings.margin,
            "identity": settings.identity,
            "deterministic": settings.deterministic,
            "draws": settings.draws,
            "seed": settings.seed,
        }
