"""The Python API shows itself: names, tables, pictures, pages, and what a prompt prints."""

from __future__ import annotations

import doctest
import inspect
import json
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

import forgetmap
from browser import chromium
from forgetmap import api
from forgetmap.base.errors import InputError
from forgetmap.map.example import example_logs, example_pipeline
from forgetmap.views.widget import MOST_ITEMS, items_widget, shown_rows
from places import ROOT

VERBS = ("compare", "lineage", "study", "drift", "gate", "evaluate", "merge", "demo")
SCORES = ROOT / "examples/study/logs/scores"


@pytest.fixture(scope="module")
def results():
    """One result of each kind."""
    before, after = (SCORES / f"{name}.parquet" for name in ("smollm2-before",
                                                             "smollm2-airports-sft-0"))  # fmt: skip
    return {
        "map": forgetmap.demo(),
        "lineage": forgetmap.lineage(example_pipeline()),
        "study": forgetmap.study("published"),
        "drift": forgetmap.drift(before, after, manifest="open-suite", draws=500),
    }


KINDS = ("map", "lineage", "study", "drift")


def test_dir_shows_exactly_the_public_names():
    assert dir(forgetmap) == sorted(forgetmap.__all__)
    assert set(VERBS) <= set(dir(forgetmap))


def test_every_verb_is_there_whatever_was_imported_before():
    """A room has the name of its function; importing one of its modules must not hide it."""
    code = "import forgetmap.lineage.pipeline, forgetmap.study.file, forgetmap.gate.policy\n"
    code += "import forgetmap.evaluate.run, forgetmap\n"
    code += f"print(all(callable(getattr(forgetmap, name)) for name in {VERBS}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("name", ["lineage", "study", "gate", "evaluate"])
def test_a_room_that_can_be_called_tells_its_arguments(name):
    from forgetmap import api
    from forgetmap.evaluate import run

    home = run if name == "evaluate" else api
    assert inspect.signature(getattr(forgetmap, name)) == inspect.signature(getattr(home, name))


@pytest.mark.parametrize("name", [name for name in dir(forgetmap) if name != "__version__"])
def test_every_public_name_has_an_example(name):
    """pytest runs the examples of all docstrings; here none may be missing or passed over."""
    made = api.demo if name == "demo" else getattr(forgetmap, name)  # the tests keep the demo's map
    text = inspect.getdoc(made) or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert examples, f"{name} has no example"
    assert not any(doctest.SKIP in example.options for example in examples)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_prints_one_line(results, kind):
    text = repr(results[kind])
    assert "\n" not in text
    assert len(text) < 400
    assert text.startswith("<")


@pytest.mark.parametrize("kind", KINDS)
def test_cells_become_tables(results, kind):
    table = results[kind].to_arrow()
    assert table.num_rows > 5
    pandas, polars = results[kind].to_pandas(), results[kind].to_polars()
    assert list(pandas.columns) == polars.columns == table.column_names
    assert len(pandas) == len(polars) == table.num_rows


def test_the_table_of_a_map_holds_its_numbers(results):
    result = results["map"]
    rows = {(row["level"], row["name"]): row for row in result.to_arrow().to_pylist()}
    assert rows[("total", "old")]["lost_high_end"] == pytest.approx(result.old.lost.high_end)
    assert rows[("task", "atlas_capitals")]["n"] == result.tasks["atlas_capitals"].n
    assert len(rows) == 4 + len(result.categories) + len(result.tasks)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_show_losses_and_gains_apart(results, kind):
    lost, gained = results[kind].plot().data
    assert (lost.name, gained.name) == ("lost", "gained")
    assert lost.marker.color != gained.marker.color
    assert len(lost.x) == len(lost.y) > 1
    assert min(lost.x) >= 0 <= min(gained.x)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_written(results, kind, tmp_path):
    path = results[kind].report(tmp_path / "page.html")
    page = path / "index.html" if path.is_dir() else path
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_get_html_without_script(results, kind):
    html = results[kind]._repr_html_()
    assert "<table" in html
    assert "<script" not in html


def test_flips_are_the_items_that_changed(results):
    result = results["map"]
    flips = result.flips
    lost = flips.filter(pa.compute.equal(flips["transition"], "forgotten"))
    assert lost.num_rows == result.total.counts.n10
    assert set(flips.column_names) >= {"task", "item", "transition", "answer_after", "cause"}
    steps = results["lineage"].flips
    assert {"before", "after", "task", "transition"} <= set(steps.column_names)


@pytest.mark.parametrize("kind", ["study", "drift"])
def test_results_without_items_say_so(results, kind):
    with pytest.raises(InputError, match="has no list of items"):
        _ = results[kind].flips


def test_a_map_from_a_file_says_that_it_has_no_items(results, tmp_path):
    again = forgetmap.ForgettingMap.from_json(results["map"].to_json())
    assert again == results["map"]
    with pytest.raises(InputError, match="read from a file"):
        _ = again.flips
    with pytest.raises(InputError, match="read from a file"):
        again.report(tmp_path / "map.html")


def test_results_can_be_pickled(results):
    _ = results["map"].flips  # which opens a database
    for result in results.values():
        assert pickle.loads(pickle.dumps(result)) == result


def test_the_report_of_a_result_is_that_of_the_call(results, tmp_path):
    before, after = example_logs()
    options = {"task_map": before.parents[1] / "tasks.csv", "new": ["airports"]}
    forgetmap.compare(before, after, report=tmp_path / "one.html", **options)
    results["map"].report(tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


# --- the widget -----------------------------------------------------------------------------------


@pytest.mark.extras
def test_the_widget_holds_the_items(results):
    anywidget = pytest.importorskip("anywidget", reason="needs: pip install 'forgetmap[notebook]'")
    made = items_widget(results["map"].flips)
    assert isinstance(made, anywidget.AnyWidget)
    assert len(made.rows) == min(MOST_ITEMS, results["map"].flips.num_rows)
    assert made.rows[0]["transition"] == "forgotten"


def test_the_widget_works_and_hostile_texts_stay_text(results):
    """Its script in a real browser, with a model such as a notebook gives it."""
    rows = shown_rows(results["map"].flips)[:120]
    rows[0] |= {"task": "<img src=x onerror=window.hit=1>", "response_after": "<b>bold</b>"}
    script = (ROOT / "src/forgetmap/views/html/assets/widget.js").read_text(encoding="utf-8")
    script = script.replace("export default", "window.widget =")
    state = json.dumps({"rows": rows, "left_out": 7}).replace("<", "\\u003c")
    start = f"const state = {state};widget.render({{model: {{get: (n) => state[n]}}, el: root}});"
    with chromium() as browser:
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_content("<div id=root></div>")
        page.evaluate(f"() => {{ {script}\n{start} }}")
        assert page.locator(".fm-count").inner_text() == "120 items; 7 more are in .flips"
        assert page.locator("tbody tr").count() == 50
        page.get_by_text("show more").click()
        assert page.locator("tbody tr").count() == 100
        page.get_by_label("search the items").fill("onerror")
        assert page.locator("tbody tr").count() == 1
        page.locator("tbody tr").press("Enter")
        assert "<b>bold</b>" in page.locator(".fm-details").inner_text()
        page.get_by_label("search the items").fill("")
        page.get_by_label("which items").select_option("gained")
        lost = [row for row in rows if row["transition"] == "forgotten"]
        assert page.locator(".fm-count").inner_text().startswith(f"{120 - len(lost)} items")
        assert page.evaluate("window.hit") is None
        assert errors == []
