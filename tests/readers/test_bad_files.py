"""Files that are no logs, or broken ones: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import json
import os

import pytest

from logs import (
    NO_SCORE,
    NOISE,
    QUICK,
    STAMP,
    Workplace,
    assert_one_line,
    child,
    csv_text,
    details,
    items,
    lm_eval_record,
    refused_by_every_command,
    sparse,
    without_override,
    write_csv,
    write_jsonl,
    write_lm_eval,
    write_parquet,
)

# --- not a log ------------------------------------------------------------------------------------

PROSE = b"Dear diary,\ntoday the model forgot, again, where the airports are.\n"
UNKNOWN = ("not a log that forgetmap knows", "table")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("noise.bin", NOISE, UNKNOWN),
        ("noise", NOISE, UNKNOWN),
        ("notes.txt", PROSE, UNKNOWN),
        ("other.json", b'{"colour": "blue"}', UNKNOWN),
        ("other.eval", b"PK\x03\x04" + NOISE, ("not a zip file",)),
        ("noise.parquet", NOISE, ("not a readable Parquet file",)),
        ("short.parquet", b"PAR1", ("not a readable Parquet file",)),
        ("noise.csv", NOISE, ("UTF-8",)),
        ("prose.csv", PROSE, ()),
        ("noise.jsonl", NOISE, (":1:", "JSON")),
        ("prose.jsonl", PROSE, (":1:", "JSON")),
        ("list.jsonl", b"[1, 2]\n[3]\n", (":1:", "object")),
        ("other.jsonl", b'{"colour": "blue"}\n', NO_SCORE),
        ("samples_other.jsonl", b'{"colour": "blue"}\n', NO_SCORE),
        ("details_noise.parquet", NOISE, ("not a readable Parquet file",)),
        ("other.csv", b"colour,size\nblue,3\n", NO_SCORE),
    ],
)
def test_a_file_that_is_no_log_is_refused(
    work: Workplace, name: str, content: bytes, says: tuple[str, ...]
) -> None:
    (work / name).write_bytes(content)
    refused_by_every_command(work, name, says)


@pytest.mark.parametrize(
    "record",
    [
        {"colour": "blue"},
        {"doc": "a text", "metric": "another"},
        {"doc": 1, "metric": {"acc": 1.0}, "model_response": 2},
        {"doc": {"query": "q"}, "metric": {"acc": 1.0}},
        {"doc": {"query": "q"}, "metric": 0.5, "model_response": {"text": ["t"]}},
        {"example": "q", "metrics": "acc"},
        {"example": "q", "metrics": 1.0},
    ],
)
def test_a_details_file_with_foreign_columns_is_refused(work: Workplace, record: dict) -> None:
    write_parquet(work / "details_sums.parquet", [record, record])
    refused_by_every_command(work, "details_sums.parquet", ())


def test_a_details_file_with_odd_values_is_no_traceback(work: Workplace) -> None:
    """Gold as text, log-likelihoods as lists: a later release may well write them."""
    record = details(
        0,
        doc={"query": "q", "choices": ["a", "b"], "gold_index": ["a"], "id": "0"},
        model_response={"logprobs": [[-1.0], [-2.0]], "text": ["a"], "input": "q"},
    )
    write_parquet(work / "details_sums.parquet", [record])
    result = work.run("convert", "details_sums.parquet", "out.parquet")
    assert result.exit_code in (0, 2), (result.stderr, result.exception)


def test_a_folder_of_samples_with_foreign_keys_is_refused_at_its_line(work: Workplace) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0), {"colour": "blue"}])
    refused_by_every_command(work, "run", (f"samples_sums_{STAMP}.jsonl:2:", "doc_id"))


def test_missing_path(work: Workplace) -> None:
    refused_by_every_command(work, "nowhere.csv", ("no such file or folder",))


@pytest.mark.parametrize("name", ["n" * 300 + ".csv", "f/" * 3000])
def test_a_path_that_is_too_long(work: Workplace, name: str) -> None:
    work.refused("show", name, says=(name[:100],))


def test_a_link_that_leads_nowhere(work: Workplace) -> None:
    (work / "gone.csv").symlink_to("nowhere.csv")
    (work / "loop.csv").symlink_to("loop.csv")
    for name in ("gone.csv", "loop.csv"):
        work.refused("show", name, says=(name,))


def test_empty_folder(work: Workplace) -> None:
    (work / "empty").mkdir()
    refused_by_every_command(work, "empty", ("the folder is empty",))


def test_folder_without_logs(work: Workplace) -> None:
    (work / "papers" / "deep").mkdir(parents=True)
    (work / "papers" / "deep" / "notes.txt").write_bytes(PROSE)
    refused_by_every_command(work, "papers", UNKNOWN)


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.jsonl", "samples_e.jsonl", "e.parquet"])
def test_empty_file(work: Workplace, name: str) -> None:
    (work / name).touch()
    refused_by_every_command(work, name, ())


@pytest.mark.parametrize("text", ["question,correct\n", "\n\n", "\ufeff"])
def test_a_csv_without_rows(work: Workplace, text: str) -> None:
    (work / "bare.csv").write_text(text, encoding="utf-8")
    refused_by_every_command(work, "bare.csv", ())


@pytest.mark.parametrize("name", ["folder.jsonl", "folder.csv", "folder.parquet"])
def test_a_folder_with_the_name_of_a_file(work: Workplace, name: str) -> None:
    (work / name).mkdir()
    refused_by_every_command(work, name, ("folder",))


@pytest.mark.parametrize("name", ["samples_sums.jsonl", "details_sums.parquet"])
def test_a_folder_where_the_harness_has_a_file(work: Workplace, name: str) -> None:
    (work / "run" / name).mkdir(parents=True)
    refused_by_every_command(work, "run", ())


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "samples_a.jsonl", "folder"])
def test_unreadable_path(work: Workplace, name: str) -> None:
    path = work / name
    path.mkdir() if name == "folder" else path.write_text("question,correct\nq,1\n")
    path.chmod(0)
    try:
        with without_override():
            result = work.run("show", name)
        assert_one_line(result.exit_code, result.stdout, result.stderr, (name, "cannot be read"), 2)
    finally:
        path.chmod(0o700)


def test_an_unreadable_path_is_told_in_our_words_not_in_a_usage_message(
    work: Workplace, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The argument parser may not judge permissions itself: its message has four lines."""
    monkeypatch.setattr(os, "access", lambda *_args, **_named: False)
    work.worked("show", pair[0])
    work.worked("compare", *pair, *QUICK, "--json", "map.json")
    work.worked("compare", *pair, *QUICK, "--json", "map.json")  # over the one that is there


def test_a_named_pipe_is_refused_not_waited_for(work: Workplace) -> None:
    os.mkfifo(work / "pipe.jsonl")
    found = child("from forgetmap.cli.app import main; main()", "show", "pipe.jsonl")
    assert_one_line(found.returncode, found.stdout, found.stderr, ("pipe.jsonl",), 2)


# --- broken text ----------------------------------------------------------------------------------

LINES = [json.dumps(record, ensure_ascii=False).encode() for record in items([1, 0, 1, 1])]


def test_a_cut_off_last_line_is_left_out_and_told(work: Workplace) -> None:
    """Wherever the run was killed, in the middle of a character too."""
    last = json.dumps({"question": "été", "correct": 0}, ensure_ascii=False).encode()
    write_jsonl(work / "after.jsonl", items([1, 1, 1, 1]))
    inside = last.index("é".encode()) + 1
    for cut in (1, 12, inside, len(last) - 1):
        (work / "before.jsonl").write_bytes(b"\n".join([*LINES, last[:cut]]))
        result = work.compared("before.jsonl", "after.jsonl")
        assert result.coverage.matched == 4, cut
        told = [text for text in result.warnings if "cut off" in text]
        assert len(told) == 1
        assert "before" in told[0]
        assert "before.jsonl: line 5" in told[0]


def test_a_cut_off_last_line_of_a_harness_log_is_left_out_and_told(work: Workplace) -> None:
    for name in ("before", "after"):
        write_lm_eval(work / name, [lm_eval_record(i) for i in range(3)])
    file = work / "after" / f"samples_sums_{STAMP}.jsonl"
    file.write_bytes(file.read_bytes()[:-30])
    result = work.compared("before", "after")
    assert (result.coverage.matched, result.coverage.only_before) == (2, 1)
    assert any(file.name in text and "line 3" in text for text in result.warnings)


@pytest.mark.parametrize("broken", [b'{"question": "q', b"\x00\x00\x00", b"}", b"caf\xe9"])
def test_a_broken_line_in_the_middle_is_refused_by_its_number(
    work: Workplace, broken: bytes
) -> None:
    (work / "run.jsonl").write_bytes(b"\n".join([*LINES[:2], broken, *LINES[2:]]) + b"\n")
    refused_by_every_command(work, "run.jsonl", ("run.jsonl:3:", "JSON"))


def test_a_blank_line_is_no_harm(work: Workplace) -> None:
    (work / "run.jsonl").write_bytes(b"\n" + b"\r\n\n \n".join(LINES) + b"\n\n")
    assert work.compared("run.jsonl", "run.jsonl").coverage.matched == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("question,correct\nq0,1\nq1,0,extra\nq2,1\n", 3),
        ("question,correct\nq0,1\nq1\nq2,1\n", 3),
        ("question,correct\nq0,1,extra\nq1,0,extra\nq2,1,extra\n", 2),
        ("question,correct\nq0,1\n# two?,0\nq1,1\n#three\n", 5),
    ],
)
def test_a_csv_row_with_the_wrong_number_of_cells_is_refused_by_its_line(
    work: Workplace, text: str, line: int
) -> None:
    (work / "run.csv").write_text(text)
    said = work.refused("show", "run.csv", says=("run.csv",))
    assert f"line {line}" in said.lower() or f"line: {line}" in said.lower(), said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("name", ["run.csv", "run.jsonl"])
def test_a_wrong_encoding_is_named(work: Workplace, name: str, encoding: str) -> None:
    records = [{"question": f"où est {i}?", "correct": i % 2} for i in range(4)]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    text = csv_text(records) if name.endswith("csv") else lines
    (work / name).write_bytes(text.encode(encoding))
    for arguments in (("show", name), ("compare", name, name)):
        assert "utf-8" in work.refused(*arguments, says=(name,)).lower()


@pytest.mark.parametrize("name", ["run.csv", "run.jsonl"])
def test_a_byte_order_mark_is_no_harm(work: Workplace, name: str) -> None:
    records = items([1, 0, 1])
    lines = "".join(json.dumps(record) + "\n" for record in records)
    text = csv_text(records) if name.endswith("csv") else lines
    (work / name).write_bytes(text.encode("utf-8-sig"))
    write_csv(work / "plain.csv", items([1, 1, 1]))
    assert work.compared(name, "plain.csv").coverage.matched == 3


@pytest.mark.parametrize("name", ["run.jsonl", "samples_run.jsonl"])
def test_a_very_long_line_is_refused(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FORGETMAP_MAX_LINE_MIB", "1")
    (work / name).write_bytes(LINES[0] + b"\n" + b"x" * 2**21 + b"\n" + LINES[1])
    refused_by_every_command(work, name, (f"{name}:2:", "longer than", "FORGETMAP_MAX_LINE_MIB"))


def test_a_very_long_csv_line_is_read_or_refused_by_its_number(work: Workplace) -> None:
    write_csv(work / "run.csv", items([1, 0], answer="x" * 5_000_000))
    result = work.run("show", "run.csv")
    if result.exit_code:
        says = ("run.csv", "line")
        assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)


@pytest.mark.parametrize("depth", [200, 300, 900, 1010, 1100, 100_000])
@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
def test_deeply_nested_json_is_no_traceback(work: Workplace, name: str, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    if name == "run.csv":
        write_csv(work / name, items([1, 0], choices=nested))
    else:
        line = f'{{"question": "q", "choices": {nested}, "correct": 1}}\n'
        (work / name).write_text(line + line)
    result = work.run("show", name)
    if result.exit_code:
        assert_one_line(result.exit_code, result.stdout, result.stderr, (name,), 2, result)


@pytest.mark.parametrize("depth", [300, 900, 1010, 100_000])
@pytest.mark.parametrize("field", ["doc", "resps", "filtered_resps", "target", "arguments"])
def test_deeply_nested_json_in_a_harness_log_is_no_traceback(
    work: Workplace, field: str, depth: int
) -> None:
    record = json.dumps(lm_eval_record(0, **{field: "HERE"}))
    line = record.replace('"HERE"', "[" * depth + "]" * depth)
    write_lm_eval(work / "run", [lm_eval_record(1)])
    file = work / "run" / f"samples_sums_{STAMP}.jsonl"
    file.write_text(f"{line}\n{line}\n")
    for path in ("run", file.relative_to(work.folder)):
        result = work.run("convert", path, "out.parquet")
        if result.exit_code:
            assert_one_line(result.exit_code, result.stdout, result.stderr, (file.name,), 2, result)


HUGE = [2**31, 2**63, 2**64, 10**30, 10**400, -(2**70)]


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("field", ["correct", "k", "id", "repeat", "gold_probability", "target"])
def test_huge_integers_are_no_traceback(work: Workplace, field: str, value: int) -> None:
    records = items([1, 0, 1])
    records[1][field] = value
    write_jsonl(work / "run.jsonl", records)
    write_jsonl(work / "good.jsonl", items([1, 1, 1], gold_probability=0.5))
    result = work.run("compare", "run.jsonl", "good.jsonl", *QUICK)
    if result.exit_code:
        says = ("run.jsonl", "2")
        assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)


@pytest.mark.parametrize("value", [*HUGE, float("inf"), 1e300, -1e300])
def test_huge_scores_of_a_harness_are_no_traceback(work: Workplace, value: float) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0), lm_eval_record(1, value)])
    result = work.run("compare", "run", "run", *QUICK)
    if result.exit_code:
        assert_one_line(result.exit_code, result.stdout, result.stderr, (":2:",), 2, result)


# --- sizes ----------------------------------------------------------------------------------------

LIMITED = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
from typer.testing import CliRunner
from forgetmap.cli.app import app
for path in sys.argv[1:]:
    start = time.process_time()
    found = CliRunner().invoke(app, ["show", path])
    seconds = time.process_time() - start
    print(json.dumps([path, found.exit_code, found.stdout, found.stderr, seconds]), flush=True)
"""
BIG_FILES = {
    "zeros.jsonl": b"",
    "good_start.jsonl": b"".join(line + b"\n" for line in LINES),
    "samples_big.jsonl": json.dumps(lm_eval_record(0)).encode() + b"\n",
    "zeros.csv": b"",
    "good_start.csv": csv_text(items([1, 0] * 5000)).encode(),
    "big.parquet": b"PAR1",
    "details_big.parquet": b"PAR1",
    "big.json": b"{",
    f"results_{STAMP}.json": b'{"model_name": "',
}


def test_ten_gigabytes_of_nothing_are_refused_in_bounded_memory_and_time(work: Workplace) -> None:
    paths = []
    for number, (name, head) in enumerate(BIG_FILES.items()):
        try:
            sparse(work / str(number) / name, head=head)
        except OSError as error:
            pytest.skip(f"no sparse files here: {error}")
        paths.append(f"{number}/{name}")
    write_lm_eval(work / str(number), [lm_eval_record(0)])  # beside the results file, the last
    paths[-1] = str(number)
    found = child(LIMITED, *paths, timeout=3600)  # against hanging; time is told by the child
    assert found.stdout.count("\n") == len(paths), found.stderr[-2000:]
    for line, name in zip(found.stdout.splitlines(), BIG_FILES, strict=True):
        path, code, out, err, seconds = json.loads(line)
        assert_one_line(code, out, err, (name,), 2, path)
        assert seconds < 15, path
