"""Suites by name or file: tasks that are evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from forgetmap.base.errors import InputError
from forgetmap.evaluate.questions import Suite

NAMES = (
    *("atlas", "openai-evals", "reasoning-gym", "post-forget", "open-suite", "captrack"),
    "lm-eval",
)
_DRAWN = ("atlas", "reasoning-gym", "post-forget", "open-suite")
"""Suites whose items, or their order, depend on the seed."""


def load(source: str | Path, seed: int = 0) -> Suite:
    """Load a suite; the seed draws what a suite draws: options, their order, generated items.

    The source is `atlas`; `openai-evals` or `openai-evals:WHEEL`; `reasoning-gym`; `post-forget`,
    `post-forget:FOLDER`, `post-forget:base`, `post-forget:likelihood`, `post-forget:published` or
    `post-forget:published-base`, all of them also with `@FOLDER`; `open-suite`;
    `captrack` or `captrack:FOLDER`; `lm-eval:TASK,GROUP` or `lm-eval:TASK@FOLDER`; or the path of a
    `.jsonl` or `.yaml`.

    Example:
        >>> import json, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.jsonl"
        >>> _ = path.write_text(json.dumps({"question": "2 + 2 =", "answer": 4}))
        >>> suite = load(path)
        >>> suite.name, [question.target for question in suite.tasks[0].questions()]
        ('mine', ['4'])
    """
    name, _, argument = str(source).partition(":")
    suite = _load(source, name, argument, seed)
    return replace(suite, seed=seed) if name in _DRAWN else suite


def with_data(
    names: Sequence[str], data: Sequence[str | Path] = (), likelihood: bool = False
) -> list[str]:
    """Names of suites, where post-forget has its data and, if wanted, asks by likelihood.

    Example:
        >>> with_data(["post-forget"], ["copies"])
        ['post-forget:@copies']
    """
    from forgetmap.evaluate.suites import post_forget

    if data and not any(name.partition(":")[0] == post_forget.NAME for name in names):
        raise InputError(f"--data: is for the suite {post_forget.NAME}; add --suite post-forget")
    return [post_forget.named(name, [str(place) for place in data], likelihood) for name in names]


def load_all(sources: Sequence[str | Path], seed: int = 0) -> Suite:
    """Load several suites as one: the tasks of all of them, in their order.

    Raises:
        InputError: If two suites have a task of the same name, or if some are scored by the run and
            others by `forgetmap score`.
    """
    loaded = [load(source, seed) for source in sources]
    if len(loaded) == 1:
        return loaded[0]
    owners: dict[str, str] = {}
    for suite in loaded:
        for task in suite.tasks:
            if task.name in owners:
                raise InputError(
                    f"--suite {suite.name}: its task {task.name} is also in {owners[task.name]}; "
                    "run the suites apart, into two folders"
                )
            owners[task.name] = suite.name
    apart = sorted({suite.name for suite in loaded if suite.manifest})
    if apart:
        raise InputError(
            f"--suite {apart[0]}: its answers are scored by `forgetmap score`; run it apart from "
            "other suites, into its own folder"
        )
    tasks = tuple(task for suite in loaded for task in suite.tasks)
    drawn = any(suite.seed is not None for suite in loaded)
    name = "+".join(suite.name for suite in loaded)
    version = "+".join(suite.version for suite in loaded)
    return Suite(name, version, tasks, seed=seed if drawn else None)


def _load(source: str | Path, name: str, argument: str, seed: int) -> Suite:
    if name == "atlas" and not argument:
        from forgetmap.evaluate.suites import atlas

        return atlas.load(seed)
    if name == "openai-evals":
        from forgetmap.evaluate.suites import openai_evals

        return openai_evals.load(argument or None)
    if name == "reasoning-gym" and not argument:
        from forgetmap.evaluate.suites import reasoning_gym

        return reasoning_gym.load(seed)
    if name == "post-forget":
        from forgetmap.evaluate.suites import post_forget

        return post_forget.load(argument, seed)
    if name == "captrack" or (name == "open-suite" and not argument):
        from forgetmap.evaluate.suites import capabilities

        return capabilities.load(name, argument, seed)
    if name == "lm-eval" and argument:
        from forgetmap.evaluate.suites import lm_eval

        return lm_eval.load(argument)
    if name not in NAMES and Path(source).suffix.lower() in (".jsonl", ".yaml", ".yml"):
        from forgetmap.evaluate.suites import own

        return own.load(Path(source))
    raise InputError(
        f"suite {str(source)!r:.80}: neither a .jsonl or .yaml file nor one of {', '.join(NAMES)} "
        "(lm-eval takes tasks: lm-eval:arc_easy)"
    )


def table(suite: Suite) -> str:
    """The tasks of a suite as a Markdown table: how many items, how they are answered, licence.

    Example:
        >>> from forgetmap.evaluate.questions import Question, Task
        >>> sums = Task("sums", "Math", lambda: [Question("sums", "1", "2 + 2 =", "4")])
        >>> print(table(Suite("mine", "1", (sums,))))
        | task | items | answer | category | licence |
        | --- | --- | --- | --- | --- |
        | `sums` | 1 | exact | Math |  |
    """
    lines = ["| task | items | answer | category | licence |", "| --- | --- | --- | --- | --- |"]
    for task in suite.tasks:
        questions = task.questions()
        options = sorted({len(question.choices) for question in questions})
        span = "–".join(str(number) for number in dict.fromkeys((options[0], options[-1])))
        answer = f"{span} options" if options[-1] else task.scorer
        lines.append(
            f"| `{task.name}` | {len(questions):,} | {answer} | {task.category} | {task.licence} |"
        )
    return "\n".join(lines)
