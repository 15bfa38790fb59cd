"""Make the OpenAI evals golden logs with the `evals` of the environment this runs in.

Usage: ``python make_openai_evals.py --work BUILD_FOLDER`` (evals 3.0.1)

Two made-up models answer from tables; no service is called, the API key is a dummy that the import
of the package asks for. `capitals` is the built-in Match eval, `words` a made-up eval that records
metrics.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from common import DATA_DIR, PATH_PATTERN

CAPITALS = {
    "France": "Paris",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Peru": "Lima",
}
WRONG = {"before": {"Peru": "Cusco"}, "after": {"Japan": "Kyoto", "Kenya": "Mombasa"}}
MODULE = f"""
import evals
import evals.metrics

CAPITALS = {CAPITALS!r}
WRONG = {WRONG!r}


class Result:
    def __init__(self, text):
        self.text = text

    def get_completions(self):
        return [self.text]


class Table:
    def __init__(self, side, registry=None, **_):
        self.side = side

    def __call__(self, prompt, **_):
        country = prompt[-1]["content"].removesuffix("?").split()[-1]
        text = WRONG[self.side].get(country) or CAPITALS[country]
        evals.record.record_sampling(prompt=prompt, sampled=[text], model=self.side)
        return Result(text)


class Words(evals.Eval):
    def __init__(self, completion_fns, samples_jsonl, *args, **kwargs):
        super().__init__(completion_fns, *args, samples_jsonl=samples_jsonl, **kwargs)

    def eval_sample(self, sample, rng):
        text = self.completion_fn(prompt=sample["input"]).get_completions()[0]
        share = sum(letter in text for letter in sample["ideal"]) / len(sample["ideal"])
        evals.record.record_metrics(score=share, length=len(text), text=text)

    def run(self, recorder):
        self.eval_all_samples(recorder, self.get_samples())
        return {{"score": sum(recorder.get_scores("score")) / len(recorder.get_scores("score"))}}
"""
EVALS = """
capitals:
  id: capitals.test.v1
  metrics: [accuracy]
capitals.test.v1:
  class: evals.elsuite.basic.match:Match
  args:
    samples_jsonl: capitals.jsonl
words:
  id: words.test.v1
  metrics: [score]
words.test.v1:
  class: tables:Words
  args:
    samples_jsonl: capitals.jsonl
"""
MODELS = "".join(
    f"tiny-{side}:\n  class: tables:Table\n  args:\n    side: {side}\n" for side in WRONG
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work.resolve()
    for name, text in (("evals", EVALS), ("completion_fns", MODELS)):
        (work / "registry" / name).mkdir(parents=True, exist_ok=True)
        (work / "registry" / name / "tiny.yaml").write_text(text)
    (work / "registry/data").mkdir(exist_ok=True)
    (work / "tables.py").write_text(MODULE)
    with (work / "registry/data/capitals.jsonl").open("w") as file:
        for country, capital in CAPITALS.items():
            question = {"role": "user", "content": f"What is the capital of {country}?"}
            file.write(json.dumps({"input": [question], "ideal": capital}) + "\n")
    for side in WRONG:
        for name in ("capitals", "words"):
            out = work / f"{name}-{side}.jsonl"
            subprocess.run(
                [
                    *(sys.executable, "-m", "evals.cli.oaieval", f"tiny-{side}", name),
                    *("--registry_path", "registry", "--record_path", str(out)),
                ],
                cwd=work,
                env={**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(work)},
                check=True,
            )
            target = DATA_DIR / "openai_evals" / side
            target.mkdir(parents=True, exist_ok=True)
            text = blank(out.read_text())
            if PATH_PATTERN.search(text):
                raise RuntimeError(f"{out.name} holds a path")
            (target / f"{name}.jsonl").write_text(text)


def blank(text: str) -> str:
    """Blank what the first line says about the machine: the command and the folder."""
    head, _, rest = text.partition("\n")
    spec = json.loads(head)
    config = spec["spec"]["run_config"]
    config["command"] = config["registry_path"] = ""
    return json.dumps(spec) + "\n" + rest


if __name__ == "__main__":
    main()
