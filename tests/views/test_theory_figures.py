"""The figures of the theory: every named plot is there, shows what it says, is written whole."""

from __future__ import annotations

import functools
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("matplotlib", reason="figures need pip install -e .[figures]")

from forgetmap import theory as lab
from forgetmap.cli import theory_pictures as picture_cli
from forgetmap.views.figures import theory as figures

PANELS = {
    "overlap": 2, "sft": 3, "replay": 3, "reverse": 3, "drift": 2, "geometry": 3, "starvation": 3,
    "sdft": 2, "ttt": 2, "oapl": 2, "chen": 3,
}  # fmt: skip
"""Plots that the specification names, by section from 2 to 12."""


@pytest.fixture(scope="module")
def drawn():
    """Draw a figure, once for all tests; gives its panels in order."""
    import matplotlib.pyplot as plt

    @functools.cache
    def draw(name):
        with figures.look():
            return [ax for ax in figures.FIGURES[name]().axes if ax.get_title(loc="left")]

    yield draw
    plt.close("all")


def command():
    app = typer.Typer()
    app.command()(picture_cli.figures)
    return app


def test_there_is_a_figure_for_every_section():
    assert list(figures.FIGURES) == list(PANELS)


@pytest.mark.parametrize("name", PANELS)
def test_panels_are_labelled_and_say_where_they_come_from(name, drawn):
    panels = drawn(name)
    assert len(panels) == PANELS[name]
    for ax in panels:
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        tag = ax.get_title(loc="right")
        assert tag.startswith("[")
        assert any(letter in tag for letter in "PMD")
        assert ax.lines or ax.patches or ax.images or ax.collections


def line(ax, label):
    return next(found for found in ax.lines if found.get_label() == label)


def test_lines_are_the_functions_values(drawn):
    exact = line(drawn("overlap")[0], "0.2")
    assert np.allclose(exact.get_ydata(), lab.eps_old(0.2, exact.get_xdata()))
    replayed = line(drawn("replay")[0], "at time 100")
    assert np.allclose(replayed.get_ydata(), lab.forward_flow(100, 0.5, 4.0, replayed.get_xdata()))
    kept = line(drawn("oapl")[0], "0.2")
    assert np.allclose(kept.get_ydata()[1:], lab.tilt_odds(0.5, 0.2 * np.arange(1, 21)))


@pytest.mark.parametrize(("name", "panel", "above"), [("overlap", 0, 1), ("drift", 0, 1)])
def test_bounds_stand_on_the_right_side(name, panel, above, drawn):
    """Exact line and bound alternate; a bound that crosses its value would be wrong."""
    ax = drawn(name)[panel]
    lines = [np.asarray(found.get_ydata()) for found in ax.lines if len(found.get_ydata()) > 2]
    for exact, bound in zip(lines[::2], lines[1::2], strict=True):
        assert np.all(above * (bound - exact) >= -1e-12)


def test_the_command_writes_svg_and_png(tmp_path, monkeypatch):
    monkeypatch.setattr(
        figures, "FIGURES", {name: figures.FIGURES[name] for name in ("oapl", "sdft")}
    )
    done = CliRunner().invoke(command(), ["--out", str(tmp_path / "new" / "folder")])
    assert done.exit_code == 0, done.output
    assert "figure 2 of 2: sdft" in done.stderr
    found = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert found == [f"theory-{n}.{kind}" for n in ("oapl", "sdft") for kind in ("png", "svg")]
    for path in (tmp_path / "new" / "folder").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_the_same_figure_is_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"starvation": figures.FIGURES["starvation"]})
    for side in ("one", "two"):
        (tmp_path / side).mkdir()
        figures.write_figures(tmp_path / side)
    for kind in ("svg", "png"):
        one, two = (tmp_path / side / f"theory-starvation.{kind}" for side in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("a file")
    done = CliRunner().invoke(command(), ["--out", str(tmp_path / "taken")])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "taken" in done.stderr


def test_the_commands_import_nothing_heavy():
    code = (
        "import sys, forgetmap.cli.theory_pictures; "
        "print([name for name in ('matplotlib', 'numpy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
