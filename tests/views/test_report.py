"""The report in Chromium: charts, filters, links, exports, and text that wants to be more."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browser import READY, Visit, chromium, serious_faults, visit
from forgetmap.base.errors import InputError
from forgetmap.map.comparison import compare_logs
from forgetmap.map.example import example_logs
from forgetmap.map.old_maps import NOTE
from forgetmap.map.result import ForgettingMap
from forgetmap.map.saved import save_comparison
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.views import words
from forgetmap.views.html.report import write_report
from forgetmap.views.html.report_words import ESTIMATORS
from places import ROOT
from report_logs import CATEGORIES, HOSTILE, made_log, mapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Download

    from forgetmap.map.comparison import Comparison


SIDES = ("before", "after")
CHANGE = ".item-box th[data-column=change]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return mapped(made_log("before"), made_log("after"), CATEGORIES)


@pytest.fixture(scope="module")
def report(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "map.html"
    write_report(comparison, path)
    return path


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Visit:
    return visit(browser, report.as_uri())


@pytest.fixture(scope="module")
def items(comparison: Comparison) -> list[dict[str, Any]]:
    """Every item, as the pairing and the rules for causes tell it."""
    rows = [row for table in comparison.changed() for row in table.to_pylist()]
    return rows + [row for batch in comparison.pairs.unchanged() for row in batch.to_pylist()]


def choose(found: Visit, fieldset: str, value: str) -> None:
    found.page.locator(f"#{fieldset} input[value='{value}']").check(force=True)


def listed(found: Visit) -> int:
    return int(found.text("#item-count").split()[0].replace(",", ""))


def all_items(found: Visit) -> None:
    choose(found, "transition", "")
    found.page.select_option("#item-task", "")
    found.page.select_option("#item-cause", "")
    found.page.fill("#item-text", "")
    found.wait_for_text("#item-count", "160 items")


# --- what is shown --------------------------------------------------------------------------------


def test_the_verdict_and_its_trust_come_first(opened: Visit, comparison: Comparison) -> None:
    result = comparison.map
    lost = result.old.lost
    assert opened.text("h1") == words.finding(result)
    assert opened.text("h1").startswith(f"Lost at least {100 * lost.value:.1f} %")
    below = opened.text("#basis")
    assert below == words.doubt(result)
    assert f"95 % interval {100 * lost.low:.1f} to {100 * lost.high:.1f} % of 160 items" in below
    assert f"at least {100 * lost.low_end:.1f} %, at most {100 * lost.high_end:.1f} %" in below
    assert "from repeated runs of both models" in below
    assert opened.page.locator("main section").first.get_attribute("id") == "verdict"
    trust = opened.text("#trust")
    assert "160 items in 4 tasks" in trust
    assert f"These tasks: lost {100 * lost.low:.1f} to {100 * lost.high:.1f} %" in trust
    like = result.old.like_these.lost
    assert f"Tasks like these: lost {100 * like.low:.1f} to {100 * like.high:.1f} %" in trust
    assert f"{100 * result.total.noise_floor:.1f} % of items flip" in trust
    assert "seed: before / after" in trust
    assert f"{100 * result.total.mde:.1f} % of net accuracy" in trust


def test_every_chart_is_drawn(opened: Visit, items: list[dict[str, Any]]) -> None:
    rows = 2 + len(set(CATEGORIES.values()))
    assert opened.count("#groups-chart .scatterlayer .point") == 2 * rows
    assert opened.count("#groups-chart .barlayer .point path") == 2 * 2 * rows  # full and pale
    assert opened.count("#flow-bars .barlayer .point path") == 4 * (rows - 1)
    opened.wait_for_count("#flow-chart .sankey-link", 4)
    causes = {row["cause"] for row in items if row["transition"] == "forgotten"}
    assert opened.count("#causes-chart .barlayer .point path") == len(causes) > 1
    for name in ("groups-chart", "flow-bars", "flow-chart", "causes-chart"):
        box = opened.page.locator(f"#{name} svg.main-svg").first.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert opened.page.get_attribute(f"#{name}", "role") == "img"


def test_estimators_views_and_order_can_be_switched(opened: Visit, comparison: Comparison) -> None:
    result = comparison.map
    geography = result.categories["Geography"]
    row = opened.page.locator("#groups-table tr", has_text="Geography").text_content()
    assert words.ends(geography.lost) in row
    assert words.ends(geography.gained) in row
    for explained in ESTIMATORS:
        choose(opened, "estimator", explained.name)
        assert opened.text("#groups-note").startswith(explained.says)
    for both in (geography.raw, geography.paper):
        assert f"{100 * both.lost.value:.1f} (" in row
    assert result.categories["Prose"].paper is None
    choose(opened, "estimator", "paper")  # not defined where answers are open
    assert "not defined here" in opened.page.locator("#groups-chart").text_content()
    opened.page.select_option("#sort", "name")
    names = opened.page.locator("#groups-table tbody td:first-child").all_text_contents()
    assert names[2:] == sorted(names[2:])
    choose(opened, "estimator", "lost")


def test_the_flow_of_one_group(opened: Visit, comparison: Comparison) -> None:
    cell = comparison.map.categories["Prose"]
    opened.page.select_option("#flow-group", "Prose")
    said = opened.page.get_attribute("#flow-chart", "aria-label")
    share = float(re.search(r"right → wrong \d+ \(([\d.]+)\s%\)", said)[1])
    assert share == pytest.approx(100 * cell.raw.lost.value, abs=0.06)


def test_tasks_are_sorted_and_filtered(opened: Visit, comparison: Comparison) -> None:
    result = comparison.map
    names = "#task-table tbody td:first-child button"

    def shown() -> list[str]:
        return opened.page.locator(names).all_text_contents()

    assert shown() == [name for name, _ in words.by_loss(result.tasks)]
    opened.page.click("#task-table th:first-child button")
    assert shown() == sorted(CATEGORIES)
    assert opened.page.get_attribute("#task-table th:first-child", "aria-sort") == "ascending"
    opened.page.click("#task-table th:first-child button")
    assert shown() == sorted(CATEGORIES, reverse=True)
    opened.page.fill("#task-text", "GEOGRAPHY")
    assert shown() == ["rivers", "capitals"]
    opened.page.fill("#task-text", "")
    for kind in ("forgetting", "net"):
        value = getattr(result.tasks["sums"].verdict, kind)
        opened.page.select_option(f"#task-{kind}", value)
        same = {t for t, cell in result.tasks.items() if getattr(cell.verdict, kind) == value}
        assert set(shown()) == same
        opened.page.select_option(f"#task-{kind}", "")
    row = opened.page.locator("#task-table tbody tr", has_text="sums").text_content()
    assert "40" in row
    assert "4" in row
    groups = (result.old, *result.categories.values())
    flagged = {cell.influence.task for cell in groups if words.hinges(cell)}
    assert opened.count("#task-table tbody td:last-child .badge") == len(flagged)


def test_items_are_filtered_by_outcome_task_cause_and_text(
    opened: Visit, items: list[dict[str, Any]]
) -> None:
    all_items(opened)
    for transition in ("forgotten", "gained", "retained", "never"):
        choose(opened, "transition", transition)
        expected = sum(row["transition"] == transition for row in items)
        assert expected > 0
        assert listed(opened) == expected
    all_items(opened)
    opened.page.select_option("#item-task", "rivers")
    assert listed(opened) == 40
    all_items(opened)
    opened.page.select_option("#item-cause", "truncated")
    lost = [row for row in items if row["transition"] == "forgotten"]
    assert listed(opened) == sum(row["cause"] == "truncated" for row in lost) > 0
    all_items(opened)
    opened.page.fill("#item-text", "QUESTION 7 of")
    changed = [row for row in items if (row.get("prompt_before") or "").startswith("Question 7 of")]
    opened.wait_for_text("#item-count", f"{len(changed)} item")
    opened.page.fill("#item-text", "tales-39")
    opened.wait_for_text("#item-count", "1 item")
    assert listed(opened) == 1
    opened.page.fill("#item-text", "no such words")
    opened.wait_for_text("#item-count", "0 items")


def test_tasks_and_causes_lead_to_their_items(opened: Visit) -> None:
    opened.page.click("#task-table tbody button:has-text('tales')")
    assert opened.page.input_value("#item-task") == "tales"
    assert listed(opened) == 40
    opened.page.locator("#causes-table tr", has_text="truncated").locator("button").click()
    assert opened.page.input_value("#item-cause") == "truncated"
    assert opened.page.input_value("#item-task") == ""


def test_an_item_shows_both_answers_and_their_difference(
    opened: Visit, items: list[dict[str, Any]]
) -> None:
    row = next(r for r in items if r["transition"] == "forgotten" and r["task"] == "sums")
    opened.page.evaluate(f"location.hash = '#item/sums/{row['item']}'")
    opened.page.wait_for_selector("#item-detail header")
    opened.wait_for_text("#item-detail", f"item {row['item']}")
    sides = opened.page.locator("#item-detail pre").all_text_contents()
    pairs = [row[f"{name}_{side}"] for name in ("answer", "response") for side in SIDES]
    assert sides == [row["prompt_before"], row["target"], *pairs]
    gone = opened.page.locator("#item-detail mark.right").all_text_contents()
    new = opened.page.locator("#item-detail mark.wrong").all_text_contents()
    number = row["item_ref"].split("-")[1]
    assert gone == [number, "True", "before"]
    assert new == ["none", "False", "after"]


def test_an_item_is_copied_and_linked(
    opened: Visit, report: Path, items: list[dict[str, Any]]
) -> None:
    row = next(r for r in items if r["transition"] == "gained")
    link = f"{report.as_uri()}#item/{quote(row['task'])}/{row['item']}"
    page = opened.page
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.evaluate(f"location.hash = '#item/{quote(row['task'])}/{row['item']}'")
    opened.wait_for_text("#item-detail", row["item"])
    page.click("text=Copy link")
    assert page.evaluate("window.copied") == link
    page.click("text=Copy item")
    assert f"response_after: {row['response_after']}" in page.evaluate("window.copied")
    page.evaluate("location.hash = '#item/nowhere/0'")
    opened.wait_for_text("#item-detail", "No such item")


def exported(found: Visit) -> list[dict[str, str]]:
    with found.page.expect_download() as waiting:
        found.page.click("#export")
    download: Download = waiting.value
    text = download.path().read_bytes().decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_filtered_items_are_exported(opened: Visit, items: list[dict[str, Any]]) -> None:
    all_items(opened)
    choose(opened, "transition", "forgotten")
    lost = {row["item"]: row for row in items if row["transition"] == "forgotten"}
    rows = exported(opened)
    assert {row["item"] for row in rows} == set(lost)
    for row in rows:
        assert row["response_after"] == lost[row["item"]]["response_after"]
        assert float(row["before"]) == lost[row["item"]]["before"]


def test_the_list_is_walked_by_keys(opened: Visit) -> None:
    all_items(opened)
    opened.page.focus("#item-list button >> nth=0")
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("ArrowUp")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("#item-list tr:nth-child(2) button[aria-current=true]")


def test_keys_walk_open_search_and_go_back(opened: Visit) -> None:
    all_items(opened)
    page = opened.page
    page.evaluate("document.activeElement.blur()")
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#item-list tr button[aria-current=true]")
    page.wait_for_selector("#item-detail header")
    page.keyboard.press("Escape")
    opened.wait_for_text("#item-detail", "Choose an item")
    assert opened.count("#item-list [aria-current]") == 0
    page.keyboard.press("/")
    page.keyboard.type("tales-39")
    opened.wait_for_text("#item-count", "1 item")
    page.keyboard.press("Escape")
    opened.wait_for_text("#item-count", "160 items")


def test_filters_order_and_the_open_item_are_in_the_address(
    browser: Browser, opened: Visit, items: list[dict[str, Any]]
) -> None:
    all_items(opened)
    page = opened.page
    choose(opened, "transition", "gained")
    page.select_option("#item-task", "rivers")
    page.click(f"{CHANGE} button")  # from the most lost to the most gained
    page.locator("#item-list button").first.click()
    opened.wait_for_text("#item-detail", "rivers-")
    again = visit(browser, page.url)
    assert again.page.input_value("#item-task") == "rivers"
    assert again.page.get_attribute(CHANGE, "aria-sort") == "descending"
    assert listed(again) == listed(opened)
    assert again.text("#item-detail") == opened.text("#item-detail")
    gained = sum(r["transition"] == "gained" and r["task"] == "rivers" for r in items)
    assert listed(again) == gained
    assert f"gained {gained}" in again.text("#transition")  # counts follow the other filters
    all_items(opened)
    page.click(f"{CHANGE} button")


def test_the_most_lost_come_first_and_no_id_is_doubled(opened: Visit) -> None:
    all_items(opened)
    changes = opened.page.locator("#item-list .change").all_inner_texts()
    assert opened.text(CHANGE).split() == ["change", "of", "right", "runs"]
    falls = [float(text.replace("−", "-").replace("\u00a0%", "")) for text in changes]
    assert falls == sorted(falls)
    assert falls[0] < 0
    names = opened.page.locator("#item-list .question .under").all_inner_texts()
    assert all(re.fullmatch(r"\w+-\d+", name) for name in names)


def test_how_it_was_computed(opened: Visit) -> None:
    method = opened.text("#method")
    for explained in ESTIMATORS:
        assert explained.label in method
    for retired in ("excess", "soft", "latent", "headline"):
        assert retired not in method
    formulas = ("mean of max(p − q, 0)", "mean of p (1 − q)")
    for phrase in (*formulas, "does not prove", "forgetmap", "plotly", "200, 0"):
        assert phrase in method


def test_nothing_was_asked_of_any_network(opened: Visit, report: Path) -> None:
    opened.assert_quiet(report.as_uri())


# --- for everybody --------------------------------------------------------------------------------


def test_other_senses_small_screens_and_printers(
    browser: Browser, report: Path, items: list[dict[str, Any]]
) -> None:
    row = next(r for r in items if r["transition"] == "forgotten")
    link = f"{report.as_uri()}#item/{row['task']}/{row['item']}"
    found = visit(browser, link, color_scheme="dark")
    page = found.page
    assert page.get_attribute("html", "data-theme") == "dark"
    assert row["response_after"] in found.text("#item-detail")  # the link led to its item
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert serious_faults(page) == []
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "light"
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("#item-list button").nth(3).click()
    page.wait_for_selector("#item-list tr:nth-child(4) [aria-current=true]")
    page.wait_for_timeout(500)  # until the charts have their new width
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert serious_faults(page) == []
    page.emulate_media(media="print")
    assert not page.locator("#estimator").is_visible()
    assert page.locator("h1").is_visible()
    assert len(page.pdf()) > 20_000
    found.assert_quiet(report.as_uri())


# --- hostile text ---------------------------------------------------------------------------------


def test_text_that_wants_to_be_more_stays_text(browser: Browser, tmp_path: Path) -> None:
    def hostile(text: str) -> str:
        tail = "x" * 2**20 if text.startswith("I think that 0") else ""
        return f"=cmd {HOSTILE} {text}{tail}"

    categories = {hostile(task): hostile(group) for task, group in CATEGORIES.items()}
    before, after = made_log("before", hostile, 8), made_log("after", hostile, 8)
    before.meta.warnings.append(hostile("warning"))
    compared = mapped(before, after, categories)
    path = tmp_path / "map.html"
    write_report(compared, path)
    found = visit(browser, path.as_uri())
    choose(found, "transition", "")
    found.page.hover("#groups-chart .scatterlayer .point >> nth=3", force=True)
    flips = [row for batch in compared.pairs.flips() for row in batch.to_pylist()]
    endless = next(row for row in flips if row["item_ref"].endswith("-0"))
    address = f"#item/{quote(endless['task'], safe='')}/{endless['item']}"
    found.page.evaluate("(address) => { location.hash = address; }", address)
    found.wait_for_text("#item-detail", endless["item"])
    for selector in ("#models", "#trust", "#task-table", "#item-list", "#item-detail"):
        text = found.page.locator(selector).text_content()
        assert "<script>window.pwned" in text, selector
        assert not {"\x00", "\x1b", "\u202e", "\u2066", "\u2028"}.intersection(text), selector
    assert (
        "</script><script>" in found.page.locator("#groups-chart .yaxislayer-above").text_content()
    )
    assert "⟨202E⟩gnp.exe" in found.text("#item-detail")
    assert "␛[31mred␀" in found.text("#item-detail")
    assert re.search(r"… \(10\d{5} more characters\)", found.text("#item-detail"))
    assert path.stat().st_size < 4_000_000
    for row in exported(found):
        assert all(
            not cell.startswith(("=", "+", "-", "@")) or is_number(cell) for cell in row.values()
        )
        assert row["prompt_before"].startswith("'=cmd </script>") or not row["prompt_before"]
    assert found.page.evaluate("window.pwned") is None
    assert found.count("img, #item-detail a, #item-detail b, iframe") == 0
    found.assert_only_our_scripts()
    found.assert_quiet(path.as_uri())


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_a_page_without_losses_or_categories(browser: Browser, tmp_path: Path) -> None:
    rows = [{"item": content_hash(str(i)), "score": 1.0} for i in range(30)]
    path = tmp_path / "it's a % map#1.html"
    write_report(mapped(Samples.from_rows(rows), Samples.from_rows(rows), {}), path)
    found = visit(browser, path.as_uri())
    assert "No item was lost." in found.text("#causes")
    assert listed(found) == 30
    found.page.locator("#item-list button").first.click()
    found.wait_for_text("#item-detail", "did not change")
    greyed = found.page.locator("#estimator label:has(input:disabled)")
    assert greyed.get_attribute("title") == ESTIMATORS[-1].needs
    found.assert_quiet(path.as_uri().split("#")[0])


def test_a_large_report_says_what_it_leaves_out(
    browser: Browser,
    comparison: Comparison,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forgetmap.views.html.report.MOST_ITEMS", 140)
    monkeypatch.setattr("forgetmap.views.html.report.TEXT_BYTES", 1500)
    monkeypatch.setattr("forgetmap.views.html.report._PART", 8)
    path = tmp_path / "map.html"
    write_report(comparison, path)
    found = visit(browser, path.as_uri())
    told = found.text("#items-notice")
    assert told.startswith("This file lists 140 of 160 items")
    kept = int(re.search(r"texts of (\d+) of", told)[1])
    assert 8 <= kept < 40
    assert kept % 8 == 0
    choose(found, "transition", "")
    found.wait_for_text("#item-count", "140 items")
    assert len([row for row in exported(found) if row["response_before"]]) == kept
    found.assert_quiet(path.as_uri())


def test_the_same_logs_give_the_same_bytes(report: Path, tmp_path: Path) -> None:
    write_report(mapped(made_log("before"), made_log("after"), CATEGORIES), tmp_path / "map.html")
    assert (tmp_path / "map.html").read_bytes() == report.read_bytes()


def test_nothing_half_written(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "nowhere" / "map.html", tmp_path):
        with pytest.raises(InputError, match=re.escape(str(path))):
            write_report(comparison, path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="cannot be made a folder"):
        save_comparison(comparison, tmp_path / "file")

    def fail(*_: object) -> None:
        raise InputError("no more")

    monkeypatch.setattr("forgetmap.map.saved.write_items", fail)
    with pytest.raises(InputError, match="no more"):
        save_comparison(comparison, tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# --- what cannot be hidden ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told() -> Comparison:
    """The example pair: its new task gains far more than its old ones lose."""
    return compare_logs(*example_logs(), new=["airports"], causes=True)


@pytest.fixture(scope="module")
def told_page(
    browser: Browser, told: Comparison, tmp_path_factory: pytest.TempPathFactory
) -> Visit:
    path = tmp_path_factory.mktemp("told") / "map.html"
    write_report(told, path)
    return visit(browser, path.as_uri())


def test_the_old_skills_come_first_and_the_new_ones_apart(told_page: Visit) -> None:
    finding = "Old skills: lost 10.4 %, most in time zones (19.5 %). New skill: 33 → 100 %."
    assert told_page.text("h1") == finding
    assert "3,270 items; up to 7.0 % may be reshuffled guessing." in told_page.text("#basis")
    assert "Measured from the probabilities of the options." in told_page.text("#basis")
    tiles = told_page.page.locator("#tiles .tile .what").all_inner_texts()
    cards = ["Verdict", "Lost of what it knew", "Gained, old items", "Accuracy, old items"]
    assert tiles == cards
    assert "10.4" not in told_page.text("#tiles")  # the title says it
    rows = told_page.page.locator("#groups-table tbody td:first-child").all_text_contents()
    assert rows[:3] == ["Old items", "New items", "All items"]
    assert "airports (new)" in rows
    row = told_page.page.locator("#task-table tbody tr", has_text="airports").text_content()
    assert "airports (new)" in row
    assert "new tasks" in told_page.text("#method")


def test_the_small_forest_stands_above_the_fold(
    browser: Browser, told: Comparison, told_page: Visit
) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(told_page.page.url)
    page.wait_for_selector(READY)
    box = page.locator("#forest").bounding_box()
    assert box["y"] + box["height"] < 1000
    rows = page.locator("#forest tbody tr:not(.axis)")
    names = rows.locator("th").all_inner_texts()
    old = [name for name, _ in words.by_loss(told.map.tasks) if name != "airports"]
    assert names == [*old[:9], "airports (new)"]
    marks = page.locator("#forest .axis .ticks >> nth=0").locator("i").all_inner_texts()
    assert marks == ["0", "10", "20", "30"]
    # The new skill gains 67 %: its bar goes beyond the axis and says so, and losses stay in sight.
    assert rows.last.locator(".beyond").count() == 1
    worst = rows.first.locator(".of-lost .most").bounding_box()["width"]
    whole = rows.first.locator(".of-lost").bounding_box()["width"]
    assert worst / whole == pytest.approx(told.map.tasks[old[0]].lost.high_end / 0.3, abs=0.02)
    limit = page.evaluate("document.getElementById('groups-chart').layout.xaxis.range[1]")
    assert limit < 50
    assert "+67.4" in page.locator("#groups-chart").text_content()
    page.close()


def test_pages_round_as_python_does(told_page: Visit) -> None:
    """1/16 is 6.25 %: a terminal says 6.2, and so must a page."""
    shares = [0.0625, 0.0225, 0.0235, 0.00125, -0.0625, 0.0015, 0.5, 0.00049, 0.12345, 1 / 3]
    shared = ROOT / "src/forgetmap/views/html/assets/shared/basics.js"
    script = shared.read_text(encoding="utf-8").partition("// --- light and dark")[0]
    call = f"(shares) => {{ {script}; return shares.map((share) => points(share)); }}"
    shown = told_page.page.evaluate(call, shares)
    assert shown == [words.points(share) for share in shares]


def test_no_line_breaks_between_a_number_and_its_sign(told_page: Visit) -> None:
    for selector in ("#verdict", "#where", "#tasks", "#causes"):
        text = told_page.page.locator(selector).inner_text()
        assert not re.search(r"\d[ \n]%", text), selector


def test_the_flow_has_its_numbers_on_it(told: Comparison, told_page: Visit) -> None:
    counts, n = told.map.total.counts, told.map.total.n
    shown = told_page.page.locator("#flow-chart .annotation").all_text_contents()
    kinds = (counts.n11, counts.n10, counts.n01, counts.n00)
    assert [text.replace("\u00a0", " ") for text in shown] == [words.percent(k / n) for k in kinds]


def test_no_number_is_a_net_one_unless_it_says_so(told: Comparison, told_page: Visit) -> None:
    """Gained less lost is the change of accuracy; nothing else on the page may show it."""
    page, result = told_page.page, told.map
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    shown = page.locator("main").inner_text()
    top = page.locator("#verdict").inner_text()
    for name, cell in {"Old items": result.old, "All items": result.total}.items():
        row = page.locator("#groups-table tr", has_text=name).inner_text()
        for share in (cell.change.value, cell.gained.value - cell.lost.value):
            net = re.compile(rf"(?<![\d.]){100 * abs(share):.1f}(?!\d)")
            assert not net.search(row)
            assert not net.search(top)
    assert not re.search(r"net (loss|lost|forgetting|forgot)", shown, re.IGNORECASE)
    assert not re.search(r"[-−]\d+\.\d", page.locator("#groups-table").inner_text())
    assert not re.search(r"[-−]\d+\.\d", page.locator("#task-table").inner_text())


def test_bars_hold_lost_and_gained_side_by_side(told: Comparison, told_page: Visit) -> None:
    """Every bar begins at zero and is as long as one of the two, never as their difference."""
    traces = told_page.page.evaluate(
        """document.getElementById("groups-chart").data
           .filter(({ name, type }) => type === "bar" && !name.startsWith("maybe"))
           .map(({ name, base, x, y }) => ({ name, base, x, y }))"""
    )
    cells = [told.map.old, told.map.new, told.map.total]
    for trace, way in zip(traces, ("lost", "gained"), strict=True):
        assert trace["name"] == way
        assert set(trace["base"]) == {0}
        expected = [100 * getattr(cell, way).low_end for cell in cells]
        assert trace["x"][:3] == pytest.approx(expected)
    assert not {round(y, 6) for y in traces[0]["y"]} & {round(y, 6) for y in traces[1]["y"]}


def test_bars_are_pale_between_the_two_ends(opened: Visit, comparison: Comparison) -> None:
    pale = opened.page.evaluate(
        """document.getElementById("groups-chart").data
           .filter(({ name }) => name === "maybe lost").map(({ base, x }) => ({ base, x }))[0]"""
    )
    lost = comparison.map.total.lost
    assert pale["base"][0] == pytest.approx(100 * lost.low_end)
    assert pale["base"][0] + pale["x"][0] == pytest.approx(100 * lost.high_end)


def test_a_map_of_an_older_version_shows_its_note(
    browser: Browser, comparison: Comparison, tmp_path: Path
) -> None:
    from dataclasses import replace

    result = comparison.map
    noted = result.model_copy(update={"warnings": [*result.warnings, NOTE]})
    again = ForgettingMap.from_json(noted.to_json())
    write_report(replace(comparison, map=again), tmp_path / "map.html")
    found = visit(browser, (tmp_path / "map.html").as_uri())
    assert NOTE in found.text("#trust")


def test_one_run_says_how_to_measure_the_noise(browser: Browser, tmp_path: Path) -> None:
    def log(right: int) -> Samples:
        return Samples.from_rows(
            {"item": content_hash(str(i)), "score": float(i % right == 0)} for i in range(60)
        )

    write_report(mapped(log(2), log(3), {}), tmp_path / "map.html")
    found = visit(browser, (tmp_path / "map.html").as_uri())
    assert re.match(r"Lost up to \d+\.\d %", found.text("h1"))
    assert re.search(r"; between \d+\.\d % and \d+\.\d %\.", found.text("#basis"))
    for way in ("--noise-before", "--noise-after", "repeats", "--deterministic"):
        assert way in found.text("#basis")
    assert "can't tell" in found.text("#tiles")
    assert "would decide" in found.text("#tiles")
    assert "would decide" in found.text("#task-table")


@pytest.mark.slow
def test_the_benchmark_measures_the_file_and_the_server() -> None:
    script = ROOT / "benchmarks" / "report_job.py"
    sizes = ["--items", "3000", "--served", "30000"]
    done = subprocess.run([sys.executable, script, *sizes], capture_output=True, text=True)
    assert done.stderr == ""
    names = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert sum("file, 3,000 items" in name for name in names) == 10
    assert sum("server, 30,000 items" in name for name in names) == 15
