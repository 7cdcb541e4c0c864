from __future__ import annotations

import math

import numpy as np
import pytest
from sweeps import how_many

from proton_bench.gate.machine import CanaryShift, shift_of

# Of an H100 that boosts to one of several clocks.
BETWEEN = 0.006
MANY = how_many(2000, 1000)


def shifts(runs: int, shift: float, between: float = BETWEEN) -> list[CanaryShift]:
    rng = np.random.default_rng(1)
    drawn = rng.normal(12.0, between, (MANY, 2, runs, 1))
    return [shift_of(base, new + shift) for base, new in drawn]


@pytest.mark.parametrize("runs", [1, 2, 4, 6])
def test_a_machine_that_did_not_change_rarely_seems_to(runs: int) -> None:
    allowed = MANY // (100 if runs == 2 else 1000)  # two runs decide nothing else either

    assert sum(each.moved for each in shifts(runs, 0.0)) <= allowed


@pytest.mark.parametrize("shift", [0.03, -0.03])
def test_four_runs_on_each_side_show_three_percent(shift: float) -> None:
    found = shifts(4, shift)

    assert sum(each.moved for each in found) >= 0.95 * MANY
    assert not any(each.is_steady for each in found)


def test_quiet_canaries_show_that_nothing_changed() -> None:
    assert all(each.is_steady for each in shifts(4, 0.0, between=0.0005))


@pytest.mark.parametrize("runs", [1, 4])
def test_few_or_noisy_runs_say_neither(runs: int) -> None:
    (found,) = {(each.moved, each.is_steady) for each in shifts(runs, 0.0, between=0.05)[:50]}

    assert found == (False, False)


def test_several_kernels_count_by_their_mean() -> None:
    base = np.zeros((4, 2))

    found = shift_of(base, base + [0.03, 0.05])

    assert (found.count, found.shift) == (2, pytest.approx(0.04))
    assert found.moved


def test_without_canaries_nothing_is_known() -> None:
    found = shift_of(np.zeros((4, 0)), np.zeros((4, 0)))

    assert (found.count, found.moved, found.is_steady) == (0, False, False)
    assert math.isnan(found.shift)
