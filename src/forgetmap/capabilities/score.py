"""Answers in, scores out: one row per item and metric, in one Samples file.

Finished parts are kept beside the output (`scores.parquet.parts/`), by task, scorer, version and
content, so that a second run does only what is new. A task without answers, or a metric that cannot
be computed, is listed as a gap, never counted as zero.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from forgetmap.answers.items import Item, Value
from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.files import make_folder
from forgetmap.base.words import brief, percent, some
from forgetmap.capabilities import robustness
from forgetmap.capabilities.judge import Judge
from forgetmap.capabilities.manifest import ROBUSTNESS, Manifest, Metric, load_scorer
from forgetmap.capabilities.responses import Responses, load_responses
from forgetmap.capabilities.robustness import Outcome
from forgetmap.capabilities.scorers import RUN_CODE
from forgetmap.readers.captrack import Record, as_text
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

if TYPE_CHECKING:
    import pyarrow as pa

HARNESS = "forgetmap score"
_PROMPT_KEPT = 4000
"""Characters of a prompt that are kept to read; a long context is cut in its middle."""
_TRY_AGAIN = ("judge_failed", "judge_unparsable")


class Gap(NamedTuple):
    """A metric of the manifest that has no scores, and why."""

    task: str
    metric: str
    reason: str


@dataclass
class Scored:
    """What was scored, and what could not be."""

    model: str
    rows: int = 0
    tasks: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    reused: int = 0
    """Parts that an earlier run had finished."""
    statuses: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class _Job(NamedTuple):
    """The metrics of one task that one scorer gives."""

    task: str
    scorer: str
    metrics: tuple[str, ...]
    judged: bool


def score_responses(
    path: str | Path,
    out: str | Path,
    *,
    model: str | None = None,
    manifest: str | Path | Manifest = "captrack",
    judge: Judge | None = None,
    rejudge: int = 20,
    run_code: bool = False,
    tick: Callable[[int], None] = lambda _bytes: None,
    step: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
) -> Scored:
    """Score stored answers by the metrics of a manifest and write them as Samples.

    Args:
        model: Which model to take where there are several; otherwise a name for the one there is.
        judge: Scores the metrics that need a judge; without it they are gaps.
        rejudge: Answers of each judged metric to judge twice, to see how steady the judge is.
        run_code: Run the programs that the model wrote, in a sandbox; without it their metrics are
            gaps. Where no sandbox can be made, asking for it is an error.
        tick: Called with the number of bytes just read.
        step: Called before each part with what it is, how many are done, and how many there are.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "gsm8k_core.jsonl").write_text(
        ...     '{"id": 1, "prompt": "2+2?", "gold": "4", "outputs": "Answer: 4"}')
        >>> scored = score_responses(folder, folder / "scores.parquet", model="tiny")
        >>> scored.model, scored.tasks
        ('tiny', ['gsm8k.core'])
    """
    loaded = manifest if isinstance(manifest, Manifest) else Manifest.load(manifest)
    answers = load_responses(path, loaded, model, tick)
    return _Run(loaded, answers, Path(out), judge, rejudge, run_code, step).run()


@dataclass
class _Run:
    manifest: Manifest
    responses: Responses
    out: Path
    judge: Judge | None
    rejudge: int
    run_code: bool
    step: Callable[[str, int, int], None]
    versions: dict[str, dict[str, int | str]] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answers = self.responses.tasks
        self.parts = self.out.with_name(self.out.name + ".parts")
        self.result = Scored(self.responses.model, warnings=self.responses.warnings)

    def run(self) -> Scored:
        jobs = self._jobs()
        if not jobs:
            raise InputError(f"nothing can be scored: {'; '.join(_told(self.result.gaps[:3]))}")
        make_folder(self.parts)
        done: dict[_Job, Path] = {}
        for number, job in enumerate(jobs):
            self.step(f"{job.task} {job.scorer}", number, len(jobs))
            done[job] = self._part(job, done)
        self.step("", len(jobs), len(jobs))
        self._write(list(done.values()))
        for stale in set(self.parts.glob("*.parquet")) - set(done.values()):
            stale.unlink(missing_ok=True)
        return self.result

    def _jobs(self) -> list[_Job]:
        """What to compute, task by task; comparisons with originals come last."""
        wanted: dict[tuple[str, str, bool], list[str]] = {}
        for (task, name), metric in self.manifest.metrics.items():
            if reason := self._obstacle(metric):
                self.result.gaps.append(Gap(task, name, reason))
                continue
            wanted.setdefault((task, metric.scorer, metric.by == "judge"), []).append(name)
        jobs = [_Job(*key[:2], tuple(names), key[2]) for key, names in wanted.items()]
        return sorted(jobs, key=lambda job: job.scorer == ROBUSTNESS)

    def _obstacle(self, metric: Metric) -> str | None:
        """Why a metric cannot be computed from these answers; None if it can."""
        if metric.task not in self.answers:
            return "no answers to this task"
        if metric.by == "judge" and self.judge is None:
            return "needs a judge (--judge)"
        if metric.scorer in RUN_CODE and metric.by != "judge" and not self.run_code:
            return "runs what the model wrote (only with --run-code)"
        items = self.answers[metric.task].items
        for needed in metric.needs:
            if not any(_has(item, needed) for item in items):
                return f"no item has {needed!r}"
        if metric.scorer == ROBUSTNESS:
            for compared in self.manifest.compared(metric.task):
                if reason := self._obstacle(compared):
                    return f"{compared.task} {compared.metric}: {reason}"
        return None

    def _part(self, job: _Job, done: Mapping[_Job, Path]) -> Path:
        """Score one part, unless an earlier run has finished it."""
        version = self._version(job)
        self.versions.setdefault(job.task, {})[job.scorer] = version
        known = [self.result.model, job.task, job.scorer, job.metrics, version]
        if job.scorer == ROBUSTNESS:  # rests on what others scored
            known += [path.name for path in _holders(self.manifest.compared(job.task), done)]
        digest = hashlib.blake2b(
            json.dumps(known).encode() + self._digest(job.task), digest_size=16
        )
        part = self.parts / f"{digest.hexdigest()}.parquet"
        if part.exists() and not _has_status(part, _TRY_AGAIN):
            self.result.reused += 1
            return part
        rows = self._paired(job, done) if job.scorer == ROBUSTNESS else self._scored(job)
        samples = Samples.from_rows(rows)
        samples.meta.warnings += self._self_agreement(job)
        samples.write(part)
        return part

    def _self_agreement(self, job: _Job) -> list[str]:
        """Judge some answers twice, and say how far the judge agrees with itself."""
        if not (job.judged and self.judge and self.rejudge):
            return []
        answers = self.answers[job.task]
        said = answers.items, answers.responses
        agreements = self.judge.self_agreement(job.scorer, *said, most=self.rejudge)
        return [
            f"the judge gave {percent(agreed.same, 0)} of {agreed.n} answers the same value again "
            f"({job.task} {name}), noise of one judgement {math.sqrt(agreed.noise):.2f}"
            for name, agreed in agreements.items()
            if name in job.metrics and agreed.same is not None and agreed.noise is not None
        ]

    def _version(self, job: _Job) -> int | str:
        if job.scorer == ROBUSTNESS:
            return robustness.VERSION
        return self.judge.version if job.judged and self.judge else load_scorer(job.scorer)[1]

    def _scored(self, job: _Job) -> Iterator[dict[str, Any]]:
        """Rows of one scorer: every answer under each of its metrics."""
        answers = self.answers[job.task]
        if job.judged and self.judge:
            given: Any = self.judge.score(job.scorer, answers.items, answers.responses)
        else:
            given = _run_scorer(job, answers.items, answers.responses)
        values = self._checked(job, given, len(answers))
        for index, record in enumerate(answers.records):
            known = self._row(job.task, record)
            for name, scored in values.items():
                yield known | _score(name, scored[index])

    def _digest(self, task: str) -> bytes:
        if task not in self.digests:
            digest = hashlib.blake2b(digest_size=16)
            answers = self.answers.get(task)
            for record in answers.records if answers else ():
                item, said = record.item, (record.response, record.repeat, record.run)
                parts = (getattr(item, name) for name in Item.__slots__)
                digest.update(content_hash(*parts, *said).to_bytes(8, "big"))
            self.digests[task] = digest.digest()
        return self.digests[task]

    def _checked(self, job: _Job, values: Any, n: int) -> dict[str, Sequence[Value]]:
        """The scorer's values, if they are what the manifest says."""
        where = f"scorer {job.scorer}, task {job.task}"
        if not isinstance(values, dict) or set(job.metrics) - set(values):
            given = some(values) if isinstance(values, dict) else type(values).__name__
            raise InputError(f"{where}: {', '.join(job.metrics)} wanted, but it gave {given}")
        for name in job.metrics:
            if len(values[name]) != n or not all(isinstance(v, Value) for v in values[name]):
                raise InputError(f"{where}: {name} must be {n} Values, one for each item")
            low, high = self.manifest.metrics[job.task, name].range
            for value in values[name]:
                number = value.value
                if number is not None and (
                    (low is not None and number < low - 1e-9)
                    or (high is not None and number > high + 1e-9)
                ):
                    raise InputError(
                        f"{where}: {name} is {number:g}, outside the manifest's range; correct "
                        "the range or the scorer"
                    )
        return {name: values[name] for name in job.metrics}

    def _row(self, task: str, record: Record) -> dict[str, Any]:
        item = record.item
        return {
            "model": self.result.model,
            "run": record.run,
            "task": task,
            "item": record.content,
            "item_ref": item.ref,
            "repeat": record.repeat,
            "k": len(item.choices) if len(item.choices) > 1 else None,
            "source": record.source,
            "prompt": _cut(as_text(item.prompt)),
            "target": _cut(as_text(item.gold)),
            "response": record.response,
        }

    def _paired(self, job: _Job, done: Mapping[_Job, Path]) -> Iterator[dict[str, Any]]:
        """Rows of the comparison with originals: one per original item that has rephrasings."""
        compared = self.manifest.compared(job.task)
        originals, rephrased = (
            _outcomes(part, metric.metric)
            for part, metric in zip(_holders(compared, done), compared, strict=True)
        )
        origins = {
            item.ref: str(item.meta["original"])
            for item in self.answers[job.task].items
            if "original" in item.meta
        }
        answered = self.answers[compared[0].task].records
        records = {(record.item.ref, record.repeat): record for record in answered}
        pairs = robustness.pair_with_originals(originals, rephrased, origins)
        for (ref, repeat), values in pairs.items():
            row = {"model": self.result.model, "task": job.task, "item_ref": ref, "repeat": repeat}
            if record := records.get((ref, repeat)):
                row = self._row(job.task, record)
            for name in job.metrics:
                yield row | _score(name, values[name])

    def _write(self, parts: list[Path]) -> None:
        for part in parts:
            self.result.warnings += Samples.read(part).meta.warnings
        meta = Meta(
            harness=HARNESS,
            settings={
                self.result.model: {
                    "manifest": self.manifest.name,
                    "scorers": {
                        task: ", ".join(
                            f"{name} {version}" for name, version in sorted(used.items())
                        )
                        for task, used in self.versions.items()
                    },
                    "judge": self.judge.version if self.judge else None,
                }
            },
            warnings=[*self.result.warnings, *_told(self.result.gaps)],
        )

        def stream() -> Iterator[pa.RecordBatch]:
            for part in parts:
                for batch in Samples.read(part).to_batches():
                    self.result.rows += batch.num_rows
                    for count in batch["status"].value_counts().to_pylist():
                        name = count["values"]
                        self.result.statuses[name] = (
                            self.result.statuses.get(name, 0) + count["counts"]
                        )
                    yield batch

        samples = Samples.collect(stream(), meta)
        if not self.result.rows:
            raise InputError("the scorers gave no values; check the answers and the manifest")
        samples.write(self.out)
        self.result.tasks = [task for task in self.manifest.task_names if task in self.versions]


def _has(item: Item, needed: str) -> bool:
    """Whether an item has a field, or a key of its meta."""
    name, _, key = needed.partition(".")
    value = getattr(item, name)
    return (value.get(key) if key else value) not in (None, "", [], {}, ())


def _run_scorer(job: _Job, items: Sequence[Item], responses: Sequence[str]) -> Any:
    """Run a scorer; whatever one of the user's own raises becomes one clear line."""
    scorer, _ = load_scorer(job.scorer)
    try:
        return scorer(items, responses)
    except (InputError, WithheldError):
        raise
    except Exception as error:
        if ":" not in job.scorer:
            raise
        reason = f"{type(error).__name__}: {brief(error)}"
        raise InputError(f"scorer {job.scorer} failed on task {job.task} ({reason})") from error


def _score(metric: str, value: Value) -> dict[str, Any]:
    known = {"score": value.value, "status": value.status, "answer": value.answer}
    return {"metric": metric, **known}


def _holders(metrics: Sequence[Metric], done: Mapping[_Job, Path]) -> list[Path]:
    """The parts that hold some metrics."""
    return [
        path
        for metric in metrics
        for job, path in done.items()
        if job.task == metric.task and metric.metric in job.metrics
    ]


def _outcomes(part: Path, metric: str) -> list[Outcome]:
    """The values of one metric, from the part that holds it."""
    columns = ["item_ref", "repeat", "metric", "score", "status", "answer"]
    return [
        Outcome(row["item_ref"], row["repeat"], Value(row["score"], row["status"], row["answer"]))
        for batch in Samples.read(part).to_batches(columns)
        for row in batch.to_pylist()
        if row["metric"] == metric
    ]


def _has_status(part: Path, statuses: Sequence[str]) -> bool:
    try:
        return any(
            status in statuses
            for batch in Samples.read(part).to_batches(["status"])
            for status in batch["status"].unique().to_pylist()
        )
    except InputError:  # damaged: do it again
        return True


def _cut(text: str) -> str:
    if len(text) <= _PROMPT_KEPT:
        return text
    half = _PROMPT_KEPT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters ...]\n{text[-half:]}"


def _told(gaps: Sequence[Gap]) -> list[str]:
    """The gaps by reason, in words."""
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(f"{gap.task} {gap.metric}")
    return [f"not scored, {reason}: {some(names)}" for reason, names in by_reason.items()]
