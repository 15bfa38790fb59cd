"""The filter: the system calls that a Python program needs, and no other.

It is the kernel's seccomp filter. A call that is not listed fails with "not permitted". So do calls
of the list with arguments that reach out: opening a file to write, starting a process, and having
the kernel send signals (`fcntl` with F_SETOWN and its like).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

# Numbers of system calls: (x86-64, ARM64), None where the machine has no such call.
_ALLOWED = {
    # read and write what is open
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "close": (3, 57),
    "pread64": (17, 67), "preadv": (295, 69), "close_range": (436, 436), "lseek": (8, 62),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    # look at files
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17), "chdir": (80, 49),
    "getdents": (78, None), "getdents64": (217, 61), "statfs": (137, 43), "fstatfs": (138, 44),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "brk": (12, 214), "membarrier": (324, 283),
    # threads of its own
    "futex": (202, 98), "set_robust_list": (273, 99), "get_robust_list": (274, 100),
    "rseq": (334, 293), "set_tid_address": (218, 96), "arch_prctl": (158, None),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getcpu": (309, 168),
    # who and where it is
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158),
    "getresuid": (118, 148), "getresgid": (120, 150), "getpgrp": (111, None),
    "getpgid": (121, 155), "getsid": (124, 156), "uname": (63, 160), "sysinfo": (99, 179),
    "getrlimit": (97, 163), "getrusage": (98, 165), "times": (100, 153), "getrandom": (318, 278),
    # time, and signals that it gets
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None), "alarm": (37, None),
    "setitimer": (38, 103), "getitimer": (36, 102), "pause": (34, None),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137), "restart_syscall": (219, 128),
    "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
_OPEN, _OPENAT, _CLONE, _CLONE3 = (2, None), (257, 56), (56, 220), (435, 435)
_FCNTL, _IOCTL, _PRLIMIT = (72, 25), (16, 29), (302, 261)
_CLONE_THREAD = 0x00010000
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FCNTL_ALLOWED = (0, 1, 2, 3, 1030)
"""Copy a descriptor, read its flags, close it on exec; nothing that makes the kernel signal."""
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x5421, 0x541B, 0x5450, 0x5451)
"""Is it a terminal, how large, may it block, how much is there, close it on exec."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
"""Bit of the other, older numbering on x86-64; nothing needs it."""

# Classic BPF: load a word, jump if equal, jump if any bit set, return.
_LOAD, _EQUAL, _ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _ABSENT, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_PR_SET_SECCOMP = 22

_Rule = tuple[int, int, int, int]


def allow_only(libc: ctypes.CDLL) -> bool:
    """Give up all other system calls for good; False where the kernel does not know how."""
    rules = _rules(*_MACHINES[os.uname().machine])
    held = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    head = struct.pack("H6xQ", len(rules), ctypes.addressof(held))
    return not libc.prctl(_PR_SET_SECCOMP, 2, ctypes.create_string_buffer(head), 0, 0)


def _rules(column: int, architecture: int) -> list[_Rule]:
    listed = [numbers[column] for numbers in _ALLOWED.values()]
    return [
        (_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER), (_ANY, 0, 1, _X32), (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ABSENT),  # then clone is used
        *_if_call(_CLONE[column], _argument(0), (_ANY, 0, 1, _CLONE_THREAD), _YES),
        *_if_call(_OPEN[column], _argument(1), (_ANY, 1, 0, _WRITE_FLAGS), _YES),
        *_if_call(_OPENAT[column], _argument(2), (_ANY, 1, 0, _WRITE_FLAGS), _YES),
        *_if_call(_FCNTL[column], _argument(1), *_one_of(_FCNTL_ALLOWED)),
        *_if_call(_IOCTL[column], _argument(1), *_one_of(_IOCTL_ALLOWED)),
        *_if_call(  # to read limits; a limit to set is a pointer, in two words
            _PRLIMIT[column],
            _argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=4), (_EQUAL, 0, 1, 0), _YES,
        ),
        *_one_of([number for number in listed if number is not None]),
        _NO,
    ]  # fmt: skip


_YES, _NO = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)


def _if_call(number: int | None, *rules: _Rule) -> list[_Rule]:
    """Rules for one call; it is refused where they do not allow it."""
    return [] if number is None else [(_EQUAL, 0, len(rules) + 1, number), *rules, _NO]


def _argument(place: int, high: int = 0) -> _Rule:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place + high)


def _one_of(numbers: Sequence[int]) -> list[_Rule]:
    return [rule for number in numbers for rule in ((_EQUAL, 0, 1, number), _YES)]
