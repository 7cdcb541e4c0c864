"""Joins the counters of another tool with the call paths of a profile.

Two runs of one program launch the same kernels in the same order, so launches are paired by the
kernel's name and their place among its launches. The order of launches of several rows is not
recorded; if a kernel has several rows, it is assumed to be launched in rounds (steps of a training
loop): with counts 4 and 2 each of two rounds launches the first row twice, then the second once. If
the tool's file has grids, rows of another grid never get a launch. Each kernel assigned in this way
is a `Doubt`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.launches import kernel_counts
from proton_bench.analysis.counters.file import CounterFile, MeasuredLaunch
from proton_bench.analysis.counters.other_tools import CounterJoin, Doubt
from proton_bench.analysis.naming.demangling import base_name, base_names
from proton_bench.model.profile import Profile

__all__ = ["join_counters"]

_DIMENSIONS = 3
_MAX_LAUNCHES = 10_000_000
_NUMBER = re.compile(r"\d+")
_FOREIGN = {"ncu": "HIP", "rocprof": "CUDA"}


def join_counters(profile: Profile, file: CounterFile) -> CounterJoin:
    """Pair the launches of a file with the rows of a profile.

    Args:
        profile: A profile whose variants and trials are still in it.
        file: What another tool measured in another run of the same program.
    """
    counts = _measurable(profile, file.tool)
    by_name = _rows_by_name(profile, counts)
    groups: dict[tuple[str, str], list[MeasuredLaunch]] = defaultdict(list)
    for launch in file.launches:
        has_grids = _has_grids(profile, by_name.find(launch.kernel), launch.grid)
        groups[launch.kernel, launch.grid if has_grids else ""].append(launch)
    rows = np.full(len(file.launches), -1, dtype=np.int64)
    taken: dict[int, int] = defaultdict(int)
    doubts: list[Doubt] = []
    for (kernel, grid), launches in groups.items():
        found = _with_grid(profile, by_name.find(kernel), grid)
        free = [(row, int(counts[row]) - taken[row]) for row in found]
        places = _places(profile, found)
        if places > 1:
            launched = sum(count for _, count in free)
            name = f"{kernel} {grid}".rstrip()
            doubts.append(Doubt(name, len(launches), launched, places))
        for launch, row in zip(launches, _turns(free), strict=False):
            rows[launch.order] = row
            taken[row] += 1
    matched = int((rows >= 0).sum())
    return CounterJoin(file, rows, int(counts.sum()) - matched, tuple(doubts))


def _measurable(profile: Profile, tool: str) -> npt.NDArray[np.int64]:
    """Return the launches of each row's kernel, 0 on devices of other vendors."""
    foreign = [device.kind == _FOREIGN.get(tool) for device in profile.devices]
    # The last entry answers for rows without a device, whose position is -1.
    return np.where(np.array([*foreign, False])[profile.device_rows], 0, kernel_counts(profile))


@dataclass(frozen=True, slots=True)
class _KernelNames:
    """Rows of kernels by the names that a tool may give them."""

    exact: Mapping[str, list[int]]
    base: Mapping[str, list[int]]

    def find(self, kernel: str) -> list[int]:
        return self.exact.get(kernel) or self.base.get(base_name(kernel)) or []


def _rows_by_name(profile: Profile, counts: npt.NDArray[np.int64]) -> _KernelNames:
    exact: dict[str, list[int]] = defaultdict(list)
    base: dict[str, list[int]] = defaultdict(list)
    own: dict[int, dict[str, None]] = {}
    for row in np.flatnonzero(counts > 0).tolist():
        variant = profile.variant(row)
        own[row] = dict.fromkeys([profile.name(row), variant.raw_name if variant else ""])
        own[row].pop("", None)
        for name in own[row]:
            exact[name].append(row)
    bases = base_names(exact)
    for row, names in own.items():
        for name in dict.fromkeys(bases[name] for name in names):
            base[name].append(row)
    return _KernelNames(exact, base)


def _has_grids(profile: Profile, rows: list[int], grid: str) -> bool:
    """Return whether both sides have the grid; rocprof counts work-items, in one number."""
    is_known = all(profile.variant_rows[row] >= 0 for row in rows)
    return is_known and len(_NUMBER.findall(grid)) == _DIMENSIONS


def _with_grid(profile: Profile, rows: list[int], grid: str) -> list[int]:
    """Return the rows launched with this grid, all for no grid."""
    wanted = tuple(map(int, _NUMBER.findall(grid)))
    if not wanted:
        return rows
    return [row for row in rows if profile.variants[profile.variant_rows[row]].grid == wanted]


def _places(profile: Profile, rows: list[int]) -> int:
    """Return how many rows these are once variants of one kernel are folded."""
    columns = (profile.parents, profile.frames, profile.device_rows)
    return len({tuple(int(column[row]) for column in columns) for row in rows})


def _turns(free: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the row of each launch, in rounds; see the module's docstring."""
    open_rows = [(row, count) for row, count in free if count > 0]
    rounds = math.gcd(*(count for _, count in open_rows)) if open_rows else 0
    for _ in range(min(rounds, _MAX_LAUNCHES)):
        for row, count in open_rows:
            for _ in range(count // rounds):
                yield row
