"""Options that cannot work are refused before the logs are read; an interrupt leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import forgetmap
import forgetmap.readers.registry
import forgetmap.readers.summary
from logs import (
    ALL_OUTPUTS,
    COMPARISON,
    NO_SCORE,
    NOISE,
    Workplace,
    refused_by_every_command,
    without_override,
    write_csv,
)

# --- options --------------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the long work begins although its end could be foreseen."""

    def fail(*_args: object, **_named: object) -> None:
        raise AssertionError("the logs were read first")

    monkeypatch.setattr(COMPARISON, "read_all", fail)
    for module in (forgetmap.readers.summary, forgetmap.readers.registry):
        monkeypatch.setattr(module, "read", fail)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gate", "max-forgeting=0.03"], ("max-forgeting", "known are", "max-forgetting")),
        (["--gate", "max-forgetting"], ("fraction such as max-forgetting=0.03",)),
        (["--gate", "max-forgetting=3"], ("max-forgetting=3", "fraction")),
        (["--gate", "max-forgetting=-0.1"], ("max-forgetting=-0.1", "fraction")),
        (["--gate", "max-drop=nan"], ("max-drop=nan", "fraction")),
        (["--gate", "max-drop=lots"], ("max-drop=lots", "fraction")),
        (["--gate", "=0.1"], ("unknown limit",)),
        (["--threshold", "nan"], ("threshold", "nan")),
        (["--threshold", "inf"], ("threshold", "inf")),
        (["--margin", "0"], ("margin", "between 0 and 1")),
        (["--margin", "1"], ("margin", "between 0 and 1")),
        (["--margin", "nan"], ("margin", "between 0 and 1")),
        (["--draws", "1"], ("draws", "between 100 and 1,000,000")),
        (["--draws", "-5"], ("draws", "between 100 and 1,000,000")),
        (["--draws", "1000001"], ("draws", "between 100 and 1,000,000")),
        (["--seed", "-1"], ("seed",)),
        (["--identity", "foo"], ("--identity foo", "content or index")),
        (["--compat", "foo"], ("--compat foo", "post-forget")),
        (["--column", "colour=x"], ("--column colour", "known are", "score")),
        (["--column", "score"], ("--column score", "NAME=VALUE")),
        (["--column", "=x"], ("--column =x", "NAME=VALUE")),
        (["--task-map", "nowhere.csv"], ("--task-map nowhere.csv", "no such file", "post-forget")),
        (["--flips", "flips.txt"], ("flips.txt", ".csv, .jsonl, .parquet")),
        (["--flips", "flips"], ("flips", ".csv, .jsonl, .parquet")),
        (["--json", "nowhere/map.json"], ("nowhere/map.json", "does not exist", "create it")),
        (["--csv", "nowhere/map.csv"], ("nowhere/map.csv", "does not exist", "create it")),
        (["--latex", "nowhere/map.tex"], ("nowhere/map.tex", "does not exist", "create it")),
        (["--flips", "nowhere/f.csv"], ("nowhere/f.csv", "does not exist", "create it")),
        (["--json", "before.jsonl/map.json"], ("before.jsonl/map.json",)),
        (["--json", "folder"], ("folder", "name a file")),
        (["--csv", "folder"], ("folder", "name a file")),
        (["--flips", "folder.csv"], ("folder.csv", "name a file")),
    ],
)
def test_what_can_be_foreseen_is_refused_before_the_logs_are_read(
    work: Workplace, pair: tuple[str, str], arguments: list[str], says: tuple[str, ...]
) -> None:
    (work / "folder").mkdir()
    (work / "folder.csv").mkdir()
    work.refused("compare", *pair, *arguments, says=says)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["convert", "before.jsonl", "out.csv"], ("out.csv", ".parquet")),
        (["convert", "before.jsonl", "nowhere/o.parquet"], ("nowhere/o.parquet", "create it")),
        (["show", "before.jsonl", "--json", "nowhere/s.json"], ("nowhere/s.json", "create it")),
        (["demo", "--out", "before.jsonl"], ("before.jsonl", "cannot be made a folder")),
        (["demo", "--out", "before.jsonl/deep"], ("before.jsonl/deep", "cannot be made a folder")),
    ],
)
def test_other_commands_refuse_an_impossible_output_early_too(
    work: Workplace, pair: tuple[str, str], arguments: list[str], says: tuple[str, ...]
) -> None:
    work.refused(*arguments, says=says)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write")
@pytest.mark.parametrize(
    ("option", "name"), [("--json", "map.json"), ("--csv", "map.csv"), ("--flips", "flips.csv")]
)
def test_an_unwritable_output_folder_is_refused_before_the_logs_are_read(
    work: Workplace, pair: tuple[str, str], option: str, name: str
) -> None:
    says = (f"/proc/{name}", "cannot be written")
    work.refused("compare", *pair, option, f"/proc/{name}", says=says)


def test_a_folder_without_write_permission(work: Workplace, pair: tuple[str, str]) -> None:
    (work / "locked").mkdir(mode=0o500)
    says = ("locked/map.json", "cannot be written")
    with without_override():
        work.refused("compare", *pair, "--json", "locked/map.json", says=says)


@pytest.mark.parametrize("option", ["--json", "--csv", "--latex", "--flips"])
def test_an_output_that_would_overwrite_a_log_is_refused(
    work: Workplace, pair: tuple[str, str], option: str
) -> None:
    work.refused("compare", *pair, option, "before.jsonl", says=("before.jsonl",))
    work.refused("compare", *pair, option, "./after.jsonl", says=("after.jsonl",))


def test_two_outputs_under_one_name_are_refused(work: Workplace, pair: tuple[str, str]) -> None:
    work.refused("compare", *pair, "--json", "map.csv", "--csv", "map.csv", says=("map.csv",))


def test_a_column_that_is_not_there(work: Workplace, pair: tuple[str, str]) -> None:
    says = ("before.jsonl", "no column 'is_right'", "question, correct")
    work.refused("compare", *pair, "--column", "score=is_right", says=says)


def test_the_advice_survives_a_table_with_many_columns(work: Workplace) -> None:
    record = {f"measurement number {i}": i for i in range(100)}
    write_csv(work / "wide.csv", [record])
    refused_by_every_command(work, "wide.csv", NO_SCORE)
    work.refused("show", "wide.csv", "--column", "score=x", says=("wide.csv", "no column 'x'"))


MAP_ADVICE = "it needs the columns task, category and optionally k"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("m.csv", b"", ("empty",)),
        ("m.csv", b"task,category\n", ("empty",)),
        ("m.csv", b"name,group\nall,Maths\n", ("task",)),
        ("m.csv", b"task,category\nall\n", ()),
        ("m.csv", b"task,category\n,Maths\n", ("lacks its task",)),
        ("m.csv", b"task,category,k\nall,Maths,1\n", ("task all", "k must be at least 2")),
        ("m.csv", b"task,category,k\nall,Maths,-4\n", ("task all", "k must be at least 2")),
        ("m.csv", b"task,category,k\nall,Maths,four\n", ("four",)),
        ("m.csv", b"task,category\nall,Maths\nall,Logic\n", ("occurs twice",)),
        ("m.csv", b"task,category\nall,Caf\xe9\n", ("utf-8",)),
        ("m.csv", "task,category\nall,Maths\n".encode("utf-16"), ("utf-8",)),
        ("m.csv", b"task,category\nall,Maths\nall," + b"x" * 200_000, ()),
        ("m.yaml", b"", ()),
        ("m.yaml", b"just text", ()),
        ("m.yaml", b"- all", ()),
        ("m.yaml", b"Maths: [all", ("is not YAML",)),
        ("m.yaml", b"all: {category: Maths, k: 1}", ("k must be at least 2",)),
        ("m.yaml", b"all: {k: 4}", ("category",)),
        ("m.yaml", b"all: {category: Maths, k: [4]}", ()),
        ("m.yaml", b"Maths: " + b"[" * 5000, ("is not YAML",)),
        ("m.yaml", b"all: {category: Maths, k: 1" + b"0" * 400 + b"}", ()),
        ("m.yaml", b"!!python/object/apply:os.system ['touch owned']", ("is not YAML",)),
        ("m.yaml", NOISE, ("is not UTF-8",)),
    ],
)
def test_a_malformed_task_map_is_refused(
    work: Workplace, pair: tuple[str, str], name: str, content: bytes, says: tuple[str, ...]
) -> None:
    (work / name).write_bytes(content)
    expected = says if says and says[0].startswith("is not") else ("not a task map", *says)
    work.refused("compare", *pair, "--task-map", name, says=(name, *expected))


def test_the_advice_on_task_maps(work: Workplace, pair: tuple[str, str]) -> None:
    (work / "m.csv").write_text("name,group\nall,Maths\n")
    work.refused("compare", *pair, "--task-map", "m.csv", says=(MAP_ADVICE,))
    (work / "folder").mkdir()
    work.refused("compare", *pair, "--task-map", "folder", says=("folder", "no such file"))


def test_a_task_map_that_ignores_everything(work: Workplace, pair: tuple[str, str]) -> None:
    (work / "m.csv").write_text("task,category\nall,ignored\n")
    work.refused("compare", *pair, "--task-map", "m.csv", says=("m.csv", "ignore every task"))


# --- interruption ---------------------------------------------------------------------------------


def test_an_interrupt_is_one_line_and_leaves_nothing(
    work: Workplace, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_args: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(COMPARISON, "pair", interrupt)
    says = ("interrupted",)
    work.refused("compare", *pair, *ALL_OUTPUTS, says=says, code=130)
