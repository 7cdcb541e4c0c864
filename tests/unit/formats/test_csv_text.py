from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from proton_bench.formats.csv_text import csv_line
from proton_bench.text import visible


@given(st.lists(st.lists(st.text(), min_size=1, max_size=4), max_size=5))
def test_cells_come_back_as_they_are_shown(lines: list[list[str]]) -> None:
    text = "".join(map(csv_line, lines))

    shown = [[visible(cell) for cell in cells] for cells in lines]
    assert list(csv.reader(io.StringIO(text, newline=""))) == shown


def test_plain_cells_stay_plain() -> None:
    assert csv_line(["a", "1", ""]) == "a,1,\n"
    assert csv_line(['say "so"', "a,b", "::a::"]) == '"say ""so""","a,b","::a::"\n'
