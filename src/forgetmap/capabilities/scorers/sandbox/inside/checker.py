"""The side of the tests: it runs them in a process that the program cannot reach.

The functions of the program are here in name only: a call is sent to the program's process, and
plain data come back. So each comparison is made here, on built-in values. What is reported is one
of a few fixed words, after a nonce that the program has never seen.
"""

from __future__ import annotations

import builtins
import json
import os
import symtable
import sys
from types import ModuleType

from . import plain

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO


class _NoVerdictError(BaseException):
    """The test cannot go on; not an Exception, so that no test takes it for one of its own."""


class _Program:
    """The program, in a process of its own."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies
        self.ended = self.not_plain = False

    def ask(self, *request: Any) -> list[Any]:
        try:
            plain.send(self.requests, list(request))
            return plain.receive(self.replies)
        except plain.EndedError:
            self.ended = True
            raise _NoVerdictError from None
        except plain.NotPlainError:
            raise self.refused() from None

    def refused(self) -> _NoVerdictError:
        self.not_plain = True
        return _NoVerdictError()

    def decoded(self, sent: Any) -> Any:
        try:
            return plain.decode(sent)
        except plain.NotPlainError:
            raise self.refused() from None

    def function(self, name: str) -> Callable[..., Any]:
        """A function that stands for one of the program's."""

        def call(*positional: Any, **by_name: Any) -> Any:
            try:
                sent = plain.encode(list(positional)), plain.encode(by_name)
            except plain.NotPlainError:
                raise self.refused() from None
            match self.ask("call", name, *sent):
                case ["value", result, [*changes]]:
                    for change in changes:
                        self.carry_over(positional, change)
                    return self.decoded(result)
                case ["raised", str(kind)]:
                    raise exception(kind)
            raise self.refused()

        call.__name__ = call.__qualname__ = name
        return call

    def carry_over(self, arguments: tuple[Any, ...], change: Any) -> None:
        """Do to an argument what the program did to its copy."""
        match change:
            case [int(number), sent] if 0 <= number < len(arguments):
                held, new = arguments[number], self.decoded(sent)
                if isinstance(held, (list, bytearray)) and isinstance(new, (list, bytearray)):
                    held[:] = new
                elif isinstance(held, (dict, set)) and isinstance(new, type(held)):
                    held.clear()
                    held.update(new)
            case _:
                raise self.refused()


def exception(kind: str) -> BaseException:
    """A built-in exception by name, without a word of the program's."""
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        try:
            return found.__new__(found)
        except TypeError:  # one that must hold others
            pass
    return Exception()


def names_used(source: str) -> set[str]:
    """The names that a piece of Python takes from outside.

    Example:
        >>> sorted(names_used("import math\\ndef check(g):\\n    assert abs(f(g)) < math.pi + eps"))
        ['abs', 'eps', 'f']
    """
    top = symtable.symtable(source, "tests", "exec")
    own = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    used = {one.get_name() for one in top.get_symbols() if one.is_referenced()}
    inner = list(top.get_children())
    while inner:
        table = inner.pop()
        inner += table.get_children()
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return used - own


class _Checker:
    """Runs the tests, one after the other, in one name space."""

    def __init__(self, program: _Program, orders: dict[str, Any]) -> None:
        self.program = program
        self.entry_point = orders["entry_point"]
        module = sys.modules["tests"] = ModuleType("tests")
        self.space = module.__dict__
        self.borrowed: dict[str, Any] = {}
        _attempt(orders["given"], self.space)
        self.space.pop(self.entry_point, None)
        self.own_builtin = self._only_builtin(orders["tests"])

    def _only_builtin(self, tests: list[str]) -> str:
        """The one name that the tests use, if it is built-in: then the program's is meant."""
        try:
            used = set[str]().union(*map(names_used, tests)) - set(self.space)
        except (SyntaxError, ValueError):
            return ""
        return used.pop() if len(used) == 1 else ""

    def outcome(self, test: str) -> str:
        """Run one test; one of the fixed words."""
        self.program.not_plain = False
        try:
            self._borrow(test)
            found = _attempt(test, self.space)
        except (SyntaxError, ValueError):
            return "error"
        except _NoVerdictError:
            found = "error"
        if self.program.ended:
            raise plain.EndedError
        return "not plain data" if self.program.not_plain else found or "passed"

    def _borrow(self, test: str) -> None:
        """Put what the test needs of the program into its name space."""
        for name, value in self.borrowed.items():
            if self.space.get(name) is value:
                del self.space[name]
        wanted = sorted(name for name in names_used(test) if self._is_wanted(name))
        match self.program.ask("names", wanted) if wanted else ["names", []]:
            case ["names", [*kinds]] if len(kinds) == len(wanted):
                pairs = zip(wanted, kinds, strict=True)
                found = {name: self._found(name, *kind) for name, kind in pairs}
            case _:
                raise self.program.refused()
        self.borrowed = {name: value for name, value in found.items() if value is not _NOTHING}
        self.space.update(self.borrowed)

    def _is_wanted(self, name: str) -> bool:
        if name in self.space:
            return False
        return name in (self.entry_point, self.own_builtin) or not hasattr(builtins, name)

    def _found(self, name: str, kind: str = "", *sent: Any) -> Any:
        if kind == "callable":
            return self.program.function(name)
        if kind == "value" and len(sent) == 1:
            return self.program.decoded(sent[0])
        if kind == "module" and name in sys.stdlib_module_names:
            return __import__(name)  # our own, not the program's
        if kind == "missing":
            return _NOTHING
        raise self.program.refused()


_NOTHING = object()


def _attempt(code: str, space: dict[str, Any]) -> str | None:
    """Run a piece of Python; what became of it in a fixed word, None if it ran to its end."""
    try:
        exec(compile(code, "tests", "exec"), space)
    except AssertionError:
        return "failed"
    except MemoryError:
        return "memory"
    except BaseException:
        return "error"
    return None


def check(orders: dict[str, Any], report: TextIO, requests: int, replies: int) -> None:
    """Start the program and report the outcome of each test at once."""
    program = _Program(requests, replies)

    def say(word: str) -> None:
        report.write(f"{orders['nonce']} {word}\n")
        report.flush()

    try:
        if plain.receive(replies) != ["ready"]:
            return
        say("started")
        checker = _Checker(program, orders)
        failed = _defined(program, orders["code"])
        for test in orders["tests"]:
            say(failed or checker.outcome(test))
    except (plain.EndedError, _NoVerdictError):
        return  # whoever started us sees how the program ended


def _defined(program: _Program, code: str) -> str | None:
    match program.ask("run", code):
        case ["done"]:
            return None
        case ["raised", "MemoryError"]:
            return "memory"
    return "error"


def read_orders(pipe: int) -> dict[str, Any]:
    """Read the orders to their end."""
    with os.fdopen(pipe, "rb") as file:
        orders: dict[str, Any] = json.load(file)
    return orders
