"""A real Chromium for the tests of the report, and what a page did in it."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

READY = "html[data-ready]"
BREACHES = """document.addEventListener("securitypolicyviolation", (event) => {
    (window.breaches ??= []).push(`${event.violatedDirective}: ${event.blockedURI}`);
});"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium; where there is none the tests are skipped, but never in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if not found:
        reason = (
            "no Chromium or no playwright here: apt-get install chromium, pip install -e .[dev]"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page and everything it said, asked for and tried."""

    page: Page
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        """What an element says, with plain spaces."""
        return self.page.locator(selector).inner_text().replace("\u00a0", " ")

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element holds a text.

        Playwright's `wait_for_function` would evaluate a string, which the page's policy forbids.
        """
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_contain_text(text)

    def wait_for_count(self, selector: str, count: int) -> None:
        """Wait until there are so many of an element: old ones fade for half a second."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_count(count)

    def assert_quiet(self, allowed: str) -> None:
        """No error, no breach of the policy, no request but to `allowed`."""
        assert self.said == []
        assert self.page.evaluate("window.breaches ?? []") == []
        page = allowed.partition("#")[0]  # another test may have gone to a place in the page
        assert [url for url in self.requests if not url.startswith((page, "blob:"))] == []

    def assert_only_our_scripts(self) -> None:
        """Scripts that run are those whose hash the policy names; no element handles events."""
        policy = self.page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
        assert policy is not None
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        running = self.page.evaluate(
            """[...document.scripts].filter((script) => script.type === "" || script.src)
               .map((script) => script.textContent)"""
        )
        for text in running:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        handlers = """[...document.querySelectorAll("*")].flatMap((element) =>
            element.getAttributeNames().filter((name) => name.startsWith("on")))"""
        assert self.page.evaluate(handlers) == []


def visit(browser: Browser, url: str, *, width: int = 1280, **context: Any) -> Visit:
    """Open a page and wait until all of it is there."""
    page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
    found = Visit(page)
    page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.said.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.add_init_script(BREACHES)
    page.goto(url)
    page.wait_for_selector(READY)
    return found


def serious_faults(page: Page) -> list[str]:
    """What axe-core finds of serious or critical weight."""
    import axe_playwright_python

    script = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
    page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{fault['id']}: {node['target']}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def seen_whole(page: Page) -> None:
    """Scroll to the end and back: some charts are drawn when they come into sight."""
    height = page.evaluate("document.documentElement.scrollHeight")
    for top in [*range(0, height, 800), 0]:
        page.evaluate("(top) => window.scrollTo(0, top)", top)
        page.wait_for_timeout(60)
    page.wait_for_selector(READY)


CROWDED = """() => [...document.querySelectorAll(".chart, svg.small")].flatMap((chart) => {
    const frame = chart.getBoundingClientRect();
    const labels = [...chart.querySelectorAll("text")].flatMap((text) => {
        const { left, right, top, bottom, width } = text.getBoundingClientRect();
        const isShown = width > 0 && text.textContent.trim() && text.checkVisibility();
        return isShown ? [{ said: text.textContent, left, right, top, bottom }] : [];
    });
    const meets = (one, two) => one.left < two.right - 1 && two.left < one.right - 1
        && one.top < two.bottom - 2 && two.top < one.bottom - 2;
    const isCut = ({ left, right, top, bottom }) => left < frame.left - 1
        || right > frame.left + Math.max(frame.width, chart.scrollWidth ?? 0) + 1
        || top < frame.top - 1 || bottom > frame.bottom + 1;
    const overlaps = labels.flatMap((one, place) => labels.slice(place + 1)
        .filter((two) => meets(one, two)).map((two) => `${one.said} meets ${two.said}`));
    const cut = labels.filter(isCut).map(({ said }) => `${said} is cut off`);
    return [...overlaps, ...cut].map((fault) => `${chart.id}: ${fault}`);
}).concat([...document.querySelectorAll("h1, h2, h3, th, label, figcaption, .tile, .badge")]
    .filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1
        && getComputedStyle(part).display !== "inline")
    .map((part) => `${part.textContent.slice(0, 40)} does not fit`))"""


def crowded_labels(page: Page) -> list[str]:
    """Labels of charts that meet or leave their chart, and words that do not fit their place."""
    found: list[str] = page.evaluate(CROWDED)
    return found


CUT_OFF = """() => [...document.body.querySelectorAll("*")].flatMap((element) => {
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3);
    const isText = texts.some((node) => node.textContent.trim());
    const isMeant = element.closest(".chart, .skip");
    if (!isText || isMeant || !element.checkVisibility()) return [];
    const { overflowX } = getComputedStyle(element);
    const isCut = overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1;
    const isOpen = (one) => getComputedStyle(one).overflowX === "visible";
    let parent = element;
    while (parent && isOpen(parent)) parent = parent.parentElement;
    const isOutside = !parent && element.getBoundingClientRect().right > innerWidth + 1;
    return isCut || isOutside ? [`${element.tagName}: ${element.textContent.slice(0, 60)}`] : [];
})"""


def cut_off(page: Page) -> list[str]:
    """Texts that end at an edge where nobody can scroll to the rest."""
    found: list[str] = page.evaluate(CUT_OFF)
    return found
