"""Training in several processes: weights that no process has whole, and what all must know."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.evaluate.models import Running

if TYPE_CHECKING:
    from forgetmap.evaluate.models import Model


def is_sharded(trainer: Any) -> bool:
    """Whether the processes hold parts of the weights: FSDP, or DeepSpeed of any stage.

    ZeRO-1 and ZeRO-2 leave the weights whole, but inside an engine; they go the same way.
    """
    return bool(trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled)


@contextmanager
def gathered(trainer: Any, near: Path, *, chat: bool | None) -> Iterator[Model | None]:
    """The model of a sharded run, written down as a checkpoint would be; removed afterwards.

    Every process has to come here. None where the weights are whole, and in all processes but the
    first. It needs room for one copy of the weights on the disk and beside the training.
    """
    if not is_sharded(trainer):
        yield None
        return
    accelerator = trainer.accelerator
    weights = accelerator.get_state_dict(trainer.model_wrapped)
    if not accelerator.is_main_process:
        yield None
        return
    from forgetmap.evaluate.local import LocalModel

    near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=near, prefix=".gathered-") as folder:
        network = accelerator.unwrap_model(trainer.model_wrapped)
        network.save_pretrained(folder, state_dict=weights)
        del weights
        processing = trainer.processing_class
        getattr(processing, "tokenizer", processing).save_pretrained(folder)
        base, adapter = _names(network, folder)
        with _loading_whole():
            running = Running(device=_device_name(accelerator.device))
            yield LocalModel(base, adapter, running, chat=chat)


def _device_name(device: Any) -> str:
    """A device as `--device` takes it: torch numbers processors too, and there is only one."""
    return str(device) if device.type == "cuda" else str(device.type)


@contextmanager
def _loading_whole() -> Iterator[None]:
    """Let transformers load a model whole, although ZeRO-3 would have it in parts."""
    from transformers.integrations import deepspeed

    known = deepspeed._hf_deepspeed_config_weak_ref
    config = known() if known is not None else None
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        if config is not None:
            deepspeed.set_hf_deepspeed_config(config)


def _names(network: Any, folder: str) -> tuple[str, str | None]:
    """The folder of the model; of an adapter, its base and its folder."""
    configs = getattr(network, "peft_config", None)
    if not configs:
        return folder, None
    return next(iter(configs.values())).base_model_name_or_path, folder


def tell_all(trainer: Any, found: bool, trouble: str | None) -> tuple[bool, str | None]:
    """What the first process found, in all processes; each waits for it."""
    if trainer.args.world_size == 1:
        return found, trouble
    from accelerate.utils import broadcast_object_list

    told: list[Any] = [found, trouble]
    broadcast_object_list(told, from_process=0)
    return told[0], told[1]
