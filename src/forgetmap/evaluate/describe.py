"""What a model is, by its bytes: hashes of weights and tokenizer, and what two of them reveal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap.base.files import file_hash

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_LOADED = (
    *("model*.safetensors", "pytorch_model*.bin"),
    *("adapter_model*.safetensors", "adapter_model*.bin"),
)
_TOKENIZER = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "vocab.txt"),
    *("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json"),
)


def weight_files(folder: Path) -> list[Path]:
    """The weights of a model or an adapter, by the names that transformers and peft load.

    Other files end in .bin, too: a trainer's arguments are not weights.
    """
    return [file for name in _LOADED for file in folder.glob(name)]


def weights_hash(folder: Path) -> str:
    """Hash of all weight files of a folder, whatever the folder is called."""
    files = sorted(file for pattern in _WEIGHTS for file in folder.glob(pattern))
    return _joint({file.name: _weights_as_of(file, _state(file)) for file in files})


def tokenizer_hash(folder: Path) -> str:
    """Hash of how text becomes tokens: the same for a tokenizer that was only saved anew.

    A trainer writes the tokenizer of the model before once more, with other fields for padding and
    a step that does nothing; that is not a setting in which two runs differ.
    """
    return _tokenizer_as_of(folder, *(_state(folder / name) for name in _TOKENIZER))


_State = tuple[int, ...]
"""What tells a file from itself after a change; empty where it is not there."""


def _state(file: Path) -> _State:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


# One process often opens a model several times; a large file is read for its hash only once.
@lru_cache(maxsize=64)
def _weights_as_of(file: Path, _then: _State) -> str:
    return file_hash(file)


@lru_cache(maxsize=64)
def _tokenizer_as_of(folder: Path, *_then: _State) -> str:
    whole, config = (
        read_json_or_none(folder / name) for name in ("tokenizer.json", "tokenizer_config.json")
    )
    if whole is None:
        return _joint(
            {name: file_hash(folder / name) for name in _TOKENIZER if (folder / name).exists()}
        )
    parts = {name: whole.get(name) for name in _STEPS}
    if isinstance(model := parts["model"], dict):  # saved anew, nothing becomes an empty word
        parts["model"] = model | {name: model[name] or "" for name in _AFFIXES if name in model}
    if not parts["post_processor"] or _does_nothing(parts["post_processor"]):
        # Then it is the configuration that says whether a text gets a first or last token.
        flags = ("add_bos_token", "add_eos_token")
        parts["post_processor"] = [bool((config or {}).get(name)) for name in flags]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


_STEPS = ("added_tokens", "normalizer", "pre_tokenizer", "model", "post_processor")
_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")


def read_json_or_none(path: Path) -> dict[str, Any] | None:
    """An object, if the file is there and holds one; what else it is, the loader will tell."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _does_nothing(processor: Any) -> bool:
    """A template that puts no token around a text."""
    if not isinstance(processor, dict) or processor.get("type") != "TemplateProcessing":
        return False
    single = processor.get("single") or []
    return all(isinstance(part, dict) and "Sequence" in part for part in single)


def _joint(hashes: Mapping[str, str]) -> str:
    return sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16]
