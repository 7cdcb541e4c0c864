"""Noise that paths share: what it hides is found without it, and a change of most stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proton_bench.gate.statistics.contrast import Contrast, apart, paired
from proton_bench.gate.statistics.evidence import Background, weigh
from proton_bench.gate.statistics.shared_factor import without_shared
from proton_bench.gate.statistics.timing import Decisions, Limits, decide

SEEDS = st.integers(0, 10_000)
PAIRS, PATHS = 6, 24
THIRD, MOST = np.arange(PATHS) < PATHS // 3, np.arange(PATHS) < 20


def contrast_of(
    seed: int,
    change: np.ndarray | float = 0.0,
    *,
    pairs: int = PAIRS,
    paths: int = PATHS,
    shared: float = 0.04,
    own: float = 0.002,
) -> Contrast:
    """Return pairs of paths that take more or less of what all of them share."""
    generator = np.random.default_rng(seed)
    takes = generator.uniform(0.5, 1.5, paths)
    base, new = (
        shared * generator.normal(size=(pairs, 1)) * takes
        + own * generator.normal(size=(pairs, paths))
        for _side in range(2)
    )
    return paired(base, new + change, np.resize([1.0, -1.0], pairs))


def decided(
    contrast: Contrast, *, plainly: bool = False, threshold: float = np.log(1.05)
) -> Decisions:
    count = len(contrast)
    nothing = np.zeros(count)
    evidence = weigh(contrast, Background(nothing, nothing, ["median"] * count), fewest_runs=4)
    evidence = replace(evidence, unshared=None) if plainly else evidence
    return decide(evidence, Limits(np.full(count, threshold), np.ones(count)))


def rates(change: np.ndarray | float, *, plainly: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each path is called worse and better in 60 gates."""
    found = [decided(contrast_of(seed, change), plainly=plainly) for seed in range(60)]
    return (
        np.mean([each.worse for each in found], axis=0),
        np.mean([each.better for each in found], axis=0),
    )


def test_a_slow_path_is_found_that_shared_noise_hides() -> None:
    fifth = np.arange(PATHS) == 5

    worse, better = rates(0.1 * fifth)
    plain, _ = rates(0.1 * fifth, plainly=True)

    assert plain[5] < 0.1
    assert worse[5] > 0.5
    assert not worse[~fifth].any()
    assert not better.any()


def test_the_threshold_that_is_held_is_that_of_both_tests() -> None:
    found = allowed = 0
    held, held_plainly = np.zeros(60), np.zeros(60)
    for seed in range(60):
        unchanged = contrast_of(seed, pairs=10)
        held[seed] = threshold = decided(unchanged).detectable[3]
        held_plainly[seed] = decided(unchanged, plainly=True).detectable[3]
        slower = contrast_of(seed, np.eye(PATHS)[3] * threshold, pairs=10)
        found += bool(decided(slower, threshold=threshold).worse[3])
        allowed += bool(decided(unchanged, threshold=threshold).allowed[3])

    assert held.mean() < held_plainly.mean() / 2.0
    assert found >= 48
    assert allowed >= 48


def test_slow_paths_that_are_a_third_neither_hide_nor_make_others_faster() -> None:
    worse, better = rates(0.1 * THIRD)

    assert worse[THIRD].mean() > 0.5
    assert not worse[~THIRD].any()
    assert not better.any()


@pytest.mark.parametrize("changed", [MOST, np.ones(PATHS)], ids=["most", "all"])
def test_a_slowdown_of_most_paths_is_not_taken_for_noise(changed: np.ndarray) -> None:
    worse, better = rates(0.3 * changed)
    plain, _ = rates(0.3 * changed, plainly=True)

    # Two tests have half of the level each.
    assert worse[changed > 0].mean() > 0.7 * plain[changed > 0].mean() > 0.4
    assert not worse[changed == 0].any()
    assert not better.any()


@given(SEEDS, st.floats(-0.3, 0.3))
def test_a_change_of_all_paths_is_reported_whole(seed: int, change: float) -> None:
    found = decided(contrast_of(seed, change))
    plain = decided(contrast_of(seed, change), plainly=True)

    kept = ~found.unshared
    np.testing.assert_array_equal(found.effect[kept], plain.effect[kept])
    assert (found.allowed <= plain.allowed).all()
    assert (found.worse[~kept] | found.better[~kept]).all()


def test_a_shift_beyond_the_noise_is_no_noise() -> None:
    quiet = contrast_of(1, shared=0.01)
    own = without_shared(quiet, ["median"] * PATHS)
    moved = without_shared(contrast_of(1, 0.5, shared=0.01), ["median"] * PATHS)

    assert own is not None
    assert np.isfinite(own.effect).all()
    assert moved is not None
    assert np.isnan(moved.effect).all()


def test_unchanged_paths_keep_their_level_without_shared_noise() -> None:
    """Of one path, taken from each of many experiments: those of one share their shift."""
    p_values = []
    for seed in range(600):
        own = without_shared(contrast_of(seed, own=0.01), ["median"] * PATHS)
        if own is not None and np.isfinite(own.effect[0]):
            ratio = own.effect[0] / np.sqrt(own.variance[0] * own.scale[0])
            p_values.append(2.0 * stats.t.sf(abs(ratio), own.freedom[0]))

    assert len(p_values) > 400
    assert stats.kstest(p_values, "uniform", alternative="greater").pvalue > 0.05
    assert np.mean(np.array(p_values) < 0.05) > 0.01


@pytest.mark.parametrize("metric", ["total", "wall"])
def test_sums_keep_their_noise(metric: str) -> None:
    assert without_shared(contrast_of(1), [metric] * PATHS) is None


def test_few_paths_keep_their_noise() -> None:
    assert without_shared(contrast_of(1, paths=7), ["median"] * 7) is None
    assert without_shared(contrast_of(1, paths=8), ["median"] * 8) is not None


def test_paths_that_share_little_keep_their_noise() -> None:
    found = [
        without_shared(contrast_of(seed, shared=0.0), ["median"] * PATHS) for seed in range(50)
    ]

    assert found == [None] * 50


def test_sides_apart_keep_their_noise() -> None:
    generator = np.random.default_rng(1)
    base, new = np.repeat(generator.normal(size=(2, 6, 1)), PATHS, axis=2)

    assert without_shared(apart(base, new), ["median"] * PATHS) is None


def test_a_path_that_lacks_a_pair_keeps_its_noise_and_does_not_count() -> None:
    generator = np.random.default_rng(3)
    base, new = generator.normal(0.0, 0.04, (2, 6, 1)) + generator.normal(0.0, 0.002, (2, 6, 12))
    new[2, 3] = np.nan
    slower = new + (np.arange(12) == 3)

    found, other = (
        without_shared(paired(base, each, np.resize([1.0, -1.0], 6)), ["median"] * 12)
        for each in (new, slower)
    )

    assert found is not None
    assert other is not None
    assert np.flatnonzero(np.isnan(found.effect)).tolist() == [3]
    np.testing.assert_array_equal(found.effect, other.effect)
