"""Hostile answers never stop, slow or escape the scoring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgetmap.answers import text
from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.capabilities import scorers
from forgetmap.capabilities.scorers import json_format, mathematics, sandbox

RULES = [name for name in scorers.SCORERS if name not in ("code", "mathematics")]
MILLION = 1_000_000
MOST_CPU_SECONDS = 6.0
"""For one answer of a megabyte; a pattern that is not linear takes hours."""

HOSTILE = {
    "spaces": "answer" + " " * MILLION + "x",
    "spaces and stops": ". " * (MILLION // 2),
    "line ends": "\n" * MILLION,
    "cues": "the answer is " * (MILLION // 14),
    "opened JSON": "[" * MILLION,
    "opened objects": '{"a":' * (MILLION // 5),
    "brackets": "(" * MILLION,
    "pairs of brackets": "()" * (MILLION // 2),
    "calls": "f(" * (MILLION // 2),
    "call lines": "a(b=1)\n" * (MILLION // 7),
    "digits": "9" * MILLION,
    "grouped digits": "1," * (MILLION // 2),
    "thousands": "1,234" * (MILLION // 5),
    "asterisks": "*" * MILLION,
    "bold": "**A " * (MILLION // 4),
    "fences": "```\n" * (MILLION // 4),
    "quotes": "> " * (MILLION // 2),
    "quotation marks": '"a b c d e f' * (MILLION // 12),
    "list items": "- a\n" * (MILLION // 4),
    "nested list": "".join(" " * (2 * level) + "- a\n" for level in range(900)),
    "table": "|a|b|\n|-|-|\n" + "|1|2|\n" * (MILLION // 6),
    "pipes": "|" * MILLION,
    "dashes": "a|b\n" + "-|" * (MILLION // 2),
    "boxes": "\\boxed{" * (MILLION // 7),
    "tags": "<tool_call>" * (MILLION // 11),
    "function tags": "<function=f>" * (MILLION // 12),
    "apostrophes": "a'" * (MILLION // 2),
    "dotted": "a." * (MILLION // 2),
    "null bytes": "\x00" * MILLION,
    "halves of characters": "\ud800" * 100_000,
    "ideographs": "中" * MILLION,
    "combining": "a" + "\u0301" * MILLION,
    "emoji": "👩‍👩‍👧" * (MILLION // 5),
    "negations": "not " * (MILLION // 4) + "Rome",
    "catastrophic": "a" * MILLION + "!",
    "placeholders": "[a" * (MILLION // 2),
    "titles": "<<a " * (MILLION // 4),
    "refusals": "I can't " * (MILLION // 8),
    "letters": "A B C D " * (MILLION // 8),
    "terminal codes": "\x1b[31m" * (MILLION // 5),
}
ITEM = {
    "gold": ["Rome"],
    "choices": ["Rome", "Paris", "Oslo", "Bern"],
    "context": "Rome is in Italy. " * 500,
    "schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "tools": [{"name": "f", "parameters": {"properties": {"x": {}}}}],
    "prompt": "Where?",
}
META = {
    "instruction_id_list": [
        "keywords:existence", "keywords:forbidden_words", "language:response_language",
        "length_constraints:number_sentences", "length_constraints:number_words",
        "length_constraints:number_paragraphs", "length_constraints:nth_paragraph_first_word",
        "detectable_content:number_placeholders", "detectable_content:postscript",
        "detectable_format:number_bullet_lists", "detectable_format:number_highlighted_sections",
        "detectable_format:multiple_sections", "detectable_format:json_format",
        "detectable_format:title", "combination:two_responses", "startend:quotation",
    ],
    "kwargs": [
        {"keywords": ["x"]}, {"forbidden_words": ["y", "z"]}, {"language": "en"},
        {"num_sentences": 3, "relation": "at least"}, {"num_words": 3, "relation": "less than"},
        {"num_paragraphs": 2}, {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "a"},
        {"num_placeholders": 1}, {"postscript_marker": "P.S."}, {"num_bullets": 2},
        {"num_highlights": 2}, {"section_spliter": "Part", "num_sections": 2}, {}, {}, {}, {},
    ],
    "commitments": [{"language": "en"}, {"max_words": 9}, {"format": "list"}, {"include": "Rome"}],
    "supporting": ["Rome is in Italy."], "columns": ["a", "b"], "language": "de",
}  # fmt: skip
GOLDS = {
    "multiple_choice": "A", "numbers": "12", "boolean": "yes", "tool_calls": ["f(x=1)"],
    "long_context": ["1234567", "Rome"], "citations": ["1"], "table_format": [["1", "2"]],
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_megabyte_of_anything_is_scored_in_moments(name):
    scorer = scorers.load(name)
    item = Item("t", "1", **(ITEM | {"gold": GOLDS.get(name, ITEM["gold"]), "meta": META}))
    for what, response in HOSTILE.items():
        started = time.process_time()
        found = scorer.score([item], [response])
        taken = time.process_time() - started
        assert taken < MOST_CPU_SECONDS, f"{name}, {what}: {taken:.1f} s"
        assert {len(values) for values in found.values()} == {1}, what


def test_of_an_endless_response_beginning_and_end_are_looked_at():
    response = f"It is Rome. {'blah ' * MILLION} Answer: 7"
    looked = text.looked_at(response)
    assert len(looked) <= text.LONGEST + 1
    assert looked.startswith("It is Rome.")
    assert looked.endswith("Answer: 7")
    item = Item("t", "1", gold="7")
    assert scorers.load("numbers").score([item], [response])["accuracy"][0].value == 1.0


def test_a_schema_fetches_nothing_and_its_patterns_end(monkeypatch):
    def no_network(*_args, **_kwargs):
        raise AssertionError("something is fetched")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    elsewhere = {"$ref": "http://127.0.0.1:9/schema.json"}
    values = json_format.score([Item("t", "1", schema=elsewhere)], ["{}"])
    assert values["schema"][0].status == "invalid_gold"
    evil = {"properties": {"a": {"pattern": "^(a|a)*$"}}}
    assert json_format.fits({"a": "a" * 50 + "!"}, evil) is False
    assert json_format.fits({"a": "aaa"}, evil) is True


@pytest.mark.parametrize("deep", ["[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500])
def test_deep_json_is_json_or_not_but_no_crash(deep):
    found = json_format.score([Item("t", "1", schema={}, gold={"a": 1})], [deep])
    assert all(value.status in ("ok", "no_answer") for (value,) in found.values())


# --- mathematics ----------------------------------------------------------------------------------


def test_a_worker_that_dies_is_replaced_and_takes_no_other_answer_with_it(monkeypatch):
    monkeypatch.setattr(mathematics, "CPU_SECONDS", 1.0)
    questions = [("\\boxed{7}", "\\boxed{9^{9^{9^9}}}"), *[("\\boxed{7}", "7")] * 5] * 2
    assert mathematics.verify(questions, count=1) == [None, *[True] * 5] * 2


def test_a_worker_that_only_waits_is_replaced(monkeypatch, tmp_path):
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import sys, time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(mathematics, "_WORKER", sleeper)
    monkeypatch.setattr(mathematics, "WALL_SECONDS", 1.0)
    assert mathematics.verify([("1", "1")] * 3, count=2) == [None] * 3


def test_a_worker_that_cannot_start_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(mathematics, "_WORKER", tmp_path / "none.py")
    with pytest.raises(InputError, match="does not start"):
        mathematics.verify([("1", "1")] * 3)


# --- code -----------------------------------------------------------------------------------------

ATTACKS = {
    "fork": "import os\nos.fork()",
    "vfork by ctypes": "import ctypes\nassert ctypes.CDLL(None).vfork() != -1",
    "spawn": "import os\nos.posix_spawn('/bin/true', ['true'], {})",
    "subprocess": "import subprocess\nsubprocess.run(['true'])",
    "low fork_exec": "import os\nos.execv('/bin/true', ['true'])",
    "multiprocessing": "import multiprocessing as m\np = m.Process(target=print)\np.start()",
    "kill the parent": "import os\nos.kill(os.getppid(), 9)",
    "kill all": "import os\nos.kill(-1, 9)",
    "socket": "import socket\nsocket.socket()",
    "unix socket": "import socket\nsocket.socket(socket.AF_UNIX)",
    "by name": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')",
    "write to the disk": "open('{outside}/new', 'w')",
    "append": "open('{outside}/kept', 'a')",
    "remove": "import os\nos.remove('{outside}/kept')",
    "rename": "import os\nos.rename('{outside}/kept', '{outside}/moved')",
    "mode": "import os\nos.chmod('{outside}/kept', 0)",
    "folder": "import os\nos.mkdir('{outside}/folder')",
    "link": "import os\nos.symlink('/', '{outside}/link')",
    "shared memory": "open('/dev/shm/forgetmap-escape', 'w')",
    "memory": "x = 'a' * 2**33",
    "files": "held = [open('/dev/null') for _ in range(10_000)]",
    "unlimit": "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (r.RLIM_INFINITY,) * 2)",
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/', b'tmpfs', 0, b'') == 0",
    "name space": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "trace": "import ctypes\nassert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    "recursion": "def f(): f()\nf()",
    "crash": "import ctypes\nctypes.string_at(0)",
    "null byte": "x = 'a\x00b'",
    "exit": "import sys\nsys.exit(0)",
    "hard exit": "import os\nos._exit(0)",
    "at exit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit",
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "kept").write_text("kept")
    tmp_path.chmod(0o777)
    (tmp_path / "kept").chmod(0o666)
    return tmp_path


def assert_untouched(outside: Path) -> None:
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "kept"
    assert (outside / "kept").stat().st_mode & 0o777 == 0o666
    assert not Path("/dev/shm/forgetmap-escape").exists()


def test_hostile_code_survives_nothing(outside):
    programs = [
        sandbox.Program(code.replace("{outside}", str(outside)), ["assert True"])
        for code in ATTACKS.values()
    ]
    outcomes = dict(zip(ATTACKS, sandbox.run_all(programs), strict=True))
    escaped = {name: outcome for name, outcome in outcomes.items() if outcome == ["passed"]}
    assert not escaped
    assert_untouched(outside)


ENDLESS = {
    "power": "x = 9**9**9",
    "loop": "while True: pass",
    "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "thread bomb": "import threading\nwhile True:\n  try: threading.Thread(target=input).start()\n"
    "  except Exception: pass",
    "deaf": "import signal\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n"
    "  except Exception: pass\nwhile True: pass",
    "flood": "import os\nwhile True:\n  for fd in range(3, 30):\n    try: os.write(fd, b'x' * 99)\n"
    "    except OSError: pass",
}  # fmt: skip


def test_endless_code_is_ended_with_all_it_started(monkeypatch):
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    programs = [sandbox.Program(code, ["assert True"]) for code in ENDLESS.values()]
    outcomes = dict(zip(ENDLESS, sandbox.run_all(programs), strict=True))
    assert outcomes == {name: ["not reached"] for name in ENDLESS}
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 1.0)
    sleeper = sandbox.Program("import time\ntime.sleep(600)", ["assert True"])
    assert sandbox.run(sleeper) == ["not reached"]


def test_what_a_test_needs_is_there():
    code = (
        "import collections, heapq, itertools, json, math, random, re, threading\n"
        "def thread():\n    t = threading.Thread(target=len, args=('',))\n"
        "    t.start()\n    t.join()\n    return 1\n"
    )
    tests = ["assert thread()", "assert random.random() == random.Random(0).random()"]
    assert sandbox.run(sandbox.Program(code, tests)) == ["passed"] * 2


def test_each_test_has_its_outcome():
    code = "def f(n):\n    return {}[n] if n > 2 else n"
    tests = ["assert f(1) == 1", "assert f(1) == 2", "f(3)", "raise SystemExit", "import os; os._exit(0)", "assert 1"]  # fmt: skip # noqa: E501
    assert sandbox.run(sandbox.Program(code, tests)) == [
        "passed", "AssertionError", "KeyError", "SystemExit", "not reached", "not reached",
    ]  # fmt: skip


def test_a_report_cannot_be_forged_by_printing():
    code = "import sys\nfor n in range(3, 20):\n  try: open(n, 'w').write('x 0 passed\\n')\n  except OSError: pass"  # fmt: skip # noqa: E501
    assert sandbox.run(sandbox.Program(code, ["assert False"])) != ["passed"]


WITHOUT_NAME_SPACES = """
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("runner", sys.argv[1])
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
assert runner.forbid(may_write=False)
outcomes = {}
for name, code in json.loads(sys.argv[2]).items():
    outcomes[name] = runner.attempt(code, {})
print(json.dumps(outcomes), flush=True)
os._exit(0)
"""


def test_without_name_spaces_nothing_is_written_at_all(outside):
    runner = Path(sandbox.__file__).with_name("sandbox_runner.py")
    last = ("memory", "files", "recursion", "crash", "hard exit", "null byte", "unlimit")
    tried = {
        name: code.replace("{outside}", str(outside))
        for name, code in ATTACKS.items()
        if name not in last
    }
    tried["read"] = f"assert open('{outside}/kept').read() == 'kept'"
    command = [sys.executable, "-c", WITHOUT_NAME_SPACES, str(runner), json.dumps(tried)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=outside)
    outcomes = json.loads(done.stdout)
    assert {name for name, outcome in outcomes.items() if outcome is None} == {"read"}
    assert_untouched(outside)


def test_where_nothing_confines_code_nothing_is_run(monkeypatch, tmp_path):
    unable = tmp_path / "unable.py"
    unable.write_text("import os, sys\nsys.stdin.read()\nos._exit(97)\n")
    monkeypatch.setattr(sandbox, "_RUNNER", unable)
    with pytest.raises(InputError, match="seccomp"):
        sandbox.run(sandbox.Program("x = 1", ["assert x"]))
    unable.write_text("")
    with pytest.raises(InputError, match="does not start"):
        sandbox.run(sandbox.Program("x = 1", ["assert x"]))
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(InputError, match="seccomp"):
        sandbox.run(sandbox.Program("x = 1", ["assert x"]))


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    program = sandbox.Program("open('a', 'w').write('b')", ["assert open('a').read() == 'b'"])
    sandbox.run(program)
    assert os.listdir(tmp_path) == []
