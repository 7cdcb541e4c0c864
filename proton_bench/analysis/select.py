"""Which rows of a profile are shown: launch metadata left out, frames by name, threshold, depth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.derive import derive, prepare
from proton_bench.analysis.names import with_stable_names
from proton_bench.analysis.values import MetricValues
from proton_bench.errors import UsageError
from proton_bench.profile import MetricColumn, Profile
from proton_bench.profile.preorder import depths, subtree_ends

__all__ = [
    "METADATA_SCOPE",
    "TRIALS_STATE",
    "MetricTree",
    "Selection",
    "build_tree",
    "drop_metadata",
    "drop_trials",
    "is_metadata",
    "kept_rows",
    "prune",
    "select",
]

METADATA_SCOPE = "__proton_launch_metadata"
TRIALS_STATE = "<autotune>"
DEFAULT_DEPTH = 100

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows to show. Values are not touched: a parent keeps what hidden rows gave it.

    Attributes:
        include: Regular expression, matched from the start of a name: keep matching rows, the
            rows above and the rows below them.
        exclude: Regular expression: drop matching rows and the rows below them.
        threshold: Keep rows whose first metric is at least this, and the rows above them.
        depth: Levels to show; 1 is the root alone.
        trials: Also show what autotuners launched to try configurations.
        raw_names: Show the names of kernels with Inductor's running numbers.
    """

    include: str | None = None
    exclude: str | None = None
    threshold: float | None = None
    depth: int = DEFAULT_DEPTH
    trials: bool = False
    raw_names: bool = False

    def __post_init__(self) -> None:
        if self.include and self.exclude:
            raise UsageError("Cannot specify both include and exclude: give one of them")
        if self.depth < 1:
            raise UsageError(f"a depth of {self.depth} shows nothing: give 1 or more")


@dataclass(frozen=True, slots=True, eq=False)
class MetricTree:
    """Rows and values ready for a report, in pre-order.

    Attributes:
        strings: Distinct names.
        parents: Row of each row's parent, -1 for the root.
        frames: Position of each row's name in ``strings``.
        kinds: `FrameKind` of each row as uint8.
        devices: "CUDA:0" and the like per row, "" for rows without a device.
        metrics: Values to show; the first one decides thresholds and colours.
        cut: Rows left out because they lie too deep.
    """

    strings: tuple[str, ...]
    parents: npt.NDArray[np.int32]
    frames: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    devices: tuple[str, ...]
    metrics: tuple[MetricValues, ...]
    cut: int = 0

    def __len__(self) -> int:
        return len(self.parents)

    def name(self, row: int) -> str:
        """Return the row's name."""
        return self.strings[int(self.frames[row])]

    def depths(self) -> npt.NDArray[np.int32]:
        """Return for each row the number of rows above it."""
        return depths(self.parents)

    def take(self, keep: Mask, *, cut: int = 0) -> MetricTree:
        """Return the kept rows; the parent of each kept row has to be kept too."""
        rows = np.flatnonzero(keep)
        return MetricTree(
            strings=self.strings,
            parents=_renumbered(self.parents, keep),
            frames=self.frames[rows],
            kinds=self.kinds[rows],
            devices=tuple(self.devices[row] for row in rows.tolist()),
            metrics=tuple(metric.take(rows) for metric in self.metrics),
            cut=cut,
        )


def build_tree(profile: Profile, metrics: Sequence[str], selection: Selection) -> MetricTree:
    """Return the rows and values to show of a profile.

    Launch metadata is left out, and trials of autotuners unless they are asked for. Variants of one
    kernel are one row, and so are kernels whose names differ in Inductor's running number alone
    unless raw names are asked for.

    Raises:
        MetricError: A metric is unknown or cannot be derived.
        UsageError: A regular expression is malformed, or no row is left.
    """
    shown = drop_metadata(prepare(profile, metrics))
    if not selection.trials:
        shown = drop_trials(shown)
    if not selection.raw_names:
        shown = with_stable_names(shown)
    shown = shown.fold_variants()
    labels = [f"{device.kind}:{device.index}" for device in shown.devices]
    labels.append("")
    tree = MetricTree(
        strings=shown.strings,
        parents=shown.parents,
        frames=shown.frames,
        kinds=shown.kinds,
        devices=tuple(labels[position] for position in shown.device_rows.tolist()),
        metrics=derive(shown, metrics),
    )
    return select(tree, selection)


def select(tree: MetricTree, selection: Selection) -> MetricTree:
    """Return the rows that the selection keeps; raises what `kept_rows` raises."""
    keep = kept_rows(tree, selection)
    deep = keep & (tree.depths() >= selection.depth)
    return tree.take(keep & ~deep, cut=int(deep.sum()))


def kept_rows(tree: MetricTree, selection: Selection) -> Mask:
    """Return one flag per row: whether the filters keep it, whatever its depth.

    Raises:
        UsageError: A regular expression is malformed, no row is left, or the threshold meets a
            metric that is not a number.
    """
    keep = np.ones(len(tree), dtype=np.bool_)
    ends = subtree_ends(tree.parents)
    if selection.include:
        found = _matches(tree, selection.include, "include")
        keep &= _below(found, ends) | _above(found, ends)
    if selection.exclude:
        keep &= ~_below(_matches(tree, selection.exclude, "exclude"), ends)
    if selection.threshold is not None:
        # Rows that other filters dropped must not hold up the rows above them.
        keep &= _above(keep & _reaches(tree, selection.threshold), ends)
    if not bool(keep.any()):
        raise UsageError(f"no row is left after {_describe(selection)}")
    return keep


def _describe(selection: Selection) -> str:
    given = (("-i", selection.include), ("-e", selection.exclude), ("-t", selection.threshold))
    return " ".join(f"{flag} {value}" for flag, value in given if value is not None)


def _matches(tree: MetricTree, expression: str, what: str) -> Mask:
    try:
        pattern = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{what} {expression!r} is no regular expression: {error}") from error
    found = np.array([pattern.match(text) is not None for text in tree.strings], dtype=np.bool_)
    return found[tree.frames]


def _reaches(tree: MetricTree, threshold: float) -> Mask:
    if not tree.metrics:
        raise UsageError("a threshold needs a metric to compare: name one with -m")
    first = tree.metrics[0]
    if not first.is_number:
        raise UsageError(f"metric {first.name!r} is not a number; a threshold needs one")
    reached = np.zeros(len(tree), dtype=np.bool_)
    np.greater_equal(first.values, threshold, out=reached, where=first.valid)
    return reached


def _below(rows: Mask, ends: npt.NDArray[np.int32]) -> Mask:
    """Mark the given rows and all rows below them."""
    depth = np.zeros(len(rows) + 1, dtype=np.int64)
    np.add.at(depth, np.flatnonzero(rows), 1)
    np.add.at(depth, ends[rows], -1)
    return np.cumsum(depth[:-1]) > 0


def _above(rows: Mask, ends: npt.NDArray[np.int32]) -> Mask:
    """Mark the given rows and all rows above them."""
    running = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(rows, out=running[1:])
    return running[ends] > running[:-1]


def _renumbered(parents: npt.NDArray[np.int32], keep: Mask) -> npt.NDArray[np.int32]:
    places = np.cumsum(keep, dtype=np.int64) - 1
    above = parents[keep]
    return np.where(above >= 0, places[above], -1).astype("<i4")


# -- launch metadata and trials ------------------------------------------------------------------
def is_metadata(name: str) -> bool:
    """Tell whether a frame holds what was launched to compute a kernel's launch metadata."""
    return name == METADATA_SCOPE or name.startswith(f"{METADATA_SCOPE}:")


def drop_metadata(profile: Profile) -> Profile:
    """Return the profile without launch metadata and without rows that then hold nothing."""
    return _drop(profile, [is_metadata(text) for text in profile.strings])


def drop_trials(profile: Profile) -> Profile:
    """Return the profile without trials of autotuners and without rows that then hold nothing."""
    return _drop(profile, [text == TRIALS_STATE for text in profile.strings])


def _drop(profile: Profile, dropped: Sequence[bool]) -> Profile:
    """Drop rows by name, with all rows below them."""
    flags = np.array(dropped, dtype=np.bool_)
    alive = ~_below(flags[profile.frames], profile.subtree_end)
    measured = np.zeros(len(profile), dtype=np.bool_)
    for column in profile.columns.values():
        measured |= column.valid
    keep = _above(alive & measured, profile.subtree_end)
    keep[0] = True
    return profile if bool(keep.all()) else prune(profile, keep)


def prune(profile: Profile, keep: Mask) -> Profile:
    """Return the kept rows as a profile, with their samples.

    Args:
        profile: The profile to take rows from.
        keep: One flag per row; the parent of a kept row has to be kept too.
    """
    return replace(
        profile,
        parents=_renumbered(profile.parents, keep),
        frames=profile.frames[keep],
        kinds=profile.kinds[keep],
        device_rows=profile.device_rows[keep],
        variant_rows=profile.variant_rows[keep],
        columns={name: _pruned(column, keep) for name, column in profile.columns.items()},
        distributions={name: table.take(keep) for name, table in profile.distributions.items()},
    )


def _pruned(column: MetricColumn, keep: Mask) -> MetricColumn:
    if column.offsets is None:
        return replace(column, values=column.values[keep], valid=column.valid[keep])
    lengths: npt.NDArray[Any] = np.diff(column.offsets)
    offsets = np.zeros(int(keep.sum()) + 1, dtype=np.int64)
    np.cumsum(lengths[keep], out=offsets[1:])
    values = column.values[np.repeat(keep, lengths)]
    return replace(column, values=values, valid=column.valid[keep], offsets=offsets)
