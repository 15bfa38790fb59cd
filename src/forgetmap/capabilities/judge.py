"""A language model as judge, for what no rule can score, behind any OpenAI-compatible endpoint.

Readable replies are kept in a cache on disk: a second run costs nothing, and an interrupted one
goes on where it stopped. A judgement that failed is a status; too many of them stop the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
import statistics
import weakref
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import optional
from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.http import (
    Patience,
    Refused,
    RequestFailed,
    check_address,
    headers_with_key,
)
from forgetmap.base.words import brief, percent
from forgetmap.capabilities.judge_client import Endpoint, JudgeReply
from forgetmap.capabilities.judge_prompts import VERSION, JudgeQuestion, Rubric, Verdict, judgement
from forgetmap.capabilities.scorers.scoring import check_lengths

KEY_VARIABLE = "FORGETMAP_JUDGE_KEY"
"""Environment variable with the endpoint's key. It has a name of its own, so that a key meant for
one provider never goes to whatever address stands on the command line."""
SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a judge has cost so far; replies from the cache cost nothing."""

    judged: int
    """Questions that got a reply, from the endpoint or the cache."""
    cached: int
    requests: int
    """HTTP requests, repeated ones included."""
    tokens_in: int
    tokens_out: int
    cost: float | None
    """In the currency of the prices; None without prices."""

    def __str__(self) -> str:
        """One line for people.

        Example:
            >>> str(Usage(judged=5, cached=2, requests=4, tokens_in=1200, tokens_out=90, cost=None))
            'judge: 5 replies, 2 from the cache, 4 requests, 1,200 tokens in, 90 out'
        """
        cost = "" if self.cost is None else f", cost {self.cost:,.4f}"
        return (
            f"judge: {self.judged:,} replies, {self.cached:,} from the cache, {self.requests:,} "
            f"requests, {self.tokens_in:,} tokens in, {self.tokens_out:,} out{cost}"
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two rounds of judging agree on the same answers."""

    n: int
    """Answers that have a number in both rounds."""
    same: float | None
    """Share of them with exactly the same number."""
    kappa: float | None
    """Agreement beyond chance: Cohen's kappa with quadratic weights, which for 0/1 values is the
    plain kappa. None where a round gave every answer the same number and kappa has no meaning."""
    noise: float | None
    """Variance of a single judgement, from the differences between the rounds."""


class JudgeStopped(WithheldError):
    """Too many judgements failed; what was judged is in the cache."""


class Judge:
    """A model that judges answers.

    Args:
        url: Base address of the endpoint, e.g. `http://localhost:8000/v1`.
        cache: File for the replies, made if it is missing. Replies are found by the content of the
            question, the model and the sampling.
        concurrency: Questions under way at one time.
        timeout: Seconds for one attempt.
        pause: Seconds before the second attempt; doubled before each further one.
        failure_budget: Share of the questions that may fail before the run stops. Unless it is 0,
            one failure is allowed at any size, but not two before the endpoint has answered at all.
        price: Cost of a million tokens in and of a million tokens out.

    Example:
        >>> import tempfile
        >>> cache = Path(tempfile.mkdtemp()) / "judge.sqlite"
        >>> judge = Judge("http://localhost:8000/v1", "small", cache)
        >>> judge.score("coherence", [Item("essay", "1", prompt="Why?")], [""])
        {'coherence': [Value(value=None, status='empty', answer=None)]}
    """

    def __init__(
        self,
        url: str,
        model: str,
        cache: str | Path,
        *,
        concurrency: int = 8,
        sampling: Mapping[str, Any] = SAMPLING,
        attempts: int = 5,
        timeout: float = 120.0,
        pause: float = 1.0,
        failure_budget: float = 0.01,
        price: tuple[float, float] | None = None,
    ) -> None:
        _check(url, model, concurrency, attempts, failure_budget)
        self.url = url
        self.model = model
        self._concurrency = concurrency
        self._sampling = dict(sampling)
        self._patience = Patience(attempts, timeout, pause)
        self._failure_budget = failure_budget
        self._price = price
        self._cache = Replies(Path(cache))
        self._planned = 0
        self._failures: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    @property
    def version(self) -> str:
        """What the values depend on besides the answers: the model, and how it is asked."""
        return f"{self.model}, prompts {VERSION}"

    @property
    def usage(self) -> Usage:
        """Requests, tokens and cost so far."""
        counts = self._counts
        tokens = counts["tokens_in"], counts["tokens_out"]
        cost = None
        if self._price:
            cost = sum(n * price for n, price in zip(tokens, self._price, strict=True)) / 1e6
        return Usage(counts["judged"], counts["cached"], counts["requests"], *tokens, cost)

    def score(
        self, name: str, items: Sequence[Item], responses: Sequence[str], *, again: int = 0
    ) -> dict[str, list[Value]]:
        """Judge each answer, in the manner of a scorer: metric -> one value per item.

        `name` is a kind of judgement, a key of `JUDGEMENTS`. Faithfulness rests on the context of
        the items, coverage and overreach on their gold. `again` = 1, 2 ... asks anew what has been
        judged before; the replies are kept apart. Raises JudgeStopped if more questions fail than
        the budget allows, InputError if the endpoint refuses every request.
        """
        kind = judgement(name)
        check_lengths(items, responses)
        questions = [
            kind.ask(item, response) if response.strip() else []
            for item, response in zip(items, responses, strict=True)
        ]
        unique = {self._key(each, again): each for asked in questions for each in asked}
        verdicts = _run(self._ask_all(unique)) if unique else {}
        values = [
            _values(kind, [verdicts[self._key(each, again)] for each in asked])
            if response.strip()
            else dict.fromkeys(kind.metrics, kind.of_nothing)
            for asked, response in zip(questions, responses, strict=True)
        ]
        return {metric: [value[metric] for value in values] for metric in kind.metrics}

    def ask(self, questions: Sequence[JudgeQuestion]) -> list[Verdict | Value]:
        """The verdict on each question; a value that says why, where there is none."""
        unique = {self._key(each, 0): each for each in questions}
        verdicts = _run(self._ask_all(unique)) if unique else {}
        return [verdicts[self._key(each, 0)] for each in questions]

    def self_agreement(
        self, name: str, items: Sequence[Item], responses: Sequence[str], *, most: int = 100
    ) -> dict[str, Agreement]:
        """Judge a sample of the answers a second time and compare.

        The sample is spread evenly over the items. At temperature 0 a judge may repeat itself to
        the letter; that shows that its noise is small, not that it is right.
        """
        step = max(1, -(-len(items) // most))
        sample, said = items[::step], responses[::step]
        first = self.score(name, sample, said)
        second = self.score(name, sample, said, again=1)
        return {metric: agreement(first[metric], second[metric]) for metric in first}

    def _key(self, question: JudgeQuestion, again: int) -> str:
        parts = [self.model, question.messages(), question.schema(), self._sampling, again]
        whole = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(whole).hexdigest()

    async def _ask_all(self, questions: Mapping[str, JudgeQuestion]) -> dict[str, Verdict | Value]:
        """Answer all questions, from the cache or the endpoint, a bounded number at a time."""
        httpx = optional("httpx")
        self._planned += len(questions)
        verdicts: dict[str, Verdict | Value] = {}
        # Time is limited per attempt by the endpoint; the client's own limits would only interfere.
        limits = httpx.Limits(max_connections=self._concurrency)
        async with httpx.AsyncClient(
            headers=headers_with_key(KEY_VARIABLE), timeout=None, limits=limits
        ) as client:
            endpoint = Endpoint(client, self.url, self.model, self._sampling, self._patience)
            todo = iter(questions.items())

            async def work() -> None:
                for key, question in todo:
                    verdicts[key] = await self._verdict(endpoint, key, question)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._concurrency, len(questions))):
                        group.create_task(work())
            except* (InputError, WithheldError) as errors:
                raise errors.exceptions[0] from None
            finally:
                self._counts["requests"] += endpoint.requests
        return verdicts

    async def _verdict(
        self, endpoint: Endpoint, key: str, question: JudgeQuestion
    ) -> Verdict | Value:
        kept = self._cache.get(key)
        if kept is not None and (verdict := question.read(kept)) is not None:
            self._counts.update(judged=1, cached=1)
            return verdict
        try:
            reply = await endpoint.ask(question.messages(), question.schema())
        except RequestFailed as error:
            if isinstance(error, Refused) and not self._counts["judged"]:
                raise InputError(f"judge {self.url}: {error}") from None
            return self._failed("judge_failed", str(error))
        self._counts.update(judged=1, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
        verdict = question.read(reply.text)
        if verdict is None:
            return self._failed("judge_unparsable", "reply without a verdict", reply.text)
        self._cache.put(key, reply)
        return verdict

    def _failed(self, status: str, reason: str, reply: str | None = None) -> Value:
        self._failures[reason] += 1
        failed, allowed = self._failures.total(), self._failure_budget * self._planned
        if self._failure_budget not in (0, 1):
            has_answered = self._counts["judged"] > self._counts["cached"]
            allowed = max(1, allowed) if has_answered else 1
        if failed > allowed:
            reasons = "; ".join(f"{n} x {reason}" for reason, n in self._failures.most_common(3))
            raise JudgeStopped(
                f"judge {self.url}: {failed} of {self._planned} judgements failed ({reasons}), "
                f"more than the budget of {percent(self._failure_budget)}; see to the judge and "
                "run again, what was judged is kept"
            )
        return Value(None, status, reason if reply is None else reply[:200])


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()


class Replies:
    """Replies by the hash of what was asked, in one SQLite file that several runs may share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._clear_errors():
            # Judging may run in a thread of its own, but never in two at one time.
            self._database = sqlite3.connect(
                path, timeout=60, isolation_level=None, check_same_thread=False
            )
            weakref.finalize(self, self._database.close)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")  # whole, if not to the last reply
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT NOT NULL, "
                "tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL) WITHOUT ROWID"
            )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS checksums (key TEXT PRIMARY KEY, checksum TEXT) "
                "WITHOUT ROWID"
            )

    def get(self, key: str) -> str | None:
        """The reply; None where there is none, or where it was damaged since, to be asked again.

        Replies of older versions have no checksum and are taken as they are.
        """
        with self._clear_errors():
            asked = self._database.execute(
                "SELECT text, checksum FROM replies LEFT JOIN checksums USING (key) WHERE key = ?",
                (key,),
            )
            row = asked.fetchone()
        if row is None or row[1] not in (None, _checksum(key, str(row[0]))):
            return None
        return str(row[0])

    def put(self, key: str, reply: JudgeReply) -> None:
        """Keep a reply."""
        row = key, reply.text, reply.tokens_in, reply.tokens_out
        check = key, _checksum(key, reply.text)
        with self._clear_errors():  # the checksum first: alone it does no harm
            self._database.execute("INSERT OR REPLACE INTO checksums VALUES (?, ?)", check)
            self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:  # damaged names make damaged messages
            raise InputError(
                f"{self._path}: cannot be used as the judge's cache ({brief(error)}); "
                "name another file"
            ) from error


def agreement(first: Sequence[Value], second: Sequence[Value]) -> Agreement:
    """Compare two rounds of judging, or a judge with people's labels, answer by answer.

    Example:
        >>> agreement([Value(1.0), Value(0.0), Value(1.0), Value(0.0)],
        ...           [Value(1.0), Value(0.0), Value(0.0), Value(0.0)])
        Agreement(n=4, same=0.75, kappa=0.5, noise=0.125)
    """
    pairs = [
        (one.value, two.value)
        for one, two in zip(first, second, strict=True)
        if one.value is not None and two.value is not None
    ]
    if not pairs:
        return Agreement(0, None, None, None)
    n = len(pairs)
    squares = statistics.fmean((one - two) ** 2 for one, two in pairs)
    means = [statistics.fmean(side) for side in zip(*pairs, strict=True)]
    # The disagreement expected of two judges with these marks who do not look at the answers.
    by_chance = statistics.fmean(
        (one - means[0]) ** 2 + (two - means[1]) ** 2 for one, two in pairs
    )
    by_chance += (means[0] - means[1]) ** 2
    return Agreement(
        n,
        same=sum(one == two for one, two in pairs) / n,
        kappa=1 - squares / by_chance if by_chance > 0 else None,
        noise=squares / 2,
    )


def _check(url: str, model: str, concurrency: int, attempts: int, failure_budget: float) -> None:
    check_address(url, "judge", KEY_VARIABLE)
    if not model:
        raise InputError("judge: name the model")
    if concurrency < 1 or attempts < 1:
        raise InputError("judge: concurrency and attempts must be at least 1")
    if not 0 <= failure_budget <= 1:
        raise InputError(f"judge: a failure budget of {failure_budget} is not a share from 0 to 1")


def _values(kind: Rubric, outcomes: Sequence[Verdict | Value]) -> dict[str, Value]:
    """The values of one answer; if any of its questions failed, there is no number."""
    if not outcomes:
        return dict.fromkeys(kind.metrics, Value(None, "invalid_gold"))
    verdicts: list[Verdict] = []
    for outcome in outcomes:
        if isinstance(outcome, Value):
            return dict.fromkeys(kind.metrics, outcome)
        verdicts.append(outcome)
    words = "; ".join(f"{name}: {value}" for each in verdicts for name, value in each.items())
    return {metric: Value(x, answer=words[:500]) for metric, x in kind.values(verdicts).items()}


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end, in a thread of its own where an event loop is running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
