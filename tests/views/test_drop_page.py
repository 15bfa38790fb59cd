"""The page that maps two logs in the browser: the command line's numbers, and nothing leaves it."""

from __future__ import annotations

import csv
import functools
import json
import random
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import duckdb
import orjson
import pytest

from browser import Visit, chromium, cut_off, serious_faults, visit
from forgetmap.map.comparison import compare_logs
from forgetmap.map.example import example_logs
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from forgetmap.map.result import Cell, ForgettingMap

SITE = ROOT / "build" / "pages"
MAPPED = "html[data-map]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "drop" / "drop.js").exists():
        pytest.skip("the page is not built here: make docs builds it where npm is at hand")
    handler = functools.partial(_Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/drop/index.html"
        server.shutdown()


def dropped(browser: Browser, address: str, before: Path, after: Path) -> Visit:
    """The page with two logs in it."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    found = Visit(page)
    page.on("console", lambda message: found.said.append(message.text))
    page.on("pageerror", lambda error: found.said.append(str(error)))
    page.context.on("request", lambda request: found.requests.append(request.url))
    page.goto(address)
    page.set_input_files("#before", before)
    page.set_input_files("#after", after)
    page.wait_for_selector(f"{MAPPED}, #said.wrong", state="attached", timeout=120_000)
    return found


def told(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.get_attribute("html", "data-map"))
    return found


def numbers(cell: Cell) -> dict[str, Any]:
    """What the page shows of a cell, from the command line's JSON."""
    exact = cell.lost.basis == "probabilities"
    return {
        "n": cell.n,
        "counts": {f"n{way}": getattr(cell.counts, f"n{way}") for way in ("00", "01", "10", "11")},
        "accuracy_before": cell.accuracy_before,
        "accuracy_after": cell.accuracy_after,
        "raw": {"lost": cell.raw.lost.value, "gained": cell.raw.gained.value},
        "lost": cell.lost.value if exact else None,
        "gained": cell.gained.value if exact else None,
    }


def expected(result: ForgettingMap) -> dict[str, Any]:
    return {
        "total": numbers(result.total),
        "old": numbers(result.old),
        "new": numbers(result.new) if result.new else None,
        "tasks": {name: numbers(cell) for name, cell in result.tasks.items()},
    }


def test_the_example_is_mapped_as_by_the_command_line(browser: Browser, address: str) -> None:
    """Every digit of every number, and not one request but for the site's own files."""
    before, after = example_logs()
    found = dropped(browser, address, before, after)
    result = compare_logs(before, after).map
    assert told(found.page) == expected(result)  # == of floats: all digits
    assert found.text("#finding") == (
        f"Lost {100 * result.total.lost.value:.1f} %, gained {100 * result.total.gained.value:.1f} "
        f"% of 4,070 items"
    )
    assert found.count("#tasks tbody tr") == 1 + len(result.tasks)
    assert found.count("#items tbody tr") == 50
    assert "−100.0 %" in found.text("#items tbody tr >> nth=0")
    found.page.get_by_label("airports is new").check()
    result = compare_logs(before, after, new=["airports"]).map
    assert told(found.page) == expected(result)
    assert found.text("#finding").startswith(f"Lost {100 * result.old.lost.value:.1f} %")
    assert "3,270 old items" in found.text("#finding")
    assert "--new airports" in found.text("#command")
    assert serious_faults(found.page) == []
    assert found.said == []
    home = address.rpartition("/")[0]
    assert all(url.startswith((home, "blob:")) for url in found.requests)
    names = {url.rpartition("/")[2] for url in found.requests if url.startswith(home)}
    assert names == {
        *("index.html", "page.css", "drop.css", "drop.js"),
        *("duckdb.worker.js", "duckdb.wasm", "recipes.json"),
    }
    assert found.page.evaluate("performance.getEntriesByType('resource').length") < 12


@pytest.mark.parametrize("width", [1440, 768, 360])
def test_it_looks_like_every_other_page(browser: Browser, address: str, width: int) -> None:
    """The example is one click away; nothing is cut off, light and dark."""
    found = visit(browser, address, width=width, color_scheme="light")
    found.page.click("#example")
    found.page.wait_for_selector(f"{MAPPED}, #said.wrong", state="attached", timeout=120_000)
    assert found.text("#finding").startswith("Lost 10.4 %")
    for scheme in ("light", "dark"):
        found.page.emulate_media(color_scheme=scheme)
        found.page.wait_for_selector(f"html[data-theme={scheme}]")
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        assert cut_off(found.page) == []
        assert serious_faults(found.page) == []
    assert found.said == []
    found.page.context.close()


def test_its_policy_lets_nothing_out(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    tried = page.evaluate(
        """async () => {
            const tries = [fetch("http://127.0.0.1:9/x"), new Promise((done, fail) => {
                const image = new Image(); image.onload = done; image.onerror = fail;
                image.src = "http://127.0.0.1:9/x.png";
            })];
            const script = `fetch("http://127.0.0.1:9/y").then(() => postMessage("out"))
                .catch(() => postMessage("kept"));`;
            const blob = new Blob([script], {type: "text/javascript"});
            const worker = new Worker(URL.createObjectURL(blob));
            tries.push(new Promise((done, fail) => {
                worker.onmessage = ({data}) => data === "out" ? done() : fail();
            }));
            return (await Promise.allSettled(tries)).map(({status}) => status);
        }"""
    )
    assert tried == ["rejected"] * 3
    policy = page.get_attribute("meta[http-equiv]", "content")
    assert "connect-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy


def made_log(side: str, repeats: int, chances: bool) -> Samples:
    rng = random.Random(f"{side} {repeats} {chances}")
    rows = []
    for number in range(300):
        for repeat in range(repeats):
            weights = [rng.random() ** 3 for _ in range(4)]
            options = [weight / sum(weights) for weight in weights]
            right = options[0] == max(options)
            row: dict[str, Any] = {
                "model": side,
                "task": f"task {number % 7}",
                "item": content_hash(str(number)),
                "item_ref": str(number),
                "repeat": repeat,
                "score": float(right) if number % 50 else None,
                "status": "ok" if number % 50 else "unscored",
                "k": 4 if number % 3 else None,
                "prompt": f'Question "{number}",\nreally \\N?',
            }
            if chances:
                row |= {"gold_probability": options[0]}
                row |= {"option_probabilities": options, "right_option": 0}
            rows.append(row)
    return Samples.from_rows(rows)


@pytest.mark.parametrize("chances", [True, False], ids=["options", "scores"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_other_logs_are_mapped_alike(
    browser: Browser, address: str, tmp_path: Path, repeats: int, chances: bool
) -> None:
    sides = []
    for side in ("before", "after"):
        sides.append(tmp_path / f"{side}.parquet")
        made_log(side, repeats, chances).write(sides[-1])
    found = dropped(browser, address, *sides)
    assert found.text("#said") == ""
    assert told(found.page) == expected(compare_logs(*sides).map)


def test_the_sums_of_the_page_are_those_of_python(browser: Browser) -> None:
    """On random logs, from the same histogram; this needs no npm."""
    script = (ROOT / "docs" / "drop" / "estimates.js").read_text(encoding="utf-8")
    call = f"(rows) => {{ {script.partition('export ')[0]}; return mapOf(sumsByTask(rows)); }}"
    page = browser.new_page()
    for case in range(40):
        repeats, chances = 1 + case % 3, case % 2 == 0
        logs = (made_log(f"{side} {case}", repeats, chances) for side in ("before", "after"))
        compared = compare_logs(*logs)
        histogram = compared.pairs.source._histogram("s0", "s1")
        rows = [
            {
                f"c{place}": None if value is None else str(value)
                for place, value in enumerate((*pattern[:13], *pattern.moments))
            }
            for pattern in random.Random(case).sample(histogram, len(histogram))
        ]
        assert page.evaluate(call, rows) == expected(compared.map), case
    page.close()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_plain_tables_are_mapped_alike(
    browser: Browser, address: str, tmp_path: Path, kind: str
) -> None:
    sides = []
    for side in ("before", "after"):
        rng = random.Random(side)
        rows = [
            {
                "task": f"t{number % 3}",
                "question": f'What is "{number}", please?\nSay.',
                "score": int(rng.random() < 0.6),
            }
            for number in range(200)
        ]
        path = tmp_path / f"{side}.{kind}"
        sides.append(path)
        if kind == "csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        else:
            path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    found = dropped(browser, address, *sides)
    assert found.text("#said") == ""
    assert told(found.page) == expected(compare_logs(*sides).map)


def test_what_it_cannot_map_is_told_in_one_line(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("name,right\nx,1\n")
    (tmp_path / "b.jsonl").write_text('{"task": "t", "id": 1, "score": 1}\n{oops\n')
    (tmp_path / "c.parquet").write_bytes(b"no parquet")
    duckdb.sql(f"COPY (SELECT 1 AS x) TO '{tmp_path}/d.parquet' (FORMAT parquet)")
    good = example_logs()[1]
    for name, why in {
        "a.csv": "lacks the column task, score, id or question",
        "b.jsonl": "line 2 is not JSON",
        "c.parquet": "is not a readable Parquet file",
        "d.parquet": "is not a Samples file",
    }.items():
        found = dropped(browser, address, tmp_path / name, good)
        assert found.text("#said").startswith(f"{name}: {why}")
        assert not found.page.locator("#result").is_visible()
