"""Compare post-forget's likelihood protocol with lm-eval: items, right answers, prompts.

    python benchmarks/post_forget_lm_eval.py FOLDER [FOLDER ...]    # or wheels

lm-eval's task files are taken as they are installed; only their data come from the same folders
instead of the hub. So the rows are the same by construction, and what is compared is what each
program makes of them: which rows are asked, which option is right, and the text that the model
sees. Prints a table; exits with 1 if anything differs but white space and the rows that are left
out for a reason: the right option stands there twice, or the row repeats an earlier one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.evaluate.prompts import Asking, make_request
from forgetmap.evaluate.questions import Task
from forgetmap.evaluate.suites import load
from forgetmap.evaluate.suites.post_forget import _Part, _split
from forgetmap.evaluate.suites.post_forget_data import Source

FILES = {
    "mmlu": "mmlu/continuation/mmlu_{subtask}.yaml",
    "arc_easy": "arc/arc_easy.yaml",
    "arc_challenge": "arc/arc_challenge.yaml",
    "piqa": "piqa/piqa.yaml",
    "hellaswag": "hellaswag/hellaswag.yaml",
    "social_iqa": "siqa/siqa.yaml",
}
"""lm-eval's files of tasks that score the text of options; BBH and CommonsenseQA have none."""


class Agreement(NamedTuple):
    """How many rows of a task agree."""

    rows: int
    """In the data, and so in lm-eval."""
    asked: int
    """Of these, asked by post-forget."""
    gold: int
    """Of those asked, with the same right option."""
    prompts: int
    """With the same prompt and the same options, to the character."""
    spaces: int
    """With the same prompt and options but for white space, which post-forget strips."""
    left_out: int = 0
    """Not asked: the right option stands there twice, or the row repeats an earlier one."""
    unexplained: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether everything agrees, but for white space and what is left out for a reason."""
        same = self.prompts + self.spaces
        return self.gold == same == self.asked and not self.unexplained

    def __add__(self, other: Any) -> Agreement:
        return Agreement(*(one + two for one, two in zip(self, other, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("data", nargs="+", help="folders or wheels with the data sets")
    agreed = agreements(parser.parse_args().data)
    print(table(agreed))
    if bad := [name for name, one in agreed.items() if not one.is_whole]:
        sys.exit(f"differs: {', '.join(bad)}")


def agreements(data: list[str]) -> dict[str, Agreement]:
    """By task of the suite that lm-eval has, too."""
    warnings.filterwarnings("ignore")
    places = os.pathsep.join(data)
    source = Source.open(places)
    agreed = {}
    for task in load(f"post-forget:likelihood@{places}").tasks:
        part = _Part.find(task.name)
        file = FILES.get("mmlu" if task.name.startswith("mmlu_") else task.name)
        if file:
            rows = list(source.rows(part.wanted(_split(part, "likelihood"))))
            agreed[task.name] = compare(task, rows, file.format(subtask=part.subtask))
    return agreed


def compare(task: Task, rows: list[Any], file: str) -> Agreement:
    """Put the same rows through lm-eval's task."""
    theirs = _lm_eval_task(file, rows)
    ours = {int(question.ref.rpartition("-")[2]): question for question in task.questions()}
    documents = list(theirs.eval_docs)
    gold = prompts = spaces = left_out = unexplained = 0
    seen: set[Any] = set()
    for number, document in enumerate(documents):
        choices = [str(choice).strip() for choice in theirs.doc_to_choice(document)]
        right = int(theirs.doc_to_target(document))
        said = theirs.fewshot_context(document, 0)
        content = (said, tuple(choices), right)
        if (question := ours.get(number)) is None:
            explained = choices.count(choices[right]) > 1 or content in seen
            left_out, unexplained = left_out + explained, unexplained + (not explained)
            continue
        seen.add(content)
        gold += question.gold == right
        request = make_request(task, question, Asking())
        mine = [str(request.prompt), *request.options]
        other = [said, *(f" {choice}" for choice in theirs.doc_to_choice(document))]
        prompts += mine == other
        spaces += mine != other and _words(mine) == _words(other)
    return Agreement(len(documents), len(ours), gold, prompts, spaces, left_out, unexplained)


def _words(texts: list[str]) -> list[list[str]]:
    return [text.split() for text in texts]


def _lm_eval_task(file: str, rows: list[Any]) -> Any:
    import lm_eval.tasks
    from datasets import disable_progress_bars
    from lm_eval.api.task import ConfigurableTask

    disable_progress_bars()
    described = _described(Path(lm_eval.tasks.__file__).parent / file)
    split = described.get("test_split") or described["validation_split"]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{split}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        described |= {
            "dataset_path": "parquet",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": {split: path}, "cache_dir": folder},
            "test_split": split,
            "validation_split": None,
            "training_split": None,
            "fewshot_split": None,
        }
        described.pop("fewshot_config", None)
        task = ConfigurableTask(config=described)
        task.eval_docs  # noqa: B018 - read while the file is there
        return task


def _described(path: Path) -> dict[str, Any]:
    try:
        from lm_eval.tasks._yaml_loader import load_yaml
    except ImportError:
        from lm_eval.utils import load_yaml_config as load_yaml
    loaded: dict[str, Any] = load_yaml(path)
    return {name: value for name, value in loaded.items() if name not in ("tag", "group")}


def table(agreed: dict[str, Agreement]) -> str:
    """MMLU in one row, every other task in its own."""
    merged: dict[str, Agreement] = {}
    counts = Counter("mmlu" if name.startswith("mmlu_") else name for name in agreed)
    for name, one in agreed.items():
        key = "mmlu" if name.startswith("mmlu_") else name
        merged[key] = merged[key] + one if key in merged else one
    lines = [
        "| tasks | rows | asked | same right option | same prompt | but for spaces | left out |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, one in merged.items():
        name = f"{key} ({counts[key]})" if counts[key] > 1 else key
        cells = (one.rows, one.asked, one.gold, one.prompts, one.spaces, one.left_out)
        lines.append(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
