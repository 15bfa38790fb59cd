"""Make the picture of the report in the README: the bundled example in Chromium.

python docs/make_screenshot.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from forgetmap import demo

PICTURE = Path(__file__).resolve().parent / "images" / "report.png"
SIZE = {"width": 1240, "height": 1250}
"""Down to the end of the forest plot."""


def main() -> None:
    """Write the report of the example, open it, take the picture."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser_path:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        report = Path(temporary, "report.html")
        demo(report=report)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
