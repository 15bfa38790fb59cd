"""Clear errors about YAML files: on which line something stands, and which name was meant."""

from __future__ import annotations

from collections.abc import Sequence

import yaml


def line_of(node: yaml.Node | None, place: Sequence[str | int]) -> int:
    """The line of a value in a YAML file, as near as it can be told.

    Example:
        >>> node = yaml.compose("limits: [1, 2]", Loader=yaml.SafeLoader)
        >>> line_of(node, ["limits", 0])
        1
    """
    for part in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            found = node.value[part] if part < len(node.value) else None
        if found is None:
            break
        node = found
    return int(node.start_mark.line) + 1 if node is not None else 1
