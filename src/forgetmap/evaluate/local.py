"""A model in this process, by transformers: packed scoring, batched writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief
from forgetmap.evaluate.describe import read_json_or_none, tokenizer_hash, weights_hash
from forgetmap.evaluate.generation import Opening, Writer
from forgetmap.evaluate.models import BF16_WARNING, Reply, RequestGroup, Running
from forgetmap.evaluate.prompts import Prompt, Request
from forgetmap.evaluate.scoring import Choice, PackedScorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    Made = dict[tuple[Prompt, tuple[str, ...]], Choice]
    """Prompts and their options, as tokens."""

_TEXTS_A_BATCH = {"cpu": 16, "cuda": 256}
_TOKENS_A_BATCH = {"cpu": 2**14, "cuda": 2**17}
"""Of texts written together, with padding and what is to be written: what the cache has to hold."""
_Asked = TypeVar("_Asked")


class LocalModel:
    """A model of transformers: a folder, hub id or GGUF file, perhaps with a LoRA adapter."""

    def __init__(
        self, base: str, adapter: str | None, how: Running, *, chat: bool | None = False
    ) -> None:
        self._base, self._adapter = (
            _folder(base, self, how.revision),
            Path(adapter) if adapter else None,
        )
        if self._adapter and not (self._adapter / "adapter_config.json").is_file():
            raise InputError(f"{adapter}: is not an adapter folder (no adapter_config.json)")
        name = "+".join(Path(part).name for part in (base, adapter) if part)
        hashes = [weights_hash(folder) for folder in (self._base, self._adapter) if folder]
        self._set_up(name, how, chat, "+".join(hashes), tokenizer_hash(self._base))

    def _set_up(
        self, name: str, how: Running, chat: bool | None, weights: str, tokens: str
    ) -> None:
        self.name = name
        self._how = how
        self._share_that_fits = 1.0
        self._choices: Made = {}
        self.warnings = [] if how.dtype == "float32" else [BF16_WARNING.format(dtype=how.dtype)]
        self.fingerprint = f"{weights}/{tokens}/{how.dtype}"
        template = self._tokenizer.chat_template
        if chat and not template:
            raise InputError(f"{name}: has no chat template; run with --no-chat")
        self.is_chat = bool(template) if chat is None else chat
        if template and not self.is_chat:
            self.warnings.append(f"{name} has a chat template, which is off; --chat turns it on")
        used = str(template).encode() if self.is_chat else None
        self.settings = {
            "model type": "transformers",
            "dtype": how.dtype,
            "batch size": how.batch or "auto",
            "weights": weights,
            "tokenizer": tokens,
            "chat template": sha256(used).hexdigest()[:16] if used else None,
            "engine": _engine(),
        }

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Score items of like length together; write texts of like length together."""
        from forgetmap.evaluate.scoring import plan_batches

        scored = [place for place, request in enumerate(requests) if request.options]
        made = self._as_choices([requests[place] for place in scored])
        choices = dict(zip(scored, made, strict=True))
        fitting = [place for place in scored if choices[place].longest <= self._positions]
        batches = plan_batches(
            [choices[place] for place in fitting],
            device=self._kind,
            vocabulary=len(self._tokenizer),
            rows=self._how.batch,
        )
        groups = [
            RequestGroup(tuple(fitting[item] for item in batch.items), {"shared": batch.shared})
            for batch in batches
        ]
        left = [place for place in scored if choices[place].longest > self._positions]
        return [
            *groups,
            *([RequestGroup(tuple(left))] if left else []),
            *self._text_groups(requests),
        ]

    def _text_groups(self, requests: Sequence[Request]) -> list[RequestGroup]:
        lengths = {
            place: len(self._encode(request.prompt))
            for place, request in enumerate(requests)
            if not request.options
        }
        order = sorted(lengths, key=lambda place: (-lengths[place], place))
        groups = []
        while order:
            longest = lengths[order[0]] + max(requests[place].max_tokens for place in order)
            fitting = min(_TEXTS_A_BATCH[self._kind], _TOKENS_A_BATCH[self._kind] // longest)
            rows = self._how.batch or max(1, fitting)
            groups.append(RequestGroup(tuple(order[:rows])))
            order = order[rows:]
        return groups

    def run(self, requests: Sequence[Request], hints: dict[str, Any]) -> list[Reply]:
        """Answer a group; all of its requests are of one kind."""
        if requests[0].options:
            return self._score(self._as_choices(requests), hints.get("shared", 0))
        return self._write([self._opening(request) for request in requests])

    def distributions(self, request: Request) -> Any:
        """Log-probabilities of all tokens at every place of the first option, as a torch matrix.

        Its rows are the tokens of the option, its columns the vocabulary.
        """
        import torch

        (choice,) = self._as_choices([request])
        option = choice.options[0]
        if choice.longest > self._positions:
            raise InputError(
                f"{self.name}: a text needs {choice.longest} tokens, the model takes "
                f"{self._positions}; cut it"
            )
        tokens = torch.tensor([[*choice.context, *option]], device=self._device)
        with torch.inference_mode():
            logits = self._network(tokens).logits[0, len(choice.context) - 1 : -1]
        return logits.float().log_softmax(-1), torch.tensor(option, device=self._device)

    def _score(self, choices: list[Choice], shared: int) -> list[Reply]:
        def score(part: list[Choice]) -> list[Reply]:
            return [
                Reply(
                    likelihoods=tuple(option.log_likelihood for option in scored),
                    tokens=sum(len(option) for option in choice.options),
                )
                for choice, scored in zip(part, self._scorer.score(part, shared), strict=True)
            ]

        return self._answer(choices, [choice.longest for choice in choices], score)

    def _write(self, openings: list[Opening]) -> list[Reply]:
        def write(part: list[Opening]) -> list[Reply]:
            return [
                Reply(text=written.text, finished=written.finished, tokens=written.tokens)
                for written in self._writer.write(part)
            ]

        needs = [len(opening.tokens) + opening.max_tokens for opening in openings]
        return self._answer(openings, needs, write)

    def _answer(
        self, items: list[_Asked], needs: list[int], work: Callable[[list[_Asked]], list[Reply]]
    ) -> list[Reply]:
        """Answer what fits into the model's positions; the rest becomes an error."""
        fits = [tokens <= self._positions for tokens in needs]
        inside = [item for item, fit in zip(items, fits, strict=True) if fit]
        replies = iter(self._by_halves(inside, work))
        return [
            next(replies)
            if fit
            else Reply("error", note=f"needs {tokens} tokens, the model takes {self._positions}")
            for tokens, fit in zip(needs, fits, strict=True)
        ]

    def _by_halves(
        self, items: list[_Asked], work: Callable[[list[_Asked]], list[Reply]]
    ) -> list[Reply]:
        """Do the work in one go, or in smaller parts once the memory has not sufficed.

        Groups are made to need about the same memory, so it is a share of each that fits.
        """
        import torch

        replies: list[Reply] = []
        while len(replies) < len(items):
            rows = max(1, int(len(items) * self._share_that_fits))
            rest = items[len(replies) :][:rows]
            try:
                replies += work(rest)
            except torch.OutOfMemoryError as error:
                torch.cuda.empty_cache()
                if len(rest) == 1:
                    raise InputError(
                        f"{self.name}: one item alone does not fit into the memory of {self._kind}"
                    ) from error
                self._share_that_fits = len(rest) / len(items) / 2
        return replies

    def _as_choices(self, requests: Sequence[Request]) -> list[Choice]:
        """Items as tokens; what is not made yet is made in one call, spread over all cores."""
        keys = [(request.prompt, request.options) for request in requests]
        self._make_choices(
            [one for key, one in zip(keys, requests, strict=True) if key not in self._choices]
        )
        return [self._choices[key] for key in keys]

    def _make_choices(self, requests: Sequence[Request]) -> None:
        from forgetmap.evaluate.scoring import Choice

        texts = [self._text(request.prompt) for request in requests]
        # As lm-eval does it: white space at the seam belongs to the option, and the option's
        # tokens are what the whole text has beyond the context's.
        wanted = [
            [text.rstrip(), *(text + option for option in request.options)] if text.strip() else []
            for text, request in zip(texts, requests, strict=True)
        ]
        made = iter(self._many_tokens([text for group in wanted for text in group]))
        for request, group in zip(requests, wanted, strict=True):
            if group:
                context, *wholes = (next(made) for _ in group)
            else:
                context = [self._first_token]
                encode = self._tokenizer.encode
                wholes = [
                    context + list(encode(option, add_special_tokens=False))
                    for option in request.options
                ]
            options = tuple(tuple(whole[len(context) :] or whole[-1:]) for whole in wholes)
            self._choices[request.prompt, request.options] = Choice(tuple(context), options)

    def _many_tokens(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        bos = self._tokenizer.bos_token
        has_bos = bool(bos) and texts[0].startswith(bos)  # a chat template may have written it
        encoded = self._tokenizer(texts, add_special_tokens=not has_bos)
        tokens: list[list[int]] = encoded["input_ids"]
        return tokens

    def _opening(self, request: Request) -> Opening:
        from forgetmap.evaluate.generation import Opening

        return Opening(
            tokens=tuple(self._encode(request.prompt)),
            max_tokens=request.max_tokens,
            stop=request.stop,
            temperature=request.temperature,
            seed=request.seed,
            is_complete=request.is_complete,
        )

    def _encode(self, prompt: Prompt) -> list[int]:
        return self._many_tokens([self._text(prompt)])[0] or [self._first_token]

    def _text(self, prompt: Prompt) -> str:
        if isinstance(prompt, str):
            return prompt
        messages = [{"role": role, "content": text} for role, text in prompt]
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
            )
        except Exception as error:  # a template is a program of the model's maker
            raise InputError(
                f"{self.name}: its chat template refuses the prompt ({brief(error)}); try --no-chat"
            ) from error

    @cached_property
    def _first_token(self) -> int:
        first = self._tokenizer.bos_token_id
        return int((self._tokenizer.eos_token_id if first is None else first) or 0)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise need("a local model", "eval") from error
        try:
            tokenizer = AutoTokenizer.from_pretrained(self._base)
        except (OSError, ValueError, KeyError, TypeError, ImportError, AttributeError) as error:
            raise InputError(
                f"{self._base}: its tokenizer cannot be loaded ({brief(error)})"
            ) from error
        return tokenizer

    @cached_property
    def _config(self) -> Any:
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(self._base).get_text_config()
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{self._base}: is not a model folder ({brief(error)})") from error

    @property
    def _positions(self) -> int:
        return int(getattr(self._config, "max_position_embeddings", None) or 2**31)

    @cached_property
    def _device(self) -> str:
        import torch

        wanted = self._how.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if wanted.startswith("cuda") and not torch.cuda.is_available():
            raise InputError(f"--device {wanted}: no CUDA device is here; leave it out or say cpu")
        if not wanted.startswith(("cuda", "cpu")):
            raise InputError(f"--device {wanted}: must be cpu, cuda or cuda:N")
        return wanted

    @property
    def _kind(self) -> str:
        return self._device.partition(":")[0]

    @cached_property
    def _network(self) -> PreTrainedModel:
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()  # one bar is enough, and it is ours
        _ = self._config  # a clearer error than the model's own, where the folder is none
        try:
            model = AutoModelForCausalLM.from_pretrained(
                self._base, dtype=getattr(torch, self._how.dtype)
            )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(
                f"{self._base}: the model cannot be loaded ({brief(error)})"
            ) from error
        if self._adapter:
            model = _with_adapter(model, self._adapter)
        rows = model.get_input_embeddings().weight.shape[0]
        if len(self._tokenizer) > rows:
            raise InputError(
                f"{self._base}: the tokenizer knows {len(self._tokenizer):,} tokens, the model "
                f"only {rows:,}; this tokenizer belongs to another model"
            )
        fold_batches(model)
        return model.to(self._device).eval()

    @cached_property
    def _scorer(self) -> PackedScorer:
        from forgetmap.evaluate.scoring import PackedScorer

        scorer = PackedScorer(self._network)
        if not scorer.packs:
            self.warnings.append(
                "this model's options cannot be packed; each gets a row of its own"
            )
        return scorer

    @cached_property
    def _writer(self) -> Writer:
        from forgetmap.evaluate.generation import Writer

        return Writer(self._network, self._tokenizer)


def _folder(name: str, owner: object, revision: str | None = None) -> Path:
    """The folder a name means: itself, a converted GGUF file, or a snapshot of the hub."""
    path = Path(name)
    if revision and path.exists():
        raise InputError(
            f"--revision {revision}: {name} lies here, and its bytes say which it is; leave it out"
        )
    if path.is_file() and path.suffix == ".gguf":
        from forgetmap.base.files import temporary_folder
        from forgetmap.evaluate.convert import convert_gguf

        return convert_gguf(path, temporary_folder(owner))
    if path.is_file():
        raise InputError(f"{name}: is a file; give a model folder, or a file that ends in .gguf")
    if path.is_dir():
        if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
            told = read_json_or_none(path / "adapter_config.json") or {}
            base = told.get("base_model_name_or_path") or "BASE"
            raise InputError(f"{name}: is an adapter; write it as BASE+ADAPTER: {base}+{name}")
        if not (path / "config.json").is_file():
            raise InputError(f"{name}: is not a model folder (no config.json)")
        return path
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InputError(f"{name}: no such model folder")
    return _from_hub(name, revision)


def _from_hub(name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise need("a local model", "eval") from error
    try:
        left_out = ["*.pth", "original/*", "*.gguf"]
        return Path(snapshot_download(name, revision=revision, ignore_patterns=left_out))
    except Exception as error:  # the hub's client raises what its HTTP library raises
        raise InputError(
            f"{name}: is not a folder here and could not be loaded from the hub ({brief(error)})"
        ) from error


def fold_batches(network: Any) -> None:
    """Have torch compute the logits of a batch as one product.

    It does so only where the weight asks for gradients. A base frozen by an adapter would take five
    times as long on a processor, and get other last bits than the same weights without an adapter.
    """
    head = network.get_output_embeddings()
    if head is not None and head.weight.is_floating_point():
        head.weight.requires_grad_(True)


def _with_adapter(model: Any, adapter: Path) -> Any:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise need("a local model", "eval") from error
    try:
        return PeftModel.from_pretrained(model, adapter).merge_and_unload()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(f"{adapter}: does not fit the base model ({brief(error)})") from error


def _engine() -> str:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise need("a local model", "eval") from error
    return f"transformers {transformers.__version__}, torch {torch.__version__}"
