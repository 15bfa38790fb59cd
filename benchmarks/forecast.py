"""How good forecasts are on trainings that they never saw; writes benchmarks/forecast.md.

    python benchmarks/forecast.py            # the tables, from the logs of the studies
    python benchmarks/forecast.py --second   # only the last one, on a study that it never saw
    python benchmarks/forecast.py --bundle   # the curves that travel with the package

Every training of the study is forecast from the others alone. What *the others* means is the
question, so the table has a row for each answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from forgetmap.map.task_maps import TaskMap
from forgetmap.mitigate.forecast.build import BUNDLED, bundle, bundled
from forgetmap.mitigate.forecast.items import (
    Floats,
    History,
    Items,
    Training,
    read_history,
    read_items,
)
from forgetmap.mitigate.forecast.model import (
    auc,
    fit_curve,
    forecast_items,
    past_features,
    plain_features,
)
from forgetmap.mitigate.forecast.validate import (
    NEVER_SEEN,
    Quality,
    Told,
    coverage,
    forecast_unseen,
    quality,
)

ROOT = Path(__file__).resolve().parents[1]
STUDY = ROOT / "examples" / "study" / "study.yaml"
TASKS = ROOT / "examples" / "study" / "logs" / "tasks.csv"
SECOND = ROOT / "examples" / "papers" / "study.yaml"
SHORT = ROOT / "examples" / "study" / "logs" / "short"
PAGE = Path(__file__).with_suffix(".md")
WORDS = {
    "training": "this training",
    "regime": "its new task taught in its way",
    "task": "its new task",
    "model": "its model",
    "task and model": "its new task nor its model",
}
MODELS = {
    "smollm2": "SmolLM2-135M",
    "gemma3-270m": "Gemma 3 270M",
    "qwen-0.5b": "Qwen2.5-Coder-0.5B",
    "qwen-1.5b": "Qwen2.5-Coder-1.5B",
}
UNSEEN_PROBED = ("regime", "task", "model")
HEAD = """# Forecasts of trainings that were never seen

`python benchmarks/forecast.py` writes this page from the logs of [the study](../examples/study).
*At best* is the AUC of a curve that is fitted to the very trainings it is asked about. *Level off*
says how far the share of known items that a training costs is from the one told. *At the true
level* shifts every forecast so that it expects the share that was really lost: what is left is the
calibration within a training.

| never saw | past of the items | trainings | AUC, known items | at best | AUC, all items | calibration error, known items | level off | calibration error at the true level | in the riskiest quarter | categories within interval | totals within interval | width of a category's interval |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""  # noqa: E501
PROBED = """
## With a probe of 16 steps

The same for the trainings that have a probe: 16 steps of their own recipe with half of the batch
and another seed, thrown away ([short.py](../examples/study/short.py)). {items:,} old items were asked
after each, drawn by a seed beforehand; {probes} probes stand for {trainings} trainings, as seeds of
one recipe share theirs. Rows without the probe are of the same trainings and items.

| never saw | past of the items | probe | trainings | AUC, known items | at best | AUC, all items | calibration error, known items | level off | calibration error at the true level | in the riskiest quarter | categories within interval | totals within interval | width of a category's interval |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""  # noqa: E501
APART = """
## A study that it never saw

The curves that come with the package, on the trainings of [the second
study](../examples/papers): other new tasks, other questions (real benchmarks), and other models but
for SmolLM2. Nothing was fitted to it. Logs of its setting `full` hold right and wrong alone, so
`forgetmap forecast` withholds these forecasts; the rows show why. Means over trainings. *By chance*
sorts the known items by their chance before and fits nothing: the less sure, the riskier.

| logs | model | way | trainings | known items | AUC, known items | by chance | told to turn wrong | turned wrong | totals within interval |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""  # noqa: E501
ALONE = """
## By the chance before alone

The trainings of the first study with no forecast at all: known items sorted by their chance before,
the less sure, the riskier.

| model | trainings | AUC, known items, by chance |
| --- | --- | --- |
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bundle", action="store_true", help="only write the bundled curves")
    arguments.add_argument("--probes", action="store_true", help="only write the part on probes")
    arguments.add_argument("--second", action="store_true", help="only write the second study")
    asked = arguments.parse_args()
    if asked.second:
        _replace(APART, second_study())
        _replace(ALONE, by_chance(read_history(STUDY)))
        return
    history, category = read_history(STUDY), TaskMap.load(TASKS).category
    probed = history.probed(read_probes())
    if asked.bundle:
        place = ROOT / "src" / "forgetmap" / "mitigate" / "forecast" / BUNDLED
        place.parent.mkdir(exist_ok=True)
        text = bundle(history, probed, category, "the study of forgetmap")
        place.write_text(text, encoding="utf-8")
        return
    if not asked.probes:
        rows, curves = measured(history, NEVER_SEEN)
        PAGE.write_text("\n".join([HEAD.rstrip(), *rows, "", *curves, ""]), encoding="utf-8")
    _replace(PROBED, _with_probes(probed))
    _replace(APART, second_study())
    _replace(ALONE, by_chance(history))


def _replace(head: str, part: str) -> None:
    """Write a part of the page where its heading is, or behind all others; later parts go."""
    title = head.strip().partition("\n")[0]
    first = PAGE.read_text(encoding="utf-8").partition(f"\n{title}")[0]
    PAGE.write_text(first + part, encoding="utf-8")


def second_study() -> str:
    """The part of the page on trainings of a study that no curve was fitted to."""
    history, learned = read_history(SECOND), bundled()
    groups: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for training in history.trainings:
        items = history.models[training.model]
        found = forecast_items(items, learned.models, None)
        loss, flip, knew = (part[training.place] for part in (found.loss, found.flip, items.knew))
        low, high = learned.total.interval(loss)
        numbers = (
            float(knew.sum()),
            auc(flip[knew], training.flipped[knew]) or np.nan,
            _auc_by_chance(items, training),
            float(flip[knew].mean()),
            float(training.flipped[knew].mean()),
            float(low <= training.loss.mean() <= high),
        )
        setting, model, way = _kind(training)
        for name in (way, "all"):
            groups.setdefault((setting, model, name), []).append(numbers)
    rows = []
    for kind, numbers in groups.items():
        known, *_, told, lost, within = np.mean(numbers, axis=0)
        seen = np.array([one[1:3] for one in numbers])
        ranked = np.nanmean(seen, axis=0) if not np.isnan(seen).all() else (np.nan, np.nan)
        ranks = (
            "-" if np.isnan(rank) else f"{rank:.3f}" for rank in ranked
        )  # nothing turned wrong
        cells = (*kind, str(len(numbers)), f"{known:,.0f}", *ranks, f"{100 * told:.1f} %")
        cells = (*cells, f"{100 * lost:.1f} %", f"{100 * within:.0f} %")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([APART.rstrip(), *sorted(rows, reverse=True), ""])


def by_chance(history: History) -> str:
    """How well the chance before ranks by itself, by model and over all trainings."""
    found: dict[str, list[float]] = {}
    for training in history.trainings:
        name = next(MODELS[name] for name in MODELS if training.name.startswith(name))
        found.setdefault(name, []).append(_auc_by_chance(history.models[training.model], training))
    found["all"] = [value for values in found.values() for value in values]
    rows = [f"| {name} | {len(ranks)} | {np.mean(ranks):.3f} |" for name, ranks in found.items()]
    return "\n".join([ALONE.rstrip(), *rows, ""])


def _auc_by_chance(items: Items, training: Training) -> float:
    knew, chance = (part[training.place] for part in (items.knew, items.chance))
    return auc(-chance[knew], training.flipped[knew]) or np.nan


def _kind(training: Training) -> tuple[str, str, str]:
    """Setting, model and way of a training, of its name without the seed."""
    setting, rest = training.name.rsplit("-", 1)[0].split("-", 1)
    model = next(name for name in MODELS if rest.startswith(name))
    return setting, MODELS[model], rest.removeprefix(f"{model}-")


def _with_probes(probed: History) -> str:
    """The part of the page on trainings that have a probe."""
    bare = [one._replace(probe=None) for one in probed.trainings]
    rows, curves = measured(probed, UNSEEN_PROBED, "yes")
    rows += measured(History(probed.models, bare, probed.notes), UNSEEN_PROBED, "no")[0]
    head = PROBED.format(
        items=max(len(one.place) for one in probed.trainings),
        probes=len({id(one.probe) for one in probed.trainings}),
        trainings=len(probed.trainings),
    )
    return "\n".join([head.rstrip(), *rows, "", *curves, ""])


def read_probes() -> dict[str, Items]:
    """By the name of a training, what its probe had left of the items."""
    found = {}
    for path in sorted(SHORT.glob("*.json")):
        items = read_items(path.with_suffix(".parquet"))
        told = json.loads(path.read_text(encoding="utf-8"))
        found |= dict.fromkeys(told["trainings"], items)
    return found


def measured(
    history: History, unseen: Iterable[str], probe: str = ""
) -> tuple[list[str], list[str]]:
    """The rows of a table, and the calibration curves that stand below it."""
    rows, curves = list[str](), list[str]()
    for never_saw in unseen:
        for past in (True, False):
            if past and "model" in never_saw:
                continue  # without the model there is no past of its items
            found = measure(history, never_saw, past, probe)
            if found:
                rows.append(found[0])
                curves.append(found[1])
                print(found[0], flush=True)
    return rows, curves


def measure(
    history: History, never_saw: str, past: bool, probe: str = ""
) -> tuple[str, str] | None:
    """A row of the table, and the calibration curve behind it."""
    category = TaskMap.load(TASKS).category
    every = 4 if never_saw == "training" else 1  # each is a fit of its own
    told = list(forecast_unseen(history, never_saw, category, with_past=past, every=every))
    if not told:
        return None
    found = quality(told, never_saw, past)
    cells = [WORDS[never_saw], "yes" if past else "no", *([probe] if probe else [])]
    cells += [str(found.trainings)]
    cells += [f"{found.auc_known:.3f}", f"{best_auc(told, history, past):.3f}"]
    cells += [f"{found.auc_all:.3f}"]
    cells += [
        f"{100 * found.calibration_error:.1f} points",
        f"{100 * found.level_off:.1f} points",
        f"{100 * found.calibration_error_at_level:.1f} points",
        f"{100 * found.riskiest_quarter:.1f} %",
    ]
    if never_saw == "training":  # seeds of one recipe make its intervals too good to be told
        cells += ["", "", ""]
    else:
        held = coverage(told, never_saw, category, with_past=past)
        cells += [f"{100 * held.categories:.1f} % of {held.cases}", f"{100 * held.total:.1f} %"]
        cells += [f"{100 * held.category_width:.1f} points"]
    return "| " + " | ".join(cells) + " |", curve(found)


def best_auc(told: Sequence[Told], history: History, with_past: bool) -> float:
    """The AUC if the curve were fitted to the very trainings that it is asked about.

    It sees what the forecast saw of each item, and what then happened. So no logistic curve can
    rank much better by these features, whatever trainings it is fitted to.
    """
    groups: dict[tuple[str, ...], list[Told]] = {}
    for each in told:
        groups.setdefault(tuple(one.name for one in each.seen.trainings), []).append(each)
    found = list[float | None]()
    for group in groups.values():
        rows = [_seen_of(each, history, with_past)[each.knew] for each in group]
        lost = [each.training.flipped[each.knew] for each in group]
        target = np.concatenate(lost).astype(float)
        fitted = fit_curve(np.concatenate(rows), target, np.ones(len(target)))
        found += [auc(fitted(part), happened) for part, happened in zip(rows, lost, strict=True)]
    return float(np.mean([value for value in found if value is not None]))


def _seen_of(each: Told, history: History, with_past: bool) -> Floats:
    items = history.models[each.training.model]
    sides = [plain_features(items, each.training.probe)]
    past = past_features(items, each.seen, each.training.model) if with_past else None
    if past is not None:
        sides.append(past.features)
    return np.column_stack(sides)[each.training.place]


def curve(found: Quality) -> str:
    """The calibration curve as a line."""
    told = ", ".join(f"{100 * b.forecast:.1f} → {100 * b.happened:.1f}" for b in found.curve)
    with_past = "with" if found.history else "without"
    return (
        f"- never saw {WORDS[found.never_saw]}, {with_past} the past: tenths of the known items by "
        f"forecast, % expected → % lost: {told}"
    )


if __name__ == "__main__":
    main()
