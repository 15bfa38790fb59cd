"""What the map looks like at a terminal."""

from __future__ import annotations

import io
import random
import re

import pytest
from rich.console import Console

import forgetmap
from forgetmap.base.words import WIDTH
from forgetmap.map.example import example_logs
from forgetmap.map.old_maps import NOTE
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
    """Fifteen tasks of three categories; the higher its number, the more a task lost."""
    tasks = [f"a_task_with_a_rather_long_name_{n:02}" for n in range(15)]
    before = log(tmp_path / "before.parquet", tasks, lambda _: 0)
    after = log(tmp_path / "after.parquet", tasks, lambda task: int(task[-2:]))
    categories = tmp_path / "tasks.csv"
    lines = [f"{task},group {place % 3}" for place, task in enumerate(tasks)]
    categories.write_text("\n".join(["task,category", *lines]) + "\n")
    return before, after, categories


def test_with_categories_the_tasks_that_lost_most_are_listed(many):
    before, after, categories = many
    text = shown(forgetmap.compare(before, after, task_map=categories, draws=100))
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("a_task")]
    assert len(listed) == MOST_TASKS
    assert "3 tasks that lost less: --csv, --json and --report list all" in text
    whole = shown(forgetmap.compare(before, after, task_map=categories, draws=100), width=140)
    names = [line.split()[0] for line in whole.splitlines() if line.startswith("a_task")]
    assert names == [f"a_task_with_a_rather_long_name_{n:02}" for n in range(14, 2, -1)]


def test_without_categories_every_task_is_listed(many):
    before, after, _ = many
    text = shown(forgetmap.compare(before, after, draws=100))
    assert sum(line.startswith("a_task") for line in text.splitlines()) == 15
    assert "lost less" not in text


def test_names_give_way_and_verdicts_do_not(many):
    before, after, categories = many
    result = forgetmap.compare(before, after, task_map=categories, draws=100)
    assert max(map(len, shown(result).splitlines())) <= WIDTH
    text = shown(result, 80)
    assert max(map(len, text.splitlines())) <= 80
    worst = next(line for line in text.splitlines() if line.startswith("a_task"))
    assert worst.split()[-2:] == ["lost", "worse"]
    assert "…" in worst


def test_the_old_skills_are_told_and_the_new_ones_marked():
    before, after = example_logs()
    result = forgetmap.compare(before, after, new=["airports"], draws=100)
    text = shown(result)
    told = " ".join(text.split())
    assert told.startswith("Old skills: lost 10.4 % (2.7 to 11.1) of 3,270 items, ")
    assert "up to 7.0 % may be reshuffled guessing" in told
    assert "25.5 % of what it knew; gained 12.3 %. New skill: 33 -> 100 %." in told
    assert "Verdict: lost, more than the margin of 2.0 %." in told
    assert "Measured from the probabilities of the options." in told
    assert "Reshuffled guessing is not told apart" not in told  # the log holds all options
    assert "These tasks: lost 2.7 to 11.1 %" in told
    assert "Tasks like these: lost " in told
    for row in ("old items ", "new items ", "all items ", "airports (new) "):
        assert f"\n{row}" in text


def test_without_new_tasks_all_items_are_told():
    told = " ".join(shown(forgetmap.compare(*example_logs(), draws=100)).split())
    assert told.startswith("Lost 8.3 % (2.2 to 8.9) of 4,070 items, of which up to 5.6 % may be ")
    assert "that is 21.3 % of what it knew;" in told
    assert "old items" not in told
    assert "(new)" not in told


def test_a_gain_never_takes_off_a_loss():
    """The change of accuracy, and gained less lost, are nowhere in what is printed."""
    result = forgetmap.compare(*example_logs(), new=["airports"], draws=100)
    text = shown(result, 140)
    summary, _, _ = text.partition("\ntask ")  # the headline and the totals
    for cell in (result.old, result.total):
        for share in (cell.change.value, cell.gained.value - cell.lost.value):
            assert not re.search(rf"(?<![\d.]){100 * abs(share):.1f}(?!\d)", summary)
    assert not re.search(r"(?<=[ (])[-−]\d", text)


def test_a_wide_terminal_has_room_for_raw_flips_and_p_values():
    result = forgetmap.compare(*example_logs(), draws=100)
    raw = f"{100 * result.total.raw.lost.value:.1f}/{100 * result.total.raw.gained.value:.1f}"
    assert raw in shown(result, 120)
    assert raw not in shown(result, 100)


def test_each_basis_has_its_words(tmp_path):
    def repeats(task):
        return 3 if task == "written" else 1

    tasks = ["chosen", "written"]
    before = log(tmp_path / "before.parquet", tasks, lambda _: 5, repeats)
    after = log(tmp_path / "after.parquet", tasks, lambda _: 20, repeats)
    result = forgetmap.compare(before, after, draws=100)
    assert {name: result.tasks[name].lost.basis for name in tasks} == {
        "chosen": "probabilities",
        "written": "repeats",
    }
    told = " ".join(shown(result).split())
    assert "Measured each task by the best that its log allows." in told


def test_one_run_is_a_range_and_says_how_to_measure_the_noise():
    def run(right):
        return Samples.from_rows(
            {"task": "t", "item": content_hash(i), "score": float(i % right == 0)}
            for i in range(60)
        )

    result = forgetmap.compare(run(2), run(3), draws=100)
    told = " ".join(shown(result).split())
    ends = (f"{100 * end:.1f} %" for end in (result.old.lost.low_end, result.old.lost.high_end))
    assert told.startswith(f"Lost between {' and '.join(ends)} (")
    assert "the noise of the runs was not measured" in told
    for way in ("--noise-before", "--noise-after", "repeats", "--deterministic"):
        assert way in told
    assert re.search(r"can't tell if more than the margin of 2.0 % was lost: .*would decide", told)


def test_a_map_of_an_older_version_shows_its_note():
    result = forgetmap.compare(*example_logs(), draws=100)
    noted = result.model_copy(update={"warnings": [NOTE]})
    assert NOTE in " ".join(shown(noted).split())
