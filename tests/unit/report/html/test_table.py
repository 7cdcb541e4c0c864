from __future__ import annotations

import math

import numpy as np
import pytest
from fakes.profiles import training_profile
from fakes.runs import profile_of, run_of

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.html.table import (
    Form,
    KernelTable,
    changed_kernels,
    kernel_table,
    metric_column,
    metric_form,
    rounded,
)


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


def column(table: KernelTable, title: str) -> list[object]:
    (found,) = (each for each in table.columns if each.title == title)
    return found.values


def test_kernel_is_one_row_whatever_launched_it() -> None:
    table = kernel_table(training_profile(), ["time/ms", "count"], Selection())

    assert table.names == ("kernel_3", "kernel_1")
    assert column(table, "time") == [3_000_000, 1_000_000]
    assert column(table, "share") == [75, 25]
    assert column(table, "count") == [6, 2]


def test_other_values_of_the_profile_have_columns() -> None:
    table = kernel_table(training_profile(), ["time/ms", "count"], Selection())

    titles = [each.title for each in table.columns]
    assert titles == [*("time", "share", "count", "avg_time", "tflop/s", "bound", "roof_distance")]
    assert column(table, "avg_time") == [500_000, 500_000]
    assert column(table, "bound") == ["compute", "compute"]


def test_device_without_known_peaks_has_no_roof() -> None:
    profile = profile_of(("s/a", 10, 1, ""), device=Device("ACME", 0, "x1"))

    table = kernel_table(profile, ["time/ms"], Selection())

    assert [each.title for each in table.columns] == ["time", "share", "avg_time"]


def test_trials_are_one_row_unless_asked_for() -> None:
    profile = profile_of(("<autotune>/trial", 5, 1, ""), ("k", 9, 1, ""))

    shown = [
        kernel_table(profile, ["time/ms"], Selection(trials=trials)).names
        for trials in (False, True)
    ]

    assert shown == [("k", "<autotune>"), ("k", "trial")]


def two_devices() -> Profile:
    builder = ProfileBuilder()
    for index, time in ((0, 30), (1, 50)):
        metrics = {"time (ns)": time, "count": 1}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=Device("CUDA", index, "90"))
    return builder.build()


def test_devices_are_distinguished_where_there_are_several() -> None:
    single = kernel_table(two_devices(), ["time/ns"], Selection())
    run = Run(two_devices(), "x.proton")
    both = changed_kernels(compare([run], [run], CompareOptions(by=By.KERNEL)))

    assert single.names == both.names == ("k", "k")
    assert column(single, "device") == ["CUDA:1", "CUDA:0"]
    assert sorted(map(str, column(both, "device"))) == ["CUDA:0", "CUDA:1"]


def test_kernels_that_changed_most_come_first() -> None:
    base = run_of(("s/a", 100, 10, ""), ("s/b", 50, 5, ""), ("t/gone", 7, 1, ""))
    new = run_of(("s/a", 90, 10, ""), ("s/b", 90, 5, ""), ("t/fresh", 3, 1, ""))

    table = changed_kernels(compare([base], [new], CompareOptions(by=By.KERNEL)))

    assert table.names == ("b", "a", "gone", "fresh")
    assert column(table, "change") == [40, -10, -7, 3]
    assert column(table, "growth") == [80, -10, None, None]
    assert column(table, "new") == [90, 90, None, 3]
    assert column(table, "status") == [None, None, "REMOVED", "NEW"]


def test_parts_of_a_change_add_up_to_it() -> None:
    base, new = run_of(("s/a", 100, 10, "")), run_of(("s/a", 180, 12, ""))

    table = changed_kernels(compare([base], [new], CompareOptions(by=By.KERNEL)))

    parts = [column(table, title)[0] for title in ("by launches", "by latency")]
    assert sum(parts) == column(table, "change")[0] == 80  # type: ignore[arg-type]
    assert (column(table, "launches new"), column(table, "launches base")) == ([12], [10])


def test_several_runs_show_an_interval() -> None:
    base = [run_of(("s/a", time, 1, "")) for time in (100, 104)]
    new = [run_of(("s/a", time, 1, "")) for time in (200, 204)]

    table = changed_kernels(compare(base, new, CompareOptions(by=By.KERNEL)))

    (reach,) = column(table, "+-")
    assert isinstance(reach, float)
    assert reach > 0
