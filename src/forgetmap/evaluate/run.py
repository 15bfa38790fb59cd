"""Run a model over a suite; what is finished is kept, whatever happens."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.likelihoods import Spoken, is_another_voice
from forgetmap.base.values import fitting
from forgetmap.base.words import some
from forgetmap.evaluate.executor import Job, Work
from forgetmap.evaluate.models import (
    Changeable,
    Model,
    Reply,
    Running,
    open_after,
    open_model,
)
from forgetmap.evaluate.prompts import Asking, describe, is_scored, make_request
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.results import (
    MANIFEST,
    AskedQuestion,
    read_manifest,
    rows,
    write_responses,
    write_results,
)
from forgetmap.evaluate.side_by_side import apart, at_once
from forgetmap.evaluate.store import Store
from forgetmap.samples.comparability import CHOSEN
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

Questions = str | Path | Suite | Sequence[str | Path]
"""What is asked: a suite, its name or file, or several names and files."""
Progress = Callable[[int, int], None]
"""Called with the answers that are there, and how many there will be."""
_FIRST_FAILURES = {"down": 4, "failed": 20}
"""Requests that fail one after the other, before any was answered, until a run is given up: few
where each took many attempts. What fails at once may be first though others are under way."""
_FAILURES_IN_A_ROW = 16
"""The same at a server that has answered before, where more fail than are allowed to."""


@dataclass(frozen=True)
class Evaluation:
    """A finished run."""

    folder: Path
    samples: Samples
    asked: int
    """Requests of the suite."""
    evaluated: int
    """Of these, how many this run had to put to the model; the others were found finished."""
    failed: int = 0
    """Of these, how many have no reply; they are recorded without a score."""
    manifest: str = ""
    """By which `forgetmap score` scores the answers, where the run did not."""


def evaluate(
    model: str | Model,
    suite: Questions,
    out: str | Path,
    *,
    asking: Asking | None = None,
    running: Running | None = None,
    tasks: Sequence[str] = (),
    limit: int | None = None,
    allow_failed: float = 0.0,
    work: Work | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Evaluation:
    """Run a model over a suite of questions, into a folder that `compare` reads.

    Finished answers are kept in the folder by what was asked of which weights: the same call again
    goes on where the last one was stopped, and a changed suite asks the changed questions alone.

    Args:
        model: A name that `open_model` understands, or an open model.
        suite: A suite, or a name that `suites.load` understands, or several names.
        running: Numbers, device and batch size, for a model given by name.
        tasks: Only tasks of these names; `*` and `?` stand for any characters.
        limit: Only the first so many questions of each task.
        allow_failed: Share of the requests that may fail, one at least unless it is 0. They are
            recorded without a score, and the same call again asks them again.
        work: What puts jobs to the model; by default this process.

    Example:
        >>> before = evaluate("models/before", "atlas", "runs/before", limit=2)
        >>> after = evaluate("models/after", "atlas", "runs/after", limit=2)
        >>> from forgetmap import compare
        >>> compare("runs/before", "runs/after").coverage.matched
        82
    """
    asking, out = asking or Asking(), Path(out)
    if limit is not None and limit < 1:
        raise InputError(f"--limit {limit}: must be at least 1")
    if not 0 <= allow_failed <= 1:
        raise InputError(f"--allow-failed {allow_failed}: must be a share from 0 to 1")
    chosen = only_tasks(load_suite(suite, asking.seed), tasks)
    if isinstance(model, str):
        model = open_model(model, running, chat=asking.chat)
    if asking.chat is None:
        asking = dataclasses.replace(asking, chat=model.is_chat)
    asked = [one for task in chosen.tasks for one in _ask(task, asking, model, limit)]
    if not asked:
        raise InputError(f"the suite {chosen.name} holds no questions")
    _check_owner(out, model)
    with Store(out) as store:
        if isinstance(model, Changeable):
            _check_voice(model, store)
        open_keys = {one.key for one in asked if one.key not in store}
        failures = _Failures(model, asked, allow_failed, any(one.key in store for one in asked))
        if open_keys:
            (out / MANIFEST).unlink(missing_ok=True)
            _answer(asked, open_keys, model, store, failures, work, progress)
            failures.check()
            if isinstance(model, Changeable):
                model.check_unchanged()
                _check_voice(model, store)
        replies = {one.key: failures.replies.get(one.key) or store[one.key] for one in asked}
        meta = _meta(model, asking, chosen, limit, store, asked, replies)
        run = f"{chosen.name} {chosen.version}"
        scored = (row for one in asked for row in rows(model.name, run, one, replies[one.key]))
        reasons = Counter(
            str(replies[one.key]["note"]) for one in asked if replies[one.key]["status"] != "ok"
        )
        about = {
            "model": model.name,
            "fingerprint": model.fingerprint,
            "suite": chosen.name,
            "suite_version": chosen.version,
            "suite_seed": chosen.seed,
            "seed": asking.seed,
            "requests": len(asked),
            "failed": reasons.total(),
            "failed_because": dict(reasons.most_common(20)),
            "allow_failed": allow_failed,
            "settings": meta.settings[model.name],
        }
        if chosen.manifest:
            write_responses(out, model.name, ((one, replies[one.key]) for one in asked))
        samples = write_results(out, scored, meta, chosen, about)
    return Evaluation(out, samples, len(asked), len(open_keys), reasons.total(), chosen.manifest)


def load_suite(suite: Questions, seed: int = 0) -> Suite:
    """Load a suite by name, or several as one, unless it is loaded already."""
    if isinstance(suite, Suite):
        return suite
    from forgetmap.evaluate import suites

    return suites.load_all([suite] if isinstance(suite, str | Path) else suite, seed)


def only_tasks(suite: Suite, tasks: Sequence[str], option: str = "--tasks") -> Suite:
    """The suite with the tasks of these names or patterns; the whole suite where none is named."""
    if not tasks:
        return suite
    found, _ = fitting((task.name for task in suite.tasks), tasks)
    kept = tuple(task for task in suite.tasks if task.name in found)
    if not kept:
        there = some(task.name for task in suite.tasks)
        raise InputError(f"{option} {', '.join(tasks)}: not in the suite {suite.name} ({there})")
    return dataclasses.replace(suite, tasks=kept)


def check_new(suite: Suite, new: Sequence[str], tasks: Sequence[str] = ()) -> None:
    """Refuse names of new tasks that no task has, before any model is asked."""
    chosen = only_tasks(suite, tasks)
    fresh = {task.name for name in new for task in only_tasks(chosen, [name], "--new").tasks}
    if fresh and len(fresh) == len(chosen.tasks):
        raise InputError("--new: every task is new; leave some to see what is lost")


def _ask(task: Any, asking: Asking, model: Model, limit: int | None) -> Iterator[AskedQuestion]:
    """The requests of a task; an answer that is scored by likelihood cannot vary, so it is one."""
    for question in list(task.questions())[:limit]:
        if question.choices and question.target not in question.choices:
            raise InputError(
                f"{task.name} {question.ref}: the right answer is not among the choices"
            )
        repeats = 1 if is_scored(task, question, asking) else asking.repeats
        for repeat in range(repeats):
            seed = content_hash(model.fingerprint, asking.seed, question.item, repeat)
            request = make_request(task, question, asking, seed)
            key = f"{content_hash(model.fingerprint, request.identity, repeat):016x}"
            yield AskedQuestion(task, question, repeat, request, key)


def _check_owner(out: Path, model: Model) -> None:
    manifest = read_manifest(out)
    if manifest and manifest.get("fingerprint") != model.fingerprint:
        raise InputError(
            f"{out}: holds the results of {manifest.get('model')} with other weights, tokenizer, "
            "dtype, revision or model card; name another folder"
        )


def _check_voice(model: Any, store: Store) -> None:
    """Refuse answers of other weights behind the same address, name and card.

    The first run keeps what the model writes behind a fixed text; later ones must write the same.
    """
    key = f"{content_hash(model.fingerprint, 'voice'):016x}"
    now = model.voice()
    if key not in store:
        if now:
            store.append({key: {"voice": [list(one) for one in now]}})
        return
    before = [Spoken(*one) for one in store[key]["voice"]]
    if is_another_voice(before, now):
        raise InputError(
            f"{store.path.parent}: its answers are those of other weights than {model.address} "
            "serves now under the same name; name another folder, or the weights with --revision"
        )


@dataclass
class _Failures:
    """Requests that failed in a run, and when there are too many of them.

    One item that fails must not end a run, and a server that is down must not be asked everything.
    So requests go on until several fail in a row. At the end the share that is allowed decides.
    """

    model: Model
    asked: Sequence[AskedQuestion]
    share: float
    has_answered: bool
    """Whether the model gave a reply to anything, in this run or before."""
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)
    in_a_row: int = 0

    @property
    def allowed(self) -> int:
        """How many may fail."""
        whole = math.floor(self.share * len({one.key for one in self.asked}) + 1e-9)
        return max(whole, 1) if self.share else 0

    def add(self, key: str, reply: Reply) -> None:
        """Take note of a reply; raise if it is not worth while to go on."""
        if not reply.has_failed:
            self.has_answered, self.in_a_row = True, 0
            return
        self.replies[key] = dataclasses.asdict(reply)
        self.in_a_row += 1
        if not self.has_answered and self.in_a_row >= _FIRST_FAILURES[reply.status]:
            raise InputError(f"{self._who}: {reply.note}; {_KEPT}")
        if len(self.replies) > self.allowed and self.in_a_row >= _FAILURES_IN_A_ROW:
            raise InputError(
                f"{self._who}: the last {self.in_a_row} requests failed ({reply.note}); {_KEPT}"
            )

    def check(self) -> None:
        """Refuse a run in which more failed than may."""
        failed = [one for one in self.asked if one.key in self.replies]
        if len(self.replies) <= self.allowed:
            return
        why = str(self.replies[failed[0].key]["note"])
        if not self.has_answered:
            raise InputError(f"{self._who}: {why}; {_KEPT}")
        needed = math.ceil(1e4 * len(self.replies) / len({one.key for one in self.asked})) / 1e4
        raise InputError(
            f"{self._who}: {len(self.replies):,} of {len(self.asked):,} requests failed "
            f"({failed[0].task.name} {failed[0].question.ref}: {why}); {_KEPT}, or accept "
            f"unscored items with --allow-failed {needed:g}"
        )

    @property
    def _who(self) -> object:
        return getattr(self.model, "address", self.model.name)


_KEPT = "finished answers are kept, run the same command again"


def _answer(
    asked: Sequence[AskedQuestion],
    open_keys: set[str],
    model: Model,
    store: Store,
    failures: _Failures,
    work: Work | None,
    progress: Progress,
) -> None:
    from forgetmap.evaluate.executor import here

    jobs = list(_jobs(asked, open_keys, model))
    total = len({one.key for one in asked})
    progress(total - len(open_keys), total)
    done = total - len(open_keys)
    for job, replies in (work or here)(model, jobs):
        answered = list(zip(job.keys, job.requests, replies, strict=True))
        store.append(
            {
                key: dataclasses.asdict(reply) | {"seed": request.seed}
                for key, request, reply in answered
                if not reply.has_failed  # it is asked again next time
            }
        )
        for key, _, reply in answered:
            failures.add(key, reply)
        done += len(job.keys)
        progress(done, total)


def _jobs(asked: Sequence[AskedQuestion], open_keys: set[str], model: Model) -> Iterator[Job]:
    """Plan each task's options as a whole, and all texts together, then leave out what is finished.

    The groups do not depend on what is finished, so that a resumed run computes the same batches
    and gets the same numbers. Probabilities of options do not depend on the other tasks either;
    texts have no last digits to keep, and small tasks would leave a graphics card idle.
    """
    planned: dict[str | None, dict[str, AskedQuestion]] = {}
    claimed: set[str] = set()
    for one in asked:
        if one.key not in claimed:  # the same question in two tasks is asked once
            claimed.add(one.key)
            together = one.task.name if one.request.options else None
            planned.setdefault(together, {})[one.key] = one
    for part in planned.values():
        ones = list(part.values())
        for group in model.plan([one.request for one in ones]):
            open_ones = [ones[place] for place in group.places if ones[place].key in open_keys]
            if open_ones:
                yield Job(
                    tuple(one.key for one in open_ones),
                    tuple(one.request for one in open_ones),
                    group.hints,
                )


def _meta(
    model: Model,
    asking: Asking,
    suite: Suite,
    limit: int | None,
    store: Store,
    asked: Sequence[AskedQuestion],
    replies: Mapping[str, dict[str, Any]],
) -> Meta:
    from forgetmap.base.version import __version__

    settings = {
        **describe(asking),
        **model.settings,
        "limit": limit,
        "suite": f"{suite.name} {suite.version}",
        "suite seed": suite.seed,
        CHOSEN: suite.chosen or None,
        "harness version": __version__,
    }
    warnings = list(model.warnings)
    failed = [one for one in asked if replies[one.key]["status"] != "ok"]
    if failed:
        why = replies[failed[0].key]["note"]
        first = f"{failed[0].task.name} {failed[0].question.ref}"
        warnings.append(f"{len(failed):,} of {len(asked):,} got no reply; {first}: {why}")
    if store.broken:
        warnings.append(f"{store.path.name}: {store.broken} damaged lines were asked again")
    told = {name: value for name, value in settings.items() if value is not None}
    return Meta("forgetmap", __version__, {model.name: told}, warnings)


def compare_models(
    before: str,
    after: str,
    suite: Questions,
    out: str | Path,
    *,
    asking: Asking | None = None,
    running: Running | tuple[Running, Running] | None = None,
    spread: Callable[[str, Running], Work | None] = lambda _model, _how: None,
    progress: Progress = lambda _done, _all: None,
    **options: Any,
) -> tuple[Samples, Samples]:
    """Evaluate two models under the same settings, into `OUT/before` and `OUT/after`.

    Sampled answers of the two are drawn with different seeds: the noise floor is told apart from
    change by answers that are independent of each other. `running` may be a pair, for weights of
    two revisions or two devices. Models on two cards or two servers are asked at the same time.
    `spread` gives what puts jobs to a model, by the model's name; other options are those of
    `evaluate`.
    """
    asking = asking or Asking()
    loaded = load_suite(suite, asking.seed)
    names = before, after
    both = running if isinstance(running, tuple) else (running or Running(),) * 2

    def ask(model: Model, place: int, progress: Progress) -> Samples:
        return evaluate(
            model,
            loaded,
            Path(out) / ("before", "after")[place],
            asking=dataclasses.replace(asking, seed=asking.seed + place),
            work=spread(names[place], both[place]),
            progress=progress,
            **options,
        ).samples

    first = open_model(before, both[0], chat=asking.chat)
    if apart(names, both):
        second = open_model(after, both[1], chat=asking.chat)
        one, other = at_once([partial(ask, first, 0), partial(ask, second, 1)], progress)
        return one, other
    models = [first, open_after(first, after, both[1], chat=asking.chat)]
    del first  # or its weights would stay in memory while the other one is asked
    return ask(models.pop(0), 0, progress), ask(models.pop(0), 1, progress)
