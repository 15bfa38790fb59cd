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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    Weights: TypeAlias = npt.NDArray[np.float32]

SaveType = Literal["float32", "bfloat16"]
ABOUT = "forgetmap-model.json"
"""Written last into a converted folder: where it comes from, and the checksums of its files."""

_STORED = {"float32": ("F32", np.float32), "bfloat16": ("BF16", bfloat16)}
_CONTROL, _USER_DEFINED = 3, 4
"""Kinds of tokens in GGUF that are never split."""
_SHARED_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LLAMA_NAMES = {**_SHARED_NAMES, "ffn_norm": "post_attention_layernorm"}
_GEMMA3_NAMES = {
    **_SHARED_NAMES,
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_GEMMA3_EVERY_SIXTH_LAYER_SEES_ALL = 6
_GEMMA3_LOCAL_ROPE = 10_000.0  # of the sliding layers; GGUF does not store it


@dataclass(frozen=True)
class _Architecture:
    """What differs between the families of models that can be converted."""

    layer_names: Mapping[str, str]
    config: Callable[[Mapping[str, Any]], dict[str, Any]]
    adjust: Callable[[str, Weights, Mapping[str, Any]], Weights]


def convert_gguf(path: str | Path, out: str | Path, dtype: SaveType = "float32") -> Path:
    """Write the model and tokenizer of a GGUF file as a Hugging Face folder.

    Families: llama (with SmolLM2's tokenizer or a sentencepiece one) and gemma3. The folder appears
    whole or not at all; `forgetmap-model.json` holds the checksums of its files.
    """
    path, out = Path(path), Path(out)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if out.exists():
        raise InputError(f"{out}: exists already; name a new folder")
    if dtype not in _STORED:
        raise InputError(f"dtype {dtype}: must be one of {', '.join(_STORED)}")
    meta, tensors = _open(path)
    architecture = _architecture(path, meta)
    with new_folder(out) as folder:
        config = architecture.config(meta)
        config |= {"torch_dtype": dtype, "dtype": dtype}
        write_json(folder / "config.json", config)
        _tokenizer(path, meta).save(str(folder / "tokenizer.json"))
        write_json(folder / "tokenizer_config.json", _tokenizer_config(meta))
        _save_weights(folder / "model.safetensors", _weights(tensors, meta, architecture), dtype)
        sums = {file.name: file_hash(file) for file in sorted(folder.iterdir())}
        about = {"source": path.name, "sha256": file_hash(path), "files": sums}
        write_json(folder / ABOUT, sealed(about))
    return out


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


def _architecture(path: Path, meta: Mapping[str, Any]) -> _Architecture:
    known = {
        "llama": _Architecture(_LLAMA_NAMES, _llama_config, _undo_permutation),
        "gemma3": _Architecture(_GEMMA3_NAMES, _gemma3_config, _undo_norm_offset),
    }
    name = meta.get("general.architecture")
    if name not in known:
        raise InputError(
            f"{path}: a GGUF of architecture {name} cannot be converted (known: {', '.join(known)})"
            "; serve it with the llama.cpp server and give its address instead"
        )
    return known[name]


def _llama_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    theta = float(meta.get("llama.rope.freq_base", 10_000.0))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "head_dim": meta["llama.rope.dimension_count"],
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        **_sizes(meta, "llama"),
    }


def _gemma3_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    theta = float(meta["gemma3.rope.freq_base"])
    kinds = [
        "full_attention"
        if (layer + 1) % _GEMMA3_EVERY_SIXTH_LAYER_SEES_ALL == 0
        else "sliding_attention"
        for layer in range(meta["gemma3.block_count"])
    ]
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": meta["gemma3.attention.key_length"],
        "query_pre_attn_scalar": meta["gemma3.attention.key_length"],
        "sliding_window": meta["gemma3.attention.sliding_window"],
        "layer_types": kinds,
        "attention_bias": False,
        "rope_theta": theta,
        "rope_local_base_freq": _GEMMA3_LOCAL_ROPE,
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": _GEMMA3_LOCAL_ROPE},
        },
        **_sizes(meta, "gemma3"),
    }


def _sizes(meta: Mapping[str, Any], family: str) -> dict[str, Any]:
    """What every family stores under the same names."""
    # GGUF keeps single precision: seven digits, and the number people wrote is the shortest of them
    epsilon = float(f"{meta[f'{family}.attention.layer_norm_rms_epsilon']:.6g}")
    return {
        "hidden_size": meta[f"{family}.embedding_length"],
        "intermediate_size": meta[f"{family}.feed_forward_length"],
        "num_hidden_layers": meta[f"{family}.block_count"],
        "num_attention_heads": meta[f"{family}.attention.head_count"],
        "num_key_value_heads": meta[f"{family}.attention.head_count_kv"],
        "max_position_embeddings": meta[f"{family}.context_length"],
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "rms_norm_eps": epsilon,
        "tie_word_embeddings": True,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta.get("tokenizer.ggml.padding_token_id"),
    }


def _weights(
    tensors: list[Any], meta: Mapping[str, Any], architecture: _Architecture
) -> dict[str, Weights]:
    from gguf.quants import dequantize

    weights = {}
    for tensor in tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name = _tensor_name(tensor.name, architecture.layer_names)
        weights[name] = np.ascontiguousarray(architecture.adjust(tensor.name, weight, meta))
    return weights


def _tensor_name(name: str, layer_names: Mapping[str, str]) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    parts = name.split(".")
    if len(parts) != 4 or parts[2] not in layer_names:
        raise InputError(f"the GGUF holds a tensor {name!r}, which its family does not have")
    return f"model.layers.{parts[1]}.{layer_names[parts[2]]}.weight"


def _undo_permutation(name: str, weight: Weights, meta: Mapping[str, Any]) -> Weights:
    """GGUF interleaves the two rotary halves of each head; put them one after the other again."""
    heads = {".attn_q.": "head_count", ".attn_k.": "head_count_kv"}
    for part, count in heads.items():
        if part in name:
            rows, columns = weight.shape
            pairs = weight.reshape(meta[f"llama.attention.{count}"], -1, 2, columns)
            return pairs.swapaxes(1, 2).reshape(rows, columns)
    return weight


def _undo_norm_offset(name: str, weight: Weights, meta: Mapping[str, Any]) -> Weights:  # noqa: ARG001
    """GGUF stores Gemma's norms as the factor itself, transformers as what is added to one."""
    return weight - np.float32(1) if name.endswith("norm.weight") else weight


def _save_weights(path: Path, weights: Mapping[str, Weights], dtype: SaveType) -> None:
    """Write a safetensors file by hand: safetensors itself writes bfloat16 only with torch."""
    code, stored = _STORED[dtype]
    with path.open("wb") as file:
        file.write(header_bytes({name: (code, weight.shape) for name, weight in weights.items()}))
        for weight in weights.values():
            file.write(weight.astype(stored).tobytes())


def _tokenizer(path: Path, meta: Mapping[str, Any]) -> Tokenizer:
    kind, split = meta["tokenizer.ggml.model"], meta.get("tokenizer.ggml.pre")
    if kind == "gpt2" and split == "smollm":
        tokenizer = _byte_level_tokenizer(meta)
    elif kind == "llama":
        tokenizer = _sentencepiece_tokenizer(meta)
    else:
        raise InputError(
            f"{path}: its tokenizer ({kind}, {split}) cannot be converted without a risk of other "
            "tokens; serve it with the llama.cpp server and give its address instead"
        )
    _add_whole_tokens(tokenizer, meta)
    if meta.get("tokenizer.ggml.add_bos_token"):
        _put_bos_first(tokenizer, meta)
    return tokenizer


def _byte_level_tokenizer(meta: Mapping[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {token: place for place, token in enumerate(meta["tokenizer.ggml.tokens"])}
    merges = [tuple(line.split(" ")) for line in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece_tokenizer(meta: Mapping[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokens = meta["tokenizer.ggml.tokens"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=_merges(vocabulary, meta["tokenizer.ggml.scores"]),
            unk_token=tokens[meta["tokenizer.ggml.unknown_token_id"]],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    prefixed = bool(meta.get("tokenizer.ggml.add_space_prefix", True))
    spaces = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if prefixed else spaces
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(
        [*steps, decoders.Strip(" ", 1, 0)] if prefixed else steps
    )
    return tokenizer


def _merges(vocabulary: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """All ways to put a token together from two, the best scored token first."""
    merges = [
        (-scores[place], vocabulary[left], vocabulary[right], left, right)
        for token, place in vocabulary.items()
        for left, right in ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        if left in vocabulary and right in vocabulary
    ]
    return [merge[3:] for merge in sorted(merges)]


def _add_whole_tokens(tokenizer: Tokenizer, meta: Mapping[str, Any]) -> None:
    from tokenizers import AddedToken

    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    for wanted, add in (
        (_CONTROL, tokenizer.add_special_tokens),
        (_USER_DEFINED, tokenizer.add_tokens),
    ):
        add(
            [
                AddedToken(token, special=wanted == _CONTROL, normalized=False)
                for token, kind in zip(tokens, kinds, strict=True)
                if kind == wanted
            ]
        )


def _put_bos_first(tokenizer: Tokenizer, meta: Mapping[str, Any]) -> None:
    from tokenizers import processors

    place = meta["tokenizer.ggml.bos_token_id"]
    bos = meta["tokenizer.ggml.tokens"][place]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, place)]
    )


def _tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": meta[f"{meta['general.architecture']}.context_length"],
        "add_bos_token": bool(meta.get("tokenizer.ggml.add_bos_token")),
        "clean_up_tokenization_spaces": False,
    }
    for short, name in named.items():
        place = meta.get(f"tokenizer.ggml.{name}_token_id")
        if place is not None:
            config[f"{short}_token"] = tokens[place]
    if template := meta.get("tokenizer.chat_template"):
        config["chat_template"] = template
    return config
