"""Lock in, then be the program or its checker."""

from __future__ import annotations

import json
import os
import sys

from . import lock


def main() -> None:
    """Read what the command line asks for, lock in, and begin."""
    wanted = json.loads(sys.argv[2])
    if wanted["pipes"]:  # each side loads what it needs while it can
        from . import checker
    else:
        from . import tested
    if wanted["root"]:
        lock.leave(wanted["root"], wanted["shown"], wanted["links"])
    lock.give_up_rights()
    lock.check_place(wanted["tops"])
    os.environ.clear()
    sys.path.remove(sys.argv[1])
    sys.argv[:] = ["program"]
    first, second = _silence(wanted["nothing"])
    lock.limit(wanted["seconds"], wanted["memory"])
    lock.keep_only_known_calls()
    if wanted["pipes"]:
        orders = checker.read_orders(first)
        checker.check(orders, os.fdopen(second, "w"), *wanted["pipes"])
    else:
        tested.serve(first, second)
    os._exit(0)


def _silence(nothing: int) -> tuple[int, int]:
    """Move input and output away, and leave what goes nowhere in their places."""
    moved = os.dup(0), os.dup(1)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    return moved
