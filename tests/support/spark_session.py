"""A real local Spark for tests that need one."""

from __future__ import annotations

import shutil

import pytest

NEEDS_SPARK = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pyspark leaves sockets open when it ends
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17"),
]


@pytest.fixture(scope="module", autouse=True)
def local_spark():
    sql = pytest.importorskip("pyspark.sql", reason="needs pip install 'forgetmap[spark]'")
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
