"""The sums over option probabilities that pairing makes, against the definition in plain numpy."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forgetmap
from forgetmap.pairing.many_logs import ManyLogs
from forgetmap.pairing.two_logs import pair
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples
from forgetmap.stats.patterns import MOMENTS, Moment, guessing_churn, item_moments


def churn_of(u, v, g):
    """The definition, word for word."""
    k = len(u)
    wrong_u, wrong_v = (sum(x for j, x in enumerate(side) if j != g) for side in (u, v))
    if min(wrong_u, wrong_v) == 0:
        return 0.0
    moved = sum(max(u[j] / wrong_u - v[j] / wrong_v, 0) for j in range(k) if j != g)
    return min(wrong_u, wrong_v) * k / (k - 1) * moved / (k - 1)


def expected(before, after):
    """Sums over items, from lists of (gold, options or None, right) for each repeat."""
    sums = np.zeros(MOMENTS)
    for ours, theirs in zip(before, after, strict=True):
        p, q = (np.mean([run[0] for run in side]) for side in (ours, theirs))
        churn = _known_churn(ours, theirs)
        lost, gained = max(p - q, 0), max(q - p, 0)
        row = [1, churn is not None, p, q]
        firm = churn or 0
        for v in (lost, lost - firm, gained, gained - firm):
            row += [v, v * v, v**3]
        sums += row
    return sums


def _known_churn(ours, theirs):
    runs = [*ours, *theirs]
    if any(options is None for _, options, _ in runs):
        return None
    sizes, rights = {len(options) for _, options, _ in runs}, {right for *_, right in runs}
    if len(sizes) > 1 or len(rights) > 1 or sizes.pop() < 3 or None in rights:
        return None
    u, v = (np.mean([options for _, options, _ in side], axis=0) for side in (ours, theirs))
    return churn_of(u, v, rights.pop())


def log(items, rng, model):
    rows = [
        {
            "model": model,
            "task": "t",
            "item": content_hash(str(number)),
            "item_ref": str(number),
            "repeat": repeat,
            "score": float(rng.random() < gold),
            "metric": "acc",
            "gold_probability": gold,
            "option_probabilities": options,
            "right_option": right,
        }
        for number, runs in enumerate(items)
        for repeat, (gold, options, right) in enumerate(runs)
    ]
    rng.shuffle(rows)
    return Samples.from_rows(rows)


def random_items(rng, items, repeats, missing, odd):
    """Two sides of items: k from 2 to 10, options missing on some rows, others that do not fit."""
    sides = [], []
    for _ in range(items):
        k = rng.randint(2, 10)
        right = rng.randrange(k)
        for side in sides:
            runs = []
            for _ in range(repeats):
                size = k + (rng.random() < odd)
                options = random_distribution(rng, size)
                gold = options[right]
                place = right if rng.random() >= odd else rng.choice([None, (right + 1) % k])
                runs.append((gold, None if rng.random() < missing else options, place))
            side.append(runs)
    return sides


def random_distribution(rng, size):
    if rng.random() < 0.1:  # one option takes it all
        return [float(place == 0) for place in range(size)]
    weights = np.array([rng.expovariate(1) ** 3 for _ in range(size)])
    return [float(np.float32(x)) for x in weights / weights.sum()]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 30),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.sampled_from([0.0, 0.2]),
)
def test_sums_are_those_of_the_definition(seed, items, repeats, missing, odd):
    rng = random.Random(seed)
    before, after = random_items(rng, items, repeats, missing, odd)
    ours, theirs = log(before, rng, "b"), log(after, rng, "a")
    found = pair(ours, theirs).patterns.moments.sum(axis=0)
    np.testing.assert_allclose(found, expected(before, after), rtol=0, atol=1e-10)
    many = ManyLogs({"b": ours, "a": theirs}, None, 0.5, "content")
    many.outcomes()
    np.testing.assert_array_equal(many.pairs("b", "a").patterns.moments.sum(axis=0), found)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_the_order_of_rows_changes_nothing(seed, repeats):
    rng = random.Random(seed)
    before, after = random_items(rng, 40, repeats, 0.1, 0.1)
    logs = [log(side, rng, "m") for side in (before, after)]
    shuffled = [Samples.from_rows(rng.sample(rows, len(rows))) for rows in
                (samples.data.to_pylist() for samples in logs)]  # fmt: skip
    one, other = (pair(*sides).patterns.moments for sides in (logs, shuffled))
    np.testing.assert_array_equal(one, other)


def test_numpy_and_sql_agree():
    rng = random.Random(5)
    sides = [
        [[(u[1], u, 1)] for u in (random_distribution(rng, 5) for _ in range(50))] for _ in "ba"
    ]
    u, v = (np.array([runs[0][1] for runs in side]) for side in sides)
    churn = guessing_churn(u, v, np.ones(50, int))
    np.testing.assert_allclose(churn, [churn_of(*each, 1) for each in zip(u, v, strict=True)])
    found = pair(log(sides[0], rng, "b"), log(sides[1], rng, "a")).patterns.moments.sum(axis=0)
    np.testing.assert_allclose(item_moments(u[:, 1], v[:, 1], churn).sum(axis=0), found, atol=1e-10)


def test_by_hand():
    """Nothing known: 1/4 each but for two wrong options that swap their weight."""
    before = [[(0.25, [0.25, 0.75, 0.0, 0.0], 0)]]
    after = [[(0.125, [0.125, 0.0, 0.875, 0.0], 0)]]
    rng = random.Random(0)
    found = pair(log(before, rng, "b"), log(after, rng, "a")).patterns.moments.sum(axis=0)
    churn = 1 * 1 / 3  # the wrong mass is at least 3/4, and all of it moved
    assert found[Moment.CHURN_KNOWN] == 1
    assert found[Moment.LOST] == pytest.approx(0.125)
    assert found[Moment.FIRM_LOST] == pytest.approx(0.125 - churn)
    assert found[Moment.FIRM_GAINED] == pytest.approx(-churn)
    assert found[Moment.FIRM_GAINED_3] == pytest.approx(-(churn**3))


def test_items_with_a_probability_on_one_side_only_do_not_count():
    rng = random.Random(0)
    whole = [[(0.5, None, None)], [(0.75, None, None)]]
    half = [[(0.25, None, None)], [(0.75, None, None)]]
    rows = log(half, rng, "a").data.to_pylist()
    for row in rows:
        if row["item_ref"] == "1":
            row["gold_probability"] = None
    found = pair(log(whole, rng, "b"), Samples.from_rows(rows)).patterns.moments.sum(axis=0)
    assert found[Moment.ITEMS] == 1
    assert found[[Moment.P, Moment.Q, Moment.LOST]] == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    "bad", [[0.5, math.nan, 0.5], [1.5, -0.5, 0.0], [0.2, 0.2, 0.2], [0.5, None, 0.5]]
)
def test_bad_options_of_a_file_are_left_out_with_a_warning(bad, tmp_path):
    rng = random.Random(0)
    good = [[(0.5, [0.5, 0.25, 0.25], 0)]] * 3
    path = tmp_path / "s.parquet"
    log(good, rng, "b").write(path)
    table = pq.read_table(path)
    place = table.column_names.index("option_probabilities")
    values = [bad, *table["option_probabilities"].to_pylist()[1:]]
    changed = pa.array(values, table.schema.field(place).type)
    pq.write_table(table.set_column(place, "option_probabilities", changed), path)
    pairs = pair(forgetmap.read(path), log(good, rng, "a"))
    found = pairs.patterns.moments.sum(axis=0)
    assert (found[Moment.ITEMS], found[Moment.CHURN_KNOWN]) == (3, 2)
    assert [text for text in pairs.warnings if "option" in text] == [
        "before: the option probabilities of 1 rows were left out: they must be numbers from 0 on "
        "that sum up to 1, with the right option among them"
    ]


def test_a_file_of_version_1_has_probabilities_and_no_churn(tmp_path):
    rng = random.Random(0)
    items = [[(0.5, [0.5, 0.25, 0.25], 0)]] * 3
    log(items, rng, "b").write(tmp_path / "new.parquet")
    table = pq.read_table(tmp_path / "new.parquet")
    meta = json.loads(table.schema.metadata[b"forgetmap"]) | {"schema_version": 1}
    old = table.drop_columns(["option_probabilities", "right_option"])
    pq.write_table(
        old.replace_schema_metadata({b"forgetmap": json.dumps(meta)}), tmp_path / "old.parquet"
    )
    logs = [forgetmap.read(tmp_path / f"{age}.parquet") for age in ("old", "new")]
    found = pair(*logs).patterns.moments.sum(axis=0)
    assert (found[Moment.ITEMS], found[Moment.CHURN_KNOWN], found[Moment.LOST]) == (3, 0, 0)


def test_logs_without_probabilities_have_no_moments():
    rows = [{"item": number, "score": 1.0} for number in range(3)]
    logs = (Samples.from_rows(rows, Meta()), Samples.from_rows(rows, Meta()))
    assert not pair(*logs).patterns.moments.any()
