"""Measure what ForgettingCallback costs: the same training with and without it, in turns.

Usage: ``python benchmarks/callback.py MODEL_FOLDER [--steps 100] [--every 100] [--items 200]``

Each round trains twice from the same weights on the same texts, once without and once with the
callback; which goes first alternates. The time of a probe is taken inside the run, too: on a busy
machine the difference of two long runs says less than their parts. The first probe, before
training, is paid once and is told apart. Prints a table; exits with 1 if probes take more than the
bar.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

BARS = {"cpu": 0.05, "cuda": 0.03}
"""Share of the training time that probes may take, on a processor and on a card."""
TASKS = ("atlas_capitals", "atlas_currencies", "atlas_holidays", "atlas_calendar_words")


class Round(NamedTuple):
    """Seconds of one round."""

    without: float
    """Training alone."""
    whole: float
    """Training with probes, without the first."""
    probes: float
    """Of these, the probes."""
    first: float
    """The probe before training."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the cost of ForgettingCallback.")
    parser.add_argument("model", help="a Hugging Face folder, e.g. of `forgetmap fetch-model`")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--suite", default="atlas", help="what is asked")
    parser.add_argument("--items", type=int, default=200, help="questions of a probe")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128, help="of each text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bf16", action="store_true", help="train under autocast")
    how = parser.parse_args()
    warnings.filterwarnings("ignore")  # of transformers
    rounds = [measure(how, number) for number in range(how.rounds)]
    print(
        f"\n{os.cpu_count()} processors, load average at the end {os.getloadavg()[0]:.1f}; "
        f"{how.steps} steps of {how.batch} x {how.tokens} tokens, {how.items} items every "
        f"{how.every} steps\n"
    )
    print("| round | without | with | ratio | probes | their share | first probe |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for number, row in enumerate(rounds, 1):
        print(
            f"| {number} | {row.without:.1f} s | {row.whole:.1f} s "
            f"| {row.whole / row.without:.3f} | {row.probes:.2f} s "
            f"| {share([row]):.1%} | {row.first:.2f} s |"
        )
    found = share(rounds)
    import torch

    bar = BARS["cuda" if torch.cuda.is_available() else "cpu"]
    print(f"\nProbes take {found:.1%} of the training time beside them (bar {bar:.0%}).")
    sys.exit(0 if found <= bar else 1)


def share(rounds: list[Round]) -> float:
    """Time of the probes over the time of the training that they interrupt, in the same run."""
    return sum(row.probes for row in rounds) / sum(row.whole - row.probes for row in rounds)


def measure(how: argparse.Namespace, number: int) -> Round:
    without = whole = probes = first = 0.0
    for watched in (False, True) if number % 2 == 0 else (True, False):
        with tempfile.TemporaryDirectory() as folder:
            callback = timed_callback(how, Path(folder)) if watched else None
            begin = time.perf_counter()
            train(how, Path(folder), callback)
            took = time.perf_counter() - begin
        if callback is None:
            without = took
        else:
            first, *later = callback.took
            probes, whole = sum(later), took - first
        print(f"round {number + 1}: {took:.1f} s", "with" if watched else "without", flush=True)
    return Round(without, whole, probes, first)


def timed_callback(how: argparse.Namespace, folder: Path) -> Any:
    from forgetmap.mitigate.train.callback import ForgettingCallback
    from forgetmap.mitigate.train.probes import Probe

    class Timed(ForgettingCallback):
        took: list[float]

        def _look(self, step: int, control: Any) -> Probe:
            wait()
            begin = time.perf_counter()
            probe = super()._look(step, control)
            wait()
            self.took.append(time.perf_counter() - begin)
            return probe

    callback = Timed(
        how.suite,
        folder / "probes",
        every=how.every,
        tasks=TASKS,
        limit=max(1, how.items // len(TASKS)),
    )
    callback.took = []
    return callback


def wait() -> None:
    """A graphics card works on while Python goes on; its time belongs to what asked for it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def train(how: argparse.Namespace, folder: Path, callback: Any) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

    draw = random.Random(0)
    tokenizer = AutoTokenizer.from_pretrained(how.model)
    rows = []
    for _ in range(how.steps * how.batch):
        tokens = draw.choices(range(1000, len(tokenizer)), k=how.tokens)
        rows.append({"input_ids": tokens, "labels": tokens})
    trainer = Trainer(
        AutoModelForCausalLM.from_pretrained(how.model, dtype=torch.float32),
        TrainingArguments(
            str(folder / "out"),
            max_steps=how.steps,
            per_device_train_batch_size=how.batch,
            learning_rate=1e-6,
            bf16=how.bf16,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    if callback:
        trainer.add_callback(callback.attach(trainer))
    trainer.train()


if __name__ == "__main__":
    main()
