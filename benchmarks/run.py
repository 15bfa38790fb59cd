"""Measure forgetmap beside its peers; writes benchmarks/results.md.

Usage: ``python benchmarks/run.py [--quick] [--only PART ...] [--out FILE]``

The full run takes some minutes and about 3 GB in the temporary folder (set TMPDIR to move it).
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from measure import (
    JobError,
    Measurement,
    available_gb,
    describe_machine,
    in_turns,
    run_command,
    run_job,
)
from report import Bar, Part, Row, render

RESULTS = Path(__file__).with_name("results.md")
REPEATS = 3
TIMES = ["best s", "median s", "CPU s"]
PAIRING_RATIOS = ["best / bare", "median / bare", "CPU / bare"]

OURS, BARE, PANDAS = "forgetmap.pair", "DuckDB, bare join", "pandas, merge"
ROADS = {
    OURS: "pair_forgetmap",
    BARE: "pair_duckdb",
    "polars, streaming": "pair_polars",
    PANDAS: "pair_pandas",
}


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    tasks: int = 100
    pairs: tuple[int, ...] = (1_000_000, 10_000_000)
    repeated_items: int = 1_000_000
    log_items: int = 400
    lines: int = 50_000
    table_rows: int = 10_000_000
    table_lines: int = 1_000_000
    megabytes: tuple[int, ...] = (250, 500, 1000, 2000)
    inspect_samples: tuple[int, ...] = (12_500, 25_000, 50_000, 100_000)
    # 600,000 items flip just less often than where the exact test gives way to an approximation:
    # it is then at its most costly.
    statistics_items: tuple[int, ...] = (1_000, 10_000, 100_000, 600_000, 1_000_000)
    draws: int = 10_000
    repetitions: int = 5
    starts: int = 7


QUICK = Sizes(
    tasks=20,
    pairs=(20_000,),
    repeated_items=5_000,
    log_items=5,
    lines=200,
    table_rows=2_000,
    table_lines=500,
    megabytes=(1,),
    inspect_samples=(20,),
    statistics_items=(1_000,),
    draws=500,
    repetitions=1,
    starts=1,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure forgetmap beside its peers.")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdicts: a test")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some parts; give --out too")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file to write")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the data are removed
    sizes = QUICK if options.quick else Sizes()
    machine = describe_machine()
    parts = []
    for name in options.only or PARTS:
        measure = PARTS[name]
        print(measure.__doc__, flush=True)
        # Each part has a folder of its own, gone when it ends, to need less room at a time.
        with tempfile.TemporaryDirectory(prefix="forgetmap-bench-") as folder:
            try:
                parts.append(measure(sizes, folder))
            except JobError as error:
                sys.exit(f"a job failed: {error}")
    options.out.write_text(render(parts, machine, judged=not options.quick), encoding="utf-8")
    print(f"written: {options.out}")


# --- 1: pairing ----------------------------------------------------------------------------------


def pairing(sizes: Sizes, folder: str) -> Part:
    """Pairing Samples files."""
    part = Part(
        "Pairing Samples files",
        f"{sizes.tasks} tasks, single runs, rows in a different random order on each side; files "
        "with all columns of Samples, texts too. The bare join is the plainest SQL that joins "
        "task, item, k and score of both files and counts, with forgetmap's memory limit. "
        "forgetmap also takes an inventory of both logs, finds the items that only one side has, "
        "and would find duplicates.",
        ["pairs", "contestant", *TIMES, "M pairs/s", *PAIRING_RATIOS, "peak MB"],
    )
    pandas_gb = 0.0
    for pairs in sizes.pairs:
        expected = _make(f"{pairs:,} pairs", "make_samples", folder, pairs, sizes.tasks, 1)
        skip = pandas_gb > available_gb()
        roads = {name: job for name, job in ROADS.items() if not (skip and name == PANDAS)}
        found = _race(roads, folder, sizes.repetitions)
        for name, measured in found.items():
            _check(name, measured, expected)
            bars = _pairing_bars(found, pairs) if (name, pairs) == (OURS, sizes.pairs[-1]) else []
            part.rows.append(Row(_pairing_cells(measured, found[BARE], pairs, name), bars))
        if skip:
            why = f"not run: would need about {pandas_gb:.0f} GB"
            part.rows.append(Row([f"{pairs:,}", PANDAS, why, *["-"] * 7], []))
        else:
            pandas_gb = found[PANDAS].peak_mb / 1e3 * sizes.pairs[-1] / pairs
    return part


def _pairing_cells(measured: Measurement, bare: Measurement, pairs: int, name: str) -> list[str]:
    return [
        f"{pairs:,}",
        name,
        *_times(measured),
        f"{pairs / measured.best / 1e6:.2f}",
        f"{measured.best / bare.best:.2f}",
        f"{measured.median / bare.median:.2f}",
        f"{measured.cpu / bare.cpu:.2f}",
        f"{measured.peak_mb:,.0f}",
    ]


def _pairing_bars(found: dict[str, Measurement], pairs: int) -> list[Bar]:
    ours, bare = found[OURS], found[BARE]
    ratio = ours.best / bare.best
    speed, bare_speed = (pairs / road.best / 1e6 for road in (ours, bare))
    what = f"pairing {pairs:,} pairs"
    return [
        Bar(f"{what}: at most 1.5 x the bare join", f"{ratio:.2f} x", ratio <= 1.5),
        Bar(
            f"{what}: at least 4 M pairs/s where the bare join reaches 5 M",
            f"{speed:.2f} M pairs/s, bare join {bare_speed:.2f} M",
            speed >= 4 if bare_speed >= 5 else None,
        ),
        Bar(f"{what}: peak memory under 3 GB", f"{ours.peak_mb / 1e3:.2f} GB", ours.peak_mb < 3000),
    ]


# --- 2: repeats ----------------------------------------------------------------------------------


def repeats(sizes: Sizes, folder: str) -> Part:
    """Pairing with repeats."""
    items = sizes.repeated_items
    part = Part(
        "Pairing with repeats",
        f"forgetmap.pair on {items:,} items, with one run and with {REPEATS} runs on each side.",
        ["runs per side", "rows per side", *TIMES, "best / one run", "peak MB"],
    )
    jobs = {}
    expected = {}
    for runs in (1, REPEATS):
        place = Path(folder, str(runs))
        place.mkdir()
        name = str(runs)
        expected[name] = _make(
            f"{items:,} items, runs: {runs}", "make_samples", str(place), items, sizes.tasks, runs
        )
        jobs[name] = partial(run_job, "pair_forgetmap", folder=str(place))
    found = in_turns(jobs, sizes.repetitions)
    for name, measured in found.items():
        _check(f"{OURS} with {name} runs", measured, expected[name])
        ratio = f"{measured.best / found['1'].best:.2f}"
        rows = f"{items * int(name):,}"
        cells = [name, rows, *_times(measured), ratio, f"{measured.peak_mb:,.0f}"]
        what = f"pairing {items:,} items: {REPEATS} runs at most 3.5 x one run"
        held = measured.best <= 3.5 * found["1"].best
        bars = [Bar(what, f"{ratio} x", held)] if name == str(REPEATS) else []
        part.rows.append(Row(cells, bars))
    return part


# --- 3: lighteval logs ---------------------------------------------------------------------------


def logs(sizes: Sizes, folder: str) -> Part:
    """Native lighteval logs."""
    pairs = sizes.tasks * sizes.log_items * REPEATS
    part = Part(
        "Native lighteval logs",
        f"{sizes.tasks} tasks x {sizes.log_items} items x {REPEATS} seeds x 2 models as lighteval "
        f"0.10 writes them: {2 * sizes.tasks * REPEATS} details files with prompts, answers of 1-2 "
        "kB and tokens, and as many results files. A pair is one item under one seed "
        f"({pairs:,} pairs). The plain script reads all columns of each file with pandas, sorts by "
        "prompt, and goes through both row by row. The columnar scripts read question and score "
        "with polars, join and count: one file after another, or all files in one lazy scan. They "
        "know the columns and the metric, trust the names of files, and check nothing.",
        ["contestant", *TIMES, "pairs/s", "times the script's speed", "peak MB"],
    )
    expected = _make("logs", "make_lighteval", folder, sizes.log_items, sizes.tasks, REPEATS)
    forms = {"forgetmap.read and pair": "patterns", "forgetmap.compare": "cells"}
    roads = {
        "forgetmap.read and pair": "logs_pair",
        "forgetmap.compare": "logs_compare",
        SCRIPT: "logs_pandas",
        COLUMNAR: "logs_polars",
        "polars, one scan": "logs_polars_scan",
    }
    found = _race(roads, folder, min(3, sizes.repetitions))
    for name, measured in found.items():
        _check(name, measured, expected[forms.get(name, "transitions")])
        ratio = f"{found[SCRIPT].best / measured.best:.1f}"
        cells = [name, *_times(measured), f"{pairs / measured.best:,.0f}", ratio]
        bars = _logs_bars(name, found, pairs) if name in forms else []
        part.rows.append(Row([*cells, f"{measured.peak_mb:,.0f}"], bars))
    return part


SCRIPT, COLUMNAR = "pandas, plain script", "polars, columns of each file"


def _logs_bars(name: str, found: dict[str, Measurement], pairs: int) -> list[Bar]:
    speed, script = (pairs / found[each].best for each in (name, COLUMNAR))
    what = f"lighteval logs, {name}"
    return [
        Bar(f"{what}: at least 100,000 pairs/s", f"{speed:,.0f} pairs/s", speed >= 100_000),
        Bar(
            f"{what}: ahead of the columnar script",
            f"{speed / script:.2f} x its {script:,.0f} pairs/s",
            speed > script,
        ),
    ]


# --- 4: reading ----------------------------------------------------------------------------------


def reading(sizes: Sizes, folder: str) -> Part:
    """Reading JSON lines."""
    part = Part(
        "Reading JSON lines",
        f"lm-eval logs of {sizes.lines:,} lines: forgetmap.read (to Samples, with identity hash, "
        "scores and option probabilities) beside parsers that only parse the same file.",
        ["log", "bytes a line", "contestant", *TIMES, "best / stdlib", "best / orjson", "peak MB"],
    )
    plain, quick = "json (stdlib)", "orjson"
    roads = {"forgetmap.read": "read_log", plain: "parse_stdlib", quick: "parse_orjson"}
    for kind in ("zero-shot", "five-shot", "generated"):
        place = Path(folder, kind)
        place.mkdir()
        run_job("make", what="make_lm_eval", folder=str(place), kind=kind, lines=sizes.lines)
        size = next(place.iterdir()).stat().st_size / sizes.lines
        found = _race(roads, str(place), sizes.repetitions)
        for name, measured in found.items():
            _check(name, measured, found[plain].turns[0].result)
            slow, fast = (measured.best / found[parser].best for parser in (plain, quick))
            what = f"reading {kind} lm-eval lines"
            bars = [
                Bar(f"{what}: at most 2 x the stdlib parser", f"{slow:.2f} x", slow <= 2),
                Bar(f"{what}: no slower than orjson alone", f"{fast:.2f} x", fast <= 1),
            ]
            ratios = [f"{slow:.2f}", f"{fast:.2f}"]
            cells = [kind, f"{size:,.0f}", name, *_times(measured), *ratios]
            cells.append(f"{measured.peak_mb:,.0f}")
            part.rows.append(Row(cells, bars if name == "forgetmap.read" else []))
    return part


def tables(sizes: Sizes, folder: str) -> Part:
    """Plain tables."""
    rows = sizes.table_rows
    part = Part(
        "Plain tables",
        f"Two tables with an id, a question of some 40 characters, a target and a score, in "
        f"different order: {rows:,} rows of Parquet and CSV, {sizes.table_lines:,} JSON lines that "
        "also hold four options and an answer. forgetmap hashes question, options and target; the "
        "bare join reads question, target and score of both files, joins and counts. orjson parses "
        "one of the files, line by line, and does nothing else.",
        ["table", "contestant", *TIMES, "M rows/s", "best / peer", "peak MB"],
    )
    repetitions = min(3, sizes.repetitions)
    for kind in ("parquet", "csv"):
        place = Path(folder, kind)
        place.mkdir()
        expected = run_job("make", what="make_tables", folder=str(place), rows=rows, kind=kind)
        roads = {
            "forgetmap.read, one table": "read_table",
            "forgetmap.compare, both": "compare_tables",
            BARE: "join_tables",
        }
        found = _race(roads, str(place), repetitions)
        bare = found[BARE]
        for name, measured in found.items():
            one = name.startswith("forgetmap.read")
            _check(name, measured, rows if one else expected.result)
            speed = (rows if one else 2 * rows) / measured.best / 1e6
            ratio = measured.best / bare.best
            bars = []
            if one:
                what = f"reading a table, {kind}: at least 1 M rows/s"
                bars = [Bar(what, f"{speed:.2f} M rows/s", speed >= 1)]
            elif name != BARE:
                what = f"comparing two tables, {kind}: at most 5 x the bare join"
                bars = [Bar(what, f"{ratio:.2f} x", ratio <= 5)]
            cells = [kind, name, *_times(measured), f"{speed:.2f}", f"{ratio:.2f}"]
            part.rows.append(Row([*cells, f"{measured.peak_mb:,.0f}"], bars))
    part.rows += _json_tables(sizes.table_lines, Path(folder, "jsonl"), repetitions)
    return part


def _json_tables(lines: int, place: Path, repetitions: int) -> list[Row]:
    place.mkdir()
    run_job("make", what="make_tables", folder=str(place), rows=lines, kind="jsonl")
    roads = {"forgetmap.read, one table": "read_table", "orjson": "parse_table"}
    found = _race(roads, str(place), repetitions)
    rows = []
    for name, measured in found.items():
        _check(name, measured, lines)
        ratio = measured.best / found["orjson"].best
        what = "reading a table of JSON lines: no slower than orjson alone"
        bars = [Bar(what, f"{ratio:.2f} x", ratio <= 1)] if name != "orjson" else []
        speed = lines / measured.best / 1e6
        cells = ["jsonl", name, *_times(measured), f"{speed:.2f}", f"{ratio:.2f}"]
        rows.append(Row([*cells, f"{measured.peak_mb:,.0f}"], bars))
    return rows


def memory(sizes: Sizes, folder: str) -> Part:
    """Memory of reading."""
    part = Part(
        "Memory of reading",
        "forgetmap.read of ever larger logs, one reading each. Rows that do not fit in 64 MiB go "
        "to a temporary Parquet file.",
        ["log", "size MB", "samples", "s", "peak MB", "peak / smallest"],
    )
    cases = [("lm-eval, generated", "make_lm_eval", {"megabytes": mb}) for mb in sizes.megabytes]
    cases += [("Inspect .eval", "make_inspect", {"samples": n}) for n in sizes.inspect_samples]
    smallest: dict[str, float] = {}
    largest = ({"megabytes": sizes.megabytes[-1]}, {"samples": sizes.inspect_samples[-1]})
    for number, (name, what, size) in enumerate(cases):
        place = Path(folder, str(number))
        place.mkdir()
        kind = {"kind": "generated"} if what == "make_lm_eval" else {}
        made = run_job("make", what=what, folder=str(place), **kind, **size).result
        (path,) = place.iterdir()
        turn = run_job("read_log", folder=str(path))
        _check(name, Measurement([turn]), made)
        ratio = turn.peak_mb / smallest.setdefault(name, turn.peak_mb)
        bars = []
        if size in largest:
            what = f"reading {name}, largest log: peak at most 2 x the smallest's"
            bars = [Bar(what, f"{ratio:.2f} x", ratio <= 2)]
        megabytes = f"{path.stat().st_size / 1e6:,.0f}"
        cells = [name, megabytes, f"{made:,}", f"{turn.seconds:.1f}", f"{turn.peak_mb:,.0f}"]
        part.rows.append(Row([*cells, f"{ratio:.2f}"], bars))
        path.unlink()
        print(f"  {name} {megabytes} MB: {turn.peak_mb:,.0f} MB", flush=True)
    return part


# --- 5: statistics -------------------------------------------------------------------------------


def statistics(sizes: Sizes, folder: str) -> Part:  # noqa: ARG001 - every part takes it
    """Statistics after pairing."""
    part = Part(
        "Statistics after pairing",
        f"All cells of {sizes.tasks} tasks and 10 categories, with the total and the macro "
        f"average, from outcome patterns, at {sizes.draws:,} draws.",
        ["items per task", "runs per side", *TIMES, "best / fewest items", "peak MB"],
    )
    settings = [(items, 1) for items in sizes.statistics_items]
    settings.append((sizes.statistics_items[len(settings) // 2], REPEATS))
    jobs = {
        f"{items:,} items, runs: {runs}": partial(
            run_job, "statistics", tasks=sizes.tasks, items=items, repeats=runs, draws=sizes.draws
        )
        for items, runs in settings
    }
    found = in_turns(jobs, min(3, sizes.repetitions))
    single = [
        found[name].best for name, (_, runs) in zip(found, settings, strict=True) if runs == 1
    ]
    for (items, runs), (name, measured) in zip(settings, found.items(), strict=True):
        _check(name, measured, sizes.tasks * items)
        what = f"statistics, {name}: under 2 s"
        bars = [Bar(what, f"{measured.best:.2f} s", measured.best < 2)]
        # The slowest size need not be the largest, so it is the one to carry the verdict.
        if runs == 1 and measured.best == max(single):
            spread = max(single) / min(single)
            what = "statistics, single runs: slowest size at most 1.5 x the fastest"
            bars.append(Bar(what, f"{spread:.2f} x", spread <= 1.5))
        cells = [f"{items:,}", str(runs), *_times(measured), f"{measured.best / single[0]:.2f}"]
        part.rows.append(Row([*cells, f"{measured.peak_mb:,.0f}"], bars))
    return part


# --- 6: start-up ---------------------------------------------------------------------------------


def startup(sizes: Sizes, folder: str) -> Part:
    """Start-up."""
    part = Part(
        "Start-up",
        "Whole commands from outside, the start of Python included.",
        ["command", *TIMES, "best / python"],
    )
    nothing = "python -c pass"
    forgetmap = _forgetmap()
    commands = {
        nothing: [sys.executable, "-c", "pass"],
        "forgetmap --help": [*forgetmap, "--help"],
        "forgetmap demo": [*forgetmap, "demo", "--out", str(Path(folder, "demo"))],
    }
    limits = {"forgetmap --help": 0.2, "forgetmap demo": 3.0}
    for name, command in list(commands.items()):
        try:
            run_command(command)  # once untimed, so that compiled files are there
        except JobError as error:
            print(f"  {name} failed: {error}", flush=True)
            bars = [Bar(f"{name}: under {limits[name]} s", "failed", False)]
            part.rows.append(Row([name, f"failed: {str(error)[:100]}", "-", "-", "-"], bars))
            del commands[name]
    jobs = {name: partial(run_command, command) for name, command in commands.items()}
    found = in_turns(jobs, sizes.starts)
    for name, measured in found.items():
        bars = []
        if limit := limits.get(name):
            bars = [
                Bar(f"{name}: under {limit} s", f"{measured.best:.2f} s", measured.best < limit)
            ]
        ratio = f"{measured.best / found[nothing].best:.1f}"
        part.rows.append(Row([name, *_times(measured), ratio], bars))
    return part


def _forgetmap() -> list[str]:
    """The installed command, or the same from the source tree."""
    script = Path(sys.executable).with_name("forgetmap")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from forgetmap.cli.app import main; main()"]


# --- what the parts share ------------------------------------------------------------------------


def _make(label: str, what: str, folder: str, items: int, tasks: int, runs: int) -> Any:
    """Make data and return the counts that were put into them."""
    print(f" {label}", flush=True)
    name = "seeds" if what == "make_lighteval" else "repeats"
    arguments = {"folder": folder, "items": items, "tasks": tasks, name: runs}
    return run_job("make", what=what, **arguments).result


def _race(roads: dict[str, str], folder: str, repetitions: int) -> dict[str, Measurement]:
    jobs = {name: partial(run_job, job, folder=folder) for name, job in roads.items()}
    return in_turns(jobs, repetitions)


def _check(name: str, measured: Measurement, expected: Any) -> None:
    """Stop where a contestant found something else than was put in: its time means nothing."""
    for turn in measured.turns:
        if turn.result != expected:
            raise SystemExit(f"wrong counts: {name} found {_difference(turn.result, expected)}")


def _difference(found: Any, expected: Any) -> str:
    if not isinstance(expected, list):
        return f"{found}, not {expected}"
    wrong = [row for row in found if row not in expected]
    missing = [row for row in expected if row not in found]
    return f"{len(wrong)} wrong rows ({wrong[:3]}), and not {missing[:3]}"


def _times(measured: Measurement) -> list[str]:
    return [f"{value:.3f}" for value in (measured.best, measured.median, measured.cpu)]


PARTS = {
    part.__name__: part
    for part in (pairing, repeats, logs, reading, tables, memory, statistics, startup)
}

if __name__ == "__main__":
    main()
