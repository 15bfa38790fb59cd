"""Stage 4: results.md and the figures, from the result of `forgetmap study` and the logs.

    python tables.py .

Every number in the study's page of the docs is one of them. What the study verb tells is taken from
its result. What it does not tell is here (two single runs beside each other) and in beyond.py.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import beyond
import numpy as np
import pyarrow.parquet as pq
from scipy.special import stdtrit

from forgetmap.map.task_maps import TaskMap
from forgetmap.stats.estimate import Estimate
from forgetmap.study import StudyResult, run_study
from forgetmap.study.result import StudiedPair

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
MODELS = {"smollm2": "smollm2", "gemma3-270m": "gemma"}
TASKS = {"airports": "", "sums": " sums", "broad": " broad"}
"""How the tables of a model and of a task are called."""
PLAIN = {
    "dpo": "sft-like-dpo", "sdft": "sft-like-dpo",
    "grpo-0": "sft-like-grpo", "grpo-0.2": "sft-like-grpo", "grpo-1": "sft-like-grpo",
    "anchor-low-rate": "sft-low-rate", "anchor-questions-low-rate": "sft-low-rate",
    "retention-low-rate": "sft-low-rate",
}  # fmt: skip
"""Plain training with the rate, the steps and the batch of a method."""
DOMAIN = "replay-25-domain"
DRAWN = ("replay-25-questions", "replay-25-targeted", DOMAIN, "repair-domain")
Row = Sequence[str]
Where = Callable[[str], bool]
"""Which tasks are meant."""


def main(out: Path) -> None:
    result = study()
    made = tables(result)
    text = (HERE / "results.in.md").read_text()
    filled = re.sub(r"\[\[(.+?)\]\]", lambda match: made[match[1]](), text)
    (out / "results.md").write_text(filled)
    beyond.draw(result.pairs, out / "figures")


@cache
def study() -> StudyResult:
    """The study, as `forgetmap study study.yaml` has it."""
    return run_study(HERE / "study.yaml")


def tables(result: StudyResult) -> dict[str, Callable[[], str]]:
    """How each part of the results is made, by its name in results.in.md."""
    pairs = {pair.name: pair for pair in result.pairs}
    made: dict[str, Callable[[], str]] = {
        "equal": partial(_equal_learning, result),
        "claims": partial(_claims, result),
        "seeds": partial(_overlap, result),
        "carries": partial(_carries, result),
        "domain": partial(_domain, pairs),
        "rate": partial(_same_rate, pairs),
        "weights": partial(_weights, pairs),
    }
    for model, short in MODELS.items():
        for task, name in TASKS.items():
            chosen = [pair for pair in result.pairs if of(pair) == (model, task)]
            made[f"{short}{name}"] = partial(_methods, chosen, result)
    return made | beyond.tables(result.pairs)


# --- from the result of the study ----------------------------------------------------------------


def of(pair: StudiedPair) -> tuple[str, str]:
    """The model and the new task of a pair."""
    return str(pair.attributes["family"]), str(pair.attributes["task"])


def about(pair: StudiedPair) -> dict[str, Any]:
    """How a run was made."""
    return json.loads((LOGS / f"{pair.name}.json").read_text())


def _methods(pairs: Sequence[StudiedPair], result: StudyResult) -> str:
    by_method: dict[str, list[StudiedPair]] = {}
    for pair in pairs:
        by_method.setdefault(str(pair.attributes["method"]), []).append(pair)
    several = {found.pairs[0]: found for found in result.answers.replicates}
    seconds = {
        name: [about(run).get("seconds") for run in same] for name, same in by_method.items()
    }
    rows = []
    for method in sorted(
        by_method, key=lambda name: (name.startswith("merge"), name != "sft", name)
    ):
        same = by_method[method]
        first = same[0]
        found = several.get(first.name)
        lost, gained = (found or first.old).lost, (found or first.old).gained
        lost, gained = (each if found else each.estimate for each in (lost, gained))
        before, after = _means(same, "old")
        asked = sum(pair.new.n for pair in same)
        timed = all(seconds[method])
        rows.append(
            [
                method,
                f"{len(same)}" if found else "one training",
                told(lost),
                percent(np.mean([pair.old.lost.of_known.value for pair in same])),
                told(gained),
                f"{percent(before)} to {percent(after)}",
                "{} to {}".format(
                    percent(_means(same, "new")[0]), right(_means(same, "new")[1], asked)
                ),
                f"{np.mean(seconds[method]) / np.mean(seconds['sft']):.1f} x" if timed else "",
            ]
        )
    head = "method | trainings | lost | of known | gained | old questions right | new task right"
    return table(f"{head} | time", rows)


def _means(pairs: Sequence[StudiedPair], cell: str) -> tuple[float, float]:
    """The mean accuracy before and after."""
    cells = [getattr(pair, cell) for pair in pairs]
    sides = ("accuracy_before", "accuracy_after")
    return tuple(float(np.mean([getattr(one, side) for one in cells])) for side in sides)


def _equal_learning(result: StudyResult) -> str:
    found = result.answers.trade_off
    rows = [
        [
            f"{level.start.partition('-before')[0]} {_task(level.start)} {percent(level.learned)}",
            str(method.value),
            percent(method.lost),
            told(method.interval).partition(" ")[2] if method.interval else "",
        ]
        for level in found.equal
        for method in level.methods
        if method.lost is not None
    ]
    return table("model, task and points learned | way | lost | interval", rows)


def _task(start: str) -> str:
    new = start.partition(": ")[2]
    return "broad" if "," in new else new


def _claims(result: StudyResult) -> str:
    rows = [
        [
            claim.text,
            signed(claim.estimate),
            f"{claim.p_adjusted:.3f}",
            "yes" if claim.claimed else "can't tell",
            claim.unit,
        ]
        for claim in result.answers.claims
    ]
    return table("statement | points | p | claim | over", rows)


def _overlap(result: StudyResult) -> str:
    rows = [
        [kind.kind, f"{kind.comparisons:,}", f"{kind.together:,}", f"{kind.expected:,.0f}",
         told(kind.beyond_chance)]
        for kind in result.answers.items.overlap
    ]  # fmt: skip
    head = "two trainings | comparisons | questions lost in both | by chance | beyond chance"
    return table(head, rows)


# --- two runs beside each other, question by question --------------------------------------------


@cache
def _chances(log: str) -> dict[tuple[str, int], float]:
    """The right option's probability, of the questions with options."""
    columns = ["task", "item", "gold_probability"]
    rows = pq.read_table(log, columns=columns).to_pydict()
    found = zip(*(rows[column] for column in columns), strict=True)
    return {(task, item): chance for task, item, chance in found if chance is not None}


def losses(pair: StudiedPair, where: Where = lambda _: True) -> np.ndarray:
    """Question by question: what was lost of the chance of being right."""
    before, after = _chances(pair.before_log), _chances(pair.after_log)
    old = {task for task in pair.tasks if task not in pair.new_tasks and where(task)}
    keys = sorted(key for key in before if key[0] in old)
    return np.array([max(before[key] - after[key], 0) for key in keys])


def known(pair: StudiedPair) -> np.ndarray:
    """Question by question of the new task: whether it is right, by the first answer."""
    right = beyond.correct(Path(pair.after_log))
    return np.array([right[key] for key in sorted(right) if key[0] in pair.new_tasks], float)


def mean(values: np.ndarray) -> Estimate:
    """The mean with 95 %; `values` are (trainings, questions), or questions of one training.

    With several trainings both vary: other seeds (Student's t over the trainings' means) and other
    questions (thousands of them), each on its own.
    """
    rows = np.atleast_2d(values)
    trainings, questions = rows.shape
    square = (1.96 * rows.mean(axis=0).std(ddof=1)) ** 2 / questions
    if trainings > 1:
        means = rows.mean(axis=1)
        square += (stdtrit(trainings - 1, 0.975) * means.std(ddof=1)) ** 2 / trainings
    value, reach = float(rows.mean()), float(np.sqrt(square))
    return Estimate(value=value, low=value - reach, high=value + reach)


def apart(one: np.ndarray, other: np.ndarray) -> str:
    """How far two runs are apart on the same questions."""
    difference = other - one
    if not difference.any():
        return f"none of {difference.size:,} differs"
    return signed(mean(difference))


def _beside(one: StudiedPair, other: StudiedPair) -> list[str]:
    """What two runs lost and learned, each with the difference of the other to the one."""
    cells = []
    for mine, theirs in ((losses(one), losses(other)), (known(one), known(other))):
        cells += [percent(mine.mean()), percent(theirs.mean()), apart(mine, theirs)]
    return cells


def _carries(result: StudyResult) -> str:
    """Does a method keep questions that are like its training data, or others too?"""
    pairs = {pair.name: pair for pair in result.pairs}
    rows = []
    for found in result.answers.replicates:
        model, method = (str(found.attributes[name]) for name in ("family", "method"))
        if method == "sft":
            continue
        same = [(pairs[name], pairs[name.replace(method, "sft")]) for name in found.pairs]
        parts = (lambda task: task.startswith("atlas_"), lambda task: task.startswith("evals_"))
        beside = [np.array([losses(a, part) - losses(b, part) for a, b in same]) for part in parts]
        rows.append([f"{model} {method}", f"{len(same)}", *(signed(mean(one)) for one in beside)])
    head = "model and method | trainings | on atlas | on third-party sets"
    return table(head, rows)


def _domain(pairs: dict[str, StudiedPair]) -> str:
    """Replay for what the map says was lost: everything, or one category alone."""
    rows = []
    for model in MODELS:
        domain = next(iter(about(pairs[f"{model}-airports-{DOMAIN}-0"])["replayed"]))
        names = [f"{model}-airports-{method}-{seed}" for method in DRAWN for seed in "01"]
        chosen = [pairs[name] for name in names if name in pairs]
        plain = {
            seed: pairs[f"{model}-airports-sft-{seed}"] for seed in (p.name[-1] for p in chosen)
        }
        every = (*plain.values(), *chosen)
        rows += [_domain_row(pair, plain[pair.name[-1]], domain) for pair in every]
    head = (
        "run | domain | old examples | of the domain | lost in the domain | against sft | lost "
        "elsewhere | against sft"
    )
    return table(head, rows)


def _domain_row(pair: StudiedPair, plain: StudiedPair, domain: str) -> Row:
    category = TaskMap.load(LOGS / "tasks.csv").category
    drawn = about(pair).get("replayed", {})
    cells = []
    for inside in (True, False):
        where = partial(lambda task, inside: (category(task) == domain) is inside, inside=inside)
        mine, theirs = losses(pair, where), losses(plain, where)
        cells += [told(mean(mine)), "" if pair is plain else apart(theirs, mine)]
    named = f"{pair.attributes['family']} {pair.attributes['method']}-{pair.name[-1]}"
    return [named, domain, f"{sum(drawn.values()):,}", f"{drawn.get(domain, 0):,}", *cells]


def _weights(pairs: dict[str, StudiedPair]) -> str:
    """Does merging help when weights drift little? Each run beside its half-merge."""
    rows = []
    for path in sorted(LOGS.glob("drift-*.json")):
        found = json.loads(path.read_text())
        name = path.stem.removeprefix("drift-")
        merged = name.replace("-airports-sft-", "-airports-merge-linear-0.5-")
        merged = re.sub(r"merge-(linear-0.5)-low-rate", r"merge-sft-low-rate-\1", merged)
        moved = [f"{found['relative']:.2%}", f"{found['effective_rank']:.0f}"]
        named = name.replace("-airports-", " ")
        rows.append([named, *moved, *_beside(pairs[name], pairs[merged])])
    head = (
        "run | change of weights | rank of the change | lost | merged, linear 0.5 | difference | "
        "new task right | merged | difference"
    )
    return table(head, rows)


def _same_rate(pairs: dict[str, StudiedPair]) -> str:
    """Each method that is not trained as the plain run is, beside plain training of its size."""
    rows = []
    for model in MODELS:
        for pair in (pair for pair in pairs.values() if pair.attributes["family"] == model):
            task, method = (str(pair.attributes[name]) for name in ("task", "method"))
            names = [f"{model}-{task}-{PLAIN.get(method, '-')}-{seed}" for seed in "01"]
            for plain in (pairs[name] for name in names if name in pairs):
                named = [f"{model} {task} {method}", str(plain.attributes["method"])]
                rows.append([*named, *_beside(plain, pair)])
    head = (
        "run | plain run | lost by plain training | by the method | difference | new task right "
        "by plain training | by the method | difference"
    )
    return table(head, rows)


# --- cells ---------------------------------------------------------------------------------------


percent, table, told, right = beyond.percent, beyond.table, beyond.told, beyond.right


def signed(found: Estimate) -> str:
    """A difference with its interval."""
    return f"{found.value:+.1%} ({found.low:+.1%} to {found.high:+.1%})"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
