"""Programs in an answer: their normal form, their functions, and how they end.

A program is never run. Python's own parser reads it, so that spaces, quotes and comments do not
matter.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any

LONGEST = 20_000
"""Characters that are parsed; an answer with a form is shorter."""
OPENS_CODE = re.compile(r"^(?:async def|def|class|import|from|@|for|while|if|with|try)\b", re.M)
_FUNCTION = re.compile(r"^(?:async )?def .*", re.M | re.DOTALL)
_HEAD = re.compile(r"(?:^|.{0,200}[ :])(?=(?:async )?def (\w{1,80})\()")
_DEFINES = re.compile(r"(?:async def|def|class)\b|@")
_INDENTS = ("", " ", "\t")
_MOST_FUNCTIONS = 20


def parsed(text: str, mode: str) -> Any:
    """The tree of a text; None where Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a model wrote may hold odd escapes
            tree = ast.parse(text.strip()[:LONGEST], mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.body if isinstance(tree, ast.Expression) else tree


def as_code(text: str) -> str | None:
    """A program in normal form; None where it does not parse.

    Comments, docstrings and types are left out, and names of a function's own do not matter.

    Example:
        >>> as_code("def f(x: int) -> int:\\n    y = x + 1  # one more\\n    return y")
        'def f(a0):\\n    return 1 + a0'
    """
    tree = parsed(text, "exec")
    if tree is None or not tree.body:
        return None
    try:
        return ast.unparse(ast.fix_missing_locations(_Normal().visit(tree)))
    except (RecursionError, ValueError):
        return None


class _Normal(ast.NodeTransformer):
    """What two programs that do the same in the same way have in common."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            if len(body) > 1 and _is_text(body[0]):
                del body[0]
            _shorten(body)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """`2 * x` is `x * 2`, and `2 + x` is `x + 2`."""
        self.generic_visit(node)
        sides = (node.left, node.right)
        counted = any(isinstance(side, ast.Constant) and _is_count(side.value) for side in sides)
        if counted and isinstance(node.op, ast.Mult | ast.Add):
            node.left, node.right = sorted(sides, key=ast.dump)
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        """`[0:2]` is `[:2]`."""
        self.generic_visit(node)
        if isinstance(node.lower, ast.Constant) and node.lower.value == 0 and node.step is None:
            node.lower = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        arguments = [part for part in ast.walk(node) if isinstance(part, ast.arg)]
        own = [part.arg for part in arguments]
        own += [
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
        renamed = {name: f"a{place}" for place, name in enumerate(dict.fromkeys(own))}
        for argument in arguments:
            argument.arg, argument.annotation = renamed[argument.arg], None
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                part.id = renamed.get(part.id, part.id)
        return node


def _shorten(body: list[Any]) -> None:
    """`y = E; return y` becomes `return E`; a condition that returns True or False, itself."""
    last = body[-1] if body else None
    if isinstance(last, ast.If) and len(last.body) == 1 and len(last.orelse) == 1:
        body[-1:] = _condition(last.test, last.body[0], last.orelse[0]) or [last]
    elif len(body) > 1 and isinstance(body[-2], ast.If) and len(body[-2].body) == 1:
        if not body[-2].orelse and (short := _condition(body[-2].test, body[-2].body[0], last)):
            body[-2:] = short
    elif len(body) > 1 and isinstance(body[-2], ast.Assign) and isinstance(last, ast.Return):
        [target, *more] = body[-2].targets
        names = [part.id for part in (target, last.value) if isinstance(part, ast.Name)]
        if not more and len(names) == 2 and names[0] == names[1]:
            body[-2:] = [ast.Return(body[-2].value)]


def _condition(test: ast.expr, one: Any, other: Any) -> list[ast.stmt] | None:
    said = [
        part.value.value
        for part in (one, other)
        if isinstance(part, ast.Return) and isinstance(part.value, ast.Constant)
    ]
    return [ast.Return(test)] if said == [True, False] else None


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def functions(text: str) -> dict[str, str]:
    """Every function that a text defines at the margin, in normal form, by name; the last counts.

    Example:
        >>> functions("Here it is:\\ndef f(x):\\n    return x\\nIt is short.")
        {'f': 'def f(a0):\\n    return a0'}
    """
    lines = text[:LONGEST].splitlines()
    heads = [(at, head[1]) for at, line in enumerate(lines) if (head := _HEAD.match(line))]
    found: dict[str, str] = {}
    for at, name in heads[:_MOST_FUNCTIONS]:
        rest = range(at + 1, len(lines))
        end = next((here for here in rest if lines[here][:1] not in _INDENTS), None)
        first = lines[at][lines[at].index("def ") :]
        block = "\n".join([first, *lines[at + 1 : end]]).rstrip().removesuffix(".")
        if (code := as_code(block)) is not None:
            found[name] = code
    return found


def ends_early(text: str) -> bool:
    """Whether a program stops in its last line, or before it does anything with a value.

    Example:
        >>> ends_early("def f(x):\\n    if x"), ends_early("def f(x) x\\nprint(f(1))")
        (True, False)
        >>> ends_early("def f(x):\\n    y = x % 1")
        True
    """
    stripped = text.strip()[:LONGEST]
    if not OPENS_CODE.search(stripped):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(stripped)
    except SyntaxError as error:
        return (error.lineno or 0) >= stripped.count("\n") + 1
    except (ValueError, RecursionError, MemoryError):
        return False
    return _assigns_last(tree) or stripped.endswith("return") or _only_describes(tree)


def _only_describes(tree: ast.Module) -> bool:
    """Whether a program ends in a function that has a docstring and does nothing."""
    last = tree.body[-1] if tree.body else None
    defines = isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef)
    return defines and all(map(_is_text, last.body))  # type: ignore[union-attr]


def _assigns_last(tree: ast.Module) -> bool:
    """Whether a program ends in a function that sets a name of its own and does no more."""
    block: list[ast.stmt] = tree.body
    in_function = False
    while block:
        last = block[-1]
        in_function |= isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(last, ast.Assign):
            return in_function and all(isinstance(name, ast.Name) for name in last.targets)
        block = getattr(last, "orelse", None) or getattr(last, "body", [])
    return False


def finishes(text: str, names: Iterable[str]) -> bool:
    """Whether a text defines one of these functions to its end, and something follows it.

    Example:
        >>> finishes("def f(x):\\n    return x\\n\\ndef g", ["f"])
        True
    """
    lines = text[:LONGEST].splitlines()
    margin = [at for at, line in enumerate(lines) if line[:1] not in _INDENTS]
    last = margin[-1] if margin else 0
    return any(name in functions("\n".join(lines[:last])) for name in names)


def finishes_a_function(text: str) -> bool:
    """Whether a text defines a function to its end: something follows, or a line that returns.

    The definition of another function may follow because the first one is its helper, so that
    tells nothing.

    Example:
        >>> finishes_a_function("def f(x):\\n    return x\\n\\nprint(f(")
        True
        >>> finishes_a_function("def f(x):\\n    return x")
        False
    """
    found = _FUNCTION.search(text[:LONGEST])
    if found is None:
        return False
    lines = found[0].splitlines()
    end = next((at for at, line in enumerate(lines) if at and line[:1] not in _INDENTS), None)
    tree = parsed("\n".join(lines[:end]), "exec")
    if tree is None:
        return False
    if end is None:
        return isinstance(tree.body[0].body[-1], ast.Return) and found[0].endswith("\n")
    head, follows = lines[0].partition("(")[0], lines[end].partition("(")[0]
    return follows == head or not _DEFINES.match(follows)
