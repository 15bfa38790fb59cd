"""Seals of Parquet files: by parts, and as older files have them."""

from __future__ import annotations

import random
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base import sealed
from forgetmap.base.errors import InputError
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal

_OLD = "forgetmap:sealed"


def _write(path, name):
    table = pa.table({"n": list(range(2_000))}).replace_schema_metadata({name: EMPTY})
    pq.write_table(table, path, compression="none")


def _seal_as_before(path):
    """As files were sealed before their parts were: by one checksum of the whole."""
    _write(path, _OLD)
    content = path.read_bytes()
    text = f"{len(content):016d}{sha256(content).hexdigest()}".encode()
    path.write_bytes(content.replace(EMPTY.encode(), text, 1))


@pytest.fixture(params=["one part", "many parts", "old"])
def path(request, tmp_path, monkeypatch):
    found = tmp_path / "items.parquet"
    if request.param == "many parts":  # the seal's own place is cut by their borders
        monkeypatch.setattr(sealed, "_PART", 50)
        monkeypatch.setattr(sealed, "_BLOCK", 7)
    if request.param == "old":
        _seal_as_before(found)
    else:
        _write(found, SEAL)
        seal(found)
    return found


def test_a_sealed_file_is_taken_and_every_flipped_bit_found(path):
    check_sealed(path)
    good = path.read_bytes()
    first, last = sealed._find(path).place, sealed._find(path).place + len(EMPTY)
    for place in random.Random(3).sample(range(4, len(good) - 400), 40):
        damaged = bytearray(good)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        if not first <= place < last:
            with pytest.raises(InputError, match="is damaged"):
                check_sealed(path)
    path.write_bytes(good)
    check_sealed(path)


def test_a_changed_checksum_is_refused(path):
    place = sealed._find(path).place + 20
    content = bytearray(path.read_bytes())
    content[place] = ord("f" if content[place] != ord("f") else "0")
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        check_sealed(path)


def test_parts_that_changed_places_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sealed, "_PART", 64)
    path = tmp_path / "items.parquet"
    _write(path, SEAL)
    seal(path)
    content = path.read_bytes()
    path.write_bytes(content[:64] + content[128:192] + content[64:128] + content[192:])
    with pytest.raises(InputError, match="is damaged"):
        check_sealed(path)


def test_a_file_that_was_written_again_is_taken_as_one_without_a_seal(path):
    content = pq.read_table(path)
    pq.write_table(content.slice(0, 5), path)
    check_sealed(path)
