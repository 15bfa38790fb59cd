"""The worker of `mathematics`: reads questions, one per line, and answers 1, 0 or ? to each.

Says "ready" first. Run as a script: it must not import forgetmap, which would cost every new worker
its start-up.
"""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys
from typing import Any

_MEMORY = 3 * 2**30


def main() -> None:
    """Answer until the questions end."""
    seconds = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import math_verify

    logging.disable()
    # The default action of this signal ends the process even inside one endless C call, where a
    # handler in Python would never be reached; processor time, so that a busy machine is no fault.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    print("ready", flush=True)
    for line in sys.stdin:
        gold, *candidates = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answer = _answer(math_verify, gold, candidates)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(answer, flush=True)


def _answer(math_verify: Any, gold: str, candidates: list[str]) -> str:
    parse, verify = math_verify.parse, math_verify.verify
    try:
        right = parse(gold, parsing_timeout=None)
        said = [parse(text, parsing_timeout=None) for text in candidates]
        if not right or not any(said):
            return "?"
        return str(int(any(verify(right, one, timeout_seconds=None) for one in said if one)))
    except Exception:  # whatever computer algebra stumbles over is no answer
        return "?"


if __name__ == "__main__":
    main()
