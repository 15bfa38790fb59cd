"""The table of the ways to run a model is the one that was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_table_is_what_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import parity

    found = json.loads((BENCHMARKS / "parity.json").read_text())
    assert (BENCHMARKS / "parity.md").read_text() == parity.page(found)
    exact = [row for name, row in found.items() if name.startswith("float32") and "changed" in row]
    assert len(exact) >= 3
    for row in exact:
        assert row["items"] == 500
        assert row["changed"] == 0
        assert row["apart"] < 1e-3
    changed = found["8 bits (bitsandbytes)"]["changed"]
    page = (BENCHMARKS.parent / "docs/how-to/evaluate.md").read_text()
    assert f"{changed} of 500 answers of SmolLM2-135M changed" in page
    plain = found["8 bits, transformers alone"]["changed"]  # so it is not forgetmap that differs
    assert f"transformers alone, one option at a time, changed {plain} of the same 500" in page
    assert parity.is_within_eight_bits("8 bits (bitsandbytes)", found)
    worse = found | {"8 bits, transformers alone": found["8 bits (bitsandbytes)"] | {"changed": 45}}
    assert not parity.is_within_eight_bits("8 bits (bitsandbytes)", worse)
    split = found["float32, tensor parallel, two processes"]
    assert split["verdict"] == "same"
    assert f"[{split['apart']:.2g} nats apart from one at most, and none of 500 answers" in page
    sys.modules.pop("parity", None)
