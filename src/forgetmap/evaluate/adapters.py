"""Put an adapter onto the model it was trained on; what belongs to another is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.words import brief, some
from forgetmap.evaluate.describe import read_json_or_none


def check_adapter(adapter: Path) -> None:
    """Refuse what is no adapter folder."""
    if not (adapter / "adapter_config.json").is_file():
        raise InputError(f"{adapter}: is not an adapter folder (no adapter_config.json)")


def foreign_base(base: str, adapter: Path) -> str | None:
    """A warning where an adapter names another base than the one it is put on."""
    told = read_json_or_none(adapter / "adapter_config.json") or {}
    named = str(told.get("base_model_name_or_path") or "")
    if not named or Path(named).name.casefold() == Path(base).name.casefold():
        return None
    return f"{adapter.name} says it was trained on {named}, and is put on {base}"


def with_adapter(model: Any, adapter: Path) -> Any:
    """The model with the adapter merged into its weights, or beside quantised ones.

    Raises:
        InputError: If the adapter does not fit, or only a part of it does.
    """
    try:
        from peft import PeftModel
    except ImportError as error:
        raise need("a local model", "eval") from error
    if any(weight.device.type == "meta" for weight in model.parameters()):
        raise InputError(
            f"{adapter}: cannot be put on a model of which parts lie outside its devices; give it "
            "more --max-memory, or save base and adapter as one model"
        )
    _check_vocabulary(model, adapter)
    beside = getattr(model, "is_quantized", False)  # to merge into these would lose digits
    try:
        whole = PeftModel.from_pretrained(model, adapter)
        _check_all_used(whole, adapter)
        return whole.get_base_model() if beside else whole.merge_and_unload()
    except InputError:
        raise
    except Exception as error:  # peft raises what its many methods raise
        raise InputError(f"{adapter}: does not fit the base model ({brief(error)})") from error


def _check_vocabulary(model: Any, adapter: Path) -> None:
    """Tell a vocabulary that grew in training from an adapter of another model."""
    rows = model.get_input_embeddings().weight.shape[0]
    for name, shape in _shapes(adapter).items():
        grown = name.endswith(("embed_tokens.weight", "lm_head.weight")) and shape[0] != rows
        if grown:
            raise InputError(
                f"{adapter}: was trained with a vocabulary of {shape[0]:,} tokens, the base has "
                f"{rows:,}; save base and adapter as one model with the trainer, and name that"
            )


def _check_all_used(model: Any, adapter: Path) -> None:
    """Refuse an adapter of which peft would leave parts aside without a word."""
    from peft import get_peft_model_state_dict

    found = {name for name in _shapes(adapter) if ".lora_" in name}
    used = set(get_peft_model_state_dict(model, save_embedding_layers=False))
    if left := sorted(found - used):
        raise InputError(
            f"{adapter}: does not fit the base model (it has no place for {some(left)})"
        )


def _shapes(adapter: Path) -> dict[str, tuple[int, ...]]:
    """The tensors of an adapter by name; none where it is not a safetensors file."""
    from safetensors import SafetensorError, safe_open

    path = adapter / "adapter_model.safetensors"
    if not path.is_file():
        return {}
    try:
        with safe_open(path, "np") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{adapter}: its weights cannot be read ({brief(error)})") from error
