"""One number, one text: page, terminal, lineage, Markdown and JSON say the same of a comparison."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

import forgetmap
from browser import chromium, visit
from forgetmap.api import lineage
from forgetmap.base.words import percent
from forgetmap.map.example import example_logs, example_pipeline
from forgetmap.views.terminal.maps import print_map


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each view shows of the same step, with plain spaces and signs."""
    folder = tmp_path_factory.mktemp("agree")
    before, after = example_logs()
    tasks = before.parents[1] / "tasks.csv"
    report, page = folder / "report.html", folder / "lineage.html"
    result = forgetmap.compare(before, after, task_map=tasks, new=["airports"], report=report)
    (folder / "map.json").write_text(result.to_json())
    lineage(example_pipeline(), report=page)
    out = io.StringIO()
    print_map(result, Console(file=out, width=140, color_system=None))
    told = {"terminal": out.getvalue(), "one line": repr(result)}
    with chromium() as browser:
        for name, path in (("report", report), ("lineage", page)):
            told[name] = visit(browser, path.as_uri()).page.locator("body").inner_text()
    told["json"] = (folder / "map.json").read_text()
    return {name: plain(text) for name, text in told.items()}


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("−", "-").replace("–", "-"))


def cell(texts: dict[str, str]) -> dict:
    return json.loads(texts["json"])["old"]


@pytest.mark.parametrize("view", ["terminal", "report", "lineage", "one line"])
def test_the_loss_is_one_number(texts: dict[str, str], view: str) -> None:
    assert percent(cell(texts)["lost"]["high_end"]) in texts[view]


@pytest.mark.parametrize("view", ["terminal", "report", "lineage"])
def test_the_interval_is_one_interval(texts: dict[str, str], view: str) -> None:
    lost = cell(texts)["lost"]
    low, high = (percent(lost[end]).removesuffix(" %") for end in ("low", "high"))
    assert re.search(rf"{low}( to |, ){high}", texts[view])


@pytest.mark.parametrize("view", ["terminal", "report"])
def test_categories_are_rounded_alike(texts: dict[str, str], view: str) -> None:
    for name, found in json.loads(texts["json"])["categories"].items():
        shown = percent(found["lost"]["high_end"]).removesuffix(" %")
        place = rf"{re.escape(name)}\D[^A-Z]*?{re.escape(shown)}"
        assert re.search(place, texts[view]), (name, shown)


def test_shares_of_what_was_known_agree(texts: dict[str, str]) -> None:
    known = percent(cell(texts)["lost"]["of_known"]["value"])
    assert known in texts["terminal"]
    assert known in texts["report"]


def test_the_readme_says_the_same(texts: dict[str, str]) -> None:
    readme = plain((Path(__file__).parents[2] / "README.md").read_text())
    for share in (cell(texts)["lost"]["high_end"], cell(texts)["lost"]["of_known"]["value"]):
        assert percent(share) in readme
