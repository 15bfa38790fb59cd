"""Published findings in a study: made studies in which they hold, do not, or cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.study.findings import (
    DOMAIN,
    FINDINGS,
    FROM_BASE,
    HIGH_DATA,
    INSTRUCT,
    LOW_DATA,
    MERGE,
    REGIMES,
)
from forgetmap.study.result import Finding, Stages, StudiedPair
from forgetmap.study.stages import regime_of, stages
from forgetmap.study.units import find_units
from study_logs import made_pair

Truth = dict[str, tuple[float, float]]
AS_PUBLISHED: Truth = {
    DOMAIN: (0.08, 0.04),
    INSTRUCT: (0.09, 0.10),
    FROM_BASE: (0.09, 0.12),
    LOW_DATA: (0.04, 0.05),
    HIGH_DATA: (0.10, 0.06),
    MERGE: (0.12, 0.05),
}


def study(
    truth: Truth,
    *,
    peak: float = 0.08,
    size: float = -0.005,
    wide: float = 0.06,
    noise: float = 3e-3,
) -> list[StudiedPair]:
    """Eight trainings per regime, by mean lost and gained."""
    rng = np.random.default_rng(0)
    pairs = []
    for stage, (lost, gained) in truth.items():
        for number in range(8):
            step = number % 4
            mine = lost + size * (step - 1.5) + rng.normal(0, noise)
            if stage == HIGH_DATA:
                mine += wide * (-1) ** number
            got = gained - size * (step - 1.5) + rng.normal(0, noise)
            cells = {
                name: (mine, got + peak * (name in ("Math", "Logic")) + rng.normal(0, noise))
                for name in ("Math", "Logic", "Culture", "Language")
            }
            attributes: dict[str, float | str] = {
                "stage": stage,
                "family": f"f{number // 4}",
                "size": 1e9 * 2.0**step,
            }
            pairs.append(made_pair(f"{stage}-{number}", attributes, mine, got, cells=cells))
    return pairs


def told(pairs: list[StudiedPair]) -> tuple[Stages, dict[str, Finding]]:
    found = stages(pairs, find_units(pairs))
    assert found is not None
    return found, {finding.name: finding for finding in found.findings}


def test_findings_hold_where_they_are_true() -> None:
    found, findings = told(study(AS_PUBLISHED))
    assert [stage.name for stage in found.stages] == list(REGIMES)
    assert {stage.units for stage in found.stages} == {8}
    verdicts = {name: finding.verdict for name, finding in findings.items()}
    assert verdicts.pop("base-less") == "can't tell"  # both lose alike
    assert set(verdicts.values()) == {"holds"}, verdicts
    loss = findings["size-loss"].estimate
    assert loss is not None
    assert loss.value == pytest.approx(-0.005, abs=0.002)
    assert findings["merge"].unit == "pairs, replicates as one"


def test_findings_do_not_hold_where_they_are_false() -> None:
    truth = {
        DOMAIN: (0.30, 0.20), INSTRUCT: (0.30, 0.10), FROM_BASE: (0.40, 0.10),
        LOW_DATA: (0.5, 0.3), HIGH_DATA: (0.2, 0.05), MERGE: (0.05, 0.05),
    }  # fmt: skip
    _, findings = told(study(truth, peak=-0.08, size=0.005, wide=0.0))
    verdicts = {name: finding.verdict for name, finding in findings.items()}
    assert verdicts.pop("high-data-mixed") == "can't tell"  # both vary alike
    assert set(verdicts.values()) == {"does not hold"}, verdicts


def test_what_a_study_lacks_cannot_be_told() -> None:
    _, findings = told([pair for pair in study(AS_PUBLISHED) if "tuning" in pair.name])
    assert findings["instruct-loss"].verdict == "holds"
    assert findings["merge"].verdict == "can't tell"
    assert findings["merge"].why == "no pair is of the stage merge"
    assert findings["merge"].estimate is None
    _, alone = told(study(AS_PUBLISHED)[8:9])
    assert alone["instruct-loss"].why.startswith("one kind of training")
    assert len(alone) == len(FINDINGS)


def test_noise_is_not_a_finding() -> None:
    """Nothing differs: a false word on any finding in one of twenty studies at most."""
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(60):
        pairs = [
            made_pair(f"{stage}{n}", {"stage": stage}, 0.15 + rng.normal(0, 0.02),
                      0.1 + rng.normal(0, 0.02))
            for stage in REGIMES for n in range(4)
        ]  # fmt: skip
        _, findings = told(pairs)
        differences = ("domain-gain", "base-less", "low-data-loss", "low-data-gain",
                       "high-data-mixed", "domain-loss", "instruct-loss", "base-loss")  # fmt: skip
        false += any(findings[name].verdict != "can't tell" for name in differences)
    assert false <= 6


def test_names_of_stages() -> None:
    assert regime_of({"stage": "CPT"}) == DOMAIN
    assert regime_of({"stage": "Trained from Base"}) == FROM_BASE
    assert regime_of({"stage": "reasoning-from-instruct", "data": "high"}) == HIGH_DATA
    assert regime_of({"stage": "reasoning from instruct", "examples": 800.0}) == LOW_DATA
    assert regime_of({"stage": "reasoning from instruct"}) is None
    assert regime_of({}) is None
    pairs = [made_pair("a", {"stage": "pruning"}, 0.1), made_pair("b", {"stage": "merge"}, 0.1)]
    found, _ = told(pairs)
    assert found.unknown == {"pruning": 1}
    assert stages([made_pair("a", {}, 0.1)], find_units([made_pair("a", {}, 0.1)])) is None
