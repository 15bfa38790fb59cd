"""Properties of the theory lab over random inputs: bounds, gradients, flows, closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.special import expit, logit
from scipy.stats import norm

from forgetmap import theory as lab
from forgetmap.theory.chen import _scores

SHARES = st.floats(0.01, 0.99)
DELTAS = st.floats(0.05, 12.0)
REPLAYS = st.floats(0.0, 0.9)
MEANS = st.floats(-1.5, 6.0)
ROUNDING = 1 + 1e-9
HERMITE = np.polynomial.hermite_e.hermegauss(180)


def spec_mean(f, mean, delta):
    """The specification's own rule: the trapezoid on 40,001 points."""
    x = np.linspace(-14, delta + 14, 40_001)
    return np.trapezoid(f(x) * norm.pdf(x, mean), x)


# --- quadrature ---------------------------------------------------------------------------------


@given(SHARES, DELTAS)
def test_our_grid_agrees_with_the_trapezoid_of_the_specification(beta, delta):
    def new_share(x):
        return expit(delta * (x - delta / 2) - logit(beta))

    assert lab.eps_old(beta, delta) == pytest.approx(spec_mean(new_share, 0, delta), abs=1e-10)


@given(SHARES, st.floats(0.05, 3.0))
def test_our_grid_agrees_with_gauss_hermite(beta, delta):
    z, weights = HERMITE
    by_hermite = weights / weights.sum() @ expit(delta * (z - delta / 2) - logit(beta))
    assert lab.eps_old(beta, delta) == pytest.approx(by_hermite, abs=1e-7)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_the_one_dimensional_reduction_holds_in_any_dimension(dimensions):
    rng = np.random.default_rng(dimensions)
    root = rng.normal(size=(dimensions, dimensions)) + 2 * np.eye(dimensions)
    covariance, gap, beta = root @ root.T, rng.normal(size=dimensions) * 3, 0.3
    old = rng.standard_normal((200_000, dimensions)) @ root.T
    precision = np.linalg.inv(covariance)
    log_ratio = old @ precision @ gap - gap @ precision @ gap / 2
    attributed_to_new = expit(log_ratio - logit(beta))
    exact = lab.eps_old(beta, lab.separation_of(np.zeros(dimensions), gap, covariance))
    error = attributed_to_new.std() / np.sqrt(len(old))
    assert abs(attributed_to_new.mean() - exact) < 4.5 * error


# --- bounds -------------------------------------------------------------------------------------


@given(SHARES, DELTAS)
def test_misassignment_stays_below_its_bounds(beta, delta):
    assert lab.eps_old(beta, delta) <= lab.eps_old_bound(beta, delta) * ROUNDING
    assert lab.eps_new(beta, delta) <= lab.eps_old_bound(1 - beta, delta) * ROUNDING
    blur = lab.joint_misassignment(beta, delta)
    assert blur <= np.sqrt(beta * (1 - beta)) * lab.bc(delta) / 2 * ROUNDING
    assert blur == pytest.approx((1 - beta) * lab.eps_new(beta, delta), rel=1e-9)


@given(SHARES, st.floats(0.05, 8.0), st.floats(-1.0, 1.0))
def test_shifted_misassignment_stays_below_its_bound(alpha, delta, shift):
    found = lab.gates(0.5, shift, delta, alpha, delta).target
    assert found <= lab.shifted_eps_bound(alpha, delta, shift) * ROUNDING


@given(SHARES, DELTAS)
def test_the_pull_of_fine_tuning_lies_between_its_bounds(beta, delta):
    pull = lab.forward_grad(beta, delta)
    chernoff, bhattacharyya = lab.forward_grad_bounds(beta, delta)
    assert 0 < pull <= beta
    assert pull * ROUNDING >= max(chernoff, bhattacharyya)


@given(SHARES, DELTAS)
def test_resolution_is_what_misassignment_leaves(beta, delta):
    left = 1 - lab.eps_old(beta, delta) - lab.eps_new(beta, delta)
    assert lab.resolution(beta, delta) == pytest.approx(left, abs=1e-12)


@given(SHARES, SHARES, st.floats(0.05, 9.0), st.floats(0.05, 9.0))
def test_the_drift_budget_bounds_the_gate(alpha, beta, delta, model_delta):
    gate = lab.drift_gate(beta, 0, model_delta, alpha, delta)
    assert gate <= lab.drift_bound(alpha, beta, delta, model_delta) * ROUNDING


@given(SHARES, st.floats(0.0, 12.0))
def test_the_smallest_eigenvalue_stays_above_its_bound(alpha, delta):
    values = np.linalg.eigvalsh(lab.fisher(alpha, delta))
    assert values[0] >= lab.fisher_lower_bound(alpha, delta) - 1e-12
    assert values[-1] <= max(alpha, 1 - alpha) + 1e-12


@given(SHARES, st.floats(0.05, 12.0), REPLAYS, st.floats(-20.0, 30.0))
def test_importance_weights_stay_within_their_bounds(beta, delta, replay, x):
    low, high = lab.weight_bounds(beta, replay)
    assert low / ROUNDING <= lab.importance_weight(x, beta, delta, replay) <= high * ROUNDING
    assert 1 - 1e-9 <= lab.weight_second_moment(beta, delta, replay) <= high * ROUNDING


@given(SHARES, st.floats(0.0, 50.0), st.floats(0.05, 5.0))
def test_the_entropic_fixed_point_lies_in_its_bracket_above_the_floor(reference, gain, penalty):
    found = lab.ttt_fixed_point(reference, gain, penalty)
    low, high = lab.ttt_bracket(reference, gain, penalty)
    assert low / ROUNDING <= found <= high * ROUNDING
    assert found * ROUNDING >= lab.ttt_floor(reference, penalty)
    assert lab.ttt_grad(np.clip(found, 1e-300, 1 - 1e-16), reference, gain, penalty) == (
        pytest.approx(0, abs=1e-9)
    )


@given(SHARES, SHARES, st.floats(0.0, 4.0), st.floats(0.05, 8.0))
def test_forces_on_the_old_mean_stay_below_their_bounds(beta, reference, gain, delta):
    force, bound = lab.ttt_force(beta, reference, gain, delta)
    assert 0 <= force <= bound * ROUNDING
    pull, limit = lab.oapl_gate(reference, gain, delta)
    assert 0 <= pull <= limit * ROUNDING


# --- gradients are finite differences ------------------------------------------------------------


def difference(f, x, step=1e-5):
    return (f(x + step) - f(x - step)) / (2 * step)


@given(SHARES, st.floats(0.3, 8.0), REPLAYS)
def test_forward_gradient(beta, delta, replay):
    slope = difference(lambda x: lab.forward_kl(expit(x), delta, replay), logit(beta))
    assert lab.forward_grad(beta, delta, replay) == pytest.approx(slope, abs=1e-8)


@given(SHARES, st.floats(0.0, 1.0), st.floats(0.3, 8.0))
def test_reverse_gradient_and_curvature(beta, alpha, delta):
    slope = difference(lambda x: lab.reverse_kl(expit(x), alpha, delta), logit(beta))
    assert lab.reverse_grad(beta, alpha, delta) == pytest.approx(slope, abs=1e-7)
    weight = np.clip(beta, 0.02, 0.98)
    goal = logit(np.clip(alpha, 1e-6, 1 - 1e-6))
    bend = difference(lambda b: lab.reverse_slope(logit(b), goal, delta), weight)
    assert lab.reverse_curvature(weight, delta) == pytest.approx(bend, rel=1e-4)


@given(SHARES, MEANS, MEANS, SHARES, st.floats(0.3, 6.0))
def test_joint_reverse_gradient(beta, old, new, alpha, delta):
    found = lab.joint_reverse_grad(beta, old, new, alpha, delta)

    def loss(log_odds, old, new):
        return lab.joint_reverse_kl(expit(log_odds), old, new, alpha, delta)

    by_difference = (
        difference(lambda x: loss(x, old, new), logit(beta)),
        difference(lambda x: loss(logit(beta), x, new), old),
        difference(lambda x: loss(logit(beta), old, x), new),
    )
    assert np.array(found) == pytest.approx(np.array(by_difference), abs=1e-7)


@given(SHARES, MEANS, MEANS, REPLAYS, st.floats(0.3, 6.0))
def test_joint_forward_gradient(beta, old, new, replay, delta):
    found = lab.joint_forward_grad(beta, old, new, delta, replay)
    x = np.linspace(-14, delta + 14, 4001)
    data = replay * norm.pdf(x) + (1 - replay) * norm.pdf(x, delta)

    def loss(log_odds, old, new):
        model = np.logaddexp(
            np.log(expit(log_odds)) + norm.logpdf(x, old),
            np.log(expit(-log_odds)) + norm.logpdf(x, new),
        )
        return -np.trapezoid(data * model, x)

    by_difference = (
        difference(lambda v: loss(v, old, new), logit(beta)),
        difference(lambda v: loss(logit(beta), v, new), old),
        difference(lambda v: loss(logit(beta), old, v), new),
    )
    assert np.array(found) == pytest.approx(np.array(by_difference), abs=1e-7)


@given(SHARES, st.floats(0.0, 8.0))
def test_the_fisher_matrix_is_the_hessian_and_the_missing_information_identity(alpha, delta):
    matrix = lab.fisher(alpha, delta)

    def blur(mean):
        def entry(row, column):
            def f(x):
                s = expit(logit(alpha) - delta * (x - delta / 2))
                w = np.stack([np.ones_like(x), x, -(x - delta)])
                return s * (1 - s) * w[row] * w[column]

            return spec_mean(f, mean, delta)

        return np.array([[entry(row, column) for column in range(3)] for row in range(3)])

    missing = alpha * blur(0.0) + (1 - alpha) * blur(delta)
    whole = np.diag([alpha * (1 - alpha), alpha, 1 - alpha])
    assert matrix == pytest.approx(whole - missing, abs=1e-9)
    step = 1e-5
    centre = np.array([logit(alpha), 0.0, delta])
    for axis in range(3):
        ends = [centre + sign * step * np.eye(3)[axis] for sign in (1, -1)]
        up, down = (
            np.array(lab.joint_reverse_grad(expit(p[0]), p[1], p[2], alpha, delta)) for p in ends
        )
        assert (up - down) / (2 * step) == pytest.approx(matrix[axis], abs=1e-6)


@given(SHARES, SHARES, st.floats(-6.0, 6.0), st.floats(0.05, 3.0))
def test_entropic_gradient(beta, reference, gain, penalty):
    def utility(log_odds):
        b = expit(log_odds)
        gained = np.log(b + (1 - b) * np.exp(gain))
        kl = b * np.log(b / reference) + (1 - b) * np.log((1 - b) / (1 - reference))
        return gained - penalty * kl

    slope = difference(utility, logit(beta))
    assert lab.ttt_grad(beta, reference, gain, penalty) == pytest.approx(slope, abs=1e-7)


@given(SHARES, st.floats(-3.0, 3.0), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_the_fixed_point_of_oapl_is_the_minimum(lagged, gap, b1, b2):
    best = lab.oapl_fixed_logit(lagged, gap, b1, b2)
    around = best + np.linspace(-4, 4, 81)
    losses = lab.oapl_loss(around, lagged, gap, b1, b2)
    assert lab.oapl_loss(best, lagged, gap, b1, b2) <= losses.min() + 1e-12
    same = lab.oapl_fixed_point(lagged, gap, b1, b1)
    assert same == pytest.approx(lab.tilt_odds(lagged, gap / b1), rel=1e-9)


def test_the_scores_of_the_historical_simulation_are_derivatives():
    state = np.array([[0.7], [-3.4], [1.1], [0.6], [0.8]])
    x = np.linspace(-5, 4, 50)[None, :]

    def log_density(state):
        weight, old, old_sd, new, new_sd = state[:, 0]
        return np.log(weight * norm.pdf(x, old, old_sd) + (1 - weight) * norm.pdf(x, new, new_sd))

    for row, score in enumerate(_scores(state, x)):
        step = 1e-6 * np.eye(5)[row][:, None]
        slope = (log_density(state + step) - log_density(state - step)) / 2e-6
        assert score == pytest.approx(slope, rel=1e-4, abs=1e-7)


# --- flows --------------------------------------------------------------------------------------

TIMES = np.array([0.0, 0.5, 2.0, 10.0, 60.0])


@settings(max_examples=12)
@given(SHARES, st.floats(0.3, 8.0))
def test_fine_tuning_only_loses_and_no_faster_than_separated(start, delta):
    path = lab.forward_flow(TIMES, start, delta)
    assert path[0] == pytest.approx(start)
    assert np.all(np.diff(path) < 0)
    assert np.all(path >= lab.forward_flow(TIMES, start, np.inf) - 1e-9)


@settings(max_examples=12)
@given(SHARES, SHARES)
def test_separated_flows_follow_their_clocks(start, replay):
    alone = lab.sft_clock_inverse(lab.sft_clock(start) + TIMES)
    assert lab.forward_flow(TIMES, start, np.inf) == pytest.approx(alone, rel=1e-6)
    if abs(start - replay) > 1e-3:
        helped = lab.replay_clock_inverse(lab.replay_clock(start, replay) - TIMES, start, replay)
        found = lab.forward_flow(TIMES, start, np.inf, replay)
        assert found == pytest.approx(helped, rel=1e-6, abs=1e-8)
    natural = lab.forward_flow(TIMES, start, np.inf, dynamics="natural")
    assert natural == pytest.approx(start * np.exp(-TIMES), rel=1e-6)


@pytest.mark.parametrize("start", [0.2, 0.5, 0.9])
def test_gradient_flow_in_the_weight_itself_arrives_in_finite_time(start):
    arrival = start - start**2 / 2
    path = lab.forward_flow([0.99 * arrival, 1.01 * arrival], start, np.inf, dynamics="weight")
    assert path[0] > 1e-3
    assert path[1] < 1e-9


def test_time_along_the_natural_flow_is_an_integral():
    """A second road to the value of section 3, whose digits the specification's solver missed."""
    end = float(lab.forward_flow(5, 0.5, 4, dynamics="natural"))
    time, _ = quad(lambda b: 1 / float(lab.forward_grad(b, 4)), end, 0.5, epsrel=1e-11)
    assert time == pytest.approx(5, abs=1e-7)


@settings(max_examples=12)
@given(SHARES, SHARES, st.floats(0.5, 6.0))
def test_replay_is_the_limit_and_the_path_never_crosses_it(start, replay, delta):
    path = lab.forward_flow(TIMES, start, delta, replay)
    distance = np.abs(path - replay)
    assert np.all(np.diff(distance) <= 1e-9)
    assert np.all((path - replay) * (start - replay) >= -1e-9)


@settings(max_examples=12)
@given(SHARES, SHARES, st.floats(0.5, 8.0))
def test_reverse_kl_walks_straight_to_its_target_below_the_envelope(start, alpha, delta):
    path = lab.reverse_flow(TIMES, start, alpha, delta)
    assert np.all(np.diff(np.abs(path - alpha)) <= 1e-9)
    assert path.min() >= min(start, alpha) - 1e-9
    assert path.max() <= max(start, alpha) + 1e-9
    envelope = lab.reverse_envelope(TIMES, start, alpha, delta)
    assert np.all(lab.reverse_kl(path, alpha, delta) <= envelope + 1e-12)


@settings(max_examples=12)
@given(SHARES, st.floats(0.5, 6.0))
def test_reverse_kl_to_the_new_mode_alone_forgets_too(start, delta):
    assert np.all(np.diff(lab.reverse_flow(TIMES, start, 0.0, delta)) < 0)


@settings(max_examples=12)
@given(SHARES, SHARES, SHARES, st.floats(0.01, 1.0), st.floats(0.0, 1.0), st.floats(1.0, 6.0))
def test_sdft_stays_between_student_teacher_and_anchor(start, teacher, anchor, kappa, pull, delta):
    low, high = min(start, teacher, anchor), max(start, teacher, anchor)
    for gap in (delta, np.inf):
        path = lab.sdft_flow(TIMES, start, teacher, anchor, kappa, pull, gap)
        for masses in path:
            assert low - 1e-8 <= masses.min() <= masses.max() <= high + 1e-8


@settings(max_examples=12)
@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.02, 1.0))
def test_sdft_without_anchor_ends_where_the_conserved_quantity_says(start, teacher, kappa):
    end = lab.sdft_flow(4000, start, teacher, 0.5, kappa, 0.0)
    limit = lab.sdft_limit(start, teacher, kappa)
    assert end.student == pytest.approx(limit, abs=1e-6)
    assert end.teacher == pytest.approx(limit, abs=1e-6)


def brute_force_sdft(t, delta, kappa, pull, anchor):
    """Student and teacher with their means, by differences of a KL that is summed over a grid."""
    x = np.linspace(-12, delta + 12, 3001)

    def log_density(log_odds, old, new):
        return (
            np.logaddexp(
                -np.logaddexp(0, -log_odds) - (x - old) ** 2 / 2,
                -np.logaddexp(0, log_odds) - (x - new) ** 2 / 2,
            )
            - np.log(2 * np.pi) / 2
        )

    def slope(_, state):
        student, teacher = state[:3], state[3:]
        goal = log_density(*teacher)

        def kl(place):
            own = log_density(*place)
            return np.exp(own) @ (own - goal) * (x[1] - x[0])

        steps = 1e-4 * np.eye(3)
        follow = [(kl(student + step) - kl(student - step)) / 2e-4 for step in steps]
        home = np.array([np.log(anchor / (1 - anchor)), 0.0, delta])
        return np.concatenate(
            [-np.array(follow), kappa * (student - teacher) + pull * (home - teacher)]
        )

    start = [np.log(0.2 / 0.8), 0.0, delta, np.log(0.6 / 0.4), 0.0, delta]
    return solve_ivp(slope, (0, t), start, rtol=1e-7, atol=1e-9).y[:, -1]


def test_joint_sdft_is_what_brute_force_gives():
    found = lab.sdft_joint_flow(12, 0.2, 0.6, 0.4, 0.1, 0.05, 3)
    told = brute_force_sdft(12, 3, 0.1, 0.05, 0.4)
    for side, place in zip(found, (told[:3], told[3:]), strict=True):
        assert side.weight == pytest.approx(1 / (1 + np.exp(-place[0])), abs=1e-5)
        assert [side.old_mean, side.new_mean] == pytest.approx(place[1:], abs=1e-5)


def test_joint_sdft_of_separated_modes_moves_weights_and_means_apart():
    """Weights follow the flow of the weight alone; a displaced mean obeys two linear equations."""
    path = lab.sdft_joint_flow(TIMES, 0.2, 0.6, 0.4, 0.1, 0.05, 40)
    alone = lab.sdft_flow(TIMES, 0.2, 0.6, 0.4, 0.1, 0.05)
    assert path.student.weight == pytest.approx(alone.student, abs=1e-7)
    assert np.abs(path.student.old_mean).max() < 1e-7
    # Both means are displaced alike, so that they cost alike and leave the weight alone.
    moved = lab.sdft_joint_flow([3.0], 0.5, 0.5, 0.5, 0.1, 0.05, 40, old_mean0=1, new_mean0=41)
    pulls = np.array([[-0.5, 0.5], [0.1, -0.15]])  # beta, and the teacher's speed and pull
    assert moved.student.weight == pytest.approx(0.5, abs=1e-7)
    assert [moved.student.old_mean[0], moved.teacher.old_mean[0]] == pytest.approx(
        expm(3 * pulls) @ [1.0, 0.0], abs=1e-7
    )


@settings(max_examples=2, deadline=None)
@given(SHARES, SHARES, SHARES, st.floats(0.02, 1.0), st.floats(0.05, 1.0), st.floats(2.5, 6.0))
def test_joint_sdft_mirrors_and_keeps_its_bound(start, teacher, anchor, kappa, pull, delta):
    path = lab.sdft_joint_flow([0, 5, 40], start, teacher, anchor, kappa, pull, delta)
    other = lab.sdft_joint_flow([0, 5, 40], 1 - start, 1 - teacher, 1 - anchor, kappa, pull, delta)
    for side, mirrored in zip(path, other, strict=True):
        assert side.weight == pytest.approx(1 - mirrored.weight, abs=1e-6)
        assert side.old_mean == pytest.approx(delta - mirrored.new_mean, abs=1e-6)
    drift, bound = lab.sdft_largest_drift(start, teacher, anchor, kappa, pull, delta)
    assert drift <= bound + 1e-9


def test_cold_start_at_four_ends_with_swapped_labels():
    end = lab.joint_reverse_flow(200, 0.8, 0.5, 4, new_mean0=0.05)
    assert end.old_mean == pytest.approx(4, abs=1e-4)
    assert end.new_mean == pytest.approx(0, abs=1e-4)
    assert lab.behaviour_mass(*end, 4) == pytest.approx(0.5, abs=1e-4)


@settings(max_examples=10)
@given(st.floats(0.1, 0.9), st.floats(0.2, 0.8), st.floats(2.0, 8.0))
def test_drift_stays_below_the_gate(start, alpha, delta):
    drift, bound = lab.largest_drift(start, alpha, delta)
    assert drift <= bound + 1e-9


# --- closed forms are what simulations show -------------------------------------------------------


@settings(max_examples=15)
@given(st.floats(0.02, 0.5), st.integers(2, 40), st.floats(0.0, 0.5), st.integers(0, 2**31))
def test_starvation_and_relative_variance(beta, batch, replay, seed):
    rng, runs = np.random.default_rng(seed), 40_000
    seen = lab.behaviour_share(beta, replay)
    old = rng.binomial(batch, seen, runs)
    chance = lab.starvation_prob(beta, batch, replay)
    assert abs((old == 0).mean() - chance) < 5 * np.sqrt(chance / runs) + 1e-3
    estimates = old / batch * beta / seen
    assert estimates.mean() == pytest.approx(beta, abs=5 * estimates.std() / np.sqrt(runs))
    assert (estimates / beta).var() == pytest.approx(
        lab.relative_variance(beta, batch, replay), rel=0.1
    )


@given(SHARES, st.floats(0.001, 0.5), REPLAYS, st.integers(1, 10_000))
def test_the_smallest_batch_is_the_smallest(beta, eta, replay, batches):
    size = lab.min_batch(beta, eta, replay, batches)
    risk = eta / batches
    assert lab.starvation_prob(beta, size, replay) <= risk * ROUNDING
    if size > 1:
        assert lab.starvation_prob(beta, size - 1, replay) > risk / ROUNDING
    share = lab.min_replay(beta, size, eta, batches)
    assert lab.starvation_prob(beta, size, share) <= risk * ROUNDING


@given(SHARES, st.floats(0.1, 8.0), REPLAYS)
def test_weights_leave_the_objective_unchanged(beta, delta, replay):
    x = np.linspace(-14, delta + 14, 8001)
    model = beta * norm.pdf(x) + (1 - beta) * norm.pdf(x, delta)
    behaviour = (1 - replay) * model + replay * norm.pdf(x)
    weight = lab.importance_weight(x, beta, delta, replay)
    np.testing.assert_allclose(behaviour * weight, model, rtol=1e-9, atol=1e-15)


def test_batch_centred_steps_have_the_mean_gain_of_the_closed_form():
    paths = lab.centred_steps(0.2, 0.5, 8, 1, runs=400_000, rate=0.01)
    moved = (logit(paths[1]) - logit(0.2)) / 0.01 / (logit(0.5) - logit(0.2))
    assert moved.mean() == pytest.approx(lab.centred_gain(0.2, 8), rel=0.01)
    assert (moved == 0).mean() == pytest.approx(lab.no_information_prob(0.2, 8), rel=0.02)


@pytest.mark.parametrize("anchor", [0.02, 0.2])
def test_anchored_refits_have_the_variance_of_the_closed_form(anchor):
    paths = lab.wright_fisher(0.5, 20, 600, runs=4000, anchor=anchor, alpha=0.4, seed=3)
    settled = paths[300:]
    assert settled.mean() == pytest.approx(0.4, rel=0.02)
    assert settled.var() == pytest.approx(lab.anchored_variance(0.4, 20, anchor), rel=0.03)


def test_simulations_are_the_same_for_the_same_seed():
    assert np.array_equal(lab.wright_fisher(0.3, 8, 5, 50), lab.wright_fisher(0.3, 8, 5, 50))
    one, other = (lab.chen_simulation("policy", 0.01, steps=5, seed=seed).old for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_the_historical_simulation_shows_what_it_is_known_for():
    """Fine-tuning at the fast rate gains most and drops the old mode; policy gradient keeps it."""
    fast = lab.chen_simulation("forward", 0.15, runs=3)
    policy = lab.chen_simulation("policy", 0.01, runs=3)
    assert np.all(fast.gain[-1] > 0.8)
    assert np.all(policy.gain[-1] > 0.5)
    assert np.all(fast.drop[-1] > policy.drop[-1] + 0.01)


# --- extreme inputs -----------------------------------------------------------------------------

EXTREME_LOGITS = np.array([-1000.0, -40.0, -1e-9, 0.0, 1e-9, 40.0, 1000.0])
EXTREME_DELTAS = np.array([0.0, 1e-8, 0.5, 4.0, 40.0, 100.0, np.inf])


def test_extreme_inputs_stay_finite():
    log_odds, delta = EXTREME_LOGITS[:, None], EXTREME_DELTAS[None, :]
    log_eps = lab.log_eps_old(log_odds, delta)
    assert np.all(np.isfinite(log_eps[:, :-1]))
    assert np.all(log_eps[:, -1] == -np.inf)
    assert np.all(np.diff(log_eps[:, :-1], axis=0) <= 0)
    assert np.all(lab.log_resolution(log_odds, delta) <= 0)
    goals = EXTREME_LOGITS[:, None, None]
    slopes = lab.reverse_slope(log_odds, goals, delta)
    assert np.all(np.isfinite(slopes))
    assert np.all(slopes * np.sign(log_odds - goals) >= -1e-10)


@pytest.mark.parametrize("delta", [1e-6, 40.0])
def test_extreme_flows_stay_within_their_limits(delta):
    starts = np.array([1e-9, 0.5, 1 - 1e-9])
    assert np.all(np.isfinite(lab.forward_flow([1.0, 1e4], starts, delta)))
    path = lab.reverse_flow([1.0, 1e4], starts, 0.5, delta)
    assert np.all((path >= 1e-9 / ROUNDING) & (path <= 1))


def test_extreme_methods_stay_finite():
    assert np.all(np.isfinite(lab.ttt_pressure([1e-12, 0.5, 1 - 1e-12], [[-1e3], [0.0], [1e3]])))
    assert lab.oapl_fixed_logit(0.5, 1.0, 1.0, 1e-6) < -1e5
    assert lab.tilt_odds(0.5, 1e6) == 0.0
    assert lab.sft_clock_inverse(1e9) == pytest.approx(1e-9, rel=1e-6)
    assert np.all(np.isfinite(lab.adaptive_eta([[0.0, 0.0], [1e6, -1e6]])))


# --- arrays are many numbers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lab.eps_old, ([0.1, 0.6], [2, 5])),
        (lab.forward_kl, ([0.1, 0.6], [2, 5], [0.0, 0.3])),
        (lab.forward_grad, ([0.1, 0.6], [2, 5], [0.0, 0.3])),
        (lab.reverse_kl, ([0.1, 0.6], [0.4, 0.0], [2, 5])),
        (lab.drift_gate, ([0.1, 0.6], [0, 0.2], [2, 4], [0.4, 0.2], [2, 5])),
        (lab.fisher, ([0.1, 0.6], [2, 5])),
        (lab.weight_second_moment, ([0.1, 0.6], [2, np.inf], [0.1, 0.3])),
        (lab.ttt_fixed_point, ([0.1, 0.6], [2, -5], [0.1, 0.3])),
        (lab.oapl_fixed_logit, ([0.1, 0.6], [2, -5], [0.1, 0.3], [1, 0.5])),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_arrays_give_what_numbers_give(function, arguments):
    whole = function(*arguments)
    for place in range(2):
        one = function(*(argument[place] for argument in arguments))
        assert np.asarray(whole[place]) == pytest.approx(np.asarray(one), rel=1e-9, abs=1e-12)


def test_flows_put_the_times_last():
    path = lab.forward_flow(np.zeros((2, 5)), [[0.1], [0.2], [0.3]], [1, 2, 3, 4])
    assert path.shape == (3, 4, 2, 5)
    assert path[1, 2] == pytest.approx(np.full((2, 5), 0.2))
    together = lab.forward_flow([5.0], [0.1, 0.9], [2, 4])
    apart = [lab.forward_flow(5.0, beta, delta) for beta, delta in ((0.1, 2), (0.9, 4))]
    assert together[:, 0] == pytest.approx(apart, rel=1e-8)


# --- estimators ---------------------------------------------------------------------------------


def ratios(rng, delta, n):
    noise = delta * rng.standard_normal((2, n))
    return noise[0] - delta**2 / 2, noise[1] + delta**2 / 2


def test_the_balanced_estimator_is_unbiased_with_an_honest_error():
    found = [lab.estimate_bc(*ratios(np.random.default_rng(seed), 4.0, 500)) for seed in range(400)]
    values, errors = np.array([(one.value, one.se) for one in found]).T
    assert values.mean() == pytest.approx(lab.bc(4), abs=4 * values.std() / 20)
    assert errors.mean() == pytest.approx(values.std(), rel=0.1)
    assert np.all(errors <= np.sqrt((1 / values - 1) / 1000) * values * 1.3)


@pytest.mark.parametrize("delta", [3.0, 6.0, 9.0])
def test_the_upper_bound_holds_however_small_the_overlap(delta):
    found = [
        lab.estimate_bc(*ratios(np.random.default_rng(seed), delta, 100)) for seed in range(300)
    ]
    assert np.mean([one.upper >= lab.bc(delta) for one in found]) >= 0.95


def test_an_overlap_that_cannot_be_seen_is_not_told():
    found = lab.estimate_bc(*ratios(np.random.default_rng(0), 20.0, 300))
    assert not found.resolved
    assert found.near == 0
    assert found.upper == pytest.approx(-np.expm1(-np.log(20) / 600), rel=1e-6)


def test_the_three_separations_agree_for_gaussians_and_not_otherwise():
    rng = np.random.default_rng(0)
    fitting = lab.estimate_delta(*ratios(rng, 3.0, 2000))
    assert fitting.fit
    assert [fitting.kl, fitting.sd, fitting.auc] == pytest.approx([3, 3, 3], rel=0.06)
    heavy = rng.standard_t(2, size=(2, 2000)) * 6
    assert not lab.estimate_delta(heavy[0] - 4.5, heavy[1] + 4.5).fit
    assert lab.estimate_delta(*ratios(rng, 20.0, 100)).capped


def test_standard_errors_of_the_separations_are_honest():
    found = [
        lab.estimate_delta(*ratios(np.random.default_rng(seed), 2.5, 400)) for seed in range(300)
    ]
    for name in ("kl", "sd", "auc"):
        values = np.array([getattr(one, name) for one in found])
        errors = np.array([getattr(one, f"{name}_se") for one in found])
        assert errors.mean() == pytest.approx(values.std(), rel=0.15), name


@settings(max_examples=15)
@given(st.floats(0.05, 0.95), st.floats(1.5, 8.0), st.integers(0, 2**31))
def test_old_mass_is_where_em_rests(beta, delta, seed):
    rng = np.random.default_rng(seed)
    side = np.where(rng.random(800) < beta, -1, 1)
    found = delta * rng.standard_normal(800) + side * delta**2 / 2
    mass = lab.estimate_old_mass(found)
    if 0 < mass.value < 1:
        assert expit(logit(mass.value) - found).mean() == pytest.approx(mass.value, abs=1e-9)
    assert mass.low <= mass.value <= mass.high


def test_the_interval_of_the_old_mass_covers():
    hits = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        side = np.where(rng.random(150) < 0.1, -1, 1)
        mass = lab.estimate_old_mass(3 * rng.standard_normal(150) + side * 4.5)
        hits.append(mass.low <= 0.1 <= mass.high)
    assert 0.92 <= np.mean(hits) <= 0.985


def test_an_old_mass_that_is_gone_is_zero_with_an_upper_end():
    mass = lab.estimate_old_mass(10 * np.random.default_rng(0).standard_normal(200) + 50)
    assert mass.value == mass.low == 0.0
    assert 0 < mass.high < 0.03


# --- forecasts ----------------------------------------------------------------------------------


@given(st.floats(0.3, 0.9), st.floats(0.05, 0.25), st.floats(0.01, 0.04), st.floats(0.0, 0.02))
def test_steps_until_a_level_arrive_at_that_level(first, second, level, replay):
    if replay < 1e-3:
        replay = 0.0
    level = max(level, replay + 5e-3)
    rate = lab.sft_rate(first, second, 100, replay)
    steps = lab.sft_steps_until(second, rate, level, replay)
    assert lab.sft_forecast(second, rate, steps, replay) == pytest.approx(level, rel=1e-6)
    assert lab.sft_steps_until(second, rate, 0.5, replay) == 0


@settings(max_examples=10)
@given(st.floats(0.3, 0.9), st.sampled_from([0.0, 0.05]))
def test_a_forecast_from_two_points_of_the_separated_flow_is_the_flow(start, replay):
    early, late, far = lab.forward_flow([3.0, 6.0, 30.0], start, np.inf, replay)
    rate = lab.sft_rate(early, late, 3.0, replay)
    assert lab.sft_forecast(late, rate, 24.0, replay) == pytest.approx(far, rel=1e-5)


@given(SHARES, st.floats(0.01, 5.0), st.integers(1, 50), st.floats(0.01, 0.9))
def test_the_temperature_keeps_the_floor_and_not_more(reference, gap, syncs, part):
    floor = reference * part
    lowest = lab.kl_temperature(gap, reference, floor, syncs)
    assert lab.tilt_odds(reference, syncs * gap / lowest) == pytest.approx(floor, rel=1e-9)
    penalty = lab.ttt_penalty(floor, reference, gap)
    assert lab.ttt_fixed_point(reference, gap, penalty) == pytest.approx(floor, rel=1e-6)
