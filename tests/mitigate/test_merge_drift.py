"""Weight drift against plain singular value decompositions, and sweeps from their answers."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from checkpoints import SHAPES, random_tensors, write_model
from forgetmap.base.errors import InputError
from forgetmap.map.result import Verdict
from forgetmap.mitigate.merge.sweep import Point, Split, Sweep, choose, measure
from forgetmap.mitigate.merge.weight_drift import spectral as spectral_of_blocks
from forgetmap.mitigate.merge.weight_drift import weight_drift
from forgetmap.mitigate.outcome import NewSkill, mark_pareto
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.stats.estimate import Estimate, Range
from forgetmap.views.figures.merge import draw_drift, draw_sweep
from forgetmap.views.terminal.sweep import print_sweep, verdict
from forgetmap.views.terminal.weight_drift import print_drift


def by_svd(before, after, top=10, strange=0.5):
    """The definitions, straight from three singular value decompositions."""
    moved = np.linalg.svd(after - before, compute_uv=False)
    shares = moved / moved.sum()
    shares = shares[shares > 1e-9]
    old, new = (np.linalg.svd(w, full_matrices=False)[0] for w in (before, after))
    cosines = np.abs(old.T @ new[:, :top]).max(axis=0)
    effective, stable = np.exp(-(shares * np.log(shares)).sum()), (moved**2).sum() / moved[0] ** 2
    return effective, stable, int((cosines < strange).sum())


def spectral(before, after):
    return spectral_of_blocks([(before, after)], is_tall=before.shape[0] > before.shape[1])


@pytest.mark.parametrize("shape", [(40, 24), (24, 40), (32, 32), (500, 12)])
@pytest.mark.parametrize("rank", [1, 3, 12])
def test_the_spectrum_equals_that_of_plain_decompositions(shape, rank):
    draw = np.random.default_rng(rank)
    before = draw.standard_normal(shape)
    change = draw.standard_normal((shape[0], rank)) @ draw.standard_normal((rank, shape[1]))
    found = spectral(before, before + change)
    effective, stable, intruders = by_svd(before, before + change)
    assert found.effective_rank == pytest.approx(effective, rel=1e-4)
    assert found.stable_rank == pytest.approx(stable, rel=1e-6)
    assert found.intruders == intruders
    assert found.effective_rank <= rank + 1e-6


def test_a_strong_new_direction_is_an_intruder_and_a_rescaling_is_none():
    """A column's direction outside the span of a tall matrix is new to it, whatever the rest."""
    draw = np.random.default_rng(0)
    before = draw.standard_normal((200, 20))
    new = np.linalg.qr(np.hstack([before, draw.standard_normal((200, 1))]))[0][:, -1]
    after = before + 100 * np.outer(new, draw.standard_normal(20))
    assert spectral(before, after).intruders == 1
    assert spectral(before, 1.5 * before).intruders == 0
    assert spectral(before, before) == (0.0, 0.0, 0)


@pytest.fixture
def pair(tmp_path):
    base = random_tensors(0)
    tuned = {name: value.copy() for name, value in base.items()}
    tuned["model.layers.0.q_proj.weight"] *= 1.1
    tuned["model.layers.1.q_proj.weight"] += 0.01
    one = write_model(tmp_path / "one", base)
    return one, write_model(tmp_path / "two", tuned), base, tuned


def test_drift_by_layer_and_module(pair):
    one, two, base, tuned = pair
    found = weight_drift(one, two)
    rows = {row.name: row for row in found.tensors}
    assert list(rows) == list(SHAPES)
    first = rows["model.layers.0.q_proj.weight"]
    assert (first.layer, first.module) == (0, "q_proj")
    assert first.relative == pytest.approx(0.1, rel=1e-5)
    assert first.cosine == pytest.approx(1)
    assert rows["model.norm.weight"].norm == 0
    assert rows["model.norm.weight"].effective_rank is None
    assert rows["model.embed_tokens.weight"].effective_rank == 0
    second = rows["model.layers.1.q_proj.weight"]
    assert second.effective_rank == pytest.approx(1, abs=1e-3)  # the same number everywhere
    squares = [np.sum((tuned[name] - base[name]) ** 2) for name in base]
    assert found.total.norm == pytest.approx(np.sqrt(sum(squares)), rel=1e-5)
    assert set(found.layers) == {"0", "1"}
    assert found.layers["0"].norm == pytest.approx(first.norm)
    assert found.modules["q_proj"].tensors == 2


def test_drift_is_printed_and_drawn(pair):
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from forgetmap.views.figures.style import style

    found = weight_drift(*pair[:2])
    out = Console(record=True, width=100, file=io.StringIO())
    print_drift(found, out)
    text = out.export_text()
    assert "q_proj" in text
    assert "intruders" in text
    with style():
        figure = draw_drift(found)
    assert len(figure.axes) >= 3


# Sweeps, from answers alone; test_merge_model.py runs real ones


def answers(model, old, new, chance=False):
    """Answers to both tasks; with `chance` the scores are also the right option's probability."""
    rows = [("old", place, score) for place, score in enumerate(old)]
    rows += [("new", place, score) for place, score in enumerate(new)]
    return Samples.from_rows(
        {
            "model": model,
            "task": task,
            "item": content_hash(task, place),
            "score": float(score > 0.5),
            "gold_probability": float(score) if chance else None,
        }
        for task, place, score in rows
    )


@pytest.fixture
def split(tmp_path):
    (tmp_path / "tasks.csv").write_text("task,category\nold,Facts\nnew,Skill\n")

    def make(samples, new=("new",)):
        return Split.of(samples, tmp_path / "tasks.csv", new)

    return make


def test_a_point_tells_old_from_new(split):
    before = answers("before", [1] * 80 + [0] * 20, [0] * 50)
    after = answers("after", [1] * 60 + [0] * 40, [1] * 50)
    merged = answers("merged", [1] * 72 + [0] * 28, [1] * 30 + [0] * 20)
    made = split(before)
    assert (made.old_tasks, made.new_tasks) == (["old"], ["new"])
    point, maps = measure(merged, (before, after), made, 0.5, None, draws=500)
    assert (point.lost.low_end, point.lost.high_end) == pytest.approx((0.08, 0.08))
    assert point.gained.high_end == 0
    assert (point.new.before, point.new.after) == (0, pytest.approx(0.6))
    assert point.new.change.value == pytest.approx(0.6)
    assert point.lost_of_after.high_end == pytest.approx(20 / 150)
    assert maps["before"].settings.new == maps["after"].settings.new == ["new"]
    assert maps["before"].old.n == 100
    assert set(maps) == {"before", "after"}
    assert set(maps["after"].tasks) == {"old", "new"}
    itself, _ = measure(before, (before, after), made, 0, "before", draws=500)
    assert (itself.lost.low_end, itself.lost.high) == (0, 0)
    assert itself.new.change == Estimate(value=0, low=0, high=0)
    assert (itself.new.before, itself.new.after) == (0, 0)


def test_gains_on_old_items_do_not_cancel_losses(split):
    """With option probabilities the loss is exact, whatever else was gained."""
    old = np.linspace(0.3, 0.9, 200)
    gained = np.where(np.arange(200) < 60, old - 0.2, np.minimum(old + 0.3, 1))
    before = answers("before", old, [0.2] * 50, chance=True)
    merged = answers("merged", gained, [0.9] * 50, chance=True)
    point, _ = measure(merged, (before, before), split(before), 0.5, None, draws=500)
    assert point.lost.high_end == pytest.approx(60 * 0.2 / 200)
    assert point.lost.low > 0
    assert point.gained.high_end == pytest.approx((gained - old)[60:].sum() / 200)


def test_without_new_tasks_what_counts_is_what_was_gained(split):
    before = answers("before", [1] * 80 + [0] * 20, [0] * 50)
    merged = answers("merged", [1] * 90 + [0] * 10, [1] * 5 + [0] * 45)
    point, maps = measure(merged, (before, before), split(before, ()), 0.5, None, draws=500)
    assert point.gained.high_end == point.won == pytest.approx(15 / 150)
    assert point.new is None
    assert maps["before"].new is None


def test_task_names_that_fit_nothing_are_refused(split):
    before = answers("before", [1], [0])
    with pytest.raises(InputError, match="--new fresh: not among the tasks \\(new, old\\)"):
        split(before, ("fresh",))
    with pytest.raises(InputError, match="every task is new"):
        split(before, ("*",))


def point(weight, lost, high, learned, parent=None):
    found = Range(
        low_end=lost, high_end=lost, low=0, high=high, of_known=None, basis="probabilities"
    )
    certain = Verdict(net="undecided", forgetting="undecided")
    change = Estimate(value=learned, low=learned - 0.1, high=learned + 0.1)
    return Point(
        weight=weight,
        parent=parent,
        lost=found,
        gained=found,
        new=NewSkill(before=0.1, after=0.1 + learned, change=change),
        verdict=certain,
        lost_of_after=found,
        verdict_after=certain,
    )


POINTS = [
    point(0, 0, 0, 0, "before"),
    point(0.3, 0.01, 0.03, 0.5),
    point(0.5, 0.04, 0.06, 0.4),
    point(0.7, 0.05, 0.08, 0.8),
    point(1, 0.2, 0.25, 0.8, "after"),
]


@pytest.mark.parametrize(
    ("budget", "weight"),
    [(0.005, None), (0.03, 0.3), (0.06, 0.3), (0.08, 0.7), (0.5, 0.7)],
)
def test_the_choice_learns_most_surely_within_the_budget(budget, weight):
    chosen = choose(POINTS, budget)
    assert (chosen.weight if chosen else None) == weight


def test_a_point_within_the_budget_by_its_estimate_alone_is_the_second_choice():
    assert choose(POINTS, 0.02).weight == 0.3  # none is surely within it
    wide = point(0.4, 0.01, 0.2, 0.9)
    assert choose([*POINTS, wide], 0.03).weight == 0.3  # a sure one goes first
    loss = wide.lost.model_copy(update={"low_end": 0.0, "high_end": 0.1, "basis": "single_run"})
    unknown = wide.model_copy(update={"lost": loss})
    assert choose([unknown], 0.05) is None  # as much as a tenth may be lost


def test_pareto_points_are_those_that_none_beats():
    assert [found.weight for found in mark_pareto(POINTS) if found.is_pareto] == [0, 0.3, 0.7]


def result(**changes):
    points = mark_pareto(POINTS)
    told = {"before": "base", "after": "tuned", "method": "linear", "density": None, "scale": 1.0}
    return Sweep(
        **told, seed=0, suite="tiny 1", old_tasks=["old"], new_tasks=["new"],
        points=points, **changes,
    )  # fmt: skip


def test_what_was_chosen_is_said():
    assert "no merge stays within a loss of at most 1.0 %" in verdict(result(budget=0.01))
    said = verdict(result(budget=0.03, chosen=0.3, sure=True, folder="out/weight-0.3/linear-0.3"))
    assert said.startswith("weight 0.3 learns most within a loss of at most 3.0 %: lost 1.0 %")
    assert "new tasks 10.0 -> 60.0 %, by 50.0 % (40.0 to 60.0)" in said
    assert "linear-0.3" in said
    assert "not sure" not in said
    unsure = verdict(result(budget=0.02, chosen=0.3, sure=False))
    assert "which is not sure: it may be 3.0 %" in unsure
    assert "0, 0.3, 0.7" in verdict(result())


def test_a_sweep_is_printed_and_drawn():
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    from forgetmap.views.figures.style import style

    out = Console(record=True, width=100, file=io.StringIO())
    print_sweep(result(budget=0.03, chosen=0.3, sure=True), out)
    text = out.export_text()
    assert "0.3* chosen" in text
    assert "1 after" in text
    assert "1.0 (0.0, 3.0)" in text
    assert "10.0 -> 60.0" in text
    assert max(map(len, text.splitlines())) <= 100
    with style():
        figure = draw_sweep(result(budget=0.03, chosen=0.3))
    labels = {note.get_text() for note in figure.axes[0].texts}
    assert labels == {"before", "0.3", "0.5", "0.7", "after"}
    assert Sweep.from_json(result().model_dump_json()) == result()


def old_estimate(value):
    return {"value": value, "low": value - 0.01, "high": value + 0.02}


def old_sweep(headline, new_accuracy=0.9, **changes):
    """A sweep as version 1 wrote it."""
    told = {"before": "base", "after": "tuned", "method": "linear", "density": None, "scale": 1.0}
    held = {
        "weight": 0.5,
        "parent": None,
        "forgetting": old_estimate(0.04),
        "retained": old_estimate(0.9),
        "gain": old_estimate(0.6),
        "new_accuracy": new_accuracy,
        "verdict": {"net": "equivalent", "forgetting": "forgot"},
        "lost_of_after": old_estimate(0.1),
        "verdict_after": {"net": "worse", "forgetting": "kept"},
        "is_pareto": True,
    }
    tasks = {"old_tasks": ["old"], "new_tasks": ["new"] if new_accuracy else []}
    more = {"schema_version": 1, "seed": 0, "suite": "tiny 1", "headline": headline, **tasks}
    return json.dumps({**told, **more, "points": [held], **changes})


def test_sweeps_of_version_1_are_read_without_claiming_more_than_they_knew():
    sure = {"budget": 0.1, "chosen": 0.5}
    flips = Sweep.from_json(old_sweep("raw", **sure))
    (found,) = flips.points
    assert flips.schema_version == 2
    assert (found.lost.low_end, found.lost.high_end) == (0, 0.04)  # noise is in the flips
    assert found.verdict == Verdict(net="equal", forgetting="undecided")
    assert found.verdict_after.forgetting == "held"
    assert found.gained is None
    assert (found.new.before, found.new.after) == (pytest.approx(0.3), 0.9)
    assert flips.sure
    half = Sweep.from_json(old_sweep("soft", new_accuracy=None, **sure))
    (found,) = half.points
    assert (found.lost.low_end, found.lost.high_end) == (0.04, pytest.approx(0.06))
    assert (found.verdict.forgetting, found.verdict_after.forgetting) == ("lost", "undecided")
    assert found.new is None
    assert found.gained.low_end == 0.6
    assert half.sure is False
    with pytest.raises(InputError, match="schema version 9"):
        Sweep.from_json('{"schema_version": 9}')
