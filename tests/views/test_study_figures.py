"""Figures for papers of a study."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from forgetmap.cli.app import app
from forgetmap.study.build import run_study
from forgetmap.study.published import published_study
from forgetmap.study.trade_off import on_front, trade_off
from forgetmap.study.units import find_units
from study_logs import write_made_study
from study_results import made_result

pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
from matplotlib import pyplot as plt

from forgetmap.views.figures import study as figures
from forgetmap.views.figures.style import style

ALL = ["heat_map", "leaderboard", "scale", "stages", "trade_off"]
HOSTILE = "<script>window.pwned=1</script> $\\frac{1}{0}$ \x1b[31m \u202e {{x}}"


@pytest.fixture
def drawn():
    """Draws a figure, and closes it after the test."""
    with style():
        yield lambda draw, result: draw(result)
    plt.close("all")


def test_every_figure_is_written_the_same_each_time(tmp_path):
    first = {
        path: path.read_bytes()
        for path in figures.write_study_figures(published_study(), tmp_path / "a")
    }
    assert sorted(path.stem for path in first if path.suffix == ".svg") == ALL
    assert sorted(path.stem for path in first if path.suffix == ".png") == ALL
    assert (tmp_path / "a" / "table.tex").read_text(encoding="utf-8").startswith("% rank")
    for path, content in first.items():
        if path.suffix == ".svg":
            assert ET.fromstring(content).tag.endswith("svg")
            assert b"<image" not in content
            assert not re.search(rb'href="(?!#)', content)
    again = {
        path.name: path.read_bytes()
        for path in figures.write_study_figures(published_study(), tmp_path / "b")
    }
    assert {path.name: content for path, content in first.items()} == again


def test_a_study_draws_only_what_it_has(tmp_path):
    plain = run_study(write_made_study(tmp_path, {"a": 0.1, "b": 0.2}))
    written = figures.write_study_figures(plain, tmp_path / "figures")
    assert {path.stem for path in written} == {"leaderboard", "heat_map", "trade_off", "table"}


def test_losses_and_gains_are_drawn_apart_with_their_intervals(drawn):
    result = made_result(6, 4)
    axes = drawn(figures.leaderboard, result).axes[0]
    ends = [sorted(line.get_xdata()) for line in axes.lines]
    for pair in result.pairs:
        for share in (pair.old.lost, pair.old.gained):
            assert [100 * share.low, 100 * share.high] in ends
    assert len(axes.get_yticklabels()) == 6


def test_the_heat_map_has_one_scale_and_shows_what_is_missing(drawn):
    result = published_study()
    lost, gained = drawn(figures.heat_map, result).axes[:2]
    meshes = [axes.collections[0] for axes in (lost, gained)]
    assert meshes[0].get_clim() == meshes[1].get_clim()
    missing = sum(len(pair.categories) < 9 for pair in result.pairs)
    assert missing
    grid = meshes[0].get_array()
    assert grid.shape == (47, 9)
    assert np.ma.getmaskarray(grid).any(axis=1).sum() == missing


def test_the_scale_tells_its_slopes_with_intervals(drawn):
    result = published_study()
    (axes,) = drawn(figures.scale, result).axes
    slope = next(slope for slope in result.answers.slopes if slope.within is None)
    value, low, high = (
        f"{100 * end:+.2f}"
        for end in (slope.per_doubling.value, slope.per_doubling.low, slope.per_doubling.high)
    )
    told = axes.get_title(loc="left").splitlines()
    assert told[0] == f"{value} ({low} to {high}) all pairs"
    assert len(told) > 1


def test_the_front_is_the_one_of_the_study(drawn):
    result = published_study()
    (axes,) = drawn(figures.trade_off, result).axes
    rings = [line for line in axes.lines if line.get_markersize() == 9]
    names = result.answers.trade_off.front
    assert len(rings) == len(names)
    losses = {round(100 * result.pair(name).old.lost.value, 6) for name in names}
    assert {round(float(ring.get_ydata()[0]), 6) for ring in rings} == losses


def test_every_start_has_its_own_panel_and_front(drawn):
    result = made_result(pairs=12)
    pairs = [
        pair.model_copy(update={"before": f"start {number % 2}", "before_log": "", "new_tasks": []})
        for number, pair in enumerate(result.pairs)
    ]
    merge = pairs[
        3
    ]  # without the attribute that makes curves, it belongs to its start all the same
    pairs[3] = merge.model_copy(update={"attributes": {"stage": "merge"}})
    answers = result.answers.model_copy(update={"trade_off": trade_off(pairs, find_units(pairs))})
    made = result.model_copy(update={"pairs": pairs, "answers": answers})
    panels = drawn(figures.trade_off, made).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["start 0", "start 1"]
    for axes in panels:
        mine = [pair for pair in pairs if pair.before == axes.get_title(loc="left")]
        rings = [line for line in axes.lines if line.get_markersize() == 9]
        assert len(rings) == on_front(mine).sum()
        assert sum(line.get_markersize() == 5 for line in axes.lines) == len(mine) == 6


def test_stages_have_intervals_over_pairs(drawn):
    result = published_study()
    (axes,) = drawn(figures.stages, result).axes
    ends = [sorted(map(float, line.get_xdata())) for line in axes.lines]
    for stage in result.answers.stages.stages:
        for sure in (stage.lost_interval, stage.gained_interval):
            assert [100 * sure.low, 100 * sure.high] in ends


def test_what_is_left_out_is_told(drawn, monkeypatch):
    monkeypatch.setattr(figures, "_MOST_ROWS", 5)
    monkeypatch.setattr(figures, "_MOST_COLUMNS", 2)
    result = published_study()
    board = drawn(figures.leaderboard, result)
    assert "42 pairs that lost less are not shown" in board.get_suptitle()
    last = board.axes[0].get_yticklabels()[-1].get_text()
    assert last.endswith("  47 (1-47)")
    assert "7 columns more are in the CSV" in drawn(figures.heat_map, result).get_suptitle()


def test_hostile_names_are_drawn_as_text(tmp_path):
    result = made_result(4, 3, words=HOSTILE)
    for path in figures.write_study_figures(result, tmp_path):
        if path.suffix == ".svg":
            assert b"<script" not in path.read_bytes()


def test_the_command_draws_and_refuses_a_file(tmp_path):
    done = CliRunner().invoke(
        app, ["study", "published", "--figures", str(tmp_path / "new" / "figures"), "--quiet"]
    )
    assert done.exit_code == 0, done.output
    assert sorted(path.stem for path in (tmp_path / "new" / "figures").glob("*.svg")) == ALL
    (tmp_path / "taken").write_text("x", encoding="utf-8")
    done = CliRunner().invoke(
        app, ["study", "published", "--figures", str(tmp_path / "taken"), "--json", "-"]
    )
    assert done.exit_code == 2
    assert "is a file; name a folder" in done.output
    assert "schema_version" not in done.output
