"""Runs one untrusted program and reports the outcome of each test; started by `sandbox`.

Run as a script in a process of its own. It reads its orders, locks itself in, and only then runs
what it was given. It must not import forgetmap: everything loaded here is within the program's
reach.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import random
import resource
import struct
import sys
from typing import Any, TextIO

NO_SANDBOX = 97

# Numbers of system calls: (x86-64, ARM64), None where the machine has no such call.
_START = {  # processes other than this one: starting, signalling, reading them
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
}  # fmt: skip
_REACH = {  # the network, the kernel, the name spaces
    "socket": (41, 198), "io_uring_setup": (425, 425), "bpf": (321, 280), "unshare": (272, 97),
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "mount_setattr": (442, 442), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsmount": (432, 432), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241), "init_module": (175, 105), "finit_module": (313, 273),
    "kexec_load": (246, 104), "reboot": (169, 142), "setrlimit": (160, 164),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "setpriority": (141, 140), "prlimit64": (302, 261), "open_by_handle_at": (304, 265),
    "capset": (126, 91), "prctl": (157, 167),
}  # fmt: skip
_CHANGE = {  # files, where no disk of its own could be given
    "creat": (85, None), "openat2": (437, 437), "truncate": (76, 45), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "unlink": (87, None), "unlinkat": (263, 35),
    "rmdir": (84, None), "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None),
    "mknodat": (259, 33), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None),
    "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "futimesat": (261, None),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattr": (197, 14), "fallocate": (285, 47), "swapon": (167, 224),
}  # fmt: skip
_OPEN, _OPENAT, _CLONE, _CLONE3 = (2, None), (257, 56), (56, 220), (435, 435)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
"""Bit of the other, older numbering on x86-64; nothing needs it."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE = 22, 38, 4
_CLONE_THREAD = 0x00010000
_NEW = 0x10000000 | 0x40000000 | 0x00020000 | 0x08000000  # user, network, mounts, IPC
_AT_RECURSIVE, _MOUNT_SETATTR = 0x8000, 442

# Classic BPF: load a word, jump if equal, jump if any bit set, return.
_LOAD, _EQUAL, _ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _ABSENT, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Read the orders, lock in, run."""
    folder, seconds, memory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    orders = json.load(sys.stdin.buffer)
    report = os.fdopen(os.dup(1), "w", buffering=1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    limit(seconds, memory)
    has_own_disk = give_own_disk(folder)
    give_up_rights()
    if not forbid(may_write=has_own_disk):
        os._exit(NO_SANDBOX)
    report.write(f"{orders['token']} ready\n")
    random.seed(0)
    run(orders, report)


def limit(seconds: int, memory: int) -> None:
    """Limits that also hold where the system call filter does not reach."""
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 2**24),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


def give_own_disk(folder: str) -> bool:
    """Leave the network and make all disks read-only but for one in memory at `folder`."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW):
        return False
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {user} 1"),
            ("gid_map", f"0 {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        return False
    read_only = ctypes.create_string_buffer(struct.pack("QQQQ", 1, 0, 1 << 18, 0))  # and private
    if libc.syscall(_MOUNT_SETATTR, -100, b"/", _AT_RECURSIVE, read_only, 32):
        return False
    no_devices_or_programs = 2 | 4 | 8  # nosuid, nodev, noexec
    if libc.mount(
        b"own", folder.encode(), b"tmpfs", no_devices_or_programs, b"size=64m,nr_inodes=1000"
    ):
        return False
    os.chdir(folder)
    return True


def give_up_rights() -> None:
    """Drop all capabilities, which root has here, or everybody in a name space of their own."""
    version_3 = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    libc.capset(version_3, ctypes.create_string_buffer(24))


def forbid(may_write: bool) -> bool:
    """Give up system calls for good; False where the kernel does not know how."""
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    rules = _rules(*_MACHINES[platform.machine()], may_write)
    program = b"".join(struct.pack("HBBI", *rule) for rule in rules)
    held = ctypes.create_string_buffer(program)
    head = struct.pack("H6xQ", len(rules), ctypes.addressof(held))
    return not libc.prctl(_PR_SET_SECCOMP, 2, ctypes.create_string_buffer(head), 0, 0)


def _rules(column: int, architecture: int, may_write: bool) -> list[tuple[int, int, int, int]]:
    """The filter: refuse what is listed, allow the rest."""
    rules = [
        (_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER), (_ANY, 0, 1, _X32), (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ABSENT),  # then clone is used
        (_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _ARGUMENTS), (_ANY, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW),  # a thread, not a process
    ]  # fmt: skip
    for numbers in (_START | _REACH | ({} if may_write else _CHANGE)).values():
        if (number := numbers[column]) is not None:
            rules += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    for numbers, place in ((_OPEN, 1), (_OPENAT, 2)):
        if (number := numbers[column]) is not None and not may_write:
            rules += [
                (_EQUAL, 0, 4, number), (_LOAD, 0, 0, _ARGUMENTS + 8 * place),
                (_ANY, 0, 1, _WRITE_FLAGS), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW),
            ]  # fmt: skip
    return [*rules, (_RETURN, 0, 0, _ALLOW)]


def run(orders: dict[str, Any], report: TextIO) -> None:
    """Run the definitions, then each test; what has been found out is reported at once."""
    token, code, tests = orders["token"], orders["code"], orders["tests"]
    space: dict[str, object] = {"__name__": "program"}
    failed = attempt(code, space)
    for number, test in enumerate(tests):
        outcome = failed or attempt(test, space) or "passed"
        report.write(f"{token} {number} {outcome}\n")
    os._exit(0)  # no handler that the program may have left behind


def attempt(code: object, space: dict[str, object]) -> str | None:
    """Run a piece of code; the name of what it raised, SystemExit too."""
    try:
        exec(compile(str(code), "program", "exec"), space)
    except BaseException as error:
        return type(error).__name__
    return None


if __name__ == "__main__":
    main()
