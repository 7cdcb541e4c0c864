"""The part of a tree that fits a screen: the largest rows, and the rest of each row in one line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.host_time import OTHER_THREADS
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.select import MetricTree
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricSpec

# Rows with less of the whole are never worth a line of a screen.
LEAST_SHARE = 0.005
_OTHER_THREADS = f"{MetricSpec(OTHER_THREADS).base}/"


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The lines of a screen.

    Attributes:
        tree: One row per line. The rows that have no line of their own and share a parent with
            one that has are one row, with the sum of their values.
        hidden: Rows of the whole tree without a line, those in chains left out.
        share: The least share of the whole that has a line.
    """

    tree: MetricTree
    hidden: int
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Which rows have a line if a line needs at least this weight."""

    shown: Mask
    folded: Mask
    rests: npt.NDArray[np.intp]  # rows with one more line, which sums the hidden rows below them

    def __len__(self) -> int:
        return int(self.shown.sum()) - int(self.folded.sum()) + len(self.rests)


def outlined(tree: MetricTree, most_lines: int) -> Outline:
    """Return the lines of a screen for a tree.

    The first metric decides, with time of other threads beside it. A row has a line if its share
    of the whole is large enough; the least share is `LEAST_SHARE`, or more where that gives too
    many lines. A scope, which the user asked for, counts as that large in any case. A row whose
    only line below it has the same value, but for less than that share, stands in one line with it.

    Args:
        tree: Rows in the order of the lines.
        most_lines: Height of the screen; the root has a line in any case.
    """
    if not tree.metrics or not tree.metrics[0].is_number or len(tree) <= 1:
        return Outline(tree, 0, 0.0)
    total = _total(tree.metrics[0])
    least = total * LEAST_SHARE
    weights = _weights(tree, least)
    lines = _lines(tree, weights, least)
    if len(lines) > most_lines:
        heavier = np.unique(weights[weights > least])
        low, high = 0, len(heavier)
        while low < high:
            middle = (low + high) // 2
            fits = len(_lines(tree, weights, float(heavier[middle]))) <= most_lines
            low, high = (low, middle) if fits else (middle + 1, high)
        least = float(heavier[low]) if low < len(heavier) else np.inf
        lines = _lines(tree, weights, least)
    hidden = len(tree) - int(lines.shown.sum())
    return Outline(_drawn(tree, lines), hidden, least / total if total > 0 else 0.0)


def _weights(tree: MetricTree, of_scopes: float) -> Floats:
    """Return for each row the largest absolute value of the row and the rows below it.

    Args:
        tree: Rows in the order of the lines.
        of_scopes: The least for a scope.
    """
    sizes = _sizes(tree.metrics[0])
    for beside in tree.metrics[1:]:
        if beside.is_number and beside.name.startswith(_OTHER_THREADS):
            sizes = sizes + _sizes(beside)
    finite = np.isfinite(sizes)
    # What is infinite or not a number is worth a line.
    sizes = np.where(finite, sizes, sizes[finite].max(initial=1.0))
    weights = np.where(tree.kinds == FrameKind.SCOPE, np.maximum(sizes, of_scopes), sizes).tolist()
    parents = tree.parents.tolist()
    for row in range(len(weights) - 1, 0, -1):  # rows below come first
        weights[parents[row]] = max(weights[parents[row]], weights[row])
    return np.array(weights)


def _sizes(metric: MetricValues) -> Floats:
    return np.abs(np.where(metric.valid, metric.values, 0).astype(np.float64))


def _total(first: MetricValues) -> float:
    values = _sizes(first)
    total = float(values[0] if first.aggregation is Aggregation.INCLUSIVE else values.sum())
    return total if np.isfinite(total) else 0.0


def _lines(tree: MetricTree, weights: Floats, least: float) -> _Lines:
    shown = (weights >= least) & (weights > 0)
    shown[0] = True
    parents = np.maximum(tree.parents, 0)
    left_out = ~shown & shown[parents]
    left_out[0] = False
    sums = np.bincount(parents[left_out], weights=weights[left_out], minlength=len(tree))
    below = shown.copy()
    below[0] = False
    count = np.bincount(parents[below], minlength=len(tree))
    # If no row below is shown, a line with their sum would repeat the row itself.
    rests = np.flatnonzero((sums >= least) & (sums > 0) & (count > 0))
    only = count == 1
    only[rests] = False
    only[0] = False  # the root keeps its line
    # The row above of a row that stands alone below it, with the same value.
    alone = np.flatnonzero(below & only[parents])
    above = parents[alone]
    folded = np.zeros(len(tree), dtype=np.bool_)
    folded[above[weights[above] - weights[alone] < max(least, 1e-12)]] = True
    return _Lines(shown, folded, rests)


def _drawn(tree: MetricTree, lines: _Lines) -> MetricTree:
    """Return one row per line, in the order of the rows; the rest of a row comes last below it."""
    rests = set(lines.rests.tolist())
    parents = tree.parents.tolist()
    left_out = _left_out(tree, lines)
    strings = list(tree.strings)
    found: list[tuple[int, int, int, tuple[int, ...]]] = []  # row or -1, parent, frame, chain
    summed: list[tuple[int, list[int]]] = []
    place_of: dict[int, int] = {}
    chains: dict[int, tuple[int, ...]] = {}
    open_rows: list[tuple[int, int]] = []  # rows with a rest, with their depth
    depths = tree.depths().tolist()

    def close(depth: int) -> None:
        while open_rows and open_rows[-1][1] >= depth:
            row, _ = open_rows.pop()
            strings.append(_rest_name(len(left_out[row])))
            summed.append((len(found), left_out[row]))
            found.append((-1, place_of[row], len(strings) - 1, ()))

    for row in np.flatnonzero(lines.shown).tolist():
        close(depths[row])
        above = parents[row]
        chain = chains.pop(above, ())
        if lines.folded[row]:
            chains[row] = (*chain, int(tree.frames[row]))
            place_of[row] = place_of[above]
            continue
        place = place_of[above] if above >= 0 else -1
        place_of[row] = len(found)
        found.append((row, place, int(tree.frames[row]), chain))
        if row in rests:
            open_rows.append((row, depths[row]))
    close(0)
    rows = np.array([max(row, 0) for row, *_ in found], dtype=np.intp)
    is_rest = np.array([row < 0 for row, *_ in found], dtype=np.bool_)
    kinds = np.where(is_rest, int(FrameKind.UNKNOWN), tree.kinds[rows]).astype(np.uint8)
    return MetricTree(
        strings=tuple(strings),
        parents=np.array([parent for _, parent, _, _ in found], dtype="<i4"),
        frames=np.array([frame for _, _, frame, _ in found], dtype="<i4"),
        kinds=kinds,
        devices=tuple("" if row < 0 else tree.devices[row] for row, *_ in found),
        metrics=tuple(_summed(metric, rows, summed) for metric in tree.metrics),
        cut=tree.cut,
        unvalued=tree.unvalued,
        chains=tuple(chain for *_, chain in found),
    )


def _left_out(tree: MetricTree, lines: _Lines) -> dict[int, list[int]]:
    """Return the rows without a line below each row that shows their sum."""
    wanted = np.zeros(len(tree), dtype=np.bool_)
    wanted[lines.rests] = True
    parents = np.maximum(tree.parents, 0)
    rows = np.flatnonzero(~lines.shown & wanted[parents])
    found: dict[int, list[int]] = {row: [] for row in lines.rests.tolist()}
    for row, above in zip(rows.tolist(), parents[rows].tolist(), strict=True):
        found[above].append(row)
    return found


def _rest_name(count: int) -> str:
    return f"({count} more)"


def _summed(
    metric: MetricValues, rows: npt.NDArray[np.intp], summed: list[tuple[int, list[int]]]
) -> MetricValues:
    """Return the values of each line; only what is inclusive can be summed over rows."""
    values, valid = metric.values[rows], metric.valid[rows]
    valid[[place for place, _ in summed]] = False
    if metric.is_number and metric.aggregation is Aggregation.INCLUSIVE:
        for place, hidden in summed:
            known = metric.valid[hidden]
            values[place] = metric.values[hidden][known].sum() if bool(known.any()) else 0
            valid[place] = bool(known.any())
    return replace(metric, values=values, valid=valid)
