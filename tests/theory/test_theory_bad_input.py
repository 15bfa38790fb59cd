"""Bad input to the theory lab: one clear line that names the argument."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

from forgetmap import theory as lab
from forgetmap.base.errors import InputError

NAN = float("nan")

CASES = [
    # shares that are none
    ("beta", lambda: lab.eps_old(0, 2)),
    ("beta", lambda: lab.eps_old(1, 2)),
    ("beta", lambda: lab.eps_old([0.2, 1.5], 2)),
    ("beta", lambda: lab.eps_old(-0.1, 2)),
    ("beta", lambda: lab.eps_old(NAN, 2)),
    ("beta", lambda: lab.eps_old([], 2)),
    ("beta", lambda: lab.eps_old("half", 2)),
    ("beta", lambda: lab.eps_old(None, 2)),
    ("beta", lambda: lab.forward_grad(1.0, 2)),
    ("beta", lambda: lab.joint_forward_grad(0.0, 0, 2, 2)),
    ("beta", lambda: lab.drift_bound(0.5, 0.0, 2)),
    ("beta", lambda: lab.starvation_prob(1.2, 8)),
    ("beta", lambda: lab.ttt_pressure(0.0, 1)),
    ("beta", lambda: lab.estimate_misassignment([1.0, 2.0], 0.0)),
    ("beta", lambda: lab.mixture_misfit([1, 2], [1, 2], [1, 2], 1.5)),
    ("beta0", lambda: lab.forward_flow(1, 0.0, 2)),
    ("beta0", lambda: lab.reverse_flow(1, 1.0, 0.5, 2)),
    ("beta0", lambda: lab.sdft_flow(1, 2.0, 0.5, 0.5, 0.1, 0.1)),
    ("beta0", lambda: lab.wright_fisher(0.0, 8, 5)),
    ("alpha", lambda: lab.reverse_grad(0.5, 1.01, 2)),
    ("alpha", lambda: lab.fisher(1.0, 2)),
    ("alpha", lambda: lab.joint_reverse_grad(0.5, 0, 2, 0.0, 2)),
    ("reference", lambda: lab.ttt_fixed_point(1.0, 1, 1)),
    ("lagged", lambda: lab.oapl_fixed_point(0.0, 1, 1, 1)),
    ("mass", lambda: lab.tilt_odds(1.0, 1)),
    ("replay", lambda: lab.forward_grad(0.5, 2, 1.0)),
    ("replay", lambda: lab.forward_flow(1, 0.5, 2, -0.1)),
    ("replay", lambda: lab.replay_clock(0.5, 0.0)),
    ("replay", lambda: lab.sft_rate(0.4, 0.2, 100, 1.0)),
    ("eta", lambda: lab.min_batch(0.1, 0.0)),
    ("eta", lambda: lab.min_replay(0.1, 8, 1.0)),
    # separations that are none
    ("delta", lambda: lab.bc(-1)),
    ("delta", lambda: lab.bc(NAN)),
    ("delta", lambda: lab.eps_old(0.5, -2)),
    ("delta", lambda: lab.eps_old(0.5, 101)),
    ("delta", lambda: lab.eps_old(0.5, np.array([]))),
    ("delta", lambda: lab.forward_flow(1, 0.5, -1)),
    ("delta", lambda: lab.reverse_flow(1, 0.5, 0.0, np.inf)),
    ("delta", lambda: lab.mixture_kl(0.5, 0.0, np.inf)),
    ("delta", lambda: lab.fisher(0.5, np.inf)),
    ("delta", lambda: lab.joint_reverse_flow(1, 0.5, 0.5, np.inf)),
    ("delta", lambda: lab.behaviour_mass(0.5, 0, 1, 0)),
    ("model_delta", lambda: lab.drift_bound(0.5, 0.5, 2, -1)),
    # times, counts and strengths
    ("t", lambda: lab.forward_flow(-1, 0.5, 2)),
    ("t", lambda: lab.forward_flow([], 0.5, 2)),
    ("t", lambda: lab.reverse_flow(np.inf, 0.5, 0.5, 2)),
    ("t", lambda: lab.sdft_flow(NAN, 0.5, 0.5, 0.5, 0.1, 0.1)),
    ("batch", lambda: lab.starvation_prob(0.5, 0)),
    ("batch", lambda: lab.min_replay(0.5, 2.5, 0.1)),
    ("batches", lambda: lab.min_batch(0.5, 0.1, batches=0)),
    ("steps", lambda: lab.wright_fisher(0.5, 8, 0)),
    ("runs", lambda: lab.wright_fisher(0.5, 8, 5, runs=0)),
    ("stages", lambda: lab.mass_after_stages(1, 0.3, 0)),
    ("syncs", lambda: lab.max_strength(0.5, 0.1, 0)),
    ("strength", lambda: lab.max_syncs(0.5, 0.1, 0)),
    ("penalty", lambda: lab.ttt_fixed_point(0.5, 1, 0)),
    ("penalty", lambda: lab.ttt_grad(0.5, 0.5, 1, -1)),
    ("log_gain", lambda: lab.ttt_fixed_point(0.5, np.inf, 1)),
    ("log_gain", lambda: lab.ttt_bracket(0.5, -1, 1)),
    ("b2", lambda: lab.oapl_loss(0, 0.5, 1, 1, 0)),
    ("logit_beta", lambda: lab.log_eps_old(np.inf, 2)),
    ("anchor", lambda: lab.sdft_drift(0.1, 0.1, 0)),
    ("kappa", lambda: lab.sdft_limit(0.2, 0.6, 0)),
    ("dynamics", lambda: lab.forward_flow(1, 0.5, 2, dynamics="fast")),
    ("method", lambda: lab.chen_simulation("backward", 0.1)),
    ("rate", lambda: lab.chen_simulation("forward", 0)),
    ("rate", lambda: lab.centred_steps(0.2, 0.5, 8, 5, rate=9)),
    ("logit_alpha", lambda: lab.reverse_slope(0, NAN, 2)),
    ("budget", lambda: lab.separation_for_drift(0)),
    ("objective", lambda: lab.flow_answer("dpo", 0.5, 4)),
    ("until", lambda: lab.flow_answer("sft", 0.5, 4, until=0)),
    # combinations that have no answer
    ("floor", lambda: lab.kl_temperature(1, 0.3, 0.3)),
    ("floor", lambda: lab.ttt_penalty(0.5, 0.4, 1)),
    ("second", lambda: lab.sft_rate(0.2, 0.4, 100)),
    ("second", lambda: lab.sft_rate(0.2, 0.2, 100)),
    ("second", lambda: lab.sft_rate(0.4, 0.05, 100, replay=0.1)),
    ("second", lambda: lab.sft_steps_until(0.1, 1, 0.2, replay=0.1)),
    # arrays
    ("ratio_old", lambda: lab.estimate_bc([], [1.0, 2.0])),
    ("ratio_old", lambda: lab.estimate_bc([1.0], [1.0, 2.0])),
    ("ratio_new", lambda: lab.estimate_delta([1.0, 2.0], [NAN, 1.0])),
    ("ratios", lambda: lab.estimate_old_mass([np.inf, 1.0])),
    ("rewards", lambda: lab.adaptive_eta([])),
    ("rewards", lambda: lab.ttt_advantages([1.0], 1.0)),
    ("first", lambda: lab.bc_categorical([0.5, 0.6], [0.5, 0.5])),
    ("second", lambda: lab.bc_categorical([0.5, 0.5], [0.2, 0.3, 0.5])),
    ("covariance", lambda: lab.separation_of([0, 0], [1, 1], [[1, 2], [2, 1]])),
    ("covariance", lambda: lab.separation_of([0, 0], [1, 1], [1, 1])),
]


@pytest.mark.parametrize(
    ("name", "call"), [pytest.param(*case, id=f"{n} {case[0]}") for n, case in enumerate(CASES)]
)
def test_one_clear_line_names_the_argument(name, call):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert "\n" not in message
    assert isinstance(caught.value, ValueError)


def test_every_public_function_tells_its_provenance():
    for name in lab.__all__:
        found = getattr(lab, name)
        if inspect.isfunction(found) and found.__module__ not in (
            "forgetmap.theory.logprobs",  # reads files, claims nothing
        ):
            first = inspect.getdoc(found)
            assert any(tag in first for tag in ("[P", "[M", "[D")), name
            assert "Theorem" not in first, name


def test_every_public_name_has_one_home():
    assert len(set(lab.__all__)) == len(lab.__all__)
    for name in lab.__all__:
        value = getattr(lab, name)
        home = sys.modules[value.__module__]
        assert home.__name__.startswith("forgetmap.theory.")
        assert name in home.__all__
    with pytest.raises(AttributeError, match="no attribute 'theorem'"):
        lab.theorem  # noqa: B018
