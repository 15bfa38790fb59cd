"""The study: its tables come from its logs, and its page tells only numbers of the tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "study"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study")
    command = [sys.executable, str(STUDY / "tables.py"), str(STUDY / "logs"), str(out)]
    subprocess.run(command, check=True)
    return out


def test_the_tables_come_out_of_the_logs_again(made: Path) -> None:
    assert (made / "results.md").read_text() == (STUDY / "results.md").read_text()
    names = {path.name for path in (STUDY / "figures").iterdir()}
    assert names == {path.name for path in (made / "figures").iterdir()}


def test_the_page_tells_only_numbers_of_the_tables() -> None:
    page = (ROOT / "docs" / "explanation" / "study.md").read_text()
    told = set(re.findall(r"(\d+\.\d)\s+(?:%|points|to)", page))
    told |= set(re.findall(r"\bto (\d+\.\d)", page))
    table = set(re.findall(r"(\d+\.\d)%", (STUDY / "results.md").read_text()))
    assert len(told) > 20
    assert told <= table


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
    [section] = (one for one in sections if one.startswith("One domain"))
    shares = dict(re.findall(r"^\| gemma3-270m (\S+) \|.*?([\d.]+)% \(", section, re.MULTILINE))
    assert 0.6 < float(shares["replay-25-domain"]) / float(shares["sft"]) < 0.7


def test_no_text_of_third_party_questions_is_passed_on() -> None:
    import pyarrow.parquet as pq

    from forgetmap.samples import TEXT_COLUMNS

    logs = [path for path in (STUDY / "logs").rglob("*.parquet") if path.parent.name != "told"]
    assert len(logs) > 40
    for path in logs:
        table = pq.read_table(path, columns=list(TEXT_COLUMNS))
        assert all(table[name].null_count == len(table) for name in TEXT_COLUMNS), path
    for path in (STUDY / "logs" / "told").iterdir():
        tasks = set(pq.read_table(path, columns=["task"])["task"].to_pylist())
        assert all(task.startswith("atlas_") or task == "airports" for task in tasks)
