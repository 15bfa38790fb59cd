"""Programs in an answer: their normal form, their functions, and how they end.

A program is never run. Python's own parser reads it, so that spaces, quotes and comments do not
matter.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import Any

LONGEST = 20_000
"""Characters that are parsed; an answer with a form is shorter."""
OPENS_CODE = re.compile(r"^(?:async def|def|class|import|from|@|for|while|if|with|try)\b", re.M)
_HEAD = re.compile(r"(?:^|.{0,200}[ :])(?=(?:async )?def (\w{1,80})\()")
_OPENS_FUNCTION = re.compile(r"^[ \t]{0,40}(?:async )?(?:def|class)\b", re.M)
_INDENTS = ("", " ", "\t")
_MOST_FUNCTIONS, _MOST_LINES = 20, 40


def parsed(text: str, mode: str) -> Any:
    """The tree of a text; None where Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a model wrote may hold odd escapes
            tree = ast.parse(text.strip()[:LONGEST], mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.body if isinstance(tree, ast.Expression) else tree


@lru_cache(maxsize=256)
def as_code(text: str) -> str | None:
    """A program in normal form; None where it does not parse.

    Comments, docstrings and types are left out, and names of a function's own do not matter.

    Example:
        >>> as_code("def f(x: int) -> int:\\n    y = x + 1  # one more\\n    return y")
        'def f(a0):\\n    a1 = 1 + a0\\n    return a1'
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
        if isinstance(body, list) and len(body) > 1 and _is_text(body[0]):
            del body[0]
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


def does_something(text: str) -> bool:
    """Whether a text defines a function with one whole statement at least.

    Example:
        >>> does_something("def f(x):\\n    if x:\\n        return 1\\n    else:")
        True
        >>> does_something("def f(x):\\n    return x *"), does_something("def f(x):\\n    return")
        (False, False)
    """
    lines = text[:LONGEST].splitlines()
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)][:_MOST_FUNCTIONS]
    return any(_first_statement(lines[at : at + _MOST_LINES]) for at in heads)


def _first_statement(lines: list[str]) -> bool:
    """Whether Python can read a function from its head to some line, with more than a docstring."""
    head = lines[0][lines[0].index("def ") :]
    for end in range(1, len(lines) + 1):
        tree = parsed("\n".join([head, *lines[1:end]]), "exec")
        if tree is not None and not all(map(_is_text, tree.body[0].body)):
            return lines[end - 1].strip() != "return"
    rest = [line for line in lines[1:] if line.strip()]  # one that Python cannot read, and more
    return len(rest) > 1 and rest[0][:1].isspace() and not rest[1][:1].isspace()


def ends_early(text: str) -> bool:
    """Whether a function without a whole statement stops in its last line, or after its docstring.

    Example:
        >>> ends_early("def f(x):\\n    if x"), ends_early("def f(x) x\\nprint(f(1))")
        (True, False)
    """
    stripped = text.strip()[:LONGEST]
    if not _OPENS_FUNCTION.search(stripped):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(stripped)
    except SyntaxError as error:
        return (error.lineno or 0) >= stripped.count("\n") + 1
    except (ValueError, RecursionError, MemoryError):
        return False
    return True
