"""Study: many pairs of checkpoints at once, and what they say together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import callable_package, load_on_use

if TYPE_CHECKING:
    from forgetmap.study.build import run_study
    from forgetmap.study.file import Study, StudyPair
    from forgetmap.study.result import StudyResult

__all__ = ["Study", "StudyPair", "StudyResult", "run_study"]

__getattr__ = load_on_use(
    __name__,
    {"build": ["run_study"], "file": ["Study", "StudyPair"], "result": ["StudyResult"]},
)

callable_package(__name__, "forgetmap.api:study")
