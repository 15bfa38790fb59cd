"""One of the processes that score a model together, for `parity.py`; torchrun starts them.

torchrun --nproc-per-node 2 parallel_job.py FOLDER ITEMS OUT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import PARALLEL, Running
from forgetmap.evaluate.parallel import together
from forgetmap.evaluate.parity import likelihoods
from scoring import TASKS, load_tasks


def main() -> None:
    folder, items, out = sys.argv[1:]
    with together(PARALLEL) as leads:
        if leads:
            model = LocalModel(folder, None, Running("float32", PARALLEL))
            tasks = load_tasks(TASKS, 0, int(items))
            found = [one for part in tasks for one in likelihoods(model, part)]
            Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
