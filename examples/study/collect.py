"""Stage 3: from the work folder to compact logs: who answered what how, without the texts.

    python collect.py WORK logs
    python collect.py WORK logs --add

With `--add`, airports that were asked in other ways later (`run.py --tasks`) join the logs of runs
that are there already, once the tasks that both hold have the same answers.

One Parquet file per run, with old and new questions, and one in `ways/` with the airports that were
asked in other ways. Texts of third-party questions are not ours to pass on, and the tables need
none: an item is known by the hash of its content. The runs of the bundled example keep the texts of
the questions with options that this project made itself (atlas and airports), in `told/`. `probes/`
has what was seen while training, `scores/` the scored answers to the capability suite.
"""

import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

import pyarrow as pa
import pyarrow.compute as pc
from compact import read_compact, score_answers, without_texts, write_categories

from forgetmap.samples.table import Samples

TOLD = ("before", "airports-sft-0", "airports-replay-25-0", "airports-anchor-0",
        "airports-retention-0", "airports-merge-linear-0.5-0")  # fmt: skip
"""Runs of smollm2 that keep their texts."""
PROBED = ("sft", "sft-low-rate", "lora", "replay-25", "anchor", "anchor-questions", "retention")
"""Methods whose probes are kept."""
MOST_DIFFER = 0.002
"""Share of answers that may differ where a model is asked again: batches round otherwise."""
OURS = "^(atlas_|airports$)"
OTHERWISE = "airports_"
"""How the tasks begin that ask the airports in other ways."""


def main(work: Path, out: Path) -> None:
    for folder in ("ways", "told"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for folder in sorted(path for path in work.iterdir() if (path / "new/manifest.json").is_file()):
        name = folder.name
        old, new = (
            read_compact(folder / part / "samples.parquet", name) for part in ("old", "new")
        )
        asked, ways = _apart(Samples(pa.concat_tables([old.data, new.data]), old.meta))
        asked.write(out / f"{name}.parquet")
        if len(ways):
            ways.write(out / "ways" / f"{name}.parquet")
        _tell(name, old, new, out)
        _carry(folder, out)
        write_categories(folder, out / "tasks.csv")
    for path in (*work.glob("theory-*.json"), *work.glob("drift-*.json")):
        shutil.copy(path, out)


def add(work: Path, out: Path) -> None:
    """Airports that were asked in other ways later, beside what the same runs were asked before."""
    for folder in sorted(path.parent.parent for path in work.glob("*/new/manifest.json")):
        name, new = folder.name, read_compact(folder / "new/samples.parquet", folder.name)
        again, ways = _apart(new)
        known = pa.Table.from_batches(Samples.read(out / f"{name}.parquet").to_batches())
        differ, asked = _differences(known, again.data)
        print(f"{name}: {differ} of {asked} answers differ from the logged ones")
        if differ > MOST_DIFFER * asked:
            sys.exit("this is not the model of the logs: trained otherwise, or another machine")
        ways.write(out / "ways" / f"{name}.parquet")
        if (folder / "old/manifest.json").is_file():
            _tell(name, read_compact(folder / "old/samples.parquet", name), new, out)


def _apart(samples: Samples) -> tuple[Samples, Samples]:
    """What the study compares, and the airports that were asked in other ways."""
    without = without_texts(samples)
    other = pc.starts_with(without.data["task"], OTHERWISE)
    parts = without.data.filter(pc.invert(other)), without.data.filter(other)
    return Samples(parts[0], without.meta), Samples(parts[1], without.meta)


def _differences(known: pa.Table, again: pa.Table) -> tuple[int, int]:
    """How many answers with options differ by more than rounding, and of how many."""
    columns = ["task", "item", "score", "gold_probability"]
    asked = again.filter(pc.is_valid(again["k"])).select(columns)
    both = known.select(columns).join(asked, columns[:2], join_type="inner", right_suffix="_again")
    off = pc.abs(pc.subtract(both["gold_probability"], both["gold_probability_again"]))
    other = pc.not_equal(both["score"], both["score_again"])
    return int(pc.sum(pc.or_(other, pc.greater(off, 2e-4))).as_py() or 0), len(both)


def _tell(name: str, old: Samples, new: Samples, out: Path) -> None:
    """Runs of the bundled example keep our own questions with options, texts and all."""
    if name in {f"smollm2-{told}" for told in TOLD}:
        table = pa.concat_tables([old.data, new.data])
        ours = table.filter(pc.match_substring_regex(table["task"], OURS))
        with_options = ours.filter(pc.is_valid(ours["k"]))
        Samples(with_options, old.meta).write(out / "told" / f"{name}.parquet")


def _carry(folder: Path, out: Path) -> None:
    """What else a run left: how it was made, its probes, its answers to the capability suite."""
    if (folder / "run.json").is_file():
        shutil.copy(folder / "run.json", out / f"{folder.name}.json")
    kept = any(folder.name.endswith(f"-airports-{method}-0") for method in PROBED)
    for probe in sorted((folder / "probes").glob("step-*/samples.parquet")) if kept else ():
        path = out / "probes" / folder.name / f"{probe.parent.name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        without_texts(read_compact(probe, folder.name)).write(path)
    answers = folder / "capabilities" / "responses.jsonl"
    if answers.is_file():
        (out / "scores").mkdir(exist_ok=True)
        score_answers(answers, folder.name, out / "scores" / f"{folder.name}.parquet")


if __name__ == "__main__":
    what = add if "--add" in sys.argv else main
    what(Path(sys.argv[1]), Path(sys.argv[2]))
