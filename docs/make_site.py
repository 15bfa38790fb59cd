"""Lay out the pages of the docs site: the Markdown of the repository, the API, a live gallery.

    python docs/make_site.py            # writes build/pages, then run: mkdocs build --strict
    python docs/make_site.py --plain    # without the pictures of the gallery

Pages keep their places, so that the links between them work as they do in the repository.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from itertools import product
from pathlib import Path

import make_drop

import forgetmap
from forgetmap.base.files import make_folder, write_text
from forgetmap.gate.baseline import compare_with_baseline, save_baseline
from forgetmap.gate.policy import Policy
from forgetmap.map.comparison import compare_logs
from forgetmap.map.example import example_pipeline
from forgetmap.map.saved import find_saved, open_saved, save_comparison
from forgetmap.views.html.index import render as render_index
from forgetmap.views.html.report import render as render_report
from forgetmap.views.html.theory import write_page
from forgetmap.views.html.trend import write_trend

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
TOP = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
LOGS = ROOT / "examples" / "study" / "logs"
WIDTHS = (1440, 768, 360)
GALLERY = {
    "report": "What one model lost and gained: the report of one comparison",
    "lineage": "A pipeline of checkpoints: where it was lost, what came back",
    "study/index": "Many pairs at once: the study of Harmon et al. as data",
    "drift": "Behaviour: what the model can do, will do, and how",
    "trend": "A baseline over time, with the gate's limit",
    "comparisons/index": "Many comparisons: where `forgetmap serve` begins",
    "theory": "The theory lab: what an objective must do",
}
"""Every page that forgetmap makes, and what it shows."""
DROP = """[Drop two logs](../drop/index.html) and see what was lost. They stay on your computer:
the page sends nothing. [What it takes and shows](../docs/how-to/drop.md)."""
API = """# Python

Every public name of the package. [Use it from Python](../how-to/python.md) shows them at work.

"""
PUBLIC = (
    *("api.compare", "api.lineage", "api.study", "api.drift", "api.gate", "api.demo"),
    *("evaluate.run.evaluate", "mitigate.merge.merging.merge", "readers.registry.read"),
    *("base.display.Result", "map.result.ForgettingMap", "map.result.Cell"),
    *("lineage.result.Lineage", "study.result.StudyResult", "capabilities.drift_result.Drift"),
    *("samples.table.Samples", "map.task_maps.TaskMap", "readers.framework.ReadOptions"),
    *("gate.judgement.check_gate", "samples.identity.content_hash"),
    *("base.errors.InputError", "base.errors.WithheldError"),
)


def main() -> None:
    """Write all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES / "docs", ignore=shutil.ignore_patterns("*.py", "drop"))
    for name in TOP:
        shutil.copy(ROOT / name, PAGES / name)
    shutil.copy(ROOT / "README.md", PAGES / "index.md")
    for page in sorted(PAGES.rglob("*.md")):
        copy_linked(page)
    blocks = "\n".join(f"::: forgetmap.{name}\n" for name in PUBLIC)
    (PAGES / "docs" / "reference" / "python.md").write_text(API + blocks, encoding="utf-8")
    why_not = make_drop.build(PAGES / "drop")
    if why_not:
        print(f"the page that maps logs in the browser is left out: {why_not}", file=sys.stderr)
    write_gallery(PAGES / "gallery", pictures="--plain" not in sys.argv, drop=not why_not)


def copy_linked(page: Path) -> None:
    """Bring the files that a page links to, and the pages behind those."""
    text = page.read_text(encoding="utf-8")
    for target, _ in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target).resolve()
        source = ROOT / place.relative_to(PAGES)
        if not place.exists() and source.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
            if place.suffix == ".md":
                copy_linked(place)
    text = text.replace("](README.md)", "](index.md)") if page.parent == PAGES else text
    page.write_text(re.sub(r"\]\((\.\.?/)+README\.md\)", "](index.md)", text), encoding="utf-8")


def write_gallery(folder: Path, *, pictures: bool, drop: bool) -> None:
    """Make every kind of page from the bundled examples, and pictures of each."""
    folder.mkdir(parents=True)
    scores, told = LOGS / "scores", LOGS / "told"
    before, after = scores / "smollm2-before.parquet", scores / "smollm2-airports-sft-0.parquet"
    forgetmap.demo(report=folder / "report.html")
    forgetmap.lineage(example_pipeline(), report=folder / "lineage.html")
    forgetmap.study("published").report(folder / "study")
    forgetmap.drift(before, after, manifest="open-suite", report=folder / "drift.html")
    write_page(folder / "theory.html")
    with tempfile.TemporaryDirectory() as spare:
        write_kept(folder, Path(spare), told)
    taken = take_pictures(folder, drop=drop) if pictures else set()
    lines = [
        "# Gallery",
        "",
        "Every page is live: open it and click. None of them asks the network.",
    ]
    if drop:
        lines += ["", "## Your own logs, here in the browser", "", DROP, ""]
        lines += pictures_of("drop", taken, "../drop/index.html")
    for name, says in GALLERY.items():
        lines += ["", f"## {says}", "", f"[Open the page]({name}.html)", ""]
        lines += pictures_of(name.partition("/")[0], taken, f"{name}.html")
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_kept(folder: Path, spare: Path, logs: Path) -> None:
    """Pages about kept comparisons: a baseline over time, and what `serve` shows."""
    before = logs / "smollm2-before.parquet"
    save_baseline("before", before, store=spare / "store")
    policy = Policy.model_validate(
        {"limits": [{"where": "old", "measure": "forgetting", "max": 0.05}]}
    )
    for method in ("sft-0", "replay-25-0", "anchor-0", "retention-0", "merge-linear-0.5-0"):
        after = logs / f"smollm2-airports-{method}.parquet"
        how = {"new": ["airports"], "draws": 1000}
        compare_with_baseline("before", after, store=spare / "store", policy=policy, **how)
        if method in ("sft-0", "replay-25-0"):
            found = compare_logs(before, after, causes=True, **how)
            save_comparison(found, spare / "saved" / method)
    write_trend("before", folder / "trend.html", store=spare / "store")
    saved = [open_saved(found) for found in find_saved(spare / "saved")]
    for place in ("", *map(str, range(1, len(saved) + 1))):
        make_folder(folder / "comparisons" / place)
    write_text(folder / "comparisons" / "index.html", render_index(saved))
    for number, one in enumerate(saved, 1):
        text = render_report(one.result, one.store, index=True)
        write_text(folder / "comparisons" / str(number) / "index.html", text)


def pictures_of(name: str, taken: set[str], page: str) -> list[str]:
    """The pictures of one page side by side; each leads to the page."""
    shots = sorted(shot for shot in taken if shot.startswith(f"{name}-"))
    images = [f"[![{shot}]({shot})]({page})" for shot in shots]
    return ['<div class="gallery" markdown>', *images, "</div>"] if shots else []


def take_pictures(folder: Path, *, drop: bool) -> set[str]:
    """Pictures at three widths, light and dark; none where there is no Chromium."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser_path:
        print("no Chromium here: the gallery has no pictures", file=sys.stderr)
        return set()
    from playwright.sync_api import sync_playwright

    pages = {name.partition("/")[0]: folder / f"{name}.html" for name in GALLERY}
    if drop:
        pages["drop"] = PAGES / "drop" / "index.html"
    taken = set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for (name, path), scheme, width in product(pages.items(), ("light", "dark"), WIDTHS):
            size = {"width": width, "height": 900}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(path.as_uri())
            if name != "drop":  # which takes its scripts from a server alone
                page.wait_for_selector("html[data-ready]")
            taken.add(shot := f"{name}-{width}-{scheme}.png")
            page.screenshot(path=folder / shot)
            page.close()
        browser.close()
    return taken


if __name__ == "__main__":
    main()
