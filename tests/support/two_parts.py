"""`forgetmap` in one of two processes that hold a model together; one runs out of memory.

torchrun --nproc_per_node 2 two_parts.py eval MODEL --device parallel ...
"""

from __future__ import annotations

import os

import torch

from forgetmap.cli.app import main
from forgetmap.evaluate.scoring import PackedScorer

score = PackedScorer.score


def fail(*given: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


if __name__ == "__main__":
    if os.environ["RANK"] == "1":
        PackedScorer.score = fail
    main()
