"""Served models: a server on this machine that misbehaves on purpose."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("httpx", reason="needs the extra `eval`")

from forgetmap.base import http as http_client
from forgetmap.base.errors import InputError
from forgetmap.evaluate import endpoint
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate


class Server(ThreadingHTTPServer):
    """Answers sums, after whatever `trouble` says about the first attempts at each prompt."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, trouble=lambda prompt, attempt: None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble = trouble
        self.attempts = Counter()
        self.asked = []
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the tests."""

    @property
    def name(self):
        return f"http://127.0.0.1:{self.server_port}/v1#toy"


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
        told = {"token_logprobs": values, "text_offset": places}
        choice = {"text": prompt, "logprobs": told}
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
    with pytest.raises(InputError, match="HTTP 429, 6 attempts; finished answers are kept"):
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
    body = json.dumps({"choices": [{"text": "x"}]}).encode()
    server = serve(lambda prompt, attempt: (200, body))
    with pytest.raises(InputError, match="use --letters"):
        evaluate(server.name, choices(), tmp_path)
    with pytest.raises(InputError, match="use --letters or --no-chat"):
        evaluate(server.name, choices(), tmp_path, asking=Asking(chat=True))


def test_never_more_under_way_than_asked_for(serve, tmp_path):
    from forgetmap.evaluate.models import Running

    server = serve()
    evaluate(server.name, suite(), tmp_path, running=Running(batch=3))
    assert server.most_busy <= 3
