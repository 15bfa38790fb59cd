"""Nothing is dropped in silence: what was not used is named and counted."""

from __future__ import annotations

import bz2
import gzip
import json

import pytest

import forgetmap
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.registry import read
from fuzzing import assert_records_add_up, assert_rows_add_up, shared_metrics
from golden import ALL_LOGS, LOGS, write_files
from logs import Workplace, items, lm_eval_record, write_jsonl, write_lm_eval
from malformed import edit


def told(path):
    return "\n".join(read(path).meta.warnings)


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder with one log that is read."""
    write_lm_eval(tmp_path / "log", [lm_eval_record(i) for i in range(3)])
    return tmp_path / "log"


def test_files_that_were_read_are_not_named(folder):
    (folder / ".DS_Store").write_bytes(b"\0")
    assert "not read" not in told(folder)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "samples_b.jsonl.gz",
            gzip.compress(b"{}", mtime=0),
            "samples_b.jsonl.gz (packed: unpack it)",
        ),
        ("SAMPLES_B.JSONL", b"{}", "SAMPLES_B.JSONL (its ending is in upper case)"),
        ("other.jsonl", b"", "other.jsonl (empty)"),
        ("results.csv", b"question,correct\nq,1\n", "results.csv"),
        ("inner/notes.txt", b"x", "notes.txt"),
    ],
)
def test_files_that_no_reader_took_are_named(folder, name, content, says):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    assert f"1 files in the folder were not read: {says}" in told(folder)


def test_logs_of_a_second_harness_are_named(folder):
    LOGS["inspect_eval"].write("before", folder)
    assert "(inspect)" in told(folder)
    assert "2 files in the folder were not read" in told(folder)


def test_many_files_are_counted(folder):
    for number in range(30):
        (folder / f"{number}.csv").write_text("x")
    assert "30 files in the folder were not read" in told(folder)
    assert "and 24 more" in told(folder)


def test_an_empty_samples_file_is_told(folder):
    (folder / "samples_empty_2026-01-31T12-00-00.000001.jsonl").write_text("\n")
    assert "samples_empty_2026-01-31T12-00-00.000001.jsonl: holds no records" in told(folder)


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.csv"])
def test_an_empty_table_is_told(name, tmp_path):
    write_jsonl(tmp_path / "run.jsonl", items([1, 0]))
    (tmp_path / name).write_text("question,correct\n" if name.endswith("csv") else "")
    assert f"{name}: holds no records" in told(tmp_path)


@pytest.mark.parametrize("damage", [b"\xef\xbb\xbf\xef\xbb\xbf", "UTF-16", "no first line"])
def test_event_files_that_were_not_taken_are_named(damage, tmp_path):
    log = LOGS["openai_evals"].write("before", tmp_path)
    content = (log / "words.jsonl").read_bytes()
    if damage == "UTF-16":
        content = content.decode().encode("utf-16")
    elif isinstance(damage, bytes):
        content = damage + content
    else:
        content = content.partition(b"\n")[2]
    (log / "words.jsonl").write_bytes(content)
    assert "1 files in the folder were not read: words.jsonl" in told(log)


def test_an_event_file_with_a_byte_order_mark_is_read(tmp_path):
    log = LOGS["openai_evals"].write("before", tmp_path)
    rows = len(read(log))
    (log / "words.jsonl").write_bytes(b"\xef\xbb\xbf" + (log / "words.jsonl").read_bytes())
    assert len(read(log)) == rows


def test_truncated_score_files_of_bfcl_are_named(tmp_path):
    log = LOGS["bfcl"].write("before", tmp_path)
    (file,) = log.rglob("BFCL_v4_irrelevance_score.json")
    file.write_bytes(file.read_bytes()[:20])
    warnings = told(log)
    assert "2 files in the folder were not read" in warnings
    assert file.name in warnings
    assert file.name.replace("score", "result") in warnings


def test_a_packed_file_is_refused_with_advice(work: Workplace):
    (work / "run.jsonl.bz2").write_bytes(bz2.compress(b"{}"))
    work.refused("show", "run.jsonl.bz2", says=("run.jsonl.bz2", "unpack it first"))


# --- scores ---------------------------------------------------------------------------------------


def events(*data):
    spec = {"spec": {"completion_fns": ["m"], "eval_name": "e.v1", "run_id": "r"}}
    return [spec, *({"run_id": "r", "sample_id": f"s{number}", "type": "metrics", "data": values}
                    for number, values in enumerate(data))]  # fmt: skip


def test_scores_written_as_text_are_read_or_told(tmp_path):
    path = write_jsonl(tmp_path / "x.jsonl", events({"score": "0.5"}, {"score": "C"}))
    log = read(path)
    assert sorted(log.data["score"].to_pylist(), key=str) == [0.5, None]
    assert "x.jsonl: 1 values of 'score' are not numbers, left out" in log.meta.warnings


def test_samples_without_any_score_are_told(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", events({"score": 1.0}))
    write_jsonl(tmp_path / "y.jsonl", events({"said": "C"}, {"said": "D"}))
    text = (tmp_path / "y.jsonl").read_text().replace('"r"', '"r2"').replace("e.v1", "f.v1")
    (tmp_path / "y.jsonl").write_text(text)
    log = read(tmp_path)
    assert "y.jsonl: no event scores its 2 samples; they were left out" in log.meta.warnings
    assert (log.meta.records, log.meta.left_out) == (3, 2)


def test_lines_of_lm_eval_without_a_score_are_told(tmp_path):
    records = [lm_eval_record(0), lm_eval_record(1, {"not": "a score"})]
    log = read(write_lm_eval(tmp_path / "log", records))
    assert "sums: 1 lines hold no score and were left out" in log.meta.warnings
    assert (log.meta.records, log.meta.left_out) == (2, 1)


def test_scores_outside_are_told(work: Workplace):
    write_jsonl(work / "a.jsonl", items([1, 0, 7]))
    write_jsonl(work / "b.jsonl", items([1, 0, -0.5]))
    warnings = "\n".join(work.compared("a.jsonl", "b.jsonl").warnings)
    unknown = "scores run from -0.5 to 7 (all), a scale that forgetmap does not know"
    assert f"{unknown}; from 0.5 on an answer counts as right" in warnings


def test_another_number_of_options_is_told(work: Workplace):
    write_jsonl(work / "a.jsonl", items([1, 0, 1], k=4))
    write_jsonl(work / "b.jsonl", items([1, 0, 1], k=5))
    warnings = "\n".join(work.compared("a.jsonl", "b.jsonl").warnings)
    assert "3 items have another number of options after; that before counts" in warnings


# --- what the harness counted ---------------------------------------------------------------------


def lost_a_line(file):
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


def test_lm_eval_lines_are_held_against_its_results(tmp_path):
    log = LOGS["lm_eval"].write("before", tmp_path)
    assert "counted" not in told(log)
    (file,) = log.rglob("samples_fm_capitals_*")
    lost_a_line(file)
    assert "fm_capitals: the harness counted 16 answers, 15 are here" in told(log)


def test_inspect_samples_are_held_against_its_header(tmp_path):
    files = dict(LOGS["inspect_json"].load("before"))
    edit(files, "*.json", ("samples",), lambda samples, _: samples[:-1])
    assert ".json: the harness counted 10 answers, 9 are here" in told(write_files(files, tmp_path))


def test_helm_instances_are_held_against_its_totals(tmp_path):
    log = LOGS["helm"].write("before", tmp_path)
    (file,) = log.rglob("stats.json")
    stat = {"name": {"name": "num_instances", "split": "test"}, "count": 1, "mean": 99.0}
    file.write_text(json.dumps([*json.loads(file.read_bytes()), stat]))
    assert "the harness counted 99 answers" in told(log)


@pytest.mark.parametrize(
    ("name", "file"), [("every_eval_ever_converted", "*_samples.jsonl"), ("verifiers", "*.jsonl")]
)
def test_lines_are_held_against_the_metadata(name, file, tmp_path):
    log = LOGS[name].write("before", tmp_path)
    assert "the harness counted" not in told(log)
    lost_a_line(sorted(log.rglob(file))[0])
    assert "the harness counted" in told(log)


def test_promptfoo_results_are_held_against_its_stats(tmp_path):
    files = dict(LOGS["promptfoo"].load("before"))
    edit(files, "*results.json", ("results", "results"), lambda results, _: results[:-1])
    log = write_files(files, tmp_path)
    assert "results.json: the harness counted 24 answers, 23 are here" in told(log)


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_LOGS)
def test_every_record_and_row_of_a_log_is_accounted_for(name, tmp_path):
    if name == "inspect_zstd":
        pytest.importorskip("zstandard")
    sides = [read(ALL_LOGS[name].write(side, tmp_path / side)) for side in ("before", "after")]
    for samples in sides:
        assert_records_add_up(samples)
        assert samples.meta.records or name in ("samples_parquet", "evaluation")
    if name == "captrack":
        return  # there is no score yet
    chosen = [samples.only(samples.models[0]) for samples in sides]
    assert_rows_add_up(pair(*chosen, metric=shared_metrics(*chosen)).coverage, *chosen)


def test_the_parts_of_the_rows_are_told(work: Workplace):
    before = [
        *items([1, 0, None, 1], task="t", seed=0),
        *items([1, None, None, 1], task="t", seed=1),
        *items([1], task="t", seed=0),  # a duplicate
        *items([1, 1], task="only before"),
        {"question": "gone", "correct": 1, "task": "t", "seed": 0},
    ]
    write_jsonl(work / "a.jsonl", before)
    after = items([1, 1, 1], task="t", model="m") + items([1], task="t", model="other")
    write_jsonl(work / "b.jsonl", after)
    after = read("b.jsonl").only("m")
    result = forgetmap.compare("a.jsonl", after)
    rows = result.coverage.rows_before
    assert rows.model_dump() == {
        "read": 12, "paired": 3, "one_sided": 3, "unscored": 3, "duplicates": 1,
        "other_metrics": 0, "other_tasks": 2, "other_models": 0, "records": 12, "left_out": 0,
    }  # fmt: skip
    assert rows.accounted == rows.read
    assert result.coverage.rows_after.other_models == 1
    after.write("b.parquet")
    shown = work.worked("compare", "a.jsonl", "b.parquet").stdout
    assert "rows before: 12, of which 3 compared" in " ".join(shown.split())


def test_records_survive_conversion(tmp_path):
    records = [lm_eval_record(0), lm_eval_record(1, {"not": "a score"})]
    read(write_lm_eval(tmp_path / "log", records)).write(tmp_path / "x.parquet")
    meta = forgetmap.read(tmp_path / "x.parquet").meta
    assert (meta.records, meta.left_out) == (2, 1)


def test_older_maps_have_no_rows():
    coverage = forgetmap.demo().coverage
    old = coverage.model_dump(exclude={"rows_before", "rows_after"})
    assert type(coverage).model_validate(old).rows_before is None
