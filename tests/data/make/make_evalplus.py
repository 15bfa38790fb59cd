"""Make the EvalPlus golden logs with the EvalPlus of the environment this runs in.

Usage: ``python make_evalplus.py --work BUILD_FOLDER`` (EvalPlus 0.3.1)

Five made-up problems stand in for HumanEval+; two made-up models answer each twice. EvalPlus runs
these answers, which are all below.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from common import DATA_DIR, assert_no_paths

PROBLEMS = {
    # name: (arguments, right body, base inputs, plus inputs)
    "double": ("x", "return 2 * x", [[1], [3]], [[-4], [0]]),
    "largest": ("xs", "return max(xs)", [[[1, 2]], [[5, 3]]], [[[-2, -7]], [[4]]]),
    "shout": ("s", "return s.upper()", [["ab"], ["c"]], [[""], ["Xy"]]),
    "halve": ("x", "return x // 2", [[4], [6]], [[7], [-3]]),
    "last": ("xs", "return xs[-1]", [[[1, 2]], [[5]]], [[[3, 3, 9]]]),
}
ALMOST = {
    "largest": "best = 0\n    for x in xs:\n        best = max(best, x)\n    return best",
    "halve": "return int(x / 2)",
    "last": "return xs[1] if len(xs) > 1 else xs[0]",
}
"""Pass the base tests, fail the extra ones."""
ENDLESS = "while True:\n        pass"
ANSWERS = {
    "before": {"shout": ["return s", "return s"], "halve": ["almost", "right"]},
    "after": {"double": ["return x", ENDLESS], "largest": ["almost"] * 2, "last": ["almost"] * 2},
}


def code(name: str, body: str) -> str:
    return f"def {name}({PROBLEMS[name][0]}):\n    {body}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    problems = work / "problems.jsonl"
    with problems.open("w") as file:
        for number, (name, (arguments, body, base, plus)) in enumerate(PROBLEMS.items()):
            problem = {
                **{"task_id": f"HumanEval/{number}", "entry_point": name, "atol": 0},
                **{"prompt": f"def {name}({arguments}):\n", "contract": "", "test": ""},
                "canonical_solution": f"    {body}\n",
                **{"base_input": base, "plus_input": plus},
            }
            file.write(json.dumps(problem) + "\n")
    for side, answers in ANSWERS.items():
        samples = work / f"tiny-{side}.jsonl"
        with samples.open("w") as file:
            for number, (name, (_, right, *_)) in enumerate(PROBLEMS.items()):
                for answer in answers.get(name, ["right", "right"]):
                    body = {"right": right, "almost": ALMOST.get(name)}.get(answer, answer)
                    record = {"task_id": f"HumanEval/{number}", "solution": code(name, body)}
                    file.write(json.dumps(record) + "\n")
        subprocess.run(
            [
                *(sys.executable, "-m", "evalplus.evaluate", "--dataset", "humaneval"),
                *("--samples", str(samples), "--parallel", "1", "--i-just-wanna-run"),
            ],
            cwd=work,
            env={**os.environ, "HUMANEVAL_OVERRIDE_PATH": str(problems), "HOME": str(work)},
            check=True,
        )
        target = DATA_DIR / "evalplus" / side
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(work / f"tiny-{side}_eval_results.json", target)
    assert_no_paths(DATA_DIR / "evalplus")


if __name__ == "__main__":
    main()
