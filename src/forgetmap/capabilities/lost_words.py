"""One sentence for each group of lost items, by a model as judge."""

from __future__ import annotations

from forgetmap.answers.items import Value
from forgetmap.base.words import clean
from forgetmap.capabilities.judge import Judge
from forgetmap.capabilities.judge_prompts import JudgeQuestion
from forgetmap.map.result import LostGroup, LostSummary

_TASK = (
    "A language model was trained further. These items it answered right before and answers wrong "
    "now. They were grouped because they are alike. Say in one short, plain sentence what the "
    "model lost or what it does differently now. Name what is seen in the examples, and nothing "
    "else."
)
_LONGEST = 300


def tell_groups(summary: LostSummary, judge: Judge) -> LostSummary:
    """The same summary with a sentence for each group; a group that got none keeps its words."""
    verdicts = judge.ask([_question(group) for group in summary.groups])
    groups = [
        group
        if isinstance(verdict, Value)
        else group.model_copy(update={"sentence": clean(verdict["sentence"], _LONGEST)})
        for group, verdict in zip(summary.groups, verdicts, strict=True)
    ]
    return summary.model_copy(update={"groups": groups})


def _question(group: LostGroup) -> JudgeQuestion:
    counts = "\n".join(
        f"{title}: {', '.join(f'{name} {count}' for name, count in part.items())}"
        for title, part in (("tasks", group.tasks), ("causes by rule", group.causes))
    )
    material = {"group": f"{group.items} items\n{counts}\ntypical words: {group.name}"}
    for number, example in enumerate(group.examples, start=1):
        material[f"question {number}"] = example.prompt
        material[f"answer before {number}"] = example.before
        material[f"answer now {number}"] = example.after
    return JudgeQuestion(_TASK, material, {"sentence": {"type": "string", "maxLength": 600}})
