"""Ways to train that keep what the model knew: one small recipe per method, over TRL.

A recipe says how, `train` does it: a recipe, the model before, the new data and what the method
needs besides (old data, questions, a reward) give a folder with the trained model. A run that was
stopped goes on from its last checkpoint; one that is done is not done again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.files import make_folder, write_text
from forgetmap.base.model import read_sealed, sealed
from forgetmap.base.words import brief
from forgetmap.evaluate.describe import tokenizer_hash, weight_files, weights_hash
from forgetmap.evaluate.questions import Suite
from forgetmap.mitigate.train.sharded import is_sharded, tell_all
from forgetmap.samples.identity import as_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

Examples = Sequence[Mapping[str, Any]]
"""Rows in TRL's forms: `prompt` and `completion`, `messages`, `prompt`/`chosen`/`rejected`..."""


@dataclass(frozen=True)
class Materials:
    """What a recipe works with, beside the model."""

    new: Examples
    """The new task, in the form that the method's trainer wants."""
    old: Examples = ()
    """Old data to replay or to anchor on, such as `forgetmap replay` writes."""
    questions: Suite | None = None
    """Questions with options whose right answers are to stay right (never the evaluation's)."""
    reward: Callable[..., list[float]] | None = None
    """For GRPO: completions (and the columns of the new data) to rewards."""


@dataclass(frozen=True)
class Recipe:
    """Plain supervised fine-tuning, and what all recipes have in common.

    Example:
        >>> Recipe(steps=200).name
        'sft'
        >>> Replayed(share=0.25, learning_rate=1e-4).describe()["share"]
        0.25
    """

    name: ClassVar[str] = "sft"
    needs: ClassVar[Mapping[str, str]] = {}
    """Field of the materials -> what to say where it is missing."""
    steps: int = 300
    batch: int = 32
    learning_rate: float = 5e-5
    warmup: float = 0.05
    """Share of the steps in which the rate rises; after it falls as a cosine."""
    lora: int = 0
    """Rank of a LoRA adapter on all linear layers; 0 trains all weights."""
    seed: int = 0
    save_every: int = 0
    """Steps between checkpoints, from which a stopped run goes on; 0 keeps none."""
    longest: int = 512
    """Tokens of an example, at most."""
    accumulate: int = 1
    """Batches whose gradients are added up before a step."""
    checkpointing: bool = False
    """Compute activations again instead of keeping them: slower, and less memory."""
    trainer_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further arguments of TRL's configuration; they win over those of the recipe."""

    def describe(self) -> dict[str, Any]:
        """The recipe as plain data."""
        return {"method": self.name, **dataclasses.asdict(self)}

    def check(self, materials: Materials) -> None:
        """Refuse materials that the method cannot work with."""
        if not materials.new:
            raise InputError(f"{self.name}: no new data to train on")
        for kind, what in self.needs.items():
            if not getattr(materials, kind):
                raise InputError(f"{self.name}: needs {what}")

    def trainer(self, job: Job) -> Any:
        """The trainer of this method."""
        from trl import SFTConfig, SFTTrainer

        return SFTTrainer(args=SFTConfig(**job.arguments, max_length=self.longest), **job.parts)


@dataclass(frozen=True)
class Job:
    """One run, made ready: what the trainers are built from."""

    recipe: Recipe
    before: Path
    materials: Materials
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    arguments: dict[str, Any]
    """Of TRL's configuration, the same for each method."""
    parts: dict[str, Any]
    """Of TRL's trainer, the same for each method."""

    @property
    def pad(self) -> int:
        """The padding token."""
        return int(self.tokenizer.pad_token_id)


@dataclass(frozen=True)
class Replayed(Recipe):
    """Each step also learns a batch of old data; `share` is its weight in the loss.

    In the two-mode theory the old mass that is left in the end equals the share, whatever the
    model: to keep half of the old behaviour, replay half. Every batch has its old examples, so no
    step forgets that they exist.
    """

    name: ClassVar[str] = "replay"
    needs: ClassVar = {"old": "old data: `forgetmap replay` makes some"}
    share: float = 0.25
    old_batch: int = 32

    def check(self, materials: Materials) -> None:
        """The share must lie between 0 and 1."""
        super().check(materials)
        if not 0 < self.share < 1:
            raise InputError(f"{self.name}: share {self.share} must lie between 0 and 1")

    def trainer(self, job: Job) -> Any:
        """SFT with old data in every step."""
        from forgetmap.mitigate.train.penalties import Replay

        return _penalised(job, lambda _: Replay(_old_rows(job)), self.share, self.share)


@dataclass(frozen=True)
class Anchored(Recipe):
    """A penalty on the divergence from the model before, token by token.

    On old data where there are any, else on the new examples. `forward` asks the model to keep all
    it could say, `reverse` to say nothing it would not have said.
    """

    name: ClassVar[str] = "anchor"
    weight: float = 1.0
    direction: Literal["forward", "reverse"] = "forward"
    old_batch: int = 32
    reference: Literal["float32", "bfloat16"] = "float32"
    """Numbers of the second copy; bfloat16 halves its memory. An adapter needs no copy."""

    def check(self, materials: Materials) -> None:
        """The direction is one of two."""
        super().check(materials)
        if self.direction not in ("forward", "reverse"):
            raise InputError(f"{self.name}: direction {self.direction!r}: say forward or reverse")

    def trainer(self, job: Job) -> Any:
        """SFT with the divergence from the model before."""
        from forgetmap.mitigate.train.penalties import Anchor, Before

        before = Before(None if self.lora else _load(job.before, self.reference))
        rows = _old_rows(job) if job.materials.old else None
        return _penalised(
            job,
            lambda trainer: Anchor(before, self.direction, rows, trainer.accelerator.autocast),
            self.weight,
        )


@dataclass(frozen=True)
class Retained(Recipe):
    """A penalty on exactly the answers that were right before and are about to turn wrong.

    The questions are scored once by the model before; those it gets right must keep their right
    option ahead by `margin` nats. A question that is safe costs nothing and pulls at nothing.
    """

    name: ClassVar[str] = "retention"
    needs: ClassVar = {"questions": "questions with options, as a suite"}
    weight: float = 1.0
    margin: float = 1.0
    old_batch: int = 16

    def trainer(self, job: Job) -> Any:
        """SFT with the hinge on right answers."""
        return _penalised(job, lambda trainer: self._penalty(job, trainer), self.weight)

    def _penalty(self, job: Job, trainer: Any) -> Any:
        from forgetmap.mitigate.train.penalties import Retention

        items = _items(job)
        penalty = Retention(items, job.pad, self.margin, self.old_batch, self.seed)
        # The trainer's weights are still those of the model before (an adapter starts as zero).
        device = trainer.accelerator.device
        penalty.keep_right(trainer.model.to(device), device, trainer.accelerator.autocast)
        if not penalty.kept:
            raise InputError(f"{self.name}: the model gets none of {len(items)} questions right")
        return penalty


@dataclass(frozen=True)
class PulledBack(Recipe):
    """Every `every` steps the weights go a share of the way back to the model before."""

    name: ClassVar[str] = "pull-back"
    share: float = 0.1
    every: int = 50

    def trainer(self, job: Job) -> Any:
        """SFT with weights pulled back."""
        from forgetmap.mitigate.train.trainers import PullBack

        trainer = super().trainer(job)
        if is_sharded(trainer):
            raise InputError(
                f"{self.name}: needs whole weights; start it without FSDP and DeepSpeed, or take "
                "another method"
            )
        trainer.add_callback(PullBack(trainer.model, self.share, self.every))
        return trainer


@dataclass(frozen=True)
class SelfDistilled(Recipe):
    """SDFT: the model learns from itself, shown the right answer, on what it writes itself.

    The new data have `prompt` and `completion`; the completion is shown to the teacher only.
    """

    name: ClassVar[str] = "sdft"
    teacher: Literal["base", "live", "ema"] = "base"
    longest_answer: int = 32

    def trainer(self, job: Job) -> Any:
        """TRL's own trainer for it (experimental there)."""
        from trl.experimental.sdft import SDFTConfig, SDFTTrainer

        shown = [
            {"prompt": row["prompt"], "privileged_context": row["completion"]}
            for row in job.materials.new
        ]
        config = SDFTConfig(
            **job.arguments,
            teacher_model_kind=self.teacher,
            teacher_prompt_template="The right answer is:{privileged_context}\n\n{prompt}",
            max_completion_length=self.longest_answer,
            max_prompt_length=self.longest,
            num_generations=1,
        )
        return SDFTTrainer(args=config, **{**job.parts, "train_dataset": _dataset(shown)})


@dataclass(frozen=True)
class Rewarded(Recipe):
    """GRPO: the model is rewarded for what it writes; `beta` weighs the KL to the model before."""

    name: ClassVar[str] = "grpo"
    needs: ClassVar = {"reward": "a reward function"}
    beta: float = 0.04
    """0, TRL's default, keeps no reference at all."""
    generations: int = 8
    temperature: float = 1.0
    longest_answer: int = 32

    def check(self, materials: Materials) -> None:
        """Batches hold whole groups."""
        super().check(materials)
        if self.batch % self.generations:
            raise InputError(
                f"{self.name}: batch {self.batch} must be a multiple of "
                f"generations {self.generations}"
            )

    def trainer(self, job: Job) -> Any:
        """TRL's trainer."""
        from trl import GRPOConfig, GRPOTrainer

        config = GRPOConfig(
            **job.arguments,
            beta=self.beta,
            num_generations=self.generations,
            temperature=self.temperature,
            max_completion_length=self.longest_answer,
        )
        return GRPOTrainer(args=config, reward_funcs=job.materials.reward, **job.parts)


@dataclass(frozen=True)
class Preferred(Recipe):
    """DPO: chosen answers over rejected ones, held to the model before by `beta`."""

    name: ClassVar[str] = "dpo"
    beta: float = 0.1

    def trainer(self, job: Job) -> Any:
        """TRL's trainer."""
        from trl import DPOConfig, DPOTrainer

        config = DPOConfig(**job.arguments, beta=self.beta, max_length=self.longest)
        return DPOTrainer(args=config, **job.parts)


def train(
    recipe: Recipe,
    before: str | Path,
    materials: Materials,
    out: str | Path,
    *,
    callbacks: Sequence[TrainerCallback] = (),
) -> Path:
    """Train a model by a recipe, and return the folder of the trained model (or of its adapter).

    If the folder is there and complete nothing is done; a stopped run goes on from its last
    checkpoint. `callbacks` are further callbacks of the trainer, such as `ForgettingCallback`.
    """
    out, before = Path(out), Path(before)
    recipe.check(materials)
    told = provenance(recipe, before, materials)
    if _is_done(out, told):
        return out
    make_folder(out)
    goes_on = _begin(out, told)
    job = _job(recipe, before, materials, out)
    try:
        trainer = recipe.trainer(job)
    except TypeError as error:  # an argument that the trainer's configuration does not have
        raise InputError(f"{recipe.name}: TRL refuses its arguments ({brief(error)})") from error
    for callback in callbacks:
        if hasattr(callback, "attach"):
            callback.attach(trainer)
        trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=goes_on)
    _save(trainer, job.tokenizer, out, told)
    return out


def _save(trainer: Any, tokenizer: PreTrainedTokenizerBase, out: Path, told: Any) -> None:
    """Write down what was trained; every process has a part in this, where weights are sharded."""
    if trainer.is_fsdp_enabled:
        # accelerate's default keeps the parts apart, and then the trainer writes no model at all
        trainer.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")
    trainer.save_model(str(out))
    trouble = None
    if trainer.is_world_process_zero():
        if _holds_weights(out):
            tokenizer.save_pretrained(str(out))
            write_manifest(out, told)
        else:
            trouble = (
                f"{out}: the trainer wrote no weights; with DeepSpeed's ZeRO-3, set "
                "stage3_gather_16bit_weights_on_model_save"
            )
    _, trouble = tell_all(trainer, False, trouble)
    if trouble is not None:
        raise InputError(trouble)


def _holds_weights(folder: Path) -> bool:
    """Whether a folder has a model or an adapter, with weights."""
    of_adapter = {file.name.startswith("adapter_") for file in weight_files(folder)}
    config = {True: folder / "adapter_config.json", False: folder / "config.json"}
    return any(config[one].is_file() for one in of_adapter)


_MANIFEST = "recipe.json"
_BEGUN = "recipe-begun.json"


def provenance(recipe: Recipe, before: Path, materials: Materials) -> dict[str, Any]:
    """What a trained model is made of, by content: a change of any of it makes another run."""
    reward = materials.reward
    return {
        **recipe.describe(),
        "before": before.name,
        "weights before": weights_hash(before),
        "tokenizer before": tokenizer_hash(before),
        "examples": len(materials.new),
        "new data": _rows_hash(materials.new),
        "old data": _rows_hash(materials.old),
        "questions": materials.questions.version if materials.questions else None,
        "reward": f"{reward.__module__}.{reward.__qualname__}" if reward else None,
    }


def _rows_hash(rows: Examples) -> str | None:
    """Hash of some rows in their order; None for no rows."""
    if not rows:
        return None
    whole = sha256()
    for row in rows:
        whole.update(as_json(dict(row)) + b"\n")
    return whole.hexdigest()[:16]


def write_manifest(out: Path, told: dict[str, Any]) -> None:
    """Say how a model was trained; written last, so that it stands for the whole folder."""
    write_text(out / _MANIFEST, json.dumps(sealed(told), indent=2))


def _is_done(out: Path, told: dict[str, Any]) -> bool:
    if not (out / _MANIFEST).is_file():
        return False
    _refuse_another(out, "a model", read_sealed(out / _MANIFEST), told)
    return True


def _begin(out: Path, told: dict[str, Any]) -> bool:
    """Note which run begins in a folder; says whether one goes on that was stopped there."""
    begun, stopped = out / _BEGUN, any(out.glob("checkpoint-*"))
    if stopped and not begun.is_file():
        raise InputError(f"{out}: holds checkpoints of an unknown run; take another folder")
    if stopped:
        _refuse_another(out, "checkpoints", read_sealed(begun), told)
    write_text(begun, json.dumps(sealed(told), indent=2))
    return stopped


def _refuse_another(out: Path, what: str, made: dict[str, Any], told: dict[str, Any]) -> None:
    """Keep runs apart that differ in anything."""
    if made != told:
        differing = sorted(key for key in {*made, *told} if made.get(key) != told.get(key))
        raise InputError(
            f"{out}: holds {what} of another recipe ({', '.join(differing)} differ); "
            "take another folder"
        )


def _job(recipe: Recipe, before: Path, materials: Materials, out: Path) -> Job:
    try:
        import torch
        from peft import LoraConfig
        from transformers import AutoTokenizer
        from trl import SFTTrainer  # noqa: F401 - here, so that the error is one line
    except ImportError as error:
        raise need("training", "train") from error
    tokenizer = AutoTokenizer.from_pretrained(before)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = _load(before)
    graphics = torch.cuda.is_available()
    arguments = {
        "output_dir": str(out),
        "max_steps": recipe.steps,
        "per_device_train_batch_size": recipe.batch,
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": round(recipe.warmup * recipe.steps),
        "seed": recipe.seed,
        "bf16": graphics,
        "use_cpu": not graphics,
        "dataloader_pin_memory": graphics,
        "gradient_accumulation_steps": recipe.accumulate,
        "gradient_checkpointing": recipe.checkpointing,
        "report_to": [],
        "logging_steps": 10,
        "save_strategy": "steps" if recipe.save_every else "no",
        "save_steps": recipe.save_every or recipe.steps,
        "save_total_limit": 1,
        **recipe.trainer_arguments,
    }
    adapter = LoraConfig(
        r=recipe.lora or 1,
        lora_alpha=2 * recipe.lora,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    parts = {
        "model": model,
        "processing_class": tokenizer,
        "train_dataset": _dataset(materials.new),
        "peft_config": adapter if recipe.lora else None,
    }
    return Job(recipe, before, materials, model, tokenizer, arguments, parts)


def _load(folder: Path, dtype: str = "float32") -> PreTrainedModel:
    import torch
    from transformers import AutoModelForCausalLM

    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: is not a model folder (no config.json)")
    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))


def _dataset(rows: Examples) -> Any:
    from datasets import Dataset

    return Dataset.from_list([dict(row) for row in rows])


def _penalised(job: Job, make: Callable[[Any], Any], weight: float, share: float = 0.0) -> Any:
    from trl import SFTConfig

    from forgetmap.mitigate.train.trainers import PenalisedTrainer

    return PenalisedTrainer(
        args=SFTConfig(**job.arguments, max_length=job.recipe.longest),
        make_penalty=make,
        weight=weight,
        share=share,
        **job.parts,
    )


def _old_rows(job: Job) -> Any:
    from forgetmap.mitigate.train.penalties import Row, Rows, tokenise

    recipe: Any = job.recipe
    rows = tokenise(job.tokenizer, job.materials.old)
    cut = [Row(row.tokens[: recipe.longest], min(row.start, recipe.longest - 1)) for row in rows]
    return Rows(cut, job.pad, recipe.old_batch, recipe.seed)


def _items(job: Job) -> list[tuple[list[Any], int]]:
    """The questions as rows of tokens, one for each option, and the place of the right one."""
    from forgetmap.evaluate.prompts import Asking, is_scored, make_request
    from forgetmap.mitigate.train.penalties import Row

    how, items = Asking(), []
    assert job.materials.questions is not None  # by the recipe's check
    for task in job.materials.questions.tasks:
        for question in task.questions():
            if not is_scored(task, question, how):
                continue
            request = make_request(task, question, how)
            prompt = job.tokenizer(str(request.prompt))["input_ids"]
            ends = job.tokenizer(list(request.options), add_special_tokens=False)["input_ids"]
            items.append(([Row((*prompt, *end), len(prompt)) for end in ends], question.gold))
    if not items:
        raise InputError(f"{job.recipe.name}: the suite has no questions with options")
    return items
