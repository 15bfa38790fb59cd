"""Stage 5: more.md, what only this study has: other questions, words written, weights, theory.

    python more.py

`forgetmap study study.yaml --markdown results.md` makes all other tables.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import spearmanr

from forgetmap import compare
from forgetmap.map.task_maps import TaskMap
from forgetmap.stats.estimate import Estimate, interval, share
from forgetmap.study import StudyResult, run_study
from forgetmap.study.against import beside
from forgetmap.study.result import StudiedPair
from forgetmap.theory import sft_forecast, sft_rate
from forgetmap.views.words import points

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
TITLES = {"smollm2": "SmolLM2-135M-Instruct", "gemma3-270m": "Gemma 3 270M"}
WAYS = {
    "as trained": "airports",
    "trained options": "airports_trained_options",
    "other words": "airports_other_words",
    "both": "airports_both",
}
"""How the airports were asked."""
DOMAIN = "replay-25-domain"
DRAWN = ("sft", "replay-25-questions", "replay-25-targeted", DOMAIN, "repair-domain")
Tables = dict[str, Callable[[], str]]


def main() -> None:
    (HERE / "more.md").write_text(filled(run_study(HERE / "study.yaml")))


def filled(result: StudyResult) -> str:
    """The words of more.in.md with all tables."""
    made = tables(result)
    text = (HERE / "more.in.md").read_text()
    return re.sub(r"\[\[(.+?)\]\]", lambda match: made[match[1]](), text)


def tables(result: StudyResult) -> Tables:
    """How each part is made, by its name in more.in.md."""
    return {
        "counts": partial(_counts, result),
        "carry": partial(_carry, result),
        "domain": partial(_domain, result),
        "weights": _weights,
        "asked": _asked_otherwise,
        "guessing": _guessing,
        "words": partial(_words_written, result),
        "ranks": partial(_ranks, result),
        "mass": _old_mass,
        "old tokens": lambda: f"{_theory()[0]['old_tokens'] - 1:.0f}",
        "new tokens": lambda: f"{_theory()[0]['new_tokens'] - 1:.0f}",
        "forecast": _forecasts,
        "texts": lambda: f"{_theory()[0]['sampled']:,}",
        "tilt": partial(_tilt, result),
    }


def table(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [f"| {head} |", "| --- " * (head.count("|") + 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def signed(found: Estimate) -> str:
    """A difference in points with its interval."""
    return "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * end for _, end in found))


def about(pair: StudiedPair) -> dict[str, Any]:
    """How a run was made."""
    return json.loads((LOGS / f"{pair.name}.json").read_text())


# --- the runs of the study beside each other -----------------------------------------------------


def _counts(result: StudyResult) -> str:
    asked = pq.read_table(LOGS / "smollm2-before.parquet", columns=["task", "item", "k"])
    questions = asked.group_by(["task", "item", "k"]).aggregate([]).to_pylist()
    new = {task for pair in result.pairs for task in pair.new_tasks}
    old = [row for row in questions if row["task"] not in new]
    runs = [pair.attributes for pair in result.pairs]
    gemma = [run for run in runs if (run["family"], run["task"]) == ("gemma3-270m", "airports")]
    found = {
        "old questions": len(old),
        "with options": sum(row["k"] is not None for row in old),
        "airports asked": sum(row["task"] == "airports" for row in questions),
        "trainings and merges": len(runs),
        "methods on Gemma": len({run["method"] for run in gemma}),
    }
    return table("what | number", [[name, f"{n:,}"] for name, n in found.items()])


def _carry(result: StudyResult) -> str:
    """Does a method keep questions that are like its training data, or others too?"""
    rows = []
    for kind in result.answers.against.kinds:
        if len(kind.pairs) > 1:
            sides = [[result.pair(name) for name in side] for side in (kind.pairs, kind.references)]
            apart = [
                beside(*sides, lambda task, start=start: task.startswith(start)).more_lost
                for start in ("atlas_", "evals_")
            ]
            named = f"{kind.attributes['family']} {kind.attributes['method']}"
            rows.append([named, f"{len(kind.pairs)}", *map(signed, apart)])
    return table("model and method | trainings | on atlas | on third-party sets", rows)


def _domain(result: StudyResult) -> str:
    """Replay for what the map says was lost: everything, or one category alone."""
    pairs = {pair.name: pair for pair in result.pairs}
    category = TaskMap.load(LOGS / "tasks.csv").category
    rows = []
    for model in TITLES:
        [domain] = about(pairs[f"{model}-airports-{DOMAIN}-0"])["replayed"]
        names = [f"{model}-airports-{method}-{seed}" for method in DRAWN for seed in "01"]
        for pair in (pairs[name] for name in names if name in pairs):
            drawn = about(pair).get("replayed", {})
            plain = pairs[f"{model}-airports-sft-{pair.name[-1]}"]
            cells = [f"{model} {pair.attributes['method']}-{pair.name[-1]}", domain]
            cells += [f"{sum(drawn.values()):,}", f"{drawn.get(domain, 0):,}"]
            for inside in (True, False):
                found = beside([pair], [plain], partial(_is_in, category, domain, inside))
                cells += [points(found.lost), "" if pair is plain else signed(found.more_lost)]
            rows.append(cells)
    head = "run | domain | old examples | of the domain | lost in the domain | against sft"
    return table(f"{head} | lost elsewhere | against sft", rows)


def _is_in(category: Callable[[str], str], domain: str, inside: bool, task: str) -> bool:
    return (category(task) == domain) is inside


def _weights() -> str:
    rows = []
    for path in sorted(LOGS.glob("drift-*.json")):
        found = json.loads(path.read_text())
        moved = [points(found["relative"], 2), f"{found['effective_rank']:.0f}"]
        rows.append([path.stem.removeprefix("drift-"), *moved])
    return table("run | change of weights | rank of the change", rows)


# --- other questions -----------------------------------------------------------------------------


def _right(log: Path, task: str) -> list[bool]:
    found = pq.read_table(log, columns=["score"], filters=[("task", "==", task)])
    return [score > 0.5 for score in found["score"].to_pylist()]


def _asked_otherwise() -> str:
    """What is known of the airports where the question is not the one that was trained."""
    before = [LOGS / "ways" / f"{model}-before.parquet" for model in TITLES]
    rows = []
    for path in [*before, *sorted((LOGS / "ways").glob("*-airports-*.parquet"))]:
        asked = [_right(path if task != "airports" else LOGS / path.name, task)
                 for task in WAYS.values()]  # fmt: skip
        rows.append([path.stem, *(interval(share(sum(one), len(one))) for one in asked)])
    return table("run | " + " | ".join(WAYS), rows)


def _guessing() -> str:
    """Runs whose logs hold all options: how much of the loss could be another guess."""
    folder = LOGS / "told"
    rows = []
    for path in sorted(folder.glob("*-airports-*.parquet")):
        old = compare(folder / "smollm2-before.parquet", path, new=["airports"]).old
        low, high = old.lost.low_end, old.lost.high_end
        cells = [points(high), points(high - low), points(low)]
        cells += [f"{points(old.lost.low)} to {points(old.lost.high)}", old.verdict.forgetting]
        rows.append([path.stem, *cells])
    head = "run | lost | could be reshuffled guessing | lost at least | interval of both | verdict"
    return table(head, rows)


@cache
def _words(scores: str) -> float:
    """Mean number of words in answers to open questions."""
    wanted = [("task", "==", "elaboration.open"), ("metric", "==", "words")]
    return float(np.mean(pq.read_table(scores, columns=["score"], filters=wanted)["score"]))


def _asked(result: StudyResult) -> list[StudiedPair]:
    """Runs whose model answered the capability suite."""
    return [pair for pair in result.pairs if pair.drift.groups]


def _words_written(result: StudyResult) -> str:
    rows = []
    for pair in _asked(result):
        before, after = _words(pair.drift.before), _words(pair.drift.after)
        rows.append([pair.name, points(pair.old.lost.value), f"{before:.0f} to {after:.0f}"])
    return table("run | lost | words", rows)


def _ranks(result: StudyResult) -> str:
    """By model: Spearman's correlation between what was forgotten and the words that are left."""
    rows = []
    for model, title in TITLES.items():
        runs = [pair for pair in _asked(result) if pair.name.startswith(f"{model}-airports-")]
        lost = [pair.old.lost.value for pair in runs]
        ranks = spearmanr(lost, [_words(pair.drift.after) for pair in runs]).statistic
        rows.append([title, f"{len(runs)}", f"{ranks:.2f}"])
    return table("model | runs | rank correlation", rows)


# --- theory --------------------------------------------------------------------------------------


@cache
def _theory() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in LOGS.glob("theory-*.json")]
    return sorted(found, key=lambda one: one["share"])


def _limit(one: dict[str, Any]) -> float:
    """The share of texts in the loss: a text's weight is spread over the tokens that are learned.

    A text's first token is among its tokens, and nothing predicts it.
    """
    old, new = one["old_tokens"] - 1, one["new_tokens"] - 1
    masses = one["share"] / old, (1 - one["share"]) / new
    return float(masses[0] / sum(masses))


def _old_mass() -> str:
    steps = list(_theory()[0]["old_mass"])
    rows = [
        [points(one["share"], 0), points(_limit(one)), *(points(one["old_mass"][s]) for s in steps)]
        for one in _theory()
    ]
    return table("replay | limit | " + " | ".join(f"step {step}" for step in steps), rows)


def _forecasts() -> str:
    """`forgetmap theory forecast` from two checkpoints, held against a later one."""
    rows = []
    for one in _theory():
        mass, cells = one["old_mass"], [points(one["share"], 0)]
        for first, second, later in ((10, 20, 40), (20, 40, 80)):
            seen = [mass[str(step)] for step in (first, second)]
            try:
                rate = sft_rate(*seen, second - first, _limit(one))
                ahead = float(sft_forecast(seen[1], rate, later - second, _limit(one)))
                cells.append(points(ahead))
            except ValueError:
                cells.append("none")
            cells.append(interval(share(mass[str(later)] * one["sampled"], one["sampled"])))
        rows.append(cells)
    head = "replay | step 40, forecast from steps 10 and 20 | measured"
    return table(f"{head} | step 80, forecast from steps 20 and 40 | measured", rows)


def _tilt(result: StudyResult) -> str:
    """Reward with a KL of weight beta to the model before: the odds grow by e^(1/beta)."""
    rows = []
    for pair in (pair for pair in result.pairs if pair.attributes["way"] == "GRPO"):
        new, beta = pair.new, float(about(pair)["beta"])
        odds = new.accuracy_before / (1 - new.accuracy_before) * np.exp(1 / beta) if beta else 0.0
        limit = odds / (1 + odds) if beta else 1.0
        measured = interval(share(new.accuracy_after * new.n, new.n))
        rows.append([f"{beta:g}", points(new.accuracy_before), points(limit), measured])
    return table("beta | right before | right at the optimum, by theory | right, measured", rows)


if __name__ == "__main__":
    main()
