"""lm-evaluation-harness from 0.4.3 on: `samples_<task>_<time>.jsonl`, `results_<time>.json`.

The Open LLM Leaderboard of 2024 has the same records as a list in `samples_<task>_<time>.json`.
One line is one item under one filter. The samples file lacks even the model's name, so the results
file of the same time stamp is read for it, for the seeds and for the settings; without it the
folder gives the name and nothing can be said about the settings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forgetmap.base.files import find_files, head
from forgetmap.base.json import first_record, read_json
from forgetmap.base.values import file_name, number, optional_text, storable
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    REPEATS_PER_RUN,
    ReadOptions,
    Run,
    as_object,
    json_lines,
    json_list,
    malformed,
    note_count,
    note_settings,
    number_repeats,
    split_stamp,
)
from forgetmap.readers.lm_eval_columns import LARGE, TROUBLE, Rows, plain_rows
from forgetmap.readers.table_files import Ticks
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.options import OPTION_COLUMNS, softmax
from forgetmap.samples.table import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    SCHEMA,
    TEXT_COLUMNS,
    Meta,
    Samples,
    complete,
    text_length,
)

_FIELDS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash", "scores_per_repeat"),
}
_QUESTIONS = ("question", "query", "prompt", "input", "problem", "text")
_INVALID = "[invalid]"
"""What lm-eval's regex filters return when nothing could be extracted."""


def sniff(path: Path) -> bool:
    """Look for sample files by name; a single file by the keys of its first line."""
    if path.is_dir() or path.suffix == ".json":
        return bool(_files(path))
    keys = first_record(path).keys() if path.suffix == ".jsonl" else set()
    return {"doc_id", "resps"} <= keys and "input" not in keys  # which lmms-eval adds


def _files(path: Path) -> list[Path]:
    lists = (file for file in find_files(path, "samples_*.json") if _LIST.match(head(file)))
    return sorted([*find_files(path, "samples_*.jsonl"), *lists])


_LIST = re.compile(rb'\[\s*\{\s*"doc_id"\s*:')


class RunFile(NamedTuple):
    """What a results file says about its run."""

    model: str
    seed: tuple[Any, ...]
    version: str | None
    settings: dict[str, Any]
    filters: dict[str, list[str]]
    """Filter names of each task, for samples that do not name theirs (before 0.4.7)."""
    counts: dict[str, Any]
    """How many items of each task were run."""


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all sample files under the path."""
    files = _files(path) if path.is_dir() else [path]
    meta = Meta(harness="lm-eval")
    abouts: dict[Path, RunFile | None] = {}  # by results file
    runs = []
    for file in files:
        name, stamp = split_stamp(file)
        results = file.with_name(f"results_{stamp}.json")
        if results not in abouts:
            abouts[results] = about = read_results(results, how) if results.is_file() else None
            if about:  # where the settings of two runs differ, the last of them counts
                meta.version = meta.version or about.version
                note_settings(meta, about.model, about.settings)
        about = abouts[results]
        model, seed = (about.model, about.seed) if about else (file.parent.name, None)
        runs.append((Run(model, name.removeprefix("samples_"), seed, stamp), file))
    numbered = number_repeats(runs, meta.warnings)

    def batches() -> Iterator[pa.RecordBatch]:
        for run, file, repeat in numbered:
            about = abouts[file.with_name(f"results_{run.stamp}.json")]
            yield from _batches(run, file, about, repeat * REPEATS_PER_RUN, how, meta.warnings)

    return Samples.collect(batches(), meta)


def read_results(path: Path, how: ReadOptions) -> RunFile:
    """Read the results file of a run."""
    how.tally.files.add(path)
    with malformed(path, what="not an lm-eval results file"):
        return _parse_results(as_object(read_json(path)), path.parent.name)


def _parse_results(results: dict[str, Any], folder: str) -> RunFile:
    """Take the settings that matter for a fair comparison; what is off or empty says nothing."""
    config, tasks = results.get("config") or {}, results.get("configs") or {}
    settings = {
        "few-shot examples": results.get("n-shot"),
        "task version": results.get("versions"),
        "task hash": results.get("task_hashes"),
        "generation": {name: task.get("generation_kwargs") for name, task in tasks.items()},
        "harness version": results.get("lm_eval_version"),
        "transformers version": results.get("transformers_version"),
        "chat template": results.get("chat_template_sha"),
        "system prompt": results.get("system_instruction_sha"),
        "few-shot as multi-turn": results.get("fewshot_as_multiturn"),
        "model type": config.get("model"),
        "dtype": str(config.get("model_dtype") or "").removeprefix("torch."),
        "batch size": config.get("batch_size"),
        "limit": config.get("limit"),
        "generation overrides": config.get("gen_kwargs"),
    }
    seeds = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
    return RunFile(
        model=str(results.get("model_name") or folder),
        seed=tuple(str(config.get(seed)) for seed in seeds),
        version=optional_text(results.get("lm_eval_version") or None),
        settings={name: value for name, value in settings.items() if value},
        filters={
            name: [str(step.get("name")) for step in task.get("filter_list") or []]
            for name, task in tasks.items()
        },
        counts={
            name: count["effective"]
            for name, count in (results.get("n-samples") or {}).items()
            if isinstance(count, dict) and "effective" in count
        },
    )


def _item_columns(how: ReadOptions) -> tuple[str, ...]:
    """The columns that `_item` gives."""
    return (
        *("item", "item_ref", "k", "prompt_hash", "status", "gold_probability", *OPTION_COLUMNS),
        *(("wording",) if how.wording else ()),
        *(TEXT_COLUMNS if how.text else ()),
    )


class _Part:
    """Some lines of a file, read one by one: an item each, and the scores of them all."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.items: list[tuple[Any, ...]] = []
        self.counts: list[int] = []
        """How many of the scores each item has."""
        self.metrics: list[tuple[str, int]] = []
        """Of each score: the metric and the repeat within the run."""
        self.scores: list[float | None] = []
        self.characters = 0
        """Of the text of all rows: an item's are in the row of each of its scores."""

    def rows(self, how: ReadOptions) -> Rows:
        """The same by columns."""
        # Not zip(*items): its thousands of iterators set off the garbage collector again and again.
        columns = {
            name: _column(name, [item[place] for item in self.items])
            for place, name in enumerate(_item_columns(how))
        }
        return Rows(
            columns,
            pa.array(self.lines),
            np.repeat(np.arange(len(self.items)), self.counts),
            _column("metric", [metric for metric, _ in self.metrics]),
            _column("repeat", [index for _, index in self.metrics]),
            _column("score", self.scores),
        )


class _Seen:
    """What the lines of a file told so far, by either road."""

    def __init__(self) -> None:
        self.lines: Counter[str] = Counter()
        """By filter."""
        self.without = 0
        """Lines that hold no score."""
        self.left_out: set[str] = set()
        """Metrics that are no scores."""


def _batches(
    run: Run, file: Path, about: RunFile | None, first: int, how: ReadOptions, warnings: list[str]
) -> Iterator[pa.RecordBatch]:
    """Read a file; `first` is the number of the first repeat."""
    filters = about.filters.get(run.task, []) if about else []
    seen = _Seen()
    for rows in _rows(file, filters, how, seen, warnings):
        yield _batch(run, file, first, rows)
    how.tally.records += seen.lines.total() - seen.without
    how.tally.leave_out(seen.without)
    if seen.without:
        warnings.append(f"{run.task}: {seen.without} lines hold no score and were left out")
    if seen.left_out:
        are = "metric {} is not a score" if len(seen.left_out) == 1 else "metrics {} are no scores"
        warnings.append(f"{run.task}: {are.format(some(seen.left_out))} of single items, left out")
    if about and seen.lines:
        note_count(run.task, about.counts.get(run.task), max(seen.lines.values()), warnings)


def _rows(
    file: Path, filters: list[str], how: ReadOptions, seen: _Seen, warnings: list[str]
) -> Iterator[Rows]:
    """The lines by columns, as many at a time as make a batch: quickly, as far as that goes."""
    if how.text or how.wording or file.suffix == ".json" or file.stat().st_size < LARGE:
        yield from _one_by_one(file, filters, how, seen, warnings)
        return
    ticks = Ticks(file, how)
    how.tally.files.add(file)
    try:
        for rows, told in plain_rows(file):
            yield rows
            seen.lines.update(told.filters)
            seen.left_out |= told.left_out
            ticks.bytes(told.size)
    except TROUBLE:  # line by line it is told, or coped with
        quiet = replace(how, tick=lambda _bytes: None)
        yield from _one_by_one(file, filters, quiet, seen, warnings)
    ticks.finish()


def _one_by_one(
    file: Path, filters: list[str], how: ReadOptions, seen: _Seen, warnings: list[str]
) -> Iterator[Rows]:
    """The lines that were not seen yet."""
    part, nths = _Part(), Counter[Any]()
    records = json_list(file, how) if file.suffix == ".json" else json_lines(file, how, warnings)
    for line, record in islice(records, seen.lines.total(), None):
        with malformed(file, line, "not an lm-eval sample"):
            if "filter" not in record:  # before 0.4.7 a repeated doc_id means the next filter
                nth = nths[record["doc_id"]]
                nths[record["doc_id"]] += 1
                record["filter"] = filters[nth] if nth < len(filters) else _unnamed_filter(nth)
            item = _item(record, how)
            scores = _scores(record, seen.left_out)
            seen.lines[str(record["filter"])] += 1
        if not scores:
            seen.without += 1
            continue
        if how.text:
            part.characters += text_length(item) * len(scores)
        part.lines.append(line)
        part.items.append(item)
        part.counts.append(len(scores))
        part.metrics.extend(scores)
        part.scores.extend(scores.values())
        if len(part.scores) >= BATCH_ROWS or part.characters >= BATCH_CHARACTERS:
            yield part.rows(how)
            part = _Part()
    if part.items:
        yield part.rows(how)


def _batch(run: Run, file: Path, first: int, rows: Rows) -> pa.RecordBatch:
    """One row per score, built column by column; `first` is the number of the first repeat."""
    columns = dict(rows.items)
    line = rows.lines.cast(pa.string())
    columns["source"] = pc.binary_join_element_wise(file_name(file), line, ":")
    # Chance and the options' probabilities belong to a plain pick among k options.
    score = rows.score
    plain = pc.fill_null(pc.or_(pc.equal(score, 0.0), pc.equal(score, 1.0)), fill_value=True)
    probable = pc.and_(plain, pc.equal(rows.metric, "acc"))
    # An answer that was not found can only have been counted as wrong.
    kept = {"k": plain, "status": pc.equal(score, 0.0)}
    kept |= dict.fromkeys(("gold_probability", *OPTION_COLUMNS), probable)
    place = pa.array(rows.of_item)
    for name, column in columns.items():  # a row takes null from the place null
        columns[name] = column.take(pc.if_else(kept[name], place, None) if name in kept else place)
    columns["metric"], columns["score"] = rows.metric, rows.score
    columns["repeat"] = pc.add(rows.repeat, pa.scalar(first, pa.int32()))
    for name, text in (("model", run.model), ("run", run.stamp), ("task", run.task)):
        columns[name] = pa.repeat(storable(text), len(score))
    return complete(columns)


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    kind = SCHEMA.field(name).type
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half a character, as damage and some tokenizers leave it
        return pa.array([None if text is None else storable(text) for text in values], kind)


def _unnamed_filter(nth: int) -> str:
    return f"filter {nth + 1}" if nth else "none"


def _item(record: dict[str, Any], how: ReadOptions) -> tuple[Any, ...]:
    """What a line says about its item, whatever the metric: the values of `_item_columns`."""
    doc, target = record.get("doc"), str(record.get("target", ""))
    likelihoods = _likelihoods(record)
    status = None
    if not likelihoods and _first(record.get("filtered_resps")) in ("", _INVALID):
        status = "no_answer"
    item: tuple[Any, ...] = (
        content_hash(doc, target) if doc else _stored_hash(record),
        str(record["doc_id"]),
        _option_count(doc, likelihoods),
        _short_hash(record.get("prompt_hash")),
        status,
        *(_probabilities(record, likelihoods, target) if likelihoods else (None, None, None)),
    )
    if how.wording:
        item += (_wording(doc, target, record),)
    if how.text:
        item += _texts(record, likelihoods, target)
    return item


def _texts(
    record: dict[str, Any], likelihoods: list[float], target: str
) -> tuple[str | None, str, str | None, str | None]:
    """Prompt, target, answer and response."""
    arguments = _arguments(record)
    return (
        str(arguments[0][0]) if arguments else None,
        _option_text(arguments, _gold_index(record, target), target),
        _answer(record, likelihoods),
        None if likelihoods else str(_first(record.get("resps"))),
    )


def _scores(record: dict[str, Any], left_out: set[str]) -> dict[tuple[str, int], float | None]:
    """Scores by (metric, repeat within the run); a filter joins the metric's name."""
    names = record.get("metrics") or [key for key in record if key not in _FIELDS]
    suffix = record.get("filter", "none")
    per_repeat = record.get("scores_per_repeat") or {}
    scores: dict[tuple[str, int], float | None] = {}
    for name in names:
        if not isinstance(name, str):
            raise ValueError("metrics must be a list of names")
        metric = name if suffix == "none" else f"{name},{suffix}"
        value = record.get(name)
        if name in per_repeat:
            if len(per_repeat[name] or ()) > REPEATS_PER_RUN:
                raise ValueError(f"{metric} has more than {REPEATS_PER_RUN} repeats")
            for repeat, score in enumerate(per_repeat[name] or ()):
                scores[metric, repeat] = number(score, metric)
        elif type(value) is float and math.isfinite(value):
            scores[metric, 0] = value
        elif isinstance(value, dict) or name == "bypass":
            left_out.add(name)
        elif not isinstance(value, list):
            scores[metric, 0] = number(value, metric)
        elif value and all(isinstance(part, bool) for part in value):
            # IFEval scores each instruction of an item; its share is a score of the item.
            scores[metric, 0] = sum(value) / len(value)
        else:  # ingredients of corpus statistics (F1, BLEU, perplexity)
            left_out.add(name)
    return scores


def _short_hash(stored: Any) -> int | None:
    """The first 64 bits of a hash that the harness stored as hexadecimal text."""
    try:
        return int.from_bytes(bytes.fromhex(stored[:16]), "big") if stored else None
    except ValueError:
        return content_hash(stored)


def _stored_hash(record: dict[str, Any]) -> int | None:
    """Identity where the document itself was stripped from the log."""
    if not record.get("doc_hash"):
        return None
    return content_hash(record["doc_hash"], record.get("target_hash", ""))


def _arguments(record: dict[str, Any]) -> list[Any]:
    """The requests as (context, continuation); a dictionary of dictionaries since 0.4.3."""
    arguments = record.get("arguments") or []
    if isinstance(arguments, dict):
        return [list(request.values()) for request in arguments.values()]
    return list(arguments)


def _first(nested: Any) -> Any:
    while isinstance(nested, list) and nested:
        nested = nested[0]
    return nested


def _likelihoods(record: dict[str, Any]) -> list[float]:
    """Log-likelihoods of the options, where the item was scored by them; numbers come as text."""
    likelihoods = []
    for answer in record.get("filtered_resps") or ():
        if type(answer) is not list or len(answer) != 2 or answer[1] not in _FLAGS:
            return []
        likelihoods.append(float(answer[0]))
    return likelihoods if len(likelihoods) > 1 else []


_FLAGS = ("False", "True", False, True)  # the most common first
"""Whether the option is what the model would have said by itself."""


def _options(doc: Any) -> list[Any]:
    if not isinstance(doc, dict):
        return []
    options = doc.get("choices") or doc.get("options") or []
    if isinstance(options, dict):
        options = options.get("text") or []
    return options if isinstance(options, list) else []


def _wording(doc: Any, target: str, record: dict[str, Any]) -> int | None:
    """The item's words, where the document has its question under a usual name."""
    if not isinstance(doc, dict):
        return None
    question = next((doc[name] for name in _QUESTIONS if isinstance(doc.get(name), str)), None)
    if question is None:
        return None
    options = [str(option) for option in _options(doc)]
    if not options and len(_arguments(record)) > 1:
        options = [str(request[1]) for request in _arguments(record)]
    if options and re.fullmatch("[0-9]{1,4}", target) and int(target) < len(options):
        target = options[int(target)]
    return wording_hash(question, options, target)


def _option_count(doc: Any, likelihoods: list[float]) -> int | None:
    count = len(_of_options(doc, likelihoods) if likelihoods else _options(doc))
    return count if count > 1 else None


def _of_options(doc: Any, likelihoods: list[float]) -> list[float]:
    """The options' likelihoods, without those that follow where lm-eval scores mutual information.

    There it also asks for the options without the question.
    """
    options = len(_options(doc))
    return likelihoods[:options] if len(likelihoods) == 2 * options else likelihoods


def _probabilities(
    record: dict[str, Any], likelihoods: list[float], target: str
) -> tuple[float | None, list[float] | None, int | None]:
    """The right option's probability, those of all options, and which one is right."""
    options = softmax(_of_options(record.get("doc"), likelihoods))
    if options is None or len(options) < 2:
        return None, None, None
    gold = _gold_index(record, target)
    if gold is None or gold >= len(options):
        return None, options, None
    return options[gold], options, gold


def _gold_index(record: dict[str, Any], target: str) -> int | None:
    place = _place(target)
    if place is not None:
        return place
    continuations = [str(request[1]).strip() for request in _arguments(record) if len(request) > 1]
    return continuations.index(target.strip()) if target.strip() in continuations else None


@lru_cache
def _place(target: str) -> int | None:
    """The number that a target is, where it names an option by its place; few differ in a log."""
    return int(target) if _INDEX.fullmatch(target) else None


_INDEX = re.compile(r"\s*[0-9]{1,4}\s*")


def _answer(record: dict[str, Any], likelihoods: list[float]) -> str | None:
    """The option with the highest likelihood, or what the filter extracted from the text."""
    if not likelihoods:
        return optional_text(_first(record.get("filtered_resps")))
    best = likelihoods.index(max(likelihoods))
    return _option_text(_arguments(record), best, str(best))


def _option_text(arguments: list[Any], place: int | None, otherwise: str) -> str:
    """The option at a place, as people would say it, where the log scored options."""
    if len(arguments) > 1 and place is not None and place < len(arguments):
        request = arguments[place]
        return str(request[1]).strip() if len(request) > 1 else otherwise
    return otherwise
