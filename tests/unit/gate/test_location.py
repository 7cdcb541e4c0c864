from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proton_bench.gate.location import (
    locate,
    mid_quantile,
    spread_of,
    tick_variance,
    trimmed_mean,
)
from proton_bench.gate.sample import Sample
from proton_bench.profile import Distribution

VALUES = st.lists(st.integers(1, 40).map(float), min_size=1, max_size=60)


def test_without_ties_the_mid_median_is_the_median() -> None:
    generator = np.random.default_rng(1)
    for size in (1, 2, 5, 8, 101):
        values = generator.normal(size=size)
        assert mid_quantile(Sample.of_values(values), 0.5) == pytest.approx(np.median(values))


def test_between_ticks_the_mid_median_is_interpolated() -> None:
    # Shares 1/2, 1/4, 1/4 have mid-distribution 1/4, 5/8, 7/8: 1/2 is two thirds of the way.
    sample = Sample.of_values([32.0, 32.0, 64.0, 96.0])

    assert mid_quantile(sample, 0.5) == pytest.approx(32.0 + 32.0 * 2.0 / 3.0)


@given(VALUES)
def test_the_mid_median_of_mirrored_values_is_mirrored(values: list[float]) -> None:
    mirrored = Sample.of_values([-value for value in values])

    assert mid_quantile(mirrored, 0.5) == pytest.approx(
        -mid_quantile(Sample.of_values(values), 0.5)
    )


@given(VALUES, st.floats(0.01, 0.99))
def test_more_time_never_lowers_a_location(values: list[float], q: float) -> None:
    longer = [value + 1.0 for value in values]

    assert mid_quantile(Sample.of_values(longer), q) >= mid_quantile(Sample.of_values(values), q)
    assert trimmed_mean(Sample.of_values(longer)) >= trimmed_mean(Sample.of_values(values))


@pytest.mark.parametrize("size", [10, 20, 50])
def test_the_trimmed_mean_is_that_of_scipy(size: int) -> None:
    values = np.random.default_rng(size).exponential(size=size)

    found = trimmed_mean(Sample.of_values(values), 0.1)

    assert found == pytest.approx(stats.trim_mean(values, 0.1))


def test_the_trimmed_mean_cuts_parts_of_a_value() -> None:
    # Half of a launch is cut off at either end: (0.5 * 0 + 3 * 1 + 0.5 * 9) / 4.
    assert trimmed_mean(Sample.of_values([0, 1, 1, 1, 9]), 0.1) == pytest.approx(7.5 / 4)


def test_a_trimmed_mean_sees_what_lies_between_ticks_and_a_median_jumps() -> None:
    generator = np.random.default_rng(3)
    ticks = []
    for time in (1000.0, 1008.0):
        phases = generator.random(4000) * 32.0
        ticks.append(np.floor((phases + time) / 32.0) * 32.0)

    means = [trimmed_mean(Sample.of_values(each)) for each in ticks]

    assert means[1] - means[0] == pytest.approx(8.0, abs=2.0)


def test_spreads_are_those_of_numpy_and_scipy() -> None:
    values = np.random.default_rng(5).normal(10.0, 2.0, 101)
    sample = Sample.of_values(values)

    assert spread_of(sample, "stddev") == pytest.approx(np.std(values, ddof=1))
    assert spread_of(sample, "mad") == pytest.approx(stats.median_abs_deviation(values))
    assert spread_of(sample, "iqr") == pytest.approx(stats.iqr(values, interpolation="hazen"))
    assert math.isnan(spread_of(Sample.of_values([1.0]), "stddev"))


def test_the_tick_adds_a_twelfth_of_its_square_over_the_launches() -> None:
    assert tick_variance(3200.0, 32.0, 100.0) == pytest.approx(0.01**2 / 1200.0)
    assert tick_variance(math.nan, 32.0, 100.0) == 0.0
    assert tick_variance(0.0, 32.0, 100.0) == 0.0


def test_launches_of_one_value_count_as_one() -> None:
    alike = locate(Sample.of_values([3200.0] * 50), "median", tick=32.0, short=True)
    apart = locate(Sample.of_values([3200.0, 3232.0] * 25), "median", tick=32.0, short=True)

    assert alike.log_variance == pytest.approx(0.01**2 / 12.0)
    assert apart.log_variance < alike.log_variance / 40.0


@pytest.mark.parametrize(
    ("name", "value"), [("min", 1.0), ("max", 9.0), ("mean", 4.0), ("median", 2.0), ("p99", 9.0)]
)
def test_statistics_by_name(name: str, value: float) -> None:
    found = locate(Sample.of_values([1.0, 2.0, 9.0]), name, tick=1.0, short=False)

    assert found.value == pytest.approx(value)


def test_a_sketch_has_the_median_of_its_samples_within_its_accuracy() -> None:
    values = np.exp(np.random.default_rng(2).normal(9.0, 0.1, 5000))

    sample = Sample.of(Distribution.from_samples(values))

    assert sample is not None
    assert sample.size == 5000
    assert mid_quantile(sample, 0.5) == pytest.approx(np.median(values), rel=0.001)
    assert sample.relative_tick == pytest.approx(0.002, rel=0.01)


def test_a_sample_of_nothing_or_of_moments_alone() -> None:
    merged = Distribution(n=3, zero_count=0, total=3, minimum=1, maximum=1, sum_ln=0, sum_ln2=0)

    assert Sample.of(merged) is None
    assert Sample.of(Distribution.from_samples([])) is None
    assert math.isnan(mid_quantile(Sample.of_values([]), 0.5))
    assert math.isnan(trimmed_mean(Sample.of_values([math.nan])))
