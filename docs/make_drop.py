"""Build the page of the docs site that maps two logs in the browser: build/pages/drop.

DuckDB-WASM reads no Parquet and no JSON without loading more from the network, so JavaScript reads
the files and DuckDB-WASM pairs them, by the very queries of the Python package: they are recorded
here as they run. The page's few sums are in docs/drop/estimates.js; a test holds them to the
command line, digit for digit. Pyodide would have run the package itself, but numpy, scipy, pyarrow
and duckdb have no builds for it on npm or PyPI.

What npm brings is bundled here and never committed. Without npm the page is left out.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

from forgetmap.map.example import example_logs
from forgetmap.pairing.two_logs import LogPair
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples

SOURCES = Path(__file__).with_name("drop")
ITEMS = """SELECT task, item_ref, prompt_before, target, answer_before, answer_after,
    coalesce(probability_before - probability_after, before - after) AS fall
    FROM listed WHERE transition = 'forgotten' ORDER BY fall DESC, task, item"""


def build(folder: Path) -> str:
    """Write the page into a folder; returns why it cannot be, empty where it is there."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    work = folder.parents[1] / "drop"
    shutil.copytree(SOURCES, work, dirs_exist_ok=True)
    if not (work / "node_modules" / ".package-lock.json").exists():
        fetched = _run(work, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        if fetched.returncode:
            return f"npm could not fetch the packages ({fetched.stderr.strip()[-200:]})"
    (work / "shared.js").write_text(_shared(), encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    bundled = _run(
        work,
        str(work / "node_modules" / ".bin" / "esbuild"),
        *("main.js", "--bundle", "--format=esm", "--minify", f"--outfile={folder / 'drop.js'}"),
    )
    if bundled.returncode:
        raise SystemExit(bundled.stderr)
    dist = work / "node_modules" / "@duckdb" / "duckdb-wasm" / "dist"
    shutil.copy(dist / "duckdb-eh.wasm", folder / "duckdb.wasm")
    shutil.copy(dist / "duckdb-browser-eh.worker.js", folder / "duckdb.worker.js")
    shutil.copy(SOURCES / "index.html", folder)
    shutil.copy(SOURCES / "drop.css", folder)
    (folder / "example").mkdir(exist_ok=True)
    for log in example_logs():
        shutil.copy(log, folder / "example")
    (folder / "page.css").write_text(_asset("page.css"), encoding="utf-8")
    (folder / "recipes.json").write_text(json.dumps(recipes()), encoding="utf-8")
    return ""


def recipes() -> dict[str, dict[str, Any]]:
    """The queries that pair two logs, by what the logs hold."""
    chances = {
        "plain": {},
        "probabilities": {"gold_probability": 0.5},
        "options": {
            "gold_probability": 0.5,
            "option_probabilities": [0.5, 0.25, 0.25],
            "right_option": 0,
        },
    }
    return {
        runs: {name: _recipe(repeats, columns) for name, columns in chances.items()}
        for runs, repeats in (("single", 1), ("repeats", 2))
    }


class _Recorded(LogPair):
    """A pair of logs that keeps the queries it runs."""

    def __init__(self, *arguments: Any) -> None:
        self.queries: list[str] = []
        super().__init__(*arguments)

    def _query(self, sql: str) -> Any:
        self.queries.append(sql)
        return super()._query(sql)

    def _packed_histogram(self, before: str, after: str) -> None:
        """Leave it to the query that serves every log."""


def _recipe(repeats: int, columns: dict[str, Any]) -> dict[str, Any]:
    logs = {
        side: Samples.from_rows(
            {"item": content_hash("one"), "repeat": repeat, "score": score, "k": 3, **columns}
            for repeat in range(repeats)
        )
        for side, score in (("before", 1.0), ("after", 0.0))
    }
    recorded = _Recorded(logs, None, None, "content")
    pairs = recorded.pairs()
    list(pairs.flips())
    queries = recorded.queries
    places = {query.split(" AS ")[0].split()[-1]: query for query in queries}
    return {
        "views": [
            places[f"{side}_{what}"] for what in ("scores", "items") for side in ("s0", "s1")
        ],
        "histogram": next(query for query in queries if "joined AS" in query),
        "listing": [places[name] for name in ("flipped", "s0_shown", "s1_shown", "listed")],
        "items": ITEMS,
    }


def _shared() -> str:
    """The words and numbers of the report, as a module."""
    names = "brief, byId, endOf, make, percent, points, setUpTheme, SNIPPET, whole, withoutCue"
    return f"{_asset('shared/basics.js')}\n{_asset('shared/snippets.js')}\nexport {{ {names} }};\n"


def _asset(name: str) -> str:
    assets = resources.files("forgetmap.views.html") / "assets"
    return (assets / name).read_text(encoding="utf-8")


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
