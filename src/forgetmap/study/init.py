"""A study file made from a folder of logs: a start that a person reads and corrects."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.words import clean
from forgetmap.readers.registry import find_reader

_BEFORE = ("base", "before", "pretrained", "original", "root")
"""Words in the name of a log that say that it is the checkpoint before."""
_STAGES = {
    "cpt": "continual pretraining",
    "sft": "SFT",
    "dpo": "DPO",
    "rl": "RL",
    "rlvr": "RL",
    "grpo": "RL",
    "ppo": "RL",
    "instruct": "instruction tuning",
    "reasoning": "reasoning",
    "merge": "merge",
    "merged": "merge",
}
_NUMBERS = (
    ("seed", re.compile(r"(?:^|[-_.])(?:seed|s)[-_]?(\d+)(?=$|[-_.])", re.IGNORECASE)),
    ("steps", re.compile(r"(?:steps?|checkpoint|ckpt)[-_]?(\d+)", re.IGNORECASE)),
    ("size", re.compile(r"(?:^|[-_.])(\d+(?:\.\d+)?[kmbt])(?=$|[-_.])", re.IGNORECASE)),
)
_LAST_NUMBER = re.compile(r"[-_.](\d{1,2})$")
"""A number at the end of a name: a seed, where logs beside it differ in nothing else."""
_DEEPEST = 4


class _Pair(NamedTuple):
    before: Path
    after: Path


def write_study(
    folder: str | Path, before: str | None = None, start: str | Path | None = None
) -> str:
    """A study file for a folder of logs, with attributes guessed from the names.

    Args:
        folder: Where the logs lie: side by side, or in a folder for each model.
        before: A word in the name of the logs before; by default base, before and the like.
        start: Where paths in the file start; by default in the folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; name the folder that holds the logs")
    words = (before.casefold(),) if before else _BEFORE
    pairs = sorted(_pairs(folder, words, 0))
    if not pairs:
        listed = ", ".join(words)
        raise InputError(
            f"{folder}: no log there is named as the one before ({clean(listed)}) beside other "
            "logs; say which with --before WORD"
        )
    lines = [
        "# Read this before you use it: which log is before and which is after, and all",
        "# attributes, are guessed from the names. Add what you know: stage, family, size,",
        "# examples, steps, method, learning_rate, weight_drift, seed.",
        "pairs:",
    ]
    told_apart = _told_apart([pair.after.relative_to(folder) for pair in pairs])
    if any("seed" in guessed for guessed in told_apart):
        lines.insert(3, "# seed is a guess too: logs that differ in it alone count as replicates.")
    for pair, guessed in zip(pairs, told_apart, strict=True):
        before_log, after_log = (os.path.relpath(path, start or folder) for path in pair)
        if any(sign in before_log + after_log for sign in "*{}"):
            lines.append(f"# left out, its name holds one of * {{ }}: {clean(after_log)}")
            continue
        values = {"before": before_log, "after": after_log, **guessed}
        told = (f"{key}: {json.dumps(value)}" for key, value in values.items())
        lines.append(f"  - {{{', '.join(told)}}}")
    return "\n".join(lines) + "\n"


def _pairs(folder: Path, words: tuple[str, ...], depth: int) -> Iterator[_Pair]:
    """In every folder, the log before with each of the others."""
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    logs = [path for path in entries if _is_log(path)]
    first = [path for path in logs if _says(path, words)]
    if first:
        for after in logs:
            if after not in first:
                yield _Pair(_nearest(first, after), after)
        return
    if depth < _DEEPEST:
        for path in entries:
            if path.is_dir():
                yield from _pairs(path, words, depth + 1)


def _is_log(path: Path) -> bool:
    try:
        find_reader(path)
    except (InputError, OSError):
        return False
    return True


def _says(path: Path, words: tuple[str, ...]) -> bool:
    parts = re.split(r"[-_. ]", path.stem.casefold())
    return any(word in parts or word == path.stem.casefold() for word in words)


def _nearest(first: list[Path], after: Path) -> Path:
    """Of several logs before, the one whose name begins most like that of the log after."""

    def shared(path: Path) -> int:
        pairs = zip(path.name, after.name, strict=False)
        return next((n for n, (one, other) in enumerate(pairs) if one != other), len(path.name))

    return max(first, key=shared)


def _told_apart(logs: list[Path]) -> list[dict[str, str | int]]:
    """The guesses of all logs; `kind` where two would else be replicates and are not."""
    numbered = _numbered(logs)
    found = [_guessed(log) for log in logs]
    for log, guessed in zip(logs, found, strict=True):
        match = _LAST_NUMBER.search(_name(log))
        if match and not guessed.keys() & {"seed", "steps"} and log.parent in numbered:
            guessed["seed"] = int(match[1])
    kinds: dict[str, set[str]] = {}
    for log, guessed in zip(logs, found, strict=True):
        kinds.setdefault(_rest(guessed), set()).add(_kind(log))
    for log, guessed in zip(logs, found, strict=True):
        if "seed" in guessed and len(kinds[_rest(guessed)]) > 1:
            guessed["kind"] = _kind(log)
    return found


def _numbered(logs: list[Path]) -> set[Path]:
    """Folders in which two logs or more differ in the number at the end alone."""
    names = Counter(
        (log.parent, _LAST_NUMBER.sub("", name))
        for log in logs
        if _LAST_NUMBER.search(name := _name(log))
    )
    return {folder for (folder, _), count in names.items() if count > 1}


def _name(log: Path) -> str:
    """A name without its ending; in `sft-0.5` the 5 is none."""
    return log.stem if log.suffix[1:2].isalpha() else log.name


def _rest(guessed: dict[str, str | int]) -> str:
    """All that was guessed but the seed."""
    return repr(sorted((key, value) for key, value in guessed.items() if key != "seed"))


def _kind(log: Path) -> str:
    """The name of a log without its seed."""
    name = str(log.with_name(_name(log))).replace("/", "-")
    return _LAST_NUMBER.sub("", dict(_NUMBERS)["seed"].sub("", name))


def _guessed(path: Path) -> dict[str, str | int]:
    """Attributes that the name of a log tells.

    Example:
        >>> _guessed(Path("smol-135M/sft-seed2.csv"))
        {'stage': 'SFT', 'seed': 2, 'size': '135M'}
    """
    text = str(path.with_name(_name(path)))
    words = re.split(r"[-_./ ]", text.casefold())
    found: dict[str, str | int] = {}
    if stage := next((_STAGES[word] for word in words if word in _STAGES), None):
        found["stage"] = stage
    for name, pattern in _NUMBERS:
        if match := pattern.search(text.replace("/", "-")):
            found[name] = int(match[1]) if match[1].isdigit() else match[1]
    return found
