"""The GitHub Action's script, run from end to end as the runner would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from forgetmap.capabilities.drift import drift
from forgetmap.samples.table import Samples
from logs import items, write_jsonl
from places import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")

COMMAND = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from forgetmap.cli.app import app
app()
"""


@pytest.fixture
def runner(work: Any) -> Any:
    """A folder with two logs, and forgetmap on the path."""
    command = work / "bin" / "forgetmap"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(0o755)
    write_jsonl(work / "before.jsonl", items([1, 1, 1, 0] * 25))
    write_jsonl(work / "after.jsonl", items([1, 0, 1, 1] * 25))

    def run(policy: str, **environment: str) -> subprocess.CompletedProcess[str]:
        Path("gate.yaml").write_text(policy)
        path = f"{command.parent}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin"
        return subprocess.run(
            [ROOT / "ci" / "gate.sh"],
            env={
                "PATH": path,
                "HOME": str(work / "."),
                "GITHUB_ACTIONS": "true",
                "GITHUB_OUTPUT": "output.txt",
                "GITHUB_STEP_SUMMARY": "step.md",
                "FORGETMAP_BEFORE": "before.jsonl",
                "FORGETMAP_AFTER": "after.jsonl",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_broken_limit_fails_the_step(runner: Any) -> None:
    done = runner("limits: [{measure: raw, max: 0.02}]")
    assert done.returncode == 1, done.stderr
    assert "::error title=forgetmap BLOCK::old: flips 1->0 25.0 %25" in done.stdout
    assert Path("output.txt").read_text() == "verdict=BLOCK\n"
    assert Path("step.md").read_text().startswith("### forgetmap: BLOCK")
    out = Path("forgetmap-gate")
    assert {path.name for path in out.iterdir()} == {
        *("map.json", "gate.json", "gate.xml", "summary.md"),
    }


def test_a_kept_limit_passes_it(runner: Any) -> None:
    done = runner("limits: [{measure: raw, max: 0.5}]")
    assert done.returncode == 0, done.stderr
    assert Path("output.txt").read_text() == "verdict=PASS\n"
    assert "::" not in done.stdout


def test_too_little_data_and_bad_policies_have_their_codes(runner: Any) -> None:
    done = runner("limits: [{measure: raw, max: 0.5}]\nrequire: {items: 500}")
    assert done.returncode == 3, done.stderr
    assert Path("output.txt").read_text() == "verdict=WITHHELD\n"
    done = runner("limits: [{measure: raw, mix: 0.5}]")
    assert done.returncode == 2
    assert "gate.yaml:1: unknown key 'mix'; did you mean 'max'?" in done.stderr
    assert runner("limits: [{max: 0.5}]", FORGETMAP_AFTER="gone.jsonl").returncode == 2


def test_names_are_never_run(runner: Any) -> None:
    done = runner("limits: [{max: 0.5}]", FORGETMAP_AFTER="$(touch pwned); `touch pwned`")
    assert done.returncode == 2
    assert not Path("pwned").exists()


def test_a_baseline_can_stand_for_the_log_before(runner: Any) -> None:
    saved = subprocess.run(
        ["bin/forgetmap", "baseline", "save", "base", "before.jsonl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert saved.returncode == 0, saved.stderr
    done = runner("limits: [{measure: raw, max: 0.5}]", FORGETMAP_BEFORE="baseline:base")
    assert done.returncode == 0, done.stderr
    assert Path(".forgetmap/baselines/history.jsonl").read_text().count("\n") == 1


def test_limits_on_capabilities_need_the_drift(runner: Any) -> None:
    rules = "capabilities: [{where: 'capability:C1', max_relative: 0.1}]"
    assert runner(rules).returncode == 3
    sides = (
        Samples.from_rows(
            {
                "task": "gsm8k.core",
                "metric": "accuracy",
                "item": number,
                "score": float(number >= wrong),
            }
            for number in range(80)
        )
        for wrong in (0, 20)
    )
    Path("drift.json").write_text(drift(*sides, draws=500).to_json())
    done = runner(rules, FORGETMAP_DRIFT="drift.json")
    assert done.returncode == 1, done.stderr
    assert "::error title=forgetmap BLOCK::capability:C1: relative loss 25.0 %25" in done.stdout


def test_the_action_hands_every_input_to_the_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    handed = {re.sub(r" \|\| github\.action_path", "", value) for value in step["env"].values()}
    assert handed == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert "inputs" not in step["run"]  # text in a script would be run
    script = (ROOT / "ci" / "gate.sh").read_text()
    assert all(name in script for name in step["env"])
    assert os.access(ROOT / "ci" / "gate.sh", os.X_OK)
