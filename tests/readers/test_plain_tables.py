"""Plain tables as people have them: every shape is read, or refused with what to type."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.readers import table_files
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.table import Samples
from logs import Workplace

BEFORE = [1, 1, 1, 0, 1, 0]
AFTER = [1, 0, 0, 1, 1, 0]
"""Lost 2, gained 1 of six items."""

Rows = list[dict[str, Any]]


def rows(scores: list[Any], id_name: str = "id", score: str = "correct", **more: Any) -> Rows:
    return [{id_name: f"q{i}", score: value, **more} for i, value in enumerate(scores)]


# --- containers -----------------------------------------------------------------------------------


def as_array(records: Rows) -> bytes:
    return json.dumps(records, indent=1).encode()


def as_results(records: Rows) -> bytes:
    return json.dumps({"model": "m", "results": records}).encode()


def as_dict_by_id(records: Rows) -> bytes:
    return json.dumps({record.pop("id"): record for record in records}).encode()


def as_lines(records: Rows) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def as_csv(records: Rows, delimiter: str = ",") -> bytes:
    from io import StringIO

    out = StringIO()
    writer = csv.DictWriter(out, list(records[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().encode()


SHAPES = {
    "array.json": as_array,
    "results.json": as_results,
    "by_id.json": as_dict_by_id,
    "lines.json": as_lines,
    "lines.jsonl": as_lines,
    "lines.jsonl.gz": lambda records: gzip.compress(as_lines(records), mtime=0),
    "lines.jsonl.zst": lambda records: zstandard.compress(as_lines(records)),
    "table.csv": as_csv,
    "table.csv.gz": lambda records: gzip.compress(as_csv(records), mtime=0),
    "table.tsv": lambda records: as_csv(records, "\t"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_map_in_any_order(shape: str, work: Workplace) -> None:
    for side, scores in (("before", BEFORE), ("after", AFTER)):
        records = rows(scores)
        if side == "after":
            random.Random(1).shuffle(records)
        (work / f"{side}.{shape}").write_bytes(SHAPES[shape](records))
    result = work.compared(f"before.{shape}", f"after.{shape}")
    counts = result.total.counts
    assert (counts.n10, counts.n01, counts.n11, counts.n00) == (2, 1, 2, 1)
    assert result.coverage.matched == 6
    assert result.coverage.rows_before.records == 6
    assert result.coverage.rows_before.left_out == 0


def test_a_packed_table_that_is_damaged_is_named(work: Workplace) -> None:
    (work / "run.jsonl.gz").write_bytes(gzip.compress(as_lines(rows(BEFORE)))[:-9])
    work.refused("show", "run.jsonl.gz", says=("run.jsonl.gz: cannot be unpacked",))
    (work / "odd.json.gz").write_bytes(gzip.compress(b'{"a": 1}'))
    work.refused("show", "odd.json.gz", says=("odd.json.gz", "list of objects"))


def test_a_packed_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 300_000_000, compresslevel=9))
    with pytest.raises(InputError, match="FORGETMAP_MAX_RATIO"):
        read(path)


def test_a_git_lfs_pointer_is_named(work: Workplace) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    (work / "run.jsonl").write_text(pointer)
    work.refused("show", "run.jsonl", says=("run.jsonl: is a Git LFS pointer", "git lfs pull"))


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("passed", "reward", "em", "pass", "is_resolved", "follow_all_instructions", "resolved"),
        *("correct", "score", "acc", "is_correct", "exact_match", "success", "Passed"),
    ],
)
def test_names_of_scores(name: str, work: Workplace) -> None:
    (work / "b.csv").write_bytes(as_csv(rows(BEFORE, score=name)))
    (work / "a.csv").write_bytes(as_csv(rows(AFTER, score=name)))
    result = work.compared("b.csv", "a.csv")
    assert (result.total.counts.n10, result.total.counts.n01) == (2, 1)
    assert any(f"score from {name!r}" in warning for warning in result.warnings)


@pytest.mark.parametrize("name", ["task_id", "question_id", "qid", "instance_id", "idx", "doc_id"])
def test_names_of_ids(name: str, work: Workplace) -> None:
    (work / "b.jsonl").write_bytes(as_lines(rows(BEFORE, name)))
    (work / "a.jsonl").write_bytes(as_lines(rows(AFTER, name)[::-1]))
    result = work.compared("b.jsonl", "a.jsonl")
    assert (result.total.counts.n10, result.total.counts.n01) == (2, 1)


@pytest.mark.parametrize(
    "words", [("True", "False"), ("yes", "no"), ("PASS", "FAIL"), ("correct", "incorrect")]
)
def test_words_for_right_and_wrong(words: tuple[str, str], work: Workplace) -> None:
    for name, scores in (("b", BEFORE), ("a", AFTER)):
        records = rows([words[0] if score else words[1] for score in scores])
        (work / f"{name}.csv").write_bytes(as_csv(records))
    assert work.compared("b.csv", "a.csv").total.counts.n10 == 2


def test_an_unknown_score_is_asked_for_with_the_flag_to_type(work: Workplace) -> None:
    (work / "run.csv").write_bytes(as_csv(rows(BEFORE, score="was it right")))
    says = ("no column says what was right", "--column 'score=was it right'")
    work.refused("show", "run.csv", says=says)
    assert work.run("show", "run.csv", "--column", "score=was it right").exit_code == 0


def test_one_table_of_two_models(work: Workplace) -> None:
    wide = [
        {"qid": i, "6b_base": {"is_correct": b}, "6b_finetuning": {"is_correct": a, "text": "x"}}
        for i, (b, a) in enumerate(zip(BEFORE, AFTER, strict=True))
    ]
    (work / "wide.json").write_bytes(as_array(wide))
    pq.write_table(pa.Table.from_pylist(wide), work / "wide.parquet")
    (work / "wide.jsonl").write_bytes(as_lines(wide))
    flags = ("--before-column score=6b_base.is_correct", "--after-column score=6b_finetuning.is_")
    work.refused("compare", "wide.json", "wide.json", says=flags)
    for name in ("wide.json", "wide.parquet", "wide.jsonl"):
        result = work.compared(
            *(name, name, "--before-column", "score=6b_base.is_correct"),
            *("--after-column", "score=6b_finetuning.is_correct"),
        )
        assert (result.total.counts.n10, result.total.counts.n01) == (2, 1)


def test_a_need_that_is_given_twice_is_refused(work: Workplace) -> None:
    (work / "run.csv").write_bytes(as_csv(rows(BEFORE)))
    twice = ("--column", "score=correct", "--column", "score=id")
    work.refused("show", "run.csv", *twice, says=("--column score=id", "given already"))


# --- identity -------------------------------------------------------------------------------------


def test_rows_pair_by_number_only_when_asked_to(work: Workplace) -> None:
    for name, scores in (("b", BEFORE), ("a", AFTER)):
        (work / f"{name}.csv").write_bytes(as_csv([{"correct": score} for score in scores]))
    says = ("no column names the items", "--column id=NAME", "--identity row")
    work.refused("compare", "b.csv", "a.csv", says=says)
    result = work.compared("b.csv", "a.csv", "--identity", "row")
    assert (result.total.counts.n10, result.coverage.identity) == (2, "row")
    (work / "named.csv").write_bytes(as_csv(rows(BEFORE)))
    work.refused(
        "compare", "named.csv", "named.csv", "--identity", "row", says=("--identity row", "ids")
    )


def test_rows_that_nothing_names_are_left_out_and_told(work: Workplace) -> None:
    for name, scores in (("b", BEFORE), ("a", AFTER)):
        records = [*rows(scores), {"id": None, "correct": 1}]
        (work / f"{name}.jsonl").write_bytes(as_lines(records))
    result = work.compared("b.jsonl", "a.jsonl")
    assert result.coverage.matched == 6
    assert result.coverage.rows_before.left_out == 1
    assert any("neither a question nor an id" in warning for warning in result.warnings)


# --- repeats --------------------------------------------------------------------------------------


def test_rows_of_one_item_are_repeats(work: Workplace) -> None:
    for name, runs in (("b", [BEFORE, AFTER, BEFORE]), ("a", [AFTER, AFTER, AFTER])):
        records = [record for scores in runs for record in rows(scores)]
        random.Random(2).shuffle(records)
        (work / f"{name}.csv").write_bytes(as_csv(records))
    result = work.compared("b.csv", "a.csv")
    assert (result.total.repeats_before, result.total.repeats_after) == (3, 3)
    mean = (2 * sum(BEFORE) + sum(AFTER)) / 18
    assert result.total.accuracy_before == pytest.approx(mean)
    assert result.coverage.duplicates == 0
    assert any("each counts as a repeat" in warning for warning in result.warnings)


def test_a_list_of_scores_holds_repeats(work: Workplace) -> None:
    for name, first, second in (("b", BEFORE, AFTER), ("a", AFTER, AFTER)):
        pairs = zip(first, second, strict=True)
        records = rows([[bool(x), bool(y)] for x, y in pairs], "question_id", "graded_list")
        (work / f"{name}.json").write_bytes(as_array(records))
    result = work.compared("b.json", "a.json")
    assert (result.total.repeats_before, result.coverage.matched) == (2, 6)
    assert result.total.accuracy_before == pytest.approx((sum(BEFORE) + sum(AFTER)) / 12)
    assert result.coverage.rows_before.records == 6
    assert result.coverage.rows_before.read == 12


@pytest.mark.parametrize("nothing", [[], None])
def test_a_list_without_scores_is_unscored(nothing: Any, work: Workplace) -> None:
    (work / "b.jsonl").write_bytes(as_lines(rows([[True], [False], nothing])))
    (work / "a.jsonl").write_bytes(as_lines(rows([[True], [False], [True]])))
    covered = work.compared("b.jsonl", "a.jsonl").coverage
    assert (covered.matched, covered.unscored) == (2, 1)


# --- scales ---------------------------------------------------------------------------------------


def test_marks_from_1_to_5_are_right_from_the_middle_on(work: Workplace) -> None:
    (work / "b.csv").write_bytes(as_csv(rows([5, 4, 3, 2, 1, 5], score="score")))
    (work / "a.csv").write_bytes(as_csv(rows([5, 2, 3, 4, 1, 3], score="score")))
    result = work.compared("b.csv", "a.csv")
    assert (result.total.counts.n10, result.total.counts.n01) == (1, 1)
    assert result.settings.thresholds == {"all": 3.0}
    score = result.total.score
    assert (score.low, score.high, score.n) == (1, 5, 6)
    assert (score.lost.value, score.gained.value) == pytest.approx((4 / 6, 2 / 6))
    assert (score.before, score.after) == pytest.approx((20 / 6, 18 / 6))
    assert any("from 3 on an answer counts as right" in text for text in result.warnings)
    shown = work.run("compare", "b.csv", "a.csv").stdout
    assert "mean fall" in shown
    assert work.compared("b.csv", "a.csv", "--threshold", "4").total.accuracy_before == 0.5


def test_the_scale_is_that_of_both_logs(work: Workplace) -> None:
    (work / "b.csv").write_bytes(as_csv(rows([1, 1, 0], score="score")))
    (work / "a.csv").write_bytes(as_csv(rows([80, 1, 0], score="score")))
    result = work.compared("b.csv", "a.csv")
    assert result.settings.thresholds == {"all": 50.0}


# --- whose answer ---------------------------------------------------------------------------------


def sides_with(work: Workplace, columns: list[dict[str, list[str]]]) -> forgetmap.ForgettingMap:
    """Compare two tables of three questions that differ in the given columns."""
    for name, more, scores in zip("ba", columns, ([1, 1, 0], [0, 1, 0]), strict=True):
        records = [
            {"question": f"{i}?", "is_correct": score, **{key: v[i] for key, v in more.items()}}
            for i, score in enumerate(scores)
        ]
        (work / f"{name}.jsonl").write_bytes(as_lines(records))
    return work.compared("b.jsonl", "a.jsonl")


def test_an_answer_beside_what_the_model_said_is_the_right_one(work: Workplace) -> None:
    gold = {"answer": ["A", "B", "C"]}
    result = sides_with(work, [{**gold, "pred": list("ABD")}, {**gold, "pred": list("DBD")}])
    assert result.coverage.matched == 3
    assert any("'answer' is taken for the right answer" in text for text in result.warnings)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_letters_without_a_score_are_compared_with_the_right_ones(
    work: Workplace, kind: str
) -> None:
    """As in MMLU-Pro's own results: `pred` beside `answer`, and nothing says what was right."""
    for name, said in (("b", ["A", "B", "C", None]), ("a", ["A", " d", None, "D"])):
        rows = [
            {"question_id": i, "question": f"{i}?", "answer": right, "pred": pred}
            for i, (right, pred) in enumerate(zip("ABCD", said, strict=True))
        ]
        if kind == "jsonl":
            (work / "b.jsonl").with_stem(name).write_bytes(as_lines(rows))
        else:
            cells = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
            (work / f"{name}.csv").write_text("\n".join([",".join(rows[0]), *cells]) + "\n")
    result = work.compared(f"b.{kind}", f"a.{kind}")
    counts = result.total.counts
    assert (counts.n00, counts.n01, counts.n10, counts.n11) == (0, 1, 2, 1)
    assert any("'pred' is compared with 'answer'" in text for text in result.warnings)


@pytest.mark.parametrize("said", ["The answer is (A)", "(A)"])
def test_sentences_are_not_compared_by_guess(work: Workplace, said: str) -> None:
    rows = [{"question": "1?", "answer": "A", "pred": said}]
    (work / "b.jsonl").write_bytes(as_lines(rows))
    with pytest.raises(InputError, match="no column says what was right"):
        read(work / "b.jsonl")


def test_an_answer_marked_as_gsm8k_marks_it_is_the_right_one(work: Workplace) -> None:
    gold = {"answer": ["1 + 1\n#### 2", "#### 3", "#### 4"]}
    result = sides_with(work, [gold, gold])
    assert any("target from 'answer'" in text for text in result.warnings)


def test_an_answer_alone_is_the_model_s_and_does_not_part_items(work: Workplace) -> None:
    result = sides_with(work, [{"answer": list("ABC")}, {"answer": list("DBC")}])
    assert result.coverage.matched == 3
    assert any("'answer' is taken for the model's answer" in text for text in result.warnings)


# --- the quick road and the careful one -----------------------------------------------------------


def contents(samples: Samples) -> list[dict[str, Any]]:
    return [row for batch in samples.to_batches() for row in batch.to_pylist()]


CELLS = ["plain", 'a "quoted" cell', "two\nlines", "", "é–ü", "a,b;c|d", "  spaces  ", "'single'"]


@pytest.mark.parametrize("shape", ["table.csv", "lines.jsonl"])
def test_both_roads_read_the_same(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(3)
    records = [
        {
            "id": i if shape == "lines.jsonl" else str(i),
            "question": f"{luck.choice(CELLS)} {i}",
            "target": luck.choice([*CELLS, 7, 1.5, True, None, ["x", {"b": 1, "a": 2}]])
            if shape == "lines.jsonl"
            else luck.choice(CELLS),
            "correct": luck.choice([True, False, 0.5, "yes", None]),
            "response": luck.choice(CELLS),
        }
        for i in range(500)
    ]
    path = tmp_path / shape
    path.write_bytes(SHAPES[shape](records))
    how = ReadOptions(text=True, wording=True)
    quick = contents(read(path, how))

    def refuse(*_args: object, **_named: object) -> None:
        raise pa.ArrowInvalid("not today")

    monkeypatch.setattr(table_files, "_csv_batches", refuse)
    monkeypatch.setattr(table_files, "_json_batches", refuse)
    careful = contents(read(path, how))
    assert quick == careful
    assert len(quick) == 500


def test_what_the_quick_road_cannot_read_is_read_carefully(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in rows(BEFORE * 50)]
    lines[250] = '{"id": "nan", "correct": NaN, "note": "\\ud800"}'
    path = tmp_path / "run.jsonl"
    path.write_text("\ufeff" + "\n\n".join(lines) + '\n{"id": "cut o')
    samples = read(path)
    assert samples.meta.records == 301
    assert samples.meta.left_out == 1
    assert any("is cut off" in warning for warning in samples.meta.warnings)


def test_a_column_that_comes_late_is_seen(tmp_path: Path) -> None:
    records = [{"id": i, "correct": 1} for i in range(1000)]
    records[900]["task"] = "late"
    path = tmp_path / "run.jsonl"
    path.write_bytes(as_lines(records))
    tasks = [row["task"] for row in contents(read(path))]
    assert (tasks.count("late"), tasks.count("all")) == (1, 999)


@pytest.mark.parametrize("other", ['"a text"', "7"])
def test_a_value_nested_too_deeply_is_told_with_its_row(tmp_path: Path, other: str) -> None:
    deep = "[" * 2000 + "]" * 2000
    log = tmp_path / "run.jsonl"
    values = [other] * 300 + [deep]
    log.write_text("".join(f'{{"id": {n}, "question": {v}, "score": 1}}\n'
                           for n, v in enumerate(values)))  # fmt: skip
    with pytest.raises(InputError, match="row 301: nested too deeply"):
        read(log)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_options_that_are_commas_count_once_each(kind, tmp_path):
    path = tmp_path / f"run.{kind}"
    if kind == "jsonl":
        lines = [{"question": f"{n}?", "choices": [",", ","], "correct": 1} for n in range(3)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        path.write_text('question,choices,correct\n1?,"["","","",""]",1\n')
    assert set(read(path).data["k"].to_pylist()) == {2}


def test_a_name_with_a_colon_is_a_file_and_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"question": ["1+1?", "1+2?"], "correct": [1, 0]})
    for name in ("run:1.parquet", "2024-01-01T10:00:00.parquet"):
        pq.write_table(table, tmp_path / name)
        samples = forgetmap.read(name)
        assert len(samples) == 2
        samples.write(f"samples:{name}")
        assert len(forgetmap.read(Path(f"samples:{name}"))) == 2
