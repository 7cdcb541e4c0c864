"""Aligns trees by call path, and subtracts one from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.select import MetricTree
from proton_bench.errors import UsageError
from proton_bench.model.arrays import Array, Floats, Indexes, Integers, Mask
from proton_bench.model.frame import StringTable
from proton_bench.model.preorder import positions
from proton_bench.model.regroup import number_paths


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTree:
    """A tree whose rows have numeric labels.

    Attributes:
        parents: Row of each row's parent, -1 for the root; every parent stands before its children.
        labels: Rows of two trees pair when their labels and their parents do; 0 or more.
        twins: The first sibling that a row is summed with, or itself.
    """

    parents: Indexes
    labels: Integers
    twins: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The union of several trees in pre-order.

    Attributes:
        parents: Row of each row's parent, -1 for the root.
        places: For each tree, the row of the union for each of its rows.
    """

    parents: Indexes
    places: tuple[Indexes, ...]


def align(trees: Sequence[LabelledTree]) -> Alignment:
    """Pair the rows with equal call path; roots always pair.

    Of several siblings with one label the first pairs with the first, and so on. Unmatched rows of
    a tree come after the siblings of earlier trees.
    """
    above = stacked_parents([tree.parents for tree in trees])
    labels = np.concatenate([tree.labels for tree in trees])
    nth = occurrences(above, labels, _stacked_twins(trees))
    if nth.any():
        labels = labels * (int(nth.max()) + 1) + nth
    if int(labels.max()) >= 2**62 // len(labels):
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    groups = number_paths(above, labels)
    _, heads = np.unique(groups, return_index=True)
    parents = np.where(above[heads] >= 0, groups[above[heads]], -1).astype("<i4")
    places = positions(parents)
    ordered = np.empty(len(parents), dtype="<i4")
    ordered[places] = np.where(parents >= 0, places[parents], -1)
    ends = np.cumsum([len(tree.parents) for tree in trees])[:-1]
    return Alignment(ordered, tuple(np.split(places[groups], ends)))


def stacked_parents(parents: Sequence[Indexes]) -> Indexes:
    """Return the parents of trees put one after the other; each root has parent -1."""
    starts = np.cumsum([0, *map(len, parents)])
    moved = [
        np.where(above >= 0, above + start, -1)
        for above, start in zip(parents, starts.tolist(), strict=False)
    ]
    return np.concatenate(moved).astype("<i4")


def _stacked_twins(trees: Sequence[LabelledTree]) -> Integers:
    start, found = 0, []
    for tree in trees:
        own = np.arange(len(tree.parents)) if tree.twins is None else tree.twins
        found.append(own.astype(np.int64) + start)
        start += len(own)
    return np.concatenate(found)


def occurrences(parents: Indexes, labels: Integers, twins: Integers) -> Integers:
    """Return for each row the number of siblings with its label before it; twins count once."""
    size = int(labels.max()) + 1
    if size >= 2**62 // len(labels):
        labels = np.unique(labels, return_inverse=True)[1].reshape(-1)
        size = int(labels.max()) + 1
    keys = parents * np.int64(size) + labels
    order = np.lexsort((twins, keys))
    key, twin = keys[order], twins[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (key[1:] != key[:-1]) | (parents[order][1:] < 0)
    steps = np.zeros(len(order), dtype=np.int64)
    steps[1:] = twin[1:] != twin[:-1]
    running = np.cumsum(steps)
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = running - running[starts]
    return found


def subtract(left: MetricTree, right: MetricTree) -> MetricTree:
    """Return left minus right; a row that one side lacks counts as 0, so nothing is lost.

    Rows pair by call path and device; of several siblings with one name the first pairs with the
    first, and so on.

    Raises:
        UsageError: The trees show different metrics.
    """
    names = [[metric.name for metric in tree.metrics] for tree in (left, right)]
    if names[0] != names[1]:
        raise UsageError(f"cannot subtract {', '.join(names[1])} from {', '.join(names[0])}")
    known: dict[tuple[str, str], int] = {}
    union = align([_labelled(tree, known) for tree in (left, right)])
    sides = [_sources(places, len(union.parents)) for places in union.places]
    table = StringTable()
    frames, kinds, devices = [], [], []
    for first, second in zip(sides[0].tolist(), sides[1].tolist(), strict=True):
        tree, row = (left, first) if first >= 0 else (right, second)
        frames.append(table.index(tree.name(row)))
        kinds.append(tree.kinds[row])
        devices.append(tree.devices[row])
    return MetricTree(
        strings=table.texts(),
        parents=union.parents,
        frames=np.array(frames, dtype="<i4"),
        kinds=np.array(kinds, dtype="u1"),
        devices=tuple(devices),
        metrics=tuple(
            _difference(one, other, sides)
            for one, other in zip(left.metrics, right.metrics, strict=True)
        ),
        cut=left.cut + right.cut,
    )


def _labelled(tree: MetricTree, known: dict[tuple[str, str], int]) -> LabelledTree:
    texts = [tree.strings[frame] for frame in tree.frames.tolist()]
    pairs = zip(texts, tree.devices, strict=True)
    labels = [known.setdefault(pair, len(known)) for pair in pairs]
    return LabelledTree(tree.parents, np.array(labels, dtype=np.int64))


def _sources(places: Indexes, total: int) -> Indexes:
    """Return for each row of the union its row in the tree, -1 for none."""
    found = np.full(total, -1, dtype="<i4")
    found[places] = np.arange(len(places))
    return found


def _difference(left: MetricValues, right: MetricValues, sides: list[Indexes]) -> MetricValues:
    if not (left.is_number and right.is_number):
        raise UsageError(f"metric {left.name!r} is not a number, so it has no difference")
    one, one_valid = _spread(left, sides[0])
    other, other_valid = _spread(right, sides[1])
    return MetricValues(left.name, left.aggregation, one - other, one_valid | other_valid)


def _spread(metric: MetricValues, rows: Indexes) -> tuple[Floats | Integers, Mask]:
    valid = (rows >= 0) & metric.valid[rows]
    values = np.where(valid, metric.values[rows], 0)
    return values, valid
