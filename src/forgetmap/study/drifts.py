"""Capability drift of the pairs of a study: pairs x capabilities, corrected over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.files import read_small
from forgetmap.base.limits import JSON_MIB, MIB
from forgetmap.capabilities.drift import drift
from forgetmap.capabilities.drift_result import Aggregate, CapabilityDrift, Drift
from forgetmap.capabilities.manifest import Manifest
from forgetmap.map.cells import ALPHA
from forgetmap.stats.tests import holm
from forgetmap.study.file import StudyPair
from forgetmap.study.result import CapabilityCell, PairDrift, StudiedPair
from forgetmap.study.store import Store, content_of, key_of

DRAWS = 10_000
_SURE = ("worse", "better", "lower", "higher")


@dataclass(frozen=True)
class Behaviour:
    """How the drift of every pair is computed."""

    source: str
    """Of the manifest."""
    margin: float
    seed: int
    store: Store

    @cached_property
    def manifest(self) -> Manifest:
        """Which capabilities by which metrics; most studies do not need it."""
        return Manifest.load(self.source)

    def of(self, pair: StudyPair) -> PairDrift | None:
        """The drift of a pair; what cannot be compared is told, and does not stop the pair."""
        if pair.drift is None and pair.drift_before is None and pair.drift_after is None:
            return None
        named = pair.drift or pair.drift_before or pair.drift_after or ""
        try:
            return _kept(self._drift(pair), named, pair.drift_after)
        except (InputError, WithheldError) as error:
            return PairDrift(
                before=named,
                after=pair.drift_after,
                manifest=self.source,
                groups={},
                capabilities={},
                failure=str(error),
            )

    def _drift(self, pair: StudyPair) -> Drift:
        if pair.drift is not None:
            return _saved(Path(pair.drift))
        if pair.drift_before is None or pair.drift_after is None:
            raise InputError("drift_before and drift_after go together; name both files of scores")
        sides = pair.drift_before, pair.drift_after
        contents = [content_of(Path(side)) for side in sides]
        numbers = [self.margin, DRAWS, self.seed]
        key = key_of("drift", contents, self.manifest.model_dump(mode="json"), numbers)
        found = self.store.drift(key)
        if found is None:
            found = drift(
                *sides, manifest=self.manifest, margin=self.margin, draws=DRAWS, seed=self.seed
            )
            self.store.keep_drift(key, found)
        return found


def _saved(path: Path) -> Drift:
    text = read_small(path, JSON_MIB.value * MIB, "a saved drift", f"; {JSON_MIB.advice}")
    try:
        return Drift.from_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _kept(found: Drift, before: str, after: str | None) -> PairDrift:
    return PairDrift(
        before=before,
        after=after,
        manifest=found.settings.manifest,
        groups={group.name: _cell(group, group.name, None) for group in found.groups},
        capabilities={
            capability.code: _cell(capability, capability.name, capability.group)
            for capability in found.capabilities
        },
        warnings=found.warnings,
    )


def _cell(found: Aggregate, name: str, group: str | None) -> CapabilityCell:
    left = ", ".join(found.left_out)
    withheld = None
    if found.relative is None:
        withheld = f"no part has a relative change; left out: {left}" if left else "no part has one"
    return CapabilityCell(
        name=name,
        group=group,
        relative=found.relative,
        change=found.change,
        withheld=withheld,
        left_out=found.left_out,
        p_value=found.p_value,
        p_adjusted=found.p_adjusted,
        verdict=found.verdict,
        two_sided=isinstance(found, CapabilityDrift) and found.two_sided,
    )


def corrected_drifts(pairs: Sequence[StudiedPair]) -> list[StudiedPair]:
    """The pairs with verdicts on behaviour that are corrected over all pairs (Holm)."""
    drifts = [pair.drift for pair in pairs if pair.drift]
    groups = iter(_judged([cell for found in drifts for cell in found.groups.values()]))
    singles = iter(_judged([cell for found in drifts for cell in found.capabilities.values()]))
    done = []
    for pair in pairs:
        if pair.drift is not None:
            update = {
                "groups": {name: next(groups) for name in pair.drift.groups},
                "capabilities": {code: next(singles) for code in pair.drift.capabilities},
            }
            pair = pair.model_copy(update={"drift": pair.drift.model_copy(update=update)})
        done.append(pair)
    return done


def _judged(cells: Sequence[CapabilityCell]) -> list[CapabilityCell]:
    adjusted = holm([cell.p_value for cell in cells])
    return [
        cell.model_copy(
            update={
                "p_adjusted": float(p),
                "verdict": "undecided" if cell.verdict in _SURE and p >= ALPHA else cell.verdict,
            }
        )
        for cell, p in zip(cells, adjusted, strict=True)
    ]
