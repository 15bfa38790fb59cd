"""Which attributes explain losses: known truth, other software, and the honest line."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pytest

from forgetmap.stats.effects import fit_effects, unit_levels
from forgetmap.study.factors import factors
from forgetmap.study.result import FactorModel, Factors, StudiedPair
from forgetmap.study.units import find_units
from study_logs import made_pair

METHODS = ("anchor", "replay", "sft")


def pairs_of(
    rng: np.random.Generator,
    *,
    families: int = 4,
    sizes: int = 3,
    tasks: int = 8,
    method: float = 0.0,
    size: float = 0.0,
) -> list[StudiedPair]:
    """Every family, size and method; sft loses `method` more, a doubling of size loses `size`."""
    task = rng.normal(0, 0.02, tasks)
    found = []
    for family in range(families):
        of_family = rng.normal(0, 0.02)
        for step in range(sizes):
            for name in METHODS:
                level = 0.15 + of_family + size * step + method * (name == "sft")
                level += rng.normal(0, 0.01)
                cells = {
                    f"t{n}": (
                        float(level + task[n] + rng.normal(0, 0.01)),
                        0.1 + rng.normal(0, 1e-2),
                    )
                    for n in range(tasks)
                }
                attributes: dict[str, float | str] = {
                    "family": f"f{family}",
                    "size": 1e9 * 2.0**step,
                    "method": name,
                }
                lost = float(np.mean([lost for lost, _ in cells.values()]))
                name = f"{family}-{step}-{name}"
                found.append(made_pair(name, attributes, lost, 0.1, cells=cells))
    return found


def run(pairs: list[StudiedPair]) -> Factors:
    return factors(pairs, find_units(pairs))


def lost_model(found: Factors) -> FactorModel:
    (model,) = [model for model in found.models if model.of == "lost"]
    return model


def test_known_effects_come_back() -> None:
    found = run(pairs_of(np.random.default_rng(1), method=0.05, size=-0.02))
    model = lost_model(found)
    effects = {(effect.attribute, effect.value): effect for effect in model.effects}
    assert set(effects) == {("size", None), ("method", "replay"), ("method", "sft")}
    assert effects["method", "sft"].reference == "anchor"
    assert effects["method", "sft"].estimate.value == pytest.approx(0.05, abs=0.012)
    assert effects["size", None].estimate.value == pytest.approx(-0.02, abs=0.006)
    assert effects["method", "sft"].claimed
    assert effects["size", None].claimed
    assert not effects["method", "replay"].claimed
    assert "method, size explain what was lost" in model.summary
    assert model.marginal_r2 is not None
    assert model.conditional_r2 is not None
    assert 0.2 < model.marginal_r2 < model.conditional_r2 < 1
    assert model.variances["task"] == pytest.approx(0.0004, rel=0.9)
    assert (model.cells, model.pairs, model.groups) == (288, 36, 8)


def test_nothing_explains() -> None:
    model = lost_model(run(pairs_of(np.random.default_rng(2))))
    assert model.summary.startswith("nothing explains what was lost")
    assert model.marginal_r2 is not None
    assert model.marginal_r2 < 0.1


def test_it_agrees_with_one_fit_to_all_cells() -> None:
    """Crossed random effects by statsmodels, as far as it can do them."""
    formula = pytest.importorskip("statsmodels.formula.api")
    pandas = pytest.importorskip("pandas")
    pairs = pairs_of(np.random.default_rng(3), families=4, sizes=2, tasks=6, method=0.04)
    rows = [
        {"lost": cell.lost.value, "task": task, "pair": pair.name, "all": 1,
         "size": np.log2(pair.attributes["size"]) - 30,
         "family": pair.attributes["family"], "method": pair.attributes["method"]}
        for pair in pairs for task, cell in pair.tasks.items()
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = formula.mixedlm(
            "lost ~ size + method",
            pandas.DataFrame(rows).assign(lost=lambda d: 100 * d.lost),
            groups="all",
            re_formula="0",
            vc_formula={name: f"0 + C({name})" for name in ("pair", "task", "family")},
        ).fit(reml=True)
    effects = lost_model(run(pairs)).effects
    for effect, name in zip(effects, ("size", "method[T.replay]", "method[T.sft]"), strict=True):
        assert 100 * effect.estimate.value == pytest.approx(whole.params[name], abs=1e-3)
        # Theirs is a normal interval, ours one of Student.
        half = 100 * (effect.estimate.high - effect.estimate.value)
        assert 1.0 < half / (1.96 * whole.bse[name]) < 1.12


def test_without_statsmodels_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.regression.mixed_linear_model", None)
    model = lost_model(run(pairs_of(np.random.default_rng(1), method=0.05, size=-0.02)))
    assert "pip install 'forgetmap[study]'" in model.notes[0]
    assert {effect.attribute for effect in model.effects if effect.claimed} == {"method", "size"}
    assert "family" not in model.variances


def test_attributes_that_go_together_are_left_out() -> None:
    pairs = [
        pair.model_copy(update={"attributes": {
            **pair.attributes,
            "recipe": str(pair.attributes["method"])[:1],
            "note": pair.name,
            **({"epochs": 3.0} if number else {}),
        }})
        for number, pair in enumerate(pairs_of(np.random.default_rng(1)))
    ]  # fmt: skip
    found = run(pairs)
    assert "cannot be told apart" in found.left_out["recipe"]
    assert found.left_out["note"] == "differs between all kinds of training"
    assert "epochs" not in found.left_out  # it has one value: there is nothing to say


def test_too_few_pairs_are_told() -> None:
    assert "it takes 6 kinds of training" in str(run(pairs_of(np.random.default_rng(1))[:3]).note)
    alike = [made_pair(f"p{n}", {}, 0.1) for n in range(8)]
    assert "no attribute" in str(run(alike).note)


def test_tasks_that_some_pairs_lack() -> None:
    """A pair without the hardest tasks is not taken for one that lost less."""
    rng = np.random.default_rng(4)
    cells = rng.normal(0, 0.001, (12, 10)) + np.linspace(0, 0.5, 10)
    cells[:6, 5:] = np.nan
    cells[0, 5] = 0.5 * 5 / 9
    found = unit_levels(cells)
    assert found is not None
    assert np.ptp(found.units) < 0.005
    apart = np.full((4, 4), np.nan)
    apart[:2, :2] = apart[2:, 2:] = 0.1
    assert unit_levels(apart) is None


def test_it_is_quick_with_many_pairs_and_tasks() -> None:
    pairs = pairs_of(np.random.default_rng(5), families=12, sizes=3, tasks=100)
    begun = time.process_time()
    assert lost_model(run(pairs)).cells == 10_800
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(("families", "spread"), [(3, 0.0), (6, 0.0), (6, 0.03)])
def test_intervals_of_effects_cover(families: int, spread: float) -> None:
    rng = np.random.default_rng(families)
    family = np.repeat(np.arange(families), 6)
    design = np.column_stack([np.tile([0, 0, 1, 1, 2, 2], families), np.arange(len(family)) % 2])
    truth = (-0.01, 0.02)
    hits = np.zeros(2)
    draws = 120
    for _ in range(draws):
        level = rng.normal(0, spread, families)[family] + rng.normal(0, 0.02, len(family))
        found = fit_effects(design.astype(float), level + design @ truth, family)
        assert found is not None
        hits += [e.low <= t <= e.high for e, t in zip(found.estimates, truth, strict=True)]
    assert (hits / draws >= 0.9).all()
