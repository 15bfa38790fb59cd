"""Stage 3: from a work folder to compact logs: who answered what how, without the texts.

    python collect.py plan.yaml WORK logs --setting small

One Parquet file per run (hashes of items, right or wrong, the probability of the right option), and
beside it a JSON with what a study tells trainings apart by. `scores/` has the scored answers to the
capability suite, `about.json` what was known before, the rates that were chosen, and the times that
were measured. Only what is done is taken. Texts of benchmark items are not ours to pass on.

Programs in answers are run to score them, which a machine of other people may not be the place for:
`--unscored` there keeps the answers, and `--only-score` here scores and removes them.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

import pyarrow as pa
import pyarrow.compute as pc
from compact import read_compact, score_answers, without_texts
from plan import Plan

from forgetmap.evaluate.results import SAMPLES
from forgetmap.samples.table import Samples


def collect(plan: Path, work: Path, out: Path, setting: str, *, score: bool = True) -> None:
    """Write the logs of all runs that are done; answers are scored, or kept for `score_later`."""
    chosen = Plan.load(plan).settings[setting]
    (out / "scores" if chosen.abilities else out).mkdir(parents=True, exist_ok=True)
    known = _read_all(work / "known")
    for about in sorted((work / "runs").glob("*/run.json")):
        name = about.parent.name
        if not _is_done(work, name):
            continue
        shutil.copy(about, out / f"{name}.json")
        if (about.parent / "old" / "manifest.json").is_file():
            model = json.loads(about.read_text()).get("model", name.removesuffix("-before"))
            _write_log(about.parent, out / f"{name}.parquet", known[model]["known"], chosen.metric)
        answers, scored = about.parent / "abilities/responses.jsonl", out / f"scores/{name}.parquet"
        if chosen.abilities and answers.is_file() and not _is_newer(scored, answers):
            if score:
                score_answers(answers, name, scored)
            else:
                shutil.copy2(answers, out / f"scores/{name}.jsonl")
    _write_categories(work, out / "tasks.csv")
    told = {
        "setting": {"name": setting, **chosen.model_dump()},
        "known": known,
        **{part: _read_all(work / part) for part in ("rates", "calibration")},
        "seconds": {name: one["seconds"] for name, one in _read_all(work / "done").items()},
    }
    (out / "about.json").write_text(json.dumps(told, indent=1))


def score_later(out: Path) -> None:
    """Score the answers that came without scores, and remove them: they hold texts."""
    for answers in sorted((out / "scores").glob("*.jsonl")):
        score_answers(answers, answers.stem, answers.with_suffix(".parquet"))
        answers.unlink()


def _is_newer(scored: Path, answers: Path) -> bool:
    """Whether there are scores of these answers: who is trained again is asked again."""
    return scored.is_file() and scored.stat().st_mtime >= answers.stat().st_mtime


def _is_done(work: Path, name: str) -> bool:
    job = f"before-{name.removesuffix('-before')}" if name.endswith("-before") else name
    return (work / "done" / f"{job}.json").is_file()


def _write_log(folder: Path, out: Path, known: list[str], metric: str) -> None:
    """The new tasks, and of the old ones those that the model knew before."""
    unused = "acc_norm" if metric == "acc" else ""
    old = read_compact(folder / "old" / SAMPLES, out.stem, unused)
    new = read_compact(folder / "new" / SAMPLES, out.stem)
    kept = old.data.filter(pc.is_in(old.data["task"], pa.array(known)))
    without_texts(Samples(pa.concat_tables([kept, new.data]), old.meta)).write(out)


def _write_categories(work: Path, out: Path) -> None:
    """The category of every task that any model was asked here; models know different ones."""
    rows = dict.fromkeys(
        row
        for part in ("old", "new")
        for path in sorted((work / "runs").glob(f"*-before/{part}/tasks.csv"))
        for row in path.read_text().splitlines()
    )
    if rows:  # not where all models were asked elsewhere
        out.write_text("\n".join([*rows, ""]))


def _read_all(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--setting", default="full")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--unscored", action="store_true", help="keep answers, to be scored elsewhere")
    how.add_argument("--only-score", action="store_true", help="score answers that came unscored")
    chosen = parser.parse_args()
    if chosen.only_score:
        score_later(chosen.out)
        return
    collect(chosen.plan, chosen.work, chosen.out, chosen.setting, score=not chosen.unscored)


if __name__ == "__main__":
    main()
