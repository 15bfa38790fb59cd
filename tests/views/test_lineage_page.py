"""The page of a lineage in Chromium: what it shows, where links lead, and text that wants more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browser import Visit, chromium, crowded_labels, serious_faults, visit
from forgetmap.api import lineage
from lineage_logs import HISTORY, SHAPES, STAGES, write_history, write_shape
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
    assert visited.count("#graph a.node") == 5
    assert visited.count("#graph a.edge") == 5
    assert visited.count("table.heat tbody td") == 5 * 7  # edges, tasks
    assert visited.count("#lines-charts figure") == 8  # all, tasks
    assert visited.count("#lines-charts .line.lost") == visited.count("#lines-charts .line.won")
    assert visited.count("#doses svg") == 1
    visited.assert_quiet(visited.page.url)


def test_the_page_names_its_one_estimator(visited: Visit) -> None:
    told = visited.text("#verdict .basis")
    assert "lost is the mean of max(p−q,0)" in told
    assert "from one run each; the noise of the runs was not measured" in told


def test_ticks_are_round(visited: Visit) -> None:
    ticks = visited.page.locator("#lines-charts svg text[text-anchor=end]").all_text_contents()
    numbers = {float(text) for text in ticks if text.replace(".", "").isdigit()}
    assert numbers == {0, 50, 100}


def test_losses_and_gains_have_signs_and_stand_apart(visited: Visit) -> None:
    """No number is a net one: each step and each cell says both."""
    for edge in visited.page.locator("#graph a.edge").all():
        lost, gained = edge.locator("text").all_text_contents()
        assert lost.startswith("−") or lost == "0.0"
        assert gained.startswith("+") or gained == "0.0"
    for cell in visited.page.locator("table.heat td button").all():
        assert cell.locator("span").count() == 2
    colours = visited.page.evaluate(
        """["lost", "won"].map((kind) =>
           getComputedStyle(document.querySelector(`#graph text.${kind}`)).fill)"""
    )
    assert colours == ["rgb(184, 68, 15)", "rgb(31, 95, 168)"]


def test_a_click_on_a_step_shows_the_pair(browser: Browser, page: Path) -> None:
    found = opened(browser, page)
    found.page.locator("#graph a.edge .pill").nth(1).click()
    _, before, after = found.page.evaluate("location.hash").split("/")
    assert before == "base"
    found.wait_for_text("#chosen h3", after)
    told = found.text("#chosen")
    for word in ("lost", "gained", "95 %", "items", "task"):
        assert word in told
    assert found.count("#chosen .badge") >= 1
    assert found.count("#chosen table.forest tbody tr") > 3
    again = opened(browser, page)  # the address alone shows the same
    again.page.goto(found.page.url)
    again.page.reload()
    again.page.wait_for_selector("html[data-ready]")
    assert again.text("#chosen") == told


def test_a_checkpoint_can_be_chosen_by_keys(browser: Browser, page: Path) -> None:
    found = opened(browser, page)
    found.page.locator("#graph a.node").nth(4).focus()
    found.page.keyboard.press("Enter")
    assert found.page.evaluate("location.hash") == "#checkpoint/merged"
    found.wait_for_text("#chosen", "accuracy")
    told = found.text("#chosen")
    assert "On the way from base" in told
    assert found.count("#graph a.on-way") == 3  # base, sft, rl, merged
    assert found.count("#graph a[aria-current]") == 1


def test_the_heat_map_can_be_searched_and_sorted(browser: Browser, page: Path) -> None:
    found = opened(browser, page)
    rows = found.page.locator("table.heat tbody tr")
    found.page.fill("#heat-find", "osc")
    assert rows.count() == 1
    found.page.fill("#heat-find", "")
    found.page.select_option("#heat-sort", "name")
    names = found.page.locator("table.heat tbody th").all_inner_texts()
    assert names == sorted(names)
    found.page.locator("table.heat thead .sort").nth(2).click()
    first = rows.first.locator("td").nth(2).inner_text()
    assert first.startswith("−")


def test_a_cell_leads_to_its_items_and_an_item_to_its_life(browser: Browser, page: Path) -> None:
    found = opened(browser, page)
    found.page.locator("table.heat td.cell", has_text="−100").first.locator("button").click()
    found.wait_for_text("#item-count", "item")
    found.page.locator("#item-list button").first.click()  # waits until the items are drawn
    found.page.wait_for_selector("#item-detail header")
    for stage in STAGES:
        found.wait_for_text("#item-life", stage)
    life = found.text("#item-life")
    assert "✓" in life
    assert "✗" in life
    assert any(question in found.text("#item-detail") for question in HISTORY)


def test_every_link_leads_somewhere(visited: Visit) -> None:
    dead = visited.page.evaluate(
        """[...document.querySelectorAll("a")].map((a) => a.getAttribute("href"))
           .filter((href) => !/^#(pair|checkpoint)\\//.test(href))
           .filter((href) => !document.getElementById(href.slice(1)))"""
    )
    assert dead == []


MEETINGS = """() => {
    const frame = (part) => part.getBoundingClientRect();
    const boxes = [...document.querySelectorAll("#graph .box, #graph .pill")]
        .map((part) => ({ owner: part.parentElement, ...frame(part).toJSON() }));
    const meets = (one, two) => one.left < two.right - 1 && two.left < one.right - 1
        && one.top < two.bottom - 1 && two.top < one.bottom - 1;
    const found = [];
    boxes.forEach((one, place) => boxes.slice(place + 1)
        .filter((two) => meets(one, two)).forEach(() => found.push("two boxes meet")));
    for (const text of document.querySelectorAll("#graph svg text")) {
        const { left, right, top, bottom } = frame(text);
        const own = boxes.find(({ owner }) => owner === text.parentElement);
        if (left < own.left - 0.5 || right > own.right + 0.5 || top < own.top - 1
            || bottom > own.bottom + 1) found.push(`${text.textContent} leaves its box`);
    }
    const shift = frame(document.querySelector("#graph svg"));
    for (const line of document.querySelectorAll("#graph .line")) {
        for (let along = 0; along <= line.getTotalLength(); along += 3) {
            const { x, y } = line.getPointAtLength(along);
            const [left, top] = [x + shift.left, y + shift.top];
            const met = boxes.find((box) => box.owner !== line.parentElement && left > box.left + 1
                && left < box.right - 1 && top > box.top + 1 && top < box.bottom - 1);
            if (met) { found.push(`a line runs through ${met.owner.ariaLabel}`); break; }
        }
    }
    return found;
}"""


@pytest.fixture(scope="module", params=SHAPES)
def shaped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    lineage(write_shape(folder, request.param), draws=100, report=folder / "lineage.html")
    return folder / "lineage.html"


@pytest.mark.parametrize("width", [1440, 768, 360])
def test_no_graph_hides_a_line_or_a_label(browser: Browser, shaped: Path, width: int) -> None:
    """Chains, forks, merges, a hundred checkpoints: lines keep off boxes, boxes off each other."""
    found = opened(browser, shaped, width=width)
    drawn = SHAPES[shaped.parent.name.rstrip("0123456789")]
    assert found.count("#graph a.node") == len(drawn)
    assert found.count("#graph a.edge") == sum(map(len, drawn.values()))
    assert found.page.evaluate(MEETINGS) == []
    assert crowded_labels(found.page) == []
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    found.assert_quiet(found.page.url)


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
