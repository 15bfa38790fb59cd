"""Packages that only parts of forgetmap need: what each extra adds, and what is missing of it.

`pyproject.toml` says which packages an extra brings; here they are read from the installed package.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from forgetmap.base.errors import InputError

ADDS = {
    "capabilities": "score behaviour: refusals, formats, mathematics, tool calls; ask a judge",
    "eval": "run models: transformers, adapters, GGUF, endpoints, lm-eval's tasks",
    "figures": "figures for papers",
    "inspect": "read packed logs of Inspect",
    "mcp": "let coding agents ask (forgetmap mcp)",
    "notebook": "look through the items that changed in Jupyter",
    "ray": "run models on a cluster",
    "serve": "look at comparisons of any size in the browser",
    "spark": "pair logs that live in a data lake",
    "study": "random effects in the model of a study's attributes",
    "suites": "ask bundled and public sets of questions",
    "summarise": "group what was lost by its words",
    "track": "log maps to Weights & Biases and MLflow",
    "train": "train with remedies against forgetting; the trainer callback",
}
"""What each extra is for."""


@cache
def packages(extra: str) -> tuple[str, ...]:
    """The packages that an extra brings."""
    names = []
    for requirement in metadata.requires("forgetmap") or ():
        name, _, marker = requirement.partition(";")
        if re.search(rf"extra *== *['\"]{re.escape(extra)}['\"]", marker):
            names.append(re.split(r"[ \[<>=!~]", name.strip())[0])
    return tuple(names)


def missing(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    return [name for name in packages(extra) if version(name) is None]


def version(package: str) -> str | None:
    """The installed version; None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def install(*extras: str) -> str:
    """The command that installs extras.

    Example:
        >>> install("eval", "suites")
        "pip install 'forgetmap[eval,suites]'"
    """
    return f"pip install 'forgetmap[{','.join(extras)}]'"


def need(what: str, *extras: str, package: str = "packages that cannot be loaded") -> InputError:
    """The one line where something needs extras: all that is missing, and how to install it.

    `package` is the one that could not be loaded; it is told where none is missing.
    """
    lacking = [extra for extra in extras if missing(extra)] or list(extras)
    names = ", ".join(dict.fromkeys(name for extra in lacking for name in missing(extra)))
    told = f"{what} needs {names or package}"
    return InputError(f"{told}; install with: {install(*lacking)}")
