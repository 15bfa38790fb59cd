"""A replay set for what was lost: made up by the model before, or drawn from a pool.

What to replay goes by the old items that were lost, one by one. That others of their category were
gained changes nothing. Never the evaluation items themselves: every example is held against all
items of the evaluation, not only the lost ones, and what meets one of them is refused and told.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson
import yaml

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, replacing
from forgetmap.base.model import Frozen
from forgetmap.base.version import __version__
from forgetmap.base.words import percent, some
from forgetmap.evaluate.models import Model, Running, open_model
from forgetmap.evaluate.store import Store
from forgetmap.map.items import Filter
from forgetmap.map.result import FORGETTING_WORDS
from forgetmap.map.saved import MAP, SavedComparison, open_saved
from forgetmap.map.trained import SUFFIX
from forgetmap.mitigate.replay.leaks import EvaluationItem, LeakCheck, plain_words
from forgetmap.mitigate.replay.pool import Example, Pool, Row, nearest, read_pool
from forgetmap.mitigate.replay.synthesis import Making, Topic, synthesise
from forgetmap.readers.framework import ReadOptions, json_lines
from forgetmap.readers.registry import read
from forgetmap.theory.answers import Answer, finetuning_replay_answer, replay_answer

REPLAY_SCHEMA_VERSION = 1
MESSAGES, PROMPTS = "replay.jsonl", "replay-prompt-completion.jsonl"
MIXTURE, MANIFEST = "mixture.yaml", "manifest.json"
YOUR_DATA = "REPLACE-WITH-YOUR-TRAINING-DATA.jsonl"
_LISTED = 200
"""Refusals listed one by one; all are counted."""
_BATCH, _RISK = 32, 0.01
Form = Literal["messages", "prompt-completion"]


class Share(Frozen):
    """What a category gets."""

    forgotten: int
    """Old items that were lost."""
    wanted: int
    synthesised: int
    drawn: int


class Refusal(Frozen):
    """An example that meets an evaluation item, and was left out."""

    source: str
    """`model`, or file and line of the pool."""
    task: str
    item: str
    how: str


class Mixing(Frozen):
    """A replay share of the theory lab, with what it rests on."""

    training: Literal["supervised", "on-policy"]
    share: float
    meaning: str
    rests_on: str
    do_not_trust_when: str


class ReplaySet(Frozen):
    """What was made, and how: the manifest of the folder."""

    schema_version: int = REPLAY_SCHEMA_VERSION
    forgetmap_version: str = __version__
    before: str
    after: str
    budget: int
    examples: int
    categories: dict[str, Share]
    checked_items: int
    """Evaluation items that every example was held against."""
    refused: int
    refused_of_pool: int
    refusals: list[Refusal]
    dropped: dict[str, int]
    """Why other questions and rows were not used -> how many."""
    pool: str | None
    model: str | None
    fingerprint: str | None
    making: dict[str, Any] | None
    seed: int
    mixing: list[Mixing]
    new_examples: int
    """So many new examples go with this set at the share for supervised training."""
    warnings: list[str]

    def to_json(self) -> str:
        """The manifest."""
        return self.model_dump_json(indent=2)


class _Lost(NamedTuple):
    """The items of a category that were lost."""

    texts: list[str]
    drop: float
    """How much of them: the sum of what each fell by, in shares of its runs."""


class _Needs(NamedTuple):
    """What was lost, or may be, and what to keep out; from a map or from a forecast."""

    before: str
    after: str
    lost: Mapping[str, _Lost]
    """By category."""
    categories: Mapping[str, str]
    """Of the old tasks."""
    named: Mapping[str, str]
    """Of all tasks that rows of a pool may name."""
    items: Iterable[EvaluationItem]
    """All items of the evaluation, which no example may hold."""
    doubts: list[str]


@dataclass(frozen=True)
class _Plan:
    """What is wanted."""

    needs: _Needs
    budget: int
    making: Making
    mixing: list[Mixing]

    @cached_property
    def wanted(self) -> dict[str, int]:
        """Category -> examples."""
        return share_out(self.budget, {name: lost.drop for name, lost in self.needs.lost.items()})

    def missing(self, examples: Sequence[Example]) -> dict[str, int]:
        """Category -> examples that are not there yet."""
        there = Counter(example.category for example in examples)
        return {name: count - there[name] for name, count in self.wanted.items()}


@dataclass
class _Draft:
    """Examples while they are gathered, and why others are not among them."""

    check: LeakCheck
    examples: list[Example] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    _seen: set[tuple[str, ...]] = field(default_factory=set)

    def leaks(self, source: str, prompt: str, completion: str) -> bool:
        """Whether a text meets an evaluation item; if so it is put on record."""
        leak = self.check.find(prompt, completion)
        if leak:
            self.refusals.append(
                Refusal(source=source, task=leak.task, item=leak.ref, how=leak.how)
            )
        return leak is not None

    def is_new(self, prompt: str) -> bool:
        """Whether a prompt has not been taken yet; from now on it has."""
        words = tuple(plain_words(prompt))
        known = words in self._seen
        self._seen.add(words)
        return not known

    def why_not(self, question: str, answer: str) -> str | None:
        """Why a made-up question, or its answer, must not be used."""
        if tuple(plain_words(question)) in self._seen:
            return "duplicate"
        if self.leaks("model", question, answer):
            return "evaluation item"
        if answer:
            self.is_new(question)
        return None


def build_replay(
    saved: str | Path | None,
    out: str | Path,
    budget: int,
    *,
    risks: str | Path | None = None,
    logs: Sequence[str | Path] = (),
    categories: Sequence[str] = (),
    model: str | Model | None = None,
    running: Running | None = None,
    making: Making | None = None,
    pool: str | Path | None = None,
    keep: float = 0.2,
    train: str | Path | None = None,
    strict: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ReplaySet:
    """Build a replay set for what a map says was lost, or a forecast may be, and write it.

    Categories get shares of the budget in proportion to their lost items, each weighed by how far
    it fell. New tasks get none. With a model and a pool each gives half, and one makes up for what
    the other lacks.

    Args:
        saved: A comparison that `compare --save` wrote; None with `risks`.
        out: The folder to write; a stopped run goes on in it.
        risks: A forecast that `forgetmap forecast --out` wrote, in place of a map: categories get
            shares by their expected loss. The log before must then be among `logs`, with texts.
        logs: Evaluation logs of the map, so that every item of it can be kept out.
        categories: Only these get examples, to repair a domain; all by default.
        model: The model before, by a name that `open_model` understands, or an open model.
        pool: JSON lines of the user's own data, see `read_pool`.
        keep: Old behaviour to be left after training, as a share; sets the mixing ratio.
        train: The new training data, for the mixture file.
        strict: Refuse the whole pool if it holds evaluation items.

    Example:
        >>> build_replay("nowhere", "out", 10, pool="pool.jsonl")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: nowhere: is not a saved comparison; make one with ...
    """
    making = making or Making()
    if budget < 1:
        raise InputError(f"--budget {budget}: must be at least 1")
    if model is None and pool is None:
        raise InputError("give --model to make up examples, --pool to draw them, or both")
    if (saved is None) == (risks is None):
        raise InputError("give a MAP (compare --save), or --risks (forgetmap forecast --out)")
    form, mixing = _form(train, making.chat), _mixing(keep)
    if risks is not None:
        needs = _at_risk(Path(risks), logs, categories)
    else:
        needs = _by_map(_open(Path(str(saved))), logs, categories)
    plan = _Plan(needs, budget, making, mixing)
    draft = _Draft(LeakCheck(needs.items))
    drawn = _drawable(read_pool(pool), plan, draft, strict) if pool else None
    opened = open_model(model, running, chat=making.chat) if isinstance(model, str) else model
    make_folder(out)
    if drawn:
        halves = {name: -(-count // 2) for name, count in plan.wanted.items()}
        draft.examples += drawn.take(halves if opened else plan.wanted)
    if opened:
        with Store(out) as store:
            topics = _topics(plan, draft, drawn)
            made = synthesise(opened, topics, store, draft.why_not, making, progress)
        draft.examples += made.examples
        draft.dropped += made.dropped
    if opened and drawn:
        draft.examples += drawn.take(plan.missing(draft.examples))
    if not draft.examples:
        counts = {**draft.dropped, "holds an evaluation item": len(draft.refusals)}
        reasons = [f"{reason}: {count:,}" for reason, count in counts.items() if count]
        raise InputError(
            f"no example could be made or drawn ({', '.join(reasons) or 'no row'}); "
            "try another pool or a lower --agreement"
        )
    random.Random(making.seed).shuffle(draft.examples)  # TRL may take the first rows only
    result = _result(plan, draft, opened, drawn)
    _write(Path(out), draft.examples, result, form, train)
    return result


def share_out(budget: int, counts: Mapping[str, float]) -> dict[str, int]:
    """Split a budget in proportion to counts, in whole numbers that add up to it.

    Example:
        >>> share_out(10, {"a": 2, "b": 1, "c": 0})
        {'a': 7, 'b': 3, 'c': 0}
    """
    total = sum(counts.values())
    exact = {name: budget * count / total for name, count in counts.items()}
    parts = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(exact, key=lambda name: (parts[name] - exact[name], name))
    for name in by_rest[: budget - sum(parts.values())]:
        parts[name] += 1
    return parts


# --- what the map says ----------------------------------------------------------------------------


def _open(folder: Path) -> SavedComparison:
    if not (folder / MAP).is_file():
        raise InputError(
            f"{folder}: is not a saved comparison; make one with "
            "forgetmap compare BEFORE AFTER --save FOLDER"
        )
    return open_saved(folder)


def _category(comparison: SavedComparison, task: str) -> str:
    return comparison.result.task_categories.get(task, task)


def _by_map(
    comparison: SavedComparison, logs: Sequence[str | Path], chosen: Sequence[str]
) -> _Needs:
    result = comparison.result
    lost = _lost(comparison, chosen)
    return _Needs(
        result.before.name,
        result.after.name,
        lost,
        {
            task: _category(comparison, task)
            for task in result.tasks
            if task not in result.settings.new
        },
        result.task_categories,
        _evaluation_items(comparison, logs),
        _doubt(comparison, lost),
    )


def _at_risk(risks: Path, logs: Sequence[str | Path], chosen: Sequence[str]) -> _Needs:
    """What a forecast expects to be lost; of each category its riskiest items stand for it."""
    from forgetmap.mitigate.forecast.build import read_risks

    told = read_risks(risks)
    texts = {(item.task, item.ref): item for item in _log_items(logs)}
    lost: dict[str, _Lost] = {}
    half = {
        name: part.expected.value * part.items / 2
        for name, part in told.forecast.categories.items()
    }
    columns = (told.table[name].to_pylist() for name in ("task", "item", "category", "risk"))
    missing = 0
    for task, item, category, risk in zip(*columns, strict=True):  # the riskiest first
        found = texts.get((task, f"{item:016x}"))
        missing += found is None
        shown, drop = lost.get(category, _Lost([], 0.0))
        if found is not None and drop < half[category]:
            shown.append(found.text)
        lost[category] = _Lost(shown, drop + risk)
    if missing:
        raise InputError(
            f"the text of {missing:,} of {len(told.table):,} items of {risks} is not known, so "
            "they could not be kept out; name the log that it was made of with --log BEFORE"
        )
    tasks = dict(
        zip(told.table["task"].to_pylist(), told.table["category"].to_pylist(), strict=True)
    )
    return _Needs(
        told.forecast.log,
        f"forecast {risks.name}",
        _only(dict(sorted(lost.items(), key=lambda pair: (-pair[1].drop, pair[0]))), chosen),
        tasks,
        tasks,
        texts.values(),
        [],
    )


def _only(found: dict[str, _Lost], chosen: Sequence[str]) -> dict[str, _Lost]:
    """The categories that were asked for; all where none was."""
    for name in chosen:
        if name not in found:
            raise InputError(
                f"--category {name}: no old item of it was lost; the map's are {some(found, 20)}"
            )
    return {name: lost for name, lost in found.items() if name in chosen or not chosen}


def _lost(comparison: SavedComparison, chosen: Sequence[str]) -> dict[str, _Lost]:
    """The lost items by category, the category that lost most first; new tasks are left out."""
    found: dict[str, _Lost] = {}
    new = set(comparison.result.settings.new)
    for batch in comparison.store.table(Filter(transition="forgotten")):
        for row in batch.select(["task", "prompt_before", "before", "after"]).to_pylist():
            if row["task"] not in new:
                category = _category(comparison, row["task"])
                texts, drop = found.get(category, _Lost([], 0.0))
                texts.append(row["prompt_before"] or "")
                found[category] = _Lost(texts, drop + row["before"] - row["after"])
    if not found:
        raise InputError(f"{comparison.name}: no old item of the map was lost; nothing to replay")
    found = dict(sorted(found.items(), key=lambda pair: (-pair[1].drop, pair[0])))
    return _only(found, chosen)


def _doubt(comparison: SavedComparison, lost: Mapping[str, _Lost]) -> list[str]:
    """A warning where the map shows no sure loss: then the items may have flipped by noise."""
    result = comparison.result
    groups = {**result.tasks, **result.categories}
    cells = [result.old, *(groups[name] for name in lost if name in groups)]
    if any(cell.verdict.forgetting == "lost" for cell in cells):
        return []
    verdict = result.old.verdict
    missing = f". What would decide: {verdict.would_decide}" if verdict.would_decide else ""
    return [
        f"nothing is surely lost in this map (verdict: {FORGETTING_WORDS[verdict.forgetting]}); "
        f"these items may have flipped by noise or by guessing{missing}"
    ]


def _evaluation_items(
    comparison: SavedComparison, logs: Sequence[str | Path]
) -> Iterator[EvaluationItem]:
    """Every item with its text, from the saved comparison and the logs.

    An item of the map without a text anywhere could not be kept out, so that is refused.
    """
    missing: set[tuple[str, str]] = set()
    total = 0
    for batch in comparison.store.table(Filter()):
        for row in batch.select(["task", "item", "prompt_before", "prompt_after"]).to_pylist():
            total += 1
            texts = [row[name] for name in ("prompt_before", "prompt_after") if row[name]]
            yield from (EvaluationItem(row["task"], row["item"], text) for text in texts)
            if not texts:
                missing.add((row["task"], row["item"]))
    for found in _log_items(logs):
        missing -= {(found.task, found.ref), (found.task + SUFFIX, found.ref)}
        yield found
    if missing:
        raise InputError(
            f"the text of {len(missing):,} of {total:,} evaluation items is not known, so they "
            "could not be kept out; name the logs that the map was made of with --log BEFORE"
        )


def _log_items(logs: Sequence[str | Path]) -> Iterator[EvaluationItem]:
    """Every item of some logs that has a text."""
    columns = ["task", "item", "item_ref", "prompt"]
    for log in logs:
        for batch in read(log, ReadOptions(text=True)).to_batches(columns):
            for row in batch.to_pylist():
                if row["prompt"]:
                    item = row["item_ref"] if row["item"] is None else f"{row['item']:016x}"
                    yield EvaluationItem(row["task"], str(item), row["prompt"])


# --- the examples ---------------------------------------------------------------------------------


class _Drawable:
    """Rows of a pool that may be used, in the order in which they are drawn."""

    def __init__(self, pool: Pool, rows: Mapping[str, Iterable[Row]], draft: _Draft) -> None:
        self.pool = pool
        self.shown = {name: list(near)[:20] for name, near in rows.items()}
        self._rows = {
            name: (row for row in near if draft.is_new(row.asked)) for name, near in rows.items()
        }

    def take(self, wanted: Mapping[str, int]) -> list[Example]:
        return [
            Example(row.talk, name, f"{self.pool.name}:{row.line}")
            for name, count in wanted.items()
            for row in islice(self._rows[name], count)
        ]


def _drawable(pool: Pool, plan: _Plan, draft: _Draft, strict: bool) -> _Drawable:
    """Hold every row against the evaluation, drawn or not: a pool that leaks should be known."""
    kept = [
        row
        for row in pool.rows
        if not draft.leaks(f"{pool.name}:{row.line}", row.asked, row.answer)
    ]
    if strict and draft.refusals:
        listed = ", ".join(refusal.source.rpartition(":")[2] for refusal in draft.refusals[:20])
        more = f" and {len(draft.refusals) - 20:,} more" if len(draft.refusals) > 20 else ""
        raise InputError(
            f"{pool.name}: {len(draft.refusals):,} rows hold evaluation items (line {listed}{more})"
            "; take them out, or run without --strict to leave them out"
        )
    draft.dropped["row without a question or an answer"] += pool.unusable
    lost = {name: lost.texts for name, lost in plan.needs.lost.items()}
    order = nearest(kept, lost, plan.needs.named)
    rows = {name: [kept[number] for number in numbers] for name, numbers in order.items()}
    return _Drawable(pool, rows, draft)


def _topics(plan: _Plan, draft: _Draft, drawn: _Drawable | None) -> list[Topic]:
    return [
        Topic(
            category=name,
            tasks=tuple(task for task, of in plan.needs.categories.items() if of == name),
            shown=tuple(row.asked for row in drawn.shown[name]) if drawn else (),
            wanted=count,
        )
        for name, count in plan.missing(draft.examples).items()
    ]


# --- how much of it -------------------------------------------------------------------------------


def _mixing(keep: float) -> list[Mixing]:
    kinds: tuple[tuple[Literal["supervised", "on-policy"], Answer, str], ...] = (
        ("supervised", finetuning_replay_answer(keep), "replay_share"),
        ("on-policy", replay_answer(keep, _BATCH, _RISK), "smallest_replay_share"),
    )
    return [
        Mixing(
            training=training,
            share=answer.values[share],
            meaning="; ".join(answer.lines[:2]),
            rests_on=answer.assumption,
            do_not_trust_when=answer.caution,
        )
        for training, answer, share in kinds
    ]


def _form(train: str | Path | None, chat: bool) -> Form:
    """The form of the replay file that goes with the new data."""
    if train is None:
        return "messages" if chat else "prompt-completion"
    first = next((row for _, row in json_lines(Path(train), ReadOptions(), [])), {})
    if isinstance(first.get("messages"), list):
        return "messages"
    if isinstance(first.get("prompt"), str) and isinstance(first.get("completion"), str):
        return "prompt-completion"
    raise InputError(
        f"{train}: its first row has neither `messages` nor `prompt` and `completion` as text; "
        f"it has {some(first) or 'nothing'}"
    )


# --- the files ------------------------------------------------------------------------------------


def _result(plan: _Plan, draft: _Draft, model: Model | None, drawn: _Drawable | None) -> ReplaySet:
    made = Counter(one.category for one in draft.examples if one.source == "model")
    there = Counter(one.category for one in draft.examples)
    share, wanted = plan.mixing[0].share, plan.wanted
    told = (drawn.pool.warnings if drawn else [], model.warnings if model else [])
    warnings = [*plan.needs.doubts, *told[0], *told[1]]
    if short := {name: there[name] for name in wanted if there[name] < wanted[name]}:
        listed = some(f"{name} {count} of {wanted[name]}" for name, count in short.items())
        warnings.append(f"fewer examples than wanted: {listed}")
    return ReplaySet(
        before=plan.needs.before,
        after=plan.needs.after,
        budget=plan.budget,
        examples=len(draft.examples),
        categories={
            name: Share(
                forgotten=len(plan.needs.lost[name].texts),
                wanted=wanted[name],
                synthesised=made[name],
                drawn=there[name] - made[name],
            )
            for name in wanted
        },
        checked_items=len(draft.check),
        refused=len(draft.refusals),
        refused_of_pool=sum(one.source != "model" for one in draft.refusals),
        refusals=sorted(draft.refusals, key=lambda one: one.source == "model")[:_LISTED],
        dropped={name: count for name, count in draft.dropped.items() if count},
        pool=drawn.pool.name if drawn else None,
        model=model.name if model else None,
        fingerprint=model.fingerprint if model else None,
        making=asdict(plan.making) if model else None,
        seed=plan.making.seed,
        mixing=plan.mixing,
        new_examples=round(len(draft.examples) * (1 - share) / share),
        warnings=warnings,
    )


def _write(
    out: Path,
    examples: Sequence[Example],
    result: ReplaySet,
    form: Form,
    train: str | Path | None,
) -> None:
    """Write all files, or none; the manifest last, so that it stands for the whole."""
    messages, prompts = [], []
    for example in examples:
        about = {"category": example.category, "source": example.source}
        turns = [{"role": turn.role, "content": turn.text} for turn in example.talk.turns]
        messages.append({"messages": turns, **about})
        talk = {"prompt": example.talk.prompt, "completion": example.talk.completion}
        prompts.append({**talk, **about})
    texts = {
        MESSAGES: _lines(messages),
        PROMPTS: _lines(prompts),
        MIXTURE: _mixture(out, result, form, train).encode(),
        MANIFEST: f"{result.to_json()}\n".encode(),
    }
    with ExitStack() as stack:
        for name, content in reversed(texts.items()):  # left in the opposite order
            stack.enter_context(replacing(out / name)).write_bytes(content)


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _mixture(out: Path, result: ReplaySet, form: Form, train: str | Path | None) -> str:
    """The mixture in the form of TRL's DatasetMixtureConfig."""
    mix = result.mixing[0]
    columns = ["messages"] if form == "messages" else ["prompt", "completion"]
    files = {
        str(out / (MESSAGES if form == "messages" else PROMPTS)): mix.share,
        str(train or YOUR_DATA): 1 - mix.share,
    }
    datasets = [
        {
            "path": "json",
            "data_files": name,
            "split": "train",
            "columns": list(columns),
            "fraction": round(share, 6),
        }
        for name, share in files.items()
    ]
    return (
        f"# {percent(mix.share)} replay. It rests on: {mix.rests_on}.\n"
        f"# Do not trust it when: {mix.do_not_trust_when}.\n"
        f"# {result.examples:,} replay examples go with {result.new_examples:,} new ones; TRL takes"
        " the first of either file\n# until one of them is used up.\n"
        + yaml.safe_dump({"datasets": datasets}, sort_keys=False, allow_unicode=True)
    )
