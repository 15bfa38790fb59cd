"""LoRA adapters: read as part of a checkpoint, or merged as what they are, low-rank factors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.base.checkpoints import write_json
from forgetmap.base.errors import InputError
from forgetmap.base.json import read_json
from forgetmap.base.words import some
from forgetmap.mitigate.merge.weights import Floats, Tensor, Weights, read_header, save_tensors

CONFIG = "adapter_config.json"
FILE = "adapter_model.safetensors"
_PREFIX = "base_model.model."
_FACTOR = re.compile(r"(.+)\.lora_(embedding_)?([AB])(?:\.weight)?")
_COPY = ".base_layer."
_NOT_LOW_RANK = ("use_dora", "lora_bias", "target_parameters", "trainable_token_indices")
"""Settings under which an adapter is more than a product of two factors."""


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds an adapter, not a whole model."""
    return (Path(folder) / CONFIG).is_file()


@dataclass(frozen=True)
class Module:
    """The two factors of one adapted module."""

    a: Tensor
    b: Tensor
    scale: float
    is_embedding: bool = False

    @property
    def rank(self) -> int:
        """Of the change it makes."""
        return self.a.shape[0]


class Adapter:
    """A LoRA adapter as peft writes it: adapter_config.json and adapter_model.safetensors."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not is_adapter(self.folder):
            raise InputError(f"{folder}: is not an adapter folder (no {CONFIG})")
        self.config: dict[str, Any] = read_json(self.folder / CONFIG)
        if not isinstance(self.config, dict) or self.config.get("peft_type") != "LORA":
            raise InputError(f"{folder}: only LoRA adapters can be merged")
        for setting in _NOT_LOW_RANK:
            if self.config.get(setting):
                raise InputError(
                    f"{folder}: was trained with {setting}, which is more than two factors; "
                    "merge it into its base with peft first"
                )
        self.modules: dict[str, Module] = {}
        self.replaced: dict[str, Tensor] = {}
        """Tensors that were trained as a whole (modules_to_save)."""
        self.copies: dict[str, Tensor] = {}
        """Weights of the base that peft stores along, as it does for adapted embeddings."""
        self._sort(read_header(self.folder / FILE))

    @property
    def is_transposed(self) -> bool:
        """Whether the base stores its weights the other way round (GPT-2's Conv1D)."""
        return bool(self.config.get("fan_in_fan_out"))

    def _sort(self, tensors: Mapping[str, Tensor]) -> None:
        factors: dict[str, dict[str, Tensor]] = {}
        embeddings = set()
        for key, tensor in tensors.items():
            name = key.removeprefix(_PREFIX)
            if factor := _FACTOR.fullmatch(name):
                factors.setdefault(factor[1], {})[factor[3]] = tensor
                embeddings |= {factor[1]} if factor[2] else set()
            elif ".lora_" in name:
                raise InputError(f"{self.folder}: {key} is not a known factor of a LoRA adapter")
            elif _COPY in name:
                self.copies[name] = tensor
            else:
                self.replaced[name] = tensor
        for name, pair in factors.items():
            if pair.keys() != {"A", "B"} or pair["A"].shape[0] != pair["B"].shape[1]:
                raise InputError(f"{self.folder}: the factors of {name} do not fit together")
            self.modules[name] = Module(
                pair["A"], pair["B"], self._scale(name, pair["A"].shape[0]), name in embeddings
            )
        if not self.modules and not self.replaced:
            raise InputError(f"{self.folder}: the adapter is empty")

    def _scale(self, name: str, rank: int) -> float:
        alphas = self.config.get("alpha_pattern") or {}
        fitting = (key for key in alphas if re.fullmatch(rf"(.*\.)?({key})", name))
        key = next(fitting, None)
        alpha = float(self.config.get("lora_alpha", 8) if key is None else alphas[key])
        return alpha / (math.sqrt(rank) if self.config.get("use_rslora") else rank)


class AdaptedWeights(Weights):
    """A checkpoint with an adapter put on it, tensor by tensor: W + scale * B A."""

    def __init__(self, folder: str | Path, adapter: str | Path) -> None:
        super().__init__(folder)
        self.adapter = Adapter(adapter)
        self._modules = {f"{name}.weight": module for name, module in self.adapter.modules.items()}
        copies = {name.replace(_COPY, "."): copy for name, copy in self.adapter.copies.items()}
        whole = {**copies, **self.adapter.replaced}
        unknown = [name for name in (*self._modules, *whole) if name not in self.tensors]
        if unknown:
            raise InputError(
                f"{adapter}: adapts {some(unknown, 3)}, which {self.name} does not have; "
                "is this its base?"
            )
        self.tensors |= whole
        self._check_shapes()
        self._factors = lru_cache(maxsize=8)(self._read_factors)

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{super().name}+{self.adapter.folder.resolve().name}"

    def read(self, name: str, start: int, stop: int) -> Floats:
        """A block of a tensor; of its change only the rows that the block touches are made."""
        numbers = super().read(name, start, stop)
        if name not in self._modules:
            return numbers
        left, right = self._factors(name)
        width = right.shape[1]
        top, bottom = start // width, -(-stop // width)
        change = (left[top:bottom] @ right).reshape(-1)
        numbers += change[start - top * width : stop - top * width]
        return numbers

    def carried_from(self) -> list[Path]:
        """The base's config; the adapter's tokenizer, where it has one."""
        return [self.folder, self.adapter.folder]

    def _read_factors(self, name: str) -> tuple[Floats, Floats]:
        module = self._modules[name]
        a, b = module.a.matrix(), module.b.matrix() * module.scale
        return (a.T, b.T) if self._is_turned(module) else (b, a)

    def _is_turned(self, module: Module) -> bool:
        return module.is_embedding or self.adapter.is_transposed

    def _check_shapes(self) -> None:
        for name, module in self._modules.items():
            wanted = (module.b.shape[0], module.a.shape[1])
            if self._is_turned(module):
                wanted = wanted[::-1]
            if self.tensors[name].shape != wanted:
                raise InputError(
                    f"{self.adapter.folder}: changes {name} in the shape {wanted}, the base has "
                    f"{self.tensors[name].shape}; is this its base?"
                )


def scale_adapter(adapter: Adapter, share: float, folder: Path) -> None:
    """Write an adapter whose change is `share` times as large: B is scaled, A stays."""
    _check_low_rank(adapter)
    factors = _copies(adapter)
    for name, module in adapter.modules.items():
        a, b = _matrices(module)
        factors |= _keys(name, module, a, b * np.float32(share))
    save_tensors(folder / FILE, factors)
    write_json(folder / CONFIG, adapter.config)


def join_adapters(
    adapters: tuple[Adapter, Adapter], shares: tuple[float, float], folder: Path
) -> None:
    """Write the weighted sum of two adapters of one base as one, with the ranks of both together.

    s1 B1 A1 + s2 B2 A2 = [s1 B1, s2 B2] [A1; A2], exactly; no product is made or taken apart.
    """
    for adapter in adapters:
        _check_low_rank(adapter)
    if adapters[0].is_transposed != adapters[1].is_transposed:
        raise InputError(f"{adapters[0].folder} and {adapters[1].folder}: are of different bases")
    names = list(dict.fromkeys([*adapters[0].modules, *adapters[1].modules]))
    factors = _copies(adapters[0]) | _copies(adapters[1])
    ranks = {}
    for name in names:
        held = [
            (adapter.modules[name], share)
            for adapter, share in zip(adapters, shares, strict=True)
            if name in adapter.modules
        ]
        pairs = [(_matrices(module), share * module.scale) for module, share in held]
        if len({(a.shape[1], b.shape[0]) for (a, b), _ in pairs}) > 1:
            raise InputError(
                f"{adapters[0].folder} and {adapters[1].folder}: differ in the size of {name}; "
                "they are not adapters of one base"
            )
        a = np.concatenate([pair[0] for pair, _ in pairs], axis=0)
        b = np.concatenate([pair[1] * np.float32(factor) for pair, factor in pairs], axis=1)
        ranks[name] = len(a)
        factors |= _keys(name, held[0][0], a, b)
    save_tensors(folder / FILE, factors)
    write_json(folder / CONFIG, {**adapters[1].config, **_joint_settings(ranks)})


def _joint_settings(ranks: Mapping[str, int]) -> dict[str, Any]:
    """Settings under which the scale of every module is one: alpha as large as the rank."""
    common = Counter(ranks.values()).most_common(1)[0][0]
    others = {re.escape(name): rank for name, rank in ranks.items() if rank != common}
    return {
        "r": common,
        "lora_alpha": common,
        "rank_pattern": others,
        "alpha_pattern": others,
        "use_rslora": False,
        "target_modules": sorted(ranks),
    }


def _check_low_rank(adapter: Adapter) -> None:
    if adapter.replaced:
        raise InputError(
            f"{adapter.folder}: also trained {some(adapter.replaced, 3)} as a whole; give it as "
            "BASE+ADAPTER to merge whole weights"
        )


def _copies(adapter: Adapter) -> dict[str, Floats]:
    return {
        f"{_PREFIX}{name}": tensor.matrix().astype(np.float32)
        for name, tensor in adapter.copies.items()
    }


def _matrices(module: Module) -> tuple[Floats, Floats]:
    return module.a.matrix().astype(np.float32), module.b.matrix().astype(np.float32)


def _keys(name: str, module: Module, a: Floats, b: Floats) -> dict[str, Floats]:
    kind, end = ("lora_embedding_", "") if module.is_embedding else ("lora_", ".weight")
    return {f"{_PREFIX}{name}.{kind}A{end}": a, f"{_PREFIX}{name}.{kind}B{end}": b}
