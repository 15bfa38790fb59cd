r"""Our merges beside mergekit's, which runs in an environment of its own.

mergekit pins its packages hard, so it is not installed here. Name an interpreter that has it:

    python -m venv mergekit && mergekit/bin/pip install torch==2.13.0 mergekit==0.1.5
    FORGETMAP_MERGEKIT=mergekit/bin/python \
        pytest -m 'slow and model' tests/mitigate/test_merge_mergekit.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from checkpoints import read_model
from forgetmap.mitigate.merge.merging import How, merge, mergekit_yaml
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.filterwarnings("ignore")]
MERGEKIT = os.environ.get("FORGETMAP_MERGEKIT")
WEIGHT = 0.3


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A base and two models near it, tuned in opposite ways here and there."""
    if not MERGEKIT:
        pytest.skip("FORGETMAP_MERGEKIT names no interpreter with mergekit")
    import torch
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("mergekit")
    base = make_tiny_model(folder / "base")
    for seed, name in ((1, "one"), (2, "two")):
        make_tiny_model(folder / name)
        model = AutoModelForCausalLM.from_pretrained(base)
        torch.manual_seed(seed)
        with torch.no_grad():
            for value in model.parameters():
                value += 0.1 * torch.randn_like(value)
        model.save_pretrained(folder / name)
    return folder


def by_mergekit(folder, out, how, base=None):
    text = mergekit_yaml(
        str(folder / "one"),
        str(folder / "two"),
        how,
        base=str(folder / base) if base else None,
        dtype="float32",
    )
    config = out.with_suffix(".yaml")
    config.write_text(text)
    command = Path(MERGEKIT).with_name("mergekit-yaml")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [command, config, out, "--no-write-model-card", "--random-seed", "0"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return read_model(out)


CASES = [
    ("linear", None, None, 1.0),
    ("slerp", None, None, 1.0),
    ("task-arithmetic", None, None, 1.5),
    ("task-arithmetic", None, "base", 1.0),
    ("ties", 0.4, None, 1.0),
    ("ties", 0.4, "base", 1.0),
    ("ties", 1.0, "base", 0.8),
    ("dare", 1.0, None, 1.0),
    ("dare", 1.0, "base", 1.0),
    ("dare-ties", 1.0, "base", 1.0),
]


@pytest.mark.parametrize(("method", "density", "base", "scale"), CASES)
def test_the_same_numbers_as_mergekit(models, tmp_path, method, density, base, scale):
    how = How(method, WEIGHT, density, scale)
    theirs = by_mergekit(models, tmp_path / "theirs", how, base)
    options = {"method": method, "weight": WEIGHT, "density": density, "scale": scale}
    third = models / base if base else None
    ours = read_model(
        merge(models / "one", models / "two", tmp_path / "ours", base=third, **options)
    )
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        away = np.abs(value - theirs[name])
        # mergekit computes in float32; beside a weight where two signs balance out, its sum may
        # fall on the other side.
        assert (away > 2e-6).mean() < 1e-3, name


def test_dare_drops_and_enlarges_as_much_as_mergekit(models, tmp_path):
    """Both draw at random: the share that stays and the size of the sum are compared."""
    how = How("dare", 1.0, 0.25)
    theirs = by_mergekit(models, tmp_path / "theirs", how)
    ours = read_model(
        merge(
            models / "one", models / "two", tmp_path / "ours", method="dare", weight=1, density=0.25
        )
    )
    start, end = read_model(models / "one"), read_model(models / "two")
    for name, value in ours.items():
        if value.size < 2000:
            continue
        change = end[name] - start[name]
        spread = np.sqrt(0.25 * 0.75 / value.size)
        for found in (value, theirs[name]):
            stays = (np.abs(found - start[name]) > 1e-6).mean()
            assert abs(stays - 0.25) < 5 * spread, name
            size = np.abs(found - start[name]).sum() / np.abs(change).sum()
            assert abs(size - 1) < 5 * 4 * spread * 1.5, name


@pytest.mark.parametrize("method", ["nuslerp", "della", "della-linear", "breadcrumbs"])
def test_mergekit_takes_the_yaml_of_methods_left_to_it(models, tmp_path, method):
    found = by_mergekit(models, tmp_path / "theirs", How(method, WEIGHT), None)
    start = read_model(models / "one")
    assert found.keys() == start.keys()
    assert any(not np.array_equal(found[name], start[name]) for name in start)
