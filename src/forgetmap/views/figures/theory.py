"""Every plot that the theory names, one figure for each of its parts, exact values beside bounds.

Solid lines are exact (quadrature or simulation), dashed ones bounds or separated limits. The tag at
the right of a title tells where the result comes from: [P] the paper's abstract, [M] a method's own
paper or code, [D] our derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from forgetmap import theory as lab
from forgetmap.theory.arguments import Floats
from forgetmap.views.figures.style import INK, KEPT, LOST, SERIES, SOFT, WON, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OLD_MASS = "old mass of the model"
TIME = "time (learning rate × steps)"
SEPARATION = r"separation $\delta$"
_BOUND: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.1}


def write_figures(
    folder: str | Path, tick: Callable[[str], None] = lambda _name: None
) -> list[Path]:
    """Draw all figures into a folder, each as SVG and PNG; returns the files.

    Args:
        folder: An existing folder.
        tick: Called with the name of each figure before it is drawn.

    Example:
        >>> list(FIGURES)[:3]
        ['overlap', 'sft', 'replay']
    """
    written = []
    with look():
        for name, draw in FIGURES.items():
            tick(name)
            written += save(draw(), folder, f"theory-{name}")
    return written


@contextmanager
def look() -> Iterator[None]:
    """The look of all figures, with fixed margins: working them out would take as long again."""
    with style(formulas=True):
        import matplotlib

        with matplotlib.rc_context({"figure.constrained_layout.use": False}):
            yield


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    import matplotlib.pyplot as plt

    width, height = 3.6 * count, 3.3
    figure, axes = plt.subplots(1, count, figsize=(width, height))
    figure.subplots_adjust(
        left=0.68 / width, right=1 - 0.12 / width, bottom=0.52 / height, top=1 - 0.3 / height,
        wspace=0.28,
    )  # fmt: skip
    return figure, list(axes)


def _label(ax: Axes, title: str, tag: str, x: str, y: str, legend: str | None = None) -> None:
    ax.minorticks_off()  # on log axes they take a third of the drawing time
    ax.set_title(title)
    ax.set_title(tag, loc="right", fontsize=7, color=SOFT)
    ax.set(xlabel=x, ylabel=y)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title=legend, fontsize=7, title_fontsize=7, handlelength=1.6)


# --- overlap (section 2) ------------------------------------------------------------------------


def _overlap() -> Figure:
    figure, (left, right) = _panels(2)
    delta = np.linspace(0.05, 10, 200)
    for beta, colour in zip((0.5, 0.2, 0.05, 0.01), SERIES, strict=False):
        exact = lab.eps_old(beta, delta)
        left.semilogy(delta, exact, color=colour, label=f"{beta:g}")
        left.semilogy(delta, lab.eps_old_bound(beta, delta), color=colour, **_BOUND)
        right.semilogy(delta, exact / lab.bc(delta), color=colour, label=f"{beta:g}")
        right.axhline(float(lab.eps_old_bound(beta, 0)), color=colour, **_BOUND)
    left.axhline(1, color=KEPT, linewidth=0.8)
    left.set_ylim(1e-7, 8)
    right.set_ylim(0.03, 8)  # room for the legend
    _label(left, "Old taken for new", "[P mechanism, D]", SEPARATION,
           r"$\epsilon_o$ (dashed: bound; above 1 it is empty)", r"old weight $\beta$")  # fmt: skip
    _label(right, "Beyond the overlap", "[D]", SEPARATION,
           r"$\epsilon_o$ / Bhattacharyya coefficient", r"old weight $\beta$")  # fmt: skip
    return figure


# --- supervised fine-tuning (sections 3 and 4) --------------------------------------------------


def _sft() -> Figure:
    figure, (paths, phase, joint) = _panels(3)
    times, gaps = np.geomspace(0.1, 1000, 200), np.array([1.0, 2.0, 3.0, 4.0])
    weights = expit(np.linspace(-7, 7, 200))
    flows = lab.forward_flow(times, 0.5, gaps)
    for gap, flow, colour in zip(gaps, flows, SERIES, strict=False):
        paths.loglog(times, flow, color=colour, label=f"{gap:g}")
        phase.plot(weights, lab.forward_grad(weights, gap), color=colour, label=f"{gap:g}")
    paths.loglog(
        times, lab.forward_flow(times, 0.5, np.inf), color=INK, label="far apart", **_BOUND
    )
    phase.plot(weights, weights, color=INK, label="far apart", **_BOUND)
    _label(paths, "New data only", "[P limit, D path]", TIME, OLD_MASS, SEPARATION)
    _label(phase, "It falls from everywhere", "[P sign, D]", r"old weight $\beta$",
           r"slope $\beta - g(\beta)$ in the logit", SEPARATION)  # fmt: skip
    times = np.geomspace(0.1, 200, 150)
    for gap, colour in zip((2.0, 4.0, 6.0), SERIES[1:], strict=False):
        path = lab.joint_forward_flow(times, 0.5, gap)
        joint.semilogx(times, lab.behaviour_mass(*path, gap), color=colour, label=f"{gap:g}")
        joint.semilogx(times, path.weight, color=colour, **_BOUND)
    _label(joint, "Means trained too", "[D]", TIME, "old behaviour (dashed: weight)", SEPARATION)
    return figure


def _replay() -> Figure:
    figure, (final, paths, curvature) = _panels(3)
    share = np.linspace(0.02, 0.98, 49)
    final.plot([0, 1], [0, 1], color=KEPT, linewidth=3, alpha=0.5, label="in the end")
    for until, colour in zip((10, 100), SERIES, strict=False):
        reached = lab.forward_flow(until, 0.5, 4.0, share)
        final.plot(share, reached, color=colour, label=f"at time {until}")
    _label(final, "The replay share is kept", "[P, D]", r"replay share $\lambda$", OLD_MASS)
    times = np.linspace(0, 60, 150)
    for gap, colour in zip((2.0, 3.0, 6.0), SERIES, strict=False):
        flow = lab.forward_flow(times, [0.9, 0.02], gap, 0.1)
        paths.plot(times, flow[0], color=colour, label=f"{gap:g}")
        paths.plot(times, flow[1], color=colour)
    paths.axhline(0.1, color=INK, label=r"$\lambda = 0.1$", **_BOUND)
    _label(paths, "From any start", "[D]", TIME, OLD_MASS, SEPARATION)
    delta = np.linspace(0.05, 8, 150)
    for kept, colour in zip((0.5, 0.3, 0.1), SERIES, strict=False):
        spread = kept * (1 - kept)
        curvature.plot(delta, spread * lab.resolution(kept, delta), color=colour, label=f"{kept:g}")
        curvature.axhline(spread, color=colour, **_BOUND)
    _label(curvature, "Overlap makes it slow", "[D]", SEPARATION,
           "curvature (dashed: far apart)", r"replay share $\lambda$")  # fmt: skip
    return figure


# --- reverse KL (sections 5, 6 and 7) -----------------------------------------------------------


def _reverse() -> Figure:
    figure, (forward, reverse, loss) = _panels(3)
    times, gap = np.linspace(0, 60, 200), 3.0
    targets = ((0.3, WON, "target with 30 % old"), (0.0, LOST, "new-only target"))
    for kept, colour, name in targets:
        forward.plot(times, lab.forward_flow(times, 0.8, gap, kept), color=colour, label=name)
        reverse.plot(times, lab.reverse_flow(times, 0.8, kept, gap), color=colour, label=name)
    for ax, title in ((forward, "Forward KL"), (reverse, "Reverse KL")):
        ax.set_ylim(0, 1)
        _label(ax, title, "[P limits, D paths]", TIME, OLD_MASS)
    for start, colour in zip((0.95, 0.6, 0.05), SERIES, strict=False):
        exact = lab.reverse_kl(lab.reverse_flow(times, start, 0.3, gap), 0.3, gap)
        loss.semilogy(times, np.maximum(exact, 1e-16), color=colour, label=f"{start:g}")
        loss.semilogy(times, lab.reverse_envelope(times, start, 0.3, gap), color=colour, **_BOUND)
    loss.set_ylim(1e-9, 3)
    _label(loss, "Loss and its bound", "[P exponential, D]", TIME,
           "KL to the target (dashed: bound)", "start")  # fmt: skip
    return figure


def _drift() -> Figure:
    figure, (largest, field) = _panels(2)
    delta = np.linspace(2, 8, 19)
    starts = ((delta, WON, "new mode in place"), (delta / 2, LOST, "new mode half-way"))
    for new_mean, colour, name in starts:
        drift, bound = lab.largest_drift(0.8, 0.5, delta, new_mean)
        largest.semilogy(delta, drift, color=colour, label=name)
        largest.semilogy(delta, bound, color=colour, **_BOUND)
    _label(largest, "Largest drift", "[P exponential, D]", SEPARATION,
           "standard deviations (dashed: bound)", "start")  # fmt: skip
    gap, alpha = 3.0, 0.5
    weight, mean = np.meshgrid(np.linspace(0.04, 0.96, 17), np.linspace(-0.8, 0.8, 15))
    slope = lab.joint_reverse_grad(weight, mean, gap, alpha, gap)
    along = -slope.weight * weight * (1 - weight)  # the logit's speed, as seen in beta
    strength = np.hypot(along, slope.old_mean)
    field.quiver(weight, mean, along / strength, -slope.old_mean / strength, strength,
                 cmap=_blues(), pivot="mid", scale=26, width=0.004)  # fmt: skip
    times = np.linspace(0, 100, 400)
    path = lab.joint_reverse_flow(times, [0.9, 0.1] * 2, alpha, gap, old_mean0=[0, 0, -0.7, 0.7])
    field.plot(path.weight.T, path.old_mean.T, color=LOST, linewidth=1.1)
    field.plot(alpha, 0, "o", color=INK, markersize=5)
    field.grid(visible=False)
    _label(field, r"Where weight and old mean go, $\delta = 3$", "[D]", r"old weight $\beta$",
           r"old mean $m_o$ (in place: 0)")  # fmt: skip
    return figure


def _blues() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("blues", ["#c9d8ea", WON])


def _geometry() -> Figure:
    figure, (decay, eigenvalue, condition) = _panels(3)
    alpha, times = 0.4, np.linspace(0, 60, 200)
    for gap, colour in zip((3.0, 4.0, 6.0), SERIES, strict=False):
        path = lab.joint_reverse_flow(times, 0.6, alpha, gap)
        loss = lab.joint_reverse_kl(*path, alpha, gap)
        rate = 2 * np.linalg.eigvalsh(lab.fisher(alpha, gap))[0]
        decay.semilogy(times, np.maximum(loss, 1e-16), color=colour, label=f"{gap:g}")
        seen = loss > 1e-11  # below, rounding is all there is
        late = np.flatnonzero(seen)[-1] // 2
        line = loss[late] * np.exp(-rate * (times - times[late]))
        decay.semilogy(times, line, color=colour, **_BOUND)
    decay.set_ylim(1e-12, 1)
    _label(decay, "Exponential in the end", "[P, D rate]", TIME,
           r"KL to the target (dashed: slope $-2\lambda_{min}$)", SEPARATION)  # fmt: skip
    delta = np.linspace(0.5, 9, 120)
    for goal, colour in zip((0.5, 0.2), SERIES, strict=False):
        exact = np.linalg.eigvalsh(lab.fisher(goal, delta))[:, 0]
        eigenvalue.plot(delta, exact, color=colour, label=f"{goal:g}")
        eigenvalue.plot(delta, lab.fisher_lower_bound(goal, delta), color=colour, **_BOUND)
    eigenvalue.axhline(0, color=KEPT, linewidth=0.8)
    eigenvalue.set_ylim(-0.35, 0.3)
    _label(eigenvalue, "Smallest curvature", "[P, D]", SEPARATION,
           r"$\lambda_{min}$ (dashed: bound; below 0 empty)", r"target $\alpha$")  # fmt: skip
    goals, gaps = np.linspace(0.05, 0.95, 61), np.linspace(1, 8, 61)
    numbers = lab.condition_number(goals[:, None], gaps[None, :])
    condition.imshow(
        np.log10(numbers), cmap="cividis_r", origin="lower", aspect="auto",
        interpolation="bilinear", extent=(gaps[0], gaps[-1], goals[0], goals[-1]),
    )  # fmt: skip
    lines = condition.contour(gaps, goals, numbers, [3, 5, 10, 30, 100, 300], colors=INK,
                              linewidths=0.6)  # fmt: skip
    condition.clabel(lines, fontsize=6)
    condition.grid(visible=False)
    _label(condition, "Condition number", "[D]", SEPARATION, r"target $\alpha$")
    return figure


# --- finite batches (section 8) -----------------------------------------------------------------


def _starvation() -> Figure:
    figure, (starved, final, weights) = _panels(3)
    batch, beta = np.arange(1, 129), 0.05
    for replay, colour in zip((0.0, 0.05, 0.1, 0.25), SERIES, strict=False):
        chance = lab.starvation_prob(beta, batch, replay)
        starved.semilogy(batch, chance, color=colour, label=f"{replay:.0%}")
    starved.set_ylim(1e-6, 1.5)
    _label(starved, "No old sample", "[P mechanism, D]",
           r"batch size ($\beta = 0.05$)", "probability", "replayed")  # fmt: skip
    bins = np.linspace(0, 0.52, 53).tolist()
    for replay, colour in ((0.0, LOST), (0.25, WON)):
        runs = lab.centred_steps(0.02, 0.5, 8, 20, runs=4000, replay=replay)[-1]
        final.hist(runs, bins, color=colour, alpha=0.65, label=f"{replay:.0%}")
    final.set_axisbelow(True)
    _label(final, "4,000 runs, 20 batches of 8", "[D]",
           "old mass, on its way from 0.02 to 0.5", "runs", "replayed")  # fmt: skip
    x = np.linspace(-3, 7, 300)
    for replay, colour in zip((0.1, 0.25, 0.5), SERIES, strict=False):
        weights.plot(x, lab.importance_weight(x, beta, 4.0, replay), color=colour,
                     label=f"{replay:.0%}")  # fmt: skip
        for bound in lab.weight_bounds(beta, replay):
            weights.axhline(float(bound), color=colour, **_BOUND)
    weights.set_yscale("log")
    _label(weights, "Importance weights", "[P bounded, D]",
           "old mode at 0, new mode at 4", "weight (dashed: bounds)", "replayed")  # fmt: skip
    return figure


# --- three methods (sections 9, 10 and 11) ------------------------------------------------------


def _sdft() -> Figure:
    figure, (paths, drift) = _panels(2)
    times = np.linspace(0, 120, 300)
    for anchor, colour in zip((0.0, 0.05, 0.2), SERIES, strict=False):
        path = lab.sdft_flow(times, 0.2, 0.6, 0.4, 0.1, anchor)
        paths.plot(times, path.student, color=colour, label=f"{anchor:g}")
        paths.plot(times, path.teacher, color=colour, linestyle=":", linewidth=1.3)
    paths.axhline(0.4, color=INK, label="anchor's old mass", **_BOUND)
    _label(paths, "SDFT", "[M method, D]", TIME, "old mass of student (dotted: teacher)",
           r"anchor strength $\lambda$")  # fmt: skip
    ratio = np.geomspace(0.01, 100, 100)
    for gap, colour in zip((4.0, 5.0, 6.0), SERIES, strict=False):
        gate = lab.drift_bound(0.4, 0.4, gap)
        drift.loglog(ratio, lab.sdft_drift(gate, ratio, 1.0), color=colour, label=f"{gap:g}")
        drift.axhline(float(gate), color=colour, **_BOUND)
    _label(drift, "Finite drift needs an anchor", "[D]", r"$\kappa / \lambda$",
           "bound on the drift (dashed: the gate)", SEPARATION)  # fmt: skip
    return figure


def _ttt() -> Figure:
    figure, (fixed, against) = _panels(2)
    penalty, reference = np.geomspace(0.05, 5, 150), 0.5
    for gain, colour in zip((2.0, 4.0, 100.0), SERIES, strict=False):
        exact = lab.ttt_fixed_point(reference, np.log(gain), penalty)
        low, high = lab.ttt_bracket(reference, np.log(gain), penalty)
        fixed.semilogx(penalty, exact, color=colour, label=f"{gain:g}")
        fixed.fill_between(penalty, low, high, color=colour, alpha=0.13, linewidth=0)
    floor = lab.ttt_floor(reference, penalty)
    fixed.semilogx(penalty, floor, color=INK, label="floor for any D", **_BOUND)
    _label(fixed, "TTT-Discover", "[M objective, D]", r"KL penalty $\lambda$",
           "old mass kept (band: bracket)", r"weight ratio $D$")  # fmt: skip
    gap, strength = np.linspace(0, 12, 150), 0.5
    against.semilogy(gap, lab.ttt_fixed_point(reference, gap, strength), color=WON,
                     label="entropic utility")  # fmt: skip
    against.semilogy(
        gap, lab.tilt_odds(reference, gap / strength), color=LOST, label="linear reward"
    )
    against.axhline(float(lab.ttt_floor(reference, strength)), color=WON, **_BOUND)
    against.set_ylim(1e-6, 1)
    _label(against, "The entropic gain saturates", "[D]",
           r"reward gap (entropic: $\eta\Delta$), $\lambda = 0.5$", OLD_MASS)  # fmt: skip
    return figure


def _oapl() -> Figure:
    figure, (syncs, landscape) = _panels(2)
    rounds = np.arange(21)
    for strength, colour in zip((0.05, 0.2, 0.5, 1.0), SERIES, strict=False):
        kept = lab.tilt_odds(0.5, rounds * strength)
        syncs.semilogy(rounds, kept, "o-", markersize=2.5, color=colour, label=f"{strength:g}")
    _label(syncs, "OAPL", "[M method, D]",
           "syncs of the lagged policy", OLD_MASS, r"$\Delta/\tau$")  # fmt: skip
    log_odds = np.linspace(-14, 6, 300)
    for b2, colour in zip((1.0, 0.5, 0.1), SERIES, strict=False):
        loss = lab.oapl_loss(log_odds, 0.5, 1.0, 1.0, b2)
        landscape.plot(log_odds, loss, color=colour, label=f"{b2:g}")
        best = lab.oapl_fixed_logit(0.5, 1.0, 1.0, b2)
        landscape.plot(best, lab.oapl_loss(best, 0.5, 1.0, 1.0, b2), "o", color=colour)
    landscape.set_ylim(-0.02, 1)
    _label(landscape, "Loss of one round", "[M, D]",
           r"logit of old mass ($b_1 = \Delta = 1$)", "loss (dot: optimum)", "$b_2$")  # fmt: skip
    return figure


# --- where the picture comes from (section 12) --------------------------------------------------


def _chen() -> Figure:
    figure, (new, old, trade) = _panels(3)
    runs: tuple[tuple[Any, float, str, str], ...] = (
        ("forward", 0.15, LOST, "fine-tuning, rate 0.15"),
        ("forward", 0.01, SERIES[4], "fine-tuning, rate 0.01"),
        ("policy", 0.01, WON, "policy gradient, rate 0.01"),
    )
    for method, rate, colour, name in runs:
        run = lab.chen_simulation(method, rate, runs=4)
        _band(new, run.gain, colour, name)
        _band(old, run.drop, colour, name)
        trade.plot(run.gain.mean(axis=1), run.drop.mean(axis=1), color=colour, label=name)
    step, size = "step", "change of overlap"
    _label(new, "Gain on the new mode", "[M]", step, size)
    _label(old, "Drop on the old mode", "[M]", step, size)
    _label(trade, "Drop for the same gain", "[M]", "gain on the new mode", "drop on the old mode")
    return figure


def _band(ax: Axes, values: Floats, colour: str, name: str) -> None:
    steps = np.arange(len(values))
    ax.fill_between(steps, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2,
                    linewidth=0)  # fmt: skip
    ax.plot(steps, values.mean(axis=1), color=colour, label=name)


FIGURES: dict[str, Callable[[], Figure]] = {
    "overlap": _overlap,
    "sft": _sft,
    "replay": _replay,
    "reverse": _reverse,
    "drift": _drift,
    "geometry": _geometry,
    "starvation": _starvation,
    "sdft": _sdft,
    "ttt": _ttt,
    "oapl": _oapl,
    "chen": _chen,
}
"""The figures in the order of the specification, by name."""
