"""Write checkpoints: folders that appear whole, headers of safetensors files, configurations."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import PART, flush_to_disk, in_use, sweep

DTYPE_SIZES = {
    **{"F64": 8, "F32": 4, "F16": 2, "BF16": 2},
    **{"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1},
}
"""Number type, as safetensors names it -> bytes."""


def header_bytes(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> bytes:
    """Make the header of a safetensors file from the type and shape of its tensors, in order.

    Example:
        >>> json.loads(header_bytes({"w": ("F32", (2,))})[8:])["w"]
        {'dtype': 'F32', 'shape': [2], 'data_offsets': [0, 8]}
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        start, end = end, end + math.prod(shape) * DTYPE_SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # aligned numbers are read faster
    return len(text).to_bytes(8, "little") + text


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a configuration, indented for people to read."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `out` that becomes `out`, whole, on success."""
    try:
        begin = f".{out.name[:100]}."
        sweep(out.parent, begin)
        folder = Path(tempfile.mkdtemp(prefix=begin, suffix=PART, dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot be made a folder ({error.strerror})") from error
    try:
        with in_use(folder):
            yield folder
        for file in folder.iterdir():
            flush_to_disk(file)
        folder.chmod(0o755)
        folder.rename(out)
        flush_to_disk(out.parent)
    except OSError as error:
        raise InputError(f"{out}: writing failed ({error.strerror or error})") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
