"""What a model wrote runs behind walls, or not at all: every known attack, in every mode."""

from __future__ import annotations

import ast
import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import forgetmap
import sandbox_mode
from forgetmap.base.errors import InputError
from forgetmap.capabilities.scorers.sandbox import boundary, programs
from forgetmap.capabilities.scorers.sandbox.inside import plain, system_calls
from forgetmap.capabilities.scorers.sandbox.programs import OUTCOMES, Program
from walls import needs_sandbox

SECRET = "sk-4b1d-secret-key"
SOURCE = Path(forgetmap.__file__).parent.parent
SCRIPT = sandbox_mode.__file__


class Mode(NamedTuple):
    """Who runs the sandbox, where, and by which means."""

    user: str
    name_spaces: bool
    walls: str

    def __str__(self) -> str:
        return f"{self.user}, {'' if self.name_spaces else 'no '}name spaces, {self.walls}"


MODES = [Mode(*one) for one in itertools.product(("root", "user"), (True, False), ("bwrap", "own"))]
OPEN = [mode for mode in MODES if mode.name_spaces]
CLOSED = [mode for mode in MODES if not mode.name_spaces]


def python_for(mode: Mode) -> str:
    """A Python that the mode's user can start; skips where there is none."""
    if mode.walls == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    if mode.user == "root" and os.geteuid() != 0:
        pytest.skip("the tests do not run as root")
    if mode.user == "root" or os.geteuid() != 0:
        return sys.executable
    probe = f"import sys, forgetmap.capabilities.scorers.sandbox.programs; open({SCRIPT!r}); "
    probe += "sys.exit(sys.version_info < (3, 11))"
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [python, "-c", probe],
                user=sandbox_mode.USER,
                group=sandbox_mode.USER,
                extra_groups=[],
                env={"PYTHONPATH": str(SOURCE)},
                cwd="/",
                capture_output=True,
                check=False,
            )
            if done.returncode == 0:
                return python
    pytest.skip("another user can start no Python that reads this repository")


def start(mode: Mode, *wanted: Program, seconds: int = 5) -> dict[str, object]:
    """Run programs in a mode."""
    asked = {
        "as_user": mode.user == "user",
        "name_spaces": mode.name_spaces,
        "walls": mode.walls,
        "seconds": seconds,
        "programs": [vars(one) for one in wanted],
    }
    done = subprocess.run(
        [python_for(mode), "-s", SCRIPT],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "API_KEY": SECRET},
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def outcomes(mode: Mode, *wanted: Program, seconds: int = 5) -> list[list[str]]:
    found = start(mode, *wanted, seconds=seconds)
    if "refused" in found:
        pytest.skip(f"not on this machine: {found['refused']}")
    return found["outcomes"]


def standing() -> list[boundary.Boundary]:
    """The kinds of walls that this machine has."""
    found = []
    for one in boundary.candidates():
        with contextlib.suppress(InputError):
            programs.run(Program("", ["assert 1"]), one)
            found.append(one)
    return found


# --- the attacks ----------------------------------------------------------------------------------

WORKED = "assert worked"
"""The test of an attack that can tell itself whether it worked."""


def attacks(outside: Path, victim: int) -> dict[str, Program]:
    """Programs that try to do harm; none may pass."""
    told = {
        # the five that once worked
        "signal by fcntl": f"""
import fcntl, os
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, {victim})
fcntl.fcntl(r, 10, 9)  # F_SETSIG
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(w, b'x')
worked = True""",
        "signal by ioctl": f"""
import fcntl, os, struct
r, w = os.pipe()
fcntl.ioctl(r, 0x8901, struct.pack('i', {victim}))  # FIOSETOWN
fcntl.ioctl(r, 0x5452, struct.pack('i', 1))  # FIOASYNC
os.write(w, b'x')
worked = True""",
        "block device": """
import os, stat
worked = False
for top, folders, names in os.walk('/'):
    folders[:] = folders if top.count('/') < 2 else []
    for name in names:
        path = os.path.join(top, name)
        if stat.S_ISBLK(os.lstat(path).st_mode) or stat.S_ISCHR(os.lstat(path).st_mode):
            worked = True""",
        "device by name": f"import os\nworked = os.open('{outside}/device', os.O_WRONLY) > 0",
        "make a device": """
import os, stat
os.mknod('/device', 0o600 | stat.S_IFBLK, os.makedev(8, 0))
worked = True""",
        "read a file": f"worked = 'secret' in open('{outside}/kept').read()",
        "file in the name of an exception": f"""
try: text = open('{outside}/kept').read()
except Exception: text = '{SECRET}'
raise type(text, (Exception,), {{}})""",
        "environment": f"""
import os, glob
worked = '{SECRET[:7]}' in str(dict(os.environ))
for path in glob.glob('/proc/*/environ'):
    try: worked = worked or b'{SECRET[:7]}' in open(path, 'rb').read()
    except OSError: pass""",
        "memory of others": """
import os
worked = False
for pid in {os.getppid(), 1, 2, 3}:
    try: worked = worked or bool(open(f'/proc/{pid}/maps').read())
    except OSError: pass""",
        "memory by call": f"""
import ctypes
local = ctypes.create_string_buffer(8)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
worked = any(ctypes.CDLL(None).process_vm_readv(p, vector, 1, vector, 1, 0) > 0
             for p in (1, {victim}))""",
        # processes
        "fork": "import os\nworked = os.fork() >= 0",
        "vfork": "import ctypes\nworked = ctypes.CDLL(None).vfork() != -1",
        "spawn": "import os\nworked = os.posix_spawn('/bin/true', ['true'], {}) > 0",
        "exec": "import os, sys\nos.execv('/usr/bin/python3', ['python3'])",
        "kill": f"import os\nos.kill({victim}, 9)\nworked = True",
        "kill all": "import os\nos.kill(-1, 9)\nworked = True",
        "trace": "import ctypes\nworked = ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
        # network and kernel
        "socket": "import socket\nworked = bool(socket.socket())",
        "unix socket": "import socket\nworked = bool(socket.socket(socket.AF_UNIX))",
        "mount": "import ctypes\nworked = not ctypes.CDLL(None).mount(b'', b'/', b'tmpfs', 0, b'')",
        "name space": "import ctypes\nworked = ctypes.CDLL(None).unshare(0x10000000) == 0",
        "rights": "import os\nos.setuid(0)\nworked = True",
        "unlimit": "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (9**9, 9**9))\nworked = True",
        "ring": "import ctypes\nworked = ctypes.CDLL(None).syscall(425, 1, bytes(200)) >= 0",
        # files
        "write": f"worked = bool(open('{outside}/new', 'w'))",
        "append": f"worked = bool(open('{outside}/kept', 'a'))",
        "remove": f"import os\nos.remove('{outside}/kept')\nworked = True",
        "mode": f"import os\nos.chmod('{outside}/kept', 0)\nworked = True",
        "folder": "import os\nos.mkdir('/folder')\nworked = True",
        "library": "import json\nworked = bool(open(json.__file__, 'w'))",
        "shared memory": "worked = bool(open('/dev/shm/forgetmap-escape', 'w'))",
        "who else": "import os\nworked = os.getuid() == 0 or len(os.listdir('/')) > 9",
    }
    return {name: Program(code, [WORKED]) for name, code in told.items()} | FORGERIES


LIE = """
class Liar:
    __eq__ = __ne__ = __lt__ = __bool__ = __contains__ = lambda *_: True
    __hash__ = None
def f(): return Liar()
"""
FORGED = {
    "lying value": LIE,
    "lying number": "class N(int):\n    __eq__ = lambda *_: True\ndef f(): return N(2)",
    "lying text": "class N(str):\n    __eq__ = lambda *_: True\ndef f(): return N('2')",
    "lying list": "class N(list):\n    __eq__ = lambda *_: True\ndef f(): return N()",
    "checker in __main__": """
import __main__, sys
for module in [__main__, *list(sys.modules.values())]:
    for name in ('attempt', '_attempt', 'check', 'run', 'exec', 'outcome', 'compile'):
        try: setattr(module, name, lambda *_: None)
        except Exception: pass
def f(): return 2""",
    "built-ins": """
import builtins
builtins.AssertionError = builtins.Exception = type('E', (BaseException,), {})
builtins.exec = builtins.compile = lambda *_: None
def f(): return 2""",
    "frames": """
import sys
frame = sys._getframe()
while frame:
    for name in frame.f_locals: frame.f_locals[name] = 'passed'
    frame = frame.f_back
def f(): return 2""",
    "all pipes": r"""
import os
def f():
    for n in range(64):
        for text in (b'x passed\n', b'\x0a\0\0\0["done"]  '):
            try: os.write(n, text)
            except OSError: pass
    return 2""",
    "wrong answers ahead": r"""
import os, json, struct
for n in range(3, 64):
    for message in (['done'], ['names', [['value', 1]]], ['passed'], ['value', {}, []], [[[]]]):
        text = json.dumps(message).encode()
        try: os.write(n, struct.pack('<I', len(text)) + text)
        except OSError: pass
def f(): return 2""",
    "endless message": r"""
import os
def f():
    for n in range(3, 64):
        try: os.write(n, b'\xff\xff\xff\xff' * 100)
        except OSError: pass""",
    "deep message": r"""
import os, struct
def f():
    for n in range(3, 64):
        text = b'[' * 100000
        try: os.write(n, struct.pack('<I', len(text)) + text)
        except OSError: pass""",
    "own assert": "def f(): raise AssertionError",
    "exit": "import sys\nsys.exit(0)",
    "hard exit": "import os\nos._exit(0)",
    "exit in a call": "import os\ndef f(): os._exit(0)",
    "at exit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit",
    "exit code of the walls": "import os\nos._exit(97)",
    "crash": "import ctypes\nctypes.string_at(0)",
    "memory": "x = 'a' * 2**33",
    "recursion": "def f(): return f()",
    "cycle": "def f():\n    held = []\n    held.append(held)\n    return held",
    "endless values": "def f():\n    while True: yield 1",
    "large value": "def f(): return 'a' * 10**7",
    "null byte": "x = 'a\x00b'",
    "loud": "print('passed\\n' * 1000)\ndef f(): print('passed'); return 2",
}  # fmt: skip
FORGERIES = {
    name: Program(code, ["assert f() == 1", "assert f() == 3"]) for name, code in FORGED.items()
}
FORGERIES["takes over abs"] = Program(
    "def abs(_): return 0\ndef f(): return 2", ["assert abs(f() - 1) < 0.1"]
)
FORGERIES["takes over a set"] = Program(
    "def set(_): return 0\ndef sum(*_): return 2", ["assert set(sum(1, 2)) == set([1])"]
)
FORGERIES["takes over a helper"] = Program(
    "def f(): return 2\ndef near(*_): return True", ["assert near(f(), 1)"],
    "f", "def near(a, b):\n    return a == b\ndef f():\n    ...",
)  # fmt: skip
FORGERIES["takes over a module"] = Program(
    "class math: isclose = lambda *_: True\ndef f(): return 2", ["assert math.isclose(f(), 1)"]
)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that everybody may change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "kept").write_text(SECRET)
        (folder / "kept").chmod(0o666)
        if os.geteuid() == 0:
            os.mknod(folder / "device", stat.S_IFCHR, os.makedev(1, 3))
            (folder / "device").chmod(0o666)
        yield folder


@pytest.fixture
def victim():
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("mode", OPEN, ids=str)
def test_no_attack_works(mode, outside, victim):
    tried = attacks(outside, victim.pid)
    found = dict(zip(tried, outcomes(mode, *tried.values()), strict=True))
    assert {name: said for name, said in found.items() if "passed" in said} == {}
    assert {word for said in found.values() for word in said} <= set(OUTCOMES)
    assert_untouched(outside, victim)


@pytest.mark.parametrize("mode", CLOSED, ids=str)
def test_without_name_spaces_nothing_is_run(mode, outside, victim):
    found = start(mode, *attacks(outside, victim.pid).values())
    assert set(found) == {"refused"}
    assert "no sandbox can be made here" in found["refused"]
    assert "so no code is run" in found["refused"]
    assert_untouched(outside, victim)


def assert_untouched(outside: Path, victim: subprocess.Popen[bytes]) -> None:
    assert {path.name for path in outside.iterdir()} <= {"kept", "device"}
    assert (outside / "kept").read_text() == SECRET
    assert (outside / "kept").stat().st_mode & 0o777 == 0o666
    assert not Path("/dev/shm/forgetmap-escape").exists()
    assert victim.poll() is None


HARMLESS = ("read a file", "environment", "memory of others", "fork", "socket", "write", "who else")


@pytest.mark.parametrize("name", HARMLESS)
def test_an_attack_works_where_nothing_stops_it(name, outside, victim):
    """The tests above would show nothing if the attacks were none."""
    code = attacks(outside, victim.pid)[name].code
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nassert worked"], env={"API_KEY": SECRET}, check=False
    )
    assert done.returncode == 0


def test_the_attack_by_fcntl_works_where_nothing_stops_it(victim):
    reads, writes = os.pipe()
    fcntl.fcntl(reads, fcntl.F_SETOWN, victim.pid)
    fcntl.fcntl(reads, 10, signal.SIGKILL)
    fcntl.fcntl(reads, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writes, b"x")
    assert victim.wait(5) == -signal.SIGKILL
    os.close(reads)
    os.close(writes)


# --- limits ---------------------------------------------------------------------------------------

ENDLESS = {
    "power": "x = 9**9**9",
    "loop": "while True: pass",
    "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "thread bomb": "import threading\nwhile True:\n  try: threading.Thread(target=input).start()\n"
    "  except Exception: pass",
    "deaf": "import signal\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n"
    "  except Exception: pass\nwhile True: pass",
}  # fmt: skip


@pytest.mark.parametrize("mode", OPEN, ids=str)
def test_endless_code_is_ended(mode):
    at_once = Program("while True: pass", ["assert True", "assert True"])
    when_called = Program("def f():\n    while True: pass", ["assert f() == 1", "assert 1"])
    found = outcomes(mode, at_once, when_called, seconds=1)
    assert found == [["timeout", "not reached"]] * 2


@needs_sandbox
@pytest.mark.slow
def test_endless_code_of_all_kinds_is_ended(monkeypatch):
    monkeypatch.setattr(programs, "CPU_SECONDS", 1)
    found = programs.run_all([Program(code, ["assert True"]) for code in ENDLESS.values()])
    assert found == [["timeout"]] * len(ENDLESS)


@needs_sandbox
def test_endless_tests_are_ended(monkeypatch):
    monkeypatch.setattr(programs, "CPU_SECONDS", 1)
    assert programs.run(Program("x = 1", ["while x: pass"])) == ["timeout"]


@needs_sandbox
def test_who_sleeps_is_ended_with_all_that_was_started(monkeypatch):
    marked = programs.MEMORY + os.getpid()  # a number that no other command line holds
    monkeypatch.setattr(programs, "MEMORY", marked)
    monkeypatch.setattr(programs, "WALL_SECONDS", 1.5)
    sleeping = Program("import time\ntime.sleep(600)", ["assert True"])
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"
    for walls in standing():
        assert programs.run(sleeping, walls) == ["timeout"]
    monkeypatch.setattr(programs, "WALL_SECONDS", 30.0)
    for walls in standing():
        assert programs.run(Program(thread, ["assert True"]), walls) == ["passed"]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert f'"memory": {marked}' not in listed.stdout


@needs_sandbox
def test_a_program_that_closes_its_pipes_is_ended(monkeypatch):
    monkeypatch.setattr(programs, "CPU_SECONDS", 1)
    closing = "import os\ndef f():\n    os.closerange(3, 64)\n    while True: pass"
    assert programs.run(Program(closing, ["f()", "f()"])) == ["timeout", "not reached"]


@needs_sandbox
def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for walls in standing():
        assert programs.run(Program("x = 1", ["assert x == 1"]), walls) == ["passed"]
    assert os.listdir(tmp_path) == []


# --- what tests need ------------------------------------------------------------------------------

WORKING = """
import collections, dataclasses, heapq, itertools, json, math, random, re, threading, typing

@dataclasses.dataclass
class Point:
    x: int = 0

class Mistake(ValueError): pass

state = 0
def thread():
    t = threading.Thread(target=len, args=('',))
    t.start(); t.join()
    return 1
def draw(): return random.random()
def same(*values, **named): return values[0] if values else named
def wrong(n): raise Mistake(n)
def sort(values): values.sort()
def fill(held): held['a'] = {1}
def count():
    global state
    state += 1
    return state
def squares(n): return (k * k for k in range(n))
def counted(text): return collections.Counter(text)
def point(): return Point()
def sum(a, b): return a * b
"""
PLAIN = [
    None, True, 1, -(10**30), 2**5000, 1.5, float("inf"), 1e-320, "é\ud800\0", b"\0\xff", (1, (2,)),
    [1, [2]], {"a": {1: (2,)}}, {1, 2}, frozenset({3}), complex(1, -2), range(1, 9, 2), [], (), {},
]  # fmt: skip


@pytest.mark.parametrize("mode", OPEN, ids=str)
def test_what_tests_need_is_there(mode):
    tests = [
        "assert thread()",
        "import random as r\nassert draw() == r.Random(0).random()",
        *(f"assert same({value!r}) == {value!r}".replace("inf", "1e999") for value in PLAIN),
        "x = float('nan')\nassert same(x) != same(x)",
        "assert type(same(True)) is bool and type(same((1,))) is tuple and same(a=1) == {'a': 1}",
        "values = [3, 1, 2]\nsort(values)\nassert values == [1, 2, 3]",
        "held = {}\nfill(held)\nassert held == {'a': {1}}",
        "try:\n    wrong(1)\n    1 / 0\nexcept ValueError as error:\n    assert not str(error)",
        "assert count() == 1",
        "assert count() == 2 and state == 1",
        "assert state == 2",
        "assert list(squares(3)) == [0, 1, 4] and squares(3) != [0, 1, 4]",
        "assert counted('aab') == {'a': 2, 'b': 1}",
        "assert math.isclose(same(0.1) + 0.2, 0.3)",
        "def check(candidate):\n    assert candidate(4) == 4\ncheck(same)",
        "assert sum([1, 2]) == same(3)",
    ]
    found = outcomes(mode, Program(WORKING, tests))[0]
    wrong = {test: said for test, said in zip(tests, found, strict=True) if said != "passed"}
    assert wrong == {}


@needs_sandbox
def test_each_test_has_its_outcome():
    tests = {
        "assert same(1) == 1": "passed",
        "assert same(1) == 2": "failed",
        "wrong(3)": "error",
        "raise SystemExit": "error",
        "not python": "error",
        "assert unknown() == 1": "error",
        "assert point() == 1": "not plain data",
        "assert same(same)": "not plain data",
        "assert same(lambda: 1)": "not plain data",
        "try: point()\nexcept: pass": "not plain data",
        "same('a' * 2**33)": "memory",
        "import os; os._exit(0)": "ended",
        "assert 1": "not reached",
    }
    assert programs.run(Program(WORKING, list(tests))) == list(tests.values())
    assert programs.run(Program("raise ValueError", ["assert 1"] * 2)) == ["error"] * 2
    assert programs.run(Program("(", ["assert 1"])) == ["error"]
    assert programs.run(Program("x = 'a' * 2**33", ["assert 1"])) == ["memory"]


@needs_sandbox
def test_no_pipe_or_file_is_open_but_its_own():
    code = """
import os
def count(kinds=0):
    for n in range(64):
        try: os.fstat(n)
        except OSError: continue
        kinds += 1
    return kinds"""
    for walls in standing():  # what goes nowhere, thrice, and its two pipes
        assert programs.run(Program(code, ["assert count() == 5"]), walls) == ["passed"]


@needs_sandbox
def test_a_function_may_be_called_like_a_built_in():
    assert programs.run(Program(WORKING, ["assert sum(10, 15) == 150"])) == ["passed"]
    by_name = Program(WORKING, ["def check(f):\n    assert f(2, 3) == 6\ncheck(sum)"], "sum")
    assert programs.run(by_name) == ["passed"]


@needs_sandbox
def test_helpers_come_from_the_task():
    given = "def twice(n):\n    return 2 * n\ndef f(n):\n    ...\n"
    program = Program(given + "\ndef f(n): return n / 2", ["assert twice(f(3)) == 3"], "f", given)
    assert programs.run(program) == ["passed"]


@pytest.mark.parametrize(
    "sent", [{}, [], ["what", 1], ["list"], ["list", 1], ["set", [["list", []]]], ["int", 5],
             ["int", "x"], ["bytes", "x"], ["complex", "a"], ["range", "a"], ["dict", [[1]]],
             ["dict", [[["dict", []], 1]]], ["iterator", 3], [["list"], []], ["range", 1, 2, 0]],
)  # fmt: skip
def test_what_is_not_plain_is_refused(sent):
    with pytest.raises(plain.NotPlainError):
        plain.decode(sent)


# --- where it cannot run --------------------------------------------------------------------------


@needs_sandbox
def test_where_no_walls_stand_nothing_is_run(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permission' >&2\nexit 1\n")
    broken.chmod(0o755)
    walls = boundary.Boundary("bubblewrap", str(broken))
    with pytest.raises(InputError, match="does not start"):
        programs.run(Program("x = 1", ["assert x"]), walls)
    monkeypatch.setattr(programs, "candidates", lambda: [walls])
    with pytest.raises(InputError, match=r"bubblewrap: bwrap: no permission\), so no code is run"):
        programs.run_all([Program("x = 1", ["assert x"])])
    good = standing()[0]
    monkeypatch.setattr(programs, "candidates", lambda: [walls, good])
    assert programs.find_boundary() == good


def test_walls_that_let_the_machine_be_seen_are_refused(monkeypatch, tmp_path):
    """A bubblewrap that does nothing: the process sees that it is not locked in, and ends."""
    hollow = tmp_path / "bwrap"
    hollow.write_text("#!/bin/sh\nwhile [ \"$1\" != -P ]; do last=$1; shift; done\nexec \"$last\" \"$@\"\n")  # fmt: skip # noqa: E501
    hollow.chmod(0o755)
    monkeypatch.setattr(boundary, "_PLACE_INSIDE", str(Path(boundary.__file__).parent))
    with pytest.raises(InputError, match="does not start"):
        programs.run(Program("x = 1", ["assert x"]), boundary.Boundary("bubblewrap", str(hollow)))


def test_only_linux_has_walls(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(InputError, match="needs Linux"):
        programs.run_all([Program("x = 1", ["assert x"])])
    assert programs.run_all([]) == []


# --- how it is built ------------------------------------------------------------------------------


def test_what_runs_inside_imports_nothing_of_forgetmap():
    for path in (Path(boundary.__file__).parent / "inside").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level or node.module in {*sys.stdlib_module_names, "collections.abc"}
            elif isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= set(sys.stdlib_module_names)


HEADERS = {
    0: ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
    1: ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
}


@pytest.mark.parametrize("column", HEADERS)
def test_the_numbers_of_the_calls_are_the_kernels(column):
    path, line = HEADERS[column]
    if not Path(path).exists():
        pytest.skip(f"{path} is not here")
    known = {name: int(number) for name, number in re.findall(line, Path(path).read_text())}
    known["newfstatat"] = known.get("newfstatat", known.get("fstatat"))
    named = system_calls._ALLOWED | {
        "open": system_calls._OPEN, "openat": system_calls._OPENAT, "clone": system_calls._CLONE,
        "clone3": system_calls._CLONE3, "fcntl": system_calls._FCNTL,
        "ioctl": system_calls._IOCTL, "prlimit64": system_calls._PRLIMIT,
    }  # fmt: skip
    for name, numbers in named.items():
        if numbers[column] is not None:
            assert known[name] == numbers[column], name
