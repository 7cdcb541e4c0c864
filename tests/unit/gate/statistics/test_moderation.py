"""Against limma, whose numbers stand in its own reference output.

"limma's tests" is ``tests/limma-Tests.Rout.save`` of the Bioconductor package limma (R 3.5.0,
github.com/bioc/limma): what ``eBayes`` prints for the example "Similar to Mette Langaas", and
``trigammaInverse(c(1e-6, NA, 5, 1e6))``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from proton_bench.gate.statistics.moderation import (
    NO_PRIOR,
    Prior,
    fit_prior,
    moderate,
    prior_weights,
    trigamma_inverse,
)

# limma's tests: $sigma, $df.residual, $stdev.unscaled and $coefficients of "alpha-beta".
SIGMA = np.array([1.3425032, 0.4647155, 1.1993444, 0.9428569, 0.9421509])
FREEDOM = np.array([6.0, 6.0, 6.0, 6.0, 4.0])
UNSCALED = np.array([0.8164966, 0.8164966, 0.8164966, 0.8164966, 1.1547005])
EFFECT = np.array([3.537333, 4.355578, 3.197645, 2.697734, 3.502304])


@pytest.mark.parametrize(
    ("value", "expected"), [(1e-6, 1.000000e06), (5.0, 4.961687e-01), (1e6, 1.000001e-03)]
)
def test_the_inverse_of_trigamma_is_limmas(value: float, expected: float) -> None:
    assert trigamma_inverse(value) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("value", [1e-9, 1e-3, 0.5, 1.0, 3.0, 100.0, 1e8])
def test_the_inverse_of_trigamma_inverts_it(value: float) -> None:
    assert float(special.polygamma(1, trigamma_inverse(value))) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_trigamma_is_positive(value: float) -> None:
    assert math.isnan(trigamma_inverse(value))


def test_the_prior_is_limmas() -> None:
    prior = fit_prior(SIGMA**2, FREEDOM)

    # limma's tests: $df.prior and $s2.prior.
    assert prior.freedom == pytest.approx(9.306153, rel=1e-6)
    assert prior.variance == pytest.approx(0.923179, rel=1e-6)


def test_the_moderated_t_is_limmas() -> None:
    prior = fit_prior(SIGMA**2, FREEDOM)

    found = moderate(SIGMA**2, FREEDOM, prior, limit=float(FREEDOM.sum()))

    # limma's tests: $s2.post, $df.total, $t and $p.value of "alpha-beta".
    expected = [1.2677996, 0.6459499, 1.1251558, 0.9097727, 0.9124980]
    assert found.variance == pytest.approx(expected, rel=1e-6)
    assert found.freedom == pytest.approx([15.30615] * 4 + [13.30615], rel=1e-6)
    t = EFFECT / (UNSCALED * np.sqrt(found.variance))
    assert t == pytest.approx([3.847656, 6.637308, 3.692066, 3.464003, 3.175181], rel=1e-6)
    p = 2.0 * stats.t.sf(t, found.freedom)
    expected = [1.529450e-03, 7.144893e-06, 2.109270e-03, 3.381970e-03, 7.124839e-03]
    assert p == pytest.approx(expected, rel=1e-5)


def test_equal_noise_gives_an_infinite_prior_and_the_mean() -> None:
    prior = fit_prior(np.array([1.0, 1.1, 0.9, 1.05]), np.full(4, 4.0))

    assert prior == Prior(pytest.approx(1.0125), math.inf)
    found = moderate(np.array([1.0, 1.1, 0.9, 1.05]), np.full(4, 4.0), prior, limit=16.0)
    assert found.variance == pytest.approx(1.0125)
    assert found.freedom.tolist() == [16.0] * 4


def test_the_prior_of_a_known_distribution_is_found_again() -> None:
    generator = np.random.default_rng(8)
    true = 0.5 * 8.0 / generator.chisquare(8.0, 20_000)
    variances = true * generator.chisquare(4.0, 20_000) / 4.0

    prior = fit_prior(variances, np.full(20_000, 4.0))

    assert prior.variance == pytest.approx(0.5, rel=0.03)
    assert prior.freedom == pytest.approx(8.0, rel=0.08)


def test_nothing_and_one_path_have_no_prior() -> None:
    nothing = fit_prior(np.array([math.nan, 1.0]), np.array([4.0, 0.0]))

    assert nothing.freedom == 0.0
    assert fit_prior(np.array([2.0]), np.array([3.0])) == Prior(2.0, 0.0)
    assert fit_prior(np.zeros(3), np.full(3, 2.0)).freedom == 0.0


def test_a_path_without_a_prior_is_judged_by_its_own() -> None:
    found = moderate(np.array([2.0, math.nan]), np.array([3.0, 0.0]), NO_PRIOR, limit=3.0)

    assert (found.variance[0], found.freedom[0]) == (2.0, 3.0)
    assert math.isnan(found.variance[1])
    assert found.freedom[1] == 0.0


def test_a_path_of_nothing_takes_the_prior() -> None:
    found = moderate(np.array([math.nan]), np.array([0.0]), Prior(0.5, 7.0), limit=7.0)

    assert (found.variance.tolist(), found.freedom.tolist()) == ([0.5], [7.0])


def test_a_much_noisier_path_is_kept_apart() -> None:
    variances = np.append(np.linspace(0.8, 1.2, 99), 400.0)
    freedom = np.full(100, 4.0)

    weights = prior_weights(variances, freedom, Prior(1.0, 50.0))
    found = moderate(variances, freedom, Prior(1.0, 50.0), limit=400.0)

    assert weights[:99].tolist() == [1.0] * 99
    assert weights[99] < 1e-6
    assert found.variance[99] == pytest.approx(400.0, rel=1e-4)
    assert found.freedom[99] == pytest.approx(4.0, abs=1e-3)


def test_noisier_paths_never_get_more_of_the_prior() -> None:
    variances = np.sort(np.random.default_rng(1).chisquare(4.0, 200) ** 2)

    weights = prior_weights(variances, np.full(200, 4.0), Prior(4.0, 10.0))

    assert (np.diff(weights) <= 1e-12).all()
    assert weights.min() >= 0.0
    assert weights.max() == 1.0
