"""`forgetmap serve`: the same page over a local server, and who is let in."""

from __future__ import annotations

import asyncio
import csv
import io
import os
import queue
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from browser import chromium, visit
from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing
from forgetmap.map.items import PAGE, TRANSITIONS, Filter, ItemStore
from forgetmap.map.saved import find_saved, open_saved, save_comparison
from forgetmap.views.html.report import write_report
from places import ROOT
from report_logs import CATEGORIES, HOSTILE, made_log, mapped
from study_results import made_result

pytest.importorskip("starlette", reason="starlette is not here: pip install -e .[serve]")

from forgetmap.views.html.study import find_pages, write_site
from forgetmap.views.serve import make_app, make_site_app, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "let-me-in"
HOME = "http://127.0.0.1:8000"
EXAMPLE = ROOT / "examples" / "smollm2-airports"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two saved comparisons."""
    folder = tmp_path_factory.mktemp("saved")
    save_comparison(mapped(made_log("before"), made_log("after"), CATEGORIES), folder / "plain")

    def hostile(text: str) -> str:
        return f"=cmd {HOSTILE} {text}"

    categories = {hostile(task): hostile(group) for task, group in CATEGORIES.items()}
    sides = made_log("before", hostile, 8), made_log("after", hostile, 8)
    save_comparison(mapped(*sides, categories), folder / "hostile")
    return folder


@pytest.fixture(scope="module")
def store(saved: Path) -> ItemStore:
    return ItemStore(saved / "plain" / "items.parquet")


@pytest.fixture(scope="module")
def rows(store: ItemStore) -> list[dict[str, Any]]:
    return [row for batch in store.table(Filter()) for row in batch.to_pylist()]


# --- the items on disk ----------------------------------------------------------------------------


def walk(store: ItemStore, wanted: Filter) -> list[tuple[str, str]]:
    """All items that pass, page by page."""
    found, start = [], 0
    while start is not None:
        page = store.page(wanted, start)
        assert len(page.rows) <= PAGE
        found += [(row["task"], row["item"]) for row in page.rows]
        start = page.next
    return found


@pytest.mark.parametrize("transition", ["", *TRANSITIONS])
@pytest.mark.parametrize("task", ["", "tales"])
@pytest.mark.parametrize("cause", ["", "-", "truncated"])
@pytest.mark.parametrize("text", ["", "QUESTION 1", "sums-3"])
def test_pages_hold_what_a_plain_filter_finds(
    store: ItemStore, rows: list[dict[str, Any]], transition: str, task: str, cause: str, text: str
) -> None:
    def passes(row: dict[str, Any]) -> bool:
        told = [v for n, v in row.items() if isinstance(v, str) and not n.startswith("status")]
        searched = [value for value in told if value not in (row["task"], row["transition"])]
        return (
            transition in ("", row["transition"])
            and task in ("", row["task"])
            and cause in ("", row["cause"] or "-")
            and any(text.lower() in value.lower() for value in searched)
        )

    expected = [(row["task"], row["item"]) for row in rows if passes(row)]
    wanted = Filter(transition, task, cause, text)
    assert walk(store, wanted) == expected
    if not text:
        assert store.page(wanted).total == len(expected)
    exported = [row["item"] for batch in store.table(wanted) for row in batch.to_pylist()]
    assert sorted(exported) == sorted(item for _, item in expected)


def test_a_search_answers_in_steps_and_goes_on_where_it_was(
    store: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = walk(store, Filter(text="question"))
    assert len(whole) > PAGE
    monkeypatch.setattr("forgetmap.map.items.SEARCH_SECONDS", -1.0)
    assert store.page(Filter(text="question")).rows == []  # no time for a first step
    assert store.page(Filter(text="question")).next == 0
    monkeypatch.setattr("forgetmap.map.items.SEARCH_SECONDS", 60.0)
    monkeypatch.setattr("forgetmap.map.items._FEWEST_ROWS", 7)
    monkeypatch.setattr("forgetmap.map.items._MOST_ROWS", 20)
    assert walk(store, Filter(text="question")) == whole
    wildcards = store.page(Filter(text="%"))
    assert wildcards.rows == []


def test_items_are_those_of_the_pairs(store: ItemStore, rows: list[dict[str, Any]]) -> None:
    assert len(rows) == store.total == 160
    order = [(r["task"], r["transition"], r["cause"] or "~", r["item"]) for r in rows]
    assert order == sorted(order)
    for row in rows:
        kind = {1: "forgotten", -1: "gained", 0: "retained" if row["before"] else "never"}
        sign = (row["before"] > row["after"]) - (row["before"] < row["after"])
        assert row["transition"] == kind[sign]
        assert (row["response_before"] is not None) == bool(sign)
    found = store.find(rows[0]["task"], rows[0]["item"])
    assert found is not None
    assert {name: found[name] for name in rows[0]} == rows[0]
    assert store.find("tales", "0") is None


@pytest.mark.parametrize("damage", ["no file", "no parquet", "other columns", "cut off", "a bit"])
def test_a_damaged_comparison_is_refused_in_one_line(
    saved: Path, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "map.json").write_bytes((saved / "plain" / "map.json").read_bytes())
    items = folder / "items.parquet"
    good = (saved / "plain" / "items.parquet").read_bytes()
    if damage == "no parquet":
        items.write_bytes(b"PAR1 no")
    elif damage == "cut off":
        items.write_bytes(good[: len(good) // 2])
    elif damage == "a bit":
        items.write_bytes(good[:1000] + bytes([good[1000] ^ 4]) + good[1001:])
    elif damage == "other columns":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"task": ["a"]}), items)
    with pytest.raises(InputError, match=re.escape(str(folder))) as caught:
        open_saved(folder)
    assert "\n" not in str(caught.value)


def test_a_save_that_ended_half_way_is_whole(saved: Path, tmp_path: Path) -> None:
    """The new items came, the new map did not: the items bring their own."""
    for name, source in (("map.json", "plain"), ("items.parquet", "hostile")):
        (tmp_path / name).write_bytes((saved / source / name).read_bytes())
    opened, whole = open_saved(tmp_path), open_saved(saved / "hostile")
    assert opened.result == whole.result
    assert opened.store.total == whole.store.total


def test_saving_again_does_not_mix_with_what_is_open(saved: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.parquet"
    items.write_bytes((saved / "plain" / "items.parquet").read_bytes())
    store = ItemStore(items)
    store.page(Filter())
    with replacing(items) as fresh:
        fresh.write_bytes((saved / "hostile" / "items.parquet").read_bytes())
    with pytest.raises(InputError, match="was saved again while it was open"):
        store.page(Filter())


def test_only_saved_comparisons_are_found_and_links_do_not_lead_out(
    saved: Path, tmp_path: Path
) -> None:
    assert [folder.name for folder in find_saved(saved)] == ["hostile", "plain"]
    assert find_saved(saved / "plain") == [saved / "plain"]
    (tmp_path / "link").symlink_to(saved / "plain")
    assert find_saved(tmp_path) == []
    assert find_saved(tmp_path / "nowhere") == []


# --- who is let in --------------------------------------------------------------------------------


@pytest.fixture
def client(saved: Path) -> Iterator[Client]:
    comparisons = [open_saved(folder) for folder in find_saved(saved)]
    app = make_app(comparisons, host="127.0.0.1", token=TOKEN)
    with Client(app) as found:
        yield found


class Client:
    """Asks the application without a socket."""

    def __init__(self, app: Any) -> None:
        self.inner = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOME)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run(self.inner.aclose())

    def enter(self) -> Client:
        assert self.get("/", params={"token": TOKEN}).status_code == 303
        return self

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self.inner.request(method, path, **more))


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    assert client.get("/").status_code == 403
    assert client.get("/", params={"token": "wrong"}).status_code == 403
    answer = client.get("/2/items?transition=gained&token=" + TOKEN)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/2/items?transition=gained"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/").status_code == 200
    assert client.get(f"//elsewhere.example/?token={TOKEN}").headers["location"][:2] != "//"


@pytest.mark.parametrize(
    ("host", "let_in"),
    [
        ("127.0.0.1:8000", True),
        ("localhost:8000", True),
        ("LOCALHOST", True),
        ("[::1]:8000", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8000", False),
        ("", False),
    ],
)
def test_the_host_must_be_this_machine(client: Client, host: str, let_in: bool) -> None:
    client.enter()
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == (200 if let_in else 421)


def test_nothing_can_be_changed_and_no_path_leads_out(client: Client) -> None:
    client.enter()
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/1/items").status_code == 405
    for path in ("/3/", "/0/", "/-1/", "/map.json", "/1/items.parquet", "/../../etc/passwd",
                 "/1/..%2f..%2fetc/passwd", "/%2e%2e/", "/1/item?task=..&item=../map.json",
                 "/static/", "/docs"):  # fmt: skip
        assert client.get(path).status_code == 404, path
    for query in ("start=-1", "start=x", "start=" + "9" * 30, "transition=lost"):
        assert client.get(f"/2/items?{query}").status_code == 400, query


def test_every_answer_carries_its_guards(client: Client) -> None:
    refused = client.get("/1/")
    client.enter()
    for answer in (refused, client.get("/"), client.get("/1/"), client.get("/2/items")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
    policy = client.get("/1/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy


def test_the_index_names_every_comparison_as_text(client: Client) -> None:
    text = client.enter().get("/").text
    assert 'href="1/"' in text
    assert 'href="2/"' in text
    assert "model before" in text
    assert text.count("<script") == 1  # ours, which switches the colours
    assert "&lt;/script&gt;" in text


def test_the_exported_table_is_safe_for_a_spreadsheet(client: Client) -> None:
    answer = client.enter().get("/1/items.csv", params={"transition": "forgotten"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    found = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert found
    assert all(row["prompt_before"].startswith("'=cmd") for row in found)
    assert {row["transition"] for row in found} == {"forgotten"}


# --- the command, in a process of its own ---------------------------------------------------------

START = "import sys; from forgetmap.views.serve import serve; serve(sys.argv[1:])"


@pytest.fixture
def started(saved: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    yield from _started(saved)


def _started(*paths: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", START, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, (line, process.stderr.read() if process.poll() is not None else "")
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def test_the_page_asks_its_server_for_items(
    started: tuple[subprocess.Popen[str], str], rows: list[dict[str, Any]]
) -> None:
    _, address = started
    home = address.split("?")[0]
    assert home.startswith("http://127.0.0.1:")
    with chromium() as browser:
        context = {"color_scheme": "dark"}
        row = next(row for row in rows if row["transition"] == "forgotten")
        link = f"{home}2/?token={address.split('token=')[1]}#item/{row['task']}/{row['item']}"
        found = visit(browser, link, **context)
        page = found.page
        assert "token" not in page.url
        assert row["response_after"] in found.text("#item-detail")
        found.page.locator("#transition input[value='']").check(force=True)
        found.wait_for_text("#item-count", "160 items")
        page.fill("#item-text", "question 1")
        hits = sum("question 1" in (r["prompt_before"] or "").lower() for r in rows)
        found.wait_for_text("#item-count", f"{hits} items")
        with page.expect_download() as waiting:
            page.click("#export")
        exported = waiting.value.path().read_bytes().decode()
        assert len(list(csv.DictReader(io.StringIO(exported, newline="")))) == hits
        page.fill("#item-text", "")
        found.wait_for_text("#item-count", "160 items")
        page.evaluate("document.getElementById('item-box').scrollTop = 1e6")
        page.wait_for_selector("#item-list tr[aria-rowindex='161'] .question")
        found.assert_quiet(home)
        page.click("text=All comparisons")
        page.click("ol.index a >> nth=0")
        page.wait_for_selector("html[data-ready]")
        assert page.evaluate("window.pwned") is None
        found.assert_quiet(home)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly(started: tuple[subprocess.Popen[str], str], how: int) -> None:
    process, address = started
    assert httpx.get(address, follow_redirects=True).status_code == 200
    process.send_signal(how)
    out, err = process.communicate(timeout=900)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("ended\n")


def test_two_logs_are_compared_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for process, address in _started(EXAMPLE / "before", EXAMPLE / "after"):
        with httpx.Client(follow_redirects=True) as client:
            assert "Lost 8.2\u00a0% (" in client.get(address).text
            home = address.split("?")[0]
            assert client.get(f"{home}1/items").json()["total"] == 1456
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=900)
    assert list(tmp_path.iterdir()) == []


def test_open_opens_the_address_that_is_printed(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("forgetmap.views.serve._run", lambda *_: None)
    said: list[str] = []
    serve([saved], open_browser=True, say=said.append)
    assert said[0] == f"2 comparisons at {opened.get(timeout=900)}"


@pytest.mark.parametrize(
    ("host", "warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)]
)
def test_who_lets_other_machines_in_is_warned(
    saved: Path, monkeypatch: pytest.MonkeyPatch, host: str, warned: bool
) -> None:
    monkeypatch.setattr("forgetmap.views.serve._run", lambda *_: None)
    said: list[str] = []
    serve([saved], host=host, say=said.append)
    told = [line for line in said if line.startswith("Warning: ")]
    assert len(told) == warned
    assert all(host in line and "can read the logs" in line for line in told)


def test_what_cannot_be_served_is_refused_in_one_line(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no saved comparison"):
        serve([saved, tmp_path])
    with pytest.raises(InputError, match="holds no saved comparison"):
        serve([tmp_path])
    with pytest.raises(InputError, match="task_map: for comparing two logs"):
        serve([saved], task_map="tasks.csv")
    with pytest.raises(InputError, match="--port"):
        serve([saved], host="192.0.2.1", port=80)


# --- the site of a study --------------------------------------------------------------------------


def test_a_study_is_served_page_by_page(tmp_path: Path) -> None:
    write_site(made_result(4, 3, 2), tmp_path / "site")
    made = mapped(made_log("before"), made_log("after"), CATEGORIES)
    (tmp_path / "site" / "pairs").mkdir()
    write_report(made, tmp_path / "site" / "pairs" / "one.html")
    (tmp_path / "secret.html").write_text("not yours")
    (tmp_path / "site" / "pairs" / "out.html").symlink_to(tmp_path / "secret.html")
    (tmp_path / "site" / "pairs" / "odd.html").write_text("<script>alert(1)</script>")
    pages = find_pages(tmp_path / "site")
    with Client(make_site_app(pages, host="127.0.0.1", token=TOKEN)) as client:
        assert client.get("/").status_code == 403
        client.enter()
        first = client.get("/")
        assert "Study of 4 pairs" in first.text
        policy = first.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert policy.endswith("form-action 'none'; frame-ancestors 'none'")
        assert "unsafe" not in policy
        assert client.get("/index.html").text == first.text
        assert client.get("/pairs/one.html").status_code == 200
        away = ("/study.json", "/pairs/out.html", "/pairs/%2e%2e/study.json", "/etc/passwd")
        for wrong in away:
            assert client.get(wrong).status_code == 404, wrong
        odd = client.get("/pairs/odd.html")
        assert odd.status_code == 500
        assert "is not a page that forgetmap wrote" in odd.text


def test_a_study_takes_no_options_for_logs(tmp_path: Path) -> None:
    write_site(made_result(2, 2, 0, bare=True), tmp_path / "site")
    with pytest.raises(InputError, match="task_map: for comparing two logs; a study keeps"):
        serve([tmp_path / "site"], task_map="harmon")
