"""A room's public names, each loaded when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def load_on_use(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package from its modules and the public names they hold.

    Example:
        >>> get = load_on_use("forgetmap", {"base.words": ["percent"]})
        >>> get("percent")(0.5)
        '50.0 %'
    """
    homes = {name: f"{package}.{module}" for module, held in names.items() for name in held}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get
