"""The shell of all pages: text is cleaned and escaped, and the policy names what may run."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from jinja2 import UndefinedError

from forgetmap.views.figures import style
from forgetmap.views.html import drift, index, lineage, report, shell, study, theory, trend
from places import ROOT
from report_logs import HOSTILE

PAGES = {
    "drift": drift._PAGE,
    "index": index.PAGE,
    "lineage": lineage._PAGE,
    "report": report.page(remote=False),
    "study": study._PAGE,
    "theory": theory._PAGE,
    "trend": trend._PAGE,
}
TEMPLATES = sorted((ROOT / "src/forgetmap/views/html/templates").glob("*.html"))


def rendered(template: str, **context: object) -> str:
    return shell._environment().from_string(template).render(**context)


def test_every_text_is_cleaned_and_escaped_unasked() -> None:
    for template in ("{{ text }}", "{{ text|clean(80) }}", "{{ text|lines }}", "{{ [text]|json }}"):
        shown = rendered(template, text=f"{HOSTILE}<script>alert(1)</script>")
        assert "<" not in shown, template
        assert not {"\x00", "\x1b", "\u2028"}.intersection(shown), template
        assert "\u202e" not in shown or "json" in template
    assert len(rendered("{{ text }}", text="x" * 10_000)) == shell._LONGEST
    assert rendered("{{ text|lines(2) }}", text="a\nb\nc") == "a\nb\n[1 more lines]"


def test_a_value_that_was_forgotten_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        rendered("{{ nothing }}")


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_names_what_a_page_holds_and_no_more(name: str) -> None:
    page = PAGES[name]
    assert "unsafe" not in page.policy
    assert page.policy.startswith("default-src 'none'; ")
    inline = [page._style, page._script, *([shell._plotly(), ""] if page.charts else [])]
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline}
    assert set(re.findall(r"'sha256-([^']+)'", page.policy)) == digests


@pytest.mark.parametrize("name", PAGES)
def test_every_page_switches_its_colours(name: str) -> None:
    assert "setUpTheme();" in PAGES[name]._script


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_template_opens_a_door(path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|\son\w+=|https?://", text)
    if path.stem != "notebook":  # a fragment for a notebook, which has no style sheet
        assert " style=" not in text
    if path.stem not in ("base", "items", "parts", "notebook"):
        assert text.startswith('{% extends "base.html" %}')


def test_plotly_still_has_the_style_that_we_keep_out() -> None:
    """A page with charts gives an element this id, so that plotly adds no style of its own."""
    assert re.fullmatch(r"[0-9a-f]{64}", shell._plotly_style_id())


def test_pages_and_figures_have_the_same_colours() -> None:
    tokens = dict(re.findall(r"--(\w+): light-dark\((#\w+),", shell.read("page.css")))
    names = {"lost": style.LOST, "won": style.WON, "kept": style.KEPT, "never": style.NEVER}
    assert {name: tokens[name] for name in names} == names
