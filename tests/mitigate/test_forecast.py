"""Forecasts: learned from other trainings alone, ranked, calibrated, written and checked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import forgetmap
from forgetmap.base.errors import InputError, WithheldError
from forgetmap.cli.app import app
from forgetmap.mitigate.forecast.build import bundled, check_forecast, forecast, read_risks
from forgetmap.mitigate.forecast.items import History, Items, read_history, read_items
from forgetmap.mitigate.forecast.model import (
    Spread,
    apart,
    auc,
    calibration,
    calibration_error,
    fit,
    fit_curve,
    past_features,
    plain_features,
    probe_features,
    spread_of,
)
from forgetmap.mitigate.forecast.validate import coverage, forecast_unseen, quality
from forgetmap.samples.table import Meta, Samples, complete
from places import ROOT

TOLD = ROOT / "examples" / "study" / "logs" / "told"
WAYS = ("plain", "anchor", "replay", "merge")
ITEMS = 600


def write(path: Path, chance: np.ndarray, text: bool = False) -> Path:
    """A log with the probability of the right option."""
    batch = {
        "model": pa.array([path.stem] * len(chance)),
        "task": pa.array([f"task{n % 3}" for n in range(len(chance))]),
        "item": pa.array(np.arange(1, len(chance) + 1, dtype=np.uint64)),
        "metric": pa.array(["acc"] * len(chance)),
        "score": pa.array((chance > 0.5).astype(float)),
        "gold_probability": pa.array(chance),
        "k": pa.array(np.full(len(chance), 4), pa.int32()),
    }
    if text:
        batch["prompt"] = pa.array([f"Which colour has thing number {n}?" for n in range(ITEMS)])
    Samples.collect([complete(batch)], Meta(harness="made")).write(path)
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trainings that hit weak items, whatever the task; the merge is made of the plain one."""
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(0)
    before = rng.beta(1, 1, ITEMS)
    weak = rng.random(ITEMS) < 0.3
    write(folder / "base.parquet", before, text=True)
    lines = ["curve: method", "against: {method: plain}", "pairs:"]
    for new in ("one", "two"):
        for number, way in enumerate(WAYS):
            for seed in range(2):
                hit = rng.random(ITEMS) < np.where(weak, 0.7, 0.05) * (1 - 0.15 * number)
                name = f"{new}-{way}-{seed}"
                write(folder / f"{name}.parquet", np.where(hit, before * 0.2, before))
                lines.append(
                    f"- {{name: {name}, before: base.parquet, after: {name}.parquet, "
                    f"new: [{new}], method: {way}, seed: {seed}}}"
                )
    (folder / "study.yaml").write_text("\n".join(lines), encoding="utf-8")
    return folder / "study.yaml"


@pytest.fixture(scope="module")
def history(study: Path) -> History:
    return read_history(study)


def test_a_curve_equals_that_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    features = rng.normal(size=(500, 3))
    target = rng.random(500) < 1 / (1 + np.exp(-features @ [1.0, -2.0, 0.0] - 0.5))
    ours = fit_curve(features, target.astype(float), np.ones(500))
    z = (features - features.mean(0)) / features.std(0)
    theirs = LogisticRegression(C=1.0, tol=1e-10).fit(z, target)
    assert ours.weights == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-3)


def test_auc_equals_that_of_scikit_learn_and_turns_with_the_score() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    score, event = np.round(rng.random(200), 1), rng.random(200) < 0.3
    assert auc(score, event) == pytest.approx(roc_auc_score(event, score))
    assert auc(-score, event) == pytest.approx(1 - roc_auc_score(event, score))
    assert auc(score, np.zeros(200, bool)) is None


def test_calibration_of_what_is_certain_is_perfect() -> None:
    event = np.arange(100) % 4 == 0
    assert calibration_error(calibration(event.astype(float), event.astype(float))) == 0
    assert calibration_error(calibration(np.full(100, 0.5), event.astype(float))) == pytest.approx(
        0.25, abs=0.03
    )


def test_history_groups_seeds_and_merges_with_what_they_are_made_of(history: History) -> None:
    assert len(history.models) == 1
    assert len(history.trainings) == 16
    regimes = {training.regime for training in history.trainings}
    assert regimes == {f"{new}/{way}" for new in ("one", "two") for way in WAYS[:3]}


def test_a_training_never_sees_its_own_regime(history: History) -> None:
    for told in forecast_unseen(history, "regime", str):
        assert told.training.regime not in {one.regime for one in told.seen.trainings}
    for told in forecast_unseen(history, "task", str):
        assert told.training.taught not in {one.taught for one in told.seen.trainings}
    assert not list(forecast_unseen(history, "model", str))  # there is no other model


def test_the_past_of_a_training_leaves_out_its_regime(history: History) -> None:
    changed = [
        each._replace(loss=np.ones_like(each.loss)) if each.regime == "one/plain" else each
        for each in history.trainings
    ]
    other = History(history.models, changed, [])
    left, right = (
        past_features(history.models[0], one, 0, "one/plain") for one in (history, other)
    )
    assert left is not None
    assert right is not None
    assert np.array_equal(left.features, right.features)


def test_trainings_may_have_asked_other_items_of_one_model(tmp_path: Path) -> None:
    """Each asked its own half and some of the other: none of their items is dropped."""
    rng = np.random.default_rng(6)
    before = rng.random(ITEMS)
    write(tmp_path / "base.parquet", before)
    lines = ["pairs:"]
    for name, items in (("one", slice(0, 400)), ("two", slice(200, ITEMS))):
        whole = Samples.read(write(tmp_path / f"{name}-all.parquet", before * 0.5))
        table = pq.read_table(tmp_path / f"{name}-all.parquet").slice(
            items.start, items.stop - items.start
        )
        Samples(table, whole.meta).write(tmp_path / f"{name}.parquet")
        lines.append(f"- {{before: base.parquet, after: {name}.parquet, new: [x], method: {name}}}")
    (tmp_path / "study.yaml").write_text("\n".join(lines), encoding="utf-8")
    found = read_history(tmp_path / "study.yaml")
    assert [len(one) for one in found.models] == [ITEMS]
    assert [len(one.place) for one in found.trainings] == [400, 400]
    [items] = found.models
    for training in found.trainings:
        assert np.allclose(training.loss, items.chance[training.place] * 0.5)


def test_history_helps_and_forecasts_are_calibrated(history: History) -> None:
    told = {past: list(forecast_unseen(history, "regime", str, with_past=past)) for past in (1, 0)}
    with_past, without = (quality(told[past], "regime", bool(past)) for past in (1, 0))
    assert with_past.auc_known > 0.8 > without.auc_known
    assert with_past.calibration_error < 0.08
    assert with_past.calibration_error_all < with_past.calibration_error
    assert with_past.auc_all >= with_past.auc_known


def test_intervals_hold_totals_of_trainings_that_were_not_seen(history: History) -> None:
    found = coverage(list(forecast_unseen(history, "regime", str)), "regime", str)
    assert found.cases == 16 * 3
    assert found.categories > 0.9


def test_a_spread_covers_simulated_trainings() -> None:
    """Severity differs from regime to regime; 95 % intervals hold about that many new ones."""
    rng = np.random.default_rng(3)
    risk, held = np.full(400, 0.1), 0
    for _ in range(300):

        def happened() -> np.ndarray:
            shift = rng.normal(0, 0.08)
            return (rng.random(400) < np.clip(np.sqrt(0.1) + shift, 0, 1) ** 2).astype(float)

        spread = spread_of([apart(str(n), risk, happened()) for n in range(12)])
        low, high = spread.interval(risk)
        held += low <= happened().mean() <= high
    assert 0.90 <= held / 300 <= 0.99


def test_few_items_make_an_interval_wider_and_many_do_not_make_it_narrow() -> None:
    spread = Spread(shift=0.0, variance=0.01, regimes=20)
    widths = [np.subtract(*spread.interval(np.full(n, 0.1))[::-1]) for n in (10, 1000, 100_000)]
    assert widths[0] > widths[1] > widths[2] > 0.1


def test_a_forecast_is_written_read_and_checked(study: Path, tmp_path: Path) -> None:
    risks = tmp_path / "risks.parquet"
    before = study.parent / "base.parquet"
    result = forecast(before, history=study, out=risks)
    assert result.same_model == result.trainings == 16
    assert result.total.expected.low <= result.total.expected.value <= result.total.expected.high
    told = read_risks(risks)
    assert told.forecast == result
    risk = told.table["risk"].to_numpy()
    assert (np.diff(risk) <= 0).all()
    assert risk.mean() == pytest.approx(result.total.expected.value)
    assert (risk <= told.table["chance"].to_numpy()).all()
    check = check_forecast(risks, before, study.parent / "one-plain-0.parquet")
    assert check.total.within
    assert check.auc_known is not None
    assert check.auc_known > 0.75
    assert check.not_asked == 0


def test_without_a_history_the_bundled_curves_are_used() -> None:
    result = forecast(
        TOLD / "smollm2-before.parquet",
        task_map=ROOT / "examples" / "study" / "logs" / "tasks.csv",
        new=["airports"],
    )
    assert result.same_model == 0
    assert result.left_out == {"new task": 800}
    assert "Geography" in result.categories
    assert 0.02 < result.total.expected.value < 0.2
    assert result.trainings == 93
    assert forgetmap.forecast is forecast


def test_bundled_curves_say_how_good_they_are() -> None:
    assert {each.never_saw for each in bundled().quality} == {"regime", "task", "model"}


def test_an_unknown_model_gets_no_past(study: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    other = write(tmp_path / "other.parquet", rng.random(ITEMS))
    result = forecast(other, history=study)
    assert result.same_model == 0
    assert any("no training of the history began with this model" in note for note in result.notes)


def test_new_data_leave_out_what_they_ask_and_tell_likeness(study: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.jsonl"
    rows = [{"prompt": f"Which colour has thing number {n}?", "completion": "Red."} for n in (3, 7)]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    risks = tmp_path / "risks.parquet"
    result = forecast(study.parent / "base.parquet", trained_on=data, out=risks)
    assert result.left_out == {"asked by the training data": 2}
    assert read_risks(risks).table["likeness"].null_count == 0


def test_bad_input_is_one_clear_line(study: Path, tmp_path: Path) -> None:
    base = study.parent / "base.parquet"
    with pytest.raises(InputError, match="no task of the log is called"):
        forecast(base, new=["nothing"])
    with pytest.raises(InputError, match="every task is new"):
        forecast(base, new=["task*"])
    few = tmp_path / "study.yaml"
    few.write_text(
        f"pairs:\n- {{before: {base}, after: {base}, new: [x], method: a}}\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="a forecast needs 3"):
        forecast(base, history=few)
    with pytest.raises(InputError, match="is not a file of risks"):
        read_risks(base)
    with pytest.raises(InputError, match="no such file"):
        read_risks(tmp_path / "nowhere.parquet")


def test_right_and_wrong_alone_get_no_forecast_by_probabilities(
    study: Path, tmp_path: Path
) -> None:
    """They seemed safe: every known item has a chance of 1, and a training cost ten times more."""
    rng = np.random.default_rng(4)
    right = rng.random(ITEMS) < 0.6
    flips = write(tmp_path / "base.parquet", right.astype(float))
    with pytest.raises(WithheldError, match="100% of the known items have a chance of exactly 1"):
        forecast(flips)
    with pytest.raises(WithheldError, match="give --history with trainings whose logs are like"):
        forecast(flips, history=study)
    rows = []
    for way in ("a", "b", "c"):
        after = write(
            tmp_path / f"{way}.parquet", (right & (rng.random(ITEMS) < 0.7)).astype(float)
        )
        rows.append({"before": str(flips), "after": str(after), "new": ["x"], "method": way})
    own = tmp_path / "study.yaml"
    own.write_text(json.dumps({"pairs": rows}), encoding="utf-8")
    found = forecast(flips, history=own)
    assert found.total.flips == pytest.approx(0.3 * right.sum(), rel=0.2)
    with pytest.raises(WithheldError):
        forecast(flips, history=own, probe=flips)
    told = r"its 0 trainings .* \(3 trainings of the history have right and wrong alone, and"
    with pytest.raises(InputError, match=told):
        forecast(study.parent / "base.parquet", history=own)


def test_trainings_of_another_kind_are_left_out_and_told(study: Path, tmp_path: Path) -> None:
    before = study.parent / "base.parquet"
    alone = forecast(before, history=study)
    right = (np.random.default_rng(5).random(ITEMS) < 0.6).astype(float)
    flips = write(tmp_path / "flips.parquet", right)
    mixed = study.parent / "mixed.yaml"
    more = f"\n- {{before: {flips}, after: {flips}, new: [x], method: other}}"
    mixed.write_text(study.read_text(encoding="utf-8") + more, encoding="utf-8")
    both = forecast(before, history=mixed)
    assert both.total == alone.total
    assert "1 trainings of the history have right and wrong alone" in " ".join(both.notes)


def test_a_damaged_file_of_risks_is_refused(study: Path, tmp_path: Path) -> None:
    risks = tmp_path / "risks.parquet"
    forecast(study.parent / "base.parquet", out=risks)
    raw = bytearray(risks.read_bytes())
    raw[200] ^= 1
    risks.write_bytes(raw)
    with pytest.raises(InputError, match="damaged"):
        read_risks(risks)


def test_the_command_forecasts_and_checks(study: Path, tmp_path: Path) -> None:
    base, risks = str(study.parent / "base.parquet"), str(tmp_path / "risks.parquet")
    run = CliRunner().invoke
    made = run(app, ["forecast", base, "--history", str(study), "--out", risks])
    assert made.exit_code == 0, made.output
    assert "Expected loss:" in made.output
    assert "never saw its new task" in made.output
    after = str(study.parent / "two-anchor-1.parquet")
    checked = run(app, ["forecast", base, "--risks", risks, "--check", after])
    assert checked.exit_code == 0, checked.output
    assert "happened" in checked.output
    assert run(app, ["forecast", base, "--check", after]).exit_code == 2


def test_items_are_those_that_a_comparison_has(study: Path) -> None:
    items = read_items(study.parent / "base.parquet")
    stored = pq.read_table(study.parent / "base.parquet")
    assert len(items) == ITEMS
    by_key = dict(zip(items.key.tolist(), items.chance, strict=True))
    for item, chance in zip(stored["item"], stored["gold_probability"], strict=True):
        assert by_key[item.as_py()] == pytest.approx(chance.as_py(), abs=1e-6)


# --- a probe --------------------------------------------------------------------------------------


def some_items(chance: list[float], tasks: str, keys: range | None = None) -> Items:
    many = len(chance)
    key = np.array(list(keys or range(many)), np.uint64)
    found = np.array(chance)
    return Items(
        np.array(list(tasks), dtype=object), key, key, found, found > 0.5, np.full(many, 4.0)
    )


def odds(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)
    return float(np.log(share / (1 - share)))


def test_what_a_probe_says_of_items_is_what_a_hand_works_out() -> None:
    before = some_items([0.8, 0.4, 0.5, 0.6], "aabb")
    after = some_items([0.4, 0.5, 0.5], "aab", range(3))  # the last one is not asked
    share, later, of_task, of_all = probe_features(before, after)
    task, every = 0.4 / 1.2, 0.4 / 1.7
    assert of_task == pytest.approx([odds(task)] * 2 + [odds(0.0)] * 2)
    assert of_all == pytest.approx([odds(every)] * 4)
    drawn_to_task = (0.4 + task * 0.8) / (2 * 0.8 + 0.02)
    assert share[:2] == pytest.approx([odds(drawn_to_task), odds(task * 0.4 / 0.82)])
    assert later == pytest.approx([odds(0.4), odds(0.5), odds(0.5), odds(0.6)])
    assert plain_features(before, after).shape == (4, 11)


def test_a_task_that_a_probe_did_not_ask_lost_what_all_did() -> None:
    before = some_items([0.8, 0.4, 0.5], "aab")
    after = some_items([0.4, 0.4], "aa", range(2))
    share, later, of_task, _ = probe_features(before, after)
    assert of_task[2] == pytest.approx(odds(1 / 3))
    assert later[2] == pytest.approx(odds(0.5 * 2 / 3))
    assert share[2] == pytest.approx(odds(0.5 / 3 / 0.52))


@pytest.fixture(scope="module")
def probed(history: History) -> History:
    """A probe that has done a third of what the training will do, to some of the items."""
    rng = np.random.default_rng(5)
    items = history.models[0]
    asked = np.sort(rng.choice(len(items), 400, replace=False))
    probes = {}
    for training in history.trainings[:12]:
        left = items.chance.copy()
        left[training.place] -= training.loss / 3
        left = np.clip(left + rng.normal(0, 0.02, len(items)), 0, 1)
        some = items.only(asked)
        probes[training.name] = Items(**(vars(some) | {"chance": left[asked]}))
    return history.probed(probes)


def test_only_what_was_probed_is_left(history: History, probed: History) -> None:
    assert [one.name for one in probed.trainings] == [one.name for one in history.trainings[:12]]
    (items,), whole = probed.models, history.models[0]
    assert len(items) == 400
    for one, other in zip(probed.trainings, history.trainings, strict=False):
        assert len(one.place) == 400
        lost = dict(zip(whole.key[other.place], other.loss, strict=True))
        assert one.loss.tolist() == [lost[key] for key in items.key[one.place]]


def test_a_probe_ranks_better_and_knows_the_level(probed: History) -> None:
    without = History(probed.models, [one._replace(probe=None) for one in probed.trainings], [])
    good, poor = (
        quality(list(forecast_unseen(one, "regime", str, with_past=False)), "regime", False)
        for one in (probed, without)
    )
    assert good.auc_known > 0.95 > poor.auc_known
    assert good.calibration_error < poor.calibration_error + 0.02
    assert len(fit(probed, with_past=False).plain.flip.weights) == 12


def test_a_forecast_by_a_probe_is_made_of_bundled_curves(study: Path, tmp_path: Path) -> None:
    base = study.parent / "base.parquet"
    chance = read_items(base).chance
    risks = []
    for name, left in (("none", chance), ("much", np.where(chance > 0.5, chance / 4, chance))):
        log = write(tmp_path / f"{name}.parquet", left)
        told = forecast(base, probe=log, out=tmp_path / f"{name}-risks.parquet")
        risks.append(told.total.expected.value)
        assert told.total.expected.low <= risks[-1] <= told.total.expected.high
    assert risks[0] < risks[1]
    beside = forecast(base, history=study, probe=log)
    assert (beside.same_model, beside.trainings) == (16, bundled(probed=True).trainings)
    assert {each.history for each in beside.quality} == {True}
    other = write(tmp_path / "other.parquet", chance[:1])
    with pytest.raises(InputError, match="has none of the items of the log before"):
        forecast(tmp_path / "none.parquet", new=["task0"], probe=other)


def test_the_command_takes_the_log_of_a_probe(study: Path, tmp_path: Path) -> None:
    base = study.parent / "base.parquet"
    log = write(tmp_path / "after.parquet", read_items(base).chance / 2)
    run = CliRunner().invoke
    made = run(app, ["forecast", str(base), "--probed", str(log)])
    assert made.exit_code == 0, made.output
    assert "Expected loss" in made.output
    for words in (["--learning-rate", "1e-4"], ["--probed", "a", "--learning-rate", "1"]):
        said = run(app, ["forecast", str(base), *words])
        assert said.exit_code == 2
        assert "is for --probe MODEL" in said.output
