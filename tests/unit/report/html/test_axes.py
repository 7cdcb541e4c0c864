from __future__ import annotations

import pytest

from proton_bench.report.html.points import scaled
from proton_bench.report.html.roofline import HEIGHT, WIDTH, Axes


def test_axes_run_between_powers_of_ten() -> None:
    axes = Axes.around([3.0, 40.0], [5e12])

    assert (axes.x_low, axes.x_high, axes.y_low, axes.y_high) == (0, 2, 12, 13)
    assert axes.x(1.0) < axes.x(10.0) < axes.x(100.0)
    assert axes.y(1e12) > axes.y(1e13)
    assert [tick.text for tick in axes.x_ticks()] == ["1", "10", "100"]
    assert [tick.text for tick in axes.y_ticks("B")] == ["1 TB", "10 TB"]


@pytest.mark.parametrize(
    ("value", "text"), [(1.07e15, "1.07 P"), (999.0, "999 "), (2e3, "2 k"), (0.5, "0.5 ")]
)
def test_numbers_get_a_prefix(value: float, text: str) -> None:
    assert scaled(value) == text


def test_all_values_have_a_place_in_the_drawing() -> None:
    values = [1e-12, 3.0, 1e21]

    axes = Axes.around(values, values)

    for value in values:
        assert 0 < axes.x(value) < WIDTH
        assert 0 < axes.y(value) < HEIGHT
    assert len(list(axes.x_ticks())) <= 13
