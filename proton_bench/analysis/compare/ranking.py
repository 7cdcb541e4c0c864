"""Selects and orders the shown rows of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.pairing import PairedTree, RowState
from proton_bench.analysis.view.names import NameFilter, rows_above
from proton_bench.errors import UsageError
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Integers, Mask
from proton_bench.model.frame import FrameKind

# Share of the larger total below which rows are left out by default.
_LEAST_SHARE = 0.001
# Share of the largest change of a row below which others are left out by default: they explain
# little of it.
_LEAST_OF_LARGEST = 0.02
# Share of a row's values by which those of the only row shown below it may differ if both are one
# line.
_LEAST_DIFFERENCE = 0.05
# Share of a new or removed row below which its parts are left out by default: they say the same.
_LEAST_PART = 0.2
_ONE_SIDED = frozenset({int(RowState.NEW), int(RowState.REMOVED)})
_EVERY_NAME = NameFilter()


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least shown change.

    Attributes:
        value: In the requested unit of the metric, or a share of the larger total.
        is_share: Which of the two.
    """

    value: float
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Parse ``0.5`` or ``1%``.

        Raises:
            UsageError: It is neither.
        """
        number = text.strip()
        is_share = number.endswith("%")
        try:
            value = float(number.removesuffix("%"))
        except ValueError:
            value = float("nan")
        if not 0.0 <= value < float("inf"):
            raise UsageError(
                f"threshold {text!r} is neither a number, such as 0.5, nor a share, such as 1%"
            )
        return cls(value / 100.0 if is_share else value, is_share)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Rows to show: below each row the largest change first.

    Attributes:
        rows: The row of each line, each after its parent.
        depths: How many lines stand above each of them.
        above: For each line the rows above its row that stand in the same line, as they have the
            same values and nothing else is known of them.
        small: Rows with a value that are left out because nothing at or below them reaches the
            threshold.
        small_change: Their total change, in the unit of the source.
        deep: Rows left out because they are too deep.
        deep_change: Their total change.
        named: Rows left out by their names.
        named_change: Their total change.
        names: The filter that left them out.
    """

    rows: tuple[int, ...]
    depths: tuple[int, ...]
    above: tuple[tuple[int, ...], ...]
    small: int
    small_change: float
    deep: int
    deep_change: float = 0.0
    named: int = 0
    named_change: float = 0.0
    names: NameFilter = _EVERY_NAME


def rank(
    comparison: Comparison,
    threshold: Threshold | None,
    depth: int,
    *,
    names: NameFilter = _EVERY_NAME,
) -> Ranking:
    """Return the rows to show. Values of rows include left-out rows below them.

    Args:
        comparison: All rows.
        threshold: Least change; new, removed, moved and renamed rows count with their size. 0 keeps
            everything. None leaves out unchanged rows, rows that changed by less than
            `least_change`, and, unless rows are chosen by name, rows that explain little of the
            largest change and small parts of rows that are new or removed as a whole; it also
            joins rows with the same values.
        depth: Levels to show; 1 is the total alone.
        names: Which rows to keep by their names on either side. The total stays.

    Raises:
        UsageError: The depth shows nothing, the filter is malformed, or it leaves no row.
    """
    if depth < 1:
        raise UsageError(f"a depth of {depth} shows nothing: give 1 or more")
    parents, values = comparison.tree.parents, comparison.inclusive
    passing = _passing(comparison, names)
    kept = passing & _kept(comparison, threshold, passing, has_parts=bool(names.include))
    small = passing & ~kept
    shown = kept & (preorder.depths(parents) < depth)
    order = _ordered(comparison, shown)
    joined = frozenset[int]() if threshold is not None else _joined(comparison, order)
    rows, depths, above = _lines(comparison, order, joined)
    return Ranking(
        rows=rows,
        depths=depths,
        above=above,
        small=int((small & (values.base_valid | values.new_valid)).sum()),
        small_change=_own_change(comparison, small),
        deep=int((kept & ~shown).sum()),
        deep_change=_own_change(comparison, kept & ~shown),
        named=int((~passing).sum()),
        named_change=_own_change(comparison, ~passing),
        names=names,
    )


def least_change(comparison: Comparison, share: float = _LEAST_SHARE) -> float:
    """Return a share of the larger total, by default that from which on a change is shown."""
    values = comparison.inclusive
    return share * max(abs(float(values.base[0])), abs(float(values.new[0])))


def _passing(comparison: Comparison, names: NameFilter) -> Mask:
    """Return the rows that a filter keeps, by the names on both sides."""
    tree = comparison.tree

    def find(named: Mask) -> Mask:
        sides = (tree.base.frames, tree.new.frames)
        found = [(frames >= 0) & named[frames] for frames in sides]
        either: Mask = found[0] | found[1]
        return either

    ends = preorder.subtree_ends(tree.parents)
    passing = names.keep(tree.strings, ends, find, recorded=tree.recorded)
    if not passing.any():
        raise UsageError(f"no row is left after {names}")
    passing[0] = True
    return passing


def _kept(
    comparison: Comparison, threshold: Threshold | None, passing: Mask, *, has_parts: bool
) -> Mask:
    total = len(comparison)
    if threshold is not None and threshold.value == 0.0:
        return np.ones(total, dtype=np.bool_)
    sizes = _sizes(comparison)
    limits = np.full(total, _limit(comparison, threshold))
    if threshold is None and not has_parts:
        limits = np.maximum(limits, _LEAST_PART * sizes[_tops(comparison)])
        if comparison.measure.is_additive:
            largest = float(np.abs(comparison.inclusive.change[passing]).max())
            limits = np.maximum(limits, _LEAST_OF_LARGEST * largest)
    # Rows that the filter dropped must not keep the rows above them.
    large = passing & (sizes > 0) & (sizes >= limits)
    kept = rows_above(large, preorder.subtree_ends(comparison.tree.parents))
    kept[0] = True
    return kept


def _tops(comparison: Comparison) -> Integers:
    """Return for each row the highest new or removed row that it is a part of, or the row."""
    states: list[int] = comparison.tree.states.tolist()
    tops = list(range(len(states)))
    for row, above in enumerate(comparison.tree.parents.tolist()):
        if states[row] in _ONE_SIDED and above >= 0 and states[above] == states[row]:
            tops[row] = tops[above]
    return np.array(tops)


def _sizes(comparison: Comparison) -> Array:
    values = comparison.inclusive
    largest = np.maximum(np.abs(values.base), np.abs(values.new))
    one_sided = values.base_valid != values.new_valid
    apart = (comparison.tree.states != RowState.MATCHED) | one_sided
    sizes: Array = np.where(apart, largest, np.abs(values.change)).astype(np.float64)
    return sizes


def _limit(comparison: Comparison, threshold: Threshold | None) -> float:
    if threshold is None:  # metrics that do not add up have no total for a share
        return least_change(comparison) if comparison.measure.is_additive else 0.0
    if threshold.is_share:
        return least_change(comparison, threshold.value)
    return threshold.value * comparison.measure.scale


def _ordered(comparison: Comparison, shown: Mask) -> list[int]:
    """Return the shown rows in pre-order with the largest changes of siblings first."""
    values = comparison.inclusive
    changes = np.where(values.base_valid & values.new_valid, np.abs(values.change), 0)
    if comparison.measure.is_additive:
        changes = np.abs(values.change)
    sizes = np.maximum(np.abs(values.base), np.abs(values.new))
    rows = np.flatnonzero(shown)
    by_size = rows[np.lexsort((rows, -sizes[rows], -changes[rows]))].tolist()
    children: dict[int, list[int]] = {}
    above = comparison.tree.parents.tolist()
    for row in by_size:
        children.setdefault(above[row], []).append(row)
    found: list[int] = []
    waiting = [0]
    while waiting:
        row = waiting.pop()
        found.append(row)
        waiting += reversed(children.get(row, ()))
    return found


def _joined(comparison: Comparison, order: list[int]) -> frozenset[int]:
    """Return the rows that stand in the line of the only row that is shown below them."""
    tree = comparison.tree
    below: dict[int, list[int]] = {}
    for row in order[1:]:
        below.setdefault(int(tree.parents[row]), []).append(row)
    return frozenset(
        row
        for row, (child, *others) in below.items()
        if row > 0 and not others and _is_same(comparison, row, child)
    )


def _is_same(comparison: Comparison, row: int, child: int) -> bool:
    """Return whether the only row shown below a row says all that the row says."""
    tree, values = comparison.tree, comparison.inclusive
    states = [int(tree.states[each]) for each in (row, child)]
    if not _ONE_SIDED.isdisjoint(states):
        if states[0] != states[1]:
            return False
    elif states[0] != RowState.MATCHED or _is_launched(tree, row):
        return False
    if int(tree.devices[row]) not in (0, int(tree.devices[child])):
        return False
    valid = (values.base_valid, values.new_valid)
    if any(side[row] != side[child] for side in valid):
        return False
    split = values.split
    sizes = [(side, 0.0) for side in (values.base, values.new, values.change)]
    if split is not None:  # a part may be a small one of the change
        least = abs(float(values.change[row]))
        sizes += [(part, least) for part in (split.launches, split.latency, split.rest)]
    return all(_is_close(float(each[row]), float(each[child]), least) for each, least in sizes)


def _is_close(value: float, other: float, least: float) -> bool:
    return abs(value - other) <= _LEAST_DIFFERENCE * max(abs(value), least)


def _is_launched(tree: PairedTree, row: int) -> bool:
    """Return whether a row is a kernel or a line of one, of which reports note more than values."""
    variants = (int(side.variants[row]) for side in (tree.base, tree.new))
    return int(tree.kinds[row]) == FrameKind.LINE or any(each != -1 for each in variants)


def _lines(
    comparison: Comparison, order: list[int], joined: frozenset[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the row of each line, its depth, and the rows above in the same line."""
    parents = comparison.tree.parents
    depth_of = {-1: -1}
    above: dict[int, tuple[int, ...]] = {}
    for row in order:
        parent = int(parents[row])
        is_below_joined = parent in joined
        above[row] = (*above[parent], parent) if is_below_joined else ()
        depth_of[row] = depth_of[parent] + (not is_below_joined)
    rows = tuple(row for row in order if row not in joined)
    return rows, tuple(depth_of[row] for row in rows), tuple(above[row] for row in rows)


def _own_change(comparison: Comparison, rows: Mask) -> float:
    return 0.0 if comparison.own is None else float(comparison.own.change[rows].sum())
