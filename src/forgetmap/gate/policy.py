"""gate.yaml: what a checkpoint must keep, read strictly; a typo is refused with its line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from yaml import safe_dump

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.model import Strict
from forgetmap.base.words import nearest
from forgetmap.map.causes import CAUSES
from forgetmap.map.old_maps import MERGED
from forgetmap.map.result import Cell, ForgettingMap

Tier = Literal["block", "warn"]
Action = Literal["pass", "warn", "block", "withhold"]
MEASURES = ("forgetting", "raw", "drop")
"""What a limit may bound: what was lost, flips with their noise, or the drop of accuracy."""
_RETIRED = ("latent", "excess", "soft")
_CAUSE = "cause:"
_WHOLE = ("old", "total", "new", "macro")
_GROUPS = ("category", "task")
DRIFTING = ("capability", "group", "metric")
"""What `forgetmap drift` compares."""
_MOST_BYTES = 1_000_000
EVERY = "*"


class Require(Strict):
    """What must be true of a comparison before any limit is looked at."""

    items: int = Field(default=20, ge=1)
    """Fewest items in a cell that has a limit."""
    coverage: float = Field(default=0.9, ge=0, le=1)
    """Least share of the items of either log that could be compared."""
    identity: Literal["content", "index"] = "index"
    """`content`: refuse items that were paired by their number only."""
    confounds: Literal["any"] | list[str] = "any"
    """Settings that may differ between the two runs."""


class _Bound(Strict):
    """What all limits have."""

    where: str
    tier: Tier = "block"
    alpha: float | None = Field(default=None, gt=0, le=0.5)
    """Own chance of a false alarm, outside the correction."""
    undecided: Action | None = None
    missing: Action | None = None

    @property
    def every(self) -> bool:
        """Whether the limit is for every cell of a kind."""
        return self.where.endswith(f":{EVERY}")


class Limit(_Bound):
    """A limit for one cell of the map or a kind of cells."""

    where: str = "old"
    """`old`, `total`, `new`, `macro`, `category:NAME`, `task:NAME`, or every one: `task:*`."""
    measure: str = "forgetting"
    """One of `MEASURES`, or `cause:NAME`: raw forgetting by that cause alone."""
    max: float | None = Field(default=None, ge=0, le=1)
    """As a share of all items."""
    max_relative: float | None = Field(default=None, ge=0, le=1)
    """As a share of what was right before; with `max` too, the stricter one counts."""

    @field_validator("where")
    @classmethod
    def _known_place(cls, value: str) -> str:
        group, _, name = value.partition(":")
        if value in _WHOLE or (group in _GROUPS and name):
            return value
        if group in DRIFTING and name:
            raise ValueError(f"{value!r:.60} is no part of the map; put it under capabilities")
        raise ValueError(
            f"{value!r:.60} is no place; write old, total, new, macro, category:NAME or task:NAME"
            f"{nearest(group, (*_WHOLE, 'category:*', 'task:*'))}"
        )

    @field_validator("measure")
    @classmethod
    def _known_measure(cls, value: str) -> str:
        known = (*MEASURES, *(f"{_CAUSE}{name}" for name in CAUSES))
        if value in known:
            return value
        if value in _RETIRED:
            raise ValueError(f"{value!r} is retired, since gains hid losses in it; use forgetting")
        if now := MERGED.get(value.removeprefix(_CAUSE)):
            raise ValueError(
                f"{value!r} is a part of {now} since they were merged; use {_CAUSE}{now}"
            )
        raise ValueError(f"{value!r:.60} is no measure{nearest(value, known)}")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.max is None and self.max_relative is None:
            raise ValueError("a limit needs max or max_relative")
        return self

    @property
    def cause(self) -> str | None:
        """The cause that is limited, where one is."""
        return self.measure.removeprefix(_CAUSE) if self.measure.startswith(_CAUSE) else None


class CapabilityLimit(_Bound):
    """A limit on the drift of a capability, a group of capabilities, or one of their metrics.

    Where a metric has a good end, the limit is on the loss; where it has none (length,
    formatting), on the change either way.
    """

    where: str
    """`capability:CODE`, `group:NAME`, `metric:TASK METRIC`, or every one: `capability:*`."""
    max_relative: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """As a share of the value before."""
    max: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """In the units of a metric; aggregates of several metrics have none."""

    @field_validator("where")
    @classmethod
    def _known_place(cls, value: str) -> str:
        kind, _, name = value.partition(":")
        if kind in DRIFTING and name:
            return value
        places = tuple(f"{kind}:{EVERY}" for kind in DRIFTING)
        raise ValueError(
            f"{value!r:.60} is no place; write capability:CODE, group:NAME or metric:TASK METRIC"
            f"{nearest(kind, places)}"
        )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if (self.max is None) == (self.max_relative is None):
            raise ValueError("a limit on a capability needs either max_relative or max")
        if self.max is not None and not self.where.startswith("metric:"):
            raise ValueError("max is for metrics, which have units; write max_relative")
        return self

    @property
    def bound(self) -> float:
        """The limit, in the units of what it is on."""
        bound = self.max_relative if self.max is None else self.max
        assert bound is not None  # _bounded
        return bound

    @property
    def measure(self) -> str:
        """What is limited, for tables."""
        return "relative drift" if self.max is None else "drift"


AnyLimit = Limit | CapabilityLimit


class Policy(Strict):
    """A whole policy.

    Example:
        >>> policy = Policy(limits=[{"where": "total", "measure": "raw", "max": 0.1}])
        >>> policy.alpha, policy.limits[0].tier
        (0.025, 'block')
    """

    version: Literal[1] = 1
    alpha: float = Field(default=0.025, gt=0, le=0.5)
    """Chance that noise alone breaks any limit of a tier; 0.025 is one end of a 95 % interval."""
    correction: Literal["holm", "none"] = "holm"
    undecided: Action = "warn"
    """What it means that the data cannot tell on which side of its limit a value lies."""
    missing: Action = "withhold"
    """What it means that a cell or an estimator is not in the map, or no drift was given."""
    require: Require = Require()
    limits: list[Limit] = Field(default_factory=list)
    capabilities: list[CapabilityLimit] = Field(default_factory=list)

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if not self.limits and not self.capabilities:
            raise ValueError("at least one limit must stand under limits or capabilities")
        return self

    @property
    def needs_causes(self) -> bool:
        """Whether a limit bounds a cause, so that the text of the logs must be read."""
        return any(limit.cause for limit in self.limits)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file; what is wrong with it is said with its line."""
        document = yaml.read(path, "a gate policy")
        if not isinstance(document.content, dict):
            raise InputError(f"{path}:1: a policy is made of keys such as alpha and limits")
        with document.faults(cls):
            return cls.model_validate(document.content)


def write_policy(result: ForgettingMap) -> str:
    """A sensible policy for maps like this one, as YAML with comments.

    Made from a comparison you accept: later ones may forget as much as its upper bounds, not
    more. Accuracy may fall as far, and by the map's margin or the smallest change that such a
    comparison can show. Tasks only warn.

    Example:
        >>> import forgetmap
        >>> text = write_policy(forgetmap.demo())
        >>> Policy.model_validate(yaml.parse("gate.yaml", text).content).limits[0].where
        'old'
    """
    cell, margin = result.old, result.settings.margin
    old_tasks = {
        name: task for name, task in result.tasks.items() if name not in result.settings.new
    }
    limits: list[dict[str, Any]] = [
        {"where": "old", "measure": "forgetting", "max": _up(max(margin, cell.lost.high))},
        {"where": "old", "measure": "drop", "max": _up(max(margin, cell.mde, -cell.change.low))},
        *_group_limits("category", result.categories, margin, "block"),
        *_group_limits("task", old_tasks, margin, "warn"),
    ]
    if cell.causes is not None:
        limits += [
            {"where": "old", "measure": f"{_CAUSE}{name}", "max": margin, "tier": "warn"}
            for name in ("wrapped", "prose", "truncated", "refused")
        ]
    covered = min(result.coverage.share("before"), result.coverage.share("after"))
    allowed = _flow(sorted({setting_name(confound.setting) for confound in result.confounds}))
    return "\n".join(
        [
            "# What a checkpoint must keep. Keys: docs/reference/policy.md",
            "version: 1",
            "alpha: 0.025         # chance that noise alone breaks any limit of a tier",
            "correction: holm",
            "undecided: warn      # pass, warn, block or withhold",
            "missing: withhold",
            "require:",
            f"  items: {min(100, max(20, min(cell.n for cell in result.tasks.values())))}",
            f"  coverage: {int(95 * covered) / 100:g}",
            f"  confounds: {allowed}  # settings that may differ between the runs",
            "limits:",
            *(f"  - {_flow(limit)}" for limit in limits),
            "",
        ]
    )


def setting_name(setting: str) -> str:
    """The name of a confound without the tasks it is told for.

    Example:
        >>> setting_name("few-shot examples (arc, mmlu)")
        'few-shot examples'
    """
    return setting.partition(" (")[0]


def _group_limits(
    kind: str, cells: Mapping[str, Cell], margin: float, tier: Tier
) -> list[dict[str, Any]]:
    """One limit that three quarters of the cells keep, and their own for those that do not."""
    if len(cells) < 2:
        return []
    highs = sorted(cell.lost.high for cell in cells.values())
    usual = _up(max(margin, highs[3 * (len(highs) - 1) // 4]))
    most = {EVERY: usual} | {
        name: _up(cell.lost.high) for name, cell in cells.items() if cell.lost.high > usual
    }
    return [
        {"where": f"{kind}:{name}", "measure": "forgetting", "max": share, "tier": tier}
        for name, share in most.items()
    ]


def _flow(value: object) -> str:
    """A value as YAML on one line, quoted where its text asks for that."""
    return safe_dump(value, default_flow_style=True, width=1_000_000, sort_keys=False).strip()


def _up(share: float) -> float:
    """The next half percent, which people can read."""
    return min(1.0, math.ceil(share * 200 - 1e-9) / 200)
