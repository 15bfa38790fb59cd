"""Chosen items: known chances, unbiased totals, honest intervals, and logs that say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.evaluate.models import Reply, RequestGroup, plain_groups
from forgetmap.evaluate.prompts import Request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.forecast.build import forecast
from forgetmap.mitigate.forecast.sampling import (
    Line,
    choose,
    chosen_suite,
    draw,
    estimate,
    expected,
    inclusion_chances,
    read_chosen,
    sizes,
    weigh,
    write_chosen,
)
from forgetmap.mitigate.train.probes import as_policy, examine
from forgetmap.samples.table import Samples

ITEMS = 300


def suite() -> Suite:
    questions = tuple(
        Question("facts", str(n), f"What is number {n}?", "yes", ("yes", "no"))
        for n in range(ITEMS)
    )
    return Suite("facts", "1", (Task("facts", "Facts", lambda: questions),))


class Knowing:
    """A model whose confidence in the right option is what it is told."""

    fingerprint, warnings, is_chat = "", [], False

    def __init__(self, name: str, chances: np.ndarray) -> None:
        self.name, self.chances = name, chances
        self.fingerprint = name
        self.settings: dict[str, object] = {}

    def plan(self, requests: list[Request]) -> list[RequestGroup]:
        return plain_groups(len(requests), 50)

    def run(self, requests: list[Request], _hints: dict[str, object]) -> list[Reply]:
        numbers = [int(str(one.prompt).split("number ")[1].split("?")[0]) for one in requests]
        chances = np.clip(self.chances[numbers], 1e-6, 1 - 1e-6)
        return [Reply(likelihoods=(float(np.log(p)), float(np.log(1 - p)))) for p in chances]


@pytest.fixture(scope="module")
def before() -> np.ndarray:
    return np.random.default_rng(0).random(ITEMS)


@pytest.fixture(scope="module")
def after(before: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(ITEMS) < 0.3, before * 0.3, before)


@pytest.fixture(scope="module")
def risks(tmp_path_factory: pytest.TempPathFactory, before: np.ndarray) -> Path:
    folder = tmp_path_factory.mktemp("risks")
    evaluate(Knowing("before", before), suite(), folder / "before")
    forecast(folder / "before", out=folder / "risks.parquet")
    return folder / "risks.parquet"


@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=60), st.integers(1, 60))
def test_chances_add_up_to_the_budget_and_keep_the_order(values: list[float], budget: int) -> None:
    size = np.array(values)
    budget = min(budget, len(size))
    chances = inclusion_chances(size, budget)
    assert chances.sum() == pytest.approx(budget)
    assert ((chances > 0) & (chances <= 1)).all()
    assert (np.diff(chances[np.argsort(size)]) >= -1e-9).all()


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_a_draw_has_exactly_the_budget(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chances = inclusion_chances(rng.random(80) + 0.01, 23)
    assert draw(chances, rng).sum() == 23


def test_every_item_is_drawn_as_often_as_its_chance_says() -> None:
    rng = np.random.default_rng(0)
    chances = inclusion_chances(rng.random(30) ** 2 + 0.01, 8)
    seen = np.mean([draw(chances, rng) for _ in range(4000)], axis=0)
    assert np.abs(seen - chances).max() < 4 * np.sqrt(0.25 / 4000)


def test_totals_are_unbiased_and_intervals_hold_whatever_the_forecast_is_worth() -> None:
    rng = np.random.default_rng(4)
    many = 2000
    chance = rng.random(many)
    risk = chance * rng.beta(1, 8, many)
    loss = np.where(rng.random(many) < risk / chance, chance, 0.0)
    # A good forecast, and one that is worth nothing: its intervals are wide, and hold less often.
    for told, least in ((risk, 0.93), (rng.permutation(risk), 0.88)):
        chances = inclusion_chances(sizes(told, chance), 200)
        found = [
            estimate(
                loss[drawn], drawn, chances, expected(loss[drawn], drawn, chances, told, chance)
            )
            for drawn in (draw(chances, rng) for _ in range(400))
        ]
        values = np.array([one.value for one in found])
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - loss.mean()) < 3 * error
        held = np.mean([one.low <= loss.mean() <= one.high for one in found])
        assert held > least


def test_all_items_give_the_mean_and_its_plain_interval() -> None:
    values = np.random.default_rng(5).random(400)
    found = estimate(values, np.ones(400, bool), np.ones(400), Line(np.zeros(400), 1))
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(
        1.966 * values.std() / np.sqrt(400), rel=1e-3
    )


def test_what_lies_on_the_line_is_found_exactly_and_categories_add_up() -> None:
    rng = np.random.default_rng(6)
    chance, risk = rng.random(900), rng.random(900)
    chances = inclusion_chances(0.05 + risk, 150)
    drawn = draw(chances, rng)
    for noise in (0.0, 0.1):
        loss = 0.1 + 0.3 * chance + 0.5 * risk + noise * rng.random(900)
        line = expected(loss[drawn], drawn, chances, risk, chance)
        found = estimate(loss[drawn], drawn, chances, line)
        if not noise:
            assert found.value == pytest.approx(loss.mean(), abs=1e-9)
        first = np.arange(900) < 300
        parts = [estimate(loss[drawn], drawn, chances, line, inside) for inside in (first, ~first)]
        assert parts[0].value / 3 + 2 * parts[1].value / 3 == pytest.approx(found.value)


def test_a_gain_makes_no_loss_smaller(risks: Path, before: np.ndarray, tmp_path: Path) -> None:
    chosen = choose(risks, 90)
    fallen = np.where(np.arange(ITEMS) % 3 == 0, before * 0.2, before)
    risen = np.where(np.arange(ITEMS) % 3 == 1, (1 + before) / 2, fallen)
    lost = []
    for name, after in (("fallen", fallen), ("risen", risen)):
        evaluate(Knowing(name, after), chosen_suite(suite(), chosen), tmp_path / name)
        lost.append(weigh(chosen, risks.parent / "before", tmp_path / name).total)
    assert lost[0].lost == lost[1].lost
    assert lost[0].gained.value < lost[1].gained.value


def test_a_chosen_evaluation_says_so_and_compare_refuses_it(
    risks: Path, after: np.ndarray, tmp_path: Path
) -> None:
    chosen = choose(risks, 90, seed=3)
    evaluate(Knowing("after", after), chosen_suite(suite(), chosen), tmp_path / "part")
    write_chosen(tmp_path / "part", chosen)
    log = Samples.read(tmp_path / "part" / "samples.parquet")
    assert log.settings["chosen items"] == "90 of 300, drawn by risk"
    with pytest.raises(InputError, match="90 of 300, drawn by risk"):
        compare(risks.parent / "before", tmp_path / "part")
    back = read_chosen(tmp_path / "part")
    assert np.array_equal(back.inclusion, chosen.inclusion)
    whole = evaluate(Knowing("after", after), suite(), tmp_path / "whole").samples
    truth = compare(risks.parent / "before", whole).total.lost.high_end
    found = weigh(back, risks.parent / "before", tmp_path / "part")
    assert found.total.items == ITEMS
    assert found.total.asked == 90
    assert found.unanswered == 0
    assert found.total.lost.low <= truth <= found.total.lost.high


def test_missing_answers_hide_no_loss(risks: Path, after: np.ndarray, tmp_path: Path) -> None:
    """At the high end all of them were lost, however little the others lost."""
    chosen = choose(risks, 90, seed=3)
    answered = chosen.drawn & (np.arange(len(chosen.drawn)) % 2 == 0)
    part = chosen_suite(suite(), chosen._replace(drawn=answered))
    evaluate(Knowing("after", after), part, tmp_path / "part")
    found = weigh(chosen, risks.parent / "before", tmp_path / "part")
    left = chosen.drawn & ~answered
    assert found.unanswered == left.sum() > 0
    unknown = (1 / chosen.inclusion[left]).sum() / ITEMS
    assert found.total.lost.high >= min(1.0, found.total.lost.value + unknown)


def test_the_command_weighs_chosen_items(risks: Path, after: np.ndarray, tmp_path: Path) -> None:
    chosen = choose(risks, 90)
    evaluate(Knowing("after", after), chosen_suite(suite(), chosen), tmp_path / "part")
    write_chosen(tmp_path / "part", chosen)
    words = ["forecast", risks.parent / "before", "--risks", risks, "--check", tmp_path / "part"]
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert told.exit_code == 0, told.output
    assert "from 90 that were asked" in told.output


def test_a_probe_of_chosen_items_stands_for_all(
    risks: Path, before: np.ndarray, after: np.ndarray, tmp_path: Path
) -> None:
    chosen = choose(risks, 150)
    sides = [
        evaluate(Knowing(name, chances), chosen_suite(suite(), chosen), tmp_path / name).samples
        for name, chances in (("a", before), ("b", after))
    ]
    probe = examine(*sides, budget=as_policy(0.01), chosen=chosen)
    truth = np.maximum(before - after, 0).mean()
    assert probe.numbers["lost_low"] <= truth <= probe.numbers["lost_high"]
    assert probe.over
    assert not examine(*sides, budget=as_policy(0.5), chosen=chosen).over


def test_bad_budgets_and_other_suites_are_refused(risks: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ask them all"):
        choose(risks, ITEMS + 1)
    with pytest.raises(InputError, match="at least 2"):
        choose(risks, 1)
    other = Suite("other", "1", (Task("facts", "Facts", tuple),))
    with pytest.raises(InputError, match="not in the suite"):
        chosen_suite(other, choose(risks, 10))
    with pytest.raises(InputError, match="is not there"):
        read_chosen(tmp_path)
    alone = CliRunner().invoke(app, ["eval", "model", "--budget", "5"])
    assert alone.exit_code == 2
    assert "go together" in alone.output


def test_the_file_of_chosen_items_has_every_item_with_its_chance(
    risks: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    write_chosen(tmp_path, choose(risks, 50))
    table = pq.read_table(tmp_path / "chosen.parquet")
    assert table.num_rows == ITEMS
    assert table["inclusion"].type == pa.float64()
    assert sum(table["drawn"].to_pylist()) == 50


# --- leaning on the last check of all items -------------------------------------------------------


@pytest.fixture(scope="module")
def halfway(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Most of the way from before to after, with some luck on top."""
    noise = np.random.default_rng(7).normal(0, 0.02, ITEMS)
    return np.clip(before + 0.8 * (after - before) + noise, 0.001, 0.999)


@pytest.fixture(scope="module")
def seen(risks: Path, halfway: np.ndarray) -> Path:
    return evaluate(Knowing("halfway", halfway), suite(), risks.parent / "halfway").folder


def course(rng: np.random.Generator, many: int) -> tuple[np.ndarray, ...]:
    """Chances before, at a check of all, and now; and a forecast that is worth little."""
    before = rng.random(many)
    then = before * np.where(rng.random(many) < 0.3, rng.beta(1, 4, many), 1.0)
    now = np.clip(then + rng.normal(0, 0.3, many) * then * (1 - then), 0, 1)
    return before, then, now, before * 0.2


@pytest.mark.parametrize("worth", ["much", "nothing"])
def test_totals_are_unbiased_whatever_the_last_check_is_worth(worth: str) -> None:
    rng = np.random.default_rng(8)
    before, then, now, risk = course(rng, 3000)
    told = then if worth == "much" else rng.permutation(then)
    loss, known = np.maximum(before - now, 0), np.maximum(before - told, 0)
    chances = inclusion_chances(sizes(risk, before), 300)
    found = []
    for drawn in (draw(chances, rng) for _ in range(400)):
        line = expected(loss[drawn], drawn, chances, risk, before, known)
        found.append(estimate(loss[drawn], drawn, chances, line))
    values = np.array([one.value for one in found])
    assert abs(values.mean() - loss.mean()) < 3 * values.std() / np.sqrt(len(values))
    held = np.mean([one.low <= loss.mean() <= one.high for one in found])
    assert held > (0.93 if worth == "much" else 0.88)


def test_the_last_check_makes_intervals_narrower() -> None:
    rng = np.random.default_rng(9)
    before, then, now, risk = course(rng, 3000)
    loss, widths = np.maximum(before - now, 0), []
    chances = inclusion_chances(sizes(risk, before), 300)
    drawn = draw(chances, rng)
    for known in ([], [np.maximum(before - then, 0)]):
        line = expected(loss[drawn], drawn, chances, risk, before, *known)
        found = estimate(loss[drawn], drawn, chances, line)
        widths.append(found.high - found.low)
    assert widths[1] < 0.7 * widths[0]


def test_what_was_lost_by_then_is_found_exactly() -> None:
    rng = np.random.default_rng(10)
    before, then, _, risk = course(rng, 900)
    known = np.maximum(before - then, 0)
    chances = inclusion_chances(sizes(risk, before), 150)
    drawn = draw(chances, rng)
    loss = 0.01 + 1.1 * known
    line = expected(loss[drawn], drawn, chances, risk, before, known)
    assert line.slopes == 5
    found = estimate(loss[drawn], drawn, chances, line)
    assert found.value == pytest.approx(loss.mean(), abs=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_nothing_changed_is_known_exactly_from_the_last_check(seed: int) -> None:
    """Whatever was lost by then: if it is all that is lost now, the draw adds no doubt."""
    rng = np.random.default_rng(seed)
    before, then, _, risk = course(rng, 400)
    lost = np.maximum(before - then, 0)
    chances = inclusion_chances(sizes(risk, before), 80)
    drawn = draw(chances, rng)
    found = estimate(
        lost[drawn], drawn, chances, expected(lost[drawn], drawn, chances, risk, before, lost)
    )
    assert found.value == pytest.approx(lost.mean(), abs=1e-9)


@pytest.fixture(scope="module")
def part(risks: Path, after: np.ndarray) -> Path:
    """The model after, asked 90 chosen items."""
    folder = risks.parent / "part"
    chosen = choose(risks, 90)
    evaluate(Knowing("after", after), chosen_suite(suite(), chosen), folder)
    write_chosen(folder, chosen)
    return folder


def test_totals_lean_on_a_check_of_all_items(
    risks: Path, seen: Path, part: Path, before: np.ndarray, after: np.ndarray
) -> None:
    sides = read_chosen(part), risks.parent / "before", part
    wide, found = weigh(*sides).total.lost, weigh(*sides, seen).total.lost
    truth = np.maximum(before - after, 0).mean()
    assert found.low <= truth <= found.high
    assert found.high - found.low < wide.high - wide.low


def test_with_a_last_check_too_a_gain_makes_no_loss_smaller(
    risks: Path, seen: Path, before: np.ndarray, tmp_path: Path
) -> None:
    chosen = choose(risks, 90)
    fallen = np.where(np.arange(ITEMS) % 3 == 0, before * 0.2, before)
    risen = np.where(np.arange(ITEMS) % 3 == 1, (1 + before) / 2, fallen)
    lost = []
    for name, now in (("fallen", fallen), ("risen", risen)):
        evaluate(Knowing(name, now), chosen_suite(suite(), chosen), tmp_path / name)
        lost.append(weigh(chosen, risks.parent / "before", tmp_path / name, seen).total)
    assert lost[0].lost == lost[1].lost
    assert lost[0].gained.value < lost[1].gained.value


def test_with_a_last_check_too_missing_answers_hide_no_loss(
    risks: Path, seen: Path, after: np.ndarray, tmp_path: Path
) -> None:
    chosen = choose(risks, 90)
    answered = chosen.drawn & (np.arange(len(chosen.drawn)) % 2 == 0)
    asked = chosen_suite(suite(), chosen._replace(drawn=answered))
    evaluate(Knowing("after", after), asked, tmp_path / "part")
    found = weigh(chosen, risks.parent / "before", tmp_path / "part", seen)
    left = chosen.drawn & ~answered
    unknown = (1 / chosen.inclusion[left]).sum() / ITEMS
    assert found.total.lost.high >= min(1.0, found.total.lost.value + unknown)


def test_a_last_check_may_lack_items(risks: Path, seen: Path, part: Path) -> None:
    log = Samples.read(seen / "samples.parquet")
    table = pa.Table.from_batches(log.to_batches())
    items = table["item"].to_numpy()
    some = Samples(table.filter(pa.array(items < np.sort(np.unique(items))[ITEMS // 2])), log.meta)
    found = weigh(read_chosen(part), risks.parent / "before", part, some).total.lost
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_all_items_can_be_asked_and_say_nothing_of_a_draw(risks: Path) -> None:
    chosen = choose(risks, None)
    assert chosen.drawn.all()
    assert (chosen.inclusion == 1).all()
    assert chosen_suite(suite(), chosen).chosen == ""


def test_a_last_check_that_is_none_is_refused(risks: Path, seen: Path, part: Path) -> None:
    sides = read_chosen(part), risks.parent / "before", part
    with pytest.raises(InputError, match="90 of 300, drawn by risk"):
        weigh(*sides, part)
    other = Samples.from_rows([{"item": 1, "score": 1.0, "metric": "acc", "task": "other"}])
    with pytest.raises(InputError, match="has none of the items"):
        weigh(*sides, other)
    base, run = str(risks.parent / "before"), CliRunner().invoke
    alone = run(app, ["forecast", base, "--seen", "log"])
    assert alone.exit_code == 2
    assert "needs --check" in alone.output
    check = ["forecast", base, "--risks", str(risks), "--check"]
    whole = run(app, [*check, str(seen), "--seen", base])
    assert whole.exit_code == 2
    assert "asked all items" in whole.output
    leaning = run(app, [*check, str(part), "--seen", str(seen)])
    assert leaning.exit_code == 0, leaning.output
    assert "from 90 that were asked" in leaning.output
