"""Lock this process in, before anything that is not trusted runs.

`leave` is for machines without bubblewrap: it gives the process name spaces of its own, and a root
folder with nothing but Python in it. The rest is for both ways: limits, no rights, and the filter
of system calls. Whatever does not work ends the process: there is no running with less.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

from .system_calls import allow_only

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

NOBODY = 65534
_NO_SANDBOX = 97
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_NEW_USER, _NEW_PROCESSES = 0x10000000, 0x20000000
_NEW_REST = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x40000000
"""Mounts, control groups, host name, IPC, network."""
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}

libc = ctypes.CDLL(None, use_errno=True)


def refuse(what: str) -> NoReturn:
    """Say why there is no sandbox, and end."""
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()
    os._exit(_NO_SANDBOX)


def _need(what: str, failed: int) -> None:
    if failed:
        refuse(f"{what}: {os.strerror(ctypes.get_errno())}")


def limit(seconds: int, memory: int) -> None:
    """Limits on time, memory and files."""
    for what, soft, hard in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ):
        most = resource.getrlimit(what)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(what, (soft, hard))


def leave(root: str, shown: Sequence[str], links: Sequence[Sequence[str]]) -> None:
    """Leave the machine's name spaces; returns in a new process that sees only `shown`."""
    user, group = os.geteuid(), os.getegid()
    own_user = _NEW_USER if user else 0  # root has the rights, and becomes another user later
    _need("name spaces", libc.unshare(_NEW_REST | _NEW_PROCESSES | own_user))
    if user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{NOBODY} {user} 1"),
            ("gid_map", f"{NOBODY} {group} 1"),
        ):
            try:
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
            except OSError as error:
                refuse(f"user name space: {error.strerror}")
    _change_root(root, shown, links)
    _go_on_in_child()  # the first process of the new name space, which must outlive the rest
    _go_on_in_child()


def _change_root(root: str, shown: Sequence[str], links: Sequence[Sequence[str]]) -> None:
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    bare = _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    _mount("root", root, "tmpfs", bare, "mode=755,size=1m")
    only_read = struct.pack("QQQQ", _READ_ONLY | _NO_SUID | _NO_DEVICES, 0, 0, 0)
    for source in shown:
        place = root + source
        if os.path.isdir(source):
            os.makedirs(place)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(source, place, None, _BIND | _RECURSIVE)
        buffer = ctypes.create_string_buffer(only_read)
        done = libc.syscall(
            _MOUNT_SETATTR, _AT_FDCWD, place.encode(), _AT_RECURSIVE, buffer, len(only_read)
        )
        _need(f"read-only {source}", done)
    for path, target in links:
        os.symlink(target, root + path)
    os.chdir(root)
    _need("root folder", libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."))
    _need("root folder", libc.umount2(b".", _DETACH))
    os.chdir("/")
    _mount(None, "/", None, _REMOUNT | _BIND | _READ_ONLY | bare)


def _mount(source: str | None, place: str, kind: str | None, flags: int, more: str = "") -> None:
    texts = [text.encode() if text is not None else None for text in (source, place, kind)]
    _need(f"mount {place}", libc.mount(*texts, flags, more.encode() or None))


def _go_on_in_child() -> None:
    """Fork: the child goes on, the parent waits for it and ends as it did."""
    _end_with_parent()
    child = os.fork()
    if not child:
        _end_with_parent()
        return
    _, status = os.waitpid(child, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    os._exit(128 + ended_by if ended_by else os.WEXITSTATUS(status))


def _end_with_parent() -> None:
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def give_up_rights() -> None:
    """Become nobody, without any capability, for good."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        _end_with_parent()  # forgotten when the user changes
    version_3 = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    _need("capabilities", libc.capset(version_3, ctypes.create_string_buffer(24)))
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _need("no new privileges", libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def check_place(tops: Sequence[str]) -> None:
    """End unless we are where we should be, whoever has brought us here."""
    if {*os.getresuid(), *os.getresgid()} != {NOBODY}:
        refuse("the process has not become another user")
    if os.getpid() > 9:
        refuse("the process is not alone in its name space")
    if unknown := set(os.listdir("/")) - set(tops):
        refuse(f"the root folder holds {', '.join(sorted(unknown))}")


def keep_only_known_calls() -> None:
    """Load the filter of system calls."""
    if not allow_only(libc):
        refuse(f"filter of system calls: {os.strerror(ctypes.get_errno())}")
