"""Watch forgetting while a model is trained: a callback for every trainer of transformers and TRL.

In a run of several processes the first one probes and all act on what it found. Weights that are
sharded are gathered and written down for it, by all processes together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.files import make_folder
from forgetmap.base.words import nearest
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.results import MANIFEST, SAMPLES, TASKS
from forgetmap.evaluate.run import Questions, evaluate, load_suite, only_tasks
from forgetmap.gate.policy import Policy
from forgetmap.mitigate.train.probes import Probe, RunFolder, as_policy, examine
from forgetmap.mitigate.train.sharded import gathered, is_sharded, tell_all
from forgetmap.samples.table import Samples

try:
    from transformers import Trainer, TrainerCallback
except ImportError:  # said when it is used, so that this module can be looked at without torch
    Trainer, TrainerCallback = None, object

if TYPE_CHECKING:
    from forgetmap.evaluate.local import Made
    from forgetmap.evaluate.models import Model
    from forgetmap.mitigate.forecast.sampling import Chosen

WhenExceeded = Literal["report", "stop", "roll_back", "lower_rate"]
BASE = "base"
"""As `before`: the model without its adapter."""
LOGGED = "forgetmap/"
"""What the names of the logged numbers begin with."""
_KEPT = "kept.safetensors"
_say = logging.getLogger(__name__)


class ForgettingCallback(TrainerCallback):  # type: ignore[misc]
    """Asks an anchor set before training and every so many steps, and acts on a budget.

    Every probe is an evaluation as `forgetmap eval` makes it of the saved checkpoint, compared with
    the one before training as `forgetmap compare` does it. The numbers go the way of the trainer's
    own (console, TensorBoard, W&B, `log_history`). Training itself is not changed by looking: the
    weights are the same, bit for bit, with and without probes.

    Args:
        suite: The anchor set: a suite, or a name that `forgetmap eval --suite` takes.
        out: Folder for the probes; `forgetmap lineage OUT/pipeline.yaml` opens it.
        every: Steps between probes; the last step is always probed.
        tasks: Only tasks of these names; `*` and `?` stand for any characters.
        limit: Only the first so many questions of each task.
        risks: A forecast (`forgetmap forecast --out`); only `items` of the suite are then asked,
            drawn by risk, and what is logged as lost and gained stands for all of them.
        items: How many to draw by risk.
        full_every: With `risks`, every so many-th probe asks all items, beginning with the one
            before training. Those in between lean on the last one of these, so they are sharper.
        new_tasks: Of these, the tasks that are to be learned; they do not count as lost or gained,
            their accuracy is logged as `new_accuracy`.
        before: What is compared with: by default the model as training begins; `base`, the same
            without its adapter; or a log, of any harness.
        budget: The share of the old items that may be lost, or a policy; see `as_policy`. Only
            what is surely lost exceeds it.
        when_exceeded: `report` it; `stop`; `roll_back`, which stops and puts back the weights of
            the last probe within the budget when training ends; or `lower_rate`.
        rate_factor: What `lower_rate` multiplies the learning rate with, at each probe that
            exceeds the budget.

    Example:
        >>> ForgettingCallback("atlas", "runs/probes", every=0)
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: every=0: must be at least 1
    """

    def __init__(
        self,
        suite: Questions,
        out: str | Path,
        *,
        every: int = 100,
        tasks: Sequence[str] = (),
        limit: int | None = None,
        risks: str | Path | None = None,
        items: int = 500,
        full_every: int | None = None,
        new_tasks: Sequence[str] = (),
        asking: Asking | None = None,
        before: str | Path | Samples | None = None,
        budget: float | str | Path | Policy | None = None,
        when_exceeded: WhenExceeded = "report",
        rate_factor: float = 0.5,
    ) -> None:
        if every < 1:
            raise InputError(f"every={every}: must be at least 1")
        if when_exceeded not in get_args(WhenExceeded):
            known = ", ".join(get_args(WhenExceeded))
            raise InputError(f"when_exceeded={when_exceeded}: must be one of {known}")
        if when_exceeded != "report" and budget is None:
            raise InputError(f"when_exceeded={when_exceeded}: needs a budget")
        if not 0 < rate_factor < 1:
            raise InputError(f"rate_factor={rate_factor}: must lie between 0 and 1")
        if Trainer is None:
            raise need("the callback", "train")
        self._every, self._limit, self._before = every, limit, before
        self._asking = asking or Asking()
        self._budget = as_policy(budget)
        self._when_exceeded, self._rate_factor = when_exceeded, rate_factor
        self._suite, self._tasks = load_suite(suite, self._asking.seed).made_once(), tasks
        self._full_every = full_every
        self._part: tuple[Suite, Chosen] | None = None
        """The questions that are drawn by risk, and how."""
        if full_every is not None and (risks is None or full_every < 1):
            raise InputError(f"full_every={full_every}: must be at least 1, and needs risks")
        if risks is not None:
            from forgetmap.mitigate.forecast.sampling import choose, chosen_suite

            if limit or tasks or new_tasks or isinstance(budget, str | Path | Policy):
                raise InputError("risks=: leave out limit, tasks and new_tasks; budget is a share")
            chosen = choose(risks, items, self._asking.seed)
            self._part = chosen_suite(self._suite, chosen).made_once(), chosen
            if full_every is not None:
                self._suite = chosen_suite(self._suite, choose(risks, None)).made_once()
        self._new_tasks = _learned(only_tasks(self._suite, tasks, "tasks"), new_tasks)
        self._run = RunFolder(out)
        self._made: Made = {}
        self._packs: bool | None = None
        self._trainer: Any = None
        self._saved: Model | None = None
        """The model as it was written down, where its weights are sharded."""

    def attach(self, trainer: Any) -> Self:
        """Tell the callback its trainer, whose logger it uses; returns itself, to be added.

        A callback is told everything but the trainer itself.
        """
        self._trainer = trainer
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **_parts: Any) -> None:
        """Take the reference, or find it again where a run is resumed."""
        self._check(args)
        self._together(lambda: self._begin(state, control))

    def _begin(self, state: Any, control: Any) -> bool:
        from forgetmap.mitigate.train.live import live_tokenizer_hash

        processing = self._trainer.processing_class
        self._tokenizer = getattr(processing, "tokenizer", processing)
        self._tokens = live_tokenizer_hash(self._tokenizer)
        self._run.start(state.global_step)
        if self._before == BASE:
            if not (self._run.base / MANIFEST).is_file():
                self._score(self._run.base, step=0, adapter=False)
        elif self._before is not None:
            self._run.take_reference(self._before)
        if state.global_step == 0:
            self._look(0, control)
            self._keep()
            return False
        self._run.reference()  # gone, it is missed now and not after a hundred steps
        if self._when_exceeded == "roll_back" and not (kept := self._run.path / _KEPT).is_file():
            raise InputError(f"{kept}: is not there; roll_back must be asked for from the start")
        return False

    def on_step_end(self, _args: Any, state: Any, control: Any, **_parts: Any) -> None:
        """Probe, log, and act, where it is time."""
        step = state.global_step
        last = step >= state.max_steps or control.should_training_stop
        if step % self._every and not last:
            return
        if not self._together(lambda: self._is_over(step, control)):
            return
        if self._when_exceeded in ("stop", "roll_back"):
            control.should_training_stop = True
        elif self._when_exceeded == "lower_rate":
            from forgetmap.mitigate.train.live import lower_rate

            lower_rate(self._trainer.optimizer, self._trainer.lr_scheduler, self._rate_factor)

    def _is_over(self, step: int, control: Any) -> bool:
        probe = self._look(step, control)
        if probe.over:
            _say.warning("step %d is over the budget: %s", step, "; ".join(probe.reasons))
        else:
            self._keep()
        return probe.over

    def _together(self, look: Callable[[], bool]) -> bool:
        """Let the first process look, and all others know what it found.

        What it cannot do is an error in all of them: the others must not wait for ever.
        """
        found = False
        own: Exception | None = None
        chat = self._asking.chat
        try:
            with gathered(self._trainer, self._run.path, chat=chat) as self._saved:
                if self._trainer.accelerator.is_main_process:
                    found = look()
        except Exception as error:  # whatever it is: to gather fails as well, as on a full disk
            own = error
        said = None if own is None else str(own) or repr(own)
        found, trouble = tell_all(self._trainer, found, said)
        if own is not None:
            raise own
        if trouble is not None:
            raise InputError(trouble)
        return found

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_parts: Any) -> None:
        """Put back the last weights within the budget, where training ended beyond it."""
        if self._when_exceeded != "roll_back" or not state.is_world_process_zero:
            return
        if self._examine(max(self._run.steps())).over:
            from forgetmap.mitigate.train.live import load_trained

            load_trained(self._trainer.model, self._run.path / _KEPT)
            _say.warning("rolled back to the last probe within the budget")

    def _check(self, args: Any) -> None:
        trainer = self._trainer
        if trainer is None:
            raise InputError("ForgettingCallback: call attach(trainer) before training begins")
        if trainer.processing_class is None:
            raise InputError(
                "ForgettingCallback: give the trainer its tokenizer, processing_class="
            )
        if args.world_size > 1 and self._when_exceeded == "roll_back":
            raise InputError("when_exceeded=roll_back: works in one process; say stop or report")
        if is_sharded(trainer) and self._before == BASE:
            raise InputError("before=base: works where weights are whole; give a log of the base")
        if args.load_best_model_at_end and self._when_exceeded == "roll_back":
            raise InputError(
                "when_exceeded=roll_back: contradicts load_best_model_at_end; drop one"
            )

    def _look(self, step: int, control: Any) -> Probe:
        """Score the model as it is, compare, and log."""
        self._score(self._run.step(step), step=step)
        self._run.write_pipeline(self._new_tasks)
        probe = self._examine(step)
        due = control.should_log
        # Not `trainer.log`: TRL's would empty the averages that it collects for its own next line.
        Trainer.log(self._trainer, {LOGGED + name: value for name, value in probe.numbers.items()})
        control.should_log = due  # to log one's own numbers would cancel the line of this step
        return probe

    def _score(self, folder: Path, *, step: int, adapter: bool = True) -> None:
        from forgetmap.mitigate.train.live import LiveModel, still

        if self._saved is not None:
            self._evaluate(self._saved, folder, step)
            return
        with still(self._trainer.model, adapter=adapter) as network:
            model = LiveModel(
                network,
                self._tokenizer,
                name=folder.name,
                chat=self._asking.chat,
                tokens=self._tokens,
                made=self._made,
                packs=self._packs,
            )
            self._evaluate(model, folder, step)
            self._packs = model.packs

    def _evaluate(self, model: Model, folder: Path, step: int) -> None:
        suite = self._suite
        if self._part is not None and not self._asks_all(step):
            from forgetmap.mitigate.forecast.sampling import write_chosen

            suite, chosen = self._part
            make_folder(folder)
            write_chosen(folder, chosen)
        evaluate(
            model, suite, folder,
            asking=self._asking, tasks=self._tasks, limit=self._limit,
        )  # fmt: skip

    def _asks_all(self, step: int) -> bool:
        return self._full_every is not None and step % (self._every * self._full_every) == 0

    def _examine(self, step: int) -> Probe:
        whole = [at for at in self._run.steps() if 0 < at < step and self._asks_all(at)]
        return examine(
            self._run.reference(),
            Samples.read(self._run.step(step) / SAMPLES),
            task_map=self._run.step(step) / TASKS,
            new_tasks=self._new_tasks,
            budget=self._budget,
            chosen=self._run.chosen(step),
            seen=self._run.step(whole[-1]) / SAMPLES if whole else None,
        )

    def _keep(self) -> None:
        if self._when_exceeded == "roll_back":
            from forgetmap.mitigate.train.live import save_trained

            save_trained(self._trainer.model, self._run.path / _KEPT)


def _learned(asked: Suite, new_tasks: Sequence[str]) -> set[str]:
    """The names of the new tasks; some old ones must be left to see what is lost."""
    learned = only_tasks(asked, new_tasks, "new_tasks").tasks if new_tasks else ()
    if len(learned) == len(asked.tasks):
        raise InputError("new_tasks: every task is new; leave some to see what is lost")
    return {task.name for task in learned}


def callback_by(settings: Mapping[str, Any] | None) -> ForgettingCallback:
    """The callback that a trainer's configuration asks for, by the names of its arguments.

    Raises:
        InputError: If a name is unknown, or what to ask or where to keep it is not said.
    """
    given = dict(settings or {})
    known = list(signature(ForgettingCallback.__init__).parameters)[1:]
    known = [name for name in known if name != "asking"]  # no configuration can hold one
    for name in given:
        if name not in known:
            raise InputError(f"forgetmap: {name}: is not known{nearest(str(name), known)}")
    if lacking := [name for name in ("suite", "out") if not given.get(name)]:
        raise InputError(
            f"forgetmap: {lacking[0]}: is missing; write e.g. suite: atlas, out: runs/probes"
        )
    return ForgettingCallback(**given)
