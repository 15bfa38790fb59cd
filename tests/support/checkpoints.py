"""Small checkpoints written by hand, apart from the code under test, and read back the same way."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8}
SHAPES = {
    "model.embed_tokens.weight": (50, 16),
    "model.layers.0.q_proj.weight": (16, 16),
    "model.layers.0.up_proj.weight": (24, 16),
    "model.layers.0.norm.weight": (16,),
    "model.layers.1.q_proj.weight": (16, 16),
    "model.norm.weight": (16,),
}


def stored(values, dtype):
    """Bytes of float64 numbers; bfloat16 by cutting and looking which neighbour is nearer."""
    if dtype != "BF16":
        return np.asarray(values).astype({"F32": "<f4", "F16": "<f2", "I64": "<i8"}[dtype])
    single = np.asarray(values, np.float64).astype(np.float32)
    low = single.view(np.uint32) >> 16
    neighbours = np.stack([low, low + 1]).astype(np.uint32)
    away = np.abs((neighbours << 16).view(np.float32).astype(np.float64) - single)
    upper = (away[1] < away[0]) | ((away[1] == away[0]) & (low % 2 == 1))
    return (low + upper).astype("<u2")


def loaded(raw, dtype):
    if dtype != "BF16":
        return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2", "I64": "<i8"}[dtype]).astype(float)
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).astype(float)


def write_file(file: Path, tensors, dtype):
    header, body = {}, b""
    for name, values in tensors.items():
        kind = "I64" if np.asarray(values).dtype == np.int64 else dtype
        raw = stored(values, kind).tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": kind, "shape": np.shape(values), "data_offsets": offsets}
        body += raw
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_file(file: Path):
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    return {
        name: loaded(body[slice(*entry["data_offsets"])], entry["dtype"]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def write_model(folder: Path, tensors, dtype="F32", shards=1, **config):
    """A model folder with what lies beside the weights."""
    folder.mkdir(parents=True)
    names = list(tensors)
    if shards == 1:
        write_file(folder / "model.safetensors", tensors, dtype)
    else:
        places = {}
        for shard in range(shards):
            file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            held = names[shard::shards]
            write_file(folder / file, {name: tensors[name] for name in held}, dtype)
            places |= dict.fromkeys(held, file)
        index = {"metadata": {"total_size": 1}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    told = {"model_type": "llama", "tie_word_embeddings": True, "torch_dtype": "float32", **config}
    (folder / "config.json").write_text(json.dumps(told))
    vocabulary = {f"token{place}": place for place in range(50)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    (folder / "chat_template.jinja").write_text(f"template of {folder.name}")
    return folder


def read_model(folder: Path):
    found = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= read_file(file)
    return found


def random_tensors(seed, shapes=SHAPES, like=None, size=0.02):
    draw = np.random.default_rng(seed)
    found = {name: size * draw.standard_normal(shape) for name, shape in shapes.items()}
    return {name: like[name] + value for name, value in found.items()} if like else found


def as_stored(tensors, dtype):
    """The numbers that a file of this type really holds."""
    return {
        name: loaded(stored(value, dtype).tobytes(), dtype).reshape(value.shape)
        for name, value in tensors.items()
    }
