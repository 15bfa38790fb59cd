"""Flips single bits of files that forgetmap stores and reads again.

    python tests/torture/flips.py --each 2000

Reading a damaged file must be refused, or give what the whole file gives: the flip hit white space,
or the name of the checksum itself. A line of history that is damaged is counted and left out.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from counts import finish  # noqa: E402

import forgetmap  # noqa: E402
import hostile_endpoint  # noqa: E402
from checkpoints import random_tensors, write_model  # noqa: E402
from forgetmap.api import lineage  # noqa: E402
from forgetmap.base.checkpoints import write_json  # noqa: E402
from forgetmap.base.errors import InputError  # noqa: E402
from forgetmap.base.files import file_hash  # noqa: E402
from forgetmap.base.model import sealed  # noqa: E402
from forgetmap.capabilities.drift import drift  # noqa: E402
from forgetmap.capabilities.drift_result import Drift  # noqa: E402
from forgetmap.capabilities.judge import Replies  # noqa: E402
from forgetmap.capabilities.judge_client import JudgeReply  # noqa: E402
from forgetmap.capabilities.manifest import Manifest  # noqa: E402
from forgetmap.capabilities.responses import load_responses  # noqa: E402
from forgetmap.capabilities.score import score_responses  # noqa: E402
from forgetmap.evaluate.convert import ABOUT  # noqa: E402
from forgetmap.evaluate.fetch import Packaged, _check_made  # noqa: E402
from forgetmap.evaluate.prompts import Request  # noqa: E402
from forgetmap.evaluate.questions import Question, Suite, Task  # noqa: E402
from forgetmap.evaluate.results import (  # noqa: E402
    MANIFEST,
    RESPONSES,
    AskedQuestion,
    read_manifest,
    write_responses,
    write_results,
)
from forgetmap.evaluate.store import FILE, Store  # noqa: E402
from forgetmap.gate import baseline  # noqa: E402
from forgetmap.lineage.result import Lineage  # noqa: E402
from forgetmap.map.saved import open_saved  # noqa: E402
from forgetmap.mitigate.merge.merging import How  # noqa: E402
from forgetmap.mitigate.merge.sweep import (  # noqa: E402
    Split,
    Sweep,
    SweepQuestions,
    _Run,
    measure,
)
from forgetmap.mitigate.train.recipes import _is_done, write_manifest  # noqa: E402
from forgetmap.samples.table import Meta, Samples  # noqa: E402
from logs import write_jsonl  # noqa: E402
from small_logs import random_scores, samples  # noqa: E402


class Stored(NamedTuple):
    """A kind of file, where one lies, and how it is read."""

    kind: str
    path: Path
    read: Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=2000, help="flips of each kind of file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the counts here")
    chosen = parser.parse_args()
    tried, faults = {}, []
    with tempfile.TemporaryDirectory(prefix="forgetmap-torture-") as folder:
        os.chdir(folder)
        for stored in make(Path(folder)):
            unseen = list(flip(stored, chosen.each, random.Random(chosen.seed)))
            tried[stored.kind] = chosen.each
            faults += [f"{stored.kind}: bit {bit} of byte {place}" for place, bit in unseen]
    finish(tried, faults, "flipped bits", chosen.json)


def flip(stored: Stored, count: int, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Flip bits one at a time; yields those that changed what is read without a word."""
    good, whole = stored.path.read_bytes(), stored.read()
    stored.path.chmod(0o644)
    for _ in range(count):
        place, bit = rng.randrange(len(good)), rng.randrange(8)
        stored.path.write_bytes(good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :])
        try:
            same = stored.read() == whole
        except InputError:
            continue
        except Exception as error:  # a traceback is a fault, and the others are tried all the same
            print(f"{stored.kind}: {error!r}")
            same = False
        if not same:
            yield place, bit
    stored.path.write_bytes(good)


def make(home: Path) -> Iterator[Stored]:
    """One file of each kind."""
    before, after = (
        samples(random_scores(seed), response="an answer", model=f"m{seed}") for seed in (1, 2)
    )
    before.write("log.parquet")
    yield Stored("Samples", home / "log.parquet", lambda: rows(home / "log.parquet"))
    after.write("after.parquet")
    result = forgetmap.compare("log.parquet", "after.parquet", save="saved")
    yield Stored("saved items", home / "saved/items.parquet", lambda: saved(home / "saved"))
    result.write("map.json")
    yield Stored("map", home / "map.json", lambda: _text("map.json", forgetmap.ForgettingMap))
    lines = "checkpoints:\n  one: {log: log.parquet}\n  two: {log: after.parquet, parents: one}\n"
    Path("pipeline.yaml").write_text(lines)
    Path("lineage.json").write_text(lineage("pipeline.yaml").to_json())
    yield Stored("lineage", home / "lineage.json", lambda: _text("lineage.json", Lineage))
    kept = baseline.save_baseline("base", "log.parquet", store="store")
    yield Stored("name of a baseline", home / "store/names/base.json", _baseline)
    yield Stored("content of a baseline", home / f"store/objects/{kept.sha256}.parquet", _baseline)
    for _ in range(3):
        baseline.compare_with_baseline("base", "after.parquet", store="store")
    yield Stored("history", home / "store/history.jsonl", _History())
    with Store("run") as store:
        store.append({f"k{i}": {"text": f"answer {i}"} for i in range(40)})
    yield Stored("answers", home / "run" / FILE, _Answers())
    yield from make_scores(home)
    yield from make_evaluation(home)
    yield from make_models(home)


def make_scores(home: Path) -> Iterator[Stored]:
    """Scores by capability, and what the judge said."""
    for name, right in (("old", 1), ("new", 2)):
        write_jsonl(
            Path(f"{name}.jsonl"),
            [
                {
                    "task": "gsm8k.subset", "id": i, "prompt": f"{i}+{i}?", "gold": str(2 * i),
                    "outputs": f"Answer: {2 * i + (i % 3 < right)}",
                }
                for i in range(40)
            ],
        )  # fmt: skip
        score_responses(f"{name}.jsonl", f"{name}.parquet", model=name)
    found = drift("old.parquet", "new.parquet")
    Path("drift.json").write_text(found.to_json())
    yield Stored("drift", home / "drift.json", lambda: _text("drift.json", Drift))
    said = _Said(home / "judge.sqlite")
    yield Stored("replies of a judge", said.path, said)


def make_evaluation(home: Path) -> Iterator[Stored]:
    """A finished run of a suite of capabilities, as `write_results` leaves it."""
    run = home / "evaluation"
    name = "gsm8k.subset"
    asked = [
        Question(name, str(i), f"{i}+{i}?", str(2 * i), row={"task": name, "gold": str(2 * i)})
        for i in range(30)
    ]
    suite = Suite("sums", "1", (Task(name, "Maths", lambda: asked),), manifest="captrack")
    with Store(run) as store:
        store.append({one.ref: {"status": "ok", "text": "4"} for one in asked})
        told = [
            (AskedQuestion(suite.tasks[0], one, 0, Request(one.prompt), one.ref), store[one.ref])
            for one in asked
        ]
    write_responses(run, "toy", told)
    scored = ({"item": i, "task": name, "score": 1.0} for i in range(30))
    about = {"model": "toy", "fingerprint": "toy 1", "requests": 30, "settings": {"seed": 3}}
    write_results(run, scored, Meta("forgetmap"), suite, about)
    known = read_manifest(run)
    yield Stored(
        "manifest of an evaluation", run / MANIFEST, lambda: _of(known, read_manifest(run))
    )
    yield Stored("answers to be scored", run / RESPONSES, lambda: _responses(run / RESPONSES))


def make_models(home: Path) -> Iterator[Stored]:
    """What is kept of merges, of training and of a converted model."""
    sides = tuple(Samples.read(f"{name}.parquet") for name in ("log", "after"))
    Path("tasks.csv").write_text("task,category\nt,Maths\n")
    split = Split.of(sides[0], Path("tasks.csv"), ())
    points = [measure(sides[1], sides, split, weight, None, 100)[0] for weight in (0.3, 0.7)]
    made = Sweep(
        before="one", after="two", method="linear", density=None, scale=1.0, seed=0, suite="sums",
        old_tasks=split.old_tasks, new_tasks=[], points=points,
    )  # fmt: skip
    Path("sweep.json").write_text(made.to_json())
    yield Stored("sweep of merges", home / "sweep.json", lambda: _text("sweep.json", Sweep))
    base = random_tensors(1)
    models = [str(write_model(home / "base", base))]
    models.append(str(write_model(home / "tuned", random_tensors(2, like=base))))
    suite = hostile_endpoint.suite("text")
    sweep = _Run(*models, home / "swept", SweepQuestions(suite), How(), None, str, print, True)
    sweep._merge(0.5)
    point = home / "swept/weight-0.5"
    yield Stored("point of a sweep", point / "point.json", lambda: _point(sweep, point))
    recipe = {"method": "sft", "steps": 300, "learning_rate": 5e-5}
    write_manifest(home, recipe)
    yield Stored("recipe", home / "recipe.json", lambda: _is_done(home, recipe))
    model = Packaged((), (), "0" * 64, "none")
    sums = {file.name: file_hash(file) for file in sorted((home / "base").iterdir())}
    about = {"source": "toy.gguf", "sha256": model.sha256, "files": sums}
    write_json(home / "base" / ABOUT, sealed(about))
    yield Stored(
        "converted model", home / "base" / ABOUT, lambda: _check_made(home / "base", model)
    )


def _of(known: Any, told: Any) -> Any:
    """The fields that are known; others are left alone, such as a checksum under a damaged name."""
    return {name: told.get(name) for name in known}


def _point(sweep: Any, folder: Path) -> Any:
    return sweep._is_finished(folder, sweep.how_at(0.5))


def _responses(path: Path) -> Any:
    found = load_responses(path, Manifest.load("captrack"))
    return found.model, {name: task.records for name, task in found.tasks.items()}, found.warnings


def rows(path: Path) -> Any:
    return [batch.to_pylist() for batch in Samples.read(path).to_batches()]


def saved(folder: Path) -> Any:
    opened = open_saved(folder)
    return opened.result, opened.store.groups, opened.store.sample(10_000).to_pylist()


def _text(name: str, kind: Any) -> Any:
    return kind.from_json(Path(name).read_bytes())


def _baseline() -> Any:
    return rows_of(baseline.open_baseline("base", "store"))


def rows_of(opened: Any) -> Any:
    kept, log = opened
    return kept, [batch.to_pylist() for batch in log.to_batches()]


class _History:
    """The entries that are left and how many were damaged: none may be lost without a word."""

    whole: Any = None

    def __call__(self) -> Any:
        history = baseline.read_history("base", "store")
        self.whole = self.whole or history.entries
        lost = len(self.whole) - len(history.entries)
        same = all(entry in self.whole for entry in history.entries)
        return same and lost <= history.damaged


class _Answers:
    """The stored answers that are left: a damaged one is asked again, never taken as it is."""

    whole: Any = None

    def __call__(self) -> Any:
        with Store("run") as store:
            left = {key: store[key] for key in (f"k{i}" for i in range(40)) if key in store}
        self.whole = self.whole or left
        return all(self.whole.get(key) == answer for key, answer in left.items())


class _Said:
    """The replies in a judge's cache: a damaged one is asked again, never taken as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = {f"k{i}": f'{{"score": {i}}}' for i in range(40)}
        cache = Replies(path)
        for key, text in self.whole.items():
            cache.put(key, JudgeReply(text, 9, 2))

    def __call__(self) -> Any:
        for beside in ("-wal", "-shm"):
            self.path.with_name(self.path.name + beside).unlink(missing_ok=True)
        cache = Replies(self.path)
        return all(cache.get(key) in (None, text) for key, text in self.whole.items())


if __name__ == "__main__":
    main()
