"""What identifies an item: hashes of its content, and of its words alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b

import duckdb
import orjson
import pyarrow as pa


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
    connection.register("contents", pa.table(given))
    parts = ", ".join(f"strlen({name}), ' ', {name}" if name in given else "'0 '" for name in named)
    lower = f"(md5_number(concat({parts})) & {2**64 - 1})::UBIGINT"
    item = f"CASE WHEN part0 <> '' THEN {lower} END"
    hashed = connection.sql(f"SELECT {item} FROM contents")
    return hashed.to_arrow_table().column(0).combine_chunks()


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
