"""A tiny random Llama with a tokenizer of its own, made in a moment and the same each time."""

from __future__ import annotations

from pathlib import Path

TEXT = (
    "What is the capital of France? Answer: Paris. Berlin, Rome, Oslo and Madrid are others. "
    "How much is two plus three? Question one: choose the right option. The colour of the sky."
)


def make_tiny_model(
    folder: Path,
    seed: int = 0,
    positions: int = 512,
    *,
    like_sentencepiece: bool = False,
    heads: int = 4,
) -> Path:
    """Write the model as a Hugging Face folder; another seed gives other weights.

    A tokenizer like SentencePiece puts a first token before a text, and its tokens lose their
    spaces when they are decoded one by one.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)  # for work this small, threads cost more than they bring
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if like_sentencepiece:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<eos> $A", special_tokens=[("<eos>", 0)]
        )
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<eos>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    size = tokenizer.get_vocab_size()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", bos_token="<eos>", pad_token="<pad>"
    )
    fast.chat_template = (
        "{% for message in messages %}<{{ message.role }}> {{ message.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant> {% endif %}"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=positions,
        initializer_range=0.2,  # large enough for opinions that differ
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
