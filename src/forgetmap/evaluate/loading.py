"""Load a model of transformers: from where, onto which devices, in which numbers.

Whatever a loader raises becomes one line. Code that a model brings is never run unless it is asked
for, and weights that a folder lacks are never made up.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.base.files import file_hash
from forgetmap.base.words import brief, some
from forgetmap.evaluate import parallel
from forgetmap.evaluate.describe import read_json_or_none
from forgetmap.evaluate.models import PARALLEL, Running

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

_EVERYWHERE = "auto"
"""The device that stands for all cards, and for what does not fit onto them the processor."""


# --- where it lies --------------------------------------------------------------------------------


def model_folder(name: str, owner: object, revision: str | None = None) -> Path:
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


def own_code(folder: Path) -> str | None:
    """Hash of the programs that lie beside the weights; None where there are none."""
    files = sorted(folder.glob("*.py"))
    hashes = "".join(f"{file.name} {file_hash(file)}\n" for file in files)
    return sha256(hashes.encode()).hexdigest()[:16] if files else None


# --- onto which device, in which numbers ----------------------------------------------------------


def find_device(wanted: str | None) -> str:
    """The device that is asked for, or the best one here; `auto` means all cards together."""
    import torch

    if wanted is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == PARALLEL:
        parallel.crew()  # says how to start it where it was not
        return wanted
    kind, _, number = wanted.partition(":")
    if kind not in ("cpu", "cuda", "mps", _EVERYWHERE) or (number and kind != "cuda"):
        raise InputError(
            f"--device {wanted}: must be auto, cpu, cuda, cuda:N or mps; or parallel, in eval"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device {wanted}: no CUDA device is here; leave it out or say cpu")
    if kind == "cuda" and number and not (number.isdecimal() and int(number) < _cards()):
        raise InputError(f"--device {wanted}: this machine has {_cards()} cards, the first is 0")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("--device mps: torch finds no Apple GPU here; leave it out or say cpu")
    return wanted


def _cards() -> int:
    import torch

    return int(torch.cuda.device_count())


def device_kind(device: str) -> str:
    """Whose batch sizes fit: `cuda` for cards, `cpu` for all else."""
    import torch

    on_cards = device in (_EVERYWHERE, PARALLEL) and torch.cuda.is_available()
    return "cuda" if on_cards or device.startswith("cuda") else "cpu"


def find_dtype(wanted: str, device: str) -> str:
    """The type of the numbers: by default float32, and on cards bfloat16."""
    if wanted != "auto":
        return wanted
    return "bfloat16" if device_kind(device) == "cuda" else "float32"


def quantized_by(folder: Path) -> str | None:
    """How a folder says that its weights are quantised, such as `gptq, 4 bits`."""
    told = (read_json_or_none(folder / "config.json") or {}).get("quantization_config")
    if not isinstance(told, dict):
        return None
    bits = told.get("bits") or told.get("w_bit")
    if bits is None and (told.get("load_in_8bit") or told.get("load_in_4bit")):
        bits = 8 if told.get("load_in_8bit") else 4
    method = str(told.get("quant_method") or "an unnamed method")
    return f"{method}, {bits} bits" if bits else method


def max_memory(text: str) -> dict[int | str, str]:
    """What `--max-memory` says: one size for every card, or one for each device by name.

    Example:
        >>> max_memory("0=20GiB, cpu=60GiB")
        {0: '20GiB', 'cpu': '60GiB'}
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and "=" not in text:
        return dict.fromkeys(range(_cards()), _size(text.strip(), text)) or {"cpu": text.strip()}
    pairs = [part.partition("=")[::2] for part in parts]
    if bad := [name for name, _ in pairs if not (name.isdecimal() or name in ("cpu", "mps"))]:
        raise InputError(f"--max-memory {text}: {bad[0]!r} is no card's number, nor cpu or mps")
    return {int(name) if name.isdecimal() else name: _size(size, text) for name, size in pairs}


def _size(size: str, text: str) -> str:
    number = size.rstrip("GMKiB")
    if not size.endswith(("GB", "MB", "KB", "GiB", "MiB", "KiB")) or not number.isdecimal():
        raise InputError(f"--max-memory {text}: write a size as 20GiB, or as 0=20GiB,cpu=60GiB")
    return size


# --- the parts ------------------------------------------------------------------------------------


def load_tokenizer(base: Path, how: Running) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise need("a local model", "eval") from error
    try:
        return AutoTokenizer.from_pretrained(base, trust_remote_code=how.trust_code)
    except Exception as error:  # whatever a tokenizer of anybody's raises
        raise _told(base, "its tokenizer cannot be loaded", error) from error


def load_config(base: Path, how: Running) -> Any:
    """The configuration of a folder."""
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(base, trust_remote_code=how.trust_code)
    except Exception as error:
        raise _told(base, "is not a model folder", error) from error


def load_network(
    base: Path, adapter: Path | None, how: Running, device: str, dtype: str, loaded: Any = None
) -> Any:
    """The weights, on their devices, with the adapter in or beside them.

    `loaded` are the weights of the base where they are there already.
    """
    model, placed = (loaded, True) if loaded is not None else _load(base, how, device, dtype)
    if adapter:
        from forgetmap.evaluate.adapters import with_adapter

        model = with_adapter(model, adapter)
    fold_batches(model)
    # What was placed while it was loaded has hooks, or numbers that no other device understands.
    return (model if placed else model.to(device)).eval()


def _load(base: Path, how: Running, device: str, dtype: str) -> tuple[Any, bool]:
    """The weights, and whether they lie on their devices."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # one bar is enough, and it is ours
    spoken = logging.get_verbosity()
    logging.set_verbosity_error()  # what it reports of the weights is checked below
    placed = _placement(base, how, device, dtype)
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            base,
            dtype=getattr(torch, dtype),
            trust_remote_code=how.trust_code,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **({"attn_implementation": how.attention} if how.attention else {}),
            **placed,
        )
    except Exception as error:  # whatever a loader, a quantiser or the model's own code raises
        raise _told(base, "the model cannot be loaded", error) from error
    finally:
        logging.set_verbosity(spoken)
    _check_whole(base, told)
    return model, bool(placed)


def _placement(base: Path, how: Running, device: str, dtype: str) -> dict[str, Any]:
    """What has transformers place or quantise the weights as it loads them; nothing for plain."""
    already = quantized_by(base)
    if how.quantize and already:
        raise InputError(f"{base}: is quantised already ({already}); leave --quantize out")
    if how.max_memory and device != _EVERYWHERE:
        raise InputError("--max-memory: says how to spread a model; it needs --device auto")
    if device == PARALLEL and already:
        raise InputError(
            f"{base}: is quantised ({already}), which --device {PARALLEL} does not split; choose "
            f"--device {_EVERYWHERE}"
        )
    if device == PARALLEL:
        return parallel.split(base, load_config(base, how), how)
    if not (how.quantize or already or device == _EVERYWHERE):
        return {}
    _need_package("accelerate", "--device auto and quantised weights")
    placed: dict[str, Any] = {"device_map": _EVERYWHERE if device == _EVERYWHERE else {"": device}}
    if how.max_memory:
        placed["max_memory"] = max_memory(how.max_memory)
    if how.quantize:
        placed["quantization_config"] = _bits(how.quantize, dtype)
    return placed


def _bits(quantize: str, dtype: str) -> Any:
    import torch

    _need_package("bitsandbytes", f"--quantize {quantize}")
    from transformers import BitsAndBytesConfig

    if quantize == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=getattr(torch, dtype)
    )


def _need_package(package: str, what: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise InputError(f"{what}: needs {package}; install with: pip install {package}")


def _told(base: Path, what: str, error: Exception) -> InputError:
    """One line for what a loader raised; code of the model's own is a matter of trust."""
    if isinstance(error, InputError):
        return error
    said = str(error)
    if "trust_remote_code" in said:
        return InputError(
            f"{base}: brings code of its own, which was not run; read it, then --trust-code runs it"
        )
    if not base.is_dir():
        return InputError(
            f"{base}: was deleted or moved while it was read; finished answers are kept"
        )
    return InputError(f"{base}: {what} ({brief(error)})")


def _check_whole(base: Path, told: dict[str, Any]) -> None:
    """Refuse weights that are missing or do not fit: transformers would make up random ones."""
    for name, stored, wanted in sorted(told.get("mismatched_keys") or ()):
        raise InputError(
            f"{base}: {name} is {_shape(stored)}, and config.json says {_shape(wanted)}; was the "
            "vocabulary resized by training, and an old configuration saved?"
            if name.endswith(("embed_tokens.weight", "lm_head.weight"))
            else f"{base}: {name} is {_shape(stored)}, and config.json says {_shape(wanted)}"
        )
    lacking: Iterable[str] = told.get("missing_keys") or ()
    if names := sorted(lacking):
        tied = "; are they tied in config.json?" if "lm_head.weight" in names else ""
        raise InputError(f"{base}: weights are missing ({some(names)}){tied}")


def _shape(shape: Iterable[int]) -> str:
    return " x ".join(f"{int(size):,}" for size in shape)


def fold_batches(network: Any) -> None:
    """Have torch compute the logits of a batch as one product.

    It does so only where the weight asks for gradients. A base frozen by an adapter would take five
    times as long on a processor, and get other last bits than the same weights without an adapter.
    """
    head = network.get_output_embeddings()
    weight = None if head is None else head.weight
    if weight is not None and weight.is_floating_point() and weight.device.type != "meta":
        weight.requires_grad_(True)


def input_device(network: Any) -> torch.device:
    """Where a network wants its inputs; the weights themselves may lie elsewhere until needed."""
    import torch

    places = getattr(network, "hf_device_map", None) or {}
    used = [place for place in places.values() if place not in ("cpu", "disk")]
    if not places:
        device: torch.device = network.device
        return device
    first = used[0] if used else "cpu"
    return torch.device("cuda", first) if isinstance(first, int) else torch.device(first)


def engine() -> str:
    """The versions that compute the numbers."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise need("a local model", "eval") from error
    return f"transformers {transformers.__version__}, torch {torch.__version__}"
