"""CapTrack response folders: typed reading, identity, runs, and what is not one."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.base.errors import InputError
from forgetmap.capabilities.manifest import Manifest
from forgetmap.readers import captrack
from forgetmap.readers.framework import ReadOptions
from places import DATA

ROW = {"id": "7", "prompt": "2+2?", "gold": "4", "outputs": "Answer: 4"}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def records(path):
    return list(captrack.records(path, ReadOptions(), []))


def test_the_example_is_read_as_answers_to_be_scored():
    samples = captrack.read(DATA / "captrack" / "before", ReadOptions(text=True))
    table = samples.data
    assert samples.models == ["before"]
    assert set(table["status"].to_pylist()) == {"unscored"}
    assert table["score"].null_count == len(table) == 7 * 60
    assert {"gsm8k_subset", "gsm8k_rephrased", "mmlu_pro_core"} <= set(table["task"].to_pylist())
    assert table["item"].null_count == 0
    assert None not in table["response"].to_pylist()


def test_text_is_left_out_unless_asked_for():
    table = captrack.read(DATA / "captrack" / "before", ReadOptions()).data
    assert table["response"].null_count == len(table)


@pytest.mark.parametrize("kind", ["jsonl", "json", "columns.json", "csv", "parquet", "pq"])
def test_every_format_gives_the_same_items(tmp_path, kind):
    rows = [
        {"id": "1", "prompt": "Capital?", "gold": ["Rome", "Roma"], "outputs": "007"},
        {"id": "2", "prompt": "Number?", "gold": ["12"], "outputs": "12"},
    ]
    file = tmp_path / "m" / f"popqa_subset.{kind.rpartition('.')[2]}"
    file.parent.mkdir()
    if kind == "jsonl":
        write(file, *rows)
    elif kind == "json":
        file.write_text(json.dumps(rows))
    elif kind == "columns.json":
        columns = {name: {str(n): row[name] for n, row in enumerate(rows)} for name in rows[0]}
        file.write_text(json.dumps(columns))
    elif kind == "csv":
        with file.open("w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(rows[0])
            writer.writerows([*({**row, "gold": json.dumps(row["gold"])}).values()] for row in rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    found = records(tmp_path / "m")
    assert [record.item.gold for record in found] == [["Rome", "Roma"], ["12"]]
    assert [record.response for record in found] == ["007", "12"]  # digits stay text
    assert [record.item.ref for record in found] == ["1", "2"]


def test_types_stay_as_they_are_stored(tmp_path):
    row = {"id": 1, "prompt": ["Hi", {"user prompt": "And?"}], "gold": "12", "outputs": 34,
           "turn1_response": "Hello", "schema": '{"type": "object"}', "meta": {"depth": 0.5},
           "tool_spec": [{"name": "f"}], "ctx": ["a", "b"], "choices": "A) x\nB) y"}  # fmt: skip
    write(tmp_path / "m" / "bfcl_subset.jsonl", row)
    (record,) = records(tmp_path / "m")
    item = record.item
    assert (item.gold, record.response) == ("12", "34")
    assert item.prompt == row["prompt"]
    assert item.schema == {"type": "object"}
    assert item.meta == {"depth": 0.5, "turn1_response": "Hello"}
    assert (item.tools, item.context, item.choices) == (
        [{"name": "f"}],
        ["a", "b"],
        ["A) x", "B) y"],
    )


@pytest.mark.parametrize("said", [None, float("nan"), ""])
def test_no_answer_is_the_empty_answer(tmp_path, said):
    write(tmp_path / "gsm8k_core.jsonl", ROW | {"outputs": said})
    assert [record.response for record in records(tmp_path)] == [""]


def test_an_item_is_its_content_whatever_its_number_and_place(tmp_path):
    write(tmp_path / "a" / "gsm8k_core.jsonl", ROW, ROW | {"id": "8", "prompt": "2+3?"})
    write(tmp_path / "b" / "gsm8k_core.jsonl", ROW | {"id": "9", "prompt": "2+3?"}, ROW)
    one, two = ({r.content for r in records(tmp_path / name)} for name in "ab")
    assert one == two
    write(tmp_path / "c" / "gsm8k_core.jsonl", ROW | {"gold": "5"})
    assert not {record.content for record in records(tmp_path / "c")} & one


def test_without_prompt_and_context_the_id_is_the_item(tmp_path):
    write(tmp_path / "truthfulqa_full.jsonl", {"id": "x", "gold": "A", "outputs": "A"},
          {"gold": "A", "outputs": "B"})  # fmt: skip
    found = records(tmp_path)
    assert [record.content for record in found] == [None, None]
    assert [(record.item.ref, record.repeat) for record in found] == [("x", 0), ("2", 0)]


def test_run_folders_and_lists_of_answers_are_repeats(tmp_path):
    for run in ("run1", "run2"):
        write(tmp_path / "m" / run / "gsm8k_core.jsonl", ROW)
    found = records(tmp_path / "m")
    assert [(r.model, r.run, r.repeat) for r in found] == [("m", "run1", 0), ("m", "run2", 1)]
    write(tmp_path / "n" / "gsm8k_core.jsonl", ROW | {"outputs": ["4", "5"]})
    assert [(r.response, r.repeat) for r in records(tmp_path / "n")] == [("4", 0), ("5", 1)]


def test_other_folders_are_models(tmp_path):
    for model in ("base", "tuned"):
        write(tmp_path / model / "seed_1" / "gsm8k_core.jsonl", ROW)
    assert {(r.model, r.run) for r in records(tmp_path)} == {
        ("base", "seed_1"), ("tuned", "seed_1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "mine"),
    [
        ("gsm8k_core.jsonl", '{"outputs": "4", "gold": "4"}\n', True),
        ("gsm8k_core.json", '[{"outputs": "4", "gold": "4"}]', True),
        ("gsm8k_core.csv", "outputs,gold\n4,4\n", True),
        ("table.csv", "outputs,gold,correct\n4,4,1\n", False),
        ("table.jsonl", '{"question": "2+2", "score": 1}\n', False),
        ("notes.jsonl", "not json\n", False),
        ("empty.csv", "", False),
        ("other.txt", "outputs gold", False),
        ("map.json", '"outputs" "gold"', False),
    ],
)
def test_sniffing_takes_answers_and_nothing_else(tmp_path, name, content, mine):
    (tmp_path / name).write_text(content)
    assert captrack.sniff(tmp_path / name) is mine
    assert captrack.sniff(tmp_path) is mine


def test_sniffing_steals_no_other_harness():
    from forgetmap.readers.registry import find_reader

    for folder in sorted(DATA.iterdir()):
        if folder.name in ("captrack", "make") or not folder.is_dir():
            continue
        for side in sorted(folder.iterdir()):
            if captrack.sniff(side):
                reader = find_reader(side).reader.__name__.rpartition(".")[2]
                assert reader not in ("captrack", "table"), side


def test_files_without_answers_are_left_out_and_told(tmp_path):
    write(tmp_path / "gsm8k_core.jsonl", ROW)
    (tmp_path / "config.json").write_text('{"temperature": 0}')
    warnings: list[str] = []
    assert len(list(captrack.records(tmp_path, ReadOptions(), warnings))) == 1
    assert warnings == ["config.json: rows without 'outputs', left out: 1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"outputs": "x", "meta": "not json"}\n', "meta is not valid JSON"),
        ('{"outputs": "x", "schema": [1]}\n', "schema must be an object"),
        ("[1]\n", "a JSON object was expected"),
        ('{"outputs": 1}\n{"outputs"\n{}\n', "not UTF-8 JSON lines"),
    ],
)
def test_broken_rows_get_one_clear_line(tmp_path, content, message):
    (tmp_path / "gsm8k_core.jsonl").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        records(tmp_path)
    assert "\n" not in str(error.value)


def test_hostile_text_is_only_text(tmp_path):
    text = "\x1b[31m\x00</script>\u202e=cmd()"
    write(tmp_path / "gsm8k_core.jsonl", ROW | {"outputs": text, "prompt": text})
    assert records(tmp_path)[0].response == text


def test_a_bare_name_counts_only_where_it_is_unambiguous():
    names = Manifest.load("captrack")
    assert names.task("popqa") == "popqa.subset"
    assert names.task("gsm8k") is None  # core, rephrased, schema and table_schema begin so
    assert names.task("hotpotqa.subset") == names.task("hotpotqa_core") == "hotpotqa.core"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
FIELDS = ("id", "prompt", "gold", "choices", "ctx", "context", "meta", "schema", "tool_spec",
          "turn1_response", "outputs", "task", "model")  # fmt: skip


@given(rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), max_size=3))
def test_whatever_stands_in_the_fields_samples_come_out_or_one_clear_line(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("fuzz") / "gsm8k_core.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        samples = captrack.read(path, ReadOptions(text=True, wording=True))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
        return
    assert len(samples) <= sum(
        len(row["outputs"]) if isinstance(row.get("outputs"), list) else 1 for row in rows
    )


@given(content=st.binary(max_size=200), suffix=st.sampled_from(captrack.SUFFIXES))
def test_whatever_bytes_a_file_holds(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("fuzz") / f"gsm8k_core{suffix}"
    path.write_bytes(content)
    captrack.sniff(path)
    try:
        captrack.read(path, ReadOptions())
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
