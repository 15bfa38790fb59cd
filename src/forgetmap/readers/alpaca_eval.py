"""AlpacaEval: `annotations.json`, and `leaderboard.csv` beside it.

A list of comparisons of the model's output with a baseline's. The preference, from 1 (the baseline)
to 2 (the model), becomes a score from 0 to 1; a draw is 0.5. Checked against
tatsu-lab/alpaca_eval `main.py`, `metrics/winrate.py` and `metrics/helpers.py`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.files import head, read_small
from forgetmap.base.values import file_name, number
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.records import Answer, Format, Log, begins, entries

COMPANIONS = ("model_outputs.json", "reference_outputs.json")
_NAME = r'"%s"\s*:\s*"([^"\\]+)"'
_BEGINNING = 2**20


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    """The first record names the model, the baseline and the judge."""
    first = head(file, _BEGINNING).decode("utf-8", "replace")
    named = (re.search(_NAME % name, first) for name in ("generator_2", "generator_1", "annotator"))
    model, baseline, judge = (name[1] if name else "" for name in named)
    log = Log(
        model or file_name(file.parent), "alpaca_eval", {"baseline": baseline, "judge": judge}
    )
    totals = file.with_name("leaderboard.csv")
    if totals.is_file():
        how.tally.files.add(totals)
        table = read_small(totals, 10**7, "a leaderboard").decode("utf-8", "replace").splitlines()
        for row in csv.DictReader(table):
            if row.get("") == model:
                log.means = {"preference": (number(row.get("win_rate")) or 0) / 100}
                log.over = int(number(row.get("n_total")) or 0)
    return log


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    preference = number(record["preference"], "preference")
    preference = 1.5 if preference == 0 else preference  # how older releases wrote a draw
    if preference is not None and not 1 <= preference <= 2:
        raise ValueError(f"preference {preference:g} is not between 1 and 2")
    yield Answer(
        None,
        {"preference": None if preference is None else preference - 1},
        question=record["instruction"],
        more=(record.get("dataset"),),
        response=record.get("output_2"),
    )


_FORMAT = Format(
    harness="alpaca_eval",
    what="an AlpacaEval annotation",
    pattern="*annotations*.json",
    fits=begins(rb'\[\s*\{.*"(instruction|output_[12]|generator_[12])"\s*:'),
    records=entries,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
