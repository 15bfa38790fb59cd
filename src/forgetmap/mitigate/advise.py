"""What to try next, and why: rules on a map, on drift by capability, on a lineage.

Each rule is a small function that looks at the evidence and speaks or stays silent. Rules look at
the old skills. Only what is surely lost counts as lost: what was never known cannot be forgotten,
and noise is no loss. Rules come in turns: while two runs are not comparable, or the answer is not
clear, none says how to train; while most losses are a matter of form, none says that knowledge
should be replayed. So no two pieces of advice contradict each other. None of it is a promise.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from forgetmap.base.model import Frozen
from forgetmap.base.version import __version__
from forgetmap.base.words import clean, percent
from forgetmap.capabilities.drift_result import Drift, GroupDrift
from forgetmap.lineage.result import Lineage
from forgetmap.map.cause_checks import CHECKED, FORM, FORM_CHECK
from forgetmap.map.result import NET_WORDS, Cell, ForgettingMap
from forgetmap.map.verdicts import is_wide
from forgetmap.stats.estimate import Basis, Estimate, interval, range_words

Turn = Literal["trust", "form", "train", "watch"]
TURNS: tuple[Turn, ...] = ("trust", "form", "train", "watch")
"""Can the numbers be trusted; is it form rather than knowledge; how to train; what to watch."""

_MOST = 0.5
_MANY, _FEW = 0.1, 5
"""A cause is worth an advice of its own from this share of the losses and so many items on."""
_PAIRED = 0.9
_SMALL = 0.05
"""A sure loss up to this is small; what counts as small is a choice, not a result."""
_CONCENTRATED = 1.5
"""A group is hit hard if it lost so many times its share of the items."""
_REPEATS = 5
THEORY = "theory lab, two-mode picture: "


class Advice(Frozen):
    """One thing to try."""

    rule: str
    turn: Turn
    title: str
    why: str
    """With the numbers of this map."""
    what_to_do: str
    expected: str
    rests_on: str


class AdviceList(Frozen):
    """All advice on a map, the most pressing first: the public JSON contract."""

    schema_version: int = 1
    forgetmap_version: str = __version__
    before: str
    after: str
    headline: str
    advice: list[Advice]

    def to_json(self) -> str:
        """The list as JSON."""
        return self.model_dump_json(indent=2)


class CategoryLoss(NamedTuple):
    """A category of old tasks, or one task."""

    name: str
    category: str
    """What `forgetmap replay --category` calls it."""
    cell: Cell
    lost_share: float
    """Of all that is surely lost."""
    item_share: float


@dataclass(frozen=True)
class Evidence:
    """What is known; the properties are what several rules ask."""

    map: ForgettingMap
    drift: Drift | None = None
    lineage: Lineage | None = None
    folder: str = "MAP"
    """What to call the saved comparison in a command."""

    @property
    def old(self) -> Cell:
        """All items of the old skills."""
        return self.map.old

    @cached_property
    def groups(self) -> list[CategoryLoss]:
        """Categories, or tasks where there are none, those that lost most first.

        A category that holds new tasks too is told by its old tasks.
        """
        if not self.map.categories:
            return self._losses(self._old_tasks)
        of = self.map.task_categories
        mixed = {of.get(task) for task in self.map.settings.new}
        whole = {name: cell for name, cell in self.map.categories.items() if name not in mixed}
        parts = {name: cell for name, cell in self._old_tasks.items() if of.get(name) in mixed}
        return self._losses({**whole, **parts})

    @property
    def _old_tasks(self) -> dict[str, Cell]:
        new = self.map.settings.new
        return {name: cell for name, cell in self.map.tasks.items() if name not in new}

    def _losses(self, cells: Mapping[str, Cell]) -> list[CategoryLoss]:
        lost = {name: cell.lost.low_end * cell.n for name, cell in cells.items()}
        everything, items = sum(lost.values()), sum(cell.n for cell in cells.values())
        categories = self.map.task_categories
        losses = [
            CategoryLoss(
                name,
                name if name in self.map.categories else categories.get(name, name),
                cell,
                lost[name] / everything if everything else 0.0,
                cell.n / items,
            )
            for name, cell in cells.items()
        ]
        return sorted(losses, key=lambda group: (-group.lost_share, group.name))

    @property
    def comparable(self) -> bool:
        """The runs differ in nothing but the weights, as far as the logs tell."""
        return not self.map.confounds

    @property
    def covered(self) -> bool:
        """Most items of the larger log were compared."""
        coverage = self.map.coverage
        return coverage.matched >= _PAIRED * max(coverage.items_before, coverage.items_after)

    @cached_property
    def hit(self) -> list[CategoryLoss]:
        """Groups that surely lost more than the margin."""
        return [group for group in self.groups if group.cell.verdict.forgetting == "lost"]

    @property
    def lost(self) -> bool:
        """A loss is beyond doubt and beyond the margin, in all old items or in a group."""
        return self.old.verdict.forgetting == "lost" or bool(self.hit)

    @property
    def held(self) -> bool:
        """Less than the margin was lost, beyond doubt."""
        return not self.lost and self.old.verdict.forgetting == "held"

    @property
    def undecided(self) -> bool:
        """The runs are comparable, and show neither a clear loss nor that there is none."""
        return self.comparable and not self.lost and not self.held

    @property
    def by_form(self) -> float | None:
        """Share of the losses that are a matter of form; None where causes are not known."""
        causes = self.old.causes
        if not causes or not (lost := sum(causes.values())):
            return None
        return sum(causes.get(name, 0) for name in FORM) / lost

    @property
    def mend(self) -> bool:
        """Time to speak of training: comparable runs, a clear loss, not mostly of form."""
        return self.comparable and self.lost and (self.by_form or 0.0) < _MOST

    @property
    def hinge(self) -> str | None:
        """The task without which the loss would be half as much, or less; None if nothing is sure.

        It must be a sure loss that hangs on it: noise hangs on some task, too.
        """
        lost, influence = self.old.lost, self.old.influence
        if influence is None or lost.low <= 0 or abs(influence.change) <= lost.value / 2:
            return None
        return influence.task

    @cached_property
    def concentrated(self) -> list[CategoryLoss]:
        """Groups that surely lost, and much more than their share of the items.

        Where only groups surely lost, and not all old items together, it is these.
        """
        everywhere = self.old.verdict.forgetting == "lost"
        groups = [
            loss
            for loss in self.hit
            if not everywhere or loss.lost_share >= _CONCENTRATED * loss.item_share
        ]
        return groups or [
            task
            for task in self._losses(self._old_tasks)
            if task.name == self.hinge and task.cell.verdict.forgetting == "lost"
        ]

    @property
    def spread(self) -> bool:
        """No group and no task stands out."""
        return not self.concentrated and self.hinge is None

    @property
    def behaviour(self) -> list[GroupDrift]:
        """Groups of default behaviour and protocol that surely drifted."""
        return self._drifted({"WILL", "HOW"})

    @property
    def ability(self) -> list[GroupDrift]:
        """Groups of ability that surely got worse."""
        return [group for group in self._drifted({"CAN"}) if group.verdict == "worse"]

    def _drifted(self, names: set[str]) -> list[GroupDrift]:
        groups = self.drift.groups if self.drift else []
        steady = ("equivalent", "undecided", "better")
        chosen = [one for one in groups if one.name in names and one.verdict not in steady]
        return [one for one in chosen if _is_clear(one.judged)]


Rule = Callable[[Evidence], Advice | None]


def advise(evidence: Evidence) -> AdviceList:
    """Say what to try next, the most pressing first.

    Example:
        >>> import forgetmap
        >>> advised = advise(Evidence(forgetmap.demo()))
        >>> [one.rule for one in advised.advice][:2]
        ['causes', 'replay']
    """
    spoken = [advice for rule in RULES if (advice := rule(evidence))]
    return AdviceList(
        before=evidence.map.before.name,
        after=evidence.map.after.name,
        headline=evidence.map.headline(),
        advice=sorted(spoken, key=lambda advice: TURNS.index(advice.turn)),
    )


# --- can the numbers be trusted -------------------------------------------------------------------


def confounds(seen: Evidence) -> Advice | None:
    """The runs differ in more than the weights."""
    if seen.comparable:
        return None
    listed = "; ".join(
        f"{clean(one.setting, 60)}: {clean(one.before, 30)} / {clean(one.after, 30)}"
        for one in seen.map.confounds[:3]
    )
    more = f" and {len(seen.map.confounds) - 3} more" if len(seen.map.confounds) > 3 else ""
    return Advice(
        rule="confounds",
        turn="trust",
        title="Evaluate both models under the same settings",
        why=f"{len(seen.map.confounds)} settings differ ({listed}{more})",
        what_to_do="forgetmap eval --before BEFORE --after AFTER --suite SUITE --out FOLDER, or "
        "run your harness again with one set of settings",
        expected="a map in which only the weights differ; the numbers may move either way",
        rests_on="a changed prompt, template or few-shot count can flip items without any training",
    )


def coverage(seen: Evidence) -> Advice | None:
    """Many items were not compared."""
    if seen.covered:
        return None
    covered = seen.map.coverage
    whole = max(covered.items_before, covered.items_after)
    return Advice(
        rule="coverage",
        turn="trust",
        title="Pair the rest of the items",
        why=f"{covered.matched:,} of {whole:,} items were compared; {covered.only_before:,} are "
        f"only before, {covered.only_after:,} only after, {covered.unscored:,} have no score",
        what_to_do="forgetmap show LOG on both logs; if only the wording of prompts changed, "
        "forgetmap compare BEFORE AFTER --identity index",
        expected="what is missing may hold more or fewer losses than what was seen",
        rests_on="items that drop out seldom drop out at random",
    )


_MEASURES: dict[Basis, str] = {
    "single_run": "ask both models again and name the second logs: forgetmap compare BEFORE AFTER "
    "--noise-before LOG --noise-after LOG; or draw several answers: forgetmap eval --before BEFORE "
    f"--after AFTER --suite SUITE --temperature 0.7 --repeats {_REPEATS}",
    "noise_run": "draw several answers: forgetmap eval --before BEFORE --after AFTER --suite SUITE "
    f"--temperature 0.7 --repeats {_REPEATS}; or log the probabilities of the options",
    "repeats": f"more repeats of both models (forgetmap eval --repeats {2 * _REPEATS}), or a log "
    "with the probabilities of the options",
    "mixed": "repeats of both models, or a log with the probabilities of the options, for the "
    "tasks that lack them; forgetmap show LOG says what a log has",
}
_KNOWN_BETTER = (
    "ask what the model before knows: tasks on which it is far above chance, or items with more "
    "options"
)


def measure(seen: Evidence) -> Advice | None:
    """The loss lies in a range that is too wide to tell."""
    cell, margin = seen.old, seen.map.settings.margin
    if not seen.undecided or noise(seen) or not is_wide(cell.lost, margin):
        return None
    hides = (
        f"up to {percent(cell.lost.high_end - cell.lost.low_end)} can be reshuffled guessing, and "
        f"{percent(cell.accuracy_before)} were right before"
        if cell.lost.exact
        else f"{percent(cell.raw.lost.value)} flipped, and noise flips items, too"
    )
    return Advice(
        rule="measure",
        turn="trust",
        title="Measure before you mend: can't tell yet",
        why=f"lost {range_words(cell.lost)} of {cell.n:,} items, your margin is {percent(margin)}; "
        f"{hides}{_deciding(cell)}",
        what_to_do=_MEASURES.get(cell.lost.basis, _KNOWN_BETTER),
        expected="a narrower range; the loss may come out anywhere in it",
        rests_on="what was never known cannot be forgotten, and what flips by noise is not lost",
    )


def more_items(seen: Evidence) -> Advice | None:
    """The range is narrow enough, and there are too few items to tell."""
    cell, margin = seen.old, seen.map.settings.margin
    if not seen.undecided or noise(seen) or is_wide(cell.lost, margin):
        return None
    return Advice(
        rule="more_items",
        turn="trust",
        title="Evaluate on more items: can't tell yet",
        why=f"lost {range_words(cell.lost)} of {cell.n:,} items, your margin is {percent(margin)}"
        f"{_deciding(cell)}",
        what_to_do="more items of the same kind, or another --margin if you can do with it",
        expected="an interval narrow enough to decide, whichever way",
        rests_on="an interval shrinks with the root of the items",
    )


def _deciding(cell: Cell) -> str:
    missing = cell.verdict.would_decide
    return f". What would decide: {missing}" if missing else ""


def noise(seen: Evidence) -> Advice | None:
    """What flipped is within the models' own noise."""
    cell = seen.old
    lost = sum((cell.causes or {}).values())
    noisy = (cell.causes or {}).get("noise", 0)
    within = cell.noise_floor is not None and cell.raw.lost.value <= cell.noise_floor
    if not seen.undecided or not (within or noisy > _MOST * lost):
        return None
    why = (
        f"{percent(cell.raw.lost.value)} flipped, and the models' own noise flips "
        f"{percent(cell.noise_floor)}"
        if within and cell.noise_floor is not None
        else f"on {noisy:,} of {lost:,} lost items the drop lies within the models' own spread"
    )
    return Advice(
        rule="noise",
        turn="trust",
        title="Nothing to mend in training so far",
        why=why,
        what_to_do=f"repeat the evaluation (--repeats {_REPEATS} or more) before you change the "
        "training, or answer by majority where you serve the model",
        expected="if there is a loss behind the noise, repeats will bring it out",
        rests_on="items on which one model's own runs disagree flip without any training",
    )


def causes(seen: Evidence) -> Advice | None:
    """Something was lost and nobody has looked why."""
    if not seen.lost or seen.old.causes is not None:
        return None
    return Advice(
        rule="causes",
        turn="trust",
        title="Ask why the items were lost",
        why=f"{_told_loss(seen)}; the texts were not read",
        what_to_do="forgetmap compare BEFORE AFTER --causes --save FOLDER",
        expected="format, truncation and refusals are told apart from wrong answers; they need "
        "other cures",
        rests_on="the rules of causes, which read the answers",
    )


def _told_loss(seen: Evidence) -> str:
    """The sure loss: of all old items, or of the group that lost most."""
    if seen.old.verdict.forgetting == "lost":
        return f"lost {range_words(seen.old.lost)} of {seen.old.n:,} items"
    worst = seen.hit[0]
    return f"{clean(worst.name, 40)} lost {range_words(worst.cell.lost)}"


# --- form rather than knowledge -------------------------------------------------------------------

_CURES = {
    "ran_on": "check the stop token and the chat template of the tuned model; in training, let the "
    "loss see the token that ends an answer",
    "wrapped": "read the answers more leniently (--metric TASK=NAME of a flexible filter), or ask "
    "for the bare answer in the prompt; in training, keep some examples in the old form",
    "prose": "keep examples with calls or JSON in the training data, or constrain the output when "
    "you serve the model",
    "call": "add examples that need no tool, answered in words, to the training data",
    "list": "ask for one answer in the prompt; in training, keep some examples with a single value",
    "timeout": "look at what runs too long (forgetmap serve FOLDER), and raise the time limit if "
    "the machine was busy",
    "unparsed": "look at the answers (forgetmap serve FOLDER), then mend the extraction or ask for "
    "the form in the prompt",
    "truncated": "raise the limit on new tokens and evaluate again (forgetmap eval --max-tokens N)",
    "degenerate": "check stop tokens, chat template and sampling of the tuned model; train fewer "
    "steps if it stays",
    "refused": "look at what is refused (forgetmap drift), and add answered examples of that kind "
    "to the training data",
    "language": "say the language in the prompt, or mix in training examples in the lost language",
}


def form(seen: Evidence) -> Advice | None:
    """Most losses are a matter of form."""
    share = seen.by_form
    if share is None or share < _MOST or not (seen.lost and seen.comparable):
        return None
    counts = {name: count for name, count in (seen.old.causes or {}).items() if name in FORM}
    worst = max(counts, key=lambda name: counts[name])
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    without = (seen.old.without or {}).get(worst)
    left = f"; without {worst} {percent(without.value)} flipped" if without else ""
    return Advice(
        rule="form",
        turn="form",
        title=f"Mend the form first: {worst}",
        why=f"{percent(share)} of the losses are not wrong answers ({listed}){left}",
        what_to_do=_CURES[worst],
        expected=f"up to {counts[worst]:,} items come back, if their answers are right underneath",
        rests_on="the cause of each item by readable rules; in "
        f"{percent(FORM_CHECK.right / FORM_CHECK.found)} of {CHECKED:,} labelled answers they "
        "told form from another answer rightly",
    )


# --- how to train ---------------------------------------------------------------------------------


def intruded(seen: Evidence) -> Advice | None:
    """The new task answers old questions."""
    causes = seen.old.causes or {}
    lost, count = sum(causes.values()), causes.get("intruded", 0)
    if not (seen.lost and seen.comparable) or count < max(_FEW, _MANY * lost):
        return None
    return Advice(
        rule="intruded",
        turn="train",
        title="Teach the model when the new task is not asked",
        why=f"{count:,} of {lost:,} lost items are answered with an answer of the new task",
        what_to_do="mix old questions with their answers into the training data (forgetmap "
        "replay), word the new task in several ways, and train fewer steps",
        expected="old questions get answers of their own again; whether these are right, the next "
        "map tells",
        rests_on="the answer is one of those that the training taught, and not the right one",
    )


def replay(seen: Evidence) -> Advice | None:
    """The loss sits in a few groups."""
    if not seen.mend or not seen.concentrated:
        return None
    listed = "; ".join(
        f"{clean(group.name, 40)} lost {range_words(group.cell.lost)}, {percent(group.lost_share)} "
        f"of what is surely lost, in {percent(group.item_share)} of the items"
        for group in seen.concentrated[:3]
    )
    categories = dict.fromkeys(clean(group.category, 200) for group in seen.concentrated[:3])
    named = " ".join(f"--category {shlex.quote(name)}" for name in categories)
    return Advice(
        rule="replay",
        turn="train",
        title="Replay what was lost",
        why=f"the loss is concentrated: {listed}",
        what_to_do=f"forgetmap replay {shlex.quote(seen.folder)} --model BEFORE --log LOG_BEFORE "
        f"--budget 1000 {named}, then train again with its mixture.yaml",
        expected="less lost in these groups, at some cost in what is newly learned; the "
        "share of replay sets how much. In our study a model of 270 M lost two fifths less of "
        "the group and as much elsewhere; with one of 135 M it changed nothing, as the pool had "
        "little of what was lost",
        rests_on=THEORY + "supervised training to the end leaves the replay share as old mass",
    )


def merge(seen: Evidence) -> Advice | None:
    """A small loss, spread over everything."""
    if not seen.mend or not seen.spread or seen.old.lost.low_end > _SMALL:
        return None
    return Advice(
        rule="merge",
        turn="train",
        title="Try a merge with the model before",
        why=f"what is surely lost is little and spread: lost {range_words(seen.old.lost)}, in no "
        "group much more than its share",
        what_to_do="forgetmap merge BEFORE AFTER --method linear --sweep 0:1:0.1 --suite SUITE",
        expected="some weights between the two may keep most of the gain and lose less; the sweep "
        "shows it, or shows that none does. In our study (two small models) the half of each lost "
        "three tenths less and kept the new task; after a low rate up to half less, at a price if "
        "the new task was not yet learned",
        rests_on="no training is needed; whether it helps is measured, not known beforehand",
    )


def anchor(seen: Evidence) -> Advice | None:
    """A large loss, spread over everything."""
    if not seen.mend or not seen.spread or seen.old.lost.low_end <= _SMALL:
        return None
    return Advice(
        rule="anchor",
        turn="train",
        title="Train more gently: lower learning rate, fewer steps, a KL anchor",
        why=f"the loss is large and spread: lost {range_words(seen.old.lost)}, in no group much "
        "more than its share",
        what_to_do="train again at a third of the learning rate, or with the anchored recipe of "
        "forgetmap.mitigate, and watch it with ForgettingCallback; forgetmap theory forecast says "
        "when to stop",
        expected="less lost and usually slower learning; compare both maps. In our study "
        "(two small models) an anchor on questions like the old ones lost less than half, one on "
        "text of the model's own a third to nearly half less, both with the new task learned; a "
        "tenth of the rate lost a third to over half less, and one of the two learned less; both "
        "together, on questions, three quarters to nine tenths less",
        rests_on=THEORY + "fitting new data alone pushes the old behaviour out in the long run; a "
        "reference that keeps old mass does not",
    )


def stage(seen: Evidence) -> Advice | None:
    """One stage of the pipeline lost most."""
    if not seen.mend or seen.lineage is None:
        return None
    stages = [stage for group in seen.lineage.worst_stages.values() for stage in group]
    clear = [stage for stage in stages if stage.clear and stage.lost.low > 0]
    worst = max(clear, key=lambda stage: stage.flipped, default=None)
    if worst is None:
        return None
    flips = percent(worst.flipped / worst.flipped_on_path) if worst.flipped_on_path else "none"
    return Advice(
        rule="stage",
        turn="train",
        title=f"Act at the stage {clean(worst.before, 40)} -> {clean(worst.after, 40)}",
        why=f"it lost most of {clean(worst.group, 40)}: {range_words(worst.lost)}, clearly above "
        f"all other stages, with {flips} of the path's flips to wrong",
        what_to_do=f"change this stage's data or settings, or branch again from "
        f"{clean(worst.before, 40)}; later stages need not be touched for this loss",
        expected="the loss of this stage may be avoided; losses of other stages stay",
        rests_on="the lineage's interval for this stage lies above those of all others",
    )


def behaviour(seen: Evidence) -> Advice | None:
    """Default behaviour drifted while ability did not."""
    if not seen.comparable or not seen.behaviour or seen.ability:
        return None
    return Advice(
        rule="behaviour",
        turn="train",
        title="Anchor the behaviour, not the knowledge",
        why=f"{_told(seen.behaviour)}, while no loss of ability (CAN) is certain",
        what_to_do="mix in prompts of everyday use with answers of the model before, or preference "
        "pairs that favour them, or a KL anchor on such prompts",
        expected="the old manner comes back on prompts like these; what was meant to change "
        "should be left out of them",
        rests_on=THEORY + "a target that keeps old mass keeps the old behaviour",
    )


def ability(seen: Evidence) -> Advice | None:
    """Ability fell where the map saw nothing."""
    if not seen.comparable or not seen.ability or seen.lost:
        return None
    return Advice(
        rule="ability",
        turn="train",
        title="Look at the abilities that the map does not cover",
        why=f"{_told(seen.ability)}, but the map shows no certain loss",
        what_to_do="evaluate on tasks of these capabilities and map them: forgetmap drift "
        "BEFORE AFTER --report drift.html names the metrics and the items",
        expected="a map that shows the loss item by item, and then what to replay",
        rests_on="the two were measured on different items",
    )


def _is_clear(change: Estimate | None) -> bool:
    """The interval leaves out zero; files of earlier versions have verdicts without that."""
    return change is not None and not change.low <= 0 <= change.high


def _told(groups: list[GroupDrift]) -> str:
    return "; ".join(
        f"{one.name} {one.verdict}" + (f" {interval(one.judged, ' %')}" if one.judged else "")
        for one in groups
    )


# --- what to watch --------------------------------------------------------------------------------


def one_task(seen: Evidence) -> Advice | None:
    """The result hangs on one task."""
    cell = seen.old
    if seen.hinge is None or cell.influence is None:
        return None
    task = clean(seen.hinge, 60)
    return Advice(
        rule="one_task",
        turn="watch",
        title=f"Look at {task} by itself",
        why=f"without it, what is lost would change by {percent(abs(cell.influence.change))} from "
        f"{percent(cell.lost.value)}",
        what_to_do=f"read its items: forgetmap serve {shlex.quote(seen.folder)}",
        expected="either a real loss in one place, or a task whose scoring or options changed",
        rests_on="one task left out at a time",
    )


def hidden(seen: Evidence) -> Advice | None:
    """The average hides the loss."""
    cell = seen.old
    if not (seen.comparable and seen.lost) or cell.verdict.net not in ("better", "equal"):
        return None
    return Advice(
        rule="hidden",
        turn="watch",
        title="Gate on what is lost, not on the average",
        why=f"accuracy {percent(cell.accuracy_before)} -> {percent(cell.accuracy_after)} (net "
        f"{NET_WORDS[cell.verdict.net]}), and yet: {_told_loss(seen)}",
        what_to_do="forgetmap compare BEFORE AFTER --gate max-forgetting="
        f"{seen.map.settings.margin:g}",
        expected="the next run that trades old items for new ones is seen in CI",
        rests_on="gains on some items do not bring back others",
    )


def near_ties(seen: Evidence) -> Advice | None:
    """Accuracy fell although hardly anything was lost."""
    cell = seen.old
    if not (seen.comparable and seen.held) or cell.verdict.net != "worse":
        return None
    return Advice(
        rule="near_ties",
        turn="watch",
        title="Look at the items that flipped",
        why=f"accuracy fell ({interval(cell.change, ' %')}), but only {range_words(cell.lost)} is "
        f"lost, surely below your margin of {percent(seen.map.settings.margin)}",
        what_to_do=f"read the flipped items: forgetmap serve {shlex.quote(seen.folder)}",
        expected="mostly items on which two options were close; a small change tips them over",
        rests_on="an answer flips at a tie, however little its probability moved",
    )


def writing(seen: Evidence) -> Advice | None:
    """Only options were asked, and a model that chooses well may write no more."""
    cell = seen.old
    if not seen.comparable or seen.drift is not None or sum((cell.k or {}).values()) < cell.n:
        return None
    return Advice(
        rule="writing",
        turn="watch",
        title="Look at what it writes, too",
        why=f"all {cell.n:,} items are a choice among options, which asks for no text",
        what_to_do="forgetmap eval --before MODEL_BEFORE --after MODEL_AFTER --suite open-suite "
        "--out DIR --json drift.json; then this command again with --drift drift.json",
        expected="often another picture: in our study plain training on short answers lost one "
        "option in ten or five, and answers to open questions shrank from over a hundred words to "
        "four and fewer; what keeps the one need not keep the other",
        rests_on="options are scored, not written",
    )


def ship(seen: Evidence) -> Advice | None:
    """Nothing that matters was lost."""
    cell = seen.old
    sound = seen.comparable and seen.covered and seen.held and cell.verdict.net != "worse"
    if not sound or seen.behaviour or seen.ability:
        return None
    return Advice(
        rule="ship",
        turn="watch",
        title="Keep this model, and freeze it as the next baseline",
        why=f"held: lost {range_words(cell.lost)}, surely below your margin of "
        f"{percent(seen.map.settings.margin)}; net {NET_WORDS[cell.verdict.net]}",
        what_to_do="forgetmap baseline save NAME LOG_AFTER",
        expected="the next model is compared with this one; what these items do not ask is not "
        "covered",
        rests_on="the interval of this map, on these items",
    )


RULES: tuple[Rule, ...] = (
    *(confounds, coverage, measure, more_items, noise, causes),
    form,
    intruded,
    *(replay, merge, anchor, stage, behaviour, ability),
    *(one_task, hidden, near_ties, writing, ship),
)
"""In the order in which they are told, within their turn."""
