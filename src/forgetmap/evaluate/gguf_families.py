"""The families of models in GGUF files: names of tensors, sizes, what is stored otherwise.

GGUF keeps what llama.cpp computes with, which is not always what transformers stores: rows in
another order, norms with one added, frequencies instead of the rule they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from forgetmap.base.errors import InputError

if TYPE_CHECKING:
    Weights: TypeAlias = npt.NDArray[np.float32]
    Meta: TypeAlias = Mapping[str, Any]

_ATTENTION = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_FEED_FORWARD = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_LLAMA_NAMES = {**_ATTENTION, **_FEED_FORWARD, "ffn_norm": "post_attention_layernorm"}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_GEMMA2_NAMES = {
    **_ATTENTION,
    **_FEED_FORWARD,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_PHI3_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.gate_up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_GEMMA3_EVERY_SIXTH_LAYER_SEES_ALL = 6
_GEMMA3_LOCAL_ROPE = 10_000.0  # of the sliding layers; GGUF does not store it
_GEMMA2_27B_LAYERS = 46
"""The one Gemma 2 whose attention is scaled by the width of the model, not of a head."""
ROPE_FACTORS = "rope_freqs.weight"
"""A tensor of Llama 3.1 and later: by how much each frequency is stretched."""


@dataclass(frozen=True)
class Family:
    """What differs between the families of models that can be converted."""

    name: str
    layer_names: Mapping[str, str]
    config: Callable[[Meta], dict[str, Any]]
    adjust: Callable[[str, Weights, Meta], Weights] = lambda _name, weight, _meta: weight

    def tensor_name(self, name: str) -> str:
        """The name that transformers has for a tensor."""
        if name in _TOP_NAMES:
            return _TOP_NAMES[name]
        parts = name.split(".")
        if len(parts) != 4 or parts[2] not in self.layer_names or parts[3] not in _KINDS:
            raise InputError(f"the GGUF holds a tensor {name!r}, which {self.name} does not have")
        return f"model.layers.{parts[1]}.{self.layer_names[parts[2]]}.{parts[3]}"


_KINDS = ("weight", "bias")


def find_family(path: Path, meta: Meta) -> Family:
    """The family of a GGUF file."""
    name = meta.get("general.architecture")
    for family in _families():
        if family.name == name:
            return family
    known = ", ".join(family.name for family in _families())
    raise InputError(
        f"{path}: a GGUF of architecture {name} cannot be converted (known: {known})"
        "; serve it with the llama.cpp server and give its address instead"
    )


def _families() -> tuple[Family, ...]:
    return (
        Family("llama", _LLAMA_NAMES, _llama_config, _undo_permutation),
        Family("qwen2", _LLAMA_NAMES, _qwen2_config),
        Family("qwen3", {**_LLAMA_NAMES, **_HEAD_NORMS}, _qwen3_config),
        Family("gemma2", _GEMMA2_NAMES, _gemma2_config, _undo_norm_offset),
        Family("gemma3", {**_GEMMA2_NAMES, **_HEAD_NORMS}, _gemma3_config, _undo_norm_offset),
        Family("phi3", _PHI3_NAMES, _phi3_config),
    )


# --- configurations -------------------------------------------------------------------------------


def _llama_config(meta: Meta) -> dict[str, Any]:
    """Of Llama, SmolLM2 and Mistral, which differ in their sizes alone."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "head_dim": meta.get("llama.rope.dimension_count") or _head_width(meta, "llama"),
        "attention_bias": False,
        "mlp_bias": False,
        **_rope(meta, "llama"),
        **_sizes(meta, "llama"),
    }


def _qwen2_config(meta: Meta) -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_act": "silu",
        "use_sliding_window": False,
        **_rope(meta, "qwen2"),
        **_sizes(meta, "qwen2"),
    }


def _qwen3_config(meta: Meta) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_act": "silu",
        "head_dim": _head_width(meta, "qwen3"),
        "attention_bias": False,
        "use_sliding_window": False,
        **_rope(meta, "qwen3"),
        **_sizes(meta, "qwen3"),
    }


def _gemma2_config(meta: Meta) -> dict[str, Any]:
    width, layers = _head_width(meta, "gemma2"), meta["gemma2.block_count"]
    wide = meta["gemma2.embedding_length"] // meta["gemma2.attention.head_count"]
    return {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": width,
        "query_pre_attn_scalar": wide if layers == _GEMMA2_27B_LAYERS else width,
        "sliding_window": meta["gemma2.attention.sliding_window"],
        "layer_types": _layer_types(layers, every=2),
        "attn_logit_softcapping": float(meta["gemma2.attn_logit_softcapping"]),
        "final_logit_softcapping": float(meta["gemma2.final_logit_softcapping"]),
        "attention_bias": False,
        **_rope(meta, "gemma2"),
        **_sizes(meta, "gemma2"),
    }


def _gemma3_config(meta: Meta) -> dict[str, Any]:
    rope = _rope(meta, "gemma3")
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": meta["gemma3.attention.key_length"],
        "query_pre_attn_scalar": meta["gemma3.attention.key_length"],
        "sliding_window": meta["gemma3.attention.sliding_window"],
        "layer_types": _layer_types(
            meta["gemma3.block_count"], every=_GEMMA3_EVERY_SIXTH_LAYER_SEES_ALL
        ),
        "attention_bias": False,
        **rope,
        "rope_local_base_freq": _GEMMA3_LOCAL_ROPE,
        "rope_parameters": {
            "full_attention": rope["rope_parameters"],
            "sliding_attention": {"rope_type": "default", "rope_theta": _GEMMA3_LOCAL_ROPE},
        },
        **_sizes(meta, "gemma3"),
    }


def _phi3_config(meta: Meta) -> dict[str, Any]:
    width = _head_width(meta, "phi3")
    share = meta.get("phi3.rope.dimension_count", width) / width
    longest = meta["phi3.context_length"]
    rope = _rope(meta, "phi3")
    rope["rope_parameters"]["partial_rotary_factor"] = share
    return {
        "architectures": ["Phi3ForCausalLM"],
        "model_type": "phi3",
        "hidden_act": "silu",
        "partial_rotary_factor": share,
        "sliding_window": meta.get("phi3.attention.sliding_window") or None,
        "original_max_position_embeddings": longest,
        **rope,
        **_sizes(meta, "phi3"),
    }


def _head_width(meta: Meta, family: str) -> int:
    heads = meta[f"{family}.attention.head_count"]
    width = meta.get(f"{family}.attention.key_length")
    return int(width or meta[f"{family}.embedding_length"] // heads)


def _layer_types(count: int, every: int) -> list[str]:
    """Layers that look back a little way, and every so many one that sees all."""
    return [
        "full_attention" if (layer + 1) % every == 0 else "sliding_attention"
        for layer in range(count)
    ]


def _rope(meta: Meta, family: str) -> dict[str, Any]:
    """How positions turn; transformers 4 reads the one, transformers 5 the other."""
    theta = float(meta.get(f"{family}.rope.freq_base", 10_000.0))
    kind = meta.get(f"{family}.rope.scaling.type", "none")
    parameters: dict[str, Any] = {"rope_type": "default", "rope_theta": theta}
    scaling: dict[str, Any] = {}
    if kind == "linear":
        scaling = {"rope_type": "linear", "factor": float(meta[f"{family}.rope.scaling.factor"])}
    elif kind != "none":
        raise InputError(
            f"the GGUF stretches its positions by {kind}, which cannot be converted; serve it with "
            "the llama.cpp server and give its address instead"
        )
    told: dict[str, Any] = {"rope_theta": theta, "rope_parameters": parameters | scaling}
    return told | ({"rope_scaling": scaling} if scaling else {})


def stretch_rope(config: dict[str, Any], factors: Weights) -> None:
    """Find the rule of Llama 3.1 that gives these factors; refuse what it does not give."""
    theta, width = config["rope_theta"], config["head_dim"]
    rule = {
        "rope_type": "llama3",
        "factor": float(factors.max()),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    if not np.allclose(_llama3_factors(rule, theta, width), factors, rtol=1e-4):
        raise InputError("the GGUF stretches its positions by a rule that is not Llama 3's")
    config["rope_scaling"] = rule
    config["rope_parameters"] = {"rope_theta": theta, **rule}


def _llama3_factors(rule: Mapping[str, Any], theta: float, width: int) -> npt.NDArray[np.float64]:
    """By how much each frequency is divided: not at all, in full, or in between."""
    lengths = 2 * np.pi * theta ** (np.arange(0, width, 2) / width)
    low, high = rule["low_freq_factor"], rule["high_freq_factor"]
    turns = rule["original_max_position_embeddings"] / lengths
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    factors: npt.NDArray[np.float64] = 1 / ((1 - smooth) / rule["factor"] + smooth)
    return factors


def _sizes(meta: Meta, family: str) -> dict[str, Any]:
    """What every family stores under the same names."""
    # GGUF keeps single precision: seven digits, and the number people wrote is the shortest of them
    epsilon = float(f"{meta[f'{family}.attention.layer_norm_rms_epsilon']:.6g}")
    heads = meta[f"{family}.attention.head_count"]
    return {
        "hidden_size": meta[f"{family}.embedding_length"],
        "intermediate_size": meta[f"{family}.feed_forward_length"],
        "num_hidden_layers": meta[f"{family}.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get(f"{family}.attention.head_count_kv", heads),
        "max_position_embeddings": meta[f"{family}.context_length"],
        "rms_norm_eps": epsilon,
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta.get("tokenizer.ggml.padding_token_id"),
    }


# --- weights --------------------------------------------------------------------------------------


def _undo_permutation(name: str, weight: Weights, meta: Meta) -> Weights:
    """GGUF interleaves the two rotary halves of each head; put them one after the other again."""
    heads = {".attn_q.": "head_count", ".attn_k.": "head_count_kv"}
    for part, count in heads.items():
        if part in name:
            rows = weight.reshape(meta[f"llama.attention.{count}"], -1, 2, *weight.shape[1:])
            return rows.swapaxes(1, 2).reshape(weight.shape)
    return weight


def _undo_norm_offset(name: str, weight: Weights, meta: Meta) -> Weights:  # noqa: ARG001
    """GGUF stores Gemma's norms as the factor itself, transformers as what is added to one."""
    return weight - np.float32(1) if name.endswith("norm.weight") else weight
