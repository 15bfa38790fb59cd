"""The page of a lineage in Chromium: what it shows, where links lead, and text that wants more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browser import Visit, chromium, serious_faults, visit
from forgetmap.api import lineage
from lineage_logs import HISTORY, STAGES, write_history
from logs import write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from forgetmap.lineage.result import Lineage

HOSTILE = '<img src=x onerror="window.hit=1"></script><script>window.hit=1</script>"\'&\u202e\x00'


def opened(browser: Browser, path: Path, scheme: str = "light", width: int = 1280) -> Visit:
    return visit(browser, path.as_uri(), width=width, color_scheme=scheme)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    lineage(write_history(folder), draws=200, report=folder / "lineage.html")
    return folder / "lineage.html"


@pytest.fixture(scope="module")
def visited(browser: Browser, page: Path) -> Visit:
    return opened(browser, page)


def test_everything_is_drawn(visited: Visit) -> None:
    kinds = visited.page.evaluate(
        "document.getElementById('graph-chart').layout.shapes.map((shape) => shape.type)"
    )
    assert sorted(kinds) == ["path"] * 5 + ["rect"] * 5  # edges, checkpoints
    assert visited.count("#graph-chart .shapelayer path") == 10
    assert visited.count("table.heat tbody td") == 5 * 7  # edges, tasks
    lost = visited.page.evaluate(
        """[...document.querySelectorAll(".sankey-link")]
           .filter((link) => link.style.fill === "rgb(184, 68, 15)").length"""
    )
    assert lost == 4
    assert visited.count(".scatterlayer .js-line") == 4
    visited.assert_quiet(visited.page.url)


def test_every_chart_has_a_label_and_its_numbers_in_a_table(visited: Visit) -> None:
    for chart in visited.page.locator(".chart").all():
        assert chart.get_attribute("role") == "img"
        assert chart.get_attribute("aria-label")
        assert chart.locator("xpath=following::table").count() > 0
    flow = visited.page.locator("#lives table", has_text="stayed not known").first
    assert flow.locator("tbody tr").count() > 0


def test_a_cell_leads_to_its_items_and_an_item_to_its_answers(visited: Visit) -> None:
    visited.page.locator("table.heat td a").first.click()
    target = visited.page.evaluate("location.hash")
    assert target.startswith("#lost-")
    assert visited.page.locator(target).is_visible()
    visited.page.locator(f"{target} a").first.click()
    item = visited.page.evaluate("location.hash")
    assert item.startswith("#item-")
    shown = visited.page.locator(item)
    assert shown.is_visible()
    assert any(question in shown.inner_text() for question in HISTORY)
    for stage in STAGES:
        assert f"{stage}: " in shown.inner_text()


def test_every_link_leads_somewhere(visited: Visit) -> None:
    dead = visited.page.evaluate(
        """[...document.querySelectorAll("a")].map((a) => a.getAttribute("href"))
           .filter((href) => !document.getElementById(href.slice(1)))"""
    )
    assert dead == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_used_by_everybody(browser: Browser, page: Path, scheme: str) -> None:
    found = opened(browser, page, scheme)
    found.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert serious_faults(found.page) == []


def test_it_fits_a_phone(browser: Browser, page: Path) -> None:
    found = opened(browser, page, width=400)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_hostile_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    checkpoints = []
    for number, scores in enumerate(([1, 1], [0, 1], [1, 0])):
        rows = [
            {"question": f"{HOSTILE} {n}", "correct": score, "answer": HOSTILE, "task": HOSTILE,
             "response": f"{HOSTILE}\n{HOSTILE}", "target": HOSTILE, "id": HOSTILE}
            for n, score in enumerate(scores)
        ]  # fmt: skip
        write_jsonl(tmp_path / f"{number}.jsonl", rows)
        name = HOSTILE.replace("\x00", "").replace('"', '\\"')
        parents = f', parents: ["{name} {number - 1}"]' if number else ""
        checkpoints.append(f'  "{name} {number}": {{log: {number}.jsonl{parents}}}')
    (tmp_path / "pipeline.yaml").write_text("checkpoints:\n" + "\n".join(checkpoints) + "\n")
    lineage(tmp_path / "pipeline.yaml", draws=200, report=tmp_path / "page.html")
    found = opened(browser, tmp_path / "page.html")
    found.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert found.page.evaluate("window.hit") is None
    assert found.count("img") == 0
    found.assert_only_our_scripts()
    assert "onerror" in found.page.locator("main").inner_text()
    found.assert_quiet(found.page.url)


def test_a_task_map_makes_categories_the_rows(browser: Browser, tmp_path: Path) -> None:
    path = write_history(tmp_path)
    tasks = sorted({item.split()[0] for item in HISTORY})
    (tmp_path / "tasks.csv").write_text(
        "task,category\n" + "".join(f"{task},{'odd' if n % 2 else 'even'}\n"
                                    for n, task in enumerate(tasks))
    )  # fmt: skip
    path.write_text(path.read_text() + "task_map: tasks.csv\n")
    result: Lineage = lineage(path, draws=200, report=tmp_path / "page.html")
    assert {stage.group for stage in result.worst_stages["merged"]} == {"odd", "even"}
    found = opened(browser, tmp_path / "page.html")
    heads = found.page.locator("table.heat tbody th").all_inner_texts()
    assert sorted(heads) == ["even", "odd"]
