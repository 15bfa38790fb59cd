"""The golden logs under tests/data, one per harness and layout, and how tests read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.readers import (
    alpaca_eval,
    bfcl,
    bigcodebench,
    captrack,
    evalplus,
    evalscope,
    evaluation,
    every_eval_ever,
    helm,
    humaneval,
    ifeval,
    inspect,
    lighteval,
    livecodebench,
    lm_eval,
    lmms_eval,
    math_harness,
    nemo,
    nemo_skills,
    olmes,
    openai_evals,
    opencompass,
    parquet,
    promptfoo,
    swebench,
    table,
    tau_bench,
    terminal_bench,
    verifiers,
    verl,
)
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.table import Samples
from logs import csv_text
from places import DATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from forgetmap.readers.framework import Reader

Files = dict[str, bytes]
"""A log in memory: path under its folder -> content."""


@dataclass(frozen=True)
class Golden:
    """A log of one harness in one layout, both sides."""

    name: str
    reader: Reader
    load: Callable[[str], Files]
    """Side (`before` or `after`) -> files."""
    told_by: tuple[str, ...] = ("target",)
    """Columns that tell what the item is; the prompt only where it is the question itself."""

    def write(self, side: str, folder: Path) -> Path:
        """Write one side under the folder; returns the path to read."""
        return write_files(self.load(side), folder)


def write_files(files: Files, folder: Path) -> Path:
    """Write the files of a log under a folder; returns its own folder, or its one file."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (top,) = {name.partition("/")[0] for name in files}
    return folder / top


def _stored(place: str, *kept: str) -> Callable[[str], Files]:
    """Files of a stored log whose name begins as told; of all, where nothing is told."""

    @cache
    def load(side: str) -> Files:
        root = DATA / place.format(side=side)
        if root.is_file():
            return {root.name: root.read_bytes()}
        return {
            str(file.relative_to(root.parent)): file.read_bytes()
            for file in sorted(root.rglob("*"))
            if file.is_file() and (not kept or file.name.startswith(kept))
        }

    return load


@cache
def _leaderboard_2024(side: str) -> Files:
    """The Open LLM Leaderboard of 2024: lm-eval's records as one list, with numbers as numbers."""
    stored = _stored("lm_eval/0.4.3/{side}", *_CAPITALS_AND_SUMS)(side)
    files = {}
    for name, content in stored.items():
        if name.endswith(".json"):
            files[name] = content
            continue
        records = [json.loads(line) for line in content.splitlines()]
        for record in records:
            requests = record["arguments"].values()
            record["arguments"] = [list(request.values()) for request in requests]
            for field in ("resps", "filtered_resps"):
                record[field] = _as_numbers(record[field])
        files[name.removesuffix("l")] = json.dumps(records, indent=2).encode()
    return files


def _as_numbers(value: Any) -> Any:
    """Undo what lm-eval does to the numbers of likelihoods: they become text."""
    if isinstance(value, list):
        if len(value) == 2 and value[1] in ("True", "False"):
            return [float(value[0]), value[1] == "True"]
        return [_as_numbers(part) for part in value]
    return value


@cache
def _leaderboard_2023(side: str) -> Files:
    """Its first files: a column for each metric, plain likelihoods, and colons in the names."""
    (stored,) = (DATA / f"lighteval/0.10.0/{side}/greedy").rglob("details_*fm_capitals*")
    content = pq.read_table(stored)
    metrics = content["metrics"].combine_chunks()
    plain = [[pair[0] for pair in pairs] for pairs in content["predictions"].to_pylist()]
    columns = {
        **{name: content[name] for name in ("example", "full_prompt", "choices")},
        "gold_index": pa.array([index[0] for index in content["gold_index"].to_pylist()]),
        "predictions": pa.array(plain),
        **{name: metrics.field(name) for name in ("acc", "acc_norm")},
    }
    time = "2023-07-19T20:31:16.803242"
    name = f"details_tiny__{side}/{time}/details_harness|fm_capitals|0_{time}.parquet"
    return {name: parquet_bytes(pa.table(columns))}


@cache
def _flat_promptfoo(side: str) -> Files:
    """The layout of promptfoo's Node package: the inner object of an export."""
    inner = json.loads((DATA / f"promptfoo/{side}/results.json").read_bytes())["results"]
    return {"log/results.json": json.dumps(inner).encode()}


def _rows_of_a_table(side: str) -> list[dict[str, Any]]:
    (file,) = (DATA / f"lm_eval/0.4.13/{side}").rglob("samples_fm_capitals_*")
    return [
        {
            "id": record["doc_id"],
            "model": side,
            "task": "capitals",
            "question": record["doc"]["question"],
            "choices": json.dumps(record["doc"]["choices"]),
            "target": record["doc"]["choices"][record["doc"]["answer"]],
            "answer": record["filtered_resps"][0][0],
            "correct": record["acc"],
        }
        for record in json_lines(file)
    ]


def _table(suffix: str) -> Callable[[str], Files]:
    """The answers to the capitals as a plain table."""

    @cache
    def load(side: str) -> Files:
        records = _rows_of_a_table(side)
        if suffix == "csv":
            content = csv_text(records).encode()
        elif suffix == "jsonl":
            content = "".join(json.dumps(record) + "\n" for record in records).encode()
        else:
            content = parquet_bytes(pa.Table.from_pylist(records))
        return {f"{side}.{suffix}": content}

    return load


@cache
def _samples(side: str) -> Files:
    log = lm_eval.read(DATA / f"lm_eval/0.4.13/{side}", ReadOptions(text=True, wording=True))
    meta = json.dumps({"schema_version": 1, "harness": log.meta.harness, "version": None,
                       "settings": {}, "warnings": []})  # fmt: skip
    return {
        f"{side}.parquet": parquet_bytes(
            log.data.slice(0, 40).replace_schema_metadata({"forgetmap": meta})
        )
    }


def parquet_bytes(content: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink)
    return bytes(sink.getvalue())


QUESTION = ("target", "prompt")
_CAPITALS_AND_SUMS = ("results_", "samples_fm_capitals", "samples_fm_sums")
_EEE = "every_eval_ever"
LOGS = {
    log.name: log
    for log in (
        Golden("lm_eval", lm_eval, _stored("lm_eval/0.4.13/{side}", *_CAPITALS_AND_SUMS)),
        Golden("lm_eval_old", lm_eval, _stored("lm_eval/0.4.3/{side}", *_CAPITALS_AND_SUMS)),
        Golden("lm_eval_list", lm_eval, _leaderboard_2024),
        Golden("lighteval_flat", lighteval, _stored("lighteval/0.10.0/{side}/greedy")),
        Golden("lighteval_struct", lighteval, _stored("lighteval/0.13.0/{side}/greedy")),
        Golden("lighteval_2023", lighteval, _leaderboard_2023),
        Golden("inspect_eval", inspect,
               _stored("inspect/0.3.285/deflate/{side}", "fm_words", "fm_instructions"), QUESTION),
        Golden("inspect_zstd", inspect,
               _stored("inspect/0.3.285/zstd/{side}", "fm_capitals"), QUESTION),
        Golden("inspect_json", inspect, _stored("inspect/0.3.285/json/{side}"), QUESTION),
        Golden("helm", helm, _stored("helm/{side}")),
        Golden("opencompass", opencompass, _stored("opencompass/{side}"), QUESTION),
        Golden("every_eval_ever", every_eval_ever, _stored(f"{_EEE}/{{side}}")),
        Golden("every_eval_ever_converted", every_eval_ever, _stored(f"{_EEE}/converted/{{side}}")),
        Golden("promptfoo", promptfoo, _stored("promptfoo/{side}")),
        Golden("promptfoo_flat", promptfoo, _flat_promptfoo),
        Golden("promptfoo_jsonl", promptfoo, _stored("promptfoo/{side}.jsonl")),
        Golden("evalplus", evalplus, _stored("evalplus/{side}")),
        Golden("openai_evals", openai_evals, _stored("openai_evals/{side}")),
        Golden("bfcl", bfcl, _stored("bfcl/{side}")),
        Golden("bfcl_2024", bfcl, _stored("bfcl/2024/{side}")),
        Golden("verifiers", verifiers, _stored("verifiers/{side}")),
        Golden("nemo", nemo, _stored("nemo/{side}")),
        Golden("ifeval", ifeval, _stored("ifeval/{side}"), QUESTION),
        Golden("humaneval", humaneval, _stored("humaneval/{side}.jsonl_results.jsonl")),
        Golden("swebench", swebench, _stored("swebench/{side}")),
        Golden("swebench_tree", swebench, _stored("swebench/tree/{side}")),
        Golden("livecodebench", livecodebench, _stored("livecodebench/{side}"), QUESTION),
        Golden("tau_bench", tau_bench, _stored("tau_bench/{side}"), QUESTION),
        Golden("bigcodebench", bigcodebench, _stored("bigcodebench/{side}")),
        Golden("nemo_skills", nemo_skills, _stored("nemo_skills/{side}"), QUESTION),
        Golden("math_harness", math_harness, _stored("math_harness/{side}"), QUESTION),
        Golden("alpaca_eval", alpaca_eval, _stored("alpaca_eval/{side}"), QUESTION),
        Golden("lmms_eval", lmms_eval, _stored("lmms_eval/{side}")),
        Golden("olmes", olmes, _stored("olmes/{side}")),
        Golden("evalscope", evalscope, _stored("evalscope/{side}"), QUESTION),
        Golden("evalscope_old", evalscope, _stored("evalscope/old/{side}"), QUESTION),
        Golden("terminal_bench", terminal_bench, _stored("terminal_bench/{side}"), QUESTION),
        Golden("verl", verl, _stored("verl/{side}"), QUESTION),
        Golden("table_csv", table, _table("csv"), QUESTION),
        Golden("table_jsonl", table, _table("jsonl"), QUESTION),
        Golden("table_parquet", table, _table("parquet"), QUESTION),
        Golden("samples_parquet", parquet, _samples, ("item",)),
    )
}  # fmt: skip


def _evaluation(side: str) -> Files:
    """An output folder of `forgetmap eval`."""
    (samples,) = _samples(side).values()
    return {
        f"{side}/samples.parquet": samples,
        f"{side}/answers.jsonl": b"",
        f"{side}/.lock": b"",
        f"{side}/manifest.json": b"{}",
    }


_CAPTRACK = ("gsm8k_subset", "boolq_core", "mtbench", "popqa")
ALL_LOGS = LOGS | {
    "captrack": Golden("captrack", captrack, _stored("captrack/{side}", *_CAPTRACK)),
    "evaluation": Golden("evaluation", evaluation, _evaluation),
}
"""Also those that are not scored yet, and forgetmap's own folders."""


# --- reading --------------------------------------------------------------------------------------


def read(reader: Reader, path: Path, text: bool = False, ticks: list[int] | None = None) -> Samples:
    """Read a log with the given reader, whatever its sniffing says."""
    tick = (lambda _bytes: None) if ticks is None else ticks.append
    return reader.read(path, ReadOptions(text=text, tick=tick))


def rows(reader: Reader, path: Path, text: bool = False, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a log that have the wanted values."""
    found = read(reader, path, text).data.to_pylist()
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
