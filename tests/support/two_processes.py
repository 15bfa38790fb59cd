"""One of two processes that train together; started by torchrun from the tests.

torchrun --nproc_per_node 2 two_processes.py BASE FOLDER SUITE train|gather|recipe
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer

import fsdp_on_cpu

ROWS = [{"prompt": f"Question {n}?", "completion": f" {n * 7 % 10}"} for n in range(40)]


def train(base: str, folder: Path, suite: str) -> None:
    """Whole weights in both: the first probes, and both stop once it is over the budget."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from forgetmap.mitigate.train.callback import ForgettingCallback

    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        args=SFTConfig(
            output_dir=str(folder / "model"), max_steps=40, per_device_train_batch_size=4,
            learning_rate=1e-2, use_cpu=True, report_to=[], save_strategy="no", bf16=False,
            gradient_checkpointing=False, dataloader_pin_memory=False,
        ),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=AutoTokenizer.from_pretrained(base),
    )  # fmt: skip
    watch = ForgettingCallback(suite, folder / "probes", every=5, budget=0.01, when_exceeded="stop")
    trainer.add_callback(watch.attach(trainer))
    trainer.train()
    tell(folder, {"step": trainer.state.global_step})


def gather(base: str, folder: Path, suite: str) -> None:
    """Weights sharded by FSDP2, gathered as accelerate does it: scored as the model that it is."""
    from forgetmap.evaluate.run import evaluate
    from forgetmap.mitigate.train.sharded import gathered

    network = AutoModelForCausalLM.from_pretrained(base)
    for layer in network.model.layers:
        fully_shard(layer)
    fully_shard(network)
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    accelerator = SimpleNamespace(
        get_state_dict=lambda model: get_model_state_dict(model, options=whole),
        unwrap_model=lambda model: model,
        is_main_process=torch.distributed.get_rank() == 0,
        device=torch.device("cpu"),
    )
    trainer = SimpleNamespace(
        is_fsdp_enabled=True, is_deepspeed_enabled=False, accelerator=accelerator,
        model_wrapped=network, processing_class=AutoTokenizer.from_pretrained(base),
    )  # fmt: skip
    with gathered(trainer, folder, chat=False) as model:
        if model is not None:
            evaluate(model, suite, folder / "gathered")
    torch.distributed.barrier()
    tell(folder, sizes(network))


def recipe(base: str, folder: Path, suite: str) -> None:
    """A recipe under accelerate's FSDP2, watched; and one that sharded weights cannot follow."""
    from forgetmap.base.errors import InputError
    from forgetmap.mitigate.train.callback import ForgettingCallback
    from forgetmap.mitigate.train.recipes import Materials, PulledBack, Recipe, train

    size = {"steps": 4, "batch": 4, "learning_rate": 1e-2}
    watch = ForgettingCallback(suite, folder / "probes", every=2)
    train(Recipe(**size), base, Materials(ROWS), folder / "model", callbacks=[watch])
    said = ""
    try:
        train(PulledBack(**size), base, Materials(ROWS), folder / "pulled")
    except InputError as error:
        said = str(error)
    tell(folder, {"said": said, **sizes(watch._trainer.model)})


def sizes(network: torch.nn.Module) -> dict[str, int]:
    """How many numbers this process holds, and how many there are."""
    weights = list(network.parameters())
    own = sum(weight.to_local().numel() for weight in weights)
    return {"own": own, "all": sum(weight.numel() for weight in weights)}


def tell(folder: Path, found: dict) -> None:
    rank = torch.distributed.get_rank()
    (folder / f"told-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    base, folder, suite, what = sys.argv[1:]
    if what == "recipe":
        fsdp_on_cpu.allow()  # the trainer's own accelerator then makes the group
    else:
        Accelerator(cpu=True)  # makes the group of processes
    {"train": train, "gather": gather, "recipe": recipe}[what](base, Path(folder), suite)
    torch.distributed.destroy_process_group()
