from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.compare.compare import Split, split

VALUES = st.integers(-(10**12), 10**12)
COUNTS = st.integers(0, 10**6)


def one(base: float, new: float, base_count: float, new_count: float) -> Split:
    arrays = [np.array([each]) for each in (base, new, base_count, new_count)]
    return split(arrays[0], arrays[1], base_count=arrays[2], new_count=arrays[3])


@pytest.mark.parametrize(
    ("base", "new", "parts"),
    [
        ((100, 10), (150, 15), (50, 0, 0)),
        ((100, 10), (150, 10), (0, 50, 0)),
        ((100, 10), (240, 12), (30, 110, 0)),
        ((0, 0), (70, 7), (70, 0, 0)),
        ((70, 7), (0, 0), (-70, 0, 0)),
        ((5, 0), (8, 0), (0, 0, 3)),
        ((0, 0), (0, 0), (0, 0, 0)),
    ],
)
def test_a_change_is_explained_by_launches_and_latency(
    base: tuple[int, int], new: tuple[int, int], parts: tuple[int, int, int]
) -> None:
    found = one(base[0], new[0], base[1], new[1])

    assert (found.launches[0], found.latency[0], found.rest[0]) == parts


@given(VALUES, VALUES, COUNTS, COUNTS)
def test_whole_parts_add_up_exactly_and_turn_with_the_sides(
    base: int, new: int, base_count: int, new_count: int
) -> None:
    there, back = one(base, new, base_count, new_count), one(new, base, new_count, base_count)

    assert there.launches.dtype == np.int64
    assert there.launches[0] + there.latency[0] + there.rest[0] == new - base
    assert there.launches[0] == -back.launches[0]
    assert there.latency[0] == -back.latency[0]


def test_parts_too_large_for_whole_numbers_are_rounded() -> None:
    found = one(0, 10**18, 10**6, 1)

    assert found.launches[0] == pytest.approx(-5e23, rel=1e-3)
    assert found.launches[0] + found.latency[0] == pytest.approx(10**18, abs=1e9)


def test_broken_numbers_add_up_too() -> None:
    found = one(0.1, 0.7, 3, 7)

    assert found.launches[0] + found.latency[0] == pytest.approx(0.6)
    assert found.rest[0] == 0
