"""The decision, against scipy, statsmodels and limma's TREAT.

The numbers of TREAT are ``head(topTreat(treat(vfit, lfc=1), coef=1))`` of the Bioconductor workflow
RNAseq123 (Law et al. 2016, "RNA-seq analysis is easy as 1-2-3 with limma, Glimma and edgeR",
F1000Research 5:1408), section "Examining individual DE genes", as a public notebook shows its
output: logFC, t and P.Value of six genes. limma prints ``t = (|logFC| - lfc) / se`` with the sign
of logFC.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.weightstats import ttost_paired

from proton_bench.gate.statistics.contrast import Contrast, paired
from proton_bench.gate.statistics.moderation import Moderated
from proton_bench.gate.statistics.timing import Decisions, Evidence, Limits, decide, one_sided

TREAT = np.array(
    [
        (-5.442877, -33.44429, 3.990899e-10),
        (-5.514605, -32.94533, 4.503694e-10),
        (-5.921741, -31.77625, 6.063249e-10),
        (-5.724823, -30.65370, 8.010456e-10),
        (-6.253427, -29.46244, 1.112729e-09),
        (-6.073297, -28.64890, 1.380545e-09),
    ]
)


def limits(count: int, direction: float = 1.0) -> Limits:
    margin, threshold = np.log([1.02, 1.03])
    return Limits(
        np.full(count, margin),
        np.full(count, threshold),
        np.full(count, margin),
        np.full(count, direction),
    )


def evidence_of(effect: np.ndarray, error: float, freedom: float = 8.0) -> Evidence:
    count = len(effect)
    full = np.full(count, 6.0)
    contrast = Contrast(
        effect,
        np.full(count, error**2 * 6),
        full - 2,
        1 / full,
        full * 0,
        full.astype(int),
        np.zeros((6, count)),
    )
    noise = Moderated(contrast.variance, np.full(count, freedom))
    return Evidence(contrast, noise, np.ones(count, dtype=bool), np.zeros(count))


def decided(effect: list[float], error: float = 0.002, direction: float = 1.0) -> Decisions:
    found = evidence_of(np.array(effect), error)
    return decide(found, limits(len(effect), direction), level=0.05)


def test_p_values_are_those_of_treat() -> None:
    fold, t, published = TREAT.T
    error = (np.abs(fold) - 1.0) / np.abs(t)

    def two_sided(freedom: float) -> np.ndarray:
        known = {"error": error, "freedom": np.full(6, freedom)}
        beyond = one_sided(np.abs(fold), np.ones(6), **known)
        return beyond + one_sided(np.abs(fold), -np.ones(6), **known)

    # limma does not print the degrees of freedom, one number for all genes: the first gene says it.
    freedom = optimize.brentq(lambda d: np.log(two_sided(d)[0] / published[0]), 2.0, 50.0)

    assert two_sided(freedom) == pytest.approx(published, rel=1e-4)


def test_without_a_margin_it_is_the_t_test_of_scipy() -> None:
    generator = np.random.default_rng(1)
    base, new = generator.normal(size=(2, 6, 1))
    contrast = paired(base, new, np.ones(6))

    found = one_sided(
        contrast.effect,
        np.zeros(1),
        error=np.sqrt(contrast.variance * contrast.scale),
        freedom=contrast.freedom,
    )

    expected = stats.ttest_rel(new[:, 0], base[:, 0], alternative="greater").pvalue
    assert found[0] == pytest.approx(expected)


def test_the_same_is_what_two_one_sided_tests_of_statsmodels_say() -> None:
    generator = np.random.default_rng(4)
    seen = set()
    for spread in (0.002, 0.01, 0.02, 0.04):
        base = generator.normal(0.0, spread, (6, 1))
        new = generator.normal(0.0, spread, (6, 1))
        contrast = paired(base, new, np.ones(6))
        noise = Moderated(contrast.variance, contrast.freedom)
        evidence = Evidence(contrast, noise, np.array([True]), np.zeros(1))
        found = decide(evidence, limits(1), level=0.05)
        bound = math.log(1.02)
        p_value = ttost_paired(new[:, 0], base[:, 0], -bound, bound)[0]
        assert bool(found.same[0]) == (p_value < 0.05)
        seen.add(bool(found.same[0]))
    assert seen == {True, False}


def test_slower_for_certain_and_by_the_threshold_is_worse() -> None:
    found = decided([0.05, 0.025, 0.0, -0.05])

    assert found.worse.tolist() == [True, False, False, False]
    assert found.better.tolist() == [False, False, False, True]
    assert found.same.tolist() == [False, False, True, False]


def test_certainly_slower_by_less_than_the_threshold_is_within_it() -> None:
    found = decided([0.026], error=0.0005)

    assert (found.worse[0], found.same[0], found.within[0]) == (False, False, True)
    assert found.p_worse[0] < 0.05


def test_less_is_worse_of_rates_and_either_of_what_must_not_change() -> None:
    rates = decided([-0.05, 0.05], direction=-1.0)
    either = decided([-0.05, 0.05, 0.0], direction=0.0)

    assert (rates.worse.tolist(), rates.better.tolist()) == ([True, False], [False, True])
    assert either.worse.tolist() == [True, True, False]
    assert either.better.tolist() == [False, False, False]


def test_errors_of_nothing_decide_and_unknown_ones_do_not() -> None:
    certain = one_sided(
        np.array([0.03, 0.01, 0.02]),
        np.full(3, 0.02),
        error=np.zeros(3),
        freedom=np.full(3, 4.0),
    )
    unknown = one_sided(np.ones(2), np.zeros(2), error=np.array([np.nan, 1.0]), freedom=np.zeros(2))

    assert certain.tolist() == [0.0, 1.0, 0.5]
    assert np.isnan(unknown).all()


def test_a_wider_null_makes_every_error_larger() -> None:
    narrow = evidence_of(np.array([0.05]), 0.002)
    wide = Evidence(narrow.contrast, narrow.noise, narrow.tested, np.zeros(1), null_scale=20.0)

    assert decide(narrow, limits(1), level=0.05).worse[0]
    assert not decide(wide, limits(1), level=0.05).worse[0]


def test_no_number_of_runs_sees_through_the_tick_of_a_timer() -> None:
    free = evidence_of(np.array([0.05]), 0.0001)
    limited = Evidence(free.contrast, free.noise, free.tested, np.array([0.02**2]))

    found = decide(limited, limits(1), level=0.05)

    assert limited.error == pytest.approx([0.02])
    assert (found.worse[0], found.same[0]) == (False, False)
    assert np.isnan(found.pairs).all()
    assert np.isfinite(decide(free, limits(1), level=0.05).pairs).all()


EFFECTS = st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=20)


@given(EFFECTS, st.floats(0.0005, 0.02), st.sampled_from([1.0, -1.0, 0.0]))
def test_exchanging_the_sides_exchanges_worse_and_better(
    effect: list[float], error: float, direction: float
) -> None:
    there = decided(effect, error, direction)
    back = decided([-each for each in effect], error, direction)

    if direction:
        assert (there.worse == back.better).all()
        assert (there.better == back.worse).all()
    else:
        assert (there.worse == back.worse).all()
    assert (there.same == back.same).all()
    assert (there.within == back.within).all()
    np.testing.assert_allclose(there.low, -back.high)


@given(EFFECTS, st.integers(0, 19), st.floats(0.0, 0.2))
def test_more_of_a_slowdown_never_clears_a_path(effect: list[float], at: int, more: float) -> None:
    slower = list(effect)
    slower[at % len(effect)] += more

    assert (decided(slower).worse >= decided(effect).worse).all()


@given(EFFECTS, st.floats(0.0005, 0.01))
def test_less_noise_never_clears_a_regression(effect: list[float], error: float) -> None:
    assert (decided(effect, error / 2).worse >= decided(effect, error).worse).all()
