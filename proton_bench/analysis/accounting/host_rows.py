"""Rows of the host without the frames that only run a program or a cell of a notebook."""

from __future__ import annotations

import numpy as np

from proton_bench.analysis.accounting.host_time import NOT_RECORDED, is_runner
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, regroup, row_labels

__all__ = ["without_runners"]


def without_runners(profile: Profile) -> Profile:
    """Return the profile without frames down to the last one that runs a program or a cell.

    They stand below ``<not recorded>``, and their own time goes to that row.
    """
    is_run = [is_runner(name) for name in profile.strings]
    is_above = np.array(is_run, dtype=np.bool_)[profile.frames]
    for row in range(len(profile) - 1, 0, -1):  # rows below come first
        is_above[profile.parents[row]] |= is_above[row]
    stack = Stack.of(profile)
    labels = row_labels(stack).tolist()
    tops, groups = [-1] * len(profile), [0] * len(profile)
    known: dict[tuple[int, int], int] = {(-1, -1): 0}
    for row in range(1, len(profile)):
        above = int(profile.parents[row])
        tops[row] = row if profile.name(row) == NOT_RECORDED else tops[above]
        if is_above[row] and tops[row] not in (-1, row):
            groups[row] = groups[tops[row]]
        else:
            groups[row] = known.setdefault((groups[above], labels[row]), len(known))
    return regroup(stack, np.array(groups, dtype="<i4"), profile)
