"""Sums of values over groups of rows and over subtrees; whole numbers stay whole if they fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model import preorder

Values = npt.NDArray[Any]
Rows = npt.NDArray[np.int32]

_LARGEST = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class SubtreeSums:
    """Adds up values over the subtrees of one tree.

    Attributes:
        parents: Row of each row's parent, in pre-order.
        ends: For each row the row after its last descendant; derived.
    """

    parents: Rows
    ends: Rows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", preorder.subtree_ends(self.parents))

    def of(self, values: Values) -> Values:
        """Return each row's value plus those of all rows below it."""
        values = _counted(values)
        if values.dtype.kind != "i":
            return preorder.sums(self.parents, values)
        running = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        found: Values = running[self.ends] - running[:-1]
        return found


def grouped(values: Values, places: Rows, total: int) -> Values:
    """Return ``total`` sums, one for each group; flags are counted."""
    values = _counted(values)
    if values.dtype.kind != "i":
        return np.bincount(places, weights=values, minlength=total)
    found = np.zeros(total, dtype=np.int64)
    np.add.at(found, places, values)
    return found


def _counted(values: Values) -> Values:
    """Return whole numbers whose sums fit 64 bits, or floating-point numbers."""
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "i" and float(np.abs(values.astype("f8")).sum()) < _LARGEST:
        return values
    return values.astype(np.float64)
