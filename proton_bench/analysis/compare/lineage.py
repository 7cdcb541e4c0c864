"""Matches rows without an equal call path on the other side: by name, code and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np

from proton_bench.model.arrays import Array

# A kernel with the same name at another place moved if the time per launch differs by at most the
# first factor; one with another name at the same place was renamed within the second.
_MOVED_WITHIN = 2.0
_RENAMED_WITHIN = 1.1
# More than the candidates of one key.
_SLOTS = 2**31


class Step(StrEnum):
    """State of a matched row."""

    STAYED = "stayed"
    MOVED = "moved"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, eq=False)
class UnmatchedRows:
    """Rows of one side without a counterpart; numbers mean the same on both sides.

    Attributes:
        rows: The rows.
        parents: The row above each.
        names: The name that counts.
        parent_names: That of the row above.
        grandparent_names: That of the row above that one.
        devices: The device.
        codes: The compiled code, 0 where unknown.
        sizes: Time, or the compared metric, of all launches.
        counts: Launches, 0 where unknown.
    """

    rows: Array
    parents: Array
    names: Array
    parent_names: Array
    grandparent_names: Array
    devices: Array
    codes: Array
    sizes: Array
    counts: Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Array) -> UnmatchedRows:
        """Return the chosen rows (indexes or mask)."""
        return UnmatchedRows(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def per_launch(self) -> Array:
        """Return the size per launch, or of the whole if launches are unknown."""
        sizes: Array = self.sizes / np.maximum(self.counts, 1)
        return sizes


@dataclass(frozen=True, slots=True)
class _Pass:
    """One way to match rows; the surest passes come first.

    Attributes:
        step: State of the matched rows.
        keys: What has to be equal.
        by_size: Whether several candidates pair by size per launch, else in order.
        within: Greatest factor between their sizes per launch, 0 for any.
        alone: Whether there may be only one candidate on each side.
    """

    step: Step
    keys: tuple[str, ...]
    by_size: bool = False
    within: float = 0.0
    alone: bool = False

    def keys_of(self, rows: UnmatchedRows) -> Array:
        """Return one line of numbers per row."""
        with np.errstate(invalid="ignore"):  # numbers of damaged files
            return np.stack([getattr(rows, key).astype(np.int64) for key in self.keys], axis=1)


_FAMILY = ("names", "devices", "parent_names", "grandparent_names")
_PASSES = (
    _Pass(Step.STAYED, ("parents", "names", "devices", "codes")),
    _Pass(Step.STAYED, ("parents", "names", "devices")),
    _Pass(Step.RENAMED, ("parents", "devices", "codes"), by_size=True),
    _Pass(Step.MOVED, (*_FAMILY, "codes")),
    _Pass(Step.MOVED, _FAMILY),
    _Pass(Step.MOVED, ("names", "devices", "parent_names")),
    _Pass(Step.MOVED, ("names", "devices", "codes"), by_size=True),
    _Pass(Step.MOVED, ("names", "devices"), by_size=True, within=_MOVED_WITHIN),
    _Pass(Step.RENAMED, ("parents", "devices", "counts"), within=_RENAMED_WITHIN, alone=True),
    _Pass(Step.MOVED, ("devices", "codes"), by_size=True),
)


def find_counterparts(
    base: UnmatchedRows, new: UnmatchedRows, *, anywhere: bool
) -> list[tuple[Array, Array, Step]]:
    """Return rows of the base, their counterparts in the new runs, and their states.

    No row is in two pairs. Swapping the sides gives the same pairs.

    Args:
        base: Rows that only the base has.
        new: Rows that only the new runs have.
        anywhere: Whether to match rows at other places too.
    """
    found: list[tuple[Array, Array, Step]] = []
    for each in _PASSES:
        if each.step is Step.MOVED and not anywhere:
            continue
        if not (len(base) and len(new)):
            break
        left, right = _matches(each, base, new)
        if len(left):
            found.append((base.rows[left], new.rows[right], each.step))
            base = base.take(np.setdiff1d(np.arange(len(base)), left))
            new = new.take(np.setdiff1d(np.arange(len(new)), right))
    return found


def _matches(each: _Pass, base: UnmatchedRows, new: UnmatchedRows) -> tuple[Array, Array]:
    sides = []
    for side in (base, new):
        usable = np.flatnonzero(side.codes > 0) if "codes" in each.keys else np.arange(len(side))
        sides.append(usable)
    stacked = np.concatenate(
        [each.keys_of(side)[usable] for side, usable in zip((base, new), sides, strict=True)]
    )
    if not (len(sides[0]) and len(sides[1])):
        return sides[0][:0], sides[1][:0]
    groups = np.unique(stacked, axis=0, return_inverse=True)[1].reshape(-1)
    split = len(sides[0])
    ranked = [
        _ranked(own, side.per_launch()[usable] if each.by_size else np.zeros(len(usable)))
        for side, usable, own in zip(
            (base, new), sides, (groups[:split], groups[split:]), strict=True
        )
    ]
    slots, left, right = np.intersect1d(ranked[0], ranked[1], return_indices=True)
    left, right = sides[0][left], sides[1][right]
    good = np.ones(len(slots), dtype=np.bool_)
    if each.within:
        good &= _near(base.per_launch()[left], new.per_launch()[right], each.within)
    if each.alone:
        top = int(groups.max()) + 1
        sizes = [np.bincount(own, minlength=top) for own in (groups[:split], groups[split:])]
        crowded = (sizes[0] > 1) | (sizes[1] > 1)
        good &= ~crowded[slots // _SLOTS]
    return left[good], right[good]


def _ranked(groups: Array, sizes: Array) -> Array:
    """Return a number that is equal for the n-th candidates of one key on both sides."""
    order = np.lexsort((np.arange(len(groups)), sizes, groups))
    sorted_groups = groups[order]
    begins = np.ones(len(groups), dtype=np.bool_)
    begins[1:] = sorted_groups[1:] != sorted_groups[:-1]
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(groups)), 0))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - starts
    numbers: Array = groups.astype(np.int64) * _SLOTS + ranks
    return numbers


def _near(one: Array, other: Array, factor: float) -> Array:
    least, most = np.minimum(one, other), np.maximum(one, other)
    near: Array = (most <= least * factor) | (most == 0)
    return near


def moved_scopes(
    parents: tuple[Array, Array], names: tuple[Array, Array], alone: tuple[Array, Array]
) -> list[tuple[int, int]]:
    """Return scopes that only the base has, with the scopes in which their rows are now.

    All rows that moved out of the one have to be in the other, and none of any other one. Of scopes
    in each other the innermost pair first; if one side has more of them, only those of one name.

    Args:
        parents: The row above each row of the base, and of the new runs.
        names: Numbers of the names of both sides.
        alone: Masks of the scopes that only this side has.
    """
    moved = np.flatnonzero(parents[0] != parents[1])
    found: tuple[dict[int, set[int]], dict[int, set[int]]] = (defaultdict(set), defaultdict(set))
    for before, after in np.unique([parents[0][moved], parents[1][moved]], axis=1).T.tolist():
        olds = _around(before, parents[0], alone[0])
        news = _around(after, parents[1], alone[1])
        for old, new in _paired(olds, news, names):
            found[0][old].add(new)
            found[1][new].add(old)
    return [
        (old, new)
        for old, targets in found[0].items()
        if old >= 0 and len(targets) == 1
        for new in targets
        if new >= 0 and len(found[1][new]) == 1
    ]


def _around(row: int, parents: Array, alone: Array) -> list[int]:
    """Return the chosen rows from this one up to the root."""
    found = []
    while row > 0:
        if alone[row]:
            found.append(row)
        row = int(parents[row])
    return found


def _paired(
    olds: list[int], news: list[int], names: tuple[Array, Array]
) -> Iterator[tuple[int, int]]:
    """Yield each scope with its counterpart, -1 for none."""
    if len(olds) == len(news):
        yield from zip(olds, news, strict=True)
        return
    rest = list(news)
    for old in olds:
        fitting = [at for at, new in enumerate(rest) if names[1][new] == names[0][old]]
        if not fitting:
            yield old, -1
            continue
        yield old, rest[fitting[0]]
        yield from ((-1, new) for new in rest[: fitting[0]])
        rest = rest[fitting[0] + 1 :]
    yield from ((-1, new) for new in rest)
