from __future__ import annotations

import numpy as np
import pytest

from proton_bench.analysis.metrics.measure import Measure
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.words.columns import (
    _LEAST_NAME,
    Column,
    Table,
    columns_of,
    shortened,
    width_of,
)
from proton_bench.report.words.diff import measured_unit
from proton_bench.report.words.header import inside_notes

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


def test_counts_of_a_mean_step_are_whole_where_they_are() -> None:
    (column,) = columns_of([metric("count", 21.0, 0.125, 21.5, 1234.5, float("nan"))])

    assert column.texts == ["21", "0.125", "21.5", "1234", "-"]


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


def profile(*kernels: dict[str, int]) -> Profile:
    builder = ProfileBuilder()
    for number, facts in enumerate(kernels):
        builder.add(0, f"k{number}", FrameKind.KERNEL, metrics=facts)
    return builder.build()


def lossy(lost: int) -> dict[str, int]:
    return {"kept_records": 90, "lost_records": lost, "lossy_warps": 1, "lossy_programs": 2}


def test_profiles_without_scopes_inside_kernels_need_no_note() -> None:
    assert inside_notes(profile({"time (ns)": 1})) == ()
    assert inside_notes(profile({"kept_records": 4, "instrumented_launches": 1})) == ()


def test_kernels_that_lost_records_are_named_with_what_helps() -> None:
    (note,) = inside_notes(profile(lossy(10)))

    assert note.startswith(
        "LOST: k0 keeps 90.0 % of the records inside it; 10 older records of 1 warp in 2 programs"
    )
    assert "buffer_size" in note


def test_of_many_kernels_those_that_lost_most_are_named() -> None:
    notes = inside_notes(profile(*(lossy(lost) for lost in range(1, 8))))

    assert [note.split()[1] for note in notes[:5]] == ["k6", "k5", "k4", "k3", "k2"]
    assert notes[5:] == ("LOST: records inside 2 more kernels",)


def test_times_of_instrumented_kernels_are_said_to_be_perturbed() -> None:
    (note,) = inside_notes(profile({"time (ns)": 1, "instrumented_launches": 1}, {"time (ns)": 1}))

    assert note == (
        "PERTURBED: the time of 1 kernel includes the cost of recording the scopes inside"
    )


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
