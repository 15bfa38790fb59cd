"""Tiny random models of every family that GGUF files hold, and the files themselves.

The names of the tensors are those of the `gguf` package's own table; what llama.cpp stores
otherwise than transformers is done here by hand, as its converter does it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

WORDS = [
    "▁",
    "a",
    "b",
    "c",
    "d",
    "e",
    "n",
    "r",
    "s",
    "t",
    "▁a",
    "▁b",
    "an",
    "at",
    "st",
    "▁an",
    "s▁",
]
SPECIAL = ["<unk>", "<s>", "</s>"]
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "rms_norm_eps": 1e-6,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"head_dim": 8, "tie_word_embeddings": False},
    "llama3": {"head_dim": 8, "rope_parameters": LLAMA3_ROPE, "tie_word_embeddings": True},
    "qwen2": {"tie_word_embeddings": False},
    "qwen3": {"head_dim": 16, "tie_word_embeddings": True},
    "gemma2": {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 6},
    "gemma3": {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 6},
    "phi3": {"tie_word_embeddings": False, "sliding_window": 9},
}
"""What each family has beside the sizes that all share."""


def make_network(family: str) -> Any:
    """A model of transformers with random weights, norms and biases included."""
    import torch
    import transformers

    classes = {"llama": "Llama", "llama3": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}
    classes |= {"gemma2": "Gemma2", "gemma3": "Gemma3", "phi3": "Phi3"}
    stem = classes[family]
    kind = f"{stem}TextConfig" if family == "gemma3" else f"{stem}Config"
    config = getattr(transformers, kind)(**{**_SIZES, **FAMILIES[family]})
    torch.manual_seed(0)
    network = getattr(transformers, f"{stem}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 1:  # norms and biases, which begin as ones and zeros
                weight.add_(0.3 * torch.randn_like(weight))
    return network


def write_gguf(path: Path, network: Any, family: str, *, copy_head: bool = False) -> Path:
    """Write a network as llama.cpp's converter does; with `copy_head` a tied head is stored too."""
    from gguf import MODEL_ARCH, GGUFWriter, get_tensor_name_map

    architecture = "llama" if family == "llama3" else family
    config = network.config
    writer = GGUFWriter(path, architecture)
    _sizes(writer, config, family)
    _vocabulary(writer, bytes_=family in ("llama3", "qwen2", "qwen3"), family=family)
    names = get_tensor_name_map(MODEL_ARCH[architecture.upper()], config.num_hidden_layers)
    tied = config.tie_word_embeddings
    for name, weight in network.state_dict().items():
        if name == "lm_head.weight" and tied and not copy_head:
            continue
        values = weight.float().numpy().copy()
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            queries = name.endswith("q_proj.weight")
            heads = config.num_attention_heads if queries else config.num_key_value_heads
            halves = values.reshape(heads, 2, -1, values.shape[1])
            values = halves.swapaxes(1, 2).reshape(values.shape)
        if family.startswith("gemma") and name.endswith("norm.weight"):
            values += 1
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(stored, np.ascontiguousarray(values))
    if family == "llama3":
        plain = 1 / LLAMA3_ROPE["rope_theta"] ** (np.arange(0, 8, 2) / 8)
        stretched = network.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", (plain / stretched).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _sizes(writer: Any, config: Any, family: str) -> None:
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if family.startswith("llama"):
        writer.add_rope_dimension_count(config.head_dim)
    if family in ("qwen3", "gemma2", "gemma3"):
        writer.add_key_length(config.head_dim)
    if family in ("gemma2", "gemma3", "phi3"):
        writer.add_sliding_window(config.sliding_window)
    if family == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def _vocabulary(writer: Any, *, bytes_: bool, family: str) -> None:
    """Few tokens, the rest unused; by bytes and merges, or by scores."""
    words = ["Ġ" if word == "▁" else word.replace("▁", "Ġ") for word in WORDS] if bytes_ else WORDS
    digits = [str(digit) for digit in range(10)]
    tokens = [*SPECIAL, *words, *digits]
    tokens += [f"[PAD{place}]" for place in range(len(tokens), _SIZES["vocab_size"])]
    kinds = [2 if place == 0 else 3 if place < 3 else 1 for place in range(len(tokens))]
    writer.add_tokenizer_model("gpt2" if bytes_ else "llama")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if bytes_:
        writer.add_tokenizer_pre("llama-bpe" if family == "llama3" else "qwen2")
        merges = [(word[:1], word[1:]) for word in words if len(word) == 2]
        merges += [(word[:1], word[1:]) for word in words if len(word) == 3]
        writer.add_token_merges([" ".join(merge) for merge in merges])
    else:
        writer.add_tokenizer_pre("default")
        writer.add_token_scores([-float(place) for place in range(len(tokens))])
        writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(not bytes_)
