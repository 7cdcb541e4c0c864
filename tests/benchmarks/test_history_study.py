from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.studies.gate.history import (
    NOISES,
    Noise,
    alarms_over_time,
    false_alarms,
    ours,
    simulated,
)
from proton_bench.model.arrays import Floats


def nothing(series: Sequence[Floats]) -> list[list[int]]:
    return [[] for _ in series]


def everywhere(series: Sequence[Floats]) -> list[list[int]]:
    return [list(range(1, len(values))) for values in series]


def test_a_rule_that_finds_nothing_has_no_recall_and_no_alarms() -> None:
    found = simulated(NOISES[0], nothing, seed=1)

    assert (found.recall.value, found.precision.trials) == (0.0, 0)
    assert false_alarms(NOISES[0], nothing, families=3, series=2).events == 0
    assert alarms_over_time(NOISES[0], nothing, families=2, series=2).events == 0


def test_a_rule_that_finds_every_place_has_full_recall_and_no_precision() -> None:
    found = simulated(NOISES[0], everywhere, seed=1)

    assert found.recall.value == 1.0
    assert found.precision.value < 0.01
    assert false_alarms(NOISES[0], everywhere, families=3, series=2).value == 1.0


def test_ours_finds_most_steps_and_little_else() -> None:
    found = simulated(NOISES[0], ours, seed=1)

    assert found.recall.value >= 0.9
    assert found.precision.value >= 0.95


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_noise_has_the_spread_and_correlation_that_it_names(noise: Noise) -> None:
    values = noise.draw(np.random.default_rng(1), 400, 200)

    steady = values - np.log(1.1) * (values > np.log(1.05))
    spreads = (steady - steady.mean(axis=0)).std(axis=1)
    assert np.median(spreads) == pytest.approx(noise.spread, rel=0.2)
    shared = steady.mean(axis=0).std()
    assert shared == pytest.approx(noise.shared, rel=0.2, abs=0.001)
    own = steady - steady.mean(axis=0)
    pairs = np.mean(own[:, 1:] * own[:, :-1], axis=1) / own.var(axis=1)
    assert np.median(pairs) == pytest.approx(noise.persistence, abs=0.1)
