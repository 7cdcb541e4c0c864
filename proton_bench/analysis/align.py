"""Laying two trees over each other by call path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.derive import MetricValues
from proton_bench.analysis.select import MetricTree
from proton_bench.errors import UsageError
from proton_bench.profile.frame import StringTable
from proton_bench.profile.preorder import positions

__all__ = ["Alignment", "align", "subtract"]

Rows = npt.NDArray[np.int32]
# Row of the parent in the union, name, device, and how many such siblings came before.
_Key = tuple[int, str, str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The union of two trees in pre-order.

    Attributes:
        parents: Row of each row's parent, -1 for the root.
        left: The row of the left tree, -1 where it has none.
        right: The row of the right tree, -1 where it has none.
    """

    parents: Rows
    left: Rows
    right: Rows


def align(left: MetricTree, right: MetricTree) -> Alignment:
    """Pair the rows with equal call path and device; roots always pair.

    Of several siblings with one name the first pairs with the first, and so on.
    """
    union: dict[_Key, int] = {}
    rows = [[row for _, row in _placed(tree, union)] for tree in (left, right)]
    parents = np.array([key[0] for key in union], dtype="<i4")
    places = positions(parents)
    ordered = np.empty(len(parents), dtype="<i4")
    ordered[places] = np.where(parents >= 0, places[parents], -1)
    sides = []
    for tree_rows in rows:
        side = np.full(len(parents), -1, dtype="<i4")
        side[places[tree_rows]] = np.arange(len(tree_rows))
        sides.append(side)
    return Alignment(ordered, sides[0], sides[1])


def _placed(tree: MetricTree, union: dict[_Key, int]) -> Iterator[tuple[_Key, int]]:
    seen: Counter[tuple[int, str, str]] = Counter()
    rows: list[int] = []
    for row, (parent, frame) in enumerate(
        zip(tree.parents.tolist(), tree.frames.tolist(), strict=True)
    ):
        if parent < 0:
            sibling = (-1, "", "")
        else:
            sibling = (rows[parent], tree.strings[frame], tree.devices[row])
        key = (*sibling, seen[sibling])
        seen[sibling] += 1
        rows.append(union.setdefault(key, len(union)))
        yield key, rows[-1]


def subtract(left: MetricTree, right: MetricTree) -> MetricTree:
    """Return left minus right; a row that one side lacks counts as 0 there, so nothing is lost.

    Raises:
        UsageError: The trees show different metrics.
    """
    names = [[metric.name for metric in tree.metrics] for tree in (left, right)]
    if names[0] != names[1]:
        raise UsageError(f"cannot subtract {', '.join(names[1])} from {', '.join(names[0])}")
    pairs = align(left, right)
    table = StringTable()
    frames, kinds, devices = [], [], []
    for first, second in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        tree, row = (left, first) if first >= 0 else (right, second)
        frames.append(table.index(tree.name(row)))
        kinds.append(tree.kinds[row])
        devices.append(tree.devices[row])
    return MetricTree(
        strings=table.texts(),
        parents=pairs.parents,
        frames=np.array(frames, dtype="<i4"),
        kinds=np.array(kinds, dtype="u1"),
        devices=tuple(devices),
        metrics=tuple(
            _difference(one, other, pairs)
            for one, other in zip(left.metrics, right.metrics, strict=True)
        ),
        cut=left.cut + right.cut,
    )


def _difference(left: MetricValues, right: MetricValues, pairs: Alignment) -> MetricValues:
    if not (left.is_number and right.is_number):
        raise UsageError(f"metric {left.name!r} is not a number, so it has no difference")
    one, one_valid = _spread(left, pairs.left)
    other, other_valid = _spread(right, pairs.right)
    return MetricValues(left.name, left.aggregation, one - other, one_valid | other_valid)


def _spread(
    metric: MetricValues, rows: Rows
) -> tuple[npt.NDArray[np.float64] | npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    valid = (rows >= 0) & metric.valid[rows]
    values = np.where(valid, metric.values[rows], 0)
    return values, valid
