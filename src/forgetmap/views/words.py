"""Numbers, ranges and verdicts as short text, the same in every view."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from forgetmap.base.words import clean, percent
from forgetmap.map.result import NET_WORDS, Both, Cell, ForgettingMap, Net
from forgetmap.stats.estimate import BASIS_MEANING, Estimate, Range, interval

HOW_TO_MEASURE_NOISE = (
    "To measure it, add a second run of each model (--noise-before, --noise-after) or repeats. "
    "If a run has no noise, say --deterministic."
)

_HASH = re.compile("[0-9a-f]{32,}")


def points(share: float, digits: int = 1) -> str:
    """A share in percent, without the sign.

    Example:
        >>> points(0.0625)
        '6.2'
    """
    return percent(share, digits).removesuffix(" %")


def short_interval(estimate: Estimate | None) -> str:
    """A share in percent with its interval, as short as can be; a dash where there is none.

    Example:
        >>> from forgetmap.stats.estimate import Estimate
        >>> short_interval(Estimate(value=0.5, low=0.25, high=0.75))
        '50.0 (25.0, 75.0)'
    """
    return "-" if estimate is None else interval(estimate).replace(" to ", ", ")


def interval_or_dash(estimate: Estimate | None) -> str:
    """A share in percent with its interval; a dash where there is none."""
    return "-" if estimate is None else interval(estimate)


def p_value(p: float) -> str:
    """A p-value with three digits.

    Example:
        >>> p_value(0.0421), p_value(0.0001)
        ('.042', '<.001')
    """
    return f"{p:.3f}".lstrip("0") if p >= 0.001 else "<.001"


def setting(value: object) -> str:
    """A setting of a run as words, however it is nested.

    Example:
        >>> setting({"temperature": 0.7, "stop": ["a", "b"], "chat": True, "seed": None})
        'temperature 0.7, stop a + b, chat yes, seed none'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {setting(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " + ".join(map(setting, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)


def setting_by_task(value: object, tasks: Collection[str]) -> str:
    """A setting as words; one that is kept for every task is told once for all that share it.

    Example:
        >>> setting_by_task({"a": 0, "b": 0, "c": 5}, {"a", "b", "c"})
        '0 in 2 tasks, 5 in c'
        >>> setting_by_task({"a": 0, "b": 0}, {"a", "b"}), setting_by_task({"seed": 1}, {"a"})
        ('0', 'seed 1')
    """
    if not (isinstance(value, Mapping) and value and set(value) <= set(tasks)):
        return setting(value)
    sharing: dict[str, list[str]] = {}
    for task, part in value.items():
        text = setting(part)
        sharing.setdefault(text[:12] if _HASH.fullmatch(text) else text, []).append(str(task))
    if len(sharing) == 1 and len(value) == len(tasks):
        return next(iter(sharing))
    return ", ".join(
        f"{text} in {names[0] if len(names) == 1 else f'{len(names)} tasks'}"
        for text, names in sharing.items()
    )


def verdict_mark(word: str) -> str:
    """A verdict in a table, where undecided is a question mark."""
    return "?" if word == "undecided" else word


# --- ranges --------------------------------------------------------------------------------------


def is_range(found: Range) -> bool:
    """Whether the two ends differ in what is shown of them."""
    return points(found.low_end) != points(found.high_end)


def ends(found: Range) -> str:
    """The two ends in percent, or the one number that they are.

    Example:
        >>> ends(Range(low_end=0.03, high_end=0.07, low=0.02, high=0.08, of_known=None,
        ...            basis="repeats"))
        '3.0–7.0'
    """
    if not is_range(found):
        return points(found.value)
    return f"{points(found.low_end)}–{points(found.high_end)}"


def short_range(found: Range) -> str:
    """The two ends in percent with the interval, as short as can be."""
    return f"{ends(found)} ({points(found.low)}, {points(found.high)})"


def long_range(found: Range) -> str:
    """The two ends in percent with the interval, where there is room for words."""
    return f"{ends(found)} ({points(found.low)} to {points(found.high)})"


def share_lost(found: Range) -> str:
    """How much was lost or gained, in the words that its basis allows, without the interval.

    Example:
        >>> wide = Range(low_end=0.03, high_end=0.07, low=0.02, high=0.08, of_known=None,
        ...              basis="repeats")
        >>> share_lost(wide)
        'at least 3.0 %, at most 7.0 %'
        >>> share_lost(wide.model_copy(update={"basis": "single_run"}))
        'between 3.0 % and 7.0 %'
        >>> share_lost(wide.model_copy(update={"basis": "probabilities"}))
        '7.0 %'
    """
    if found.exact or not is_range(found):
        return percent(found.value)
    if found.basis == "repeats":
        return f"at least {percent(found.low_end)}, at most {percent(found.high_end)}"
    return f"between {percent(found.low_end)} and {percent(found.high_end)}"


def guessing(found: Range) -> str | None:
    """How much of an exact loss may be guesses that were reshuffled; None where nothing is."""
    if not (found.exact and is_range(found)):
        return None
    return f"up to {percent(found.high_end - found.low_end)} may be reshuffled guessing"


def of_known(found: Range) -> str | None:
    """A loss as a share of what was known; None where that says nothing."""
    if found.of_known is None or (not found.exact and not round(found.of_known.value, 3)):
        return None
    bound = "at least " if found.basis == "repeats" else "up to "
    told = f"{percent(found.of_known.value)} of what it knew"
    return told if found.exact or not is_range(found) else bound + told


# --- sentences about a map -----------------------------------------------------------------------


def headline(result: ForgettingMap) -> str:
    """What was lost and gained, of the old skills where there are new ones.

    Example:
        >>> import forgetmap
        >>> headline(forgetmap.demo()).startswith("Old skills: lost 10.4 % (2.7 to 11.1) of 3,2")
        True
    """
    cell = result.old
    said = (
        f"{share_lost(cell.lost)} ({points(cell.lost.low)} to {points(cell.lost.high)}) "
        f"of {cell.n:,} items"
    )
    doubt, known = guessing(cell.lost), of_known(cell.lost)
    if doubt:
        said += f", of which {doubt}"
    if known:
        said += f"; that is {known}" if doubt else f", {known}"
    said += f"; gained {share_lost(cell.gained)}."
    if result.new is None or not is_split(result):
        return f"Lost {said}"
    return f"Old skills: lost {said} {_new_skill(result, result.new)}"


def finding(result: ForgettingMap) -> str:
    """What was lost and where most of it, as short as a title; `doubt` has the rest.

    Example:
        >>> import forgetmap
        >>> finding(forgetmap.demo())
        'Old skills: lost 10.4 %, most in time zones (19.5 %). New skill: 33 → 100 %.'
    """
    said = f"lost {most_lost(result.old.lost)}"
    if worst := worst_group(result):
        name, cell = worst
        said += f", most in {name} ({most_lost(cell.lost)})"
    if result.new is None or not is_split(result):
        return f"{said[0].upper()}{said[1:]}."
    return f"Old skills: {said}. {_new_skill(result, result.new).replace('->', '→')}"


def most_lost(found: Range) -> str:
    """One number, in the words that its basis allows."""
    if found.exact or not is_range(found):
        return percent(found.value)
    return f"{'at least' if found.basis == 'repeats' else 'up to'} {percent(found.value)}"


def doubt(result: ForgettingMap) -> str:
    """How sure the finding is: its interval, what guessing may explain, where it comes from."""
    lost = result.old.lost
    parts = [f"95 % interval {points(lost.low)} to {percent(lost.high)} of {result.old.n:,} items"]
    if not lost.exact and is_range(lost):
        parts.append(share_lost(lost))
    if guessed := guessing(lost):
        parts.append(guessed)
    return f"{'; '.join(parts)}. {basis(result)}"


def worst_group(result: ForgettingMap) -> tuple[str, Cell] | None:
    """The old task that surely lost the most, else such a category; None where none stands out."""
    marks = category_marks(result)
    tasks = {name: result.tasks[name] for name in old_tasks(result)}
    categories = {name: cell for name, cell in result.categories.items() if not marks[name]}
    for cells in (tasks, categories):
        for name, cell in by_loss(cells):
            stands_out = points(cell.lost.value) != points(result.old.lost.value)
            if len(cells) > 1 and cell.verdict.forgetting == "lost" and stands_out:
                return spoken_name(name, cells), cell
    return None


def spoken_name(name: str, names: Iterable[str]) -> str:
    """A name without the first word that all of them share, as words.

    Example:
        >>> spoken_name("atlas_time_zones", ["atlas_time_zones", "atlas_capitals"])
        'time zones'
    """
    shared = {each.partition("_")[0] for each in names}
    own = name.partition("_")[2] if len(shared) == 1 else ""
    return clean((own or name).replace("_", " "), 40)


def _new_skill(result: ForgettingMap, new: Cell) -> str:
    skill = "skill" if len(result.settings.new) == 1 else "skills"
    before, after = points(new.accuracy_before, 0), percent(new.accuracy_after, 0)
    return f"New {skill}: {before} -> {after}."


def verdict(result: ForgettingMap) -> str:
    """The verdict on forgetting and the one on accuracy, in one sentence each."""
    cell, margin = result.old, percent(result.settings.margin)
    missing = would_decide(cell)
    said = {
        "lost": f"Verdict: lost, more than the margin of {margin}.",
        "held": f"Verdict: held, less than the margin of {margin} was lost.",
        "undecided": f"Verdict: can't tell if more than the margin of {margin} was lost"
        + (f": {missing}." if missing else "."),
    }[cell.verdict.forgetting]
    before, after = points(cell.accuracy_before), percent(cell.accuracy_after)
    return f"{said} Accuracy {before} -> {after}: {_NET[cell.verdict.net]}."


_NET: dict[Net, str] = {
    **NET_WORDS,
    "equal": "equal within the margin",
    "undecided": "can't tell if better or worse",
}


def would_decide(cell: Cell) -> str | None:
    """What would decide an open verdict, as words that stand alone."""
    return cell.verdict.would_decide


def basis(result: ForgettingMap) -> str:
    """Where the numbers come from, what they lack, and how to measure noise where nobody did."""
    found = result.old.lost.basis
    tasks = {name: result.tasks[name] for name in old_tasks(result)}
    single = sum(cell.lost.basis == "single_run" for cell in tasks.values())
    said = [f"Measured {BASIS_MEANING[found]}."]
    if single and found == "mixed":
        said.append(f"In {single:,} of {len(tasks):,} tasks the noise was not measured.")
    if single:
        said.append(HOW_TO_MEASURE_NOISE)
    if blind := sum(map(_is_blind_to_guessing, tasks.values())):
        said.append(
            f"Reshuffled guessing is not told apart in {blind:,} of {len(tasks):,} tasks: that "
            "takes the probabilities of three or more options."
        )
    return " ".join(said)


def _is_blind_to_guessing(cell: Cell) -> bool:
    """Option probabilities without a control: the two ends are the same although items moved."""
    both = (cell.lost, cell.gained)
    return cell.lost.basis == "probabilities" and all(
        found.high_end > 0 and found.high_end - found.low_end < 1e-12 for found in both
    )


def populations(cell: Cell) -> list[str]:
    """For whom the intervals are meant: these tasks, and tasks like these."""
    named: list[tuple[str, Both | Cell]] = [("These tasks", cell)]
    if cell.like_these is not None:
        named.append(("Tasks like these", cell.like_these))
    return [
        f"{who}: lost {points(both.lost.low)} to {percent(both.lost.high)}, "
        f"gained {points(both.gained.low)} to {percent(both.gained.high)}."
        for who, both in named
    ]


# --- old and new ---------------------------------------------------------------------------------


def old_tasks(result: ForgettingMap) -> list[str]:
    """The tasks that the training was not meant to teach; all, where nothing else is there."""
    old = [name for name in result.tasks if name not in result.settings.new]
    return old or list(result.tasks)


def is_split(result: ForgettingMap) -> bool:
    """Whether there are new tasks and old ones, so that the headline speaks of the old."""
    return result.new is not None and result.new.n < result.total.n


def mark(result: ForgettingMap, tasks: Iterable[str]) -> str:
    """What to write behind the name of a group of tasks: whether it is new."""
    members = result.tasks.keys() & set(tasks)
    new = members & set(result.settings.new)
    return "" if not new else " (new)" if new == members else " (partly new)"


def marked_tasks(result: ForgettingMap) -> dict[str, str]:
    """The name to show for every task."""
    return {name: f"{clean(name, 60)}{mark(result, [name])}" for name in result.tasks}


def marked_categories(result: ForgettingMap) -> dict[str, str]:
    """The name to show for every category."""
    return {name: f"{clean(name, 60)}{mark}" for name, mark in category_marks(result).items()}


def category_marks(result: ForgettingMap) -> dict[str, str]:
    """What to write behind the name of every category."""
    groups: dict[str, list[str]] = {name: [] for name in result.categories}
    for task, category in result.task_categories.items():
        if category in groups:
            groups[category].append(task)
    return {name: mark(result, tasks) for name, tasks in groups.items()}


def by_loss(cells: Mapping[str, Cell]) -> list[tuple[str, Cell]]:
    """Cells by what they lost, the most first."""
    return sorted(cells.items(), key=lambda pair: (-pair[1].lost.value, -pair[1].lost.high_end))


def totals(result: ForgettingMap) -> dict[str, Cell]:
    """The cells that sum up the map, by what to call them."""
    rows = {"all items": result.total}
    if result.new is not None and is_split(result):
        rows = {"old items": result.old, "new items": result.new, **rows}
    if result.categories:
        rows["mean of categories"] = result.macro
    return rows


def hinges(cell: Cell) -> bool:
    """Leaving one task out would halve the loss, or change it by more than that."""
    return cell.influence is not None and abs(cell.influence.change) > cell.lost.value / 2
