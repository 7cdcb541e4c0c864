from __future__ import annotations

import numpy as np
import pytest
from fakes.histories import stepped

from proton_bench.report.words.columns import sparkline


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([1.0, 1.0, 2.0, 2.0], "▁▁██"),
        ([2.0, 1.0], "█▁"),
        ([5.0], "▅"),
        ([1.0, 1.0], "▅▅"),
    ],
)
def test_a_sparkline_has_a_bar_for_each_point(values: list[float], bars: str) -> None:
    assert sparkline(np.array(values)) == bars


def test_a_sparkline_of_noise_does_not_fill_the_height() -> None:
    bars = sparkline(np.exp(stepped(24, noise=0.002)))

    assert set(bars) <= set("▃▄▅▆")


def test_a_long_series_fits_and_keeps_its_step_in_place() -> None:
    values = np.exp(stepped(100, (50, 0.5)))

    line = sparkline(values, width=20)

    assert line == "▁" * 10 + "█" * 10
    assert sparkline(values, width=20, ascii_only=True) == "_" * 10 + "#" * 10
