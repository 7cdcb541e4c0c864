"""Coarser trees of a comparison: by kernel, by line of the source, by scope or by test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.pairing import SEVERAL, PairedTree, RowState, Side, agreed
from proton_bench.model.arrays import Array, Mask
from proton_bench.model.frame import FrameKind


def kernel_labels(tree: PairedTree, rows: Array) -> Array:
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


def _once(values: Array) -> Mask:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Mask = counts[inverse.reshape(-1)] == 1
    return found


# Kinds named by the library, a program or its tests; kinds are guessed for files without them.
_SCOPES = (FrameKind.SCOPE, FrameKind.TEST, FrameKind.STATE)


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """A coarser tree.

    Attributes:
        tree: The coarser tree, with the rows of the runs mapped to it.
        places: Row of the coarser tree for each row of the finer one.
    """

    tree: PairedTree
    places: Array


def break_down(tree: PairedTree, by: By, measured: Mask) -> Breakdown:
    """Return the tree of kernels, lines, scopes or tests; by path it is the tree itself.

    Args:
        tree: The union of all runs.
        by: What makes a row. Kernels stand below the root; what else was measured, such
            as operators and copies, is one of them. So are lines of the source, and beside them
            kernels with what is known of no line. What belongs to no row is the root's own.
        measured: Whether a row has values of its own.
    """
    if by is By.PATH:
        return Breakdown(tree, np.arange(len(tree), dtype="<i4"))
    if by in (By.KERNEL, By.LINE):
        return _by_kernel(tree, measured, lines=by is By.LINE)
    keep = _scopes(tree) if by is By.SCOPE else tree.kinds == FrameKind.TEST
    keep[0] = True
    numbers = np.cumsum(keep, dtype=np.int64) - 1
    places = numbers[_nearest(tree.parents, keep)]
    heads = np.flatnonzero(keep)
    above = tree.parents[heads]
    return _coarser(
        tree,
        parents=np.where(above >= 0, places[above], -1).astype("<i4"),
        heads=heads,
        places=places.astype("<i4"),
        sides=(tree.base.take(heads), tree.new.take(heads)),
    )


def _scopes(tree: PairedTree) -> Mask:
    inner = np.zeros(len(tree), dtype=np.bool_)
    inner[tree.parents[1:]] = True
    # Files of upstream do not mark scopes.
    unnamed = (tree.kinds == FrameKind.UNKNOWN) & inner
    found: Mask = np.isin(tree.kinds, _SCOPES) | unnamed
    return found


def _nearest(parents: Array, keep: Mask) -> Array:
    """Return for each row the nearest kept row at or above it."""
    found = np.arange(len(parents)).tolist()
    above, kept = parents.tolist(), keep.tolist()
    for row in range(1, len(above)):
        if not kept[row]:
            found[row] = found[above[row]]
    return np.array(found, dtype="<i4")


def _by_kernel(tree: PairedTree, measured: Mask, *, lines: bool) -> Breakdown:
    owners = np.where(measured, np.arange(len(tree)), 0)
    below = tree.kinds == FrameKind.LINE
    if below.any() and not lines:  # a line of a kernel belongs to the kernel
        owners = np.where(below, _nearest(tree.parents, ~below), owners)
    owners[0] = 0
    kernels = np.unique(owners)
    owners[kernels] = kernels  # also if only its lines have values
    labels = kernel_labels(tree, kernels[1:]) + 1
    labels[0] = 0
    _, heads, groups = np.unique(labels[owners], return_index=True, return_inverse=True)
    ranks = np.empty(len(heads), dtype=np.int64)
    ranks[np.argsort(heads)] = np.arange(len(heads))
    places = ranks[groups.reshape(-1)].astype("<i4")
    # A group is named after a kernel, never after one of its lines.
    heads = owners[np.sort(heads)]
    parents = np.zeros(len(heads), dtype="<i4")
    parents[0] = -1
    sides = (_combined(tree.base, places, kernels), _combined(tree.new, places, kernels))
    found = _coarser(tree, parents=parents, heads=heads, places=places, sides=sides)
    renamed = (found.tree.states == RowState.MATCHED) & (sides[0].names != sides[1].names)
    renamed[0] = False
    states = np.where(renamed, np.uint8(RowState.RENAMED), found.tree.states)
    return replace(found, tree=replace(found.tree, states=states))


def _combined(side: Side, places: Array, rows: Array) -> Side:
    """Return the combined facts of the rows of each group."""
    total = int(places.max()) + 1
    rows = rows[side.present[rows]]
    names = np.full(total, -1, dtype="<i4")
    names[places[rows]] = side.names[rows]
    frames = agreed([side.frames[rows]], [places[rows]], total=total, none=-1)
    return Side(
        names >= 0,
        # Rows with several names get the common part.
        np.where(frames == SEVERAL, names, frames),
        names,
        agreed([side.variants[rows]], [places[rows]], total=total, none=-1),
        agreed([side.codes[rows]], [places[rows]], total=total, none=0),
    )


def _coarser(
    tree: PairedTree, *, parents: Array, heads: Array, places: Array, sides: tuple[Side, Side]
) -> Breakdown:
    present = [np.bincount(places, weights=side.present) > 0 for side in (tree.base, tree.new)]
    states = np.where(present[1], RowState.MATCHED, RowState.REMOVED)
    states = np.where(present[0], states, RowState.NEW).astype("u1")
    alone = np.bincount(places) == 1
    states[alone] = tree.states[heads][alone]
    coarser = replace(
        tree,
        parents=parents,
        kinds=tree.kinds[heads],
        devices=tree.devices[heads],
        states=states,
        base=sides[0],
        new=sides[1],
        origins=tree.origins.renumbered(places, alone),
        places=tuple(places[each] for each in tree.places),
    )
    return Breakdown(coarser, places)
