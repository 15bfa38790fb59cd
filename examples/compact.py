"""What the studies share: logs without the texts of questions and answers."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
