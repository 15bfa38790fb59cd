"""Results that are written as JSON: frozen models, read back only by a version that knows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from forgetmap.base.errors import InputError
from forgetmap.base.files import read_small
from forgetmap.base.limits import JSON_MIB, MIB

CHECKSUM = "checksum"
"""The field of a written result that tells whether the others are as they were written."""
AnyResult = TypeVar("AnyResult", bound=BaseModel)


class Frozen(BaseModel):
    """A result that never changes once made. Fields of newer versions are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Strict(BaseModel):
    """What a person writes in a file: an unknown key is a typo and is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def sealed_json(result: BaseModel, indent: int | None = 2) -> str:
    """The JSON of a result, with a checksum of its content.

    Example:
        >>> class Count(Frozen):
        ...     n: int
        >>> text = sealed_json(Count(n=3), indent=None)
        >>> text[:24]
        '{"n":3,"checksum":"215dd'
        >>> check_seal(json.loads(text.replace("3", "7", 1)))
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: was changed after it was written...
    """
    return json.dumps(
        sealed(json.loads(result.model_dump_json())),
        indent=indent,
        ensure_ascii=False,
        separators=None if indent else (",", ":"),
    )


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Plain content with a checksum of itself, to be written as JSON.

    Example:
        >>> list(sealed({"n": 3}))
        ['n', 'checksum']
    """
    return {**content, CHECKSUM: _digest(json.loads(json.dumps(content)))}


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what was given to `sealed`; an object without a checksum is taken as it is."""
    raw = read_small(path, JSON_MIB.value * MIB, "a file of forgetmap", f"; {JSON_MIB.advice}")
    try:
        content = json.loads(raw)
        check_seal(content)
    except (ValueError, RecursionError) as error:
        is_clear = isinstance(error, InputError)
        raise InputError(f"{path}: {error if is_clear else f'is not JSON ({error})'}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: is not a JSON object")
    content.pop(CHECKSUM, None)
    return content


def check_seal(content: Any) -> None:
    """Refuse content that does not fit its checksum; content without one is taken as it is."""
    if not isinstance(content, dict) or CHECKSUM not in content:
        return
    rest = {name: value for name, value in content.items() if name != CHECKSUM}
    if content[CHECKSUM] != _digest(rest):
        raise InputError(
            f"was changed after it was written: its content does not fit its {CHECKSUM}. Write it "
            f"again, or take the field {CHECKSUM} out if the change was yours"
        )


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def parse_result(
    kind: type[AnyResult],
    name: str,
    newest: int,
    text: str | bytes,
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> AnyResult:
    """Read a result back from its JSON; a newer contract than known is refused.

    Args:
        kind: The result's class.
        name: What people call it.
        newest: The newest schema version that is known.
        text: The JSON.
        upgrade: Turns the content of an older version into that of the newest.

    Example:
        >>> class Count(Frozen):
        ...     n: int
        >>> parse_result(Count, "count", 1, '{"n": 3}').n
        3
    """
    try:
        content = json.loads(text)
        version = content.get("schema_version") if isinstance(content, dict) else None
        if isinstance(version, int) and version > newest:
            raise InputError(
                f"the {name} has schema version {version}, this forgetmap knows up to "
                f"{newest}; upgrade forgetmap to read it, if it is a {name}"
            )
        check_seal(content)
        if isinstance(version, int) and version < newest:
            content = upgrade(content)
        return kind.model_validate(content)
    except (KeyError, TypeError) as error:
        raise InputError(f"not a forgetmap {name}: it lacks {error}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a forgetmap {name}: not JSON ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise InputError(f"not a forgetmap {name}: at {where}, {first['msg']}") from error
