"""Checkpoints by the block: safetensors read and written in pieces, by numpy alone.

A checkpoint is never held in memory. A few threads take a tensor each and read, compute and write
it in blocks of `BLOCK` bytes, so the memory does not depend on the size of the model. Stored 16-bit
numbers are computed in float32, 32-bit ones in float64, and rounded once when they are written.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from forgetmap.base.checkpoints import DTYPE_SIZES, header_bytes, write_json
from forgetmap.base.errors import InputError
from forgetmap.base.json import read_json
from forgetmap.base.words import some

Floats = NDArray[Any]
"""float32 or float64."""
Block = tuple[int, int]
"""First and end of a part of a tensor's numbers."""

BLOCK = 2**20
"""Bytes of a block: few enough for the processor's cache, enough to keep threads from waiting."""
_MOST_THREADS = 8
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_LONGEST_HEADER = 100 * 2**20
_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_CONFIG_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_HEAD = "lm_head.weight"
_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
_CARRIED = (
    *("config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.*", "merges.txt", "*.tiktoken", "*.model", "chat_template*"),
    *("preprocessor_config.json", "processor_config.json"),
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies."""

    file: Path
    dtype: str
    """As safetensors names it: F32, BF16 and so on."""
    shape: tuple[int, ...]
    start: int
    """Of its bytes in the file."""

    @property
    def count(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return self.count * DTYPE_SIZES[self.dtype]

    @property
    def is_float(self) -> bool:
        """Whether its numbers can be merged."""
        return self.dtype in _STORED

    @property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        length = max(1, BLOCK // DTYPE_SIZES[self.dtype])
        starts = range(0, self.count, length)
        return [(start, min(start + length, self.count)) for start in starts]

    def raw(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Numbers as they are stored, bfloat16 as its bits."""
        size = DTYPE_SIZES[self.dtype]
        length = ((self.count if stop is None else stop) - start) * size
        try:
            stored = np.fromfile(self.file, np.uint8, length, offset=self.start + start * size)
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read ({error.strerror})") from error
        if len(stored) < length:
            raise InputError(f"{self.file}: became shorter while it was read")
        return stored.view(_STORED.get(self.dtype, f"V{size}"))

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Numbers in the type they are computed in."""
        return to_wide(self.raw(start, stop), self.dtype)

    def matrix(self) -> Floats:
        """All numbers, in the tensor's shape."""
        return self.read().reshape(self.shape)


def to_wide(raw: NDArray[Any], dtype: str) -> Floats:
    """Stored numbers in the wider type they are computed in: 16 bits in float32, 32 in float64.

    Example:
        >>> to_wide(np.array([0x3F80, 0xC040], np.uint16), "BF16")
        array([ 1., -3.], dtype=float32)
    """
    if dtype == "BF16":
        raw = raw.view(bfloat16)
    wide: Floats = raw.astype(np.float32 if raw.itemsize == 2 else np.float64)
    return wide


def to_stored(values: Floats, dtype: str) -> NDArray[Any]:
    """Computed numbers as they are stored, rounded to the nearest, ties to even.

    Example:
        >>> bits = to_stored(np.array([1.0, -3.0], np.float32), "BF16")
        >>> [hex(number) for number in bits.tolist()]
        ['0x3f80', '0xc040']
    """
    if dtype == "BF16":
        with np.errstate(invalid="ignore"):  # said of NaN, which stays NaN
            return values.astype(np.float32, copy=False).astype(bfloat16).view("<u2")
    try:
        with np.errstate(over="raise"):
            return values.astype(_STORED[dtype])
    except FloatingPointError as error:
        raise InputError(
            f"a merged weight is too large for {_CONFIG_NAMES[dtype]}; save BEFORE as bfloat16"
        ) from error


def read_header(file: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, checked against its size."""
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            size = file.stat().st_size
            if not 2 <= length <= min(_LONGEST_HEADER, size - 8):
                raise InputError(f"{file}: is not a safetensors file, or was cut off")
            header = json.loads(opened.read(length))
        return _checked(file, header, 8 + length, size)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: its header is damaged; save the model again") from error


def _checked(file: Path, header: dict[str, Any], first: int, size: int) -> dict[str, Tensor]:
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = str(entry["dtype"]), tuple(int(side) for side in entry["shape"])
        start, end = (int(place) for place in entry["data_offsets"])
        if dtype not in DTYPE_SIZES:
            raise InputError(f"{file}: {name} is stored as {dtype}; save it as bfloat16 or float32")
        tensor = Tensor(file, dtype, shape, first + start)
        if min(shape, default=0) < 0 or start < 0 or end - start != tensor.size:
            raise InputError(f"{file}: the header's entry of {name} does not fit its shape")
        if first + end > size:
            raise InputError(f"{file}: is cut off in the middle of {name}; copy it again")
        tensors[name] = tensor
    return tensors


class Weights:
    """The tensors of a Hugging Face folder, by name, in one safetensors file or in shards."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(f"{folder}: no such model folder")
        if not (self.folder / "config.json").is_file():
            raise InputError(f"{folder}: is not a model folder (no config.json)")
        self.config = read_json(self.folder / "config.json")
        if not isinstance(self.config, dict):
            raise InputError(f"{self.folder / 'config.json'}: is not a model's configuration")
        self.shards = {file.name: read_header(file) for file in self._files()}
        self.tensors = {
            name: tensor for held in self.shards.values() for name, tensor in held.items()
        }
        if self.is_tied and _HEAD not in self.tensors and (embedding := self._embedding()):
            self.tensors[_HEAD] = self.tensors[embedding]

    @property
    def name(self) -> str:
        """How people call it."""
        return self.folder.resolve().name

    @property
    def is_tied(self) -> bool:
        """Whether the output layer is the embedding again."""
        text = self.config.get("text_config")
        inner = text if isinstance(text, dict) else {}
        return bool(self.config.get("tie_word_embeddings", inner.get("tie_word_embeddings", False)))

    @property
    def rope(self) -> Any:
        """The base of its positions, where the configuration gives one."""
        return self._positions.get("rope_theta")

    @property
    def rope_scaling(self) -> dict[str, Any]:
        """How its positions are stretched for longer texts; empty where they are not."""
        told = {name: value for name, value in self._positions.items() if name != "rope_theta"}
        told["rope_type"] = told.pop("type", None) or told.get("rope_type")  # an older name
        return {} if told["rope_type"] in (None, "default") else told

    @property
    def _positions(self) -> dict[str, Any]:
        """What the configuration says of positions, in transformers 4 and 5."""
        text = self.config.get("text_config")
        told = {**self.config, **(text if isinstance(text, dict) else {})}
        inner = told.get("rope_parameters") or told.get("rope_scaling")
        theta = {"rope_theta": told["rope_theta"]} if "rope_theta" in told else {}
        return {**(inner if isinstance(inner, dict) else {}), **theta}

    @property
    def dtype(self) -> str:
        """The number type of most weights, as torch names it."""
        kinds = Counter(tensor.dtype for tensor in self.tensors.values() if tensor.is_float)
        return _CONFIG_NAMES[kinds.most_common(1)[0][0]] if kinds else "float32"

    def alias(self, name: str) -> str:
        """The name that a tied tensor shares with its twin, so that both get the same numbers."""
        return (self._embedding() or name) if name == _HEAD and self.is_tied else name

    def read(self, name: str, start: int, stop: int) -> Floats:
        """A block of a tensor, in the type it is computed in."""
        return self.tensors[name].read(start, stop)

    def carried_from(self) -> list[Path]:
        """Folders whose config and tokenizer belong to the weights; later ones win."""
        return [self.folder]

    def _embedding(self) -> str | None:
        return next((name for name in self.tensors if name.endswith(_EMBEDDINGS)), None)

    def _files(self) -> list[Path]:
        index = self.folder / INDEX
        if not index.is_file():
            if (self.folder / SINGLE).is_file():
                return [self.folder / SINGLE]
            raise InputError(
                f"{self.folder}: holds no {SINGLE}; save the model with save_pretrained"
            )
        listed = read_json(index)
        names = listed.get("weight_map") if isinstance(listed, dict) else None
        if not isinstance(names, dict) or not names:
            raise InputError(f"{index}: is not an index of shards")
        files = sorted({str(name) for name in names.values()})
        for file in files:
            if Path(file).name != file:
                raise InputError(f"{index}: names {file}, which lies outside the folder")
            if not (self.folder / file).is_file():
                raise InputError(f"{self.folder}: the shard {file} is missing")
        return [self.folder / file for file in files]


def check_alike(first: Weights, second: Weights) -> None:
    """Refuse two checkpoints whose tensors cannot be put on top of each other."""
    kinds = [weights.config.get("model_type") for weights in (first, second)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"{first.name} is a {kinds[0]} model, {second.name} a {kinds[1]} model; "
            "only models of one architecture can be merged"
        )
    if first.is_tied != second.is_tied:
        tied, own = (first, second) if first.is_tied else (second, first)
        raise InputError(
            f"{tied.name} uses its embedding as output layer, {own.name} has one of its own; "
            "only models of one architecture can be merged"
        )
    ropes = first.rope, second.rope
    if None not in ropes and ropes[0] != ropes[1]:
        raise InputError(
            f"{first.name} and {second.name} count positions differently (rope_theta {ropes[0]} "
            f"and {ropes[1]}); a merge of their weights would fit neither"
        )
    if first.rope_scaling != second.rope_scaling:
        raise InputError(
            f"{first.name} and {second.name} stretch positions differently (rope_scaling in "
            "config.json); a merge of their weights would fit neither"
        )
    for one, other in ((first, second), (second, first)):
        missing = [name for name in one.tensors if name not in other.tensors]
        if missing:
            raise InputError(
                f"{other.name} lacks {len(missing):,} tensors that {one.name} has: "
                f"{some(missing, 3)}"
            )
    for name, tensor in first.tensors.items():
        _check_shapes(name, tensor, second.tensors[name], first.name, second.name)
    _check_vocabulary(first, second)


def _check_shapes(name: str, one: Tensor, other: Tensor, first: str, second: str) -> None:
    if one.shape != other.shape:
        sizes = " and ".join("x".join(map(str, tensor.shape)) for tensor in (one, other))
        reason = ""
        if name == _HEAD or name.endswith(_EMBEDDINGS):
            reason = "; the vocabularies differ, merging needs the same tokens"
        raise InputError(f"{first} and {second} differ in the shape of {name} ({sizes}){reason}")
    if one.dtype != other.dtype and not (one.is_float and other.is_float):
        raise InputError(f"{first} and {second} differ in the kind of numbers of {name}")


def _check_vocabulary(first: Weights, second: Weights) -> None:
    """The same number of tokens is not enough: row 17 must mean the same word on both sides."""
    files = [weights.carried_from()[0] / "tokenizer.json" for weights in (first, second)]
    if not all(file.is_file() for file in files):
        return
    texts = [file.read_bytes() for file in files]
    if texts[0] == texts[1]:
        return
    one, other = (_vocabulary(file) for file in files)
    shared = one.keys() & other.keys()
    moved = [token for token in shared if one[token] != other[token]]
    if moved or not shared:
        raise InputError(
            f"{first.name} and {second.name} number their tokens differently "
            f"({len(moved):,} of {len(shared):,}); merging needs one tokenizer"
        )


def _vocabulary(file: Path) -> dict[str, int]:
    content = read_json(file)
    model = content.get("model") if isinstance(content, dict) else None
    tokens = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(tokens, list):  # unigram models: [[token, score], ...]
        return {str(entry[0]): place for place, entry in enumerate(tokens)}
    return tokens if isinstance(tokens, dict) else {}


def check_new_folder(out: Path, inputs: list[Path]) -> None:
    """Refuse an output folder that exists, or that lies in what is read."""
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already; name a new folder")
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist; create it first")
    real = out.resolve()
    for folder in inputs:
        if real.is_relative_to(folder.resolve()):
            raise InputError(f"{out}: lies inside {folder}, which is read; name another folder")


def write_like(
    model: Weights,
    folder: Path,
    prepare: Callable[[str], Callable[[int, int], NDArray[Any]]],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> None:
    """Write tensors in the shards, order and number types of a checkpoint.

    `prepare` takes a tensor's name and returns what computes a block of it, as it is stored.
    """
    # glibc then reuses the memory of freed blocks up to this size, and does not ask for fresh pages
    # for each of them, which would take half of the time.
    np.empty(31 * 2**20, np.uint8)
    workers = min(max(2, os.cpu_count() or 2), _MOST_THREADS)
    with ExitStack() as stack:
        parts = [
            part
            for shard, held in model.shards.items()
            for part in _begin(stack.enter_context((folder / shard).open("wb", 0)), held)
            if part.tensor.count
        ]
        total = sum(part.tensor.size for part in parts)
        done = 0

        def write(part: _Part) -> int:
            part.write(prepare(part.name))
            return part.tensor.size

        for size in stack.enter_context(ThreadPoolExecutor(workers)).map(write, parts):
            done += size
            progress(done, total)
    if (model.folder / INDEX).is_file():
        shutil.copyfile(model.folder / INDEX, folder / INDEX)


class _Part(NamedTuple):
    """A tensor that is to be written, and where."""

    name: str
    tensor: Tensor
    file: int
    place: int

    def write(self, compute: Callable[[int, int], NDArray[Any]]) -> None:
        for start, stop in self.tensor.blocks:
            rest = memoryview(compute(start, stop).view(np.uint8).data)
            offset = self.place + start * DTYPE_SIZES[self.tensor.dtype]
            while rest:
                written = os.pwrite(self.file, rest, offset)
                rest, offset = rest[written:], offset + written


def _begin(file: IO[bytes], held: Mapping[str, Tensor]) -> list[_Part]:
    """Write the header of a shard; what is left to write."""
    types = {name: (tensor.dtype, tensor.shape) for name, tensor in held.items()}
    end = file.write(header_bytes(types))
    parts = []
    for name, tensor in held.items():
        parts.append(_Part(name, tensor, file.fileno(), end))
        end += tensor.size
    file.truncate(end)
    return parts


def save_tensors(file: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a few arrays as one safetensors file (float32 or float64 numbers, or 16-bit floats)."""
    codes = {np.dtype(code): name for name, code in _STORED.items() if name != "BF16"}
    with file.open("wb") as opened:
        types = {name: (codes[array.dtype], array.shape) for name, array in tensors.items()}
        opened.write(header_bytes(types))
        for array in tensors.values():
            opened.write(np.ascontiguousarray(array).tobytes())


def carry(sources: Sequence[Path], folder: Path) -> None:
    """Copy what lies beside the weights: config, tokenizer, chat template; later sources win."""
    for source in sources:
        for pattern in _CARRIED:
            for file in sorted(source.glob(pattern)):
                if file.is_file():
                    shutil.copyfile(file, folder / file.name)


def write_config(config: Mapping[str, Any], dtype: str, folder: Path) -> None:
    """Write a model's config, its number type that of the weights that were written."""
    known = [key for key in ("dtype", "torch_dtype") if key in config]
    config = {**config, **dict.fromkeys(known, dtype)}
    write_json(folder / "config.json", config)
