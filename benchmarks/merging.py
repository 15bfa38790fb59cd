"""Merging beside a plain copy: a checkpoint of 1 GB, every method, speed and memory.

Both are timed with all bytes on the disk (fsync), in a fresh process each, in turns, with the
parents in the system's page cache. Speed is output bytes per second; the copy is
`shutil.copyfile` of one parent. Prints the table of benchmarks/merging.md:

    python benchmarks/merging.py > benchmarks/merging.md
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIB = 2**20
SHARDS = 4
LAYERS = 38
WIDTH, INNER, WORDS = 1024, 4096, 32_768
TURNS = 5
JOBS = ("copy", "linear", "slerp", "task-arithmetic", "ties", "dare")


def make_checkpoint(folder: Path, dtype: str, seed: int, like: Path | None = None) -> None:
    """Write a made-up model in four shards; with `like`, one close to that model."""
    import numpy as np

    from forgetmap.mitigate.weights import INDEX, Tensor, Weights, header_bytes, to_stored

    draw = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (WORDS, WIDTH)}
    for layer in range(LAYERS):
        shapes[f"model.layers.{layer}.up_proj.weight"] = (INNER, WIDTH)
        shapes[f"model.layers.{layer}.down_proj.weight"] = (WIDTH, INNER)
        shapes |= {f"model.layers.{layer}.{k}_proj.weight": (WIDTH, WIDTH) for k in "qkvo"}
        shapes[f"model.layers.{layer}.norm.weight"] = (WIDTH,)
    old = Weights(like).tensors if like else None
    names, places = list(shapes), {}
    for shard in range(SHARDS):
        held = names[shard * len(names) // SHARDS : (shard + 1) * len(names) // SHARDS]
        file = folder / f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        places |= dict.fromkeys(held, file.name)
        with file.open("wb") as opened:
            opened.write(
                header_bytes({name: Tensor(file, dtype, shapes[name], 0) for name in held})
            )
            for name in held:
                values = draw.standard_normal(np.prod(shapes[name]), dtype=np.float32)
                values *= 0.002 if old else 0.02
                if old:
                    values += old[name].read().astype(np.float32)
                opened.write(to_stored(values, dtype).tobytes())
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    config = {"model_type": "llama", "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))


def job(name: str, before: Path, after: Path, out: Path) -> None:
    """Run in a process of its own; prints seconds and peak memory."""
    if name.startswith("make "):
        dtype = name.removeprefix("make ")
        make_checkpoint(before, dtype, 0)
        make_checkpoint(after, dtype, 1, before)
        return
    if name == "copy":
        start = time.perf_counter()
        out.mkdir()
        for file in sorted(before.iterdir()):
            shutil.copyfile(file, out / file.name)
            handle = os.open(out / file.name, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
    else:
        from forgetmap.mitigate.merge import merge

        start = time.perf_counter()
        merge(before, after, out, method=name, weight=0.4)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def run(name: str, folder: Path) -> dict[str, float]:
    """Run a job; this process stays small, since a child's peak starts at its parent's size."""
    arguments = [name, *(str(folder / part) for part in ("before", "after", "out"))]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, capture_output=True, text=True
    )
    shutil.rmtree(folder / "out", ignore_errors=True)
    return json.loads(done.stdout or "{}")


def measure(dtype: str, folder: Path) -> list[str]:
    for name in ("before", "after"):
        (folder / name).mkdir()
    run(f"make {dtype}", folder)
    files = [file.stat().st_size for file in (folder / "before").glob("*.safetensors")]
    turns = [{name: run(name, folder) for name in JOBS} for _ in range(TURNS)]
    best = {name: min(turn[name]["seconds"] for turn in turns) for name in JOBS}
    rows = []
    for name in JOBS:
        peak = max(turn[name]["peak"] for turn in turns)
        share = best["copy"] / best[name]
        held = "-" if name == "copy" else "yes" if share >= 0.5 and peak < 2 * max(files) else "no"
        rows.append(
            f"| {dtype} | {name} | {sum(files) / 1e9 / best[name]:.2f} | {share:.2f} | "
            f"{peak / MIB:.0f} | {peak / max(files):.2f} | {held} |"
        )
    return rows


def main() -> None:
    rows = []
    for dtype in ("BF16", "F32"):
        with tempfile.TemporaryDirectory(prefix="forgetmap-merging-") as name:
            rows += measure(dtype, Path(name))
    print("# Merging\n")
    print(
        "Made by `python benchmarks/merging.py`: a made-up model of half a billion weights in four"
    )
    print(f"shards, {os.cpu_count()} cores, best of {TURNS} turns. All bytes are on the disk when")
    print("the clock stops; the parents are in the page cache. Speed is output bytes; *of copy* is")
    print("against `shutil.copyfile` of one parent. The bars: at least half the copy's speed, peak")
    print("memory of the whole process under twice the largest shard.\n")
    print("| numbers | method | GB/s | of copy | peak MiB | of largest shard | bars hold |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        job(sys.argv[1], *(Path(argument) for argument in sys.argv[2:]))
    else:
        main()
