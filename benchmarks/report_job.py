"""Measure the report and the server: file size, opening, filters, pages of very many items.

Usage: ``python benchmarks/report_job.py [--items 100000] [--served 10000000]``

Needs Chromium, playwright and httpx. The full run takes some minutes and about 3 GB in the
temporary folder (set TMPDIR to move it). Prints a table; exits with 1 if a bar does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forgetmap.map.result import ForgettingMap
    from forgetmap.samples.table import Samples

TASKS = [f"subject_{number:03d}" for number in range(100)]
WORDS = [f"w{number:x}{'aeiou'[number % 5]}{number % 97:x}" for number in range(4000)]
CHANGED = 6
"""In the file, one item in so many is lost, and one is gained."""
VISITS = 5
PERIOD = 100
"""Likewise behind the server; fewer, since the rules for causes read every lost answer."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    value: float
    unit: str
    bar: float | None = None

    def holds(self) -> bool:
        """Whether the value keeps to its bar."""
        return self.bar is None or self.value <= self.bar


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the report and the server.")
    parser.add_argument("--items", type=int, default=100_000, help="items of the file")
    parser.add_argument(
        "--served", type=int, default=10_000_000, help="items behind the server; 0 leaves it out"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forgetmap-bench-") as folder:
        result, rows = measure_file(Path(folder), arguments.items)
        if arguments.served:
            rows += measure_server(Path(folder), arguments.served, result)
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}\n")
    print("| what | value | bar | holds |\n| --- | --- | --- | --- |")
    for row in rows:
        bar = "-" if row.bar is None else f"{row.bar:g} {row.unit}"
        mark = "-" if row.bar is None else "yes" if row.holds() else "NO"
        print(f"| {row.what} | {row.value:.3g} {row.unit} | {bar} | {mark} |")
    sys.exit(not all(row.holds() for row in rows))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    outcome = work()
    return time.perf_counter() - start, outcome


def some_words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


# --- the file -------------------------------------------------------------------------------------


def measure_file(folder: Path, items: int) -> tuple[ForgettingMap, list[Row]]:
    from forgetmap import compare

    path = folder / "report.html"
    sides = [make_log(side, items) for side in ("before", "after")]
    plain, _ = timed(lambda: compare(*sides, draws=1000))
    seconds, result = timed(lambda: compare(*sides, draws=1000, report=path))
    label = f"file, {items:,} items"
    rows = [
        Row(f"{label}: writing, beyond the comparison", seconds - plain, "s"),
        Row(f"{label}: size", path.stat().st_size / 1e6, "MB", 20),
    ]
    return result, rows + [Row(f"{label}: {row.what}", *row[1:]) for row in open_file(path)]


def make_log(side: str, items: int) -> Samples:
    """A log with texts of about 400 and 600 characters; one item in three changes."""
    from forgetmap.samples.identity import content_hash
    from forgetmap.samples.table import Meta, Samples

    def row(number: int) -> dict[str, Any]:
        rng = random.Random(f"{number} {side}")
        place = number % CHANGED
        right = place == (0 if side == "before" else 1) or place > 2
        return {
            "model": side,
            "task": TASKS[number % len(TASKS)],
            "item": content_hash(str(number)),
            "item_ref": str(number),
            "score": float(right),
            "k": 4,
            "prompt": some_words(random.Random(number), 60),
            "answer": rng.choice(WORDS),
            "target": WORDS[number % len(WORDS)],
            "response": some_words(rng, 90),
        }

    return Samples.from_rows(map(row, range(items)), Meta(harness="benchmark"))


FILTER = """async ([id, value]) => {
    const control = document.getElementById(id);
    const last = document.getElementById("item-count"); // what a new list changes last
    const changed = new Promise((done) => {
        new MutationObserver(done).observe(last, {childList: true});
    });
    const start = performance.now();
    control.value = value;
    control.dispatchEvent(new Event(id === "item-text" ? "input" : "change"));
    await changed;
    return performance.now() - start;
}"""


SCROLL = """async () => {
    const box = document.getElementById("item-box");
    const frames = [];
    for (let frame = 0; frame < 200; frame += 1) {
        const start = performance.now();
        box.scrollTop += 700; // about eleven rows
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - start);
    }
    return frames.sort((one, two) => one - two);
}"""
TELL = """new PerformanceObserver((list) => {
    list.getEntries().forEach(({name}) => console.log(name));
}).observe({type: "mark"});"""


def open_file(path: Path) -> list[Row]:
    """Open the report in Chromium and use every filter some times; the worst time counts."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        sys.exit("no Chromium here: apt-get install chromium")
    uses = {
        "filter by task": [("item-task", task) for task in ("subject_050", "subject_099", "")],
        "filter by cause": [("item-cause", cause) for cause in ("-", "")],
        "search in the texts": [("item-text", text) for text in ("w10a", "no such text", "77")],
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        first, ready, page = [], [], browser.new_page()
        for _ in range(VISITS):
            page.close()
            page = browser.new_page()
            page.add_init_script(TELL)
            with page.expect_console_message():  # the page says when it has painted its items
                start = time.perf_counter()
                page.goto(path.as_uri(), wait_until="commit")
            first.append(time.perf_counter() - start)
            page.wait_for_selector("html[data-ready]", timeout=120_000)
            ready.append(time.perf_counter() - start)
        rows = [
            Row(f"verdict and items painted, slowest of {VISITS}", max(first), "s", 2),
            Row("of it, processor time of the page", processor_time(browser, path), "s"),
            Row(f"all of it ready, slowest of {VISITS}", max(ready), "s"),
        ]
        page.evaluate("document.querySelector('#transition input').click()")
        for what, steps in uses.items():
            worst = max(page.evaluate(FILTER, list(step)) for _ in range(3) for step in steps)
            rows.append(Row(f"{what}, slowest of {3 * len(steps)}", worst, "ms", 100))
        page.evaluate("document.getElementById('item-text').value = ''")
        frames = page.evaluate(SCROLL)
        rows.append(Row("scrolling, median of 200 frames", frames[100], "ms"))
        rows.append(Row("scrolling, nine in ten frames within", frames[180], "ms"))
        browser.close()
    return rows


def processor_time(browser: Any, path: Path) -> float:
    """Seconds that the page's main thread worked until its items were painted."""
    page = browser.new_page()
    browser.start_tracing(page=page)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    [end] = [event["ts"] for event in events if event["name"] == "items" and event["ph"] != "e"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    work = (
        event.get("tdur", 0)
        for event in events
        if event["name"] == "RunTask" and event["ts"] < end
        if (event["pid"], event["tid"]) in threads
    )
    return sum(work) / 1e6


# --- the server -----------------------------------------------------------------------------------


def measure_server(folder: Path, items: int, result: ForgettingMap) -> list[Row]:
    from forgetmap.map.comparison import Comparison
    from forgetmap.map.flips import find_causes
    from forgetmap.map.items import write_items

    saved = folder / "saved"
    saved.mkdir()
    assert set(result.tasks) == set(TASKS)
    pairs: Any = MadePairs(items)
    total = result.total.model_copy(update={"n": items})
    large = result.model_copy(update={"total": total})

    def write() -> None:
        write_items(Comparison(large, pairs, find_causes(pairs)), saved / "items.parquet")

    writing, _ = timed(write)
    large.write(saved / "map.json")
    label = f"server, {items:,} items"
    rows = [
        Row(f"{label}: writing the list", writing, "s"),
        Row(f"{label}: size of the list", (saved / "items.parquet").stat().st_size / 1e6, "MB"),
    ]
    start = time.perf_counter()
    with serving(saved) as address:
        rows.append(Row(f"{label}: start-up", time.perf_counter() - start, "s"))
        rows += [Row(f"{label}: {row.what}", *row[1:]) for row in ask(address, items)]
    return rows


class MadePairs:
    """Stands for the pairs of two logs: streams made-up items as they come from the pairing."""

    def __init__(self, items: int) -> None:
        self.items = items
        self.connection = duckdb.connect()
        texts = [some_words(random.Random(number), 40) for number in range(5000)]
        self.connection.register("texts", pa.table({"id": range(len(texts)), "text": texts}))

    def flips(self) -> pa.RecordBatchReader:
        """Items that changed, with texts."""
        return self._stream(
            f"""SELECT {IDENTITY}, n::VARCHAR AS target, n::VARCHAR AS answer_before,
                       (n + 1)::VARCHAR AS answer_after, 'ok' AS status_before,
                       if(n % 60 = 0, 'truncated', 'ok') AS status_after,
                       NULL::DOUBLE AS probability_before, NULL::DOUBLE AS probability_after,
                       NULL::FLOAT[] AS options_before, NULL::FLOAT[] AS options_after,
                       NULL::INT AS right_option,
                       p.text AS prompt_before, p.text AS prompt_after,
                       b.text AS response_before, a.text AS response_after,
                       1 AS runs_before, 1 AS runs_after
                FROM range({self.items}) r(n)
                     JOIN texts p ON p.id = (n * 7) % 5000 JOIN texts b ON b.id = (n * 11) % 5000
                     JOIN texts a ON a.id = (n * 13) % 5000
                WHERE n % {PERIOD} < 2"""
        )

    def unchanged(self) -> pa.RecordBatchReader:
        """Items that did not."""
        return self._stream(
            f"SELECT {IDENTITY} FROM range({self.items}) r(n) WHERE n % {PERIOD} >= 2"
        )

    def _stream(self, query: str) -> pa.RecordBatchReader:
        return self.connection.sql(query).to_arrow_reader(8192)


def task_of(number: int) -> str:
    return TASKS[number // PERIOD % len(TASKS)]


def item_of(number: int) -> str:
    return f"{number * 0x9E3779B1 % 2**32:016x}"


IDENTITY = f"""printf('subject_%03d', n // {PERIOD} % {len(TASKS)}) AS task,
    printf('%016x', n * {0x9E3779B1} % {2**32}) AS item, n::VARCHAR AS item_ref, 4::INT AS k,
    CASE n % {PERIOD} WHEN 0 THEN 'forgotten' WHEN 1 THEN 'gained'
        ELSE if(n % {PERIOD} < 30, 'never', 'retained') END AS transition,
    (n % {PERIOD} NOT BETWEEN 1 AND 29)::DOUBLE AS before,
    (n % {PERIOD} = 1 OR n % {PERIOD} >= 30)::DOUBLE AS after"""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    code = "import sys; from forgetmap.views.serve import serve; serve(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if not found:
            sys.exit("the server did not start")
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def ask(address: str, items: int) -> Iterator[Row]:
    """Ask for pages, items and searches all over the list; the slowest answer counts."""
    import httpx

    rng = random.Random(0)
    home = address.split("?")[0] + "1/"

    def number() -> int:
        return rng.randrange(items)

    def anywhere() -> dict[str, Any]:
        return {"start": number() // 50 * 50}

    def filtered() -> dict[str, Any]:
        kind = rng.choice(("forgotten", "gained", "never", "retained"))
        task = rng.choice(("", *TASKS))
        most = items // PERIOD // (len(TASKS) if task else 1)
        return {"transition": kind, "task": task, "start": rng.randrange(max(most, 1))}

    def by_cause() -> dict[str, Any]:
        return {
            "cause": rng.choice(("truncated", "-")),
            "start": rng.randrange(max(items // 300, 1)),
        }

    def one_item() -> dict[str, Any]:
        n = number()
        return {"task": task_of(n), "item": item_of(n)}

    def search() -> dict[str, Any]:
        text = rng.choice(("no such text", "w10a", str(number())))
        return {"text": text, "start": rng.choice((0, number()))}

    asked: list[tuple[str, str, Callable[[], dict[str, Any]], int]] = [
        ("the page itself", "", dict, 10),
        ("any page of the list", "items", anywhere, 100),
        ("any page of a filtered list", "items", filtered, 100),
        ("any page by cause", "items", by_cause, 100),
        ("any item", "item", one_item, 100),
        ("one step of a search", "items", search, 60),
    ]
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        client.get(address)
        for what, path, parameters, times in asked:
            taken = []
            for _ in range(times):
                given = parameters()
                seconds, answer = timed(lambda p=path, g=given: client.get(home + p, params=g))
                answer.raise_for_status()
                taken.append(1000 * seconds)
            yield Row(f"{what}, median of {times}", statistics.median(taken), "ms")
            yield Row(f"{what}, slowest", max(taken), "ms", 300)


if __name__ == "__main__":
    main()
