"""The walls of the sandbox: bubblewrap where it is there, else name spaces of our own.

Behind either there is a read-only view of Python's own library and nothing else: no other file, no
device, no other process, no network, no environment, and another user. Where neither can be had,
nothing is run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_PLACE_INSIDE = "/sandbox"
_BEGIN = "import sys; sys.path.append(sys.argv[1]); from inside.main import main; main()"
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib32", "/lib64")
_OTHER = ("/etc/ld.so.cache", "/usr/share/zoneinfo", "/nix/store", "/gnu/store")
NOBODY = 65534
MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True)
class View:
    """What can be seen from inside: paths, and links."""

    shown: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    python: str

    @property
    def tops(self) -> list[str]:
        """The names in the root folder."""
        paths = [*self.shown, *(path for path, _ in self.links), _PLACE_INSIDE]
        return sorted({Path(path).parts[1] for path in paths})


def python_only() -> View:
    """Python, its own library, and what it is linked to; no installed package is needed."""
    python = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefixes = {sys.base_prefix, sys.base_exec_prefix, str(Path(python).parent.parent)}
    wanted = [*_SYSTEM, *_OTHER, python, sysconfig.get_path("stdlib")]
    wanted += [f"{prefix}/{name}" for prefix in prefixes for name in ("lib", "lib64")]
    shown, links = set[str](), set[tuple[str, str]]()
    for path in wanted:
        if os.path.islink(path) and path.count("/") == 1:
            links.add((path, os.readlink(path)))
        if os.path.exists(path):
            shown.add(os.path.realpath(path))
    outermost = [path for path in shown if not any(path.startswith(f"{other}/") for other in shown)]
    return View(tuple(sorted(outermost)), tuple(sorted(links)), python)


@dataclass(frozen=True)
class Boundary:
    """One kind of walls."""

    name: str
    bwrap: str = ""
    """Path of bubblewrap; empty for name spaces of our own."""

    def command(self, view: View, root: str, wanted: dict[str, Any]) -> list[str]:
        """The command that locks itself in; `root` is an empty folder."""
        place = _PLACE_INSIDE if self.bwrap else str(_FOLDER)
        known = {
            "root": "" if self.bwrap else root,
            "shown": view.shown,
            "links": view.links,
            "tops": view.tops,
        }
        begin = [view.python, "-P", "-s", "-S", "-B", "-X", "utf8", "-c", _BEGIN, place]
        return [*self._walls(view), *begin, json.dumps(wanted | known)]

    def _walls(self, view: View) -> list[str]:
        if not self.bwrap:
            return []
        walls = [self.bwrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        walls += ["--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"]
        if os.geteuid():
            walls += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        else:  # then the process itself becomes nobody
            walls += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        for folder in sorted({str(one) for path in view.shown for one in Path(path).parents}):
            walls += ["--dir", folder]  # else they are closed to others, as they may be outside
        for path in view.shown:
            walls += ["--ro-bind", path, path]
        for path, target in view.links:
            walls += ["--symlink", target, path]
        inside = f"{_PLACE_INSIDE}/inside"
        return [
            *walls,
            *("--ro-bind", str(_FOLDER / "inside"), inside, "--remount-ro", "/", "--chdir", "/"),
        ]


OWN = Boundary("own name spaces")


def candidates() -> Sequence[Boundary]:
    """The kinds of walls to try, best first."""
    bwrap = shutil.which("bwrap")
    return [Boundary("bubblewrap", bwrap), OWN] if bwrap else [OWN]
