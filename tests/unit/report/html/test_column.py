from __future__ import annotations

import math

import numpy as np
import pytest

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.report.html.table import Form, metric_column, metric_form, rounded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("time (ns)", ("time", Form.TIME, 1)),
        ("time/ms", ("time", Form.TIME, 1_000_000)),
        ("avg_time/us", ("avg_time", Form.TIME, 1000)),
        ("wall (s)", ("wall", Form.TIME, 1_000_000_000)),
        ("time/%", ("time %", Form.PERCENT, 1.0)),
        ("tflop16/s", ("tflop16/s", Form.NUMBER, 1.0)),
        ("gbyte/s", ("gbyte/s", Form.NUMBER, 1.0)),
        ("count", ("count", Form.NUMBER, 1.0)),
        ("size (bytes)", ("size (bytes)", Form.NUMBER, 1.0)),
        ("/ms", ("/ms", Form.NUMBER, 1.0)),
        ("a/furlong", ("a/furlong", Form.NUMBER, 1.0)),
        ("a\nb", ("a\\nb", Form.NUMBER, 1.0)),
    ],
)
def test_name_says_how_values_are_written(name: str, expected: tuple[str, Form, float]) -> None:
    assert metric_form(name) == expected


def test_whole_numbers_stay_whole_and_others_get_seven_digits() -> None:
    assert rounded([3, 2.0, 1 / 3, 1e300, 0.0, None]) == [3, 2, 0.3333333, 1e300, 0, None]


def test_what_json_cannot_hold_is_missing() -> None:
    assert rounded([math.nan, math.inf, -math.inf, 1e308], 1e3) == [None, None, None, None]


@pytest.mark.parametrize("name", ["load", "time/ms"])
def test_cells_that_are_not_finite_are_shown_as_such(name: str) -> None:
    values = np.array([math.nan, -math.inf, math.inf, 0.0, 2.0])
    metric = MetricValues(name, Aggregation.INCLUSIVE, values, np.arange(5) != 3)

    shown = metric_column(metric).plain()["values"]

    assert shown[:4] == ["NaN", "-Infinity", "Infinity", None]
    assert isinstance(shown[4], int)


def test_metric_becomes_a_column_in_nanoseconds() -> None:
    values = np.array([1.5, 0.0, 2.0])
    metric = MetricValues("time/ms", Aggregation.INCLUSIVE, values, np.array([True, False, True]))

    column = metric_column(metric)

    assert (column.title, column.form) == ("time", Form.TIME)
    assert column.values == [1_500_000, None, 2_000_000]
    assert column.meaning == "of the row and all rows below it"


@pytest.mark.parametrize("name", ["dram_gbyte/s", "pipe_tflop/s"])
def test_rates_of_counters_are_no_times(name: str) -> None:
    assert metric_form(name) == (name, Form.NUMBER, 1.0)


def test_whole_numbers_are_counts() -> None:
    metric = MetricValues("count", Aggregation.INCLUSIVE, np.array([4]), np.array([True]))

    assert metric_column(metric).form is Form.COUNT


def test_texts_and_vectors_are_made_visible() -> None:
    values = np.empty(3, dtype=object)
    values[:] = ["a\x1b[1m", (1.0, 2.5), None]
    metric = MetricValues("label", Aggregation.PROPERTY, values, np.array([True, True, False]))

    assert metric_column(metric).values == ["a\\x1b[1m", "[1, 2.5]", None]
