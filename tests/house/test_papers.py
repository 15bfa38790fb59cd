"""The second study: its plan, its rule for a verdict, and that each number comes from its logs."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base.errors import InputError
from forgetmap.base.jobs import Job
from forgetmap.samples.table import TEXT_COLUMNS
from forgetmap.stats.estimate import Estimate
from places import ROOT

PAPERS = ROOT / "examples" / "papers"
PAGE = ROOT / "docs" / "explanation" / "papers.md"
SCRIPTS = (
    "plan",
    "claims",
    "cells",
    "results",
    "guessing",
    "figure",
    "compact",
    "materials",
    "collect",
    "work",
)
SETTINGS = (
    *("SmolLM2-135M", "Gemma 3 270M", "Qwen2.5-Coder-0.5B", "Qwen2.5-Coder-1.5B"),
    *("135M and 0.5B", "he 0.5B model", "the 1.5B model", "48 of its 126 trainings and merges"),
    *("400 of each subject", "14,042 items"),
    *(
        "up to 500 steps",
        "all 200 steps",
        "for 50 steps",
        "32 short examples",
        "2,000 towns",
        "80 % of other towns",
        "20 steps",
    ),
    *(
        "95 % interval",
        "above -5 points",
        "limit of -5 points",
        "within 5 points",
        "arXiv:2603.12163",
        "arXiv:2603.06610",
        "arXiv:2510.17776",
    ),
)
"""Numbers of the page that say how it was done, not what came out."""


@pytest.fixture(scope="module")
def papers() -> Iterator[SimpleNamespace]:
    """The scripts of the study; other scripts have the same names, so they do not stay."""
    before, path = dict(sys.modules), list(sys.path)
    sys.path[:0] = [str(PAPERS), str(PAPERS.parent)]
    for name in SCRIPTS:
        sys.modules.pop(name, None)
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in SCRIPTS})
    for name in SCRIPTS:
        sys.modules.pop(name, None)
    sys.modules.update({name: before[name] for name in SCRIPTS if name in before})
    sys.path[:] = path


def test_the_plan_has_what_the_papers_ask(papers: SimpleNamespace) -> None:
    plan = papers.plan.Plan.load(PAPERS / "plan.yaml")
    full = plan.trainings(plan.settings["full"])
    trained = [one for one in full if one.entry.recipe]
    assert len(trained) >= 60
    assert len({one.name for one in full}) == len(full)
    assert len(plan.settings["full"].seeds) >= 3
    assert {one.entry.recipe for one in trained} == {*papers.plan.RECIPES, papers.plan.MODES}
    names = [one.name for one in full]
    for one in full:  # what a training begins with is trained before it
        assert not one.parent or names.index(one.parent) < names.index(one.name)
    readme = (PAPERS / "README.md").read_text()
    for name, setting in plan.settings.items():
        row = rf"\| `{name}` \| [^|]+ \| {len(plan.trainings(setting))} \|"
        assert re.search(row, readme), name
    tiny = plan.trainings(plan.settings["tiny"])
    assert {one.entry.key for one in tiny} == set(plan.entries), "every kind is tried"


def test_every_claim_names_kinds_that_are_trained(papers: SimpleNamespace) -> None:
    plan = papers.plan.Plan.load(PAPERS / "plan.yaml")
    for claim in papers.claims.CLAIMS:
        known = plan.models if claim.size else plan.entries
        assert {claim.one, claim.other} <= set(known), claim.text
        assert not claim.size or claim.by in plan.entries
        one, other = (plan.models.get(name) for name in (claim.one, claim.other))
        assert claim.families == bool(one and other and one.family != other.family), claim.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{data: a, method: b}", "a-b: is either a training with a recipe or a merge of one"),
        ("{data: a, method: b, recipe: sgd}", "a-b: recipe sgd: known are sft, dpo"),
        ("{data: a, method: b, recipe: sft, start: x-y}", "a-b: no training is called x-y"),
        ("{data: a, method: b, merge: linear}", "a-b: is either a training with a recipe or a"),
    ],
)
def test_a_plan_says_what_is_wrong(
    papers: SimpleNamespace, tmp_path: Path, change: str, message: str
) -> None:
    text = f"models: {{}}\nquestions: {{q: [{change}]}}\nsettings: {{}}\n"
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        papers.plan.Plan.load(tmp_path / "plan.yaml")


def test_one_rule_decides(papers: SimpleNamespace) -> None:
    def found(low: float, high: float) -> Estimate:
        return Estimate(value=(low + high) / 2, low=low, high=high)

    decided = papers.claims.decided
    assert decided("less", found(-0.03, -0.01), 3) == "confirmed"
    assert decided("more", found(-0.03, -0.01), 3) == "refuted"
    assert decided("not reliably", found(0.01, 0.03), 3) == "confirmed"
    assert decided("not reliably", found(-0.03, -0.01), 3) == "cannot tell; it was the other way"
    assert decided("less", found(-0.03, 0.01), 3) == "cannot tell"
    assert decided("less", found(-0.03, -0.01), 2) == "cannot tell; it was so"
    may_have = "cannot tell; what lost less may have learned less"
    assert decided("less", found(-0.03, -0.01), 3, found(-0.2, 0.1)) == may_have
    assert decided("less", found(0.01, 0.03), 3, found(-0.1, 0.2)) == may_have
    assert decided("less", found(-0.03, -0.01), 3, found(-0.049, 0.1)) == "confirmed"
    assert decided("less", found(0.01, 0.03), 3, found(-0.1, 0.049)) == "refuted"
    assert decided("less", found(0.01, 0.03), 3, found(-0.2, -0.1)) == "refuted"
    for learned in (found(-0.2, -0.1), found(0.1, 0.2)):
        lost = found(-0.03, -0.01) if learned.high < 0 else found(0.01, 0.03)
        assert decided("less", lost, 3, learned) == "cannot tell; what lost less learned less"
    guessed = "cannot tell; it may be guessing"
    assert decided("less", found(-0.03, -0.01), 3, sure=found(-0.02, 0.01)) == guessed
    assert decided("less", found(-0.03, -0.01), 3, sure=found(0.01, 0.02)) == guessed
    assert decided("more", found(0.01, 0.03), 3, sure=found(-0.01, 0.02)) == guessed
    assert decided("more", found(0.01, 0.03), 3, sure=found(0.001, 0.02)) == "confirmed"
    beside = SimpleNamespace(more_lost=found(-0.03, -0.01), more_right=None)
    [claim] = [one for one in papers.claims.CLAIMS if one.one == "towns-anchor-low-rate"]
    assert claim.verdict(beside, found(-0.02, -0.01), 3, "full") == "confirmed"
    assert claim.verdict(beside, found(-0.02, 0.01), 3, "full") == guessed
    assert claim.verdict(beside, None, 3, "full") == "cannot tell; it was so"
    [claim] = [one for one in papers.claims.CLAIMS if one.late == ("small",)]
    assert claim.verdict(beside, found(-0.02, -0.01), 3, "full") == "confirmed"
    assert claim.verdict(beside, found(-0.02, -0.01), 3, "small") == "cannot tell; it was so"
    [claim] = [one for one in papers.claims.CLAIMS if one.families and not one.late]
    more = SimpleNamespace(more_lost=found(0.01, 0.03), more_right=None)
    assert claim.verdict(more, found(0.01, 0.03), 3, "full") == "cannot tell; it was so"
    assert papers.claims.near(0.25, found(0.24, 0.27), 3) == "confirmed"
    assert papers.claims.near(0.25, found(0.26, 0.301), 3) == "cannot tell"
    assert papers.claims.near(0.25, found(0.301, 0.4), 3) == "refuted"
    assert papers.claims.near(0.25, found(0.1, 0.4), 3) == "cannot tell"
    so, other = "cannot tell; it was so", "cannot tell; it was the other way"
    assert papers.claims.apart(found(0.01, 0.02), found(0.03, 0.04)) == so
    assert papers.claims.apart(found(0.03, 0.04), found(0.01, 0.02)) == other
    assert papers.claims.apart(found(0.01, 0.04), found(0.03, 0.06)) == "cannot tell"
    assert papers.claims.together([so, other, "cannot tell"]) == "cannot tell"
    assert papers.claims.together([so, so]) == so


def test_what_may_be_guessing_is_left_out_item_by_item(
    papers: SimpleNamespace, tmp_path: Path
) -> None:
    def log(name: str, *options: list[float]) -> Path:
        rows = {
            "task": ["old"] * len(options) + ["taught"],
            "item": [*range(len(options)), 0],
            "option_probabilities": [*options, [1.0, 0.0]],
            "right_option": [0] * len(options) + [1],
        }
        pq.write_table(pa.table(rows), tmp_path / name)
        return tmp_path / name

    before = log("before", [0.25, 0.75, 0.0], [1.0, 0.0, 0.0], [0.9, 0.1])
    guessed = log("guessed", [0.0, 0.25, 0.75], [1.0, 0.0, 0.0], [0.9, 0.1])
    forgot = log("forgot", [0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.4, 0.6])
    sure = papers.guessing.sure_losses
    churn = 0.75 * 1.5 * 0.75 / 2  # what is wrong, of 3 options, 3/4 of it on another one
    of_guess = sure(before, guessed, {"taught"})
    assert of_guess == pytest.approx({("old", 0): 0.25 - churn, ("old", 1): 0, ("old", 2): 0})
    lost = sure(before, forgot, {"taught"})
    assert lost == pytest.approx({("old", 0): 0, ("old", 1): 1, ("old", 2): 0.5})
    found = papers.guessing.surely_more([lost, lost], [of_guess, of_guess])
    assert found.value == pytest.approx((1.5 - (0.25 - churn)) / 3)
    assert found.low < found.value < found.high


def test_without_guessing_a_difference_is_that_of_the_low_ends(papers: SimpleNamespace) -> None:
    cells = papers.cells.read_tables((PAPERS / "results.md").read_text())
    kinds = cells["kinds"]
    for name, row in cells["compared"].items():
        sides = [f"{name.split()[0]} {side}" for side in name.split(" ", 1)[1].split(" beside ")]
        lows, highs = (
            [float(papers.cells.NUMBER.findall(kinds[side]["lost"])[at]) for side in sides]
            for at in (0, 1)
        )
        uneven = len({kinds[side]["trainings"] for side in sides}) > 1
        two_models = len({side.split()[1] for side in sides}) > 1
        if row["without guessing"] == "none" or "domain-pretrained" in name or uneven or two_models:
            continue  # right and wrong alone; or asked in two sittings, or two models: other items
        for ends, column in ((lows, "without guessing"), (highs, "more lost")):
            told = float(papers.cells.NUMBER.findall(row[column])[0])
            assert told == pytest.approx(ends[0] - ends[1], abs=0.16), (name, column)


def test_no_empty_interval_is_told_as_a_sure_one() -> None:
    for path in (PAPERS / "results.md", PAGE):
        claims = path.read_text().split("| claim | whose |")[1].split("\n\n")[0]
        assert "(0.0 to 0.0)" not in claims


def test_the_picture_has_every_kind_with_its_numbers(
    papers: SimpleNamespace, tmp_path: Path
) -> None:
    results = (PAPERS / "results.md").read_text()
    rows = papers.figure.read_kinds(results)
    cells = papers.cells.read_tables(results)["kinds"]
    assert [f"{row.group} {row.name}" for row in rows] == list(cells)
    for row, cell in zip(rows, cells.values(), strict=True):
        surely, at_most, low, high = row.lost
        assert cell["lost"] == f"{surely} to {at_most} ({low} to {high})"
        assert cell["new right"] == "{} to {}".format(*row.right)
    papers.figure.draw(results, tmp_path / "kinds.svg")
    assert (tmp_path / "kinds.svg").read_bytes().startswith(b"<?xml")
    assert papers.results.FIGURE.is_file()


def test_no_text_of_a_benchmark_is_passed_on() -> None:
    logs = list((PAPERS / "logs").rglob("*.parquet"))
    assert logs
    for path in logs:
        columns = [*TEXT_COLUMNS, "item_ref"]
        held = pq.read_table(path, columns=columns)
        assert all(held[name].null_count == len(held) for name in columns), path


def test_the_tables_and_the_page_come_out_of_the_logs(
    papers: SimpleNamespace, tmp_path: Path
) -> None:
    made = papers.results.write_results(papers.results.Results.load(PAPERS, tmp_path))
    assert made == (PAPERS / "results.md").read_text(), "run: python examples/papers/results.py"
    assert papers.results.page(made) == PAGE.read_text(), "run: python examples/papers/results.py"


def test_the_page_counts_what_was_trained(papers: SimpleNamespace) -> None:
    plan = papers.plan.Plan.load(PAPERS / "plan.yaml")
    planned = {one.name for one in plan.trainings(plan.settings["full"])}
    done = {path.stem for path in (PAPERS / "logs" / "full").glob("*-[0-9].json")}
    assert done <= planned
    words = f"{len(done)} of its {len(planned)} trainings and merges"
    assert words in SETTINGS
    assert words in " ".join(PAGE.read_text().split())


def test_only_three_trainings_decide_a_claim(papers: SimpleNamespace) -> None:
    results = (PAPERS / "results.md").read_text()
    cells = papers.cells.read_tables(results, {"claims": 3})  # a row for each setting
    assert len(cells["claims"]) > len(papers.claims.CLAIMS)
    late = {claim.text: claim.late for claim in papers.claims.CLAIMS if claim.late}
    assert len(late) == 4
    assert "Four rows of claims were added after scores" in (PAPERS / "README.md").read_text()
    for name, row in cells["claims"].items():
        if row["verdict"] in ("confirmed", "refuted"):
            assert int(row["trainings a side"]) >= 3, name
            setting = row["what we found"].partition(":")[0]
            assert not any(text in name and setting in seen for text, seen in late.items()), name


def test_at_equal_learning_intervals_over_trainings_alone_decide_nothing(
    papers: SimpleNamespace,
) -> None:
    def lost(recipe: str, low: float) -> SimpleNamespace:
        found = Estimate(value=low + 0.01, low=low, high=low + 0.02)
        return SimpleNamespace(value=recipe, interval=found)

    names = ["run-0", "run-1", "run-2"]
    curves = [
        SimpleNamespace(start="small: sums", value=recipe, points=[SimpleNamespace(pairs=pairs)])
        for recipe, pairs in (("grpo", names), ("sft", [*names, "more"]))
    ]
    level = SimpleNamespace(
        start="small: sums", learned=0.3, methods=[lost("grpo", 0.01), lost("sft", 0.06)]
    )
    trade = SimpleNamespace(equal=[level], curves=curves)
    answers = SimpleNamespace(answers=SimpleNamespace(trade_off=trade))
    of = SimpleNamespace(result=answers)
    told = {row[0]: row[3:] for row in papers.results._equal_claims(of)}
    row = told["... at equal learning: GRPO and supervised training"]
    assert row == ["3", "cannot tell; it was so"]
    assert told["... at equal learning: SDFT and supervised training"] == ["0", "cannot tell"]


def test_more_trainings_do_not_make_shared_draws_of_texts_more_certain(
    papers: SimpleNamespace,
) -> None:
    def told(ends: list[float]) -> SimpleNamespace:
        parts = {"model": "m", "share": 0.25, "limit": 0.1, "sampled": 400}
        runs = {f"m-{at}": {**parts, "old_mass": {"9": end}} for at, end in enumerate(ends)}
        return SimpleNamespace(told=runs)

    alone, alike, none = (
        next(papers.results._masses(told(ends))) for ends in ([0.1], [0.1] * 3, [0.0] * 3)
    )
    reach = 1.966 * (0.1 * 0.9 / 400) ** 0.5
    for *_, count, mass in (alone, alike):
        assert (mass.low, mass.high) == pytest.approx((0.1 - reach, 0.1 + reach), abs=1e-4), count
    assert none[-1].high == pytest.approx(1.966 / 400, abs=1e-4)


def test_the_old_mass_by_theory_counts_the_tokens_that_are_learned(
    papers: SimpleNamespace,
) -> None:
    def tokenizer(texts: list[str]) -> dict[str, list[list[str]]]:
        return {"input_ids": [[*text] for text in texts]}

    rows = [{"text": "abc"}, {"text": "abcde"}]  # all but the first token, and the end
    assert papers.work.learned(tokenizer, rows) == 4
    logs = list((PAPERS / "logs" / "small").glob("*-modes-*.json"))
    assert logs
    for path in logs:
        told = json.loads(path.read_text())
        share, new = told["share"], told["new_tokens"]
        old = share / told.get("old_tokens", new)
        assert told["limit"] == pytest.approx(old / (old + (1 - share) / new)), path.name


def test_answers_of_a_run_that_was_trained_again_are_scored_again(
    papers: SimpleNamespace, tmp_path: Path
) -> None:
    answers, scored = tmp_path / "responses.jsonl", tmp_path / "scores.parquet"
    answers.touch()
    assert not papers.collect._is_newer(scored, answers)
    scored.touch()
    assert papers.collect._is_newer(scored, answers)
    os.utime(answers, (2e9, 2e9))
    assert not papers.collect._is_newer(scored, answers)


def test_every_number_of_the_page_is_a_cell(papers: SimpleNamespace) -> None:
    def loose(text: str) -> list[str]:
        text = re.sub(r"\]\(\S*?\)|\{\{\w+\}\}", "", papers.cells.CELL.sub("", text))
        for words in SETTINGS:
            text = text.replace(words, "")
        return re.findall(r".{0,40}(?<![\w.])\d[\d,.]*.{0,20}", text)

    text = (PAPERS / "papers.in.md").read_text()
    assert not loose(text)
    plan = papers.plan.Plan.load(PAPERS / "plan.yaml")
    planned = len(plan.trainings(plan.settings["full"]))
    done = len(list((PAPERS / "logs" / "full").glob("*-[0-9].json")))
    assert f"{done} of its {planned} trainings and merges" in text
    setting = {name: plan.settings[name] for name in ("full", "small")}
    until = plan.entries["towns-sft-until"]
    looks = {
        name: round(one.steps * until.steps) // papers.work.LOOKS_UNTIL
        for name, one in setting.items()
    }
    assert looks == {"full": 20, "small": 2}
    assert "every 20 steps in `full`, and every second step in `small`" in text
    compared = {
        name: len(range(0, asked, max(1, asked // papers.work.COMPARED)))
        for name, one in setting.items()
        for asked in [len(one.new) * one.asked_to_choose]
    }
    assert compared == {"full": 24, "small": 40}
    assert [len(one.new) for one in setting.values()] == [4, 1]
    assert "these are forty questions" in text
    assert "they are twenty-four, and only a quarter" in text
    assert f"above -{100 * papers.claims.AS_MUCH:.0f} points" in text
    assert f"within {100 * papers.claims.NEAR:.0f} points" in text
    assert loose(text + " It lost 9.1 % here.")
    told = papers.cells.fill_page("{kinds/k a/lost} {~kinds/k a/lost}", KINDS)
    assert told == "9.1 8.6 to 9.7\n"


KINDS = "# T\n\n## Kinds\n\n| kind | lost |\n| --- | --- |\n| k a | 9.1 (8.6 to 9.7) |\n"


def test_what_does_not_fit_is_the_least_important() -> None:
    sys.path[:0] = [str(PAPERS), str(PAPERS.parent)]
    try:
        from fitting import fitting  # type: ignore[import-not-found]
    finally:
        del sys.path[:2]
    jobs = {
        "base": Job("base", print),
        "long": Job("long", print, ("base",)),
        "other": Job("other", print),
        "last": Job("last", print, ("other",)),
    }
    seconds = {"base": 10.0, "long": 100.0, "other": 10.0, "last": 10.0}
    assert fitting(jobs, list(jobs), seconds, 200.0) == list(jobs)
    assert fitting(jobs, list(jobs), seconds, 40.0) == ["base", "other", "last"]
    assert fitting(jobs, list(jobs), seconds, 25.0) == ["base", "other"]
    assert fitting(jobs, list(jobs), seconds, 5.0) == []
