"""Selects the shown rows of a profile: without launch metadata, by name, threshold and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.device_use import runs_on_devices
from proton_bench.analysis.choices import DEFAULT_DEPTH
from proton_bench.analysis.metrics.derive import prepare, values_of
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.shapes import shows_shapes
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.naming.nested import fold_nested
from proton_bench.analysis.naming.readable import Readable, folded, texts_of
from proton_bench.analysis.view.names import NameFilter, rows_above, rows_below, with_stable_names
from proton_bench.errors import UsageError
from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn
from proton_bench.model.metrics.wall_times import with_self_times
from proton_bench.model.preorder import depths, positions, subtree_ends
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, fold_into_ancestors, fold_variants, regroup


@dataclass(frozen=True, slots=True, eq=False)
class MetricTree:
    """Rows and values for a report, in pre-order.

    Attributes:
        strings: Distinct names, as they are shown.
        parents: Row of each row's parent, -1 for the root.
        frames: Position of each row's name in ``strings``.
        kinds: `FrameKind` of each row as uint8.
        devices: "CUDA:0" and the like per row, "" for rows without a device.
        metrics: Values to show; the first one decides thresholds and colours.
        cut: Rows left out because they are too deep.
        unvalued: Rows left out because they have no value of these metrics.
        chains: For each row the names of the rows above it that stand in the same line, as
            positions in ``strings``; empty if each row has a line of its own.
        recorded: The recorded name for each of ``strings``; empty if these are the recorded ones.
    """

    strings: tuple[str, ...]
    parents: Indexes
    frames: Indexes
    kinds: npt.NDArray[np.uint8]
    devices: tuple[str, ...]
    metrics: tuple[MetricValues, ...]
    cut: int = 0
    unvalued: int = 0
    chains: tuple[tuple[int, ...], ...] = ()
    recorded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.parents)

    def name(self, row: int) -> str:
        """Return the row's name."""
        return self.strings[int(self.frames[row])]

    def depths(self) -> Indexes:
        """Return for each row the number of rows above it."""
        return depths(self.parents)

    def take(self, keep: Mask, *, cut: int = 0) -> MetricTree:
        """Return the kept rows; the parent of each kept row has to be kept too."""
        rows = np.flatnonzero(keep)
        return replace(
            self,
            parents=renumbered(self.parents, keep),
            frames=self.frames[rows],
            kinds=self.kinds[rows],
            devices=tuple(self.devices[row] for row in rows.tolist()),
            metrics=tuple(metric.take(rows) for metric in self.metrics),
            cut=cut,
        )

    def reordered(self, order: Integers) -> MetricTree:
        """Return the same rows in another pre-order.

        Args:
            order: The row that comes first, second...; a parent stands before its rows.
        """
        places = np.empty(len(self), dtype="<i4")
        places[order] = np.arange(len(self), dtype="<i4")
        above = self.parents[order]
        return replace(
            self,
            parents=np.where(above >= 0, places[above], -1).astype("<i4"),
            frames=self.frames[order],
            kinds=self.kinds[order],
            devices=tuple(self.devices[row] for row in order.tolist()),
            metrics=tuple(metric.take(order) for metric in self.metrics),
        )


def renumbered(parents: Indexes, keep: Mask) -> Indexes:
    """Return the parents of the kept rows, as indexes of kept rows."""
    places = np.cumsum(keep, dtype=np.int64) - 1
    above = parents[keep]
    return np.where(above >= 0, places[above], -1).astype("<i4")


_OF_DEVICES = ("count", "time")
_OF_HOST = (*_OF_DEVICES, "wall", "host_wall", "other_threads", "cpu_time")


def flattened(profile: Profile) -> Profile:
    """Return the profile with the rows that were measured right below the root.

    Rows equal in name, kind and device are summed, with lines of kernels. Inclusive values of rows
    without a count or time go to the row above, so totals do not change.
    """
    profile = with_self_times(profile)
    is_work = _measured(profile)
    owners = np.where(is_work, np.arange(len(profile)), 0)
    for row, above in enumerate(profile.parents.tolist()):
        if above >= 0 and not is_work[row]:
            owners[row] = owners[above]
    labels = _labels(profile)[owners]
    labels[owners == 0] = -1  # the root, which no other row equals
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype="<i4")
    numbers[np.argsort(first)] = np.arange(len(first))
    parents = np.zeros(len(profile), dtype="<i4")
    parents[0] = -1
    stack = Stack.of(profile)
    stack = replace(
        stack,
        columns=tuple(_of_work(column, is_work) for column in stack.columns),
        parents=parents,
    )
    return regroup(stack, numbers[group.reshape(-1)], profile)


def _labels(profile: Profile) -> Integers:
    """Return one number for name, kind, device and variant of each row."""
    labels = profile.frames.astype(np.int64) * 256 + profile.kinds
    labels = labels * (len(profile.devices) + 1) + profile.device_rows + 1
    numbers: Integers = labels * (len(profile.variants) + 1) + profile.variant_rows + 1
    return numbers


def _of_work(column: MetricColumn, is_work: Mask) -> MetricColumn:
    """Return the column unchanged if it adds up, else without values of rows without work."""
    if column.spec.aggregation is Aggregation.INCLUSIVE:
        return column
    valid = column.valid & is_work
    if column.kind.is_vector:
        return replace(column, valid=valid)
    nothing = column.values.dtype.type(0)
    return replace(column, valid=valid, values=np.where(valid, column.values, nothing))


def _measured(profile: Profile) -> Mask:
    """Mark rows with a count or time of their own, else leaves; lines are their kernel's."""
    marked = np.zeros(len(profile), dtype=np.bool_)
    for base in _OF_DEVICES if runs_on_devices(profile) else _OF_HOST:
        full = find_metric(base, profile.columns)
        if full is not None and profile.columns[full].kind.is_number:
            column = profile.columns[full]
            marked |= column.valid & (column.values != 0)
    marked[0] = False
    kernels = marked & (profile.kinds == FrameKind.KERNEL)
    marked &= kernels | ~rows_below(kernels, profile.subtree_end)
    if bool(marked.any()):
        return marked
    leaves: Mask = profile.subtree_end == np.arange(1, len(profile) + 1)
    leaves[0] = False
    return leaves


METADATA_SCOPE = "__proton_launch_metadata"
TRIALS_STATE = "<autotune>"
_SCOPES = (FrameKind.SCOPE, FrameKind.TEST, FrameKind.LAYER)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows to show. Values do not change: a parent includes hidden rows.

    Attributes:
        include: Regular expression, matched from the start of a name: keep matching rows, the
            rows above and the rows below them.
        exclude: Regular expression: drop matching rows and the rows below them.
        threshold: Keep rows whose first metric is at least this, and the rows above them.
        depth: Levels to show; 1 is the root alone.
        trials: Also show launches with which autotuners tried configurations.
        raw_names: Show the names of kernels with Inductor's running numbers.
        readable: What to make readable; None shows names and rows as they were recorded.
        flat: Show one row per kernel instead of call paths.
        by_size: Order siblings by the first shown metric, the largest first; a table always is.
    """

    include: str | None = None
    exclude: str | None = None
    threshold: float | None = None
    depth: int = DEFAULT_DEPTH
    trials: bool = False
    raw_names: bool = False
    readable: Readable | None = None
    flat: bool = False
    by_size: bool = False

    def __post_init__(self) -> None:
        NameFilter(self.include, self.exclude)  # raises if both are given
        if self.depth < 1:
            raise UsageError(f"a depth of {self.depth} shows nothing: give 1 or more")

    @property
    def chooses_rows(self) -> bool:
        """Whether it is about certain rows, by name, value or depth."""
        is_filtered = bool(self.include or self.exclude) or self.threshold is not None
        return is_filtered or self.depth != DEFAULT_DEPTH

    @property
    def names(self) -> NameFilter:
        """The filters by name."""
        return NameFilter(self.include, self.exclude)


def build_tree(profile: Profile, metrics: Sequence[str], selection: Selection) -> MetricTree:
    """Return the rows and values to show of a profile.

    Launch metadata is left out; trials of an autotuner are one row unless requested. Variants of
    one kernel are one row, unless shapes are shown, and so are kernels whose names differ only in
    Inductor's running number, except with raw names. Where rows are made readable, those without a
    value of these metrics are left out and counted, except scopes.

    Raises:
        MetricError: A metric is unknown or cannot be derived.
        UsageError: A regular expression is malformed, or no row is left.
    """
    shown = drop_metadata(prepare(profile, metrics))
    if not selection.trials:
        shown = fold_trials(shown)
    if not selection.raw_names:
        shown = with_stable_names(shown)
    if selection.readable is not None:
        shown = _folded(shown, selection.readable, selection.names, flat=selection.flat)
    shown = fold_variants(shown, but_signatures=shows_shapes(metrics))
    shown = flattened(shown) if selection.flat else shown
    labels = [f"{device.kind}:{device.index}" for device in shown.devices]
    labels.append("")
    tree = MetricTree(
        strings=shown.strings,
        parents=shown.parents,
        frames=shown.frames,
        kinds=shown.kinds,
        devices=tuple(labels[position] for position in shown.device_rows.tolist()),
        metrics=values_of(shown, metrics),
    )
    if selection.readable is not None:
        rows = [(tree.frames, tree.kinds)]
        texts = texts_of(tree.strings, rows, selection.readable, provenance=profile.provenance)
        tree = replace(tree, strings=texts, recorded=tree.strings)
        tree = _with_values(tree, shown)
    tree = select(tree, selection)
    return _by_size(tree) if metrics and (selection.by_size or selection.flat) else tree


def _by_size(tree: MetricTree) -> MetricTree:
    """Return the tree with siblings in order, the largest first metric first.

    Rows without a value are last, texts rise, the next metric orders equal rows.
    """
    ranks = [_ranks(metric) for metric in tree.metrics]
    rows = np.arange(len(tree))
    level_order = np.lexsort(np.stack([rows, *reversed(ranks), tree.depths()]))
    numbers = np.empty(len(tree), dtype=np.int64)
    numbers[level_order] = rows
    above = tree.parents[level_order]
    places = positions(np.where(above >= 0, numbers[above], -1).astype("<i4"))
    order = np.empty(len(tree), dtype=np.int64)
    order[places] = level_order
    return tree.reordered(order)


def _ranks(by: MetricValues) -> Integers:
    texts = by.values if by.is_number else np.array([str(value) for value in by.values])
    _, ranks = np.unique(texts, return_inverse=True)
    ranks = ranks.astype(np.int64)
    if by.is_number:
        known = by.valid & ~np.isnan(by.values.astype(np.float64))
        return np.where(known, -ranks, np.iinfo(np.int64).max)
    return np.where(by.valid, ranks, np.iinfo(np.int64).max)


def _folded(profile: Profile, readable: Readable, names: NameFilter, *, flat: bool) -> Profile:
    """Return the profile with what repeats folded, but for layers if the filter names one."""
    if flat and readable.fold_frames:  # library frames are rows of a table
        before = fold_nested(profile, counted=False)
    else:
        before = folded(profile, replace(readable, fold_layers=False))
    after = folded(before, replace(readable, fold_frames=False))
    if not names:
        return after
    old, new = (
        [each.strings[place] for place in np.unique(each.frames)] for each in (before, after)
    )
    return before if names.is_lost(old, new) else after


def _with_values(tree: MetricTree, profile: Profile) -> MetricTree:
    """Return the rows with a value of a shown metric, measured scopes, and the rows above them."""
    if not tree.metrics:
        return tree
    valid = np.logical_or.reduce([metric.valid for metric in tree.metrics])
    measured = valid | profile.has_values()
    keep = rows_above(valid | (measured & np.isin(tree.kinds, _SCOPES)), profile.subtree_end)
    keep[0] = True
    return replace(tree.take(keep), unvalued=int((measured & ~keep).sum()))


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
    ends = subtree_ends(tree.parents)
    keep = selection.names.keep(
        tree.strings, ends, lambda named: named[tree.frames], recorded=tree.recorded
    )
    if selection.threshold is not None:
        # Rows that other filters dropped must not keep the rows above them.
        keep &= rows_above(keep & _reaches(tree, selection.threshold), ends)
    if not bool(keep.any()):
        raise UsageError(f"no row is left after {_describe(selection)}")
    return keep


def _describe(selection: Selection) -> str:
    threshold = "" if selection.threshold is None else f"-t {selection.threshold}"
    return " ".join(filter(None, (str(selection.names), threshold)))


def _reaches(tree: MetricTree, threshold: float) -> Mask:
    if not tree.metrics:
        raise UsageError("a threshold needs a metric to compare: name one with -m")
    first = tree.metrics[0]
    if not first.is_number:
        raise UsageError(f"metric {first.name!r} is not a number; a threshold needs one")
    reached = np.zeros(len(tree), dtype=np.bool_)
    np.greater_equal(first.values, threshold, out=reached, where=first.valid)
    return reached


# -- launch metadata and trials ------------------------------------------------------------------
def _is_metadata(name: str) -> bool:
    """Return whether a frame holds launches for computing a kernel's launch metadata."""
    return name == METADATA_SCOPE or name.startswith(f"{METADATA_SCOPE}:")


def drop_metadata(profile: Profile) -> Profile:
    """Return the profile without launch metadata and rows that are then empty."""
    return _drop(profile, [_is_metadata(text) for text in profile.strings])


def fold_trials(profile: Profile) -> Profile:
    """Return the profile with all trials of an autotuner in one row, with their time."""
    is_trials = np.array([text == TRIALS_STATE for text in profile.strings], dtype=np.bool_)
    if not bool(is_trials.any()):
        return profile
    rows = rows_below(is_trials[profile.frames], profile.subtree_end)
    return fold_into_ancestors(profile, rows & rows[profile.parents])


def drop_trials(profile: Profile) -> Profile:
    """Return the profile without trials of autotuners and rows that are then empty."""
    return _drop(profile, [text == TRIALS_STATE for text in profile.strings])


def shown_rows(profile: Profile) -> npt.NDArray[np.intp]:
    """Return the rows without launch metadata and trials, in order."""
    rows = np.flatnonzero(_kept(profile, [_is_metadata(text) for text in profile.strings]))
    shown = drop_metadata(profile)
    kept = _kept(shown, [text == TRIALS_STATE for text in shown.strings])
    return rows[kept]


def _drop(profile: Profile, dropped: Sequence[bool]) -> Profile:
    """Drop rows by name, with all rows below them."""
    keep = _kept(profile, dropped)
    return profile if bool(keep.all()) else prune(profile, keep)


def _kept(profile: Profile, dropped: Sequence[bool]) -> Mask:
    flags = np.array(dropped, dtype=np.bool_)
    alive = ~rows_below(flags[profile.frames], profile.subtree_end)
    keep = rows_above(alive & profile.has_values(), profile.subtree_end)
    keep[0] = True
    return keep


def prune(profile: Profile, keep: Mask) -> Profile:
    """Return the kept rows as a profile, with their samples.

    Args:
        profile: The profile to take rows from.
        keep: One flag per row; the parent of a kept row has to be kept too.
    """
    return replace(
        profile,
        parents=renumbered(profile.parents, keep),
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
    lengths: Array = np.diff(column.offsets)
    offsets = np.zeros(int(keep.sum()) + 1, dtype=np.int64)
    np.cumsum(lengths[keep], out=offsets[1:])
    values = column.values[np.repeat(keep, lengths)]
    return replace(column, values=values, valid=column.valid[keep], offsets=offsets)
