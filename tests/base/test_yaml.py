"""One strict loader: what YAML would drop or misread in silence is refused with its line."""

from __future__ import annotations

import pytest

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.capabilities.manifest import Manifest
from forgetmap.evaluate.suites import own
from forgetmap.gate.policy import Policy
from forgetmap.lineage.pipeline import Pipeline
from forgetmap.map.task_maps import TaskMap


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3: 'a' occurs twice"),
        ("a:\n  - {b: 1, b: 2}", "f.yaml:2: 'b' occurs twice"),
        ("a: &x [1]\nb: *x", "f.yaml:1: YAML aliases"),
        ("? [1, 2]\n: 3", "f.yaml:1: a key must be a word"),
        ("a: 1\nb: [1", "f.yaml:3: is not YAML"),
        ("a: !!python/name:os.system", "is not YAML"),
        ("a: 1\n---\nb: 2", "f.yaml:2: is not YAML"),
        ("\x01", "is not YAML"),
        ("- " * 3000, "f.yaml:1: is nested more than 50 levels deep"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        yaml.parse("f.yaml", text)
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_empty_file_has_no_content() -> None:
    assert yaml.parse("f.yaml", "# nothing\n").content is None


REPEATED = {
    "task map": (TaskMap.load, "maths: [sums]\nlogic: [cups]\nmaths: [primes]\n"),
    "manifest": (Manifest.load, "name: mine\ngroups: {CAN: a}\ngroups: {WILL: b}\n"),
    "policy": (Policy.load, "limits: [{max: 0.1}]\nalpha: 0.1\nalpha: 0.2\n"),
    "pipeline": (Pipeline.load, "checkpoints:\n  base: {log: a}\n  base: {log: b}\n"),
    "suite": (own.load, "name: mine\ntasks:\n- {name: t, file: a.jsonl, file: b.jsonl}\n"),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_a_repeated_key_never_loses_entries(kind: str, tmp_path) -> None:
    load, text = REPEATED[kind]
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"file\.yaml:3: '\w+' occurs twice"):
        load(path)
