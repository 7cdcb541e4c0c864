from __future__ import annotations

import pytest

from proton_bench.analysis.metrics.measure import Measure
from proton_bench.report.words.diff import measured_unit

TIME = Measure("time (ns)", "time (ns)", 1.0, "ns")


@pytest.mark.parametrize(
    ("measure", "largest", "text"),
    [
        (TIME, 1_234_567, "1.235 ms"),
        (TIME, -2_000, "-2 us"),
        (TIME, 7, "7 ns"),
        (Measure("time/us", "time (ns)", 1000.0, "ns"), 1_234_567, "1235 us"),
        (Measure("count", "count"), 123_456, "123456"),
        (Measure("time/%"), 12.5, "12.5 %"),
        (Measure("tflop16/s"), 712.25, "712.2"),
    ],
)
def test_values_have_a_unit_that_fits_or_was_asked_for(
    measure: Measure, largest: float, text: str
) -> None:
    assert measured_unit(measure, [0, largest]).text(largest) == text


def test_units_of_files_are_safe_to_print() -> None:
    measure = Measure("x (\x1b[2J)", "x (\x1b[2J)", 1.0, "\x1b[2J" + "z" * 99)
    unit = measured_unit(measure, [1])

    assert unit.name.startswith("\\x1b[2Jzzz")
    assert "more characters" in unit.name
