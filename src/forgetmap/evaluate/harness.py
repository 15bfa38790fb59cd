"""Models by lm-eval's own classes: whatever it can run can be evaluated here."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief
from forgetmap.evaluate.describe import weights_hash
from forgetmap.evaluate.models import Reply, RequestGroup, Running, plain_groups
from forgetmap.evaluate.prompts import Prompt, Request

_GROUP = 64


class HarnessModel:
    """A model class of lm-eval, named `lm-eval:CLASS:ARGUMENTS`.

    For example `lm-eval:hf:pretrained=my/model,dtype=float32`: the type of the numbers belongs into
    the arguments.
    """

    def __init__(self, name: str, how: Running, *, chat: bool = False) -> None:
        self.is_chat = chat
        _, self._kind, self._arguments = [*name.split(":", 2), "", ""][:3]
        if not self._kind:
            raise InputError(f"{name}: write it as lm-eval:CLASS:ARGUMENTS")
        self._how = how
        self.name = name
        self.warnings: list[str] = []
        pretrained = dict(part.partition("=")[::2] for part in self._arguments.split(",")).get(
            "pretrained", ""
        )
        weights = weights_hash(Path(pretrained)) if Path(pretrained).is_dir() else None
        known = f"{name} {weights}" + (f" {how.revision}" if how.revision else "")
        self.fingerprint = sha256(known.encode()).hexdigest()[:16]
        self.settings = {
            "model type": f"lm-eval {self._kind}",
            "batch size": how.batch or "auto",
            "weights": weights,
        }
        self._model: Any = None

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Groups are what is stored at a time; lm-eval batches inside them."""
        size = max(_GROUP, self._how.batch or 0)
        kinds: tuple[list[int], list[int]] = ([], [])
        for place, request in enumerate(requests):
            kinds[bool(request.options)].append(place)
        return [
            RequestGroup(tuple(places[place] for place in group.places))
            for places in kinds
            for group in plain_groups(len(places), size)
        ]

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:  # noqa: ARG002
        """Answer a group; all of its requests are of one kind."""
        model = self._open()
        from lm_eval.api.instance import Instance

        if requests[0].options:
            asked = [
                Instance("loglikelihood", {}, (self._text(request.prompt), option), number)
                for number, request in enumerate(requests)
                for option in request.options
            ]
            scored = iter(model.loglikelihood(asked, disable_tqdm=True))
            return [
                Reply(likelihoods=tuple(float(next(scored)[0]) for _ in request.options))
                for request in requests
            ]
        if requests[0].temperature:
            import torch

            torch.manual_seed(requests[0].seed % 2**63)  # lm-eval's classes know one for all
        asked = [
            Instance("generate_until", {}, (self._text(request.prompt), _how(request)), number)
            for number, request in enumerate(requests)
        ]
        return [Reply(text=str(text)) for text in model.generate_until(asked, disable_tqdm=True)]

    def _text(self, prompt: Prompt) -> str:
        if isinstance(prompt, str):
            return prompt
        turns = [{"role": role, "content": text} for role, text in prompt]
        return str(self._model.apply_chat_template(turns, add_generation_prompt=True))

    def _open(self) -> Any:
        if self._model is None:
            try:
                from lm_eval.api.registry import get_model
            except ImportError as error:
                raise need("lm-eval", "eval") from error
            run = {"batch_size": self._how.batch or 16, "device": self._how.device or _device()}
            try:
                self._model = get_model(self._kind).create_from_arg_string(self._arguments, run)
            except Exception as error:  # whatever a class of lm-eval raises
                raise InputError(f"{self.name}: cannot be opened ({brief(error)})") from error
        return self._model


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _how(request: Request) -> dict[str, Any]:
    how = {"until": list(request.stop), "max_gen_toks": request.max_tokens}
    if not request.temperature:
        return {**how, "do_sample": False}
    return {**how, "do_sample": True, "temperature": request.temperature}
