"""What people see in a terminal of 80, 100 and 140 columns. The verdict is never cut.

The screens are kept in `screens/`. After a change that is meant, write them anew and look at them:

    FORGETMAP_WRITE_SCREENS=1 pytest tests/views/test_terminal_widths.py
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console

import forgetmap
from forgetmap.views.terminal.console import make_table, say
from forgetmap.views.terminal.maps import print_map
from places import ROOT

SCREENS = Path(__file__).with_name("screens")
STUDY = "examples/study"
PAIR = [
    f"{STUDY}/logs/told/smollm2-before.parquet",
    f"{STUDY}/logs/told/smollm2-airports-sft-0.parquet",
]
SCORES = [path.replace("/told/", "/scores/") for path in PAIR]
COMMANDS = {
    "compare": ["compare", *PAIR, "--task-map", f"{STUDY}/logs/tasks.csv", "--new", "airports"],
    "show": ["show", PAIR[0]],
    "lineage": ["lineage", f"{STUDY}/pipeline.yaml"],
    "drift": ["drift", *SCORES, "--manifest", "open-suite"],
    "study": ["study", "published"],
    "gate": ["compare", *PAIR, "--gate", "{folder}/gate.yaml", "--new", "airports"],
}
SAYS = {
    "compare": r"^old items .* lost +can't tell\s*$",
    "show": r"^airports +acc .* ok 800\s*$",
    "lineage": r"^├─ sft .* lost +can't tell\s*$",
    "drift": r"(worse|better|equivalent|\?)\s*$",
    "study": r"^instruction tuning .*\)\s*$",
    "gate": r"BLOCK",
}
"""What no width may cut: of each command one line that holds its verdict, to its end."""
POLICY = "limits:\n- {measure: forgetting, max: 0.02}\n"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def at_terminal(arguments: list[str], width: int) -> str:
    """What a command prints on a real (pseudo) terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "forgetmap", *arguments],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
        env={**plain, "TERM": "xterm-256color"},
    ):  # fmt: skip
        os.close(theirs)
        printed = b""
        while chunk := read_some(ours):
            printed += chunk
    os.close(ours)
    text = ANSI.sub("", printed.decode()).replace("\r\n", "\n")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def read_some(file: int) -> bytes:
    try:
        return os.read(file, 65536)
    except OSError:  # so Linux says that the other end is closed
        return b""


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_the_verdict_is_there_at_every_width(command, width, tmp_path):
    (tmp_path / "gate.yaml").write_text(POLICY)
    arguments = [word.format(folder=tmp_path) for word in COMMANDS[command]]
    screen = at_terminal(arguments, width)
    assert max(map(len, screen.splitlines())) <= width
    assert re.search(SAYS[command], screen, re.MULTILINE), screen
    assert not re.search(r"\d\n *%", screen), "a number and its % are on two lines"
    kept = SCREENS / f"{command}-{width}.txt"
    if "FORGETMAP_WRITE_SCREENS" in os.environ:
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(screen, encoding="utf-8")
    assert screen == kept.read_text(encoding="utf-8")


def printed(width: int, show) -> str:
    out = Console(file=io.StringIO(), width=width, highlight=False)
    show(out)
    return out.file.getvalue()


def test_columns_leave_in_order_of_worth():
    result = forgetmap.demo()

    def head(width: int) -> list[str]:
        text = printed(width, lambda out: print_map(result, out))
        return next(line for line in text.splitlines() if line.startswith("task ")).split()

    everything = "task n accuracy % lost % gained % lost│gained raw % p verdict net"
    assert " ".join(head(160)) == everything
    assert "p" not in head(125)
    assert "lost│gained" in head(120)
    assert "lost│gained" not in head(100)
    for width in range(60, 160, 5):
        assert head(width)[-2:] == ["verdict", "net"]
        assert "lost" in head(width)


def test_the_worst_come_first_in_every_table():
    result = forgetmap.demo()
    text = printed(100, lambda out: print_map(result, out))
    for title, cells in (("category ", result.categories), ("task ", result.tasks)):
        table = text.partition(f"\n{title}")[2].partition("\n\n")[0].splitlines()[1:]
        worst = max(cells.items(), key=lambda named: named[1].lost.value)[0]
        assert table[0].startswith(worst[:9])


def test_a_large_gain_makes_no_loss_look_small():
    """The new skill rose by 67 points; the bar of the worst old category is still a full one."""
    result = forgetmap.demo()
    text = printed(160, lambda out: print_map(result, out))
    rows = {line.split("  ")[0]: line for line in text.splitlines() if "│" in line}
    assert "■■■■■■│" in rows["Geography"]
    assert "│■■■■■▶" in next(row for name, row in rows.items() if name.startswith("Airports"))


def test_long_names_keep_their_ends():
    rows = [("a_very_long_name_of_a_task_one", "1"), ("a_very_long_name_of_a_task_two", "2")]
    text = printed(20, lambda out: out.print(make_table(("task", "n"), rows, width=20)))
    assert "_one" in text
    assert "_two" in text
    assert "…" in text


@pytest.mark.parametrize("width", range(20, 60, 7))
def test_a_number_stays_beside_its_sign(width):
    text = printed(width, lambda out: say(out, "lost 10.4 % (2.7 to 11.1) of all 3,270 items " * 5))
    assert not re.search(r"\d\s*\n%", text)
    assert max(map(len, text.splitlines())) <= width
