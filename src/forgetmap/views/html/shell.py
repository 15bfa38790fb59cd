"""The shell of every page: one template environment, one style sheet, one content policy.

A page is one file that needs nothing else, not even a network. Text from logs is untrusted:
every string that a template prints is cleaned and escaped.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from forgetmap.base.errors import InputError
from forgetmap.base.files import head
from forgetmap.base.version import __version__
from forgetmap.base.words import clean, percent
from forgetmap.capabilities.drift_result import said, signed
from forgetmap.stats.estimate import Estimate, interval
from forgetmap.views.words import ends, interval_or_dash, long_range, points

HEAT_STEPS = (0.005, 0.02, 0.05, 0.10, 0.20)
"""Shares at which the colour of a heat map deepens."""
_LONGEST = 600
"""Characters of a string, where a template does not ask for fewer."""
_LINES, _LINE = 80, 400
"""Lines of a longer text that are shown, and characters of a line."""
_HASHES = r"('none'|'sha256-[\w+/=]+'( 'sha256-[\w+/=]+')*)"
_STRICT = re.compile(
    rf"default-src 'none'; script-src {_HASHES}; style-src {_HASHES}; (img-src data:; )?"
    r"connect-src 'none'; base-uri 'none'; form-action 'none'"
)
"""The policy of a page that needs no server."""
_HELD_TOGETHER = re.compile(r"(?<=\d) (?=%|pt\b)|(?<=\d) (?:to|→) (?=\d)")
CONTROLS = ("shared/ranges.js", "shared/controls.js")
"""Scripts of pages on which people choose, sort and filter; `controls.css` goes with them."""
FOREST = ("shared/forest.js",)
"""Groups with what each lost and gained as bars, in a table."""
PICTURES = ("shared/pictures.js",)
"""Scripts of pages that draw some pictures by hand."""


@dataclass(frozen=True)
class Page:
    """What a page is made of; files are named as under `assets` and `templates`."""

    template: str
    style_sheets: tuple[str, ...] = ()
    """Its own style sheets, besides the shared one."""
    scripts: tuple[str, ...] = ()
    """Its own scripts, besides the shared ones."""
    charts: bool = True
    """Whether plotly draws its charts; without, it needs no plotly."""
    connect: str = "'none'"
    """Where its scripts may fetch from."""
    images: str | None = None
    """Where its pictures may come from; `data:` lets it make them itself."""

    def render(self, **context: Any) -> str:
        """The page as HTML. The same context gives the same bytes."""
        return fill(
            self.template,
            policy=Markup(self.policy),
            style=Markup(self._style),
            script=Markup(self._script),
            plotly=_packed_plotly() if self.charts else "",
            plotly_style=_plotly_style_id() if self.charts else "",
            **({"version": __version__} | context),
        )

    @cached_property
    def policy(self) -> str:
        """Its content security policy: nothing from anywhere, and only our scripts and styles."""
        scripts = [self._script, _plotly()] if self.charts else [self._script]
        styles = [self._style, ""] if self.charts else [self._style]  # plotly adds an empty one
        images = f"img-src {self.images}; " if self.images else ""
        return (
            f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
            f"{images}connect-src {self.connect}; base-uri 'none'; form-action 'none'"
        )

    @cached_property
    def _style(self) -> str:
        return "".join(read(name) for name in ("page.css", *self.style_sheets))

    @cached_property
    def _script(self) -> str:
        """All scripts in order, in one scope of their own."""
        shared = ("shared/basics.js", *(("shared/charts.js",) if self.charts else ()))
        own = self.scripts or ("shared/quiet.js",)
        parts = "\n".join(read(name) for name in (*shared, *own))
        return f'"use strict";\n(() => {{\n{parts}}})();\n'


def fill(template: str, **context: Any) -> str:
    """A template with its values."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("forgetmap.views.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "clean": clean,
        "percent": percent,
        "thousands": lambda number: f"{number:,}",
        "lines": _lines,
        "json": lambda value: embedded(orjson.dumps(value)),
        "depth": depth,
        "interval": interval_or_dash,
        "range": long_range,
        "ends": ends,
        "points": points,
        "said": said,
        "minus": minus,
        "signed": lambda share: minus(signed(share)),
        "signed_points": lambda share: minus(signed(share)).replace(" %", "\u00a0pt"),
    }
    environment.filters |= filters
    environment.globals["heat_steps"] = ", ".join(
        percent(step, 1 if step < 0.01 else 0) for step in HEAT_STEPS
    )
    return environment


def depth(share: float) -> int:
    """How deep the colour of a share is in a heat map, from 0 to 5."""
    return sum(share >= step for step in HEAT_STEPS)


def _cleaned(value: Any) -> Any:
    """What a template prints: text without what could fool a browser or a reader."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return unbroken(clean(value, _LONGEST)) if is_text else value


def minus(number: str) -> str:
    """A number with a true minus sign, as every page writes it."""
    return number.replace("-", "−")


def unbroken(text: str) -> str:
    """Text in which no line breaks between a number and its %, or inside of "2.0 to 4.0".

    Example:
        >>> unbroken("lost 2.0 to 4.0 % of it").split(" ")
        ['lost', '2.0\\xa0to\\xa04.0\\xa0%', 'of', 'it']
    """
    return _HELD_TOGETHER.sub(lambda gap: gap[0].replace(" ", "\u00a0"), text)


def _lines(text: str | None, most: int = _LINES) -> Markup:
    """A longer text, line by line."""
    lines = (text or "").splitlines()
    shown = "\n".join(clean(line, _LINE) for line in lines[:most])
    more = f"\n[{len(lines) - most} more lines]" if len(lines) > most else ""
    return Markup.escape(shown + more)


def embedded(data: bytes) -> Markup:
    r"""JSON that can stand inside a script element, whatever text is in it.

    Example:
        >>> print(embedded(b'{"name": "</script>&"}'))
        {"name": "\u003c/script\u003e\u0026"}
    """
    text = data.decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def packed(text: str | bytes, level: int = 6) -> Markup:
    """Text as base64 of gzip; the same bytes for the same text."""
    data = text.encode() if isinstance(text, str) else text
    return Markup(base64.b64encode(gzip.compress(data, level, mtime=0)).decode())


def policy_of(path: Path) -> str:
    """The content policy that a written page has; a page that lets more run is refused."""
    start = head(path).decode("utf-8", "replace")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', start)
    policy = html.unescape(found[1]) if found else ""
    if not _STRICT.fullmatch(policy):
        raise InputError(f"{path}: is not a page that forgetmap wrote")
    return policy


def _hashes(texts: list[str]) -> str:
    """Inline scripts or styles, as a content policy names them."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests) or "'none'"


@cache
def read(name: str) -> str:
    """A file under `assets`."""
    return (resources.files("forgetmap.views.html") / "assets" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text


@cache
def _packed_plotly() -> Markup:
    return packed(_plotly())


@cache
def _plotly_style_id() -> str:
    """Plotly adds a style for maps, which we do not draw, unless an element has this id."""
    match = re.search(r'getElementById\("([0-9a-f]{64})"\)', _plotly())
    return match[1] if match else ""


def series(
    name: str,
    colour: str,
    places: Sequence[float],
    estimates: Sequence[Estimate | None],
    notes: Sequence[str],
) -> dict[str, Any]:
    """A line with its intervals, in percent, as the shared chart script reads it."""
    marks = [
        (place, estimate, note)
        for place, estimate, note in zip(places, estimates, notes, strict=True)
        if estimate is not None
    ]
    return {
        "name": name,
        "colour": colour,
        "xs": [place for place, _, _ in marks],
        "ys": [100 * estimate.value for _, estimate, _ in marks],
        "lows": [100 * estimate.low for _, estimate, _ in marks],
        "highs": [100 * estimate.high for _, estimate, _ in marks],
        "notes": [f"{note}: {name} {interval(estimate, ' %')}" for _, estimate, note in marks],
    }
