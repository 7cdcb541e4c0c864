"""Reading counters: CSV of Nsight Compute, and of rocprof-compute or rocprofv3.

Known layouts, told apart by their columns:

- ``ncu --csv --page raw``: one row per launch, one column per metric, units in the second row;
- ``ncu --csv`` (details, and ``--metrics`` alone): one row per launch and metric;
- ``pmc_perf.csv`` of rocprof-compute: one row per dispatch, one column per counter;
- ``counter_collection.csv`` of rocprofv3: one row per dispatch and counter.

Lines before the heading (``==PROF== ...`` and what the program printed) are passed over.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.analysis.counter_units import base_unit, number
from proton_bench.errors import ProfileFormatError, UsageError

__all__ = ["CounterFile", "MeasuredLaunch", "parse_counters", "read_counters"]

_MAX_BYTES = 2**30
_NAMES = ("Kernel Name", "Kernel_Name", "KernelName", "kernel_name")
_ORDERS = ("ID", "Dispatch_ID", "Dispatch_Id", "dispatch_id", "Index")
_LONG = (
    ("Metric Name", "Metric Value", "Metric Unit"),
    ("Counter_Name", "Counter_Value", ""),
)
# What is not a counter, in lower case without separators.
_FACTS = frozenset(
    """
    id processid processname hostname kernelname kerneltime context stream blocksize gridsize
    device cc sectionname dispatchid gpuid queueid queueindex pid tid grd wgr grid size
    workgroup workgroupsize ldsperworkgroup scratchperworkitem archvgpr accumvgpr sgpr
    wavesize starttimestamp endtimestamp correlationid kernelid nodeid agentid threadid sig
    obj index vgprcount accumvgprcount sgprcount ldsblocksize scratchsize
    """.split()  # noqa: SIM905 - a list of fifty lines says no more
)


@dataclass(slots=True)
class MeasuredLaunch:
    """One launch that a tool measured.

    Attributes:
        kernel: Name of the kernel as the tool wrote it.
        order: Position among the launches of the file.
        grid: Blocks, "" when not known; as many numbers as the file has.
        values: Counters by full name, with the base unit in parentheses.
    """

    kernel: str
    order: int
    grid: str = ""
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CounterFile:
    """What a file of counters holds.

    Attributes:
        tool: "ncu" or "rocprof".
        launches: Launches in the order of their launch.
    """

    tool: str
    launches: tuple[MeasuredLaunch, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of all counters in order of first appearance."""
        return tuple(dict.fromkeys(name for launch in self.launches for name in launch.values))


def read_counters(path: Path) -> CounterFile:
    """Read a file of counters; ``.gz`` is unpacked.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: It is no CSV of a known tool, or malformed.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if content.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
                content = packed.read(_MAX_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ProfileFormatError(f"{str(path)!a} cannot be unpacked: {error}") from error
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"cannot read counters from {str(path)!a}: {reason}") from error
    if len(content) > _MAX_BYTES:
        raise ProfileFormatError(f"{str(path)!a} holds more than 1 GiB of counters")
    return parse_counters(content.decode("utf-8-sig", "replace"), str(path))


def parse_counters(text: str, source: str) -> CounterFile:
    """Return the launches in a CSV text.

    Args:
        text: The content of the file.
        source: Its name, for messages.

    Raises:
        ProfileFormatError: The text is no CSV of a known tool, or malformed.
    """
    rows = _rows(text, source)
    heading = next((row for _, row in rows if _is_heading(row)), None)
    if heading is None:
        raise ProfileFormatError(
            f"{source!a} has no line of column names with a kernel's name: write it with "
            "`ncu --csv --page raw` or take pmc_perf.csv of rocprof-compute"
        )
    tool = "ncu" if "Kernel Name" in heading else "rocprof"
    long = next((names for names in _LONG if names[0] in heading), None)
    table = _Table(heading, source)
    launches = table.long(rows, long) if long else table.wide(rows)
    if not launches:
        raise ProfileFormatError(f"{source!a} has column names but not one launch")
    if not any(launch.values for launch in launches):
        raise ProfileFormatError(f"{source!a} has launches but not one counter that is a number")
    return CounterFile(tool, tuple(launches))


def _rows(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text.replace("\x00", ""), newline=""), strict=False)
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise ProfileFormatError(f"{source!a}: line {reader.line_num}: {error}") from error


def _is_heading(row: Sequence[str]) -> bool:
    return any(name in row for name in _NAMES) and len(row) > 1


def _is_fact(column: str) -> bool:
    return column.lower().replace(" ", "").replace("_", "") in _FACTS or not column


class _Table:
    """The rows below one heading."""

    def __init__(self, heading: list[str], source: str) -> None:
        self._heading = heading
        self._source = source
        self._kernel = heading.index(next(name for name in _NAMES if name in heading))
        self._order = next((heading.index(name) for name in _ORDERS if name in heading), None)
        grids = ("Grid Size", "Grid_Size")
        self._grid = next((heading.index(name) for name in grids if name in heading), None)

    def wide(self, rows: Iterator[tuple[int, list[str]]]) -> list[MeasuredLaunch]:
        units: Mapping[int, str] = {}
        launches: list[MeasuredLaunch] = []
        columns = [i for i, name in enumerate(self._heading) if not _is_fact(name)]
        for line, row in self._complete(rows):
            is_units = not launches and not row[self._kernel]
            if is_units:
                units = dict(enumerate(row))
                continue
            launch = self._launch(line, row, len(launches))
            for column in columns:
                _put(launch, self._heading[column], row[column], unit=units.get(column, ""))
            launches.append(launch)
        return launches

    def long(
        self, rows: Iterator[tuple[int, list[str]]], names: tuple[str, str, str]
    ) -> list[MeasuredLaunch]:
        if names[1] not in self._heading:
            raise ProfileFormatError(f"{self._source!a} has a column {names[0]} but no {names[1]}")
        metric, value = self._heading.index(names[0]), self._heading.index(names[1])
        unit = self._heading.index(names[2]) if names[2] in self._heading else None
        launches: dict[tuple[str, str], MeasuredLaunch] = {}
        for line, row in self._complete(rows):
            order = row[self._order] if self._order is not None else ""
            key = (order, row[self._kernel])
            if key not in launches:
                launches[key] = self._launch(line, row, len(launches))
            if row[metric]:  # rules of the details page have no metric
                text = row[unit] if unit is not None else ""
                _put(launches[key], row[metric], row[value], unit=text)
        return list(launches.values())

    def _complete(self, rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of data; lines of other programs between them have too few cells."""
        wanted = len(self._heading)
        for line, row in rows:
            if row == self._heading or not any(row) or row[0].startswith("=="):
                continue
            if len(row) != wanted:
                raise ProfileFormatError(
                    f"{self._source!a}: line {line} has {len(row)} cells, not {wanted}: the file "
                    "was cut short, or output of the program stands in it (use --log-file of ncu)"
                )
            yield line, row

    def _launch(self, line: int, row: list[str], order: int) -> MeasuredLaunch:
        if not row[self._kernel]:
            raise ProfileFormatError(f"{self._source!a}: line {line} names no kernel")
        grid = row[self._grid] if self._grid is not None else ""
        return MeasuredLaunch(row[self._kernel], order, grid)


def _put(launch: MeasuredLaunch, name: str, text: str, *, unit: str) -> None:
    value = number(text)
    if value is None:
        return
    base, factor = base_unit(unit or ("%" if text.strip().endswith("%") else ""))
    full = f"{name} ({base})" if base else name
    launch.values.setdefault(full, value * factor)
