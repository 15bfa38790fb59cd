"""Gates on capabilities: limits on drift, missing data, and every form that tells a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.capabilities.drift import drift
from forgetmap.capabilities.drift_result import Drift
from forgetmap.capabilities.manifest import Capability, Manifest, Metric
from forgetmap.cli import gate as gate_cli
from forgetmap.gate import evidence as gate_evidence
from forgetmap.gate.judgement import judge
from forgetmap.gate.output import to_junit, to_markdown
from forgetmap.gate.policy import Policy
from forgetmap.map.result import ForgettingMap
from forgetmap.pytest_plugin import assert_keeps
from forgetmap.samples.comparability import Confound
from forgetmap.samples.table import Samples
from forgetmap.stats.estimate import Estimate
from sizes import sizes
from small_logs import samples

MANIFEST = Manifest(
    name="test",
    groups={"CAN": "", "HOW": ""},
    capabilities=(
        Capability(
            code="C1",
            group="CAN",
            metrics=(
                Metric(task="quiz", scorer="a:b", metric="accuracy"),
                Metric(task="quiz", scorer="a:b", metric="mistakes", direction="down"),
            ),
        ),
        Capability(
            code="C2", group="CAN", metrics=(Metric(task="sums", scorer="a:b", metric="accuracy"),)
        ),
        Capability(
            code="H1",
            group="HOW",
            metrics=(
                Metric(
                    task="chat", scorer="a:b", metric="words", direction="two-sided",
                    range=(0, None),
                ),
            ),
        ),
    ),
)  # fmt: skip


def scored(name: str, **values: list[float]) -> Samples:
    return Samples.from_rows(
        {
            "model": name,
            "task": key.partition("_")[0],
            "metric": key.partition("_")[2],
            "item": number,
            "item_ref": str(number),
            "score": value,
            "response": f"{name} {number}",
        }
        for key, found in values.items()
        for number, value in enumerate(found)
    )


@pytest.fixture(scope="module")
def drifted() -> Drift:
    """Quiz: 80 to 60 of 100 right. Sums: nothing changed. Chat: about 40 % longer."""
    rng = np.random.default_rng(3)
    words = rng.integers(80, 120, 100).astype(float)
    before = scored(
        "m",
        quiz_accuracy=[1.0] * 80 + [0.0] * 20,
        quiz_mistakes=[0.0] * 80 + [1.0] * 20,
        sums_accuracy=[1.0] * 300 + [0.0] * 100,
        chat_words=words.tolist(),
    )
    after = scored(
        "m",
        quiz_accuracy=[1.0] * 55 + [0.0] * 25 + [1.0] * 5 + [0.0] * 15,
        quiz_mistakes=[0.0] * 55 + [1.0] * 25 + [0.0] * 5 + [1.0] * 15,
        sums_accuracy=[1.0] * 297 + [0.0] * 3 + [1.0] * 3 + [0.0] * 97,
        chat_words=(words * rng.normal(1.4, 0.1, 100)).tolist(),
    )
    return drift(before, after, manifest=MANIFEST, draws=2000)


@pytest.fixture(scope="module")
def kept() -> ForgettingMap:
    """A map in which nothing was lost."""
    log = samples({"t": [1] * 100})
    return compare(log, log, draws=300)


def policy(*limits: dict[str, Any], **rest: Any) -> Policy:
    return Policy.model_validate({"capabilities": list(limits), **rest})


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "state", "verdict"),
    [
        ({"where": "metric:quiz accuracy", "max_relative": 0.05}, "broken", "BLOCK"),
        ({"where": "metric:quiz accuracy", "max_relative": 0.6}, "held", "PASS"),
        ({"where": "metric:quiz accuracy", "max_relative": 0.2}, "undecided", "WARN"),
        ({"where": "metric:quiz accuracy", "max": 0.05}, "broken", "BLOCK"),
        ({"where": "metric:quiz accuracy", "max": 0.4}, "held", "PASS"),
        ({"where": "metric:quiz mistakes", "max": 0.05}, "broken", "BLOCK"),
        ({"where": "metric:quiz mistakes", "max": 0.05, "tier": "warn"}, "broken", "WARN"),
        ({"where": "capability:C1", "max_relative": 0.1}, "broken", "BLOCK"),
        ({"where": "capability:C2", "max_relative": 0.1}, "held", "PASS"),
        ({"where": "group:CAN", "max_relative": 0.05}, "broken", "BLOCK"),
        ({"where": "capability:H1", "max_relative": 0.3}, "broken", "BLOCK"),
        ({"where": "capability:H1", "max_relative": 0.5}, "held", "PASS"),
        ({"where": "group:HOW", "max_relative": 0.3}, "broken", "BLOCK"),
        ({"where": "metric:chat words", "max": 20}, "broken", "BLOCK"),
        ({"where": "metric:chat words", "max": 60}, "held", "PASS"),
        ({"where": "capability:C9", "max_relative": 0.5}, "missing", "WITHHELD"),
        ({"where": "capability:C9", "max_relative": 0.5, "missing": "warn"}, "missing", "WARN"),
    ],
)
def test_verdicts(
    kept: ForgettingMap, drifted: Drift, limit: dict[str, Any], state: str, verdict: str
) -> None:
    judgement = judge(kept, policy(limit), drifted)
    (found,) = judgement.findings
    assert (found.state, judgement.verdict) == (state, verdict), found.reason
    assert found.where == limit["where"]
    assert found.limit == limit.get("max", limit.get("max_relative"))
    assert judgement.reasons()


def test_a_gain_breaks_no_limit_on_a_loss_but_one_on_any_change(drifted: Drift) -> None:
    quiz, chat = drifted.metrics[0], drifted.metrics[-1]
    log = samples({"t": [1] * 100})
    result = compare(log, log, draws=300)
    better = [quiz.model_copy(update={"change": Estimate(value=0.3, low=0.2, high=0.4)})]
    shorter = [chat.model_copy(update={"relative": Estimate(value=-0.4, low=-0.5, high=-0.3)})]
    other = drifted.model_copy(update={"metrics": better + shorter})
    rules = policy(
        {"where": "metric:quiz accuracy", "max": 0},
        {"where": "metric:chat words", "max_relative": 0.2},
    )
    assert [found.state for found in judge(result, rules, other).findings] == ["held", "broken"]


def test_every_capability_and_the_own_limit_of_one(kept: ForgettingMap, drifted: Drift) -> None:
    rules = policy(
        {"where": "capability:*", "max_relative": 0.1},
        {"where": "capability:C1", "max_relative": 0.9},
        {"where": "metric:*", "max_relative": 0.05, "tier": "warn"},
    )
    found = judge(kept, rules, drifted).findings
    assert [(one.where, one.limit) for one in found] == [
        ("capability:C2", 0.1),
        ("capability:H1", 0.1),
        ("capability:C1", 0.9),
        ("metric:quiz accuracy", 0.05),
        ("metric:quiz mistakes", 0.05),
        ("metric:sums accuracy", 0.05),
        ("metric:chat words", 0.05),
    ]


def test_limits_on_the_map_and_on_capabilities_are_corrected_together(
    kept: ForgettingMap, drifted: Drift
) -> None:
    limit = {"where": "metric:quiz accuracy", "max_relative": 0.13}
    alone = judge(kept, policy(limit), drifted).findings[0]
    more = policy(limit, limits=[{"measure": "raw", "max": 0.1}, {"measure": "drop", "max": 0.1}])
    among = judge(kept, more, drifted).findings[-1]
    assert alone.p_value is not None
    assert 0.01 < alone.p_value < 0.1
    assert among.p_value == pytest.approx(3 * alone.p_value)


def test_too_few_items_of_one_metric_are_too_few(kept: ForgettingMap, drifted: Drift) -> None:
    for where in ("group:CAN", "capability:C1", "metric:quiz accuracy"):
        rules = policy({"where": where, "max_relative": 0.1}, require={"items": 200})
        (found,) = judge(kept, rules, drifted).findings
        assert found.state == "missing"
        assert "only 100 items" in found.reason
    rules = policy({"where": "capability:C2", "max_relative": 0.1}, require={"items": 200})
    assert judge(kept, rules, drifted).verdict == "PASS"


def test_a_withheld_relative_change_is_missing(kept: ForgettingMap, drifted: Drift) -> None:
    first = drifted.metrics[0].model_copy(update={"relative": None, "withheld": "near zero"})
    other = drifted.model_copy(update={"metrics": [first, *drifted.metrics[1:]]})
    rules = policy({"where": "metric:quiz accuracy", "max_relative": 0.1})
    (found,) = judge(kept, rules, other).findings
    assert (found.state, found.verdict) == ("missing", "WITHHELD")
    assert "withheld" in found.reason


def test_without_a_drift_the_policy_says_what_follows(kept: ForgettingMap) -> None:
    limit = {"where": "capability:*", "max_relative": 0.1}
    judgement = judge(kept, policy(limit))
    assert judgement.verdict == "WITHHELD"
    assert judgement.findings[0].where == "capability:*"
    assert "--drift" in judgement.reasons()[0]
    assert judge(kept, policy(limit, missing="warn")).verdict == "WARN"
    assert judge(kept, policy(limit | {"missing": "pass"})).verdict == "PASS"


def test_the_nearest_capability_is_named(kept: ForgettingMap, drifted: Drift) -> None:
    (found,) = judge(kept, policy({"where": "group:CAM", "max_relative": 0}), drifted).findings
    assert found.reason.endswith("it is not in the drift; did you mean 'CAN'?")


def test_settings_that_differ_between_the_scored_runs(kept: ForgettingMap, drifted: Drift) -> None:
    confounds = [Confound(setting="temperature (chat)", before=0, after=1)]
    other = drifted.model_copy(update={"confounds": confounds})
    limit = {"where": "capability:C2", "max_relative": 0.5}
    assert judge(kept, policy(limit), other).verdict == "PASS"
    judgement = judge(kept, policy(limit, require={"confounds": []}), other)
    assert judgement.verdict == "WITHHELD"
    assert "the scored runs differ in temperature (chat)" in judgement.obstacles[0]
    allowed = policy(limit, require={"confounds": ["temperature"]})
    assert judge(kept, allowed, other).verdict == "PASS"


def test_a_drift_of_other_models_is_noted(kept: ForgettingMap, drifted: Drift) -> None:
    rules = policy({"where": "capability:C2", "max_relative": 0.5})
    assert judge(kept, rules, drifted).notes == []
    other = drifted.model_copy(update={"after": "another"})
    (note,) = judge(kept, rules, other).notes
    assert "the drift of m -> another" in note


# --- the numbers ----------------------------------------------------------------------------------


def test_the_p_value_of_a_size_counts_both_ends() -> None:
    spread = 0.1 / stats.norm.ppf(0.975)
    for value in (0.3, -0.3):
        change = Estimate(value=value, low=value - 0.1, high=value + 0.1)
        expected = stats.norm.sf((0.3 - 0.2) / spread) + stats.norm.cdf((-0.3 - 0.2) / spread)
        assert gate_evidence._p_of_size(change, 0.2) == pytest.approx(expected)
        assert gate_evidence._p_of_size(change, 0) == pytest.approx(2 * stats.norm.sf(0.3 / spread))
    assert gate_evidence._p_of_size(Estimate(value=-1, low=-1, high=-1), 0.5) == 0
    assert gate_evidence._p_of_size(Estimate(value=0, low=0, high=0), 0) == 1


def test_the_size_of_a_change() -> None:
    for low, high, expected in ((-0.5, -0.3, (0.3, 0.5)), (-0.1, 0.5, (0, 0.5)), (1, 2, (1, 2))):
        size = gate_evidence._size(Estimate(value=(low + high) / 2, low=low, high=high))
        assert (size.low, size.high) == pytest.approx(expected)
        assert size.low <= size.value <= size.high


@pytest.mark.parametrize("runs", sizes(25, 100))
@pytest.mark.parametrize("direction", ["up", "two-sided"])
def test_noise_alone_seldom_breaks_a_limit(kept: ForgettingMap, direction: str, runs: int) -> None:
    """The true loss lies right on its limit: at most alpha of such drifts may be blocked."""
    alpha, limit = 0.05, 0.1
    entry = Metric(task="quiz", scorer="a:b", metric="accuracy", direction=direction)  # type: ignore[arg-type]
    manifest = Manifest(
        name="one",
        groups={"CAN": ""},
        capabilities=(Capability(code="C1", group="CAN", metrics=(entry,)),),
    )
    rules = policy({"where": "capability:C1", "max_relative": limit}, alpha=alpha, undecided="pass")
    rng = np.random.default_rng(11)
    blocked = 0
    for seed in range(runs):
        before = rng.random(300) < 0.8
        after = np.where(before, rng.random(300) < 0.85, rng.random(300) < 0.2)  # 0.8 to 0.72
        sides = (
            scored(name, quiz_accuracy=values.astype(float).tolist())
            for name, values in (("b", before), ("a", after))
        )
        found = drift(*sides, manifest=manifest, draws=300, seed=seed)
        blocked += judge(kept, rules, found).verdict == "BLOCK"
    assert blocked / runs <= alpha + 3 * (alpha * (1 - alpha) / runs) ** 0.5


# --- the policy file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("capabilites: []\nlimits: [{max: 0.1}]", 1, "did you mean 'capabilities'?"),
        ("capabilities:\n  - where: group:CAN\n    max_relativ: 0.1", 3, "'max_relative'?"),
        ("capabilities:\n  - where: capabilty:C1\n    max_relative: 0.1", 2, "'capability:*'?"),
        ("capabilities:\n  - where: task:C1\n    max_relative: 0.1", 2, "is no place"),
        ("capabilities:\n  - max_relative: 0.1", 2, "Field required"),
        ("capabilities:\n  - where: group:CAN", 2, "either max_relative or max"),
        ("capabilities:\n  - where: group:CAN\n    max: 0.1", 2, "max is for metrics"),
        ("capabilities:\n  - where: group:CAN\n    max_relative: -1", 3, "greater than or equal"),
        ("capabilities:\n  - where: group:CAN\n    max_relative: .inf", 3, "finite"),
        ("limits:\n  - where: capability:C1\n    max: 0.1", 2, "put it under capabilities"),
        ("capabilities: []\nalpha: 0.1", 1, "at least one limit"),
    ],
)
def test_a_bad_limit_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, told: str
) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Policy.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}:"), message
    assert told in message
    assert "\n" not in message


# --- how it is told -------------------------------------------------------------------------------


def test_junit_markdown_and_json_show_capabilities(kept: ForgettingMap, drifted: Drift) -> None:
    rules = policy(
        {"where": "capability:C1", "max_relative": 0.1},
        {"where": "metric:chat words", "max": 20, "tier": "warn"},
    )
    judgement = judge(kept, rules, drifted)
    suite = ElementTree.fromstring(to_junit(judgement))
    assert [case.get("name") for case in suite] == [
        "capability:C1 relative drift",
        "metric:chat words drift",
    ]
    assert suite.get("failures") == "1"
    text = to_markdown(judgement, kept, drifted)
    assert "Drift by capability, `4 primary metrics:" in text
    assert "| BLOCK | `capability:C1: relative loss " in text
    words = next(line for line in text.splitlines() if "chat words" in line)
    assert "%" not in words  # words are no share
    assert json.loads(judgement.model_dump_json())["findings"][0]["where"] == "capability:C1"


def test_the_command(
    kept: ForgettingMap, drifted: Drift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    kept.write(Path("map.json"))
    Path("drift.json").write_text(drifted.to_json())
    Path("gate.yaml").write_text("capabilities: [{where: 'capability:C1', max_relative: 0.1}]")

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(gate_cli.gate, ["map.json", *arguments])

    done = run(
        "--drift", "drift.json", "--markdown", "s.md", "--junit", "g.xml", "--json", "g.json"
    )
    assert done.exit_code == 1, done.output
    assert "capability:C1: relative loss" in " ".join(done.output.split())
    assert "Drift by capability" in Path("s.md").read_text()
    assert json.loads(Path("g.json").read_text())["verdict"] == "BLOCK"
    assert run().exit_code == 3
    done = run("--drift", "map.json")
    assert done.exit_code == 2
    assert "map.json: the drift has schema version 2" in done.output
    assert "upgrade forgetmap to read it, if it is a drift" in " ".join(done.output.split())
    drift = json.loads(Path("drift.json").read_text())
    Path("other.json").write_text(json.dumps(drift | {"metrics": 1}))
    done = run("--drift", "other.json")
    assert (done.exit_code, "was changed after it was written" in done.output) == (2, True)
    del drift["checksum"]
    Path("other.json").write_text(json.dumps(drift | {"metrics": 1}))
    done = run("--drift", "other.json")
    assert done.exit_code == 2
    assert "other.json: not a forgetmap drift" in done.output
    assert run("--drift", "gone.json").exit_code == 2
    Path("gate.yaml").write_text("limits: [{max: 0.5}]")
    done = run("--drift", "drift.json")
    assert done.exit_code == 2
    assert "gate.yaml has no limits under capabilities" in done.output


def test_the_assertion_takes_a_drift(kept: ForgettingMap, drifted: Drift) -> None:
    rules = policy({"where": "capability:C1", "max_relative": 0.1})
    with pytest.raises(AssertionError, match="BLOCK: capability:C1: relative loss"):
        assert_keeps(kept, rules, drifted)
    assert_keeps(kept, policy({"where": "capability:C2", "max_relative": 0.1}), drifted)
