"""The list of comparisons that `forgetmap serve` begins with."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.map.saved import SavedComparison
from forgetmap.views.html.shell import Page
from forgetmap.views.words import doubt, finding

PAGE = Page("index.html", ("index.css",), charts=False)


def render(comparisons: Sequence[SavedComparison]) -> str:
    """A card for each comparison; its link leads to its report."""
    return PAGE.render(
        comparisons=[(saved.name, saved.result) for saved in comparisons],
        finding=finding,
        doubt=doubt,
    )
