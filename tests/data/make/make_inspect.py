"""Make the Inspect golden logs with the inspect-ai of the environment this runs in.

No language model: inspect's own ``mockllm`` provider gives the answers of ``answer`` below.

Usage: ``python make_inspect.py --work BUILD_FOLDER``
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import socket
import zipfile
from pathlib import Path
from typing import Any

from common import DATA_DIR, PATH_PATTERN
from inspect_ai import Epochs, Task, task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import (
    EvalLog,
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, choice, includes, match, mean, scorer
from inspect_ai.solver import Generate, TaskState, generate, multiple_choice, solver, system_message
from items import capitals, elements, instructions, sums

LETTERS = "ABCDE"
BLANKED = "(blanked)"
SEEDS = (0, 1)
ZSTD_KEPT = ("fm_capitals", "fm_instructions")
"""Tasks whose log is also kept as inspect wrote it; all are kept re-zipped."""


def right(index: int, side: str, epoch: int = 0) -> bool:
    """Whether a side gets item ``index`` right; the epochs of every fifth item differ."""
    knows = index % 4 != 3 if side == "before" else index % 3 != 1
    return knows != (index % 5 == 0 and epoch == 2)


def answer(rows: list[dict[str, Any]], side: str) -> Any:
    """Make the mock model's function: the item is found by its question in the prompt."""
    asked: dict[str, int] = {}

    def outputs(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        prompt = "\n".join(message.text for message in input if message.role == "user")
        index, row = next((i, r) for i, r in enumerate(rows) if r["question"] in prompt)
        epoch = asked.get(row["id"], 0)
        asked[row["id"]] = epoch + 1
        knows = right(index, side, epoch)
        stop = "stop"
        if row["choices"]:
            pick = (row["answer"] + (not knows)) % len(row["choices"])
            text = f"ANSWER: {LETTERS[pick]}" if index != 6 else "It is hard to say."
        elif row["id"].startswith("sum"):
            text = f"It is {int(row['answer']) + (not knows)}"
            if index == 4:  # the answer never comes
                text, stop = "Let me count:", "max_tokens"
        else:
            text = f"The {row['answer'] if knows else 'day'} is here{'.' if index % 2 else ', so'}"
        output = ModelOutput.from_content(f"tiny-{side}", text, stop_reason=stop)
        output.usage = ModelUsage()  # else the provider fetches a tokenizer to count with
        return output

    return outputs


@scorer(metrics={"*": [mean()]})
def checks() -> Any:
    """Score an instruction by several checks: one value of each kind, and a list."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        if state.sample_id == "ins-05":
            return Score.unscored(explanation="nobody can tell")
        return Score(
            value={
                "has_word": "C" if target.text in text else "I",
                "no_comma": "," not in text,
                "length": len(text) / 40,
            },
            answer=text,
        )

    return score


@scorer(metrics=[mean()])
def partial() -> Any:
    """Give letters: correct, partial or no answer."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        grade = "C" if f" {target.text} " in text and text.endswith(".") else "P"
        return Score(value=grade if target.text in text else "N", answer=text)

    return score


@solver
def trouble() -> Any:
    """Fail on one item, go on without end on another until the limit of messages stops it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == "ins-03":
            raise RuntimeError("the tool gave up")
        while state.sample_id == "ins-07":
            state = await generate(state)
            state.messages.append(ChatMessageUser(content="Go on."))
        return state

    return solve


def samples(rows: list[dict[str, Any]], chat: bool = False) -> MemoryDataset:
    """Turn items into a data set; ``chat`` gives the question as messages."""
    made = []
    for row in rows:
        text = row["question"]
        target = LETTERS[row["answer"]] if row["choices"] else row["answer"]
        asked = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=text)]
        made.append(
            Sample(
                id=row["id"],
                input=asked if chat else text,
                choices=row["choices"] or None,
                target=target,
            )
        )
    return MemoryDataset(made, name="fm")


def few_sums() -> list[dict[str, Any]]:
    return sums()[:8]


@task
def fm_capitals() -> Task:
    return Task(samples(capitals()), solver=multiple_choice(), scorer=choice(), version=2)


@task
def fm_elements(num_fewshot: int = 0) -> Task:
    solvers = [system_message("You know chemistry."), multiple_choice()]
    return Task(samples(elements()), solver=solvers, scorer=choice())


@task
def fm_sums() -> Task:
    scoring = match(location="end", numeric=True)
    return Task(samples(few_sums()), solver=generate(), scorer=scoring, epochs=Epochs(3, "mean"))


@task
def fm_words() -> Task:
    return Task(
        samples(instructions(), chat=True), solver=generate(), scorer=[includes(), partial()]
    )


@task
def fm_instructions() -> Task:
    solvers = [trouble(), generate()]
    return Task(samples(instructions()), solver=solvers, scorer=checks(), message_limit=5)


ROWS = {
    "fm_capitals": (fm_capitals, capitals),
    "fm_elements": (fm_elements, elements),
    "fm_sums": (fm_sums, few_sums),
    "fm_words": (fm_words, instructions),
    "fm_instructions": (fm_instructions, instructions),
}


def one_run(name: str, side: str, work: Path, **config: Any) -> Path:
    """Run one task with inspect, its log in the format it writes by default."""
    make, rows = ROWS[name]
    model = get_model(f"mockllm/tiny-{side}", custom_outputs=answer(rows(), side), memoize=False)
    (log,) = run_eval(
        make(),
        model=model,
        log_dir=str(work / "logs" / side),
        display="none",
        fail_on_error=False,
        log_model_api=False,
        max_connections=1,
        max_samples=1,
        **config,
    )
    if log.status != "success":
        raise RuntimeError(f"{name} ended with {log.status}: {log.error}")
    return Path(log.location.removeprefix("file://"))


def blank(log: EvalLog) -> EvalLog:
    """Take out what describes the machine: revision, packages beside inspect, tracebacks."""
    log.eval.revision = None
    log.eval.task_file = None
    log.eval.model_args = {}
    log.eval.packages = {"inspect_ai": log.eval.packages["inspect_ai"]}
    for sample in log.samples or []:
        if sample.error and sample.id != "ins-03":
            raise RuntimeError(f"{sample.id}: {sample.error.message}")
        for error in [sample.error, *(e.error for e in sample.events if e.event == "error")]:
            if error:
                error.traceback = error.traceback_ansi = BLANKED
        sample.events = []
        sample.timelines = None
        sample.attachments = {}
    return log


def rezip(source: Path, target: Path) -> None:
    """Write the members again with plain deflate, as inspect did before 0.3.206."""
    import zipfile_zstd  # noqa: F401  (teaches zipfile zstd)

    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))


def assert_clean(folder: Path) -> None:
    """Refuse logs that still name a path or the host of the machine."""
    import zipfile_zstd  # noqa: F401

    host = re.compile(rf"(?<!\w){re.escape(socket.gethostname())}(?!\w)")
    for path in sorted(folder.rglob("*.*")):
        if path.suffix == ".eval":
            with zipfile.ZipFile(path) as archive:
                texts = [archive.read(name).decode() for name in archive.namelist()]
        else:
            texts = [path.read_text(encoding="utf-8")]
        for text in texts:
            found = PATH_PATTERN.search(text) or host.search(text)
            if found:
                around = text[max(0, found.start() - 60) : found.end() + 60]
                raise RuntimeError(f"{path}: describes the machine ({around})")


def publish(source: Path, folder: Path, name: str, side: str) -> None:
    """Store a run: as inspect writes it, re-zipped with deflate, and (one) as JSON."""
    log = blank(read_eval_log(str(source), resolve_attachments="full"))
    seed = log.plan.config.seed
    stem = name if seed is None else f"{name}_seed{seed}"
    kept = (folder if name in ZSTD_KEPT else Path("not_kept")) / "zstd" / side / f"{stem}.eval"
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(kept))
    rezip(kept, folder / "deflate" / side / kept.name)
    if name == "fm_instructions":
        kept = folder / "json" / side / f"{stem}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(kept))
    if name == "fm_elements" and side == "after":
        told = ProvenanceData(author="tests", reason="wrong key")
        uuids = [sample.uuid for sample in log.samples or [] if sample.id == "el-02"]
        changed = invalidate_samples(log, [uuid for uuid in uuids if uuid], told)
        kept = folder / "invalidated" / f"{stem}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_eval_log(changed, str(kept))


def main() -> None:
    """Run every task for both sides, the sums with two seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="build folder, outside git")
    work: Path = parser.parse_args().work.resolve()
    shutil.rmtree(work / "logs", ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    folder = DATA_DIR / "inspect" / importlib.metadata.version("inspect-ai")
    shutil.rmtree(folder, ignore_errors=True)
    for side in ("before", "after"):
        for name in ROWS:
            for seed in SEEDS if name == "fm_sums" else (None,):
                config = {"temperature": 0.7, "max_tokens": 64} if name == "fm_sums" else {}
                publish(one_run(name, side, work, seed=seed, **config), folder, name, side)
    assert_clean(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*.*") if path.is_file())
    print(json.dumps({"bytes": size, "files": len(list(folder.rglob("*.*")))}))


if __name__ == "__main__":
    main()
