from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.runs import profiles, run_of
from fakes.suites import suite
from hypothesis import given

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.metrics.measure import Measure
from proton_bench.analysis.run import Run
from proton_bench.model.profile import Profile
from proton_bench.report.html.table import Form, change_columns, measure_form


def cells(comparison: Comparison) -> dict[str, list[Any]]:
    rows = np.arange(len(comparison))
    return {column.title: column.values for column in change_columns(comparison, rows)}


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (Measure("time/ms", "time (ns)", 1e6, "ns"), ("time", Form.TIME, 1)),
        (Measure("time (s)", "time (s)", 1.0, "s"), ("time", Form.TIME, 10**9)),
        (Measure("count", "count"), ("count", Form.NUMBER, 1.0)),
        (Measure("bytes", "bytes", 1.0, "B"), ("bytes", Form.NUMBER, 1.0)),
    ],
)
def test_values_are_written_in_the_unit_of_the_source(
    measure: Measure, expected: tuple[str, Form, float]
) -> None:
    assert measure_form(measure) == expected


def test_all_amounts_of_a_comparison_share_a_unit() -> None:
    runs = [run_of(("a", time, 5, "c")) for time in (900, 1000, 1200)]
    comparison = compare(runs[:2], runs[2:], CompareOptions())

    columns = change_columns(comparison, np.arange(len(comparison)))

    alike = {column.title for column in columns if column.group == columns[0].group}
    assert alike == {"new", "base", "change", "+-", "by launches", "by latency"}


def test_values_for_the_calls_of_the_base_say_so() -> None:
    comparison = compare([Run(suite(10, 4), "a")], [Run(suite(40, 8), "b")], CompareOptions())

    new, *_ = change_columns(comparison, np.arange(len(comparison)))

    assert new.meaning.endswith("are scaled to the number of calls in the base")


def test_new_and_gone_rows_have_one_value_and_no_growth() -> None:
    base = run_of(("a", 50, 5, "c"), ("gone", 70, 1, "x"))
    new = run_of(("a", 60, 5, "c"), ("fresh", 9, 2, ""))

    found = cells(compare([base], [new], CompareOptions()))

    rows = zip(found["new"], found["base"], found["change"], found["growth"], strict=True)
    assert sorted(rows, key=str) == [
        (60, 50, 10, 20),
        (69, 120, -51, -42.5),
        (9, None, 9, None),
        (None, 70, -70, None),
    ]


@given(profiles(), profiles())
def test_parts_of_every_change_add_up(base: Profile, new: Profile) -> None:
    comparison = compare([Run(base, "base")], [Run(new, "new")], CompareOptions("time"))

    found = cells(comparison)

    for row, change in enumerate(found["change"]):
        assert change == (found["new"][row] or 0) - (found["base"][row] or 0)
