"""Pairing on a cluster: the SQL of `forgetmap.pairing.two_logs`, run by Spark where the logs live.

For logs that have outgrown one machine. Only the narrow columns are read and shuffled; the text of
an item is fetched for the items that changed alone, by a broadcast of their keys, and the list of
changes is then made by DuckDB on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.base.database import Rows
from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief, some
from forgetmap.pairing.logs import ListSql
from forgetmap.pairing.pairs import Pairs
from forgetmap.pairing.two_logs import LogPair
from forgetmap.samples.comparability import Identity
from forgetmap.samples.options import TOLERANCE
from forgetmap.samples.table import META_KEY, SCHEMA, Meta, Samples, parse_meta

_MOST_FOOTERS = 200
"""Files whose metadata are looked at; parts of one log all say the same."""
_SUM = "aggregate({0}, CAST(0 AS DOUBLE), (s, x) -> s + x)"
_LISTS = ListSql(
    size="array_size({0})",
    good=f"(forall({{0}}, x -> x >= 0) AND abs({_SUM} - 1) <= {TOLERANCE})",
    total=_SUM,
    at="try_element_at({0}, {1} + 1)",
    gap=_SUM.format("zip_with({0}, {2}, (x, y) -> abs(x / {1} - y / {3}))"),
    in_order="array_sort(collect_list(struct({1}, {0})) FILTER ({0} IS NOT NULL))",
    mean="""transform(sequence(1, array_size(try_element_at({0}, 1).options)),
                   place -> aggregate({0}, CAST(0 AS DOUBLE),
                                      (s, x) -> s + try_element_at(x.options, place))
                            / array_size({0}))""",
)
_STREAMED = 10_000
"""Rows that come to this machine at a time, where rows are asked for."""


def session() -> Any:
    """The Spark session of this process: the one that `spark-submit` or a notebook made, or new."""
    try:
        import sqlglot  # noqa: F401
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise need("--engine spark", "spark") from error
    try:
        return SparkSession.builder.appName("forgetmap").getOrCreate()
    except Exception as error:  # what Java throws has no common class
        raise InputError(f"Spark did not start ({brief(error)}); is Java 17 installed?") from error


class Lake(Samples):
    """Samples Parquet wherever Spark can read it: a file, a folder or a pattern, local or s3a://.

    Nothing of it is loaded on this machine; make such files with `forgetmap convert`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.spark = session()
        try:
            self.frame = _read(self.spark, address)
            files = self.frame.inputFiles()
        except Exception as error:  # what Java throws has no common class
            raise InputError(
                f"{address}: Spark cannot read it as Parquet ({brief(error)})"
            ) from error
        if missing := set(SCHEMA.names) - set(self.frame.columns):
            raise InputError(
                f"{address}: is not Samples Parquet (lacks {some(missing)}); "
                "make it with forgetmap convert"
            )
        self.names = files
        super().__init__(pa.table({}), _read_meta(files))

    @cached_property
    def models(self) -> list[str]:
        """The models in the table, in alphabetical order."""
        models = {row.model for row in self.frame.select("model").distinct().collect()}
        if None in models:
            raise InputError(f"{self.address}: a row lacks its 'model'; convert the log again")
        return sorted(models)

    def _stream(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        rows = self.frame.select(*columns).toLocalIterator()
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        while some_rows := [row.asDict() for row in islice(rows, _STREAMED)]:
            yield pa.RecordBatch.from_pylist(some_rows, schema)

    @property
    def rows(self) -> int:
        """Rows of the whole table; a pass over the log."""
        return int(self.frame.count())

    def files(self) -> list[tuple[str, int, int]] | None:
        """Name, size and time of every file; None where this Spark does not tell."""
        try:
            java, settings = self.spark._jvm, self.spark._jsc.hadoopConfiguration()
            paths = [java.org.apache.hadoop.fs.Path(java.java.net.URI(name)) for name in self.names]
            found = [path.getFileSystem(settings).getFileStatus(path) for path in paths]
        except Exception:  # a remote session has no Java, and what Java throws has no common class
            return None
        told = [(one.getLen(), one.getModificationTime()) for one in found]
        return sorted((name, *both) for name, both in zip(self.names, told, strict=True))

    def null_count(self, column: str) -> int | None:  # noqa: ARG002
        """Not known without a pass over the log."""
        return None


def _read(spark: Any, address: str) -> Any:
    """The rows of some Parquet files; columns that older files lack are null."""
    from pyspark.sql.functions import lit

    frame = spark.read.parquet(address)
    later = {"option_probabilities": "array<float>", "right_option": "int"}
    missing = {name: lit(None).cast(kind) for name, kind in later.items()}
    return frame.withColumns({n: c for n, c in missing.items() if n not in frame.columns})


def pair(
    before: Lake,
    after: Lake,
    *,
    metric: Mapping[str, str] | str | None = None,
    threshold: float | None = None,
    identity: Identity = "content",
) -> Pairs:
    """Pair two logs in a lake; the same counts as `forgetmap.pair` gives on one machine."""
    sides = {"before": before, "after": after}
    return _SparkPair(sides, metric, threshold, identity).pairs()


class _SparkPair(LogPair):
    """Spark in the place of DuckDB; what differs is how SQL is run and where text is handled."""

    hashed_reference = "xxhash64(item_ref)"
    duplicated = True  # to find out would take another pass over a lake
    integer = "DECIMAL(38, 0)"
    overlap = "arrays_overlap"
    lists = _LISTS

    def _connect(self) -> None:
        self.spark = session().newSession()  # temporary views of its own

    def _add_source(self, side: str, samples: Samples) -> None:
        assert isinstance(samples, Lake)
        frame = _read(self.spark, samples.address)
        if samples.model is not None:
            frame = frame.where(frame.model == samples.model)
        frame.createOrReplaceTempView(f"{side}_rows")

    def _run(self, sql: str) -> Any:
        import sqlglot

        return self.spark.sql(sqlglot.transpile(sql, read="duckdb", write="spark")[0])

    def _query(self, sql: str) -> Rows:
        try:
            return [tuple(row) for row in self._run(sql).collect()]
        except Exception as error:  # what Java throws has no common class
            raise InputError(f"Spark could not pair the logs ({brief(error)})") from error

    def _define(self, name: str, sql: str) -> None:
        self._run(sql).createOrReplaceTempView(name)

    _keep = _define
    """A view again: Spark has no tables of one session, and the pairing asks for each once."""

    def flips(self) -> Iterable[pa.RecordBatch]:
        keys = self._run(f"SELECT task, key FROM ({self._compared('<>')}) AS flipped").toArrow()
        sides = {name: self._only_items(self.side(name), keys) for name in self.names}
        local = LogPair(sides, None, self.threshold, self.identity)
        local.repeated, local.duplicated = self.repeated, self.duplicated
        local._define_items()
        return local.flips()

    def outcomes(self) -> pa.Table:
        """Every compared item, without text, brought to this machine."""
        reference = "SELECT task, key, min(item_ref) AS item_ref FROM s0_scores GROUP BY task, key"
        found = self.spark.sql(
            f"""WITH named AS ({reference})
               SELECT b.task AS task, CAST(b.key AS DECIMAL(20, 0)) AS key,
                      n.item_ref AS item_ref,
                      CAST(xxhash64(coalesce(b.cluster, a.cluster)) AS DECIMAL(20, 0)) AS cluster,
                      coalesce(b.cluster, a.cluster) IS NOT NULL AS clustered,
                      CAST(coalesce(b.probability - a.probability,
                                    b.correct / b.runs - a.correct / a.runs) AS FLOAT) AS fall,
                      2 * b.correct > b.runs AS knew, 2 * a.correct > a.runs AS knows,
                      CAST(a.correct / a.runs AS FLOAT) AS right_after,
                      CAST(coalesce(if(a.probability IS NULL, NULL, b.probability),
                                    b.correct / b.runs) AS FLOAT) AS chance, b.k AS k
               FROM s0_items b JOIN s1_items a USING (task, key) JOIN named n USING (task, key)
               WHERE b.runs > 0 AND a.runs > 0 ORDER BY task, key"""
        ).toArrow()
        for name in ("key", "cluster"):
            place = found.schema.get_field_index(name)
            found = found.set_column(place, name, _unsigned(found[name]))
        return found

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Refuse: the list of all items of a lake is not for one machine."""
        raise InputError("--engine spark lists the items that changed only (--flips)")

    def _only_items(self, side: str, keys: pa.Table) -> Samples:
        """The rows of some items with their text, brought here without a shuffle."""
        wanted = self._wanted(side, self.spark.createDataFrame(keys))
        table = wanted.select(*SCHEMA.names).toArrow().cast(SCHEMA)
        return Samples(table, self.samples[side].meta, self.samples[side].model)

    def _wanted(self, side: str, keys: Any) -> Any:
        from pyspark.sql.functions import broadcast

        keyed = self._run(
            f"SELECT *, {self._key(side)} AS key FROM {side}_rows {self._where(side)}"
        )
        return keyed.join(broadcast(keys), ["task", "key"], "left_semi")


def _unsigned(hashes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Hashes as 64 bits without a sign: those of Spark have one, those of the logs are decimals."""
    around = pa.scalar(2**64, pa.decimal128(21, 0))
    wide = hashes.cast(pa.decimal128(21, 0))
    turned = pc.if_else(pc.less(wide, pa.scalar(0, wide.type)), pc.add(wide, around), wide)
    return turned.cast(pa.uint64())


def _read_meta(files: list[str]) -> Meta:
    """Gather what the files say about their runs, as far as this machine can open them."""
    from pyarrow import fs

    merged = Meta(harness="Samples")
    for number, address in enumerate(files[:_MOST_FOOTERS]):
        try:
            system, path = fs.FileSystem.from_uri(address.replace("s3a://", "s3://", 1))
            with system.open_input_file(path) as file:
                raw = (pq.read_schema(file).metadata or {}).get(META_KEY)
        except (OSError, pa.ArrowException) as error:
            merged.warnings.append(f"{address}: its settings cannot be read here ({brief(error)})")
            break
        if raw is None:
            raise InputError(f"{address}: is not a forgetmap Samples file; convert the log first")
        meta, _ = parse_meta(address, raw)
        if number == 0:
            merged = meta
        merged.settings |= meta.settings
    return merged
