from __future__ import annotations

import math

import numpy as np
import pytest
from fakes.earlier import open_below
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proton_bench.gate.statistics.location import (
    Sample,
    grouped_quantile,
    locate,
    tick_variance,
    trimmed_mean,
)
from proton_bench.model.metrics.distribution import Distribution

VALUES = st.lists(st.integers(1, 40).map(float), min_size=1, max_size=60)


def test_without_ties_the_grouped_median_is_the_median() -> None:
    generator = np.random.default_rng(1)
    for size in (1, 2, 5, 8, 101):
        values = generator.normal(size=size)
        assert grouped_quantile(Sample.of_values(values), 0.5) == pytest.approx(np.median(values))


def test_between_ticks_the_grouped_median_is_interpolated() -> None:
    # Two of five lie in [16, 48), two in [48, 80): the middle one is a quarter of the way in there.
    sample = Sample.of_values([32.0, 32.0, 64.0, 64.0, 96.0])

    assert grouped_quantile(sample, 0.5, 32.0) == pytest.approx(48.0 + 32.0 / 4.0)


@pytest.mark.parametrize("launches", [[20_000.0] * 99, [20_000.0, 20_032.0] * 50])
def test_one_launch_far_away_does_not_move_a_median(launches: list[float]) -> None:
    for sample in (
        Sample.of_values([*launches, 2e8]),
        Sample.of(Distribution.from_samples([*launches, 2e8])),
    ):
        assert sample is not None
        for short in (False, True):
            found = locate(sample, "median", tick=32.0, short=short)
            assert found.value == pytest.approx(np.median(launches), rel=0.002)


@pytest.mark.parametrize("count", [3, 4, 7, 9, 10])
def test_one_slow_launch_of_few_does_not_move_a_short_median(count: int) -> None:
    sample = Sample.of_values([*[1000.0] * (count - 1), 1e7])

    assert locate(sample, "median", tick=1.0, short=True).value == 1000.0


@given(VALUES)
def test_the_grouped_median_of_mirrored_values_is_mirrored(values: list[float]) -> None:
    mirrored = Sample.of_values([-value for value in values])

    assert grouped_quantile(mirrored, 0.5) == pytest.approx(
        -grouped_quantile(Sample.of_values(values), 0.5)
    )


@given(VALUES, st.floats(0.01, 0.99))
def test_more_time_never_lowers_a_location(values: list[float], q: float) -> None:
    longer = [value + 1.0 for value in values]

    assert grouped_quantile(Sample.of_values(longer), q) >= grouped_quantile(
        Sample.of_values(values), q
    )
    assert trimmed_mean(Sample.of_values(longer)) >= trimmed_mean(Sample.of_values(values))


@pytest.mark.parametrize("size", [10, 20, 50])
def test_the_trimmed_mean_is_that_of_scipy(size: int) -> None:
    values = np.random.default_rng(size).exponential(size=size)

    found = trimmed_mean(Sample.of_values(values), 0.1)

    assert found == pytest.approx(stats.trim_mean(values, 0.1))


def test_the_trimmed_mean_cuts_parts_of_a_value() -> None:
    # One launch and a half are cut off at either end of fifteen: (1.5 * 0 + 9 * 1 + 1.5 * 9) / 12.
    values = [0.0] * 3 + [1.0] * 9 + [9.0] * 3

    assert trimmed_mean(Sample.of_values(values), 0.1) == pytest.approx(22.5 / 12)


def test_a_trimmed_mean_sees_what_lies_between_ticks_and_a_median_jumps() -> None:
    generator = np.random.default_rng(3)
    ticks = []
    for time in (1000.0, 1008.0):
        phases = generator.random(4000) * 32.0
        ticks.append(np.floor((phases + time) / 32.0) * 32.0)

    means = [trimmed_mean(Sample.of_values(each)) for each in ticks]

    assert means[1] - means[0] == pytest.approx(8.0, abs=2.0)


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
    ("name", "value"), [("min", 1.0), ("mean", 4.0), ("median", 2.0), ("p99", 9.0)]
)
def test_statistics_by_name(name: str, value: float) -> None:
    found = locate(Sample.of_values([1.0, 2.0, 9.0]), name, tick=1.0, short=False)

    assert found.value == pytest.approx(value)


def test_a_sketch_has_the_median_of_its_samples_within_its_accuracy() -> None:
    values = np.exp(np.random.default_rng(2).normal(9.0, 0.1, 5000))

    sample = Sample.of(Distribution.from_samples(values))

    assert sample is not None
    assert sample.size == 5000
    assert grouped_quantile(sample, 0.5) == pytest.approx(np.median(values), rel=0.001)
    assert locate(sample, "median", tick=0.0, short=False).error == pytest.approx(0.002, rel=0.01)
    assert locate(sample, "mean", tick=0.0, short=False).value == pytest.approx(values.mean())
    assert locate(sample, "min", tick=0.0, short=False).value == values.min()


@pytest.mark.parametrize("name", ["median", "p25", "p90"])
@pytest.mark.parametrize("short", [False, True])
def test_a_statistic_of_a_sketch_is_as_far_off_as_it_says_at_most(name: str, short: bool) -> None:
    values = np.exp(np.random.default_rng(4).normal(9.0, 2.0, 20_000))
    sketch = Distribution.from_samples(values).with_gamma(1.05)

    sample = Sample.of(sketch)

    assert sample is not None
    found = locate(sample, name, tick=0.0, short=short)
    exact = locate(Sample.of_values(values), name, tick=0.0, short=short)
    assert exact.error == 0.0
    assert 0.01 < found.error < 1.0
    assert found.value == pytest.approx(exact.value, rel=found.error)


def test_what_lies_in_a_bucket_that_is_open_below_has_no_known_error() -> None:
    sample = Sample.of(open_below(np.exp(np.linspace(9.0, 10.0, 1000)), 300))

    assert sample is not None
    assert math.isinf(locate(sample, "p10", tick=0, short=False).error)
    assert locate(sample, "p90", tick=0, short=False).error < 0.003
    assert locate(sample, "mean", tick=0, short=False).error == 0.0


def test_a_sample_of_nothing_or_of_moments_alone() -> None:
    merged = Distribution(n=3, zero_count=0, total=3, minimum=1, maximum=1, sum_ln=0, sum_ln2=0)

    assert Sample.of(merged) is None
    assert Sample.of(Distribution.from_samples([])) is None
    assert math.isnan(grouped_quantile(Sample.of_values([]), 0.5))
    assert math.isnan(trimmed_mean(Sample.of_values([math.nan])))
