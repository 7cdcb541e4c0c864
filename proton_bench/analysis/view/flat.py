"""A profile as a table: one row per kernel, operator or scope, over all call paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.device_use import runs_on_devices
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.view.name_filter import rows_below
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn
from proton_bench.model.metrics.spans import with_self_times
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, regroup

__all__ = ["flattened"]

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
        variant_rows=np.full(len(profile), -1, dtype="<i4"),
        variants=(),
    )
    return regroup(stack, numbers[group.reshape(-1)], profile)


def _labels(profile: Profile) -> npt.NDArray[np.int64]:
    """Return one number for name, kind and device of each row."""
    labels = profile.frames.astype(np.int64) * 256 + profile.kinds
    devices: npt.NDArray[np.int64] = labels * (len(profile.devices) + 1) + profile.device_rows + 1
    return devices


def _of_work(column: MetricColumn, is_work: npt.NDArray[np.bool_]) -> MetricColumn:
    """Return the column unchanged if it adds up, else without values of rows without work."""
    if column.spec.aggregation is Aggregation.INCLUSIVE:
        return column
    valid = column.valid & is_work
    if column.kind.is_vector:
        return replace(column, valid=valid)
    nothing = column.values.dtype.type(0)
    return replace(column, valid=valid, values=np.where(valid, column.values, nothing))


def _measured(profile: Profile) -> npt.NDArray[np.bool_]:
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
    leaves: npt.NDArray[np.bool_] = profile.subtree_end == np.arange(1, len(profile) + 1)
    leaves[0] = False
    return leaves
