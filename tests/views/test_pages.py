"""Every page at three widths, light and dark: nothing overlaps, nothing is cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browser import chromium, crowded_labels, cut_off, seen_whole, serious_faults, visit
from forgetmap import compare, demo, lineage, study
from forgetmap.capabilities.drift import drift, open_scores
from forgetmap.gate.baseline import compare_with_baseline, save_baseline
from forgetmap.gate.policy import Policy
from forgetmap.map.comparison import compare_logs
from forgetmap.map.saved import find_saved, open_saved, save_comparison
from forgetmap.views.html.drift import heat_map
from forgetmap.views.html.index import render as render_index
from forgetmap.views.html.theory import write_page as write_theory
from forgetmap.views.html.trend import write_trend
from lineage_logs import write_shape
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


def write_study_page(path: Path) -> None:
    study("published").report(path.parent / "site")
    (path.parent / "site" / "index.html").rename(path)


def write_index_page(path: Path) -> None:
    for name in ("airports-sft-0", "airports-replay-25-0", "airports-merge-linear-0.5-0"):
        sides = [LOGS / "told" / f"smollm2-{one}.parquet" for one in ("before", name)]
        save_comparison(compare_logs(*sides, causes=True, draws=200), path.parent / "saved" / name)
    saved = [open_saved(folder) for folder in find_saved(path.parent / "saved")]
    path.write_text(render_index(saved), encoding="utf-8")


def write_hundred_page(path: Path) -> None:
    lineage(write_shape(path.parent, "mixed"), draws=100, report=path)


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
    "hundred": write_hundred_page,
    "study": write_study_page,
    "theory": write_theory,
    "index": write_index_page,
}


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
        seen_whole(found.page)
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        assert crowded_labels(found.page) == []
        assert cut_off(found.page) == []
        assert serious_faults(found.page) == []
    found.assert_quiet(page.as_uri())
    found.page.context.close()


def test_every_page_has_the_same_header_and_footer(browser: Browser, page: Path) -> None:
    found = visit(browser, page.as_uri())
    assert found.count("header.top .brand") == found.count("#theme") == found.count("h1") == 1
    assert found.count("header.top nav a") > 1
    assert "Made by forgetmap" in found.text("footer")
    found.page.click("#theme")
    assert found.page.get_attribute("html", "data-theme") == "dark"
    found.page.close()
