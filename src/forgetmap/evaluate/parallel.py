"""One model in several processes, each with a part of every layer: tensor parallel.

torchrun starts the processes. The first one leads: it alone reads what is kept, plans, writes and
prints, as a run in one process does. Before each step with the model it tells the others which one,
and they take it too. So all are in step, whatever an earlier run has left.

If one of them fails, the others would wait for it for ever. Whoever fails first says so in one line
and ends; torchrun ends the rest.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief
from forgetmap.evaluate.models import PARALLEL, Running

if TYPE_CHECKING:
    from forgetmap.evaluate.generation import Opening
    from forgetmap.evaluate.scoring import Choice

T = TypeVar("T")
_PATIENCE = timedelta(days=7)
"""The others wait while the first one loads questions or writes; that may take long."""
_KEPT = "finished answers are kept, run the same command again"
_GONE = ("Connection closed", "Connection reset", "Broken pipe")
"""What gloo says where the process at the other end is no more."""
_GATHERED = {"colwise": "colwise_gather_output", "rowwise": "rowwise_split_input"}
"""Ways to split a layer that leave its output whole, for those that do so by heads."""
_NOT_BY_HEADS = {
    *_GATHERED.values(),
    "colwise_rep",
    "rowwise_rep",
    "replicated_with_grad_allreduce",
}


# --- the processes --------------------------------------------------------------------------------


@dataclass
class Crew:
    """The processes that hold one model together."""

    rank: int
    size: int
    store: Any
    """A small table that all of them read and write, kept by torchrun."""
    group: Any
    """The way on which they talk; on processors, so that waiting has no limit set for cards."""
    at_work: bool = False
    """Whether a step was begun and not finished: then the others wait inside the model."""
    held: Callable[[], Any] = lambda: None
    """The part of the model that is loaded now, while it lives."""

    def broadcast(self, thing: T) -> T:
        """What the first process has, in all of them; the others give anything."""
        from torch.distributed import broadcast_object_list

        told = [thing]
        broadcast_object_list(told, src=0, group=self.group)
        return told[0]

    def load(self, load: Callable[[], T], *what: object) -> T:
        """Have the others load their parts of a model, and load the own one."""
        with self._one_voice():
            self.broadcast(("load", what))
            network = self.all_or_none(load)
        self.held = weakref.ref(network)
        return network

    @contextmanager
    def step(self, network: object, name: str, *what: object) -> Iterator[None]:
        """Have the others take a step with the model; the first one takes it inside of this."""
        if self.held() is not network:  # or parts of two models would answer together
            raise InputError(f"--device {PARALLEL}: ask one model to its end, then open the next")
        self.at_work = True
        with self._one_voice():
            self.broadcast((name, what))
            yield
        self.at_work = False

    @contextmanager
    def _one_voice(self) -> Iterator[None]:
        """Let an error of the first process through, unless another one has told its own."""
        try:
            yield
        except Exception as error:
            if not self.speaks():
                os._exit(2)
            if told := _in_words(error):
                raise InputError(f"{told}; {_KEPT}") from error
            raise

    def speaks(self) -> bool:
        """Whether this process is the first to fail: the error of the others comes from its own."""
        try:
            first: bytes = self.store.compare_set("forgetmap failed", "", str(self.rank))
        except Exception:  # torchrun is gone, and with it all who could have said it
            return self.rank == 0
        return first == str(self.rank).encode()

    def fail(self, error: BaseException) -> NoReturn:
        """End a process that follows; at once, as tidying up would wait for the others."""
        if isinstance(error, Exception) and self.speaks():
            told = _in_words(error) or brief(error)
            line = f"forgetmap: process {self.rank} of {self.size}: {told}; {_KEPT}"
            print(line, file=sys.stderr, flush=True)
        os._exit(2)

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Do what may go wrong in one process alone, such as reading a file; then it has in all."""
        from torch.distributed import all_gather_object

        done, trouble = None, None
        try:
            done = work()
        except InputError as error:
            trouble = str(error)
        told: list[str | None] = [None] * self.size
        all_gather_object(told, trouble, group=self.group)
        for rank, one in enumerate(told):
            if one is not None:
                raise InputError(one if rank == 0 else f"process {rank} of {self.size}: {one}")
        return done  # type: ignore[return-value]


_crew: Crew | None = None


def crew() -> Crew:
    """The processes that this one belongs to.

    Raises:
        InputError: If it belongs to none, which says how to start them.
    """
    if _crew is None and is_launched():
        raise InputError(f"--device {PARALLEL}: is for forgetmap eval; choose another device")
    if _crew is None:
        raise InputError(
            f"--device {PARALLEL}: start one process for each card: torchrun --nproc-per-node "
            f"{_cards() or 2} -m forgetmap eval MODEL ... --device {PARALLEL}"
        )
    return _crew


def is_launched() -> bool:
    """Whether torchrun, or what does its work, started this process."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()


@contextmanager
def together(device: str | None) -> Iterator[bool]:
    """Join the processes that torchrun started for one model; whether this one leads them.

    One that does not lead helps until the first one is done, and then has nothing left to do.

    Example:
        >>> with together("cpu") as leads:
        ...     leads
        True
    """
    global _crew
    if device != PARALLEL:
        yield True
        return
    _crew = _join() if is_launched() else None
    joined = crew()
    try:
        if joined.rank:
            _follow(joined)
            yield False
        else:
            yield from _lead(joined)
    finally:
        _crew = None
    from torch.distributed import destroy_process_group

    destroy_process_group()  # not after an error, as it would wait for the others


def _lead(joined: Crew) -> Iterator[bool]:
    try:
        joined.all_or_none(_bind_card)
        yield True
    except BaseException:
        # In the middle of a step the others wait inside the model and would not hear it.
        if joined.speaks() and not joined.at_work:
            with suppress(Exception):  # they may be gone, which is told already
                joined.broadcast(None)
        raise
    joined.broadcast(None)


def _follow(joined: Crew) -> None:
    """Take every step that the first process takes, until it says that it is done."""
    part = _Part(joined)
    try:
        with warnings.catch_warnings(action="ignore"):  # the first one warns
            with suppress(InputError):  # and says this
                joined.all_or_none(_bind_card)
            while (told := joined.broadcast(None)) is not None:
                name, what = told
                getattr(part, name)(*what)
    except BaseException as error:
        joined.fail(error)


def _join() -> Crew:
    try:
        import torch.distributed as dist
        from torch.distributed.rendezvous import rendezvous
    except ImportError as error:
        raise need(f"--device {PARALLEL}", "eval") from error
    try:
        store, rank, size = next(rendezvous("env://"))
    except (ValueError, RuntimeError) as error:
        raise InputError(
            f"--device {PARALLEL}: the processes do not find each other ({brief(error)}); start "
            "them with torchrun"
        ) from error
    if size == 1:
        raise InputError(
            f"--device {PARALLEL}: one process cannot share a model; give torchrun "
            "--nproc-per-node 2 or more, or leave --device out"
        )
    backend = "cpu:gloo,cuda:nccl" if _cards() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
    return Crew(rank, size, store, dist.new_group(backend="gloo", timeout=_PATIENCE))


def _bind_card() -> None:
    """Give each process of a machine a card of its own."""
    import torch

    own, cards = int(os.environ.get("LOCAL_RANK", 0)), _cards()
    if cards and own >= cards:
        raise InputError(
            f"--device {PARALLEL}: this machine has {cards} cards and more processes; start as "
            f"many with --nproc-per-node {cards}"
        )
    if cards:
        torch.cuda.set_device(own)


def _cards() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def _in_words(error: Exception) -> str | None:
    """What a run meets now and then; None for all else."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        # Half of a batch could be tried, but the others wait inside the whole one.
        return "the memory of a card ran out; try a smaller --batch"
    if any(words in str(error) for words in _GONE):
        return "another process of this run ended without a word; was it killed for its memory?"
    return None


# --- the model ------------------------------------------------------------------------------------


class _Part:
    """What a process that follows has of the model; its methods are the steps."""

    def __init__(self, joined: Crew) -> None:
        self._crew = joined
        self._network: Any = None
        self._scorer: Any = None
        self._writer: Any = None

    def load(self, base: Path, how: Running, dtype: str) -> None:
        """Read the own part of a model; the one before makes room first."""
        from forgetmap.evaluate.loading import load_network

        self._network = self._scorer = self._writer = None
        self._where = base, how
        with suppress(InputError):  # the first one says it
            self._network = self._crew.all_or_none(
                lambda: load_network(base, None, how, PARALLEL, dtype)
            )

    def probe(self, packs: bool | None) -> None:
        """Try whether options can be packed, which asks the model."""
        from forgetmap.evaluate.scoring import PackedScorer

        self._scorer = PackedScorer(self._network, packs=packs)

    def score(self, choices: Sequence[Choice], shared: int, packs: bool) -> None:
        """Score a batch."""
        self._scorer.packs = packs  # as the first one found
        self._scorer.score(choices, shared)

    def write(self, openings: Sequence[Opening]) -> None:
        """Continue a batch of texts."""
        from forgetmap.evaluate.generation import Writer
        from forgetmap.evaluate.loading import load_tokenizer

        if self._writer is None:
            tokenizer = load_tokenizer(*self._where)
            self._writer = Writer(self._network, tokenizer, agree=self._crew.broadcast)
        self._writer.write(openings)


def check_shareable(base: str, adapter: str | None) -> None:
    """Refuse what cannot be split over processes, before anything of it is read."""
    if adapter:
        raise InputError(
            f"{base}+{adapter}: --device {PARALLEL} takes no adapters; merge it into the weights "
            "and save them as one model, or choose --device auto"
        )
    if Path(base).suffix == ".gguf":
        raise InputError(
            f"{base}: --device {PARALLEL} takes folders of transformers, no GGUF files; choose "
            "another device"
        )


def split(base: Path, config: Any, how: Running) -> dict[str, Any]:
    """What has transformers load the part of this process alone."""
    plan = _plan(base, config, how)
    try:
        from transformers.distributed import DistributedConfig

        return {"distributed_config": DistributedConfig(tp_size=crew().size, tp_plan=plan)}
    except (ImportError, TypeError) as error:  # older ones have no such class, or without a plan
        raise InputError(
            f"--device {PARALLEL}: needs a newer transformers; install with: pip install -U "
            "transformers"
        ) from error


def _plan(base: Path, config: Any, how: Running) -> dict[str, str]:
    """How each layer is split, as transformers has it for this kind of model."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):  # the names of its layers are wanted, no weights
        bare = AutoModelForCausalLM.from_config(config, trust_remote_code=how.trust_code)
    plan: dict[str, str] = dict(getattr(bare, "tp_plan", None) or {})
    if not plan:
        raise InputError(
            f"{base}: transformers has no plan how to split a {type(bare).__name__} "
            f"(tp_plan); choose --device auto"
        )
    text = config.get_text_config()
    heads = [getattr(text, f"num_{kind}_heads", None) for kind in ("attention", "key_value")]
    if all(isinstance(one, int) and one % crew().size == 0 for one in heads if one is not None):
        return plan
    return {name: _without_heads(base, name, style) for name, style in plan.items()}


def _without_heads(base: Path, name: str, style: str) -> str:
    """Split the weights around attention, and compute the heads, which do not divide, in each."""
    if "attn" not in name and "attention" not in name:
        return style
    if style not in _GATHERED and style not in _NOT_BY_HEADS:
        raise InputError(
            f"{base}: its heads cannot be divided by {crew().size} processes; start as many as "
            "divide them, or choose --device auto"
        )
    return _GATHERED.get(style, style)
