"""How a script of this folder ends: what it found is told, counted and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def finish(tried: Mapping[str, int], faults: Sequence[str], what: str, out: Path | None) -> None:
    """Tell the faults, write the counts where `run.py` wants them, and end with 1 for a fault."""
    for text in faults:
        print(text, file=sys.stderr)
    if out:
        out.write_text(json.dumps({"tried": dict(tried), "faults": list(faults)}, indent=2))
    print(f"{sum(tried.values())} {what}, {len(faults)} faults")
    sys.exit(bool(faults))
