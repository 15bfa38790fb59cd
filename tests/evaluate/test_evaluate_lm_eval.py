"""The packed scorer inside lm-eval: its tasks, its results."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")
pytest.importorskip("lm_eval", reason="needs the extra `eval`")

import lm_eval
from test_evaluate import quiz

from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(make_tiny_model(tmp_path_factory.mktemp("tiny"), positions=256))


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A task of lm-eval on a local file, with few-shot examples and one text that is too long."""
    folder = tmp_path_factory.mktemp("task")
    rows = [{"question": q.prompt, "choices": list(q.choices), "answer": q.gold} for q in quiz(120)]
    rows.append({"question": "word " * 300, "choices": ["Paris", "Rome", "Oslo", "x"], "answer": 0})
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "toy.yaml").write_text(
        f"""
task: toy
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
fewshot_split: test
num_fewshot: 2
output_type: multiple_choice
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: answer
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""
    )
    return folder


def results(model, folder):
    from lm_eval.tasks import TaskManager

    found = lm_eval.simple_evaluate(
        model=model,
        tasks=["toy"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
    )
    samples = sorted(found["samples"]["toy"], key=lambda sample: sample["doc_id"])
    return found["results"]["toy"], [sample["filtered_resps"] for sample in samples]


def test_a_task_of_lm_eval_gets_the_same_results(tiny, task, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from lm_eval.models.huggingface import HFLM

    from forgetmap.evaluate.lm_eval_model import register

    how = {"pretrained": tiny, "dtype": "float32", "device": "cpu", "batch_size": 16}
    ours, our_samples = results(register()(**how), task)
    theirs, their_samples = results(HFLM(**how), task)
    assert ours["acc,none"] == theirs["acc,none"]
    assert ours["acc_norm,none"] == theirs["acc_norm,none"]
    for one, other in zip(our_samples, their_samples, strict=True):
        for (value, greedy), (expected, expected_greedy) in zip(one, other, strict=True):
            assert float(value) == pytest.approx(float(expected), abs=1e-4)
            assert greedy == expected_greedy


def test_it_is_known_to_lm_eval_by_name():
    from lm_eval.api.registry import get_model

    from forgetmap.evaluate.lm_eval_model import register

    assert get_model("forgetmap") is register() is register()
