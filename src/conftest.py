"""Examples in modules that need torch or lm-eval are run where these are installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore: list[str] = []
if find_spec("torch") is None:
    collect_ignore += [f"forgetmap/evaluate/{name}.py" for name in ("generation", "scoring")]
if find_spec("lm_eval") is None:
    collect_ignore += ["forgetmap/evaluate/lm_eval_model.py"]
