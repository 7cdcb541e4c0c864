"""The kernel table with pointer and keyboard, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.runs import run_of

from proton_bench.report.html.document import PageOptions, comparison_page, profile_page

pytestmark = pytest.mark.browser

# The scope's name holds that of a kernel, which is looked up as a whole.
KERNELS = (("sb/b", 300, 1, ""), ("sb/a", 200, 4, ""), ("t/c", 100, 2, ""))


@pytest.fixture
def table(open_page: Any) -> Any:
    return open_page(profile_page(run_of(*KERNELS), PageOptions()))


def heading(opened: Any, title: str) -> Any:
    return opened.page.locator("#kernels thead button", has_text=title).first


def test_largest_comes_first(table: Any) -> None:
    assert table.names() == ["b", "a", "c"]


def test_click_sorts_and_a_second_one_turns_it_round(table: Any) -> None:
    orders = []
    for _ in range(2):
        heading(table, "count").click()
        orders.append(table.names())

    assert orders == [["a", "c", "b"], ["b", "c", "a"]]


def test_names_are_sorted_by_keyboard(table: Any) -> None:
    heading(table, "name").focus()
    table.page.keyboard.press("Enter")
    rising = table.names(), table.page.locator("th[aria-sort=ascending]").inner_text()
    table.page.keyboard.press("Space")

    assert rising == (["a", "b", "c"], "name")
    assert table.names() == ["c", "b", "a"]
    assert table.page.locator("th[aria-sort=descending]").inner_text() == "name"
    assert table.page.locator("th[aria-sort]").count() == 1


def test_filter_keeps_what_holds_the_text(table: Any) -> None:
    table.page.fill("#kernels-filter", "B")

    assert table.names() == ["b"]
    assert table.page.locator("#kernels-count").inner_text() == "1 of 3"


def test_name_is_looked_up_in_the_flame_graph(table: Any) -> None:
    table.page.locator("#kernels tbody button", has_text="b").click()

    assert table.page.locator("#flame-search").input_value() == "b"
    assert table.page.locator("#flame-found").inner_text() == "1 found, 50.0 % of all"
    assert table.selected() == "b"


def test_rows_are_shown_a_page_at_a_time(open_page: Any) -> None:
    many = [(f"s/kernel {row:03}", 1000 - row, 1, "") for row in range(250)]
    opened = open_page(profile_page(run_of(*many), PageOptions()))
    before = len(opened.names())
    opened.page.locator("#kernels-more").click()

    assert (before, len(opened.names())) == (100, 250)
    assert opened.page.locator("#kernels-more").is_hidden()


def test_columns_have_one_unit(table: Any) -> None:
    cells = table.page.locator("#kernels tbody tr td:nth-child(2)").all_inner_texts()

    assert heading(table, "time").inner_text() == "time (ns)"
    assert cells == ["300", "200", "100"]


def test_changes_are_sorted_by_size_and_have_a_sign(open_page: Any) -> None:
    base = run_of(("s/a", 1000, 1, ""), ("s/b", 1000, 1, ""), source="base.proton")
    new = run_of(("s/a", 1100, 1, ""), ("s/b", 500, 1, ""), source="new.proton")
    opened = open_page(comparison_page([base], [new], PageOptions()))
    column = opened.page.locator("#kernels tbody tr td:nth-child(4)")

    assert opened.names() == ["b", "a"]
    assert column.all_inner_texts() == ["-0.500", "+0.100"]
    assert [cell.get_attribute("class") for cell in column.all()] == [
        "figure better",
        "figure worse",
    ]


def test_both_sides_and_the_change_are_in_one_unit(open_page: Any) -> None:
    base = run_of(("s/a", 900_000, 1, ""), ("s/b", 1_200, 1, ""), source="base.proton")
    new = run_of(("s/a", 1_100_000, 1, ""), ("s/b", 1_234, 1, ""), source="new.proton")
    opened = open_page(comparison_page([base], [new], PageOptions()))

    headings = opened.page.locator("#kernels thead button").all_inner_texts()
    rows = [row.inner_text().split() for row in opened.page.locator("#kernels tbody tr").all()]

    assert headings[1:4] == ["new (ms)", "base (ms)", "change (ms)"]
    assert [row[1:4] for row in rows] == [
        ["1.100", "0.900", "+0.200"],
        ["0.0012", "0.0012", "+0.000034"],
    ]
