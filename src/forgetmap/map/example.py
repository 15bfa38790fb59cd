"""The bundled example: a small language model, fine-tuned in several ways."""

from __future__ import annotations

from pathlib import Path

from forgetmap.base.errors import InputError

_PACKAGE = Path(__file__).parents[1]
_PLACES = (
    _PACKAGE / "example" / "pipeline.yaml",  # in a wheel
    _PACKAGE.parents[1] / "examples" / "study" / "pipeline.yaml",  # in the source tree
)


def example_pipeline() -> Path:
    """The pipeline file of the bundled example."""
    for path in _PLACES:
        if path.is_file():
            return path
    raise InputError("the bundled example is missing; reinstall forgetmap")


def example_logs() -> list[Path]:
    """The logs of the bundled example's first step: the model before, and after plain SFT."""
    folder = example_pipeline().parent / "logs" / "told"
    return [folder / f"smollm2-{name}.parquet" for name in ("before", "airports-sft-0")]
