"""The study of Harmon et al. as data: their published numbers through the same answers as ours.

Numbers only: their items were not published. So there are no intervals, tests, verdicts or single
items here, and no two pairs are told apart. Where their tables disagree with their paper or their
code, the cells concerned are marked.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from forgetmap.study.answers import answer
from forgetmap.study.file import Attribute, parse_attribute
from forgetmap.study.findings import FROM_BASE, INSTRUCT, MERGE
from forgetmap.study.result import (
    Number,
    Share,
    StudiedPair,
    StudyCell,
    StudyResult,
    StudySettings,
)

NAME = "published"
"""What to give in place of a study file."""
SOURCE = "Harmon et al., arXiv:2510.17776"
TOTAL = "Total"
WEBSITE = "web"
MARKS = {
    "D1": "Total is the mean of ten groups, one of them without a name, not of the printed rows.",
    "D2": "The two ARC tasks are not in Logic, where the paper lists them, but in the group "
    "without a name.",
    "D3": "The number of options that corrects for guessing is not the number shown, in one of "
    "its tasks or more.",
    "D4": "The model before is not the one that the table names: its ceilings are those of "
    "Qwen2.5-Coder-7B ('Base') or Qwen2.5-Coder-7B-Instruct ('Coder').",
    "D5": "Tasks were left out pair by pair: the same model has other ceilings in other tables.",
    "D6": "The worked example of section 2 says 6 %; the paper's formula gives 8 %. No cell.",
    "D7": "The paper says that forgetting cannot pass its ceiling; its formula lets it. No cell.",
    "D8": "Captions say that scale lowers losses and raises gains; these totals have no such "
    "trend, or the opposite one.",
    "D9": "The website says that reasoning training loses less than instruction tuning; the paper "
    "says that it loses as much.",
    "D10": "Listed as trained from an instruct model, but the model before is another one.",
    "D11": "The paper does not say what the plus-minus is: by the code, the deviation over three "
    "runs. All cells.",
    "D12": "The code also ran IFEval, and dropped all its scores without a word. No cell.",
    "D13": "Spherical merges of OpenThinker were configured and appear nowhere. No cell.",
    "D14": "The published code, run as it is, does not produce this comparison.",
    WEBSITE: "From the website: the paper prints no such row, so there is no deviation or ceiling.",
}
"""Where paper, tables, website and code disagree, in our words."""
_WRONG_OPTIONS = {
    *("Common Sense", "Culture", "Knowledge/QA", "Language", "Logic", "Math", "Safety/Truth"),
    TOTAL,
}
_OTHER_START = {"INTELLECT-2 (32B)", "Open Math 2 (8B)"}
_NOT_PRODUCED = {
    *("QwQ (32B)", "R1 Distill Qwen (32B)", "Llama 3.1 Inst. (8B)", "R1 Distill Llama (8B)"),
    "Open Math 2 (8B)",
}
_SIZES = ("3B", "7B", "14B", "32B")
_NO_TREND = {f"Q2.5 {kind} ({size})" for kind in ("Inst.", "Coder") for size in _SIZES}
_Row = dict[str, str]


@cache
def published_study() -> StudyResult:
    """The published study: 47 comparisons, 854 printed numbers and 38 of the website."""
    pairs = list(_pairs())
    return StudyResult(
        pairs=pairs,
        failures=[],
        answers=answer(pairs, None),
        settings=StudySettings(
            task_map="post-forget",
            threshold=None,
            margin=0.02,
            identity="none",
            deterministic=False,
            draws=0,
            seed=0,
        ),
        warnings=[
            "numbers of tables 2 to 35 of Harmon, Hochlehnert, Bethge and Prabhu, Mapping "
            "Post-Training Forgetting in Language Models at Scale (arXiv:2510.17776); "
            "Safety/Truth of tables 2 to 15 from their website",
            "lost and gained are forgetting and backward transfer as published: corrected for "
            "guessing, with the noise of the runs still in them",
            "items were not published: there are no intervals over items, tests, verdicts or "
            "items, and ± is the deviation over three runs",
            "merges of OpenThinker were run on MMLU alone, so their totals are of other tasks",
            "marks of cells (D1 to D14) say where paper, tables, website and code disagree; the "
            "JSON and the CSV have them",
        ],
        source=SOURCE,
        marks=MARKS,
    )


def _pairs() -> Iterator[StudiedPair]:
    cells: dict[str, dict[str, _Row]] = defaultdict(dict)
    for row in _rows("published_cells.csv"):
        cells[row["pair"]][row["category"]] = row
    listed = _rows("published_pairs.csv")
    unlike = _unlike_ceilings(listed, cells)
    for pair in listed:
        found = {
            category: _cell(row, _marks(pair, category, row, unlike))
            for category, row in cells[pair["name"]].items()
        }
        yield StudiedPair(
            name=pair["name"],
            attributes=_attributes(pair),
            before=pair["before"],
            after=pair["after"],
            before_log=None,
            after_log=None,
            old=found.pop(TOTAL),
            new=None,
            categories=found,
            tasks={},
            coverage=None,
            metric={},
            confounds=[],
            warnings=[],
        )


def _rows(name: str) -> list[_Row]:
    text = (files("forgetmap.study") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _attributes(pair: _Row) -> dict[str, Attribute]:
    names = ("stage", "family", "size", "merge", "share_later")
    return {name: parse_attribute(name, pair[name]) for name in names if pair[name]}


def _cell(row: _Row, marks: list[str]) -> StudyCell:
    lost, gained = (_share(row, name) for name in ("lost", "gained"))
    return StudyCell(
        n=None,
        accuracy_before=None,
        accuracy_after=None,
        change=Number(value=gained.value - lost.value),
        lost=lost,
        gained=gained,
        p_value=None,
        verdict=None,
        ceiling_before=_fraction(row["ceiling_before"]),
        ceiling_after=_fraction(row["ceiling_after"]),
        marks=marks,
    )


def _share(row: _Row, name: str) -> Share:
    value = float(row[name]) / 100
    deviation = _fraction(row[f"{name}_sd"])
    return Share(low_end=value, high_end=value, basis="published", deviation=deviation)


def _fraction(percent: str) -> float | None:
    return float(percent) / 100 if percent else None


# --- marks ---------------------------------------------------------------------------------------


def _unlike_ceilings(pairs: list[_Row], cells: dict[str, dict[str, _Row]]) -> set[tuple[str, str]]:
    """Models and categories with several ceilings; merges ran on other tasks by design."""
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pair in pairs:
        for category, row in cells[pair["name"]].items():
            for side in ("before", "after"):
                if pair["stage"] != MERGE and row[f"ceiling_{side}"]:
                    seen[pair[side], category].add(row[f"ceiling_{side}"])
    return {place for place, ceilings in seen.items() if len(ceilings) > 1}


def _marks(pair: _Row, category: str, row: _Row, unlike: set[tuple[str, str]]) -> list[str]:
    """What to know about a cell."""
    name, tables = pair["name"], [int(table) for table in pair["tables"].split()]
    whole = max(tables) < 28  # the later ones are MMLU alone
    merge = pair["stage"] == MERGE
    either = {(pair[side], category) for side in ("before", "after")}
    same_size = pair["size"] == "32B" or pair["family"] != "Qwen2.5"
    applies = {
        "D1": whole and category == TOTAL,
        "D2": whole and category in ("Logic", TOTAL),
        "D3": whole and category in _WRONG_OPTIONS,
        "D4": merge and whole,
        "D5": not merge and bool(either & unlike),
        "D8": name in _NO_TREND and category == TOTAL,
        "D9": pair["stage"] in (FROM_BASE, INSTRUCT) and same_size and category == TOTAL,
        "D10": name in _OTHER_START,
        "D14": merge or name in _NOT_PRODUCED,
        WEBSITE: not row["ceiling_before"],
    }
    return [mark for mark, found in applies.items() if found]
