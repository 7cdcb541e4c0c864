"""From numbers of processes to decisions: what must not matter, and what must."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.gate.statistics.decision import Background, Decisions, Limits, decide, weigh

SEEDS = st.integers(0, 10_000)


def drawn(seed: int, pairs: int, paths: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of processes with quiet, noisy, changed and two-state paths.

    In half of the cases they share most of their noise.
    """
    generator = np.random.default_rng(seed)
    spread = generator.choice([0.001, 0.003, 0.05], paths)
    sides = generator.normal(0.0, 1.0, (2, pairs, paths)) * spread
    sides += generator.choice([0.0, 0.1]) * generator.normal(size=(2, pairs, 1))
    states = generator.random(paths) < 0.2
    sides += 0.05 * states * (generator.random(sides.shape) < 0.4)
    sides[1] += generator.choice([0.0, 0.0, 0.02, 0.04, -0.05, 0.3], paths)
    missing = generator.random(sides.shape) < 0.02
    return np.where(missing[0], np.nan, sides[0]), np.where(missing[1], np.nan, sides[1])


def turns(pairs: int, *, apart: bool) -> tuple[float, ...]:
    return () if apart else tuple(1.0 if pair % 2 == 0 else -1.0 for pair in range(pairs))


def decided(base: np.ndarray, new: np.ndarray, order: tuple[float, ...]) -> Decisions:
    paths = base.shape[1]
    metrics = ["median"] * paths
    background = Background(np.zeros(paths), np.zeros(paths), metrics)
    limits = Limits(np.full(paths, np.log(1.03)), np.ones(paths))
    known = {"background": background, "margin": limits.margin, "fewest_runs": 4}
    return decide(weigh(base, new, order, **known), limits)


@given(SEEDS, st.integers(4, 10), st.booleans())
def test_swapped_sides_swap_worse_and_better(seed: int, pairs: int, apart: bool) -> None:
    base, new = drawn(seed, pairs, 12)
    order = turns(pairs, apart=apart)

    there = decided(base, new, order)
    back = decided(new, base, tuple(-each for each in order))

    assert there.worse.tolist() == back.better.tolist()
    assert there.better.tolist() == back.worse.tolist()
    np.testing.assert_allclose(there.low, -back.high, atol=1e-9)
    np.testing.assert_allclose(there.findable, back.findable, rtol=1e-6)


@given(SEEDS, st.integers(4, 10), st.booleans())
def test_the_order_of_paths_does_not_matter(seed: int, pairs: int, apart: bool) -> None:
    base, new = drawn(seed, pairs, 12)
    shuffled = np.random.default_rng(seed).permutation(12)
    order = turns(pairs, apart=apart)

    plain = decided(base, new, order)
    other = decided(base[:, shuffled], new[:, shuffled], order)

    assert plain.worse[shuffled].tolist() == other.worse.tolist()
    assert plain.allowed[shuffled].tolist() == other.allowed.tolist()
    np.testing.assert_allclose(plain.high[shuffled], other.high, atol=1e-9)


@given(SEEDS, st.integers(6, 10), st.floats(0.0, 0.2), st.booleans())
def test_more_of_a_slowdown_never_clears_a_path(
    seed: int, pairs: int, more: float, apart: bool
) -> None:
    base, new = drawn(seed, pairs, 12)
    order = turns(pairs, apart=apart)
    slower = new + np.where(np.arange(12) == 5, more, 0.0)

    before, after = decided(base, new, order), decided(base, slower, order)

    assert after.worse[5] >= before.worse[5]
    assert after.allowed[5] <= before.allowed[5]


@given(SEEDS, st.integers(4, 10), st.floats(1e-3, 1e3), st.booleans())
def test_the_unit_of_a_path_does_not_matter(
    seed: int, pairs: int, unit: float, apart: bool
) -> None:
    base, new = drawn(seed, pairs, 12)
    order = turns(pairs, apart=apart)

    plain = decided(base, new, order)
    scaled = decided(base + np.log(unit), new + np.log(unit), order)

    assert plain.worse.tolist() == scaled.worse.tolist()
    np.testing.assert_allclose(plain.high, scaled.high, atol=1e-6)


@given(SEEDS, st.integers(4, 10), st.booleans())
def test_no_path_is_worse_and_allowed_or_worse_and_better(
    seed: int, pairs: int, apart: bool
) -> None:
    found = decided(*drawn(seed, pairs, 12), turns(pairs, apart=apart))

    assert not (found.worse & (found.allowed | found.better)).any()
    assert (found.worse <= (found.low > 0.0)).all()


@given(SEEDS)
def test_a_small_drift_of_the_machine_changes_no_interval(seed: int) -> None:
    base, new = np.random.default_rng(seed).normal(0.0, 0.002, (2, 6, 12))
    order = turns(6, apart=False)
    second = np.array(order)[:, None] > 0

    plain, drifting = (
        decided(base + drift * ~second, new + drift * second, order) for drift in (0.0, 0.003)
    )

    np.testing.assert_allclose(plain.high, drifting.high, atol=1e-9)


@given(SEEDS, st.floats(0.02, 0.2))
def test_a_large_drift_makes_no_path_worse(seed: int, drift: float) -> None:
    base, new = np.random.default_rng(seed).normal(0.0, 0.002, (2, 6, 12))
    order = turns(6, apart=False)
    second = np.array(order)[:, None] > 0

    found = decided(base + drift * ~second, new + drift * second, order)

    assert not (found.worse | found.better).any()
