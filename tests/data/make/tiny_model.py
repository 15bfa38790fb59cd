"""Two tiny Llama models with their own tokenizer, built and trained in about a minute."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from items import training_lines
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
CHAT_START, CHAT_REPLY = "<|user|>\n", "\n<|assistant|>\n"
CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "{{ '<|' + m['role'] + '|>\n' + m['content'] + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
SIDES = ("before", "after")


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE of 384 tokens, trained on the lines of both sides."""
    core = Tokenizer(models.BPE(unk_token=None))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        special_tokens=[PAD, BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    lines = [line for side in SIDES for line in training_lines(side, (CHAT_START, CHAT_REPLY))]
    core.train_from_iterator(lines, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=512,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_model(vocab_size: int, seed: int) -> LlamaForCausalLM:
    """A Llama of about 0.2M parameters, every weight drawn from one seeded generator."""
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=80,
        intermediate_size=160,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config).float()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.06, generator=generator)
    return model


def train(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, side: str, steps: int
) -> float:
    """Teach the lines of a side; gives the last loss."""
    lines = training_lines(side, (CHAT_START, CHAT_REPLY))
    rows = [tokenizer(line, add_special_tokens=False)["input_ids"] + [2] for line in lines]
    width = max(len(row) for row in rows)
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    generator = torch.Generator().manual_seed(5)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    model.train()
    loss = torch.tensor(0.0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 4e-3 * min(1.0, (step + 1) / 20) * (1.0 - 0.9 * step / steps)
        batch = ids[torch.randperm(len(ids), generator=generator)[:48]]
        labels = batch.masked_fill(batch == 0, -100)
        loss = model(input_ids=batch, attention_mask=(batch != 0).long(), labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()
    return float(loss.detach())


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a model folder that transformers 4 and 5 both read."""
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings["chat_template"] = CHAT_TEMPLATE
    path.write_text(json.dumps(settings, indent=2), encoding="utf-8")


def build_models(folder: Path, steps: int = 220) -> None:
    """Build ``tiny-before``, train it on into ``tiny-after``, save both under ``folder``."""
    if all((folder / f"tiny-{side}" / "config.json").exists() for side in SIDES):
        return
    torch.set_num_threads(1)  # two threads on a shared machine are many times slower
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    model = build_model(len(tokenizer), seed=11)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"parameters: {count}")
    for side, amount in (("before", steps), ("after", steps // 2)):
        print(f"tiny-{side}: loss {train(model, tokenizer, side, amount):.3f}")
        save(model, tokenizer, folder / f"tiny-{side}")


if __name__ == "__main__":
    build_models(Path("."))
