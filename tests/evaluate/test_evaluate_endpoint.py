"""Served models: a server on this machine that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs the extra `eval`")

from forgetmap.base import http as http_client
from forgetmap.base.errors import InputError
from forgetmap.evaluate import endpoint
from forgetmap.evaluate.models import Running, open_model
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import compare_models, evaluate
from forgetmap.evaluate.store import Store
from logs import Workplace, assert_one_line, write_jsonl


class Server(ThreadingHTTPServer):
    """Answers sums, after whatever `trouble` says about the first attempts at each prompt."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, trouble=lambda prompt, attempt: None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble = trouble
        self.attempts = Counter()
        self.asked = []
        self.card = None
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the tests."""

    @property
    def name(self):
        return f"http://127.0.0.1:{self.server_port}/v1#toy"

    @property
    def questions(self):
        """How many questions were asked, without those that only know the model again."""
        return self.attempts.total() - self.attempts[endpoint._PROBE]


SECONDS = iter(range(1_800_000_000, 1_900_000_000))
"""vLLM stamps each card with the time of the question."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        prompt = asked.get("prompt") or asked["messages"][-1]["content"]
        with server.lock:
            server.attempts[prompt] += 1
            server.asked.append((self.path, asked, self.headers.get("authorization")))
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
        try:
            self.reply(*(server.trouble(prompt, server.attempts[prompt]) or answer(asked, prompt)))
        finally:
            with server.lock:
                server.busy -= 1

    def do_GET(self):
        card = self.server.card
        if card is None:
            self.reply(404, b"no")
            return
        stamped = {"object": "model", "created": next(SECONDS), "permission": [{"id": "x"}], **card}
        self.reply(200, json.dumps({"object": "list", "data": [stamped]}).encode())

    def reply(self, status, body, headers=()):
        if status is None:
            self.connection.close()
            return
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def answer(asked, prompt):
    if asked.get("echo"):
        places = [0, *(n for n, c in enumerate(prompt) if c == " ")]
        values = [None, *(-float(len(prompt) - n) for n in places[1:])]
        tokens = [prompt[one:two] for one, two in zip(places, [*places[1:], None], strict=True)]
        told = {"token_logprobs": values, "text_offset": places, "tokens": tokens}
        choice = {"text": prompt, "logprobs": told, "finish_reason": "length"}
    elif "logprobs" in asked:  # it is asked with which likelihood it writes; it writes nothing
        choice = {"text": "", "finish_reason": "stop"}
    else:
        first = prompt.split(" plus ")[0].split()[-1]
        text = f" {2 * int(first)}\n"
        choice = {"message": {"content": text}} if "messages" in asked else {"text": text}
        choice["finish_reason"] = "stop"
    return 200, json.dumps({"choices": [choice], "usage": {"completion_tokens": 2}}).encode()


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(http_client, "LONGEST_PAUSE", 0.01)
    running = []

    def start(*trouble):
        server = Server(*trouble)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def suite(count=40):
    asked = [Question("sums", f"s{n}", f"{n} plus {n} =", str(2 * n)) for n in range(count)]
    return Suite("sums", "1", (Task("sums", "Maths", lambda: asked, scorer="number"),))


def content(samples):
    return [row for batch in samples.to_batches() for row in batch.to_pylist()]


@pytest.mark.parametrize("chat", [False, True])
def test_answers_are_written_and_scored(serve, tmp_path, chat, monkeypatch):
    monkeypatch.setenv(endpoint.KEY_VARIABLE, "secret")
    server = serve()
    done = evaluate(server.name, suite(), tmp_path, asking=Asking(chat=chat, system="Count."))
    assert {row["score"] for row in content(done.samples)} == {1.0}
    assert server.most_busy <= 16
    path, asked, key = server.asked[0]
    assert path == ("/v1/chat/completions" if chat else "/v1/completions")
    assert key == "Bearer secret"
    assert asked["model"] == "toy"
    assert asked["temperature"] == 0.0
    assert "secret" not in (tmp_path / "manifest.json").read_text()


def test_two_servers_are_asked_at_the_same_time(serve, tmp_path):
    """Each waits with its first answer for the other one to be asked."""
    both = threading.Barrier(2, timeout=30)
    first = suite().tasks[0].questions()[0].prompt

    def meet(prompt, attempt):
        if first in prompt and attempt == 1:
            both.wait()

    told = []
    sides = compare_models(
        *(serve(meet).name, serve(meet).name), suite(), tmp_path,
        progress=lambda *done: told.append(done),
    )  # fmt: skip
    assert [len(content(side)) for side in sides] == [40, 40]
    assert told[-1] == (80, 80)
    assert told == sorted(told)


def test_one_of_two_servers_that_fails_is_told_and_work_is_kept(serve, tmp_path):
    """What is under way when the other one fails may be asked again, no more than that."""
    asked, many = [], threading.Event()

    def good(prompt, attempt):
        asked.append(prompt)
        if len(asked) > 100:
            many.set()

    def bad(prompt, attempt):
        many.wait(30)
        return 400, b"no such model"

    one, other = serve(good), serve(bad)
    with pytest.raises(InputError, match="HTTP 400"):
        compare_models(one.name, other.name, suite(200), tmp_path)
    done = evaluate(one.name, suite(200), tmp_path / "before")
    assert done.evaluated < 200 - (100 - 2 * 16)
    assert {row["score"] for row in content(done.samples)} == {1.0}


@pytest.mark.parametrize(
    "trouble",
    [
        lambda prompt, attempt: (
            (429, b"slow down", [("retry-after", "0")]) if attempt < 4 else None
        ),
        lambda prompt, attempt: (503, b"") if attempt < 3 else None,
        lambda prompt, attempt: (None, b"") if attempt < 3 else None,
        lambda prompt, attempt: (200, b"<html>") if attempt < 3 else None,
    ],
    ids=["429 storm", "503", "broken connection", "no JSON"],
)
def test_what_passes_is_waited_for(serve, tmp_path, trouble):
    done = evaluate(serve(trouble).name, suite(), tmp_path)
    assert {row["score"] for row in content(done.samples)} == {1.0}


def test_a_server_that_never_recovers_ends_the_run_and_work_is_kept(serve, tmp_path):
    down = threading.Event()
    server = serve(lambda prompt, attempt: (429, b"") if down.is_set() else None)
    evaluate(server.name, suite(10), tmp_path)
    down.set()
    with pytest.raises(InputError, match=r"HTTP 429, 24 attempts\); finished answers are kept"):
        evaluate(server.name, suite(20), tmp_path)
    down.clear()
    assert evaluate(server.name, suite(20), tmp_path).evaluated == 10


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "not authorised"), (404, "no such model or address"), (418, "HTTP 418")],
)
def test_what_cannot_pass_ends_at_once(serve, tmp_path, status, words):
    server = serve(lambda prompt, attempt: (status, b"no"))
    with pytest.raises(InputError, match=words):
        evaluate(server.name, suite(), tmp_path)
    assert max(server.attempts.values()) == 1
    assert len(server.attempts) <= 16 + 20, "what is under way at a time, and little more"


def test_no_server_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_PAUSE", 0.001)
    with pytest.raises(InputError, match="cannot be reached, 6 attempts"):
        evaluate("http://127.0.0.1:9/v1#toy", suite(2), tmp_path)


def test_a_server_that_hangs_is_given_up(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint, "TIMEOUT", 0.05)
    release = threading.Event()
    server = serve(lambda prompt, attempt: release.wait(5) and None)
    with pytest.raises(InputError, match=r"no reply within 0\.05 s"):
        evaluate(server.name, suite(1), tmp_path)
    release.set()


def test_a_prompt_that_is_too_long_is_a_status(serve, tmp_path):
    long = (400, b'{"error": {"message": "This model\'s maximum context length is 8 tokens"}}')
    server = serve(lambda prompt, attempt: long if prompt.startswith("3 ") else None)
    done = evaluate(server.name, suite(5), tmp_path)
    found = {row["item_ref"]: row for row in content(done.samples)}
    assert (found["s3"]["status"], found["s3"]["score"]) == ("error", None)
    assert found["s4"]["score"] == 1.0
    assert any("longer than the model's context" in text for text in done.samples.meta.warnings)


def choices():
    asked = [Question("pick", "1", "Which is short?", "b", ("a long one", "b"))]
    return Suite("pick", "1", (Task("pick", "Quiz", lambda: asked),))


def test_options_are_scored_by_what_the_server_echoes(serve, tmp_path):
    """The toy gives each token minus its distance from the end: shorter options are likelier."""
    done = evaluate(serve().name, choices(), tmp_path)
    [row] = [row for row in content(done.samples) if row["metric"] == "acc"]
    assert row["answer"] == "b"
    long, short = -(11.0 + 9.0 + 4.0), -2.0
    from math import exp

    chances = [exp(value) / (exp(long) + exp(short)) for value in (long, short)]
    assert row["gold_probability"] == pytest.approx(chances[1])
    assert row["option_probabilities"] == pytest.approx(chances)
    assert row["right_option"] == 1


def test_a_server_that_tells_no_likelihoods_says_what_to_do(serve, tmp_path):
    choice = {"text": "x", "message": {"content": "x"}, "finish_reason": "length"}
    body = json.dumps({"choices": [choice]}).encode()
    server = serve(lambda prompt, attempt: (200, body))
    with pytest.raises(InputError, match="use --letters"):
        evaluate(server.name, choices(), tmp_path)
    with pytest.raises(InputError, match="use --letters or --no-chat"):
        evaluate(server.name, choices(), tmp_path, asking=Asking(chat=True))


def test_never_more_under_way_than_asked_for(serve, tmp_path):
    server = serve()
    evaluate(server.name, suite(), tmp_path, running=Running(batch=3))
    assert server.most_busy <= 3


# --- which weights a server serves ----------------------------------------------------------------

CARD = {"id": "toy", "root": "/ckpt/base", "owned_by": "vllm", "max_model_len": 4096}


def test_the_same_card_goes_on_where_it_was_stopped(serve, tmp_path):
    server = serve()
    server.card = CARD
    assert evaluate(server.name, suite(10), tmp_path).evaluated == 10
    assert evaluate(server.name, suite(20), tmp_path).evaluated == 10


@pytest.mark.parametrize("change", [{"root": "/ckpt/tuned"}, {"max_model_len": 8192}])
def test_another_card_behind_the_same_address_is_another_model(serve, tmp_path, change):
    server = serve()
    server.card = CARD
    evaluate(server.name, suite(10), tmp_path)
    server.card = CARD | change
    with pytest.raises(InputError, match=r"other weights, .*revision or model card; name another"):
        evaluate(server.name, suite(10), tmp_path)
    (tmp_path / "manifest.json").unlink()  # as in a run that was stopped
    assert evaluate(server.name, suite(10), tmp_path).evaluated == 10


def test_a_revision_tells_weights_apart_that_have_one_card(serve, work: Workplace):
    server = serve()
    write_jsonl(work / "sums.jsonl", [{"id": "s", "question": "2 plus 2 =", "answer": "4"}])
    words = ("eval", server.name, "--suite", "sums.jsonl", "--out", "out")
    work.worked(*words, "--revision", "step-100")
    refused = work.run(*words, "--revision", "step-200")
    says = ("other weights", "revision", "name another folder")
    assert_one_line(refused.exit_code, refused.stdout, refused.stderr, says, 2)
    both = work.run("eval", "--before", "a", "--after", "b", "--revision", "x")
    assert_one_line(both.exit_code, both.stdout, both.stderr, ("give it twice",), 2)


def test_two_revisions_of_one_served_model_are_two_models(serve, work: Workplace):
    server = serve()
    write_jsonl(work / "sums.jsonl", [{"id": "s", "question": "2 plus 2 =", "answer": "4"}])
    sides = ("eval", "--before", server.name, "--after", server.name, "--suite", "sums.jsonl")
    work.worked(*sides, "--revision", "step-100", "--revision", "step-200", "--out", "out")
    told = [
        json.loads((work / "out" / side / "manifest.json").read_text())
        for side in ("before", "after")
    ]
    assert [one["fingerprint"].split(" revision ")[1] for one in told] == ["step-100", "step-200"]


def test_a_card_that_changes_during_a_run_ends_it(serve, tmp_path):
    server = serve()
    server.card = CARD
    model = open_model(server.name)
    server.card = CARD | {"root": "/ckpt/tuned"}
    with pytest.raises(InputError, match="serves another model than when the run began"):
        evaluate(model, suite(10), tmp_path)
    assert not (tmp_path / "manifest.json").exists()


def spoken(value, text=" Saturday"):
    """A reply to the fixed text by which a model is known again; all else is answered as ever."""
    told = {"tokens": [text], "token_logprobs": [value]}
    choice = {"text": text, "logprobs": told, "finish_reason": "length"}
    body = json.dumps({"choices": [choice]}).encode()
    return lambda prompt, attempt: (200, body) if prompt.startswith("Monday") else None


def test_new_weights_behind_the_same_name_and_card_are_noticed(serve, tmp_path):
    server = serve(spoken(-0.9))
    evaluate(server.name, suite(4), tmp_path)
    server.trouble = spoken(-0.93)
    assert evaluate(server.name, suite(6), tmp_path).evaluated == 2
    server.trouble = spoken(-1.4)
    with pytest.raises(InputError, match=r"those of other weights than .*--revision"):
        evaluate(server.name, suite(8), tmp_path)
    again = evaluate(server.name, suite(8), tmp_path / "new", running=Running(revision="two"))
    assert again.evaluated == 8


def test_weights_that_change_during_a_run_end_it(serve, tmp_path):
    times = iter([-0.9, -3.0])
    server = serve(
        lambda prompt, n: spoken(next(times))(prompt, n) if prompt.startswith("Mon") else None
    )
    with pytest.raises(InputError, match="those of other weights"):
        evaluate(server.name, suite(4), tmp_path)
    assert not (tmp_path / "samples.parquet").exists()


def test_a_server_without_a_card_is_told(serve, tmp_path):
    without = evaluate(serve().name, suite(2), tmp_path / "a").samples.meta.warnings
    assert any("no card of its model" in text for text in without)
    named = Running(revision="step-100")
    told = evaluate(serve().name, suite(2), tmp_path / "b", running=named).samples.meta.warnings
    assert not any("no card of its model" in text for text in told)


def test_two_servers_are_no_confound(serve, tmp_path):
    import forgetmap

    servers = serve(), serve()
    for server, root in zip(servers, ("/ckpt/base", "/ckpt/tuned"), strict=True):
        server.card = CARD | {"root": root}
    sides = [evaluate(one.name, suite(), tmp_path / str(one.server_port)) for one in servers]
    assert forgetmap.compare(*(side.samples for side in sides)).confounds == []


# --- bad weather ----------------------------------------------------------------------------------


def bad(*numbers, status=500):
    """A server that always fails for the sums of these numbers."""
    return lambda prompt, attempt: (
        (status, b"broken") if int(prompt.split()[0]) in numbers else None
    )


def stored(folder):
    return (folder / "answers.jsonl").read_bytes().count(b"\n")


def test_each_answer_is_stored_as_soon_as_it_arrives(serve, tmp_path):
    """One request hangs: all the others are on the disk while it does."""
    release = threading.Event()
    server = serve(lambda prompt, attempt: prompt.startswith("7 ") and release.wait(20) and None)
    run = threading.Thread(target=evaluate, args=(server.name, suite(), tmp_path))
    run.start()
    until = time.monotonic() + 15
    while time.monotonic() < until and not (
        (tmp_path / "answers.jsonl").exists() and stored(tmp_path) == 39
    ):
        time.sleep(0.01)
    found = stored(tmp_path)
    release.set()
    run.join()
    assert found == 39
    assert stored(tmp_path) == 40


RUN = """
import sys
sys.path[:0] = sys.argv[2:]
from test_evaluate_endpoint import suite
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.run import compare_models, evaluate
evaluate(sys.argv[1], suite(150), "out", running=Running(batch=4))
"""


def test_a_kill_loses_no_more_than_the_requests_under_way(serve, work):
    server = serve(lambda prompt, attempt: time.sleep(0.005))
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    for least in (20, 60):
        child = subprocess.Popen([sys.executable, "-c", RUN, server.name, *paths])
        while child.poll() is None and not (
            Path("out/answers.jsonl").exists() and stored(Path("out")) >= least
        ):
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    done = evaluate(server.name, suite(150), "out")
    assert done.evaluated < 150
    assert server.questions - 150 <= 2 * 4


def test_one_item_that_always_fails_ends_the_run_only_after_all_others(serve, tmp_path):
    server = serve(bad(3))
    with pytest.raises(
        InputError,
        match=r"1 of 30 requests failed \(sums s3: HTTP 500, 6 attempts\); finished answers are "
        r"kept, .* --allow-failed 0\.0334$",
    ):
        evaluate(server.name, suite(30), tmp_path)
    assert stored(tmp_path) == 29
    assert not (tmp_path / "manifest.json").exists()
    done = evaluate(server.name, suite(30), tmp_path, allow_failed=0.0334)
    assert (done.evaluated, done.failed) == (1, 1)


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500])
def test_failures_that_are_allowed_are_counted_and_never_scored(serve, tmp_path, status):
    server = serve(bad(3, 11, status=status))
    done = evaluate(server.name, suite(40), tmp_path / "a", allow_failed=0.05)
    rows = {row["item_ref"]: row for row in content(done.samples)}
    assert {ref for ref, row in rows.items() if row["status"] == "error"} == {"s3", "s11"}
    assert {row["score"] for ref, row in rows.items() if ref not in ("s3", "s11")} == {1.0}
    assert (rows["s3"]["score"], rows["s11"]["score"]) == (None, None)
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert (manifest["failed"], manifest["allow_failed"]) == (2, 0.05)
    assert all(f"HTTP {status}" in reason for reason in manifest["failed_because"])
    assert any("2 of 40 got no reply" in text for text in done.samples.meta.warnings)
    sound = evaluate(serve().name, suite(40), tmp_path / "b")
    import forgetmap

    coverage = forgetmap.compare(done.samples, sound.samples).coverage
    assert (coverage.matched, coverage.unscored) == (38, 2)


def test_items_that_fail_at_once_do_not_end_a_run_before_the_others_answer(serve, tmp_path):
    """A filter refuses the first ten at once, while good answers take their time."""
    refuse = bad(*range(10), status=400)
    server = serve(lambda prompt, attempt: refuse(prompt, attempt) or time.sleep(0.3))
    done = evaluate(server.name, suite(40), tmp_path, allow_failed=0.25)
    assert (done.failed, stored(tmp_path)) == (10, 30)


def test_more_failures_than_allowed_are_too_many(serve, tmp_path):
    server = serve(bad(3, 11, 17))
    with pytest.raises(InputError, match="3 of 40 requests failed"):
        evaluate(server.name, suite(40), tmp_path, allow_failed=0.05)


def test_what_failed_is_asked_again_the_next_time(serve, tmp_path):
    down = threading.Event()
    down.set()
    server = serve(lambda prompt, attempt: bad(3)(prompt, attempt) if down.is_set() else None)
    assert evaluate(server.name, suite(30), tmp_path, allow_failed=0.1).failed == 1
    down.clear()
    done = evaluate(server.name, suite(30), tmp_path)
    assert (done.evaluated, done.failed) == (1, 0)
    assert {row["score"] for row in content(done.samples)} == {1.0}


def test_half_of_all_requests_turned_away_is_slow_but_finishes(serve, tmp_path):
    draw, lock = random.Random(0), threading.Lock()

    def trouble(prompt, attempt):
        with lock:
            return (429, b"", [("retry-after", "0")]) if draw.random() < 0.5 else None

    server = serve(trouble)
    done = evaluate(server.name, suite(300), tmp_path)
    assert {row["score"] for row in content(done.samples)} == {1.0}
    assert max(server.attempts.values()) > 6, "six attempts would not have been enough"


def test_a_server_that_goes_down_is_not_asked_everything(serve, tmp_path):
    count = iter(range(10**6))
    server = serve(lambda prompt, attempt: (500, b"") if next(count) > 30 else None)
    with pytest.raises(InputError, match=r"the last 16 requests failed \(HTTP 500, 6 attempts\)"):
        evaluate(server.name, suite(300), tmp_path)
    assert len(server.attempts) < 80
    assert stored(tmp_path) >= 20


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(tmp_path, share):
    with pytest.raises(InputError, match="--allow-failed"):
        evaluate("http://127.0.0.1:9/v1#toy", suite(2), tmp_path, allow_failed=share)


def test_the_command_line_tells_of_failures(serve, work: Workplace):
    server = serve(bad(3))
    rows = [
        {"task": "sums", "id": f"s{n}", "question": f"{n} plus {n} =", "answer": str(2 * n)}
        for n in range(30)
    ]
    write_jsonl(work / "sums.jsonl", rows)
    words = ("eval", server.name, "--suite", "sums.jsonl", "--out", "out")
    refused = work.run(*words)
    says = ("1 of 30 requests failed", "--allow-failed")
    assert_one_line(refused.exit_code, refused.stdout, refused.stderr, says, 2)
    done = work.worked(*words, "--allow-failed", "0.05")
    assert "1 of them failed: no score" in done.stdout
    assert "error 1" in done.stdout


def test_inside_a_running_event_loop(serve, tmp_path):
    """As in a notebook."""

    async def cell():
        return evaluate(serve().name, suite(), tmp_path)

    assert asyncio.run(cell()).failed == 0


def test_an_interrupt_ends_what_is_under_way_and_keeps_the_rest(serve, tmp_path):
    release = threading.Event()
    server = serve(lambda prompt, attempt: prompt.startswith("7 ") and release.wait(20) and None)

    def interrupt(done, total):
        if done == 20:
            raise KeyboardInterrupt

    before = threading.active_count()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        evaluate(server.name, suite(), tmp_path, progress=interrupt)
    assert time.monotonic() - began < 10
    assert not any("_run" in thread.name for thread in threading.enumerate())
    release.set()
    assert stored(tmp_path) == 20
    assert evaluate(server.name, suite(), tmp_path).evaluated == 20
    assert threading.active_count() <= before + 20


@pytest.mark.parametrize("name", ["http://me:secret@host/v1#m", "http://#m", "http://host:x/v1#m"])
def test_an_address_is_checked_before_anything_is_asked(tmp_path, name):
    with pytest.raises(InputError) as refusal:
        evaluate(name, suite(2), tmp_path)
    assert "secret" not in str(refusal.value)


# --- the store ------------------------------------------------------------------------------------


def long_replies():
    return {f"{n:016x}": {"status": "ok", "text": "x" * 1_200_000} for n in range(64)}


def test_many_long_replies_can_be_read_again(tmp_path):
    with Store(tmp_path) as store:
        store.append(long_replies())
    assert stored(tmp_path) == 64
    with Store(tmp_path) as store:
        assert (len(store), store.broken) == (64, 0)


def test_a_store_with_a_line_per_batch_can_still_be_read(tmp_path):
    """As older versions wrote it; 64 long replies made a line that they could not read again."""
    from zlib import crc32

    body = json.dumps(long_replies()).encode()
    (tmp_path / "answers.jsonl").write_bytes(b"%08x %b\n" % (crc32(body), body))
    with Store(tmp_path) as store:
        assert len(store) == 64
        store.append({"new": {"status": "ok", "text": "y"}})
    with Store(tmp_path) as store:
        assert len(store) == 65


def test_an_answer_too_long_to_be_kept_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setattr("forgetmap.evaluate.store.MAX_LINE_BYTES", 2**20)
    with Store(tmp_path) as store:
        store.append({"short": {"text": "y"}})
        with pytest.raises(InputError, match=r"2 MiB is more than the 1 MiB .*max-tokens"):
            store.append({"long": {"text": "x" * 2**21}})
    with Store(tmp_path) as store:
        assert len(store) == 1


def test_a_line_that_no_run_writes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("forgetmap.evaluate.store._LONGEST_LINE", 2**20)
    (tmp_path / "answers.jsonl").write_bytes(b"x" * 2**21)
    with pytest.raises(InputError, match="longer than 1 MiB; delete the file"), Store(tmp_path):
        pass
