"""Every page at three widths, light and dark: nothing overlaps, nothing is cut off."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from browser import chromium, crowded_labels, cut_off, serious_faults, visit
from forgetmap import compare, demo, lineage, study
from forgetmap.capabilities.drift import drift, open_scores
from forgetmap.gate.baseline import compare_with_baseline, save_baseline
from forgetmap.gate.policy import Policy
from forgetmap.map.comparison import compare_logs
from forgetmap.map.saved import open_saved, save_comparison
from forgetmap.views.html.drift import heat_map
from forgetmap.views.html.theory import write_page
from forgetmap.views.html.trend import write_trend
from forgetmap.views.serve import index_page
from places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

LOGS = ROOT / "examples" / "study" / "logs"
WIDTHS = (1440, 768, 360)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def write_trend_page(path: Path) -> None:
    store = path.parent / "store"
    before, after = (LOGS / "told" / f"smollm2-{name}.parquet" for name in PAIR)
    save_baseline("base", before, store=store)
    policy = Policy(limits=[{"where": "old", "measure": "forgetting", "max": 0.05}])
    for _ in range(9):
        compare_with_baseline(
            "base", after, store=store, policy=policy, new=["airports"], draws=200
        )
    write_trend("base", path, store=store)


def write_drift_page(path: Path) -> None:
    sides = [LOGS / "scores" / f"smollm2-{name}.parquet" for name in PAIR]
    result = drift(*sides, manifest="open-suite", draws=200)
    path.write_text(heat_map(result, open_scores(*sides)), encoding="utf-8")


def write_index_page(path: Path) -> None:
    """The index of `serve`, with every kind of verdict that the examples have."""
    before = LOGS / "told" / "smollm2-before.parquet"
    found = []
    for place, log in enumerate(sorted((LOGS / "told").glob("smollm2-airports-*-0.parquet"))):
        folder = path.parent / f"saved-{place}"
        save_comparison(compare_logs(before, log, new=["airports"], draws=200, causes=True), folder)
        found.append(open_saved(folder))
    path.write_text(index_page(found), encoding="utf-8")


def write_long_lineage(path: Path) -> None:
    """A hundred checkpoints: a run, and a branch from every tenth of its checkpoints."""
    draw = random.Random(1)
    right = dict.fromkeys(itertools.product("abcdefgh", range(20)), True)
    lines = []
    for number in range(100):
        name = f"a-checkpoint-with-a-long-name-{100 * number:05d}"
        rows = "".join(f"{t},{t}{q},{int(ok)}\n" for (t, q), ok in right.items())
        (path.parent / f"{name}.csv").write_text(f"task,question,correct\n{rows}")
        parent = number - 1 if number % 10 else number - 10
        made = f", parents: a-checkpoint-with-a-long-name-{100 * parent:05d}" if number else ""
        lines.append(f"  {name}: {{log: {name}.csv, steps: {100 * number}{made}}}\n")
        right = {key: ok if draw.random() < 0.97 else draw.random() < 0.5
                 for key, ok in right.items()}  # fmt: skip
    pipeline = path.parent / "pipeline.yaml"
    pipeline.write_text("checkpoints:\n" + "".join(lines))
    lineage(pipeline, draws=200, report=path)


def write_study_page(path: Path) -> None:
    folder = study("published").report(path.parent / "study")
    (folder / "index.html").rename(path)


PAIR = ("before", "airports-sft-0")
EXAMPLE = ROOT / "examples" / "smollm2-airports"
PAGES = {
    "report": lambda path: demo(report=path),
    "report-lm-eval": lambda path: compare(
        EXAMPLE / "before", EXAMPLE / "after", task_map=EXAMPLE / "tasks.csv", report=path
    ),
    "drift": write_drift_page,
    "trend": write_trend_page,
    "lineage": lambda path: lineage(
        ROOT / "examples" / "study" / "pipeline.yaml", draws=200, report=path
    ),
    "lineage-branches": lambda path: lineage(
        ROOT / "examples" / "lineage" / "pipeline.yaml", draws=200, report=path
    ),
    "lineage-run": lambda path: lineage(
        ROOT / "examples" / "lineage" / "run", draws=200, report=path
    ),
    "lineage-long": write_long_lineage,
    "study": write_study_page,
    "theory": write_page,
    "index": write_index_page,
}
WITHOUT_SECTIONS = ("index",)


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / f"{request.param}.html"
    PAGES[request.param](path)
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_whole_at_every_width(browser: Browser, page: Path, width: int) -> None:
    found = visit(browser, page.as_uri(), width=width, color_scheme="light")
    for scheme in ("light", "dark"):
        found.page.emulate_media(color_scheme=scheme)
        found.page.wait_for_selector(f"html[data-theme={scheme}]")
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        assert crowded_labels(found.page) == []
        assert cut_off(found.page) == []
        assert serious_faults(found.page) == []
    found.assert_quiet(page.as_uri())
    found.page.context.close()


def test_every_page_has_the_same_header_and_footer(browser: Browser, page: Path) -> None:
    found = visit(browser, page.as_uri())
    assert found.count("header.top .brand") == found.count("#theme") == found.count("h1") == 1
    if page.stem not in WITHOUT_SECTIONS:
        assert found.count("header.top nav a") > 1
    assert "Made by forgetmap" in found.text("footer")
    found.page.click("#theme")
    assert found.page.get_attribute("html", "data-theme") == "dark"
    found.page.close()
