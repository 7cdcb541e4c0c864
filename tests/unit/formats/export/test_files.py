from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.export.json_file import JsonFile
from proton_bench.formats.export.table_files import csv_line
from proton_bench.support.text import visible


def bare(cell: str) -> str:
    """Return a cell without the mark that keeps a spreadsheet from computing it."""
    return cell.removeprefix("'")


@given(st.lists(st.lists(st.text(), min_size=1, max_size=4), max_size=5))
def test_cells_come_back_as_they_are_shown(lines: list[list[str]]) -> None:
    text = "".join(map(csv_line, lines))

    found = list(csv.reader(io.StringIO(text, newline="")))
    assert [[bare(cell) for cell in cells] for cells in found] == [
        [bare(visible(cell)) for cell in cells] for cells in lines
    ]


def test_plain_cells_stay_plain() -> None:
    assert csv_line(["a", "1", ""]) == "a,1,\n"
    assert csv_line(['say "so"', "a,b", "::a::"]) == '"say ""so""","a,b","::a::"\n'


@pytest.mark.parametrize(
    "formula", ['=HYPERLINK("u")', "+1+1", "-2+3", "@SUM(1)", "\uff1d1+1", "--1"]
)
def test_a_spreadsheet_computes_no_name(formula: str) -> None:
    (cells,) = csv.reader([csv_line([formula, "x"])])

    assert cells == [f"'{formula}", "x"]


@pytest.mark.parametrize("number", ["-1", "+2.5", "-1e-09", "-inf", "-0.25", "-nan"])
def test_numbers_stay_numbers(number: str) -> None:
    assert csv_line([number]) == f"{number}\n"


@pytest.mark.parametrize(
    "text", ['{"cells": [], "nbformat": 4}', "{}", '{"schema": 7}', "[3]", "7", '"a"', "null"]
)
def test_json_of_another_tool_is_not_called_damaged(text: str) -> None:
    with pytest.raises(ProfileFormatError, match=r"is of no known tool .*; name a profile$"):
        JsonFile().decode(text.encode(), "other.json")


@pytest.mark.parametrize(
    "text", ['{"schema": "proton_bench.profile.json", "ver', "[3", "", "{'a'}"]
)
def test_what_is_no_json_is_damaged(text: str) -> None:
    with pytest.raises(ProfileFormatError, match="damaged; write it again"):
        JsonFile().decode(text.encode(), "other.json")
