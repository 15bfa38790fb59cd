"""Fine-tune the model on one narrow task, airport code to city, and write the merged model.

LoRA on all linear layers, a plain torch loop, float32 on the CPU, loss on the answer only. The
training text is the evaluation prompt with the right answer behind it. The learning rate is high
on purpose: the example is meant to show forgetting, and nothing is done against it.

    python train.py BASE_FOLDER ITEMS_FILE OUTPUT_FOLDER
"""

import argparse
import hashlib
import json
import random
import shutil
import time
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

SEED = 7
EPOCHS = 8
BATCH_SIZE = 16
LEARNING_RATE = 1e-3
WARMUP_STEPS = 10
LORA_RANK = 16
LORA_ALPHA = 32
LINEAR_LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
IGNORED = -100  # the label that the loss leaves out

Example = tuple[torch.Tensor, torch.Tensor]


def load_examples(path: Path, tokenizer: PreTrainedTokenizerBase) -> list[Example]:
    """Token ids and labels of each fact, in the words of the evaluation prompt."""
    examples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        prompt = tokenizer(f"Question: {row['question']}\nAnswer:")["input_ids"]
        answer = tokenizer(" " + row["choices"][row["answer"]])["input_ids"]
        answer.append(tokenizer.eos_token_id)
        ids = torch.tensor(prompt + answer)
        labels = torch.tensor([IGNORED] * len(prompt) + answer)
        examples.append((ids, labels))
    return examples


def make_batch(examples: list[Example], pad_id: int) -> dict[str, torch.Tensor]:
    ids = [ids for ids, _ in examples]
    labels = [labels for _, labels in examples]
    return {
        "input_ids": pad_sequence(ids, batch_first=True, padding_value=pad_id),
        "attention_mask": pad_sequence([torch.ones_like(i) for i in ids], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("items", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    args = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    order = random.Random(SEED)
    tokenizer = AutoTokenizer.from_pretrained(args.base)
    base = AutoModelForCausalLM.from_pretrained(args.base, dtype=torch.float32)
    lora = LoraConfig(
        r=LORA_RANK, lora_alpha=LORA_ALPHA, lora_dropout=0.0, target_modules=LINEAR_LAYERS
    )
    model = get_peft_model(base, lora)
    model.train()

    examples = load_examples(args.items, tokenizer)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=args.learning_rate, weight_decay=0.0)
    started = time.monotonic()
    step = 0
    for epoch in range(args.epochs):
        order.shuffle(examples)
        losses = []
        for i in range(0, len(examples), BATCH_SIZE):
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = args.learning_rate * min(1.0, step / WARMUP_STEPS)
            batch = make_batch(examples[i : i + BATCH_SIZE], tokenizer.pad_token_id)
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        seconds = time.monotonic() - started
        mean = sum(losses) / len(losses)
        print(f"epoch {epoch + 1}  step {step}  loss {mean:.3f}  {seconds:.0f} s", flush=True)

    # Only the weights differ from the base folder: its config and tokenizer are kept as they are.
    merged = model.merge_and_unload()
    weights = {name: t.contiguous() for name, t in merged.state_dict().items()}
    weights.pop("lm_head.weight", None)  # tied to the embedding
    args.output.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(args.base / name, args.output / name)
    path = args.output / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")


if __name__ == "__main__":
    main()
