"""Explains a change by the row, the kernel or the scope with most of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from proton_bench.analysis.compare.breakdown import kernel_labels
from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Floats, Mask

# A single row with this share of the best kernel's change is named instead of the kernel.
_ROW_OVER_KERNEL = 0.8
# A scope is named if no row or kernel explains half of the change, but the scope most of it.
_ENOUGH = 0.5
_MOST = 0.75
# If changes of both signs mostly cancel, both are named.
_CANCELLED = 0.1
_MORE_THAN_ALL = 1.05


class Kind(StrEnum):
    """Kinds of causes."""

    ROW = "row"
    KERNEL = "kernel"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a part of the change.

    Attributes:
        kind: A row alone, all rows of one name, or a row with all rows below it.
        row: The row, the largest one of its name.
        places: How many rows changed.
        change: In the unit of the source.
        share: Of the total change; negative where it goes the other way.
        base: Value in the base.
        new: New value.
        base_count: Launches in the base, 0 where unknown.
        new_count: Launches now.
        state: State of the row; ``MATCHED`` for several rows.
    """

    kind: Kind
    row: int
    places: int
    change: float
    share: float
    base: float
    new: float
    base_count: float
    new_count: float
    state: RowState

    @property
    def per_launch(self) -> float | None:
        """Growth of one launch, 0.4 for 40 % longer; None if unknown."""
        if min(self.base_count, self.new_count) <= 0 or self.base <= 0:
            return None
        return self.new / self.new_count / (self.base / self.base_count) - 1.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """A total change and its causes.

    Attributes:
        base: Total of the base in the unit of the source.
        new: New total.
        causes: The main one; both directions if they nearly cancel; none if nothing changed.
        cancels: Whether the two causes go in opposite directions.
    """

    base: float
    new: float
    causes: tuple[Cause, ...]
    cancels: bool = False


def explain(comparison: Comparison) -> Explanation | None:
    """Return the explanation of the change; None if the metric does not add up."""
    own = comparison.own
    if own is None:
        return None
    changes = own.change.astype(np.float64)
    total, gross = float(comparison.inclusive.change[0]), float(np.abs(changes).sum())
    base, new = float(comparison.inclusive.base[0]), float(comparison.inclusive.new[0])
    if gross == 0.0:
        return Explanation(base, new, ())
    first = 1.0 if total >= 0 else -1.0
    cause = _best(comparison, changes * first)
    if abs(total) < _CANCELLED * gross or (cause is not None and cause.share > _MORE_THAN_ALL):
        found = (cause, _best(comparison, changes * -first))
        causes = tuple(each for each in found if each is not None)
        return Explanation(base, new, causes, cancels=len(causes) > 1)
    if cause is not None and cause.share < _ENOUGH:
        cause = _scope(comparison, total) or cause
    return Explanation(base, new, () if cause is None else (cause,))


def row_cause(comparison: Comparison, row: int) -> Cause | None:
    """Return a row alone as a cause; None if the metric does not add up."""
    if comparison.own is None:
        return None
    return _cause(comparison, Kind.ROW, np.arange(len(comparison)) == row)


def _best(comparison: Comparison, gains: Floats) -> Cause | None:
    """Return the row or kernel with the largest gain."""
    row = int(np.argmax(gains))
    if gains[row] <= 0:
        return None
    labels = kernel_labels(comparison.tree, np.arange(1, len(gains)))
    _, groups = np.unique(labels, return_inverse=True)
    groups = groups.reshape(-1)
    sums = np.bincount(groups, weights=gains)
    best = int(np.argmax(sums))
    rows = groups == best
    if (gains[rows] != 0).sum() > 1 and gains[row] < _ROW_OVER_KERNEL * sums[best]:
        return _cause(comparison, Kind.KERNEL, rows)
    return _cause(comparison, Kind.ROW, np.arange(len(gains)) == row)


def _cause(comparison: Comparison, kind: Kind, rows: Mask) -> Cause:
    own = comparison.own
    assert own is not None
    changes = own.change
    chosen = np.flatnonzero(rows)
    row = int(chosen[np.argmax(np.abs(changes[chosen]))])
    return _of(
        comparison,
        (kind, row, int((changes[chosen] != 0).sum())),
        [own.base[chosen], own.new[chosen], own.base_count[chosen], own.new_count[chosen]],
    )


def _of(comparison: Comparison, what: tuple[Kind, int, int], values: list[Array]) -> Cause:
    base, new, base_count, new_count = (float(each.sum()) for each in values)
    kind, row, places = what
    total = float(comparison.inclusive.change[0])
    return Cause(
        kind=kind,
        row=row,
        places=places,
        change=new - base,
        share=(new - base) / total if total else 0.0,
        base=base,
        new=new,
        base_count=base_count,
        new_count=new_count,
        state=RowState(comparison.tree.states[row])
        if kind is not Kind.KERNEL
        else RowState.MATCHED,
    )


def _scope(comparison: Comparison, total: float) -> Cause | None:
    """Return the deepest row below which most of the change happened."""
    values = comparison.inclusive
    shares = values.change / total
    shares[0] = 0.0
    found = np.flatnonzero((shares >= _MOST) & (shares <= 1.0 / _MOST))
    if not len(found):
        return None
    depths = preorder.depths(comparison.tree.parents)[found]
    row = int(found[np.argmax(depths)])
    parts = (values.base, values.new, values.base_count, values.new_count)
    return _of(comparison, (Kind.BELOW, row, 1), [each[row : row + 1] for each in parts])
