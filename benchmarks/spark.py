"""How the cost of pairing grows on Spark, beside DuckDB, on this machine: prints a table.

Usage: ``python benchmarks/spark.py [--pairs 500000 1000000 2000000 4000000]``

Local Spark with two cores shows how cost grows with the log, not what a cluster can do.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import data
from forgetmap import Samples, pair
from forgetmap.pairing import spark


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure pairing on local Spark.")
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 1_000_000, 2_000_000])
    options = parser.parse_args()
    session = _session()
    print("| pairs | Spark s | Spark s per M | DuckDB s | Spark / DuckDB |\n" + "| --- " * 5 + "|")
    _measure(session, 10_000)  # a cold Spark compiles its plans first
    for pairs in options.pairs:
        ours, theirs = _measure(session, pairs)
        cells = (f"{pairs:,}", f"{ours:.1f}", f"{ours / pairs * 1e6:.1f}", f"{theirs:.2f}")
        print(f"| {' | '.join(cells)} | {ours / theirs:.1f} |", flush=True)
    session.stop()


def _session() -> object:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _measure(session: object, pairs: int) -> tuple[float, float]:  # noqa: ARG001 - kept alive
    with tempfile.TemporaryDirectory() as folder:
        data.make_samples(folder, items=pairs, tasks=100, repeats=1)
        files = [Path(folder, f"{side}.parquet") for side in ("before", "after")]
        on_spark, ours = _timed(lambda: spark.pair(*(spark.Lake(str(file)) for file in files)))
        here, theirs = _timed(lambda: pair(*(Samples.read(file) for file in files)))
    if (on_spark.patterns.n != here.patterns.n).any() or on_spark.coverage != here.coverage:
        raise SystemExit("Spark and DuckDB found different counts")
    return ours, theirs


def _timed(work: Callable[[], object]) -> tuple[object, float]:
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


if __name__ == "__main__":
    main()
