"""CapTrack's public data set: its columns become items, from rows and from a local copy."""

from __future__ import annotations

import importlib.util
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base.errors import InputError
from forgetmap.capabilities import hub, scorers
from forgetmap.capabilities.manifest import Manifest

MANIFEST = Manifest.load("captrack")


def row(**fields):
    return dict.fromkeys(hub.COLUMNS) | fields


CHOICE = row(
    id="q1", family="mmlu_pro.subset", prompt="Capital of Italy?", gold="B",
    formatted_prompt="Question: Capital of Italy?\nA) Oslo\nB) Rome", choices=["Oslo", "Rome"],
)  # fmt: skip
SCHEMA = row(
    id="q2", family="gsm8k.schema", prompt="2+2?", gold="4",
    schema=json.dumps({"type": "object", "required": ["answer"]}),
)  # fmt: skip
TOOLS = row(
    id="q3", family="bfcl.subset", prompt="Root of 9?", gold=json.dumps(["math.sqrt(x=9)"]),
    tool_spec=json.dumps([{"name": "math.sqrt", "parameters": {"properties": {"x": {}}}}]),
)  # fmt: skip
IFEVAL = row(
    id="q4", family="ifeval.subset", prompt="Say hello without commas.",
    meta=json.dumps({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}),
)  # fmt: skip
CITED = row(
    id="q5", family="hotpotqa.citation", prompt="Who?", ctx=["Ada was here.", "Ben was there."],
    gold='{"answer": "Ada", "supporting_facts": {"title": ["A"]}, "context_titles": ["A"]}',
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "task", "scorer", "metric", "right"),
    [
        (CHOICE, "mmlu_pro.core", "multiple_choice", "accuracy", "B"),
        (SCHEMA, "gsm8k.schema", "json_format", "schema", '{"answer": 4}'),
        (TOOLS, "bfcl.subset", "tool_calls", "exact", "math.sqrt(x=9)"),
        (IFEVAL, "ifeval.core", "ifeval", "strict", "Hello."),
        (CITED, "hotpotqa.citation", "citations", "f1", "It was Ada [A]."),
    ],
)
def test_every_column_reaches_its_scorer(given, task, scorer, metric, right):
    [item] = hub.to_items([given], ["default", "test"], MANIFEST)
    assert (item.task, item.ref) == (task, given["id"])
    assert item.meta["family"] == given["family"]
    score = scorers.load(scorer).score
    assert score([item], [right])[metric][0].value == 1.0
    assert score([item], ["I, for one, cannot say."])[metric][0].value == 0.0


def test_the_prompt_as_it_was_shown_is_kept_beside_the_question():
    [item] = hub.to_items([CHOICE], ["x"], MANIFEST)
    assert item.prompt == "Capital of Italy?"
    assert item.meta["formatted_prompt"].startswith("Question:")


@pytest.mark.parametrize(
    ("gold", "kept"),
    [
        ("[2, 5]", "[2, 5]"),
        ("[0, 1)", "[0, 1)"),
        ('["Rome", "Roma"]', ["Rome", "Roma"]),
        ('{"answer": "Rome"}', {"answer": "Rome"}),
        ("007", "007"),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_gold_keeps_its_meaning(gold, kept):
    [item] = hub.to_items([row(id="1", prompt="?", gold=gold)], ["math_subset"], MANIFEST)
    assert item.gold == kept


def test_a_configuration_or_split_names_the_task_before_the_family_does():
    other = CHOICE | {"family": "knowledge"}
    for names in (["mmlu_pro.rephrased", "test"], ["default", "mmlu_pro_rephrased"]):
        assert hub.to_items([other], names, MANIFEST)[0].task == "mmlu_pro.rephrased"


def test_a_family_that_is_no_task_is_one_clear_line():
    with pytest.raises(InputError, match=r"family 'mmlu_por.core' .*mmlu_pro.core"):
        hub.to_items([CHOICE | {"family": "mmlu_por.core"}], ["default"], MANIFEST)


def test_a_broken_field_is_named_with_its_row():
    with pytest.raises(InputError, match=r"default row 1: meta is not valid JSON"):
        hub.to_items([CHOICE, CHOICE | {"meta": "{"}], ["default"], MANIFEST)


def test_only_the_tasks_that_are_wanted():
    found = hub.to_items([CHOICE, SCHEMA], ["default"], MANIFEST, {"gsm8k.schema"})
    assert [item.ref for item in found] == ["q2"]
    assert hub.to_items([CHOICE], ["mmlu_pro.core"], MANIFEST, {"gsm8k.schema"}) == []


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'forgetmap\[suites\]'"):
        hub.load()


needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="the package datasets is not installed"
)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A folder with the data set's columns; nothing may be fetched."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "captrack"
    (folder / "data").mkdir(parents=True)
    names = {name: pa.string() for name in hub.COLUMNS}
    names |= {"choices": pa.list_(pa.string()), "ctx": pa.list_(pa.string())}
    rows = [CHOICE, SCHEMA, TOOLS, IFEVAL, CITED]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(names.items())))
    pq.write_table(table, folder / "data" / "test-00000.parquet")
    return folder


@pytest.mark.extras
@needs_datasets
@pytest.mark.filterwarnings("default")
def test_a_local_copy_is_loaded_by_the_real_package(copy):
    found = hub.load(str(copy))
    assert [item.ref for item in found] == ["q1", "q2", "q3", "q4", "q5"]
    assert found == hub.to_items([CHOICE, SCHEMA, TOOLS, IFEVAL, CITED], ["default"], MANIFEST)
    [only] = hub.load(str(copy), tasks=["gsm8k_schema"])
    assert only.schema == {"type": "object", "required": ["answer"]}


@pytest.mark.extras
@needs_datasets
@pytest.mark.filterwarnings("default")
def test_a_copy_in_json_lines_too(copy):
    [parquet] = copy.rglob("*.parquet")
    lines = [json.dumps(row) for row in pq.read_table(parquet).to_pylist()]
    parquet.unlink()
    (copy / "data" / "test.jsonl").write_text("\n".join(lines))
    assert [item.ref for item in hub.load(str(copy))] == ["q1", "q2", "q3", "q4", "q5"]


@pytest.mark.extras
@needs_datasets
@pytest.mark.filterwarnings("default")
def test_what_cannot_be_loaded_is_one_clear_line(copy, tmp_path):
    with pytest.raises(InputError, match="cannot be loaded"):
        hub.load(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="holds none"):
        hub.load(str(copy), tasks=["popqa.subset"])
