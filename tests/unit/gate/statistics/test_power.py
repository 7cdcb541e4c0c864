from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from proton_bench.gate.statistics.power import MOST_PAIRS, detectable, pairs_needed, quantile


def needed(deviation: list[float], distance: float, freedom: float = 5.0) -> np.ndarray:
    size = len(deviation)
    return pairs_needed(
        0.05,
        np.full(size, distance),
        np.array(deviation) ** 2,
        freedom=np.full(size, freedom),
        runs=np.full(size, 6.0),
    )


def test_quantiles_are_those_of_scipy() -> None:
    freedom = np.array([1.0, 4.5, 300.0, math.inf])

    assert quantile(0.95, freedom) == pytest.approx(stats.t.ppf(0.95, freedom))
    assert np.isnan(quantile(0.95, np.array([0.0])))


def test_the_detectable_threshold_is_found_nine_times_in_ten() -> None:
    # The distance from the margin at which the exact noncentral test has the requested power.
    error, freedom = np.array([0.005]), np.array([40.0])

    found = detectable(0.05, error, freedom)

    noncentral = float(found[0] / 2.0 / error[0])
    power = stats.nct.sf(stats.t.ppf(0.95, 40.0), 40.0, noncentral)
    assert power == pytest.approx(0.9, abs=0.01)


def test_pairs_are_about_those_of_statsmodels() -> None:
    deviation = 0.01
    exact = TTestPower().solve_power(
        effect_size=0.01 / deviation, alpha=0.05, power=0.9, alternative="larger"
    )

    found = needed([deviation], 0.01)

    assert exact <= found[0] <= exact + 3.0


def test_more_noise_and_less_distance_need_more_pairs() -> None:
    noise = [0.001, 0.004, 0.008, 0.02]

    far, close = needed(noise, 0.02), needed(noise, 0.01)

    assert (np.diff(far) >= 0).all()
    assert (close >= far).all()
    assert (far % 2 == 0).all()
    assert far.min() >= 4


def test_an_absurd_number_of_pairs_is_unknown() -> None:
    assert np.isnan(needed([1.0], 0.01))
    assert np.isnan(needed([math.nan], 0.01))
    assert np.isnan(needed([0.01], 0.01, freedom=0.0))
    assert needed([0.045], 0.01) <= MOST_PAIRS
