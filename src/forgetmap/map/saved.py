"""Comparisons on disk: a folder with the map and its items.

The file of the items also holds the map, so that the two cannot come from different saves, whatever
ends a save half way. `map.json` is there for people and other programs.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, replacing, write_text
from forgetmap.map.comparison import Comparison
from forgetmap.map.items import ItemStore, write_items
from forgetmap.map.result import ForgettingMap

MAP, ITEMS = "map.json", "items.parquet"


class SavedComparison(NamedTuple):
    """A saved comparison, opened."""

    name: str
    result: ForgettingMap
    store: ItemStore


def save_comparison(comparison: Comparison, folder: str | Path) -> None:
    """Save a map and all its items to a folder, for `forgetmap serve`.

    Args:
        comparison: The compared logs, read with their text.
        folder: Made if it is not there; a comparison saved in it before is replaced.

    Example:
        >>> import tempfile, forgetmap
        >>> from forgetmap.map import example_logs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = forgetmap.compare(*example_logs(), save=f"{folder}/one")  # calls this function
        ...     open_saved(find_saved(folder)[0]).store.total
        4070
    """
    folder = Path(folder)
    is_new = not folder.exists()
    make_folder(folder)
    try:
        with replacing(folder / ITEMS) as items:
            write_items(comparison, items)
            write_text(folder / MAP, comparison.map.to_json() + "\n")
    except BaseException:
        if is_new:  # and empty again
            with suppress(OSError):
                folder.rmdir()
        raise


def find_saved(path: str | Path) -> list[Path]:
    """Folders of saved comparisons: the one given, or those in it; links that lead out are not."""
    home = Path(path)
    folders = [home, *sorted(home.iterdir())] if home.is_dir() else []
    return [
        folder
        for folder in folders
        if (folder / MAP).is_file()
        and all((folder / name).resolve().is_relative_to(home.resolve()) for name in (MAP, ITEMS))
    ]


def open_saved(folder: Path) -> SavedComparison:
    """Open a saved comparison; a folder whose parts do not belong together is refused."""
    store = ItemStore(folder / ITEMS)
    try:
        result = ForgettingMap.from_json(store.map or (folder / MAP).read_bytes())
    except OSError as error:
        raise InputError(f"{folder / MAP}: cannot be read ({error.strerror})") from error
    except InputError as error:
        raise InputError(f"{folder / MAP}: {error}") from error
    if store.total != result.total.n:
        raise InputError(
            f"{folder}: the map counts {result.total.n} items and the list {store.total}; "
            "save it again"
        )
    return SavedComparison(folder.name, result, store)
