"""What identifies an item: hashes of its content, and of its words alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import duckdb
import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray


def content_hash(*parts: object) -> int:
    """Hash the content of an item: its question, options and target, as the harness stored them.

    Never hash a prompt after templating: a base and a chat model get different ones by design.
    Strings are hashed as they are; anything else by its JSON with sorted keys.

    Example:
        >>> content_hash("2 + 2 = ?", ["3", "4"], "4") == content_hash("2 + 2 = ?", ["3", "4"], "4")
        True
        >>> content_hash({"b": 1, "a": 2}) == content_hash({"a": 2, "b": 1})
        True
    """
    content = _EMPTY.copy()  # quicker than a new one
    for part in parts:  # kind and length go before each, so that no two lists of parts look alike
        if isinstance(part, str):
            text = part.encode("utf-8", "surrogatepass")
            content.update(b"text %d %b" % (len(text), text))
        else:
            text = as_json(part)
            content.update(b"json %d %b" % (len(text), text))
    return int.from_bytes(content.digest(), "big")


_EMPTY = blake2b(digest_size=8)


def content_hashes(contents: Iterable[object], texts: Iterable[str]) -> NDArray[np.uint64]:
    """`content_hash(content, text)` of many pairs of an object and a text, more quickly.

    Example:
        >>> pairs = [{"b": 1, "a": 2}, [3]], ["one", "two"]
        >>> content_hashes(*pairs).tolist() == [content_hash(*pair) for pair in zip(*pairs)]
        True
    """
    digests = []
    for content, text in zip(contents, texts, strict=True):
        first, second = as_json(content), text.encode("utf-8", "surrogatepass")
        hashed = _EMPTY.copy()
        hashed.update(b"json %d %btext %d %b" % (len(first), first, len(second), second))
        digests.append(hashed.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def hash_contents(
    columns: Sequence[pa.Array | None], connection: duckdb.DuckDBPyConnection
) -> pa.Array:
    """Hash the contents of many items at once: one text column for each part, without nulls.

    An item whose first part is empty has no content, and null for a hash. The hash is the lower
    half of the MD5 of all parts, each with its length before it. A part that is None is empty in
    every row.
    """
    named = {f"part{number}": column for number, column in enumerate(columns)}
    given = {name: column for name, column in named.items() if column is not None}
    table = pa.table(given)
    # In parts, so that DuckDB hashes on all cores: one part keeps one core busy.
    connection.register("contents", pa.Table.from_batches(table.to_batches(_PART), table.schema))
    parts = ", ".join(f"strlen({name}), ' ', {name}" if name in given else "'0 '" for name in named)
    lower = f"(md5_number(concat({parts})) & {2**64 - 1})::UBIGINT"
    item = f"CASE WHEN part0 <> '' THEN {lower} END"
    hashed = connection.sql(f"SELECT {item} FROM contents")
    return hashed.to_arrow_table().column(0).combine_chunks()


_PART = 16_384
"""Items that one core hashes at a time."""


def wording_hash(question: str, options: Sequence[str], answer: str) -> int:
    """Hash an item by its words alone, so that logs of different harnesses agree on it.

    What a prompt adds to the words (a cue, options as lettered lines, white space) is taken off;
    an answer given as the letter of an option is replaced by the option.

    Example:
        >>> one = wording_hash("Question: Which is red?\\nAnswer:", [" sky", " rose"], " rose")
        >>> two = wording_hash("Which is red?\\nA. sky\\nB. rose\\nAnswer:", ["A", "B"], "B")
        >>> one == two
        True
    """
    kept: list[str] = []
    lettered: list[str] = []
    for line in question.strip().splitlines():
        option = _OPTION_LINE.match(line)
        if option and option[1] == chr(ord("A") + len(lettered)):
            lettered.append(option[2])
        else:
            kept.append(line)
    if len(lettered) > 1:
        options = lettered
        place = ord(answer.strip()) - ord("A") if len(answer.strip()) == 1 else -1
        answer = lettered[place] if 0 <= place < len(lettered) else answer
    else:
        kept = question.split("\n")
    words = " ".join(_CUE.sub("", " ".join(kept)).split())
    return content_hash(words, [" ".join(option.split()) for option in options], answer.strip())


_OPTION_LINE = re.compile(r"^\s*\(?([A-Z])[.):]\s+(.+?)\s*$")
_CUE = re.compile(r"^\s*(?:question|q)\s*:\s*|\s*\b(?:answer|a)\s*:\s*$", re.IGNORECASE)


def as_json(value: object) -> bytes:
    """A value as JSON with sorted keys: the same bytes for the same value."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError):  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, sort_keys=True, default=str).encode()
