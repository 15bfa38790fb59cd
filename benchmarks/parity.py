"""Measure how far the ways to run one model are apart: same weights, same items, other roads.

Usage: ``python benchmarks/parity.py MODEL.gguf [--card] [--items 500] [--out benchmarks/parity]``

Items of the suite `atlas` with four options. The reference is float32 in this process, with the
GGUF file converted to a folder. Every other road is compared with it: the largest difference and
the median difference between two log-likelihoods of one option, and the items whose best option is
another one. llama.cpp's server reads the file itself (needs `xllamacpp`); 8 bits need
`bitsandbytes`. With `--card` the roads are those of a graphics card; the reference stays the
processor. A road that cannot be run is named as not run.

Writes ``OUT.json``, a road at a time: the same command again measures what is missing. The table
goes into ``OUT.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring import TASKS, load_tasks

if TYPE_CHECKING:
    from forgetmap.evaluate.prompts import Request

SMALL_MEMORY = "cpu=300MB"
"""Less than SmolLM2 in float32 takes, so that a part of it lies on the disk until it is needed."""
SMALL_CARD = "0=300MB,cpu=8GB"
"""The same on a card: a part of it waits in memory."""
Tasks = list[list["Request"]]
Road = Callable[[Tasks], list[tuple[float, ...]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--card", action="store_true", help="the roads of a graphics card")
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/parity"))
    given = parser.parse_args()
    from forgetmap.evaluate.convert import convert_gguf

    tasks = load_tasks(TASKS, 0, given.items)
    kept = given.out.with_suffix(".json")
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    with tempfile.TemporaryDirectory() as place:
        folder = str(convert_gguf(given.gguf, Path(place) / "folder"))
        reference: list[tuple[float, ...]] = []
        asked = on_card(folder) if given.card else roads(folder, given.gguf)
        for name, road in asked.items():
            if found.get(name, {}).get("items") == given.items:
                continue
            reference = reference or local(folder)(tasks)
            found[name] = measured(road, tasks, reference)
            print(name, found[name], flush=True)
            kept.write_text(json.dumps(found, indent=2) + "\n")
    given.out.with_suffix(".md").write_text(page(found))
    print(page(found))


def roads(folder: str, gguf: Path) -> dict[str, Road]:
    """Every way to score the options, by name."""
    return {
        "float32, batches of 7": local(folder, batch=7),
        "float32, eager attention": local(folder, attention="eager"),
        "float32, split by accelerate": local(folder, device="auto", max_memory=SMALL_MEMORY),
        "float32, two processes": lambda tasks: on_two(folder, tasks),
        "float32, tensor parallel, two processes": lambda tasks: by_parts(folder, tasks),
        "bfloat16": local(folder, dtype="bfloat16"),
        "llama.cpp server, 4-bit file": lambda tasks: by_llama(gguf, tasks),
        "8 bits (bitsandbytes)": local(folder, quantize="8bit"),
        "8 bits, transformers alone": lambda tasks: in_transformers(folder, tasks),
    }


def on_card(folder: str) -> dict[str, Road]:
    """The ways that need a graphics card, by name."""
    return {
        "card, float32": local(folder, device="cuda"),
        "card, float32, split by accelerate": local(folder, device="auto", max_memory=SMALL_CARD),
        "card, bfloat16": local(folder, device="cuda", dtype="bfloat16"),
        "card, 8 bits (bitsandbytes)": local(folder, device="cuda", quantize="8bit"),
        "card, 8 bits, transformers alone": lambda tasks: in_transformers(folder, tasks),
        "card, 4 bits (bitsandbytes)": local(folder, device="cuda", quantize="4bit"),
    }


def local(folder: str, **how: Any) -> Road:
    """Score in this process."""

    def score(tasks: Tasks) -> list[tuple[float, ...]]:
        from forgetmap.evaluate.local import LocalModel
        from forgetmap.evaluate.models import Running
        from forgetmap.evaluate.parity import likelihoods

        model = LocalModel(folder, None, Running(**{"dtype": "float32", "device": "cpu"} | how))
        return [one for part in tasks for one in likelihoods(model, part)]

    return score


def in_transformers(folder: str, tasks: Tasks) -> list[tuple[float, ...]]:
    """Score 8-bit weights without forgetmap, one option at a time: whose are the differences?

    The weights lie on a card where there is one.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    how = {"dtype": torch.float32, "quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    model = AutoModelForCausalLM.from_pretrained(folder, **how)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def likelihood(prompt: str, option: str) -> float:
        start, tokens = len(tokenizer(prompt).input_ids), tokenizer(prompt + option).input_ids
        with torch.inference_mode():
            given = torch.tensor([tokens], device=model.device)
            found = model(given).logits[0].float().log_softmax(-1).cpu()
        return sum(float(found[i - 1, tokens[i]]) for i in range(start, len(tokens)))

    return [
        tuple(likelihood(request.prompt, option) for option in request.options)
        for part in tasks
        for request in part
    ]


def by_llama(gguf: Path, tasks: Tasks) -> list[tuple[float, ...]]:
    """Have llama.cpp's own server score the options, one request at a time."""
    from forgetmap.evaluate.models import Running, open_model
    from forgetmap.evaluate.parity import likelihoods

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("llama_server.py")
    words = [sys.executable, str(script), str(gguf), str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(120):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
                break
            time.sleep(0.5)
        model = open_model(f"http://127.0.0.1:{port}/v1#{gguf}", Running(batch=1))
        return [one for part in tasks for one in likelihoods(model, part)]
    finally:
        server.terminate()
        server.wait(30)


def on_two(folder: str, tasks: Tasks) -> list[tuple[float, ...]]:
    """Score in two processes of a Ray cluster on this machine."""
    from forgetmap.evaluate.executor import Job, OnRay
    from forgetmap.evaluate.models import Running, open_model

    how = Running("float32", "cpu")
    model = open_model(folder, how)
    found: dict[str, tuple[float, ...]] = {}
    jobs = [
        Job(
            tuple(f"{number} {place}" for place in group.places),
            tuple(part[place] for place in group.places),
            group.hints,
        )
        for number, part in enumerate(tasks)
        for group in model.plan(part)
    ]
    for job, replies in OnRay(folder, how, False, 2)(model, jobs):
        found |= zip(job.keys, (reply.likelihoods for reply in replies), strict=True)
    return [
        found[f"{number} {place}"]
        for number, part in enumerate(tasks)
        for place in range(len(part))
    ]


def by_parts(folder: str, tasks: Tasks) -> list[tuple[float, ...]]:
    """Score in two processes that hold a part of every layer each, on processors by gloo."""
    script = Path(__file__).with_name("parallel_job.py")
    count = str(sum(map(len, tasks)))
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "found.json"
        words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([*words, str(script), folder, count, str(out)], check=True, env=environment)
        return [tuple(one) for one in json.loads(out.read_text())]


def measured(road: Road, tasks: Tasks, reference: list[tuple[float, ...]]) -> dict[str, Any]:
    from forgetmap.base.errors import InputError
    from forgetmap.evaluate.parity import parity

    start = time.monotonic()
    try:
        found = parity(reference, road(tasks))
    except InputError as error:
        return {"not run": str(error)}
    seconds = round(time.monotonic() - start, 1)
    return asdict(found) | {"verdict": found.verdict, "seconds": seconds}


WITHIN = "within 8 bits"


def is_within_eight_bits(name: str, found: dict[str, Any]) -> bool:
    """Whether a road in 8 bits is no further from float32 than transformers alone in 8 bits."""
    alone = found.get(f"{name.removesuffix(' (bitsandbytes)')}, transformers alone", {})
    if not name.endswith("8 bits (bitsandbytes)") or "changed" not in alone:
        return False
    return all(found[name][part] <= alone[part] for part in ("apart", "middle", "changed"))


def page(found: dict[str, Any]) -> str:
    lines = [
        "# Parity of the ways to run a model",
        "",
        "SmolLM2-135M-Instruct (Q4_1 GGUF), items of `atlas` with four options, each road against",
        "float32 in one process on a processor with the same weights as a folder. Made by",
        "`python benchmarks/parity.py MODEL.gguf` (`--card` adds rows of a card). Each row is one",
        "run, and rows without a verdict are of an earlier one.",
        "llama.cpp reads the file itself and rounds activations to 8 bits. The verdict is that of",
        "`forgetmap doctor --backend`: `same` up to 0.001 nats, `close` while the median and every",
        'changed answer\'s lead stay within 0.5. "Transformers alone" scores one option at a time,',
        "without forgetmap: it shows whose the differences of 8 bits are. So 8 bits have their own",
        f"tolerance: `{WITHIN}` is no further from float32 than transformers alone is in 8 bits,",
        "by the largest difference, the median and the changed answers.",
        "",
        "| road | items | largest difference of log-likelihoods, nats | median | changed answers | "
        "largest lead of a changed one, nats | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, row in found.items():
        if "changed" not in row:
            lines.append(f"| {name} | not run: {row['not run']} | | | | | |")
            continue
        lead = f"{row['lead']:.2f}" if row["changed"] else "-"
        middle = f"{row['middle']:.2g}" if "middle" in row else "-"
        verdict = WITHIN if is_within_eight_bits(name, found) else row.get("verdict", "-")
        cells = (name, f"{row['items']:,}", f"{row['apart']:.2g}", middle, row["changed"], lead)
        lines.append(f"| {' | '.join(map(str, cells))} | {verdict} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
