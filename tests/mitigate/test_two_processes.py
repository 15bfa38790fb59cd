"""The callback where two processes train one model: for real, on gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import fsdp_on_cpu
from forgetmap.evaluate.run import evaluate
from forgetmap.samples.table import Samples
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
SCRIPT = Path(__file__).parents[1] / "support" / "two_processes.py"


def start(folder: Path, what: str, **settings: str) -> tuple[str, Path, list[dict]]:
    base, suite = str(make_tiny_model(folder / "base")), folder / "suite.jsonl"
    rows = [
        {"task": "old", "question": f"old {n}?", "target": str(n % 10),
         "choices": [str((n + c) % 10) for c in range(4)]}
        for n in range(60)
    ]  # fmt: skip
    suite.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"),
        *(str(SCRIPT), base, str(folder), str(suite), what),
    ]
    common = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment = {**os.environ, **common, **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return base, suite, [json.loads((folder / f"told-{n}.json").read_text()) for n in (0, 1)]


def answers(log: Path) -> list[dict]:
    columns = ["item", "metric", "score", "gold_probability"]
    batches = Samples.read(log / "samples.parquet").to_batches(columns)
    return [row for batch in batches for row in batch.to_pylist()]


def test_both_stop_where_the_first_finds_too_much_lost(tmp_path: Path) -> None:
    _, _, told = start(tmp_path, "train")
    assert told[0] == told[1]
    assert told[0]["step"] < 40
    assert (tmp_path / "probes" / "pipeline.yaml").is_file()


def test_sharded_weights_are_scored_as_the_model_that_they_are(tmp_path: Path) -> None:
    base, suite, told = start(tmp_path, "gather")
    assert sum(one["own"] for one in told) == told[0]["all"]  # each held a part
    evaluate(base, str(suite), tmp_path / "plain")
    assert answers(tmp_path / "plain") == answers(tmp_path / "gathered")
    assert not list(tmp_path.glob(".gathered-*"))


def test_a_recipe_under_fsdp_is_probed_and_leaves_a_whole_model(tmp_path: Path) -> None:
    if lacking := fsdp_on_cpu.lacks():
        pytest.skip(lacking)
    _, suite, told = start(tmp_path, "recipe", **fsdp_on_cpu.ENVIRONMENT)
    assert sum(one["own"] for one in told) == told[0]["all"]  # each held a part
    assert {path.name for path in (tmp_path / "probes").glob("step-*")} == {
        "step-0", "step-2", "step-4"
    }  # fmt: skip
    # The last probe asked what was then saved.
    assert (tmp_path / "model" / "recipe.json").is_file()
    evaluate(str(tmp_path / "model"), suite, tmp_path / "saved")
    probes = [answers(tmp_path / "probes" / f"step-{step}") for step in (0, 4)]
    assert probes[1] == answers(tmp_path / "saved")
    assert probes[0] != probes[1]
    for one in told:
        assert one["said"].startswith("pull-back: needs whole weights"), one
    assert not (tmp_path / "pulled" / "recipe.json").exists()
