"""Instructions that a rule can check, as in IFEval: strict and loose, as a whole and one by one.

Ids and arguments travel in the item's `meta`, as `instruction_id_list` and `kwargs`; nothing is
looked up by the prompt's text.
"""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.answers.items import Item, Value
from forgetmap.capabilities.scorers.constraints import Check, bind
from forgetmap.capabilities.scorers.scoring import NOT_ASKED, bad_gold, per_answer

FAMILIES = (
    *("keywords", "language", "length_constraints", "detectable_content", "detectable_format"),
    *("combination", "startend", "change_case", "punctuation"),
)
METRICS = ("strict", "loose", "strict_instructions", "loose_instructions", *FAMILIES)
FIELDS = ("meta.instruction_id_list", "meta.kwargs")
VERSION = 1


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Check the instructions of each item.

    `strict` and `loose`: all are kept; loose forgives a first or last line too many and asterisks.
    `..._instructions`: the share that is kept. A family's metric is its share, strictly.

    Example:
        >>> asked = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
        >>> values = score([Item("ifeval", "1", meta=asked)], ["Sure, here it is:\\nNo commas."])
        >>> values["strict"][0].value, values["loose"][0].value, values["punctuation"][0].value
        (0.0, 1.0, 0.0)
    """
    try:
        instructions, checks = _read(item)
    except ValueError as error:
        return bad_gold(error, 200)
    kept = [check(text) for check in checks]
    variants = _variants(text)
    loosely = [ok or any(map(check, variants)) for ok, check in zip(kept, checks, strict=True)]
    failed = "; ".join(name for name, ok in zip(instructions, kept, strict=True) if not ok)[:200]
    by_family: dict[str, list[bool]] = {}
    for name, ok in zip(instructions, kept, strict=True):
        by_family.setdefault(name.partition(":")[0], []).append(ok)
    return (
        Value(float(all(kept)), answer=f"failed: {failed}" if failed else "all kept"),
        Value(float(all(loosely))),
        Value(sum(kept) / len(kept)),
        Value(sum(loosely) / len(loosely)),
        *(
            Value(sum(found) / len(found)) if (found := by_family.get(family)) else NOT_ASKED
            for family in FAMILIES
        ),
    )


def _read(item: Item) -> tuple[list[str], list[Check]]:
    instructions = [str(name) for name in item.meta.get("instruction_id_list") or ()]
    arguments = list(item.meta.get("kwargs") or [{}] * len(instructions))
    if not instructions:
        raise ValueError("the item names no instruction")
    if len(arguments) != len(instructions):
        raise ValueError(f"{len(instructions)} instructions but {len(arguments)} kwargs")
    return instructions, list(map(bind, instructions, arguments))


def _variants(text: str) -> list[str]:
    """The text without its first, its last, both lines, each also without asterisks."""
    lines = text.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    plain = [one.replace("*", "") for one in (text, *cut)]
    return list(dict.fromkeys(one for one in (*cut, *plain) if one.strip() and one != text))
