from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sweeps import how_many

from proton_bench.gate.history.divisive import (
    FEWEST_BESIDE,
    FEWEST_POINTS,
    divide,
    fewest_after,
    place_of_step,
    scores_of,
    statistics_of,
)

SERIES = arrays(np.float64, st.integers(FEWEST_POINTS, 14), elements=st.floats(-1.0, 1.0, width=32))


def statistic(values: np.ndarray, at: int, end: int) -> float:
    """Return Q as it is defined: between two parts, less what is within either."""
    first, second = values[:at], values[at:end]
    n, m = len(first), len(second)
    between = sum(abs(x - y) for x in first for y in second)
    within = [
        sum(abs(x - y) for x, y in itertools.combinations(part, 2)) for part in (first, second)
    ]
    return (
        2.0 * between / (n + m)
        - 2.0 * m * within[0] / ((n + m) * (n - 1))
        - 2.0 * n * within[1] / ((n + m) * (m - 1))
    )


def every_statistic(values: np.ndarray) -> dict[tuple[int, int], float]:
    return {
        (at, end): statistic(values, at, end)
        for end in range(2 * FEWEST_BESIDE, len(values) + 1)
        for at in range(FEWEST_BESIDE, end - FEWEST_BESIDE + 1)
    }


@settings(deadline=None, max_examples=how_many(40, 15))
@given(SERIES)
def test_the_greatest_statistic_is_that_of_the_definition(values: np.ndarray) -> None:
    every = every_statistic(values)

    (found,) = statistics_of(values.astype(np.float32)[:, None])

    assert found == pytest.approx(max(every.values()), abs=1e-4)


@settings(deadline=None, max_examples=how_many(40, 15))
@given(SERIES)
def test_the_place_has_the_greatest_statistic(values: np.ndarray) -> None:
    every = every_statistic(values)

    place = place_of_step(values)

    assert max(value for (at, _), value in every.items() if at == place) == pytest.approx(
        max(every.values()), abs=1e-9
    )


def test_columns_are_computed_independently() -> None:
    columns = np.random.default_rng(1).normal(size=(20, 7)).astype(np.float32)

    together = statistics_of(columns)

    apart = [statistics_of(column[:, None])[0] for column in columns.T]
    assert together == pytest.approx(apart, rel=1e-4)


@settings(deadline=None, max_examples=how_many(30, 12))
@given(st.floats(-1e6, 1e6), st.integers(1, 60))
def test_a_constant_series_has_no_step(value: float, count: int) -> None:
    assert divide([np.full(count, value)], level=0.05) == [[]]


def test_series_that_are_too_short_are_not_tested() -> None:
    short = np.array([0.0] * 3 + [1.0] * (FEWEST_POINTS - 4))

    assert divide([short, np.array([])], level=0.5) == [[], []]
    assert divide([], level=0.05) == []


@settings(deadline=None, max_examples=how_many(20, 8))
@given(
    st.integers(0, 2**32 - 1),
    st.integers(-8, 8).map(lambda power: 2.0**power),
    st.sampled_from([1.0, -1.0]),
    st.floats(-3.0, 3.0),
)
def test_scale_sign_and_origin_do_not_matter(
    seed: int, factor: float, sign: float, origin: float
) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=24) + 4.0 * (np.arange(24) >= 11)

    (found,) = divide([values], level=0.05)
    (other,) = divide([sign * factor * values + origin], level=0.05)

    assert [each.at for each in other] == [each.at for each in found]


@settings(deadline=None, max_examples=how_many(20, 8))
@given(SERIES)
def test_only_ranks_matter_and_equal_values_are_equal(values: np.ndarray) -> None:
    values = np.round(4.0 * values)

    scores = scores_of(values)

    assert scores_of(np.exp(3.0 * values)) == pytest.approx(scores)
    assert scores_of(-values) == pytest.approx(-scores, abs=1e-6)
    for place, other in itertools.combinations(range(len(values)), 2):
        assert np.sign(scores[place] - scores[other]) == np.sign(values[place] - values[other])


def test_time_backwards_has_the_same_places() -> None:
    values = np.random.default_rng(6).normal(size=40) + 6.0 * (np.arange(40) >= 15)

    (forwards,), (backwards,) = (divide([each], level=0.01) for each in (values, values[::-1]))

    assert [40 - each.at for each in backwards] == [each.at for each in forwards] == [15]


def test_a_step_up_and_down_has_two_places() -> None:
    values = np.random.default_rng(6).normal(size=60)
    values[20:32] += 6.0

    (found,) = divide([values], level=0.01)

    assert [each.at for each in found] == [20, 32]
    assert all(0.0 < each.p_value <= 0.01 for each in found)


def test_one_step_is_found_among_many_series() -> None:
    generator = np.random.default_rng(7)
    series = list(generator.normal(size=(100, 40)))
    series[23][25:] += 5.0

    found = divide(series, level=0.05)

    assert {place: [each.at for each in own] for place, own in enumerate(found) if own} == {
        23: [25]
    }


def test_the_same_seed_gives_the_same_result() -> None:
    series = list(np.random.default_rng(8).normal(size=(20, 30)))

    first, second = (divide(series, level=0.5, seed=3) for _ in range(2))

    assert first == second
    assert any(first)


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("noise", ["normal", "slow", "ticks"])
def test_families_without_a_step_keep_their_level(noise: str, shared: float) -> None:
    """Without any step, each found one is false: at most 5 % of families may have one."""
    generator = np.random.default_rng(9)
    families, level = 120, 0.05
    alarms = 0
    for seed in range(families):
        series = generator.normal(size=(8, 20))
        if noise == "slow":
            series = series / 3.0 + 10.0 * (generator.random(series.shape) < 0.1)
        series += shared * generator.normal(size=20)
        if noise == "ticks":
            series = np.round(series)
        alarms += any(divide(list(series), level=level, seed=seed))

    # More would be seen once in ten thousand such tests.
    assert alarms <= families * level + 4.0 * math.sqrt(families * level * (1.0 - level))


@pytest.mark.parametrize(
    ("points", "series", "level", "fewest"),
    [
        (FEWEST_POINTS - 1, 1, 0.05, None),
        (8, 1, 0.05, 3),
        (8, 100, 0.01, None),
        (13, 6, 0.01, None),
        (20, 6, 0.01, 6),
        (30, 20, 0.01, 6),
        (1000, 1000, 0.01, 6),
    ],
)
def test_the_fewest_points_after_a_step(
    points: int, series: int, level: float, fewest: int | None
) -> None:
    assert fewest_after(points, series, level) == fewest


@pytest.mark.parametrize(("points", "series"), [(20, 6), (30, 20), (40, 4)])
def test_a_large_step_is_found_from_the_fewest_points_on(points: int, series: int) -> None:
    fewest = fewest_after(points, series, 0.01)
    assert fewest is not None
    found = {}
    for after in (fewest - 2, fewest):
        divided = []
        for seed in range(20):
            noise = np.random.default_rng(seed).normal(0.0, 1.0, (series, points))
            noise[0, points - after :] += 20.0
            divided.append(bool(divide(list(noise), level=0.01, seed=seed)[0]))
        found[after] = sum(divided)

    assert found[fewest] >= 15
    assert found[fewest - 2] <= 5
