from __future__ import annotations

import numpy as np
import pytest

from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.controls import FEWEST, Controls, examine
from proton_bench.gate.statistics.moderation import Moderated
from proton_bench.gate.statistics.timing import Evidence, Limits

COUNT = 40
LIMITS = Limits(
    np.full(COUNT, np.log(1.02)),
    np.full(COUNT, np.log(1.03)),
    np.full(COUNT, np.log(1.02)),
    np.ones(COUNT),
)
EVERY = np.ones(COUNT, dtype=bool)


def evidence_of(effect: np.ndarray, error: float = 0.002, freedom: float = 10.0) -> Evidence:
    six = np.full(COUNT, 6.0)
    contrast = Contrast(
        effect,
        np.full(COUNT, 6 * error**2),
        six - 2,
        1 / six,
        six * 0,
        six.astype(int),
        np.zeros((6, COUNT)),
    )
    return Evidence(
        contrast, Moderated(contrast.variance, np.full(COUNT, freedom)), EVERY, np.zeros(COUNT)
    )


def test_controls_that_behave_change_nothing() -> None:
    generator = np.random.default_rng(1)
    effect = 0.002 * generator.standard_t(10, COUNT) * 0.9

    found = examine(evidence_of(effect), LIMITS, EVERY, level=0.05)

    assert (found.count, found.moved, found.invalid) == (COUNT, 0, False)
    assert found.null_scale == pytest.approx(1.0, abs=0.25)


def test_controls_that_spread_too_wide_widen_all_errors() -> None:
    effect = 3.0 * 0.002 * np.random.default_rng(2).standard_t(10, COUNT)

    found = examine(evidence_of(effect), LIMITS, EVERY, level=0.05)

    assert 2.0 < found.null_scale < 4.5
    assert not found.invalid


def test_a_shift_of_all_controls_voids_the_session() -> None:
    found = examine(evidence_of(np.full(COUNT, 0.04)), LIMITS, EVERY, level=0.05)

    assert found.invalid
    assert found.moved == COUNT
    assert found.null_scale > 5.0


def test_one_odd_control_voids_nothing() -> None:
    effect = np.zeros(COUNT)
    effect[3] = 0.1

    assert not examine(evidence_of(effect), LIMITS, EVERY, level=0.05).invalid


def test_few_controls_say_nothing_of_the_spread() -> None:
    few = np.arange(COUNT) < FEWEST - 1

    found = examine(evidence_of(np.full(COUNT, 0.01)), LIMITS, few, level=0.05)

    assert found.null_scale == 1.0


def test_without_controls_there_is_nothing_to_say() -> None:
    assert examine(evidence_of(np.zeros(COUNT)), LIMITS, ~EVERY, level=0.05) == Controls()
