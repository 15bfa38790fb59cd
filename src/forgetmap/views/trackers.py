"""A map in the experiment tracker that people have: Weights & Biases, MLflow.

Numbers become metrics, lost items a table, and the page an artefact. A run that is under way in
this process is used; else one is begun. Where things go is up to the tracker's own settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief, clean
from forgetmap.map.result import Cell, ForgettingMap

PROJECT = "forgetmap"
MOST_ROWS = 2_000
"""Lost items in the table; trackers are slow with more. The page has all."""
_TEXT = 2_000
_NO_STORE = ("unsupported URI", "MLFLOW_ALLOW_FILE_STORE")
"""In what MLflow says of a place it cannot write to: `mlflow-skinny` has no database, which is its
default, and folders must be allowed."""
_NEEDS_STORE = (
    "has no place to write to; set MLFLOW_TRACKING_URI to a server, or to a folder together with "
    "MLFLOW_ALLOW_FILE_STORE=true"
)
_COLUMNS = (
    *("task", "item_ref", "cause", "before", "after", "probability_before", "probability_after"),
    *("target", "answer_before", "answer_after", "prompt_before", "response_after"),
)


def log_map(result: ForgettingMap, tracker: str) -> str:
    """Log a map to a tracker, with its lost items and its page; returns a line on where it is."""
    if tracker not in TRACKERS:
        raise InputError(f"--log {tracker}: must be {' or '.join(TRACKERS)}")
    try:
        return TRACKERS[tracker](result)
    except ImportError as error:
        raise need(f"--log {tracker}", "track") from error
    except InputError:
        raise
    except Exception as error:  # a tracker raises whatever its server and its disk raise
        if tracker == "mlflow" and any(part in str(error) for part in _NO_STORE):
            raise InputError(f"--log mlflow: {_NEEDS_STORE}") from error
        raise InputError(f"--log {tracker}: did not take it ({brief(error)})") from error


def metrics(result: ForgettingMap) -> dict[str, float]:
    """The numbers of a map by name: the old items, the new ones, and every category or task.

    Example:
        >>> import forgetmap
        >>> told = metrics(forgetmap.demo())
        >>> round(told["forgetmap/lost"], 3), round(told["forgetmap/new_accuracy"], 2)
        (0.104, 1.0)
    """
    told = {f"{PROJECT}/{name}": value for name, value in _numbers(result.old).items()}
    if result.new:
        told[f"{PROJECT}/new_accuracy"] = result.new.accuracy_after
        told[f"{PROJECT}/new_accuracy_before"] = result.new.accuracy_before
    for group, cell in (result.categories or result.tasks).items():
        for name in ("lost", "gained"):
            told[f"{PROJECT}/{name}_in/{_plain(group)}"] = getattr(cell, name).value
    return told


def _numbers(cell: Cell) -> dict[str, float]:
    told: dict[str, float] = {"items": cell.n, "accuracy": cell.accuracy_after}
    told["accuracy_before"] = cell.accuracy_before
    for name, found in (("lost", cell.lost), ("gained", cell.gained)):
        told |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return told


def _plain(name: str) -> str:
    """A name with the signs alone that every tracker takes."""
    return "".join(sign if sign.isalnum() or sign in " _-." else "_" for sign in clean(name, 80))


def lost_items(result: ForgettingMap) -> list[list[Any]]:
    """The lost items as rows, with the cause of each; text is cut and holds no control signs."""
    rows = (row for row in result.flips.to_pylist() if row["transition"] == "forgotten")
    return [
        [clean(row[name], _TEXT) if isinstance(row[name], str) else row[name] for name in _COLUMNS]
        for _, row in zip(range(MOST_ROWS), rows, strict=False)
    ]


def _to_wandb(result: ForgettingMap) -> str:
    import wandb

    running = wandb.run
    run = running or wandb.init(project=PROJECT, name=_title(result))
    table = wandb.Table(columns=list(_COLUMNS), data=lost_items(result))
    with _page(result) as page:
        run.log({**metrics(result), f"{PROJECT}/lost_items": table})
        run.summary[f"{PROJECT}/finding"] = result.headline()
        artifact = wandb.Artifact(f"{PROJECT}-map", type="evaluation")
        artifact.add_file(str(page))
        run.log_artifact(artifact)
        if running is None:
            run.finish()  # waits until the page is taken
    return f"logged to W&B: {run.settings.sync_dir}"


def _to_mlflow(result: ForgettingMap) -> str:
    import mlflow

    own = mlflow.active_run() is None
    if own:
        mlflow.set_experiment(PROJECT)
        mlflow.start_run(run_name=_title(result))
    run = mlflow.active_run().info.run_id
    try:
        mlflow.log_metrics(metrics(result))
        mlflow.set_tag(f"{PROJECT}.finding", result.headline())
        mlflow.log_dict({"columns": _COLUMNS, "data": lost_items(result)}, "lost_items.json")
        with _page(result) as page:
            mlflow.log_artifact(str(page))
    finally:
        if own:
            mlflow.end_run()
    return f"logged to MLflow: run {run} in {mlflow.get_tracking_uri()}"


def _title(result: ForgettingMap) -> str:
    return clean(f"{result.before.name} -> {result.after.name}", 120)


@contextmanager
def _page(result: ForgettingMap) -> Iterator[Path]:
    """The report as a file, as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="forgetmap-") as folder:
        path = Path(folder) / "report.html"
        result.report(path)
        yield path


TRACKERS: dict[str, Callable[[ForgettingMap], str]] = {"wandb": _to_wandb, "mlflow": _to_mlflow}
