"""Start lighteval so that a sampled run of its transformers backend is sampled and seeded.

lighteval 0.10 and 0.13 write ``generation_parameters.seed`` and ``temperature`` into the results
file, but with the transformers backend the seed is never used, and a task with one sample an
item is decoded greedily (0.10 always, 0.13 unless the model's own generation settings sample).
Other backends do use both. For a temperature above zero this launcher turns sampling on and
seeds torch before the first generation; a greedy run goes through untouched.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import lighteval.main_accelerate
import lighteval.pipeline
import lighteval.tasks.registry  # noqa: F401
import torch
from lighteval.__main__ import app
from lighteval.models.transformers import transformers_model


def sample_with_seed(seed: int) -> None:
    """Wrap the generation step of the transformers backend."""
    backend = transformers_model.TransformersModel
    plain = backend._generate
    state = {"seeded": False}

    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not state["seeded"]:
            torch.manual_seed(seed)
            state["seeded"] = True
        if "do_sample" in kwargs:
            kwargs["do_sample"] = True
        self.generation_config_dict["do_sample"] = True
        return plain(self, *args, **kwargs)

    backend._generate = generate


def one_run(arguments: list[str]) -> None:
    """Read seed and temperature from the model arguments, then hand over to lighteval."""
    text = " ".join(arguments)
    temperature = re.search(r"temperature:([0-9.]+)", text)
    seed = re.search(r"seed:([0-9]+)", text)
    if temperature and seed and float(temperature.group(1)) > 0:
        sample_with_seed(int(seed.group(1)))
    sys.argv = ["lighteval", *arguments]
    app()


def main() -> None:
    """Take a JSON list of argument lists; every run is a fork, so that imports are paid once."""
    for arguments in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        child = os.fork()
        if child == 0:
            one_run(arguments)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            sys.exit(f"a run failed: {arguments}")


if __name__ == "__main__":
    main()
