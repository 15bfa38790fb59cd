"""Figures for papers and the display in a notebook."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.views import words

HOSTILE = "<script>window.pwned=1</script> $\\frac{1}{0}$ \x1b[31m \u202e {{x}}"


def log(right, task=HOSTILE):
    return Samples.from_rows(
        {"model": HOSTILE, "task": task, "item": content_hash(i), "score": float(i % right == 0)}
        for i in range(60)
    )


@pytest.fixture(scope="module")
def example():
    return forgetmap.demo()


def test_every_figure_is_written_as_svg_and_png(example, tmp_path):
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from forgetmap.views.figures.maps import write_figures

    first = {path: path.read_bytes() for path in write_figures(example, tmp_path / "a")}
    assert {path.suffix for path in first} == {".svg", ".png", ".tex"}
    for path, content in first.items():
        if path.suffix == ".svg":
            root = ET.fromstring(content)
            assert root.tag.endswith("svg")
            assert b"<script" not in content
            assert b"<image" not in content
            assert not re.search(rb'href="(?!#)', content)
        if path.suffix == ".png":
            assert content.startswith(b"\x89PNG")
    second = {path.name: path.read_bytes() for path in write_figures(example, tmp_path / "b")}
    assert {path.name: content for path, content in first.items()} == second


def test_hostile_names_are_drawn_as_text(tmp_path):
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from forgetmap.views.figures.maps import write_figures

    result = forgetmap.compare(log(2), log(3), draws=200)
    for path in write_figures(result, tmp_path):
        if path.suffix == ".svg":
            assert b"<script" not in path.read_bytes()


def test_the_forest_shows_the_asked_estimator_or_says_that_it_is_not_defined():
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from matplotlib import pyplot as plt

    from forgetmap.views.figures.maps import forest
    from forgetmap.views.figures.style import style

    result = forgetmap.compare(log(2, "t"), log(3, "t"), draws=200)
    with style():
        drawn = forest(result, "raw").axes[0]
        raw = result.total.raw.lost
        ends = [sorted(line.get_xdata()) for line in drawn.lines]
        assert [100 * raw.low, 100 * raw.high] in ends
        texts = [text.get_text() for text in forest(result, "paper").axes[0].texts]
        assert texts == [" not defined"] * 4
        with pytest.raises(ValueError, match="known are lost, raw, paper"):
            forest(result, "excess")
    plt.close("all")


def test_the_forest_draws_both_ends_of_lost_and_gained():
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from matplotlib import pyplot as plt

    from forgetmap.views.figures.maps import forest
    from forgetmap.views.figures.style import style

    result = forgetmap.compare(log(2, "t"), log(3, "t"), draws=200)
    with style():
        axes = forest(result).axes[0]
        widths = {round(bar.get_width(), 6) for bar in axes.patches}
        lines = [sorted(line.get_xdata()) for line in axes.lines]
        assert all(bar.get_x() == 0 for bar in axes.patches)  # nothing is taken off a bar
        for found in (result.total.lost, result.total.gained):
            assert {round(100 * found.low_end, 6), round(100 * found.high_end, 6)} <= widths
            assert [100 * found.low, 100 * found.high] in lines
    plt.close("all")


def test_without_matplotlib_one_line_says_what_to_install(example, tmp_path, monkeypatch):
    import sys

    from forgetmap.views.figures.maps import write_figures

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'forgetmap\[figures\]'"):
        write_figures(example, tmp_path)


def test_a_notebook_shows_a_table_with_a_forest_plot(example):
    shown = html.unescape(example._repr_html_()).replace("\u00a0", " ")
    totals = 2  # the old items, and all of them
    assert shown.count('role="img"') == totals + len(example.categories)
    assert "(new)" in shown
    assert words.headline(example) in shown
    assert "Measured from" in shown
    assert words.short_range(example.total.lost) in shown
    assert words.short_range(example.total.gained) in shown


def test_a_notebook_shows_hostile_names_as_text():
    shown = forgetmap.compare(log(2), log(3), draws=200)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    ET.fromstring(shown.replace("<br>", "<br/>"))
