from __future__ import annotations

import pytest

from proton_bench.report.words.columns import LEAST_NAME, Column, fitting_columns

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
        (27 + LEAST_NAME, ["verdict", "change"]),
        (20 + LEAST_NAME, ["verdict", "change"]),
        (11 + LEAST_NAME, ["verdict"]),
        (1, ["verdict"]),
    ],
)
def test_columns_go_by_their_worth_until_a_name_has_room(room: int, titles: list[str]) -> None:
    assert [column.title for column in fitting_columns(COLUMNS, room)] == titles


def test_units_go_from_headings_before_columns_do() -> None:
    times = [Column(title, ("1.000",), 1, "us") for title in ("base", "new", "change")]
    wide = sum(column.width + 2 for column in times) + LEAST_NAME

    shown = [
        [column.heading for column in fitting_columns(times, room)] for room in (wide, wide - 1)
    ]

    assert shown == [["base (us)", "new (us)", "change (us)"], ["base (us)", "new", "change"]]
