"""The order of rows: siblings by a metric or by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.tree import MetricTree
from proton_bench.model.preorder import positions

__all__ = ["BY_NAME", "BY_SIZE", "FIRST_SEEN", "sorted_tree"]

# Orders besides a metric by name. By size is by the first metric that is shown.
BY_NAME = "name"
BY_SIZE = "size"
FIRST_SEEN = "first-seen"


def sorted_tree(tree: MetricTree, by: Sequence[MetricValues]) -> MetricTree:
    """Return the tree with siblings in order, equal ones as they were.

    Args:
        tree: The rows.
        by: Metrics of the rows, largest first and rows without a value last; texts rise. The second
            orders rows that are equal in the first. Without any, it is by name.
    """
    ranks = [_ranks(metric) for metric in by] or [_name_ranks(tree)]
    rows = np.arange(len(tree))
    level_order = np.lexsort(np.stack([rows, *reversed(ranks), tree.depths()]))
    numbers = np.empty(len(tree), dtype=np.int64)
    numbers[level_order] = rows
    above = tree.parents[level_order]
    places = positions(np.where(above >= 0, numbers[above], -1).astype("<i4"))
    order = np.empty(len(tree), dtype=np.int64)
    order[places] = level_order
    return tree.reordered(order)


def _name_ranks(tree: MetricTree) -> npt.NDArray[np.int64]:
    alphabetical = sorted(range(len(tree.strings)), key=lambda place: tree.strings[place])
    ranks = np.empty(len(tree.strings), dtype=np.int64)
    ranks[alphabetical] = np.arange(len(alphabetical))
    return ranks[tree.frames]


def _ranks(by: MetricValues) -> npt.NDArray[np.int64]:
    texts = by.values if by.is_number else np.array([str(value) for value in by.values])
    _, ranks = np.unique(texts, return_inverse=True)
    ranks = ranks.astype(np.int64)
    if by.is_number:
        known = by.valid & ~np.isnan(by.values.astype(np.float64))
        return np.where(known, -ranks, np.iinfo(np.int64).max)
    return np.where(by.valid, ranks, np.iinfo(np.int64).max)
