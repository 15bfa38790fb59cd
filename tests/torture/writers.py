"""Several programs write the same things at once: a baseline's name, a save, a history.

    python tests/torture/writers.py --rounds 20

Of several logs under one name one wins and the others are told. A saved comparison is one of those
that were saved. Every line of history arrives.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from counts import finish  # noqa: E402

import forgetmap  # noqa: E402
from forgetmap.base.errors import InputError  # noqa: E402
from forgetmap.gate import baseline  # noqa: E402
from forgetmap.map.saved import open_saved  # noqa: E402
from small_logs import random_scores, samples  # noqa: E402

WRITERS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the counts here")
    chosen = parser.parse_args()
    parts = {
        "one name, several baselines": name_taken_once,
        "one folder, several saves": one_whole_save,
        "one history, several lines": all_lines,
    }
    tried, faults = dict.fromkeys(parts, 0), []
    with tempfile.TemporaryDirectory(prefix="forgetmap-torture-") as folder:
        os.chdir(folder)
        for number in range(WRITERS):
            samples(random_scores(number), model=f"m{number}").write(f"log{number}.parquet")
        for number in range(chosen.rounds):
            for name, part in parts.items():
                tried[name] += 1
                if fault := part(number):
                    faults.append(f"{name}: {fault}")
    finish(tried, faults, f"rounds of {WRITERS} writers", chosen.json)


def at_once(do: Callable[[int], Any]) -> list[str]:
    """Let all writers begin together; what each of them was told, empty where it succeeded."""
    spawn = multiprocessing.get_context("fork")
    start, told = spawn.Barrier(WRITERS), spawn.Array("c", 4096 * WRITERS)

    def write(number: int) -> None:
        start.wait()
        try:
            do(number)
            text = b"done"
        except InputError as error:
            text = f"refused: {error}".encode()[:4000]
        except BaseException as error:
            text = f"{type(error).__name__}: {error}".encode()[:4000]
        told[4096 * number : 4096 * number + len(text)] = text
        os._exit(0)

    workers = [spawn.Process(target=write, args=(number,)) for number in range(WRITERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    raw = bytes(told[:])
    return [raw[4096 * n : 4096 * (n + 1)].rstrip(b"\0").decode() for n in range(WRITERS)]


def name_taken_once(number: int) -> str:
    store = f"store{number}"
    told = at_once(
        lambda writer: baseline.save_baseline("base", f"log{writer}.parquet", store=store)
    )
    won = [writer for writer, text in enumerate(told) if text == "done"]
    refused = [text for text in told if "is frozen with other content" in text]
    if len(won) != 1 or len(refused) != WRITERS - 1:
        return f"told {told}"
    if len(objects := list(Path(store, "objects").iterdir())) != 1:
        return f"{len(objects)} contents for one name"
    _, log = baseline.open_baseline("base", store)
    return "" if log.models == [f"m{won[0]}"] else f"{won} won, {log.models} is stored"


def one_whole_save(number: int) -> str:
    folder = f"saved{number}"
    told = at_once(
        lambda writer: forgetmap.compare("log0.parquet", f"log{writer}.parquet", save=folder)
    )
    if told != ["done"] * WRITERS:
        return f"told {told}"
    opened = open_saved(Path(folder))
    same = forgetmap.compare("log0.parquet", f"log{opened.result.after.name[1:]}.parquet")
    return "" if same.total.lost == opened.result.total.lost else "the map is none of those saved"


def all_lines(number: int) -> str:
    store = f"history{number}"
    baseline.save_baseline("base", "log0.parquet", store=store)
    told = at_once(
        lambda writer: baseline.compare_with_baseline("base", f"log{writer}.parquet", store=store)
    )
    history = baseline.read_history("base", store)
    after = sorted(entry.after for entry in history.entries)
    whole = after == [f"m{writer}" for writer in range(WRITERS)] and not history.damaged
    return "" if whole and told == ["done"] * WRITERS else f"told {told}, stored {after}"


if __name__ == "__main__":
    main()
