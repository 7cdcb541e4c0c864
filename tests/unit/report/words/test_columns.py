from __future__ import annotations

import numpy as np
import pytest

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.report.words.columns import (
    _LEAST_NAME,
    Column,
    Table,
    columns_of,
    shortened,
    width_of,
)

COLUMNS = [
    Column("verdict", ("REGRESSED",)),
    Column("base", ("100 us",), 5),
    Column("new", ("105 us",), 5),
    Column("change", ("+5.0 %",), 1),
]


@pytest.mark.parametrize(
    ("room", "titles"),
    [
        (200, ["verdict", "base", "new", "change"]),
        (27 + _LEAST_NAME, ["verdict", "change"]),
        (20 + _LEAST_NAME, ["verdict", "change"]),
        (11 + _LEAST_NAME, ["verdict"]),
        (1, ["verdict"]),
    ],
)
def test_columns_go_by_their_worth_until_a_name_has_room(room: int, titles: list[str]) -> None:
    assert [column.title for column in Table(COLUMNS, room).columns] == titles


def test_units_go_from_headings_before_columns_do() -> None:
    times = [Column(title, ("1.000",), 1, "us") for title in ("base", "new", "change")]
    wide = sum(column.width + 2 for column in times) + _LEAST_NAME

    shown = [[column.heading for column in Table(times, room).columns] for room in (wide, wide - 1)]

    assert shown == [["base (us)", "new (us)", "change (us)"], ["base (us)", "new", "change"]]


def metric(name: str, *values: float) -> MetricValues:
    found = np.array(values, dtype=np.float64)
    return MetricValues(name, Aggregation.INCLUSIVE, found, np.isfinite(found))


def test_percentages_have_one_decimal() -> None:
    (column,) = columns_of([metric("time/%", 100.0, 33.333, float("nan"))])

    assert column.texts == ["100.0", "33.3", "-"]
    assert column.aligned()[1:] == ["       100.0", "        33.3", "           -"]


def test_values_with_an_interval_show_half_of_it() -> None:
    found = np.array([63.2, 2.04, 50.0])
    shares = MetricValues("dram_pct", Aggregation.PROPERTY, found, found < 60.0, "", found / 20)

    assert columns_of([shares])[0].texts == ["-", "2.0 +-0.1", "50 +-2"]
    assert columns_of([shares.take(np.array([1]))])[0].texts == ["2.0 +-0.1"]


def test_large_values_with_an_interval_have_an_exponent() -> None:
    found, halves = np.array([3.4076e12, 1e9, 5.0, 0.0]), np.array([2.2e10, 1.1e10, 0.5, 4e6])
    amounts = MetricValues("b", Aggregation.INCLUSIVE, found, found < np.inf, "", halves)

    assert columns_of([amounts])[0].texts == [
        *("3.408e12 +-0.022e12", "1e9 +-11e9", "5.0 +-0.5", "0.0e6 +-4.0e6"),
    ]


@pytest.mark.parametrize(
    ("edge", "titles"),
    [
        (None, ["time/ms (inc)", "time/% (inc)", "count (inc)"]),
        (120, ["time/ms (inc)", "time/% (inc)", "count (inc)"]),
        (80, ["time/ms", "time/%", "count"]),
        (40, ["time/ms", "time/%"]),
        (25, ["time/ms"]),
        (5, ["time/ms"]),
    ],
)
def test_headings_become_short_before_columns_go(edge: int | None, titles: list[str]) -> None:
    columns = columns_of([metric(name, 1.0) for name in ("time/ms", "time/%", "count")])

    shown = shortened(columns, edge)

    assert [column.title for column in shown] == titles


def test_long_headings_are_cut_before_columns_go() -> None:
    names = ("time/ms", "sm__warps_active.avg.pct_of_peak_sustained_active (%)", "m" * 300)
    columns = columns_of([metric(name, 1.0) for name in names])

    wide, narrow = shortened(columns, 80), shortened(columns[2:], 40)

    assert [column.title for column in wide] == ["time/ms", "sm__warps_activ…", "m" * 15 + "…"]
    assert width_of(narrow) + 22 <= 40


def test_wide_characters_are_measured_as_the_terminal_shows_them() -> None:
    texts = np.array(["\u6f22\u5b57", "x"], dtype=object)
    labels = MetricValues("label", Aggregation.PROPERTY, texts, np.array([True, True]))

    (column,) = columns_of([labels])

    assert (column.width, width_of([column])) == (5, 7)
    assert column.aligned()[1:] == [" \u6f22\u5b57", "    x"]
