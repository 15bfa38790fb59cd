"""How far did a model move? The divergence of two models on texts, and on what they write.

On given texts two models whose weights are here are compared in full: KL both ways at every token.
Servers tell one token's log-probability at a time. For them the divergence comes from what the
models write themselves: the mean log-ratio of a model's own samples is its KL to the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen
from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import Model, Reply, Running, open_model
from forgetmap.evaluate.prompts import Prompt, Request
from forgetmap.stats.estimate import Estimate

DIVERGENCE_SCHEMA_VERSION = 1
Floats = NDArray[np.float64]
BEFORE, AFTER = "before's samples", "after's samples"
_LONGEST = 64
"""Tokens of a sample."""
Progress = Callable[[int, int], None]


class Text(NamedTuple):
    """A text whose second part is scored."""

    prompt: Prompt
    completion: str


class Moved(Frozen):
    """How far two models are apart on some texts; in nats."""

    texts: int
    tokens: int
    kl_forward: Estimate | None
    """KL(before || after) per token; None where it cannot be had from these texts."""
    kl_reverse: Estimate | None
    """KL(after || before) per token."""
    kl_forward_text: Estimate | None
    """The same per text."""
    kl_reverse_text: Estimate | None
    log_ratio: Estimate
    """Log-probability before minus after, per token: above 0, the texts became less likely."""
    perplexity_before: Estimate
    perplexity_after: Estimate


class Divergence(Frozen):
    """How far a model moved: on given texts, and on what the two models write."""

    schema_version: int = DIVERGENCE_SCHEMA_VERSION
    before: str
    after: str
    full: bool
    """Whether all tokens were compared at each place, or only the one that is there."""
    on: dict[str, Moved]
    left_out: int
    """Texts that a model could not take."""
    notes: list[str]

    def to_json(self) -> str:
        """All of it, and first the numbers that a study takes as attributes (`about`, `take`)."""
        flat = {}
        for name, moved in self.on.items():
            for kind in ("kl_forward", "kl_reverse"):
                if (found := getattr(moved, kind)) is not None:
                    flat[f"{kind}_{_plain(name)}"] = found.value
        return json.dumps({**flat, **json.loads(self.model_dump_json())}, indent=2)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name.replace("'s", ""))


class _Scored(NamedTuple):
    """One text under both models."""

    tokens: int
    before: float
    after: float
    """Log-likelihoods."""
    forward: float | None = None
    reverse: float | None = None
    """KL, summed over the tokens."""


def diverge(
    before: str | Model,
    after: str | Model,
    texts: Mapping[str, Sequence[Text]],
    *,
    samples: int = 0,
    running: Running | None = None,
    logprobs: str | Path | None = None,
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> Divergence:
    """Say how far two models are apart.

    Args:
        before: The model before, by a name that `open_model` understands.
        after: The model after.
        texts: By name: texts to score, such as old and new data.
        samples: How many texts each model writes itself, to the prompts of the texts.
        logprobs: Write a row for each sample to this JSONL file, for `forgetmap theory estimate`.

    Example:
        >>> diverge("runs/base", "runs/tuned", {})
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: no text to compare the models on; name some with ...
    """
    if not any(texts.values()):
        raise InputError("no text to compare the models on; name some with --text FILE")
    models = [open_model(one, running) if isinstance(one, str) else one for one in (before, after)]
    full = _same_tokens(models)
    every = [text for part in texts.values() for text in part]
    total, done = len(every) + 2 * samples, 0

    def score(part: Sequence[Text], in_full: bool) -> list[_Scored | None]:
        nonlocal done
        found: list[_Scored | None] = []
        for text in part:
            found.append(_score(models, text, in_full))
            done += 1
            progress(done, total)
        return found

    scored = {name: score(part, full) for name, part in texts.items()}
    written: list[list[Text]] = []
    for name, model in zip((BEFORE, AFTER), models, strict=True):
        if samples:
            written.append(_write(model, every, samples, seed))
            scored[name] = score(written[-1], full)
    if logprobs is not None:
        _write_logprobs(Path(logprobs), [scored.get(name, []) for name in (BEFORE, AFTER)])
    on = {
        name: _moved([one for one in part if one is not None], name)
        for name, part in scored.items()
        if any(one is not None for one in part)
    }
    if not on:
        raise InputError("no text could be scored by both models; are they too long?")
    return Divergence(
        before=models[0].name,
        after=models[1].name,
        full=full,
        on=on,
        left_out=sum(one is None for part in scored.values() for one in part),
        notes=[] if full else [_NOT_FULL],
    )


_NOT_FULL = (
    "the models tell the log-probability of the written token alone, or have other tokens; KL is "
    "known on their own samples only, one way each"
)


def _same_tokens(models: Sequence[Model]) -> bool:
    """Whether two models can be compared token by token, over the whole vocabulary."""
    if not all(isinstance(model, LocalModel) for model in models):
        return False
    one, other = (model.settings.get("tokenizer") for model in models)
    return one == other


def _score(models: Sequence[Model], text: Text, full: bool) -> _Scored | None:
    request = Request(text.prompt, (text.completion,))
    if full:
        try:
            sides = [model.distributions(request) for model in models]  # type: ignore[attr-defined]
        except InputError:
            return None
        (p, tokens), (q, _) = sides
        q = q.to(p.device)
        seen = [float(side.gather(1, tokens[:, None]).double().sum()) for side in (p, q)]
        forward = float((p.exp() * (p - q)).double().sum())
        reverse = float((q.exp() * (q - p)).double().sum())
        return _Scored(len(tokens), seen[0], seen[1], max(forward, 0.0), max(reverse, 0.0))
    replies = [_ask(model, request) for model in models]
    if any(reply.status != "ok" for reply in replies):
        return None
    first, second = (reply.likelihoods[0] for reply in replies)
    return _Scored(max(replies[0].tokens, 1), first, second)


def _ask(model: Model, request: Request) -> Reply:
    (group,) = model.plan([request])
    return model.run([request], group.hints)[0]


def _write(model: Model, texts: Sequence[Text], samples: int, seed: int) -> list[Text]:
    """What a model writes to the prompts of the texts, drawn at temperature 1."""
    requests = [
        Request(
            texts[number % len(texts)].prompt,
            max_tokens=_LONGEST,
            temperature=1.0,
            seed=int.from_bytes(sha256(f"{seed}-{number}".encode()).digest()[:6], "big"),
        )
        for number in range(samples)
    ]
    found = []
    for group in model.plan(requests):
        chosen = [requests[place] for place in group.places]
        for request, reply in zip(chosen, model.run(chosen, group.hints), strict=True):
            if reply.status == "ok" and (reply.text or "").strip():
                found.append(Text(request.prompt, str(reply.text)))
    return found


def _write_logprobs(path: Path, parts: Sequence[Sequence[_Scored | None]]) -> None:
    rows: list[dict[str, Any]] = [
        {"logp_old": one.before, "logp_new": one.after, "source": source, "length": one.tokens}
        for source, part in zip(("old", "new"), parts, strict=True)
        for one in part
        if one is not None
    ]
    if not rows:
        raise InputError("--logprobs: there are no samples to write; add --samples N")
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def _moved(scored: Sequence[_Scored], name: str) -> Moved:
    tokens = np.array([one.tokens for one in scored], float)
    before, after = (np.array([getattr(one, side) for one in scored]) for side in _SIDES)
    forward, reverse = _divergences(scored, name, before - after)
    ones = np.ones(len(tokens))
    return Moved(
        texts=len(scored),
        tokens=int(tokens.sum()),
        kl_forward=ratio(forward, tokens),
        kl_reverse=ratio(reverse, tokens),
        kl_forward_text=ratio(forward, ones),
        kl_reverse_text=ratio(reverse, ones),
        log_ratio=_sure(ratio(before - after, tokens)),
        perplexity_before=_exp(_sure(ratio(-before, tokens))),
        perplexity_after=_exp(_sure(ratio(-after, tokens))),
    )


_SIDES = ("before", "after")


def _divergences(
    scored: Sequence[_Scored], name: str, log_ratio: Floats
) -> tuple[Floats | None, Floats | None]:
    if scored[0].forward is not None:
        both = (np.array([getattr(one, way) for one in scored]) for way in ("forward", "reverse"))
        return next(both), next(both)
    return (log_ratio if name == BEFORE else None), (-log_ratio if name == AFTER else None)


def ratio(sums: Floats | None, counts: Floats) -> Estimate | None:
    """A mean per count with a 95 % interval over texts, which are drawn whole.

    Example:
        >>> ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
        Estimate(value=2.0, low=2.0, high=2.0)
    """
    if sums is None:
        return None
    value = float(sums.sum() / counts.sum())
    many = len(sums)
    if many < 2:
        return Estimate(value=value, low=float("-inf"), high=float("inf"))
    around = sums - value * counts
    error = np.sqrt(many / (many - 1) * (around**2).sum()) / counts.sum()
    reach = float(special.stdtrit(many - 1, 0.975) * error)
    return Estimate(value=value, low=value - reach, high=value + reach)


def _sure(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def _exp(found: Estimate) -> Estimate:
    low, value, high = (float(np.exp(min(x, 700.0))) for x in (found.low, found.value, found.high))
    return Estimate(value=value, low=low, high=high)
