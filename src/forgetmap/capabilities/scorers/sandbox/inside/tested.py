"""The side of the program: it runs what a model wrote, and answers the checker's calls.

Nothing here is to be trusted once the program has begun: it shares this process. It can lie about
what its functions return, and that is all it can do, as any program may return what it likes.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
from types import ModuleType

from . import plain

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def serve(requests: int, replies: int) -> None:
    """Say that the sandbox stands; then answer requests until there are none."""
    module = sys.modules["program"] = ModuleType("program")
    space = module.__dict__
    random.seed(0)
    plain.send(replies, ["ready"])
    while True:
        try:
            kind, *parts = plain.receive(requests)
            _reply(replies, _ANSWERS[kind](space, *parts))
        except plain.EndedError:
            os._exit(0)  # no handler that the program may have left behind


def _reply(replies: int, message: list[Any]) -> None:
    try:
        plain.send(replies, message)
    except plain.NotPlainError:  # too long
        plain.send(replies, ["not plain"])
    except MemoryError:
        plain.send(replies, ["raised", "MemoryError"])


def _run(space: dict[str, Any], code: str) -> list[Any]:
    try:
        exec(compile(code, "program", "exec"), space)
    except BaseException as error:
        return _raised(error)
    return ["done"]


def _look_up(space: dict[str, Any], names: list[str]) -> list[Any]:
    """What each name stands for in the program."""
    return ["names", [_described(space, name) for name in names]]


def _described(space: dict[str, Any], name: str) -> list[Any]:
    if name not in space:
        return ["missing"]
    value = space[name]
    if isinstance(value, ModuleType):
        return ["module"]
    if callable(value):
        return ["callable"]
    try:
        return ["value", plain.encode(value)]
    except BaseException:
        return ["not plain"]


def _call(space: dict[str, Any], name: str, positional: Any, by_name: Any) -> list[Any]:
    """Call a function; its result, and what it made of its arguments where it changed them."""
    arguments = plain.decode(positional)
    try:
        result = space[name](*arguments, **plain.decode(by_name))
        return ["value", plain.encode(result), _changed(positional, arguments)]
    except plain.NotPlainError:
        return ["not plain"]
    except BaseException as error:
        return _raised(error)


def _changed(sent: Any, arguments: list[Any]) -> list[Any]:
    """The arguments as they are now: [number, value] for each list, dict or set that differs."""
    now = [
        plain.encode(one) if isinstance(one, (list, dict, set, bytearray)) else None
        for one in arguments
    ]
    pairs = zip(sent[1], now, strict=True)
    return [
        [number, new] for number, (old, new) in enumerate(pairs) if new is not None and new != old
    ]


def _raised(error: BaseException) -> list[Any]:
    """The nearest built-in exception by name, never a name that the program has made."""
    for kind in type(error).__mro__:
        if getattr(builtins, kind.__name__, None) is kind:
            return ["raised", kind.__name__]
    return ["raised", "Exception"]


_ANSWERS: dict[str, Callable[..., list[Any]]] = {"run": _run, "names": _look_up, "call": _call}
