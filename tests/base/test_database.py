"""The database: bounded memory wherever it is opened."""

from __future__ import annotations

import re
import subprocess
import sys

from forgetmap.base.database import connect
from places import ROOT


def test_memory_is_bounded() -> None:
    settings = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
    limit, folder = connect().execute(settings).fetchone()
    assert limit == "1.3 GiB"
    assert "forgetmap-" in folder


def test_one_place_opens_the_database() -> None:
    source = ROOT / "src" / "forgetmap"
    opening = [
        str(file.relative_to(source))
        for file in sorted(source.rglob("*.py"))
        if re.search(r"duckdb\.connect\(", file.read_text(encoding="utf-8"))
    ]
    assert opening == ["base/database.py"]


def test_slow_queries_draw_nothing_into_the_output() -> None:
    """DuckDB turns its own bar on where no script runs: at a prompt, or by `python -c`."""
    setting = "SELECT current_setting('enable_progress_bar')"
    code = f"from forgetmap.base.database import connect; print(connect().sql({setting!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "false" in done.stdout
