"""The files of an Inspect log: its header and its samples, out of a zip archive or JSON.

Since 0.3.206 members are packed with zstd, which zipfile reads from Python 3.14 on only. The
package `zstandard` unpacks them; Inspect's own API, slower by two orders of magnitude, does where
that is missing or where a sample is kept in several members. Archives are untrusted: all members
are checked before one is unpacked.
"""

from __future__ import annotations

import importlib.util
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from forgetmap.base.errors import InputError
from forgetmap.base.files import open_binary
from forgetmap.base.json import parse_json, read_json
from forgetmap.base.limits import MEMBER_MIB, MEMBERS, MIB, RATIO, check_unpacked
from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object, malformed

_ZSTD = 93
_PLAIN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)
_PART_OF_SAMPLE = re.compile(r"samples/.+_epoch_\d+/.+", re.DOTALL)
_FIELDS = {
    *("id", "epoch", "input", "choices", "target"),
    *("output", "scores", "error", "limit", "invalidation"),
}
"""All that is used of a sample."""


def naming(file: Path, member: str) -> malformed:
    """Turn any trouble with a member into one line that names it."""
    return malformed(file, f": {member}", "damaged, or of an unknown form")


def read_header(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Read the header of a log, with warnings about it."""
    if file.suffix == ".json":
        return {name: v for name, v in _read_log(file).items() if name != "samples"}, []
    with _Archive.open(file) as archive:
        if archive.needs_inspect:
            with naming(file, "header"):
                log = _inspect(file).read_eval_log(str(file), header_only=True)
                return log.model_dump(mode="json"), []
        if "header.json" in archive.members:
            return archive.parse("header.json"), []
        if "_journal/start.json" in archive.members:
            crashed = f"{file_name(file)}: has no header.json; the run crashed or is still going"
            return archive.parse("_journal/start.json"), [crashed]
    raise InputError(
        f"{file}: has neither header.json nor _journal/start.json; it is not an Inspect log"
    )


def read_samples(file: Path, how: ReadOptions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (member, sample), one at a time."""
    how.tally.files.add(file)
    if file.suffix == ".json":
        how.tick(file.stat().st_size)
        for index, sample in enumerate(_read_log(file).get("samples") or []):
            yield f"samples[{index}]", sample
        return
    with _Archive.open(file) as archive:
        if archive.needs_inspect:
            how.tick(file.stat().st_size)
            yield from _samples_by_inspect(file)
            return
        for name, info in archive.members.items():
            how.tick(info.compress_size)
            if _SAMPLE.fullmatch(name):
                yield name, archive.parse(name)


def _read_log(file: Path) -> dict[str, Any]:
    log = read_json(file)
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list | None):
        raise InputError(f"{file}: is not an Inspect log")
    return log


def _inspect(file: Path) -> Any:
    if importlib.util.find_spec("inspect_ai") is None:
        raise InputError(
            f"{file}: is packed in a way that needs Inspect to read; install forgetmap[inspect]"
        )
    return importlib.import_module("inspect_ai.log")


def _samples_by_inspect(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with naming(file, "samples"):
        samples = _inspect(file).read_eval_log_samples(str(file), all_samples_required=False)
        for sample in samples:
            name = f"samples/{sample.id}_epoch_{sample.epoch}.json"
            yield name, sample.model_dump(mode="json", include=_FIELDS)


class _Archive:
    """An `.eval` file whose members were all checked, before any is unpacked."""

    def __init__(self, file: Path, raw: BinaryIO) -> None:
        self.file, self.raw = file, raw
        with naming(file, "zip directory"):
            self.zip = zipfile.ZipFile(raw)
        infos = self.zip.infolist()
        if len(infos) > MEMBERS.value:
            raise InputError(f"{file}: has {len(infos):,} members; {MEMBERS.advice}")
        size = file.stat().st_size
        for info in infos:
            if why := _suspicious(info, size):
                raise InputError(f"{file}: {info.filename!r:.80}: {why}; nothing was read")
        check_unpacked(file, sum(info.file_size for info in infos), size)
        self.members = {info.filename: info for info in infos}  # of two with one name the last
        self.needs_inspect = any(_PART_OF_SAMPLE.fullmatch(name) for name in self.members) or (
            importlib.util.find_spec("zstandard") is None
            and any(info.compress_type not in _PLAIN for info in infos)
        )

    @classmethod
    @contextmanager
    def open(cls, file: Path) -> Iterator[_Archive]:
        """Open a file; it is closed at the end."""
        with open_binary(file) as raw:
            yield cls(file, raw)

    def parse(self, name: str) -> dict[str, Any]:
        """Unpack one member and parse its JSON object."""
        info = self.members[name]
        with naming(self.file, name):
            if info.compress_type == _ZSTD:
                content = self._unpack_zstd(info)
            else:
                with self.zip.open(info) as member:
                    content = member.read(MEMBER_MIB.value * MIB + 1)
            return as_object(parse_json(content))

    def _unpack_zstd(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack what zipfile cannot; never more than the directory says."""
        zstandard = importlib.import_module("zstandard")
        self.raw.seek(info.header_offset)
        start = self.raw.read(30)
        if start[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile("no member where the directory says")
        self.raw.seek(sum(struct.unpack("<HH", start[26:30])), io.SEEK_CUR)
        packed = io.BytesIO(self.raw.read(info.compress_size))
        try:
            unpacker = zstandard.ZstdDecompressor(max_window_size=MEMBER_MIB.value * MIB)
            content: bytes = unpacker.stream_reader(packed).read(info.file_size + 1)
        except (zstandard.ZstdError, MemoryError) as error:  # a damaged frame may ask for any size
            raise zipfile.BadZipFile(str(error) or "asks for too much memory") from error
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile("its size or checksum is wrong")
        return content


def _suspicious(info: zipfile.ZipInfo, archive_size: int) -> str | None:
    """Say why a member must not be unpacked."""
    parts = info.filename.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or parts[0].endswith(":"):
        return "its name leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link"
    if info.flag_bits & 1:
        return "is encrypted"
    if info.compress_type not in {*_PLAIN, _ZSTD}:
        return f"is packed by the unknown method {info.compress_type}"
    if info.compress_size > archive_size:
        return f"claims {info.compress_size:,} bytes of the {archive_size:,} that the file has"
    if info.file_size > MEMBER_MIB.value * MIB:
        return f"unpacks to {info.file_size:,} bytes; {MEMBER_MIB.advice}"
    if info.file_size > max(MIB, RATIO.value * info.compress_size):
        return f"unpacks to more than {RATIO.value} times its size; {RATIO.advice}"
    return None
