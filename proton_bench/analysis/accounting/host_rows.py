"""The rows of the host in a few: imports as one row, and no frames that only run the program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proton_bench.analysis.accounting.host_time import (
    IMPORTS,
    NOT_RECORDED,
    import_rows,
    is_runner,
)
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, regroup

__all__ = ["fold_host_rows"]


def fold_host_rows(profile: Profile) -> Profile:
    """Return the profile with the rows below ``<not recorded>`` folded.

    All imports are one row. Frames down to the last one that runs a program or a cell of a notebook
    are left out; their own time goes to ``<not recorded>``.
    """
    stack = Stack.of(profile)
    strings = (*stack.strings, IMPORTS)
    runs = [is_runner(name) for name in strings]
    imports, is_above_runner = import_rows(profile), np.zeros(len(profile), dtype=np.bool_)
    parents, frames = stack.parents.copy(), stack.frames.copy()
    for row in range(len(profile) - 1, 0, -1):  # rows below come first
        if is_above_runner[row] or runs[frames[row]]:
            is_above_runner[row] = is_above_runner[parents[row]] = True
    tops: list[int] = [-1] * len(profile)
    known: dict[tuple[int, ...], int] = {(): 0}
    groups = [0] * len(profile)
    for row in range(1, len(profile)):
        above = int(stack.parents[row])
        top = tops[row] = row if profile.name(row) == NOT_RECORDED else tops[above]
        if top not in (-1, row):
            if imports[row]:
                parents[row], frames[row] = top, len(strings) - 1
            elif is_above_runner[row]:
                groups[row] = groups[top]
                continue
        label = (stack.kinds[row], stack.device_rows[row], stack.variant_rows[row])
        key = (groups[parents[row]], int(frames[row]), *map(int, label))
        groups[row] = known.setdefault(key, len(known))
    folded = replace(stack, strings=strings, parents=parents, frames=frames)
    return regroup(folded, np.array(groups, dtype="<i4"), profile)
