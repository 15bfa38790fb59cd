"""The report over a local server, for logs that do not fit in a file.

A request needs the token, which is part of the printed address and is then kept in a cookie. The
server reads what it was given and nothing else; no request names a path.
"""

from __future__ import annotations

import csv
import io
import ipaddress
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from dataclasses import asdict
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import spreadsheet_safe
from forgetmap.map.comparison import compare_logs
from forgetmap.map.flips import COLUMNS
from forgetmap.map.items import TRANSITIONS, Filter
from forgetmap.map.saved import SavedComparison, find_saved, open_saved, save_comparison
from forgetmap.views.html import index as index_page
from forgetmap.views.html.report import page as report_page
from forgetmap.views.html.report import render
from forgetmap.views.html.shell import Page, policy_of
from forgetmap.views.html.study import INDEX, find_pages

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.exceptions import HTTPException
    from starlette.responses import (
        FileResponse,
        HTMLResponse,
        RedirectResponse,
        Response,
        StreamingResponse,
    )
    from starlette.routing import Route
except ImportError as error:
    raise need("forgetmap serve", "serve") from error

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def serve(
    paths: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = False,
    say: Callable[[str], None] = print,
    **comparing: Any,
) -> None:
    """Serve the report until interrupted.

    Args:
        paths: Folders written by `compare(save=...)`, or folders of such; or the folder of one
            study, as `write_site` writes it; or two logs, which are compared first.
        host: Where to listen; only this machine by default.
        port: Which port; 0 takes a free one.
        open_browser: Also open the page.
        say: Called with the lines that tell where the page is.
        comparing: Arguments of `forgetmap.compare`, for two logs only.
    """
    listening = _listen(host, port)
    with listening, tempfile.TemporaryDirectory(prefix="forgetmap-") as folder:
        token = secrets.token_urlsafe(24)
        pages = find_pages(Path(paths[0])) if len(paths) == 1 else {}
        if pages:
            _refuse(comparing, "a study keeps what it was made with")
            app = make_site_app(pages, host=host, token=token)
            what = f"a study with {len(pages) - 2} pages of pairs"
        else:
            comparisons = [open_saved(saved) for saved in _folders(paths, folder, comparing)]
            app = make_app(comparisons, host=host, token=token)
            what = f"{len(comparisons)} comparison{'s' * (len(comparisons) > 1)}"
        number = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{number}/?token={token}"
        say(f"{what} at {address}")
        if not _is_loopback(listening):
            say(
                f"Warning: it listens at {host}. Everyone who reaches this machine and has the "
                "address can read the logs, and nothing is encrypted."
            )
        say("Ctrl-C ends it.")
        if open_browser:
            # In a thread: a browser that runs in the terminal would keep us from serving it.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        _run(app, listening)
        say("ended")


def _run(app: ASGIApp, listening: socket.socket) -> None:
    """Run until interrupted or told to end; either way, what was temporary is then removed."""
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    ending = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn has ended in good order and passes the signal on
    finally:
        signal.signal(signal.SIGTERM, ending)


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before the long part, so that a port that is taken shows at once."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen at {host} port {port} ({reason}); choose another with --port"
        ) from error


def _is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can reach a socket."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def _folders(paths: Sequence[str | Path], spare: str, comparing: dict[str, Any]) -> Sequence[Path]:
    """Saved comparisons at the paths; two logs are compared into the spare folder first."""
    saved = {str(path): find_saved(path) for path in paths}
    if not any(saved.values()) and len(paths) == 2:
        save_comparison(compare_logs(*paths, causes=True, **comparing), spare)
        return find_saved(spare)
    for path, folders in saved.items():
        if not folders:
            raise InputError(
                f"{path}: holds no saved comparison; give folders written by forgetmap compare "
                "--save or forgetmap study --site, or two logs"
            )
    _refuse(comparing, "a saved comparison keeps what it was made with")
    return [folder for folders in saved.values() for folder in folders]


def _refuse(comparing: dict[str, Any], why: str) -> None:
    """Refuse options that only say how two logs are compared."""
    if given := [name for name, value in comparing.items() if value is not None]:
        raise InputError(f"{', '.join(given)}: for comparing two logs; {why}")


# --- answers --------------------------------------------------------------------------------------


def make_app(comparisons: Sequence[SavedComparison], *, host: str, token: str) -> ASGIApp:
    """The web application over some comparisons, behind its guard."""

    def chosen(request: Request) -> SavedComparison:
        number: int = request.path_params["number"]
        if not 1 <= number <= len(comparisons):
            raise HTTPException(404)
        return comparisons[number - 1]

    def index(_request: Request) -> Response:
        if len(comparisons) == 1:
            return RedirectResponse("1/", 303)
        return _html(index_page.PAGE, index_page.render(comparisons))

    def page(request: Request) -> Response:
        saved = chosen(request)
        text = render(saved.result, saved.store, remote=True, index=len(comparisons) > 1)
        return _html(report_page(remote=True), text)

    def items(request: Request) -> Response:
        return _json(asdict(chosen(request).store.page(_filter(request), _start(request))))

    def item(request: Request) -> Response:
        asked = request.query_params
        record = chosen(request).store.find(asked.get("task", ""), asked.get("item", ""))
        if record is None:
            raise HTTPException(404)
        return _json(record)

    def table(request: Request) -> Response:
        lines = _csv_lines(chosen(request), _filter(request))
        name = {"content-disposition": 'attachment; filename="items.csv"'}
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=name)

    routes = [
        Route("/", index),
        Route("/{number:int}/", page),
        Route("/{number:int}/items", items),
        Route("/{number:int}/item", item),
        Route("/{number:int}/items.csv", table),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={InputError: _damaged}), host, token)


def make_site_app(pages: Mapping[str, Path], *, host: str, token: str) -> ASGIApp:
    """The web application over the pages of a study, behind its guard."""

    def page(request: Request) -> Response:
        path = pages.get(request.path_params.get("name", INDEX))
        if path is None:
            raise HTTPException(404)
        strict = f"{policy_of(path)}; frame-ancestors 'none'"
        headers = {"content-security-policy": strict}
        return FileResponse(path, media_type="text/html", headers=headers)

    routes = [Route("/", page), Route("/{name:path}", page)]
    return Guard(Starlette(routes=routes, exception_handlers={InputError: _damaged}), host, token)


def _damaged(_request: Request, error: Exception) -> Response:
    """Answer for a file that was cut or replaced after the start."""
    return _plain(500, str(error))


def _filter(request: Request) -> Filter:
    asked = {name: request.query_params.get(name, "") for name in asdict(Filter())}
    if asked["transition"] not in ("", *TRANSITIONS):
        raise HTTPException(400, "no such transition")
    return Filter(**asked)


def _start(request: Request) -> int:
    text = request.query_params.get("start", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise HTTPException(400, "start must be a number")
    return int(text)


def _html(page: Page, text: str) -> Response:
    strict = f"{page.policy}; frame-ancestors 'none'"
    return HTMLResponse(text, headers={"content-security-policy": strict})


def _json(content: object) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")


def _csv_lines(saved: SavedComparison, wanted: Filter) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS.names)
    for batch in saved.store.table(wanted):
        for record in batch.to_pylist():
            writer.writerow([spreadsheet_safe(value) for value in record.values()])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


# --- who gets in ----------------------------------------------------------------------------------


class Guard:
    """Lets a request pass that reads, names this machine, and knows the token."""

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self.app = app
        self.host = host
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(scope) or self.app
        await answer(scope, receive, send_strictly)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "this server is for reading")
        if not _is_this_machine(headers.get("host", ""), self.host):
            return _plain(421, "unknown host name; use the address that forgetmap printed")
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        cookie = f"forgetmap-{scope['server'][1]}"
        if given := dict(asked).get("token"):
            if not self._knows(given):
                return _plain(403, "wrong token; use the address that forgetmap printed")
            rest = urlencode([(name, value) for name, value in asked if name != "token"])
            path = "/" + scope["path"].lstrip("/")  # two slashes would lead to another machine
            answer = RedirectResponse(path + ("?" + rest if rest else ""), 303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="strict")
            return answer
        if not self._knows(_cookie(headers.get("cookie", ""), cookie)):
            return _plain(403, "no token; use the address that forgetmap printed")
        return None

    def _knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def _plain(status: int, text: str) -> Response:
    return Response(f"{text}\n", status, media_type="text/plain")


def _cookie(header: str, name: str) -> str:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie else ""


def _is_this_machine(header: str, host: str) -> bool:
    """Whether a Host header is one that a foreign web page cannot have made.

    A page that rebinds its own name to our address sends that name; numbers, `localhost` and the
    name we were told to listen at cannot be rebound.
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
    name = name.removeprefix("[").removesuffix("]").lower()
    if name in ("localhost", host.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
