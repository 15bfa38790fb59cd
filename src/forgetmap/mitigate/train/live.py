"""A network in the middle of its training, scored as if it had been saved and loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing
from forgetmap.evaluate.describe import tokenizer_hash
from forgetmap.evaluate.local import LocalModel, fold_batches
from forgetmap.evaluate.models import Running

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from forgetmap.evaluate.local import Made


class LiveModel(LocalModel):
    """A network that is in memory already, as `still` hands it out.

    Make a new one whenever the weights have changed: it keeps what it computed for the beginning
    that items share. `tokens` is what `live_tokenizer_hash` says of the tokenizer. What does not
    change as weights do is kept from one probe to the next: items as tokens (`made`), and whether
    options can be packed (`packs`).
    """

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        chat: bool | None,
        tokens: str,
        made: Made,
        packs: bool | None = None,
    ) -> None:
        if chat and not tokenizer.chat_template:
            raise InputError("the tokenizer has no chat template; ask with Asking(chat=False)")
        # These take the place of what a LocalModel loads when it is first needed.
        self._network, self._tokenizer = network, tokenizer
        self._config = network.config.get_text_config()
        self._device = str(network.device)
        if self._kind not in ("cpu", "cuda"):
            raise InputError(f"a model on {self._device} cannot be scored; train on cpu or cuda")
        how = Running(dtype=str(network.dtype).removeprefix("torch."), device=self._device)
        self._set_up(name, how, chat, weights=name, tokens=tokens)
        self._choices, self._packs = made, packs
        self.settings["weights"] = None  # to hash them at each probe would cost more than to score

    @property
    def packs(self) -> bool | None:
        """Whether options can be packed; nothing where none was asked."""
        return self._packs


def live_tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """The hash that `forgetmap eval` will give to this tokenizer once it is saved."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return tokenizer_hash(Path(folder))


@contextmanager
def still(network: Any, *, adapter: bool = True) -> Iterator[Any]:
    """Hold a network still while it is scored; afterwards training goes on as if nothing had been.

    Dropout is off, adapters are merged as they are when a saved one is evaluated (or left out, with
    `adapter=False`), the autocast that a trainer wraps around the network is taken off. Modes,
    weights, what asks for gradients and the state of the random numbers are put back as they were.
    """
    import torch

    device = network.device
    modes = [(module, module.training) for module in network.modules()]
    asking = [(weight, weight.requires_grad) for weight in network.parameters()]
    wrapped = network.__dict__.get("forward")
    whole: AbstractContextManager[Any] = _merged(network) if adapter else network.disable_adapter()
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.no_grad(), whole:
        network.eval()
        fold_batches(network)
        if "_original_forward" in network.__dict__:
            network.forward = network._original_forward
        try:
            yield network.get_base_model() if hasattr(network, "get_base_model") else network
        finally:
            if wrapped is not None:
                network.forward = wrapped
            for module, training in modes:
                module.training = training
            for weight, asked in asking:
                weight.requires_grad = asked


@contextmanager
def _merged(network: Any) -> Iterator[None]:
    """Merge adapters into copies of the weights; subtracting them again would not be exact."""
    # Quantised weights cannot be merged without loss: they are scored with the adapter beside them.
    if not hasattr(network, "peft_config") or getattr(network, "is_quantized", False):
        yield
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in network.modules() if isinstance(module, BaseTunerLayer)]
    if not layers:
        raise InputError("adapters that are prompts cannot be scored here; use LoRA or its kin")
    weights = {weight for layer in layers for weight in layer.get_base_layer().parameters()}
    kept = [(weight, weight.data) for weight in weights]
    try:
        for weight, data in kept:
            weight.data = data.clone()
        for layer in layers:
            layer.merge()
        yield
    finally:
        for layer in layers:
            layer.unmerge()
        for weight, data in kept:
            weight.data = data


def save_trained(network: Any, path: Path) -> None:
    """Write the weights that are trained: with an adapter, the adapter alone."""
    from safetensors.torch import save_file

    trained = {
        name: weight.detach().contiguous()
        for name, weight in network.named_parameters()
        if weight.requires_grad
    }
    with replacing(path) as temporary:
        save_file(trained, temporary)


def load_trained(network: Any, path: Path) -> None:
    """Put weights back that `save_trained` wrote."""
    import torch
    from safetensors.torch import load_file

    trained = load_file(path)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name in trained:
                weight.copy_(trained[name])


def lower_rate(optimizer: Any, schedule: Any, factor: float) -> None:
    """Multiply the learning rate by a factor, now and in all that the schedule has in store.

    A schedule that computes the rate from the first one keeps its form.
    """
    for group in optimizer.param_groups:
        group["lr"] *= factor
    if hasattr(schedule, "base_lrs"):
        schedule.base_lrs = [rate * factor for rate in schedule.base_lrs]
    schedule._last_lr = [group["lr"] for group in optimizer.param_groups]  # what trainers log
