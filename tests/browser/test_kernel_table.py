"""The kernel table with pointer and keyboard, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.runs import run_of

from proton_bench.report.html.document import comparison_page, profile_page

pytestmark = pytest.mark.browser

# The scope's name holds that of a kernel, which is looked up as a whole.
KERNELS = (("sb/b", 300, 1, ""), ("sb/a", 200, 4, ""), ("t/c", 100, 2, ""))


@pytest.fixture
def table(open_page: Any) -> Any:
    return open_page(profile_page(run_of(*KERNELS)))


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
    table.page.fill("#flame-search", "B")

    assert table.names() == ["b"]
    assert table.page.locator("#table-count").inner_text() == "1 of 3"


def chosen(opened: Any) -> list[str]:
    """Return the names of the marked rows of the table."""
    return opened.page.locator("#kernels tr[aria-selected] th").all_inner_texts()


def test_name_is_looked_up_in_the_flame_graph(table: Any) -> None:
    table.page.locator("#kernels tbody button", has_text="b").click()

    assert table.page.locator("#flame-found").inner_text() == "1 found, 50.0 % of all"
    assert (table.selected(), chosen(table)) == ("b", ["b"])

    table.page.locator("#kernels tbody button", has_text="b").click()

    assert (table.page.locator("#flame-found").inner_text(), chosen(table)) == ("", [])


def test_selected_row_of_the_flame_graph_is_marked_in_the_table(table: Any) -> None:
    table.page.focus("#flame")
    for key in ("ArrowDown", "ArrowDown"):
        table.page.keyboard.press(key)

    assert table.selected() == "b"
    assert chosen(table) == ["b"]


def test_arrows_go_from_name_to_name(table: Any) -> None:
    table.page.focus("#kernels tbody button")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        table.page.keyboard.press(key)

    assert chosen(table) == ["a"]


def test_only_rows_in_sight_are_built(open_page: Any) -> None:
    many = [(f"s/kernel {row:04}", 10_000 - row, 1, "") for row in range(2500)]
    opened = open_page(profile_page(run_of(*many)))
    first = opened.names()
    opened.page.evaluate(
        "(box => { box.scrollTop = box.scrollHeight })(document.getElementById('table-scroll'))"
    )
    opened.page.wait_for_selector("#kernels th:has-text('kernel 2499')")

    assert first[0] == "kernel 0000"
    assert 0 < len(first) < 200
    assert 0 < len(opened.names()) < 200
    assert opened.page.locator("#kernels").get_attribute("aria-rowcount") == "2501"


def test_all_names_are_listed_with_what_is_their_own(open_page: Any) -> None:
    opened = open_page(profile_page(run_of(*KERNELS)))
    opened.page.select_option("#table-of", "names")

    rows = [row.inner_text().split() for row in opened.page.locator("tr[data-place]").all()]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        *(("sb", "500", "0"), ("b", "300", "300"), ("a", "200", "200")),
        *(("t", "100", "0"), ("c", "100", "100")),
    ]


def test_columns_have_one_unit(table: Any) -> None:
    cells = table.page.locator("#kernels tr[data-place] td:nth-child(2)").all_inner_texts()

    assert heading(table, "time").inner_text() == "time (ns)"
    assert cells == ["300", "200", "100"]


def test_changes_are_sorted_by_size_and_have_a_sign(open_page: Any) -> None:
    base = run_of(("s/a", 1000, 1, ""), ("s/b", 1000, 1, ""), source="base.proton")
    new = run_of(("s/a", 1100, 1, ""), ("s/b", 500, 1, ""), source="new.proton")
    opened = open_page(comparison_page([base], [new]))
    column = opened.page.locator("#kernels tr[data-place] td:nth-child(4)")

    assert opened.names() == ["b", "a"]
    assert column.all_inner_texts() == ["-0.500", "+0.100"]
    assert [cell.get_attribute("class") for cell in column.all()] == [
        "figure better",
        "figure worse",
    ]


def test_both_sides_and_the_change_are_in_one_unit(open_page: Any) -> None:
    base = run_of(("s/a", 900_000, 1, ""), ("s/b", 1_200, 1, ""), source="base.proton")
    new = run_of(("s/a", 1_100_000, 1, ""), ("s/b", 1_234, 1, ""), source="new.proton")
    opened = open_page(comparison_page([base], [new]))

    headings = opened.page.locator("#kernels thead button").all_inner_texts()
    rows = [
        row.inner_text().split() for row in opened.page.locator("#kernels tr[data-place]").all()
    ]

    assert headings[1:4] == ["new (ms)", "base (ms)", "change (ms)"]
    assert [row[1:4] for row in rows] == [
        ["1.100", "0.900", "+0.200"],
        ["0.001", "0.001", "+<0.001"],
    ]
