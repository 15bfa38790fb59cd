"""Tasks and groups of lm-eval by name, as questions.

lm-eval loads the data and builds prompts and options; this module only asks it for them. Few-shot
examples come from the task's own few-shot split.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.words import brief
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import EXAMPLES, digest, needed
from forgetmap.samples.identity import content_hash


def load(argument: str) -> Suite:
    """Load tasks or groups: `arc_easy,mmlu`, or `my_task@FOLDER` with task files of your own."""
    named, _, folder = argument.partition("@")
    names = [name.strip() for name in named.split(",") if name.strip()]
    if not names:
        raise InputError("suite lm-eval: name a task or group, as in lm-eval:arc_easy,mmlu")
    if folder and not Path(folder).is_dir():
        raise InputError(f"suite lm-eval: {folder}: no such folder with task files")
    tasks = tuple(
        _task(name, category, task) for name, category, task in _leaves(_tasks(names, folder))
    )
    return Suite(f"lm-eval:{named}", digest(tasks), tasks)


def _tasks(names: Sequence[str], folder: str) -> dict[Any, Any]:
    lm_eval = needed("lm_eval.tasks", "suite lm-eval", "eval")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    manager = _manager(lm_eval, names, folder)
    try:
        tasks: dict[Any, Any] = lm_eval.get_task_dict(list(names), manager)
    except Exception as error:  # data that cannot be had fails in many ways inside datasets
        raise InputError(
            f"suite lm-eval: {', '.join(names)} cannot be loaded ({brief(error)})"
        ) from error
    return tasks


def _manager(lm_eval: Any, names: Sequence[str], folder: str) -> Any:
    """Who knows the tasks: the folder alone where it has them all, as the whole list takes long."""
    if folder:
        manager = lm_eval.TaskManager(include_path=folder, include_defaults=False)
        if not set(names) - set(manager.all_tasks):
            return manager
    manager = lm_eval.TaskManager(include_path=folder or None)
    if missing := sorted(set(names) - set(manager.all_tasks)):
        raise InputError(
            f"suite lm-eval: no task or group {missing[0]!r:.60}; `lm_eval ls tasks` lists them"
        )
    return manager


def _leaves(tasks: Mapping[Any, Any], group: str = "") -> Iterator[tuple[str, str, Any]]:
    """(name, group, task) of all tasks in nested groups."""
    for key, value in tasks.items():
        name = str(getattr(key, "group", key))
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        else:
            yield name, group, value


def _task(name: str, category: str, task: Any) -> Task:
    kind = str(task.OUTPUT_TYPE)
    if kind not in ("multiple_choice", "generate_until"):
        raise InputError(f"suite lm-eval: {name}: tasks of the kind {kind} have no right answers")
    questions = [_question(name, kind, task, doc, row) for row, doc in enumerate(task.eval_docs)]
    asked = {question.item for question in questions}
    shown = [question for question in _shots(name, kind, task) if question.item not in asked]
    settings = task.config.generation_kwargs or {}
    until = settings.get("until") or ()
    return _asked_alike(
        Task(
            name, category, partial(tuple, questions),
            instruction=str(task.config.description or "").strip(), cue="",
            examples=tuple(shown[:EXAMPLES]), max_tokens=int(settings.get("max_gen_toks", 256)),
            stop=(until,) if isinstance(until, str) else tuple(until),
        )
    )  # fmt: skip


def _asked_alike(task: Task) -> Task:
    """Say what lm-eval leaves to its filters: a cue in the prompt, a number after `####`."""
    every = [*task.questions(), *task.examples]
    if all(_NUMBER_MARK in question.target for question in every):  # worked solutions, as in GSM8K
        asked = [
            replace(question, target=question.target.rpartition(_NUMBER_MARK)[2].strip())
            for question in task.questions()
        ]
        return replace(task, questions=partial(tuple, asked), scorer="number")
    if not all(question.prompt.endswith(_CUE) for question in every):
        return task
    asked = [_without_cue(question) for question in task.questions()]
    examples = tuple(_without_cue(question) for question in task.examples)
    return replace(task, questions=partial(tuple, asked), examples=examples, cue=_CUE.strip())


_CUE = "\nAnswer:"
_NUMBER_MARK = "####"


def _without_cue(question: Question) -> Question:
    return replace(question, prompt=question.prompt.removesuffix(_CUE))


def _shots(name: str, kind: str, task: Any) -> list[Question]:
    if not task.has_training_docs() and not task.config.fewshot_split:
        return []
    docs = list(task.fewshot_docs() or ())[:50]
    return [_question(name, kind, task, doc, number) for number, doc in enumerate(docs)]


def _question(name: str, kind: str, task: Any, doc: Any, number: int) -> Question:
    prompt = str(task.doc_to_text(doc))
    target = task.doc_to_target(doc)
    ref = f"{number}-{content_hash(doc):016x}"
    if kind == "generate_until":
        accepted = [str(one) for one in (target if isinstance(target, list) else [target])]
        return Question(name, ref, prompt, accepted[0], aliases=tuple(accepted[1:]))
    choices = tuple(str(choice).strip() for choice in task.doc_to_choice(doc))
    place = target if isinstance(target, int) else choices.index(str(target).strip())
    if not 0 <= place < len(choices) or len(set(choices)) < len(choices):
        raise InputError(f"suite lm-eval: {name}: item {number} has no clear right option")
    return Question(name, ref, prompt, choices[place], choices)
