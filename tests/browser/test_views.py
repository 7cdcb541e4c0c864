"""Views of a page: folded libraries, the sandwich, devices over time, and its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.runs import run_of

from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.report.html.document import profile_page, read_asset
from proton_bench.report.html.strip import read_strip

pytestmark = pytest.mark.browser

OWN, CALLED = "/home/me/model.py:3@forward", "/venv/site-packages/torch/module.py:9@_call_impl"
TIMELINE = Path(__file__).parents[1] / "data" / "golden" / "timeline.pftrace"


# Two ways through a library to kernels of one name.
@pytest.fixture
def layered(open_page: Any) -> Any:
    builder = ProfileBuilder()
    own = builder.add(0, OWN, FrameKind.PYTHON)
    for line, time_ns in ((9, 300), (10, 100)):
        frame = builder.add(own, CALLED.replace("9@", f"{line}@"), FrameKind.PYTHON)
        metrics = {"time (ns)": time_ns, "count": 1}
        builder.add(frame, "gemm", FrameKind.KERNEL, metrics=metrics)
    return open_page(profile_page(Run(builder.build(), "x.proton")))


def walked(opened: Any, *keys: str) -> list[str]:
    """Return what is selected after each key in the flame graph."""
    opened.page.focus("#flame")
    found = []
    for key in keys:
        opened.page.keyboard.press(key)
        found.append(opened.selected())
    return found


def address(opened: Any) -> str:
    return opened.page.evaluate("location.hash")


def test_frames_of_libraries_are_folded_and_what_they_called_is_merged(layered: Any) -> None:
    folded = walked(layered, "ArrowDown", "ArrowDown", "ArrowRight")
    details = layered.page.locator("#flame-details").inner_text()
    layered.page.check("#libraries")
    whole = walked(layered, "Home", "ArrowDown", "ArrowDown", "ArrowRight")

    assert folded == ["model.py:3 forward", "gemm", "gemm"]
    assert "time 400 ns" in details
    assert whole == [
        "ROOT",
        "model.py:3 forward",
        *(f"torch/module.py:{line} _call_impl" for line in (9, 10)),
    ]


def test_switch_for_libraries_is_there_only_where_they_are(open_page: Any, layered: Any) -> None:
    without = open_page(profile_page(run_of(("s/a", 10, 1, ""))))

    assert layered.page.locator("#libraries").is_visible()
    assert not without.page.locator("#libraries").is_visible()


def test_selected_row_stays_when_libraries_are_shown(layered: Any) -> None:
    walked(layered, "ArrowDown")
    layered.page.keyboard.press("l")

    assert layered.page.locator("#libraries").is_checked()
    assert walked(layered, "ArrowLeft") == ["model.py:3 forward"]


def test_sandwich_shows_callers_and_callees_over_all_paths(open_page: Any) -> None:
    opened = open_page(profile_page(Run(training_profile(), "x.proton")))
    opened.page.locator("#kernels tbody button", has_text="kernel_3").click()
    opened.page.click("#view-sandwich")
    opened.page.focus("#sandwich-callers")
    said = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown"):
        opened.page.keyboard.press(key)
        said.append(opened.page.locator("#flame-details .name").inner_text())

    assert "2 call paths, 75.0 % of all" in opened.page.locator("#sandwich-title").inner_text()
    assert said == ["model.py:7 backward", "backward", "model.py:7 backward"]


def test_sandwich_of_the_selected_row_is_opened_by_a_key(open_page: Any) -> None:
    opened = open_page(profile_page(Run(training_profile(), "x.proton")))
    walked(opened, "ArrowDown", "ArrowDown", "s")
    opened.page.focus("#sandwich-callees")
    opened.page.keyboard.press("ArrowDown")

    assert opened.page.locator("#sandwich-title .name").inner_text() == "backward"
    assert opened.page.locator("#flame-details .name").inner_text() == "model.py:7 backward"


@pytest.mark.parametrize("steps", [("ArrowDown",), ("ArrowDown", "ArrowDown")])
def test_the_button_opens_the_sandwich_of_the_selected_row(
    layered: Any, steps: tuple[str, ...]
) -> None:
    layered.page.check("#libraries")
    selected = walked(layered, *steps)[-1]
    layered.page.click("#view-sandwich")

    title = layered.page.locator("#sandwich-title").inner_text()
    assert selected.split(",")[0] in title


def test_a_name_chosen_in_the_table_is_the_selected_row_of_the_sandwich(layered: Any) -> None:
    walked(layered, "ArrowDown")
    layered.page.click("#view-table")
    layered.page.locator("#kernels tbody .link", has_text="gemm").click()
    layered.page.click("#view-sandwich")

    assert layered.page.locator("#sandwich-title").inner_text().startswith("gemm 1 call path")


def test_recursion_is_counted_once(open_page: Any) -> None:
    builder = ProfileBuilder()
    outer = builder.add(0, "f", FrameKind.SCOPE)
    inner = builder.add(outer, "f", FrameKind.SCOPE)
    builder.add(inner, "k", FrameKind.KERNEL, metrics={"time (ns)": 100, "count": 1})
    opened = open_page(profile_page(Run(builder.build(), "x.proton")))
    opened.page.select_option("#table-of", "names")
    opened.page.locator("#kernels tbody button", has_text="f").click()
    opened.page.click("#view-sandwich")

    assert "1 call path, 100.0 % of all" in opened.page.locator("#sandwich-title").inner_text()


def test_address_shows_the_same_again(layered: Any) -> None:
    layered.page.check("#libraries")
    layered.page.select_option("#metric", "count")
    layered.page.fill("#flame-search", "ge mm&#")
    walked(layered, "ArrowDown", "ArrowDown", "Enter")
    kept = address(layered)
    layered.page.goto("about:blank")
    layered.page.goto(layered.address + kept)
    layered.page.wait_for_selector("html[data-ready=yes]")

    assert layered.flame("zoom") == 2
    assert layered.page.locator("#libraries").is_checked()
    assert layered.page.locator("#metric").input_value() == "count"
    assert layered.page.locator("#flame-search").input_value() == "ge mm&#"
    assert address(layered) == kept
    layered.requests[1:] = []


@pytest.mark.parametrize(
    "fragment",
    [
        "#zoom=999999999&metric=no",
        "#zoom=-1&view=__proto__",
        "#name=<img src=x>",
        "#%E0%A4%A",
        "#=&&",
    ],
)
def test_address_that_cannot_be_is_the_beginning(layered: Any, fragment: str) -> None:
    layered.page.evaluate("fragment => { location.hash = fragment }", fragment)
    layered.flame("drawn")

    assert layered.flame("zoom") == 0
    assert layered.page.locator("#view-flame").get_attribute("aria-pressed") == "true"
    assert layered.page.locator("img").count() == 0


def test_widths_follow_the_metric(layered: Any) -> None:
    layered.page.fill("#flame-search", "gemm")
    walked(layered, "ArrowDown", "ArrowDown")
    layered.page.select_option("#metric", "count")

    assert layered.page.locator("#flame-details").inner_text().count("100.0 % of all count") == 1
    assert address(layered) == "#metric=count&search=gemm"


def test_devices_over_time_are_read_by_keyboard_and_pointer(open_page: Any) -> None:
    run = Run(read_profile(TIMELINE), "x.pftrace")
    opened = open_page(profile_page(run, strip=read_strip(TIMELINE)))
    whole = opened.page.locator("#strip-text").inner_text()
    opened.page.focus("#strip")
    opened.page.keyboard.press("ArrowRight")
    first = opened.page.locator("#strip").get_attribute("aria-valuetext")
    opened.page.locator("#strip-canvas").hover(position={"x": 3, "y": 5})

    assert whole == "rank 3 GPU:0 busy 37.8 % of 2.100 us"
    assert first is not None
    assert "rank 3 GPU:0 busy 0.00 %" in first
    assert first.endswith("step")
    assert "step" in opened.page.locator("#tip").inner_text()


def test_without_a_timeline_there_is_no_strip(layered: Any) -> None:
    assert layered.page.locator("#strip").count() == 0


def test_labels_of_inner_layers_are_relative(chromium: Any) -> None:
    page = chromium.new_page()
    page.add_script_tag(content=f"{read_asset('labels.js')}; window.labelsOf = labelsOf;")
    labels = page.evaluate(
        """() => [
            labelsOf('h.3.attn (Attention)', 'layer', 'h.3 (Block)'),
            labelsOf('h.30 (Block)', 'layer', 'h.3 (Block)'),
            labelsOf('void at::add<float>(int)', 'kernel', ''),
            labelsOf('/a/b/model.py:3@forward', 'python', ''),
        ]"""
    )
    page.close()

    assert labels == [
        ["h.3.attn (Attention)", "attn (Attention)", "attn"],
        ["h.30 (Block)", "h.30", "h.30"],
        ["void at::add<float>(int)", "void at::add"],
        ["forward (b/model.py:3)", "forward (model.py:3)", "forward"],
    ]
