"""The decision, against scipy and statsmodels."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.evidence import evidence_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from proton_bench.gate.statistics.decision import (
    Background,
    Decisions,
    Evidence,
    Limits,
    decide,
    one_sided,
    weigh,
)


def limits(count: int, direction: float = 1.0) -> Limits:
    return Limits(np.full(count, math.log(1.03)), np.full(count, direction))


def decided(effect: list[float], error: float = 0.002, direction: float = 1.0) -> Decisions:
    return decide(evidence_of(np.array(effect), error), limits(len(effect), direction))


def weighed(base: np.ndarray, new: np.ndarray, order: list[float], *names: str) -> Evidence:
    paths = base.shape[1]
    nothing = Background(np.zeros(paths), np.zeros(paths), names or ["median"] * paths)
    return weigh(base, new, order, background=nothing, margin=limits(paths).margin, fewest_runs=4)


def test_without_a_margin_it_is_the_t_test_of_scipy() -> None:
    generator = np.random.default_rng(1)
    base, new = generator.normal(size=(2, 6, 1))
    evidence = weighed(base, new, [1.0] * 6)

    found = one_sided(evidence.effect, np.zeros(1), error=evidence.error, freedom=evidence.freedom)

    expected = stats.ttest_rel(new[:, 0], base[:, 0], alternative="greater").pvalue
    assert found[0] == pytest.approx(expected)


def test_the_same_is_what_two_one_sided_tests_of_statsmodels_say() -> None:
    generator = np.random.default_rng(4)
    seen = set()
    for spread in (0.002, 0.01, 0.02, 0.04):
        base = generator.normal(0.0, spread, (6, 1))
        new = generator.normal(0.0, spread, (6, 1))
        found = decide(weighed(base, new, [1.0] * 6), limits(1))
        bound = math.log(1.03)
        p_value = ttost_paired(new[:, 0], base[:, 0], -bound, bound)[0]
        is_inside = bool(-bound < found.low[0] and found.high[0] < bound)
        assert is_inside == (p_value < 0.025)
        seen.add(is_inside)
    assert seen == {True, False}


def test_slower_for_certain_is_worse() -> None:
    found = decided([0.05, 0.015, 0.0, -0.05], error=0.001)

    assert found.worse.tolist() == [True, False, False, False]
    assert found.better.tolist() == [False, False, False, True]
    assert found.allowed.tolist() == [False, True, True, True]


def test_certainly_less_than_the_threshold_is_allowed_however_certain() -> None:
    found = decided([0.025], error=0.0005)

    assert (found.worse[0], found.allowed[0]) == (False, True)
    assert found.p_worse[0] < 0.0005


def test_a_pair_that_says_the_opposite_keeps_a_path_from_failing() -> None:
    evidence = evidence_of(np.array([0.05]))
    mixed = replace(evidence, separation=np.zeros(1, int))

    assert decide(evidence, limits(1)).worse[0]
    assert not decide(mixed, limits(1)).worse[0]


@pytest.mark.parametrize(("runs", "can_fail"), [(4, False), (5, False), (6, True), (10, True)])
def test_fewer_than_six_pairs_never_fail(runs: int, can_fail: bool) -> None:
    evidence = evidence_of(np.array([0.5]), runs=runs)

    found = decide(evidence, limits(1))

    assert bool(found.worse[0]) is can_fail
    assert can_fail or found.pairs[0] == 6


def test_one_of_many_looks_may_err_less() -> None:
    evidence = evidence_of(np.array([0.04]), error=0.005, freedom=20.0)

    assert decide(evidence, limits(1)).worse[0]
    assert not decide(evidence, limits(1), part=0.01).worse[0]


def test_less_is_worse_of_rates() -> None:
    rates = decided([-0.05, 0.05, 0.0], direction=-1.0)

    assert rates.worse.tolist() == [True, False, False]
    assert rates.better.tolist() == [False, True, False]
    assert rates.allowed.tolist() == [False, True, True]


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
    limited = evidence_of(np.array([0.05]), 0.0001, resolution=0.02**2)

    found = decide(limited, limits(1))

    assert limited.error == pytest.approx([0.02])
    assert (found.worse[0], found.allowed[0]) == (False, False)
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


@given(EFFECTS, st.floats(0.0005, 0.02), st.sampled_from([1.0, -1.0]))
def test_exchanging_the_sides_exchanges_worse_and_better(
    effect: list[float], error: float, direction: float
) -> None:
    there = decided(effect, error, direction)
    back = decided([-each for each in effect], error, direction)

    assert (there.worse == back.better).all()
    assert (there.better == back.worse).all()
    np.testing.assert_allclose(there.low, -back.high)


@given(EFFECTS, st.integers(0, 19), st.floats(0.0, 0.2))
def test_more_of_a_slowdown_never_clears_a_path(effect: list[float], at: int, more: float) -> None:
    slower = list(effect)
    slower[at % len(effect)] += more

    assert (decided(slower).worse >= decided(effect).worse).all()


@given(EFFECTS, st.floats(0.0005, 0.01))
def test_less_noise_never_clears_a_regression(effect: list[float], error: float) -> None:
    assert (decided(effect, error / 2).worse >= decided(effect, error).worse).all()


# -- pairs ---------------------------------------------------------------------------------------
PAIRS = [1.0, -1.0, -1.0, 1.0, -1.0, 1.0]


def quiet(paths: int, seed: int = 0, pairs: int = 6) -> tuple[np.ndarray, np.ndarray]:
    base, new = np.random.default_rng(seed).normal(0.0, 0.001, (2, pairs, paths))
    return base, new


PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "gate_statistics.md"


def test_the_worked_example_of_the_documentation() -> None:
    percents = [4.1, 5.2, 4.6, 4.9, 4.3, 5.1]
    differences = np.log1p(np.array(percents) / 100.0)[:, None]
    evidence = weighed(np.zeros((6, 1)), differences, PAIRS)
    margin = limits(1).margin

    beyond = (evidence.effect[0] - margin[0]) / evidence.error[0]
    limit = stats.t.ppf(1.0 - evidence.level(margin), evidence.freedom[0])

    page = " ".join(PAGE.read_text("utf-8").split("**Example.**")[1].split("\n\n")[0].split())
    for text in (
        ", ".join(f"+{each}" for each in percents[:5]) + f" and +{percents[5]} %",
        "the first, fourth and sixth",
        f"`tau` is {abs(100.0 * evidence.order_effect[0]):.1f} %",
        f"the effect +{100.0 * np.expm1(evidence.effect[0]):.2f} %",
        f"`s` {100.0 * evidence.spread[0]:.2f} % and the error {100.0 * evidence.error[0]:.2f} %",
        f"is {100.0 * margin[0]:.2f} %, so `T` is {beyond:.1f}. The limit is {limit:.1f}",
    ):
        assert text in page
    assert PAIRS == [1.0, -1.0, -1.0, 1.0, -1.0, 1.0]
    assert decide(evidence, limits(1)).worse[0]


@pytest.mark.parametrize("slow", [0.06, 0.12])
def test_paths_that_are_slow_only_where_they_ran_second_did_not_change(slow: float) -> None:
    base, new = quiet(20)
    second = np.array(PAIRS)[:, None] > 0
    # The others are a little slower too, so that the new side is slower in every pair.
    new = new + np.where(second, slow, 0.004)

    assert not decide(weighed(base, new, PAIRS), limits(20)).worse.any()


def test_states_of_slow_launches_keep_only_slow_launches_from_failing() -> None:
    base, new = quiet(4)
    base[[1, 2], 2:] += 0.3
    new[4, 2:] += 0.3
    new += np.array([0.06, 0.0, 1.0, 0.0])
    names = ["median", "median", "tail", "tail"]

    found = decide(weighed(base, new, PAIRS, *names), limits(4))
    steady = decide(weighed(base, new, PAIRS, *["median"] * 4), limits(4))

    assert found.worse.tolist() == [True, False, False, False]
    assert not steady.worse.any()


def test_a_change_that_states_could_cause_is_no_findable_one() -> None:
    base, new = quiet(30)
    base[2, :12] += 0.2
    new[5, :12] += 0.2

    found = decide(weighed(base, new, PAIRS), limits(30))

    assert np.isinf(found.findable).all()
    assert not decide(weighed(base, new + 0.5, PAIRS), limits(30)).worse.any()
    assert decide(weighed(*quiet(30), PAIRS), limits(30)).findable.max() < 0.04


def test_what_paths_share_hides_no_change_of_one() -> None:
    base, new = quiet(12)
    busy = np.random.default_rng(4).normal(0.0, 0.05, (6, 1))
    new = new + busy - busy.mean()
    new[:, 7] += 0.09

    found = decide(weighed(base, new, PAIRS), limits(12))

    assert found.worse.nonzero()[0].tolist() == [7]
    assert found.unshared[7]


def test_paths_that_stayed_are_not_slower_because_most_got_faster() -> None:
    base, new = quiet(12)
    new[:, :8] -= 0.1

    assert not decide(weighed(base, new, PAIRS), limits(12)).worse.any()


def test_each_of_many_noisy_paths_needs_more_certainty() -> None:
    base, new = quiet(60)
    few, many = new.copy(), new.copy()
    noise = np.random.default_rng(5).normal(0.0, 0.05, (6, 40))
    few[:, 20:22] += noise[:, :2]
    many[:, 20:60] += noise
    margin = limits(60).margin

    assert weighed(base, many, PAIRS).level(margin) < weighed(base, few, PAIRS).level(margin) / 4.0


def test_noise_that_no_number_of_pairs_overcomes_needs_none() -> None:
    base, new = np.random.default_rng(3).normal(0.0, 0.3, (2, 6, 20))

    assert np.isnan(decide(weighed(base, new, PAIRS), limits(20)).pairs).mean() > 0.8
