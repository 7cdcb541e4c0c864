"""Light and dark, wide and narrow, with scripts and without, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.profiles import training_profile

from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.report.html.document import profile_page

pytestmark = pytest.mark.browser

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(22, 24, 29)"


def page() -> str:
    return profile_page(Run(training_profile(), "train.proton"))


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
def test_graph_is_as_high_as_its_levels_and_the_table_fills_the_window(
    open_page: Any, width: int
) -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "step", FrameKind.SCOPE)
    for number in range(60):
        metrics = {"time (ns)": 5 + number, "count": 1}
        builder.add(scope, f"kernel {number}", FrameKind.KERNEL, metrics=metrics)
    html = profile_page(Run(builder.build(), "x.proton"))
    opened = open_page(html, viewport={"width": width, "height": 900})
    graph, table = (
        opened.page.locator(each).bounding_box() for each in ("#flame", "#table-scroll")
    )
    canvas = opened.page.locator("#flame canvas").bounding_box()

    assert graph["height"] - canvas["height"] <= 4
    assert graph["width"] > width - 40 < table["width"] + 0.5
    assert 800 < table["y"] + table["height"] <= 900


def test_a_short_table_ends_after_its_rows(open_page: Any) -> None:
    opened = open_page(page(), viewport={"width": 1200, "height": 900})
    table, facts = (
        opened.page.locator(each).bounding_box() for each in ("#table-scroll", ".facts-fold")
    )

    assert table["height"] < 120
    assert facts["y"] - table["y"] - table["height"] < 60


def test_a_zoomed_graph_moves_nothing_below_it(open_page: Any) -> None:
    opened = open_page(page())
    before = opened.page.locator("#table-scroll").bounding_box()
    opened.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        opened.page.keyboard.press(key)
    opened.flame("drawn")

    assert opened.page.locator("#table-scroll").bounding_box() == before


def test_a_deep_graph_leaves_room_for_the_table(open_page: Any) -> None:
    builder = ProfileBuilder()
    row = 0
    for level in range(300):
        row = builder.add(row, f"level {level}", FrameKind.SCOPE)
    for number in range(40):
        metrics = {"time (ns)": 5, "count": 1}
        builder.add(row, f"k{number}", FrameKind.KERNEL, metrics=metrics)
    deep = profile_page(Run(builder.build(), "deep.proton"))
    opened = open_page(deep, viewport={"width": 1200, "height": 900})

    assert opened.page.locator("#flame").bounding_box()["height"] <= 0.56 * 900
    assert opened.page.locator("#table-scroll").bounding_box()["height"] >= 200


LONG = "autograd::engine::evaluate_function: {}Backward0"


@pytest.mark.parametrize("width", [1200, 1900])
def test_every_column_and_every_name_can_be_read(open_page: Any, width: int) -> None:
    builder = ProfileBuilder()
    for at, name in enumerate(("NativeLayerNorm", "NativeBatchNorm", "LogSoftmax")):
        metrics = {"time (ns)": 4e6 + at, "count": 700, "bytes": 3e9, "flops32": 2e12}
        row = builder.add(0, LONG.format(name), FrameKind.OP, metrics=metrics)
        builder.set_distribution(row, "time (ns)", Distribution.from_samples([4000.0 + at] * 700))
    names = [LONG.format(name) for name in ("LogSoftmax", "NativeBatchNorm", "NativeLayerNorm")]
    html = profile_page(Run(builder.build(), "cpu.proton"))
    opened = open_page(html, viewport={"width": width, "height": 900})

    cells = opened.page.evaluate(
        """() => [...document.querySelectorAll('#kernels thead button, #kernels tbody .link')].map(
            (each) => [each.textContent, each.scrollWidth <= each.clientWidth,
                       each.getBoundingClientRect().right])"""
    )
    assert [text for text, *_ in cells[-3:]] == names
    assert all(is_whole for _, is_whole, _ in cells)
    assert max(right for *_, right in cells) <= width
    assert (
        opened.page.evaluate(
            "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
            "(document.querySelector('#table-scroll'))"
        )
        <= 0
    )


def test_a_name_without_room_keeps_both_of_its_ends(open_page: Any) -> None:
    builder = ProfileBuilder()
    for end in ("float", "double"):
        name = f"kernel_{'int_' * 90}{end}"  # no declaration, which would be shown shorter
        builder.add(0, name, FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    opened = open_page(profile_page(Run(builder.build(), "x.proton")))

    shown = opened.page.locator("#kernels tbody .link").all_inner_texts()
    assert all(text.startswith("kernel_int_") for text in shown)
    assert {text.rpartition("_")[2] for text in shown} == {"float", "double"}
    assert all("…" in text for text in shown)


def test_the_answer_and_why_come_first(open_page: Any) -> None:
    opened = open_page(page())
    reasons = opened.page.locator(".reasons")

    assert "kernel_3" in reasons.inner_text()
    assert reasons.bounding_box()["y"] < opened.page.locator("#flame").bounding_box()["y"]
    reasons.get_by_role("button").first.click()
    assert "75.0 % of all" in opened.page.locator("#flame-found").inner_text()


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
    for _ in range(20):
        opened.page.keyboard.press("Tab")
        reached.append(
            opened.page.evaluate("(({activeElement: at}) => at.id || at.textContent)(document)")
        )

    first = reached.index("view-flame")  # after the rows that cost most
    assert reached[0] == "theme"
    assert reached[first : first + 3] == ["view-flame", "view-sandwich", "view-table"]
    assert reached[first + 3 : first + 7] == ["flame-search", "metric", "ROOT", "flame"]
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
    opened = open_page(profile_page(Run(ProfileBuilder().build(), "empty.proton")))

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


def test_on_a_phone_names_leave_room_for_figures(open_page: Any) -> None:
    opened = open_page(page(), viewport={"width": 400, "height": 800})
    name = opened.page.locator("#kernels thead th").first.bounding_box()

    assert name["width"] <= 200
