"""Stage 4: from the logs to the tables and the page of the docs, without a model.

    python results.py
    python results.py FOLDER --out tables.md

`logs/` has a folder for each setting that was run. They give results.md, and that gives the picture
and, with papers.in.md, docs/explanation/papers.md. There {{name}} stands for a table and
{table/row/column} for a number of one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

import numpy as np
import pyarrow.parquet as pq
from cells import fill_page
from claims import CLAIMS, THEORY, Claim, apart, near, together
from figure import draw
from guessing import Item, sure_losses, surely_more
from plan import Plan
from scipy.stats import spearmanr

from forgetmap.base.errors import InputError
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.estimate import share as share_of
from forgetmap.stats.slopes import mean_over
from forgetmap.study import Study, StudyResult, run_study
from forgetmap.study.against import beside
from forgetmap.study.result import Beside, StudiedPair, TradeOff

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "explanation" / "papers.md"
FIGURE = HERE / "figures" / "kinds.svg"
NO_NUMBER = "none"
SETTINGS = ("full", "small", "tiny")
UNTRAINED = "not trained yet"
LEAST_KINDS = 5
"""Without which no rank correlation is given."""
Rows = Sequence[Sequence[str]]


class Results:
    """The study's logs at one setting, compared."""

    def __init__(self, study: Study, setting: str, cache: Path | None = None) -> None:
        self.setting = setting
        self.logs = study.path.parent / "logs" / setting
        self.plan = Plan.load(HERE / "plan.yaml")
        pairs = [pair for pair in study.pairs if pair.attributes["setting"] == setting]
        self.result: StudyResult = run_study(study._replace(pairs=pairs), cache=cache)
        self.about = json.loads((self.logs / "about.json").read_text())

    @classmethod
    def load(cls, folder: Path = HERE, cache: Path | None = None) -> list[Results]:
        """Every setting that was run, the largest first."""
        study = Study.load(folder / "study.yaml")
        run = {str(pair.attributes["setting"]) for pair in study.pairs}
        return [cls(study, name, cache) for name in SETTINGS if name in run]

    @cached_property
    def told(self) -> dict[str, dict[str, Any]]:
        """What each run says of itself, by its name in the study."""
        return {
            f"{self.setting}-{path.stem}": json.loads(path.read_text())
            for path in sorted(self.logs.glob("*-[0-9].json"))
        }

    @cached_property
    def kinds(self) -> dict[tuple[str, str], list[StudiedPair]]:
        """The trainings by model and kind, in the order of the plan."""
        found: dict[tuple[str, str], list[StudiedPair]] = {}
        for model in self.plan.models:
            for key in self.plan.entries:
                same = [one for one in self.result.pairs if _is_of(one, model, key)]
                if same:
                    found[model, key] = same
        return found

    def title(self, model: str) -> str:
        """A model's name for people, without what all have."""
        return self.plan.models[model].title.removesuffix("-Instruct")


class Compared(NamedTuple):
    """One kind of training beside another."""

    name: str
    found: Beside
    sure: Estimate | None
    """How much more was lost where reshuffled guessing is left out; None where no log tells."""
    trainings: int
    """A side."""


def _is_of(pair: StudiedPair, model: str, key: str) -> bool:
    known = pair.attributes
    return known.get("model") == model and f"{known['data']}-{known['method']}" == key


# --- tables --------------------------------------------------------------------------------------


def kinds(of: Results) -> tuple[str, Rows]:
    """Every kind of training by itself."""
    pooled = {group.pairs[0]: group.lost for group in of.result.answers.replicates}
    rows = []
    for (model, key), pairs in of.kinds.items():
        told = [of.told[pair.name] for pair in pairs]
        most = pooled.get(pairs[0].name) or pairs[0].old.lost
        rows.append([
            f"{model} {key}", str(len(pairs)), _rate(told), _steps(told), _range(pairs, most),
            _mean(pairs, lambda pair: pair.old.gained.value), _right(pairs, "old"),
            _right(pairs, "new"), _average(told, "kl_forward_new", 1, 3),
            _average(told, "weight_drift", 100, 2),
        ])  # fmt: skip
    head = "kind | trainings | rate | steps | lost | gained | old right | new right"
    return f"{head} | KL on new text | weights moved", rows


SKILLS = ("sums", "letters", "words")


def skills(of: Results) -> tuple[str, Rows]:
    """What became of the written skills that a training did not teach; no other number has them."""
    rows = []
    for (model, key), pairs in of.kinds.items():
        before = _right_items(of.logs / f"{model}-before.parquet")
        seen = [(before, _right_items(of.logs / f"{_run(of, pair)}.parquet")) for pair in pairs]
        cells = [_became(seen, skill, pairs[0].attributes) for skill in SKILLS]
        if any(cells):
            rows.append([f"{model} {key}", str(len(pairs)), *(one or "taught" for one in cells)])
    return f"kind | trainings | {' | '.join(SKILLS)}", rows


def _run(of: Results, pair: StudiedPair) -> str:
    return pair.name.removeprefix(f"{of.setting}-")


def _right_items(log: Path) -> dict[tuple[str, int], bool]:
    """By task and item, whether a written answer was right."""
    rows = pq.read_table(log, columns=["task", "item", "score"]).to_pylist()
    return {(r["task"], r["item"]): r["score"] > 0.5 for r in rows if r["task"] in SKILLS}


def _became(
    seen: Sequence[tuple[dict[tuple[str, int], bool], ...]], skill: str, known: Mapping[str, Any]
) -> str:
    """Right before and after, and what was lost and gained item by item; means over trainings."""
    if known["data"] in (skill, "mix"):
        return ""
    pairs = [
        (was, after[at])
        for before, after in seen
        for at, was in before.items()
        if at[0] == skill and at in after
    ]
    if not pairs:
        return ""
    was, now = np.array(pairs).T
    told = [was.mean(), now.mean(), (was & ~now).mean(), (now & ~was).mean()]
    right, then, lost, gained = (f"{100 * float(part):.0f}" for part in told)
    return f"{right} to {then} (lost {lost}, gained {gained})"


def compared(of: Results) -> tuple[str, Rows]:
    """Two kinds beside each other, for every claim that two kinds of training can decide."""
    rows: list[list[str]] = []
    for claim in CLAIMS:
        for name, found, sure, trainings in _found(of, claim):
            learned = _signed(found.more_right) if found.more_right else NO_NUMBER
            rows.append([
                name, str(trainings), str(found.items), _signed(found.more_lost),
                _signed(sure) if sure else NO_NUMBER, learned,
                claim.verdict(found, sure, trainings, of.setting),
            ])  # fmt: skip
    head = "compared | trainings a side | items | more lost | without guessing | more right"
    return f"{head} | verdict", rows


def _found(of: Results, claim: Claim) -> Iterable[Compared]:
    """The comparison for each model that has both kinds."""
    for model in [claim.one] if claim.size else of.plan.models:
        other = claim.other if claim.size else model
        one_key, other_key = (claim.by, claim.by) if claim.size else (claim.one, claim.other)
        one, reference = of.kinds.get((model, one_key)), of.kinds.get((other, other_key))
        if not one or not reference:
            continue
        both = [(a, b) for a in one for b in reference if _seed(a) == _seed(b)]
        try:
            found = beside([a for a, _ in both], [b for _, b in both])
        except InputError:  # two models may know nothing in common
            continue
        exact = all(one.old.lost.exact for pair in both for one in pair)
        sides = ([_sure(of, pair) for pair in side] for side in zip(*both, strict=True))
        sure = surely_more(*sides) if exact else None
        name = f"{model} {one_key} beside {other} {other_key}"
        yield Compared(name, found, sure, len(both))


def _sure(of: Results, pair: StudiedPair) -> dict[Item, float]:
    before = of.logs / f"{pair.attributes['model']}-before.parquet"
    new = of.plan.settings[of.setting].new
    return sure_losses(before, of.logs / f"{_run(of, pair)}.parquet", new)


def _seed(pair: StudiedPair) -> Any:
    return pair.attributes.get("seed")


def claims(of: Results) -> tuple[str, Rows]:
    """The claims of the papers, each with what was found."""
    rows = []
    for claim in CLAIMS:
        found = list(_found(of, claim))
        if not found:
            rows.append([claim.text, claim.whose, UNTRAINED, "0", "cannot tell"])
            continue
        verdicts = [claim.verdict(one.found, one.sure, one.trainings, of.setting) for one in found]
        words = "; ".join(_in_words(of, one) for one in found)
        least = min(one.trainings for one in found)
        rows.append([claim.text, claim.whose, words, str(least), together(verdicts)])
    rows += [*_equal_claims(of), *_theory_claims(of)]
    return "claim | whose | what we found | trainings a side | verdict", rows


def _in_words(of: Results, compared: Compared) -> str:
    name, found = compared.name, compared.found
    lost = found.more_lost
    less = lost.value <= 0
    low, high = (-lost.high, -lost.low) if less else (lost.low, lost.high)
    said = f"{abs(100 * lost.value):.1f} points {'less' if less else 'more'}"
    said = f"loses {said}" if compared.sure else f"{said} turn wrong"
    said += f" ({100 * low:.1f} to {100 * high:.1f}) on {of.title(name.split()[0])}"
    if found.more_right is None:
        return said
    right = found.more_right
    low, high = (-right.high, -right.low) if right.value < 0 else (right.low, right.high)
    said += f", and learns {abs(100 * right.value):.1f} points"
    return f"{said} {'less' if right.value < 0 else 'more'} ({100 * low:.1f} to {100 * high:.1f})"


def behaviour(of: Results) -> tuple[str, Rows]:
    """The change of each group of capabilities, over the trainings of a kind."""
    rows = []
    for (model, key), pairs in of.kinds.items():
        asked = [pair.drift for pair in pairs if pair.drift and pair.drift.groups]
        cells = []
        for group in ("CAN", "WILL", "HOW"):
            found = [drift.groups[group].change for drift in asked if group in drift.groups]
            seen = [change for change in found if change]
            cells.append(_over_seeds(seen) if seen and len(seen) == len(asked) else NO_NUMBER)
        if asked:
            rows.append([f"{model} {key}", str(len(asked)), *cells])
    return "behaviour | trainings | CAN | WILL | HOW", rows


def _over_seeds(seen: Sequence[Estimate]) -> str:
    """A mean over trainings; the items are the same in each, so their variance does not shrink."""
    items = float(np.mean([((one.high - one.low) / 3.92) ** 2 for one in seen]))
    found = mean_over([one.value for one in seen], items, 30).interval
    return _signed(found) if found else NO_NUMBER


def benchmarks(of: Results) -> tuple[str, Rows]:
    """What each model knew before, and what was left out."""
    rows = []
    for model, one in of.about["known"].items():
        known, out = one["known"], one["left_out"]
        counts = str(len(known) + len(out)), str(len(known))
        rows.append([model, *counts, ", ".join(known), ", ".join(out) or NO_NUMBER])
    return "model | tried | known | which | left out", rows


PUBLISHED = {"smollm2": "29.3 (its model card)"}
"""MMLU in percent, by the text of an answer, without examples; we found none of the others."""


def mmlu(of: Results) -> tuple[str, Rows]:
    """What each model had right of MMLU, asked what it knows, beside what is published."""
    rows = []
    for model, one in of.about["known"].items():
        seen = [told for name, told in one.get("seen", {}).items() if name.startswith("mmlu_")]
        items = sum(told["items"] for told in seen)
        right = round(sum(told["right"] * told["items"] for told in seen))
        if items:
            stored, published = of.plan.models[model].stored, PUBLISHED.get(model, NO_NUMBER)
            rows.append([model, stored, str(items), _interval(share_of(right, items)), published])
    return "model | weights | items | right, percent | published", rows


def rates(of: Results) -> tuple[str, Rows]:
    """The rates that were chosen, by scores on items of the new task that are not asked later."""
    rows = [
        [name.removeprefix("rate-"), f"{one['rate']:g}",
         ", ".join(f"{rate}: {score:.3f}" for rate, score in one["scores"].items()) or NO_NUMBER]
        for name, one in of.about["rates"].items()
    ]  # fmt: skip
    return "kind | rate | scores on items not asked later", rows


PREDICTORS = {
    "kl_forward_new": "KL to the model before, on new text",
    "kl_reverse_new": "the same, reversed",
    "weight_drift": "how far the weights moved",
    "learning_rate": "learning rate",
}


def predictors(of: Results) -> tuple[str, Rows]:
    """How well a number foretells what is lost: rank correlation over trainings of one model.

    The interval draws kinds of training again: trainings of one kind are alike. Models with few
    kinds are left out.
    """
    rows = []
    for model in of.about["known"]:
        kinds = [pairs for (one, _), pairs in of.kinds.items() if one == model]
        for name, words in PREDICTORS.items() if len(kinds) >= LEAST_KINDS else ():
            found = _ranked([[_both(of, pair, name) for pair in pairs] for pairs in kinds])
            rows.append([f"{model}: {words}", *found])
    return "predictor | kinds | trainings | rank correlation with lost", rows


def _both(of: Results, pair: StudiedPair, name: str) -> tuple[float, float] | None:
    value = of.told[pair.name].get(name)
    return None if value is None else (float(value), pair.old.lost.value)


def _ranked(kinds: Sequence[Sequence[tuple[float, float] | None]]) -> list[str]:
    known = [part for pairs in kinds if (part := [pair for pair in pairs if pair])]
    count = sum(map(len, known))
    if len(known) < LEAST_KINDS:
        return [str(len(known)), str(count), "too few kinds"]
    draw, seen = np.random.default_rng(0), []
    for _ in range(2_000):
        chosen = [known[place] for place in draw.integers(len(known), size=len(known))]
        flat = np.array([pair for part in chosen for pair in part])
        if len(set(flat[:, 0])) > 1 and len(set(flat[:, 1])) > 1:
            seen.append(float(spearmanr(*flat.T).statistic))
    if not seen:
        return [str(len(known)), str(count), "all alike"]
    value = float(spearmanr(*np.array([pair for part in known for pair in part]).T).statistic)
    low, high = np.quantile(seen, [0.025, 0.975])
    return [str(len(known)), str(count), f"{value:.2f} ({low:.2f} to {high:.2f})"]


def _masses(of: Results) -> Iterable[tuple[str, float, float, int, Estimate]]:
    """(model, share of replay, old mass by theory, trainings, old mass measured)."""
    found: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for told in of.told.values():
        if "old_mass" in told:
            found.setdefault((told["model"], told["share"]), []).append(told)
    for (model, share), trainings in sorted(found.items()):
        ends = [list(told["old_mass"].values())[-1] for told in trainings]
        texts = trainings[0]["sampled"]  # the same random numbers draw the texts of each training
        drawn = max(float(np.mean(ends)) * (1 - float(np.mean(ends))), 1 / texts) / texts
        over = mean_over(ends, drawn, texts).interval
        assert over is not None  # the texts that are drawn have a variance
        within = over.model_copy(update={"low": max(0.0, over.low), "high": min(1.0, over.high)})
        yield model, share, trainings[0]["limit"], len(ends), within


def theory(of: Results) -> tuple[str, Rows]:
    """The old mass at the end, where theory says: the share of replay in the loss."""
    rows = [
        [f"{model}, {100 * share:.0f} % of replay", str(count), f"{100 * limit:.1f}",
         _interval(mass), near(limit, mass, count)]
        for model, share, limit, count, mass in _masses(of)
    ]  # fmt: skip
    return "replay | trainings | old mass by theory | old mass measured | verdict", rows


def _theory_claims(of: Results) -> Rows:
    """What theory says of the old mass in the end; one row, which every share must confirm."""
    text = "In the end the share of old texts is the share of replay, none without"
    found = list(_masses(of))
    if not found:
        return [[text, THEORY, UNTRAINED, "0", "cannot tell"]]
    said = "; ".join(f"{_interval(mass)} %, where it is {100 * limit:.1f}"
                     for *_, limit, _, mass in found)  # fmt: skip
    verdicts = {near(limit, mass, count) for *_, limit, count, mass in found}
    least = min(count for *_, count, _ in found)
    verdict = "refuted" if "refuted" in verdicts else "cannot tell"
    return [[text, THEORY, said, str(least), verdicts.pop() if len(verdicts) == 1 else verdict]]


def equal(of: Results) -> tuple[str, Rows]:
    """What each recipe lost where they learned as much."""
    trade = of.result.answers.trade_off
    rows = [
        [f"{level.start} {100 * level.learned:.1f}", str(one.value),
         _interval(one.interval) if one.interval else NO_NUMBER if one.lost is None
         else f"{100 * one.lost:.1f}", one.why or ""]
        for level in (trade.equal if trade else [])
        for one in level.methods
    ]  # fmt: skip
    return "learned | recipe | lost | why not", rows


ON_POLICY = ("grpo", "sdft")


def _equal_claims(of: Results) -> Rows:
    """On-policy training beside supervised training, where both learned as much."""
    trade, rows = of.result.answers.trade_off, []
    for recipe in ON_POLICY:
        said, verdicts, least = [], [], 0
        for level in trade.equal if trade else []:
            at = {str(one.value): one.interval for one in level.methods}
            mine, plain = at.get(recipe), at.get("sft")
            if trade and mine and plain and "sums" in level.start:
                said.append(f"{_interval(mine)} and {_interval(plain)} % lost at "
                            f"{100 * level.learned:.1f} points learned")  # fmt: skip
                least = _fewest(trade, level.start, (recipe, "sft"))
                verdicts.append(apart(mine, plain))
        text = f"... at equal learning: {recipe.upper()} and supervised training"
        verdict = together(verdicts) if verdicts else "cannot tell"
        rows.append([text, THEORY, "; ".join(said) or UNTRAINED, str(least), verdict])
    return rows


def _fewest(trade: TradeOff, start: str, recipes: Sequence[str]) -> int:
    """Trainings of the kind that has the fewest, among those behind the curves of some recipes."""
    curves = [one for one in trade.curves if one.start == start and str(one.value) in recipes]
    return min(len(point.pairs) for curve in curves for point in curve.points)


def times(of: Results) -> tuple[str, Rows]:
    """What was timed before the budget, and what all jobs took."""
    rows = []
    for model, speed in of.about["calibration"].items():
        steps = ", ".join(f"{name}: {one:.2f}" for name, one in speed["steps"].items())
        whole = sum(
            seconds for name, seconds in of.about["seconds"].items() if model in name
        )  # fmt: skip
        rows.append([model, f"{speed['ask']:.3f}", f"{speed['write']:.3f}", steps,
                     f"{whole / 60:.0f}"])  # fmt: skip
    return "model | a question | a written answer | a step | all jobs, minutes", rows


TABLES: dict[str, tuple[str, Callable[[Results], tuple[str, Rows]]]] = {
    "claims": ("Claims", claims),
    "kinds": ("Kinds of training", kinds),
    "skills": ("Written skills that were not taught: right, lost and gained, in percent", skills),
    "compared": ("Compared with each other", compared),
    "equal": ("Equal learning: what was lost there, in percent", equal),
    "behaviour": ("Behaviour by group of capabilities, in points", behaviour),
    "predictors": ("Predictors of what is lost", predictors),
    "theory": ("Theory: the old mass, in percent", theory),
    "benchmarks": ("Benchmarks that a model knew before", benchmarks),
    "mmlu": ("MMLU by the text of the answer, without examples", mmlu),
    "times": ("Times, in seconds, on the machine of this setting", times),
    "rates": ("Rates that were chosen, by the new task alone", rates),
}


def write_results(settings: Sequence[Results]) -> str:
    """All tables; of each its first words name it."""
    parts = ["# The papers' questions: all tables", WORDS]
    for title, make in TABLES.values():
        made = [(of.setting, *make(of)) for of in settings]
        head = made[0][1]
        rows = (_claim_rows if make is claims else _named_rows)(made)
        body = table(head, rows) if rows else "Not trained yet."
        parts.append(f"## {title}\n\n{body}")
    return "\n\n".join(parts) + "\n"


def _named_rows(made: Iterable[tuple[str, str, Rows]]) -> Rows:
    """The rows of all settings; the name of each begins with the setting."""
    return [[f"{setting} {row[0]}", *row[1:]] for setting, _, rows in made for row in rows]


def _claim_rows(made: Sequence[tuple[str, str, Rows]]) -> Rows:
    """Claim by claim, a row for each setting that can say something, or one that none can."""
    found = []
    for same in zip(*(rows for *_, rows in made), strict=True):
        tried = [
            [*row[:2], f"{setting}: {row[2]}", *row[3:]]
            for (setting, *_), row in zip(made, same, strict=True)
            if row[2] != UNTRAINED
        ]
        found += tried or [same[0]]
    return found


WORDS = (
    "Lost, gained and right are in percent, differences in points, each with a 95 % interval. Lost "
    "is a range: the low end leaves out what may be guessing that was reshuffled, and so does a "
    "difference without guessing. Gained is the most. One training has an interval over items, "
    "several have one over trainings and items; at equal learning it is over trainings alone. "
    "Weights moved is in percent of their norm."
)


def table(head: str, rows: Rows) -> str:
    """A table in Markdown."""
    names = head.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- numbers -------------------------------------------------------------------------------------


def _interval(found: Any) -> str:
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def _range(pairs: Sequence[StudiedPair], most: Any) -> str:
    """The least and the most that was lost, as a mean over trainings, with one interval for both.

    The low end leaves out what may be guessing that was reshuffled; of right and wrong alone it is
    no more than the drop of the average.
    """
    ends = [pair.old.lost for pair in pairs]
    items = float(np.mean([((end.low_end - (end.low or 0.0)) / 1.96) ** 2 for end in ends]))
    least = mean_over([end.low_end for end in ends], items, 30)
    low = max(0.0, least.interval.low) if least.interval else least.value
    ends_told = f"{100 * least.value:.1f} to {100 * most.value:.1f}"
    return f"{ends_told} ({100 * low:.1f} to {100 * most.high:.1f})"


def _signed(found: Estimate) -> str:
    return f"{100 * found.value:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def _mean(pairs: Sequence[StudiedPair], of: Callable[[StudiedPair], float]) -> str:
    return f"{100 * float(np.mean([of(pair) for pair in pairs])):.1f}"


def _right(pairs: Sequence[StudiedPair], part: str) -> str:
    cells = [getattr(pair, part) for pair in pairs]
    if any(cell is None for cell in cells):
        return NO_NUMBER
    before, after = (
        float(np.mean([getattr(cell, f"accuracy_{when}") for cell in cells]))
        for when in ("before", "after")
    )
    return f"{100 * before:.1f} to {100 * after:.1f}"


def _average(told: Sequence[Mapping[str, Any]], name: str, times: float, digits: int) -> str:
    seen = [one[name] for one in told if name in one]
    return f"{times * float(np.mean(seen)):.{digits}f}" if seen else NO_NUMBER


def _rate(told: Sequence[Mapping[str, Any]]) -> str:
    return f"{told[0]['learning_rate']:g}" if "learning_rate" in told[0] else NO_NUMBER


def _steps(told: Sequence[Mapping[str, Any]]) -> str:
    seen = sorted({one.get("steps_done", one.get("steps", 0)) for one in told})
    return NO_NUMBER if seen == [0] else " to ".join(map(str, sorted({seen[0], seen[-1]})))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE, help="holds study.yaml, logs")
    parser.add_argument("--out", type=Path, help="the tables alone, into this file")
    chosen = parser.parse_args()
    text = write_results(Results.load(chosen.folder))
    (chosen.out or HERE / "results.md").write_text(text)
    if not chosen.out:
        PAGE.write_text(page(text))
        draw(text, FIGURE)


def page(results: str) -> str:
    """The page of the docs."""
    return fill_page((HERE / "papers.in.md").read_text(), results)


if __name__ == "__main__":
    main()
