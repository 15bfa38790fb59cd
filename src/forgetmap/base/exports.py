"""A room's public names, each loaded when somebody first asks for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import Signature, signature
from types import ModuleType
from typing import Any


def callable_package(package: str, home: str) -> None:
    """Let a package be called like the function of its name: `forgetmap.lineage(...)`.

    Python puts every package into the one above it, under its own name. So a public function of
    the same name can only be the package itself.
    """
    module, _, name = home.partition(":")

    class Package(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(import_module(module), name)(*arguments, **options)

        @property
        def __doc__(self) -> str | None:  # type: ignore[override]  # so is what it does
            return getattr(import_module(module), name).__doc__  # type: ignore[no-any-return]

        @property
        def __signature__(self) -> Signature:  # for help in notebooks and editors
            return signature(getattr(import_module(module), name))

    sys.modules[package].__class__ = Package


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
