from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from proton_bench.gate.statistics.discovery import Dependence, adjusted, discoveries

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50).map(np.array)

# Benjamini, Hochberg 1995, section 3.1: p-values of the thrombolysis study; BH rejects four at 5 %.
THROMBOLYSIS = np.array(
    [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0000,
    ]
)


def test_the_example_of_benjamini_and_hochberg() -> None:
    assert discoveries(THROMBOLYSIS, 0.05).sum() == 4


@given(P_VALUES)
def test_adjusted_values_are_those_of_scipy_and_statsmodels(p_values: np.ndarray) -> None:
    for dependence, name in ((Dependence.POSITIVE, "bh"), (Dependence.ANY, "by")):
        found = adjusted(p_values, dependence)
        assert found == pytest.approx(stats.false_discovery_control(p_values, method=name))
        of_statsmodels = multipletests(p_values, method=f"fdr_{name}")[1]
        assert found == pytest.approx(of_statsmodels)


@given(P_VALUES, st.integers(0, 49), st.floats(0.0, 1.0))
def test_a_smaller_p_value_never_costs_a_discovery(
    p_values: np.ndarray, at: int, factor: float
) -> None:
    smaller = p_values.copy()
    smaller[at % len(p_values)] *= factor

    assert (discoveries(smaller, 0.05) >= discoveries(p_values, 0.05)).all()


def test_what_was_not_tested_is_not_part_of_the_family() -> None:
    p_values = np.array([np.nan, 0.04, np.nan])

    assert discoveries(p_values, 0.05).tolist() == [False, True, False]
    assert np.isnan(adjusted(p_values)[[0, 2]]).all()
    assert np.isnan(adjusted(np.array([np.nan]))).all()
