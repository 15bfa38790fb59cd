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


def items_shown(visited: Visit) -> list[str]:
    return visited.page.locator("#item-list button").all_inner_texts()


def test_everything_is_drawn(visited: Visit) -> None:
    names = visited.page.locator(".graph tbody th").all_inner_texts()
    assert [name.split()[0] for name in names] == ["base", "sft", "rl", "code", "merged", "merged"]
    assert visited.count(".graph circle") == 5
    assert visited.count(".graph .step.loses") > 0
    assert visited.count("#heat-lost tbody td") == visited.count("#heat-gained tbody td") == 5 * 7
    assert visited.count(".life") == 2
    assert visited.count(".scatterlayer .js-line") == 4
    visited.assert_quiet(visited.page.url)


def test_no_line_of_the_graph_passes_through_a_dot(visited: Visit) -> None:
    """Sideways lines meet no dot but their own, and every checkpoint has one."""
    faults = visited.page.evaluate(
        """[...document.querySelectorAll(".graph td.lanes svg")].flatMap((svg) => {
            const dots = [...svg.querySelectorAll("circle")].map((dot) => dot.getAttribute("cx"));
            return [...svg.querySelectorAll("line.step")].filter((line) => {
                const [from, to] = ["x1", "x2"].map((name) => Number(line.getAttribute(name)));
                const [left, right] = [Math.min(from, to), Math.max(from, to)];
                return dots.some((x) => x > left && x < right);
            }).map((line) => line.outerHTML);
        })"""
    )
    assert faults == []


def test_every_chart_has_a_label_and_its_numbers_in_a_table(visited: Visit) -> None:
    for chart in visited.page.locator(".chart, .life svg").all():
        assert chart.get_attribute("role") == "img"
        assert chart.get_attribute("aria-label")
        assert chart.locator("xpath=following::table").count() > 0


def test_a_number_of_the_graph_leads_to_its_items(visited: Visit) -> None:
    visited.page.click("button[data-before=base][data-after=sft][data-outcome=lost] >> nth=0")
    lost = {item for item, (base, sft, *_) in HISTORY.items() if (base, sft) == (1, 0)}
    assert visited.count("#item-list tr") == len(lost)
    assert visited.text("#item-count") == f"{len(lost)} items"
    assert visited.text("#chosen").startswith("base → sft: lost ")
    visited.page.click("button[data-before=base][data-after=merged] >> nth=0")  # a name
    assert visited.text("#chosen").startswith("base → merged: lost ")


def test_a_cell_and_a_life_line_lead_to_their_items(visited: Visit) -> None:
    cell = visited.page.locator("#heat-lost button[data-group=lost]").first
    cell.click()
    assert visited.page.locator("#item-group").input_value() != ""
    visited.page.click(".life >> nth=1 >> button:has-text('recovered')")
    assert sorted(items_shown(visited)) == ["recovered at merged", "recovered at rl"]


def test_an_item_shows_what_every_checkpoint_did(visited: Visit) -> None:
    visited.page.click("button[data-before=base][data-after=sft][data-outcome=lost] >> nth=0")
    visited.page.keyboard.press("j")
    visited.page.keyboard.press("Enter")
    shown = visited.text("#item-detail")
    assert all(stage in shown for stage in STAGES)
    assert visited.count("#item-detail tbody tr") == len(STAGES)
    address = visited.page.evaluate("location.hash")
    assert "item=" in address
    visited.page.keyboard.press("Escape")
    assert "item=" not in visited.page.evaluate("location.hash")
    visited.page.evaluate(f"location.hash = {address!r}")
    visited.wait_for_text("#item-detail", STAGES[-1])


def test_search_counts_and_groups_follow_each_other(visited: Visit) -> None:
    visited.page.click("button[data-before=base][data-after=sft][data-outcome=lost] >> nth=0")
    visited.page.fill("#item-text", "recovered at rl")
    assert visited.text("#item-count") == "1 item"
    assert "− lost 1" in visited.text("#outcome")
    assert "+ gained 0" in visited.text("#outcome")
    visited.page.keyboard.press("Escape")
    assert visited.page.locator("#item-text").input_value() == ""
    visited.page.fill("#heat-text", "osc")
    assert visited.text("#heat-count") == "1 of 7"
    visited.page.fill("#heat-text", "")


def test_what_is_shown_can_be_exported(visited: Visit) -> None:
    visited.page.click("button[data-before=base][data-after=sft][data-outcome=lost] >> nth=0")
    with visited.page.expect_download() as download:
        visited.page.click("#export")
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("task,item,target,before,after")
    assert len(lines) == 1 + visited.count("#item-list tr")


def test_every_link_leads_somewhere(visited: Visit) -> None:
    dead = visited.page.evaluate(
        """[...document.querySelectorAll("a")].map((a) => a.getAttribute("href"))
           .filter((href) => !document.getElementById(href.slice(1)))"""
    )
    assert dead == []


def test_a_file_that_lists_only_some_items_says_so(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forgetmap.views.html.lineage_items.MOST_ANSWERS", 20)
    lineage(write_history(tmp_path), draws=200, report=tmp_path / "page.html")
    found = opened(browser, tmp_path / "page.html")
    assert "lists 4 of the 9 items that changed" in found.text("#items .notice")


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
    heads = found.page.locator("#heat-lost tbody th").all_inner_texts()
    assert sorted(heads) == ["even", "odd"]
