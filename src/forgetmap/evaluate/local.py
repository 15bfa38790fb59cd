"""A model in this process, by transformers: packed scoring, batched writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from forgetmap.base.errors import InputError
from forgetmap.base.likelihoods import option_tokens
from forgetmap.base.words import brief
from forgetmap.evaluate import loading, parallel
from forgetmap.evaluate.adapters import check_adapter, foreign_base
from forgetmap.evaluate.describe import tokenizer_hash, weights_hash
from forgetmap.evaluate.generation import Opening, Writer
from forgetmap.evaluate.loading import fold_batches as fold_batches  # for live models too
from forgetmap.evaluate.models import BF16_WARNING, PARALLEL, Model, Reply, RequestGroup, Running
from forgetmap.evaluate.prompts import Message, Prompt, Request
from forgetmap.evaluate.scoring import Choice, PackedScorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    Made = dict[tuple[Prompt, tuple[str, ...]], Choice]
    """Prompts and their options, as tokens."""

_TEXTS_A_BATCH = {"cpu": 16, "cuda": 256}
_TOKENS_A_BATCH = {"cpu": 2**14, "cuda": 2**17}
"""Of texts written together, with padding and what is to be written: what the cache has to hold."""
_LEAST_OF_THE_VOCABULARY = 0.9
"""Models are padded by a few hundred rows; a tokenizer that knows less is an odd one."""
_Asked = TypeVar("_Asked")


class LocalModel:
    """A model of transformers: a folder, hub id or GGUF file, perhaps with a LoRA adapter."""

    def __init__(
        self, base: str, adapter: str | None, how: Running, *, chat: bool | None = False
    ) -> None:
        if how.device == PARALLEL:
            parallel.check_shareable(base, adapter)
        self._base = loading.model_folder(base, self, how.revision)
        self._adapter = Path(adapter) if adapter else None
        if self._adapter:
            check_adapter(self._adapter)
        name = "+".join(Path(part).name for part in (base, adapter) if part)
        try:
            hashes = [weights_hash(folder) for folder in (self._base, self._adapter) if folder]
            tokens = tokenizer_hash(self._base)
        except OSError as error:
            raise InputError(f"{name}: cannot be read ({brief(error)})") from error
        self._set_up(name, how, chat, "+".join(hashes), tokens)
        self._tell_how(base)

    def _set_up(
        self, name: str, how: Running, chat: bool | None, weights: str, tokens: str
    ) -> None:
        self.name = name
        self._how = how
        self._share_that_fits = 1.0
        self._lender: LocalModel | None = None
        self._choices: Made = {}
        self._packs: bool | None = None
        engine = loading.engine()
        self._dtype = dtype = loading.find_dtype(how.dtype, self._device)
        self.warnings = [] if dtype == "float32" else [BF16_WARNING.format(dtype=dtype)]
        self.fingerprint = f"{weights}/{tokens}/{dtype}"
        template = self._tokenizer.chat_template
        if chat and not template:
            raise InputError(f"{name}: has no chat template; run with --no-chat")
        self.is_chat = bool(template) if chat is None else chat
        if self.is_chat:
            self._check_template()
        elif template:
            self.warnings.append(f"{name} has a chat template, which is off; --chat turns it on")
        used = str(template).encode() if self.is_chat else None
        self.settings = {
            "model type": "transformers",
            "dtype": dtype,
            "batch size": how.batch or "auto",
            "weights": weights,
            "tokenizer": tokens,
            "chat template": sha256(used).hexdigest()[:16] if used else None,
            "engine": engine,
        }

    def _tell_how(self, base: str) -> None:
        """What else changes answers goes into the fingerprint, and with the rest into settings."""
        how = self._how
        code = loading.own_code(self._base) if how.trust_code else None
        self.fingerprint += f"/{how.quantize}" if how.quantize else ""
        self.fingerprint += f"/code {code}" if code else ""
        bits = f"bitsandbytes, {how.quantize}" if how.quantize else loading.quantized_by(self._base)
        told = {"quantized": bits, "attention": how.attention, "own code": code}
        self.settings |= {name: value for name, value in told.items() if value}
        if bits:
            self.warnings.append(f"the weights are quantised ({bits}): items near a tie may flip")
        if self._adapter and (other := foreign_base(base, self._adapter)):
            self.warnings.append(other)

    def plan(self, requests: Sequence[Request]) -> list[RequestGroup]:
        """Score items of like length together; write texts of like length together."""
        from forgetmap.evaluate.scoring import plan_batches

        scored = [place for place, request in enumerate(requests) if request.options]
        made = self._as_choices([requests[place] for place in scored])
        choices = dict(zip(scored, made, strict=True))
        fitting = [place for place in scored if choices[place].longest <= self._positions]
        batches = plan_batches(
            [choices[place] for place in fitting],
            device=self._sized_as,
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
            fitting = min(
                _TEXTS_A_BATCH[self._sized_as], _TOKENS_A_BATCH[self._sized_as] // longest
            )
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
            scorer = self._scorer
            with self._step("score", part, shared, scorer.packs):
                found = scorer.score(part, shared)
            return [
                Reply(
                    likelihoods=tuple(option.log_likelihood for option in scored),
                    tokens=sum(len(option) for option in choice.options),
                )
                for choice, scored in zip(part, found, strict=True)
            ]

        return self._answer(choices, [choice.longest for choice in choices], score)

    def _write(self, openings: list[Opening]) -> list[Reply]:
        def write(part: list[Opening]) -> list[Reply]:
            writer = self._writer
            with self._step("write", part):
                texts = writer.write(part)
            return [
                Reply(text=written.text, finished=written.finished, tokens=written.tokens)
                for written in texts
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
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
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
            options = tuple(tuple(option_tokens(context, whole)) for whole in wholes)
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

    def _check_template(self) -> None:
        """Refuse a template that loses what is asked, before anything is."""
        asked = "What is the capital of France?"
        if asked not in self._text((Message("user", asked),)):
            raise InputError(
                f"{self.name}: its chat template leaves out the question; run with --no-chat"
            )

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return loading.load_tokenizer(self._base, self._how)

    @cached_property
    def _config(self) -> Any:
        return loading.load_config(self._base, self._how).get_text_config()

    @property
    def _positions(self) -> int:
        return int(getattr(self._config, "max_position_embeddings", None) or 2**31)

    @cached_property
    def _device(self) -> str:
        return loading.find_device(self._how.device)

    @property
    def _kind(self) -> str:
        return self._device.partition(":")[0]

    @property
    def _sized_as(self) -> str:
        """The device whose batch sizes fit."""
        return loading.device_kind(self._device)

    def share(self, before: Model) -> None:
        """Put the adapter on the weights of its base, which need not be loaded again."""
        if (
            isinstance(before, LocalModel)
            and self._adapter
            and not before._adapter
            and (before._base, before._how, before._dtype) == (self._base, self._how, self._dtype)
        ):
            self._lender = before

    def _give_away(self) -> PreTrainedModel | None:
        """The weights, if they are loaded; they are gone here, as an adapter changes them."""
        for name in ("_scorer", "_writer"):
            self.__dict__.pop(name, None)
        return self.__dict__.pop("_network", None)

    @cached_property
    def _network(self) -> PreTrainedModel:
        _ = self._config  # a clearer error than the model's own, where the folder is none
        lent = self._lender._give_away() if self._lender else None
        load = partial(
            loading.load_network,
            *(self._base, self._adapter, self._how, self._device, self._dtype, lent),
        )
        network: PreTrainedModel
        if self._device == PARALLEL:
            network = parallel.crew().load(load, self._base, self._how, self._dtype)
        else:
            network = load()
        self._check_tokenizer(network.get_input_embeddings().weight.shape[0])
        return network

    def _check_tokenizer(self, rows: int) -> None:
        """Refuse a tokenizer that the model cannot have; doubt one that leaves much of it idle."""
        known = len(self._tokenizer)
        if known > rows:
            raise InputError(
                f"{self._base}: the tokenizer knows {known:,} tokens, the model only {rows:,}; "
                "this tokenizer belongs to another model"
            )
        if known < _LEAST_OF_THE_VOCABULARY * rows:
            self.warnings.append(
                f"the tokenizer knows {known:,} tokens of the model's {rows:,}; does it belong to "
                "another model?"
            )

    @cached_property
    def _scorer(self) -> PackedScorer:
        from forgetmap.evaluate.scoring import PackedScorer

        network = self._network
        with self._step("probe", self._packs):
            scorer = PackedScorer(network, packs=self._packs)
        self._packs = scorer.packs
        if not scorer.packs:
            self.warnings.append(
                "this model's options cannot be packed; each gets a row of its own"
            )
        return scorer

    @cached_property
    def _writer(self) -> Writer:
        from forgetmap.evaluate.generation import Writer

        agree = {"agree": parallel.crew().broadcast} if self._device == PARALLEL else {}
        return Writer(self._network, self._tokenizer, **agree)

    def _step(self, name: str, *what: object) -> AbstractContextManager[None]:
        """Have other processes take a step with the model too, where they have parts of it."""
        if self._device != PARALLEL:
            return nullcontext()
        return parallel.crew().step(self._network, name, *what)


def _is_out_of_memory(error: Exception) -> bool:
    """Cards have an error of their own for it; Apple's GPUs and processors say it in words."""
    import torch

    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in said for words in ("out of memory", "not enough memory", "t allocate memory")
    )
