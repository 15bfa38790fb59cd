"""The study file: templates, names found on disk, tables, and one clear line for every fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forgetmap.base.errors import InputError
from forgetmap.study.file import Study
from forgetmap.study.init import write_study

if TYPE_CHECKING:
    from pathlib import Path


def load(folder: Path, text: str, name: str = "study.yaml") -> Study:
    (folder / name).write_text(text, encoding="utf-8")
    return Study.load(folder / name)


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("question,correct\nq,1\n", encoding="utf-8")


def test_a_template_stands_for_many_pairs(tmp_path: Path) -> None:
    study = load(
        tmp_path,
        """
defaults: {stage: SFT, mix: {code: 0.5}}
pairs:
  - before: runs/{family}-{size}/base
    after: runs/{family}-{size}/sft-{seed}
    for: {family: [a, b], size: [135M, 7e9], seed: [0, 1, 2]}
""",
    )
    assert len(study.pairs) == 12
    pair = study.pairs[3]
    assert pair.name == "a-7e9-0"
    assert pair.after == str(tmp_path / "runs/a-7e9/sft-0")
    assert pair.attributes == {
        "stage": "SFT", "mix.code": 0.5, "family": "a", "size": 7e9, "seed": 0,
    }  # fmt: skip
    assert study.pairs[0].attributes["size"] == 135e6


def test_names_without_values_are_found_on_disk(tmp_path: Path) -> None:
    touch(tmp_path, "a-1B/base.csv", "a-1B/sft-0.csv", "a-1B/sft-1.csv", "b-7B/sft-0.csv")
    study = load(
        tmp_path,
        "pairs:\n- {before: '{family}-{size}/base.csv', after: '{family}-{size}/sft-{seed}.csv'}",
    )
    assert [pair.name for pair in study.pairs] == ["a-1B-0", "a-1B-1", "b-7B-0"]
    assert study.pairs[2].before == str(tmp_path / "b-7B/base.csv")  # not there: told later
    assert study.pairs[1].attributes == {"family": "a", "size": 1e9, "seed": 1}


def test_stars_are_the_same_before_and_after(tmp_path: Path) -> None:
    touch(tmp_path, "x/base.csv", "x/after.csv", "y/base.csv", "y/after.csv", ".z/after.csv")
    study = load(tmp_path, "pairs:\n- {before: '*/base.csv', after: '*/after.csv'}")
    assert [pair.name for pair in study.pairs] == ["x", "y"]
    assert study.pairs[1].before == str(tmp_path / "y/base.csv")


def test_a_pattern_that_fits_nothing_is_told(tmp_path: Path) -> None:
    study = load(tmp_path, "pairs:\n- {before: a, after: b}\n- {before: a, after: 'none/*.csv'}\n")
    assert len(study.pairs) == 1
    assert study.notes == [f"{tmp_path / 'study.yaml'}:3: nothing fits none/*.csv"]
    with pytest.raises(InputError, match="names no pair that is there"):
        load(tmp_path, "pairs:\n- {before: a, after: 'none/*.csv'}\n")


def test_a_table_has_a_row_for_each_pair(tmp_path: Path) -> None:
    study = load(
        tmp_path,
        "before,after,family,size,new\na/base,a/{family},x,10k,airports sums\na/base,a/s,,7,\n",
        "study.csv",
    )
    first, second = study.pairs
    assert first.attributes == {"family": "x", "size": 10_000}
    assert first.new == ("airports", "sums")
    assert first.after == str(tmp_path / "a/x")
    assert second.attributes == {"size": 7}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pairs: []", r"study.yaml:1: pairs"),
        ("pair:\n- {before: a}", r"study.yaml:2: unknown key 'pair'; did you mean 'pairs'"),
        ("pairs:\n- {before: a}", r"study.yaml:2: a pair needs 'after'"),
        ("pairs:\n- {before: a, aftre: b}", r":2: a pair needs 'after'.*did you mean 'aftre'"),
        ("pairs:\n- {before: a, After: b}", r"unknown key 'After'; did you mean 'after'"),
        ("pairs:\n- {before: a, after: 3}", r":2: after: must be a text, not 3"),
        ("pairs:\n- {before: a, after: b}\n- {before: a, after: b}", r":3: .* occurs twice"),
        ("pairs:\n- {before: '{x}', after: b}", r":2: before: nothing says what {x} is"),
        ("pairs:\n- {before: a, after: 'b{}'}", r":2: after: {} needs a name"),
        ("pairs:\n- {before: '*', after: b}", r":2: before: must have as many \*"),
        ("pairs:\n- {before: a, after: '**/b'}", r":2: after: \*\* is not known"),
        ("pairs:\n- {before: a, after: b, size: .inf}", r":2: size: must be a number or a text"),
        ("pairs:\n- {before: a, after: b, size: [1]}", r":2: size: must be a number or a text"),
        ("pairs:\n- {before: a, after: b, when: 2024-01-01}", r"when: must be a number or a text"),
        ("pairs:\n- {before: a, after: b, for: {x: []}}", r":2: for: 'x' must be a list"),
        ("pairs:\n- {before: a, after: b, for: {name: [1]}}", r"'name' cannot be listed"),
        ("pairs:\n- {before: a, after: b, x: 1, for: {x: [1]}}", r"attribute and in 'for'"),
        (
            "pairs:\n- {before: a, after: b, name: n}\n- {before: a, after: c, name: n}",
            r":3: the n",
        ),
        (
            "pairs:\n- before: a\n  after: b\n  for: {x: &x [1, 2], y: *x}",
            r"aliases are not allowed",
        ),
    ],
)
def test_faults_are_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("before,after\n", "needs a row with names"),
        ("before,after\na\n", ":2: has 1 cells"),
        ("before,before\na,b\n", ":1: the column 'before' occurs twice"),
        ("before,x\na,b\n", ":2: a pair needs 'after'"),
        ('before,after\n"a,b\n', "is not CSV"),
    ],
)
def test_faults_of_tables(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load(tmp_path, text, "study.csv")


def test_a_product_is_counted_before_it_is_made(tmp_path: Path) -> None:
    many = ", ".join(map(str, range(1000)))
    with pytest.raises(InputError, match="more than 10,000 pairs"):
        load(
            tmp_path,
            f"pairs:\n- {{before: a, after: b, for: {{x: [{many}], y: [{many}], z: [{many}]}}}}",
        )


def test_a_file_is_made_from_a_folder(tmp_path: Path) -> None:
    touch(
        tmp_path,
        *("smol-135M/base.csv", "smol-135M/sft-seed0.csv", "smol-135M/sft-seed1.csv"),
        *("big-7B/before.csv", "big-7B/dpo-step500.csv", "big-7B/notes.md", "lone/x.csv"),
    )
    (tmp_path / "study.yaml").write_text(write_study(tmp_path), encoding="utf-8")
    study = Study.load(tmp_path / "study.yaml")
    assert [pair.attributes for pair in study.pairs] == [
        {"stage": "DPO", "steps": 500, "size": 7e9},
        {"stage": "SFT", "seed": 0, "size": 135e6},
        {"stage": "SFT", "seed": 1, "size": 135e6},
    ]
    with pytest.raises(InputError, match="--before WORD"):
        write_study(tmp_path / "lone")
    with pytest.raises(InputError, match="is not a folder"):
        write_study(tmp_path / "none")


def test_numbers_at_the_end_are_guessed_as_seeds(tmp_path: Path) -> None:
    touch(tmp_path, "a/base.csv", "a/anchor-0.csv", "a/anchor-1.csv", "a/lora-0.csv")
    touch(tmp_path, "b/base.csv", "b/llama-3.csv", "c/base.csv", "c/step-1.csv", "c/step-2.csv")
    text = write_study(tmp_path)
    assert "# seed is a guess too" in text
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    assert [pair.attributes for pair in Study.load(tmp_path / "study.yaml").pairs] == [
        {"seed": 0, "kind": "a-anchor"},
        {"seed": 1, "kind": "a-anchor"},
        {"seed": 0, "kind": "a-lora"},  # another kind: no replicate of the others
        {},  # a version, as nothing beside it differs in the number alone
        {"steps": 1},
        {"steps": 2},
    ]
    assert "seed" not in write_study(tmp_path / "b").partition("pairs:")[2]
    assert "seed is a guess" not in write_study(tmp_path / "b")


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    touch(tmp_path, "x: {y}/base.csv", "x: {y}/'a\nb.csv", "w/base.csv", 'w/"; - #\n- after.csv')
    text = write_study(tmp_path)
    assert "left out" in text
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    (pair,) = Study.load(tmp_path / "study.yaml").pairs
    assert pair.after == str(tmp_path / 'w/"; - #\n- after.csv')


# --- attributes from a JSON beside the log --------------------------------------------------------

_BESIDE = """
pairs:
  - before: base.csv
    after: '{method}-{seed}.csv'
    about: ['base.json', '{method}-{seed}.json']
    TAKE
    for: {method: [sft, rl], seed: [0]}
"""


def _write_json(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(text, encoding="utf-8")


def test_attributes_come_from_the_json_beside_a_log(tmp_path: Path) -> None:
    _write_json(tmp_path, base='{"size": "135M"}', sft_0='{"method": "x", "mix": {"code": 0.5}}')
    _write_json(tmp_path, rl_0='{"beta": 0.1, "old": "", "note": null}')
    study = load(tmp_path, _BESIDE.replace("TAKE", ""))
    assert not study.notes
    one, other = (pair.attributes for pair in study.pairs)
    assert one == {"size": 135e6, "mix.code": 0.5, "method": "sft", "seed": 0}  # the entry wins
    assert other == {"size": 135e6, "beta": 0.1, "method": "rl", "seed": 0}


def test_take_names_what_is_taken_and_a_missing_json_is_told(tmp_path: Path) -> None:
    _write_json(tmp_path, sft_0='{"rate": 1e-5, "losses": [1, 2], "seconds": 3.5}')
    study = load(tmp_path, _BESIDE.replace("TAKE", "take: [rate, rats]"))
    assert study.pairs[0].attributes == {"rate": 1e-5, "method": "sft", "seed": 0}
    assert [note.partition(":5: ")[2] or note.partition(":6: ")[2] for note in study.notes] == [
        f"about: {tmp_path / 'base.json'} is not there",
        f"about: {tmp_path / 'base.json'} is not there",
        f"about: {tmp_path / 'rl-0.json'} is not there",
        "take: no file has 'rats'",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"losses": [1]}', "'losses' is not a number or a text; list with 'take'"),
        ("[1]", "must hold one JSON object"),
        ("{", "is not valid JSON"),
        ('{"new": "x"}', ":5: about: 'new' has a meaning here"),
        ('{"rate": NaN}', ":5: about: must be a number or a text"),
    ],
)
def test_a_json_that_tells_no_attributes_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    _write_json(tmp_path, base="{}", sft_0=text, rl_0="{}")
    with pytest.raises(InputError, match=fault):
        load(tmp_path, _BESIDE.replace("TAKE", ""))
