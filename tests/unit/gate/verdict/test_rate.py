from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from proton_bench.gate.experiment import Rate


@pytest.mark.parametrize(("events", "trials"), [(0, 20), (1, 20), (10, 20), (20, 20), (3, 2000)])
def test_bounds_are_those_of_statsmodels(events: int, trials: int) -> None:
    expected = proportion_confint(events, trials, method="beta")

    assert Rate(events, trials).bounds() == pytest.approx(expected)


def test_nothing_is_known_of_no_trials() -> None:
    assert Rate(0, 0).bounds() == (0.0, 1.0)
    assert Rate(0, 0).value == 0.0
    assert Rate(1, 4).value == 0.25
