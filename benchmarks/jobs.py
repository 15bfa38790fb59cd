"""The measured jobs. Each runs in a process of its own: `python jobs.py NAME JSON_ARGUMENTS`.

It prints one line of JSON: seconds of the work alone (without start-up and imports), peak memory of
the process, and what came out, for the check that all contestants found the same.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Counts = list[list[Any]]


class Job(NamedTuple):
    """What is timed, and how its outcome is told; importing is done before either."""

    work: Callable[[], Any]
    tell: Callable[[Any], Any]


# --- pairing Samples files -----------------------------------------------------------------------

COLUMNS = ["task", "item", "k", "score"]


def pair_forgetmap(folder: str) -> Job:
    """forgetmap.pair."""
    from forgetmap import Samples, pair

    def work() -> Any:
        before, after = (Samples.read(Path(folder, f"{side}.parquet")) for side in _SIDES)
        return pair(before, after)

    return Job(work, lambda pairs: _of_patterns(pairs.patterns))


def pair_duckdb(folder: str) -> Job:
    """The plainest join in DuckDB, with the settings that forgetmap gives it."""
    import duckdb

    from forgetmap.base.database import MEMORY_LIMIT

    before, after = (f"read_parquet('{Path(folder, side)}.parquet')" for side in _SIDES)

    def work() -> Any:
        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        connection.execute(f"SET temp_directory = '{folder}'")
        connection.execute("SET preserve_insertion_order = false")
        return connection.execute(
            f"""SELECT task, b.k, b.score >= 0.5, a.score >= 0.5, count(*)
                FROM {before} b JOIN {after} a USING (task, item) GROUP BY ALL"""
        ).fetchall()

    return Job(work, _sorted)


def pair_polars(folder: str) -> Job:
    """The same in polars, by its streaming engine."""
    import polars as pl

    def work() -> Any:
        before, after = (
            pl.scan_parquet(Path(folder, f"{side}.parquet")).select(COLUMNS) for side in _SIDES
        )
        return (
            before.join(after, on=["task", "item"], suffix="_after")
            .group_by(
                "task",
                "k",
                (pl.col("score") >= 0.5).alias("before"),
                (pl.col("score_after") >= 0.5).alias("after"),
            )
            .len()
            .collect(engine="streaming")
        )

    return Job(work, lambda frame: _sorted(frame.rows()))


def pair_pandas(folder: str) -> Job:
    """The same in pandas: merge, then group."""
    import pandas as pd

    def work() -> Any:
        before, after = (
            pd.read_parquet(Path(folder, f"{side}.parquet"), columns=COLUMNS) for side in _SIDES
        )
        merged = before.merge(after, on=["task", "item"], suffixes=("", "_after"))
        keys = [merged["task"], merged["k"], merged["score"] >= 0.5, merged["score_after"] >= 0.5]
        return merged.groupby(keys, dropna=False).size()

    def tell(sizes: Any) -> Counts:
        rows = ((*keys, number) for keys, number in sizes.items())
        return _sorted((task, None if k != k else int(k), *rest) for task, k, *rest in rows)

    return Job(work, tell)


_SIDES = ("before", "after")


def _sorted(rows: Any) -> Counts:
    """Bring (task, k, right before, right after, number) into the common form."""
    return sorted([task, k, int(b), int(a), int(n)] for task, k, b, a, n in rows)


def _of_patterns(patterns: Any) -> Counts:
    found: Counter[tuple[Any, ...]] = Counter()
    for task, k, before, after, n in zip(
        patterns.task,
        patterns.k,
        patterns.right_before,
        patterns.right_after,
        patterns.n,
        strict=True,
    ):
        found[str(task), None if k == float("inf") else int(k), int(before), int(after)] += int(n)
    return _sorted((*key, n) for key, n in found.items())


# --- lighteval logs ------------------------------------------------------------------------------


def logs_compare(folder: str) -> Job:
    """forgetmap.compare on the folders, with 1,000 draws."""
    from forgetmap import compare

    _import_reader(Path(folder, _SIDES[0]))

    def work() -> Any:
        return compare(*(Path(folder, side) for side in _SIDES), draws=1000)

    def tell(found: Any) -> Counts:
        return [
            [name, cell.n, round(cell.counts.n10, 6), round(cell.counts.n01, 6)]
            for name, cell in found.tasks.items()
        ]

    return Job(work, tell)


def logs_pair(folder: str) -> Job:
    """Reading and pairing alone."""
    from forgetmap import pair, read

    _import_reader(Path(folder, _SIDES[0]))

    def work() -> Any:
        before, after = (read(Path(folder, side)) for side in _SIDES)
        return pair(before, after)

    return Job(work, lambda pairs: _of_patterns(pairs.patterns))


def logs_pandas(folder: str) -> Job:
    """What a script would do: all columns of each file, sorted by prompt, row by row."""
    import pandas as pd

    def work() -> Any:
        found: Counter[tuple[str, int, int]] = Counter()
        files = [sorted(Path(folder, side).rglob("details_*.parquet")) for side in _SIDES]
        for both in zip(*files, strict=True):  # the folders differ in the model's name alone
            task = both[0].name.split("|")[1]
            before, after = (
                pd.read_parquet(file, partitioning=None).sort_values("full_prompt") for file in both
            )
            for (_, old), (_, new) in zip(before.iterrows(), after.iterrows(), strict=True):
                scores = (row["metrics"]["extractive_match"] for row in (old, new))
                found[task, *(round(score) for score in scores)] += 1
        return found

    return Job(work, lambda found: sorted([*key, n] for key, n in found.items()))


def logs_polars(folder: str) -> Job:
    """What a careful script would do: the needed columns of each file, then one join."""
    import polars as pl

    def columns(file: Path) -> pl.DataFrame:
        frame = pl.read_parquet(file, columns=["example", "metrics"], glob=False)
        scores = pl.col("metrics").struct.field("extractive_match").alias("score")
        task, run = file.name.split("|")[1], file.parent.name
        return frame.select("example", scores, task=pl.lit(task), run=pl.lit(run))

    def work() -> Any:
        before, after = (
            pl.concat(map(columns, sorted(Path(folder, side).rglob("details_*.parquet"))))
            for side in _SIDES
        )
        return _transitions(before.join(after, on=["task", "run", "example"], suffix="_after"))

    return Job(work, lambda frame: sorted(map(list, frame.rows())))


def logs_polars_scan(folder: str) -> Job:
    """The same by one lazy scan of all files."""
    import polars as pl

    def columns(side: str) -> pl.LazyFrame:
        files = sorted(Path(folder, side).rglob("details_*.parquet"))
        frame = pl.scan_parquet(
            files, include_file_paths="file", glob=False, hive_partitioning=False
        )
        scores = pl.col("metrics").struct.field("extractive_match").alias("score")
        names = pl.col("file").str.extract("details_[^|]*[|]([^|]*)[|][^/]*$", 1).alias("task")
        runs = pl.col("file").str.extract("_([^_/]*)$", 1).alias("run")
        return frame.select("example", scores, names, runs)

    def work() -> Any:
        before, after = map(columns, _SIDES)
        joined = before.join(after, on=["task", "run", "example"], suffix="_after")
        return _transitions(joined).collect(engine="streaming")

    return Job(work, lambda frame: sorted(map(list, frame.rows())))


def _transitions(joined: Any) -> Any:
    """Count the pairs by task and outcomes."""
    import polars as pl

    right = [(pl.col(name) >= 0.5).cast(pl.Int64) for name in ("score", "score_after")]
    return joined.group_by("task", *right).len()


# --- statistics ----------------------------------------------------------------------------------


def statistics(tasks: int, items: int, repeats: int, draws: int) -> Job:
    """Every cell of a map: total, macro, categories, tasks."""
    from data import make_patterns
    from forgetmap.map.cells import CellTable, Plan

    patterns = make_patterns(tasks, items, repeats)
    categories = {name: f"category {number % 10}" for number, name in enumerate(patterns.tasks)}

    def work() -> Any:
        table = CellTable(patterns, categories, Plan(draws=draws))
        return table.total(), table.macro(), table.category_cells(), table.tasks()

    return Job(work, lambda cells: cells[0].n)


# --- reading -------------------------------------------------------------------------------------


def read_log(folder: str) -> Job:
    """forgetmap.read."""
    from forgetmap import read

    _import_reader(Path(folder))
    return Job(lambda: read(folder), lambda samples: len(samples))


def _import_reader(log: Path) -> None:
    """Import all that reading a log takes, as the peers import theirs before the clock starts."""
    import pyarrow as pa

    from forgetmap.readers.registry import find_reader

    find_reader(log)
    pa.array([])  # pyarrow imports pandas here, where it is installed; forgetmap needs none


def parse_stdlib(folder: str) -> Job:
    """The plain parser: json of the standard library, line by line."""
    return _parse(folder, json.loads)


def parse_orjson(folder: str) -> Job:
    """The fastest parser at hand, line by line."""
    import orjson

    return _parse(folder, orjson.loads)


def _parse(folder: str, loads: Callable[[bytes], Any]) -> Job:
    (path,) = Path(folder).glob("*.jsonl")

    def work() -> int:
        with path.open("rb") as file:
            return sum(len(loads(line)["metrics"]) for line in file)

    return Job(work, lambda rows: rows)


# --- plain tables --------------------------------------------------------------------------------


def _table(folder: str, side: str) -> Path:
    (path,) = Path(folder).glob(f"{side}.*")
    return path


def read_table(folder: str) -> Job:
    """forgetmap.read of one table."""
    from forgetmap import read

    _import_reader(_table(folder, "before"))
    return Job(lambda: read(_table(folder, "before")), lambda samples: samples.rows)


def compare_tables(folder: str) -> Job:
    """forgetmap.compare of two tables, with all statistics."""
    from forgetmap import compare

    before, after = (_table(folder, side) for side in _SIDES)
    _import_reader(before)

    def tell(found: Any) -> Counts:
        counts = found.total.counts
        return [[round(n) for n in (counts.n00, counts.n01, counts.n10, counts.n11)]]

    return Job(lambda: compare(before, after), tell)


def join_tables(folder: str) -> Job:
    """The plainest join of two tables in DuckDB, with the settings that forgetmap gives it."""
    import duckdb

    from forgetmap.base.database import MEMORY_LIMIT

    before, after = (f"'{_table(folder, side)}'" for side in _SIDES)

    def work() -> Any:
        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        connection.execute(f"SET temp_directory = '{folder}'")
        connection.execute("SET preserve_insertion_order = false")
        return connection.execute(
            f"""SELECT b.correct::INT, a.correct::INT, count(*)
                FROM {before} b JOIN {after} a USING (question, target) GROUP BY ALL"""
        ).fetchall()

    def tell(rows: Any) -> Counts:
        counts = {(b, a): n for b, a, n in rows}
        return [[counts.get(key, 0) for key in ((0, 0), (0, 1), (1, 0), (1, 1))]]

    return Job(work, tell)


def parse_table(folder: str) -> Job:
    """orjson over the lines of one table."""
    import orjson

    def work() -> int:
        with _table(folder, "before").open("rb") as file:
            return sum(1 for line in file if orjson.loads(line))

    return Job(work, lambda rows: rows)


# --- data ----------------------------------------------------------------------------------------


def make(what: str, **arguments: Any) -> Job:
    """Make data, in a process of its own too."""
    import data
    import logs

    home = logs if hasattr(logs, what) else data
    return Job(lambda: getattr(home, what)(**arguments), lambda counts: counts)


JOBS: dict[str, Callable[..., Job]] = {
    job.__name__: job
    for job in (
        *(pair_forgetmap, pair_duckdb, pair_polars, pair_pandas),
        *(logs_compare, logs_pair, logs_pandas, logs_polars, logs_polars_scan),
        *(statistics, make),
        *(read_log, parse_stdlib, parse_orjson),
        *(read_table, compare_tables, join_tables, parse_table),
    )
}


def peak_mb() -> float:
    """Peak memory of this process in MB (10**6 bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    name, arguments = sys.argv[1:]
    job = JOBS[name](**json.loads(arguments))
    start, cpu_start = time.perf_counter(), time.process_time()
    outcome = job.work()
    taken = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "peak_mb": peak_mb(),  # before the outcome is told, which takes memory of its own
    }
    print(json.dumps({**taken, "result": job.tell(outcome)}))


if __name__ == "__main__":
    main()
