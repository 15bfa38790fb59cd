"""Tokenizers from the header of a GGUF file, token by token those of the original model.

The header names how text is split into words (`tokenizer.ggml.pre`) and leaves the rule to whoever
reads it. A rule that is not known here is refused: a guess gives other tokens for some texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CONTROL, _USER_DEFINED = 3, 4
"""Kinds of tokens in GGUF that are never split."""
_PLAIN_IN_PHI3 = ("<unk>", "<s>", "<|endoftext|>")
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {"qwen2": _WORDS % r"\p{N}", "llama-bpe": _WORDS % r"\p{N}{1,3}"}
"""Words of Qwen 2, 2.5 and 3, with single digits; and of Llama 3, with up to three."""


def make_tokenizer(path: Path, meta: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a GGUF file; refused where its way to split text is not known."""
    kind, split = meta["tokenizer.ggml.model"], meta.get("tokenizer.ggml.pre")
    if kind == "gpt2" and split in ("smollm", *_SPLITS):
        tokenizer = _byte_level_tokenizer(meta, str(split))
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


def _byte_level_tokenizer(meta: Mapping[str, Any], split: str) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = {token: place for place, token in enumerate(meta["tokenizer.ggml.tokens"])}
    merges = [tuple(line.split(" ")) for line in meta["tokenizer.ggml.merges"]]
    whole_words = split == "llama-bpe"  # Llama 3 takes a word that is a token as it is
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=whole_words))
    first = (
        pre_tokenizers.Digits(individual_digits=True)
        if split == "smollm"
        else pre_tokenizers.Split(Regex(_SPLITS[split]), "isolated")
    )
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split == "smollm")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, bytes_])
    if split == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
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
    # Phi-3's marks of a turn take the white space behind them along; GGUF does not store it.
    takes_space = meta["general.architecture"] == "phi3"
    for wanted, add in (
        (_CONTROL, tokenizer.add_special_tokens),
        (_USER_DEFINED, tokenizer.add_tokens),
    ):
        add(
            [
                AddedToken(
                    token,
                    special=wanted == _CONTROL,
                    normalized=False,
                    rstrip=takes_space and token not in _PLAIN_IN_PHI3,
                )
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


def tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What transformers wants to know of a tokenizer beside its steps."""
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
