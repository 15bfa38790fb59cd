"""Start LLaMA-Factory with a `ForgettingCallback`, from one file.

The file is LLaMA-Factory's own, with a part `forgetmap` that holds the callback's arguments:
`python -m forgetmap.mitigate.train.llamafactory train.yaml`, or behind `torchrun -m` on many cards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.yaml import read
from forgetmap.mitigate.train.callback import ForgettingCallback, callback_by


def train(path: str | Path) -> None:
    """Train as a file says, and watch what is forgotten.

    Raises:
        InputError: If the file is none, or LLaMA-Factory is not installed.
    """
    try:
        from llamafactory.train.tuner import run_exp
    except ImportError as error:
        raise InputError(
            "LLaMA-Factory is not installed here; install with: pip install llamafactory"
        ) from error
    content = read(path, "a training file of LLaMA-Factory").content
    if not isinstance(content, dict):
        raise InputError(f"{path}: must hold names and values, as LLaMA-Factory wants them")
    callback = callback_by(content.get("forgetmap"))
    with _attaching(callback):
        run_exp(
            {name: value for name, value in content.items() if name != "forgetmap"},
            callbacks=[callback],
        )


@contextmanager
def _attaching(callback: ForgettingCallback) -> Iterator[None]:
    """Let every trainer that is made with the callback introduce itself to it.

    LLaMA-Factory makes the trainer inside, and transformers does not tell callbacks of it.
    """
    from transformers import Trainer

    made = Trainer.__init__

    def introduce(trainer: Any, *given: Any, **named: Any) -> None:
        made(trainer, *given, **named)
        if callback in trainer.callback_handler.callbacks:
            callback.attach(trainer)

    Trainer.__init__ = introduce
    try:
        yield
    finally:
        Trainer.__init__ = made


def main(arguments: list[str]) -> int:
    """Train by the file that is named; a clear line and 2 for bad input."""
    try:
        if len(arguments) != 1:
            raise InputError("give one file: python -m forgetmap.mitigate.train.llamafactory FILE")
        train(arguments[0])
    except InputError as error:
        print(f"forgetmap: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
