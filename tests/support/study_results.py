"""Made results of studies, of any size, with everything that a study can tell."""

from __future__ import annotations

import numpy as np

from forgetmap.map.result import Verdict
from forgetmap.stats.estimate import Estimate
from forgetmap.study.result import (
    Answers,
    AtLearning,
    CapabilityCell,
    Claim,
    Curve,
    CurvePoint,
    Dose,
    DosePoint,
    Effect,
    EqualLearning,
    FactorModel,
    Factors,
    FailedPair,
    Finding,
    Items,
    Level,
    LostItem,
    Number,
    PairDrift,
    Replicates,
    Share,
    Slope,
    Stage,
    Stages,
    Standing,
    StudiedPair,
    StudyCell,
    StudyResult,
    StudySettings,
    TradeOff,
)

FAMILIES = ("alder", "birch", "cedar", "elm")
METHODS = ("sft", "rl", "replay", "anchor", "merge")
MARGIN = 0.02
CAPABILITIES = {
    "C1": ("CAN", "Knowledge"),
    "C2": ("CAN", "Reasoning"),
    "W1": ("WILL", "Answers questions"),
    "H1": ("HOW", "Verbosity"),
}


def estimate(value: float, reach: float = 0.01) -> Estimate:
    return Estimate(value=value, low=value - reach, high=value + reach)


def share(value: float, n: int, published: bool) -> Share:
    if published:
        return Share(low_end=value, high_end=value, basis="published")
    reach = 2 * float(np.sqrt(max(value * (1 - value), 1e-4) / n))
    return Share(
        low_end=value,
        high_end=value,
        low=max(0.0, value - reach),
        high=min(1.0, value + reach),
        basis="deterministic",
    )


def cell(lost: float, gained: float, n: int = 1000, published: bool = False) -> StudyCell:
    """A cell that lost and gained as much as is said."""
    if published:
        return StudyCell(
            n=None,
            accuracy_before=None,
            accuracy_after=None,
            change=Number(value=gained - lost),
            lost=share(lost, n, published),
            gained=share(gained, n, published),
            p_value=None,
            verdict=None,
        )
    losses = share(lost, n, published)
    assert losses.low is not None
    assert losses.high is not None
    forgetting = "lost" if losses.low > MARGIN else "held" if losses.high < MARGIN else "undecided"
    net = "better" if gained > lost + 0.02 else "worse" if lost > gained + 0.02 else "undecided"
    return StudyCell(
        n=n,
        accuracy_before=0.6,
        accuracy_after=0.6 + gained - lost,
        change=Number(value=gained - lost, low=gained - lost - 0.01, high=gained - lost + 0.01),
        lost=losses,
        gained=share(gained, n, published),
        p_value=0.01,
        verdict=Verdict(forgetting=forgetting, net=net),
    )


def made_result(
    pairs: int = 12,
    tasks: int = 8,
    categories: int = 4,
    *,
    words: str = "",
    published: bool = False,
    bare: bool = False,
) -> StudyResult:
    """A study with known numbers; `words` goes into every name, `bare` leaves all answers out."""
    rng = np.random.default_rng(pairs * 1000 + tasks)
    studied = [
        _pair(number, tasks, categories, rng, words, published or bare, bare)
        for number in range(pairs)
    ]
    by_loss = sorted(studied, key=lambda pair: pair.old.lost.value)
    reach = 0 if published or bare else 2
    board = [
        Standing(
            name=pair.name,
            rank=rank,
            best=max(1, rank - reach),
            worst=min(pairs, rank + reach),
            pareto=rank in (1, 3),
            hidden=min(pair.old.lost.value, pair.old.gained.value),
        )
        for rank, pair in enumerate(by_loss, 1)
    ]
    answers = Answers(
        leaderboard=board,
        compared_by="the items that two pairs share; unit: items; Holm over all comparisons",
        replicates=[],
        levels=[],
        slopes=[],
        claims=[],
        items=None,
    )
    if not bare:
        answers = answers.model_copy(update=_answers(studied, board, words))
    return StudyResult(
        pairs=studied,
        failures=[]
        if bare
        else [
            FailedPair(
                name=f"broken{words}",
                attributes={"family": "elm"},
                before_log="logs/a.parquet",
                after_log=f"logs/none{words}.parquet",
                reason=f"after: logs/none{words}.parquet: no such file or folder",
            )
        ],
        answers=answers,
        settings=StudySettings(
            task_map="made",
            threshold=None,
            margin=MARGIN,
            identity="content",
            deterministic=True,
            draws=100,
            seed=0,
        ),
        warnings=[f"this study is made up{words}"],
        source=f"Somebody (2025){words}" if published else None,
    )


def _pair(
    number: int,
    tasks: int,
    categories: int,
    rng: np.random.Generator,
    words: str,
    published: bool,
    bare: bool,
) -> StudiedPair:
    family = FAMILIES[number % len(FAMILIES)]
    method = METHODS[number // len(FAMILIES) % len(METHODS)]
    size = float(10 ** (8.5 + number % 7 / 2))
    base = 0.02 + 0.03 * METHODS.index(method) + 0.02 * FAMILIES.index(family)
    lost = np.clip(base * rng.uniform(0, 2, tasks), 0, 0.6)
    gained = np.clip(rng.uniform(0, 0.15, tasks), 0, 0.6)
    group = np.arange(tasks) % max(categories, 1)
    drift = None if bare or published or number % 3 else _drift(number)
    return StudiedPair(
        name=f"{family}-{size / 1e9:.1f}B-{method}-{number}{words}",
        attributes={
            "family": family + words,
            "method": method,
            "size": size,
            "seed": float(number % 3),
            "examples": 1000.0 * 2 ** (number % 5),
            "stage": "SFT" if method == "sft" else "RL",
        },
        before=f"{family}-base{words}",
        after=f"{family}-{method}{words}",
        before_log=None if published else f"logs/{family}.parquet",
        after_log=None if published else f"logs/{family}-{number}.parquet",
        old=cell(float(lost.mean()), float(gained.mean()), 1000 * tasks, published),
        new=None if bare or published else cell(0.01, 0.2 + 0.05 * (number % 4), 500),
        categories={
            f"category {place}{words}": cell(
                float(lost[group == place].mean()),
                float(gained[group == place].mean()),
                1000 * int((group == place).sum()),
                published,
            )
            for place in range(min(categories, tasks))
        },
        tasks={
            f"task {place:03d}{words}": cell(
                float(lost[place]), float(gained[place]), 1000, published
            )
            for place in range(tasks)
            if not (number == 1 and place == 0)  # a task that one pair lacks
        },
        coverage=None,
        metric={},
        new_tasks=[] if bare or published else [f"task 000{words}"],
        confounds=[f"seed{words}"] if number == 0 else [],
        warnings=[],
        drift=drift,
    )


def _drift(number: int) -> PairDrift:
    def capability(name: str, group: str | None, value: float) -> CapabilityCell:
        return CapabilityCell(
            name=name,
            group=group,
            relative=estimate(value, 0.02),
            change=estimate(value / 2, 0.01),
            withheld=None,
            left_out=[],
            p_value=0.01,
            p_adjusted=0.03,
            verdict="worse" if value < -0.02 else "better" if value > 0.02 else "undecided",
        )

    values = {code: 0.04 * ((number + place) % 5 - 2) for place, code in enumerate(CAPABILITIES)}
    return PairDrift(
        before="scores/a.parquet",
        after="scores/b.parquet",
        manifest="captrack",
        groups={group: capability(group, None, 0.03) for group in ("CAN", "WILL", "HOW")},
        capabilities={
            code: capability(name, group, values[code])
            for code, (group, name) in CAPABILITIES.items()
        },
    )


def _answers(pairs: list[StudiedPair], board: list[Standing], words: str) -> dict[str, object]:
    names = [pair.name for pair in pairs]
    front = [row.name for row in board if row.pareto]
    categories = list(pairs[0].categories)
    return {
        "claims": [
            Claim(
                text=f"method: rl loses 3.1 points more than sft{words}",
                estimate=estimate(0.031),
                p_value=0.001,
                p_adjusted=0.004,
                claimed=True,
                unit="pairs matched in all else",
            ),
            Claim(
                text="lost falls by 0.40 points each time size doubles",
                estimate=estimate(-0.004),
                p_value=0.2,
                p_adjusted=0.4,
                claimed=False,
                unit="families",
            ),
        ],
        "replicates": [
            Replicates(
                attributes={"family": "alder", "method": "sft"},
                pairs=names[:2],
                lost=estimate(0.05),
                gained=estimate(0.07),
                deviation=0.004,
            )
        ],
        "levels": [
            Level(
                attribute="method",
                value=method,
                pairs=3,
                units=2,
                lost=0.05 + 0.02 * place,
                gained=0.07,
                interval=estimate(0.05 + 0.02 * place) if place else None,
            )
            for place, method in enumerate(METHODS)
        ],
        "slopes": [
            Slope(
                attribute="size",
                within=within,
                units=len(pairs),
                per_doubling=estimate(-0.004, 0.003),
                p_value=0.02,
                unit="families",
            )
            for within in (None, "family")
        ],
        "items": Items(
            items=8000,
            known_twice=5000,
            lost_in_all=12,
            lost_in_none=3000,
            most=[
                LostItem(
                    task=f"task {place % 3:03d}{words}",
                    item=f"{place:016x}",
                    item_ref=f"q{place}{words}",
                    knew=len(pairs),
                    lost=len(pairs) - place,
                )
                for place in range(min(5, len(pairs)))
            ],
            overlap=[],
        ),
        "trade_off": _trade_off(names, front),
        "factors": _factors(words),
        "doses": [
            Dose(
                attribute="examples",
                category=name,
                points=[
                    DosePoint(dose=1000.0 * 2**step, lost=0.02 + 0.01 * step * place, units=3)
                    for step in range(5)
                ],
                units=15,
                per_doubling=estimate(0.01 * place, 0.004),
                p_value=0.01,
                p_adjusted=0.04,
                claimed=place > 1,
                unit="pairs, replicates as one",
            )
            for place, name in enumerate(categories)
        ],
        "stages": _stages(names, categories, words),
    }


def _trade_off(names: list[str], front: list[str]) -> TradeOff:
    curves = [
        Curve(
            value=method,
            start="alder-base",
            points=[
                CurvePoint(learned=0.1 * step, lost=0.02 * step * (place + 1), pairs=[names[step]])
                for step in range(1, 4)
            ],
            fitted=[(0.1 * step, 0.02 * step * (place + 1)) for step in range(1, 4)],
            smoothed=place == 1,
        )
        for place, method in enumerate(METHODS[:3])
    ]
    equal = EqualLearning(
        learned=0.2,
        start="alder-base",
        methods=[
            AtLearning(value="sft", lost=0.04, interval=estimate(0.04), why=None),
            AtLearning(value="rl", lost=0.08, interval=None, why="one training alone"),
            AtLearning(value="anchor", lost=None, interval=None, why="it did not learn as much"),
        ],
    )
    return TradeOff(
        attribute="method",
        learned_by="new tasks",
        front=front,
        curves=curves,
        equal=[equal],
        unit="trainings",
    )


def _factors(words: str) -> Factors:
    effect = Effect(
        attribute="method",
        value="rl" + words,
        reference="sft",
        estimate=estimate(0.031),
        p_value=0.001,
        p_adjusted=0.01,
        claimed=True,
    )
    slope = Effect(
        attribute="size",
        value=None,
        reference=None,
        estimate=estimate(-0.004),
        p_value=0.1,
        p_adjusted=0.3,
        claimed=False,
    )
    models = [
        FactorModel(
            of=of,
            effects=[effect, slope],
            marginal_r2=0.21,
            conditional_r2=0.64,
            variances={"attributes": 0.2, "pair": 0.1, "task": 0.4, "residual": 0.3},
            cells=1000,
            pairs=12,
            groups=8,
            method="mixed model",
            unit="pairs",
            summary=f"The method explains most of what was {of}{words}",
        )
        for of in ("lost", "gained")
    ]
    return Factors(models=models, left_out={"stage": "it goes with the method"})


def _stages(names: list[str], categories: list[str], words: str) -> Stages:
    return Stages(
        stages=[
            Stage(
                name=name,
                pairs=names[:4],
                units=4,
                lost=0.05,
                gained=0.07,
                lost_interval=estimate(0.05),
                gained_interval=None,
                categories_lost=dict.fromkeys(categories, 0.05),
                categories_gained=dict.fromkeys(categories, 0.07),
            )
            for name in ("SFT", "RL")
        ],
        unknown={f"odd{words}": 1},
        findings=[
            Finding(
                name="scale",
                text="Larger models lose less",
                source="Harmon et al. 2025",
                verdict=verdict,
                estimate=None if verdict == "can't tell" else estimate(-0.004),
                p_value=None if verdict == "can't tell" else 0.01,
                p_adjusted=None if verdict == "can't tell" else 0.02,
                unit=None if verdict == "can't tell" else "families",
                why="four families with seven sizes" + words,
            )
            for verdict in ("holds", "does not hold", "can't tell")
        ],
    )
