"""What this machine has: packages, cores, memory, cards."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from forgetmap.base import extras
from forgetmap.base.errors import InputError
from forgetmap.base.model import Frozen
from forgetmap.base.version import __version__
from forgetmap.capabilities.scorers.sandbox.programs import find_boundary


class Extra(Frozen):
    """An extra of forgetmap."""

    name: str
    adds: str
    missing: tuple[str, ...]
    """Packages of it that are not installed."""


class Machine(Frozen):
    """What `forgetmap doctor` tells."""

    forgetmap: str
    python: str
    system: str
    cores: int
    memory_gb: float
    cards: tuple[str, ...]
    no_cards: str
    """Why no card is listed."""
    temporary_folder: str
    free_gb: float
    walls: str
    """What holds code that a model wrote."""
    extras: tuple[Extra, ...]


def look() -> Machine:
    """Look at this machine.

    Example:
        >>> look().cores > 0
        True
    """
    folder = tempfile.gettempdir()
    cards, no_cards = _cards()
    return Machine(
        forgetmap=__version__,
        python=platform.python_version(),
        system=platform.platform(terse=True),
        cores=_cores(),
        memory_gb=_memory() / 1e9,
        cards=tuple(cards),
        no_cards=no_cards,
        temporary_folder=folder,
        free_gb=shutil.disk_usage(folder).free / 1e9,
        walls=_walls(),
        extras=tuple(
            Extra(name=name, adds=adds, missing=tuple(extras.missing(name)))
            for name, adds in extras.ADDS.items()
        ),
    )


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _memory() -> int:
    """Bytes of memory; what a container is allowed, where that is less."""
    bytes_ = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        return min(bytes_, int(text))
    return bytes_


def _cards() -> tuple[list[str], str]:
    """The names of the cards that torch can use, and why there are none."""
    if extras.version("torch") is None:
        return [], f"not known without torch ({extras.install('eval')})"
    torch = import_module("torch")
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        sizes = [torch.cuda.get_device_properties(i).total_memory / 1e9 for i in range(count)]
        names = [torch.cuda.get_device_name(i) for i in range(count)]
        return [f"{name} ({size:.0f} GB)" for name, size in zip(names, sizes, strict=True)], ""
    if torch.backends.mps.is_available():
        return ["Apple GPU (mps)"], ""
    return [], f"none that torch {torch.__version__} can use"


def _walls() -> str:
    try:
        return f"runs behind {find_boundary().name}"
    except InputError as error:
        return str(error).removeprefix("--run-code: ")
