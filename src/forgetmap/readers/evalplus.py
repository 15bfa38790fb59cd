"""EvalPlus: `<samples>_eval_results.json`, `<samples>.eval_results.json` or `eval_results.json`.

For every task a list of completions, which are repeats. The problems themselves are not in the
file: items are known by their task id, and `hash` tells which test set they were checked with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, open_binary
from forgetmap.base.json import read_json
from forgetmap.base.values import file_name
from forgetmap.base.words import brief
from forgetmap.samples.table import Meta, Samples, batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forgetmap.readers.framework import ReadOptions

_SUFFIX = "eval_results.json"
_STATUSES = {
    **dict.fromkeys(("pass", "success"), 1.0),
    **dict.fromkeys(("fail", "failed", "timeout", "timed out"), 0.0),
}
"""Old and new words; a completion that ran too long has failed its tests."""


def sniff(path: Path) -> bool:
    """Go by the file's name and the first keys in it."""
    return any(_is_results(file) for file in _files(path))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return find_files(path, f"*{_SUFFIX}")
    return [path] if path.name.endswith(_SUFFIX) else []


def _is_results(file: Path) -> bool:
    with open_binary(file) as opened:
        head = opened.read(1024)
    return b'"eval"' in head and (b'"hash"' in head or b'"date"' in head)


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all result files under the path."""
    meta = Meta(harness="evalplus")
    repeats: dict[tuple[str, str], int] = {}

    def rows() -> Iterator[dict[str, Any]]:
        for file in _files(path):
            how.tick(file.stat().st_size)
            yield from _rows(file, read_json(file), repeats, how.text, meta)

    return Samples.collect(batches(rows()), meta)


def _rows(
    file: Path, results: Any, repeats: dict[tuple[str, str], int], text: bool, meta: Meta
) -> Iterator[dict[str, Any]]:
    tasks = results.get("eval") if isinstance(results, dict) else None
    if not isinstance(tasks, dict):
        raise InputError(f"{file}: holds no 'eval' of tasks; is it an EvalPlus results file?")
    model = _model(file)
    for task_id, completions in tasks.items():
        try:
            found = list(_completions(completions))
        except (ValueError, TypeError, LookupError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else brief(error)
            raise InputError(f"{file} task {task_id!r:.60}: {reason}") from error
        dataset = task_id.partition("/")[0].lower()
        if isinstance(results.get("hash"), str):
            known = meta.settings.setdefault(model, {})
            known.setdefault("task version", {})[dataset] = results["hash"]
        for index, (scores, solution) in enumerate(found):
            repeat = repeats.get((model, task_id), 0)
            repeats[model, task_id] = repeat + 1
            for metric, score in scores.items():
                yield {
                    "model": model,
                    "run": file_name(file),
                    "task": dataset,
                    "item_ref": task_id,
                    "repeat": repeat,
                    "metric": metric,
                    "score": score,
                    "source": f"{file_name(file)} {task_id}[{index}]",
                    "response": solution if text else None,
                }


def _model(file: Path) -> str:
    """The name of the samples file, or of the folder of samples."""
    name = file_name(file).removesuffix(_SUFFIX).rstrip("_.")
    return name or file_name(file.parent)


def _completions(completions: Any) -> Iterator[tuple[dict[str, float], str | None]]:
    """Scores and code of each completion; up to 0.2 the statuses came as two lists."""
    if isinstance(completions, dict):
        base, plus = completions["base"], completions.get("plus") or []
        if plus and len(plus) != len(base):
            raise ValueError(f"{len(base)} completions have base, {len(plus)} plus results")
        for index, (status, *_) in enumerate(base):
            yield _scores(status, plus[index][0] if plus else None), None
        return
    if not isinstance(completions, list):
        raise TypeError("a list of completions was expected")
    for completion in completions:
        if not isinstance(completion, dict):
            raise TypeError("a completion must be an object")
        solution = completion.get("solution")
        yield (
            _scores(completion["base_status"], completion.get("plus_status")),
            None if solution is None else str(solution),
        )


def _scores(base: Any, plus: Any) -> dict[str, float]:
    """The extra tests count only where the base tests passed; without them there is no `plus`."""
    for status in (base, base if plus is None else plus):
        if not isinstance(status, str) or status not in _STATUSES:
            raise ValueError(f"status {status!r:.40} is unknown")
    scores = {"base": _STATUSES[base]}
    return scores if plus is None else scores | {"plus": min(_STATUSES[base], _STATUSES[plus])}
