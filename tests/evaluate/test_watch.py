"""`forgetmap watch`: checkpoints that appear, half-written ones, limits, kills."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from test_evaluate import other, quiz, tiny, write_jsonl  # noqa: F401 - fixtures

from forgetmap.base.errors import InputError
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Suite, Task
from forgetmap.evaluate.results import read_manifest
from forgetmap.evaluate.run import evaluate
from forgetmap.evaluate.watch import CHOSEN, Watch, find_checkpoints, is_whole
from logs import Workplace

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def run(tiny, other, tmp_path):  # noqa: F811
    """A training run that saved two checkpoints: the same model, and another."""
    folder = tmp_path / "run"
    shutil.copytree(tiny, folder / "checkpoint-20")
    shutil.copytree(other, folder / "checkpoint-100")
    write_jsonl(tmp_path / "mine.jsonl", quiz(60))
    return folder


def watch(run, tiny, **options):  # noqa: F811
    suite = run.parent / "mine.jsonl"
    options = {"suite": suite, "every": 0, "idle": 0, "seconds": 600} | options
    return Watch(run, tiny, run.parent / "out", **options)


def test_checkpoints_come_in_the_order_of_their_steps(run, tiny):  # noqa: F811
    told = []
    watched = watch(run, tiny, say=told.append)
    watched.start()
    assert watched.limit is None
    assert list(watched.checkpoints()) == ["checkpoint-20", "checkpoint-100"]
    assert [text.partition(":")[0] for text in told] == [
        "before",
        "checkpoint-20",
        "checkpoint-100",
    ]
    assert all((run.parent / "out" / name / "manifest.json").is_file() for name in ("before",))


def test_a_checkpoint_that_is_being_written_is_waited_for(run, tiny):  # noqa: F811
    weights = run / "checkpoint-100" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1000])
    assert not is_whole(run / "checkpoint-100")
    looks = []

    def wait(_seconds):
        looks.append(1)
        if len(looks) == 5:
            weights.write_bytes(whole)

    clock = itertools.count().__next__  # a second passes whenever somebody looks at it
    watched = watch(run, tiny, wait=wait, clock=clock, idle=1)
    watched.start()
    assert list(watched.checkpoints()) == ["checkpoint-20", "checkpoint-100"]
    assert len(looks) > 5


def test_a_missing_shard_is_waited_for(run):
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (run / "checkpoint-20" / "model.safetensors.index.json").write_text(json.dumps(index))
    assert not is_whole(run / "checkpoint-20")
    assert is_whole(run / "checkpoint-100")


def test_a_broken_checkpoint_is_told_and_the_others_go_on(run, tiny):  # noqa: F811
    (run / "checkpoint-20" / "config.json").write_text("{}")
    told = []
    watched = watch(run, tiny, say=told.append)
    watched.start()
    assert list(watched.checkpoints()) == ["checkpoint-100"]
    failed = [text for text in told if text.startswith("checkpoint-20: ")]
    assert len(failed) == 3
    assert failed[-1].endswith("it is left out")


def test_what_is_finished_is_not_asked_again(run, tiny, tmp_path):  # noqa: F811
    first = watch(run, tiny)
    first.start()
    assert next(first.checkpoints()) == "checkpoint-20"  # and then the machine dies
    shutil.rmtree(run / "checkpoint-20")  # as trainers do with old ones
    asked = (tmp_path / "out" / "checkpoint-20" / "manifest.json").stat().st_mtime_ns
    shutil.copytree(tmp_path / "out" / "checkpoint-20", tmp_path / "out" / "checkpoint-30")
    other_suite = tmp_path / "out" / "checkpoint-30" / "manifest.json"
    other_suite.write_text(json.dumps(read_manifest(other_suite.parent) | {"suite_version": "0"}))
    told = []
    again = watch(run, tiny, say=told.append)
    again.start()
    assert list(again.checkpoints()) == ["checkpoint-20", "checkpoint-100"]
    assert told[1] == "checkpoint-20: is gone, 60 questions asked before"
    assert told[2].startswith("checkpoint-30: is gone, and was not asked the same")
    assert (tmp_path / "out" / "checkpoint-20" / "manifest.json").stat().st_mtime_ns == asked


def test_a_watch_that_goes_on_asks_as_much_as_before(run, tiny, tmp_path):  # noqa: F811
    write_jsonl(tmp_path / "mine.jsonl", quiz(20))
    told = []
    options = {"seconds": 1e-9, "say": told.append}  # time for the first round alone
    first = watch(run, tiny, **options)
    first.start()
    assert first.limit == 4
    again = watch(run, tiny, **options)
    again.start()
    assert again.limit == 4
    assert told[0].endswith(", 4 questions")
    assert told[1].endswith(f", 4 questions, as many as before ({tmp_path / 'out' / CHOSEN})")
    more = watch(run, tiny, seconds=600)  # another budget chooses anew
    more.start()
    assert more.limit is None


def test_a_damaged_memory_of_the_limit_is_refused(run, tiny):  # noqa: F811
    watched = watch(run, tiny)
    watched.out.mkdir()
    terms = {"terms": watched._terms(), "limit": "many"}
    (watched.out / CHOSEN).write_text(json.dumps(terms))
    with pytest.raises(InputError, match="not a number of questions"):
        watched.start()


WAITING = """
import os, sys, time
from functools import partial
from pathlib import Path
from forgetmap.evaluate.watch import Watch

def work(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    Watch(Path("."), "none", Path("."))._apart(partial(work, sys.argv[1]))
"""


def lives(process):
    """Whether a process runs; one that nobody has waited for yet is dead all the same."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(happened, seconds=120):
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_the_worker_of_a_killed_watch_ends(tmp_path):
    script, file = tmp_path / "waiting.py", tmp_path / "worker"
    script.write_text(WAITING)
    with subprocess.Popen([sys.executable, script, file]) as watching:
        worker = int(until(lambda: file.exists() and file.read_text()))
        watching.kill()
    assert watching.returncode == -signal.SIGKILL
    until(lambda: not lives(worker), seconds=20)


@pytest.mark.parametrize(
    "option",
    [
        ("--budget", "0s"),
        ("--budget", "save"),
        ("--every", "2h"),
        ("--every", "-1"),
        ("--every", "nan"),
    ],
)
def test_a_time_is_seconds_or_minutes(option, run, work: Workplace):
    work.refused("watch", run, "--before", "x", *option, says=[" ".join(option), "60, 60s, 2m"])


def children(process):
    """The processes that a process has started."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_a_killed_watch_loses_nothing(run, tiny, work: Workplace):  # noqa: F811
    out, answers = work / "out", work / "out" / "checkpoint-20" / "answers.jsonl"
    command = [sys.executable, "-m", "forgetmap", "watch", run, "--before", tiny, "--idle", "0"]
    command += ["--suite", work / "mine.jsonl", "--out", out, "--every", "0"]
    with subprocess.Popen(command) as watching:
        until(lambda: (out / "checkpoint-100").is_dir())  # its process has begun to write
        workers = children(watching.pid)
        watching.kill()
    assert watching.returncode == -signal.SIGKILL
    assert workers
    until(lambda: not any(map(lives, workers)), seconds=20)
    assert not (out / "checkpoint-100" / "manifest.json").exists(), "it was over before"
    kept = answers.read_bytes()
    shutil.rmtree(run / "checkpoint-20")
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert "as many as before" in told.stdout
    assert answers.read_bytes() == kept
    page = (out / "lineage.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("checkpoint-20", "checkpoint-100"))


def test_a_checkpoint_without_weights_is_told_once(run, tiny):  # noqa: F811
    (run / "checkpoint-20" / "model.safetensors").unlink()
    (run / "checkpoint-20" / "training_args.bin").write_bytes(b"no weights")
    actor = run / "global_step_10" / "actor" / "huggingface"
    actor.mkdir(parents=True)
    (actor / "config.json").write_text("{}")
    shutil.rmtree(run / "checkpoint-100")
    told = []
    clock = itertools.count().__next__
    watched = watch(run, tiny, say=told.append, idle=0.1, clock=clock, wait=lambda _: None)
    assert list(watched.checkpoints()) == []
    assert told == [
        f"{name}: has no weights that can be loaded; merge or gather them"
        for name in ("checkpoint-20", "global_step_10")
    ]


def test_a_checkpoint_of_verl_is_found_inside(run, tiny):  # noqa: F811
    shutil.move(run / "checkpoint-100", run / "global_step_10" / "actor" / "huggingface")
    shutil.rmtree(run / "checkpoint-20")
    watched = watch(run, tiny)
    watched.start()
    assert list(watched.checkpoints()) == ["global_step_10"]
    assert read_manifest(watched.out / "global_step_10")["requests"] == 60


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be watched"):
        find_checkpoints(tmp_path / "nowhere")


@pytest.fixture
def hook():
    """A web server that keeps what is posted to it."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.posted = posted
    yield server
    server.shutdown()
    server.server_close()


def known_to(model, count, out):
    """Questions that a model answers right: its own choice is the right one."""
    asked = {question.ref: question for question in quiz(count)}
    task = Task("quiz", "Quiz", lambda: list(asked.values()))
    done = evaluate(model, Suite("quiz", "1", (task,)), out, asking=Asking(chat=True))
    rows = [row for batch in done.samples.to_batches() for row in batch.to_pylist()]
    picked = {
        row["item_ref"]: row["option_probabilities"] for row in rows if row["metric"] == "acc"
    }
    return [
        replace(asked[ref], target=asked[ref].choices[chances.index(max(chances))])
        for ref, chances in picked.items()
    ]


def test_the_command_draws_a_page_and_stops_at_a_limit(run, tiny, hook, work: Workplace):  # noqa: F811
    write_jsonl(work / "many.jsonl", known_to(tiny, 100, work / "first"))
    base = ("watch", run, "--before", tiny, "--suite", "many.jsonl", "--idle", "0")
    told = work.worked(*base, "--every", "0")
    assert "checkpoint-20: " in told.stdout
    page = (work / "forgetmap-watch" / "lineage.html").read_text()
    assert 'http-equiv="refresh"' in page
    assert "checkpoint-100" in page
    shutil.rmtree(run / "checkpoint-20")  # its answers stay on the page
    address = f"http://127.0.0.1:{hook.server_port}"
    limit = ("--gate", "max-forgetting=0.0001", "--webhook", address)
    broken = work.run(*base, "--every", "save", "--budget", "1m", *limit)
    assert broken.exit_code == 1, broken.output
    assert hook.posted == [{"checkpoint": "checkpoint-100", "breaks": ["max-forgetting=0.0001"]}]
    assert "checkpoint-20" in (work / "forgetmap-watch" / "lineage.html").read_text()
    work.refused(*base, "--gate", "sometimes=1", says=["sometimes"])
