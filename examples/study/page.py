"""Stage 6: the study's pages of the docs, from page.md, claims.md and the tables.

    python page.py > ../../docs/explanation/study.md
    python page.py claims.md > ../../docs/explanation/claims.md

Every number of a page is a cell of results.md or more.md; `cells.py` says how page.md names it.
{published} stands for the findings of Harmon et al. in their own numbers.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

import cells
from cells import CELL as CELL
from cells import Tables, filled, wrapped

from forgetmap.study.published import published_study

HERE = Path(__file__).resolve().parent
KEYS = {"kinds": 3, "lost": 3}
"""How many columns name a row; elsewhere one does."""


def page(name: str = "page.md") -> str:
    """A page with the numbers of its cells."""
    text = (HERE / name).read_text()
    if "{published}" in text:
        text = text.replace("{published}", published())
    return wrapped(filled(text, read_tables()))


def published() -> str:
    """What Harmon et al. write, tested in the numbers that they publish."""
    stages = published_study().answers.stages
    rows = [
        f"| {found.text} | {found.why} | {100 * found.estimate.value:+.1f} "
        f"({100 * found.estimate.low:+.1f} to {100 * found.estimate.high:+.1f}) | {found.verdict} |"
        for found in (stages.findings if stages else [])
        if found.estimate
    ]
    return "\n".join(
        ["| claim | measured | points | verdict |", "| --- | --- | --- | --- |", *rows]
    )


def read_tables() -> Tables:
    """All cells of the study."""
    text = "\n".join((HERE / name).read_text() for name in ("results.md", "more.md"))
    return cells.read_tables(text, KEYS)


if __name__ == "__main__":
    print(page(*sys.argv[1:]), end="")
