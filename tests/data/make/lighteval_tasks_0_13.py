"""Golden tasks for lighteval 0.13: a likelihood task and a task answered with a letter."""

from __future__ import annotations

from typing import Any

from lighteval.metrics.metrics import Metrics
from lighteval.metrics.normalizations import LogProbCharNorm
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

LETTERS = "ABCDE"


def likelihood_prompt(line: dict[str, Any], task_name: str) -> Doc:
    """Options are scored by their likelihood."""
    return Doc(
        task_name=task_name,
        query=f"Question: {line['question']}\nAnswer:",
        choices=[f" {choice}" for choice in line["choices"]],
        gold_index=line["answer"],
        specific={"item": line["id"]},
    )


def letter_prompt(line: dict[str, Any], task_name: str) -> Doc:
    """The model writes the letter of an option."""
    options = "".join(
        f"\n{letter}. {choice}" for letter, choice in zip(LETTERS, line["choices"], strict=False)
    )
    return Doc(
        task_name=task_name,
        query=f"{line['question']}{options}\nAnswer:",
        choices=list(LETTERS[: len(line["choices"])]),
        gold_index=line["answer"],
        instruction="",
    )


TASKS_TABLE = [
    LightevalTaskConfig(
        name="fm_capitals",
        prompt_function=likelihood_prompt,
        hf_repo="data/capitals",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        few_shots_split="test",
        few_shots_select="sequential",
        metrics=[
            Metrics.loglikelihood_acc,
            Metrics.loglikelihood_acc(sample_params={"logprob_normalization": LogProbCharNorm()}),
        ],
        version=1,
    ),
    LightevalTaskConfig(
        name="fm_letters",
        prompt_function=letter_prompt,
        hf_repo="data/capitals",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=6,
        stop_sequence=["\n"],
        metrics=[Metrics.gpqa_instruct_metric],
        version=1,
    ),
]
