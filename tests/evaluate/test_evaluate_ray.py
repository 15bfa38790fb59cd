"""Runs on a real Ray cluster on this machine, with a worker killed in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")
pytest.importorskip("ray", reason="needs the extra `ray`")

import ray
from test_evaluate import content, quiz, suite

from forgetmap.base.errors import InputError
from forgetmap.evaluate.executor import OnRay
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.run import evaluate
from places import ROOT
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.filterwarnings("ignore")]
HOW = Running(batch=8)


@pytest.fixture(scope="module")
def cluster():
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(make_tiny_model(tmp_path_factory.mktemp("models") / "tiny"))


def test_a_cluster_gives_the_results_of_one_process(cluster, tiny, tmp_path):
    alone = evaluate(tiny, suite(), tmp_path / "alone", running=HOW)
    spread = evaluate(
        tiny, suite(), tmp_path / "ray", running=HOW, work=OnRay(tiny, HOW, workers=2)
    )
    assert spread.evaluated == 80
    assert content(spread.samples) == content(alone.samples)
    again = evaluate(tiny, suite(), tmp_path / "ray", running=HOW, work=OnRay(tiny, HOW, workers=2))
    assert again.evaluated == 0


def workers():
    """Processes of our workers, and of no other cluster on this machine."""
    parents, named = {}, set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(folder.name)
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[pid] = int(status[1])
            if b"ray::_Worker" in (folder / "cmdline").read_bytes():
                named.add(pid)
        except OSError:
            continue

    def is_ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid in named if is_ours(pid)]


def test_a_worker_that_is_killed_is_replaced(cluster, tiny, tmp_path):
    questions = quiz(600)
    killed = []

    def kill_one(done, total):
        if done and not killed:
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    done = evaluate(
        tiny,
        suite(questions),
        tmp_path / "ray",
        running=HOW,
        work=OnRay(tiny, HOW, workers=2),
        progress=kill_one,
    )
    assert killed
    alone = evaluate(tiny, suite(questions), tmp_path / "alone", running=HOW)
    assert content(done.samples) == content(alone.samples)


def test_what_a_worker_cannot_do_is_one_clear_line(cluster, tiny, tmp_path):
    with pytest.raises(InputError, match="no CUDA device"):
        evaluate(
            tiny,
            suite(quiz(3)),
            tmp_path,
            running=HOW,
            work=OnRay(tiny, Running(device="cuda", batch=8), workers=1),
        )
