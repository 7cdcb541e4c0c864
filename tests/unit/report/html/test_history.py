from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from fakes.histories import FIRST_S, hostile, judged, points_of_times, slower, stepped

from proton_bench.report.html.document import history_page


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
