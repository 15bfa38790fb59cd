"""The study: its tables come from its logs, and its page tells only numbers of the tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


def test_the_page_tells_the_words_of_the_tables() -> None:
    page = (ROOT / "docs" / "explanation" / "study.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (\d+) words \| (\d+) words \|$", page, re.MULTILINE)
    told = {name: (small, other) for name, small, other in rows}
    low = "a tenth of the rate"
    names = {
        "plain SFT": "sft", "LoRA of rank 16": "lora", "DPO": "dpo", "SDFT": "sdft",
        "replay of text the model wrote": "replay-25",
        "replay of questions with their answers": "replay-25-questions",
        "retention loss on questions": "retention",
        "KL anchor on text the model wrote": "anchor",
        "KL anchor on questions": "anchor-questions",
        "half of each model, merged": "merge-linear-0.5",
        "a tenth of the learning rate": "sft-low-rate",
        f"{low}, then half of each merged": "merge-sft-low-rate-linear-0.5",
        f"{low}, KL anchor on text the model wrote": "anchor-low-rate",
        f"{low}, retention loss on questions": "retention-low-rate",
        f"{low}, KL anchor on questions": "anchor-questions-low-rate",
        "plain SFT with the rate and steps of DPO and SDFT": "sft-like-dpo",
    }  # fmt: skip
    table = (STUDY / "results.md").read_text().partition("## Behaviour")[2]
    found = re.findall(r"^\| (\S+) \| airports \| (\S+) \| \d \|.*?(\d+) to (\d+) \|$", table, re.M)
    words = {(model, method): (before, after) for model, method, before, after in reversed(found)}
    models = ("smollm2", "gemma3-270m")
    assert told.pop("before") == tuple(words[model, "sft"][0] for model in models)
    assert told.keys() == names.keys()
    for name, method in names.items():
        assert told[name] == tuple(words[model, method][1] for model in models)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "from {} words to {}.".format(*words["gemma3-270m", "sft"]) in readme
    [ranks] = re.findall(r"rank correlations of (\S+) and (\S+)\)", page)
    assert list(ranks) == re.findall(r"(-0\.\d\d) on", table)


def test_the_readme_tells_numbers_of_the_tables() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    count, *told = re.findall(
        r"of (\d+) trainings and merges .*? forgot ([\d.]+) % .*?, ([\d.]+) % .*?, and ([\d.]+) %",
        text,
    )[0]
    logs = STUDY / "logs"
    assert int(count) == sum(
        (logs / f"{path.stem}.parquet").is_file() for path in logs.glob("*.json")
    )
    table = (STUDY / "results.md").read_text().partition("## Gemma 3 270M, airports")[2]
    methods = ("sft", "anchor-questions", "anchor-questions-low-rate")
    assert told == [re.findall(rf"^\| {one} \| \d \| ([\d.]+)%", table, re.M)[0] for one in methods]


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


def test_what_the_page_says_of_method_and_rate_is_in_the_tables() -> None:
    page = (ROOT / "docs" / "explanation" / "study.md").read_text()
    section = page.partition("## The method or the rate")[2].partition("\n## ")[0]
    names = {
        "DPO": "dpo", "SDFT": "sdft", "GRPO without a reference": "grpo-0",
        "GRPO with a KL of weight 0.2": "grpo-0.2",
    }  # fmt: skip
    models = {"SmolLM2": "smollm2", "Gemma": "gemma3-270m"}
    shares = r" \| ([\d.]+) %, learns ([\d.]+) % \| ([\d.]+) %, learns ([\d.]+) % \|$"
    rows = re.findall(r"^\| ([^,|]+), (\w+), (\w+)" + shares, section, re.MULTILINE)
    assert len(rows) == 6
    table = (STUDY / "results.md").read_text()
    for method, task, model, *told in rows:
        name = re.escape(f"{models[model]} {task} {names[method]}")
        [found] = re.findall(rf"^\| {name} \|(.*)$", table, re.MULTILINE)
        shares_found = re.findall(r"\| ([\d.]+)% (?=\|)", found)
        assert told == [shares_found[place] for place in (0, 2, 1, 3)]


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
