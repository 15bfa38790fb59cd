"""Files of schema version 1, written by the code of that time, are read and say so."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base.errors import InputError
from forgetmap.gate.baseline import HISTORY, read_history
from forgetmap.gate.judgement import judge
from forgetmap.gate.policy import Policy
from forgetmap.lineage.result import Lineage
from forgetmap.map.comparison import compare_logs
from forgetmap.map.items import Filter
from forgetmap.map.old_maps import NOTE
from forgetmap.map.result import ForgettingMap
from forgetmap.map.saved import open_saved, save_comparison
from forgetmap.samples.table import Samples
from forgetmap.stats.estimate import Range, share
from places import DATA

OLDER = DATA / "older"
MAP, LINEAGE = (OLDER / f"{name}-1.json" for name in ("map", "lineage"))


def in_order(found: Range) -> bool:
    return 0 <= found.low <= found.low_end <= found.high_end <= found.high <= 1


def test_an_old_map_is_read_with_a_note() -> None:
    old, found = json.loads(MAP.read_text()), ForgettingMap.from_json(MAP.read_bytes())
    assert old["schema_version"] == 1
    assert found.schema_version == 2
    assert NOTE in found.warnings
    assert found.old == found.total
    assert found.new is None
    cells = [found.total, found.macro, *found.categories.values(), *found.tasks.values()]
    assert all(in_order(side) for cell in cells for side in (cell.lost, cell.gained))
    assert found.total.raw.lost.value == old["total"]["forgetting"]["raw"]["value"]
    assert found.total.paper is not None
    assert found.total.paper.gained.value == old["total"]["backward_transfer"]["paper"]["value"]
    assert ForgettingMap.from_json(found.to_json()) == found


def test_the_old_headlines_are_bounds_of_the_loss() -> None:
    """Flips are at least the loss; excess and soft are at most the loss."""
    old, found = json.loads(MAP.read_text()), ForgettingMap.from_json(MAP.read_bytes())
    headlines = {name: cell["headline"] for name, cell in old["tasks"].items()}
    assert headlines == {"options": "soft", "repeated": "excess", "single": "raw"}
    for name, headline in headlines.items():
        cell, before = found.tasks[name], old["tasks"][name]
        told, gained = (
            before[side][headline]["value"] for side in ("forgetting", "backward_transfer")
        )
        drop = told - gained
        if headline == "raw":
            assert cell.lost.low_end == pytest.approx(max(0, drop))
            assert cell.lost.high_end == told
        else:
            assert cell.lost.low_end == pytest.approx(max(told, drop))
            assert cell.lost.high_end > told
            assert cell.lost.high_end == pytest.approx((drop + (told + gained) ** 0.5) / 2)


def test_an_old_map_can_be_judged() -> None:
    found = ForgettingMap.from_json(MAP.read_bytes())
    policy = Policy.model_validate({"limits": [{"measure": "raw", "max": 0.05}]})
    assert judge(found, policy).verdict == "BLOCK"
    assert found.headline()


def test_an_old_lineage_is_read_with_a_note() -> None:
    old, found = json.loads(LINEAGE.read_text()), Lineage.from_json(LINEAGE.read_bytes())
    assert old["schema_version"] == 1
    assert found.schema_version == 2
    assert NOTE in found.warnings
    assert all(NOTE in stage.map.warnings for stage in found.comparisons)
    (run,) = found.runs
    for moment in run.moments:
        assert moment.lost == found.comparison(run.path[0], moment.checkpoint).old.lost
        assert in_order(moment.lost)
    for stages in found.worst_stages.values():
        for worst in stages:
            cell = found.comparison(worst.before, worst.after).tasks[worst.group]
            assert worst.lost == cell.lost
            assert worst.flipped == pytest.approx(cell.counts.n10)
    assert found.headline()
    assert Lineage.from_json(found.to_json()) == found


@pytest.mark.parametrize(("kind", "path"), [(ForgettingMap, MAP), (Lineage, LINEAGE)])
def test_a_damaged_old_file_is_refused(kind: Any, path: Any) -> None:
    content = json.loads(path.read_text())
    for name in ("settings", "total", "comparisons", "worst_stages"):
        if name in content:
            cut = {key: value for key, value in content.items() if key != name}
            with pytest.raises(InputError, match="not a forgetmap"):
                kind.from_json(json.dumps(cut))


def test_an_old_line_of_a_history_is_read(tmp_path: Any) -> None:
    line = (OLDER / "history-1.jsonl").read_text()
    broken = json.dumps({**json.loads(line), "forgot": None})
    (tmp_path / HISTORY).write_text(line + broken + "\n")
    history = read_history("base", tmp_path)
    (entry,) = history.entries
    assert history.damaged == 1
    old = json.loads(line)
    assert old["headline"] == "raw"
    assert entry.lost.high_end == old["forgot"]["value"]
    assert entry.lost.low_end == pytest.approx(-old["change"]["value"])
    assert entry.gained.low_end == 0
    assert entry.change.value == old["change"]["value"]
    assert entry.accuracy_after == old["accuracy_after"]


def test_causes_that_were_merged_count_as_one() -> None:
    """In a map of this version too: `format` is a part of `wrapped` now."""
    content = json.loads(ForgettingMap.from_json(MAP.read_bytes()).to_json())
    del content["checksum"]
    cell = content["old"]
    lost = 20 / cell["n"]
    cell["raw"]["lost"]["value"] = lost
    cell["causes"] = {"wrapped": 3, "format": 5, "wrong": 12}
    left = {"wrapped": 17, "format": 15, "wrong": 8}
    cell["without"] = {name: share(count, cell["n"]).model_dump() for name, count in left.items()}
    found = ForgettingMap.from_json(json.dumps(content)).old
    assert found.causes == {"wrapped": 8, "wrong": 12}
    assert found.without is not None
    assert found.without["wrapped"].low == pytest.approx(share(12, cell["n"]).low)
    assert found.without["wrong"].value == pytest.approx(8 / cell["n"])
    assert list(found.without) == ["wrapped", "wrong"]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"causes": {"format": [1]}}, "at old.causes.format, Input should be a valid integer"),
        ({"causes": {"format": 3}, "raw": None}, "at old.raw, Input should be"),
        ({"causes": {"format": 3}, "without": {"format": {}}}, "at old.without.format.value, F"),
        ({"causes": {"format": 3}, "without": {"format": {"value": 10**400}}}, "at old.without"),
    ],
)
def test_a_broken_cell_with_a_merged_cause_is_told_in_one_line(wrong: Any, line: str) -> None:
    content = json.loads(ForgettingMap.from_json(MAP.read_bytes()).to_json())
    del content["checksum"]
    content["old"].update(wrong)
    with pytest.raises(InputError, match=f"not a forgetmap map: {line}"):
        ForgettingMap.from_json(json.dumps(content))


@pytest.mark.parametrize("n", [10**400, 0, -5])
def test_a_cell_that_claims_any_number_of_items_is_read(n: int) -> None:
    content = json.loads(ForgettingMap.from_json(MAP.read_bytes()).to_json())
    del content["checksum"]
    part = share(1, 9).model_dump()
    content["old"].update(n=n, causes={"format": 3}, without={"format": part})
    found = ForgettingMap.from_json(json.dumps(content)).old
    assert found.causes == {"wrapped": 3}
    assert found.without == {}


def test_items_of_a_merged_cause_are_listed_as_the_map_counts_them(tmp_path: Any) -> None:
    """A folder that an older forgetmap saved has items of both causes."""

    def log(answers: list[str]) -> Samples:
        return Samples.from_rows(
            {"item": n, "score": float(said == "Rome"), "target": "Rome", "response": said,
             "answer": said, "prompt": f"{n}?"}
            for n, said in enumerate(answers, 1)
        )  # fmt: skip

    found = compare_logs(log(["Rome"] * 5), log(['"Rome"'] * 3 + ["Oslo"] * 2), causes=True)
    assert found.map.total.causes == {"wrapped": 3, "wrong": 2}
    save_comparison(found, tmp_path)
    table = pq.read_table(tmp_path / "items.parquet")
    older = pa.array(["format", *table["cause"].to_pylist()[1:]])
    table = table.set_column(table.schema.get_field_index("cause"), "cause", older)
    pq.write_table(table, tmp_path / "items.parquet")
    saved = open_saved(tmp_path)
    assert saved.store.page(Filter(cause="wrapped")).total == 3
    assert {row["cause"] for row in saved.store.page(Filter()).rows} == {"wrapped", "wrong"}
    assert sum(map(len, saved.store.table(Filter(cause="wrapped")))) == 3
    assert saved.store.page(Filter(cause="format")).total == 0


def test_a_policy_that_names_a_merged_cause_is_told_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"a part of wrapped .* use cause:wrapped"):
        Policy.model_validate({"limits": [{"measure": "cause:format", "max": 0.05}]})
