"""Turn a GGUF file into a Hugging Face folder that transformers 4 and 5 read alike.

Four things go wrong when transformers is left to do this, silently but for the first:

1. A model it loaded from GGUF counts as quantised and cannot be saved. The tensors are
   dequantised here instead, and the row order of query and key weights is turned back.
2. The pre-tokenizer is guessed: SmolLM2 loses its split of numbers into single digits.
3. The wish for a leading BOS token gets lost; without it Gemma babbles.
4. transformers 4 reads `rope_theta`, transformers 5 `rope_parameters`, and each ignores the other;
   both are written, with a tokenizer class that both know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

from forgetmap.base.checkpoints import header_bytes, new_folder, write_json
from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.files import file_hash
from forgetmap.base.model import sealed
from forgetmap.base.words import brief
from forgetmap.evaluate.gguf_families import ROPE_FACTORS, Family, find_family, stretch_rope
from forgetmap.evaluate.gguf_tokenizers import make_tokenizer, tokenizer_config

if TYPE_CHECKING:
    Weights: TypeAlias = npt.NDArray[np.float32]

SaveType = Literal["float32", "bfloat16"]
ABOUT = "forgetmap-model.json"
"""Written last into a converted folder: where it comes from, and the checksums of its files."""

INPUTS, OUTPUTS = "model.embed_tokens.weight", "lm_head.weight"
_STORED = {"float32": ("F32", np.float32), "bfloat16": ("BF16", bfloat16)}


def convert_gguf(
    path: str | Path, out: str | Path, dtype: SaveType = "float32", *, tied: bool = False
) -> Path:
    """Write the model and tokenizer of a GGUF file as a Hugging Face folder.

    Families: llama (with Mistral and SmolLM2), qwen2, qwen3, gemma2, gemma3 and phi3. The folder
    appears whole or not at all; `forgetmap-model.json` holds the checksums of its files.

    Args:
        tied: The model has one matrix for input and output. Some files store it twice, in two
            roundings; the finer one, that of the output, is then taken for both.
    """
    path, out = Path(path), Path(out)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if out.exists():
        raise InputError(f"{out}: exists already; name a new folder")
    if dtype not in _STORED:
        raise InputError(f"dtype {dtype}: must be one of {', '.join(_STORED)}")
    meta, tensors = _open(path)
    family = find_family(path, meta)
    with new_folder(out) as folder, _header_of(path):
        make_tokenizer(path, meta).save(str(folder / "tokenizer.json"))
        write_json(folder / "tokenizer_config.json", tokenizer_config(meta))
        weights = _weights(tensors, meta, family)
        if tied and OUTPUTS in weights:
            weights[INPUTS] = weights.pop(OUTPUTS)
        config = _config(meta, family, weights) | {"torch_dtype": dtype, "dtype": dtype}
        write_json(folder / "config.json", config)
        _save_weights(folder / "model.safetensors", weights, dtype)
        sums = {file.name: file_hash(file) for file in sorted(folder.iterdir())}
        about = {"source": path.name, "sha256": file_hash(path), "files": sums}
        write_json(folder / ABOUT, sealed(about))
    return out


@contextmanager
def _header_of(path: Path) -> Iterator[None]:
    """Name the file, and the entry that its header lacks."""
    try:
        yield
    except InputError as error:
        told = str(error)
        raise InputError(told if told.startswith(str(path)) else f"{path}: {told}") from error
    except KeyError as error:
        raise InputError(f"{path}: the GGUF lacks {error}") from error


def _open(path: Path) -> tuple[dict[str, Any], list[Any]]:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise need(f"{path}: reading GGUF", "eval") from error
    try:
        reader = GGUFReader(path)
        return {name: field.contents() for name, field in reader.fields.items()}, reader.tensors
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise InputError(f"{path}: is not a readable GGUF file ({brief(error)})") from error


def _weights(tensors: list[Any], meta: Mapping[str, Any], family: Family) -> dict[str, Weights]:
    from gguf.quants import dequantize

    weights = {}
    for tensor in tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if tensor.name == ROPE_FACTORS:  # no weight, but a part of the configuration
            weights[ROPE_FACTORS] = weight
            continue
        name = family.tensor_name(tensor.name)
        weights[name] = np.ascontiguousarray(family.adjust(tensor.name, weight, meta))
    return weights


def _config(meta: Mapping[str, Any], family: Family, weights: dict[str, Weights]) -> dict[str, Any]:
    """The configuration; weights that say nothing of their own are taken out."""
    config = family.config(meta)
    if ROPE_FACTORS in weights:
        stretch_rope(config, weights.pop(ROPE_FACTORS))
    inputs, outputs = weights[INPUTS], weights.get(OUTPUTS)
    tied = outputs is None or np.array_equal(inputs, outputs)
    if tied:
        weights.pop(OUTPUTS, None)
    return config | {"vocab_size": len(inputs), "tie_word_embeddings": tied}


def _save_weights(path: Path, weights: Mapping[str, Weights], dtype: SaveType) -> None:
    """Write a safetensors file by hand: safetensors itself writes bfloat16 only with torch."""
    code, stored = _STORED[dtype]
    with path.open("wb") as file:
        file.write(header_bytes({name: (code, weight.shape) for name, weight in weights.items()}))
        for weight in weights.values():
            file.write(weight.astype(stored).tobytes())
