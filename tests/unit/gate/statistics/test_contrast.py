from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS

from proton_bench.gate.statistics.contrast import apart, paired

ABBA = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])


def logs(seed: int, pairs: int, paths: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(pairs, paths)), generator.normal(size=(pairs, paths))


@pytest.mark.parametrize("order", [ABBA, ABBA[:5], ABBA[:3]])
def test_pairs_of_one_path_are_the_regression_on_the_order(order: np.ndarray) -> None:
    base, new = logs(1, len(order), 1)

    found = paired(base, new, order)

    design = np.column_stack([np.ones(len(order)), order])
    fit = OLS((new - base)[:, 0], design).fit()
    assert found.effect[0] == pytest.approx(fit.params[0])
    assert found.order_effect[0] == pytest.approx(fit.params[1])
    assert found.variance[0] == pytest.approx(fit.mse_resid)
    assert found.freedom[0] == pytest.approx(fit.df_resid)
    assert found.variance[0] * found.scale[0] == pytest.approx(fit.bse[0] ** 2)


def test_the_order_effect_is_common_to_the_paths_of_a_metric() -> None:
    base, new = logs(2, 6, 6)
    metrics = ["median"] * 3 + ["gbps"] * 3

    found = paired(base, new, ABBA, metrics=metrics)
    alone = [paired(base[:, [at]], new[:, [at]], ABBA).order_effect[0] for at in range(6)]

    assert found.order_effect[:3] == pytest.approx(np.median(alone[:3]))
    assert found.order_effect[3:] == pytest.approx(np.median(alone[3:]))
    assert found.freedom == pytest.approx(5.0 - 1.0 / 3.0)


def test_slow_processes_that_share_an_order_by_chance_stay_noise() -> None:
    generator = np.random.default_rng(5)
    base, new = generator.normal(0.0, 0.002, (2, 6, 40))
    new[ABBA > 0, 7] += 0.1

    found = paired(base, new, ABBA)

    assert np.sqrt(found.variance[7]) > 0.04
    assert found.separation[7] == 0


def test_an_order_effect_does_not_separate_pairs_in_which_nothing_differs() -> None:
    base, new = np.zeros((2, 6, 1))
    new[ABBA > 0, 0] = 0.1
    new[ABBA < 0, 0] = [0.001, -0.001, 0.001]

    found = paired(base, new, ABBA)

    assert found.effect[0] == pytest.approx(0.05, abs=0.001)
    assert found.separation[0] == 0


def test_sides_are_separated_if_every_pair_or_process_says_the_same() -> None:
    base = np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.2, 0.2, 0.2], [0.1, 0.1, 0.1]])
    new = base + np.array([0.1, -0.1, 0.0])

    assert paired(base, new, ABBA[:4]).separation.tolist() == [1, -1, 0]
    assert apart(base, new).separation.tolist() == [0, 0, 0]
    assert apart(base, new + 1.0).separation.tolist() == [1, 1, 1]
    assert apart(base + 1.0, new).separation.tolist() == [-1, -1, -1]


def test_pairs_in_one_order_are_the_paired_t_test() -> None:
    base, new = logs(2, 6, 2)

    found = paired(base, new, np.ones(6))

    expected = stats.ttest_rel(new, base)
    error = np.sqrt(found.variance * found.scale)
    assert found.effect / error == pytest.approx(expected.statistic)
    assert found.freedom.tolist() == [5, 5]
    assert np.isnan(found.order_effect).all()


def test_sides_apart_are_the_t_test_of_equal_variances() -> None:
    base, new = logs(3, 5, 2)

    found = apart(base, new[:4])

    expected = stats.ttest_ind(new[:4], base)
    error = np.sqrt(found.variance * found.scale)
    assert found.effect / error == pytest.approx(expected.statistic)
    assert (found.freedom.tolist(), found.runs.tolist()) == ([7, 7], [4, 4])


def test_a_missing_run_leaves_its_pair_out() -> None:
    base, new = logs(4, 6, 2)
    new[2, 0] = np.nan

    found = paired(base, new, ABBA)

    kept = [0, 1, 3, 4, 5]
    assert found.effect[0] == pytest.approx(
        np.mean((new - base)[kept, 0] - found.order_effect[0] * ABBA[kept])
    )
    assert found.runs.tolist() == [5, 6]


def test_nothing_is_known_of_a_path_without_values() -> None:
    nothing = np.full((4, 1), np.nan)

    for found in (paired(nothing, nothing, ABBA[:4]), apart(nothing, nothing)):
        assert np.isnan(found.effect).all()
        assert np.isnan(found.variance).all()
        assert found.runs.tolist() == [0]


def test_one_pair_has_an_effect_and_no_variance() -> None:
    found = paired(np.array([[1.0]]), np.array([[1.5]]), np.array([1.0]))

    assert found.effect.tolist() == [0.5]
    assert np.isnan(found.variance).all()
    assert found.freedom.tolist() == [0]


def test_drift_goes_into_the_order_effect() -> None:
    # Each run is 0.01 slower than the one before, whichever side it is of.
    slots = np.array([(0, 1), (3, 2), (5, 4), (6, 7), (8, 9), (11, 10)])
    order = np.where(slots[:, 0] < slots[:, 1], 1.0, -1.0)

    found = paired(0.01 * slots[:, :1], 0.01 * slots[:, 1:], order)

    assert found.effect == pytest.approx([0.0])
    assert found.order_effect == pytest.approx([0.01])
    assert found.variance == pytest.approx([0.0])


@given(st.integers(0, 1000), st.floats(0.001, 1e6), st.integers(2, 9))
def test_exchanged_sides_and_other_units(seed: int, unit: float, pairs: int) -> None:
    base, new = logs(seed, pairs, 4)
    order = np.resize(ABBA, pairs)

    found = paired(base, new, order)
    exchanged = paired(new, base, -order)
    scaled = paired(base + np.log(unit), new + np.log(unit), order)

    np.testing.assert_allclose(exchanged.effect, -found.effect)
    np.testing.assert_allclose(exchanged.variance, found.variance)
    np.testing.assert_allclose(exchanged.order_effect, found.order_effect, atol=1e-12)
    np.testing.assert_allclose(scaled.effect, found.effect, atol=1e-9)
    np.testing.assert_array_equal(exchanged.separation, -found.separation)
    np.testing.assert_allclose(apart(new, base).effect, -apart(base, new).effect)
