"""Parquet files that nobody vouches for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base.errors import InputError
from forgetmap.base.parquet import parquet_head, parquet_parts


def test_a_page_that_claims_more_than_any_memory_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by fuzzing: Arrow trusts the size in a flipped page header and runs out of memory."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"text": ["a"]}), path)

    def fail(*_args: Any, **_settings: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 1610881920 failed")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fail)
    with pytest.raises(InputError, match=r"log\.parquet: is damaged \(malloc of size"):
        list(parquet_parts(path))


def test_the_head_is_that_of_the_first_group(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"n": range(10)}), path, row_group_size=4)
    assert parquet_head(path, 3) == [{"n": 0}, {"n": 1}, {"n": 2}]
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), path)
    assert parquet_head(path, 3) == []


@pytest.mark.parametrize("nested", [False, True])
def test_a_text_for_many_rows_counts_in_each_where_the_file_codes_it(
    tmp_path: Path, nested: bool
) -> None:
    """A dictionary stays one in memory, but what is made of its rows holds every text."""
    path = tmp_path / "log.parquet"
    rows = 40_000
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["w" * 8_000])
    column = pa.StructArray.from_arrays([coded], ["text"]) if nested else coded
    pq.write_table(pa.table({"question": column}), path)
    with pytest.raises(InputError, match=r"log\.parquet: .* bytes unpack to .* or more"):
        for _ in parquet_parts(path):
            pass
