"""What the studies share: logs without the texts of questions and answers."""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.capabilities.score import score_responses
from forgetmap.samples.table import TEXT_COLUMNS, Samples

EMPTIED = (*TEXT_COLUMNS, "item_ref", "source", "run", "cluster", "prompt_hash", "wording")


def without_texts(samples: Samples) -> Samples:
    table = samples.data
    for column in EMPTIED:
        table = with_column(table, column, pa.nulls(len(table), table.schema.field(column).type))
    table = table.sort_by([(name, "ascending") for name in ("task", "item", "repeat")])
    return Samples(table, samples.meta)


def rounded(lists: pa.ChunkedArray) -> pa.Array:
    whole = lists.combine_chunks()
    values = pc.round(whole.values, ndigits=4)
    return type(whole).from_arrays(whole.offsets, values, whole.type, mask=whole.is_null())


def with_column(table: pa.Table, column: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(column)
    return table.set_column(place, table.schema.field(place), values)


def write_categories(folder: Path, path: Path) -> None:
    """The category of each task, as every evaluation writes it."""
    parts = [(folder / part / "tasks.csv").read_text() for part in ("old", "new")]
    path.write_text(parts[0] + parts[1].partition("\n")[2])


def read_compact(path: Path, name: str, unused: str = "acc_norm") -> Samples:
    """One score per answer, the run's name as the model's, probabilities to four digits."""
    table, meta = pq.read_table(path), Samples.read(path).meta
    table = table.filter(pc.not_equal(table["metric"], unused))
    [settings] = meta.settings.values()
    table = with_column(table, "model", pa.array([name] * len(table)))
    table = with_column(table, "gold_probability", pc.round(table["gold_probability"], ndigits=4))
    table = with_column(table, "option_probabilities", rounded(table["option_probabilities"]))
    return Samples(table, dataclasses.replace(meta, settings={name: settings}))


def score_answers(answers: Path, name: str, out: Path) -> None:
    """Score what a model wrote, and leave out what it wrote."""
    with TemporaryDirectory() as scratch:
        scored = Path(scratch) / "scored.parquet"
        score_responses(answers, scored, model=name, manifest="open-suite", run_code=True)
        without_texts(Samples(pq.read_table(scored), Samples.read(scored).meta)).write(out)
