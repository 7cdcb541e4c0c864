"""Noise that paths share: how much of it is found, and its effect."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from proton_bench.gate.statistics.contrast import paired
from proton_bench.gate.statistics.evidence import Background, weigh
from proton_bench.gate.statistics.shared_noise import effective_freedom, shared_part

PATHS = 60


def drawn(shared: float, freedom: int, seed: int) -> np.ndarray:
    """Return residuals of paths whose correlations have this square."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=(freedom + 1, 1))
    own = generator.normal(size=(freedom + 1, PATHS))
    values = shared**0.25 * common + np.sqrt(1.0 - np.sqrt(shared)) * own
    return np.asarray(values - values.mean(axis=0))


@pytest.mark.parametrize("freedom", [2, 4, 6])
@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
def test_the_mean_of_many_estimates_is_the_squared_correlation(shared: float, freedom: int) -> None:
    degrees = np.full(PATHS, float(freedom))

    found = [shared_part(drawn(shared, freedom, seed), degrees) for seed in range(300)]

    assert np.mean(found) == pytest.approx(shared, abs=0.06)


def test_paths_that_move_as_one_share_everything() -> None:
    one = np.random.default_rng(1).normal(size=(4, 1))
    same = np.repeat(one - one.mean(axis=0), 10, axis=1)

    assert shared_part(same, np.full(10, 3.0)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("residuals", "freedom"),
    [
        (np.zeros((4, 0)), np.zeros(0)),
        (np.array([[1.0], [-1.0], [0.5]]), np.array([2.0])),
        (np.zeros((4, 3)), np.full(3, 3.0)),
        (np.full((4, 3), np.nan), np.zeros(3)),
        (np.array([[1.0, 2.0], [-1.0, -2.0]]), np.ones(2)),
    ],
    ids=["no path", "one path", "no noise", "no values", "one degree"],
)
def test_unclear_residuals_count_as_unshared(residuals: np.ndarray, freedom: np.ndarray) -> None:
    assert shared_part(residuals, freedom) == 0.0


def test_paths_that_lack_a_run_are_left_out() -> None:
    values = drawn(0.5, 6, 3)
    missing = np.concatenate([values, np.full((7, 1), np.nan)], axis=1)

    with_missing = shared_part(missing, np.full(PATHS + 1, 6.0))

    assert with_missing == shared_part(values, np.full(PATHS, 6.0))


def test_independent_paths_add_their_freedom_and_equal_ones_do_not() -> None:
    freedom = np.array([4.0, 4.0, 0.0, 4.0])

    assert effective_freedom(freedom, 0.0) == 12.0
    assert effective_freedom(freedom, 1.0) == 4.0
    assert effective_freedom(np.zeros(2), 0.5) == 0.0


def test_the_mean_variance_spreads_as_its_effective_freedom_says() -> None:
    shared, freedom = 0.4, 6
    means = [
        float((drawn(shared, freedom, seed) ** 2).sum(axis=0).mean()) / freedom
        for seed in range(2000)
    ]

    expected = effective_freedom(np.full(PATHS, float(freedom)), shared)

    assert 2.0 / np.var(means) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("pairs", [4, 6])
def test_p_values_hold_when_the_machine_moves_all_paths_alike(pairs: int) -> None:
    """Without a change the smallest p-value of a gate has to keep its level."""
    order = np.where(np.arange(pairs) % 2 == 0, 1.0, -1.0)
    nothing = np.zeros(PATHS)
    background = Background(nothing, nothing, ["median"] * PATHS)
    generator = np.random.default_rng(7)
    found = []
    for _ in range(400):
        base, new = (
            generator.normal(0.0, 0.1, (pairs, 1)) + generator.normal(0.0, 0.004, (pairs, PATHS))
            for _side in range(2)
        )
        evidence = weigh(paired(base, new, order), background, fewest_runs=4)
        ratio = evidence.contrast.effect / evidence.error
        found.append(float(np.median(stats.t.sf(ratio, evidence.noise.freedom))))

    assert np.mean(np.array(found) < 0.05) <= 0.075
