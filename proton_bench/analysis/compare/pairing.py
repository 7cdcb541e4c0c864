"""Two sets of runs as one tree: each row with its name and launch variant on each side.

The base is aligned with the new runs by call path; then unmatched rows are matched by other rules,
so that a moved or renamed kernel is one row with both values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.lineage import Step, UnmatchedRows, find_counterparts
from proton_bench.analysis.compare.run_rows import Identity, Interning, RunRows
from proton_bench.analysis.view.align import Alignment, align
from proton_bench.model.arrays import Array, Indexes, Mask
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.preorder import subtree_ends
from proton_bench.model.profile import Profile

Path = tuple[str, ...]


class Origins(Mapping[int, Path]):
    """The former path of each moved row, built on demand.

    A path is as long as its row is deep, so the paths of all rows of a deep tree would cost more
    than the comparison.

    Args:
        rows: Row of the earlier tree for each moved row.
        path: Gives the path of a row of the earlier tree.
    """

    def __init__(self, rows: Iterable[tuple[int, int]], path: Callable[[int], Path]) -> None:
        self._rows = dict(rows)
        self._path = path

    def __getitem__(self, row: int) -> Path:
        return self._path(self._rows[row])

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: object) -> bool:
        return row in self._rows

    def renamed(self, texts: Mapping[str, str]) -> Origins:
        """Return the origins with other texts for names that have one."""
        path = self._path
        return Origins(
            self._rows.items(), lambda row: tuple(texts.get(name, name) for name in path(row))
        )

    def renumbered(self, numbers: Array, chosen: Array) -> Origins:
        """Return the origins of the chosen rows by their new numbers.

        Args:
            numbers: New number of each row.
            chosen: Whether to keep the row with that new number.
        """
        pairs = ((int(numbers[row]), was) for row, was in self._rows.items())
        return Origins((pair for pair in pairs if chosen[pair[0]]), self._path)


# Instead of a number: the summed rows differ.
SEVERAL = -2


class RowState(IntEnum):
    """State of a row between the base and the new runs."""

    MATCHED = 0
    NEW = 1
    REMOVED = 2
    MOVED = 3
    RENAMED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The facts of one side about each row.

    Attributes:
        present: Whether a run has the row.
        frames: Index of the row's name in the strings; -1 if no run has it.
        names: Index of the name that counts; -1 if no run has it.
        variants: Position of its launch variant; -1 for none, -2 for several.
        codes: A number for its compiled code; 0 for unknown, -2 for several.
    """

    present: Mask
    frames: Indexes
    names: Indexes
    variants: Indexes
    codes: Indexes

    def take(self, rows: Array) -> Side:
        """Return the chosen rows (positions or mask)."""
        return Side(
            self.present[rows],
            self.frames[rows],
            self.names[rows],
            self.variants[rows],
            self.codes[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class PairedTree:
    """The union of all runs in pre-order.

    Attributes:
        parents: Row of each row's parent, -1 for the root.
        kinds: `FrameKind` of each row.
        devices: Position of each row's device in ``device_names``, 0 for none.
        states: `RowState` of each row.
        base: Facts of the base runs.
        new: Facts of the new runs.
        origins: Former paths of moved rows, from below the root.
        places: For each run, base first, the row here of each of its rows; rows without values and
            launch metadata were left out before.
        strings: Names.
        device_names: Devices; the first is "".
        variants: Launch variants.
        recorded: The recorded name for each of ``strings``, if these are texts to show.
    """

    parents: Indexes
    kinds: npt.NDArray[np.uint8]
    devices: Indexes
    states: npt.NDArray[np.uint8]
    base: Side
    new: Side
    origins: Origins
    places: tuple[Indexes, ...]
    strings: tuple[str, ...]
    device_names: tuple[str, ...]
    variants: tuple[Variant, ...]
    recorded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.parents)

    def texts(self) -> dict[str, str]:
        """Return what is shown for recorded names, without names that are shown as they are."""
        pairs = zip(self.recorded, self.strings, strict=False)
        return {name: text for name, text in pairs if name != text}

    def frames(self) -> Indexes:
        """Return the index of each row's new name, or of its base name if it was removed."""
        return np.where(self.new.frames >= 0, self.new.frames, self.base.frames)

    def name(self, row: int) -> str:
        """Return the row's new name, or its base name if it was removed."""
        frame = int(self.new.frames[row])
        return self.strings[frame if frame >= 0 else int(self.base.frames[row])]

    def former_name(self, row: int) -> str | None:
        """Return the row's name in the base, None if it was not there."""
        frame = int(self.base.frames[row])
        return self.strings[frame] if frame >= 0 else None

    def path(self, row: int) -> tuple[str, ...]:
        """Return the names from below the root down to the row; () for the root."""
        above, new, base = self.parents.item, self.new.frames.item, self.base.frames.item
        names: list[str] = []
        while row > 0:
            frame = new(row)
            names.append(self.strings[frame if frame >= 0 else base(row)])
            row = above(row)
        return tuple(reversed(names))

    def code_changed(self, row: int) -> bool:
        """Return whether both sides know the row's one compiled code, and the codes differ."""
        base, new = int(self.base.codes[row]), int(self.new.codes[row])
        return base > 0 and new > 0 and base != new

    def variants_of(self, row: int) -> tuple[Variant | None, Variant | None]:
        """Return the single variant of each side, None if there is none or several."""
        found = [int(side.variants[row]) for side in (self.base, self.new)]
        base, new = (self.variants[place] if place >= 0 else None for place in found)
        return base, new


def pair(
    base: Sequence[Profile],
    new: Sequence[Profile],
    identity: Identity,
    *,
    weight: str = "",
    follow: bool = True,
) -> PairedTree:
    """Return the union of the runs of both sides.

    Args:
        base: Runs to compare with.
        new: Runs that are compared.
        identity: What makes rows equal.
        weight: Recorded metric that distinguishes moved and renamed rows.
        follow: Whether a moved row is one row at the new place; else it is removed at the old one
            and new at the other.
    """
    profiles = [*base, *new]
    interning = Interning(base, new, identity)
    union = align(interning.trees())
    tree = _described(union, interning, len(base))
    unmatched = _unmatched_rows(tree, interning, profiles, weight=weight)
    matches = find_counterparts(*unmatched, anywhere=follow)
    if not matches:
        return tree
    return _joined(tree, matches)


def _described(union: Alignment, interning: Interning, first_new: int) -> PairedTree:
    total = len(union.parents)
    runs, places = interning.runs, union.places
    sides = [
        _side(runs[chosen], places[chosen], total)
        for chosen in (slice(None, first_new), slice(first_new, None))
    ]
    kinds = np.zeros(total, dtype="u1")
    devices = np.zeros(total, dtype="<i4")
    for run, place in zip(reversed(runs), reversed(places), strict=True):
        kinds[place] = np.where(run.kinds > 0, run.kinds, kinds[place])
        devices[place] = run.devices
    states = np.where(sides[1].present, RowState.MATCHED, RowState.REMOVED)
    states = np.where(sides[0].present, states, RowState.NEW).astype("u1")
    return PairedTree(
        parents=union.parents,
        kinds=kinds,
        devices=devices,
        states=states,
        base=sides[0],
        new=sides[1],
        origins=Origins((), lambda _: ()),
        places=places,
        strings=interning.strings,
        device_names=tuple(interning.device_names),
        variants=interning.variants,
    )


def _side(runs: Sequence[RunRows], places: Sequence[Indexes], total: int) -> Side:
    present = np.zeros(total, dtype=np.bool_)
    frames, names = (np.full(total, -1, dtype="<i4") for _ in range(2))
    for run, place in zip(reversed(runs), reversed(places), strict=True):
        present[place] = True
        # Backwards, so that the first of several merged siblings gives the name.
        frames[place[::-1]] = run.frames[::-1]
        names[place[::-1]] = run.identities[::-1]
    return Side(
        present,
        frames,
        names,
        agreed([run.variants for run in runs], places, total=total, none=-1),
        agreed([run.codes for run in runs], places, total=total, none=0),
    )


def agreed(
    numbers: Sequence[Array], places: Sequence[Indexes], *, total: int, none: int
) -> Indexes:
    """Return the common number of several merged rows, -2 if they differ.

    Args:
        numbers: Numbers of the rows of each run.
        places: The merged row of each.
        total: Number of rows.
        none: Number for unknown; smaller numbers count as differing.
    """
    least = np.full(total, np.iinfo(np.int64).max)
    most = np.full(total, none, dtype=np.int64)
    several = np.zeros(total, dtype=np.bool_)
    for values, place in zip(numbers, places, strict=True):
        known = values > none
        np.minimum.at(least, place[known], values[known])
        np.maximum.at(most, place[known], values[known])
        several[place[values == SEVERAL]] = True
    several |= (most > none) & (least != most)
    return np.where(several, SEVERAL, most).astype("<i4")


# -- rows of one side ----------------------------------------------------------------------------
def _unmatched_rows(
    tree: PairedTree, interning: Interning, profiles: Sequence[Profile], *, weight: str
) -> tuple[UnmatchedRows, UnmatchedRows]:
    """Return the measured leaves that only the base has, and those that only the new runs have."""
    total = len(tree)
    sizes = np.zeros(total)
    counts = np.zeros(total)
    measured = np.zeros(total, dtype=np.bool_)
    identities = np.zeros(total, dtype=np.int64)
    alone = np.zeros(total, dtype=np.bool_)
    runs = zip(profiles, interning.runs, interning.alone, tree.places, strict=True)
    for profile, run, is_alone, place in runs:
        measured[place[profile.has_values()]] = True
        identities[place] = run.identities
        alone[place] = is_alone
        sizes += _summed(profile, weight, place, total=total)
        counts += _summed(profile, "count", place, total=total)
    leaf = subtree_ends(tree.parents) == np.arange(total) + 1
    above = np.maximum(tree.parents, 0)
    # A side's own order, because that of the union depends on which side is the base.
    order = np.zeros(total, dtype=np.int64)
    start = 0
    for place in tree.places:
        order[place[::-1]] = np.arange(start + len(place), start, -1)
        start += len(place)
    shared = _shared_codes(interning.runs)
    sides = []
    for state, side in ((RowState.REMOVED, tree.base), (RowState.NEW, tree.new)):
        rows = np.flatnonzero((tree.states == state) & leaf & measured)
        rows = rows[np.argsort(order[rows], kind="stable")]
        nowhere = -1 - state  # which no row of the other side has
        # Lines have no launches and are never renamed, so they must not match by that.
        uncounted = alone[rows] | (tree.kinds[rows] == FrameKind.LINE)
        sides.append(
            UnmatchedRows(
                rows=rows,
                parents=tree.parents[rows],
                names=np.where(alone[rows], nowhere, identities[rows]),
                parent_names=identities[above[rows]],
                grandparent_names=identities[above[above[rows]]],
                devices=tree.devices[rows],
                codes=np.where(np.isin(side.codes[rows], shared), 0, side.codes[rows]),
                sizes=sizes[rows],
                counts=np.where(uncounted, float(nowhere), counts[rows]),
            )
        )
    return sides[0], sides[1]


def _shared_codes(runs: Sequence[RunRows]) -> Array:
    """Return the codes that do not identify a kernel: several, and those of several kernels.

    Vendors' tools tell the code of a module, and one of a library has many kernels.
    """
    found = [np.array([SEVERAL])]
    for run in runs:
        kernels = np.unique(np.stack([run.codes, run.identities], axis=1), axis=0)
        codes, counts = np.unique(kernels[:, 0], return_counts=True)
        found.append(codes[counts > 1])
    return np.concatenate(found)


def _summed(profile: Profile, metric: str, place: Indexes, *, total: int) -> Array:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number:
        return np.zeros(total)
    weights = np.where(column.known, column.values, 0)
    return np.bincount(place, weights=weights, minlength=total)


def _joined(tree: PairedTree, matches: Sequence[tuple[Indexes, Indexes, Step]]) -> PairedTree:
    """Move each matched row of the base to its counterpart."""
    target = np.arange(len(tree))
    states = tree.states.copy()
    frames, names = tree.base.frames.copy(), tree.base.names.copy()
    variants, codes = tree.base.variants.copy(), tree.base.codes.copy()
    present = tree.base.present.copy()
    moved: list[tuple[int, int]] = []
    for old, new, step in matches:
        target[old] = new
        states[new] = {Step.STAYED: RowState.MATCHED, Step.RENAMED: RowState.RENAMED}.get(
            step, RowState.MOVED
        )
        frames[new], names[new] = tree.base.frames[old], tree.base.names[old]
        variants[new], codes[new] = tree.base.variants[old], tree.base.codes[old]
        present[new] = True
        if step is Step.MOVED:
            moved += zip(new.tolist(), old.tolist(), strict=True)
    keep = target == np.arange(len(tree))
    number = np.cumsum(keep) - 1
    base = Side(present, frames, names, variants, codes)
    return PairedTree(
        parents=np.where(tree.parents >= 0, number[tree.parents], -1).astype("<i4")[keep],
        kinds=tree.kinds[keep],
        devices=tree.devices[keep],
        states=states[keep],
        base=base.take(keep),
        new=tree.new.take(keep),
        origins=Origins(((int(number[row]), was) for row, was in moved), tree.path),
        places=tuple(number[target[place]].astype("<i4") for place in tree.places),
        strings=tree.strings,
        device_names=tree.device_names,
        variants=tree.variants,
    )
