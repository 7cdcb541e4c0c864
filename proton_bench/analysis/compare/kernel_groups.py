"""Groups rows of a comparison into kernels, by their names on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.pairing import PairedTree

__all__ = ["kernel_labels"]

Rows = npt.NDArray[Any]


def kernel_labels(tree: PairedTree, rows: Rows) -> Rows:
    """Return a number of 0 or more for each row; rows of one kernel on one device share it.

    A kernel that was renamed everywhere is one kernel. If it was renamed only at some places, it is
    another one there, so values of one name never count for the other. Swapping the sides gives the
    same groups.

    Args:
        tree: The union of all runs.
        rows: Indexes of the rows to group; names of other rows do not matter.
    """
    old, new = (
        np.where(side.names >= 0, side.names.astype(np.int64) * _width(tree) + tree.devices, -1)
        for side in (tree.base, tree.new)
    )
    labels = np.where(new >= 0, new, old)
    renamed = rows[(old[rows] >= 0) & (new[rows] >= 0) & (old[rows] != new[rows])]
    if not len(renamed):
        return labels
    pairs, inverse = np.unique(
        np.stack([old[renamed], new[renamed]], axis=1), axis=0, return_inverse=True
    )
    inverse = inverse.reshape(-1)
    whole = _once(pairs[:, 0]) & ~np.isin(pairs[:, 0], new[rows])
    whole &= _once(pairs[:, 1]) & ~np.isin(pairs[:, 1], old[rows])
    apart = int(labels.max()) + 1 + inverse
    labels[renamed] = np.where(whole[inverse], pairs[inverse, 1], apart)
    gone = rows[(new[rows] < 0) & np.isin(old[rows], pairs[whole, 0])]
    labels[gone] = pairs[whole, 1][np.searchsorted(pairs[whole, 0], old[gone])]
    return labels


def _width(tree: PairedTree) -> int:
    return len(tree.device_names)


def _once(values: Rows) -> npt.NDArray[np.bool_]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: npt.NDArray[np.bool_] = counts[inverse.reshape(-1)] == 1
    return found
