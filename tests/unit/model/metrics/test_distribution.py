from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.earlier import open_below
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.profile_view import distribution_view

from proton_bench.errors import MetricError, ProfileFormatError, UsageError
from proton_bench.model.arrays import Floats
from proton_bench.model.metrics.distribution import MAX_BUCKETS, MAX_SAMPLES, Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable

samples = st.lists(st.just(0.0) | st.floats(1e-30, 1e9), max_size=200)


def moments(entry: Distribution) -> tuple[float, ...]:
    return (entry.n, entry.zero_count, entry.total, entry.minimum, entry.maximum)


def test_few_samples_are_kept_raw() -> None:
    entry = Distribution.from_samples([4.0, 1.0, 2.0])

    assert entry.samples.tolist() == [4.0, 1.0, 2.0]
    assert not entry.has_sketch
    assert entry.quantile(0.5) == 2.0
    assert entry.mean == pytest.approx(7 / 3)
    assert entry.sum_ln == pytest.approx(math.log(8))


def test_no_samples_have_no_quantile() -> None:
    entry = Distribution.from_samples([])

    assert entry.quantile(0.5) is None
    assert math.isnan(entry.mean)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_quantile_outside_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        Distribution.from_samples([1.0]).quantile(q)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_samples_must_be_finite(bad: float) -> None:
    with pytest.raises(MetricError):
        Distribution.from_samples([bad])


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_sketch_is_within_its_relative_error(q: float) -> None:
    values = np.exp(np.random.default_rng(7).normal(10, 0.2, 5000))

    entry = Distribution.from_samples(values)

    assert entry.has_sketch
    assert entry.collapses == 0
    rank = np.sort(values)[math.floor(q * (len(values) - 1))]
    assert entry.quantile(q) == pytest.approx(rank, rel=entry.relative_error)


def test_bucket_bounds_are_powers_of_gamma() -> None:
    gamma = Distribution.from_samples([1.0]).gamma
    inside = gamma**10 * 0.9999

    entry = Distribution.from_samples([inside] * (MAX_SAMPLES + 1))

    assert entry.bucket_index.tolist() == [10]
    assert entry.bucket_count.tolist() == [MAX_SAMPLES + 1]


def test_samples_that_are_not_positive_count_apart() -> None:
    entry = Distribution.from_samples([0.0] * 40 + [-2.0] + [5.0] * 60)

    assert entry.zero_count == 41
    assert entry.quantile(0.0) == -2.0
    assert entry.quantile(0.1) is None  # no bucket tells -2 and 0 apart
    assert entry.quantile(0.9) == pytest.approx(5.0, rel=0.002)


def test_only_zeros_have_quantiles() -> None:
    entry = Distribution.from_samples([0.0] * 100)

    assert entry.quantile(0.5) == 0.0
    assert entry.quantile(1.0) == 0.0


def test_buckets_past_the_cap_merge_in_pairs_and_say_what_that_costs() -> None:
    values = np.exp(np.linspace(0, 20, 4 * MAX_BUCKETS))

    entry = Distribution.from_samples(values)

    assert entry.collapses > 0
    assert len(entry.bucket_index) <= MAX_BUCKETS
    assert int(entry.bucket_count.sum()) == len(values)
    assert 0.001 < entry.relative_error < 0.01
    assert_within_error(entry, values)


def test_one_slow_sample_leaves_the_median_alone() -> None:
    usual = np.random.default_rng(3).normal(10_000, 100, 2000)

    entry = Distribution.from_samples([*usual, 1e8])

    assert entry.quantile(0.5) == pytest.approx(np.median(usual), rel=0.002)
    assert entry.quantile(1.0) == 1e8


def test_quantiles_of_raw_samples_lie_between_the_extremes() -> None:
    # Rounded to float32, it is larger than itself.
    entry = Distribution.from_samples([123456789.0] * 3)

    assert entry.quantile(0.5) == entry.minimum == entry.maximum == 123456789.0


@pytest.mark.parametrize(
    "values",
    [
        [1e300, *[1e308] * 99],
        [1e39, 1.1e39, 1.2e39, 2e300],
        [1e-50, 2e-50, 3e-50],
        [5e-324, 1e-310, 1e-300],
        [16777217.0, 16777219.0, 16777221.0],
    ],
)
def test_values_beyond_float32_keep_their_error_too(values: list[float]) -> None:
    entry = Distribution.from_samples(values)

    assert_within_error(entry, np.array(values))
    assert entry.relative_error <= 0.001


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 3000), min_size=2, max_size=12),
    st.integers(0, 2**32 - 1),
    st.floats(0.1, 9.0),
)
def test_any_quantile_stays_within_the_error_through_merges(
    sizes: list[int], seed: int, decades: float
) -> None:
    generator = np.random.default_rng(seed)
    parts = [10.0 ** (decades * generator.random(size)) for size in sizes]
    entries = [Distribution.from_samples(part) for part in parts]
    generator.shuffle(entries)  # type: ignore[arg-type]

    merged = functools.reduce(Distribution.merge, entries)

    assert merged.n == sum(sizes)
    assert_within_error(merged, np.concatenate(parts))
    assert_within_error(Distribution.merged(entries), np.concatenate(parts))


def test_a_million_samples_over_nine_decades_through_a_thousand_merges() -> None:
    generator = np.random.default_rng(5)
    values = 10.0 ** (9.0 * generator.random(1_000_000))
    bounds = np.sort(generator.integers(0, len(values), 1000))
    pile = [Distribution.from_samples(part) for part in np.split(values, bounds)]

    while len(pile) > 1:
        one = pile.pop(generator.integers(len(pile)))
        other = pile.pop(generator.integers(len(pile)))
        pile.append(one.merge(other))

    assert pile[0].n == len(values)
    assert pile[0].relative_error < 0.01
    assert_within_error(pile[0], values)


def assert_within_error(entry: Distribution, values: Floats) -> None:
    ordered = np.sort(values)
    low = entry.minimum
    for q in (0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0):
        found = entry.quantile(q)
        rank = math.floor(q * (len(ordered) - 1))
        exact = ordered[rank] if entry.has_sketch else np.quantile(ordered, q)
        assert found is not None
        # The last part is what float32 and logarithms round.
        assert abs(found - exact) <= (entry.relative_error + 2e-7) * exact
        assert low <= found <= entry.maximum
        low = found


# -- what earlier versions wrote ------------------------------------------------------------------
def test_quantiles_in_a_bucket_that_is_open_below_are_unknown() -> None:
    values = np.exp(np.linspace(5, 7, 1000))

    entry = open_below(values, 500)

    assert entry.quantile(0.25) is None
    assert entry.quantile(0.0) == values[0]
    assert entry.quantile(0.9) == pytest.approx(np.quantile(values, 0.9), rel=0.003)


def test_a_merge_leaves_unknown_what_one_part_does_not_know() -> None:
    known = np.exp(np.linspace(4, 6, 1000))
    values = np.exp(np.linspace(5, 7, 1000))

    for merged in (
        open_below(values, 500).merge(Distribution.from_samples(known)),
        Distribution.from_samples(known).merge(open_below(values, 500)),
    ):
        # Up to exp(6), half of the values of one part may stand anywhere.
        assert merged.quantile(0.7) is None
        exact = np.quantile(np.concatenate([known, values]), 0.8)
        assert merged.quantile(0.8) == pytest.approx(exact, rel=0.003)


def test_moments_without_samples_have_no_quantile() -> None:
    entry = Distribution(3, 0, 6.0, 1.0, 3.0, 1.79, 1.69)

    assert entry.moments_only
    assert entry.quantile(0.5) is None
    assert entry.merge(Distribution.from_samples([1.0])).moments_only


def test_sketches_of_different_width_merge_to_the_wider_one() -> None:
    values = 10.0 ** np.linspace(1, 3, 500)
    coarse = Distribution.from_samples(values).with_gamma(1.06)

    for merged in (
        coarse.merge(Distribution.from_samples(values * 1.3)),
        Distribution.from_samples(values * 1.3).merge(coarse),
    ):
        assert merged.gamma == 1.06
        assert 0.029 < merged.relative_error < 0.035
        assert_within_error(merged, np.concatenate([values, values * 1.3]))


@given(left=samples, right=samples)
def test_merging_equals_sampling_all(left: list[float], right: list[float]) -> None:
    merged = Distribution.from_samples(left).merge(Distribution.from_samples(right))

    whole = Distribution.from_samples(left + right)
    assert moments(merged) == pytest.approx(moments(whole))
    assert merged.sum_ln2 == pytest.approx(whole.sum_ln2)
    assert merged.has_sketch == whole.has_sketch
    for q in (0.0, 0.3, 0.5, 1.0):
        expected = whole.quantile(q)
        # Raw samples are float32 and may fall into the neighbouring bucket.
        assert merged.quantile(q) == (
            None if expected is None else pytest.approx(expected, rel=0.005, abs=1e-300)
        )


ENTRIES = {
    7: Distribution.from_samples([1.0, 2.0]),
    2: Distribution.from_samples(range(1, 100)),
    5: Distribution.from_samples([]),
}


def test_entries_come_back_by_row() -> None:
    table = DistributionTable.from_mapping(ENTRIES)

    assert table.rows.tolist() == [2, 5, 7]
    for row, entry in ENTRIES.items():
        found = table.get(row)
        assert found is not None
        assert distribution_view(found) == distribution_view(entry)
    assert [row for row, _ in table] == [2, 5, 7]


def test_rows_without_samples_have_no_distribution() -> None:
    table = DistributionTable.from_mapping(ENTRIES)

    assert [table.get(row) for row in (0, 3, 8)] == [None, None, None]


def test_empty_table_fits_any_profile() -> None:
    table = DistributionTable.from_mapping({})

    table.self_check(1)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", np.array([2, 5, 99], "<i4")),
        ("rows", np.array([-1, 5, 7], "<i4")),
        ("rows", np.array([2, 2, 7], "<i4")),
        ("n", np.array([1], "<i8")),
        ("n", np.array([1, -1, 1], "<i8")),
        ("sample_offsets", np.array([0, 9, 3, 66], "<i4")),
        ("bucket_offsets", np.array([], "<i4")),
        ("bucket_count", np.array([], "<i8")),
        ("gamma", float("nan")),
        ("gamma", 1.0),
        ("value_error", 1.0),
        ("value_error", float("nan")),
        ("collapses", np.array([40, 0, 0], "|u1")),
        ("collapses", np.array([0], "|u1")),
        ("bucket_index", np.full(len(ENTRIES[2].bucket_index), 7, "<i4")),
    ],
)
def test_self_check_refuses_what_does_not_fit(field: str, value: Any) -> None:
    broken = replace(DistributionTable.from_mapping(ENTRIES), **{field: value})

    with pytest.raises(ProfileFormatError):
        broken.self_check(10)


def test_buckets_of_different_width_become_those_of_the_widest() -> None:
    coarse = Distribution.from_samples(range(1, 100)).with_gamma(1.06)

    table = DistributionTable.from_mapping({1: coarse, 2: ENTRIES[2], 3: ENTRIES[7]})

    assert table.gamma == 1.06
    for row, middle in ((1, 50), (2, 50), (3, 1.5)):
        found = table.get(row)
        assert found is not None
        assert found.quantile(0.5) == pytest.approx(middle, rel=found.relative_error)
