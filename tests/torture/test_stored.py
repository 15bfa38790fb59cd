"""Stored files notice damage, and files of older versions without a checksum are read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import flips
import pytest
from verbs import VERBS

import run
from forgetmap.base.errors import InputError

SEALED = {
    "map",
    "lineage",
    "drift",
    "name of a baseline",
    "manifest of an evaluation",
    "sweep of merges",
    "recipe",
    "converted model",
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    home = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        yield {stored.kind: stored for stored in flips.make(home)}


def test_no_flipped_bit_changes_what_is_read(kinds):
    for stored in kinds.values():
        assert list(flips.flip(stored, 20, random.Random(5))) == [], stored.kind


@pytest.mark.parametrize("kind", sorted(SEALED))
def test_a_file_without_a_checksum_is_read_as_before(kinds, kind):
    path, read = kinds[kind].path, kinds[kind].read
    good, whole = path.read_bytes(), read()
    content = json.loads(good)
    del content["checksum"]
    path.write_text(json.dumps(content))
    try:
        assert read() == whole
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize("kind", sorted({*SEALED, "answers to be scored"}))
def test_a_changed_digit_is_refused(kinds, kind):
    path, read = kinds[kind].path, kinds[kind].read
    good = path.read_text()
    place = max(place for place, letter in enumerate(good) if letter in "0123456789")
    digit = str((int(good[place]) + 1) % 10)
    path.write_text(good[:place] + digit + good[place + 1 :])
    try:
        with pytest.raises(InputError):
            read()
    finally:
        path.write_text(good)


def test_what_is_not_an_object_is_one_clear_line(kinds):
    for kind in ("manifest of an evaluation", "recipe", "converted model"):
        path, read = kinds[kind].path, kinds[kind].read
        good = path.read_bytes()
        for bad in (b"[1]", b"{", b"\xff", b"[" * 100_000):
            path.write_bytes(bad)
            with pytest.raises(InputError, match=path.name):
                read()
        path.write_bytes(good)


def test_the_page_is_what_the_harness_writes(kinds):
    page = Path(run.ROOT, "docs/explanation/torture.md").read_text()
    cells = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = []
    for part, (what, tried, held, _) in zip(run.PARTS, cells[2 : 2 + len(run.PARTS)], strict=True):
        numbers = [int(text.replace(",", "")) for text in (tried, held)]
        rows.append((part._replace(what=what.strip()), numbers[0], numbers[0] - numbers[1]))
    begins = [part.what.partition("{")[0] for part in run.PARTS]
    assert all(row.what.startswith(begin) for (row, *_), begin in zip(rows, begins, strict=True))
    assert run.page(rows, "the short run" in page, "1") == page
    assert f" of {len(VERBS)} commands that write" in page
    assert f" in {len(kinds)} kinds of stored files" in page
