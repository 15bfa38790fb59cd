"""What is installed and how it is released: the lock file, the workflows, the action."""

from __future__ import annotations

import re
import tomllib

import yaml

from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def names(requirements: list[str]) -> set[str]:
    """Names of packages, in the one way in which they compare."""
    found = {re.match(r"[A-Za-z0-9._-]+", line).group() for line in requirements}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def test_the_lock_file_holds_what_development_needs_by_hash():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    inner = re.search(r"\[(.*)\]", extras["dev"][0]).group(1).split(",")
    wanted = [*project["dependencies"], *extras["dev"][1:]]
    wanted += [one for extra in inner for one in extras[extra]]
    text = (ROOT / "requirements-dev.lock").read_text()
    locked = re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)
    assert names(wanted) <= names(locked), "run: make lock"
    assert "://" not in text
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.partition("\n")[2])
    assert all("--hash=sha256:" in entry for entry in entries)


def test_workflows_may_only_read_unless_they_say_so():
    assert [path.stem for path in WORKFLOWS] == ["check", "docs", "release"]
    for path in WORKFLOWS:
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            assert job["timeout-minutes"] <= 120
            for step in job["steps"]:
                if "checkout" in step.get("uses", ""):
                    assert step["with"]["persist-credentials"] is False
                assert "${{ github.event" not in step.get("run", "")


def test_every_version_of_python_that_we_name_is_tested():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    tested = set(flow["jobs"]["test"]["strategy"]["matrix"]["python"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.split()[-1] for line in project["classifiers"] if ":: Python :: 3." in line}
    assert named <= tested
    assert {"3.11", "3.14"} <= tested


def test_the_action_installs_its_own_checkout():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [step] = action["runs"]["steps"]
    assert action["inputs"]["install"]["default"] == ""
    told = step["env"]["FORGETMAP_INSTALL"]
    assert told == "${{ inputs.install || github.action_path }}"


def test_a_release_is_tried_as_a_package_before_it_is_published():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    run = [step["run"] for step in flow["jobs"]["build"]["steps"] if "run" in step]
    assert run == ["make check test", "make package", "make release"]
    assert flow["jobs"]["publish"]["needs"] == "build"
