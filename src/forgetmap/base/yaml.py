"""YAML files, read strictly: every fault is one line with the file and the line in it.

A key that occurs twice is refused, since YAML would drop one of the two in silence. So are aliases:
a small file could stand for an endless one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from forgetmap.base.errors import InputError
from forgetmap.base.files import read_small
from forgetmap.base.words import nearest

MOST_BYTES = 4 * 2**20
_DEEPEST = 50
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The quick one, where PyYAML was built with it; both build plain values only."""
Place = Sequence[str | int]
"""Keys and numbers that lead to a value."""


class MisplacedError(ValueError):
    """Something that makes no sense, and where in the file it is."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(text)
        self.place = place


@dataclass(frozen=True)
class Document:
    """A YAML file that was read: its content, and where each part of it is."""

    name: str
    text: str
    content: Any
    node: yaml.Node | None

    def line(self, place: Place) -> int:
        """The line of a value, or of the nearest one around it.

        Example:
            >>> parse("gate.yaml", "limits:\\n- {max: 1}\\n").line(["limits", 0, "max"])
            2
        """
        node = self.node
        for part in place:
            inner = _inside(node, part)
            if inner is None:
                break
            node = inner
        return 1 if node is None else int(node.start_mark.line) + 1

    @contextmanager
    def faults(self, model: type[BaseModel]) -> Iterator[None]:
        """Turn what a check of the content finds into one clear line."""
        try:
            yield
        except ValidationError as error:
            raise InputError(self._explained(error, model)) from error
        except MisplacedError as error:
            raise InputError(f"{self.name}:{self.line(error.place)}: {error}") from error

    def _explained(self, error: ValidationError, model: type[BaseModel]) -> str:
        """The first fault; a typo comes first, since it is also why a key is missing."""
        faults = error.errors(include_url=False)
        typos = [fault for fault in faults if fault["type"] == "extra_forbidden"]
        first = (typos or faults)[0]
        place = first["loc"]
        where = f"{self.name}:{self.line(place)}"
        if typos:
            key, known = str(place[-1]), _model_at(model, place[:-1]).model_fields
            return f"{where}: unknown key {key!r:.60}{nearest(key, known)}"
        name = ".".join(str(part) for part in place) or "the top"
        return f"{where}: {name}: {first['msg'].removeprefix('Value error, ')}"


def read(path: str | Path, what: str) -> Document:
    """Read a YAML file; `what` says in messages what it should be."""
    path = Path(path)
    raw = read_small(path, MOST_BYTES, what)
    try:
        return parse(str(path), raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason})") from error


def packaged(package: str, path: str) -> Document:
    """Read a YAML file that is part of forgetmap."""
    return parse(path, files(package).joinpath(path).read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Document:
    """Parse YAML strictly.

    Example:
        >>> parse("gate.yaml", "alpha: 0.1").content
        {'alpha': 0.1}
        >>> parse("gate.yaml", "alpha: 0.1\\nalpha: 0.2")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: gate.yaml:2: 'alpha' occurs twice; name it once
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        _refuse_tricks(name, node)
        content = loader.construct_document(node) if node is not None else None
    except InputError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or " ".join(str(error).split())[:120]
        raise InputError(f"{name}{line}: is not YAML ({reason})") from error
    finally:
        loader.dispose()
    return Document(name, text, content, node)


def _refuse_tricks(name: str, root: yaml.Node | None) -> None:
    """Refuse a key that occurs twice, a key that is not a word, and aliases."""
    seen: set[int] = set()
    waiting = [(root, 0)] if root is not None else []
    while waiting:
        node, depth = waiting.pop()
        where = f"{name}:{node.start_mark.line + 1}"
        if depth > _DEEPEST:
            raise InputError(f"{where}: is nested more than {_DEEPEST} levels deep")
        if isinstance(node, yaml.CollectionNode) and id(node) in seen:
            raise InputError(f"{where}: YAML aliases are not allowed; write the value again")
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                line = f"{name}:{key.start_mark.line + 1}"
                if not isinstance(key, yaml.ScalarNode):
                    raise InputError(f"{line}: a key must be a word")
                if key.value in keys:
                    raise InputError(f"{line}: {key.value!r:.60} occurs twice; name it once")
                keys.add(key.value)
                waiting.append((value, depth + 1))
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(value, depth + 1) for value in node.value]


def _inside(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    """The value under a key or number; for a key without its own line, the key itself."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        inner: yaml.Node = node.value[part]
        return inner
    return None


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """The model of the values at a place, found through the types of the fields."""
    for part in place:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = next(_models_in(field.annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
