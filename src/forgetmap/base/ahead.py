"""Work ahead: let one part of a pipeline run while the next part is busy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_END = object()


def ahead(items: Iterable[T], most: int = 2) -> Iterator[T]:
    """The same items, made in a thread of their own, a few at most before they are asked for.

    It pays where both sides spend their time in libraries that let other threads run. An error
    comes out where the items are asked for; who stops asking stops the thread.

    Example:
        >>> list(ahead(number * number for number in range(4)))
        [0, 1, 4, 9]
    """
    made: queue.Queue[object] = queue.Queue(most)
    stopped = threading.Event()

    def put(what: object) -> bool:
        while not stopped.is_set():
            try:
                made.put(what, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
        except BaseException as error:  # it is raised where the items are asked for
            put(_Failure(error))
        put(_END)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := made.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]  # what the queue holds are the items
    finally:
        stopped.set()
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
