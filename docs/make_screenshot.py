"""Make the pictures of the README and the tutorial: the published study, the bundled example.

python docs/make_screenshot.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from forgetmap import demo
from forgetmap.study.published import published_study
from forgetmap.views.figures.study import write_study_figures

PICTURES = Path(__file__).resolve().parent / "images"
WIDTH = 1240


def main() -> None:
    """Write the pages, open them, take the pictures."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser_path:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        report = Path(temporary, "report.html")
        demo(report=report)
        take(browser, report, "report.png", height=1000)  # down to the end of the forest plot
        write_study_figures(published_study(), Path(temporary))
        take(browser, Path(temporary, "heat_map.svg"), "study.png", height=1000, part="svg")
        browser.close()


def take(
    browser: Browser, page_file: Path, name: str, *, height: int = 1000, part: str | None = None
) -> None:
    """A picture of the top of a page, or of a whole part of it."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.goto(page_file.as_uri())
    if part is None:
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=PICTURES / name)
    else:
        page.locator(part).screenshot(path=PICTURES / name)
    page.close()


if __name__ == "__main__":
    main()
