from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.report.html.flame import arranged, row_widths

SIZES = st.one_of(st.just(0.0), st.floats(allow_nan=True, width=32), st.integers(0, 50).map(float))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Return the parents of rows in pre-order, and a size of each."""
    parents = [-1]
    above = [0]
    for row in range(1, draw(st.integers(1, 40))):
        del above[draw(st.integers(1, len(above))) :]
        parents.append(above[-1])
        above.append(row)
    return parents, [draw(SIZES) for _ in parents]


@given(trees(), st.integers(1, 50))
def test_rows_keep_their_parents_and_stand_by_width(
    tree: tuple[list[int], list[float]], limit: int
) -> None:
    parents, sizes = tree
    widths = row_widths(np.array(parents), np.array(sizes))

    found = arranged(np.array(parents), widths, limit)

    order = found.order.tolist()
    assert len(order) == len(set(order)) == min(limit, len(parents))
    assert order[0] == 0
    last: dict[int, float] = {}
    for place, (row, above) in enumerate(zip(order, found.parents, strict=True)):
        assert above < place
        assert (order[above] if above >= 0 else -1) == parents[row]
        assert widths[row] <= last.get(above, np.inf)
        last[above] = widths[row]


def test_row_is_as_wide_as_what_is_below_it() -> None:
    parents, sizes = np.array([-1, 0, 1, 1, 0]), np.array([0.0, 3.0, 2.0, 2.0, -7.0])

    assert row_widths(parents, sizes).tolist() == [4.0, 4.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("value", [np.nan, -np.inf, -1.0])
def test_what_is_not_a_size_has_no_width(value: float) -> None:
    assert row_widths(np.array([-1]), np.array([value])).tolist() == [0.0]


def test_equal_rows_keep_their_order() -> None:
    parents = np.array([-1, 0, 0, 0])

    assert arranged(parents, np.array([3.0, 1.0, 1.0, 1.0]), 9).order.tolist() == [0, 1, 2, 3]
