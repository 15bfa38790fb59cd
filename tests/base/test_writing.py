"""A file is whole or not there: failures, full disks and kills while something is written."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import signal
import stat
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.base.files import create_text, replacing, write_text
from forgetmap.samples.table import SCHEMA, TEXT_COLUMNS, Meta, Samples
from logs import Workplace, child, content_of, items, write_jsonl

OLD = b"the old content, which must survive"


def rows(count: int = 6) -> list[dict]:
    """Rows that differ in length and content, so that nothing compresses away."""
    return [
        {
            "task": "sums",
            "item": 2**64 - 1 - i,
            "item_ref": str(i),
            "score": i % 2,
            "response": os.urandom(20).hex() * (i % 7),
        }
        for i in range(count)
    ]


# --- replacing ------------------------------------------------------------------------------------


def test_a_new_file_appears_whole(work: Workplace) -> None:
    with replacing("new.txt") as temporary:
        temporary.write_bytes(b"new")
        assert not Path("new.txt").exists()
        assert temporary.parent.resolve() == work.folder.resolve()
    assert content_of(work.folder) == {"new.txt": b"new"}


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("there", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    work: Workplace, failure: type[BaseException], there: bool
) -> None:
    if there:
        Path("out.txt").write_bytes(OLD)
    before = content_of(work.folder)
    expected = InputError if failure is OSError else failure

    def write_half() -> None:
        with replacing("out.txt") as temporary:
            temporary.write_bytes(b"half")
            raise failure("in the middle")

    with pytest.raises(expected):
        write_half()
    assert content_of(work.folder) == before


@pytest.mark.parametrize("point", ["fsync", "replace", "chmod"])
def test_a_failure_at_the_end_leaves_the_old_file(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    Path("out.txt").write_bytes(OLD)
    owner = os if point == "fsync" else Path
    monkeypatch.setattr(owner, point, fail)
    with pytest.raises(InputError, match=r"out\.txt: .*No space left on device"):
        write_text("out.txt", "new")
    monkeypatch.undo()
    assert content_of(work.folder) == {"out.txt": OLD}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
def test_the_mode_of_an_existing_file_is_kept(work: Workplace, mode: int) -> None:
    Path("out.txt").write_bytes(OLD)
    Path("out.txt").chmod(mode)
    write_text("out.txt", "new")
    assert stat.S_IMODE(Path("out.txt").stat().st_mode) == mode


def test_a_new_file_gets_the_usual_mode(work: Workplace) -> None:
    usual = os.umask(0o027)
    try:
        write_text("out.txt", "new")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(usual)
    assert stat.S_IMODE(Path("out.txt").stat().st_mode) == 0o640


def test_a_link_is_followed_not_replaced(work: Workplace) -> None:
    Path("target.txt").write_bytes(OLD)
    Path("link.txt").symlink_to("target.txt")
    write_text("link.txt", "new")
    assert Path("link.txt").is_symlink()
    assert Path("target.txt").read_text() == "new"


def test_a_device_is_never_replaced_by_a_file(work: Workplace) -> None:
    """Run as root, `--csv /dev/null` would else put a plain file in the place of /dev/null."""
    os.mkfifo("pipe")
    with pytest.raises(InputError, match="pipe"):
        write_text("pipe", "new")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert list(content_of(work.folder)) == ["pipe"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere/out.txt", "does not exist"),
        ("folder", "is a folder"),
        ("file/out.txt", "does not exist"),
        ("x" * 255, "x"),
        ("x" * 300, "x"),
    ],
)
def test_a_name_that_cannot_be_written_is_one_clear_error(
    work: Workplace, name: str, says: str
) -> None:
    Path("folder").mkdir()
    Path("file").write_bytes(OLD)
    before = content_of(work.folder)
    if len(name) == 255:  # a legal name, if only just
        write_text(name, "new")
        assert Path(name).read_text() == "new"
        return
    with pytest.raises(InputError, match=says):
        write_text(name, "new")
    assert content_of(work.folder) == before


# --- every writer under every failure -------------------------------------------------------------

WRITERS = {
    "samples": ("out.parquet", "samples()[0].write('out.parquet')"),
    "map": ("out.json", "found().write('out.json')"),
    "flips.csv": ("out.csv", "write_flips(changed(), 'out.csv')"),
    "flips.jsonl": ("out.jsonl", "write_flips(changed(), 'out.jsonl')"),
    "flips.parquet": ("out.parquet", "write_flips(changed(), 'out.parquet')"),
    "table": ("out.csv", "write_text('out.csv', to_csv(found()))"),
    "convert": ("out.parquet", "cli('convert', 'before.jsonl', 'out.parquet')"),
}
IMPORTS = """
import os, resource, signal
from pathlib import Path
import forgetmap
from forgetmap.cli.app import app
from forgetmap.base.files import write_text
from forgetmap.map.comparison import compare_logs
from forgetmap.map.flips import write_flips
from forgetmap.views.tables.maps import to_csv
from forgetmap.readers import lighteval, lm_eval, parquet, table
forgetmap.compare, forgetmap.pair, forgetmap.read  # loaded now, once for all children
def cli(*arguments):
    app(list(arguments), standalone_mode=False)
def samples():
    how = forgetmap.ReadOptions(text=True)
    return [forgetmap.read(f"{side}.jsonl", how) for side in ("before", "after")]
def found():
    return forgetmap.compare(*samples(), draws=100)
def changed():
    return compare_logs(*samples(), causes=True, draws=100).changed()
"""


def logs_that_flip(work: Workplace, count: int = 300) -> None:
    """Every item is forgotten, and its texts do not compress: the files to write are large."""
    for side, score in (("before", 1), ("after", 0)):
        records = items([score] * count, answer=None)
        for record in records:
            record["answer"] = os.urandom(100).hex()
        write_jsonl(work / f"{side}.jsonl", records)


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_is_one_clear_error_and_leaves_the_old_file(
    work: Workplace, there: bool
) -> None:
    """The limit on file size stands for the disk: the write fails where the file has grown to it.

    All writers in one process, so that the test is quick.
    """
    logs_that_flip(work)
    code = IMPORTS + (
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))\n"
    )
    for name, (path, call) in WRITERS.items():
        code += (
            (f"os.path.exists({path!r}) or os.system('cp old {path}')\n" if there else "")
            + f"try:\n    {call}\nexcept (forgetmap.InputError, SystemExit) as error:\n"
            f"    print({name!r}, type(error).__name__, error, sep='\\t', flush=True)\n"
            f"else:\n    print({name!r}, 'written', '-', sep='\\t', flush=True)\n"
        )
    Path("old").write_bytes(OLD)
    logs = content_of(work.folder)
    found = child(code)
    assert found.returncode == 0, found.stderr
    told = dict(line.split("\t", 1) for line in found.stdout.splitlines())
    assert list(told) == list(WRITERS)
    for name, (path, _) in WRITERS.items():
        assert told[name].startswith("InputError") or name == "convert", (name, told[name])
        assert path in told[name] or name == "convert", (name, told[name])
    outputs = {path: OLD for path, _ in WRITERS.values()} if there else {}
    assert content_of(work.folder) == {**logs, **outputs}
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr


def test_a_full_disk_for_temporary_files_is_one_clear_error(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond memory, samples go to a temporary file; that disk can be full as well."""

    def fail(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    write_jsonl(work / "run.jsonl", items([1, 0] * 10))
    monkeypatch.setattr("forgetmap.samples.table._SPILL_BYTES", 10)
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", fail)
    work.refused("compare", "run.jsonl", "run.jsonl", says=("No space left on device",))


KILL = "(lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))"
KILL_POINTS = {
    "before the data reach the disk": f"os.fsync = {KILL}",
    "before the rename": f"Path.replace = os.replace = os.rename = {KILL}",
    "in the middle of the writing": f"""
import csv, orjson
import forgetmap.map.flips, pyarrow.parquet as pq
class Writer(pq.ParquetWriter):
    def write_table(self, *a, **k):
        super().write_table(*a, **k); {KILL}()
pq.ParquetWriter = Writer
forgetmap.map.flips.orjson = type("half", (), {{"dumps": {KILL}}})
forgetmap.map.flips.spreadsheet_safe = {KILL}
Path.write_text = {KILL}
""",
}


@pytest.mark.parametrize("point", KILL_POINTS)
def test_a_kill_leaves_the_old_file_or_none(work: Workplace, point: str) -> None:
    """Only a temporary file may stay behind, under another name that no reader takes for a log."""
    logs_that_flip(work, 50)
    logs = content_of(work.folder)
    code = IMPORTS + KILL_POINTS[point] + "\n"
    for path, call in WRITERS.values():  # a process each, forked before any thread was started
        code += (
            f"open({path!r}, 'wb').write({OLD!r})\n"
            f"if not os.fork():\n    {call}\n    os._exit(0)\n"
            f"status = os.wait()[1]\n"
            f"print(os.WTERMSIG(status), open({path!r}, 'rb').read() == {OLD!r}, flush=True)\n"
            f"os.unlink({path!r})\n"
        )
    found = child(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [f"{signal.SIGKILL:d} True"] * len(WRITERS)
    left = content_of(work.folder).keys() - logs.keys()
    assert all(name.startswith(".out.") and name.endswith(".part") for name in left), left


def test_a_kill_after_the_rename_leaves_the_new_file_whole(work: Workplace) -> None:
    code = f"""
import os, signal
from pathlib import Path
from forgetmap.base.files import write_text
rename = Path.replace
def replace(*a):
    rename(*a); {KILL}()
Path.replace = replace
write_text("out.txt", "new" * 10_000)
"""
    Path("out.txt").write_bytes(OLD)
    assert child(code).returncode == -signal.SIGKILL
    assert content_of(work.folder) == {"out.txt": b"new" * 10_000}


def test_leftovers_of_a_kill_are_not_taken_for_logs(work: Workplace) -> None:
    write_jsonl(work / "run" / "log.jsonl", items([1, 0]))
    write_jsonl(work / "run" / ".log.jsonl.x1.part", items([1, 0, 1, 1]))
    assert len(forgetmap.read("run")) == 2


@pytest.mark.parametrize("name", ["flips.csv", "flips.jsonl", "flips.parquet"])
def test_flips_that_fail_half_way_leave_the_old_file(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = forgetmap.Pairs.flips

    def half(pairs: forgetmap.Pairs) -> object:
        yield from whole(pairs)
        raise RuntimeError("half way")

    logs_that_flip(work, 10)
    Path(name).write_bytes(OLD)
    there = content_of(work.folder)
    monkeypatch.setattr(forgetmap.Pairs, "flips", half)
    with pytest.raises(RuntimeError, match="half way"):
        forgetmap.compare("before.jsonl", "after.jsonl", draws=100, flips=name)
    assert content_of(work.folder) == there


def test_samples_that_fail_half_way_leave_the_old_file(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = Samples.from_rows(rows())
    whole = samples.to_batches

    def half(*args: object) -> object:
        yield from whole(*args)
        raise RuntimeError("half way")

    Path("out.parquet").write_bytes(OLD)
    monkeypatch.setattr(samples, "to_batches", half)
    with pytest.raises(RuntimeError, match="half way"):
        samples.write("out.parquet")
    assert content_of(work.folder) == {"out.parquet": OLD}


def test_a_log_is_never_overwritten_by_its_own_conversion(work: Workplace) -> None:
    Samples.from_rows(rows()).write("s.parquet")
    work.refused("convert", "s.parquet", "s.parquet", says=("s.parquet",))
    work.refused("convert", "s.parquet", "./s.parquet", says=("s.parquet",))


# --- what was written is what is read -------------------------------------------------------------

FULL = {
    "model": "m/ünï — 模型",
    "run": "2026-01-31",
    "task": "tâche 🙂",
    "item": 2**64 - 1,
    "item_ref": "'; --",
    "wording": 7,
    "repeat": 2**31 - 1,
    "metric": "exact_match,flexible-extract",
    "score": 0.1 + 0.2,
    "status": "ok",
    "k": 2**31 - 1,
    "gold_probability": 5e-324,
    "option_probabilities": [0.0, 0.25, 0.75],
    "right_option": 0,
    "prompt_hash": 0,
    "cluster": "",
    "source": "a.jsonl:1",
    "prompt": "line\nline\r\n\ttab\x00null",
    "target": "\ufeff\u202e",
    "answer": "",
    "response": "x" * 100_000,
}
EMPTY = dict.fromkeys(SCHEMA.names) | {"model": "m", "task": "t", "repeat": 0, "metric": "acc"}


def test_samples_come_back_as_they_were(work: Workplace) -> None:
    meta = Meta(
        "lm-eval",
        "0.4.13",
        {"m": {"few-shot examples": {"sums": 5}, "limit": None, "dtype": "bf16 — é"}},
        ["line 3 was left out", "\x1b[31m"],
    )
    samples = Samples.from_rows([FULL, EMPTY], meta)
    samples.write("s.parquet")
    again = Samples.read("s.parquet")
    first, second = (row for batch in again.to_batches() for row in batch.to_pylist())
    assert first == FULL
    assert second == {**EMPTY, "status": "unscored"}
    assert again.meta == meta
    assert (len(again), again.models) == (2, sorted({FULL["model"], "m"}))


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), -0.0, 1e308, float("nan"), None])
def test_odd_scores_come_back_as_they_were_or_as_unscored(
    work: Workplace, score: float | None
) -> None:
    Samples.from_rows([{"item": 1, "score": score}]).write("s.parquet")
    (row,) = pq.read_table("s.parquet").to_pylist()
    nothing = score is None or score != score
    assert row["score"] == (None if nothing else score)
    assert (row["status"] == "unscored") == nothing


@pytest.mark.parametrize("field", ["response", "task", "item_ref", "model"])
def test_lone_surrogates_can_be_stored(work: Workplace, field: str) -> None:
    """Half a character cannot be UTF-8; it is replaced, and the rest of the text survives."""
    samples = Samples.from_rows([{"item": 1, "score": 1.0, field: "half \ud83d of it"}])
    samples.write("s.parquet")
    (row,) = pq.read_table("s.parquet").to_pylist()
    assert row[field].startswith("half ")
    assert row[field].endswith(" of it")


def test_settings_with_lone_surrogates_come_back(work: Workplace) -> None:
    meta = Meta("rows", None, {"unnamed": {"system prompt": "half \ud83d"}}, [])
    Samples.from_rows([{"item": 1, "score": 1.0}], meta).write("s.parquet")
    assert Samples.read("s.parquet").meta == meta


def test_text_columns_are_readable_on_their_own(work: Workplace) -> None:
    """And the narrow columns without them: that is what makes a comparison quick."""
    Samples.from_rows(rows(5000)).write("s.parquet")
    stored = pq.ParquetFile("s.parquet")
    for name in TEXT_COLUMNS:
        assert stored.read(columns=[name]).column_names == [name]
    narrow = [name for name in SCHEMA.names if name not in TEXT_COLUMNS]
    assert stored.read(columns=narrow).num_rows == 5000
    group = stored.metadata.row_group(0)
    sizes = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert sizes["response"].total_compressed_size > sizes["score"].total_compressed_size
    assert [row for b in Samples.read("s.parquet").to_batches(["score"]) for row in b["score"]]


def test_one_model_of_several_is_written_alone(work: Workplace) -> None:
    both = Samples.from_rows([{**FULL, "model": "a"}, {**FULL, "model": "b"}])
    both.only("b").write("s.parquet")
    assert Samples.read("s.parquet").models == ["b"]


def test_spilled_samples_are_the_same_and_leave_nothing_behind(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", "temporary")
    held = Samples.from_rows(rows(20_000))
    monkeypatch.setattr("forgetmap.samples.table._SPILL_BYTES", 1000)
    monkeypatch.setattr(os, "urandom", bytes)
    spilled = Samples.from_rows(held.data.to_pylist())
    assert isinstance(spilled.data, Path)
    assert pa.Table.from_batches(spilled.to_batches()).equals(held.data)
    del spilled
    assert content_of(Path("temporary")) == {}


def test_a_map_comes_back_as_it_was(work: Workplace) -> None:
    logs_that_flip(work, 20)
    result = forgetmap.compare("before.jsonl", "after.jsonl", draws=100)
    result.write("map.json")
    assert forgetmap.ForgettingMap.from_json(Path("map.json").read_bytes()) == result
    json.loads(Path("map.json").read_text(), parse_constant=pytest.fail)  # strict: no NaN


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"schema_version": 99}', "\x00"])
def test_what_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="map"):
        forgetmap.ForgettingMap.from_json(text)


def test_a_newer_map_is_refused_with_advice(work: Workplace) -> None:
    logs_that_flip(work, 5)
    result = forgetmap.compare("before.jsonl", "after.jsonl", draws=100)
    newer = result.model_copy(update={"schema_version": 99})
    with pytest.raises(InputError, match="upgrade forgetmap"):
        forgetmap.ForgettingMap.from_json(newer.to_json())
    changed = json.loads(newer.to_json())
    del changed["total"]  # a later contract may have other fields
    with pytest.raises(InputError, match="upgrade forgetmap"):
        forgetmap.ForgettingMap.from_json(json.dumps(changed))


@pytest.mark.parametrize("name", ["flips.csv", "flips.jsonl", "flips.parquet"])
def test_flips_hold_the_same_rows_in_every_format(work: Workplace, name: str) -> None:
    texts = ["a", "", 'quo"te', "new\nline", "comma, semicolon; tab\t", "ünï 模 🙂"]
    for side, score in (("before", 1), ("after", 0)):
        records = items([score] * len(texts))
        for record, text in zip(records, texts, strict=True):
            record["answer"] = f"A {text}"
        write_jsonl(work / f"{side}.jsonl", records)
    forgetmap.compare("before.jsonl", "after.jsonl", draws=100, flips=name)
    content = Path(name).read_bytes()
    if name.endswith("csv"):
        found = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    elif name.endswith("jsonl"):
        found = [json.loads(line) for line in content.splitlines()]
    else:
        found = pq.read_table(name).to_pylist()
    assert sorted(row["answer_before"] for row in found) == sorted(f"A {text}" for text in texts)
    assert {row["transition"] for row in found} == {"forgotten"}


@pytest.mark.parametrize("name", ["flips.csv", "flips.jsonl", "flips.parquet"])
def test_no_flips_is_a_readable_empty_list(work: Workplace, name: str) -> None:
    write_jsonl(work / "run.jsonl", items([1, 0]))
    forgetmap.compare("run.jsonl", "run.jsonl", draws=100, flips=name)
    if name.endswith("csv"):
        assert Path(name).read_text().startswith("task,item,")  # the header, for whoever reads it
    elif name.endswith("parquet"):
        assert pq.read_table(name).num_rows == 0
        assert {"task", "transition", "answer_after"} <= set(pq.read_schema(name).names)
    else:
        assert Path(name).read_bytes() == b""


def test_what_a_killed_program_left_is_swept(tmp_path: Path) -> None:
    """Parts of the same file that nobody holds go; young ones and those in use stay."""
    killed, young, other = (
        tmp_path / name for name in (".a.json.1.part", ".a.json.2.part", ".b.json.3.part")
    )
    for path in (killed, young, other):
        path.write_text("half")
    long_ago = time.time() - 3600
    for path in (killed, other):
        os.utime(path, (long_ago, long_ago))
    with replacing(tmp_path / "a.json") as temporary:
        os.utime(temporary, (long_ago, long_ago))
        write_text(tmp_path / "a.json", "1")
        assert temporary.exists()
        temporary.write_text("2")
    assert (tmp_path / "a.json").read_text() == "2"
    assert [path.exists() for path in (killed, young, other)] == [False, True, True]


def test_a_file_that_must_be_new_is_written_by_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "name.json"
    create_text(path, "one")
    with pytest.raises(FileExistsError):
        create_text(path, "two")
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_that_must_be_new_needs_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_paths: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    test_a_file_that_must_be_new_is_written_by_one_alone(tmp_path)


def test_a_new_file_without_hard_links_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_paths: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "write", lambda _handle, _data: 1)
    with pytest.raises(InputError, match="No space left on device"):
        create_text(tmp_path / "name.json", "one")
    assert list(tmp_path.iterdir()) == []
