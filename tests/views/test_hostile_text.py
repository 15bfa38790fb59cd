"""Model output is untrusted text: shown as text, never obeyed, in every field."""

from __future__ import annotations

import csv
import io
import itertools
import os

import pytest

import forgetmap
import forgetmap.readers
import forgetmap.readers.summary
from forgetmap.base.words import clean
from forgetmap.samples.table import Meta, Samples
from logs import (
    ALL_OUTPUTS,
    QUICK,
    Workplace,
    assert_one_line,
    assert_safe_for_a_terminal,
    items,
    lm_eval_record,
    write_csv,
    write_jsonl,
    write_lm_eval,
    write_parquet,
)

# --- hostile text ---------------------------------------------------------------------------------

HOSTILE = {
    "terminal codes": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m",
    "null bytes": "nu\x00ll",
    "line ends": "two\r\nlines\x0b\x0c\u2028\u2029\x85end",
    "right to left": "\u202eabc\u2066\u200f\u061c",
    "markup": "[red]not red[/red] :smile: [/] [/blue]",
    "formula": "=cmd|' /C calc'!A0",
    "formula behind a null": "\x00=1+1",
    "formula behind a line end": "\n=1+1",
    "formula behind a wide space": "\u3000=1+1",
    "wide formula": "＝1+1",
    "wide formula behind a space": " ＋1",
    "wide at": "＠SUM(A1)",
    "wide minus": "－1",
    "tab": "\tx",
    "carriage return": "\rx",
    "SQL": "'; DROP TABLE before_rows; --",
    "SQL quotes": "\"';'' \\' $$ ?1 $file {0} %s",
    "glob": "*[a-z]?{1,2}**",
    "LaTeX": r"\input{/etc/passwd} & % $ # _ ^ ~ \\",
    "non-characters": "\ufffe\uffff\U0010ffff",
    "long": "x" * 2**14,
}
FIELDS = {
    *("model", "task", "metric", "question", "id", "target", "answer", "response", "cluster"),
    "repeat",
}


def assert_safe_for_a_spreadsheet(text: str) -> None:
    usual = csv.field_size_limit(2**24)
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    finally:
        csv.field_size_limit(usual)
    assert len({len(row) for row in rows}) == 1
    for cell in itertools.chain.from_iterable(rows):
        try:
            float(cell)
        except ValueError:
            assert not cell.startswith(("\t", "\r")), cell
            assert not cell.strip().startswith(tuple("=+-@＝＋－＠")), cell
        assert "\x00" not in cell


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_in_every_field_stays_text(work: Workplace, kind: str) -> None:
    text = HOSTILE[kind]
    for name, scores in (("before", [1, 1, 0, 1]), ("after", [0, 1, 1, 1])):
        rows = []
        for index, score in enumerate(scores):
            fields = dict.fromkeys(FIELDS, text)
            fields |= dict.fromkeys(("question", "id", "cluster"), f"{text}{index}")
            rows.append({**fields, "correct": score})
            rows.append({**fields, "correct": score, "metric": "other"})  # so that one is chosen
            rows.append({**fields, "correct": score, "task": f"{text} more"})
        write_jsonl(work / f"{name}.jsonl", rows)
    sides = ("before.jsonl", "after.jsonl")
    chosen = ("--metric", "other") if "=" in text else ("--metric", text)
    shown = work.worked("compare", *sides, *chosen, *QUICK, *ALL_OUTPUTS)
    assert_safe_for_a_terminal(shown.stdout)
    result = forgetmap.ForgettingMap.from_json((work / "map.json").read_bytes())
    assert result.coverage.matched in (4, 8)
    assert result.before.name == text
    assert set(result.tasks) <= {text, f"{text} more"}
    assert_safe_for_a_spreadsheet((work / "map.csv").read_text())
    assert_safe_for_a_spreadsheet((work / "flips.csv").read_bytes().decode())
    assert all(ord(c) >= 32 or c == "\n" for c in (work / "map.tex").read_text())
    for arguments in (("show", sides[0]), ("convert", sides[0], "out.parquet")):
        assert_safe_for_a_terminal(work.worked(*arguments).stdout)
    assert forgetmap.read("out.parquet").models == [text]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_model_names_can_be_chosen(work: Workplace, kind: str) -> None:
    rows = [*items([1, 0], model=HOSTILE[kind]), *items([1, 1], model="m")]
    write_jsonl(work / "run.jsonl", rows)
    result = work.run("compare", "run.jsonl", "run.jsonl")
    assert_one_line(result.exit_code, "", result.stderr, ("2 models", "--before-model"), 2, result)
    assert_safe_for_a_terminal(result.stderr)
    for source in ("run.jsonl", "run.parquet"):
        if source == "run.parquet":
            work.worked("convert", "run.jsonl", "run.parquet", "--quiet")
        chosen = ("--before-model", HOSTILE[kind], "--after-model", "m")
        found = work.compared(source, source, *chosen)
        assert found.before.name == HOSTILE[kind]
        assert found.total.accuracy_before == 0.5


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_of_a_harness_stays_text(work: Workplace, kind: str) -> None:
    text = HOSTILE[kind]
    for name, score in (("before", 1.0), ("after", 0.0)):
        records = [
            lm_eval_record(
                i,
                score,
                doc={"question": f"{text}{i}", text: text},
                target=text,
                resps=[[text]],
                filtered_resps=[text],
                filter=text,
                metrics=["acc", text],
                **{text: 0.5},
            )
            for i in range(3)
        ]
        results = {
            "model_name": text,
            "lm_eval_version": text,
            "chat_template_sha": text + name,
            "n-shot": {"sums": text},
            "config": {"limit": text, "model": text, "random_seed": text},
        }
        write_lm_eval(work / name, records, results=results)
    chosen = ("--metric", f"sums=acc,{text}")
    shown = work.worked("compare", "before", "after", *chosen, *QUICK, *ALL_OUTPUTS)
    assert_safe_for_a_terminal(shown.stdout)
    assert_safe_for_a_spreadsheet((work / "flips.csv").read_bytes().decode())
    assert_safe_for_a_terminal(work.worked("show", "before").stdout)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_samples_metadata_stay_text(work: Workplace, kind: str) -> None:
    text = HOSTILE[kind]
    Samples.from_rows(
        [{"item": 1, "score": 1.0, "status": text}],
        Meta(text, text, {"unnamed": {text: text}}, [text]),
    ).write(work / "s.parquet")
    assert_safe_for_a_terminal(work.worked("show", "s.parquet").stdout)
    shown = work.worked("compare", "s.parquet", "s.parquet", *QUICK)
    assert_safe_for_a_terminal(shown.stdout)


def test_a_megabyte_in_every_field_is_no_harm(work: Workplace) -> None:
    text = "x" * 2**20
    for name, score in (("before", 1), ("after", 0)):
        rows = [{**dict.fromkeys(FIELDS, text), "correct": score}]
        write_jsonl(work / f"{name}.jsonl", rows)
    shown = work.worked("compare", "before.jsonl", "after.jsonl", *QUICK, "--flips", "flips.csv")
    assert_safe_for_a_terminal(shown.stdout)
    assert_safe_for_a_spreadsheet((work / "flips.csv").read_text())


@pytest.mark.parametrize("choices", ["['a', 'b']", "[red]", "[", "[1, 2", "{}", "a|b"])
def test_choices_that_only_look_like_json_are_text_or_named(work: Workplace, choices: str) -> None:
    """Python writes a list into a CSV cell with single quotes."""
    write_csv(work / "run.csv", items([1, 0], choices=choices))
    result = work.run("show", "run.csv")
    if result.exit_code:
        says = ("run.csv row 1", "choices")
        assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)


def test_one_cluster_for_all_items_is_no_harm(work: Workplace) -> None:
    write_jsonl(work / "before.jsonl", items([1, 1, 0, 1], cluster="c"))
    write_jsonl(work / "after.jsonl", items([0, 1, 1, 1], cluster="c"))
    result = work.compared("before.jsonl", "after.jsonl")
    assert result.coverage.matched == 4
    assert "null" not in result.total.change.model_dump_json()


def test_markup_is_shown_as_it_is(work: Workplace) -> None:
    Samples.from_rows([{"task": "[b]t", "item": 1, "score": 1.0, "status": "[red]ok"}]).write(
        work / "s.parquet"
    )
    shown = work.worked("show", "s.parquet").stdout
    assert "[b]t" in shown
    assert "[red]ok" in shown


FILE_NAMES = [
    *("'; DROP TABLE x; --", "[red]", "[1]", "a*", "a?", "{a,b}", "%s $file", "=1+1", "\x1b[31m"),
    *("\u202e", "two\nlines", "~", "#", "\\", "-"),
]


@pytest.mark.parametrize("name", FILE_NAMES)
def test_any_file_name_is_read_as_it_is(work: Workplace, name: str) -> None:
    """Neighbours that a pattern in the name would find as well are left alone."""
    for suffix, write in (("csv", write_csv), ("jsonl", write_jsonl), ("parquet", write_parquet)):
        for neighbour in ("1", "a1", "a", "r"):
            write(work / f"{neighbour}.{suffix}", items([0] * 7))
        write(work / f"{name}.{suffix}", items([1, 0, 1]))
        found = forgetmap.read(f"{name}.{suffix}")
        assert (len(found), found.models) == (3, [name])
        shown = work.worked("convert", f"./{name}.{suffix}", f"./{name} out.parquet")
        assert_safe_for_a_terminal(shown.stdout)
    again = work.compared(f"./{name} out.parquet", f"./{name} out.parquet")
    assert again.coverage.items_before == 3


def test_a_samples_file_name_is_no_pattern(work: Workplace) -> None:
    for name, count in (("run[1]", 3), ("run1", 7), ("run*", 5)):
        write_jsonl(work / "run.jsonl", items([1] * count))
        work.worked("convert", "run.jsonl", f"{name}.parquet", "--quiet")
    for name, count in (("run[1]", 3), ("run1", 7), ("run*", 5)):
        found = work.compared(f"{name}.parquet", f"{name}.parquet")
        assert found.coverage.items_before == count


def test_a_file_name_that_is_not_utf8(work: Workplace) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    try:
        write_csv(work / name, items([1, 0]))
    except OSError as error:
        pytest.skip(f"this file system takes UTF-8 names only: {error}")
    result = work.run("compare", name, name, *QUICK, "--json", "map.json")
    if result.exit_code:
        assert_one_line(result.exit_code, result.stdout, result.stderr, (".csv",), 2, result)


def test_a_folder_for_temporary_files_with_quotes_in_its_name(
    work: Workplace, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "it's here").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(work / "it's here"))
    assert work.compared(*pair).coverage.matched == 4


@pytest.mark.parametrize("field", ["question", "answer", "id", "task", "model", "target"])
def test_lone_surrogates_are_no_traceback(work: Workplace, field: str) -> None:
    """JSON can carry halves of a character, and model output does."""
    for name, score in (("before", 1), ("after", 0)):
        records = items([score, 1])
        for record in records if field == "model" else records[:1]:
            record[field] = "half \ud83d"
        write_jsonl(work / f"{name}.jsonl", records)
    for flips in ("flips.csv", "flips.jsonl", "flips.parquet"):
        arguments = ("before.jsonl", "after.jsonl", *QUICK, "--json", "map.json", "--flips", flips)
        assert work.worked("compare", *arguments)


@pytest.mark.parametrize("field", ["doc", "target", "resps", "filtered_resps", "doc_id"])
def test_lone_surrogates_of_a_harness_are_no_traceback(work: Workplace, field: str) -> None:
    text = "half \udc00"
    nested = {"doc": {"question": text}, "resps": [[text]], "filtered_resps": [text]}
    value = nested.get(field, text)
    for name, score in (("before", 1.0), ("after", 0.0)):
        write_lm_eval(work / name, [lm_eval_record(0, score, **{field: value})])
    assert work.worked("compare", "before", "after", *QUICK, "--flips", "flips.csv")


@pytest.mark.parametrize("kind", HOSTILE)
def test_clean_leaves_nothing_that_a_terminal_would_obey(kind: str) -> None:
    assert_safe_for_a_terminal(clean(HOSTILE[kind], 600))
    assert "\n" not in clean(HOSTILE[kind])


@pytest.mark.parametrize(
    "record",
    [
        {"metrics": [1], "1": 1.0},
        {"metrics": [None]},
        {"metrics": "acc"},
        {"metrics": {"acc": 1}},
        {"metrics": [["acc"]]},
        {"filter": None},
        {"filter": ["a"]},
        {"prompt_hash": "-12"},
        {"prompt_hash": "zz"},
        {"prompt_hash": 5},
        {"doc": [1]},
        {"doc": 5},
        {"doc": None},
        {"doc_id": None},
        {"target": None},
        {"arguments": 5},
        {"arguments": [[]]},
        {"arguments": {"a": 3}},
        {"resps": 5},
        {"filtered_resps": 5},
        {"filtered_resps": [["x", "True"], ["y", "False"]]},
        {"filtered_resps": [[{}, "True"], [{}, "False"]]},
        {"scores_per_repeat": 5},
        {"scores_per_repeat": {"acc": 5}},
        {"scores_per_repeat": {"acc": [1, "x"]}},
        {"acc": {"nested": 1}},
        {"acc": [[]]},
    ],
)
def test_a_strange_harness_record_is_refused_at_its_line_or_read(
    work: Workplace, record: dict
) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0), {**lm_eval_record(1), **record}])
    for arguments in (("show", "run"), ("convert", "run", "out.parquet")):
        result = work.run(*arguments)
        if result.exit_code:
            assert_one_line(result.exit_code, result.stdout, result.stderr, (":2:",), 2, result)
