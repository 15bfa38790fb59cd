"""Suites by name or file: tasks that are evaluated together."""

from __future__ import annotations

from pathlib import Path

from forgetmap.errors import InputError
from forgetmap.evaluate.questions import Suite

NAMES = ("atlas", "openai-evals", "reasoning-gym", "post-forget", "lm-eval")


def load(source: str | Path, seed: int = 0) -> Suite:
    """Load a suite.

    Args:
        source: `atlas`; `openai-evals` or `openai-evals:WHEEL`; `reasoning-gym`; `post-forget`,
            `post-forget:FOLDER`, `post-forget:published` or `post-forget:published-base`;
            `lm-eval:TASK,GROUP` or `lm-eval:TASK@FOLDER`; or the path of a `.jsonl` or `.yaml`.
        seed: Draws what a suite draws: options, their order, generated items.

    Example:
        >>> import json, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.jsonl"
        >>> _ = path.write_text(json.dumps({"question": "2 + 2 =", "answer": 4}))
        >>> suite = load(path)
        >>> suite.name, [question.target for question in suite.tasks[0].questions()]
        ('mine', ['4'])
    """
    if Path(source).suffix.lower() in (".jsonl", ".yaml", ".yml") and ":" not in str(source):
        from forgetmap.evaluate.suites import own

        return own.load(Path(source), seed)
    name, _, argument = str(source).partition(":")
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
    if name == "lm-eval" and argument:
        from forgetmap.evaluate.suites import lm_eval

        return lm_eval.load(argument)
    raise InputError(
        f"suite {str(source)!r:.80}: neither a .jsonl or .yaml file nor one of {', '.join(NAMES)} "
        "(lm-eval takes tasks: lm-eval:arc_easy)"
    )
