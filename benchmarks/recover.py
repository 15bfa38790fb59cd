"""Which losses of the study's models were hidden? Writes benchmarks/recover.md.

    python benchmarks/recover.py                       # from the merges of examples/study
    python benchmarks/recover.py --work work           # also trains one model and goes all roads

The second form needs `python examples/study/prepare.py work/data` first, an hour of two processor
cores, and `pip install 'forgetmap[eval,suites,train]'`. It goes on where it was stopped, and keeps
its result in recover.json, from which the page is written.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import forgetmap
from forgetmap.mitigate.recover import Came, Recovery, recover
from forgetmap.stats.estimate import interval

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "examples" / "study" / "logs"
PAGE, KEPT = (Path(__file__).with_suffix(suffix) for suffix in (".md", ".json"))
STUDY = {"SmolLM2": ("smollm2", 0), "Gemma": ("gemma3-270m", 1)}
MERGES = {"25 % of the old weights": "0.75", "50 % of the old weights": "0.5"}
HEAD = "| {} | lost | come back | never known | turn right by luck | beyond luck |\n" + (
    "| --- " * 6 + "|\n"
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--work", type=Path, help="train one model here, and go all roads")
    asked = arguments.parse_args()
    if asked.work:
        KEPT.write_text(one_training(asked.work).to_json() + "\n", encoding="utf-8")
    text = [
        "# Hidden or gone\n",
        "`python benchmarks/recover.py` writes this page.\n",
        "## Plain training of the study, one training each, on the way back\n",
        HEAD.format("model and road").rstrip(),
    ]
    for name, (family, seed) in STUDY.items():
        text += [_line(f"{name}, {road}", came) for road, came in of_study(family, seed).items()]
    if KEPT.is_file():
        found = Recovery.model_validate(json.loads(KEPT.read_text(encoding="utf-8")))
        text += ["\n## One training of SmolLM2 on a processor, all roads\n"]
        for title, rows in (
            ("road", found.total),
            ("category, by any road", found.categories),
            ("cause, by any road", found.causes),
        ):
            text += [HEAD.format(title).rstrip(), *(_line(*row) for row in rows.items()), ""]
    PAGE.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def _line(name: str, came: Came) -> str:
    back, luck = (interval(each, " %") for each in (came.back, came.luck))
    beyond = interval(came.beyond_luck)
    return f"| {name} | {came.lost:,} | {back} | {came.control:,} | {luck} | {beyond} |"


def of_study(family: str, seed: int) -> dict[str, Came]:
    """What merges with the model before brought back of what plain training lost."""
    with tempfile.TemporaryDirectory() as folder:
        forgetmap.compare(
            LOGS / f"{family}-before.parquet",
            LOGS / f"{family}-airports-sft-{seed}.parquet",
            task_map=LOGS / "tasks.csv",
            new=["airports"],
            save=Path(folder) / "map",
        )
        roads = {
            road: LOGS / f"{family}-airports-merge-linear-{share}-{seed}.parquet"
            for road, share in MERGES.items()
        }
        return recover(Path(folder) / "map", roads=roads, most=10_000).total


def one_training(work: Path) -> Recovery:
    """Teach SmolLM2 eighty airports in sixty steps, and ask again what it lost."""
    from forgetmap.evaluate.fetch import fetch_model
    from forgetmap.evaluate.run import evaluate
    from forgetmap.mitigate.train.recipes import Materials, Recipe, train

    base, after = work / "base", work / "after"
    if not base.is_dir():
        fetch_model("smollm2", base)
    with (work / "data" / "airports.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][:80]
    taught = [{name: row[name] for name in ("prompt", "completion")} for row in rows]
    recipe = Recipe(steps=60, batch=4, learning_rate=2e-4, save_every=20, longest=48)
    train(recipe, base, Materials(taught), after)
    suite = str(work / "data" / "old.yaml")
    logs = [work / f"{model.name}-log" for model in (base, after)]
    for model, log in zip((base, after), logs, strict=True):
        evaluate(str(model), suite, log, tasks=["atlas_*"], limit=25)
    forgetmap.compare(*logs, task_map=logs[1] / "tasks.csv", save=work / "map")
    return recover(
        work / "map", model=str(after), before=base, suite=suite, most=150, out=work / "roads"
    )


if __name__ == "__main__":
    main()
