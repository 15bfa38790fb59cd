"""What looks at a model while it is trained: at its new task's score, and at what it writes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from materials import sample_texts
from transformers import TrainerCallback
from work import scores_of

from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.train.live import LiveModel, live_tokenizer_hash, still

LOOKS = (0, 5, 10, 20, 40, 80, 160, 320)
"""Steps after which the theory's trainings are sampled; the last step is one more."""
SAMPLED = 400
SAMPLE_TOKENS = 12
NEW = "town of"
"""What every text of the new mode holds."""


class Clock(TrainerCallback):  # type: ignore[misc]
    """Times the steps of a training; the first ones, which are slower, do not count."""

    def __init__(self) -> None:
        self._at: list[float] = []

    def on_step_end(self, *_: Any, **_parts: Any) -> None:
        """Note the time."""
        self._at.append(time.perf_counter())

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return (self._at[-1] - self._at[1]) / (len(self._at) - 2)


class Until(TrainerCallback):  # type: ignore[misc]
    """Ends a training once other items of the new task are answered so well: all learn as much."""

    def __init__(self, suite: Suite, task: str, score: float, every: int, out: Path) -> None:
        [self._task] = [one for one in suite.tasks if one.name == task]
        self._suite = Suite(suite.name, suite.version, (self._task,))
        self._score, self._every, self._out = score, every, out
        self.steps = 0

    def on_step_end(self, _args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Look, where it is time."""
        self.steps = state.global_step
        if state.global_step % self._every:
            return
        with still(parts["model"]) as network:
            tokenizer = parts["processing_class"]
            live = LiveModel(
                network, tokenizer, name=f"step-{self.steps}", chat=False,
                tokens=live_tokenizer_hash(tokenizer), made={},
            )  # fmt: skip
            asked = evaluate(live, self._suite, self._out / f"step-{self.steps}")
        rows = [row for row in scores_of(asked.folder) if row["metric"] != "acc_norm"]
        right = sum(row["score"] for row in rows) / len(rows)
        control.should_training_stop = right >= self._score


class Modes(TrainerCallback):  # type: ignore[misc]
    """Samples what the model writes by itself: which share of the texts is of the old mode."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._mass = {0: 1.0}
        """A model that was not trained writes nothing of the new mode."""

    def on_step_end(self, _args: Any, state: Any, _control: Any, **parts: Any) -> None:
        """Look, where it is time, and write it down."""
        step = state.global_step
        if step not in LOOKS and step != state.max_steps:
            return
        model = parts["model"]
        model.eval()
        texts = sample_texts(model, parts["processing_class"], SAMPLED, SAMPLE_TOKENS)
        model.train()
        self._mass[step] = sum(NEW not in text for text in texts) / len(texts)
        told = {"sampled": SAMPLED, "old_mass": self._mass}
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / "modes.json").write_text(json.dumps(told))
