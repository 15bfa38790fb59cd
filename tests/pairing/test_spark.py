"""Pairing on a real local Spark gives what DuckDB gives, and never shuffles text."""

from __future__ import annotations

import random

import numpy as np
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.map.example import example_logs
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples
from forgetmap.stats.patterns import Moment
from spark_session import NEEDS_SPARK, local_spark  # noqa: F401

pytestmark = NEEDS_SPARK


def random_options(luck: random.Random) -> dict:
    """The columns of an item with four options; some rows do not give them all."""
    weights = [luck.random() ** 3 for _ in range(4)]
    options = [weight / sum(weights) for weight in weights]
    told = {"option_probabilities": options, "right_option": 1} if luck.random() < 0.9 else {}
    return {"k": 4, "gold_probability": options[1], **told}


def random_log(seed: int, **options) -> Samples:
    """A log with everything that pairing must handle; the same items for every seed."""
    luck = random.Random(seed)
    repeats, clusters = options.get("repeats", 1), options.get("clusters", False)
    rows = []
    for task in ("sums", "it's odd", "index"):
        for i in range(120):
            if luck.random() < 0.05:
                continue
            rows += [
                {
                    "model": "m",
                    "task": task,
                    "item": None if task == "index" else content_hash(task, i),
                    "item_ref": str(i),
                    "repeat": repeat,
                    "score": luck.choice([0.0, 1.0, 1.0, None]),
                    **(random_options(luck) if task == "sums" else {}),
                    "cluster": f"p{i // 7}" if clusters else None,
                    "response": f"answer {luck.random()}",
                    "target": "x",
                }
                for repeat in range(repeats)
            ]
    if options.get("duplicates"):
        rows += luck.sample(rows, 20)
    settings = {"m": {"limit": seed}}
    return Samples.from_rows(rows, Meta(harness="test", settings=settings))


CASES = {
    "plain": {},
    "repeats": {"repeats": 3},
    "clusters": {"clusters": True, "repeats": 2},
    "duplicates": {"duplicates": True},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("identity", ["content", "index"])
def test_spark_gives_the_map_and_the_flips_of_duckdb(name, identity, tmp_path):
    paths = []
    for seed in (1, 2):
        paths.append(tmp_path / f"{seed}.parquet")
        random_log(seed, **CASES[name]).write(paths[-1])
    maps, flips = {}, {}
    for engine in ("duckdb", "spark"):
        flips[engine] = tmp_path / f"{engine}.jsonl"
        maps[engine] = forgetmap.compare(
            *paths, engine=engine, identity=identity, flips=flips[engine], draws=200
        )
    assert maps["spark"].total.n > 150
    assert maps["spark"].coverage == maps["duckdb"].coverage
    assert maps["spark"].confounds == maps["duckdb"].confounds != []
    assert maps["spark"].tasks == maps["duckdb"].tasks
    assert flips["spark"].read_text() == flips["duckdb"].read_text() != ""
    assert_same_moments(paths, identity)


def assert_same_moments(paths, identity):
    from forgetmap.pairing import spark, two_logs

    local = two_logs.pair(*map(Samples.read, paths), identity=identity).patterns.moments
    lake = spark.pair(*(spark.Lake(str(path)) for path in paths), identity=identity)
    np.testing.assert_array_equal(lake.patterns.moments, local)
    assert local[:, Moment.CHURN_KNOWN].sum() > 50


def test_the_bundled_example_gives_the_same_map_on_spark(tmp_path):
    logs = example_logs()
    maps = [forgetmap.compare(*logs, engine=engine) for engine in ("duckdb", "spark")]
    assert maps[0] == maps[1]


def test_text_is_never_shuffled(tmp_path, local_spark):  # noqa: F811
    from forgetmap.pairing import spark

    paths = [tmp_path / f"{seed}.parquet" for seed in (1, 2)]
    for seed, path in enumerate(paths):
        random_log(seed, repeats=2).write(path)
    pairs = spark.pair(*(spark.Lake(str(path)) for path in paths))
    engine = pairs.source
    keys = engine._run(f"SELECT task, key FROM ({engine._compared('<>')})")
    narrow = keys._jdf.queryExecution().toString()
    assert "hashpartitioning" in narrow  # the join itself does shuffle, narrow columns only
    assert "response" not in narrow.split("== Physical Plan ==")[1]
    local = local_spark.createDataFrame(keys.toArrow())
    wide = engine._wanted("s0", engine.spark.createDataFrame(local.toArrow()))
    plan = wide._jdf.queryExecution().toString().split("== Physical Plan ==")[1]
    assert "response" in plan
    assert "hashpartitioning" not in plan
    assert "Broadcast" in plan


def test_what_spark_cannot_read_gets_one_line(tmp_path):
    table = tmp_path / "other.parquet"
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), table)
    good = tmp_path / "good.parquet"
    random_log(1).write(good)
    with pytest.raises(InputError, match=r"other.parquet: is not Samples Parquet .* convert"):
        forgetmap.compare(table, good, engine="spark")
    with pytest.raises(InputError, match="Spark cannot read it") as caught:
        forgetmap.compare(tmp_path / "none.parquet", good, engine="spark")
    assert "\n" not in str(caught.value)
