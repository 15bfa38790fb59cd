"""Merging beside a plain copy: a checkpoint of 1 GB, every method, speed and memory.

Both are timed with all bytes on the disk (fsync), in a fresh process each, one after the other:
with the parents on the disk alone, as after a download, and with both in the system's page cache,
as after a training. Speed is output bytes per second; the copy is `shutil.copyfile` of one parent.
Prints the table of benchmarks/merging.md:

    python benchmarks/merging.py > benchmarks/merging.md
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

MIB = 2**20
SHARDS = 4
LAYERS = 38
WIDTH, INNER, WORDS = 1024, 4096, 32_768
TURNS = 5
Way = Callable[[Path], None]
METHODS = ("linear", "slerp", "task-arithmetic", "ties", "dare")


def make_checkpoint(folder: Path, dtype: str, seed: int, like: Path | None = None) -> None:
    """Write a made-up model in four shards; with `like`, one close to that model."""
    import numpy as np

    from forgetmap.base.checkpoints import header_bytes
    from forgetmap.mitigate.merge.weights import INDEX, Weights, to_stored

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
            opened.write(header_bytes({name: (dtype, shapes[name]) for name in held}))
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
        from forgetmap.mitigate.merge.merging import merge

        start = time.perf_counter()
        merge(before, after, out, method=name, weight=0.4)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def forget(folder: Path) -> None:
    """Have the system drop from its page cache what it can read again."""
    for file in folder.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def remember(folder: Path) -> None:
    """Have the system read everything into its page cache."""
    for file in folder.iterdir():
        with file.open("rb") as opened:
            while opened.read(16 * MIB):
                pass


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
    taken: dict[tuple[Way, str], list[tuple[float, float]]] = defaultdict(list)
    peak: dict[str, float] = defaultdict(float)
    for _, way, method in itertools.product(range(TURNS), (forget, remember), METHODS):
        seconds = []
        for name in ("copy", method):  # side by side: the disk's mood changes within minutes
            for parent in ("before", "after"):
                way(folder / parent)
            found = run(name, folder)
            seconds.append(found["seconds"])
            peak[name] = max(found["peak"], peak[name])
        taken[way, method].append((seconds[0], seconds[1]))
    for way in (forget, remember):
        taken[way, "copy"] = [(copy, copy) for name in METHODS for copy, _ in taken[way, name]]
    return [_row(dtype, name, taken, peak[name], files) for name in ("copy", *METHODS)]


def _row(
    dtype: str,
    name: str,
    taken: Mapping[tuple[Way, str], list[tuple[float, float]]],
    peak: float,
    files: list[int],
) -> str:
    cells = [dtype, name]
    for way in (forget, remember):
        ratios = [copy / own for copy, own in taken[way, name]]
        share = median(ratios)
        speed = sum(files) / 1e9 / median(own for _, own in taken[way, name])
        cells += [f"{speed:.2f}", f"{share:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]
        cells.append("-" if name == "copy" else "yes" if share >= 0.5 else "no")
    size = peak / max(files)
    cells += [f"{peak / MIB:.0f}", f"{size:.2f}", "yes" if size < 2 else "no"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    rows = []
    for dtype in ("BF16", "F32"):
        with tempfile.TemporaryDirectory(prefix="forgetmap-merging-") as name:
            rows += measure(dtype, Path(name))
    print("# Merging\n")
    print("Made by `python benchmarks/merging.py`: a made-up model of half a billion weights in")
    print(f"four shards, {os.cpu_count()} cores. All bytes are on the disk when the clock stops.")
    print(
        "Speed is output bytes; *of copy* is against `shutil.copyfile` of one parent right before,"
    )
    print(f"though a merge reads two: the median of {TURNS} turns and their range, for disks")
    print("are moody. The bars: at least half the copy's speed, peak memory of the whole process")
    print("under twice the largest shard.\n")
    print(
        "| numbers | method | from the disk, GB/s | of copy | half | from the page cache, GB/s | "
        "of copy | half | peak MiB | of largest shard | under twice |"
    )
    print("| --- " * 11 + "|")
    print("\n".join(rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        job(sys.argv[1], *(Path(argument) for argument in sys.argv[2:]))
    else:
        main()
