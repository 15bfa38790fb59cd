"""The commands that write, what they are run on, and what an earlier run has left there.

`disk.py` lets the disk fail under each of them. Other commands write nothing, or need a language
model: `serve` and `fetch-model`, `merge --sweep`, `replay --model`. `theory figures` draws for a
quarter of a minute; `compare --figures` and `merge --figures` write by the same function.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS.parent / "src")]
SERVER = "SERVER"
"""Stands for the address of the model server in the words of a command."""


class Verb(NamedTuple):
    """The words of a command, and which of its outputs it never writes over."""

    words: str
    fresh: str = ""


VERBS: dict[str, Verb] = {
    "compare --save": Verb("compare before.jsonl after.jsonl --save saved"),
    "compare, all files": Verb(
        "compare before.jsonl after.jsonl --json map.json --csv map.csv --latex map.tex "
        "--flips flips.csv --report map.html"
    ),
    "compare --causes": Verb("compare before.jsonl after.jsonl --causes --flips flips.jsonl"),
    "compare --figures": Verb(
        "compare before.jsonl after.jsonl --figures figures --flips flips.parquet"
    ),
    "show": Verb("show after.jsonl --json log.json"),
    "convert": Verb("convert after.jsonl log.parquet"),
    "convert --to": Verb("convert after.jsonl every --to every-eval-ever"),
    "demo": Verb("demo --out demo"),
    "lineage": Verb(
        "lineage pipeline.yaml --json lineage.json --csv cells.csv --lives lives.csv "
        "--report lineage.html"
    ),
    "study --site": Verb("study after.study.yaml --cache seen --site site"),
    "study, all files": Verb(
        "study after.study.yaml --json study.json --csv study.csv --latex study.tex "
        "--figures drawn-study"
    ),
    "eval --study": Verb("eval --study after.models.yaml"),
    "plan": Verb("plan after.jsonl --json plan.json"),
    "eval": Verb(f"eval {SERVER} --suite after.questions.jsonl --out run"),
    "eval, two models": Verb(
        f"eval --before {SERVER} --after {SERVER}2 --suite after.questions.jsonl --out runs "
        "--json runs.json"
    ),
    "merge": Verb(
        "merge base tuned --out merged --json merged.json --emit-yaml merged.yaml --drift",
        fresh="merged",
    ),
    "merge --figures": Verb("merge base tuned --drift --figures drawn"),
    "replay": Verb(
        "replay kept --pool pool.jsonl --log before.jsonl --log between.jsonl --budget 9 "
        "--out replay --json replay.json"
    ),
    "advise": Verb("advise map.json --drift drift.json --lineage lineage.json --json advice.json"),
    "score": Verb("score after.answers.jsonl --out scored.parquet"),
    "score --judge": Verb(
        f"score after.judged.jsonl --out judged.parquet --judge {SERVER} --rejudge 2"
    ),
    "drift": Verb(
        "drift before.scores.parquet after.scores.parquet --json drift.json --csv drift.csv "
        "--report drift.html"
    ),
    "drift --compat": Verb(
        "drift before.table.csv after.table.csv --compat captrack --json table.json --csv table.csv"
    ),
    "capabilities": Verb("capabilities --json capabilities.json"),
    "capabilities suite": Verb("capabilities suite --out items.jsonl --per-capability 2"),
    "theory replay": Verb("theory replay --old-mass 0.05 --batch 32 --json theory.json"),
    "theory page": Verb("theory page --report theory.html"),
    "baseline save": Verb("baseline save new after.jsonl"),
    "baseline compare": Verb("baseline compare base after.jsonl --json base.json"),
    "baseline list": Verb("baseline list --json baselines.json"),
    "baseline trend": Verb("baseline trend base --report trend.html"),
    "gate init": Verb("gate init map.json --out gate.yaml", fresh="gate.yaml"),
    "gate check": Verb(
        "gate check map.json --policy loose.yaml --json gate.json --junit gate.xml "
        "--markdown gate.md"
    ),
}
"""What is run, in a folder with logs and the outputs of an earlier run."""
_NOT_BEFORE = ("baseline save",)
"""What the earlier run leaves out: a name is given once."""


def run(words: str, server: str) -> None:
    """Run one command in this process; it ends as the command line does, with SystemExit."""
    from forgetmap.cli.app import main as forgetmap

    sys.argv = ["forgetmap", *words.replace(SERVER, server).split()]
    stop_clock()
    forgetmap()


def stop_clock() -> None:
    """Let files hold the same time whenever they are written, so that they can be compared."""
    from forgetmap.gate import baseline
    from forgetmap.readers import every_eval_ever

    baseline._now = lambda: "2026-01-01T00:00:00+00:00"
    every_eval_ever.time = SimpleNamespace(time=lambda: 0)  # type: ignore[assignment]


def earlier(verb: Verb) -> str:
    """The same command on other logs, as it was run before."""
    return verb.words.replace("after.", "other.")


def prepare(server: str) -> None:
    """Write logs, models and answers, and the outputs of an earlier run on other logs."""
    for number, name in enumerate(("before", "between", "after", "other")):
        _write_logs(name, random.Random(number), 0.7 - 0.1 * number)
    _write_models()
    for name in ("after", "other"):
        _write_studies(name, server)
    Path("loose.yaml").write_text("version: 1\nlimits:\n  - {where: total, max: 1.0}\n")
    lines = "checkpoints:\n  before: {log: before.jsonl}\n"
    lines += "  between: {log: between.jsonl, parents: before}\n"
    Path("pipeline.yaml").write_text(f"{lines}  after: {{log: other.jsonl, parents: between}}\n")
    commands = [
        "compare before.jsonl between.jsonl --save kept",
        "baseline save base before.jsonl",
        *(f"score {one}.answers.jsonl --out {one}.scores.parquet" for one in ("before", "after")),
        "score other.answers.jsonl --out other.scores.parquet",
    ]
    last = ("advise", "baseline list", "baseline trend")  # they read what others write
    names = [name for name in VERBS if name not in (*last, *_NOT_BEFORE)]
    verbs = [VERBS[name] for name in (*names, *last)]
    for words in (*commands, *(earlier(verb) for verb in verbs if not verb.fresh)):
        try:
            run(words, server)
        except SystemExit as end:
            if end.code:
                raise
    Path("pipeline.yaml").write_text(f"{lines}  after: {{log: after.jsonl, parents: between}}\n")


def _write_logs(name: str, rng: random.Random, right: float) -> None:
    """What a model answered, in each form that a command takes."""
    _lines(
        f"{name}.jsonl",
        (
            {
                "task": f"task{i % 3}",
                "question": f"what is {i}?",
                "response": f"{name} says {i * 7}",
                "correct": int(rng.random() < right),
            }
            for i in range(90)
        ),
    )
    _lines(
        f"{name}.answers.jsonl",
        (
            {
                "model": name, "task": "gsm8k.subset", "id": i, "prompt": f"{i}+{i}?",
                "gold": str(2 * i), "outputs": f"Answer: {2 * i + (rng.random() > right)}",
            }
            for i in range(40)
        ),
    )  # fmt: skip
    _lines(
        f"{name}.judged.jsonl",
        (
            {
                "model": "toy", "task": "ragtruth.core", "id": str(i), "prompt": "Retell it.",
                "gold": "Ada was here.", "ctx": ["Ada was here."],
                "outputs": f"Ada was here. {name} says so on day {i}.",
            }
            for i in range(4)
        ),
    )  # fmt: skip
    _lines(
        f"{name}.questions.jsonl",
        (
            {"task": "sums", "question": f"{i} plus {i} =", "answer": 2 * i}
            for i in range(4 if name == "other" else 12)
        ),
    )
    _write_table(Path(f"{name}.table.csv"), name, right)


def _write_studies(name: str, server: str) -> None:
    """A study of two pairs, and one whose logs are not there yet."""
    Path(f"{name}.study.yaml").write_text(
        f"pairs:\n  - {{before: before.jsonl, after: {name}.jsonl, method: sft}}\n"
        "  - {before: before.jsonl, after: between.jsonl, method: rl}\n"
    )
    Path(f"{name}.models.yaml").write_text(
        f"pairs:\n  - {{before: logs/base, after: logs/{name}, suite: {name}.questions.jsonl, "
        f'eval_before: "{server}", eval_after: "{server}2"}}\n'
    )


def _write_table(path: Path, name: str, value: float) -> None:
    """A result table of CapTrack."""
    from forgetmap.capabilities.published import COLUMNS

    names = [f"{column.code} {column.label or 'x'}" for column in COLUMNS]
    row = ",".join([f"{value:.1f}"] * len(names))
    path.write_text(f"{','.join(names)},model_name\n{row},{name}\n")


def _write_models() -> None:
    """Two checkpoints for a merge, and a pool of examples for a replay."""
    from checkpoints import random_tensors, write_model

    base = random_tensors(1)
    write_model(Path("base"), base)
    write_model(Path("tuned"), random_tensors(2, like=base), shards=2)
    rows = ({"prompt": f"how much is {i} times 3?", "completion": f"{3 * i}"} for i in range(60))
    _lines("pool.jsonl", rows)


def _lines(name: str, rows: Iterator[dict[str, Any]]) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """A model server in a process of its own, which ends when this one does; gives its address."""
    told, tell = os.pipe()
    wait, end = os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        _serve(tell, wait)
    os.close(wait)
    os.close(tell)
    try:
        name = os.read(told, 1000).decode()
        if not name:
            raise RuntimeError("the model server did not start")
        yield name
    finally:
        os.close(end)
        os.waitpid(child, 0)


def _serve(tell: int, wait: int) -> None:
    try:
        from hostile_endpoint import HostileEndpoint, Mode

        mode = Mode("judge", "chat", "right", _judge)
        with HostileEndpoint(mode, lambda prompt: "BEGIN " in prompt) as server:
            os.write(tell, server.name.encode())
            os.read(wait, 1)  # until the other end is closed
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _judge(exchange: Any) -> None:
    """Give the best mark, in the form that is asked for."""
    form = re.search(r"in this form: (.*)", exchange.prompt)[1]
    check = re.search(r"BEGIN (\w{8}) ", exchange.prompt)[1]
    best = {"check": check, "reason": "fine", "score": 10, "class": "compliance"}
    marks = {name: best.get(name, True) for name in re.findall(r'"(\w+)": ', form)}
    message = {"role": "assistant", "content": json.dumps(marks)}
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    exchange.send({"choices": [choice], "usage": usage})
