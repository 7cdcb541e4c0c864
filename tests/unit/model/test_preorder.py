from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import ProfileFormatError
from proton_bench.model import preorder


def rows(*parents: int) -> np.ndarray:
    return np.array(parents, dtype="<i4")


def test_subtrees_end_after_their_last_descendant() -> None:
    assert preorder.subtree_ends(rows(-1, 0, 1, 1, 0)).tolist() == [5, 4, 3, 4, 5]


def test_depth_counts_rows_above() -> None:
    assert preorder.depths(rows(-1, 0, 1, 1, 0)).tolist() == [0, 1, 2, 2, 1]


@st.composite
def forests(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.integers(1, 60))
    return rows(*(draw(st.integers(max(-1, row - 3), row - 1)) for row in range(size)))


@given(parents=st.one_of(forests(), st.integers(1, 300).map(lambda n: np.arange(-1, n - 1))))
def test_depths_of_several_trees_and_of_chains_are_those_of_a_walk(parents: np.ndarray) -> None:
    walked: list[int] = []
    for parent in parents.tolist():
        walked.append(walked[parent] + 1 if parent >= 0 else 0)

    assert preorder.depths(parents.astype("<i4")).tolist() == walked


@pytest.mark.parametrize(
    ("parents", "places"),
    [
        ((-1, 0, 1, 1, 0), [0, 1, 2, 3, 4]),
        ((-1, 0, 0, 1, 2), [0, 1, 3, 2, 4]),
        ((-1,), [0]),
    ],
)
def test_rows_in_preorder_keep_their_places(parents: tuple[int, ...], places: list[int]) -> None:
    assert preorder.positions(rows(*parents)).tolist() == places


@pytest.mark.parametrize(
    "parents",
    [
        (),
        (0,),
        (1, -1),
        (-1, -1),
        (-1, 1),
        (-1, 2, 0),
        (-1, -2),
        (-1, 0, 0, 1),
        (-1, 0, 0, 1, 3),
        (-1, 2**31 - 1),
    ],
)
def test_other_orders_are_refused(parents: tuple[int, ...]) -> None:
    with pytest.raises(ProfileFormatError):
        preorder.subtree_ends(rows(*parents))


@st.composite
def any_order(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.integers(1, 30))
    return rows(-1, *(draw(st.integers(0, row - 1)) for row in range(1, size)))


@given(parents=any_order())
def test_positions_bring_rows_into_preorder(parents: np.ndarray) -> None:
    places = preorder.positions(parents)

    order = np.argsort(places)
    above = parents[order]
    sorted_parents = np.where(above >= 0, places[above], -1).astype("<i4")
    ends = preorder.subtree_ends(sorted_parents)
    assert ends[0] == len(parents)
    assert preorder.depths(sorted_parents).tolist() == preorder.depths(parents)[order].tolist()
    # Siblings keep their order.
    for row in range(1, len(parents)):
        younger = np.flatnonzero(parents == parents[row])
        assert np.all(np.diff(places[younger]) > 0)


@given(parents=any_order())
def test_sums_add_all_descendants(parents: np.ndarray) -> None:
    values = np.arange(1.0, len(parents) + 1)

    totals = preorder.sums(parents, values)

    assert totals[0] == values.sum()
    leaves = set(range(len(parents))) - set(parents.tolist())
    assert all(totals[leaf] == values[leaf] for leaf in leaves)
