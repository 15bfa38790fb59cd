"""One model over two processes, by torchrun and gloo, for real; and what does not go with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.evaluate import parallel
from forgetmap.evaluate.models import Running, open_model
from forgetmap.evaluate.run import evaluate
from forgetmap.samples.table import Samples
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
SCRIPT = Path(__file__).parents[1] / "support" / "two_parts.py"
CHOICES = ("Paris", "Rome and Oslo", "Madrid", "the sky")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    rows = [
        {"task": "options", "question": f"Question {n}?", "target": CHOICES[n % 4],
         "choices": CHOICES} for n in range(40)
    ]  # fmt: skip
    rows += [{"task": "texts", "question": f"Is it {n}?", "target": "3"} for n in range(12)]
    return write_suite(tmp_path_factory.mktemp("suite") / "suite.jsonl", rows)


def write_suite(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def start(*words, of=("-m", "forgetmap")):
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", *of),
        *("eval", *map(str, words), "--device", "parallel"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def said(run):
    """What the run printed, and the lines of its complaints that are forgetmap's."""
    out, err = run.communicate(timeout=300)
    return out, [line for line in err.splitlines() if "forgetmap: " in line]


def answers(folder):
    columns = ["task", "item", "metric", "score", "answer", "response", "option_probabilities"]
    table = Samples.read(folder / "samples.parquet").to_batches(columns)
    rows = [row for batch in table for row in batch.to_pylist()]
    return {(row["task"], row["item"], row["metric"]): row for row in rows}


def likelihoods(folder):
    lines = (folder / "answers.jsonl").read_text().splitlines()
    replies = {key: reply for line in lines for key, reply in json.loads(line[9:]).items()}
    return {key: reply["likelihoods"] for key, reply in replies.items() if reply["likelihoods"]}


def check_same(one, other):
    """No answer is another one, and options are at most 1e-3 nats apart."""
    ours, theirs = answers(one), answers(other)
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        for name in ("score", "answer", "response"):
            assert row[name] == theirs[key][name]
    ours, theirs = likelihoods(one), likelihoods(other)
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        assert values == pytest.approx(theirs[key], abs=1e-3)


def test_two_processes_answer_as_one_does(tiny, suite, tmp_path):
    odd = make_tiny_model(tmp_path / "odd", seed=1, heads=3)  # which two processes cannot share
    run = start("--before", tiny, "--after", odd, "--suite", suite, "--out", tmp_path / "two")
    out, complaints = said(run)
    assert run.returncode == 0, complaints
    assert complaints == []
    assert out.count("The same again:") == 1, "one of them prints"
    for model, side in ((tiny, "before"), (odd, "after")):
        evaluate(str(model), str(suite), tmp_path / side, running=Running("float32", "cpu"))
        check_same(tmp_path / "two" / side, tmp_path / side)


def leader(run):
    """The process that writes, once torchrun has started it."""
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    for child in map(int, children.read_text().split()):
        if b"\0RANK=0\0" in Path(f"/proc/{child}/environ").read_bytes():
            return child
    raise AssertionError("no process leads")


def test_a_killed_run_goes_on_in_step(tiny, tmp_path):
    rows = [
        {"task": f"t{n % 7}", "question": f"Question {n}?", "target": CHOICES[n % 4],
         "choices": CHOICES} for n in range(2000)
    ]  # fmt: skip
    many, out = write_suite(tmp_path / "many.jsonl", rows), tmp_path / "two"
    kept, words = out / "answers.jsonl", (tiny, "--suite", many, "--out", out, "--batch", "8")
    run = start(*words)
    until = time.monotonic() + 200
    while not (kept.is_file() and kept.stat().st_size > 20_000) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(leader(run), signal.SIGKILL)
    run.communicate(timeout=100)
    assert run.returncode != 0, "the other one ended with it"
    assert not (out / "manifest.json").exists()
    before = len(kept.read_bytes().splitlines())
    assert 0 < before < 2000
    run = start(*words)
    out_text, complaints = said(run)
    assert run.returncode == 0, complaints
    assert "answers, " in out_text
    assert "were finished already" in out_text
    assert len(kept.read_bytes().splitlines()) == 2000, "nothing was asked twice"
    how = Running("float32", "cpu", 8)
    evaluate(str(tiny), str(many), tmp_path / "one", running=how)
    check_same(out, tmp_path / "one")


def test_what_fails_in_one_process_ends_all_with_one_line(tiny, suite, tmp_path):
    run = start(tiny, "--suite", suite, "--out", tmp_path / "out", of=[str(SCRIPT)])
    out, complaints = said(run)
    assert run.returncode != 0
    assert out == ""
    (line,) = complaints
    assert "process 1 of 2: the memory of a card ran out; try a smaller --batch" in line


def test_a_model_without_a_plan_is_refused_in_one_line(tiny, suite, tmp_path):
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    folder = tmp_path / "gpt2"
    GPT2LMHeadModel(
        GPT2Config(vocab_size=365, n_positions=128, n_embd=8, n_layer=1, n_head=2)
    ).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    run = start(folder, "--suite", suite, "--out", tmp_path / "out")
    _, complaints = said(run)
    assert run.returncode != 0
    assert complaints == [
        f"forgetmap: {folder}: transformers has no plan how to split a GPT2LMHeadModel (tp_plan); "
        "choose --device auto"
    ]


# --- what does not go with it ---------------------------------------------------------------------


def test_without_torchrun_it_says_how_to_start(tiny, suite, tmp_path):
    words = ["eval", str(tiny), "--suite", str(suite), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--device", "parallel"])
    assert done.exit_code == 2
    assert "torchrun --nproc-per-node" in done.output
    assert "-m forgetmap eval MODEL ... --device parallel" in done.output
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="torchrun --nproc-per-node"):
        evaluate(str(tiny), str(suite), tmp_path / "out", running=Running(device="parallel"))


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"quantize": "8bit"}, "--quantize: needs --device auto"),
        ({"max_memory": "20GiB"}, "--max-memory: needs --device auto"),
        ({"backend": "vllm"}, "vLLM splits a model over all cards by itself"),
    ],
)
def test_ways_to_run_that_do_not_go_with_it(how, line):
    with pytest.raises(InputError, match=line):
        Running(device="parallel", **how)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("base+adapter", "takes no adapters; merge it into the weights"),
        ("model.gguf", "no GGUF files"),
        ("http://127.0.0.1:1/v1#m", "is for models that are loaded here"),
        ("lm-eval:hf:pretrained=m", "is for models that are loaded here"),
    ],
)
def test_models_that_do_not_go_with_it(name, line):
    with pytest.raises(InputError, match=line):
        open_model(name, Running(device="parallel"))


@pytest.fixture
def launched(monkeypatch):
    """As in the first of two processes that torchrun started."""
    joined = parallel.Crew(0, 2, None, None)
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(parallel, "_join", lambda: joined)
    monkeypatch.setattr(parallel, "_lead", lambda _joined: iter([True]))
    return joined


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["m", "--device", "cuda:0"], "is for both models; give no other device beside it"),
        (["m", "--executor", "ray"], "does not go with --executor ray"),
        (["--study", "s.yaml"], "does not go with --study"),
    ],
)
def test_options_that_do_not_go_with_it(launched, words, line):
    done = CliRunner().invoke(app, ["eval", *words, "--device", "parallel"])
    assert done.exit_code == 2
    assert line in done.output


def test_other_commands_do_not_know_it(launched, tiny):
    with pytest.raises(InputError, match="is for forgetmap eval; choose another device"):
        open_model(str(tiny), Running(device="parallel"))


def test_a_quantised_folder_is_refused(launched, tiny, tmp_path, monkeypatch):
    import shutil

    from forgetmap.evaluate import loading

    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (copy / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(parallel, "_crew", launched)
    with pytest.raises(InputError, match=r"is quantised \(gptq, 4 bits\), which --device parallel"):
        loading._placement(copy, Running(device="parallel"), "parallel", "float32")


def test_heads_that_do_not_divide_are_computed_whole():
    plan = {"layers.*.self_attn.q_proj": "colwise", "layers.*.self_attn.o_proj": "rowwise",
            "layers.*.mlp.up_proj": "colwise"}  # fmt: skip
    name = "layers.*.self_attn.q_proj"
    assert parallel._without_heads(Path("m"), name, plan[name]) == "colwise_gather_output"
    name = "layers.*.mlp.up_proj"
    assert parallel._without_heads(Path("m"), name, plan[name]) == "colwise"


def test_parts_of_two_models_never_answer_together(launched):
    with (
        pytest.raises(InputError, match="ask one model to its end"),
        launched.step(object(), "score"),
    ):
        pass
