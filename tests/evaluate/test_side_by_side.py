"""Two runs at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from forgetmap.base.errors import InputError
from forgetmap.evaluate import run
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.side_by_side import Stopped, apart, at_once
from forgetmap.samples import Samples

CARDS = Running(device="cuda:0"), Running(device="cuda:1")


@pytest.mark.parametrize(
    ("models", "running", "expected"),
    [
        (("a", "b"), CARDS, True),
        (("a", "b"), (CARDS[0], CARDS[0]), False),
        (("a", "b"), (Running(device="cuda"), CARDS[1]), False),
        (("a", "b"), (Running(device="cpu"), Running(device="cpu")), False),
        (("a", "b"), (Running(device="auto"), Running(device="auto")), False),
        (("http://h:1/v1#m", "http://h:2/v1#m"), (Running(), Running()), True),
        (("http://h:1/v1#m", "http://h:1/v1#n"), (Running(), Running()), False),
        (("http://h:1/v1#m", "folder"), (Running(), Running()), False),
        (("http-before", "http-after"), (Running(), Running()), False),
    ],
)
def test_models_are_apart_with_a_card_or_a_server_each(
    models: tuple[str, str], running: tuple[Running, Running], expected: bool
) -> None:
    assert apart(models, running) == expected


def test_a_failure_stops_the_other_run_and_is_told() -> None:
    began, seen = threading.Event(), []

    def fails(_tell: Any) -> None:
        began.wait(10)
        raise InputError("the card is on fire")

    def goes_on(tell: Any) -> None:
        began.set()
        try:
            for done in range(10**9):
                tell(done, 10**9)
        except Stopped:
            seen.append("stopped")
            raise

    with pytest.raises(InputError, match="on fire"):
        at_once([goes_on, fails], lambda _done, _all: None)
    assert seen == ["stopped"]


def test_two_cards_are_busy_at_the_same_time(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run waits for the other one to begin: one after the other would never end."""
    both = threading.Barrier(2, timeout=30)
    told = []

    def evaluate(model: str, _suite: Any, folder: Any, **options: Any) -> Any:
        both.wait()
        options["progress"](1, 2)
        samples = Samples.from_rows([{"model": model, "score": 1.0}])
        return run.Evaluation(folder, samples, 1, 1)

    monkeypatch.setattr(run, "evaluate", evaluate)
    monkeypatch.setattr(run, "open_model", lambda name, _how, chat: name)
    before, after = run.compare_models(
        "base",
        "tuned",
        Suite("quiz", "1"),
        tmp_path,
        running=CARDS,
        progress=lambda *all: told.append(all),
    )
    assert (before.models, after.models) == (["base"], ["tuned"])
    assert sorted(told) == [(1, 2), (2, 4)]
