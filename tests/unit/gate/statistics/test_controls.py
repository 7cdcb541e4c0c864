from __future__ import annotations

import numpy as np
from fakes.evidence import evidence_of

from proton_bench.gate.statistics.common_shift import controls_moved
from proton_bench.gate.statistics.decision import Limits

COUNT = 40
LIMITS = Limits(np.full(COUNT, np.log(1.03)), np.ones(COUNT))
EVERY = np.ones(COUNT, dtype=bool)


def test_controls_that_behave_change_nothing() -> None:
    generator = np.random.default_rng(1)
    effect = 0.002 * generator.standard_t(10, COUNT) * 0.9

    assert not controls_moved(evidence_of(effect), LIMITS, EVERY)


def test_a_shift_of_all_controls_voids_the_session() -> None:
    assert controls_moved(evidence_of(np.full(COUNT, 0.04)), LIMITS, EVERY)


def test_one_odd_control_voids_nothing() -> None:
    effect = np.zeros(COUNT)
    effect[3] = 0.1

    assert not controls_moved(evidence_of(effect), LIMITS, EVERY)


def test_without_controls_there_is_nothing_to_say() -> None:
    assert not controls_moved(evidence_of(np.full(COUNT, 0.04)), LIMITS, ~EVERY)
