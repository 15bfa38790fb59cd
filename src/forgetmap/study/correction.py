"""One correction over all that a study claims, so that a study of noise claims nothing.

Statements, effects, doses and findings are each corrected where they are made. Together they would
still claim something false in one study of ten, so that here all of them are one family (Holm).
A claim can only be withdrawn by it.

Every part has the same say (weights): else a hundred comparisons of two trainings would leave a
slope over all of them no power.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from forgetmap.base.model import Frozen
from forgetmap.map.cells import ALPHA
from forgetmap.stats.tests import holm
from forgetmap.study.factors import summary
from forgetmap.study.result import Answers, Claim, Dose, Effect, FactorModel, Finding
from forgetmap.study.units import TRAININGS


def corrected_together(answers: Answers) -> Answers:
    """The answers with every p-value corrected over all claims of the study."""
    models = answers.factors.models if answers.factors else []
    findings = answers.stages.findings if answers.stages else []
    rows: list[Claim | Effect | Dose | Finding] = [
        *answers.claims,
        *(effect for model in models for effect in model.effects),
        *answers.doses,
        *(finding for finding in findings if finding.p_value is not None),
    ]
    parts = Counter(map(_part, rows))
    weights = [1 / parts[_part(row)] for row in rows]
    adjusted = iter(holm([row.p_value or 0.0 for row in rows], weights))
    update: dict[str, object] = {"claims": [_judged(claim, adjusted) for claim in answers.claims]}
    if answers.factors:
        again = [_model(model, adjusted) for model in models]
        update["factors"] = answers.factors.model_copy(update={"models": again})
    update["doses"] = [_judged(dose, adjusted) for dose in answers.doses]
    if answers.stages:
        told = [_finding(finding, adjusted) for finding in findings]
        update["stages"] = answers.stages.model_copy(update={"findings": told})
    return answers.model_copy(update=update)


def _part(row: Claim | Effect | Dose | Finding) -> str:
    """What a row counts among; statements on two trainings are apart from those on all pairs."""
    return row.unit if isinstance(row, Claim) and row.unit == TRAININGS else type(row).__name__


def _judged(row: Frozen, adjusted: Iterator[float]) -> Frozen:
    p = float(next(adjusted))
    return row.model_copy(update={"p_adjusted": p, "claimed": p < ALPHA})


def _model(model: FactorModel, adjusted: Iterator[float]) -> FactorModel:
    effects: Sequence[Effect] = [_judged(effect, adjusted) for effect in model.effects]  # type: ignore[misc]
    return model.model_copy(update={"effects": effects, "summary": summary(model, effects)})


def _finding(finding: Finding, adjusted: Iterator[float]) -> Finding:
    if finding.p_value is None:
        return finding
    p = float(next(adjusted))
    verdict = finding.verdict if p < ALPHA else "can't tell"
    return finding.model_copy(update={"p_adjusted": p, "verdict": verdict})
