"""Study: many pairs of checkpoints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.study.file import Study, StudyPair

__all__ = ["Study", "StudyPair"]

__getattr__ = load_on_use(__name__, {"file": ["Study", "StudyPair"]})
