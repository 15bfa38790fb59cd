"""Packed scoring and batched writing on a graphics card, beside transformers alone and lm-eval.

Usage: ``python benchmarks/gpu.py MODEL_FOLDER [--requests REQUESTS.jsonl]``. Where the suite's
packages are not installed, bring the requests along: ``python benchmarks/gpu.py --make FILE``.

Prints tables: items and tokens a second and how busy the card was, by plain batching in
transformers, by lm-eval where it is installed (on the same weights in memory), and packed; then the
agreement with the processor of the same machine, and writing. Loading is not counted, making tokens
is; every road runs once to warm up. ``--device cpu`` tries the script without a card.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring import score_by_lm_eval

if TYPE_CHECKING:
    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.prompts import Request

TASKS = ("atlas_capitals", "atlas_currencies", "atlas_holidays", "atlas_arithmetic")
PLAIN_BATCH = 256
LM_EVAL_BATCH = 64
SEED = 3
WRITTEN = 64
"""Tokens of every written answer."""


def make(path: str) -> None:
    """Write the requests of some tasks of the suite atlas, without and with five examples."""
    from forgetmap.evaluate import suites
    from forgetmap.evaluate.prompts import Asking, make_request

    with Path(path).open("w", encoding="utf-8") as file:
        for task in suites.load("atlas").tasks:
            for question in task.questions() if task.name in TASKS else ():
                for shots in (0, 5):
                    asked = make_request(task, question, Asking(shots=shots))
                    row = {"shots": shots, "prompt": asked.prompt, "options": asked.options}
                    file.write(json.dumps(row) + "\n")


def load(path: str, shots: int, items: int) -> list[Request]:
    """The requests of one kind, or so many of them, drawn by a seed."""
    from forgetmap.evaluate.prompts import Request

    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    found = [
        Request(row["prompt"], tuple(row["options"]))
        for row in rows
        if row["shots"] == shots and row["options"]
    ]
    return random.Random(SEED).sample(found, min(items, len(found)))


def main(given: argparse.Namespace) -> None:
    if given.requests:
        measure(given, given.requests)
        return
    with tempfile.TemporaryDirectory() as place:
        path = str(Path(place) / "requests.jsonl")
        make(path)
        measure(given, path)


def measure(how: argparse.Namespace, path: str) -> None:
    import torch
    import transformers

    from forgetmap.evaluate.local import LocalModel
    from forgetmap.evaluate.models import Running

    folder, device = how.folder, how.device
    name = torch.cuda.get_device_name() if device != "cpu" else "no card"
    print(f"{name}, torch {torch.__version__}, transformers {transformers.__version__}\n")
    models = {
        dtype: LocalModel(folder, None, Running(dtype, device)) for dtype in ("float32", "bfloat16")
    }
    here = LocalModel(folder, None, Running("float32", "cpu"))
    print("| examples | numbers | road | items | items/s | tokens/s | card busy | x plain |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for shots in (0, 5):
        requests = load(path, shots, how.items)
        for dtype, model in models.items():
            score_rows(model, requests, shots, dtype, how)
    print("\n| against the processor, float32 | items | largest difference | answers changed |")
    print("| --- | --- | --- | --- |")
    for shots in (0, 5):
        checked = load(path, shots, how.items)[: how.checked]
        expected = packed(here, checked)
        for dtype, model in models.items():
            print(f"| {shots} examples, {dtype} | {agreement(packed(model, checked), expected)} |")
    print("\n| writing, float32 | texts | tokens/s | card busy | x plain |")
    print("| --- | --- | --- | --- | --- |")
    write_rows(models["float32"], load(path, 5, min(how.items, 512)))


def score_rows(
    model: LocalModel, requests: list[Request], shots: int, dtype: str, how: argparse.Namespace
) -> None:
    rows = how.plain_batch
    roads: dict[str, Callable[[], Any]] = {"plain": lambda: plain(model, requests, rows)}
    if find_spec("lm_eval"):
        theirs = lm_eval_model(model, how.lm_eval_batch)
        roads[f"lm-eval, batch {how.lm_eval_batch}"] = lambda: score_by_lm_eval(theirs, requests)
    roads["packed"] = lambda: packed(model, requests)
    tokens = plain_tokens(model, requests)
    took = {}
    for road, work in roads.items():
        work()
        with busy() as load_of_card:
            start = time.perf_counter()
            work()
            took[road] = time.perf_counter() - start
        speed = len(requests) / took[road]
        cells = (
            *(shots, dtype, road, f"{len(requests):,}", f"{speed:,.0f}"),
            *(f"{tokens / took[road]:,.0f}", f"{load_of_card():.0f} %"),
            f"{took['plain'] / took[road]:.1f}",
        )
        print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def lm_eval_model(model: LocalModel, batch: int = LM_EVAL_BATCH) -> Any:
    """lm-eval's `hf` model around the weights that are loaded already."""
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=model._network, tokenizer=model._tokenizer, batch_size=batch)


def packed(model: LocalModel, requests: list[Request]) -> list[tuple[float, ...]]:
    found: dict[int, tuple[float, ...]] = {}
    for group in model.plan(requests):
        replies = model.run([requests[place] for place in group.places], group.hints)
        for place, reply in zip(group.places, replies, strict=True):
            found[place] = reply.likelihoods
    return [found[place] for place in range(len(requests))]


def rows_of(model: LocalModel, requests: list[Request]) -> list[tuple[tuple[int, ...], int]]:
    """Every option behind its prompt, as a row of its own: (tokens, how many are the option's)."""
    model._choices.clear()
    return [
        ((*choice.context, *option), len(option))
        for choice in model._as_choices(requests)
        for option in choice.options
    ]


def plain_tokens(model: LocalModel, requests: list[Request]) -> int:
    return sum(len(tokens) for tokens, _ in rows_of(model, requests))


def plain(model: LocalModel, requests: list[Request], batch: int = PLAIN_BATCH) -> list[float]:
    """What most scripts do: a row per option, sorted by length, padded, all logits."""
    import torch

    network = model._network
    rows = sorted(rows_of(model, requests), key=lambda row: -len(row[0]))
    found = []
    with torch.inference_mode():
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            width = max(len(tokens) for tokens, _ in part)
            ids = torch.tensor([[*tokens, *[0] * (width - len(tokens))] for tokens, _ in part])
            ids = ids.to(network.device)
            logits = network(input_ids=ids, use_cache=False).logits.float().log_softmax(-1)
            gathered = logits[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
            for row, (tokens, option) in zip(gathered, part, strict=True):
                found.append(float(row[len(tokens) - 1 - option : len(tokens) - 1].sum()))
    return found


def agreement(found: list[tuple[float, ...]], expected: list[tuple[float, ...]]) -> str:
    pairs = list(zip(found, expected, strict=True))
    difference = max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))
    changed = sum(one.index(max(one)) != other.index(max(other)) for one, other in pairs)
    return f"{len(pairs):,} | {difference:.1e} | {changed}"


def write_rows(model: LocalModel, requests: list[Request]) -> None:
    import torch

    from forgetmap.evaluate.prompts import Request

    asked = [Request(request.prompt, max_tokens=WRITTEN) for request in requests]
    network, tokenizer = model._network, model._tokenizer

    def ours() -> int:
        groups = model.plan(asked)
        replies = [
            reply
            for group in groups
            for reply in model.run([asked[place] for place in group.places], group.hints)
        ]
        return sum(reply.tokens for reply in replies)

    def theirs() -> int:
        tokenizer.padding_side = "left"
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        made = 0
        for start in range(0, len(asked), PLAIN_BATCH):
            texts = [str(request.prompt) for request in asked[start : start + PLAIN_BATCH]]
            batch = tokenizer(texts, return_tensors="pt", padding=True).to(network.device)
            with torch.inference_mode():
                out = network.generate(**batch, max_new_tokens=WRITTEN, do_sample=False)
            new = out[:, batch["input_ids"].shape[1] :]
            made += int((new != tokenizer.pad_token_id).sum())
        return made

    took = {}
    for road, work in {"plain": theirs, "forgetmap": ours}.items():
        work()
        with busy() as load_of_card:
            start = time.perf_counter()
            made = work()
            took[road] = made / (time.perf_counter() - start)
        ratio = took[road] / took["plain"]
        print(
            f"| {road} | {len(asked)} | {took[road]:,.0f} | {load_of_card():.0f} % | {ratio:.1f} |"
        )


@contextmanager
def busy() -> Iterator[Callable[[], float]]:
    """Watch how busy the card is, in percent of the time, as nvidia-smi tells it."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not over.is_set() and shutil.which(command[0]):
            told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            seen.extend(float(line) for line in told.split()[:1])
            over.wait(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: sum(seen) / len(seen) if seen else float("nan")
    finally:
        over.set()
        watcher.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure packed scoring on a card.")
    parser.add_argument("folder", nargs="?", help="a Hugging Face folder")
    parser.add_argument("--requests", metavar="FILE")
    parser.add_argument("--make", metavar="FILE", help="only write the requests")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--items", type=int, default=10**9, help="questions of each kind, at most")
    parser.add_argument("--plain-batch", type=int, default=PLAIN_BATCH, help="rows of a batch")
    parser.add_argument("--lm-eval-batch", type=int, default=LM_EVAL_BATCH)
    parser.add_argument("--checked", type=int, default=400, help="items for the processor, too")
    given = parser.parse_args()
    if given.make:
        make(given.make)
    elif given.folder:
        main(given)
    else:
        parser.error("give a model folder, or --make FILE")
