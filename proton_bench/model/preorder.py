"""Walks over parent arrays: array operations if they are faster, else plain linear loops."""

from __future__ import annotations

import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.model.arrays import Array, Floats, Indexes

_ROUNDS = 6


def subtree_ends(parents: Indexes) -> Indexes:
    """Return for each row the row after its last descendant.

    Raises:
        ProfileFormatError: Row 0 is not the only root, or rows are not in pre-order.
    """
    rows = np.arange(len(parents), dtype=np.int32)
    above = parents[1:]
    if not len(parents) or parents[0] != -1:
        raise ProfileFormatError("row 0 is not the root")
    if bool((above < 0).any() | (above >= rows[1:]).any()):
        raise ProfileFormatError("a row is before its parent or has none")
    ends = rows + _sizes(parents)
    # Nested intervals as long as their subtrees are contiguous: that is pre-order.
    if bool((ends[1:] > ends[above]).any()):
        raise ProfileFormatError("rows are not in pre-order")
    return ends


def _sizes(parents: Indexes) -> Indexes:
    sizes = [1] * len(parents)
    above = parents.tolist()
    for row in range(len(above) - 1, 0, -1):
        sizes[above[row]] += sizes[row]
    return np.array(sizes, dtype=np.int32)


def positions(parents: Indexes) -> Indexes:
    """Return the pre-order position of each row; children keep the order of their rows.

    Row 0 must be the root and every parent must come before its children.
    """
    sizes = _sizes(parents)
    ends = np.arange(len(parents), dtype=np.int32) + sizes
    if bool((ends[1:] <= ends[parents[1:]]).all()):
        return np.arange(len(parents), dtype=np.int32)
    return _positions(parents.tolist(), sizes.tolist())


def _positions(above: list[int], sizes: list[int]) -> Indexes:
    places = [0] * len(above)
    free = [1] * len(above)
    for row in range(1, len(above)):
        parent = above[row]
        places[row] = place = free[parent]
        free[parent] = place + sizes[row]
        free[row] = place + 1
    return np.array(places, dtype=np.int32)


def depths(parents: Indexes) -> Indexes:
    """Return for each row the number of rows above it.

    Every parent comes before its children; roots, of which there may be several, have parent -1.
    """
    has_parent = parents >= 0
    found = has_parent.astype(np.int32)
    above = np.where(has_parent, parents, np.arange(len(parents)))
    # Each round doubles how far up a row looks; deep trees are faster row by row.
    for _ in range(_ROUNDS):
        further = found[above]
        if not bool(further.any()):
            return found
        found += further
        above = above[above]
    return _depths(parents.tolist())


def _depths(above: list[int]) -> Indexes:
    found = [0] * len(above)
    for row, parent in enumerate(above):
        if parent >= 0:
            found[row] = found[parent] + 1
    return np.array(found, dtype=np.int32)


def sums(parents: Indexes, values: Array) -> Floats:
    """Return each row's value plus those of all its descendants.

    Adds child by child, because differences of one running sum would lose small values.
    """
    totals = values.tolist()
    above = parents.tolist()
    for row in range(len(above) - 1, 0, -1):
        totals[above[row]] += totals[row]
    return np.array(totals, dtype=np.float64)
