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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.accounting.calls import kernel_counts
from proton_bench.analysis.counters.file import CounterFile, MeasuredLaunch, is_summable
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import with_mean
from proton_bench.analysis.naming.demangling import base_name, base_names
from proton_bench.model.arrays import Integers
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile

HBM = "hbm_bytes (byte)"

# Aspect -> names without units, best first.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "HBM traffic": (
        "dram__bytes.sum",
        "hbm_bytes",
        "dram__bytes_read.sum",
        "FETCH_SIZE",
        "FetchSize",
        "DRAM Throughput",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "tensor cores or MFMA": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.sum",
        "MfmaUtil",
        "SQ_VALU_MFMA_BUSY_CYCLES",
        "SQ_INSTS_MFMA",
        "SQ_INSTS_VALU_MFMA_MOPS_F16",
    ),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Occupancy",
        "OccupancyPercent",
        "MeanOccupancyPerCU",
        "SQ_LEVEL_WAVES",
        "SQ_WAVES",
    ),
    "scalar ALU": (
        "sm__inst_executed_pipe_uniform.sum",
        "sm__inst_executed_pipe_alu.sum",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "SALUBusy",
        "SQ_INSTS_SALU",
    ),
}
_MOST = 4

# Counters of bytes read and written, and their units.
_READ_AND_WRITE = (
    ("dram__bytes_read.sum (byte)", "dram__bytes_write.sum (byte)", 1.0),
    ("FETCH_SIZE", "WRITE_SIZE", 1024.0),
    ("FetchSize", "WriteSize", 1024.0),
)


def headlines(file: CounterFile) -> tuple[str, ...]:
    """Return one counter of each aspect that the file has, else its first ones."""
    names = file.names
    bases = {name.partition(" (")[0]: name for name in reversed(names)}
    found = [_first(bases, wanted) for wanted in HEADLINES.values()]
    return tuple(name for name in found if name) or names[:_MOST]


def _first(bases: Mapping[str, str], wanted: Iterable[str]) -> str | None:
    return next((bases[name] for name in wanted if name in bases), None)


def add_hbm_traffic(file: CounterFile) -> None:
    """Add ``hbm_bytes (byte)``, reads plus writes, to launches whose counters allow it.

    The sources are ``dram__bytes_read.sum`` with ``dram__bytes_write.sum``; by ``FETCH_SIZE`` with
    ``WRITE_SIZE``, which are in KiB; or by requests of the L2 cache, as rocprof-compute does it.
    Those read 32, 64 or 128 bytes and write 32 or 64: where reads of 128 bytes are not counted,
    nothing is added, except for gfx90a, which has none (its counters are called ``TCC_EA_...``).
    """
    for launch in file.launches:
        traffic = _traffic(launch.values)
        if traffic is not None:
            launch.values.setdefault(HBM, traffic)


def _traffic(values: Mapping[str, float]) -> float | None:
    for read, write, factor in _READ_AND_WRITE:
        if read in values and write in values:
            return factor * (values[read] + values[write])
    for unit in ("TCC_EA0", "TCC_EA"):
        read_bytes, written = _read_bytes(values, unit), _written_bytes(values, unit)
        if read_bytes is not None and written is not None:
            return read_bytes + written
    return None


def _read_bytes(values: Mapping[str, float], unit: str) -> float | None:
    reads, small = values.get(f"{unit}_RDREQ_sum"), values.get(f"{unit}_RDREQ_32B_sum")
    if reads is None or small is None:
        return None
    huge = values.get(f"{unit}_RDREQ_128B_sum", values.get("TCC_BUBBLE_sum"))
    if huge is None and unit != "TCC_EA":
        return None
    return 128 * (huge or 0.0) + 64 * (reads - (huge or 0.0) - small) + 32 * small


def _written_bytes(values: Mapping[str, float], unit: str) -> float | None:
    writes, large = values.get(f"{unit}_WRREQ_sum"), values.get(f"{unit}_WRREQ_64B_sum")
    return None if writes is None or large is None else 64 * large + 32 * (writes - large)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A kernel whose launches may have been given to the wrong rows.

    Attributes:
        kernel: Its name in the file of counters, with the grid where that tells launches apart.
        measured: Launches in that file.
        launched: Launches in the profile.
        places: Rows of it in the profile, variants folded.
    """

    kernel: str
    measured: int
    launched: int
    places: int

    @property
    def counts_differ(self) -> bool:
        """Whether the two runs launched it a different number of times, so rows do not match."""
        return self.measured != self.launched


@dataclass(frozen=True, slots=True, eq=False)
class CounterJoin:
    """The row of each measured launch.

    Attributes:
        file: The measured launches.
        rows: Row of the profile for each launch, -1 if none matches.
        unmeasured: Launches of kernels in the profile that are not in the file.
        doubts: Kernels with several rows, to which launches were assigned by order.
    """

    file: CounterFile
    rows: Integers
    unmeasured: int
    doubts: tuple[Doubt, ...] = ()

    @property
    def matched(self) -> int:
        """Number of matched launches."""
        return int((self.rows >= 0).sum())

    def unmatched(self) -> Mapping[str, int]:
        """Return the number of launches without a row by kernel, most first."""
        counts: dict[str, int] = defaultdict(int)
        for launch, row in zip(self.file.launches, self.rows.tolist(), strict=True):
            if row < 0:
                counts[launch.kernel] += 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def find(self, name: str) -> str | None:
        """Return the full name of a counter: any case, with or without unit or ``/%`` behind it."""
        names = self.file.names
        return find_metric(name, names) or find_metric(name.rpartition("/")[0] or name, names)

    def shown_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the counters that rows have: those that are summed, and those with a mean."""
        launches = zip(self.file.launches, self.rows.tolist(), strict=True)
        names = dict.fromkeys(n for launch, row in launches if row >= 0 for n in launch.values)
        sums = tuple(name for name in names if _is_sum(name))
        return sums, tuple(name for name in names if not _is_sum(name))

    def extend(self, profile: Profile, names: Iterable[str]) -> Profile:
        """Return the profile with these counters: amounts are summed, all others have a mean.

        Means weigh each launch by its time in the file where it says one.

        Args:
            profile: The profile that was joined.
            names: Full names of counters.
        """
        weights = [launch.duration_ns or 1.0 for launch in self.file.launches]
        for name in names:
            if _is_sum(name):
                profile = self._with_sum(profile, name)
            else:
                profile = self._with_mean(profile, name, weights)
        return profile

    def _values(self, name: str) -> Iterator[tuple[int, int, float]]:
        for place, (launch, row) in enumerate(
            zip(self.file.launches, self.rows.tolist(), strict=True)
        ):
            if row >= 0 and name in launch.values:
                yield place, row, launch.values[name]

    def _with_sum(self, profile: Profile, name: str) -> Profile:
        values = np.zeros(len(profile))
        valid = np.zeros(len(profile), dtype=np.bool_)
        for _, row, value in self._values(name):
            values[row] += value
            valid[row] = True
        spec = MetricSpec(name, Aggregation.INCLUSIVE)
        column = MetricColumn(spec, ValueKind.FLOAT, values.astype("<f8"), valid)
        return _with_column(profile, column)

    def _with_mean(self, profile: Profile, name: str, weights: Sequence[float]) -> Profile:
        total, weight = np.zeros(len(profile)), np.zeros(len(profile))
        for place, row, value in self._values(name):
            total[row] += value * weights[place]
            weight[row] += weights[place]
        mean = np.divide(total, weight, out=np.full(len(profile), np.nan), where=weight > 0)
        return with_mean(profile, name, values=mean, weights=weight)


def _is_sum(name: str) -> bool:
    spec = MetricSpec(name)
    return is_summable(spec.base, spec.unit)


def _with_column(profile: Profile, column: MetricColumn) -> Profile:
    return replace(profile, columns={**profile.columns, column.spec.name: column})


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


def _measurable(profile: Profile, tool: str) -> Integers:
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


def _rows_by_name(profile: Profile, counts: Integers) -> _KernelNames:
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
