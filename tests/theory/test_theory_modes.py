"""Several old behaviours: against the two-mode theory, finite differences, and by symmetry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.theory.budget import sft_fit, sft_forecast
from forgetmap.theory.forward import forward_flow
from forgetmap.theory.modes import Modes, first_to_go, mode_flow, mode_grad
from forgetmap.theory.reverse import reverse_flow

TIMES = np.array([0.0, 1.0, 10.0, 60.0])
THREE = Modes.of([0.0, 2.0, 5.0], [1.0, 0.5, 2.0])


@pytest.mark.parametrize("delta", [0.7, 2.0, 5.0])
@pytest.mark.parametrize("replay", [0.0, 0.3])
def test_two_equal_modes_are_the_two_mode_picture(delta: float, replay: float) -> None:
    two = Modes.of([0.0, delta])
    path = mode_flow(TIMES, [0.6, 0.4], two, replay=replay)
    assert path[0] == pytest.approx(forward_flow(TIMES, 0.6, delta, replay), abs=1e-7)
    assert path.sum(axis=0) == pytest.approx(1)


@pytest.mark.parametrize("target", [0.2, 0.7])
def test_reverse_kl_is_that_of_the_two_mode_picture(target: float) -> None:
    path = mode_flow(TIMES, [0.6, 0.4], Modes.of([0.0, 3.0]), replay=target, objective="reverse")
    assert path[0] == pytest.approx(reverse_flow(TIMES, 0.6, target, 3.0), abs=1e-7)


def loss(odds: np.ndarray, goal: np.ndarray, modes: Modes, objective: str) -> float:
    """By brute force, on a grid of its own."""
    x = np.linspace(-25, 30, 60_001)
    z = (x - modes.means[:, None]) / modes.spreads[:, None]
    logs = -(z**2) / 2 - np.log(modes.spreads * np.sqrt(2 * np.pi))[:, None]
    model = logsumexp(logs + np.log(softmax(np.append(odds, 0.0)))[:, None], axis=0)
    target = logsumexp(logs + np.log(goal)[:, None], axis=0)
    first, second = (target, model) if objective == "sft" else (model, target)
    return float(np.trapezoid(np.exp(first) * (first - second), x))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.sampled_from(["sft", "reverse"]),
)
def test_slopes_are_those_of_the_loss(odds: list[float], objective: str) -> None:
    goal, now, step = np.array([0.2, 0.3, 0.5]), np.array(odds), 1e-4
    found = mode_grad(softmax(np.append(now, 0.0)), goal, THREE, objective)
    for place in range(2):
        nudge = step * np.eye(2)[place]
        numeric = loss(now + nudge, goal, THREE, objective) - loss(
            now - nudge, goal, THREE, objective
        )
        assert found[place] == pytest.approx(numeric / (2 * step), abs=1e-6)


def test_training_ends_at_the_replayed_shares() -> None:
    path = mode_flow([3000.0], [0.5, 0.3, 0.2], THREE, replay=0.4)
    assert path[:, 0] == pytest.approx([0.25, 0.15, 0.6], abs=1e-4)


def test_modes_that_are_alike_go_together_and_names_do_not_matter() -> None:
    mirrored = Modes.of([-3.0, 3.0, 0.0])
    path = mode_flow(TIMES, [0.4, 0.4, 0.2], mirrored)
    assert path[0] == pytest.approx(path[1])
    swapped = mode_flow(TIMES, [0.3, 0.5, 0.2], Modes.of([2.0, 0.0, 5.0], [0.5, 1.0, 2.0]))
    straight = mode_flow(TIMES, [0.5, 0.3, 0.2], THREE)
    assert swapped[[1, 0, 2]] == pytest.approx(straight)


def test_without_replay_every_old_mode_goes_and_none_comes_back() -> None:
    """A mode near the new one may rise at first, while the far one feeds both."""
    path = mode_flow([0.0, 1e4], [0.4, 0.4, 0.2], Modes.of([0.0, 3.0, 6.0]))
    assert (path[:2, 1] < 0.1).all()
    far, near = first_to_go([0.4, 0.4, 0.2], Modes.of([0.0, 5.0, 6.0]))
    assert far < near


def test_what_is_kept_by_replay_never_goes() -> None:
    assert np.isinf(first_to_go([0.4, 0.4, 0.2], Modes.of([0.0, 3.0, 6.0]), replay=0.9)).all()


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: Modes.of([1.0]), "name one old mode at least"),
        (lambda: Modes.of([0.0, 1.0], [1.0, 0.0]), "spreads"),
        (lambda: Modes.of([0.0, 1e9], [1.0, 1.0]).on_grid(), "bring them nearer"),
        (lambda: mode_flow([1.0], [0.5, 0.6], Modes.of([0.0, 1.0])), "add up to 1.1"),
        (lambda: mode_flow([1.0], [0.5, 0.5], THREE), "2 for 3 modes"),
        (lambda: mode_grad([0.5, 0.5], [0.5, 0.5], Modes.of([0, 1]), "ppo"), "is unknown"),
    ],
)
def test_bad_input_is_one_line(call, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        call()


@pytest.mark.parametrize("replay", [0.0, 0.15])
def test_a_fit_finds_the_clock_and_shows_where_it_is_wrong(replay: float) -> None:
    steps = np.array([0.0, 20.0, 60.0, 150.0])
    exact = sft_forecast(0.6, 0.05, steps, replay)
    fit = sft_fit(steps, exact, replay)
    assert fit.rate == pytest.approx(0.05)
    assert fit.masses == pytest.approx(exact)
    assert fit.last_unseen == pytest.approx(exact[-1])
    bent = exact.copy()
    bent[-1] += 0.05
    assert abs(sft_fit(steps, bent, replay).last_unseen - bent[-1]) == pytest.approx(0.05)


# --- the calculators ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("modes sft --old 0:1:0.4 --old 4:1:0.4 --new 6:1", "old 1 goes first"),
        ("modes sft --old 0:1:0.4 --new 6:1 --replay 0.9", "none of the old modes"),
        ("forecast --at 0:0.5 --at 100:0.3 --at 200:0.2", "would have been forecast at"),
        ("forecast --at 0:0.5 --at 100:0.3 --at 200:0.2 --replay 0.1 --below 0.15", "misfit"),
        ("drift --start 0.8 --target 0.5 --delta 4", "at most 0.0628 standard deviations"),
        ("geometry --target 0.2 --delta 3", "10.5 times as fast"),
        ("sdft --start 0.2 --teacher 0.6 --target 0.4", "its old mode moves by 0.0642 standard"),
        ("sdft --anchor 0 --delta inf", "meet at 45.6 %"),
        ("oapl --gap 1 --rounds 2", "50.0 % -> 26.9 % -> 11.9 %"),
    ],
)
def test_calculators_answer(words: str, said: str) -> None:
    result = CliRunner().invoke(app, ["theory", *words.split()])
    assert result.exit_code == 0, result.output
    assert said in " ".join(result.output.split())
    assert "rests on:" in result.output
    assert "do not trust it when:" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("modes sft --old 0:1 --new 6:1", "write it as MEAN:SPREAD:WEIGHT"),
        ("modes sft --old 0:1:0.7 --old 1:1:0.5 --new 6:1", "add up to 1.2"),
        ("modes ppo --old 0:1:0.7 --new 6:1", "is unknown"),
        ("oapl --gap 1 --rounds 0", "rounds"),
        ("forecast --at 0:0.5", "two checkpoints at least"),
        ("forecast --at 0:0.5 --at 10:0.6", "must have moved"),
        ("forecast --at 9:0.5 --at 1:0.4", "in the order of training"),
        ("forecast --first 0.5", "give --first, --second and --steps"),
        ("forecast --at 0:0.5 --first 0.5", "leave --first"),
        ("drift --budget 0", "budget"),
    ],
)
def test_calculators_refuse_in_one_line(words: str, said: str) -> None:
    result = CliRunner().invoke(app, ["theory", *words.split()])
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1
