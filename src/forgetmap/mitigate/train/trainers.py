"""TRL's SFT trainer with one more term in its loss, and weights pulled back while training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback
from trl import SFTTrainer

if TYPE_CHECKING:
    from forgetmap.mitigate.train.penalties import Penalty


class PenalisedTrainer(SFTTrainer):  # type: ignore[misc]
    """Supervised fine-tuning whose loss is `(1 - share) * new + weight * penalty`."""

    def __init__(
        self,
        *args: Any,
        make_penalty: Callable[[PenalisedTrainer], Penalty],
        weight: float,
        share: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._penalty = make_penalty(self)
        self._weight, self._share = weight, share
        self._draws = 0, 0
        """The step, and how many batches of it have come: with accumulation there are several."""

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The loss on the new data and the penalty, each logged under its name."""
        if not self.model.training:  # an evaluation is of the task alone
            return super().compute_loss(model, inputs, *args, **kwargs)
        new = super().compute_loss(model, inputs, *args, **kwargs)
        penalty = self._penalty(model, inputs, self._next_draw())
        self._metrics["train"]["penalty"].append(float(penalty.detach()))
        # Where the trainer counts the tokens of all accumulated batches, the sum of their losses is
        # the mean; the penalty is a mean of its own batch.
        counted = kwargs.get("num_items_in_batch") is not None
        parts = self.current_gradient_accumulation_steps if counted else 1
        return (1 - self._share) * new + self._weight * penalty / parts

    def _next_draw(self) -> int:
        step, batches = self._draws
        batches = batches + 1 if step == self.state.global_step else 0
        self._draws = self.state.global_step, batches
        return int(self.state.global_step * self.args.gradient_accumulation_steps + batches)


class PullBack(TrainerCallback):  # type: ignore[misc]
    """Every some steps, move the weights a share of the way back to where they started.

    With an adapter the way back is to the base alone: its second matrices shrink.
    """

    def __init__(self, model: Any, share: float, every: int) -> None:
        self._share, self._every = share, every
        # Kept here and not when training begins: a resumed run begins with trained weights.
        adapted = hasattr(model, "peft_config")
        named = [] if adapted else list(model.named_parameters())
        self._start = {name: weight.detach().clone() for name, weight in named}

    def on_step_end(self, _args: Any, state: Any, _control: Any, **parts: Any) -> None:
        """Pull back, where it is time."""
        if state.global_step % self._every and state.global_step < state.max_steps:
            return
        with torch.no_grad():
            for name, weight in parts["model"].named_parameters():
                if name in self._start:
                    weight.lerp_(self._start[name].to(weight), self._share)
                elif ".lora_B." in name:
                    weight.mul_(1 - self._share)
