"""One row per kernel, whatever launched it: the kernel table of a profile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.formula import find_metric
from proton_bench.profile import Aggregation, Profile
from proton_bench.profile.regroup import Stack, regroup

__all__ = ["flattened"]


def flattened(profile: Profile) -> Profile:
    """Return the profile with its kernels and operators right below the root.

    Rows equal in name, kind and device are summed, with what stands below them (lines of a kernel);
    rows that were counted are kernels or operators, and what others hold of inclusive metrics
    stays in the root, so that totals do not change.
    """
    is_work = _counted(profile)
    owners = np.where(is_work, np.arange(len(profile)), 0)
    for row, above in enumerate(profile.parents.tolist()):
        if above >= 0 and not is_work[row]:
            owners[row] = owners[above]
    labels = np.stack([profile.frames, profile.kinds, profile.device_rows], axis=1)[owners]
    labels[owners == 0] = -2  # the root, which no other row equals
    _, first, group = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype="<i4")
    numbers[np.argsort(first)] = np.arange(len(first))
    stack = Stack.of(profile)
    columns = tuple(
        column
        if column.spec.aggregation is Aggregation.INCLUSIVE or column.offsets is not None
        else replace(column, valid=column.valid & is_work)
        for column in stack.columns
    )
    columns = tuple(
        column
        if column.kind.is_vector or column.spec.aggregation is Aggregation.INCLUSIVE
        else replace(
            column, values=np.where(column.valid, column.values, column.values.dtype.type(0))
        )
        for column in columns
    )
    parents = np.zeros(len(profile), dtype="<i4")
    parents[0] = -1
    variants = np.full(len(profile), -1, dtype="<i4")
    stack = replace(stack, columns=columns, parents=parents, variant_rows=variants, variants=())
    return regroup(stack, numbers[group.reshape(-1)], profile)


def _counted(profile: Profile) -> npt.NDArray[np.bool_]:
    """Mark the rows that were counted, else those with a time, else the leaves."""
    for base in ("count", "time"):
        full = find_metric(base, profile.columns)
        if full is not None and profile.columns[full].kind.is_number:
            column = profile.columns[full]
            marked: npt.NDArray[np.bool_] = column.valid & (column.values != 0)
            marked[0] = False
            if bool(marked.any()):
                return marked
    leaves: npt.NDArray[np.bool_] = profile.subtree_end == np.arange(1, len(profile) + 1)
    leaves[0] = False
    return leaves
