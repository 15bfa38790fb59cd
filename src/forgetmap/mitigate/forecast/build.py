"""A log before in, a risk for each item out; and afterwards, what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.files import replacing
from forgetmap.base.model import Frozen, sealed
from forgetmap.base.parquet import damage_told
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.base.values import fitting
from forgetmap.base.version import __version__
from forgetmap.base.words import some
from forgetmap.map.task_maps import TaskMap
from forgetmap.mitigate.forecast.items import (
    Floats,
    History,
    Items,
    Log,
    find,
    items_of,
    read_history,
    read_items,
)
from forgetmap.mitigate.forecast.model import (
    Bin,
    Curves,
    Forecasted,
    Models,
    Probed,
    Spread,
    auc,
    by_category,
    calibration,
    calibration_error,
    fit,
    forecast_items,
    past_features,
    spread_of,
)
from forgetmap.mitigate.forecast.validate import Quality, distances, forecast_unseen, quality
from forgetmap.mitigate.replay.pool import asks_the_same, how_alike, read_pool
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.stats.estimate import Estimate
from forgetmap.study.file import Study

FORECAST_SCHEMA_VERSION = 1
BUNDLED = "data/bundled.json"
META = b"forgetmap:forecast"
_MOST_SURE = 0.5
"""More known items than this with a chance of exactly 1: the log knows right and wrong alone."""
_OTHER_KIND = {
    True: "have probabilities, and this log has not",
    False: "have right and wrong alone, and this log has probabilities",
}
_FEWEST = 3
"""Regimes that a history needs, so that something can be left out and something seen."""
COLUMNS = ("task", "item", "category", "chance", "risk", "flip", "likeness")
Tick = Callable[[int, int], None]


class Part(Frozen):
    """What is forecast of a group of items."""

    items: int
    expected: Estimate
    """Mean loss max(p - q, 0), with a 95 % interval over trainings like those of the history."""
    flips: float
    """Items expected to turn from right to wrong."""


class Forecast(Frozen):
    """What a training is expected to cost, before it is paid for."""

    schema_version: int = FORECAST_SCHEMA_VERSION
    forgetmap_version: str = __version__
    log: str
    source: str
    """What it was learned from."""
    trainings: int
    same_model: int
    """Of these, trainings that began with this very model."""
    total: Part
    categories: dict[str, Part]
    quality: list[Quality]
    """On trainings that the forecast never saw."""
    left_out: dict[str, int]
    """Items without a forecast, and why."""
    notes: list[str]
    probe: Probed | None = None
    """What a few steps on the new data did; the risks know it."""

    def to_json(self) -> str:
        """The forecast as JSON."""
        return self.model_dump_json(indent=2)


class Bundled(Frozen):
    """Curves with what is known of them, as they travel with the package."""

    plain: Curves
    past: Curves | None = None
    categories: Spread
    total: Spread
    quality: list[Quality]
    trainings: int
    source: str


class Bundle(Bundled):
    """What was learned from the study of this project."""

    probe: Bundled
    """Curves that see a probe of the training, with and without a past."""


class Learned(NamedTuple):
    """What forecasts are made by."""

    models: Models
    categories: Spread
    total: Spread
    quality: list[Quality]
    history: History | None
    trainings: int
    source: str
    notes: list[str]


def forecast(
    before: Log,
    *,
    history: str | Path | Study | History | None = None,
    trained_on: str | Path | None = None,
    probe: Log | None = None,
    task_map: str | Path | TaskMap | None = None,
    new: Iterable[str] = (),
    out: str | Path | None = None,
    tick: Tick = lambda _done, _all: None,
) -> Forecast:
    """Forecast what a training will cost: a risk for each item, an expected loss by category.

    Args:
        before: Log of the model that is about to be trained.
        history: A study of earlier trainings. Without one, the curves that come with the package
            are used, which were fitted to the study of this project.
        trained_on: The new training data as JSON lines. Items that they ask are left out, and
            every item gets its likeness to the data.
        probe: Log of the model after a few steps of the training, which were thrown away. The
            curves are then those that come with the package and know probes.
        task_map: Categories of the tasks; by default the one that the study names.
        new: Tasks that the training is meant to teach; they are left out.
        out: Write a row for each item to this Parquet file.

    Example:
        >>> from forgetmap.map import example_logs
        >>> told = forecast(example_logs()[0], new=["airports"])
        >>> told.total.expected.low < told.total.expected.value < told.total.expected.high
        True
    """
    study = Study.load(history) if isinstance(history, str | Path) else history
    source = "a history"
    if isinstance(study, Study):
        source = str(study.path)
        task_map = study.task_map if task_map is None else task_map
        study = read_history(study, tick)
    categories = task_map if isinstance(task_map, TaskMap | None) else TaskMap.load(task_map)
    category = categories.category if categories else str
    items, left_out = _without_new(read_items(before), list(new))
    alike = None
    if trained_on is not None:
        items, alike, asked = _beside_data(items, before, trained_on)
        left_out |= asked
    study = _of_its_kind(before, items, study, probed=probe is not None)
    learned = _learned(study, source, category, probed=probe is not None)
    past, same = None, 0
    if learned.history is not None:
        model = learned.history.same_model(items)
        if model is not None:
            past = past_features(items, learned.history, model)
            same = sum(each.model == model for each in learned.history.trainings)
    found = forecast_items(items, learned.models, past, _probe_of(items, probe))
    names = np.array([category(task) for task in items.task], dtype=object)
    parts = _parts(found, names, learned)
    result = Forecast(
        log=str(before) if isinstance(before, str | Path) else "samples",
        source=learned.source,
        trainings=learned.trainings,
        same_model=same,
        total=parts.pop(""),
        categories=parts,
        quality=[each for each in learned.quality if each.history == (same > 0)],
        left_out=left_out,
        notes=[*learned.notes, *_cautions(study, same)],
    )
    if out is not None:
        _write(Path(out), items, names, found, alike, result)
    return result


def _learned(
    history: History | None, source: str, category: Callable[[str], str], *, probed: bool
) -> Learned:
    """The curves: of a history, or those that come with the package; with a probe always these."""
    if probed:
        return bundled(probed=True)._replace(history=history)
    return bundled() if history is None else learn(history, source, category)


def _of_its_kind(
    before: Log, items: Items, history: History | None, *, probed: bool
) -> History | None:
    """The trainings whose logs tell chances as this one does; without any, mere flips are withheld.

    Curves rank items by their chance. Where a log has right and wrong alone, all known items are
    alike to curves that were fitted to probabilities, as those that know probes are, and seem safe.
    """
    plain = _surely_right(items) > _MOST_SURE
    if history is not None:
        kinds = [(_surely_right(one) > _MOST_SURE) == plain for one in history.models]
        kept = history.without(lambda one: not kinds[one.model])
        if left := len(history.trainings) - len(kept.trainings):
            note = f"{left} trainings of the history {_OTHER_KIND[plain]}: left out"
            kept = replace(kept, notes=[*kept.notes, note])
        history = kept
    if not plain or (history is not None and history.trainings and not probed):
        return history
    name = before if isinstance(before, str | Path) else "the log before"
    raise WithheldError(
        f"{name}: {_surely_right(items):.0%} of the known items have a chance of exactly 1, so no "
        "risk of theirs can be told apart. Score options by their likelihood, so that the log has "
        "their probabilities (forgetmap eval and lm-eval write them for acc, not for acc_norm), "
        "or give --history with trainings whose logs are like this one"
    )


def _surely_right(items: Items) -> float:
    """Of the known items, those that were always right, without a probability."""
    return float((items.chance[items.knew] == 1).mean()) if items.knew.any() else 0.0


def _probe_of(items: Items, probe: Log | None) -> Items | None:
    """The items of a probe; at least some of them must be those of the forecast."""
    if probe is None:
        return None
    (samples,) = read_all([probe], ReadOptions())
    found = read_items(samples)
    if not find(found, items)[1].any():
        raise InputError(f"--probed {probe}: has none of the items of the log before")
    return found


def _cautions(study: Any, same: int) -> list[str]:
    if study is not None and not same:
        return [
            "no training of the history began with this model, so only the log before counts; "
            "the risks of items would be sharper with one"
        ]
    return []


def _parts(found: Forecasted, names: NDArray[np.object_], learned: Learned) -> dict[str, Part]:
    parts = {}
    for name, place in by_category(names):
        spread = learned.categories if name else learned.total
        loss = found.loss[place]
        low, high = spread.interval(loss)
        parts[name] = Part(
            items=len(place),
            expected=Estimate(value=float(loss.mean()), low=low, high=high),
            flips=float(found.flip[place].sum()),
        )
    return parts


# --- what it is learned from ----------------------------------------------------------------------


def learn(history: History, source: str, category: Callable[[str], str] = str) -> Learned:
    """Fit the curves to the trainings of a history, and see how good they are on others."""
    regimes = {training.regime for training in history.trainings}
    if len(regimes) < _FEWEST:
        others = f" ({history.notes[-1]})" if history.notes else ""
        raise InputError(
            f"{source}: its {len(history.trainings)} trainings are of {len(regimes)} regimes (new "
            f"task and method); a forecast needs {_FEWEST} to see how far it can be off{others}. "
            "Leave --history out to use what comes with forgetmap"
        )
    told = list(forecast_unseen(history, "regime", category))
    measured = [quality(told, "regime", history=True)]
    measured.append(
        quality(
            list(forecast_unseen(history, "regime", category, with_past=False)), "regime", False
        )
    )
    if len({training.taught for training in history.trainings}) > 1:
        measured += [
            quality(list(forecast_unseen(history, "task", category, with_past=past)), "task", past)
            for past in (True, False)
        ]
    parts, totals = distances(told)
    return Learned(
        fit(history),
        spread_of(parts),
        spread_of(totals),
        measured,
        history,
        len(history.trainings),
        source,
        history.notes,
    )


def bundled(*, probed: bool = False) -> Learned:
    """What was learned from the study of this project; `probed` curves see a probe."""
    text = files("forgetmap.mitigate.forecast").joinpath(BUNDLED).read_text(encoding="utf-8")
    whole = Bundle.model_validate(json.loads(text))
    found = whole.probe if probed else whole
    models = "one small model" if probed else "two small models"
    notes = [
        f"learned from {found.trainings} trainings of {models}; a study of your own "
        "trainings (--history) says more about yours"
    ]
    if not probed:
        notes.append(_NO_BETTER)
    return Learned(
        Models(found.plain, found.past),
        found.categories,
        found.total,
        found.quality,
        None,
        found.trainings,
        found.source,
        notes,
    )


_NO_BETTER = (
    "items are ranked about as by their chance before alone; trainings of this model (--history) "
    "or a short one (--probe) rank them better"
)
"""Measured on the trainings of the study: docs/explanation/forecast.md."""


def bundle(history: History, probed: History, category: Callable[[str], str], source: str) -> str:
    """The file that travels with the package; `probed` holds the trainings that have a probe."""
    plain = _bundled(history, category, source, ("regime", "task", "model"), past=False)
    short = _bundled(probed, category, source, ("regime", "task"), past=True)
    found = Bundle(**plain.model_dump(), probe=short)
    rounded = json.loads(found.model_dump_json(), parse_float=lambda text: round(float(text), 6))
    return json.dumps(rounded, indent=1) + "\n"


def _bundled(
    history: History,
    category: Callable[[str], str],
    source: str,
    unseen: Sequence[str],
    past: bool,
) -> Bundled:
    """Curves, and how good they were on what they never saw; the last one gives the intervals."""
    told = {
        (never_saw, with_past): list(
            forecast_unseen(history, never_saw, category, with_past=with_past)
        )
        for never_saw in unseen
        for with_past in ((False, True) if past else (False,))
    }
    parts, totals = distances(told[unseen[-1], False])
    models = fit(history, with_past=past)
    return Bundled(
        plain=models.plain,
        past=models.past,
        categories=spread_of(parts),
        total=spread_of(totals),
        quality=[quality(each, *at) for at, each in told.items()],
        trainings=len(history.trainings),
        source=source,
    )


# --- the new data ---------------------------------------------------------------------------------


def _without_new(items: Items, new: list[str]) -> tuple[Items, dict[str, int]]:
    if not new:
        return items, {}
    taught, unknown = fitting(set(items.task), new)
    if unknown:
        raise InputError(f"--new: no task of the log is called {some(unknown)}")
    old = ~np.isin(items.task.astype(str), list(taught))
    if not old.any():
        raise InputError("--new: every task is new; leave some to see what may be lost")
    return items.only(old), {"new task": int((~old).sum())}


def _beside_data(
    items: Items, before: Log, data: str | Path
) -> tuple[Items, Floats, dict[str, int]]:
    """Leave out what the new data ask, and say how much each other item is like them."""
    texts = {}
    (samples,) = read_all([before], ReadOptions(text=True))
    for batch in samples.to_batches(["task", "item", "prompt"]):
        for row in batch.to_pylist():
            if row["item"] is not None and row["prompt"]:
                texts[row["task"], row["item"]] = row["prompt"]
    if not texts:
        raise InputError(
            f"--trained-on {data}: the log holds no text of its items, so they cannot be held "
            "against the data; leave the option out, or use a log with prompts"
        )
    prompts = [texts.get(at, "") for at in zip(items.task, items.key.tolist(), strict=True)]
    rows = read_pool(data).rows
    asked = asks_the_same(rows)
    old = np.array([not (text and asked(text)) for text in prompts])
    if not old.any():
        raise InputError(f"--trained-on {data}: it asks every item of the log; nothing is old")
    near = how_alike(
        [text for text, is_old in zip(prompts, old, strict=True) if is_old],
        [[f"{row.asked}\n{row.answer}" for row in rows]],
    )[:, 0]
    left_out = {"asked by the training data": int((~old).sum())} if (~old).any() else {}
    return items.only(old), near, left_out


# --- the file -------------------------------------------------------------------------------------


def _write(
    out: Path,
    items: Items,
    names: NDArray[np.object_],
    found: Forecasted,
    alike: Floats | None,
    result: Forecast,
) -> None:
    table = pa.table(
        {
            "task": pa.array(list(items.task), pa.string()),
            "item": pa.array(items.key, pa.uint64()),
            "category": pa.array(list(names), pa.string()),
            "chance": pa.array(items.chance, pa.float64()),
            "risk": pa.array(found.loss, pa.float64()),
            "flip": pa.array(found.flip, pa.float64()),
            "likeness": pa.nulls(len(items), pa.float64()) if alike is None else pa.array(alike),
        }
    ).sort_by([("risk", "descending"), ("task", "ascending"), ("item", "ascending")])
    about = json.dumps(sealed(json.loads(result.model_dump_json())))
    with replacing(out) as temporary:
        with pq.ParquetWriter(temporary, table.schema, compression="zstd") as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({META.decode(): about, SEAL: EMPTY})
        seal(temporary)


class Risks(NamedTuple):
    """A forecast that was written, with its items; the riskiest first."""

    forecast: Forecast
    table: pa.Table


def read_risks(path: str | Path) -> Risks:
    """Read what `forgetmap forecast --out` wrote."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; make it with forgetmap forecast LOG --out {path}")
    check_sealed(path)
    with damage_told(path):
        raw = (pq.read_metadata(path).metadata or {}).get(META)
    if raw is None:
        raise InputError(f"{path}: is not a file of risks; forgetmap forecast --out writes one")
    told = json.loads(raw)
    if told.get("schema_version", 0) > FORECAST_SCHEMA_VERSION:
        raise InputError(f"{path}: was written by a newer forgetmap; upgrade to read it")
    with damage_told(path):
        table = pq.read_table(path, columns=list(COLUMNS))
    return Risks(Forecast.model_validate(told), table)


# --- afterwards -----------------------------------------------------------------------------------


class Outcome(Frozen):
    """A forecast beside what happened."""

    items: int
    expected: Estimate
    happened: float
    within: bool
    """Whether what happened lies in the interval."""


class Check(Frozen):
    """A forecast compared with the training that followed."""

    schema_version: int = FORECAST_SCHEMA_VERSION
    total: Outcome
    categories: dict[str, Outcome]
    auc_known: float | None
    auc_all: float | None
    calibration_error: float
    """Among items that were known."""
    curve: list[Bin]
    riskiest_quarter: float
    """Share of what was lost that lay in the quarter of the items with the highest risk."""
    not_asked: int
    """Items of the forecast that the log after lacks."""

    def to_json(self) -> str:
        """The check as JSON."""
        return self.model_dump_json(indent=2)


def check_forecast(risks: str | Path, before: Log, after: Log) -> Check:
    """Compare a forecast with what then happened, item by item and by category.

    Example:
        >>> check_forecast("nowhere.parquet", "before", "after")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: nowhere.parquet: no such file; make it with ...
    """
    told = read_risks(risks)
    sides = read_all([before, after], ReadOptions())
    outcomes = pair(*sides).outcomes()
    items = items_of(outcomes)
    places = {at: n for n, at in enumerate(zip(items.task, items.key.tolist(), strict=True))}
    table = told.table.to_pydict()
    rows = [
        (row, places[at])
        for row, at in enumerate(zip(table["task"], table["item"], strict=True))
        if at in places
    ]
    if not rows:
        raise InputError(f"{risks}: none of its items is in both logs; are these the logs of it?")
    mine, theirs = (np.array(side) for side in zip(*rows, strict=True))
    loss = np.maximum(outcomes["fall"].to_numpy().astype(float)[theirs], 0)
    knew = items.knew[theirs]
    knows = outcomes["knows"].to_numpy(zero_copy_only=False).astype(bool)[theirs]
    flipped = knew & ~knows
    risk, flip = (np.array(table[name])[mine] for name in ("risk", "flip"))
    names = np.array(table["category"], dtype=object)[mine]
    inside = knew if knew.any() else np.ones(len(knew), bool)
    bins = calibration(flip[inside], flipped[inside].astype(float))
    outcomes_by = {}
    for name, place in by_category(names):
        part = told.forecast.categories[name] if name else told.forecast.total
        happened = float(loss[place].mean())
        outcomes_by[name] = Outcome(
            items=len(place),
            expected=part.expected,
            happened=happened,
            within=part.expected.low <= happened <= part.expected.high,
        )
    quarter = np.argsort(-risk, kind="stable")[: max(1, len(risk) // 4)]
    return Check(
        total=outcomes_by.pop(""),
        categories=outcomes_by,
        auc_known=auc(flip[knew], flipped[knew]),
        auc_all=auc(flip, flipped),
        calibration_error=calibration_error(bins),
        curve=bins,
        riskiest_quarter=float(loss[quarter].sum() / loss.sum()) if loss.sum() else 0.0,
        not_asked=len(table["item"]) - len(rows),
    )
