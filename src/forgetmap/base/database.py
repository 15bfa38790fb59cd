"""DuckDB as forgetmap uses it: in bounded memory, with damage told in one line, text as text."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from forgetmap.base.errors import InputError
from forgetmap.base.files import file_named_in, full_disk, temporary_folder
from forgetmap.base.words import brief

Rows = list[tuple[Any, ...]]

MEMORY_LIMIT = "1500MB"


def connect() -> duckdb.DuckDBPyConnection:
    """Open a database that spills to a temporary folder once its memory is used up."""
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    # Without a script, DuckDB draws a bar into standard output once a query takes two seconds.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET temp_directory = $1", [str(temporary_folder(connection))])
    return connection


@contextmanager
def writing() -> Iterator[None]:
    """Turn DuckDB's error for a full disk into the system's, as every other writer has it."""
    try:
        yield
    except duckdb.Error as error:
        if words := full_disk(error):
            raise OSError(errno.ENOSPC, words, file_named_in(error)) from error
        raise


def query(connection: duckdb.DuckDBPyConnection, sql: str, sources: Iterable[object]) -> Rows:
    """Run a query over files and tables; a damaged file among them becomes one clear line."""
    try:
        rows: Rows = connection.execute(sql).fetchall()
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        if full_disk(error):  # of temporary files
            raise
        files = " or ".join(str(source) for source in sources if isinstance(source, Path))
        raise InputError(f"{files}: is damaged ({brief(error)})") from error
    return rows


def quoted(*texts: str) -> str:
    """SQL for some texts, in a list.

    Example:
        >>> quoted("sums", "it's odd")
        "'sums', 'it''s odd'"
    """
    return ", ".join("'{}'".format(text.replace("'", "''")) for text in texts)


def identifier(name: str) -> str:
    """SQL for the name of a column.

    Example:
        >>> identifier('the "best" score')
        '"the ""best"" score"'
    """
    return '"{}"'.format(name.replace('"', '""'))


def plain_path(path: Path) -> str:
    """A path in which DuckDB finds no pattern.

    Example:
        >>> plain_path(Path("/logs/run[1]*.parquet"))
        '/logs/run[[]1][*].parquet'
    """
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))
