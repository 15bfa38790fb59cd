"""CapTrack's public data set as items, fetched from the hub or read from a local copy.

A task is named by the data set's configuration or split, else by the row's `family`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import orjson

from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief
from forgetmap.capabilities.manifest import Manifest
from forgetmap.readers.captrack import to_item
from forgetmap.readers.framework import malformed

DATASET = "tri-fair-lab/captrack"
COLUMNS = (
    *("id", "family", "prompt", "formatted_prompt", "ctx", "choices", "gold", "meta"),
    *("schema", "tool_spec"),
)
_NESTED = ("prompt", "ctx", "choices", "gold")


def load(source: str = DATASET, tasks: Sequence[str] = ()) -> list[Item]:
    """Load the items of the data set from the hub, or from a folder with a copy.

    `tasks` keeps only these, in any spelling the manifest `captrack` knows; all by default.
    """
    try:
        datasets: Any = import_module("datasets")
    except ImportError as error:
        raise need(source, "suites") from error
    manifest = Manifest.load("captrack")
    wanted = {_known(manifest, task, "--task") for task in tasks}
    items: list[Item] = []
    try:
        for config in datasets.get_dataset_config_names(source):
            for split, rows in datasets.load_dataset(source, config).items():
                items += to_items(rows, (config, str(split)), manifest, wanted)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source}: cannot be loaded ({brief(error)})") from error
    if not items:
        raise InputError(f"{source}: holds none of the tasks that were asked for")
    return items


def to_items(
    rows: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    names: Sequence[str],
    manifest: Manifest,
    wanted: set[str] | None = None,
) -> list[Item]:
    """Turn rows with the data set's columns into items, only those of the `wanted` tasks if given.

    `names` are what the rows are called as a whole, e.g. configuration and split. The first name
    that is a task counts for all rows; without one each row's `family` counts.

    Example:
        >>> row = {"id": "7", "family": "gsm8k.subset", "prompt": "2+2?", "gold": "4"}
        >>> [item] = to_items([row], ["default", "test"], Manifest.load("captrack"))
        >>> item.task, item.ref, item.gold
        ('gsm8k.core', '7', '4')
    """
    task = next(filter(None, map(manifest.task, names)), None)
    if task is not None and wanted and task not in wanted:
        return []
    items = []
    for number, row in enumerate(rows):
        with malformed(" ".join(names), f" row {number}"):
            item = _item(task or _known(manifest, str(row.get("family")), "family"), row, number)
        if not wanted or item.task in wanted:
            items.append(item)
    return items


def _item(task: str, row: Mapping[str, Any], number: int) -> Item:
    plain = {name: row.get(name) for name in COLUMNS}
    plain |= {name: _unpacked(plain[name]) for name in _NESTED}
    item = to_item(task, plain, str(number))
    kept = {name: plain[name] for name in ("family", "formatted_prompt") if plain[name]}
    meta = {name: value for name, value in item.meta.items() if value is not None}
    return replace(item, meta=kept | meta)


def _unpacked(value: Any) -> Any:
    """A list or object that a text column holds as JSON; `[2, 5]` may be an interval and stays."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        content = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    if isinstance(content, list) and all(isinstance(end, int | float) for end in content):
        return value
    return content


def _known(manifest: Manifest, name: str, what: str) -> str:
    task = manifest.task(name)
    if task is None:
        raise InputError(f"{what} {name!r:.60} is not a task of CapTrack{manifest.nearest(name)}")
    return task
