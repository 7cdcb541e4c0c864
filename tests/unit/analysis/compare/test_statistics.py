from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from proton_bench.analysis.compare.compare import mean_difference


def test_one_run_on_each_side_gives_no_interval() -> None:
    assert mean_difference(np.array([[1.0]]), np.array([[2.0]])) is None


def test_interval_is_that_of_welchs_test() -> None:
    base, new = np.array([9.8, 10.1, 10.4]), np.array([11.0, 11.9, 10.8, 12.2])

    found = mean_difference(base[:, None], new[:, None])

    expected = stats.ttest_ind(new, base, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert found.low[0] == pytest.approx(expected.low)
    assert found.high[0] == pytest.approx(expected.high)


def test_a_single_run_is_taken_to_spread_like_the_other_side() -> None:
    new = np.array([11.0, 12.0, 13.0])

    found = mean_difference(np.array([[10.0]]), new[:, None])

    reach = stats.t.ppf(0.975, 2) * np.sqrt(1.0 + 1.0 / 3.0)
    assert found is not None
    assert [found.low[0], found.high[0]] == pytest.approx([2.0 - reach, 2.0 + reach])


def test_runs_without_spread_give_a_point() -> None:
    found = mean_difference(np.array([[10.0], [10.0]]), np.array([[12.0], [12.0]]))

    assert found is not None
    assert (found.low[0], found.high[0]) == (2.0, 2.0)
