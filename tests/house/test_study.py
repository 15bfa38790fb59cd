"""The study: its tables come from its logs, and each number of its page from a cell of them."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from study_claims import ADVANTAGES, METHODS, RESULTS, SETTINGS

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "study"


LONG = {
    *("SmolLM2-135M-Instruct, airports", "Gemma 3 270M, airports"),
    *("The method or the rate", "Behaviour"),
}
"""Sections that take long to make: all the others together take a tenth of the time."""


def test_the_short_tables_come_out_of_the_logs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STUDY))
    tables = importlib.import_module("tables")
    monkeypatch.delitem(sys.modules, "tables")  # pandas would take it for a package of that name
    text = (STUDY / "results.md").read_text()
    made = tables.sections(tables.find(STUDY / "logs"), STUDY / "logs")
    assert list(made) == re.findall(r"^## (.*)$", text, re.MULTILINE)
    for title in made.keys() - LONG:
        assert f"## {title}\n\n{made[title]()}\n" in text


@pytest.mark.slow
def test_all_tables_and_figures_come_out_of_the_logs_again(tmp_path: Path) -> None:
    command = [sys.executable, str(STUDY / "tables.py"), str(STUDY / "logs"), str(tmp_path)]
    subprocess.run(command, check=True)
    assert (tmp_path / "results.md").read_text() == (STUDY / "results.md").read_text()
    names = {path.name for path in (STUDY / "figures").iterdir()}
    assert names == {path.name for path in (tmp_path / "figures").iterdir()}


# --- numbers in prose -----------------------------------------------------------------------------

TITLES = {
    "SmolLM2-135M-Instruct, airports": ("smollm2",),
    "SmolLM2-135M-Instruct, sums": ("smollm2 sums",),
    "SmolLM2-135M-Instruct, broad": ("smollm2 broad",),
    "Gemma 3 270M, airports": ("gemma",),
    "Gemma 3 270M, broad": ("gemma broad",),
    "Forgotten by category": ("category",),
    "One domain": ("domain",),
    "The method or the rate": ("rate",),
    "How far the weights moved": ("weights",),
    "Behaviour": ("behaviour",),
    "Theory and measurement": ("old mass", "tilt"),
}
"""How claims call the tables of each section."""
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
CELL = re.compile(r"\{([-+~]*)([^{}/]+)/([^{}/]+)/([^{}#]+)(?:#(\d))?\}")
Tables = dict[str, dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def tables() -> Tables:
    """All cells: by table, row and column. A column whose name occurs again is called `name 2`."""
    found: Tables = {}
    text = (STUDY / "results.md").read_text()
    for section in text.split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        blocks = re.findall(r"(?:^\|.*\n?)+", rest, re.MULTILINE)
        for name, block in zip(TITLES[title], blocks, strict=True):
            rows = [line.strip("| ").split(" |") for line in block.splitlines()]
            found[name] = _by_name([[cell.strip() for cell in row] for row in rows])
    found["ranks"] = {"forgotten and words": {"both": " ".join(re.findall(r"(-0\.\d\d) on", text))}}
    found["logs"] = {name: {"count": f"{n:,}"} for name, n in _counts().items()}
    plan = (STUDY / "plan.py").read_text()
    found["plan"] = {
        name: dict(re.findall(r'"(\w+)": (\d+)\b', line))
        for name, line in re.findall(r"^([A-Z]+) = \{(.*)\}$", plan, re.MULTILINE)
    }
    return found


def _by_name(rows: list[list[str]]) -> dict[str, dict[str, str]]:
    header, _, *body = rows
    names = [
        name if (times := header[: place + 1].count(name)) == 1 else f"{name} {times}"
        for place, name in enumerate(header)
    ]
    keys = 4 if header[:4] == ["model", "task", "method", "seed"] else 1
    return {" ".join(row[:keys]): dict(zip(names, row, strict=False)) for row in body}


def _counts() -> dict[str, int]:
    """What can be counted without a table."""
    import pyarrow.parquet as pq

    from forgetmap.capabilities.suite import build

    logs = STUDY / "logs"
    old = pq.read_table(logs / "smollm2-before.parquet", columns=["task", "item"])
    runs = (path for path in logs.glob("*.json") if path.with_suffix(".parquet").is_file())
    return {
        "old questions": len(old.group_by(["task", "item"]).aggregate([])),
        "capability suite": len(build()),
        "trainings and merges": len(list(runs)),
    }


def filled(claim: str, tables: Tables) -> str:
    """The claim with the numbers of its cells."""
    return CELL.sub(lambda match: _number(tables, *match.groups()), claim)


def _number(tables: Tables, how: str, table: str, row: str, column: str, place: str | None) -> str:
    numbers = re.findall(NUMBER, tables[table][row][column])
    if "-" in how:
        numbers = [_negated(number) for number in numbers]
    if "+" not in how:
        numbers = [number.removeprefix("+") for number in numbers]
    if "~" in how:
        return " to ".join(numbers[2:0:-1] if "-" in how else numbers[1:3])
    return numbers[int(place or 0)]


def _negated(number: str) -> str:
    return number[1:] if number[0] == "-" else f"-{number.removeprefix('+')}"


def assert_all_bound(text: str, claims: Iterable[str], tables: Tables) -> None:
    """Each claim occurs with the numbers of its cells, and the text has no number beside them."""
    text = " ".join(text.split())
    for claim in claims:
        words = filled(claim, tables)
        assert words in text, f"not in the text, or with other numbers: {words}"
        text = text.replace(words, re.sub(r"\d", "", words))
    text = re.sub(r"SmolLM2-135M|Gemma 3 270M|\]\(\S*?\)", "", text)
    loose = re.findall(rf".{{0,40}}(?<![\w.]){NUMBER}.{{0,20}}", text)
    assert not loose, f"numbers that are bound to no cell: {loose}"


def table_rows(page: str, tables: Tables) -> Iterator[str]:
    """The rows of the page's three tables as the results have them."""
    for heading, row in (("forgotten", _forgotten), ("words in an open answer", _words)):
        rows = page.partition(f"| {heading} | SmolLM2 | Gemma |\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^\| ([^|]+?) \|", rows, re.MULTILINE)[1:]:
            yield f"| {name} | {row(name, 'smollm2', tables)} | {row(name, 'gemma', tables)} |"
    methods = {
        "DPO": "dpo", "SDFT": "sdft", "GRPO without a reference": "grpo-0",
        "GRPO with a KL of weight 0.2": "grpo-0.2",
    }  # fmt: skip
    models = {"SmolLM2": "smollm2", "Gemma": "gemma3-270m"}
    for method, task, model in re.findall(r"^\| ([^,|]+), (\w+), (\w+) \|", page, re.MULTILINE):
        run = f"rate/{models[model]} {task} {methods[method]}"
        yield (
            f"| {method}, {task}, {model} "
            f"| {{{run}/forgotten by plain training}} %,"
            f" learns {{{run}/new task right by plain training}} % "
            f"| {{{run}/by the method}} %, learns {{{run}/by the method 2}} % |"
        )


def _forgotten(name: str, model: str, tables: Tables) -> str:
    """Where no share learned is told, it is 99.6 % or more, as the page says."""
    row = f"{model}/{METHODS[name]}"
    learns = filled(f"{{{row}/new task right}}", tables)
    return f"{{{row}/forgotten}} %" + (f", learns {learns} %" if float(learns) < 99.6 else "")


def _words(name: str, model: str, tables: Tables) -> str:
    model = {"smollm2": "smollm2", "gemma": "gemma3-270m"}[model]
    method = METHODS.get(name, "sft")  # each row tells the words before
    asked = [row for row in tables["behaviour"] if row.startswith(f"{model} airports {method} ")]
    return f"{{behaviour/{min(asked)}/words#{int(name != 'before')}}} words"


def test_every_number_of_the_page_is_that_of_its_cell(tables: Tables) -> None:
    page = (ROOT / "docs" / "explanation" / "study.md").read_text()
    rows = list(table_rows(page, tables))
    assert len(rows) == 13 + 17 + 6
    assert_all_bound(page, [*rows, *SETTINGS, *RESULTS], tables)


def test_every_number_of_the_readme_on_the_study_is_that_of_its_cell(tables: Tables) -> None:
    text = (ROOT / "README.md").read_text()
    [bullet] = re.findall(r"^- \*\*A study of what works.*?(?=^- )", text, re.MULTILINE | re.DOTALL)
    assert_all_bound(bullet, ADVANTAGES, tables)


@pytest.mark.parametrize(
    ("true", "changed", "says"),
    [
        ("forgot 2.0 %. That is a tenth", "forgot 2.1 %. That is a tenth", "with other numbers"),
        ("| plain SFT | 10.4 %", "| plain SFT | 10.3 %", "with other numbers"),
        ("Both measures go", "Both measures, 9.1 % apart, go", "bound to no cell"),
    ],
)
def test_a_number_that_its_cell_does_not_have_is_found(
    tables: Tables, true: str, changed: str, says: str
) -> None:
    page = (ROOT / "docs" / "explanation" / "study.md").read_text()
    text = page.replace(true, changed)
    assert text != page
    with pytest.raises(AssertionError, match=says):
        assert_all_bound(text, [*table_rows(text, tables), *SETTINGS, *RESULTS], tables)


def test_what_advise_says_of_the_study_is_in_the_tables() -> None:
    sections = (STUDY / "results.md").read_text().split("## ")
    small, other = (
        {
            method: float(share)
            for method, share in re.findall(r"^\| (\S+) \| \d \| ([\d.]+)%", section, re.MULTILINE)
        }
        for section in sections
        if section.partition("\n")[0].endswith(", airports")
    )
    for found in (small, other):
        assert found["anchor-questions"] < found["sft"] / 2
        assert 0.55 < found["anchor"] / found["sft"] < 0.8
        assert 0.7 < found["merge-linear-0.5"] / found["sft"] < 0.8
        assert 0.45 < found["sft-low-rate"] / found["sft"] < 0.72
        assert 0.1 <= found["anchor-questions-low-rate"] / found["sft"] < 0.27
    low = "merge-sft-low-rate-linear-0.5"
    assert min(found[low] / found["sft-low-rate"] for found in (small, other)) < 0.52
    assert 0.08 < small["sft"] / 100 < 0.12
    assert 0.17 < other["sft"] / 100 < 0.23
    [section] = (one for one in sections if one.startswith("Behaviour"))
    for line in re.findall(r"^\| \S+ \| airports \| sft \|.*$", section, re.MULTILINE):
        words, left = map(int, re.findall(r"(\d+) to (\d+) \|$", line)[0])
        assert words > 100
        assert left <= 4
    [section] = (one for one in sections if one.startswith("One domain"))
    found = re.findall(r"^\| (\S+ \S+)-0 \|.*?([\d.]+)% \(", section, re.MULTILINE)
    inside = {run: float(share) for run, share in found}
    assert 0.55 < inside["gemma3-270m replay-25-domain"] / inside["gemma3-270m sft"] < 0.65
    assert abs(inside["smollm2 replay-25-domain"] - inside["smollm2 sft"]) < 0.5


def test_the_one_training_of_gemma_that_lost_nothing_is_the_one_the_page_names() -> None:
    table = (STUDY / "results.md").read_text().partition("## Behaviour")[2]
    whole = set()
    for task, method, rest in re.findall(r"^\| gemma3-270m \| (\w+) \| (\S+) \|(.*)$", table, re.M):
        bounds = re.findall(r"\(([-+]\d+)% to ([-+]\d+)%\)", rest)
        assert len(bounds) == 3
        if all(int(low) < 0 < int(high) for low, high in bounds):
            whole.add((task, method))
    assert whole == {("airports", "anchor-questions-low-rate")}


def test_no_text_of_third_party_questions_is_passed_on() -> None:
    import pyarrow.parquet as pq

    from forgetmap.samples.table import TEXT_COLUMNS

    logs = [path for path in (STUDY / "logs").rglob("*.parquet") if path.parent.name != "told"]
    assert len(logs) > 40
    for path in logs:
        table = pq.read_table(path, columns=list(TEXT_COLUMNS))
        assert all(table[name].null_count == len(table) for name in TEXT_COLUMNS), path
    for path in (STUDY / "logs" / "told").iterdir():
        tasks = set(pq.read_table(path, columns=["task"])["task"].to_pylist())
        assert all(task.startswith("atlas_") or task == "airports" for task in tasks)
