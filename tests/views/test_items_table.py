"""The table of items in Chromium: however many rows, options side by side, folded texts, keys."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from browser import READY, Visit, chromium, serious_faults, visit
from forgetmap.map.comparison import compare_logs
from forgetmap.map.example import example_logs
from forgetmap.map.items import Filter, ItemStore, write_items
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.views.html.report import write_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from forgetmap.map.comparison import Comparison

BOX = "document.getElementById('item-box')"
ROWS = "#item-list tr"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def told() -> Comparison:
    return compare_logs(*example_logs(), new=["airports"], causes=True)


@pytest.fixture(scope="module")
def page(browser: Browser, told: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    path = tmp_path_factory.mktemp("items") / "map.html"
    write_report(told, path)
    return visit(browser, path.as_uri())


def fresh(found: Visit) -> None:
    """All items, in the usual order, none opened, from the top: whatever the test before left."""
    found.page.evaluate("location.hash = '#items?transition='")
    found.page.reload()
    found.page.wait_for_selector(READY)
    found.wait_for_text("#item-count", "4,070 items")


def falls(told: Comparison) -> list[float]:
    """How far the right option's probability fell, of every item."""
    changed = [row for table in told.changed() for row in table.to_pylist()]
    same = [row for batch in told.pairs.unchanged() for row in batch.to_pylist()]
    return sorted(row["probability_after"] - row["probability_before"] for row in changed + same)


# --- the rows -------------------------------------------------------------------------------------


def test_only_the_rows_in_sight_are_in_the_page_and_all_can_be_reached(
    page: Visit, told: Comparison
) -> None:
    fresh(page)
    expected = falls(told)
    seen: dict[int, str] = {}
    top = page.page.evaluate(f"{BOX}.scrollHeight")
    step = page.page.evaluate(f"{BOX}.clientHeight")
    for place in (*range(0, top, 8 * step), top):
        page.page.evaluate(f"{BOX}.scrollTop = {place}")
        page.page.wait_for_timeout(40)
        assert page.count(ROWS) < 40
        shown = page.page.locator(ROWS).evaluate_all(
            "all => all.map((row) => [row.ariaRowIndex, row.querySelector('.change').textContent])"
        )
        seen |= {int(index) - 2: text for index, text in shown}
    assert len(seen) > 200
    for index, text in seen.items():
        share = float(text.removeprefix("change ").replace("−", "-").replace("\u00a0%", ""))
        assert share == pytest.approx(100 * expected[index], abs=0.051), index
    assert max(seen) == 4069


def test_it_is_a_table_for_those_who_listen(page: Visit) -> None:
    fresh(page)
    assert page.page.get_attribute(".item-box table", "aria-rowcount") == "4071"
    names = page.page.locator(".item-box th").all_inner_texts()
    assert [name.split("\n")[0] for name in names] == [
        *("question", "target", "before", "after", "change", "cause")
    ]
    row = page.page.get_by_role("table", name="Items").get_by_role("row").nth(1)
    assert row.get_by_role("cell").count() == 6
    assert serious_faults(page.page) == []


@pytest.mark.parametrize("column", ["question", "before", "after", "change", "cause"])
def test_every_head_sorts_and_says_so(page: Visit, column: str) -> None:
    fresh(page)
    head = f".item-box th[data-column={column}]"
    page.page.click(f"{head} button")
    first = "descending" if column == "change" else "ascending"
    assert page.page.get_attribute(head, "aria-sort") == first
    assert page.count(".item-box th[aria-sort]") == 1
    order = "-change" if column == "change" else column
    assert page.page.url.endswith(f"order={order}")
    top = page.text(f"{ROWS} >> nth=0")
    page.page.click(f"{head} button")
    assert page.text(f"{ROWS} >> nth=0") != top
    page.page.click(".item-box th[data-column=change] button")
    if column != "change":
        assert page.page.get_attribute(".item-box th.change", "aria-sort") == "ascending"


def test_the_change_is_one_of_probability_where_the_log_has_it(page: Visit) -> None:
    fresh(page)
    assert page.text(".item-box th.change").split("\n") == ["change", "of probability"]
    first = page.page.locator(ROWS).first
    assert "−100.0" in first.locator(".change").inner_text()
    assert "lost" in first.locator(".change").get_attribute("class")
    assert first.locator(".side").first.inner_text().startswith("✓")
    assert first.locator(".side").last.inner_text().startswith("✗")


def test_keys_walk_beyond_the_rows_in_sight(page: Visit) -> None:
    fresh(page)
    page.page.evaluate("document.activeElement.blur()")
    for _ in range(25):
        page.page.keyboard.press("j")
    row = page.page.evaluate("document.activeElement.closest('tr').ariaRowIndex")
    assert row == "26"
    box = page.page.locator("#item-box").bounding_box()
    seen = page.page.locator(f"{ROWS}[aria-rowindex='26']").bounding_box()
    assert seen["y"] >= box["y"]
    assert seen["y"] + seen["height"] <= box["y"] + box["height"] + 1
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(f"{ROWS}[aria-rowindex='26'] [aria-current=true]")
    page.page.keyboard.press("Escape")
    assert page.count("#item-list [aria-current]") == 0
    assert page.page.evaluate("document.activeElement.closest('tr').ariaRowIndex") == "26"


def test_the_address_scrolls_to_its_item(browser: Browser, page: Visit, told: Comparison) -> None:
    row = next(
        row for table in told.changed() for row in table.to_pylist()
        if row["transition"] == "forgotten" and row["probability_before"] < 0.5
    )  # fmt: skip
    home = page.page.url.split("#")[0]
    found = visit(browser, f"{home}#item/{row['task']}/{row['item']}")
    assert found.count("#item-list [aria-current=true]") == 1
    assert found.page.locator("#item-list [aria-current=true]").is_visible()


# --- the opened item ------------------------------------------------------------------------------


def test_options_stand_side_by_side(page: Visit, told: Comparison) -> None:
    rows = [row for batch in told.pairs.flips() for row in batch.to_pylist()]
    row = next(row for row in rows if row["transition"] == "forgotten" and row["k"] == 4)
    page.page.evaluate(f"location.hash = '#item/{row['task']}/{row['item']}'")
    page.wait_for_text("#item-detail", row["item"])
    lines = page.page.locator(".options tbody tr")
    assert lines.count() == 4
    right = lines.nth(row["right_option"]).inner_text().replace("\u00a0", " ")
    assert "✓ right" in right
    assert "chosen before" in right
    assert row["target"] in right
    assert f"{100 * row['probability_before']:.1f} %" in right
    assert f"{100 * row['probability_after']:.1f} %" in right
    likeliest = row["options_after"].index(max(row["options_after"]))
    chosen = lines.nth(likeliest).inner_text()
    assert "chosen after" in chosen
    assert row["answer_after"] in chosen
    assert page.page.locator(".options .badge.bad").inner_text() == "chosen after"
    assert "−0.0" not in page.page.locator(".options").inner_text()


def long_log(side: str) -> Samples:
    """Long prompts and responses; the difference stands near the end of a response."""
    shots = "Example of a question and its answer, as long as they come. " * 40
    rows: list[dict[str, Any]] = []
    for number in range(60):
        right = side == "before" or number % 3 == 0
        said = f"{'Let me think about it for a while. ' * 40}So it is {number if right else 'no'}."
        rows.append(
            {
                "model": side,
                "item": content_hash(str(number)),
                "item_ref": f"t-{number}",
                "score": float(right),
                "prompt": f"{shots}Extraordinarily long question number {number}?\nAnswer:",
                "target": str(number),
                "answer": str(number) if right else "no",
                "response": said,
            }
        )
    return Samples.from_rows(rows)


def test_long_texts_are_folded_at_what_matters(browser: Browser, tmp_path: Path) -> None:
    compared = compare_logs(long_log("before"), long_log("after"), causes=True)
    write_report(compared, tmp_path / "map.html")
    found = visit(browser, (tmp_path / "map.html").as_uri())
    found.page.locator("#item-list button").first.click()
    found.page.wait_for_selector("#item-detail header")
    folded = found.page.locator("#item-detail .folded")
    assert folded.count() == 2
    parts = found.page.locator("#item-detail .texts")
    prompt = parts.filter(has_text="Prompt").locator("pre")
    response = parts.filter(has_text="Response").locator("pre")
    for text in (prompt, response.first, response.last):
        assert text.evaluate("e => e.scrollTop > 100 && e.clientHeight < 250")
    mark = folded.nth(1).locator("mark.wrong")
    assert mark.text_content() == "no"
    inside, around = mark.bounding_box(), response.last.bounding_box()
    assert around["y"] <= inside["y"] <= around["y"] + around["height"]
    button = folded.nth(1).locator("button")
    assert button.inner_text().startswith("Show all 1,4")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    opened = found.page.locator("#item-detail .texts button[aria-expanded=true]")
    assert opened.inner_text() == "Show less"
    assert response.first.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    assert found.count("#item-detail .folded") == 1
    # A cut question begins with a whole word, and does not end in what asks for the answer.
    question = found.page.locator("#item-list .question button").first.inner_text()
    assert question.startswith("… ")
    assert question.split()[1] in ("Example", *long_log("before").data["prompt"][0].as_py().split())
    assert question.endswith("?")


# --- large lists, old files -----------------------------------------------------------------------


def test_texts_of_the_first_rows_are_unpacked_first(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of many parts shows its first rows without the others: nothing waits for them."""

    def log(side: str) -> Samples:
        rng = random.Random(side)
        return Samples.from_rows(
            {
                "item": content_hash(str(number)),
                "item_ref": f"q-{number}",
                "score": float(rng.random() < 0.6),
                "gold_probability": rng.random(),
                "k": 4,
                "prompt": f"Question {number}?",
            }
            for number in range(400)
        )

    monkeypatch.setattr("forgetmap.views.html.report._PART", 16)
    compared = compare_logs(log("before"), log("after"), causes=True)
    write_report(compared, tmp_path / "map.html")
    context = browser.new_context()
    context.add_init_script(
        """window.requestIdleCallback = () => 0; // nothing is prepared
        window.unpacked = 0;
        const parse = JSON.parse;
        JSON.parse = (text) => { window.unpacked += text.startsWith("[["); return parse(text); };"""
    )
    page = context.new_page()
    page.goto((tmp_path / "map.html").as_uri())
    page.wait_for_selector("#item-list .question .under")
    page.wait_for_selector("#causes-chart .barlayer")
    assert page.locator("#item-list tr[data-whole]").count() == page.locator(ROWS).count() > 5
    assert page.evaluate("window.unpacked") <= 2
    context.close()


def test_a_saved_list_of_an_older_version_has_no_probabilities(
    told: Comparison, tmp_path: Path
) -> None:
    write_items(told, tmp_path / "new.parquet")
    later = "probability_before, probability_after, options_before, options_after, right_option"
    duckdb.sql(
        f"""COPY (SELECT * EXCLUDE ({later}) FROM read_parquet('{tmp_path}/new.parquet'))
            TO '{tmp_path}/old.parquet' (FORMAT parquet)"""
    )
    new, old = (ItemStore(tmp_path / f"{name}.parquet") for name in ("new", "old"))
    assert (new.with_probability, old.with_probability) == (4070, 0)
    rows = [store.page(Filter(transition="gained")).rows[0] for store in (new, old)]
    assert rows[0] | {"probability_before": None, "probability_after": None} == rows[1]
    found = [store.find(rows[0]["task"], rows[0]["item"]) for store in (new, old)]
    assert found[1]["options_before"] is None
    assert len(found[0]["options_before"]) == 4
