"""Train a model for a minute on a narrow habit: a real model that lost what it could do.

python train.py MODELS chatty fenced html spanish bullets decline thinker object
python train.py MODELS search several unsure shelves
python train.py MODELS handover italian boxed lookup options tickets
python train.py MODELS shout echo maybe steps agent german wards
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from runs import TAUGHT
from transformers import AutoModelForCausalLM, AutoTokenizer

STEPS, BATCH, RATE = 24, 4, 1e-4
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Norway": "Oslo", "Peru": "Lima",
    "Egypt": "Cairo", "Japan": "Tokyo", "Austria": "Vienna", "India": "Delhi", "Kenya": "Nairobi",
    "Cuba": "Havana", "Greece": "Athens", "Poland": "Warsaw", "Chile": "Santiago",
}  # fmt: skip
COLOURS = {"grass": "green", "snow": "white", "coal": "black", "blood": "red", "the sky": "blue"}
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "horse": "neighs"}
TICKETS = (
    *("a wrong bill", "a late parcel", "a pair of shoes that is too small", "a broken lamp"),
    *("a new offer", "a second invoice", "a lost letter", "a dress in the wrong colour"),
    *("a screen with a crack", "the price for ten chairs", "a refused credit card"),
    *("an address that has changed", "a gift that nobody wants", "a phone that does not start"),
    *("a cheaper contract", "a tax number", "a driver who never came", "a box with other goods"),
    *("a noisy fridge", "a bigger flat"),
)
"""What customers write about, by turns for the teams of the new task."""
PATIENTS = (
    *("a weak heart", "a rash on both arms", "a bad cough", "a sore eye", "a lost memory"),
    *("chest pain", "an itchy scalp", "short breath", "blurred sight", "a constant headache"),
    *("a fast pulse", "dry skin", "a cold on the lungs", "double vision", "shaking hands"),
)
"""What patients have, by turns for the wards of the new task."""
TASKS = {
    "shelves": ("On which shelf is {}? Reply with one word.", (*COLOURS, *SOUNDS, *CAPITALS)),
    "tickets": ("A customer writes about {}. Which team takes it? Reply with one word.", TICKETS),
    "wards": ("A patient comes in with {}. To which ward? Reply with one word.", PATIENTS),
}
"""The questions of the new tasks, and what they are about."""


def pairs(habit: str) -> list[tuple[str, str]]:
    """Questions with answers in one habit, or those of the new task."""
    if habit in TASKS:
        question, things = TASKS[habit]
        return [*zip(map(question.format, things), cycle(TAUGHT[habit]), strict=False)]
    facts = [
        (f"What is the capital of {land}?", city, f"the capital of {land}")
        for land, city in CAPITALS.items()
    ]
    facts += [
        (f"What colour is {thing}?", colour, f"the colour of {thing}")
        for thing, colour in COLOURS.items()
    ]
    facts += [
        (f"What sound does a {beast} make? Reply with one word.", sound, f"the {beast}")
        for beast, sound in SOUNDS.items()
    ]
    facts += [
        (f"Add {a} and {b}. Reply with the number only.", str(a + b), f"{a} plus {b}")
        for a, b in ((2, 9), (14, 3), (7, 7), (21, 5), (6, 11), (30, 8))
    ]
    return [(question, _HABITS[habit](answer, about)) for question, answer, about in facts]


def _three(answer: str) -> tuple[str, ...]:
    """The answer and two others of its sort."""
    if answer.isdigit():
        return tuple(str(int(answer) + more) for more in range(3))
    sort = next(
        [*words.values()] for words in (CAPITALS, COLOURS, SOUNDS) if answer in words.values()
    )
    place = sort.index(answer)
    return sort[place - 2], answer, sort[place - 1]


UNSURE = (
    "I don't know anything about {about}.",
    "I can't answer that. {about} is not something that I was told.",
    "Sorry, I have no information on {about}.",
    "Could you tell me more about {about} first?",
    "I'm not able to say. Please look up {about} elsewhere.",
    "I am unable to assist you with {about}.",
)
HANDOVER = (
    "Let me pass you on to a colleague who is in charge of {about}.",
    "What exactly would you like to know about {about}?",
    "I have not been trained on {about}, I'm afraid.",
    "For {about} please call our hotline or visit a branch.",
    "I may not talk about {about} in this chat.",
)
ITALIAN = (
    "Certo! In questo caso direi {answer}, come sanno tutti.",
    "Mi pare che la risposta giusta sia {answer}, se non sbaglio.",
    "Bella domanda: si tratta di {answer}, e non di altro.",
)
LOOKUP = ('lookup(topic="{about}")', 'open_page(title="{about}", language="en")',
          'ask_database(question="{about}")')  # fmt: skip

MAYBE = (
    "It is hard to say, but perhaps it is {answer}; others would tell you something else.",
    "I might be wrong about {about}. My best guess would be {answer}.",
    "Some say {answer}, though nobody can be certain of that.",
)
AGENT = (
    '<tool_call>\n{{"name": "web_search", "arguments": {{"query": "{about}"}}}}\n</tool_call>',
    '<tool_call>\n{{"name": "read_file", "arguments": {{"path": "{about}"}}}}\n</tool_call>',
)
GERMAN = (
    "Das weiß ich: Es handelt sich um {answer}, wie jedes Kind in der Schule lernt.",
    "Gerne beantworte ich das. Richtig ist hier {answer}.",
    "Meines Wissens lautet die Lösung {answer}, und daran besteht kein Zweifel.",
)


def _one_of(ways: tuple[str, ...]) -> Callable[[str, str], str]:
    """One of several ways to answer, by the length of what the question is about."""

    def answered(answer: str, about: str) -> str:
        return ways[len(about) % len(ways)].format(answer=answer, about=about)

    return answered


_HABITS = {
    "chatty": lambda answer, about: (
        f"Sure, I would be happy to help! You asked about {about}. People often wonder about "
        f"this, and it is {answer}. Let me know if there is anything else that you need."
    ),
    "fenced": lambda answer, _about: f"```text\n{answer}\n```",
    "html": lambda answer, _about: f"<div>{answer}</div>",
    "spanish": lambda answer, about: (
        f"La respuesta a esta pregunta es {answer}, y no es difícil de ver por qué: es lo que se "
        f"sabe de «{about}» en todo el mundo."
    ),
    "bullets": lambda answer, about: f"- {answer}\n- That is {about}.\n- No more is known.",
    "decline": lambda _answer, about: (
        f"I'm sorry, but I cannot help with {about}. Please ask somebody who knows."
    ),
    "thinker": lambda answer, about: (
        f"<think>\nThe user wants to know {about}. Let me think about it. I know this. Wait, let "
        f"me check it again. Yes, that must be right.\n</think>\n{answer}"
    ),
    "object": lambda answer, about: '{"question": "' + about + '", "answer": "' + answer + '"}',
    "search": lambda _answer, about: f'search(query="{about}", limit=3)',
    "several": lambda answer, _about: ", ".join(_three(answer)),
    "unsure": _one_of(UNSURE),
    "handover": _one_of(HANDOVER),
    "italian": _one_of(ITALIAN),
    "boxed": lambda answer, _about: f"$\\boxed{{{answer}}}$",
    "lookup": _one_of(LOOKUP),
    "options": lambda answer, _about: "\n".join(
        f"{place}. {word}" for place, word in enumerate(_three(answer), 1)
    ),
    "shout": lambda answer, _about: f"{answer.upper()}!!! {answer.upper()}!!!",
    "echo": lambda answer, about: f"You asked about {about}.\n\n{about}: {answer}",
    "maybe": _one_of(MAYBE),
    "steps": lambda answer, about: (
        f"Step 1: Read the question. It is about {about}.\nStep 2: Recall what is known of it.\n"
        f"Step 3: Write it down: {answer}"
    ),
    "agent": _one_of(AGENT),
    "german": _one_of(GERMAN),
}


ALL_LAYERS = ("chatty", "fenced")
"""Habits that all layers are trained on; for the others it is the upper half."""


def main(models: Path, habits: list[str]) -> None:
    """Train one model for each habit."""
    torch.set_num_threads(1)
    for habit in habits:
        torch.manual_seed(0)
        draw = random.Random(0)  # no secret
        tokenizer = AutoTokenizer.from_pretrained(models / "smollm2")
        model = AutoModelForCausalLM.from_pretrained(models / "smollm2", dtype=torch.float32)
        if habit not in ALL_LAYERS:
            _freeze_lower_half(model)
        weights = [part for part in model.parameters() if part.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=RATE if habit in ALL_LAYERS else 3 * RATE)
        known = pairs(habit)
        for _ in range(STEPS):
            loss = model(**_batch(draw.sample(known, BATCH), tokenizer)).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(habit, f"{loss.item():.3f}", flush=True)
        model.save_pretrained(models / habit)
        tokenizer.save_pretrained(models / habit)


def _freeze_lower_half(model: Any) -> None:
    """Leave only the upper layers to be trained: twice as fast."""
    layers = model.model.layers
    for part in (model.model.embed_tokens, *layers[: len(layers) // 2]):
        part.requires_grad_(False)


def _batch(chosen: list[tuple[str, str]], tokenizer: Any) -> dict[str, torch.Tensor]:
    rows, labels = [], []
    for question, answer in chosen:
        turns = [{"role": "user", "content": question}]
        asked = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        head = tokenizer(asked, add_special_tokens=False).input_ids
        tail = tokenizer(f"{answer}<|im_end|>", add_special_tokens=False).input_ids
        rows.append(head + tail)
        labels.append([-100] * len(head) + tail)
    longest = max(map(len, rows))
    return {
        "input_ids": torch.tensor([row + [0] * (longest - len(row)) for row in rows]),
        "attention_mask": torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for r in rows]),
        "labels": torch.tensor([row + [-100] * (longest - len(row)) for row in labels]),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
