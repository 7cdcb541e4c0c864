"""The decision, against scipy, statsmodels and limma's TREAT.

The numbers of TREAT are ``head(topTreat(treat(vfit, lfc=1), coef=1))`` of the Bioconductor workflow
RNAseq123 (Law et al. 2016, "RNA-seq analysis is easy as 1-2-3 with limma, Glimma and edgeR",
F1000Research 5:1408), section "Examining individual DE genes", as a public notebook shows its
output: logFC, t and P.Value of six genes. limma prints ``t = (|logFC| - lfc) / se`` with the sign
of logFC.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fakes.evidence import evidence_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.weightstats import ttost_paired

from proton_bench.gate.statistics.contrast import paired
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
    return Limits(np.full(count, math.log(1.03)), np.full(count, direction))


def decided(effect: list[float], error: float = 0.002, direction: float = 1.0) -> Decisions:
    return decide(evidence_of(np.array(effect), error), limits(len(effect), direction))


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
        noise = Moderated(contrast.variance, contrast.freedom, *np.zeros((3, 1)))
        evidence = Evidence(contrast, noise, np.array([True]), np.zeros(1))
        found = decide(evidence, limits(1))
        bound = math.log(1.03)
        p_value = ttost_paired(new[:, 0], base[:, 0], -bound, bound)[0]
        assert bool(found.same[0]) == (p_value < 0.025)
        seen.add(bool(found.same[0]))
    assert seen == {True, False}


def test_slower_for_certain_is_worse() -> None:
    found = decided([0.05, 0.015, 0.0, -0.05], error=0.001)

    assert found.worse.tolist() == [True, False, False, False]
    assert found.better.tolist() == [False, False, False, True]
    assert found.same.tolist() == [False, True, True, False]


def test_certainly_less_than_the_threshold_is_allowed_however_certain() -> None:
    found = decided([0.025], error=0.0005)

    assert (found.worse[0], found.same[0], found.allowed[0]) == (False, True, True)
    assert found.p_worse[0] < 0.0005


def test_a_pair_that_says_the_opposite_keeps_a_path_from_failing() -> None:
    evidence = evidence_of(np.array([0.05]))
    mixed = replace(evidence, contrast=replace(evidence.contrast, separation=np.zeros(1, int)))

    assert decide(evidence, limits(1)).worse[0]
    assert not decide(mixed, limits(1)).worse[0]


@pytest.mark.parametrize(("runs", "can_fail"), [(4, False), (5, False), (6, True), (10, True)])
def test_fewer_than_six_pairs_never_fail(runs: int, can_fail: bool) -> None:
    evidence = evidence_of(np.array([0.5]), runs=runs)

    found = decide(evidence, limits(1))

    assert bool(found.worse[0]) is can_fail
    assert can_fail or found.pairs[0] == 6


def test_one_of_many_looks_may_err_less() -> None:
    evidence = evidence_of(np.array([0.035]), error=0.005, freedom=20.0)

    assert decide(evidence, limits(1)).worse[0]
    assert not decide(evidence, limits(1), part=0.01).worse[0]


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


def test_no_number_of_runs_sees_through_the_tick_of_a_timer() -> None:
    free = evidence_of(np.array([0.05]), 0.0001)
    limited = Evidence(free.contrast, free.noise, free.tested, np.array([0.02**2]))

    found = decide(limited, limits(1))

    assert limited.error == pytest.approx([0.02])
    assert (found.worse[0], found.same[0]) == (False, False)
    assert np.isnan(found.pairs).all()
    assert np.isfinite(decide(free, limits(1)).pairs).all()


def test_an_unchanged_path_needs_fewer_pairs_than_a_change_that_must_be_found() -> None:
    noisy = {"error": 0.015, "freedom": 20.0, "runs": 4}
    unchanged, changed = (
        decide(evidence_of(np.array([effect]), **noisy), limits(1)) for effect in (0.0, 0.03)
    )

    assert not unchanged.allowed[0]
    assert 4 < unchanged.pairs[0] < changed.pairs[0] / 2.0
    smaller = {**noisy, "error": 0.015 * np.sqrt(4.0 / unchanged.pairs[0])}
    assert decide(evidence_of(np.array([0.0]), **smaller), limits(1)).allowed[0]


def test_an_effect_within_its_error_asks_for_no_more_pairs_than_none() -> None:
    noisy = {"error": 0.015, "freedom": 20.0, "runs": 4}

    none, within, beyond = decide(
        evidence_of(np.array([0.0, 0.015, 0.02]), **noisy), limits(3)
    ).pairs

    assert none == within < beyond


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
    np.testing.assert_allclose(there.low, -back.high)


@given(EFFECTS, st.integers(0, 19), st.floats(0.0, 0.2))
def test_more_of_a_slowdown_never_clears_a_path(effect: list[float], at: int, more: float) -> None:
    slower = list(effect)
    slower[at % len(effect)] += more

    assert (decided(slower).worse >= decided(effect).worse).all()


@given(EFFECTS, st.floats(0.0005, 0.01))
def test_less_noise_never_clears_a_regression(effect: list[float], error: float) -> None:
    assert (decided(effect, error / 2).worse >= decided(effect, error).worse).all()
