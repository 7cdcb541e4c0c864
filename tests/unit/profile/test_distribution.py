from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import MetricError, UsageError
from proton_bench.profile import Distribution
from proton_bench.profile.distribution import MAX_BUCKETS, MAX_SAMPLES

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
    assert not entry.collapsed
    rank = np.sort(values)[round(q * (len(values) - 1))]
    assert entry.quantile(q) == pytest.approx(rank, rel=0.0025)


def test_bucket_bounds_are_powers_of_gamma() -> None:
    gamma = Distribution.from_samples([1.0]).gamma
    inside = gamma**10 * 0.9999

    entry = Distribution.from_samples([inside] * (MAX_SAMPLES + 1))

    assert entry.bucket_index.tolist() == [10]
    assert entry.bucket_count.tolist() == [MAX_SAMPLES + 1]


def test_samples_that_are_not_positive_count_apart() -> None:
    entry = Distribution.from_samples([0.0] * 40 + [-2.0] + [5.0] * 60)

    assert entry.zero_count == 41
    assert entry.quantile(0.1) == -2.0
    assert entry.quantile(0.9) == pytest.approx(5.0, rel=0.002)


def test_only_zeros_have_quantiles() -> None:
    entry = Distribution.from_samples([0.0] * 100)

    assert entry.quantile(0.5) == 0.0
    assert entry.quantile(1.0) == 0.0


def test_buckets_past_the_cap_collapse_from_below() -> None:
    values = np.exp(np.linspace(0, 20, 4 * MAX_BUCKETS))

    entry = Distribution.from_samples(values)

    assert entry.collapsed
    assert len(entry.bucket_index) == MAX_BUCKETS
    assert int(entry.bucket_count.sum()) == len(values)
    assert entry.quantile(1.0) == pytest.approx(values[-1], rel=0.002)
    assert entry.quantile(0.9) == pytest.approx(np.quantile(values, 0.9), rel=0.01)
    # What lies among the collapsed ones could be anything below their bound.
    assert entry.quantile(0.25) is None
    assert entry.quantile(0.0) == values[0]


def test_moments_without_samples_have_no_quantile() -> None:
    entry = Distribution(3, 0, 6.0, 1.0, 3.0, 1.79, 1.69)

    assert entry.moments_only
    assert entry.quantile(0.5) is None
    assert entry.merge(Distribution.from_samples([1.0])).moments_only


def test_sketches_of_different_width_do_not_merge() -> None:
    one = Distribution.from_samples([1.0] * 70)
    other = Distribution(
        70, 0, 70.0, 1.0, 1.0, 0.0, 0.0, bucket_index=one.bucket_index,
        bucket_count=one.bucket_count, gamma=1.5,
    )  # fmt: skip

    with pytest.raises(UsageError, match="cannot be merged"):
        one.merge(other)


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
