"""The Inspect reader on logs that inspect-ai wrote (tests/data/make), and on damaged ones."""

from __future__ import annotations

import importlib.util
import json
import random
import tracemalloc
import zipfile

import pytest

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.readers import inspect
from forgetmap.readers import lm_eval as lm_eval_reader
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.identity import content_hash
from places import DATA

LOGS = DATA / "inspect/0.3.285"
PURE = LOGS / "deflate"
ALL = ReadOptions(text=True, wording=True)

needs_zstandard = pytest.mark.skipif(
    importlib.util.find_spec("zstandard") is None, reason="the package zstandard is not installed"
)
needs_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="the package inspect-ai is not installed"
)


def rows(path, how=ALL, **wanted):
    found = inspect.read(path, how).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def members(file):
    with zipfile.ZipFile(file) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def raw_samples(file):
    return [part for name, part in members(file).items() if name.startswith("samples/")]


def sample(number=0, value="C", **changes):
    return {
        "id": f"s{number}",
        "epoch": 1,
        "input": f"Question {number}?",
        "target": "yes",
        "output": {"completion": "yes", "choices": [{"stop_reason": "stop"}]},
        "scores": {"match": {"value": value, "answer": "yes"}},
    } | changes


def header(**changes):
    spec = {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "group/sums",
        "model": "mockllm/m",
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.200"},
        "scorers": [{"name": "match"}],
    } | changes.pop("eval", {})
    plan = {"steps": [], "config": changes.pop("config", {})}
    return {"version": 2, "status": "success", "eval": spec, "plan": plan} | changes


def pack(path, samples, head=None, more=None, method=zipfile.ZIP_DEFLATED):
    """Write a log as Inspect lays it out."""
    parts = {"header.json": header() if head is None else head}
    parts |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in samples}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, part in (parts | (more or {})).items():
            if part != {}:
                archive.writestr(name, part if isinstance(part, bytes) else json.dumps(part))
    return path


def write_json(path, samples, **changes):
    path.write_text(json.dumps(header(**changes) | {"samples": samples}, indent=2))
    return path


# ---- what the real logs hold


def test_letters_become_scores():
    file = PURE / "before/fm_capitals.eval"
    expected = {part["id"]: part["scores"]["choice"]["value"] for part in raw_samples(file)}
    found = rows(file)
    assert {row["item_ref"]: row["score"] for row in found} == {
        name: {"C": 1.0, "I": 0.0}[value] for name, value in expected.items()
    }
    assert {row["model"] for row in found} == {"mockllm/tiny-before"}
    assert {row["task"] for row in found} == {"fm_capitals"}
    assert {row["metric"] for row in found} == {"choice"}
    created = members(file)["header.json"]["eval"]["created"]
    assert {row["run"] for row in found} == {created}


def test_options_are_counted_item_by_item():
    assert {row["k"] for row in rows(PURE / "before/fm_capitals.eval")} == {4}
    file = PURE / "before/fm_elements.eval"
    expected = {part["id"]: len(part["choices"]) for part in raw_samples(file)}
    assert {row["item_ref"]: row["k"] for row in rows(file)} == expected
    assert set(expected.values()) == {2, 3, 4, 5}
    assert {row["k"] for row in rows(PURE / "before/fm_words.eval")} == {None}


def test_items_are_known_by_their_content():
    file = PURE / "before/fm_capitals.eval"
    expected = {
        content_hash(part["input"], part["choices"], part["target"]) for part in raw_samples(file)
    }
    assert {row["item"] for row in rows(file)} == expected
    assert len(expected) == 16


def test_of_a_conversation_the_users_words_count():
    """The ids of messages are random, and the system prompt is a setting, not the item."""
    file = PURE / "before/fm_words.eval"
    (part,) = (part for part in raw_samples(file) if part["id"] == "ins-01")
    assert [message["role"] for message in part["input"]] == ["system", "user"]
    (row,) = rows(file, item_ref="ins-01", metric="includes")
    assert row["prompt"] == "Write a line on moon."
    assert row["item"] == content_hash("Write a line on moon.", [], "moon")


def test_epochs_are_repeats_and_so_are_seeds():
    one = rows(PURE / "before/fm_sums_seed0.eval")
    assert {row["repeat"] for row in one} == {0, 1, 2}
    assert len(one) == 24
    both = rows(PURE / "before", task="fm_sums")
    assert {row["repeat"] for row in both} == {0, 1, 2, 10_000, 10_001, 10_002}
    assert len(both) == 48
    for row in one:
        epoch = int(row["source"].rpartition("_epoch_")[2].removesuffix(".json"))
        assert row["repeat"] == epoch - 1


def test_every_scorer_is_a_metric():
    found = rows(PURE / "before/fm_words.eval")
    assert {row["metric"] for row in found} == {"includes", "partial"}
    parts = {
        part["id"]: part["scores"]["partial"] for part in raw_samples(PURE / "before/fm_words.eval")
    }
    grades = {"C": 1.0, "P": 0.5, "N": 0.0}
    for row in found:
        if row["metric"] == "partial":
            assert row["score"] == grades[parts[row["item_ref"]]["value"]]
    assert {part["value"] for part in parts.values()} == set(grades)


def test_a_dictionary_of_values_is_a_metric_per_key():
    found = rows(PURE / "before/fm_instructions.eval")
    names = {"checks/has_word", "checks/no_comma", "checks/length"}
    assert {row["metric"] for row in found} == names
    first = {row["metric"]: row["score"] for row in found if row["item_ref"] == "ins-01"}
    assert first == {"checks/has_word": 1.0, "checks/no_comma": 1.0, "checks/length": 0.425}


@pytest.mark.parametrize(
    ("ref", "status", "scored"),
    [
        ("ins-03", "error", False),
        ("ins-05", "unscored", False),  # the bare NaN of Score.unscored()
        ("ins-07", "truncated", True),
        ("ins-01", "ok", True),
    ],
)
def test_what_went_wrong_is_a_status_under_every_metric(ref, status, scored):
    found = rows(PURE / "before/fm_instructions.eval", item_ref=ref)
    assert len(found) == 3
    assert {row["status"] for row in found} == {status}
    assert {row["score"] is not None for row in found} == {scored}


def test_an_answer_without_the_asked_form_is_told_apart():
    (row,) = rows(PURE / "before/fm_capitals.eval", item_ref="cap-06")
    assert (row["score"], row["status"]) == (0.0, "no_answer")
    cut = rows(PURE / "before/fm_sums_seed0.eval", item_ref="sum-04")
    assert {(row["score"], row["status"]) for row in cut} == {(0.0, "truncated")}


def test_invalidated_samples_have_no_score():
    found = inspect.read(LOGS / "invalidated", ALL)
    (row,) = (row for row in found.data.to_pylist() if row["item_ref"] == "el-02")
    assert (row["score"], row["status"], row["metric"]) == (None, "unscored", "choice")
    assert found.meta.warnings == [
        "fm_elements: 1 samples are marked invalid and count as unscored"
    ]


@pytest.mark.parametrize("side", ["before", "after"])
def test_both_formats_give_the_same_samples(side):
    ours, theirs = (
        inspect.read(LOGS / name, ALL)
        for name in (f"deflate/{side}/fm_instructions.eval", f"json/{side}")
    )
    assert ours.data.drop_columns("source").equals(theirs.data.drop_columns("source"))
    assert ours.meta == theirs.meta


def test_texts_are_there_on_request():
    file = PURE / "before/fm_capitals.eval"
    (row,) = rows(file, item_ref="cap-00")
    texts = [row[name] for name in ("prompt", "target", "answer", "response")]
    assert texts == ["What is the capital of France?", "B", "B", "ANSWER: B"]
    for row in rows(file, ReadOptions()):
        assert {row[name] for name in ("prompt", "target", "answer", "response")} == {None}


def test_settings_are_read_per_task():
    settings = inspect.read(PURE / "before", ALL).settings
    assert settings["generation"]["fm_sums"] == "max_tokens=64, temperature=0.7"
    assert settings["epochs"] == dict.fromkeys(settings["epochs"], 1) | {"fm_sums": 3}
    assert settings["task version"]["fm_capitals"] == 2
    assert settings["few-shot examples"] == {"fm_elements": 0}
    assert settings["system prompt"] == {"fm_elements": "You know chemistry."}
    assert settings["harness version"] == "0.3.285"


def test_a_map_of_before_and_after():
    sides = [inspect.read(PURE / side, ALL) for side in ("before", "after")]
    metric = {"fm_words": "includes", "fm_instructions": "checks/has_word"}
    result = compare(*sides, metric=metric, draws=500)
    scores = [
        {(row["item_ref"]): row["score"] for row in rows(PURE / side / "fm_capitals.eval")}
        for side in ("before", "after")
    ]
    lost = sum(scores[0][ref] > scores[1][ref] for ref in scores[0])
    gained = sum(scores[0][ref] < scores[1][ref] for ref in scores[0])
    counts = result.tasks["fm_capitals"].counts
    assert (counts.n10, counts.n01) == (lost, gained)
    assert lost > 0 < gained
    assert result.tasks["fm_sums"].lost.basis == "repeats"
    assert result.confounds == []
    assert result.total.repeats_before == 6


def test_items_pair_with_those_of_another_harness():
    theirs = lm_eval_reader.read(DATA / "lm_eval/0.4.13/before", ALL).data.to_pylist()
    for task in ("fm_capitals", "fm_elements"):
        ours = {row["wording"] for row in rows(PURE / f"before/{task}.eval")}
        assert ours == {row["wording"] for row in theirs if row["task"] == task}


# ---- zstd


@needs_zstandard
@pytest.mark.parametrize("name", ["fm_capitals.eval", "fm_instructions.eval"])
def test_zstd_members_are_unpacked(name):
    ours, theirs = (
        inspect.read(LOGS / kind / "before" / name, ALL) for kind in ("zstd", "deflate")
    )
    assert ours.data.equals(theirs.data)


@needs_zstandard
def test_a_damaged_zstd_member_is_refused(tmp_path):
    content = bytearray((LOGS / "zstd/before/fm_capitals.eval").read_bytes())
    place = content.index(b"samples/cap-00_epoch_1.json") + 60
    content[place] ^= 0xFF
    (tmp_path / "a.eval").write_bytes(content)
    with pytest.raises(InputError, match=r"cap-00_epoch_1\.json"):
        inspect.read(tmp_path, ALL)


@pytest.mark.extras
@needs_inspect
@pytest.mark.filterwarnings("default")
def test_inspects_own_api_gives_the_same(monkeypatch):
    hide(monkeypatch, "zstandard")
    for name in ("fm_capitals.eval", "fm_instructions.eval"):
        ours, theirs = (
            inspect.read(LOGS / kind / "before" / name, ALL) for kind in ("zstd", "deflate")
        )
        assert ours.data.equals(theirs.data)
        assert ours.meta == theirs.meta


def test_without_a_package_for_zstd_it_is_said_what_to_install(monkeypatch):
    hide(monkeypatch, "zstandard", "inspect_ai")
    with pytest.raises(InputError, match=r"install forgetmap\[inspect\]"):
        inspect.read(LOGS / "zstd/before", ALL)


def test_samples_in_several_members_need_inspect(monkeypatch, tmp_path):
    hide(monkeypatch, "inspect_ai")
    parts = {"samples/s1_epoch_1/sample.json": sample(1), "samples/s1_epoch_1/messages/0.json": []}
    log = pack(tmp_path / "a.eval", [], more=parts)
    with pytest.raises(InputError, match=r"install forgetmap\[inspect\]"):
        inspect.read(log, ALL)


def hide(monkeypatch, *names):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in names else find(name)
    )


# ---- values


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("C", 1.0),
        ("I", 0.0),
        ("P", 0.5),
        ("N", 0.0),
        (1, 1.0),
        (0.25, 0.25),
        (True, 1.0),
        (False, 0.0),
        ("0.75", 0.75),
        ("yes", 1.0),
        (float("nan"), None),
        (None, None),
        ("NaN", None),
    ],
)
def test_values_of_every_kind(tmp_path, value, score):
    log = pack(tmp_path / "a.eval", [sample(1, value)])
    (row,) = rows(log)
    assert row["score"] == score
    assert row["status"] == ("unscored" if score is None else "ok")
    assert inspect.read(log, ALL).meta.warnings == []


@pytest.mark.parametrize("value", ["maybe", float("inf"), "D"])
def test_a_value_that_is_no_number_is_unscored_and_told(tmp_path, value):
    log = pack(tmp_path / "a.eval", [sample(1, value), sample(2), sample(3, "perhaps")])
    found = inspect.read(log, ALL)
    scores = {row["item_ref"]: row["score"] for row in found.data.to_pylist()}
    assert scores == {"s1": None, "s2": 1.0, "s3": None}
    (warning,) = found.meta.warnings
    assert "2 values of 'match' are not numbers" in warning


def test_lists_are_left_out_and_told(tmp_path):
    scores = {"steps": {"value": [1, 0]}, "both": {"value": {"one": 1, "many": [1, 2]}}}
    found = inspect.read(pack(tmp_path / "a.eval", [sample(1, scores=scores)]), ALL)
    assert [row["metric"] for row in found.data.to_pylist()] == ["both/one"]
    assert found.meta.warnings == [
        "sums: 1 values of 'both/many' are lists, not scores, and were left out",
        "sums: 1 values of 'steps' are lists, not scores, and were left out",
    ]


def test_an_unscored_sample_is_told_under_the_keys_that_others_have(tmp_path):
    samples = [
        sample(1, float("nan")),
        sample(2, {"a": 1, "b": 0}),
        sample(3, scores={"match": {"value": None}, "other": {"value": 1}}),
    ]
    found = rows(pack(tmp_path / "a.eval", samples))
    assert {(row["item_ref"], row["metric"]): row["score"] for row in found} == {
        ("s1", "match/a"): None,
        ("s1", "match/b"): None,
        ("s2", "match/a"): 1.0,
        ("s2", "match/b"): 0.0,
        ("s3", "match/a"): None,
        ("s3", "match/b"): None,
        ("s3", "other"): 1.0,
    }


def test_a_sample_without_scores_is_unscored_under_the_declared_scorer(tmp_path):
    log = pack(tmp_path / "a.eval", [sample(1, scores=None)])
    (row,) = rows(log)
    assert (row["metric"], row["status"]) == ("match", "unscored")


def test_an_error_outweighs_a_score(tmp_path):
    """`score_on_error` gives failed samples a score; a value that failed is never a number."""
    log = pack(tmp_path / "a.eval", [sample(1, error={"message": "x"}), sample(2)])
    (row,) = rows(log, item_ref="s1")
    assert (row["metric"], row["score"], row["status"]) == ("match", None, "error")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"limit": {"type": "token", "limit": 9}}, "truncated"),
        ({"limit": {"type": "time", "limit": 9}}, "timeout"),
        ({"output": {"choices": [{"stop_reason": "content_filter"}]}}, "refused"),
        ({"scores": {"match": {"value": "I", "reason": "refusal"}}}, "refused"),
        ({"scores": {"match": {"value": "I", "answer": ""}}}, "no_answer"),
        ({"output": None}, "ok"),
    ],
)
def test_statuses(tmp_path, changes, status):
    (row,) = rows(pack(tmp_path / "a.eval", [sample(1, **changes)]))
    assert row["status"] == status
    assert row["score"] is not None


def test_several_right_options_have_no_simple_chance(tmp_path):
    changes = {"choices": ["a", "b", "c"], "target": ["A", "B"]}
    (row,) = rows(pack(tmp_path / "a.eval", [sample(1, **changes)]))
    assert (row["k"], row["target"], row["wording"]) == (None, "A\nB", None)


def test_images_tell_items_apart(tmp_path):
    asked = [
        [{"type": "text", "text": "What is it?"}, {"type": "image", "image": f"attachment://{n}"}]
        for n in range(2)
    ]
    samples = [
        sample(n, input=[{"role": "user", "content": part, "id": str(n)}])
        for n, part in enumerate(asked)
    ]
    assert len({row["item"] for row in rows(pack(tmp_path / "a.eval", samples))}) == 2


def test_ids_of_any_kind(tmp_path):
    samples = [sample(id=7), sample(id="group/7"), sample(id="a..b c|ü")]
    found = rows(pack(tmp_path / "a.eval", samples))
    assert {row["item_ref"] for row in found} == {"7", "group/7", "a..b c|ü"}


# ---- several logs


def test_the_newest_log_of_a_run_counts(tmp_path):
    for name, value, day in (("b", "I", "01"), ("a", "C", "02")):
        head = header(eval={"created": f"2026-01-{day}T00:00:00+00:00"})
        pack(tmp_path / f"{name}.eval", [sample(1, value)], head)
    found = inspect.read(tmp_path, ALL)
    assert [row["score"] for row in found.data.to_pylist()] == [1.0]
    assert any("older runs" in text for text in found.meta.warnings)


@pytest.mark.parametrize(
    "change", [{"config": {"seed": 1}}, {"eval": {"task_args": {"seed": 1}}}], ids=["run", "task"]
)
def test_seeds_are_repeats_without_a_word(tmp_path, change):
    pack(tmp_path / "a.eval", [sample(1)])
    pack(tmp_path / "b.eval", [sample(1, "I")], header(**change))
    found = inspect.read(tmp_path, ALL)
    assert {row["repeat"] for row in found.data.to_pylist()} == {0, 10_000}
    assert found.meta.warnings == []


def test_runs_that_differ_in_more_than_the_seed_are_told(tmp_path):
    pack(tmp_path / "a.eval", [sample(1)])
    pack(tmp_path / "b.eval", [sample(1)], header(eval={"model_args": {"path": "x"}}))
    found = inspect.read(tmp_path, ALL)
    assert any("differ in their task or model arguments" in text for text in found.meta.warnings)


def test_a_log_next_to_its_json_counts_once(tmp_path):
    pack(tmp_path / "a.eval", [sample(1)])
    write_json(tmp_path / "a.json", [sample(1)])
    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize("status", ["started", "error", "cancelled"])
def test_a_run_that_did_not_finish_is_read_and_told(tmp_path, status):
    for log in (
        pack(tmp_path / "a.eval", [sample(1)], header(status=status)),
        write_json(tmp_path / "a.json", [sample(1)], status=status),
    ):
        found = inspect.read(log, ALL)
        assert len(found) == 1
        assert any(f"status is '{status}'" in text for text in found.meta.warnings)


def test_after_a_crash_the_journal_tells_the_run(tmp_path):
    start = {name: part for name, part in header().items() if name != "status"}
    log = pack(tmp_path / "a.eval", [sample(1)], {}, {"_journal/start.json": start})
    found = inspect.read(log, ALL)
    assert found.models == ["mockllm/m"]
    assert "has no header.json; the run crashed" in found.meta.warnings[0]
    with pytest.raises(InputError, match=r"neither header\.json nor _journal/start\.json"):
        inspect.read(pack(log, [sample(1)], {}), ALL)


def test_a_log_without_samples_is_told(tmp_path):
    for log in (pack(tmp_path / "a.eval", []), write_json(tmp_path / "a.json", None)):
        found = inspect.read(log, ALL)
        assert len(found) == 0
        assert "holds no samples" in found.meta.warnings[0]


def test_rare_settings(tmp_path):
    head = header(
        config={"seed": 3, "system_message": "Be kind.", "max_retries": 9, "top_p": 0.9},
        eval={
            "config": {"limit": 20, "epochs": 1, "token_limit": 500},
            "task_args": {"fewshot": 5, "split": "test"},
        },
    )
    head["plan"]["steps"] = [{"solver": "multiple_choice", "params_passed": {"cot": True}}]
    settings = inspect.read(pack(tmp_path / "a.eval", [sample(1)], head), ALL).settings
    assert settings == {
        "generation": {"sums": "token_limit=500, top_p=0.9"},
        "limit": {"sums": 20},
        "epochs": {"sums": 1},
        "few-shot examples": {"sums": 5},
        "system prompt": {"sums": "Be kind."},
        "task arguments": {"sums": "split=test"},
        "solver": {"sums": "multiple_choice(cot=True)"},
        "harness version": "0.3.200",
    }


# ---- sniffing


def test_what_is_taken_for_a_log(tmp_path):
    assert inspect.sniff(PURE)
    assert inspect.sniff(PURE / "before/fm_capitals.eval")
    assert inspect.sniff(LOGS / "json/before/fm_instructions.json")
    assert not inspect.sniff(DATA / "lm_eval")
    assert not inspect.sniff(DATA / "lighteval")
    for text in ("", "[]", '{"version": 2}', '["version", "status", "eval"]', "\x00\xff"):
        (tmp_path / "a.json").write_text(text)
        assert not inspect.sniff(tmp_path)
    write_json(tmp_path / "a.json", [sample(1)])
    assert inspect.sniff(tmp_path)


# ---- damaged and hostile


@pytest.mark.parametrize("version", [3, 1, "2", None])
def test_another_version_of_the_format_is_refused(tmp_path, version):
    for log in (
        pack(tmp_path / "a.eval", [sample(1)], header(version=version)),
        write_json(tmp_path / "a.json", [sample(1)], version=version),
    ):
        with pytest.raises(InputError, match=f"log of version {version!r}"):
            inspect.read(log, ALL)


@pytest.mark.parametrize(
    "name", ["../x.json", "samples/../../x.json", "/etc/x", "C:/x", "..\\x", "\\\\host\\x"]
)
def test_names_that_lead_out_are_refused(tmp_path, name):
    log = pack(tmp_path / "a.eval", [sample(1)], more={name: [1]})
    with pytest.raises(InputError, match="leads out of the archive"):
        inspect.read(log, ALL)


def test_links_are_refused(tmp_path):
    log = pack(tmp_path / "a.eval", [sample(1)])
    link = zipfile.ZipInfo("samples/s2_epoch_1.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(log, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        inspect.read(log, ALL)


def test_bombs_are_refused(tmp_path):
    bomb = b'{"id": "' + b" " * (4 * 2**20) + b'"}'
    log = pack(tmp_path / "a.eval", [sample(1)], more={"samples/b_epoch_1.json": bomb})
    with pytest.raises(InputError, match="more than 1000 times its size"):
        inspect.read(log, ALL)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("FORGETMAP_MAX_MEMBERS", "4 members; .* raise FORGETMAP_MAX_MEMBERS"),
        ("FORGETMAP_MAX_MEMBER_MIB", "unpacks to .* raise FORGETMAP_MAX_MEMBER_MIB"),
    ],
)
def test_limits(tmp_path, monkeypatch, limit, message):
    monkeypatch.setenv(limit, "1")
    long = sample(3) | {"input": random.Random(0).randbytes(2**20).hex()}
    log = pack(tmp_path / "a.eval", [sample(1), sample(2), long])
    with pytest.raises(InputError, match=message):
        inspect.read(log, ALL)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    log = pack(tmp_path / "a.eval", [sample(1)])
    patch(log, at=24, value=b"\x10\x00\x00\x00")
    with pytest.raises(InputError, match=r"samples/s1_epoch_1\.json"):
        inspect.read(log, ALL)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (8, b"\x01\x00", "is encrypted"),
        (10, b"\x63\x00", "unknown method 99"),
        (20, b"\xff\xff\xff\x7f", "claims 2,147,483,647 bytes of the"),
    ],
)
def test_members_that_cannot_be_unpacked_are_refused(tmp_path, at, value, message):
    log = pack(tmp_path / "a.eval", [sample(1)])
    patch(log, at, value)
    with pytest.raises(InputError, match=f"s1_epoch_1.json.*{message}"):
        inspect.read(log, ALL)


def patch(log, at, value):
    """Change the last member's record in the zip directory."""
    content = bytearray(log.read_bytes())
    place = content.rindex(b"PK\x01\x02") + at
    content[place : place + len(value)] = value
    log.write_bytes(content)


def test_a_cut_off_archive_is_refused_wherever_it_is_cut(tmp_path):
    whole = (PURE / "before/fm_words.eval").read_bytes()
    log = tmp_path / "a.eval"
    for end in range(0, len(whole) - 1, 97):
        log.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"a\.eval"):
            inspect.read(log, ALL)


def test_changed_bytes_are_read_or_refused_never_more(tmp_path):
    whole = pack(tmp_path / "whole.eval", [sample(1), sample(2)]).read_bytes()
    log = tmp_path / "a.eval"
    refused = 0
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 0x55
        log.write_bytes(content)
        try:
            inspect.read(log, ALL)
        except InputError:
            refused += 1
    assert refused > len(whole) / 2


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip" * 50, bytes(1000)])
def test_garbage_is_refused(tmp_path, content):
    log = tmp_path / "a.eval"
    log.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.eval"):
        inspect.read(log, ALL)


@pytest.mark.parametrize(
    "part",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        sample(1, id=None, epoch=0),
        sample(1, epoch="one"),
        sample(1, epoch=10_001),
        sample(1, scores=[1]),
        sample(1, scores={"match": 1}),
        sample(1, choices="abc"),
        sample(1, input=None),
        sample(1, input=[1]),
        sample(1, output=[1]),
        {"id": 1},
    ],
)
def test_a_broken_sample_is_named(tmp_path, part):
    log = pack(tmp_path / "a.eval", [], more={"samples/x_epoch_1.json": part})
    with pytest.raises(InputError, match=r"a\.eval: samples/x_epoch_1\.json"):
        inspect.read(log, ALL)


@pytest.mark.parametrize(
    "head",
    [
        {"version": 2},
        {"version": 2, "eval": []},
        {"version": 2, "eval": {"task": "t"}},
        header(eval={"task_args": [1]}),
        header(eval={"scorers": ["match"]}),
        header(config=[1]),
    ],
)
def test_a_broken_header_is_refused(tmp_path, head):
    head = {"status": "success", "eval": None} | head
    (tmp_path / "a.json").write_text(json.dumps(head))
    for log in (pack(tmp_path / "a.eval", [sample(1)], head), tmp_path / "a.json"):
        with pytest.raises(InputError, match=f"{log.name}: header: damaged"):
            inspect.read(log, ALL)


@pytest.mark.parametrize(
    "rest",
    ["", "}", '{}, "samples": 1}', '{"model": "m", "task": "t"}, "samples": [1]}', "[" * 99_999],
)
def test_a_broken_json_log_is_refused(tmp_path, rest):
    log = tmp_path / "a.json"
    log.write_text('{"version": 2, "status": "success", "eval": ' + rest)
    assert inspect.sniff(log)
    with pytest.raises(InputError, match=r"a\.json"):
        inspect.read(log, ALL)


def test_of_two_members_with_one_name_the_last_counts(tmp_path):
    log = pack(tmp_path / "a.eval", [sample(1, "I")])
    with zipfile.ZipFile(log, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("samples/s1_epoch_1.json", json.dumps(sample(1, "C")))
    assert [row["score"] for row in rows(log)] == [1.0]


def test_memory_stays_flat(tmp_path):
    """Samples carry their events, often megabytes; they are read one at a time."""
    events = ["x" * 1000] * 1000
    peaks = []
    for count in (10, 40):
        samples = [sample(number, events=events) for number in range(count)]
        log = pack(tmp_path / "a.eval", samples, method=zipfile.ZIP_STORED)
        del samples
        tracemalloc.start()
        try:
            assert len(inspect.read(log, ReadOptions())) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2e6


def test_progress_is_told():
    for path in (PURE / "before", LOGS / "json/before"):
        ticks = []
        inspect.read(path, ReadOptions(tick=ticks.append))
        size = sum(file.stat().st_size for file in path.iterdir())
        assert 0 < sum(ticks) <= size
