from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from proton_bench.gate.statistics.power import (
    MOST_PAIRS,
    Question,
    detectable,
    pairs_needed,
    quantile,
)


def question(level: float = 0.05, margin: float = 0.02, threshold: float = 0.03) -> Question:
    return Question(*(np.array([value]) for value in (margin, threshold, level)))


def test_quantiles_are_those_of_scipy() -> None:
    freedom = np.array([1.0, 4.5, 300.0, math.inf])

    assert quantile(0.95, freedom) == pytest.approx(stats.t.ppf(0.95, freedom))
    assert np.isnan(quantile(0.95, np.array([0.0])))


def test_the_detectable_change_is_found_four_times_in_five() -> None:
    # The distance from the margin at which the exact noncentral test has the requested power.
    error, freedom = np.array([0.005]), np.array([40.0])

    found = detectable(question(), error, freedom)

    noncentral = float((found[0] - 0.02) / error[0])
    power = stats.nct.sf(stats.t.ppf(0.95, 40.0), 40.0, noncentral)
    assert power == pytest.approx(0.8, abs=0.01)


def test_pairs_are_about_those_of_statsmodels() -> None:
    deviation = 0.01
    exact = TTestPower().solve_power(
        effect_size=0.01 / deviation, alpha=0.05, power=0.8, alternative="larger"
    )

    found = pairs_needed(question(), np.array([deviation**2]), np.array([1.0]))

    assert exact <= found[0] <= exact + 3.0


def test_more_noise_and_less_distance_need_more_pairs() -> None:
    noise = np.array([0.001, 0.004, 0.008, 0.02]) ** 2
    wide = Question(np.full(4, 0.02), np.full(4, 0.04), np.full(4, 0.05))
    near = Question(np.full(4, 0.02), np.full(4, 0.03), np.full(4, 0.05))

    far = pairs_needed(wide, noise, np.zeros(4))
    close = pairs_needed(near, noise, np.zeros(4))

    assert (np.diff(far) >= 0).all()
    assert (close >= far).all()
    assert (far % 2 == 0).all()
    assert far.min() >= 4


def test_an_absurd_number_of_pairs_is_unknown() -> None:
    assert np.isnan(pairs_needed(question(), np.array([1.0]), np.array([0.0])))
    assert np.isnan(pairs_needed(question(), np.array([math.nan]), np.array([0.0])))
    assert pairs_needed(question(), np.array([0.05**2]), np.array([10.0])) <= MOST_PAIRS
