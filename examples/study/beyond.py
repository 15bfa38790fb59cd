"""What `forgetmap study` does not tell: other questions, words written, theory, figures."""

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtri
from scipy.stats import spearmanr

from forgetmap import compare
from forgetmap.stats.estimate import Estimate
from forgetmap.study.result import StudiedPair
from forgetmap.theory import sft_forecast, sft_rate
from forgetmap.views.figures import style as plotting

LOGS = Path(__file__).resolve().parent / "logs"
TITLES = {"smollm2": "SmolLM2-135M-Instruct", "gemma3-270m": "Gemma 3 270M"}
WAYS = {
    "as trained": "airports",
    "trained options": "airports_trained_options",
    "other words": "airports_other_words",
    "both": "airports_both",
}
"""How the airports were asked."""


def tables(pairs: Sequence[StudiedPair]) -> dict[str, Callable[[], str]]:
    """How each part of the results is made, by its name in results.in.md."""
    return {
        "ways": _asked_otherwise,
        "guessing": _guessing,
        "behaviour": partial(_capabilities, pairs),
        "ranks": partial(_ranks, pairs),
        "old mass": _old_mass,
        "old tokens": lambda: f"{_theory()[0]['old_tokens']:.0f}",
        "new tokens": lambda: f"{_theory()[0]['new_tokens']:.0f}",
        "forecast": _forecasts,
        "texts": lambda: f"{_theory()[0]['sampled']:,}",
        "tilt": partial(_tilt, pairs),
        "start": lambda: percent(_grpo(pairs)[0].new.accuracy_before),
    }


# --- cells ---------------------------------------------------------------------------------------


def table(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", "| --- " * columns + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def percent(share: float) -> str:
    return f"{share:.1%}"


def told(found: Estimate) -> str:
    """A share with its interval."""
    return f"{percent(found.value)} ({percent(max(found.low, 0))} to {percent(found.high)})"


def right(share: float, asked: int) -> str:
    """A share of right answers with Wilson's 95 % interval."""
    z = float(ndtri(0.975))
    middle = (share + z * z / (2 * asked)) / (1 + z * z / asked)
    reach = z / (1 + z * z / asked) * np.sqrt(share * (1 - share) / asked + (z / (2 * asked)) ** 2)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return f"{percent(share)} ({percent(low)} to {percent(high)})"


# --- questions and answers -----------------------------------------------------------------------


@cache
def correct(log: Path) -> dict[tuple[str, int], float]:
    """By task and item: the share of its answers that are right."""
    rows = pq.read_table(log, columns=["task", "item", "score"]).to_pydict()
    found: dict[tuple[str, int], list[bool]] = {}
    for task, item, score in zip(rows["task"], rows["item"], rows["score"], strict=True):
        found.setdefault((task, item), []).append(score > 0.5)
    return {key: sum(answers) / len(answers) for key, answers in found.items()}


def _asked_otherwise() -> str:
    """What is known of the airports where the question is not the one that was trained."""
    before = [LOGS / "ways" / f"{model}-before.parquet" for model in TITLES]
    rows = []
    for path in [*before, *sorted((LOGS / "ways").glob("*-airports-*.parquet"))]:
        answers = {**correct(path), **correct(LOGS / path.name)}
        shares = [[v for (task, _), v in answers.items() if task == way] for way in WAYS.values()]
        rows.append([path.stem, *(right(float(np.mean(one)), len(one)) for one in shares)])
    return table("run | " + " | ".join(WAYS), rows)


def _guessing() -> str:
    """Runs whose logs hold all options: how much of the loss could be another guess."""
    folder = LOGS / "told"
    logs = sorted(folder.glob("*-airports-*.parquet"), key=lambda one: ("sft" not in one.stem, one))
    rows = []
    for path in logs:
        old = compare(folder / "smollm2-before.parquet", path, new=["airports"]).old
        ends = old.lost.low_end, old.lost.high_end
        cells = [percent(ends[1]), percent(ends[1] - ends[0]), percent(ends[0])]
        cells += [f"{percent(old.lost.low)} to {percent(old.lost.high)}", old.verdict.forgetting]
        rows.append([path.stem, *cells])
    head = "run | lost | could be reshuffled guessing | lost at least | interval of both | verdict"
    return table(head, rows)


# --- behaviour -----------------------------------------------------------------------------------


def words(pair: StudiedPair) -> tuple[float, float]:
    """Mean number of words in answers to open questions, before and after."""
    before, after = _words(pair.drift.before), _words(pair.drift.after)
    return before, after


@cache
def _words(scores: str) -> float:
    wanted = [("task", "==", "elaboration.open"), ("metric", "==", "words")]
    return float(np.mean(pq.read_table(scores, columns=["score"], filters=wanted)["score"]))


def _capabilities(pairs: Sequence[StudiedPair]) -> str:
    """Drift of written answers by group of capabilities, beside what the options say."""
    rows = []
    for pair in _asked(pairs):
        cells = [str(pair.attributes[name]) for name in ("family", "task", "method")]
        cells += [pair.name[-1], percent(pair.old.lost.value)]
        cells += [_points(pair.drift.groups[name].change) for name in ("CAN", "WILL", "HOW")]
        rows.append([*cells, "{:.0f} to {:.0f}".format(*words(pair))])
    head = "model | task | method | seed | lost | CAN | WILL | HOW | words"
    return table(head, rows)


def _asked(pairs: Sequence[StudiedPair]) -> list[StudiedPair]:
    """Runs whose model answered the capability suite, the plain one of each task first."""
    places = {"airports": 0, "sums": 1, "broad": 2}

    def order(pair: StudiedPair) -> tuple[Any, ...]:
        method = str(pair.attributes["method"])
        place = [*TITLES].index(str(pair.attributes["family"])), places[pair.attributes["task"]]
        return *place, method.startswith("merge"), method != "sft"

    return sorted((pair for pair in pairs if pair.drift.groups), key=order)


def _ranks(pairs: Sequence[StudiedPair]) -> str:
    """By model: Spearman's correlation between what was forgotten and the words that are left."""
    found = []
    for model, title in TITLES.items():
        asked = [
            pair
            for pair in _asked(pairs)
            if (pair.attributes["family"], pair.attributes["task"]) == (model, "airports")
        ]
        lost = [pair.old.lost.value for pair in asked]
        ranks = spearmanr(lost, [words(pair)[1] for pair in asked]).statistic
        found.append(f"{ranks:.2f} on {title} ({len(asked)} runs)")
    return " and ".join(found)


def _points(change: Estimate | None) -> str:
    return f"{change.value:+.0%} ({change.low:+.0%} to {change.high:+.0%})" if change else ""


# --- theory --------------------------------------------------------------------------------------


@cache
def _theory() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in LOGS.glob("theory-*.json")]
    return sorted(found, key=lambda one: one["share"])


def _old_mass() -> str:
    found = _theory()
    steps = list(found[0]["old_mass"])
    rows = [
        [f"{one['share']:.0%}", percent(_limit(one)), *(percent(one["old_mass"][s]) for s in steps)]
        for one in found
    ]
    head = "weight of replay | limit by theory, as a share of texts | "
    return table(head + " | ".join(f"step {step}" for step in steps), rows)


def _limit(one: dict[str, Any]) -> float:
    """The share of texts in the loss: a text's weight is spread over its tokens."""
    old, new = one["share"] / one["old_tokens"], (1 - one["share"]) / one["new_tokens"]
    return float(old / (old + new))


def _forecasts() -> str:
    """`forgetmap theory forecast` from two checkpoints, held against a later one."""
    rows = []
    for one in _theory():
        mass, cells = one["old_mass"], [f"{one['share']:.0%}"]
        for first, second, later in ((10, 20, 40), (20, 40, 80)):
            seen = [mass[str(step)] for step in (first, second)]
            try:
                rate = sft_rate(*seen, second - first, _limit(one))
                ahead = float(sft_forecast(seen[1], rate, later - second, _limit(one)))
                cells.append(percent(ahead))
            except ValueError:
                cells.append("none")
            cells.append(right(mass[str(later)], one["sampled"]))
        rows.append(cells)
    head = (
        "weight of replay | step 40, forecast from steps 10 and 20 | measured | "
        "step 80, forecast from steps 20 and 40 | measured"
    )
    return table(head, rows)


def _grpo(pairs: Sequence[StudiedPair]) -> list[StudiedPair]:
    return [pair for pair in pairs if pair.attributes["way"] == "GRPO"]


def _tilt(pairs: Sequence[StudiedPair]) -> str:
    """Reward with a KL of weight beta to the model before: the odds grow by e^(1/beta)."""
    rows = []
    for pair in _grpo(pairs):
        start = pair.new.accuracy_before
        beta = float(json.loads((LOGS / f"{pair.name}.json").read_text())["beta"])
        odds = start / (1 - start) * np.exp(1 / beta) if beta else np.inf
        limit = 1.0 if np.isinf(odds) else odds / (1 + odds)
        measured = right(pair.new.accuracy_after, pair.new.n)
        rows.append([f"{beta:g}", percent(limit), measured, percent(pair.old.lost.value)])
    head = "beta | right at the optimum, by theory | right, measured | lost"
    return table(head, rows)


# --- figures -------------------------------------------------------------------------------------


def draw(pairs: Sequence[StudiedPair], folder: Path) -> None:
    """All figures."""
    folder.mkdir(parents=True, exist_ok=True)
    with plotting.style():
        for model, title in TITLES.items():
            chosen = [pair for pair in pairs if pair.attributes["family"] == model]
            _draw_trade(chosen, title, folder / f"trade-{model}")
        _draw_old_mass(folder)
        _draw_curves(folder)


def _draw_trade(pairs: Sequence[StudiedPair], title: str, path: Path) -> None:
    """Method by method: what was forgotten, what was learned for it, and what is still written."""
    from matplotlib.figure import Figure

    found: dict[str, StudiedPair] = {}
    for pair in pairs:  # the first seed of each
        if pair.attributes["task"] == "airports":
            found.setdefault(str(pair.attributes["method"]), pair)
    chosen = sorted(found.items(), key=lambda item: item[1].old.lost.value)
    figure = Figure(figsize=(9.6, 1.2 + 0.2 * len(chosen)))
    left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=(3, 2, 2))
    for place, (method, pair) in enumerate(chosen):
        colour = plotting.WON if method.startswith("merge") else plotting.LOST
        lost = pair.old.lost
        left.plot([100 * lost.low, 100 * lost.high], [place, place], color=colour, linewidth=1.2)
        left.plot(100 * lost.value, place, "o", markersize=5, color=colour)
        middle.barh(place, 100 * pair.new.accuracy_after, height=0.6, color=plotting.KEPT)
        if pair.drift.groups:
            before, after = words(pair)
            right.barh(place, 100 * after / before, height=0.6, color=plotting.KEPT)
        else:
            right.text(2, place, "not asked", va="center", fontsize=6)
    left.set_yticks(range(len(chosen)), [method for method, _ in chosen])
    left.set(xlabel="lost of the old questions, % (95 %, one training)", xlim=(0, None))
    left.set_title(f"{title} learns 2,000 airports (merges in blue)")
    middle.set(xlabel="airports right, %", xlim=(0, 100))
    right.set(xlabel="words written, % of before")
    for axes in (middle, right):
        axes.set_axisbelow(True)
    plotting.save(figure, path.parent, path.name)


def _draw_old_mass(folder: Path) -> None:
    from matplotlib.figure import Figure

    found = _theory()
    figure = Figure(figsize=(5.4, 3.6))
    axes = figure.add_subplot()
    for colour, one in zip(plotting.SERIES, found, strict=False):
        steps = [max(int(step), 1) for step in one["old_mass"]]
        axes.plot(steps, [100 * mass for mass in one["old_mass"].values()], "o-", markersize=3,
                  color=colour, label=f"{one['share']:.0%} replay")  # fmt: skip
        axes.axhline(100 * _limit(one), color=colour, linestyle=":", linewidth=0.9)
    axes.set(xscale="log", xlabel="steps", ylabel="old mass, %", ylim=(0, 102))
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_title("Measured (points) and the theory's limit (dotted)")
    axes.legend()
    plotting.save(figure, folder, "old_mass")


def _draw_curves(folder: Path) -> None:
    """Forgetting along the training, from the callback's probes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 3.6))
    axes = figure.add_subplot()
    runs = sorted((LOGS / "probes").glob("smollm2-*"))
    for colour, run in zip([*plotting.SERIES, plotting.INK], runs, strict=False):
        probes = {int(path.stem.removeprefix("step-")): path for path in run.glob("step-*.parquet")}
        before = correct(probes[0])
        old = [key for key in before if key[0] != "airports"]
        lost = {}
        for step, path in sorted(probes.items()):
            now = correct(path)
            lost[step] = 100 * np.mean([before[key] and not now[key] for key in old])
        name = run.name.removeprefix("smollm2-airports-").removesuffix("-0")
        axes.plot(list(lost), list(lost.values()), "o-", markersize=2.5, color=colour, label=name)
    axes.set(xlabel="steps", ylabel="probed questions forgotten, %", ylim=(0, None))
    axes.set_title("SmolLM2, airports: forgetting along the training")
    axes.legend(fontsize=7)
    plotting.save(figure, folder, "curves")
