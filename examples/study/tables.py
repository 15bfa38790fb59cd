"""Stage 4: the tables and figures, from the logs alone, in less than a minute on a processor.

    python tables.py logs .

Writes results.md and figures/. Every number in the study's page of the docs is one of them.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.special import stdtrit
from scipy.stats import binomtest, spearmanr

from forgetmap import compare
from forgetmap.capabilities.drift import drift
from forgetmap.map.task_maps import TaskMap
from forgetmap.theory import sft_forecast, sft_rate
from forgetmap.views.figures import style as plotting

DRAWS = 2_000
MODELS = {"smollm2": "SmolLM2-135M-Instruct", "gemma3-270m": "Gemma 3 270M"}
NEW_TASK = {"airports": "airports", "sums": "sums", "broad": "evals_*"}
"""The tasks that show what was learned; of the broad one there are nine."""
WAYS = {
    "as trained": "airports",
    "trained options": "airports_trained_options",
    "other words": "airports_other_words",
    "both": "airports_both",
}
"""How the airports were asked."""
GROUPS = ("CAN", "WILL", "HOW")


@dataclass
class Run:
    """One trained model beside the model before."""

    logs: Path
    model: str
    task: str
    method: str
    seed: str
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As its files are called."""
        return f"{self.model}-{self.task}-{self.method}-{self.seed}"

    @property
    def files(self) -> tuple[Path, Path]:
        """The logs of the model before, and of this one."""
        return self.logs / f"{self.model}-before.parquet", self.logs / f"{self.name}.parquet"

    @cached_property
    def keys(self) -> list[tuple[str, int]]:
        """Task and item of every old question; the arrays below are in this order."""
        return sorted(_correct(self.files[0]))

    @cached_property
    def right(self) -> tuple[np.ndarray, np.ndarray]:
        """Item by item: right before (1) or not (0), and now."""
        before, after = (_correct(file) for file in self.files)
        return tuple(
            np.array([found[key] for key in self.keys], float) for found in (before, after)
        )

    @property
    def flipped(self) -> np.ndarray:
        """Item by item, of all old questions: right before, wrong now."""
        return self.right[0] * (1 - self.right[1])

    @cached_property
    def asked(self) -> list[tuple[str, int]]:
        """The old questions with options: what was lost of these is known exactly."""
        return sorted(_chances(self.files[0]))

    @cached_property
    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        """Question by question with options: the chance of being right before, and now."""
        sides = [_chances(file) for file in self.files]
        return tuple(np.array([side[key] for key in self.asked]) for side in sides)

    @property
    def lost(self) -> np.ndarray:
        """Question by question with options: what was lost of the chance of being right."""
        return np.maximum(self.chances[0] - self.chances[1], 0)

    @property
    def gained(self) -> np.ndarray:
        """Question by question with options: what was gained."""
        return np.maximum(self.chances[1] - self.chances[0], 0)

    @cached_property
    def foreign(self) -> np.ndarray:
        """Question by question with options: whether it comes from a third-party set."""
        return np.array([task.startswith("evals_") for task, _ in self.asked])

    @cached_property
    def new_before(self) -> float:
        """Share of the new task that the model before gets right."""
        right = _correct(self.logs / "new" / f"{self.model}-before.parquet", NEW_TASK[self.task])
        return float(np.mean([right[key] for key in right]))

    @property
    def scores(self) -> tuple[Path, Path]:
        """The scored answers to the capability suite, before and after."""
        names = f"{self.model}-before", self.name
        return tuple(self.logs / "scores" / f"{name}.parquet" for name in names)

    @property
    def was_asked(self) -> bool:
        """Whether its model answered the capability suite."""
        return self.scores[1].is_file()

    @cached_property
    def _drift(self) -> Any:
        return drift(*self.scores, manifest="open-suite", draws=DRAWS)

    @property
    def groups(self) -> dict[str, Any]:
        """Drift of each group of capabilities."""
        return {group.name: group for group in self._drift.groups}

    @property
    def words(self) -> tuple[float, float]:
        """Mean number of words in answers to open questions, before and after."""
        [found] = [
            one
            for one in self._drift.metrics
            if (one.task, one.metric) == ("elaboration.open", "words")
        ]
        return found.before, found.after

    @cached_property
    def new(self) -> np.ndarray:
        """Question by question of the new task: whether it is right now."""
        right = _correct(self.logs / "new" / f"{self.name}.parquet", NEW_TASK[self.task])
        return np.array([right[key] for key in sorted(right)], float)

    @property
    def learned(self) -> tuple[int, int]:
        """Right answers and questions of the new task."""
        return int(self.new.sum()), len(self.new)


def main(logs: Path, out: Path) -> None:
    runs = find(logs)
    parts = ["# A study of forgetting: the tables", _made_by()]
    parts += [f"## {title}\n\n{make()}" for title, make in sections(runs, logs).items()]
    (out / "results.md").write_text("\n\n".join(parts) + "\n")
    _draw(runs, logs, out / "figures")


def sections(runs: Sequence[Run], logs: Path) -> dict[str, Callable[[], str]]:
    """How each section of the results is made, by its title."""
    made: dict[str, Callable[[], str]] = {}
    for model, title in MODELS.items():
        for task in ("airports", "sums", "broad"):
            chosen = [run for run in runs if run.model == model and run.task == task]
            if chosen:
                made[f"{title}, {task}"] = partial(_table, chosen)
    made["The new task, asked in other ways"] = partial(_asked_otherwise, logs)
    made["What guessing can explain"] = partial(_guessing, logs)
    made["Lost by category"] = partial(_categories, runs)
    made["The same items under another seed"] = partial(_overlap, runs)
    made["How far protection carries"] = partial(_carries, runs)
    made["One domain"] = partial(_domain, runs)
    made["The method or the rate"] = partial(_same_rate, runs)
    made["How far the weights moved"] = partial(_weights, runs, logs)
    made["Behaviour"] = partial(_capabilities, runs)
    made["Theory and measurement"] = lambda: "\n\n".join(
        (_old_mass(logs), _forecasts(logs), _tilt(runs))
    )
    return made


def _made_by() -> str:
    return (
        "`python tables.py logs .` makes this file from the logs next to it.\n\n"
        "- *Lost* is the mean of max(p - q, 0) over the old questions with options, where p and q "
        "are the chances of being right before and after, from the options' probabilities. A gain "
        "does not make up for a loss. A part of it is reshuffled guessing. Most of these logs hold "
        "the right option's probability only, so that part is not told apart; *What guessing can "
        "explain* has the runs of which it is known.\n"
        "- *Gained* is the same the other way, *of known* is lost as a share of the mean of p.\n"
        "- *Intervals* are 95 %. With three seeds they cover other trainings and other questions. "
        "With one, marked *one training*, they cover other questions only.\n"
        "- *Flips* is the share of all old questions, written ones too, that were right before "
        "and are wrong after. It holds the noise of the runs.\n"
        "- *Third-party* is lost among the questions of third-party sets.\n"
        "- *Against sft* is the difference of lost to the plain run of the same seeds on the same "
        "questions.\n"
        "- *New task* is the share of the new task's questions that are right, before and after. "
        "On airports these are the training questions in their training words; most wrong options "
        "were never trained. *The new task, asked in other ways* has harder questions.\n"
        "- *Time* is the training time relative to the plain run, with several runs on the card "
        "at once.\n\n"
        "Written answers count by their first draw here."
    )


def find(logs: Path) -> list[Run]:
    found = []
    for path in sorted(logs.glob("*.json")):
        model = next((model for model in MODELS if path.stem.startswith(model)), None)
        if model is None:
            continue
        task, _, rest = path.stem.removeprefix(f"{model}-").partition("-")
        method, _, seed = rest.rpartition("-")
        found.append(Run(logs, model, task, method, seed, json.loads(path.read_text())))
    return found


@cache
def _correct(path: Path, task: str = "*") -> dict[tuple[str, int], bool]:
    columns = ["task", "item", "repeat", "score"]
    table = pq.read_table(path, columns=columns).to_pydict()
    return {
        (name, item): score > 0.5
        for name, item, repeat, score in zip(*(table[column] for column in columns), strict=True)
        if repeat == 0 and fnmatch(name, task)
    }


@cache
def _chances(path: Path) -> dict[tuple[str, int], float]:
    """The right option's probability, of the questions with options."""
    columns = ["task", "item", "gold_probability"]
    table = pq.read_table(path, columns=columns).to_pydict()
    return {
        (task, item): chance
        for task, item, chance in zip(*(table[column] for column in columns), strict=True)
        if chance is not None and not task.startswith(tuple(NEW_TASK)[:2])
    }


def _table(runs: Sequence[Run]) -> str:
    by_method: dict[str, list[Run]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    plain = by_method["sft"]
    order = sorted(
        by_method, key=lambda method: (method.startswith("merge"), method != "sft", method)
    )
    lines = [
        "| method | trainings | lost | against sft | of known | gained | third-party | flips | "
        "old questions right | new task right | time |",
        "| --- " * 11 + "|",
    ]
    lines += [_row(method, by_method[method], plain) for method in order]
    return "\n".join(lines)


def _row(method: str, runs: Sequence[Run], plain: Sequence[Run]) -> str:
    lost = np.array([run.lost for run in runs])
    known = np.mean([run.chances[0].mean() for run in runs])
    difference = "" if method == "sft" else _signed(_beside_plain(runs, plain))
    right = sum(run.learned[0] for run in runs)
    asked = sum(run.learned[1] for run in runs)
    told = binomtest(right, asked).proportion_ci(method="wilson")
    seconds = [run.about.get("seconds") for run in runs]
    usual = np.mean([run.about["seconds"] for run in plain])
    cost = f"{np.mean(seconds) / usual:.1f} x" if all(seconds) else ""
    before, after = (np.mean([run.right[side] for run in runs]) for side in (0, 1))
    cells = [
        _share(lost),
        difference,
        _percent(lost.mean() / known),
        _share(np.array([run.gained for run in runs])),
        _share(lost[:, runs[0].foreign]),
        _percent(np.mean([run.flipped for run in runs])),
        f"{_percent(before)} to {_percent(after)}",
        f"{_percent(runs[0].new_before)} to {_percent(right / asked)} "
        f"({_percent(told.low)} to {_percent(told.high)})",
        cost,
    ]
    trainings = "one training" if len(runs) == 1 else f"{len(runs)}"
    return f"| {method} | {trainings} | " + " | ".join(cells) + " |"


def _asked_otherwise(logs: Path) -> str:
    """What is known of the airports where the question is not the one that was trained."""
    lines = [
        "The same 800 airports, asked as in the training, with wrong options that are cities of "
        "other trained airports, in other words, and with both changed. One training each; the "
        "intervals cover other questions.",
        "",
        "| run | " + " | ".join(WAYS) + " |",
        "| --- " * (1 + len(WAYS)) + "|",
    ]
    paths = (logs / "new").glob("*-airports-*.parquet")
    before = [logs / "new" / f"{model}-before.parquet" for model in MODELS]
    for path in [*before, *sorted(paths)]:
        right = [list(_correct(path, task).values()) for task in WAYS.values()]
        if all(right):
            lines.append(f"| {path.stem} | " + " | ".join(map(_right, right)) + " |")
    return "\n".join(lines)


def _right(answers: Sequence[bool]) -> str:
    told = binomtest(sum(answers), len(answers)).proportion_ci(method="wilson")
    return f"{_percent(np.mean(answers))} ({_percent(told.low)} to {_percent(told.high)})"


def _guessing(logs: Path) -> str:
    """Runs whose logs hold all options: how much of the loss could be another guess."""
    lines = [
        "A model that does not know an answer prefers some option, and a training changes which. "
        "The wrong options show how much they are reshuffled. These are the runs whose logs hold "
        "all options, on the questions of atlas that have some.",
        "",
        "| run | lost | could be reshuffled guessing | lost at least | interval of both "
        "| verdict |",
        "| --- " * 6 + "|",
    ]
    told = logs / "told"
    for path in sorted(
        told.glob("*-airports-*.parquet"), key=lambda one: ("sft" not in one.stem, one)
    ):
        old = compare(told / "smollm2-before.parquet", path, new=["airports"]).old
        ends = old.lost.low_end, old.lost.high_end
        cells = [_percent(ends[1]), _percent(ends[1] - ends[0]), _percent(ends[0])]
        cells += [f"{_percent(old.lost.low)} to {_percent(old.lost.high)}", old.verdict.forgetting]
        lines.append(f"| {path.stem} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _beside_plain(runs: Sequence[Run], plain: Sequence[Run]) -> np.ndarray:
    """Lost beside the plain run of the same seed, (trainings, questions)."""
    by_seed = {run.seed: run.lost for run in plain}
    usual = np.mean([run.lost for run in plain], axis=0)
    return np.array([run.lost - by_seed.get(run.seed, usual) for run in runs])


def _interval(values: np.ndarray) -> tuple[float, float]:
    """95 % for the mean; `values` are (trainings, questions), or questions of one training.

    With several trainings both vary: other seeds (Student's t over the trainings' means) and other
    questions (thousands of them), each on its own.
    """
    table = np.atleast_2d(values)
    trainings, questions = table.shape
    square = (1.96 * table.mean(axis=0).std(ddof=1)) ** 2 / questions
    if trainings > 1:
        means = table.mean(axis=1)
        square += (stdtrit(trainings - 1, 0.975) * means.std(ddof=1)) ** 2 / trainings
    reach = np.sqrt(square)
    return float(table.mean() - reach), float(table.mean() + reach)


def _share(values: np.ndarray) -> str:
    low, high = _interval(values)
    return f"{_percent(values.mean())} ({_percent(max(low, 0.0))} to {_percent(high)})"


def _signed(values: np.ndarray) -> str:
    if not values.any():
        return f"none of {values.size:,} differs"
    low, high = _interval(values)
    return f"{values.mean():+.1%} ({low:+.1%} to {high:+.1%})"


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _categories(runs: Sequence[Run]) -> str:
    chosen = [
        run for run in runs if run.seed == "0" and run.method in _SHOWN and run.task == "airports"
    ]
    category = TaskMap.load(chosen[0].logs / "tasks.csv").category
    names = sorted({category(task) for task, _ in chosen[0].asked})
    lines = [
        "| lost, one training each | " + " | ".join(names) + " |",
        "| --- " * (len(names) + 1) + "|",
    ]
    for run in chosen:
        within = np.array([category(task) for task, _ in run.asked])
        cells = [_percent(run.lost[within == name].mean()) for name in names]
        lines.append(f"| {run.model} {run.method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _overlap(runs: Sequence[Run]) -> str:
    """Which items are lost: those of one seed under the next."""
    lines = [
        "Of the questions with options that lost half of their chance or more under one seed, the "
        "share that lost as much under another, and the same for a random question. Mean over all "
        "ordered pairs of seeds.",
        "",
        "| model, task and method | trainings | lost under one seed | lost under the next too | "
        "of all questions |",
        "| --- " * 5 + "|",
    ]
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.model, run.task, run.method), []).append(run)
    for (model, task, method), same in groups.items():
        if len(same) < 3:
            continue
        gone = [run.lost >= 0.5 * run.chances[0].clip(1e-9) for run in same]
        gone = [one & (run.chances[0] > 0.5) for one, run in zip(gone, same, strict=True)]
        pairs = [(a, b) for i, a in enumerate(gone) for j, b in enumerate(gone) if i != j]
        again = np.mean([(a & b).sum() / a.sum() for a, b in pairs if a.any()])
        share = np.mean([one.mean() for one in gone])
        counts = f"{np.mean([one.sum() for one in gone]):.0f} questions"
        cells = (
            f"{model} {task} {method}",
            f"{len(same)}",
            counts,
            _percent(again),
            _percent(share),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _carries(runs: Sequence[Run]) -> str:
    """Does a method keep questions that are like its training data, or others too?"""
    lines = [
        "Difference of lost to plain training on airports, over trainings and questions: on "
        "questions of atlas, whose other half was open to some methods and often shares a "
        "template, and on third-party sets, which no training data resembles.",
        "",
        "| model and method | trainings | on atlas | on third-party sets |",
        "| --- " * 4 + "|",
    ]
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.task == "airports":
            groups.setdefault((run.model, run.method), []).append(run)
    for (model, method), same in groups.items():
        if len(same) < 3 or method == "sft":
            continue
        beside = _beside_plain(same, groups[model, "sft"])
        foreign = same[0].foreign
        cells = (f"{model} {method}", f"{len(same)}", beside[:, ~foreign], beside[:, foreign])
        told = [cell if isinstance(cell, str) else _signed(cell) for cell in cells]
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines)


def _domain(runs: Sequence[Run]) -> str:
    """Replay for what the map says was lost: everything, or one category alone."""
    found = {(run.model, run.method, run.seed): run for run in runs if run.task == "airports"}
    lines = [
        "The domain is the category in which the plain run lost the most questions. "
        "`replay-25-domain` replays what `forgetmap replay --category` draws for it, and never "
        "an old question that we ask. `repair-domain` trains the plain run's model further with "
        "it, for a quarter of the steps. Each run is compared with the plain run of its seed.",
        "",
        "| run | domain | old examples | of the domain | lost in the domain | against sft | "
        "lost elsewhere | against sft | in tasks of the domain that were not replayed | "
        "against sft |",
        "| --- " * 10 + "|",
    ]
    for model in MODELS:
        if (model, _DOMAIN, "0") not in found:
            continue
        domain = next(iter(found[model, _DOMAIN, "0"].about["replayed"]))
        drawn = [(method, seed) for method in _DRAWN for seed in "01"]
        chosen = [found[model, *one] for one in drawn if (model, *one) in found]
        plain = {run.seed: found[model, "sft", run.seed] for run in chosen}
        lines += [_domain_row(run, plain[run.seed], domain) for run in (*plain.values(), *chosen)]
    return "\n".join(lines)


def _domain_row(run: Run, plain: Run, domain: str) -> str:
    category = TaskMap.load(run.logs / "tasks.csv").category
    inside = np.array([category(task) == domain for task, _ in run.asked])
    drawn = run.about.get("replayed", {})
    parts = [cell for where in (inside, ~inside) for cell in _beside(run, plain, where)]
    replayed = run.about.get("replayed_tasks", {})
    # Of what was not replayed, a replay of the domain alone can show a transfer.
    beside = inside & np.array([task not in replayed for task, _ in run.asked])
    alone = set(drawn) == {domain}
    parts += _beside(run, plain, beside) if alone and beside.any() else ["", ""]
    cells = [domain, f"{sum(drawn.values()):,}", f"{drawn.get(domain, 0):,}", *parts]
    return f"| {run.model} {run.method}-{run.seed} | " + " | ".join(cells) + " |"


def _beside(run: Run, plain: Run, where: np.ndarray) -> tuple[str, str]:
    """What a run lost of some questions, and the difference to the plain run."""
    share = _share(run.lost[where])
    return share, "" if run is plain else _signed(run.lost[where] - plain.lost[where])


def _weights(runs: Sequence[Run], logs: Path) -> str:
    """Does merging help when weights drift little? Each run beside its half-merge."""
    lines = [
        "This table shows how far a run moved the weights: the norm of the change relative to the "
        "norm of the weights, and the rank that the change spreads over (mean over matrices). It "
        "also shows the result of merging half of each model. The difference is paired, on the "
        "same questions.",
        "",
        "| run | change of weights | rank of the change | lost | merged, linear 0.5 | "
        "difference | new task right | merged | difference |",
        "| --- " * 9 + "|",
    ]
    found = {run.name: run for run in runs}
    for path in sorted(logs.glob("drift-*.json")):
        run, about = found[path.stem.removeprefix("drift-")], json.loads(path.read_text())
        parent = "" if run.method == "sft" else f"{run.method}-"
        merged = found[f"{run.model}-{run.task}-merge-{parent}linear-0.5-{run.seed}"]
        cells = [f"{about['relative']:.2%}", f"{about['effective_rank']:.0f}"]
        cells += _paired(run, merged)
        lines.append(f"| {run.model} {run.method}-{run.seed} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _paired(run: Run, other: Run) -> list[str]:
    """What two runs lost and learned, each with the paired difference of the other to the run."""
    cells = []
    for one, two in ((run.lost, other.lost), (run.new, other.new)):
        cells += [_percent(one.mean()), _percent(two.mean()), _signed(two - one)]
    return cells


def _same_rate(runs: Sequence[Run]) -> str:
    """Each method that is not trained as the plain run is, beside plain training of its size."""
    found: dict[tuple[str, str, str], Run] = {}
    for run in runs:
        found.setdefault((run.model, run.task, run.method), run)
    lines = [
        "This table compares methods that were trained at a lower rate with plain training at the "
        "same rate, steps and batch. The remaining difference is due to the method. It is paired, "
        "on the same questions.",
        "",
        "| run | plain run | lost by plain training | by the method | difference | new task "
        "right by plain training | by the method | difference | words |",
        "| --- " * 9 + "|",
    ]
    for (model, task, method), run in sorted(
        found.items(), key=lambda item: [*MODELS].index(item[0][0])
    ):
        if (plain := found.get((model, task, _PLAIN.get(method, "")))) is None:
            continue
        asked = plain.was_asked and run.was_asked
        words = f"{plain.words[1]:.0f} and {run.words[1]:.0f}" if asked else "not asked"
        cells = [f"{model} {task} {method}", plain.method, *_paired(plain, run), words]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _capabilities(runs: Sequence[Run]) -> str:
    """Drift of written answers by group of capabilities, beside what the options say."""
    lines = [
        "These are written answers to the open capability suite, scored by rules. The table shows "
        "the change of each group's score in points, the mean number of words in answers to open "
        "questions, and what was lost of the old questions. One training of each method answered. "
        "Over the airports runs, what was lost and the number of words left have a rank "
        f"correlation of {_ranks(runs)}.",
        "",
        "| model | task | method | seed | lost | CAN | WILL | HOW | words |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in _asked(runs):
        cells = [run.model, run.task, run.method, run.seed, _percent(run.lost.mean())]
        cells += [_points(run.groups[name].change) for name in GROUPS]
        before, after = run.words
        lines.append(f"| {' | '.join(cells)} | {before:.0f} to {after:.0f} |")
    return "\n".join(lines)


def _asked(runs: Sequence[Run]) -> list[Run]:
    """Runs whose model answered the capability suite, the plain one of each task first."""
    asked = [run for run in runs if run.was_asked]
    places = {task: place for place, task in enumerate(NEW_TASK)}
    return sorted(
        asked,
        key=lambda run: (
            [*MODELS].index(run.model),
            places[run.task],
            run.method.startswith("merge"),
            run.method != "sft",
        ),
    )


def _ranks(runs: Sequence[Run]) -> str:
    """By model: Spearman's correlation between what was forgotten and the words that are left."""
    found = []
    for model, title in MODELS.items():
        asked = [run for run in _asked(runs) if (run.model, run.task) == (model, "airports")]
        lost = [run.lost.mean() for run in asked]
        ranks = spearmanr(lost, [run.words[1] for run in asked]).statistic
        found.append(f"{ranks:.2f} on {title} ({len(asked)} runs)")
    return " and ".join(found)


def _points(change: Any) -> str:
    return f"{change.value:+.0%} ({change.low:+.0%} to {change.high:+.0%})" if change else ""


_SHOWN = ("sft", "replay-25", "anchor", "anchor-questions", "retention")
_PLAIN = {
    "dpo": "sft-like-dpo", "sdft": "sft-like-dpo",
    "grpo-0": "sft-like-grpo", "grpo-0.2": "sft-like-grpo", "grpo-1": "sft-like-grpo",
    "anchor-low-rate": "sft-low-rate", "anchor-questions-low-rate": "sft-low-rate",
    "retention-low-rate": "sft-low-rate",
}  # fmt: skip
"""Plain training with the rate, the steps and the batch of a method."""
_DOMAIN = "replay-25-domain"
_DRAWN = ("replay-25-questions", "replay-25-targeted", _DOMAIN, "repair-domain")


def _theory(logs: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted(logs.glob("theory-*.json"))]
    return sorted(found, key=lambda one: one["share"])


def _old_mass(logs: Path) -> str:
    found = _theory(logs)
    if not found:
        return ""
    steps = list(found[0]["old_mass"])
    lines = [
        "The old mass is the share of texts, started without a prompt, that are not about "
        "airports. The table shows it after a number of steps. The theory says that in the end "
        "it equals the share of replay. But the loss is a mean over tokens, and the first words "
        "decide which kind of text it will be. So the share of texts follows from the share of "
        "the loss and the mean lengths "
        f"({found[0]['old_tokens']:.0f} tokens old, {found[0]['new_tokens']:.0f} new).",
        "",
        "| weight of replay | limit by theory, as a share of texts | "
        + " | ".join(f"step {step}" for step in steps)
        + " |",
        "| --- " * (len(steps) + 2) + "|",
    ]
    for one in found:
        cells = [_percent(one["old_mass"][step]) for step in steps]
        lines.append(
            f"| {one['share']:.0%} | {_percent(_limit(one))} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def _limit(one: dict[str, Any]) -> float:
    """The share of texts in the loss: a text's weight is spread over its tokens."""
    old, new = one["share"] / one["old_tokens"], (1 - one["share"]) / one["new_tokens"]
    return float(old / (old + new))


def _forecasts(logs: Path) -> str:
    """`forgetmap theory forecast` from two checkpoints, held against a later one."""
    found = _theory(logs)
    lines = [
        "This table holds `forgetmap theory forecast` against the same checkpoints. The replay "
        f"share is that of texts. One training each, {found[0]['sampled']:,} texts a checkpoint. "
        "*None*: the old mass was below its limit already.",
        "",
        "| weight of replay | step 40, forecast from steps 10 and 20 | measured | "
        "step 80, forecast from steps 20 and 40 | measured |",
        "| --- " * 5 + "|",
    ]
    for one in found:
        mass, cells = one["old_mass"], []
        for first, second, later in ((10, 20, 40), (20, 40, 80)):
            seen = [mass[str(step)] for step in (first, second)]
            try:
                rate = sft_rate(*seen, second - first, _limit(one))
                ahead = float(sft_forecast(seen[1], rate, later - second, _limit(one)))
                cells.append(_percent(ahead))
            except ValueError:
                cells.append("none")
            texts = one["sampled"]
            told = binomtest(round(mass[str(later)] * texts), texts).proportion_ci(method="wilson")
            span = f"({_percent(told.low)} to {_percent(told.high)})"
            cells.append(f"{_percent(mass[str(later)])} {span}")
        lines.append(f"| {one['share']:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _tilt(runs: Sequence[Run]) -> str:
    """Reward with a KL of weight beta to the model before: the odds grow by e^(1/beta)."""
    chosen = [run for run in runs if run.task == "sums" and run.method.startswith("grpo")]
    if not chosen:
        return ""
    before = _correct(chosen[0].logs / "new" / f"{chosen[0].model}-before.parquet", "sums")
    start = sum(before.values()) / len(before)
    lines = [
        "This table is for GRPO on sums, one training each. The model before gets "
        f"{_percent(start)} right when it samples its answer. With a reward of 1 and a KL of "
        "weight beta, the best policy is the old one, tilted.",
        "",
        "| beta | right at the optimum, by theory | right, measured | lost |",
        "| --- | --- | --- | --- |",
    ]
    for run in chosen:
        beta = float(run.about["beta"])
        odds = start / (1 - start) * np.exp(1 / beta) if beta else np.inf
        limit = 1.0 if np.isinf(odds) else odds / (1 + odds)
        right, asked = run.learned
        told = binomtest(right, asked).proportion_ci(method="wilson")
        measured = f"{_percent(right / asked)} ({_percent(told.low)} to {_percent(told.high)})"
        cells = (f"{beta:g}", _percent(limit), measured, _percent(run.lost.mean()))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _draw(runs: Sequence[Run], logs: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with plotting.style():
        for model, title in MODELS.items():
            _draw_trade([run for run in runs if run.model == model], title, folder)
        _draw_old_mass(logs, folder)
        _draw_curves(logs, folder)


def _draw_trade(runs: Sequence[Run], title: str, folder: Path) -> None:
    """Method by method: what was forgotten, what was learned for it, and what is still written."""
    from matplotlib.figure import Figure

    found: dict[str, Run] = {}
    for run in runs:  # the first seed of each
        if run.task == "airports":
            found.setdefault(run.method, run)
    chosen = sorted(found.values(), key=lambda run: run.lost.mean())
    figure = Figure(figsize=(9.6, 1.2 + 0.2 * len(chosen)))
    left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=(3, 2, 2))
    for place, run in enumerate(chosen):
        colour = plotting.WON if run.method.startswith("merge") else plotting.LOST
        low, high = _interval(run.lost)
        left.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=1.2)
        left.plot(100 * run.lost.mean(), place, "o", markersize=5, color=colour)
        known, asked = run.learned
        middle.barh(place, 100 * known / asked, height=0.6, color=plotting.KEPT)
        if run.was_asked:
            before, after = run.words
            right.barh(place, 100 * after / before, height=0.6, color=plotting.KEPT)
        else:
            right.text(2, place, "not asked", va="center", fontsize=6)
    left.set_yticks(range(len(chosen)), [run.method for run in chosen])
    left.set(xlabel="lost of the old questions, % (95 %, one training)", xlim=(0, None))
    left.set_title(f"{title} learns 2,000 airports (merges in blue)")
    middle.set(xlabel="airports right, %", xlim=(0, 100))
    right.set(xlabel="words written, % of before")
    for axes in (middle, right):
        axes.set_axisbelow(True)
    plotting.save(figure, folder, f"trade-{runs[0].model}")


def _draw_old_mass(logs: Path, folder: Path) -> None:
    from matplotlib.figure import Figure

    found = _theory(logs)
    if not found:
        return
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


def _draw_curves(logs: Path, folder: Path) -> None:
    """Forgetting along the training, from the callback's probes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 3.6))
    axes = figure.add_subplot()
    runs = sorted((logs / "probes").glob("smollm2-*"))
    for colour, run in zip([*plotting.SERIES, plotting.INK], runs, strict=False):
        probes = {int(path.stem.removeprefix("step-")): path for path in run.glob("step-*.parquet")}
        before = _correct(probes[0])
        old = [key for key in before if key[0] != "airports"]
        lost = {}
        for step, path in sorted(probes.items()):
            now = _correct(path)
            lost[step] = 100 * np.mean([before[key] and not now[key] for key in old])
        name = run.name.removeprefix("smollm2-airports-").removesuffix("-0")
        axes.plot(list(lost), list(lost.values()), "o-", markersize=2.5, color=colour, label=name)
    axes.set(xlabel="steps", ylabel="probed questions forgotten, %", ylim=(0, None))
    axes.set_title("SmolLM2, airports: forgetting along the training")
    axes.legend(fontsize=7)
    plotting.save(figure, folder, "curves")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
