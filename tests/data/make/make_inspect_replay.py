"""Replay the answers of the tiny models, as lm-eval logged them, through Inspect.

``mockllm`` gives for every item the option that was likeliest in the lm-eval log, or the text that
was generated there; Inspect asks, scores and writes as it does with any model. So the same model's
answers to the same items exist as logs of lm-eval, lighteval and Inspect.

Usage: ``python make_inspect_replay.py --work BUILD_FOLDER``
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
from pathlib import Path
from typing import Any

from common import DATA_DIR
from inspect_ai import Task, task
from inspect_ai import eval as run_eval
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice, match
from inspect_ai.solver import generate, multiple_choice
from items import capitals, elements, sums
from make_inspect import LETTERS, assert_clean, blank, rezip, samples

SOURCE = DATA_DIR / "lm_eval" / "0.4.13"


@task
def fm_capitals() -> Task:
    return Task(samples(capitals()), solver=multiple_choice(), scorer=choice())


@task
def fm_elements() -> Task:
    return Task(samples(elements()), solver=multiple_choice(), scorer=choice())


@task
def fm_sums() -> Task:
    return Task(samples(sums()), solver=generate(), scorer=match(location="end", numeric=True))


TASKS = {"fm_capitals": fm_capitals, "fm_elements": fm_elements, "fm_sums": fm_sums}


def logged_answers(name: str, side: str) -> dict[str, str]:
    """What the model said in the lm-eval log: by question, the letter of its pick or its text."""
    (file,) = (SOURCE / side).rglob(f"samples_{name}_*.jsonl")
    answers = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["doc"]["choices"]:
            likelihoods = [float(value) for value, _ in record["filtered_resps"]]
            said = f"ANSWER: {LETTERS[likelihoods.index(max(likelihoods))]}"
        else:
            said = record["resps"][0][0]
        answers[record["doc"]["question"]] = said
    return answers


def replay(name: str, side: str) -> Any:
    """Make the mock model's function: the item is found by its question in the prompt."""
    answers = logged_answers(name, side)

    def outputs(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        prompt = "\n".join(message.text for message in input)
        (said,) = {answer for question, answer in answers.items() if question in prompt}
        output = ModelOutput.from_content(f"tiny-{side}", said)
        output.usage = ModelUsage()  # else the provider fetches a tokenizer to count with
        return output

    return outputs


def make(name: str, side: str, work: Path, folder: Path) -> None:
    """Run one task for one side, and store its log re-zipped with plain deflate."""
    model = get_model(f"mockllm/tiny-{side}", custom_outputs=replay(name, side), memoize=False)
    (log,) = run_eval(
        TASKS[name](),
        model=model,
        log_dir=str(work / "logs" / side),
        display="none",
        log_model_api=False,
        max_connections=1,
        max_samples=1,
    )
    if log.status != "success":
        raise RuntimeError(f"{name} ended with {log.status}: {log.error}")
    written = work / "written" / side / f"{name}.eval"
    written.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(blank(read_eval_log(log.location, resolve_attachments="full")), str(written))
    rezip(written, folder / side / written.name)


def main() -> None:
    """Run every task for both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="build folder, outside git")
    work: Path = parser.parse_args().work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.chdir(work)
    folder = DATA_DIR / "inspect_replay" / importlib.metadata.version("inspect-ai")
    shutil.rmtree(folder, ignore_errors=True)
    for side in ("before", "after"):
        for name in TASKS:
            make(name, side, work, folder)
    assert_clean(folder)


if __name__ == "__main__":
    main()
