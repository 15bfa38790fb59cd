"""Values of a table by the column: thousands at a time, never row by row where it can be helped.

A column is either plain text, or numbers into a short list of values of any kind. So a value that
occurs in many rows is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forgetmap.base.json import parse_json
from forgetmap.base.values import storable
from forgetmap.samples.identity import as_json

Check = Callable[[Any], Any]


class BadValue(ValueError):
    """A value that makes no sense, and its place in the column, from 0 on."""

    def __init__(self, place: int, reason: Exception) -> None:
        deep = isinstance(reason, RecursionError)
        super().__init__("nested too deeply" if deep else str(reason))
        self.place = place


class Column:
    """One column of some rows.

    Example:
        >>> column = Column.of_values(["a", None, 1.0, ["b"]])
        >>> column.contents().to_pylist()
        ['a', '', '1.0', '["b"]']
    """

    def __init__(self, values: Any, places: NDArray[np.int32] | None) -> None:
        self.values = values
        """Texts as an Arrow array, one for each row; else the values that `places` lead to."""
        self.places = places

    @classmethod
    def of_values(cls, values: list[Any]) -> Column:
        """A column of any Python values."""
        if all(type(value) is str or value is None for value in values):
            return cls(text_array(values), None)
        return cls(values, np.arange(len(values), dtype=np.int32))

    @classmethod
    def of_array(cls, array: pa.Array) -> Column:
        """A column of a Parquet or CSV file."""
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            return cls(array, None)
        if pa.types.is_nested(array.type):
            return cls.of_values(array.to_pylist())
        return cls(*_encoded(array))

    @classmethod
    def of_json(cls, array: pa.Array) -> Column:
        """A column whose values came as JSON texts, without white space."""
        are_texts = pc.starts_with(array, '"')
        if pc.all(are_texts).as_py():
            return cls(_unquoted(array), None)
        if pc.any(are_texts).as_py():
            return cls.of_values(_all_parsed(array))
        if pc.all(pc.match_substring_regex(array, _PLAIN_LIST)).as_py():
            return ListColumn(array, None)
        texts, places = _encoded(array)
        return cls(_checked(texts, places, _parsed), places)

    def __len__(self) -> int:
        return len(self.values) if self.places is None else len(self.places)

    def map(self, check: Check, kind: pa.DataType) -> pa.Array:
        """What a function makes of every value, as an Arrow array; it sees each value once."""
        values, places = self._few()
        return pa.array(_checked(values, places, check), kind).take(pa.array(places))

    def contents(self) -> pa.Array:
        """The text that stands for each value in the identity of an item; empty for none."""
        if self.places is None:
            return pc.fill_null(self.values, "").cast(pa.string())
        return pc.fill_null(self.map(content_text, pa.string()), "")

    def texts(self) -> pa.Array:
        """Each value as text, as people would print it; null for none."""
        if self.places is None:
            return self.values.cast(pa.string())
        return self.map(lambda value: None if value is None else storable(str(value)), pa.string())

    def objects(self) -> list[Any]:
        """The values, one for each row."""
        values, places = self._few(distinct=False)
        return [values[place] for place in places]

    def any(self, kind: type | tuple[type, ...]) -> bool:
        """Whether a value is of that kind."""
        return self.places is not None and any(isinstance(value, kind) for value in self.values)

    def take(self, rows: NDArray[np.int64]) -> Column:
        """Some rows of the column, in the order given."""
        if self.places is None:
            return Column(self.values.take(pa.array(rows)), None)
        return Column(self.values, self.places[rows])

    def _few(self, distinct: bool = True) -> tuple[Sequence[Any], NDArray[np.int32]]:
        if self.places is not None:
            return self.values, self.places
        if not distinct:
            return self.values.to_pylist(), np.arange(len(self.values), dtype=np.int32)
        return _encoded(self.values)


_PLAIN_LIST = r'^\["[^"\\]*"(,"[^"\\]*")*\]$'
"""A JSON list of texts that hold nothing which JSON writes in other ways."""


class ListColumn(Column):
    """Lists of texts, kept as JSON: what stands for them in the identity of an item already."""

    def any(self, kind: type | tuple[type, ...]) -> bool:
        """Whether a value is of that kind."""
        return issubclass(list, kind) and self.values.null_count < len(self.values)

    def take(self, rows: NDArray[np.int64]) -> Column:
        """Some rows of the column, in the order given."""
        return ListColumn(self.values.take(pa.array(rows)), None)

    def _few(self, distinct: bool = True) -> tuple[Sequence[Any], NDArray[np.int32]]:
        texts, places = super()._few(distinct)
        return [_parsed(text) for text in texts], places


def _checked(values: Sequence[Any], places: NDArray[np.int32], check: Check) -> list[Any]:
    """What a function makes of some values; its error names the first row with a bad one."""
    made: list[Any] = []
    for index, value in enumerate(values):
        try:
            made.append(check(value))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadValue(int(np.flatnonzero(places == index)[0]), error) from error
    return made


def _parsed(text: str | None) -> Any:
    return None if text is None else parse_json(text.encode())


def _all_parsed(array: pa.Array) -> list[Any]:
    return _checked(array.to_pylist(), np.arange(len(array), dtype=np.int32), _parsed)


def _unquoted(array: pa.Array) -> pa.Array:
    """JSON texts as what they say; only where there is a backslash must they be looked into."""
    letters = array.buffers()[2]
    if letters is not None and (np.frombuffer(letters, np.uint8) == ord("\\")).any():
        return text_array(_all_parsed(array))
    return pc.ascii_trim(array, '"')  # a quote within the text would have a backslash


def _encoded(array: pa.Array) -> tuple[list[Any], NDArray[np.int32]]:
    """The distinct values of an array, and which of them stands in each row."""
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def text_array(texts: Iterable[str | None]) -> pa.Array:
    """Texts as an Arrow array; halves of characters become question marks."""
    listed = list(texts)
    try:
        return pa.array(listed, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if text is None else storable(text) for text in listed], pa.string())


def content_text(value: Any) -> str:
    """The text that stands for a value in the identity of an item.

    Numbers are the same in JSON, which has types, and in CSV, which has none. A list is the same
    as its JSON text.

    Example:
        >>> [content_text(value) for value in (None, 7, "7", ["a", 1], '[ "a",1 ]')]
        ['', '7', '7', '["a",1]', '[ "a",1 ]']
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return storable(value)
    return str(value) if isinstance(value, bool | int | float) else as_json(value).decode()


def options_of(value: Any) -> Any:
    """A list of options; in a CSV it comes as JSON text, and any other text stays text.

    Example:
        >>> options_of('["a", "b"]'), options_of("a or b")
        (['a', 'b'], 'a or b')
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return parse_json(value.encode("utf-8", "replace"))
        except ValueError:
            return value
    return value


def with_options(column: Column) -> Column:
    """A column of options, in which lists that came as JSON text are lists."""
    if isinstance(column, ListColumn):
        return column
    if column.places is None:
        if not pc.any(pc.starts_with(pc.utf8_ltrim_whitespace(column.values), "[")).as_py():
            return column
        if pc.all(pc.match_substring_regex(column.values, _PLAIN_LIST)).as_py():
            return ListColumn(column.values, None)
        values, places = _encoded(column.values)
        return Column([options_of(value) for value in values], places)
    return Column([options_of(value) for value in column.values], column.places)


def sizes(column: Column) -> pa.Array:
    """The length of each list in a column; null for anything else.

    Example:
        >>> sizes(Column.of_values([["a", "b"], "a or b", None])).to_pylist()
        [2, None, None]
    """
    if isinstance(column, ListColumn):
        return pc.divide(pc.count_substring(column.values, '"'), 2).cast(pa.int64())
    return column.map(lambda value: len(value) if isinstance(value, list) else None, pa.int64())
