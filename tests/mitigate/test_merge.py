"""Merging against float64 references, in every number type; layouts, adapters, bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from checkpoints import (
    SHAPES,
    SIZES,
    as_stored,
    random_tensors,
    read_model,
    write_file,
    write_model,
)
from forgetmap.base.errors import InputError
from forgetmap.cli import merge as merge_cli
from forgetmap.mitigate.merge import methods as merge_methods
from forgetmap.mitigate.merge import weights
from forgetmap.mitigate.merge.merging import (
    MERGEKIT_ONLY,
    METHODS,
    How,
    merge,
    mergekit_yaml,
)
from forgetmap.mitigate.merge.methods import magnitude_at

DTYPES = ("F32", "BF16", "F16")
STEP = {"F32": 2.0**-23, "BF16": 2.0**-7, "F16": 2.0**-10}
SMALLEST = {"F32": 2.0**-149, "BF16": 2.0**-133, "F16": 2.0**-24}
W = 0.31830988618
"""Not a short fraction: with one, every tenth result would lie between two numbers."""


@pytest.fixture
def three(tmp_path):
    """A base and two models tuned from it, as folders, by number type."""

    def make(dtype, shards=1):
        base = random_tensors(0)
        tuned = [random_tensors(seed, like=base, size=0.01) for seed in (1, 2)]
        found = {}
        for name, tensors in zip(("base", "one", "two"), (base, *tuned), strict=True):
            held = as_stored(tensors, dtype)
            found[name] = write_model(tmp_path / name, held, dtype, shards), held
        return found

    return make


def ulps(found, wanted, dtype):
    """The largest distance, in steps of the number type at the wanted value."""
    step = np.maximum(np.abs(wanted) * STEP[dtype] / 2, SMALLEST[dtype])
    return float((np.abs(found - wanted) / step).max())


def trimmed(change, density):
    size = np.abs(change).astype(np.float32)
    limit = np.sort(size.ravel())[::-1][max(1, int(density * size.size)) - 1]
    return np.where(size >= limit, change, 0)


def reference(method, before, after, base, density, dropped=None):
    """Each method as its paper has it, in float64; without a base, from the model before."""
    if method == "linear":
        return (1 - W) * before + W * after
    if method == "slerp":
        one, other = before.ravel(), after.ravel()
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        if abs(cosine) > 0.9995:
            return (1 - W) * before + W * after
        angle = np.arccos(cosine)
        return (np.sin((1 - W) * angle) * before + np.sin(W * angle) * after) / np.sin(angle)
    shares = [1 - W, W] if base is not None else [W]
    changes = [before - base, after - base] if base is not None else [after - before]
    start = before if base is None else base
    if method == "ties":
        changes = [trimmed(change, density) for change in changes]
    if method.startswith("dare"):
        changes = [
            np.where(mask, change / density, 0)
            for change, mask in zip(changes, dropped, strict=True)
        ]
    parts = [share * change for share, change in zip(shares, changes, strict=True)]
    if method in ("ties", "dare-ties") and base is not None:
        sign = np.where(sum(parts) >= 0, 1, -1)
        agrees = [np.sign(part) == sign for part in parts]
        total = sum(part * agree for part, agree in zip(parts, agrees, strict=True))
        if method == "ties":
            weight = sum(share * agree for share, agree in zip(shares, agrees, strict=True))
            total = total / np.where(weight == 0, 1, weight)
        return start + total
    return start + sum(parts)


def masks(name, count, shape, density, which):
    """What dare keeps, from its definition: by seed, name, model and place."""
    code, most = ("<u1", 2**8) if density * 256 % 1 == 0 else ("<u2", 2**16)
    found = []
    for model in range(which):
        words = np.random.PCG64([7, crc32(name.encode()), model]).random_raw(count)
        draws = np.frombuffer(words.astype("<u8").tobytes(), code)[:count]
        found.append((draws < round(density * most)).reshape(shape))
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("method", "has_base"),
    [
        pytest.param(method, has_base, id=f"{method} {'three' if has_base else 'two'}")
        for method in METHODS
        for has_base in (False, True)
        if not (has_base and method in ("linear", "slerp"))
    ],
)
def test_every_method_equals_its_float64_reference(three, tmp_path, method, dtype, has_base):
    found = three(dtype)
    density = None if method in ("linear", "slerp", "task-arithmetic") else 0.25
    out = merge(
        found["one"][0],
        found["two"][0],
        tmp_path / "merged",
        method=method,
        weight=W,
        density=density,
        seed=7,
        base=found["base"][0] if has_base else None,
    )
    merged = read_model(out)
    assert list(merged) == list(SHAPES)
    for name, value in merged.items():
        before, after, base = (found[key][1][name] for key in ("one", "two", "base"))
        dropped = masks(name, value.size, value.shape, 0.25, 1 + has_base)
        wanted = reference(method, before, after, base if has_base else None, density, dropped)
        exact = as_stored({"x": wanted}, dtype)["x"]
        # Rounded once from a wider type: the nearest number, but for ties of that rounding.
        assert (value == exact).mean() > 0.99
        assert ulps(value, wanted, dtype) < 2.01


@pytest.mark.parametrize("density", [0.3, 0.5, 1e-9])
def test_dare_keeps_what_its_draws_say(three, tmp_path, density):
    """With a density that 8 bits can tell, and with ones that take 16."""
    found = three("F32")
    out = merge(
        *(found[name][0] for name in ("one", "two")),
        tmp_path / "merged",
        method="dare",
        density=density,
        seed=7,
    )
    for name, value in read_model(out).items():
        before = found["one"][1][name]
        (kept,) = masks(name, value.size, value.shape, max(density, 2**-16), 1)
        np.testing.assert_array_equal(value != before, kept)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_and_threads_change_nothing(three, tmp_path, method, monkeypatch):
    found = three("F32")
    one, two, base = (found[name][0] for name in ("one", "two", "base"))
    options = {"method": method, "weight": W, "seed": 7}
    if method not in ("linear", "slerp"):
        options["base"] = base
    if method.startswith("dare"):
        options["density"] = 0.3

    def merged(name, **changed):
        out = merge(one, two, tmp_path / name, **{**options, **changed})
        return (out / "model.safetensors").read_bytes()

    whole = merged("whole")
    monkeypatch.setattr(weights, "BLOCK", 148)
    parts = merged("parts")
    if method == "slerp":  # the order in which the angle is summed up moves its last digit
        other = read_model(tmp_path / "parts")
        for name, value in read_model(tmp_path / "whole").items():
            assert ulps(other[name], value, "F32") <= 2
    else:
        assert parts == whole
    for threads in (1, 3):
        monkeypatch.setattr(weights.os, "cpu_count", lambda count=threads: count)
        assert merged(f"threads-{threads}") == parts
    if method.startswith("dare"):
        assert merged("other", seed=8) != parts


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_in_blocks_equals_that_of_whole_tensors(three, tmp_path, dtype, monkeypatch):
    found = three(dtype)
    for density in (0.02, 0.5, 0.97):
        outs = [tmp_path / f"{density}-{block}" for block in (weights.BLOCK, 148)]
        for out, block in zip(outs, (weights.BLOCK, 148), strict=True):
            with monkeypatch.context() as patch:
                patch.setattr(weights, "BLOCK", block)
                merge(
                    *(found[name][0] for name in ("one", "two")),
                    out,
                    method="ties",
                    weight=W,
                    density=density,
                )
        whole, parts = ((out / "model.safetensors").read_bytes() for out in outs)
        assert parts == whole


@pytest.mark.parametrize("in_place", [False, True])
def test_arrays_are_used_up_only_where_that_was_asked_for(in_place):
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(100) for _ in range(2)]
    mask = draw.integers(0, 256, 100, np.uint8)
    ways = {
        "linear": lambda one, other, **how: merge_methods.linear(one, other, 0.3, **how),
        "slerp": lambda one, other, **how: merge_methods.slerp(one, other, 0.3, **how),
        "task": lambda one, other, **how: merge_methods.task_arithmetic(one, [other], [1], **how),
        "ties": lambda one, other, **how: merge_methods.ties(one, [other], [1.0], 0.5, **how),
        "dare": lambda one, other, **how: merge_methods.dare(
            one, [other], [1.0], 0.5, [mask], **how
        ),
    }
    for name, way in ways.items():
        given = [array.copy() for array in arrays]
        found = way(*given, in_place=in_place)
        assert np.array_equal(found, way(*(array.copy() for array in arrays))), name
        kept = [np.array_equal(one, other) for one, other in zip(given, arrays, strict=True)]
        assert all(kept) != in_place, name


def limit(numbers, size, density):
    """What magnitude_at makes of numbers in blocks of a size."""
    blocks = [(start, min(start + size, len(numbers))) for start in range(0, len(numbers), size)]
    return magnitude_at(lambda block: numbers[slice(*block)], blocks, density)


def wanted_limit(numbers, density):
    return np.sort(np.abs(numbers).astype(np.float32))[::-1][
        max(1, int(density * len(numbers))) - 1
    ]


@given(
    st.lists(st.floats(-1e3, 1e3, width=32) | st.sampled_from([0.0, 1.0, -2.0]), min_size=1),
    st.floats(0.01, 0.99),
    st.integers(1, 9),
)
def test_the_limit_of_ties_is_the_exact_order_statistic(values, density, size):
    numbers = np.array(values, np.float32)
    assert limit(numbers, size, density) == wanted_limit(numbers, density)


def uneven(draw, count):
    """Numbers of very different size in turns."""
    numbers = draw.standard_normal(count)
    numbers[np.arange(count) % 5000 < 2200] *= 1e-3
    return numbers


CHANGES = {
    "normal": lambda draw, count: draw.standard_normal(count),
    "a few steps": lambda draw, count: np.round(draw.standard_normal(count) * 4) / 4,
    "mostly zero": lambda draw, count: draw.standard_normal(count) * (draw.random(count) < 0.03),
    "all equal": lambda draw, count: np.full(count, -0.5),
    "nothing": lambda draw, count: np.zeros(count),
    "uneven": uneven,
}


@pytest.mark.parametrize("density", [1e-6, 0.02, 0.2, 0.5, 0.97, 0.999])
@pytest.mark.parametrize("kind", CHANGES)
def test_the_limit_of_ties_whatever_the_changes_are_like(kind, density):
    numbers = CHANGES[kind](np.random.default_rng(0), 70_000)
    wanted = wanted_limit(numbers, density)
    for dtype in (np.float32, np.float64):
        assert limit(numbers.astype(dtype), 20_000, density) == wanted
    assert limit(numbers, 70_000, density) == wanted


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32", "F64"])
def test_numbers_that_are_read_and_written_stay_the_same(dtype):
    if dtype in ("BF16", "F16"):
        raw = np.arange(2**16, dtype=np.uint16).view("<u2" if dtype == "BF16" else "<f2")
    else:
        draws = np.random.default_rng(0).standard_normal(10_000)
        raw = draws.astype("<f4" if dtype == "F32" else "<f8")
    wide = weights.to_wide(raw, dtype)
    again = weights.to_stored(wide, dtype)
    is_nan = np.isnan(wide)
    assert again.dtype == raw.dtype
    assert again[~is_nan].tobytes() == raw[~is_nan].tobytes()
    assert np.isnan(weights.to_wide(again[is_nan], dtype)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ends_are_the_parents(three, tmp_path, dtype):
    found = three(dtype)
    for weight, side in ((0, "one"), (1, "two")):
        for method in ("linear", "slerp", "task-arithmetic"):
            out = tmp_path / f"{method}-{weight}"
            merge(found["one"][0], found["two"][0], out, method=method, weight=weight)
            for name, value in read_model(out).items():
                np.testing.assert_array_equal(value, found[side][1][name])


def test_shards_are_those_of_before_and_the_rest_is_that_of_after(three, tmp_path):
    found = three("BF16", shards=3)
    two = found["two"][0]
    (two / "generation_config.json").write_text('{"temperature": 0.6}')
    (two / "optimizer.pt").write_bytes(b"not wanted")
    out = merge(found["one"][0], two, tmp_path / "merged", weight=W)
    names = sorted(file.name for file in out.iterdir())
    shards = sorted(file.name for file in found["one"][0].glob("model*"))
    carried = ["chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json"]
    assert names == sorted([*shards, *carried, "forgetmap-merge.json"])
    assert (out / "chat_template.jinja").read_text() == "template of two"
    index = "model.safetensors.index.json"
    assert (out / index).read_bytes() == (found["one"][0] / index).read_bytes()
    about = json.loads((out / "forgetmap-merge.json").read_text())
    assert (about["parents"], about["weight"]) == (["one", "two"], W)
    assert json.loads((out / "config.json").read_text())["torch_dtype"] == "bfloat16"


def test_parents_of_different_number_types_give_that_of_before(tmp_path):
    tensors = random_tensors(0)
    one = write_model(tmp_path / "one", tensors, "BF16")
    two = write_model(tmp_path / "two", random_tensors(1, like=tensors), "F32")
    merged = read_model(merge(one, two, tmp_path / "merged", weight=W))
    for name, value in merged.items():
        wanted = (1 - W) * read_model(one)[name] + W * read_model(two)[name]
        assert ulps(value, wanted, "BF16") < 2.01


def test_a_tied_output_layer_stays_tied(tmp_path):
    """One side stores the tied layer once, the other twice; what BEFORE stores is written."""
    base, tuned = random_tensors(0), random_tensors(1)
    twice = {**tuned, "lm_head.weight": tuned["model.embed_tokens.weight"]}
    one = write_model(tmp_path / "one", base)
    two = write_model(tmp_path / "two", twice)
    assert "lm_head.weight" not in read_model(merge(one, two, tmp_path / "a"))
    for method in METHODS:
        merged = read_model(merge(two, one, tmp_path / method, method=method))
        head, embedding = merged["lm_head.weight"], merged["model.embed_tokens.weight"]
        np.testing.assert_array_equal(head, embedding)
    own = write_model(tmp_path / "own", twice, tie_word_embeddings=False)
    with pytest.raises(InputError, match="uses its embedding as output layer, own has one of its"):
        merge(one, own, tmp_path / "b")


def test_tensors_that_are_no_floats_come_from_after(tmp_path):
    whole = {"model.ids": np.arange(5), **random_tensors(0)}
    one = write_model(tmp_path / "one", whole)
    two = write_model(tmp_path / "two", {**whole, "model.ids": np.arange(5) * 2})
    assert read_model(merge(one, two, tmp_path / "out"))["model.ids"].tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_a_number_stays_so_whatever_its_bits_and_is_told(tmp_path, dtype, caplog):
    """Bits all set, as in memory that nobody wrote, in a model beside one of bfloat16."""
    tensors = random_tensors(0)
    one = write_model(tmp_path / "one", tensors, "BF16")
    two = write_model(tmp_path / "two", tensors, dtype)
    file = two / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-16] + b"\xff" * 16)  # the end of the last tensor
    size = SIZES[dtype]
    last = read_model(merge(one, two, tmp_path / "out"))["model.norm.weight"]
    assert np.isnan(last[-16 // size :]).all()
    assert np.isfinite(last[: -16 // size]).all()
    assert "NaN or infinite, in model.norm.weight" in caplog.text


def test_a_tensor_without_numbers_is_carried_along(tmp_path):
    tensors = {"model.empty.weight": np.zeros((0, 16)), **random_tensors(0)}
    one, two = (write_model(tmp_path / name, tensors) for name in ("one", "two"))
    for method in METHODS:
        out = merge(one, two, tmp_path / method, method=method)
        assert read_model(out)["model.empty.weight"].shape == (0, 16)


def test_too_large_for_half_precision_is_said(tmp_path):
    big = {name: np.full(shape, 6e4) for name, shape in SHAPES.items()}
    zero = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    one, two = (write_model(tmp_path / n, t, "F16") for n, t in (("one", zero), ("two", big)))
    with pytest.raises(InputError, match="too large for float16; save BEFORE as bfloat16"):
        merge(one, two, tmp_path / "out", method="task-arithmetic", weight=1, scale=2)
    assert not (tmp_path / "out").exists()


# What cannot be merged


def cut(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])


def nonsense(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def empty(folder):
    (folder / "model.safetensors").write_bytes(b"")


def bad_header(folder):
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:8] + content[8:].replace(b"[16, 16]", b"[16, 99]"))


def quantised(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes().replace(b'"dtype": "F32"', b'"dtype": "F8!"'))


def no_weights(folder):
    (folder / "model.safetensors").unlink()


def no_config(folder):
    (folder / "config.json").unlink()


def lost_shard(folder):
    places = {"weight_map": {"a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))


def outside(folder):
    places = {"weight_map": {"a": "../one/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))


def other_kind(folder):
    (folder / "config.json").write_text('{"model_type": "gemma", "tie_word_embeddings": true}')


def other_positions(folder):
    config = json.loads((folder / "config.json").read_text())
    beside = folder.with_name("one") / "config.json"
    beside.write_text(json.dumps({**config, "rope_theta": 10000.0}))
    changed = {**config, "rope_parameters": {"rope_theta": 500000.0}}
    (folder / "config.json").write_text(json.dumps(changed))


def stretched_positions(folder):
    config = json.loads((folder / "config.json").read_text())
    scaling = {"type": "yarn", "factor": 4.0}
    (folder / "config.json").write_text(json.dumps({**config, "rope_scaling": scaling}))


def other_tokens(folder):
    vocabulary = {f"token{place}": 49 - place for place in range(50)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))


def other_names(folder):
    tensors = random_tensors(0)
    tensors["model.layers.7.extra.weight"] = tensors.pop("model.layers.1.q_proj.weight")
    write_file(folder / "model.safetensors", tensors, "F32")


def more_tokens(folder):
    shapes = {**SHAPES, "model.embed_tokens.weight": (51, 16)}
    write_file(folder / "model.safetensors", random_tensors(0, shapes), "F32")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (cut, "model.safetensors: is cut off in the middle of model.norm.weight; copy it again"),
        (nonsense, "is not a safetensors file, or was cut off"),
        (empty, "is not a safetensors file, or was cut off"),
        (bad_header, "q_proj.weight does not fit its shape"),
        (quantised, "is stored as F8!; save it as bfloat16 or float32"),
        (no_weights, "holds no model.safetensors; save the model with save_pretrained"),
        (no_config, "is not a model folder (no config.json)"),
        (lost_shard, "the shard model-1.safetensors is missing"),
        (outside, "which lies outside the folder"),
        (other_kind, "one is a llama model, two a gemma model; only models of one architecture"),
        (other_positions, "differently (rope_theta 10000.0 and 500000.0)"),
        (stretched_positions, "stretch positions differently (rope_scaling in config.json)"),
        (other_tokens, "number their tokens differently (50 of 50)"),
        (other_names, "two lacks 1 tensors that one has: model.layers.1.q_proj.weight"),
        (more_tokens, "the vocabularies differ, merging needs the same tokens"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_bad_checkpoints_are_refused_in_one_line(tmp_path, spoil, said):
    for name in ("one", "two"):
        write_model(tmp_path / name, random_tensors(0))
    spoil(tmp_path / "two")
    with pytest.raises(InputError) as caught:
        merge(tmp_path / "one", tmp_path / "two", tmp_path / "out")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one", "two"]


def test_outputs_that_would_harm_something_are_refused(three, tmp_path):
    found = three("F32")
    one, two = found["one"][0], found["two"][0]
    for out, said in (
        (one, "exists already"),
        (one / "merged", "lies inside"),
        (tmp_path / "no" / "merged", "does not exist; create it first"),
    ):
        with pytest.raises(InputError, match=said):
            merge(one, two, out)
    assert sorted(file.name for file in one.iterdir()) == sorted(f.name for f in two.iterdir())


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_merge_that_fails_leaves_nothing(three, tmp_path, monkeypatch, call):
    """A system tells only once that it could not write."""
    found = three("F32")
    real, failed = getattr(weights.os, call), []

    def full_once(*arguments):
        if not failed:
            failed.append(call)
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(weights.os, call, full_once)
    with pytest.raises(InputError, match="writing failed \\(No space left on device\\)"):
        merge(found["one"][0], found["two"][0], tmp_path / "merged")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["base", "one", "two"]


# Adapters, by their definition; test_merge_model.py holds them against peft


def write_adapter(folder, seed, rank=4, modules=("model.layers.0.q_proj",), **config):
    folder.mkdir()
    draw = np.random.default_rng(seed)
    tensors = {}
    for name in modules:
        rows, columns = SHAPES[f"{name}.weight"]
        tensors[f"base_model.model.{name}.lora_A.weight"] = draw.standard_normal((rank, columns))
        tensors[f"base_model.model.{name}.lora_B.weight"] = draw.standard_normal((rows, rank))
    write_file(folder / "adapter_model.safetensors", tensors, "F32")
    told = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, **config}
    (folder / "adapter_config.json").write_text(json.dumps(told))
    return folder


def change_of(folder, name):
    """What an adapter adds to a module."""
    tensors = read_model(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    key = f"base_model.model.{name}.lora_"
    if f"{key}A.weight" not in tensors:
        return 0
    a, b = (tensors[f"{key}{side}.weight"].astype(float) for side in "AB")
    alphas = config.get("alpha_pattern") or {}
    alpha = next((v for k, v in alphas.items() if k.replace("\\", "") == name), None)
    return (alpha or config["lora_alpha"]) / len(a) * b @ a


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_adapter_on_its_base_merges_as_whole_weights(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr(weights, "BLOCK", 148)  # blocks that end within rows
    base = as_stored(random_tensors(0), dtype)
    one = write_model(tmp_path / "base", base, dtype)
    two = write_adapter(tmp_path / "lora", 1)
    merged = read_model(merge(one, f"{one}+{two}", tmp_path / "out", weight=W))
    for name, value in merged.items():
        wanted = base[name] + W * change_of(two, name.removesuffix(".weight"))
        assert ulps(value, wanted, dtype) < 2.6  # B A itself is a product in the wider type


def test_an_adapter_alone_stays_one(tmp_path):
    one = write_model(tmp_path / "base", random_tensors(0))
    two = write_adapter(tmp_path / "lora", 1, use_rslora=False)
    out = merge(one, two, tmp_path / "out", weight=W)
    name = "model.layers.0.q_proj"
    np.testing.assert_allclose(change_of(out, name), W * change_of(two, name), rtol=1e-5, atol=1e-6)
    assert not (out / "model.safetensors").exists()


def test_two_adapters_are_joined_by_rank(tmp_path):
    both = "model.layers.0.q_proj"
    one = write_adapter(tmp_path / "a", 1, rank=4)
    two = write_adapter(tmp_path / "b", 2, rank=2, modules=(both, "model.layers.0.up_proj"))
    out = merge(one, two, tmp_path / "out", weight=W)
    for name in (both, "model.layers.0.up_proj"):
        wanted = (1 - W) * change_of(one, name) + W * change_of(two, name)
        np.testing.assert_allclose(change_of(out, name), wanted, rtol=1e-5, atol=1e-5)
    ranks = {len(value) for key, value in read_model(out).items() if "lora_A" in key}
    assert ranks == {6, 2}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"peft_type": "IA3"}, "only LoRA adapters can be merged"),
        ({"use_dora": True}, "was trained with use_dora"),
    ],
)
def test_adapters_that_are_more_than_two_factors_are_refused(tmp_path, config, said):
    one = write_model(tmp_path / "base", random_tensors(0))
    two = write_adapter(tmp_path / "lora", 1, **config)
    with pytest.raises(InputError, match=said):
        merge(one, f"{one}+{two}", tmp_path / "out")


def test_adapters_that_do_not_fit_are_refused(tmp_path):
    one = write_model(tmp_path / "base", random_tensors(0))
    two = write_adapter(tmp_path / "lora", 1)
    with pytest.raises(InputError, match="write AFTER as BASE\\+"):
        merge(one, two, tmp_path / "out", method="ties")
    shapes = {**SHAPES, "model.layers.0.q_proj.weight": (16, 8)}
    small = write_model(tmp_path / "small", random_tensors(0, shapes))
    with pytest.raises(InputError, match="is this its base"):
        merge(small, f"{small}+{two}", tmp_path / "out")
    with pytest.raises(InputError, match="is an adapter; write it as BASE\\+ADAPTER"):
        merge(two, one, tmp_path / "out")
    other = write_adapter(tmp_path / "of-other", 1, base_model_name_or_path="org/other")
    mine = write_adapter(tmp_path / "of-mine", 1, base_model_name_or_path="org/mine")
    with pytest.raises(InputError, match="only adapters of one base"):
        merge(mine, other, tmp_path / "out")


# The command


def run(*arguments):
    app = typer.Typer()
    app.command()(merge_cli.merge)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_merges_and_tells(three, tmp_path):
    found = three("F32")
    one, two = found["one"][0], found["two"][0]
    told = tmp_path / "told.json"
    done = run(one, two, "--weight", W, "--out", tmp_path / "m", "--json", told, "--drift")
    assert done.exit_code == 0, done.output
    assert "written" in done.output
    assert "weights moved by" in done.output
    content = json.loads(told.read_text())
    assert content["merged"]["weight"] == W
    assert content["drift"]["total"]["tensors"] == len(SHAPES)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "say what to do"),
        (["--out", "x", "--method", "mean"], "--method mean: known are linear"),
        (["--out", "x", "--weight", "1.5"], "must lie between 0 and 1"),
        (["--out", "x", "--density", "0.5"], "linear keeps everything"),
        (["--out", "x", "--method", "ties", "--density", "0"], "above 0 and at most 1"),
        (["--out", "x", "--method", "della"], "is left to mergekit; add --emit-yaml"),
        (["--out", "x", "--base", "y"], "linear does not use a base"),
        (["--out", "x", "--scale", "2"], "use task-arithmetic"),
        (["--out", "x", "--choose", "0.1"], "belong to --sweep"),
        (["--sweep", "0:1:0.5", "--drift"], "name a folder for the results with --out"),
        (["--sweep", "0:2:0.5", "--out", "x"], "weights from 0 to 1"),
        (["--sweep", "0:1:0.5", "--choose", "2", "--out", "x"], "above 0 and at most 1"),
    ],
)
def test_bad_options_end_in_one_line_and_code_two(three, monkeypatch, tmp_path, options, said):
    monkeypatch.chdir(tmp_path)
    found = three("F32")
    done = run(found["one"][0], found["two"][0], *options)
    assert done.exit_code == 2
    assert said in done.output
    assert not Path("x").exists()


@pytest.mark.parametrize("method", [*METHODS, *MERGEKIT_ONLY])
def test_yaml_for_mergekit(three, tmp_path, method):
    found = three("BF16")
    one, two, file = found["one"][0], found["two"][0], tmp_path / "merge.yaml"
    done = run(one, two, "--method", method, "--weight", W, "--emit-yaml", file)
    assert done.exit_code == 0, done.output
    content = yaml.safe_load(file.read_text())
    assert content["dtype"] == "bfloat16"
    assert content["merge_method"] in (method.replace("-", "_"), "dare_linear")
    assert content["models"][-1]["model"] == str(two)


def test_yaml_averages_only_where_there_are_several_task_vectors():
    alone = yaml.safe_load(mergekit_yaml("a", "b", How("ties", W)))
    assert alone["parameters"]["normalize"] is False
    assert [entry["model"] for entry in alone["models"]] == ["b"]
    both = yaml.safe_load(mergekit_yaml("a", "b", How("ties", W), base="c"))
    assert both["parameters"]["normalize"] is True
    assert both["base_model"] == "c"


# Memory


@pytest.mark.slow
def test_memory_stays_far_below_the_checkpoint(tmp_path):
    """Shards of 150 MB, each one tensor: a merge by whole tensors would need several times that."""
    shapes = {f"model.layers.{layer}.w.weight": (4096, 9200) for layer in range(2)}
    tensors = {name: np.full(shape, 0.5, np.float32) for name, shape in shapes.items()}
    for name in ("one", "two"):
        write_model(tmp_path / name, tensors, shards=2)
    largest = max(file.stat().st_size for file in (tmp_path / "one").glob("*.safetensors"))
    assert largest > 150e6
    script = (
        "import sys, resource; from forgetmap.mitigate.merge.merging import merge\n"
        "merge(*sys.argv[1:4], method=sys.argv[4])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    # A child's peak starts at the size of its parent, and this process is large: start it anew.
    starter = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"
    for method in ("linear", "ties"):
        folders = [str(tmp_path / name) for name in ("one", "two", method)]
        command = [sys.executable, "-c", script, *folders, method]
        done = subprocess.run(
            [sys.executable, "-S", "-c", starter, *command], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < largest  # the bar is twice that
        shutil.rmtree(tmp_path / method)


def test_positions_are_the_same_however_the_configuration_says_it(tmp_path):
    yarn = {"factor": 4.0, "original_max_position_embeddings": 512}
    old = {"rope_theta": 1e4, "rope_scaling": {"type": "yarn", **yarn}}
    new = {"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn", **yarn}}
    for name, told in (("one", old), ("two", new)):
        write_model(tmp_path / name, random_tensors(0))
        config = json.loads((tmp_path / name / "config.json").read_text())
        (tmp_path / name / "config.json").write_text(json.dumps({**config, **told}))
    assert merge(tmp_path / "one", tmp_path / "two", tmp_path / "out").is_dir()
