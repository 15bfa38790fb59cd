"""Which column of a plain table holds what: guessed from names and values, told, or asked for.

A guess is made only where a wrong one shows. What cannot be guessed safely is asked for, with the
flag to type.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.values import number

NAMES: dict[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "input", "doc", "problem", "query", "instruction"),
    "choices": ("choices", "options"),
    "id": (
        *("id", "item", "doc_id", "item_ref", "task_id", "question_id", "qid", "instance_id"),
        *("example_id", "sample_id", "problem_id", "uid", "key", "idx", "index"),
    ),
    "task": ("task", "task_name", "benchmark", "subset", "dataset"),
    "score": (
        *("correct", "score", "acc", "is_correct", "exact_match", "accuracy", "em", "passed"),
        *("pass", "reward", "is_resolved", "resolved", "follow_all_instructions", "success"),
        *("graded_list", "pass@1", "solved"),
    ),
    "target": ("target", "gold", "ground_truth", "gt", "reference", "expected"),
    "answer": (
        *("extracted", "extracted_answer", "parsed_answer", "model_answer", "pred", "predicted"),
        "answer",
    ),
    "response": (
        *("response", "output", "prediction", "completion", "generation", "model_output"),
        *("model_outputs", "generated_text", "raw_output"),
    ),
    "repeat": ("repeat", "seed", "epoch", "trial", "run", "sample_index", "rollout"),
    "k": ("k",),
    "model": ("model", "model_name"),
    "cluster": ("cluster",),
    "metric": ("metric",),
    "gold_probability": ("gold_probability",),
    "option_probabilities": ("option_probabilities",),
    "right_option": ("right_option",),
}
"""What forgetmap needs -> the column names that are taken for it, in order of preference."""

KNOWN = {name for names in NAMES.values() for name in names}
_NAMED = 8
_GOLD = re.compile(r"####\s*\S")
"""How GSM8K marks the right answer."""


@dataclass(frozen=True)
class Columns:
    """The columns of one table that are read."""

    of: dict[str, str]
    """Need -> column."""
    notes: list[str] = field(default_factory=list)
    """What was guessed beyond the names."""

    def told(self) -> str:
        """The guess in words."""
        return ", ".join(f"{need} from {column!r:.60}" for need, column in self.of.items())


_PLAIN = re.compile(r"[A-Z]|-?[0-9.]+(?:E[+-]?[0-9]+)?|TRUE|FALSE|YES|NO")


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse a need that forgetmap does not have."""
    if unknown := sorted(set(columns) - set(NAMES)):
        raise InputError(f"--column {unknown[0]}=...: unknown; known are {', '.join(NAMES)}")


def match_columns(
    present: Iterable[str],
    given: Mapping[str, str],
    where: object = "table",
    examples: Sequence[Mapping[str, Any]] = (),
) -> Columns:
    """Match what forgetmap needs to a table's columns.

    Args:
        present: The names of the columns.
        given: What the user said: need -> column, or a path into nested columns.
        where: The table, for messages.
        examples: Some rows, to decide by their values what names leave open.

    Example:
        >>> match_columns(["prompt", "gold", "is_correct"], {}).of
        {'question': 'prompt', 'score': 'is_correct', 'target': 'gold'}
    """
    names = list(present)
    by_lower = {name.lower(): name for name in reversed(names)}
    columns: dict[str, str] = {}
    for need, candidates in NAMES.items():
        if need in given:
            _check_there(given[need], names, where, examples)
            columns[need] = given[need]
            continue
        name = next((by_lower[name] for name in candidates if name in by_lower), None)
        if name is not None and name not in given.values():
            columns[need] = name
    notes = _sort_out_answer(columns, given, by_lower, examples)
    if "score" not in columns:
        if not _can_be_compared(columns, examples):
            raise InputError(f"{where}: no column says what was right; {_ask(names, examples)}")
        said, right = columns["answer"], columns["target"]
        notes.append(
            f"no column says what was right: {said!r:.60} is compared with {right!r:.60}; "
            "--column score=NAME names one"
        )
    return Columns(columns, notes)


def plain_answer(value: Any) -> str | None:
    """A letter, number or word for yes and no, such that equal ones are equal; None for no answer.

    Example:
        >>> [plain_answer(value) for value in ("b ", 2.0, "2", None)]
        ['B', '2', '2', None]
    """
    text = "" if value is None else str(value).strip().upper()
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text or None


def _can_be_compared(columns: Mapping[str, str], examples: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the model's answers are letters or numbers, as the right ones are, and some agree."""
    if not {"answer", "target"} <= columns.keys():
        return False
    said, right = (
        [plain_answer(lookup(row, columns[need])) for row in examples]
        for need in ("answer", "target")
    )
    plain = all(text is None or _PLAIN.fullmatch(text) for text in (*said, *right))
    return plain and any(one == other and one for one, other in zip(said, right, strict=True))


def _check_there(
    column: str, names: list[str], where: object, examples: Sequence[Mapping[str, Any]]
) -> None:
    if column in names or any(lookup(row, column) is not None for row in examples):
        return
    if column.partition(".")[0] in names and not examples:
        return
    raise InputError(f"{where}: no column {column!r}; its columns are {_listed(names)}")


def lookup(row: Mapping[str, Any], column: str) -> Any:
    """The value of a row in a column, or under a path into nested values.

    Example:
        >>> lookup({"6b": {"is_correct": True}}, "6b.is_correct")
        True
    """
    if column in row:
        return row[column]
    value: Any = row
    rest = column
    while rest:
        if not isinstance(value, Mapping):
            return None
        # A key may hold dots itself: the longest that is there wins.
        parts = rest.split(".")
        key = next(
            (head for end in range(len(parts), 0, -1) if (head := ".".join(parts[:end])) in value),
            None,
        )
        if key is None:
            return None
        value, rest = value[key], rest[len(key) + 1 :]
    return value


# --- what is the right answer, what the model's ---------------------------------------------------


def _sort_out_answer(
    columns: dict[str, str],
    given: Mapping[str, str],
    by_lower: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Decide whose answer a column `answer` holds: the data set's, or the model's."""
    named = by_lower.get("answer")
    if named is None or "target" in columns or {"answer", "target"} & given.keys():
        return []
    said = [row.get(named) for row in examples if row.get(named) not in (None, "")]
    another = columns.get("answer") != named or "response" in columns
    marked = bool(said) and all(isinstance(text, str) and _GOLD.search(text) for text in said)
    if another or marked or "answer_index" in by_lower:
        if columns.get("answer") == named:
            del columns["answer"]
        columns["target"] = named
        return [f"{named!r} is taken for the right answer; --column answer={named} says otherwise"]
    return [f"{named!r} is taken for the model's answer; --column target={named} says otherwise"]


# --- asking ---------------------------------------------------------------------------------------


def _ask(names: list[str], examples: Sequence[Mapping[str, Any]]) -> str:
    """What to type where no score could be found."""
    likely = [column for column in _flat(examples) if _looks_scored(column, examples)]
    if len(likely) > 1:
        one, other = likely[:2]
        return (
            f"these columns hold right and wrong: {_listed(likely)}; choose one with "
            f"--column {_score(one)}, or compare two models of one table with "
            f"--before-column {_score(one)} --after-column {_score(other)}"
        )
    if likely:
        return f"if {likely[0]!r:.60} does, say --column {_score(likely[0])}"
    return f"name it with --column score=NAME (columns: {_listed(names)})"


def _score(column: str) -> str:
    """The flag's value as it is typed in a shell."""
    return shlex.quote(f"score={column:.60}")


def _flat(examples: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of some rows; those of an object within a row as paths."""
    found: dict[str, None] = {}
    for row in examples:
        for name, value in row.items():
            inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
            found |= dict.fromkeys(inner)
    return list(found)


def _looks_scored(column: str, examples: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all values of a column are right or wrong."""
    values = [value for row in examples if (value := lookup(row, column)) not in (None, "")]
    try:
        return bool(values) and all(
            number(value) in (0, 1) for value in values if not isinstance(value, list | dict)
        ) and not any(isinstance(value, list | dict) for value in values)  # fmt: skip
    except ValueError:
        return False


def _listed(names: Sequence[str], most: int = _NAMED) -> str:
    shown = ", ".join(f"{name:.30}" for name in names[:most]) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
