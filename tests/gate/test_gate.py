"""Gates: policies, verdicts, exit codes, and every form in which a verdict is told."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
from scipy import optimize, stats
from typer.testing import CliRunner

from forgetmap.api import compare
from forgetmap.base.errors import InputError, WithheldError
from forgetmap.cli import gate as gate_cli
from forgetmap.cli.baseline import baseline
from forgetmap.gate import evidence as gate_evidence
from forgetmap.gate import output as gate_output
from forgetmap.gate.judgement import check_gate, judge, split_gates
from forgetmap.gate.policy import Policy, write_policy
from forgetmap.map.result import ForgettingMap
from forgetmap.samples.comparability import Confound
from forgetmap.stats.estimate import Estimate
from logs import items, write_jsonl
from places import ROOT
from small_logs import samples

pytest_plugins = ["pytester"]
FAST: dict[str, Any] = {"draws": 300}
HOSTILE = "</td>|`x` @me ::error::hi\n::warning::a\x1b[31m\u202e\x00\ufffe%0A<script>"


@pytest.fixture(scope="module")
def made() -> ForgettingMap:
    """200 items in two tasks: 30 of 100 lost in the one, nothing in the other."""
    before = samples({"bad": [1] * 100, "good": [1] * 100})
    after = samples({"bad": [0] * 30 + [1] * 70, "good": [1] * 100})
    return compare(before, after, **FAST)


def policy(*limits: dict[str, Any], **rest: Any) -> Policy:
    return Policy.model_validate({"limits": list(limits), **rest})


def app() -> typer.Typer:
    main = typer.Typer()
    main.add_typer(gate_cli.gate, name="gate")
    main.add_typer(baseline, name="baseline")
    return main


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app(), [str(argument) for argument in arguments])


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "verdict", "code"),
    [
        ([{"measure": "raw", "max": 0.5}], "PASS", 0),
        ([{"measure": "raw", "max": 0.01}], "BLOCK", 1),
        ([{"measure": "raw", "max": 0.01, "tier": "warn"}], "WARN", 0),
        ([{"measure": "raw", "max": 0.15}], "WARN", 0),
        ([{"measure": "raw", "max": 0.15, "undecided": "pass"}], "PASS", 0),
        ([{"measure": "raw", "max": 0.15, "undecided": "block"}], "BLOCK", 1),
        ([{"measure": "raw", "max": 0.15, "undecided": "withhold"}], "WITHHELD", 3),
        ([{"where": "new", "max": 0.5}], "WITHHELD", 3),
        ([{"where": "new", "max": 0.5, "missing": "pass"}], "PASS", 0),
        ([{"max": 0.5}], "PASS", 0),
        ([{"max": 0.01}], "BLOCK", 1),
        ([{"max": 0.15}], "WARN", 0),
        ([{"where": "task:other", "max": 0.5}], "WITHHELD", 3),
        ([{"where": "category:*", "max": 0.5}], "WITHHELD", 3),
        ([{"where": "task:good", "measure": "raw", "max": 0.1}], "PASS", 0),
        ([{"where": "task:bad", "measure": "raw", "max": 0.1}], "BLOCK", 1),
        ([{"where": "task:*", "measure": "raw", "max": 0.1}], "BLOCK", 1),
        ([{"measure": "drop", "max": 0.02}], "BLOCK", 1),
        ([{"measure": "drop", "max": 0.5}], "PASS", 0),
        ([{"measure": "cause:refused", "max": 0.5}], "WITHHELD", 3),
        ([{"where": "new", "max": 0.5}, {"measure": "raw", "max": 0.01}], "BLOCK", 1),
    ],
)
def test_verdicts(
    made: ForgettingMap, limits: list[dict[str, Any]], verdict: str, code: int
) -> None:
    judgement = judge(made, policy(*limits))
    assert judgement.verdict == verdict
    assert judgement.exit_code == code
    assert judgement.reasons()


def test_a_relative_limit_is_a_share_of_what_was_known() -> None:
    before = samples({"t": [1] * 100 + [0] * 100})
    after = samples({"t": [0] * 40 + [1] * 60 + [0] * 100})
    result = compare(before, after, **FAST)  # 20 % of all, 40 % of what was known
    found = judge(result, policy({"measure": "raw", "max_relative": 0.3})).findings[0]
    assert (found.limit, found.state) == (pytest.approx(0.15), "undecided")
    found = judge(result, policy({"measure": "raw", "max_relative": 0.1})).findings[0]
    assert (found.limit, found.state) == (pytest.approx(0.05), "broken")
    both = policy({"measure": "raw", "max_relative": 0.9, "max": 0.05})
    assert judge(result, both).findings[0].limit == pytest.approx(0.05)


def test_a_cells_own_limit_takes_the_place_of_the_general_one(made: ForgettingMap) -> None:
    rules = policy(
        {"where": "task:*", "measure": "raw", "max": 0.1},
        {"where": "task:bad", "measure": "raw", "max": 0.6},
    )
    judgement = judge(made, rules)
    assert judgement.verdict == "PASS"
    assert [(found.where, found.limit) for found in judgement.findings] == [
        ("task:good", 0.1),
        ("task:bad", 0.6),
    ]


def test_holm_makes_many_limits_stricter_than_one() -> None:
    tasks = {f"t{number}": [1] * 100 for number in range(40)}
    after = {**tasks, "t0": [0] * 8 + [1] * 92}
    result = compare(samples(tasks), samples(after), **FAST)
    one = {"where": "task:t0", "measure": "raw", "max": 0.03}
    alone = judge(result, policy(one)).findings[0]
    assert alone.p_value == pytest.approx(stats.binom.sf(7, 100, 0.03))
    assert alone.state == "broken"
    every = {"where": "task:*", "measure": "raw", "max": 0.03}
    among = next(f for f in judge(result, policy(every)).findings if f.where == "task:t0")
    assert among.p_value == pytest.approx(min(1, 40 * alone.p_value))
    assert among.state == "undecided"
    uncorrected = judge(result, policy(every, correction="none"))
    assert uncorrected.verdict == "BLOCK"
    own = judge(result, policy({**every, "alpha": 0.025}))
    assert own.verdict == "BLOCK"


def test_without_correction_the_interval_decides(made: ForgettingMap) -> None:
    for low in (0.01, 0.05, 0.1):
        estimate = Estimate(value=0.2, low=low, high=0.3)
        assert gate_evidence.p_from_interval(estimate, low - 1e-9) < 0.025
        assert gate_evidence.p_from_interval(estimate, low + 1e-9) > 0.025
    assert gate_evidence.p_from_interval(Estimate(value=1, low=1, high=1), 0.5) == 0
    assert gate_evidence.p_from_count(0, 10, 0) == 1
    assert gate_evidence.p_from_count(1, 10, 0) == 0


def test_the_mean_over_categories_is_no_count(made: ForgettingMap) -> None:
    rules = policy({"where": "macro", "measure": "raw", "max": 0.1})
    expected = gate_evidence.p_from_interval(made.macro.raw.lost, 0.1)
    assert judge(made, rules).findings[0].p_value == pytest.approx(expected)


@pytest.mark.parametrize(("lost", "gained"), [(30, 12), (9, 0), (0, 5), (40, 41)])
@pytest.mark.parametrize("bound", [0.0, 0.02, 0.1])
def test_the_score_test_of_a_net_loss(lost: int, gained: int, bound: float) -> None:
    n = 200
    before = samples({"t": [1] * lost + [0] * gained + [1] * (n - lost - gained)})
    after = samples({"t": [0] * lost + [1] * gained + [1] * (n - lost - gained)})
    cell = compare(before, after, **FAST).total

    def unlikely(share: float) -> float:  # minus the log-likelihood, loss = gain + bound
        parts = ((lost, share + bound), (gained, share), (n - lost - gained, 1 - 2 * share - bound))
        return -sum(count * math.log(max(part, 1e-300)) for count, part in parts if count)

    best = optimize.minimize_scalar(unlikely, bounds=(0, (1 - bound) / 2), method="bounded")
    spread = math.sqrt(n * (2 * best.x + bound - bound**2))
    expected = stats.norm.sf((lost - gained - n * bound - 1) / max(spread, 1e-9))
    assert gate_evidence.p_of_drop(cell, bound) == pytest.approx(expected, rel=0.02, abs=1e-3)
    if not bound:
        exact = stats.binom.sf(lost - 1, lost + gained, 0.5)  # McNemar, one-sided
        assert gate_evidence.p_of_drop(cell, bound) == pytest.approx(exact, abs=0.01)


def test_a_net_loss_of_nothing_is_no_evidence() -> None:
    log = samples({"t": [1] * 50})
    assert gate_evidence.p_of_drop(compare(log, log, **FAST).total, 0.0) == 1


def test_limits_on_a_cause() -> None:
    before = samples({"t": [1] * 100}, answer="x", response="It is x.")
    scores = [0] * 20 + [1] * 80
    after = samples({"t": scores}, answer="y", response="I'm sorry, but I can't help with that.")
    result = compare(before, after, causes=True, **FAST)
    assert result.total.causes == {"refused": 20}
    rules = policy(
        {"measure": "cause:refused", "max": 0.05}, {"measure": "cause:wrong", "max": 0.2}
    )
    assert rules.needs_causes
    judgement = judge(result, rules)
    assert [found.state for found in judgement.findings] == ["broken", "held"]
    silent = result.total.model_copy(update={"causes": {"unknown": 20}})
    unsure = judge(result.model_copy(update={"old": silent}), rules)
    assert [found.state for found in unsure.findings] == ["undecided", "undecided"]


@pytest.mark.parametrize(
    ("require", "told"),
    [
        ({"coverage": 0.9}, "only 50.0 % of the items after"),
        ({"confounds": ["few-shot examples"]}, "differ in dtype"),
        ({"confounds": []}, "few-shot examples"),
        ({"identity": "content"}, "paired by their number"),
    ],
)
def test_what_cannot_be_compared_is_withheld(
    made: ForgettingMap, require: dict[str, Any], told: str
) -> None:
    coverage = made.coverage.model_copy(update={"items_after": 400, "identity": "index"})
    confounds = [
        Confound(setting="few-shot examples (bad)", before=0, after=5),
        Confound(setting="dtype", before="a", after="b"),
    ]
    result = made.model_copy(update={"coverage": coverage, "confounds": confounds})
    judgement = judge(result, policy({"measure": "raw", "max": 0}, require=require))
    assert judgement.verdict == "WITHHELD"  # although a limit is broken
    assert any(told in text for text in judgement.obstacles)
    loose = policy({"measure": "raw", "max": 0}, require={"coverage": 0.5})
    assert judge(result, loose).verdict == "BLOCK"


def test_missing_tasks_withhold_the_verdict_and_are_named(tmp_path: Path) -> None:
    """Nine of ten tasks are missing after; what is left is the same."""
    rows = [row for task in range(10) for row in items([1] * 30, task=f"t{task}")]
    before = write_jsonl(tmp_path / "before.jsonl", rows)
    after = write_jsonl(tmp_path / "after.jsonl", [row for row in rows if row["task"] == "t0"])
    judgement = judge(compare(before, after), policy({"max": 1.0}, require={"coverage": 0.95}))
    assert judgement.verdict == "WITHHELD"
    [told] = judgement.obstacles
    assert "only 10.0 % of the items before" in told
    assert "9 of its tasks are missing: t1, t2" in told


def test_a_tenth_of_the_items_proves_nothing(made: ForgettingMap, work: Any) -> None:
    """The usual policy and the plain limit are withheld, whichever side lacks the items."""
    for side in ("before", "after"):
        thin = made.coverage.model_copy(update={f"items_{side}": 2000})
        result = made.model_copy(update={"coverage": thin})
        judgement = judge(result, policy({"max": 1.0}))
        assert (judgement.verdict, judgement.exit_code) == ("WITHHELD", 3)
        assert f"only 10.0 % of the items {side}" in judgement.obstacles[0]
        with pytest.raises(WithheldError, match=rf"only 10\.0 % of the items {side}"):
            check_gate(result, ["max-forgetting=1"])
    write_jsonl(work / "before.jsonl", items([1] * 400))
    write_jsonl(work / "after.jsonl", items([1] * 40))
    told = work.run("compare", "before.jsonl", "after.jsonl", "--gate", "max-forgetting=0.5")
    assert told.exit_code == 3
    assert "only 10.0 % of the items before" in told.stderr


def test_a_limit_of_nothing_passes_on_identical_logs(work: Any) -> None:
    for name in ("one", "other"):
        write_jsonl(work / f"{name}.jsonl", items([1, 0] * 30))
    for pair in (("one.jsonl", "one.jsonl"), ("one.jsonl", "other.jsonl")):
        done = work.run("compare", *pair, "--gate", "max-forgetting=0", "--gate", "max-drop=0")
        assert done.exit_code == 0, done.output
    log = samples({"t": [1.0, 0.0] * 30})
    nothing = [{"max": 0}, {"max_relative": 0}, {"where": "task:*", "max": 0}]
    assert judge(compare(log, log, **FAST), policy(*nothing)).verdict == "PASS"


def test_a_limit_on_every_task_is_for_the_old_ones() -> None:
    before = samples({"old": [1] * 100, "taught": [1] * 100})
    after = samples({"old": [1] * 100, "taught": [0] * 100})
    result = compare(before, after, new=["taught"], deterministic=True, **FAST)
    rules = policy({"where": "task:*", "max": 0.1}, {"max": 0.1})
    judgement = judge(result, rules)
    assert [found.where for found in judgement.findings] == ["task:old", "old"]
    assert judgement.verdict == "PASS"
    for named in ("task:taught", "new", "total"):
        assert judge(result, policy({"where": named, "max": 0.1})).verdict == "BLOCK"
    assert check_gate(result, ["max-forgetting=0.1"])[0].holds


def test_only_what_is_surely_lost_breaks_a_limit() -> None:
    """Single runs: 25 flips either way may be noise, so a limit below them is open."""
    before = samples({"t": [1] * 25 + [0] * 25 + [1] * 50})
    after = samples({"t": [0] * 25 + [1] * 25 + [1] * 50})
    rules = policy({"max": 0.1})
    (found,) = judge(compare(before, after, **FAST), rules).findings
    assert found.state == "undecided"
    assert "lost at most 25.0 %" in found.reason
    (found,) = judge(compare(before, after, deterministic=True, **FAST), rules).findings
    assert found.state == "broken"


def test_too_few_items_are_withheld(made: ForgettingMap) -> None:
    rules = policy({"where": "task:bad", "max": 0.01}, require={"items": 150})
    judgement = judge(made, rules)
    assert judgement.verdict == "WITHHELD"
    assert "only 100 items" in judgement.reasons()[0]


# --- the policy file ------------------------------------------------------------------------------


def load(folder: Path, text: str) -> Policy:
    path = folder / "gate.yaml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("alpa: 0.1\nlimits: [{max: 0.1}]", 1, "unknown key 'alpa'; did you mean 'alpha'?"),
        ("limits:\n  - max: 0.1\n    wher: total", 3, "unknown key 'wher'; did you mean 'where'?"),
        ("limits: [{max: 0.1}]\nrequire:\n  itms: 3", 3, "'itms'; did you mean 'items'?"),
        ("limits:\n  - measure: forgeting\n    max: 0.1", 2, "did you mean 'forgetting'?"),
        ("limits:\n  - measure: cause:refusd\n    max: 0.1", 2, "did you mean 'cause:refused'?"),
        ("limits:\n  - max: 0.1\n    measure: excess", 3, "'excess' is retired, since gains hid"),
        ("limits:\n  - measure: soft\n    max: 0.1", 2, "'soft' is retired, since gains hid"),
        ("limits:\n  - measure: latent\n    max: 0.1", 2, "'latent' is retired"),
        ("limits:\n  - where: totl\n    max: 0.1", 2, "did you mean 'total'?"),
        ("limits:\n  - where: 'task:'\n    max: 0.1", 2, "is no place"),
        ("limits:\n  - where: total", 2, "needs max or max_relative"),
        ("limits:\n  - max: 3", 2, "less than or equal to 1"),
        ("alpha: x\nlimits: [{max: 0.1}]", 1, "valid number"),
        ("alpha: 0.1", 1, "at least one limit must stand under limits or capabilities"),
        ("limits: []", 1, "at least one limit"),
        ("version: 2\nlimits: [{max: 0.1}]", 1, "Input should be 1"),
        ("limits: [{max: 0.1}]\nalpha: 0.1\nalpha: 0.2", 3, "'alpha' occurs twice"),
        ("limits: [{max: 0.1}]\n  x: [", 2, "is not YAML"),
        ("- 1", 1, "made of keys"),
        ("", 1, "made of keys"),
        ("limits: &a\n  - max: 0.1\nrequire: {confounds: *a}", 1, "aliases"),
        ("? [1]\n: 2", 1, "a key must be a word"),
        ("limits: [{max: 0.1, tier: stop}]", 1, "'block' or 'warn'"),
    ],
)
def test_a_bad_policy_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/gate.yaml:{line}:"), message
    assert told in message
    assert "\n" not in message


def test_python_in_a_policy_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gate\.yaml"):
        load(tmp_path, "limits: !!python/object/apply:os.system ['touch x']")


def test_a_missing_or_huge_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a plain file"):
        Policy.load(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="4 MB"):
        load(tmp_path, "#" * 4_300_000)


def test_limits_and_policy_files_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text("limits: [{max: 0.1}]")
    limits, found = split_gates(["max-drop=0.1", str(path)])
    assert limits == ["max-drop=0.1"]
    assert found is not None
    with pytest.raises(InputError, match="unknown limit"):
        split_gates(["max-loss=0.1"])
    with pytest.raises(InputError, match="one policy file"):
        split_gates([str(path), str(path)])


def test_a_written_policy_lets_its_own_map_pass(made: ForgettingMap, tmp_path: Path) -> None:
    own = load(tmp_path, write_policy(made))
    assert judge(made, own).verdict == "PASS"
    assert [limit.where for limit in own.limits] == ["old", "old", "task:*", "task:bad"]


def test_a_written_policy_quotes_what_it_names(hostile: ForgettingMap, tmp_path: Path) -> None:
    setting = "x: [*a, {b}] # \n'\""
    tasks = {HOSTILE: hostile.total, "a": compare(*[samples({"a": [1] * 50})] * 2, **FAST).total}
    odd = hostile.model_copy(
        update={"tasks": tasks, "confounds": [Confound(setting=setting, before=1, after=2)]}
    )
    found = load(tmp_path, write_policy(odd))
    assert found.require.confounds == [setting]
    assert f"task:{HOSTILE}" in [limit.where for limit in found.limits]


# --- how a verdict is told ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile() -> ForgettingMap:
    before = samples({HOSTILE: [1] * 50}, model=HOSTILE)
    return compare(before, samples({HOSTILE: [0] * 50}, model=HOSTILE), **FAST)


def test_junit_is_well_formed_whatever_names_hold(hostile: ForgettingMap) -> None:
    rules = policy(
        {"where": "task:*", "measure": "raw", "max": 0.1}, {"where": "task:gone", "max": 0.1}
    )
    suite = ElementTree.fromstring(gate_output.to_junit(judge(hostile, rules)).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    assert [case[0].tag for case in suite] == ["failure", "error"]


def test_annotations_are_one_line_each(hostile: ForgettingMap) -> None:
    judgement = judge(hostile, policy({"where": "task:*", "measure": "raw", "max": 0.1}))
    (line,) = gate_output.to_annotations(judgement)
    assert line.startswith("::error title=forgetmap BLOCK::task:")
    assert "\n" not in line
    assert "\x1b" not in line
    assert "100.0 %25" in line


def test_markdown_keeps_names_in_code_spans(hostile: ForgettingMap) -> None:
    judgement = judge(hostile, policy({"where": "task:*", "measure": "raw", "max": 0.1}))
    text = gate_output.to_markdown(judgement, hostile)
    rows = [line for line in text.splitlines() if line.startswith("| BLOCK")]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 3
    outside = "".join(text.split("`")[::2])
    assert "@me" not in outside
    assert "<script>" not in outside


def test_the_command(made: ForgettingMap, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    made.write(Path("map.json"))
    assert run("gate", "init", "map.json", "--out", "own.yaml").exit_code == 0
    assert run("gate", "init", "map.json", "--out", "own.yaml").exit_code == 2
    done = run("gate", "map.json", "--policy", "own.yaml")
    assert done.exit_code == 0, done.output
    Path("gate.yaml").write_text("limits: [{measure: raw, max: 0.01}]")
    done = run("gate", "map.json", "--junit", "g.xml", "--markdown", "g.md", "--json", "g.json")
    assert done.exit_code == 1
    assert "gate: BLOCK" in done.output
    assert "::error" not in done.output
    assert json.loads(Path("g.json").read_text())["verdict"] == "BLOCK"
    assert Path("g.md").read_text().startswith("### forgetmap: BLOCK")
    assert ElementTree.parse("g.xml").getroot().get("failures") == "1"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert "::error title=forgetmap BLOCK::" in run("gate", "map.json").output
    Path("gate.yaml").write_text("limits: [{where: new, max: 0.01}]")
    assert run("gate", "check", "map.json").exit_code == 3
    Path("gate.yaml").write_text("limits: [{measure: excess, max: 0.01}]")
    done = run("gate", "check", "map.json")
    assert done.exit_code == 2
    assert "gate.yaml:1: limits.0.measure: 'excess' is retired" in done.output
    Path("gate.yaml").write_text("limit: 1")
    done = run("gate", "map.json")
    assert done.exit_code == 2
    assert "gate.yaml:1: unknown key 'limit'; did you mean 'limits'?" in done.output
    assert run("gate", "gone.json").exit_code == 2
    assert "check" in run("gate", "--help").output


# --- pytest plugin --------------------------------------------------------------------------------


def test_the_plugin_in_a_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # installed, it is there already
    folder = ROOT / "examples" / "smollm2-airports"
    pytester.makepyfile(
        f"""
        from forgetmap.pytest_plugin import assert_keeps

        LOGS = {str(folder / "before")!r}, {str(folder / "after")!r}

        def test_keeps(forgetting_map):
            result = forgetting_map(*LOGS, draws=300)
            assert result is forgetting_map(*LOGS, draws=300)
            assert_keeps(result, {{"limits": [{{"measure": "drop", "max": 0.02}}]}})

        def test_loses(forgetting_map):
            limits = [{{"measure": "raw", "max": 0.02}}]
            assert_keeps(forgetting_map(*LOGS, draws=300), {{"limits": limits}})
        """
    )
    done = pytester.runpytest_subprocess("-p", "forgetmap.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: BLOCK: old: flips 1->0 10.1 %*broken*"])


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, forgetmap.pytest_plugin; "
        "assert not {'duckdb', 'pyarrow', 'scipy', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
