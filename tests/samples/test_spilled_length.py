"""The length of Samples that went to a temporary file."""

from __future__ import annotations

import pyarrow as pa

from forgetmap.samples import table
from forgetmap.samples.table import Meta, Samples, complete


def test_the_length_is_that_of_the_chosen_model(monkeypatch):
    monkeypatch.setattr(table, "_SPILL_BYTES", 0)
    parts = [complete({"score": pa.array([1.0] * rows), "model": pa.array([name] * rows)})
             for name, rows in (("a", 3), ("b", 2))]  # fmt: skip
    samples = Samples.collect(parts, Meta())
    assert not isinstance(samples.data, pa.Table)
    assert (len(samples), len(samples.only("a")), len(samples.only("b"))) == (5, 3, 2)
