"""Names of columns in other tools' CSV files: kernel, order, grid, time and counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Columns", "is_heading", "is_of_ncu"]

_NAMES = ("Kernel Name", "Kernel_Name", "KernelName", "kernel_name")
_ORDERS = ("ID", "Dispatch_ID", "Dispatch_Id", "dispatch_id", "Index")
_GRIDS = ("Grid Size", "Grid_Size")
# Begin and end of a dispatch in ns; ncu has a metric for it instead.
_TIMES = (("Start_Timestamp", "End_Timestamp"), ("BeginNs", "EndNs"))
_LONG = (
    ("Metric Name", "Metric Value", "Metric Unit"),
    ("Counter_Name", "Counter_Value", ""),
)
# Columns that are not counters, in lower case without separators: ncu, rocprof 1, rocprofv2,
# rocprofv3.
_FACTS = frozenset(
    """
    id processid processname hostname kernelname kerneltime context stream blocksize gridsize
    device cc sectionname dispatchid gpuid queueid queueindex pid tid grd wgr grid size
    workgroup workgroupsize ldsperworkgroup scratchperworkitem archvgpr accumvgpr sgpr
    wavesize starttimestamp endtimestamp correlationid kernelid nodeid agentid threadid sig
    obj index vgprcount accumvgprcount sgprcount ldsblocksize scratchsize lds scr vgpr fbar
    dispatchns beginns endns completens durationns
    """.split()  # noqa: SIM905 - a list of sixty lines says no more
)
_SEPARATORS = str.maketrans("", "", " _-")


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions in a heading.

    Attributes:
        kernel: The kernel's name.
        order: The launch's number, or None.
        grid: The grid, or None.
        times: Begin and end, or None.
        counters: Columns of counters, empty in files of one row per counter.
        long: Names of the columns of a counter's name, value and unit in files of one row per
            counter, else None; the unit's is "" if unknown.
    """

    kernel: int
    order: int | None
    grid: int | None
    times: tuple[int, int] | None
    counters: tuple[int, ...]
    long: tuple[str, str, str] | None

    @classmethod
    def of(cls, heading: Sequence[str]) -> Columns:
        """Return the columns of a heading (see `is_heading`)."""
        times = next((pair for pair in _TIMES if set(pair) <= set(heading)), None)
        long = next((names for names in _LONG if names[0] in heading), None)
        counters = tuple(place for place, name in enumerate(heading) if not _is_fact(name))
        kernel = _first(heading, _NAMES)
        return cls(
            kernel=kernel if kernel is not None else 0,
            order=_first(heading, _ORDERS),
            grid=_first(heading, _GRIDS),
            times=(heading.index(times[0]), heading.index(times[1])) if times else None,
            counters=() if long else counters,
            long=long,
        )


def is_heading(row: Sequence[str]) -> bool:
    """Return whether a row of cells is a heading."""
    return any(name in row for name in _NAMES) and len(row) > 1


def is_of_ncu(heading: Sequence[str]) -> bool:
    """Return whether a heading is Nsight Compute's, whose names have spaces."""
    return _NAMES[0] in heading


def _first(heading: Sequence[str], names: Sequence[str]) -> int | None:
    return next((heading.index(name) for name in names if name in heading), None)


def _is_fact(column: str) -> bool:
    return not column or column.lower().translate(_SEPARATORS) in _FACTS
