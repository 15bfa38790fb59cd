"""Merge two checkpoints into one, streaming over their shards."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.checkpoints import new_folder, write_json
from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.mitigate.merge.adapters import (
    AdaptedWeights,
    Adapter,
    is_adapter,
    join_adapters,
    scale_adapter,
)
from forgetmap.mitigate.merge.methods import (
    cosine_of,
    dare,
    linear,
    magnitude_at,
    products,
    slerp,
    task_arithmetic,
    ties,
)
from forgetmap.mitigate.merge.weights import (
    Block,
    Floats,
    Weights,
    carry,
    check_alike,
    check_new_folder,
    to_stored,
    write_config,
    write_like,
)

ABOUT = "forgetmap-merge.json"
"""In every merged folder: how it was made."""
METHODS = ("linear", "slerp", "task-arithmetic", "ties", "dare", "dare-ties")
MERGEKIT_ONLY = ("nuslerp", "della", "della-linear", "breadcrumbs", "breadcrumbs-ties")
"""Methods for which only mergekit's YAML is written."""
_SPARSE = ("ties", "dare", "dare-ties", *MERGEKIT_ONLY[1:])
LOW_RANK = ("linear", "task-arithmetic")
"""Methods whose result, of adapters, is an adapter again."""
_DENSITY = 0.5


@dataclass(frozen=True)
class How:
    """How two models are merged.

    Example:
        >>> How("ties", weight=0.3).kept
        0.5
        >>> How("ties", weight=3)
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: --weight 3: must lie between 0 and 1
    """

    method: str = "linear"
    weight: float = 0.5
    """Share of the model after."""
    density: float | None = None
    """Share of each task vector that stays (ties, dare); by default one half."""
    scale: float = 1.0
    """Factor of what is added to the base (task vectors only)."""
    seed: int = 0
    """Of what dare drops."""

    def __post_init__(self) -> None:
        known = (*METHODS, *MERGEKIT_ONLY)
        if self.method not in known:
            raise InputError(f"--method {self.method}: known are {', '.join(known)}")
        if not 0 <= self.weight <= 1:
            raise InputError(f"--weight {self.weight}: must lie between 0 and 1")
        if self.density is not None and not 0 < self.density <= 1:
            raise InputError(f"--density {self.density}: must be above 0 and at most 1")
        if self.density is not None and self.method not in _SPARSE:
            raise InputError(f"--density: {self.method} keeps everything; leave it out")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"--scale {self.scale}: must be a number above 0")
        if self.scale != 1 and self.method in ("linear", "slerp", "nuslerp"):
            raise InputError(f"--scale: {self.method} has no task vectors; use task-arithmetic")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed}: must not be negative")

    @property
    def kept(self) -> float:
        """Share of each task vector that stays."""
        if self.method not in _SPARSE:
            return 1.0
        return _DENSITY if self.density is None else self.density

    def parent(self, has_base: bool) -> str | None:
        """Which parent the merge would only copy: `before`, `after`, or None for a real merge."""
        keeps_all = self.kept == 1 and self.scale == 1
        if has_base and not keeps_all:
            return None
        if self.weight == 0:
            return "before"
        return "after" if self.weight == 1 and keeps_all else None


def merge(
    before: str | Path,
    after: str | Path,
    out: str | Path,
    *,
    method: str = "linear",
    weight: float = 0.5,
    base: str | Path | None = None,
    density: float | None = None,
    scale: float = 1.0,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Path:
    """Merge two models into a new folder, which appears whole or not at all.

    Shards and number types are those of `before`; config, tokenizer and chat template those of
    `after`. Where `after` is an adapter's folder alone, the result is an adapter: its factors
    scaled, or, with an adapter as `before` too, those of both side by side.

    Args:
        before: Folder of the model before, or BASE+ADAPTER.
        after: Folder of the model after, BASE+ADAPTER, or an adapter.
        method: One of `METHODS`.
        weight: Share of the model after, from 0 (before) to 1 (after).
        base: What task vectors are measured from; by default the model before.
        density: Share of each task vector that stays (ties, dare).
        scale: Factor of what is added to the base (all but linear and slerp).
        progress: Called with the bytes computed, and how many there will be.

    Example:
        >>> merge("models/before", "models/after", "models/merged", method="slerp", weight=0.3)
        PosixPath('models/merged')
    """
    how, out = How(method, weight, density, scale, seed), Path(out)
    models = check_mergeable(before, after, how, base)
    if not models:
        return _merge_adapters(str(before), str(after), out, how)
    check_new_folder(out, [folder for model in models for folder in model.carried_from()])
    one, other = models[:2]
    blender = _Blender(how, one, other, *models[2:])
    with new_folder(out) as folder:
        write_like(one, folder, blender.prepare, progress)
        carry(other.carried_from(), folder)
        write_config(other.config, one.dtype, folder)
        _write_about(folder, how, [model.name for model in models])
    if blender.not_finite:
        logging.getLogger("forgetmap").warning(
            "%s: numbers that are NaN or infinite, in %s; a parent holds them", out,
            some(sorted(blender.not_finite), 3),
        )  # fmt: skip
    return out


def check_mergeable(
    before: str | Path, after: str | Path, how: How, base: str | Path | None = None
) -> list[Weights]:
    """Refuse what cannot be merged, from the headers of the files alone.

    Returns the weights of before, after and base, or nothing where adapters are merged as adapters.
    """
    if how.method in MERGEKIT_ONLY:
        raise InputError(f"--method {how.method}: is left to mergekit; add --emit-yaml FILE")
    if base is not None and how.method in ("linear", "slerp"):
        raise InputError(f"--base: {how.method} does not use a base; leave it out")
    if is_adapter(after):
        _check_adapters(str(before), str(after), how, base)
        return []
    models = [open_weights(model) for model in (before, after, base) if model is not None]
    for model in models[1:]:
        check_alike(models[0], model)
    return models


def open_weights(model: str | Path) -> Weights:
    """Open the weights that a model's name means: a folder, or BASE+ADAPTER."""
    if is_adapter(model):
        raise InputError(f"{model}: is an adapter; write it as BASE+ADAPTER")
    base, plus, adapter = str(model).partition("+")
    if plus and not Path(model).exists():  # a folder may have a + in its name
        return AdaptedWeights(base, adapter)
    return Weights(model)


class _Blender:
    """What computes the blocks of merged tensors."""

    def __init__(
        self, how: How, before: Weights, after: Weights, base: Weights | None = None
    ) -> None:
        self._how, self._before, self._after = how, before, after
        self._base = base or before
        self._tuned = [before, after] if base else [after]
        self._weights = [1 - how.weight, how.weight] if base else [how.weight]
        self.not_finite: set[str] = set()
        """Tensors in which a merged number is NaN or infinite."""

    def prepare(self, name: str) -> Callable[[int, int], NDArray[Any]]:
        """Look at a tensor as a whole where the method must; return what computes a block."""
        tensor = self._before.tensors[name]
        if not tensor.is_float:
            return self._after.tensors[name].raw
        compute = self._compute(name)

        def merged(*block: int) -> NDArray[Any]:
            values = compute(*block)
            if not np.isfinite(values).all():
                self.not_finite.add(name)
            return to_stored(values, tensor.dtype)

        return merged

    def _compute(self, name: str) -> Callable[[int, int], Floats]:
        how = self._how
        if how.method == "linear":
            return lambda *block: linear(*self._pair(name, *block), how.weight, in_place=True)
        if how.method == "slerp":
            blocks = self._before.tensors[name].blocks
            # Then all is read again, which is no slower than to hold it, and takes no memory.
            cosine = cosine_of(products(*self._pair(name, *block)) for block in blocks)
            return lambda *block: slerp(
                *self._pair(name, *block), how.weight, cosine, in_place=True
            )
        if how.method == "task-arithmetic":
            return lambda *block: task_arithmetic(
                *self._family(name, *block), self._weights, how.scale, in_place=True
            )
        if how.method == "ties":
            limits = [self._limit(name, tuned) for tuned in self._tuned]
            return lambda *block: ties(
                *self._family(name, *block),
                self._weights,
                how.kept,
                how.scale,
                limits,
                in_place=True,
            )
        return partial(self._dare, name)

    def _dare(self, name: str, start: int, stop: int) -> Floats:
        how, key = self._how, crc32(self._before.alias(name).encode())
        bits = np.uint8 if (how.kept * 256).is_integer() else np.uint16
        draws = [
            _draw([how.seed, key, which], bits, start, stop) for which in range(len(self._tuned))
        ]
        family = self._family(name, start, stop)
        elect = how.method == "dare-ties"
        return dare(*family, self._weights, how.kept, draws, how.scale, elect, in_place=True)

    def _limit(self, name: str, tuned: Weights) -> float:
        def change(block: Block) -> Floats:
            numbers = tuned.read(name, *block)
            numbers -= self._base.read(name, *block)
            return numbers

        return magnitude_at(change, self._before.tensors[name].blocks, self._how.kept)

    def _pair(self, name: str, start: int, stop: int) -> tuple[Floats, Floats]:
        return self._before.read(name, start, stop), self._after.read(name, start, stop)

    def _family(self, name: str, start: int, stop: int) -> tuple[Floats, list[Floats]]:
        tuned = [model.read(name, start, stop) for model in self._tuned]
        return self._base.read(name, start, stop), tuned


def _draw(
    seed: list[int], bits: type[np.unsignedinteger[Any]], start: int, stop: int
) -> NDArray[np.unsignedinteger[Any]]:
    """Random whole numbers by seed and place, so that blocks do not change what is dropped."""
    per_word = 8 // np.dtype(bits).itemsize
    first = start // per_word
    words = np.random.Generator(np.random.PCG64(seed).advance(first)).integers(
        0, 2**64 - 1, -(-stop // per_word) - first, np.uint64, endpoint=True
    )
    draws = words.astype("<u8", copy=False).view(np.dtype(bits).newbyteorder("<"))
    return draws[start - per_word * first : stop - per_word * first]


def _check_adapters(before: str, after: str, how: How, base: object) -> None:
    if how.method not in LOW_RANK:
        raise InputError(
            f"--method {how.method}: an adapter stays one only with {' or '.join(LOW_RANK)}; "
            f"write AFTER as BASE+{after} to merge whole weights"
        )
    if base is not None:
        raise InputError("--base: adapters are task vectors of their base already; leave it out")
    if is_adapter(before):
        _check_one_base(Adapter(before), Adapter(after))
    elif "+" in before and not Path(before).exists():
        raise InputError(f"{before}: AFTER is an adapter alone; write both as BASE+ADAPTER")
    else:
        AdaptedWeights(before, after)  # sees to it that the adapter fits


def _merge_adapters(before: str, after: str, out: Path, how: How) -> Path:
    """Merge adapters as adapters: small, and exact."""
    check_new_folder(out, [Path(before), Path(after)])
    second = Adapter(after)
    with new_folder(out) as folder:
        carry([second.folder], folder)
        if is_adapter(before):
            shares = (1 - how.weight) * how.scale, how.weight * how.scale
            join_adapters((Adapter(before), second), shares, folder)
        else:
            scale_adapter(second, how.weight * how.scale, folder)
        _write_about(folder, how, [Path(name).resolve().name for name in (before, after)])
    return out


def _check_one_base(first: Adapter, second: Adapter) -> None:
    bases = [
        Path(str(adapter.config.get("base_model_name_or_path") or "")).name
        for adapter in (first, second)
    ]
    if all(bases) and bases[0] != bases[1]:
        raise InputError(
            f"{first.folder} is an adapter of {bases[0]}, {second.folder} one of {bases[1]}; "
            "only adapters of one base can be merged"
        )


def _write_about(folder: Path, how: How, parents: list[str]) -> None:
    from forgetmap.base.version import __version__

    about = {"forgetmap": __version__, "parents": parents, **asdict(how)}
    write_json(folder / ABOUT, about)


def mergekit_yaml(
    before: str, after: str, how: How, *, base: str | None = None, dtype: str | None = None
) -> str:
    """Write the same merge as a configuration for mergekit, also for methods only mergekit has.

    `dtype` is the number type of the result, as torch names it; by default mergekit chooses.

    Example:
        >>> print(mergekit_yaml("base", "tuned", How("slerp", 0.3)))
        merge_method: slerp
        models:
        - model: base
        - model: tuned
        base_model: base
        parameters:
          t: 0.3
        <BLANKLINE>
    """
    import yaml

    name = {"dare": "dare_linear"}.get(how.method, how.method.replace("-", "_"))
    config: dict[str, Any] = {"merge_method": name}
    shares = {before: round(1 - how.weight, 12), after: how.weight}
    if how.method == "slerp":
        config["models"] = [{"model": before}, {"model": after}]
        config |= {"base_model": before, "parameters": {"t": how.weight}}
    elif how.method in ("linear", "nuslerp"):
        config["models"] = [_model(model, weight=share) for model, share in shares.items()]
    else:
        sparse = {"density": how.kept} if how.method in _SPARSE else {}
        tuned = shares if base else {after: how.weight}
        config["models"] = [_model(model, weight=share, **sparse) for model, share in tuned.items()]
        config["base_model"] = base or before
        # Of a single task vector the average would be itself, whatever its weight.
        average = bool(base) and how.method in ("ties", "della")
        config["parameters"] = {"normalize": average, "lambda": how.scale}
    if dtype:
        config["dtype"] = dtype
    return yaml.safe_dump(config, sort_keys=False)


def _model(name: str, **parameters: float) -> dict[str, Any]:
    return {"model": name, "parameters": parameters}
