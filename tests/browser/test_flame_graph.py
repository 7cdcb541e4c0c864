"""The flame graph with pointer and keyboard, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.profiles import deep_profile, training_profile
from fakes.runs import run_of

from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.report.html.document import comparison_page, profile_page

pytestmark = pytest.mark.browser


def training_page() -> str:
    return profile_page(Run(training_profile(), "train.proton"))


# Rows of the page: 0 ROOT, 1 test_step, 2 backward, 3 its frame, 4 kernel_3, 5 kernel_1,
# 6 forward, 7 its frame, 8 kernel_3, 9 kernel_1.
@pytest.fixture
def training(open_page: Any) -> Any:
    return open_page(training_page())


def test_arrows_walk_through_the_tree(training: Any) -> None:
    training.page.focus("#flame")
    walked = []
    for key in ("Down", "Down", "Right", "Down", "Down", "Right", "Left", "Left", "Up", "Home"):
        training.page.keyboard.press(key if key == "Home" else f"Arrow{key}")
        walked.append(training.selected())

    assert walked == [
        *("test_step", "backward", "forward", "model.py:3 forward"),
        *("kernel_3", "kernel_1", "kernel_3", "kernel_1", "model.py:7 backward", "ROOT"),
    ]


def test_enter_zooms_and_escape_goes_back(training: Any) -> None:
    training.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        training.page.keyboard.press(key)
    zoomed = training.flame("zoom"), training.page.locator("#flame-path button").all_inner_texts()

    training.page.keyboard.press("Escape")

    assert zoomed == (2, ["ROOT", "test_step", "backward"])
    assert (training.flame("zoom"), training.flame("selected")) == (0, 2)
    assert training.page.locator("#flame-out").is_disabled()


def test_arrows_stay_inside_of_the_zoom(training: Any) -> None:
    training.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "Enter", "ArrowUp", "ArrowRight", "ArrowLeft"):
        training.page.keyboard.press(key)

    assert (training.flame("zoom"), training.flame("selected")) == (2, 2)


def test_click_zooms_to_what_is_under_the_pointer(training: Any) -> None:
    training.page.locator("#flame canvas").click(
        position={"x": 100, "y": 50}
    )  # third row: backward
    first = training.flame("zoom")
    training.page.locator("#flame-path button").first.click()
    second = training.flame("zoom")
    training.page.locator("#flame canvas").click(position={"x": 100, "y": 50})
    training.page.locator("#flame-out").click()

    assert (first, second, training.flame("zoom")) == (2, 0, 0)


def test_what_is_under_the_pointer_is_described(training: Any) -> None:
    training.page.locator("#flame canvas").hover(position={"x": 1100, "y": 50})

    text = training.page.locator("#tip").inner_text()
    assert "forward" in text
    assert "time 1 ms" in text
    assert "25.0 % of all" in text


def test_slash_searches_and_enter_goes_from_one_to_the_next(training: Any) -> None:
    training.page.keyboard.press("/")
    training.page.keyboard.type("KERNEL_3")
    found = training.page.locator("#flame-found").inner_text()
    walked = []
    for key in ("Enter", "Enter", "Enter", "Shift+Enter"):
        training.page.keyboard.press(key)
        walked.append(training.flame("selected"))
    training.page.keyboard.press("Escape")

    assert found == "2 found, 75.0 % of all"
    assert walked == [4, 8, 4, 8]
    assert training.page.locator("#flame-search").input_value() == ""
    assert training.page.locator("#flame-found").inner_text() == ""
    assert training.page.evaluate("document.activeElement.id") == "flame"


def test_search_takes_metacharacters_as_they_are(open_page: Any) -> None:
    opened = open_page(profile_page(run_of(("s/a.*(b)[c]", 10, 1, ""), ("s/abc", 5, 1, ""))))

    opened.page.fill("#flame-search", ".*(b)[")

    assert opened.page.locator("#flame-found").inner_text() == "1 found, 66.7 % of all"


def test_nothing_found_is_said(training: Any) -> None:
    training.page.fill("#flame-search", "no such kernel")
    training.page.keyboard.press("Enter")

    assert training.page.locator("#flame-found").inner_text() == "0 found, 0.00 % of all"


def test_what_lies_outside_of_the_zoom_is_found_all_the_same(training: Any) -> None:
    training.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        training.page.keyboard.press(key)
    training.page.fill("#flame-search", "backward")
    training.page.keyboard.press("Enter")

    assert (training.flame("zoom"), training.flame("selected")) == (0, 2)


def test_tree_item_says_where_it_is(training: Any) -> None:
    training.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        training.page.keyboard.press(key)

    item = training.page.locator("[role=treeitem]:visible")
    said = [item.get_attribute(f"aria-{what}") for what in ("level", "posinset", "setsize")]
    assert said == ["3", "2", "2"]
    assert training.page.locator("#flame").get_attribute("role") == "tree"


def test_deep_tree_is_walked_and_zoomed(open_page: Any) -> None:
    opened = open_page(profile_page(Run(deep_profile(5000), "deep.proton")))
    opened.page.focus("#flame")
    for _ in range(60):
        opened.page.keyboard.press("ArrowDown")
    scrolled = opened.page.evaluate("document.getElementById('flame').scrollTop")
    opened.page.keyboard.press("Enter")

    assert scrolled > 0
    assert opened.selected() == "level 59"
    assert opened.page.locator("#flame-path li").all_inner_texts()[4] == "53 more"


def test_comparison_shows_what_is_new_and_gone(open_page: Any) -> None:
    base = run_of(("s/a", 1000, 10, "c"), ("s/gone", 500, 5, "x"), source="base.proton")
    new = run_of(("s/a", 1500, 10, "c"), ("s/fresh", 100, 1, "y"), source="new.proton")
    opened = open_page(comparison_page([base], [new]))
    opened.page.focus("#flame")
    said = []
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        opened.page.keyboard.press(key)
        said.append(opened.page.locator("#flame-details").inner_text())

    assert "change +0.500 us" in said[1]
    assert "REMOVED" in said[2]
    assert "NEW" in said[3]


def test_comparison_is_sized_by_either_side(open_page: Any) -> None:
    base = run_of(("s/a", 1000, 10, "c"), ("s/gone", 1000, 5, "x"), source="base.proton")
    new = run_of(("s/a", 1000, 10, "c"), source="new.proton")
    opened = open_page(comparison_page([base], [new]))
    opened.page.fill("#flame-search", "gone")
    shares = []
    for label in ("larger of both", "new", "base"):
        opened.page.select_option("#metric", label=label)
        shares.append(opened.page.locator("#flame-found").inner_text().split(", ")[1])

    assert shares == ["50.0 % of all", "0.00 % of all", "50.0 % of all"]


def test_fifty_thousand_rows_are_drawn_as_far_as_they_can_be_seen(open_page: Any) -> None:
    builder = ProfileBuilder()
    for row in range(1, 50_000):
        metrics = {"time (ns)": 1000 + row % 97, "count": 1}
        builder.add((row - 1) // 8, f"kernel_{row % 5000}", FrameKind.KERNEL, metrics=metrics)
    opened = open_page(profile_page(Run(builder.build(), "big.proton")))
    drawn = opened.flame("drawn")
    opened.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        opened.page.keyboard.press(key)

    assert 0 < drawn < 10_000
    assert opened.flame("zoom") == 3
    assert 0 < opened.flame("drawn") < 10_000
    assert 0 < len(opened.names()) < 200


def test_what_a_row_has_beyond_those_below_is_reported_in_the_same_unit(open_page: Any) -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE, metrics={"time (ns)": 3_000_000})
    builder.add(scope, "kernel", FrameKind.KERNEL, metrics={"time (ns)": 1_000_000})
    opened = open_page(profile_page(Run(builder.build(), "x.proton")))
    opened.page.focus("#flame")
    opened.page.keyboard.press("ArrowDown")

    text = opened.page.locator("#flame-details").inner_text()
    assert "time 4 ms" in text
    assert "3 ms of its own" in text


def test_zoom_ends_where_the_row_is_gone_on_the_chosen_side(open_page: Any) -> None:
    base = run_of(("s/a", 1000, 10, ""), ("s/gone", 1000, 5, ""), source="base.proton")
    new = run_of(("s/a", 1000, 10, ""), source="new.proton")
    opened = open_page(comparison_page([base], [new]))
    opened.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        opened.page.keyboard.press(key)
    zoomed = opened.flame("zoom")
    opened.page.select_option("#metric", label="new")

    assert (zoomed, opened.flame("zoom"), opened.flame("drawn")) == (3, 0, 3)


def test_circle_of_the_roofline_is_looked_up(open_page: Any) -> None:
    builder = ProfileBuilder()
    device = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)
    for name, flops in (("compute", 1e9), ("other", 1e6)):
        metrics = {"time (ns)": 1000, "count": 1, "flops16": flops, "bytes": 1e6}
        builder.add(0, name, FrameKind.KERNEL, metrics=metrics, device=device)
    opened = open_page(profile_page(Run(builder.build(), "x.proton")))
    opened.page.locator("circle.kernel[data-name=other]").click()

    assert opened.page.locator("#flame-found").inner_text() == "1 found, 50.0 % of all"
    assert opened.selected() == "other"


def chosen_circles(opened: Any) -> list[str]:
    circles = opened.page.locator("circle.kernel.chosen")
    return sorted(circles.evaluate_all("all => all.map(each => each.dataset.name)"))


def test_selected_rows_and_names_mark_their_circles(open_page: Any) -> None:
    builder = ProfileBuilder()
    device = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)
    metrics = {"time (ns)": 1000, "count": 1, "flops16": 1e9, "bytes": 1e6}
    for scope, names in (("forward", ("a", "b")), ("backward", ("c",))):
        above = builder.add(0, scope, FrameKind.SCOPE)
        for name in names:
            builder.add(above, name, FrameKind.KERNEL, metrics=metrics, device=device)
    opened = open_page(profile_page(Run(builder.build(), "x.proton")))
    at_first = chosen_circles(opened)

    opened.page.focus("#flame")
    walked = []
    for key in ("ArrowDown", "ArrowDown", "Home"):
        opened.page.keyboard.press(key)
        walked.append(chosen_circles(opened))
    opened.page.locator("circle.kernel[data-name=c]").click()
    clicked = chosen_circles(opened)
    opened.page.locator("#view-table").click()
    opened.page.locator("#kernels tbody th", has_text="b").click()

    assert at_first == []
    assert walked == [["a", "b"], ["a"], []]
    assert clicked == ["c"]
    assert chosen_circles(opened) == ["b"]
