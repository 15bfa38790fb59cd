"""Suites from elsewhere: your own files, OpenAI evals, Reasoning Gym, lm-eval, post-forget."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base.errors import InputError
from forgetmap.evaluate import answers
from forgetmap.evaluate.prompts import Asking, make_request
from forgetmap.evaluate.suites import load, openai_evals, post_forget, table
from forgetmap.map.task_maps import IGNORED, TaskMap
from logs import write_jsonl
from places import ROOT

PAGE = ROOT / "docs" / "reference" / "suites.md"


def questions(suite):
    return {task.name: task.questions() for task in suite.tasks}


# --- by name --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["atlantis", "atlas:more", "lm-eval", "lm-eval:", "reasoning-gym:x"]
)
def test_an_unknown_suite_is_named(name):
    with pytest.raises(InputError, match=r"neither a .jsonl or .yaml file nor one of atlas"):
        load(name)


# --- your own -------------------------------------------------------------------------------------


def test_a_file_of_questions_is_a_suite(tmp_path):
    write_jsonl(
        tmp_path / "mine.jsonl",
        [
            {"question": "2 + 2 =", "answer": 4, "id": "sum"},
            {"prompt": "Capital of Italy?", "choices": ["Oslo", "Rome"], "target": "Rome",
             "task": "capitals", "category": "World"},
            {"question": "Capital of Peru?", "choices": ["Lima", "Rome"], "answer": 0,
             "task": "capitals", "aliases": ["Ciudad de Lima"]},
            {"question": "Capital of Norway?", "choices": ["Lima", "Oslo"], "answer": "b",
             "task": "capitals"},
        ],
    )  # fmt: skip
    suite = load(tmp_path / "mine.jsonl")
    found = questions(suite)
    assert suite.name == "mine"
    assert [(task.name, task.category) for task in suite.tasks] == [
        ("mine", ""),
        ("capitals", "World"),
    ]
    assert [question.target for question in found["capitals"]] == ["Rome", "Lima", "Oslo"]
    assert found["mine"][0].ref == "sum"
    assert found["capitals"][1].aliases == ("Ciudad de Lima",)
    again = load(str(tmp_path / "mine.jsonl"), seed=5)
    assert again.version == suite.version


def test_a_changed_answer_changes_the_version(tmp_path):
    versions = set()
    for answer in ("4", "5"):
        write_jsonl(tmp_path / "mine.jsonl", [{"question": "2 + 2 =", "answer": answer}])
        versions.add(load(tmp_path / "mine.jsonl").version)
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"mine.jsonl:2: "),
        ("[1]", r":2: "),
        ('{"answer": 1}', r":2: lacks its 'question'"),
        ('{"question": "?"}', r":2: lacks its 'answer'"),
        ('{"question": "?", "answer": {"a": 1}}', r":2: lacks its 'answer'"),
        ('{"question": "?", "answer": "x", "choices": "xy"}', r":2: 'choices' must be a list"),
        ('{"question": "?", "answer": "x", "choices": ["x"]}', r":2: needs at least two"),
        ('{"question": "?", "answer": "x", "choices": ["x", "x"]}', r":2: needs at least two"),
        ('{"question": "?", "answer": "z", "choices": ["x", "y"]}', r":2: answer 'z' is none of"),
        ('{"question": "?", "answer": 2, "choices": ["x", "y"]}', r":2: answer '2' is none of"),
        ('{"question": "?", "answer": -1, "choices": ["x", "y"]}', r":2: answer '-1' is none"),
        ('{"question": "?", "answer": "x", "colour": 1}', r":2: unknown field colour"),
        ('{"question": "ok?", "answer": "yes"}', r":2: the same as line 1"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, line, message):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"question": "ok?", "answer": "yes"}\n' + line + "\n")
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_empty_and_missing_files_are_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InputError, match="holds no questions"):
        load(tmp_path / "empty.jsonl")
    with pytest.raises(InputError, match=r"none.jsonl: is not a plain file"):
        load(tmp_path / "none.jsonl")


DESCRIBED = """
tasks:
  - name: capitals
    category: World
    file: capitals.jsonl
    prompt: "Q: {question}"
    instruction: Name the capital.
    examples: 1
    extraction: contains
    max_tokens: 8
    stop: ["\\n"]
"""


def test_a_yaml_file_says_how_to_ask(tmp_path):
    rows = [{"question": f"Of {name}?", "answer": name} for name in ("Peru", "Italy", "Norway")]
    write_jsonl(tmp_path / "capitals.jsonl", rows)
    (tmp_path / "world.yaml").write_text(DESCRIBED)
    suite = load(tmp_path / "world.yaml")
    [task] = suite.tasks
    assert suite.name == "world"
    assert [question.prompt for question in task.questions()] == ["Q: Of Italy?", "Q: Of Norway?"]
    assert [question.prompt for question in task.examples] == ["Q: Of Peru?"]
    assert (task.scorer, task.max_tokens, task.stop, task.instruction, task.category) == (
        *("contains", 8, ("\n",), "Name the capital.", "World"),
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("examples: 1", "examples: 3", "3 examples leave none of its 3 questions"),
        ("examples: 1", "examples: -1", r"tasks.0.examples: Input should be greater"),
        ("contains", "vibes", "unknown extraction 'vibes'"),
        ("Q: {question}", "Q: question", "its prompt lacks {question}"),
        ("instruction", "instructions", "unknown key 'instructions'; did you mean 'instruction'"),
        ("tasks:", "tasks: [", "not YAML"),
        ("capitals.jsonl", "no.jsonl", r"no.jsonl: is not a plain file"),
        ("max_tokens: 8", "max_tokens: many", r"tasks.0.max_tokens: Input should be a valid int"),
    ],
)
def test_a_bad_yaml_file_is_one_line(tmp_path, old, new, message):
    write_jsonl(tmp_path / "capitals.jsonl", [{"question": str(n), "answer": n} for n in range(3)])
    (tmp_path / "world.yaml").write_text(DESCRIBED.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path / "world.yaml")
    assert "\n" not in str(caught.value)


# --- OpenAI evals ---------------------------------------------------------------------------------

LICENCE = """MIT License

#### Theory of Mind
- **Location**: evals/registry/data/theory_of_mind
- **Components**:
    - **ToMi**:
        - **License**: NC licence
        - **Source**: somewhere
    - **Social IQA**:
        - **License**: BY licence
"""


def row(text, ideal, system="Reply with a letter."):
    turns = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"input": turns, "ideal": ideal}


@pytest.fixture
def wheel(tmp_path):
    """A small wheel of the same form; the real one is not part of the repository."""
    path = tmp_path / "evals-9.9-py3-none-any.whl"
    samples = {
        "letter": [
            row("Which is red?\nA. sky\nB. rose\nAnswer:", "B"),
            row("Which is blue? A: sky; B: rose.", "A"),
            row("Which is blue? A: sky; B: rose.", "A"),
            row("Which is blue?", "A"),
            row("Which is best?\nA. sky\nB. rose", "A"),
            row("Which is best?\nA. sky\nB. rose", "B"),
        ],
        "exact": [row("stressed", ["desserts", "stressed"])],
        "number": [row("1 + 1", "2")],
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("evals-9.9.dist-info/LICENSE.md", LICENCE)
        for one in openai_evals.described():
            rows = samples.get(one.kind) or [row("Is it so?", f"{one.labels[0].lower()}.")]
            text = "\n".join(map(json.dumps, rows))
            archive.writestr(f"evals/registry/data/{one.path}", text)
    return path


def test_sets_are_read_from_the_wheel(wheel, caplog):
    suite = load(f"openai-evals:{wheel}")
    found = questions(suite)
    assert suite.version.startswith("9.9-")
    assert [(q.prompt, q.choices, q.target) for q in found["evals_quartz"]] == [
        ("Which is red?", ("sky", "rose"), "rose"),
        ("Which is blue?", ("sky", "rose"), "sky"),
    ]
    assert "evals_quartz: 3 of 6 rows have no clear right option" in caplog.text
    assert found["evals_anagrams"][0].aliases == ("stressed",)
    assert found["evals_food"][0].target == "Yes"


def test_each_set_shows_its_licence(wheel):
    licences = {task.name: task.licence for task in load(f"openai-evals:{wheel}").tasks}
    assert licences["evals_quartz"] == "MIT License"
    assert licences["evals_tomi"] == "NC licence"
    assert licences["evals_socialiqa"] == "BY licence"
    assert licences["evals_hitom"] == "not named; see the licence file of the package"


def test_the_wheel_may_be_named_by_the_environment(wheel, monkeypatch):
    monkeypatch.setenv(openai_evals.VARIABLE, str(wheel))
    assert load("openai-evals").version.startswith("9.9-")


def test_an_installed_package_is_found(wheel, tmp_path, monkeypatch):
    monkeypatch.delenv(openai_evals.VARIABLE, raising=False)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "site" / "evals" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    suite = load("openai-evals")
    assert questions(suite).keys() == questions(load(f"openai-evals:{wheel}")).keys()
    assert (
        questions(suite)["evals_quartz"] == questions(load(f"openai-evals:{wheel}"))["evals_quartz"]
    )


def test_a_missing_or_strange_wheel_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv(openai_evals.VARIABLE, raising=False)
    monkeypatch.setattr(openai_evals, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip download --no-deps evals"):
        load("openai-evals")
    with pytest.raises(InputError, match="no such wheel"):
        load(f"openai-evals:{tmp_path}/none.whl")
    strange = tmp_path / "strange.whl"
    strange.write_text("no zip")
    with pytest.raises(InputError, match="not a wheel"):
        load(f"openai-evals:{strange}")
    with zipfile.ZipFile(strange, "w") as archive:
        archive.writestr("other/file", "")
    with pytest.raises(InputError, match="this is not the package evals"):
        load(f"openai-evals:{strange}")


def test_a_wheel_without_a_set_says_which(wheel):
    cut = wheel.with_name("cut.whl")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(cut, "w") as new:
        for name in old.namelist():
            if "quartz" not in name:
                new.writestr(name, old.read(name))
    with pytest.raises(InputError, match=r"quartz/samples.jsonl is not in"):
        questions(load(f"openai-evals:{cut}"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pick.\nA. one\nB. two\nC. three\nAnswer:", ("Pick.", ("one", "two", "three"))),
        ("Pick. (A) one (B) two", ("Pick.", ("one", "two"))),
        ("A: is a letter.\nPick.\nA: one\nB: two", ("A: is a letter.\nPick.", ("one", "two"))),
        ("a) one\nb) two", ("", ("one", "two"))),
        ("Pick. A. A.one B. B.two", ("Pick.", ("one", "two"))),
        ("No options at all", ("No options at all", ())),
    ],
)
def test_options_are_told_from_the_question(text, expected):
    assert openai_evals.split_options(text) == expected


@pytest.mark.extras
def test_the_real_wheel_has_what_the_docs_say(caplog):
    if not os.environ.get(openai_evals.VARIABLE):
        pytest.skip(f"{openai_evals.VARIABLE} does not name the real wheel")
    suite = load("openai-evals")
    counts = {task.name: len(task.questions()) for task in suite.tasks}
    assert suite.version.startswith("3.0.1.post1")
    for task in suite.tasks:
        assert len({question.ref for question in task.questions()}) == counts[task.name]
    assert counts["evals_quartz"] == 3828
    assert counts["evals_medmcqa"] == 299
    assert sum(counts.values()) > 40_000
    assert table(suite) in PAGE.read_text(encoding="utf-8")


# --- Reasoning Gym --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gym():
    pytest.importorskip("reasoning_gym", reason="needs the extra: pip install 'forgetmap[suites]'")
    return load("reasoning-gym")


@pytest.mark.extras
def test_generated_tasks_are_scored_by_the_package_itself(gym):
    assert len(gym.tasks) >= 20
    for task in gym.tasks:
        asked = task.questions()
        assert len(asked) >= 40, task.name
        assert len({question.ref for question in asked}) == len(asked)
        for question in asked[::9]:
            said = f"Let me see.\n<answer>{question.target}</answer>"
            found = answers.extract(task, said)
            assert answers.is_right(task, question, found.text), question
            assert not answers.is_right(task, question, "no idea at all"), question


@pytest.mark.extras
def test_the_docs_list_the_generated_tasks(gym):
    assert table(gym) in PAGE.read_text(encoding="utf-8"), "print(table(load('reasoning-gym')))"


@pytest.mark.extras
def test_generated_tasks_have_levels_and_follow_the_seed(gym):
    levels = {task.name: {q.level for q in task.questions()} for task in gym.tasks}
    assert levels["gym_chain_sum"] == {"easy", "hard"}
    assert load("reasoning-gym", seed=0).version == gym.version
    other = load("reasoning-gym", seed=1)
    assert other.version != gym.version
    shared = {q.item for q in gym.tasks[1].questions()} & {
        q.item for q in other.tasks[1].questions()
    }
    assert len(shared) <= 5


# --- lm-eval --------------------------------------------------------------------------------------

CHOICE_TASK = """
task: my_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/test.jsonl, train: {folder}/train.jsonl}}}}
test_split: test
training_split: train
fewshot_split: train
output_type: multiple_choice
description: "Answer the question."
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
"""
NUMBER_TASK = """
task: my_number
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/numbers.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: 99}}
"""


@pytest.fixture
def lm_eval_tasks(tmp_path, monkeypatch):
    pytest.importorskip("lm_eval", reason="needs the extra: pip install 'forgetmap[eval]'")
    pytest.importorskip("datasets", reason="lm-eval reads its data with datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows = [{"question": f"{n}?", "choices": ["x", "y", "z"], "answer": n % 3} for n in range(9)]
    write_jsonl(tmp_path / "test.jsonl", rows[:6])
    write_jsonl(tmp_path / "train.jsonl", rows[6:])
    solved = {"question": "1 + 1?", "answer": "One and one.\n#### 2"}
    write_jsonl(tmp_path / "numbers.jsonl", [solved])
    (tmp_path / "my_choice.yaml").write_text(CHOICE_TASK.format(folder=tmp_path))
    (tmp_path / "my_number.yaml").write_text(NUMBER_TASK.format(folder=tmp_path))
    group = "group: my_group\ntask: [my_choice, my_number]\n"
    (tmp_path / "my_group.yaml").write_text(group)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_tasks_of_lm_eval_become_questions(lm_eval_tasks):
    suite = load(f"lm-eval:my_group@{lm_eval_tasks}")
    choice, number = suite.tasks
    assert (choice.name, choice.category, number.name) == ("my_choice", "my_group", "my_number")
    assert [(q.prompt, q.choices, q.target) for q in choice.questions()][:2] == [
        ("Question: 0?", ("x", "y", "z"), "x"),
        ("Question: 1?", ("x", "y", "z"), "y"),
    ]
    assert (choice.cue, choice.instruction) == ("Answer:", "Answer the question.")
    assert [q.target for q in choice.examples] == ["x", "y", "z"]
    [question] = number.questions()
    assert (question.target, number.scorer, number.stop, number.max_tokens) == (
        *("2", "number", ("\n\n",), 99),
    )
    found = answers.extract(number, "One more than 1. #### 2")
    assert answers.is_right(number, question, found.text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_missing_folders_and_data_of_lm_eval_are_one_line(lm_eval_tasks):
    with pytest.raises(InputError, match="no such folder"):
        load(f"lm-eval:my_choice@{lm_eval_tasks}/none")
    with pytest.raises(InputError, match="name a task or group"):
        load("lm-eval:,")
    (lm_eval_tasks / "test.jsonl").unlink()
    with pytest.raises(InputError, match="my_choice cannot be loaded") as caught:
        load(f"lm-eval:my_choice@{lm_eval_tasks}")
    assert "\n" not in str(caught.value)


@pytest.mark.slow  # lm-eval reads its 14,000 task files to know its own tasks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_unknown_tasks_of_lm_eval_are_named(lm_eval_tasks):
    with pytest.raises(InputError, match="no task or group 'no_such_task'"):
        load(f"lm-eval:no_such_task@{lm_eval_tasks}")


# --- post-forget ----------------------------------------------------------------------------------

COLOURS = ["red", "green", "blue", "grey"]


def some_rows(benchmark, subtask, split):
    """Rows with the columns of the data set on the hub."""
    numbers = range(12)
    if benchmark == "mmlu":
        return [
            {"question": f"{subtask} {n}?", "choices": COLOURS, "answer": n % 4} for n in numbers
        ]
    if benchmark == "bbh":
        return [
            {"input": text, "target": target} for text, target in map(bbh_row(subtask), numbers)
        ]
    if benchmark == "musr":
        return [
            {"narrative": f"Story {n}.", "question": "Who?", "choices": "['Ann', 'Bob']",
             "answer_index": n % 2}
            for n in numbers
        ]  # fmt: skip
    if benchmark in ("arc", "commonsense_qa"):
        labels = ["1", "2", "3", "4"] if split == "test" else ["A", "B", "C", "D"]
        return [
            {"question": f"{n}?", "choices": {"text": COLOURS, "label": labels},
             "answerKey": labels[n % 4]}
            for n in numbers
        ]  # fmt: skip
    return [one_row(benchmark, split, n) for n in numbers]


def bbh_row(subtask):
    if subtask == "object_counting":
        return lambda n: (f"I have {n + 1} cats. How many animals?", str(n + 1))
    if subtask in ("boolean_expressions", "sports_understanding", "web_of_lies"):
        labels = post_forget.benchmarks()["bbh"].labels[subtask]
        return lambda n: (f"{n} is so?", labels[n % 2])
    if subtask in ("navigate", "causal_judgement"):
        return lambda n: (f"{n} is so?\nOptions:\n- Yes\n- No", ("Yes", "No")[n % 2])
    if subtask == "formal_fallacies":
        return lambda n: (f"{n} so?\nOptions:\n- valid \n- invalid", ("valid", "invalid")[n % 2])
    return lambda n: (f"{n}?\nOptions:\n(A) sun\n(B) moon\n(C) sky", f"({'ABC'[n % 3]})")


def one_row(benchmark, split, n):
    return {
        "piqa": {"goal": f"{n}", "sol1": "do", "sol2": "rest", "label": n % 2},
        "mctest": {"story": f"Tale {n}.", "question": "Who?", "answer": "ABCD"[n % 4],
                   "answer_options": dict(zip("ABCD", COLOURS, strict=True))},
        "hellaswag": {"ctx": f"She {n}", "endings": COLOURS,
                      "label": "" if split == "test" else str(n % 4)},
        "social_iqa": {"context": f"{n}.", "question": "Why?", "answerA": "x", "answerB": "y",
                       "answerC": "z", "label": str(n % 3 + 1)},
        "truthfulqa": {"question": f"{n}?",
                       "mc1_targets": {"choices": COLOURS, "labels": [1, 0, 0, 0]}},
        "salad_bench": {"mcq": f"{n}?\n(A) red\n(B) green\n(C) blue",
                        "gt": ["C", "A"]},
        "gpqa": {"Question": f"{n}?", "Correct Answer": "yes", "Incorrect Answer 1": "no",
                 "Incorrect Answer 2": "never", "Incorrect Answer 3": "maybe"},
    }[benchmark]  # fmt: skip


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """A folder with small data sets of the same columns as on the hub."""
    folder = tmp_path_factory.mktemp("hub")
    tasks = TaskMap.load("post-forget").rows
    for name in (name for name, (category, _) in tasks.items() if category != IGNORED):
        part = post_forget._Part.find(name)
        benchmark = next(
            key for key, one in post_forget.benchmarks().items() if one is part.benchmark
        )
        config = (part.benchmark.config or "").format(subtask=part.subtask)
        examples = part.benchmark.examples
        splits = {part.benchmark.split, *filter(None, [part.benchmark.published.split])}
        splits |= {examples.split} if examples else set()
        for split in (one.format(subtask=part.subtask) for one in splits):
            target = folder / part.benchmark.dataset.replace("/", "__") / config
            target.mkdir(parents=True, exist_ok=True)
            rows = some_rows(benchmark, part.subtask, split)
            if benchmark == "piqa":
                write_jsonl(target / f"{split}.jsonl", rows)
            else:
                pq.write_table(pa.Table.from_pylist(rows), target / f"{split}.parquet")
    return folder


@pytest.fixture(scope="module")
def mended(copies):
    return load(f"post-forget:{copies}")


def test_the_tasks_and_categories_are_those_of_the_task_map(mended):
    known = TaskMap.load("post-forget")
    assert len(mended.tasks) == 94
    assert len({task.category for task in mended.tasks}) == 9
    assert len(post_forget.benchmarks()) == 12
    for task in mended.tasks:
        assert known.category(task.name) == task.category
        assert len(task.questions()) == 12


def test_both_models_are_asked_alike_and_failure_is_a_status(mended):
    for task in mended.tasks:
        assert task.examples == ()
        assert task.stop == ()
        assert "Answer:" in task.instruction
        assert answers.extract(task, "I cannot say.", ("a", "b")) == (None, "no_answer")


def test_the_right_options_are_read_from_every_form(mended):
    asked = questions(mended)
    targets = {name: [question.target for question in rows] for name, rows in asked.items()}
    assert targets["mmlu_anatomy"][:5] == [*COLOURS, "red"]
    assert targets["arc_easy"][:5] == targets["commonsense_qa"][:5] == [*COLOURS, "red"]
    assert targets["bbh_navigate"][:2] == targets["bbh_causal_judgment"][:2] == ["Yes", "No"]
    assert targets["bbh_formal_fallacies"][:2] == ["valid", "invalid"]
    assert targets["bbh_snarks"][:3] == ["sun", "moon", "sky"]
    assert targets["bbh_boolean_expressions"][:2] == ["True", "False"]
    assert asked["bbh_snarks"][0].prompt == "0?"
    assert targets["musr_murder_mysteries"][:2] == ["Ann", "Bob"]
    assert targets["social_iqa"][:3] == ["x", "y", "z"]
    assert targets["mctest"][:4] == COLOURS
    assert targets["piqa"][:2] == ["do", "rest"]
    assert asked["salad_bench_mrq"][0].target == "red"
    assert asked["salad_bench_mrq"][0].aliases == ("blue",)


def test_hellaswag_is_read_where_it_has_labels(mended, copies):
    published = questions(load(f"post-forget:published@{copies}"))["hellaswag"]
    assert Counter(q.target for q in questions(mended)["hellaswag"]) == dict.fromkeys(COLOURS, 3)
    assert {question.gold for question in published} == {3}, "the fault: D is always right"


def test_truthfulqa_is_shuffled_by_the_seed(mended, copies):
    places = [question.gold for question in questions(mended)["truthfulqa_mc1"]]
    assert len(set(places)) > 1
    again = questions(load(f"post-forget:{copies}"))["truthfulqa_mc1"]
    assert places == [question.gold for question in again]
    other = questions(load(f"post-forget:{copies}", seed=1))["truthfulqa_mc1"]
    assert places != [question.gold for question in other]
    published = questions(load(f"post-forget:published@{copies}"))["truthfulqa_mc1"]
    assert {question.gold for question in published} == {0}, "the fault: A is always right"


def test_object_counting_wants_a_number(mended, copies):
    [task] = [task for task in mended.tasks if task.name == "bbh_object_counting"]
    fifth = task.questions()[4]
    assert (task.scorer, fifth.choices, fifth.target) == ("number", (), "5")
    assert answers.is_right(task, fifth, answers.extract(task, "Two, three.\nAnswer: 5").text)
    [old] = [
        task
        for task in load(f"post-forget:published@{copies}").tasks
        if task.name == "bbh_object_counting"
    ]
    assert old.questions()[4].target == "E", "the fault: a letter stands for the number"
    assert not answers.is_right(
        old, old.questions()[4], answers.extract(old, "Answer: 5 cats").text or ""
    )


def test_the_published_extraction_takes_any_letter(copies):
    task = load(f"post-forget:published@{copies}").tasks[0]
    assert answers.extract(task, "I Cannot say", COLOURS).text == "C"
    assert "Question: " in task.stop


def test_the_published_base_model_gets_examples_that_are_not_asked(copies):
    suite = load(f"post-forget:published-base@{copies}")
    shots = {task.name: len(task.examples) for task in suite.tasks}
    assert (shots["mmlu_anatomy"], shots["bbh_snarks"], shots["arc_easy"]) == (3, 3, 2)
    assert (shots["musr_murder_mysteries"], shots["gpqa_diamond"]) == (1, 5)
    assert "truthfulqa_mc1" not in shots
    assert "salad_bench_mrq" not in shots
    for task in suite.tasks:
        if task.name.startswith(("bbh", "gpqa", "musr")):  # one split only
            assert not {q.item for q in task.examples} & {q.item for q in task.questions()}
    assert {task.category for task in suite.tasks if task.name.startswith("arc")} == {"Missing"}


def test_base_models_get_worked_examples_and_the_same_items(copies):
    """So that a base model's log pairs with that of its tuned copy, which is asked without any."""
    plain, base = load(f"post-forget:{copies}"), load(f"post-forget:base@{copies}")
    for ours, theirs in zip(base.tasks, plain.tasks, strict=True):
        assert [q.item for q in ours.questions()] == [q.item for q in theirs.questions()]
        assert len(ours.examples) == 3
        prompt = make_request(ours, ours.questions()[0], Asking(shots=3)).prompt
        assert prompt.startswith("Each question is answered after some reasoning.\n\n")
        assert prompt.count("\nReasoning:") == 4
        assert prompt.count("\nAnswer: ") == 3
        assert prompt.endswith("\nReasoning:")


def test_every_worked_example_ends_with_its_answer(copies):
    tasks = load(f"post-forget:base@{copies}").tasks
    for task in {(task.category, task.scorer): task for task in tasks}.values():
        for example in task.examples:
            solved = dataclasses.replace(task, examples=(example,))
            prompt = make_request(solved, example, Asking(shots=1)).prompt
            answer = prompt.split("Reasoning: ")[1].split("\n\n")[0]
            assert "\n\n" not in example.worked
            found = answers.extract(task, answer, example.choices).text
            assert answers.is_right(task, example, found), example


def test_every_category_has_worked_examples():
    categories = {group for group, _ in TaskMap.load("post-forget").rows.values()} - {IGNORED}
    for category in (*categories, "numbers"):
        examples = post_forget.worked_examples(category)
        assert len(examples) == 3
        assert all(not e.choices or e.target in e.choices for e in examples)
        assert category == "numbers" or len({e.gold for e in examples}) > 1, (
            "the place says nothing"
        )


def test_rows_without_a_clear_answer_are_counted(tmp_path, caplog):
    folder = tmp_path / "cais__mmlu" / "anatomy"
    folder.mkdir(parents=True)
    rows = [
        {"question": "1?", "choices": ["x", "x", "y"], "answer": 1},
        {"question": "2?", "choices": ["x", "y"], "answer": 5},
        {"question": "3?", "choices": ["x", "y"], "answer": 1},
    ]
    write_jsonl(folder / "test.jsonl", rows)
    [task] = [t for t in load(f"post-forget:{tmp_path}").tasks if t.name == "mmlu_anatomy"]
    assert [question.target for question in task.questions()] == ["y"]
    assert "mmlu_anatomy: 2 of 3 rows" in caplog.text


def test_missing_data_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no such folder"):
        load(f"post-forget:{tmp_path}/none")
    monkeypatch.setenv(post_forget.FOLDER, str(tmp_path))
    with pytest.raises(InputError, match="none of its data sets is in"):
        load("post-forget")
    (tmp_path / "tau__commonsense_qa").mkdir()
    (tmp_path / "tau__commonsense_qa" / "validation.jsonl").write_text('{"question": "?"}\n')
    [task] = load("post-forget").tasks
    with pytest.raises(InputError, match="row 0 of tau/commonsense_qa does not have the expected"):
        task.questions()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.extras
def test_a_hub_out_of_reach_is_one_line(monkeypatch):
    datasets = pytest.importorskip("datasets", reason="the hub is reached through datasets")

    def out_of_reach(*args, **kwargs):
        raise ConnectionError("no network\nand more")

    monkeypatch.setattr(datasets, "load_dataset", out_of_reach)
    monkeypatch.delenv(post_forget.FOLDER, raising=False)
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        load("post-forget").tasks[0].questions()
    assert "\n" not in str(caught.value)
