from __future__ import annotations

import random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.store import sketches
from proton_bench.store.sketches import distribution_of, merged, quantiles_of, sketches_of

TIMES = st.lists(st.integers(0, 10**12).map(float), min_size=1, max_size=100)
POINTS = [0.0, 0.1, 0.5, 0.9, 1.0]


def samples_of(distributions: list[Distribution]) -> pa.Table:
    """Return the columns of ``samples`` that merging needs."""
    table = DistributionTable.from_mapping(dict(enumerate(distributions)))
    return pa.table(
        {
            "key": ["k"] * len(distributions),
            "count": table.n,
            "min": table.minimum,
            "max": table.maximum,
            "sketch": sketches_of(table, table.rows),
        }
    )


def merge(*tables: pa.Table) -> pa.Table:
    return merged(pa.concat_tables(tables), ["key"])


@given(st.lists(TIMES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_merging_in_any_order_and_in_steps_gives_equal_bits(
    lists: list[list[float]], dice: random.Random
) -> None:
    parts = samples_of([Distribution.from_samples(times) for times in lists])
    whole = merge(parts)
    order = list(range(len(lists)))
    dice.shuffle(order)
    cut = dice.randint(0, len(order))
    pieces = [parts.take(rows) for rows in (order[:cut], order[cut:]) if rows]

    assert merge(*map(merge, pieces)).equals(whole)


@given(
    st.lists(TIMES, min_size=1, max_size=8),
    st.integers(1, 400),
    st.sampled_from([0, sketches._MOST_CELLS]),
    st.randoms(use_true_random=False),
)
def test_keys_that_are_merged_together_are_those_merged_alone(
    lists: list[list[float]], at_once: int, most_cells: int, dice: random.Random
) -> None:
    parts = samples_of([Distribution.from_samples(times) for times in lists])
    keys = [dice.choice("abc") for _ in lists]
    samples = parts.set_column(0, "key", pa.array(keys))
    limits = {"_BUCKETS_AT_ONCE": at_once, "_MOST_CELLS": most_cells}

    with mock.patch.multiple(sketches, **limits):
        found = merge(samples).sort_by("key")

    alone = [merge(samples.filter(pc.equal(samples["key"], key))) for key in sorted(set(keys))]
    assert found.equals(pa.concat_tables(alone))


@given(st.lists(TIMES, min_size=1, max_size=4))
def test_quantiles_of_merged_samples_are_within_the_error(lists: list[list[float]]) -> None:
    (row,) = merge(samples_of([Distribution.from_samples(times) for times in lists])).to_pylist()
    found = distribution_of({"value": 0.0, **row})
    times = np.sort(np.concatenate(lists))

    assert found is not None
    assert found.n == row["count"] == len(times)
    for point, value in zip(POINTS, found.quantiles(POINTS), strict=True):
        exact = times[int(point * (len(times) - 1))]
        assert value == pytest.approx(exact, rel=1.001 * found.relative_error, abs=0.0)


@given(
    st.lists(st.lists(st.integers(-3, 10**9).map(float), max_size=100), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_quantiles_of_many_lines_are_those_of_each(
    lists: list[list[float]], has_sketch: list[bool]
) -> None:
    samples = samples_of([Distribution.from_samples(times) for times in lists])
    sketches = pc.if_else(pa.array(has_sketch[: len(lists)]), samples["sketch"], None)
    lines = samples.set_column(samples.column_names.index("sketch"), "sketch", sketches)

    found = [each.to_pylist() for each in quantiles_of(lines, POINTS)]

    alone = [distribution_of({"value": 0.0, **row}) for row in lines.to_pylist()]
    none = [None] * len(POINTS)
    expected = [none if each is None else each.quantiles(POINTS) for each in alone]
    assert [list(line) for line in zip(*found, strict=True)] == expected


def test_buckets_of_different_width_merge_to_the_wider_ones() -> None:
    wide = Distribution.from_samples(np.geomspace(1.0, 1e12, 5000))
    narrow = Distribution.from_samples(np.linspace(100.0, 101.0, 200))

    (row,) = merge(samples_of([wide, narrow])).to_pylist()

    assert wide.collapses > narrow.collapses == 0
    assert row["sketch"]["collapses"] == wide.collapses
    assert sum(row["sketch"]["count"]) == 5200


def old(**fields: Any) -> Distribution:
    """Return a distribution with buckets, of an earlier version."""
    buckets = {"bucket_index": np.array([1, 2], "<i4"), "bucket_count": np.array([3, 4], "<i8")}
    moments = {"total": 9.0, "minimum": 1.0, "maximum": 2.0, "sum_ln": 0.0, "sum_ln2": 0.0}
    return Distribution(**{"n": 7, "zero_count": 0, **moments, **buckets, **fields})


@pytest.mark.parametrize(
    "distribution",
    [old(gamma=1.02), old(value_error=0.03), old(open_below=True), old(n=9)],
    ids=["other width", "inexact values", "open below", "sums only"],
)
def test_what_cannot_be_added_exactly_has_no_sketch(distribution: Distribution) -> None:
    parts = samples_of([distribution, Distribution.from_samples([1.0, 2.0])])

    assert [each is None for each in parts["sketch"].to_pylist()] == [True, False]
    assert merge(parts)["sketch"].to_pylist() == [None]
