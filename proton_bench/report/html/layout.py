"""Widths and order of the rows of a flame graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.view.tree import renumbered
from proton_bench.model.preorder import depths, positions

__all__ = ["Arrangement", "arranged", "row_widths"]

Rows = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Rows in pre-order, the widest of siblings first.

    Attributes:
        order: The rows.
        parents: The place of each one's parent in ``order``, -1 for the root.
    """

    order: npt.NDArray[np.int64]
    parents: list[int]


def arranged(parents: Rows, widths: npt.NDArray[np.float64], limit: int) -> Arrangement:
    """Return the widest rows in the order of the page.

    Args:
        parents: Row of each row's parent, -1 for the root.
        widths: Result of `row_widths`.
        limit: How many rows to keep; rows below a left-out row are left out too.
    """
    rows = np.arange(len(widths))
    # A parent is at least as wide as its rows and comes before them, so it is never left out.
    kept = np.sort(np.lexsort((rows, -widths))[:limit])
    inner = renumbered(parents, np.isin(rows, kept))
    by_level = np.lexsort((-widths[kept], depths(inner)))
    ranks = np.empty(len(kept), dtype=np.int64)
    ranks[by_level] = np.arange(len(kept))
    above = _looked_up(ranks, inner[by_level])
    places = positions(above)
    order = np.empty(len(kept), dtype=np.int64)
    order[places] = kept[by_level]
    final = np.empty(len(kept), dtype=np.int64)
    final[places] = _looked_up(places, above)
    return Arrangement(order, final.tolist())


def _looked_up(numbers: Rows, above: Rows) -> npt.NDArray[np.int32]:
    """Return the number of each parent, -1 for that of the root."""
    return np.where(above >= 0, numbers[above], -1).astype("<i4")


def row_widths(parents: Rows, sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the size of each row, or that of all rows below it if that is more."""
    found = np.where(np.isfinite(sizes), np.maximum(sizes, 0.0), 0.0).tolist()
    below = [0.0] * len(found)
    above = parents.tolist()
    for row in range(len(found) - 1, -1, -1):
        found[row] = max(found[row], below[row])
        if row:
            below[above[row]] += found[row]
    return np.array(found)
