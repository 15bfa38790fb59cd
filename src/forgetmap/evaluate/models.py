"""Models by one name each: a folder, an adapter, a GGUF file, an endpoint, a class of lm-eval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from forgetmap.base.errors import InputError
from forgetmap.base.likelihoods import Spoken
from forgetmap.evaluate.prompts import Request

DTYPES = ("auto", "float32", "bfloat16", "float16")
QUANTIZED = ("8bit", "4bit")
BACKENDS = ("hf", "vllm")
PARALLEL = "parallel"
"""The device that stands for the processes that torchrun started, each with a part of the model."""
ATTENTION = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")
BF16_WARNING = (
    "scored in {dtype}: of 1,000 items 3.5 % changed their best option against float32 with "
    "SmolLM2-135M in bfloat16 (benchmarks/scoring.py --dtype bfloat16); flips with less than about "
    "0.2 nats between the two best options are noise"
)
"""The figures are those of docs/explanation/fast-scoring.md, made by the command it names."""


@dataclass(frozen=True, slots=True)
class Running:
    """Which model is run, and how.

    Only the revision, quantised weights and code of the model's own change answers in float32.
    """

    dtype: str = "auto"
    """`auto`: float32 on a processor, bfloat16 on graphics cards."""
    device: str | None = None
    """`cpu`, `cuda`, `cuda:1`, `mps`; `auto` spreads a model over all cards; `parallel` splits each
    layer over processes; by default a graphics card where there is one."""
    batch: int | None = None
    """Items in a batch, or requests under way at an endpoint; by default what fits."""
    revision: str | None = None
    """A branch, tag or commit of a hub id; for a served model any name of the weights behind it."""
    quantize: str | None = None
    """`8bit` or `4bit`, by bitsandbytes."""
    max_memory: str | None = None
    """For `auto`: `20GiB` of each card, or `0=20GiB,cpu=60GiB`."""
    attention: str | None = None
    """How transformers computes attention; by default as it sees fit."""
    trust_code: bool = False
    """Whether code that lies beside the weights may run."""
    backend: str = "hf"
    """What runs a local model: `hf` for transformers, or `vllm`."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(f"--dtype {self.dtype}: must be one of {', '.join(DTYPES)}")
        if self.backend not in BACKENDS:
            raise InputError(
                f"--backend {self.backend}: must be one of {', '.join(BACKENDS)}; a server is "
                "named by its address instead: http://host:8000/v1#name"
            )
        if self.batch is not None and self.batch < 1:
            raise InputError(f"--batch {self.batch}: must be at least 1, or auto")
        if self.quantize not in (None, *QUANTIZED):
            raise InputError(f"--quantize {self.quantize}: must be one of {', '.join(QUANTIZED)}")
        if self.attention not in (None, *ATTENTION):
            raise InputError(f"--attention {self.attention}: must be one of {', '.join(ATTENTION)}")
        if self.device == PARALLEL:
            self._check_parallel()

    def _check_parallel(self) -> None:
        """Refuse what cannot be had of a model that is split over processes."""
        if self.backend != "hf":
            raise InputError(
                f"--device {PARALLEL}: is for transformers; vLLM splits a model over all cards by "
                "itself with --device auto"
            )
        if self.quantize:
            raise InputError(f"--quantize: needs --device auto, not {PARALLEL}")
        if self.max_memory:
            raise InputError(f"--max-memory: needs --device auto, not {PARALLEL}")

    def check_served(self, name: str) -> None:
        """Refuse what only a model in this process can be told."""
        given = ("quantize", "max_memory", "attention", "trust_code")
        if self.backend != "hf":
            raise InputError(f"--backend: is for models that are loaded here; {name} is not")
        if told := [f"--{one.replace('_', '-')}" for one in given if getattr(self, one)]:
            raise InputError(f"{told[0]}: is for models that are loaded here; {name} is not")
        if self.device == PARALLEL:
            raise InputError(
                f"--device {PARALLEL}: is for models that are loaded here; {name} is not"
            )


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one request."""

    status: str = "ok"
    """`error` where no reply can be had, `failed` where none came, `down` where none came to many
    attempts; the note says why."""
    likelihoods: tuple[float, ...] = ()
    """One per option."""
    text: str | None = None
    finished: bool = True
    """False for a text that was cut off at its limit."""
    tokens: int = 0
    """Written, or scored."""
    note: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether asking again may help."""
        return self.status in ("failed", "down")


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Requests that are run together."""

    places: tuple[int, ...]
    """In the list that was planned."""
    hints: dict[str, Any] = field(default_factory=dict)
    """What the model that made the plan wants to know when it runs the group."""


class Model(Protocol):
    """What can be evaluated."""

    name: str
    fingerprint: str
    """Same for the same weights and tokenizer, wherever they lie."""
    settings: dict[str, Any]
    """What the comparability panel should know."""
    warnings: list[str]
    is_chat: bool
    """Whether prompts go through a chat template."""

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Put the requests of one task into groups; from the whole list alone, always the same."""

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:
        """Answer one group."""


@runtime_checkable
class Streaming(Protocol):
    """A model whose replies come one by one, whatever they were planned with."""

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer requests in any order: the place of each one, and its reply."""


@runtime_checkable
class Changeable(Protocol):
    """A model that somebody else may change while it is asked."""

    def check_unchanged(self) -> None:
        """Raise an InputError if it is not the model that was opened."""

    def voice(self) -> tuple[Spoken, ...]:
        """What it writes behind a fixed text, by which it is known again; nothing if unknown."""


@runtime_checkable
class Sharing(Protocol):
    """A model that can take over weights."""

    def share(self, before: Model) -> None:
        """Take what was loaded for the model before, once that one is done, where it fits."""


def open_model(name: str, how: Running | None = None, *, chat: bool | None = False) -> Model:
    """Find out what a model's name means; weights are loaded when they are first needed.

    A name is a Hugging Face folder or id; `BASE+ADAPTER`; a GGUF file; `http://host/v1#model`; or
    `lm-eval:CLASS:ARGUMENTS`. With `chat`, prompts go through the chat template; with None they do
    where the model has one.
    """
    how = how or Running()
    served = name.startswith(("http://", "https://", "lm-eval:"))
    if served and chat is None:
        raise InputError(f"{name}: whether it has a chat template is not known; say --chat or not")
    if served:
        how.check_served(name)
    if name.startswith("lm-eval:"):
        from forgetmap.evaluate.harness import HarnessModel

        return HarnessModel(name, how, chat=bool(chat))
    if served:
        from forgetmap.evaluate.endpoint import EndpointModel

        return EndpointModel(name, how, chat=bool(chat))
    base, _, adapter = name.partition("+")
    if Path(name).exists():  # a folder may have a + in its name
        base, adapter = name, ""
    if how.backend == "vllm":
        from forgetmap.evaluate.vllm_engine import VllmModel

        return VllmModel(base, adapter or None, how, chat=chat)
    from forgetmap.evaluate.local import LocalModel

    return LocalModel(base, adapter or None, how, chat=chat)


def open_after(
    before: Model, name: str, how: Running | None = None, *, chat: bool | None = False
) -> Model:
    """Open the second of two models; weights that both have are loaded once.

    Afterwards ask the model before to its end, and then this one.
    """
    after = open_model(name, how, chat=chat)
    if isinstance(after, Sharing):
        after.share(before)
    return after


def plain_groups(count: int, size: int) -> list[RequestGroup]:
    """Groups of a fixed size in the order of the list.

    Example:
        >>> [group.places for group in plain_groups(3, 2)]
        [(0, 1), (2,)]
    """
    return [
        RequestGroup(tuple(range(start, min(start + size, count))))
        for start in range(0, count, size)
    ]
