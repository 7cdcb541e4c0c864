from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from proton_bench.gate.statistics.family import adjusted

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50).map(np.array)


@given(P_VALUES)
def test_adjusted_values_are_those_of_statsmodels(p_values: np.ndarray) -> None:
    assert adjusted(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


@given(P_VALUES, st.integers(0, 49), st.floats(0.0, 1.0))
def test_a_smaller_p_value_never_costs_a_rejection(
    p_values: np.ndarray, at: int, factor: float
) -> None:
    smaller = p_values.copy()
    smaller[at % len(p_values)] *= factor

    assert (adjusted(smaller) <= adjusted(p_values) + 1e-12).all()


@given(P_VALUES, st.randoms())
def test_the_order_of_paths_does_not_matter(p_values: np.ndarray, random: object) -> None:
    order = np.array(sorted(range(len(p_values)), key=lambda _: random.random()))  # type: ignore[attr-defined]

    assert adjusted(p_values[order]) == pytest.approx(adjusted(p_values)[order])


def test_what_was_not_tested_is_not_part_of_the_family() -> None:
    p_values = np.array([np.nan, 0.04, np.nan])

    assert adjusted(p_values)[1] == 0.04
    assert np.isnan(adjusted(p_values)[[0, 2]]).all()
    assert np.isnan(adjusted(np.array([np.nan]))).all()
