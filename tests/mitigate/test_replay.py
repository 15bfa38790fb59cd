"""The replay set: what goes in, from where, and what stays out."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.cli.replay import replay
from forgetmap.evaluate.models import Reply, plain_groups
from forgetmap.evaluate.prompts import Message
from forgetmap.mitigate.replay.build import (
    MANIFEST,
    MESSAGES,
    MIXTURE,
    PROMPTS,
    YOUR_DATA,
    build_replay,
    share_out,
)
from forgetmap.mitigate.replay.leaks import plain_words
from forgetmap.mitigate.replay.pool import Row, Talk, nearest, read_pool
from forgetmap.mitigate.replay.synthesis import Making, agreement, is_echo
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples

CAPITALS = [f"What is the capital of land number {n}?" for n in range(20)]
SUMS = [f"How much is {n} plus {n + 3} in the end?" for n in range(20)]


def log(path, wrong=(), chances=(None, None)):
    """A log of 40 questions; those in `wrong` got a wrong answer.

    `chances` is the probability of a right option that was picked, and of one that was not.
    """
    questions = [("capitals", text) for text in CAPITALS] + [("sums", text) for text in SUMS]
    Samples.from_rows(
        {
            "model": path.stem,
            "task": task,
            "item": content_hash(text),
            "item_ref": str(number),
            "score": float(text not in wrong),
            "gold_probability": chances[text in wrong],
            "prompt": f"Question: {text}\nAnswer:",
            "target": "x",
            "answer": "y",
            "k": 4,
        }
        for number, (task, text) in enumerate(questions)
    ).write(path)
    return path


@pytest.fixture
def maps(tmp_path):
    """A saved comparison: 6 capitals and 2 sums were forgotten."""
    before = log(tmp_path / "before.parquet")
    after = log(tmp_path / "after.parquet", wrong=[*CAPITALS[:6], *SUMS[:2]])
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("task,category\ncapitals,World\nsums,Maths\n")
    forgetmap.compare(before, after, task_map=tasks, save=tmp_path / "map", draws=100)
    return tmp_path


def pool(folder, rows):
    path = folder / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


GOOD = [
    *({"prompt": f"Name the capital of realm {n}, please.", "completion": "C"} for n in range(9)),
    *({"prompt": f"Add {n} plus {n + 50}.", "completion": str(2 * n + 50)} for n in range(9)),
]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Parrot:
    """A model that writes questions by number, and is of one mind about even ones."""

    name, settings, warnings = "parrot", {}, ["made up for a test"]

    def __init__(self, fingerprint="f"):
        self.fingerprint = fingerprint
        self.asked = []

    def plan(self, requests):
        return plain_groups(len(requests), 4)

    def run(self, requests, hints):
        self.asked += requests
        return [self._reply(request) for request in requests]

    def _reply(self, request):
        prompt = request.prompt
        text = prompt if isinstance(prompt, str) else prompt[-1].text
        if text.endswith("Question:") or text.startswith("Write one easy question"):
            number = request.seed % 40
            about = "river" if "World" in text else "sum"
            special = {3: "", 5: CAPITALS[8], 7: "no"}
            text = special.get(number, f"\n Tell me about {about} {number}?\nAnswer: so")
            return Reply(text=text)
        words = plain_words(text)
        number = int(next(word for word in words if word.isdigit()))
        if number % 10 == 9:
            return Reply(text="It goes on and on", finished=False)
        return Reply(text=f" It is {1000 + number if number % 2 == 0 else request.seed % 97}.")


def test_shares_follow_the_forgotten_items_and_evaluation_items_stay_out(maps):
    planted = [
        {"prompt": CAPITALS[13].upper(), "completion": "leak"},  # not forgotten, still an item
        {"text": f"I recall this one. It was: {SUMS[1]} Hard."},
        {"messages": [{"role": "user", "content": "Hi"},
                      {"role": "assistant", "content": f"So, {CAPITALS[0]}"}]},
    ]  # fmt: skip
    path = pool(maps, [*GOOD[:9], *planted, *GOOD[9:]])
    result = build_replay(maps / "map", maps / "out", 8, pool=path, logs=[maps / "before.parquet"])
    assert {name: share.drawn for name, share in result.categories.items()} == {
        "World": 6,
        "Maths": 2,
    }
    assert [found.source for found in result.refusals] == [f"pool.jsonl:{n}" for n in (10, 11, 12)]
    assert (result.refused, result.refused_of_pool, result.checked_items) == (3, 3, 40)
    text = (maps / "out" / MESSAGES).read_text() + (maps / "out" / PROMPTS).read_text()
    for item in (*CAPITALS, *SUMS):
        assert " ".join(plain_words(item)) not in " ".join(plain_words(text))


def test_gains_and_new_tasks_do_not_change_what_is_replayed(tmp_path):
    """As many capitals were gained as lost, and the sums are what was trained."""
    before = log(tmp_path / "before.parquet", wrong=CAPITALS[:6])
    after = log(tmp_path / "after.parquet", wrong=[*CAPITALS[6:12], *SUMS[:9]])
    how = {"save": tmp_path / "map", "draws": 100, "new": ["sums"]}
    result = forgetmap.compare(before, after, **how)
    assert result.old.change.value == 0
    made = build_replay(
        tmp_path / "map", tmp_path / "out", 5, pool=pool(tmp_path, GOOD), logs=[before]
    )
    assert {name: share.forgotten for name, share in made.categories.items()} == {"capitals": 6}
    assert made.examples == 5
    (doubt,) = made.warnings
    assert doubt.startswith("nothing is surely lost in this map (verdict: can't tell);")
    assert "What would decide: 3 repeats" in doubt
    with pytest.raises(InputError, match=r"--category sums: no old item of it was lost"):
        build_replay(tmp_path / "map", tmp_path / "no", 5, model=Parrot(), categories=["sums"])


def test_items_that_were_trained_on_are_not_replayed_but_kept_out(tmp_path):
    before = log(tmp_path / "before.parquet")
    after = log(tmp_path / "after.parquet", wrong=[*CAPITALS[:3], *SUMS[:2]])
    train = tmp_path / "train.jsonl"
    train.write_text(
        "".join(json.dumps({"prompt": text, "completion": "x"}) + "\n" for text in SUMS)
    )
    forgetmap.compare(before, after, save=tmp_path / "map", draws=100, trained_on=train)
    path = pool(tmp_path, [*GOOD, {"prompt": SUMS[4], "completion": "x"}])
    made = build_replay(tmp_path / "map", tmp_path / "out", 5, pool=path, logs=[before])
    assert {name: share.forgotten for name, share in made.categories.items()} == {"capitals": 3}
    assert made.refused == 1


def test_items_count_by_how_far_they_fell(tmp_path):
    """Four capitals that fell by a fifth weigh less than one sum that is wholly lost."""

    def repeated(name, right):
        path = tmp_path / f"{name}.parquet"
        Samples.from_rows(
            {
                "task": task,
                "item": content_hash(text),
                "repeat": repeat,
                "score": float(repeat < right.get(text, 5)),
                "prompt": text,
            }
            for task, texts in (("capitals", CAPITALS[:8]), ("sums", SUMS[:8]))
            for text in texts
            for repeat in range(5)
        ).write(path)
        return path

    before = repeated("before", {})
    after = repeated("after", {**dict.fromkeys(CAPITALS[:4], 4), SUMS[0]: 0})
    forgetmap.compare(before, after, save=tmp_path / "map", draws=100)
    made = build_replay(
        tmp_path / "map", tmp_path / "out", 9, pool=pool(tmp_path, GOOD), logs=[before]
    )
    wanted = {name: (share.forgotten, share.wanted) for name, share in made.categories.items()}
    assert wanted == {"sums": (1, 5), "capitals": (4, 4)}


def test_one_category_alone_can_be_repaired(maps):
    given = {"pool": pool(maps, GOOD), "logs": [maps / "before.parquet"]}
    made = build_replay(maps / "map", maps / "out", 5, categories=["Maths"], **given)
    assert set(made.categories) == {"Maths"}
    assert made.examples == 5
    assert {row["category"] for row in rows_of(maps / "out" / MESSAGES)} == {"Maths"}
    assert made.checked_items == 40  # of all categories
    with pytest.raises(InputError, match=r"--category Art: .* Maths, World"):
        build_replay(maps / "map", maps / "other", 5, categories=["Art"], **given)
    assert not (maps / "other").exists()


def test_the_whole_evaluation_must_be_known(maps):
    with pytest.raises(InputError, match=r"text of 32 of 40 evaluation items .* --log BEFORE"):
        build_replay(maps / "map", maps / "out", 8, pool=pool(maps, GOOD))
    assert not (maps / "out").exists()


def test_strict_stops_at_a_planted_item(maps):
    path = pool(maps, [*GOOD, {"prompt": SUMS[5], "completion": "13"}])
    with pytest.raises(InputError, match=r"pool.jsonl: 1 rows hold evaluation items \(line 19\)"):
        build_replay(
            maps / "map",
            maps / "out",
            8,
            pool=path,
            logs=[maps / "before.parquet"],
            strict=True,
        )
    assert not (maps / "out").exists()


def build(maps, model, budget=8, out="out", **more):
    return build_replay(
        maps / "map", maps / out, budget, model=model, logs=[maps / "before.parquet"], **more
    )


def test_the_model_makes_up_questions_on_which_it_agrees_with_itself(maps):
    model = Parrot()
    result = build(maps, model)
    made = rows_of(maps / "out" / PROMPTS)
    assert Counter(row["category"] for row in made) == {"World": 6, "Maths": 2}
    for row in made:
        number = int(row["completion"].split()[-1].strip(".")) - 1000
        assert number % 2 == 0
        about = {"World": "river", "Maths": "sum"}[row["category"]]
        assert row["prompt"].endswith(f"\n\nQuestion: Tell me about {about} {number}?\nAnswer:")
    assert len({row["prompt"] for row in made}) == 8
    assert set(result.dropped) >= {"answers disagree", "duplicate", "no question"}
    assert (result.model, result.fingerprint, result.warnings) == ("parrot", "f", Parrot.warnings)
    headings = [one.prompt for one in model.asked if one.prompt.startswith("Easy questions")]
    assert headings
    for item in (*CAPITALS, *SUMS):
        assert item not in "".join(headings)


def test_a_made_up_evaluation_item_is_refused(maps):
    class Cheat(Parrot):
        def _reply(self, request):
            if str(request.prompt).endswith("Question:") and request.seed % 2:
                return Reply(text=CAPITALS[8])
            return super()._reply(request)

    result = build(maps, Cheat())
    assert result.examples == 8
    assert result.refused_of_pool == 0
    assert result.refused == result.dropped["evaluation item"] > 0
    assert {found.source for found in result.refusals} == {"model"}
    assert CAPITALS[8] not in (maps / "out" / MESSAGES).read_text()


def test_a_stopped_run_goes_on_and_gives_the_same_set(maps):
    class Stopped(Parrot):
        def run(self, requests, hints):
            if len(self.asked) > 30:
                raise KeyboardInterrupt
            return super().run(requests, hints)

    whole = Parrot()
    build(maps, whole, out="whole")
    first = Stopped()
    with pytest.raises(KeyboardInterrupt):
        build(maps, first)
    assert not (maps / "out" / MANIFEST).exists()
    second = Parrot()
    build(maps, second)
    assert len(first.asked) + len(second.asked) == len(whole.asked)
    assert second.asked
    third = Parrot()
    build(maps, third)
    assert third.asked == []
    for name in (MESSAGES, PROMPTS):
        assert (maps / "out" / name).read_bytes() == (maps / "whole" / name).read_bytes()


def test_model_and_pool_give_half_each_and_one_makes_up_for_the_other(maps):
    result = build(maps, Parrot(), budget=16, pool=pool(maps, GOOD))
    world, maths = result.categories["World"], result.categories["Maths"]
    assert (world.drawn, world.synthesised) == (6, 6)
    assert (maths.drawn, maths.synthesised) == (2, 2)
    named = [{**row, "category": "World"} for row in GOOD[:2]]
    few = build(maps, Parrot(), budget=16, out="few", pool=pool(maps, named))
    assert (few.categories["World"].drawn, few.categories["World"].synthesised) == (2, 10)

    class Mute(Parrot):
        def _reply(self, request):
            return Reply(text="")

    mute = build(maps, Mute(), budget=8, out="mute", pool=pool(maps, GOOD))
    assert (mute.categories["World"].drawn, mute.categories["Maths"].drawn) == (6, 2)


def test_a_set_that_stays_short_says_so(maps):
    result = build(maps, Parrot(), budget=60)
    assert result.examples < 60
    assert any(text.startswith("fewer examples than wanted: ") for text in result.warnings)
    with pytest.raises(InputError, match="no example could be made or drawn"):
        build_replay(
            maps / "map",
            maps / "none",
            8,
            pool=pool(maps, [{"prompt": CAPITALS[1], "completion": "x"}]),
            logs=[maps / "before.parquet"],
        )


def test_chat_asks_through_the_template(maps):
    model = Parrot()
    build(maps, model, making=Making(chat=True))
    assert model.asked
    for request in model.asked:
        roles = [turn.role for turn in request.prompt]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    asked = {request.prompt for request in model.asked}
    for row in rows_of(maps / "out" / MESSAGES):  # what is trained on is what was asked
        *turns, answer = (Message(turn["role"], turn["content"]) for turn in row["messages"])
        assert tuple(turns) in asked
        assert answer.role == "assistant"
    mixture = yaml.safe_load((maps / "out" / MIXTURE).read_text())
    assert mixture["datasets"][0]["columns"] == ["messages"]


def test_files_have_the_forms_of_trl(maps):
    train = maps / "new.jsonl"
    train.write_text('{"prompt": "p", "completion": "c"}\n')
    result = build(maps, Parrot(), train=train, keep=0.25)
    messages, prompts = (rows_of(maps / "out" / name) for name in (MESSAGES, PROMPTS))
    for one, two in zip(messages, prompts, strict=True):
        assert [turn["role"] for turn in one["messages"][-2:]] == ["user", "assistant"]
        assert two["completion"] == " " + one["messages"][-1]["content"]
        assert one["category"] == two["category"]
    text = (maps / "out" / MIXTURE).read_text()
    mine, new = yaml.safe_load(text)["datasets"]
    assert mine == {
        "path": "json",
        "data_files": str(maps / "out" / PROMPTS),
        "split": "train",
        "columns": ["prompt", "completion"],
        "fraction": 0.25,
    }
    assert (new["data_files"], new["fraction"]) == (str(train), 0.75)
    assert "# 25.0 % replay. It rests on: fine-tuning converges" in text
    assert result.new_examples == 24
    assert json.loads((maps / "out" / MANIFEST).read_text()) == json.loads(result.to_json())
    bare = build(maps, Parrot(), out="bare")
    assert bare.mixing[0].share == 0.2
    assert yaml.safe_load((maps / "bare" / MIXTURE).read_text())["datasets"][1]["data_files"] == (
        YOUR_DATA
    )


def test_the_ratio_is_that_of_the_theory_lab(maps):
    from forgetmap.theory.starvation import min_replay

    supervised, sampled = build(maps, Parrot(), keep=0.02).mixing
    assert supervised.share == pytest.approx(0.02)  # old mass after training is the replay share
    assert sampled.share == pytest.approx(float(min_replay(0.02, 32, 0.01)))
    assert sampled.share > 0
    assert supervised.rests_on
    assert sampled.do_not_trust_when


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 0}, "--budget 0"),
        ({"keep": 1.5}, "keep"),
        ({"pool": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"train": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"logs": ["nowhere"]}, "nowhere: no such file"),
        ({"model": None}, "--model to make up examples"),
    ],
)
def test_bad_input_is_told_before_anything_is_written(maps, change, message):
    options = {"budget": 8, "model": Parrot(), "logs": [maps / "before.parquet"]} | change
    with pytest.raises(InputError, match=message) as error:
        build_replay(maps / "map", maps / "out", **options)
    assert "\n" not in str(error.value)
    assert not (maps / "out").exists()


@pytest.mark.parametrize("values", [{"answers": 1}, {"agreement": 0.0}, {"max_tokens": 0}])
def test_bad_ways_of_making_are_refused(values):
    with pytest.raises(InputError, match="--"):
        Making(**values)


def test_a_map_without_forgetting_has_nothing_to_replay(tmp_path):
    one, two = log(tmp_path / "one.parquet"), log(tmp_path / "two.parquet")
    forgetmap.compare(one, two, save=tmp_path / "map", draws=100)
    with pytest.raises(InputError, match="no old item of the map was lost"):
        build_replay(tmp_path / "map", tmp_path / "out", 5, model=Parrot(), logs=[one])


# --- parts ----------------------------------------------------------------------------------------


@given(
    st.integers(1, 10_000),
    st.dictionaries(st.text(max_size=4), st.integers(0, 1000), min_size=1).filter(
        lambda counts: sum(counts.values())
    ),
)
def test_shares_add_up_and_are_within_one_of_exact(budget, counts):
    parts = share_out(budget, counts)
    total = sum(counts.values())
    assert sum(parts.values()) == budget
    assert all(abs(parts[name] - budget * counts[name] / total) < 1 for name in counts)


def test_pool_rows_in_every_form(tmp_path):
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    answer = [{"role": "assistant", "content": "Hello."}]
    found = read_pool(
        pool(
            tmp_path,
            [
                {"messages": turns + answer, "task": "talk"},
                {"prompt": turns, "completion": answer},
                {"prompt": "Hi", "completion": "Hello."},
                {"text": "Rain falls. It gets wet. Good."},
                {"text": "One sentence only"},
                {"messages": turns},
                {"messages": [{"role": "user", "content": [{"type": "image"}]}, *answer]},
            ],
        )
    )
    assert [row.talk.prompt for row in found.rows] == [
        "Be kind.\n\nHi\n\n",
        "Be kind.\n\nHi\n\n",
        "Hi",
        "Rain falls.",
    ]
    assert found.rows[3].talk.completion == " It gets wet. Good."
    assert found.rows[0].names == ("talk",)
    assert found.unusable == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "x"}\n', "pool.jsonl:1: has none of"),
        ("[1]\n", "pool.jsonl:1: a JSON object"),
        ("nonsense\n", "pool.jsonl:1: not UTF-8 JSON lines"),
        ("", "holds no example"),
        ('{"text": ""}\n', "holds no example"),
    ],
)
def test_bad_pools_are_told_in_one_line(tmp_path, text, message):
    path = tmp_path / "pool.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_pool(path)
    assert "\n" not in str(error.value)


def row(line, text, *names):
    turns = Message("user", text), Message("assistant", "ok")
    return Row(line, Talk(turns, text, "ok"), names)


def test_rows_go_where_they_say_or_where_their_words_lead():
    rows = [
        row(1, "the moon and the tides of the sea"),
        row(2, "multiply seven by nine"),
        row(3, "anything", "SUMS"),
        row(4, "moon", "Cooking"),
        row(5, "zzz qqq"),
        row(6, "anything else", "tidal_task"),
        row(7, "multiply two by two", "a name of their own"),
    ]
    found = nearest(
        rows,
        {"Sums": ["multiply three by four"], "Sea": ["why are there tides in the sea"]},
        {"tidal_task": "Sea", "kitchen": "Cooking"},
    )
    assert {name: set(numbers) for name, numbers in found.items()} == {
        "Sums": {1, 2, 6},
        "Sea": {0, 5},
    }
    assert found["Sums"][-1] == 2  # nothing in common with what was forgotten: drawn last


@pytest.mark.parametrize(
    ("answer", "others", "share"),
    [
        ("Paris", ["paris.", "It is Paris"], 1.0),
        ("Yes, it is", ["No, it is"], 0.0),
        ("in 1914 it was", ["in 1915 it was", "in 1914 it was"], 0.5),
        ("Rome", ["", "Rome", "", "rome"], 0.5),
        ("", ["", ""], 0.0),
        ("The largest island is Malta", ["The largest island is Crete"], 0.0),
        ("The largest island is Malta", ["Malta"], 1.0),
    ],
)
def test_agreement(answer, others, share):
    assert agreement(answer, others) == pytest.approx(share)


@pytest.mark.parametrize(
    ("question", "answer", "echo"),
    [
        ("Premise: 'A glossary of scientific terms.'", '"A glossary of scientific terms."', True),
        ("What is the world?", "The world", True),
        ("Which country is larger, Chad or Malta?", "Chad", False),
        ("What is the capital of Norway?", "The capital of Norway is Oslo.", False),
    ],
)
def test_an_answer_that_repeats_the_question_is_told(question, answer, echo):
    assert is_echo(question, answer) is echo


# --- the command ----------------------------------------------------------------------------------

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)


def test_the_command_tells_refusals_and_the_ratio_with_its_assumption(maps, monkeypatch):
    path = pool(maps, [*GOOD, {"prompt": SUMS[5], "completion": "13"}])
    options = ["--pool", str(path), "--log", str(maps / "before.parquet"), "--budget", "8"]
    asked = [str(maps / "map"), *options, "--out", str(maps / "out")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "8 of 8 examples" in shown
    assert "REFUSED pool.jsonl:19: " in shown
    assert "replay 20.0 % of the data" in shown
    assert "rests on: fine-tuning converges" in shown
    strict = CliRunner().invoke(app, [*asked, "--strict"])
    assert strict.exit_code == 2
    assert "line 19" in strict.output
    as_json = CliRunner().invoke(app, [*asked, "--json", "-"])
    assert json.loads(as_json.stdout)["refused_of_pool"] == 1


def test_hostile_names_do_not_reach_the_terminal(maps):
    rows = [
        {"prompt": f"Name the capital of \x1b[31mrealm {n}.", "completion": "C"} for n in range(9)
    ]
    path = pool(maps, rows).rename(maps / "pool\x1b[2J.jsonl")
    options = ["--pool", str(path), "--log", str(maps / "before.parquet"), "--budget", "4"]
    result = CliRunner().invoke(app, [str(maps / "map"), *options, "--out", str(maps / "out")])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output


@pytest.mark.model
def test_a_real_network_makes_up_examples_and_trl_reads_the_mixture(maps):
    pytest.importorskip("torch")
    from tiny_llama import make_tiny_model

    model = make_tiny_model(maps / "tiny")
    options = {
        "model": str(model),
        "logs": [maps / "before.parquet"],
        "pool": pool(maps, GOOD),
        "making": Making(answers=2, agreement=0.5, max_tokens=8),
    }
    build_replay(maps / "map", maps / "one", 8, **options)
    result = build_replay(maps / "map", maps / "two", 8, **options)
    assert (maps / "one" / MESSAGES).read_bytes() == (maps / "two" / MESSAGES).read_bytes()
    assert result.fingerprint
    assert result.examples == 8
    train = maps / "new.jsonl"
    train.write_text('{"prompt": "p", "completion": "c"}\n' * 100)
    build_replay(maps / "map", maps / "two", 8, train=train, **options)
    trl = pytest.importorskip("trl")
    from trl.scripts.utils import get_dataset

    mixture = trl.DatasetMixtureConfig(**yaml.safe_load((maps / "two" / MIXTURE).read_text()))
    mixed = get_dataset(mixture)["train"]
    assert mixed.column_names == ["prompt", "completion"]
    assert len(mixed) == 40
    assert sum(row["prompt"] != "p" for row in mixed) == 8


def test_a_forecast_takes_the_place_of_a_map(tmp_path):
    from forgetmap.mitigate.forecast.build import forecast

    before = log(tmp_path / "before.parquet", wrong=SUMS[5:], chances=(0.9, 0.1))
    forecast(before, out=tmp_path / "risks.parquet")
    rows = [{"prompt": f"What is the capital of realm {n}?", "completion": "X."} for n in range(9)]
    rows += [{"prompt": f"How much is {n} times two?", "completion": "Y."} for n in range(9)]
    rows.append({"prompt": CAPITALS[3], "completion": "Z."})
    pool = tmp_path / "pool.jsonl"
    pool.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    risks = tmp_path / "risks.parquet"
    made = build_replay(None, tmp_path / "out", 8, risks=risks, logs=[before], pool=pool)
    assert made.examples == 8
    assert made.refused == 1  # an item of the forecast
    assert made.categories["capitals"].wanted > made.categories["sums"].wanted  # more to lose
    with pytest.raises(InputError, match="name the log"):
        build_replay(None, tmp_path / "none", 8, risks=risks, pool=pool)
    with pytest.raises(InputError, match="give a MAP"):
        build_replay(None, tmp_path / "none", 8, pool=pool)
