"""What the map looks like at a terminal."""

from __future__ import annotations

import io
import random

import pytest
from rich.console import Console

import forgetmap
from forgetmap.base.words import WIDTH
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.views.terminal.maps import MOST_TASKS, print_map


def log(path, tasks, wrong, repeats=lambda _: 1):
    """A log of 60 items a task, the first `wrong` of them wrong.

    Tasks with one run have options and their probabilities; the others differ from run to run.
    """
    rows = []
    for task in tasks:
        draw, runs = random.Random(task), repeats(task)
        for number in range(60):
            right = number >= wrong(task)
            options = {"k": 4, "gold_probability": 0.9 if right else 0.1} if runs == 1 else {}
            for repeat in range(runs):
                score = float(right if repeat == 0 else draw.random() < 0.5)
                item = {"task": task, "item": content_hash(task, number), "repeat": repeat}
                rows.append({"model": path.stem, "score": score, **item, **options})
    Samples.from_rows(rows).write(path)
    return path


def shown(result, width=WIDTH):
    out = Console(file=io.StringIO(), width=width, highlight=False)
    print_map(result, out)
    return out.file.getvalue()


@pytest.fixture
def many(tmp_path):
    """Fifteen tasks of three categories; the higher its number, the more a task forgot."""
    tasks = [f"a_task_with_a_rather_long_name_{n:02}" for n in range(15)]
    before = log(tmp_path / "before.parquet", tasks, lambda _: 0)
    after = log(tmp_path / "after.parquet", tasks, lambda task: int(task[-2:]))
    categories = tmp_path / "tasks.csv"
    lines = [f"{task},group {place % 3}" for place, task in enumerate(tasks)]
    categories.write_text("\n".join(["task,category", *lines]) + "\n")
    return before, after, categories


def test_with_categories_the_tasks_that_forgot_most_are_listed(many):
    before, after, categories = many
    text = shown(forgetmap.compare(before, after, task_map=categories, draws=100))
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("a_task")]
    assert len(listed) == MOST_TASKS
    assert "3 tasks that forgot less: --csv, --json and --report list all" in text
    whole = shown(forgetmap.compare(before, after, task_map=categories, draws=100), width=140)
    names = [line.split()[0] for line in whole.splitlines() if line.startswith("a_task")]
    assert names == [f"a_task_with_a_rather_long_name_{n:02}" for n in range(14, 2, -1)]


def test_without_categories_every_task_is_listed(many):
    before, after, _ = many
    text = shown(forgetmap.compare(before, after, draws=100))
    assert sum(line.startswith("a_task") for line in text.splitlines()) == 15
    assert "forgot less" not in text


def test_names_give_way_and_verdicts_do_not(many):
    before, after, categories = many
    text = shown(forgetmap.compare(before, after, task_map=categories, draws=100))
    assert max(map(len, text.splitlines())) <= WIDTH
    worst = next(line for line in text.splitlines() if line.startswith("a_task"))
    assert worst.rstrip().endswith("forgot, worse")
    assert "…" in worst


def test_cells_counted_otherwise_than_the_total_are_marked(tmp_path):
    def repeats(task):
        return 3 if task == "written" else 1

    tasks = ["chosen", "written"]
    before = log(tmp_path / "before.parquet", tasks, lambda _: 5, repeats)
    after = log(tmp_path / "after.parquet", tasks, lambda _: 20, repeats)
    result = forgetmap.compare(before, after, draws=100)
    assert result.total.headline == "raw"
    text = shown(result)
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith(tuple(tasks))}
    assert {name: result.tasks[name].headline for name in tasks} == {
        "chosen": "soft",
        "written": "excess",
    }
    assert "‡" in rows["chosen"]
    assert "†" in rows["written"]
    assert "†excess = " in text
    assert "‡soft = " in text
