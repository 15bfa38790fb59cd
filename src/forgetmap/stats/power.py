"""What a comparison could have seen: the smallest change it would find with given power."""

from __future__ import annotations

import math
from functools import lru_cache

from scipy import special


@lru_cache(maxsize=4096)  # small tasks, of which there may be thousands, are often alike
def minimum_detectable_effect(
    n: float, mean_square: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Smallest accuracy change that a paired test of `n` items finds with the given power.

    `mean_square` is the mean squared per-item change; for single runs the share of items that
    flipped either way. A change of size d needs at least d of the items to flip, so the flips
    assumed are the larger of the two (Connor's formula for paired proportions).

    Example:
        >>> round(minimum_detectable_effect(1000, 0.10), 4)
        0.028
    """
    if n < 1:
        return 1.0
    z_alpha, z_power = float(special.ndtri(1 - alpha / 2)), float(special.ndtri(power))

    root = math.sqrt(n)

    def shortfall(effect: float) -> float:
        spread = max(mean_square, effect)
        needed = z_alpha * math.sqrt(spread) + z_power * math.sqrt(max(spread - effect**2, 0.0))
        return effect * root - needed

    if shortfall(1.0) < 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if shortfall(middle) < 0 else (low, middle)
    return high
