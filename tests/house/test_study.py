"""The study: its tables come from its logs, and each number of its page from a cell of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from forgetmap.study import Study, run_study
from forgetmap.views.figures.study import write_study_figures
from forgetmap.views.tables.study_markdown import to_markdown

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "study"


def module(name: str) -> Any:
    """A script of the study."""
    spec = importlib.util.spec_from_file_location(f"study_{name}", STUDY / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_study_file_lists_every_training_with_what_is_known_of_it() -> None:
    study = Study.load(STUDY / "study.yaml")
    logs = {path.stem for path in (STUDY / "logs").glob("*.parquet")}
    assert {pair.name for pair in study.pairs} == {n for n in logs if not n.endswith("-before")}
    assert not study.notes
    known = {"family", "task", "method", "seed", "size", "way", "learning_rate", "steps"}
    assert all(known <= pair.attributes.keys() for pair in study.pairs)
    more = {"replay": 21, "anchor": 21, "merge_weight": 14}
    for name, count in more.items():
        assert sum(name in pair.attributes for pair in study.pairs) == count


def test_some_tables_come_out_of_the_study_again(tmp_path: Path) -> None:
    study = Study.load(STUDY / "study.yaml")
    chosen = [pair for pair in study.pairs if pair.attributes["task"] == "broad"]
    result = run_study(study._replace(pairs=chosen), cache=tmp_path)
    made = (STUDY / "results.md").read_text()
    kinds = {str(kind.attributes["method"]): kind for kind in result.answers.against.kinds}
    del kinds["lora"]  # among so few its rate follows from the method, and may differ with it
    assert len(kinds) == 3
    for method, kind in kinds.items():
        words = f"{100 * kind.more_lost.value:+.1f} ({100 * kind.more_lost.low:+.1f} to "
        named = f"`broad {kind.attributes['family']} {method}`"
        assert re.search(rf"^\| {re.escape(named)} .*{re.escape(words)}", made, re.MULTILINE)
    tables = module("more").tables(result)
    lengths = {"share": 0.5, "old_tokens": 31.0, "new_tokens": 11.0}  # the first is not learned
    assert module("more")._limit(lengths) == pytest.approx((0.5 / 30) / (0.5 / 30 + 0.5 / 10))
    for name in ("asked", "guessing", "weights", "mass", "forecast"):
        assert f"\n\n{tables[name]()}\n" in (STUDY / "more.md").read_text()


@pytest.mark.slow
def test_all_tables_and_figures_come_out_of_the_logs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(STUDY)  # as the commands say: notes name paths
    result = run_study("study.yaml", cache=tmp_path)
    assert to_markdown(result) == (STUDY / "results.md").read_text()
    assert module("more").filled(result) == (STUDY / "more.md").read_text()
    written = {path.name for path in write_study_figures(result, tmp_path / "figures")}
    assert "trade_off.svg" in written


# --- numbers in prose -----------------------------------------------------------------------------

SETTINGS = (
    *("SmolLM2-135M-Instruct", "Gemma 3 270M", "4-bit weights", "float32", "2,000 facts", "H200"),
    *("2e-4", "max(p - q, 0)", "rank 16", "weight 0.2", "weight of 0.2", "weight of 1 it"),
    *("weights of 10, 25 and 50 %", "at step 320", "steps 10 and 20", "at step 40"),
    *(
        "step 20 |",
        "step 40 |",
        "step 80 |",
        "step 320 |",
        "model of 8 B",
        "from 0 (as by chance) to 100 %",
    ),
)
"""Numbers of the page that say how the study was done, not what came out."""
ADVANTAGES = (
    "of {counts/trainings and merges/number} trainings and merges",
    "lost {kinds/airports gemma3-270m sft/lost} % of its old questions with plain training"
    " ({~kinds/airports gemma3-270m sft/lost}, three trainings) and"
    " {kinds/airports gemma3-270m anchor-questions/lost} %"
    " ({~kinds/airports gemma3-270m anchor-questions/lost}) with an anchor on old questions",
    "from {words/gemma3-270m-airports-sft-0/words} words to"
    " {words/gemma3-270m-airports-sft-0/words#1}",
)
"""What the list of features says of the study."""


@pytest.fixture(scope="module")
def page() -> Any:
    """The module that makes the page."""
    return module("page")


def test_the_page_is_made_from_the_tables(page: Any) -> None:
    made = (ROOT / "docs" / "explanation" / "study.md").read_text()
    assert page.page() == made, "run: cd examples/study && python page.py > ../../docs/..."


def loose_numbers(text: str, page: Any) -> list[str]:
    """Numbers that are no cells and say nothing of how the study was done."""
    text = re.sub(r"\]\(\S*?\)|```.*?```", "", page.CELL.sub("", text), flags=re.DOTALL)
    text = " ".join(text.split())
    for words in SETTINGS:
        text = text.replace(words, "")
    return re.findall(r".{0,40}(?<![\w.])\d[\d,.]*.{0,20}", re.sub(r"SmolLM2|Gemma 3", "", text))


def test_the_claims_are_made_from_the_tables(page: Any) -> None:
    made = (ROOT / "docs" / "explanation" / "claims.md").read_text()
    assert page.page("claims.md") == made, "run: cd examples/study && python page.py claims.md"


def test_a_claim_is_decided_by_three_trainings_alone() -> None:
    text = (STUDY / "claims.md").read_text().split("## In our trainings")[1].split("*Theory*")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    for *_, trainings, verdict in rows[2:]:
        assert verdict.startswith("confirmed") == (trainings == "3")
        assert verdict.startswith(("confirmed", "refuted", "cannot tell"))


def test_every_number_of_the_page_is_a_cell(page: Any) -> None:
    text = (STUDY / "page.md").read_text()
    assert not loose_numbers(text, page)
    assert loose_numbers(text + " It lost 9.1 % here.", page)


def test_the_verdicts_of_the_page_are_those_of_the_table(page: Any) -> None:
    made = (ROOT / "docs" / "explanation" / "study.md").read_text()
    told = {"undecided": "can't tell", "lost": "lost"}
    rows = page.read_tables()["guessing"].values()
    [block] = re.findall(r"^\| SmolLM2, atlas .*?\n\n", made, re.MULTILINE | re.DOTALL)
    for row in rows:
        numbers = [f"{row[name]} %" for name in list(row)[1:4]]
        assert " | ".join([*numbers, told[row["verdict"]]]) in block


def test_every_number_of_the_docs_on_the_study_is_that_of_its_cell(page: Any) -> None:
    text = (ROOT / "docs" / "what-you-get.md").read_text()
    [bullet] = re.findall(r"^- \*\*A study of what works.*?(?=^- )", text, re.MULTILINE | re.DOTALL)
    bullet = " ".join(bullet.split())
    cells = page.read_tables()
    for claim in ADVANTAGES:
        words = page.filled(claim, cells)
        assert words in bullet, words
        bullet = bullet.replace(words, "")
    assert not loose_numbers(bullet, page)
    counted = page.filled(
        "in {counts/trainings and merges/number} real trainings and merges", cells
    )
    assert counted in (ROOT / "README.md").read_text()


def test_what_advise_says_of_the_study_is_in_the_tables(page: Any) -> None:
    cells = page.read_tables()
    small, other = (
        {
            row["method"]: float(row["lost"].split()[0])
            for row in cells["kinds"].values()
            if (row["task"], row["family"]) == ("airports", family)
        }
        for family in ("smollm2", "gemma3-270m")
    )
    for found in (small, other):
        assert found["anchor-questions"] < found["sft"] / 2
        assert 0.5 < found["anchor"] / found["sft"] < 0.72
        assert 0.66 < found["merge-linear-0.5"] / found["sft"] < 0.74
        assert 0.4 < found["sft-low-rate"] / found["sft"] < 0.68
        assert 0.08 <= found["anchor-questions-low-rate"] / found["sft"] < 0.27
    low = "merge-sft-low-rate-linear-0.5"
    assert min(found[low] / found["sft-low-rate"] for found in (small, other)) < 0.52
    assert 0.08 < small["sft"] / 100 < 0.12
    assert 0.17 < other["sft"] / 100 < 0.23
    for family in ("smollm2", "gemma3-270m"):
        words, left = cells["words"][f"{family}-airports-sft-0"]["words"].split(" to ")
        assert int(words) > 100
        assert int(left) <= 4
    inside = {run: float(row["lost in the domain"]) for run, row in cells["domain"].items()}
    assert 0.55 < inside["gemma3-270m replay-25-domain-0"] / inside["gemma3-270m sft-0"] < 0.65
    assert abs(inside["smollm2 replay-25-domain-0"] - inside["smollm2 sft-0"]) < 0.5


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
