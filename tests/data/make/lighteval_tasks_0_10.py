"""Golden tasks for lighteval 0.10: a likelihood task and a task answered with a letter."""

from __future__ import annotations

from typing import Any

from lighteval.metrics.dynamic_metrics import (
    IndicesExtractionConfig,
    multilingual_extractive_match_metric,
)
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc
from lighteval.utils.language import Language

LETTERS = "ABCDE"
LETTER_TARGET = IndicesExtractionConfig(
    prefix_for_extraction="NativeLetters", try_extract_without_anchor=True
)
LETTER_METRIC = multilingual_extractive_match_metric(
    language=Language.ENGLISH,
    gold_extraction_target=[LETTER_TARGET],
    pred_extraction_target=[LETTER_TARGET],
    precision=6,
)


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
        suite=["custom"],
        prompt_function=likelihood_prompt,
        hf_repo="data/capitals",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        few_shots_split="test",
        few_shots_select="sequential",
        metric=[Metrics.loglikelihood_acc, Metrics.loglikelihood_acc_norm],
        version=1,
    ),
    LightevalTaskConfig(
        name="fm_letters",
        suite=["custom"],
        prompt_function=letter_prompt,
        hf_repo="data/capitals",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=6,
        stop_sequence=["\n"],
        metric=[LETTER_METRIC],
        version=1,
    ),
]
