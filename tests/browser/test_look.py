"""Light and dark, wide and narrow, with scripts and without, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.profiles import training_profile

from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.report.html.document import PageOptions, profile_page

pytestmark = pytest.mark.browser

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(22, 24, 29)"


def page() -> str:
    return profile_page(Run(training_profile(), "train.proton"), PageOptions())


def paper(opened: Any) -> str:
    return opened.page.evaluate("getComputedStyle(document.body).backgroundColor")


def drawn_colour(opened: Any) -> list[int]:
    """Return the colour of the flame graph's second row, far from its edges and letters."""
    opened.flame("drawn")
    return opened.page.evaluate(
        """() => {
            const pen = document.createElement('canvas').getContext('2d');
            pen.drawImage(document.querySelector('#flame canvas'), -400, -30);
            return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
    )


@pytest.mark.parametrize(("scheme", "expected"), [("light", LIGHT), ("dark", DARK)])
def test_system_chooses_the_colours(open_page: Any, scheme: str, expected: str) -> None:
    assert paper(open_page(page(), color_scheme=scheme)) == expected


def test_reader_chooses_the_colours(open_page: Any) -> None:
    opened = open_page(page(), color_scheme="light")
    before = drawn_colour(opened)
    opened.page.select_option("#theme", "dark")
    dark = paper(opened), drawn_colour(opened)
    opened.page.select_option("#theme", "auto")

    assert dark[0] == DARK
    assert sum(dark[1]) < sum(before)
    assert (paper(opened), drawn_colour(opened)) == (LIGHT, before)


def test_graph_follows_the_system_while_the_page_is_open(open_page: Any) -> None:
    opened = open_page(page(), color_scheme="light")
    before = drawn_colour(opened)
    opened.page.emulate_media(color_scheme="dark")

    assert sum(drawn_colour(opened)) < sum(before)


@pytest.mark.parametrize("width", [800, 1200, 1900])
def test_graph_and_table_fill_the_window(open_page: Any, width: int) -> None:
    opened = open_page(page(), viewport={"width": width, "height": 900})
    boxes = [opened.page.locator(each).bounding_box() for each in ("#flame", "#table-scroll")]

    assert all(box["y"] + box["height"] <= 900 for box in boxes)
    assert max(box["y"] + box["height"] for box in boxes) > 800
    assert boxes[0]["height"] > 300


@pytest.mark.parametrize("width", [360, 800, 1900])
def test_page_is_never_wider_than_the_window(open_page: Any, width: int) -> None:
    opened = open_page(page(), viewport={"width": width, "height": 800})

    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.locator("#flame canvas").bounding_box()["width"] <= width


def test_graph_grows_with_the_window(open_page: Any) -> None:
    opened = open_page(page(), viewport={"width": 600, "height": 800})
    opened.page.set_viewport_size({"width": 900, "height": 800})
    opened.flame("drawn")

    assert opened.page.locator("#flame canvas").bounding_box()["width"] > 800


def test_every_control_is_reached_by_tab(open_page: Any) -> None:
    opened = open_page(page())
    reached = []
    for _ in range(16):
        opened.page.keyboard.press("Tab")
        reached.append(
            opened.page.evaluate("(({activeElement: at}) => at.id || at.textContent)(document)")
        )

    assert reached[:4] == ["theme", "view-flame", "view-sandwich", "view-table"]
    assert reached[4:8] == ["flame-search", "metric", "ROOT", "flame"]
    assert {"sandwich-open", "table-of", "table-scroll", "name", "time (ms)"} <= set(reached)


def test_controls_have_names(open_page: Any) -> None:
    opened = open_page(page())
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll('input, select, button, [tabindex]')]
            .filter(each => !(each.labels?.length || each.ariaLabel
                || (each.matches('button') && each.textContent.trim())
                || each.getAttribute('aria-labelledby')))
            .map(each => each.id)"""
    )

    assert nameless == []


def test_empty_profile_says_so(open_page: Any) -> None:
    opened = open_page(profile_page(Run(ProfileBuilder().build(), "empty.proton"), PageOptions()))

    assert "nothing was recorded" in opened.page.locator(".headline").inner_text()
    assert opened.page.locator("#flame, #kernels").count() == 0


def test_without_scripts_the_summary_can_be_read(chromium: Any, tmp_path: Any) -> None:
    (tmp_path / "x.html").write_text(page(), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((tmp_path / "x.html").as_uri())

    text = opened.locator("body").inner_text()
    is_shown = opened.locator(".app").is_visible()
    context.close()

    assert "time 4 ms" in text
    assert not is_shown
    assert "need JavaScript" in text
