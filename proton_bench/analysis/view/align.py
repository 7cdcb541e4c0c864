"""Aligns trees by call path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.preorder import positions
from proton_bench.model.regroup import number_paths

__all__ = ["Alignment", "LabelledTree", "align", "occurrences", "stacked_parents"]

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTree:
    """A tree whose rows have numeric labels.

    Attributes:
        parents: Row of each row's parent, -1 for the root; every parent stands before its children.
        labels: Rows of two trees pair when their labels and their parents do; 0 or more.
        twins: The first sibling that a row is summed with, or itself.
    """

    parents: Rows
    labels: npt.NDArray[np.int64]
    twins: npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The union of several trees in pre-order.

    Attributes:
        parents: Row of each row's parent, -1 for the root.
        places: For each tree, the row of the union for each of its rows.
    """

    parents: Rows
    places: tuple[Rows, ...]


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


def stacked_parents(parents: Sequence[Rows]) -> Rows:
    """Return the parents of trees put one after the other; each root has parent -1."""
    starts = np.cumsum([0, *map(len, parents)])
    moved = [
        np.where(above >= 0, above + start, -1)
        for above, start in zip(parents, starts.tolist(), strict=False)
    ]
    return np.concatenate(moved).astype("<i4")


def _stacked_twins(trees: Sequence[LabelledTree]) -> npt.NDArray[np.int64]:
    start, found = 0, []
    for tree in trees:
        own = np.arange(len(tree.parents)) if tree.twins is None else tree.twins
        found.append(own.astype(np.int64) + start)
        start += len(own)
    return np.concatenate(found)


def occurrences(
    parents: Rows, labels: npt.NDArray[np.int64], twins: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
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
