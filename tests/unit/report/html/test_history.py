from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from fakes.histories import FIRST_S, hostile, judged, points_of_times, slower, stepped
from fakes.runs import profiles, run_of
from fakes.suites import suite
from hypothesis import given

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.metrics.measure import Measure
from proton_bench.analysis.run import Run
from proton_bench.model.profile import Profile
from proton_bench.report.html.document import history_page
from proton_bench.report.html.points import scaled
from proton_bench.report.html.roofline import HEIGHT, WIDTH, Axes
from proton_bench.report.html.table import Form, change_columns, measure_form


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def drawings(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(each) for each in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_every_series_has_a_row_and_those_with_steps_a_plot() -> None:
    page = history_page(judged(slower()))

    rows, plots = drawings(page)[:2], drawings(page)[2:]
    assert [each.get("viewBox") for each in rows] == ["0 0 120 22"] * 2
    (plot,) = plots
    assert len(plot.findall("circle")) == 40
    (step,) = plot.findall("line[@class='series-step fails']")
    dots = [float(dot.get("cx", "0")) for dot in plot.findall("circle")]
    assert dots[19] < float(step.get("x1", "0")) < dots[20]
    levels = plot.findall("line[@class='series-level']")
    assert [float(level.get("y1", "0")) for level in levels] == sorted(
        (float(level.get("y1", "0")) for level in levels), reverse=True
    )


def test_positions_are_within_the_plot() -> None:
    (plot,) = drawings(history_page(judged(slower())))[2:]

    for dot in plot.findall("circle"):
        assert 84.0 <= float(dot.get("cx", "nan")) <= 704.0
        assert 12.0 <= float(dot.get("cy", "nan")) <= 212.0


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_short_and_constant_series_are_shown(count: int) -> None:
    points = points_of_times({"step/a": stepped(count, noise=0.0)}) if count else []

    page = history_page(judged(points))

    assert "nan" not in page.partition("<script")[0].lower().replace("nanosecond", "")
    assert len(drawings(page)) == min(count, 1)


def test_the_page_is_that_of_profiles_without_their_parts() -> None:
    page = history_page(judged(slower()))

    data = page.partition('<script id="report" type="application/json">')[2]
    assert json.loads(data.partition("</script>")[0])["flame"] is None
    assert 'class="headline verdict-fail"' in page
    assert not any(part in page for part in ('id="flame"', "Provenance", "<noscript>"))


def test_text_from_elsewhere_is_escaped() -> None:
    found = hostile()

    page = history_page(found)

    assert found.failing
    elements = Elements(page)
    assert [each.get("type") for each in elements.of("script")] == ["application/json", "module"]
    assert not any(attribute.startswith("on") for _, a in elements.found for attribute in a)
    assert "\x1b" not in page
    page.encode()  # no surrogates are left


def test_runs_are_listed_with_links_to_their_reports() -> None:
    points = [replace(each, recording=f"{each.source}.hatchet") for each in slower()]
    report = "file:///runs/run%20%22.html"

    page = history_page(judged(points), {points[1].recording: report})

    found = Elements(page)
    assert [link["href"] for link in found.of("a")] == [report]
    newest, older = (page.index(f'<th scope="row">{points[place].source}') for place in (3, 2))
    assert newest < older


@pytest.mark.parametrize(
    ("step_s", "texts"),
    [
        (86_400, ["2023-11-14", "2023-11-27", "2023-12-10", "2023-12-23"]),
        (3600, ["2023-11-14 22:13", "2023-11-15 11:13", "2023-11-16 00:13", "2023-11-16 13:13"]),
        (4, [f"2023-11-14 22:{end}" for end in ("13:20", "14:12", "15:04", "15:56")]),
        (0, ["#1", "#14", "#27", "#40"]),
    ],
)
def test_times_on_the_axis_can_be_told_apart(step_s: int, texts: list[str]) -> None:
    points = [
        replace(point, time_ns=(FIRST_S + number * step_s) * 10**9)
        for number, point in enumerate(slower())
    ]

    page = history_page(judged(points))

    ticks = re.findall(r'<text class="tick"[^>]*text-anchor="middle">(.*?)</text>', page)
    assert ticks[:4] == texts


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
