"""Results that show themselves: as a line, a table, a picture, a page.

Views lie above results, so a result cannot import its view. It loads the module of views by its
name, when it is asked to show itself.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.model import Frozen

if TYPE_CHECKING:
    import pyarrow as pa

_VIEWS = "forgetmap.views.results"
_MADE = "made_again"


def remember(result: Result, make_again: Callable[[], Any]) -> None:
    """Remember how a result was made, for views that need what it was made from."""
    result.__dict__[_MADE] = _Once(make_again)


def made_from(result: Result) -> Any:
    """What a result was made from: it is made again, once, with the text of the logs."""
    if _MADE not in result.__dict__:
        raise InputError(
            "this result was read from a file, so its items are not at hand; compare the logs again"
        )
    return result.__dict__[_MADE]()


class _Once:
    """Calls a function when it is first asked, and never again."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.made: list[Any] = []

    def __call__(self) -> Any:
        if not self.made:
            self.made.append(self.make())
        return self.made[0]


class Result(Frozen):
    """What the calls of the Python API return."""

    def to_arrow(self) -> pa.Table:
        """Every cell as a row of a pyarrow table; shares as fractions."""
        return self._view("to_arrow")

    def to_pandas(self) -> Any:
        """Every cell as a row of a pandas table."""
        _import("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Every cell as a row of a polars table."""
        return _import("polars").from_arrow(self.to_arrow())

    @property
    def flips(self) -> pa.Table:
        """The items that changed, with both answers, as a pyarrow table."""
        return self._view("flips")

    def plot(self) -> Any:
        """What was lost and gained, as a plotly figure."""
        return self._view("plot")

    def widget(self) -> Any:
        """The items that changed, to look through in a notebook."""
        return self._view("widget")

    def report(self, path: str | Path) -> Path:
        """Write a page to look at and send around."""
        self._view("report", path)
        return Path(path)

    def _view(self, name: str, *arguments: Any) -> Any:
        return getattr(import_module(_VIEWS), name)(self, *arguments)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(self._view("to_html"))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._view('in_one_line')}>"

    __str__ = __repr__

    def __getstate__(self) -> dict[Any, Any]:
        """Without what it was made from, which may be a database."""
        state = super().__getstate__()
        kept = {name: value for name, value in state["__dict__"].items() if name != _MADE}
        return {**state, "__dict__": kept}


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(f"{package} is not installed: pip install {package}") from error
