"""Results that are written as JSON: frozen models, read back only by a version that knows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from forgetmap.base.errors import InputError

AnyResult = TypeVar("AnyResult", bound=BaseModel)


class Frozen(BaseModel):
    """A result that never changes once made. Fields of newer versions are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Strict(BaseModel):
    """What a person writes in a file: an unknown key is a typo and is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
                f"{newest}; upgrade forgetmap to read it"
            )
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
