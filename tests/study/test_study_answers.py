"""What many pairs say together: made studies with known truth, and simulated claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forgetmap.stats.slopes import fit_slope, mean_over
from forgetmap.stats.tests import holm
from forgetmap.study import answers
from forgetmap.study.build import run_study
from forgetmap.study.items import ItemTable, differences
from forgetmap.study.slopes import find_slopes, slope_words
from forgetmap.study.units import Unit
from study_logs import lose, write_log, write_made_study

if TYPE_CHECKING:
    from pathlib import Path

    from forgetmap.study.result import StudyResult


def test_ranks_say_what_cannot_be_told_apart(tmp_path: Path) -> None:
    shares = {"a": 0.30, "b": 0.02, "c": 0.02, "d": 0.025}
    board = run_study(write_made_study(tmp_path, shares, items=1000)).answers.leaderboard
    assert board[-1].name == "a"
    assert (board[-1].best, board[-1].worst) == (4, 4)
    for row in board[:3]:
        assert (row.best, row.worst) == (1, 3)
    assert [row.rank for row in board] == [1, 2, 3, 4]


def test_equal_pairs_share_all_ranks(tmp_path: Path) -> None:
    shares = {f"p{number}": 0.1 for number in range(6)}
    board = run_study(write_made_study(tmp_path, shares)).answers.leaderboard
    assert {(row.best, row.worst) for row in board} == {(1, 6)}


def made(folder: Path, losses: dict[tuple[str, float, int], float]) -> StudyResult:
    """A study by (family, size, seed) -> share lost."""
    rng = np.random.default_rng(3)
    lines = ["deterministic: true", "pairs:"]
    for family in dict.fromkeys(key[0] for key in losses):
        before = rng.random(400) < 0.7
        write_log(folder / family / "base.parquet", before)
        for (name, size, seed), share in losses.items():
            if name == family:
                log = f"{family}/{size:g}-{seed}.parquet"
                write_log(folder / log, lose(before, share, rng))
                lines.append(
                    f"- {{before: {family}/base.parquet, after: {log}, family: {family}, "
                    f"size: {size:g}, seed: {seed}}}"
                )
    (folder / "study.yaml").write_text("\n".join(lines), encoding="utf-8")
    return run_study(folder / "study.yaml")


def test_a_known_slope_comes_back(tmp_path: Path) -> None:
    losses = {
        (family, 2.0**step, seed): start - 0.02 * step + 0.005 * seed + 0.005 * (step % part == 0)
        for family, start, part in (("x", 0.2, 2), ("y", 0.3, 3))
        for step in (1, 2, 3, 4)
        for seed in (0, 1)
    }
    result = made(tmp_path, losses)
    slopes = {(slope.attribute, slope.within): slope for slope in result.answers.slopes}
    assert set(slopes) == {("size", within) for within in (None, "family", "x", "y")}
    within = slopes["size", "family"]
    assert within.per_doubling.value == pytest.approx(-0.02, abs=0.002)
    assert within.per_doubling.high < 0
    assert (within.units, within.unit) == (8, "pairs, replicates as one")
    assert slopes["size", None].unit == "families"
    claim = next(claim for claim in result.answers.claims if "within families" in claim.text)
    assert claim.text == "lost falls by 1.92 points each time size doubles within families"
    assert claim.claimed


def test_replicates_are_pooled_over_trainings_and_items(tmp_path: Path) -> None:
    shares = (0.05, 0.10, 0.15)
    result = made(tmp_path, {("x", 1.0, seed): share for seed, share in enumerate(shares)})
    (pooled,) = result.answers.replicates
    assert pooled.lost.value == pytest.approx(0.1)
    assert pooled.deviation == pytest.approx(0.05)
    trainings = mean_over(shares).interval
    assert trainings is not None
    assert pooled.lost.low <= max(0, trainings.low)
    assert pooled.lost.high > trainings.high - 0.02
    assert pooled.lost.high - 0.1 > 0.05  # three trainings say little, however many items
    assert pooled.unit == "trainings and items"


def test_levels_and_their_differences(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = rng.random(500) < 0.7
    write_log(tmp_path / "base.parquet", before)
    lines = ["deterministic: true", "pairs:"]
    for stage, share in (("SFT", 0.2), ("RL", 0.05)):
        for number in range(5):
            log = f"{stage}-{number}.parquet"
            write_log(tmp_path / log, lose(before, share + 0.004 * number, rng))
            lines.append(f"- {{before: base.parquet, after: {log}, stage: {stage}}}")
    (tmp_path / "study.yaml").write_text("\n".join(lines), encoding="utf-8")
    found = run_study(tmp_path / "study.yaml").answers
    assert {(level.value, level.units) for level in found.levels} == {("SFT", 5), ("RL", 5)}
    (claim,) = found.claims
    assert claim.text == "stage: SFT loses 15.0 points more than RL"
    assert claim.claimed
    assert not found.replicates  # pairs without a seed are no replicates


def test_trainings_of_two_kinds_are_compared_over_seeds(tmp_path: Path) -> None:
    losses = {("x", 1.0, seed): 0.05 + 0.005 * seed for seed in range(4)}
    losses |= {("y", 1.0, seed): 0.2 + 0.005 * seed for seed in range(4)}
    (claim,) = made(tmp_path, losses).answers.claims
    assert claim.text == "family: y loses 15.0 points more than x (size 1)"
    assert claim.unit == "trainings, on these items"
    assert claim.claimed


def test_what_follows_from_an_attribute_does_not_hide_it(tmp_path: Path) -> None:
    """Every family has one size: both differ, and that is one statement, not none or two."""
    losses = {("x", 1.0, seed): 0.05 + 0.005 * seed for seed in range(4)}
    losses |= {("y", 7.0, seed): 0.2 + 0.005 * seed for seed in range(4)}
    (claim,) = made(tmp_path, losses).answers.claims
    assert claim.text == "family (with size): y loses 15.0 points more than x"
    assert claim.unit == "trainings, on these items"


def test_kinds_that_are_alike_in_all_else_are_matched(tmp_path: Path) -> None:
    sizes = (1.0, 3.0)
    losses = {("x", size, 0): 0.1 * size for size in sizes}
    losses |= {("y", size, 0): 0.1 * size + 0.05 + 0.01 * (size > 1) for size in sizes}
    claims = made(tmp_path, losses).answers.claims
    matched = next(claim for claim in claims if claim.text.startswith("family"))
    assert matched.unit == "pairs matched in all else"
    assert matched.estimate.value == pytest.approx(0.055)


def test_items_lost_everywhere_and_overlap(tmp_path: Path) -> None:
    """Two trainings that lose the same items, and one that loses others."""
    before = np.ones(300, bool)
    write_log(tmp_path / "base.parquet", before)
    lines = ["deterministic: true", "pairs:"]
    for name, gone in (("a", range(30)), ("b", range(30)), ("c", range(270, 300))):
        after = before.copy()
        after[list(gone)] = False
        write_log(tmp_path / f"{name}.parquet", after, tasks=1)
        lines.append(f"- {{before: base.parquet, after: {name}.parquet}}")
    write_log(tmp_path / "base.parquet", before, tasks=1)
    (tmp_path / "study.yaml").write_text("\n".join(lines), encoding="utf-8")
    items = run_study(tmp_path / "study.yaml").answers.items
    assert items is not None
    assert (items.items, items.known_twice, items.lost_in_all, items.lost_in_none) == (
        300, 300, 0, 240,
    )  # fmt: skip
    assert [item.lost for item in items.most] == [2] * 20
    assert {item.item_ref for item in items.most} <= {f"q{number}" for number in range(30)}
    (overlap,) = items.overlap
    assert (overlap.kind, overlap.comparisons, overlap.together) == ("same log before", 3, 30)
    assert overlap.expected == pytest.approx(3 * 30 * 30 / 300)


def test_what_the_average_hides(tmp_path: Path) -> None:
    before = np.arange(200) < 100
    after = np.roll(before, 30)  # 30 lost, 30 gained: the average says that nothing happened
    write_log(tmp_path / "base.parquet", before)
    write_log(tmp_path / "moved.parquet", after)
    (tmp_path / "study.yaml").write_text(
        "deterministic: true\npairs:\n- {before: base.parquet, after: moved.parquet}\n"
    )
    result = run_study(tmp_path / "study.yaml")
    assert result.pairs[0].old.change.value == 0
    assert result.answers.leaderboard[0].hidden == pytest.approx(0.15)
    assert result.answers.items is None


def test_the_slope_agrees_with_statsmodels() -> None:
    """HC2 of another package; their cluster-robust variance has no CR2."""
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=12), rng.normal(size=12)
    ours = fit_slope(x, y, range(12))
    theirs = api.OLS(y, api.add_constant(x)).fit(cov_type="HC2")
    assert ours is not None
    assert ours.slope.value == pytest.approx(theirs.params[1])
    from scipy import special

    reach = special.stdtrit(ours.freedom, 0.975) * theirs.bse[1]
    assert ours.slope.high - ours.slope.value == pytest.approx(reach)


def test_a_slope_that_nothing_can_be_said_of() -> None:
    assert fit_slope([1, 1, 1], [1, 2, 3], range(3)) is None
    assert fit_slope([1, 2], [1, 2], range(2)) is None
    assert fit_slope([1, 2, 3, 4], [0, 0, 0, 0], range(4)) is None


# --- simulations ---------------------------------------------------------------------------------


def covers(draws: int, families: int, sizes: int, spread: float, clustered: bool) -> float:
    """How often the interval holds the slope, with families of a level of their own."""
    rng = np.random.default_rng(families * 100 + sizes)
    hits = 0
    x = np.tile(np.arange(sizes, dtype=float), families)
    family = np.repeat(np.arange(families), sizes)
    for _ in range(draws):
        level = rng.normal(0.1, spread, families)[family]
        # Small models vary more than large ones.
        y = level - 0.01 * x + rng.normal(0, 0.02 / (1 + 0.3 * x))
        fit = fit_slope(x, y, *((family,) if clustered else (np.arange(len(x)), [family])))
        assert fit is not None
        hits += fit.slope.low <= -0.01 <= fit.slope.high
    return hits / draws


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [True, False])
@pytest.mark.parametrize(("families", "sizes"), [(3, 5), (5, 4), (10, 3), (20, 5)])
def test_intervals_of_slopes_cover(families: int, sizes: int, clustered: bool) -> None:
    covered = covers(2000, families, sizes, 0.05, clustered)
    assert 0.93 <= covered <= 0.97


def no_effect(rng: np.random.Generator) -> list[Any]:
    """Kinds of training in which nothing matters but the seed."""
    units = []
    for family in "abcd":
        for size in (1e9, 2e9, 4e9, 8e9):
            for method in ("SFT", "RL"):
                losses = rng.normal(0.1, 0.02, 3).tolist()
                attributes = {"family": family, "size": size, "method": method}
                mean = float(np.mean(losses))
                units.append(Unit(attributes, [0, 1, 2], mean, 0.1, losses))
    return units


@pytest.mark.slow
def test_nothing_is_claimed_where_nothing_matters() -> None:
    rng = np.random.default_rng(11)
    false = 0
    for _ in range(1000):
        units = no_effect(rng)
        claims = answers._claims(list(find_slopes(units)), units)
        assert len(claims) > 50
        false += any(claim.claimed for claim in claims)
    assert false / 1000 <= 0.065  # 0.05, and two deviations of 1,000 draws


@pytest.mark.slow
@pytest.mark.parametrize(("items", "share"), [(100, 0.05), (500, 0.1), (2000, 0.01)])
def test_pairs_that_lost_alike_are_not_told_apart(items: int, share: float) -> None:
    """Ten pairs from one log before; some items are easier to lose than others."""
    rng = np.random.default_rng(items)
    false = 0
    for _ in range(1000):
        chance = np.minimum(1, rng.gamma(0.5, 2 * share, items))
        loss = (rng.random((10, items)) < chance).astype(np.float32)
        seen = np.ones_like(loss, bool)
        empty = np.zeros(items, np.intp)
        table = ItemTable(
            [], [], empty, empty.astype(np.uint64), [], seen, loss, loss, seen, seen, None
        )
        found = differences(table)
        upper = np.triu_indices(10, 1)
        false += bool((holm(found.p_value[upper]) < 0.05).any())
    assert false / 1000 <= 0.065


def sized(methods: str, sizes: int) -> list[Unit]:
    """Units of two families; the last method loses 30 points more, a doubling 1 point less."""
    return [
        Unit(
            {"family": family, "size": 2.0**step, "method": method},
            [],
            0.5 - 0.01 * step + 0.3 * (method == methods[-1]) + 0.001 * ((step + place) % 2),
            0.0,
            [],
        )
        for place, family in enumerate(("x", "y"))
        for step in range(sizes)
        for method in methods
    ]


def test_a_slope_within_families_holds_the_method_equal_and_says_so() -> None:
    slopes = {slope.within: slope for slope in find_slopes(sized("abc", 4))}
    assert slopes["family"].held == slopes["x"].held == ["method"]
    assert slopes["family"].per_doubling.high < -0.009
    assert slope_words(slopes["family"]) == (
        "lost falls by 1.00 points each time size doubles within families, with method held equal"
    )
    assert slopes[None].held == slopes["kind"].held == []


def test_an_attribute_is_not_held_equal_where_pairs_are_too_few() -> None:
    """Every unit has a method of its own: to hold it equal would leave nothing to see."""
    units = [
        unit._replace(attributes={**unit.attributes, "method": f"m{number}"})
        for number, unit in enumerate(sized("a", 4))
    ]
    slopes = {slope.within: slope for slope in find_slopes(units)}
    assert slopes["family"].held == []
    assert "held equal" not in slope_words(slopes["family"])
