"""Made-up bytes, values and pairs: a sound map or one clear error, never a false pair."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.samples.table import SCHEMA
from fuzzing import assert_sound, cases, survives
from logs import items, lm_eval_record, write_lm_eval


def quick(examples: int) -> settings:
    """Always the same examples; add Phase.shrink to hunt a bug."""
    return settings(
        max_examples=cases(examples),
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def in_a_folder(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        survives(path)


# --- bytes ----------------------------------------------------------------------------------------

HEADS = [
    b"",
    b"PAR1",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"question,correct\n",
    b'{"correct": 1, "id": ',
]
NAMES = ["x.jsonl", "x.csv", "x.tsv", "x.parquet", "samples_x.jsonl", "details_x.parquet", "x.json"]


@quick(75)
@given(st.sampled_from(NAMES), st.sampled_from(HEADS), st.binary(max_size=400))
def test_arbitrary_bytes(name: str, head: bytes, content: bytes) -> None:
    in_a_folder(name, head + content)


@quick(15)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_arbitrary_text_as_a_csv(text: str) -> None:
    in_a_folder("x.csv", f"question,correct,answer\n{text}".encode())


# --- records --------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from(
        ["", "0", "1", "True", "nan", "none", "[", "[1]", "²", "-1", "a\x1fb", "\ud800"]
    ),
    st.text(max_size=6),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**31, 2**63, 2**64, 10**400, -(2**63)]),
    st.floats(),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
SCORES = st.one_of(st.sampled_from([0, 1, 0.0, 1.0, True, False, None, "1", 0.5]), SCALARS)


def jsonl(records: list[Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


HARNESS_FIELDS = sorted(lm_eval_record(0).keys() | {"doc_hash", "prompt_hash", "target_hash"})


@quick(20)
@given(st.lists(st.dictionaries(st.sampled_from(HARNESS_FIELDS), VALUES, max_size=3), max_size=4))
def test_harness_records_with_any_values(changes: list[dict[str, Any]]) -> None:
    records = [{**lm_eval_record(i, float(i % 2)), **new} for i, new in enumerate(changes)]
    in_a_folder("samples_x.jsonl", jsonl(records))


@quick(10)
@given(
    st.dictionaries(
        st.sampled_from(["model_name", "config", "configs", "n-shot", "versions", "task_hashes",
                         "lm_eval_version", "chat_template_sha", "fewshot_as_multiturn"]),
        VALUES, max_size=4,
    )
    | VALUES
)  # fmt: skip
def test_results_files_with_any_values(results: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        survives(write_lm_eval(Path(folder), [lm_eval_record(0)], results=results))


TABLE_COLUMNS = [
    *("question", "choices", "id", "task", "score", "target", "answer", "response", "repeat"),
    *("k", "model", "cluster", "metric", "gold_probability"),
    *("option_probabilities", "right_option"),
]
ROWS = st.lists(
    st.fixed_dictionaries(
        {"correct": SCORES},
        optional=dict.fromkeys(TABLE_COLUMNS, VALUES),
    ),
    min_size=1,
    max_size=5,
)


@quick(20)
@given(ROWS)
def test_tables_with_any_values(rows: list[dict[str, Any]]) -> None:
    in_a_folder("x.jsonl", jsonl(rows))


@quick(12)
@given(
    st.lists(st.sampled_from(TABLE_COLUMNS), min_size=1, max_size=5, unique=True),
    st.lists(st.lists(TEXTS, min_size=5, max_size=5), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t"]),
)
def test_csv_tables_with_any_text(names: list[str], rows: list[list[str]], between: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=between)
    writer.writerow([*names, "is_correct"])
    writer.writerows([*row[: len(names)], index % 2] for index, row in enumerate(rows))
    in_a_folder("x.csv", out.getvalue().encode("utf-8", "replace"))


@quick(10)
@given(ROWS)
def test_parquet_tables_with_any_values(rows: list[dict[str, Any]]) -> None:
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        assume(False)
    with tempfile.TemporaryDirectory() as folder:
        try:
            pq.write_table(table, Path(folder) / "x.parquet")
        except pa.ArrowException:  # a struct without fields
            assume(False)
        survives(Path(folder) / "x.parquet")


@quick(15)
@given(st.sampled_from(SCHEMA.names), VALUES)
def test_samples_files_with_any_column(name: str, value: Any) -> None:
    """Another kind of value in one column: refused, or read for what it is."""
    samples = forgetmap.Samples.from_rows(
        {"item": i, "item_ref": str(i), "score": float(i % 2)} for i in range(4)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.parquet"
        samples.write(path)
        table = pq.read_table(path)
        try:
            column = pa.array([value] * 4)
            changed = table.set_column(table.column_names.index(name), name, column)
            pq.write_table(changed, path)
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
            assume(False)
        try:
            batches = list(forgetmap.read(path).to_batches())
        except InputError:
            return
        # Never hand on what is not as declared: who trusts the schema would read beyond the data.
        assert all(batch.schema.equals(SCHEMA) for batch in batches)
        survives(path)


# --- pairs ----------------------------------------------------------------------------------------

WORDS = st.text("ab\x1f", max_size=4)
CONTENTS = st.fixed_dictionaries(
    {"question": WORDS.filter(bool)}, optional={"target": WORDS, "choices": WORDS}
)
SIDES = st.lists(CONTENTS, min_size=1, max_size=6)


def content(record: dict[str, Any]) -> tuple[str, str, str]:
    """What the item is, told without any hash; a cell left out is an empty one."""
    return record["question"], record.get("choices", ""), record.get("target", "")


@quick(20)
@given(SIDES, SIDES, st.randoms(use_true_random=False))
def test_only_equal_contents_are_paired(before: list, after: list, chance: Any) -> None:
    """Against plain sets: as many pairs as contents that stand on both sides."""
    sides = [[{**row, "correct": chance.randint(0, 1)} for row in rows] for rows in (before, after)]
    for rows in sides:
        rows[0].setdefault("target", "")
        rows[0].setdefault("choices", "")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("before.jsonl", "after.jsonl")]
        for path, rows in zip(paths, sides, strict=True):
            path.write_bytes(jsonl(rows))
        expected = set(map(content, before)) & set(map(content, after))
        try:
            result = forgetmap.compare(*paths, draws=100, flips=Path(folder) / "flips.jsonl")
        except InputError:
            assert not expected
            return
        assert_sound(result)
        assert result.coverage.matched == len(expected)
        for line in (Path(folder) / "flips.jsonl").read_text().splitlines():
            flip = json.loads(line)
            assert flip["prompt_before"] == flip["prompt_after"]


@quick(8)
@given(st.permutations(range(6)), st.permutations(range(6)), st.lists(SCORES, min_size=6))
def test_the_order_of_rows_does_not_matter(one: list, two: list, scores: list) -> None:
    rows = items(scores[:6])
    rows += [{**rows[0], "correct": 1}, {**rows[1], "correct": 0}]
    found = []
    for order in (one, two):
        with tempfile.TemporaryDirectory() as folder:
            path, good = Path(folder) / "x.jsonl", Path(folder) / "good.jsonl"
            path.write_bytes(jsonl([rows[i] for i in order] + rows[6:]))
            good.write_bytes(jsonl(items([1, 0, 1, 0, 1, 0])))
            result = survives(path, good)
            found.append(result and (result.coverage, result.total.counts))
    assert found[0] == found[1]
