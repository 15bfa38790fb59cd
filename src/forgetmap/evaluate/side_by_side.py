"""Two runs at once: models that have a card or a server of their own need not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from forgetmap.evaluate.models import Running

T = TypeVar("T")
Progress = Callable[[int, int], None]


class Stopped(Exception):
    """Another run ended badly; what is finished is kept."""


def apart(models: Sequence[str], running: Sequence[Running]) -> bool:
    """Whether models do not get into each other's way: each has a card or a server of its own.

    Example:
        >>> apart(["base", "tuned"], [Running(device="cuda:0"), Running(device="cuda:1")])
        True
        >>> apart(["http://a:1/v1#m", "http://a:2/v1#m"], [Running(), Running()])
        True
        >>> apart(["base", "tuned"], [Running(), Running()])
        False
    """
    cards = [how.device if (how.device or "").startswith("cuda:") else None for how in running]
    served = ("http://", "https://")
    servers = [name.partition("#")[0] if name.startswith(served) else None for name in models]
    return any(None not in own and len(set(own)) == len(own) for own in (cards, servers))


def at_once(jobs: Sequence[Callable[[Progress], T]], progress: Progress) -> list[T]:
    """Run jobs side by side, with one bar for all; if one fails, the others stop at a safe place.

    Example:
        >>> at_once([lambda tell: tell(1, 2) or "a", lambda _tell: "b"], print)
        1 2
        ['a', 'b']
    """
    told: dict[int, tuple[int, int]] = {}
    lock, stopped = threading.Lock(), threading.Event()

    def teller(place: int) -> Progress:
        def tell(done: int, of: int) -> None:
            if stopped.is_set():
                raise Stopped
            with lock:
                told[place] = done, of
                progress(*map(sum, zip(*told.values(), strict=True)))

        return tell

    with ThreadPoolExecutor(len(jobs)) as pool:
        runs = [pool.submit(job, teller(place)) for place, job in enumerate(jobs)]
        try:
            for run in as_completed(runs):
                run.result()
        except BaseException:  # also when a person stops it
            stopped.set()
            raise
    return [run.result() for run in runs]
