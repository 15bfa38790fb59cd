"""The page of a study in Chromium: what it shows, how quick it is, and text that wants more."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from browser import READY, Visit, chromium, serious_faults, visit
from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.study.result import StudyResult
from forgetmap.views.html.study import file_names, write_site
from forgetmap.views.html.study_data import clustered, hidden_losses
from report_logs import HOSTILE
from study_logs import write_made_study
from study_results import made_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

FIRST_VIEW_MS = 2000
FILTER_MS = 200
SHARES = {"little": 0.02, "some": 0.05, "much": 0.12, "most": 0.2}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def result() -> StudyResult:
    return made_result()


@pytest.fixture(scope="module")
def site(result: StudyResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("study") / "site"
    write_site(result, folder)
    return folder


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a small study with logs, written by the command line."""
    folder: Path = tmp_path_factory.mktemp("logged")
    study = write_made_study(folder, SHARES)
    done = CliRunner().invoke(app, ["study", str(study), "--site", str(folder / "site"), "-q"])
    assert done.exit_code == 0, done.output
    return folder / "site"


@pytest.fixture(scope="module")
def shown(browser: Browser, site: Path) -> Visit:
    return visit(browser, address(site))


def address(site: Path, place: str = "") -> str:
    return (site / "index.html").as_uri() + place


def go(found: Visit, place: str) -> None:
    """Follow an address inside the page, and wait until all is drawn again."""
    found.page.evaluate("(hash) => { location.hash = hash; }", place)
    settle(found)


def settle(found: Visit) -> None:
    """Wait until what was chosen is drawn."""
    found.page.evaluate("() => new Promise((done) => setTimeout(done, 60))")
    found.page.wait_for_selector(READY)


def chosen(found: Visit, name: str, value: str) -> None:
    found.page.locator(f"#{name} input[value='{value}']").check(force=True)


# --- what is shown -------------------------------------------------------------------------------


def test_the_finding_comes_first_and_then_the_map(shown: Visit, result: StudyResult) -> None:
    assert shown.text("h1") == f"{result.headline()}."
    assert hidden_losses(result) in shown.text("#summary")
    assert "yet skills were surely lost" in hidden_losses(result)
    sections = shown.page.locator("main section").evaluate_all("all => all.map(one => one.id)")
    assert sections[:2] == ["summary", "map"]
    losses = [pair.old.lost.value for pair in result.pairs]
    tiles = shown.text("#tiles")
    assert f"−{100 * min(losses):.1f} %" in tiles
    assert f"−{100 * max(losses):.1f} %" in tiles
    shown.assert_quiet(shown.page.url)


def test_every_cell_shows_what_was_lost_and_what_was_gained(
    shown: Visit, result: StudyResult
) -> None:
    go(shown, "#map?rows=name&columns=name")
    numbers = shown.page.locator("#map-chart .numbers text").all_text_contents()
    expected = [
        sign
        for pair in sorted(result.pairs, key=lambda pair: pair.name)
        for cell in (pair.old, *(pair.categories[name] for name in sorted(pair.categories)))
        for sign in (f"−{100 * cell.lost.value:.1f}", f"+{100 * cell.gained.value:.1f}")
    ]
    assert numbers == expected


def test_a_gain_never_hides_a_loss_in_the_map(shown: Visit) -> None:
    """Both directions have colours of their own, and gains alone keep the mark of sure losses."""
    fills = "#map-chart .cells path"
    go(shown, "#map")
    both = shown.page.locator(fills).evaluate_all(
        "all => all.map(one => one.attributes.fill?.value)"
    )
    hues = [re.findall(r"\d+", fill)[:3] for fill in both if fill and fill.startswith("rgb")]
    warm = [one for one in hues if int(one[0]) > int(one[2])]
    cold = [one for one in hues if int(one[0]) < int(one[2])]
    assert len(warm) >= 3
    assert len(cold) >= 2
    go(shown, "#map?show=gained")
    marks = "all => all.filter(one => one.attributes.fill?.value === 'rgba(184, 68, 15, 1)').length"
    assert shown.page.locator(fills).evaluate_all(marks) == 1
    assert shown.count("#map-chart .numbers text") == 12 * 5


def test_tasks_groups_and_orders(shown: Visit, result: StudyResult) -> None:
    go(shown, "#map?by=task&group=method&rows=lost&size=numbers")
    headings = shown.page.locator("#map-chart .names text[font-weight='650']").all_text_contents()
    assert headings == ["method: replay (4)", "method: rl (4)", "method: sft (4)"]
    names = shown.page.locator("#map-chart .names title").all_text_contents()
    groups = {pair.name: pair.attributes["method"] for pair in result.pairs}
    losses = {pair.name: -pair.old.lost.value for pair in result.pairs}
    assert names == sorted(names, key=lambda name: (groups[name], losses[name]))
    assert shown.count("#map-chart .cells path[stroke-dasharray]") == 1  # the task one pair lacks


def test_what_is_alike_stands_together() -> None:
    import numpy as np

    values = np.array([[0.0, 0.1], [9.0, 9.0], [0.1, np.nan], [9.1, 8.9], [0.0, 0.0]])
    order = clustered(values)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert abs(order.index(1) - order.index(3)) == 1
    assert clustered(values[:2]) == [0, 1]


def test_the_charts_follow_the_choices(shown: Visit) -> None:
    go(shown, "#compare")
    kinds = "(id) => document.getElementById(id).data.map((one) => one.type)"
    assert (
        shown.page.evaluate(kinds, "compare-chart") == ["scatterpolar"] * 8
    )  # and their intervals
    go(shown, "#compare?as=bars")
    assert shown.page.evaluate(kinds, "compare-chart") == ["bar"] * 4
    go(shown, "#trade?against=gained&tint=family")
    names = "(id) => document.getElementById(id).data.map((one) => one.name)"
    assert set(shown.page.evaluate(names, "trade-chart")) >= {"alder", "birch", "cedar", "elm"}
    assert "dotted line" in shown.text("#trade-caption")
    go(shown, "#trade?against=learned")
    assert "nobody lost less and got more" in shown.page.evaluate(names, "trade-chart")
    go(shown, "#scale?along=examples")
    assert shown.page.evaluate(names, "dose-chart") == [f"category {n}" for n in range(4)]
    assert "There is no slope" in shown.text("#scale-caption")
    go(shown, "#scale?along=size")
    assert "−0.40 (−0.70 to −0.10) points each time size doubles" in shown.text("#scale-caption")
    assert "Not available" in shown.text("#dose-caption")
    for name in ("compare", "trade", "scale"):
        assert shown.page.get_attribute(f"#{name}-chart", "role") == "img"
    shown.assert_quiet(shown.page.url)


def test_the_leaderboard_is_sorted_and_says_what_cannot_be_told_apart(
    shown: Visit, result: StudyResult
) -> None:
    go(shown, "#board")
    names = "#board-table tbody tr td:nth-child(2) span:first-of-type"
    by_rank = [row.name for row in result.answers.leaderboard]
    assert shown.page.locator(names).all_text_contents() == by_rank
    assert shown.page.locator("#board-table tbody td").first.inner_text() == "1 (1–3)"
    shown.page.locator("#board-table th", has_text="lost %").locator("button").click()
    shown.page.locator("#board-table th", has_text="lost %").locator("button").click()
    assert shown.page.locator(names).all_text_contents() == by_rank[::-1]
    assert "sort=lost&down=yes" in shown.page.url
    assert "no such file" in shown.text("#board-failures")


def test_the_findings_are_told_with_their_reasons(shown: Visit) -> None:
    told = shown.text("#findings")
    for words in (
        "1 of 2 statements can be claimed",
        "rl loses 3.1 points more than sft",
        "does not hold",
        "Larger models lose less",
        "stage (it goes with the method)",
        "21.0 % of the variance",
        "5.0 (no interval)",
    ):
        assert words in told, words
    assert "but C1 worse" in shown.text("#drift")
    assert "not available" in shown.text("#items-lead")  # no logs, so no lives


def test_what_is_not_known_is_said_and_never_made_up(browser: Browser, tmp_path: Path) -> None:
    write_site(made_result(6, 4, 3, published=True), tmp_path / "site")
    found = visit(browser, address(tmp_path / "site", "#board"))
    assert "as published by Somebody (2025)" in found.text("#summary")
    assert "no intervals, tests, verdicts or items" in found.text("#notes")
    assert "there are no verdicts" in found.text("#board-lead")
    assert "(no interval)" in found.page.evaluate(
        "document.getElementById('trade-chart').data.at(-1).hovertext[0]"
    )
    assert found.count("#board-table .interval") == 0
    found.assert_quiet(found.page.url)
    write_site(made_result(2, 2, 0, bare=True), tmp_path / "bare")
    bare = visit(browser, address(tmp_path / "bare"))
    for place in ("#findings", "#items", "#dose-caption"):
        assert "Not available" in bare.text(place), place
    bare.assert_quiet(bare.page.url)


# --- the address ---------------------------------------------------------------------------------


def test_all_that_is_chosen_is_in_the_address(browser: Browser, site: Path) -> None:
    found = visit(browser, address(site))
    page = found.page
    page.locator(".pick", has_text="family").locator("summary").click()
    page.locator("[data-attribute=family] input[value=birch]").check()
    settle(found)
    assert found.text("#filter-count") == "3 of 12 pairs"
    chosen(found, "map-by", "task")
    page.select_option("#map-rows", "name")
    page.select_option("#compare-add", index=1)
    settle(found)
    link = page.url
    for part in ("f.family=birch", "by=task", "rows=name", "pair=birch-"):
        assert part in link
    other = visit(browser, link)
    assert other.text("#filter-count") == "3 of 12 pairs"
    assert "ranks, factors and stages stay those of all 12 pairs" in other.text("#filter-claims")
    assert other.page.locator("#map-by input[value=task]").is_checked()
    assert other.count("#compare-pairs button") == 1
    assert other.count("#map-chart .names text") == 3
    for _ in range(4):
        page.go_back()
    settle(found)
    assert found.text("#filter-count") == "12 of 12 pairs"
    assert page.locator("#map-by input[value=category]").is_checked()
    page.go_forward()
    settle(found)
    assert found.text("#filter-count") == "3 of 12 pairs"
    page.click("#reset")
    assert found.text("#filter-count") == "12 of 12 pairs"
    page.fill("#find", "no such pair")
    settle(found)
    assert "No pair fits the filters." in found.text("#map-chart")
    found.assert_quiet(address(site))


@pytest.mark.parametrize(
    "place",
    ["#nowhere?by=moods&rows=a.x&f.x=1&pair=gone&item=x&page=-3", "#map?f.__proto__=1", "#%E0%A4"],
)
def test_an_address_that_is_wrong_does_no_harm(browser: Browser, site: Path, place: str) -> None:
    found = visit(browser, address(site, place))
    assert found.count("#map-legend svg") == 1
    found.assert_quiet(address(site))


# --- pages of pairs, and items -------------------------------------------------------------------


def test_every_cell_opens_the_page_of_its_pair(browser: Browser, logged: Path) -> None:
    assert {path.name for path in (logged / "pairs").iterdir()} == {f"{n}.html" for n in SHARES}
    found = visit(browser, address(logged, "#map?rows=name"))
    frame = found.page.locator("#map-chart .cells").bounding_box()
    assert frame is not None
    found.page.mouse.move(frame["x"] + 10, frame["y"] + 10)
    tip = found.text("#tip")
    assert "little: All" in tip
    assert "lost −2.0 %" in tip
    found.page.mouse.click(frame["x"] + 10, frame["y"] + 10)
    found.page.wait_for_url("**/pairs/little.html")
    found.page.wait_for_selector(READY)
    assert "Lost 2.0 %" in found.text("h1").replace("\u00a0", " ")
    found.page.click("text=The study")
    found.page.wait_for_selector("#map-chart .cells")
    found.assert_quiet(logged.as_uri())


def test_an_item_opens_its_life_over_all_pairs(browser: Browser, logged: Path) -> None:
    found = visit(browser, address(logged, "#items"))
    page = found.page
    row = page.locator("#items-table tbody tr").first
    lost, knew = map(int, re.search(r"−(\d+) of (\d+)", row.inner_text()).groups())
    assert knew == 4
    row.locator("button").click()
    page.wait_for_selector("#life[open]")
    assert serious_faults(page) == []
    life = found.text("#life")
    assert life.count("✓ → ✗ lost") == lost
    assert life.count("✓ → ✓ kept") == knew - lost
    assert "item=task" in page.url
    link = page.url
    page.go_back()
    page.wait_for_selector("#life", state="hidden")
    other = visit(browser, link)
    assert other.page.locator("#life").is_visible()
    other.page.locator("#life a").first.click()
    other.page.wait_for_selector("#item-detail header")
    other.page.go_back()
    other.page.wait_for_selector("#life[open]")
    other.page.keyboard.press("Escape")
    other.page.wait_for_selector("#life", state="hidden")
    # The address follows the dialog, on a busy machine a moment later.
    other.page.wait_for_function("() => !location.href.includes('item=')")
    found.assert_quiet(logged.as_uri())


def test_a_site_without_pages_of_pairs_has_the_lives_of_items(
    browser: Browser, tmp_path: Path
) -> None:
    study = write_made_study(tmp_path, SHARES)
    arguments = ["study", str(study), "--site", str(tmp_path / "site"), "--no-pages"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        "index.html",
        "study.json",
    ]
    stored = StudyResult.from_json((tmp_path / "site" / "study.json").read_bytes())
    assert len(stored.pairs) == 4
    found = visit(browser, address(tmp_path / "site", "#items"))
    row = found.page.locator("#items-table tbody tr").first
    lost, knew = map(int, re.search(r"−(\d+) of (\d+)", row.inner_text()).groups())
    row.locator("button").click()
    found.page.wait_for_selector("#life[open]")
    assert found.text("#life").count("✓ → ✗ lost") == lost
    assert found.text("#life").count("✓ → ✓ kept") == knew - lost
    found.assert_quiet((tmp_path / "site").as_uri())


def test_pages_of_an_earlier_run_do_not_stay(tmp_path: Path) -> None:
    site = tmp_path / "site"
    study = write_made_study(tmp_path, {"one": 0.05, "two": 0.1})
    for more in ([], ["--no-pages"]):
        done = CliRunner().invoke(app, ["study", str(study), "--site", str(site), "-q", *more])
        assert done.exit_code == 0, done.output
        if not more:
            (site / "pairs" / "mine.html").write_text("kept")
            assert len(list((site / "pairs").iterdir())) == 3
    assert [path.name for path in (site / "pairs").iterdir()] == ["mine.html"]


def test_other_files_are_never_mixed_with_a_site(result: StudyResult, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match="holds other files"):
        write_site(result, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_file_names_are_safe_and_differ() -> None:
    names = ["a", "A", "a/b", "a b", "../../etc", "", "…", "x" * 300, "con:1"]
    files = list(file_names(names).values())
    assert len({name.lower() for name in files}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", name) for name in files)


def test_the_same_study_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    write_site(made_result(), tmp_path / "site")
    for name in ("index.html", "study.json"):
        assert (tmp_path / "site" / name).read_bytes() == (site / name).read_bytes()


# --- saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["map", "compare", "trade", "scale", "drift"])
def test_a_chart_is_saved_with_its_caption(shown: Visit, name: str) -> None:
    go(shown, f"#{name}")
    caption = shown.text(f"#{name}-caption")
    with shown.page.expect_download() as waiting:
        shown.page.click(f"#{name}-figure [data-kind=svg]")
    assert waiting.value.suggested_filename == f"forgetmap-{name}.svg"
    text = waiting.value.path().read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert " ".join(caption.split()[:4]) in text
    assert "<script" not in text
    with shown.page.expect_download() as waiting:
        shown.page.click(f"#{name}-figure [data-kind=png]")
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")
    shown.assert_quiet(shown.page.url)


# --- for everybody -------------------------------------------------------------------------------


def test_the_map_is_walked_by_keys(browser: Browser, logged: Path) -> None:
    found = visit(browser, address(logged, "#map?rows=name"))
    found.page.focus("#map-chart")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        found.page.keyboard.press(key)
    said = found.page.locator("#map-said").text_content()
    assert said.startswith("little: All; lost −2.0 %")
    found.page.keyboard.press("ArrowDown")
    found.page.keyboard.press("Enter")
    found.page.wait_for_url("**/pairs/most.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_other_senses_small_screens_and_printers(browser: Browser, site: Path, scheme: str) -> None:
    found = visit(browser, address(site), color_scheme=scheme)
    page = found.page
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert serious_faults(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    settle(found)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert serious_faults(page) == []
    page.emulate_media(media="print")
    assert not page.locator("#filters").is_visible()
    assert page.locator("h1").is_visible()
    assert len(page.pdf()) > 20_000
    found.assert_quiet(address(site))


OVERLAPS = """() => {
  const found = [];
  for (const part of document.querySelectorAll("#map-chart svg, .chart svg")) {
    const texts = [...part.querySelectorAll("text")].filter((one) => one.textContent.trim());
    const boxes = texts.filter((one) => !(one.getAttribute("transform") ?? "").includes("rotate"))
      .map((one) => [one.textContent, one.getBoundingClientRect()]);
    for (let a = 0; a < boxes.length; a += 1)
      for (let b = a + 1; b < boxes.length; b += 1) {
        const [one, two] = [boxes[a][1], boxes[b][1]];
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (wide > 2 && high > 4) found.push([boxes[a][0], boxes[b][0]]);
      }
  }
  return found;
}"""


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_two_labels_lie_on_each_other(browser: Browser, site: Path, width: int) -> None:
    for place in ("", "#map?size=numbers&as=bars&against=gained&along=examples"):
        found = visit(browser, address(site, place), width=width)
        assert found.page.evaluate(OVERLAPS) == [], place


# --- hostile text --------------------------------------------------------------------------------


def test_text_that_wants_to_be_more_stays_text(browser: Browser, tmp_path: Path) -> None:
    write_site(made_result(8, 4, 3, words=HOSTILE), tmp_path / "site")
    found = visit(browser, address(tmp_path / "site"))
    page = found.page
    for place in ("#map?by=task&group=family", "#compare?as=bars", "#trade?tint=family", "#board"):
        go(found, place)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    page.hover("#trade-chart .scatterlayer .point >> nth=0", force=True)
    for selector in ("#board-table", "#findings", "#items-table", "#notes", "#filters"):
        text = page.locator(selector).text_content()
        assert "<script>window.pwned" in text, selector
        assert not {"\x00", "\x1b", "\u202e", "\u2066", "\u2028"}.intersection(text), selector
    with page.expect_download() as waiting:
        page.click("#map-figure [data-kind=svg]")
    assert "<script" not in waiting.value.path().read_text(encoding="utf-8")
    assert page.evaluate("window.pwned") is None
    assert found.count("main img, main b, iframe") == 0
    found.assert_only_our_scripts()
    found.assert_quiet(address(tmp_path / "site"))


# --- quick ---------------------------------------------------------------------------------------

FILTERED = """async () => {
  const painted = () => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done)));
  const times = [];
  const steps = [
    () => { const box = document.getElementById("find"); box.value = "sft";
            box.dispatchEvent(new Event("input", { bubbles: true })); },
    () => document.getElementById("reset").click(),
    () => document.querySelector("[data-attribute=family] input").click(),
    () => document.querySelector("[data-attribute=method] input").click(),
    () => document.getElementById("reset").click(),
  ];
  for (const step of steps) {
    const start = performance.now();
    step();
    await painted();
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 1200));
  }
  return times;
}"""


def test_a_hundred_pairs_of_a_hundred_tasks_are_quick(browser: Browser, tmp_path: Path) -> None:
    write_site(made_result(100, 100, 12), tmp_path / "site")
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(address(tmp_path / "site", "#map?by=task"))
    page.wait_for_selector("html[data-seen]")
    first = int(page.get_attribute("html", "data-seen"))
    page.wait_for_selector(READY)
    rounds = [page.evaluate(FILTERED) for _ in range(8)]
    times = [min(step) for step in zip(*rounds, strict=True)]  # other programs run here too
    print(json.dumps({"first": first, "filters": times}))
    assert first < FIRST_VIEW_MS
    assert max(times) < FILTER_MS
    assert (tmp_path / "site" / "index.html").stat().st_size < 4_000_000
