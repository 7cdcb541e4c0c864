from __future__ import annotations

import math

import numpy as np
import pytest
from fakes.histories import stepped
from scipy import signal

from proton_bench.gate.history.steps import LEAST_CHANGE, find_steps, shift_between


def test_a_step_has_its_place_size_and_range() -> None:
    ((step,),) = find_steps([stepped(60, (40, 0.05))], level=0.01)

    assert step.earliest <= step.at == 40 <= step.latest
    assert step.low < np.log(1.05) < step.high
    assert step.low <= step.change <= step.high
    assert 0.0 < step.p_value <= 0.01


def test_ten_steps_of_one_and_a_half_percent_are_found() -> None:
    places = [10 * number for number in range(1, 11)]
    drift = stepped(110, *((place, 0.015) for place in places))
    quiet = [stepped(110, seed=seed) for seed in range(2, 40)]

    first, *others = find_steps([drift, *quiet], level=0.01)

    assert [step.at for step in first] == pytest.approx(places, abs=1)
    assert sum(step.change for step in first) == pytest.approx(10 * np.log(1.015), rel=0.05)
    assert not any(others)


def test_a_ramp_is_found() -> None:
    ramp = stepped(100) + np.linspace(0.0, 0.15, 100)

    (found,) = find_steps([ramp], level=0.01)

    assert sum(step.change for step in found) > 0.1


def lasting(persistence: float, seed: int, points: int = 60) -> np.ndarray:
    """Return noise of 0.3 % whose consecutive points correlate."""
    fresh = np.random.default_rng(seed).normal(size=points)
    values = signal.lfilter([math.sqrt(1.0 - persistence**2)], [1.0, -persistence], fresh)
    return np.asarray(0.003 * values)


@pytest.mark.parametrize("persistence", [0.3, 0.5, 0.8])
def test_noise_that_lasts_makes_few_steps(persistence: float) -> None:
    found = find_steps([3.0 * lasting(persistence, seed) for seed in range(100)], level=0.01)

    # Where each series alone says how long its noise lasts, there are 2, 6 and 56.
    assert sum(map(len, found)) <= (0, 2)[persistence > 0.5]


def test_steps_are_found_among_series_whose_noise_lasts() -> None:
    values = [lasting(0.5, seed) for seed in range(60)]
    for place, each in enumerate(values[:12], 20):
        each[place:] += np.log(1.03)

    found = find_steps(values, level=0.01)

    for place, (step,) in enumerate(found[:12], 20):
        assert step.at == pytest.approx(place, abs=2)
    assert not any(found[12:])


@pytest.mark.parametrize("seed", range(6))
def test_a_step_is_found_in_noise_that_lasts(seed: int) -> None:
    values = lasting(0.5, seed) + np.log(1.03) * (np.arange(60) >= 25)

    (found,) = find_steps([values], level=0.01)

    assert 25 in [pytest.approx(step.at, abs=1) for step in found]


def test_one_slow_run_is_no_step() -> None:
    values = stepped(40)
    values[[12, 30]] += 0.5

    assert find_steps([values], level=0.01) == [()]


@pytest.mark.parametrize("seed", range(6))
def test_steps_are_found_where_one_run_in_ten_is_slow(seed: int) -> None:
    values = stepped(60, (35, 0.03), seed=seed)
    values += 0.1 * (np.random.default_rng(seed).random(60) < 0.1)

    ((step,),) = find_steps([values], level=0.01)

    assert step.at == pytest.approx(35, abs=1)
    assert step.low < np.log(1.03) < step.high


@pytest.mark.parametrize("seed", range(6))
def test_a_large_step_is_placed_exactly(seed: int) -> None:
    ((step,),) = find_steps([stepped(40, (15, 0.02), seed=seed)], level=0.01)

    assert step.earliest <= step.at == 15 <= step.latest


def test_certain_but_tiny_changes_are_left_out() -> None:
    tiny = stepped(60, (30, LEAST_CHANGE / 2.0), noise=0.0001)
    small = stepped(60, (30, 2.0 * LEAST_CHANGE), noise=0.0001)

    assert [len(steps) for steps in find_steps([tiny, small], level=0.01)] == [0, 1]


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("seed", range(4))
def test_steps_among_hundreds_of_noisy_series(seed: int) -> None:
    """50 steps in 300 series with noise as on a GPU: most quiet, some noisy, rare slow runs."""
    generator = np.random.default_rng(seed)
    series, places = [], {}
    for number in range(300):
        noise = min(generator.lognormal(np.log(0.003), 0.6), 0.05)
        values = stepped(60, noise=noise, seed=int(generator.integers(2**32)))
        values += (generator.random(60) < 0.02) * generator.uniform(0.01, 0.1, 60)
        if number < 50:
            places[number] = int(generator.integers(6, 54))
            values[places[number] :] += np.log1p(generator.choice([0.02, 0.03, 0.05, 0.1]))
        series.append(values)

    found = find_steps(series, level=0.01)

    right = [
        number
        for number, place in places.items()
        if any(abs(step.at - place) <= 2 for step in found[number])
    ]
    total = sum(map(len, found))
    assert len(right) / len(places) >= 0.9  # recall
    assert len(right) / total >= 0.95  # precision


def test_intervals_of_sizes_and_places_hold_what_they_promise() -> None:
    series = [stepped(60, (35, 0.012), noise=0.004, seed=seed) for seed in range(150)]

    found = [steps[0] for steps in find_steps(series, level=0.01) if len(steps) == 1]

    assert len(found) > 140
    holds_size = np.mean([step.low <= np.log(1.012) <= step.high for step in found])
    holds_place = np.mean([step.earliest <= 35 <= step.latest for step in found])
    assert 0.82 <= holds_size <= 0.97  # of 90 %
    assert holds_place >= 0.9  # of 95 %


def test_a_shift_is_the_median_of_all_differences() -> None:
    before, after = np.array([1.0, 2.0, 9.0]), np.array([4.0, 5.0, 6.0])

    shift, low, high = shift_between(before, after)

    assert shift == 3.0
    assert (low, high) == (-5.0, 5.0)  # so few values: all differences


def test_a_drift_did_not_begin_at_its_first_step() -> None:
    beginnings = {"drift": 0, "step": 0}
    for seed in range(20):
        drift = stepped(33, *((at, 0.015) for at in range(3, 33, 3)), noise=0.002, seed=seed)
        one = stepped(33, (20, 0.05), noise=0.002, seed=seed)
        ((first, *_), (step,)) = find_steps([drift, one], level=0.01)
        beginnings["drift"] += first.earliest <= 3
        beginnings["step"] += step.earliest >= 19

    assert beginnings["drift"] >= 14
    assert beginnings["step"] >= 17
