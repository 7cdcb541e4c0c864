"""Reading counters: CSV of Nsight Compute, and of rocprof-compute or rocprofv3.

Known layouts, recognized by their columns:

- ``ncu --csv --page raw``: one row per launch, one column per metric, units in the second row;
- ``ncu --csv`` (details, and ``--metrics`` alone): one row per launch and metric;
- ``pmc_perf.csv`` of rocprof-compute: one row per dispatch, one column per counter;
- ``counter_collection.csv`` of rocprofv3: one row per dispatch and counter.

ncu writes numbers as the system's language does; a comma before the decimals is recognised by a
number that can be read in no other way. Lines before the heading (``==PROF== ...`` and output of
the program) are skipped.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.limits import reading, take_bytes
from proton_bench.support.inputs import read_file
from proton_bench.support.text import visible

_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SCALED = re.compile(
    r"(?P<prefix>[KMGT]?)(?P<unit>byte|inst|cycle|warp|block|thread|sector|request|hz|Hz|bit)"
    r"(?P<rest>s?(?:/.*)?)"
)
_NS_OF = {
    "s": 1e9,
    "second": 1e9,
    "msecond": 1e6,
    "ms": 1e6,
    "usecond": 1e3,
    "us": 1e3,
    "nsecond": 1.0,
    "ns": 1.0,
}
# More than one dot, or not three digits after a comma, is not a group of thousands.
_DECIMAL_COMMA = re.compile(r"-?(\d+(\.\d{3}){2,}(,\d+)?|\d+(\.\d{3})*,(\d{1,2}|\d{4,}))%?")
_BINARY = {"Kibyte": 2**10, "Mibyte": 2**20, "Gibyte": 2**30}
# Units that add up over launches: amounts, not shares, rates or properties of a launch.
_MEANS = (".avg", ".max", ".min", ".pct", "ratio", "rate", "util", "percent", "occupancy")
_AMOUNTS = frozenset({"byte", "inst", "cycle", "ns", "warp", "sector", "request", ""})


@functools.lru_cache(maxsize=1024)
def base_unit(unit: str) -> tuple[str, float]:
    """Return the unit without a prefix of scale, and the factor to it: ``Mbyte/s`` is 1e6 byte/s.

    Units that are not known are kept as they are.
    """
    text = unit.strip()
    if text in _NS_OF:
        return "ns", _NS_OF[text]
    if text in _BINARY:
        return "byte", float(_BINARY[text])
    match = _SCALED.fullmatch(text)
    if match is None:
        return text, 1.0
    rest = match["rest"].replace("/second", "/s")
    name = "Hz" if match["unit"] in {"hz", "Hz"} else match["unit"]
    return f"{name}{rest}", _PREFIXES[match["prefix"]]


def is_summable(metric: str, unit: str) -> bool:
    """Return whether values of launches add up; else they have a mean.

    Args:
        metric: Name of the counter; with ``.avg``, ``.max`` or a percentage it has a mean.
        unit: Its base unit.
    """
    lower = metric.lower()
    if any(mark in lower for mark in _MEANS):
        return unit == "ns" and "duration" in lower
    if unit == "":
        return metric.isupper() or lower.endswith((".sum", "_sum", "fetchsize", "writesize"))
    return unit in _AMOUNTS


def number(text: str, *, decimal_comma: bool = False) -> float | None:
    """Return the number in a cell, None for none: ``1,234.5``, ``12%``, ``n/a``.

    Args:
        text: The cell.
        decimal_comma: A comma stands before the decimals and dots between thousands.
    """
    cleaned = text.strip().removesuffix("%")
    if decimal_comma:
        cleaned = cleaned.replace(".", "").replace(",", ".")
    elif "," in cleaned:
        cleaned = cleaned.replace(",", "")
    try:
        value = float(cleaned)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def has_decimal_commas(cells: Iterable[str]) -> bool:
    """Return whether a cell can only be read with a decimal comma: ``65,77``."""
    return any(
        _DECIMAL_COMMA.fullmatch(cell) is not None
        for cell in cells
        if "," in cell or cell.count(".") > 1
    )


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


_MAX_BYTES = 2**30
_PIECE = 1 << 20


@dataclass(slots=True)
class MeasuredLaunch:
    """One launch that a tool measured.

    Attributes:
        kernel: Name of the kernel as the tool wrote it.
        order: Position among the launches of the file.
        grid: Blocks, "" when not known; as many numbers as the file has.
        duration_ns: Its duration, 0 if unknown.
        values: Counters by full name, with the base unit in parentheses.
    """

    kernel: str
    order: int
    grid: str = ""
    duration_ns: float = 0.0
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CounterFile:
    """The content of a file of counters.

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
        ProfileFormatError: It is not a CSV of a known tool, or malformed.
    """
    try:
        content = read_file(path)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"cannot read counters from {str(path)!a}: {reason}") from error
    with reading(len(content), visible(path)):
        return _read(content, path)


def _read(content: bytes, path: Path) -> CounterFile:
    try:
        if content.startswith(b"\x1f\x8b"):
            content = _unpacked(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ProfileFormatError(f"{str(path)!a} cannot be decompressed: {error}") from error
    if len(content) > _MAX_BYTES:
        raise ProfileFormatError(f"{str(path)!a} holds more than 1 GiB of counters")
    return parse_counters(content.decode("utf-8-sig", "replace"), str(path))


def _unpacked(content: bytes) -> bytes:
    pieces: list[bytes] = []
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while piece := stream.read1(_PIECE):
            take_bytes(len(piece))
            pieces.append(piece)
    return b"".join(pieces)


def parse_counters(text: str, source: str) -> CounterFile:
    """Return the launches in a CSV text.

    Args:
        text: The content of the file.
        source: Its name, for messages.

    Raises:
        ProfileFormatError: The text is not a CSV of a known tool, or malformed.
    """
    rows = _rows(text, source)
    heading = next((row for _, row in rows if is_heading(row)), None)
    if heading is None:
        raise ProfileFormatError(
            f"{source!a} has no heading with a column of kernel names: write it with `ncu --csv "
            "--page raw` or use pmc_perf.csv of rocprof-compute"
        )
    tool = "ncu" if is_of_ncu(heading) else "rocprof"
    table = _Table(heading, source)
    complete = list(table.complete(rows))
    cells = (cell for _, row in complete for cell in row)
    table.decimal_commas = tool == "ncu" and has_decimal_commas(cells)
    launches = table.long(complete) if table.columns.long else table.wide(complete)
    if not launches:
        raise ProfileFormatError(f"{source!a} has column names but no launches")
    if not any(launch.values for launch in launches):
        raise ProfileFormatError(f"{source!a} has launches but no numeric counter")
    return CounterFile(tool, tuple(launches))


def _rows(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text.replace("\x00", ""), newline=""), strict=False)
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise ProfileFormatError(f"{source!a}: line {reader.line_num}: {error}") from error


class _Table:
    """The rows below one heading."""

    def __init__(self, heading: list[str], source: str) -> None:
        self.columns = Columns.of(heading)
        self.decimal_commas = False
        self._heading = heading
        self._source = source

    def complete(self, rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of data; lines of other programs between them have too few cells."""
        wanted = len(self._heading)
        for line, row in rows:
            if row == self._heading or not any(row) or row[0].startswith("=="):
                continue
            if len(row) != wanted:
                raise ProfileFormatError(
                    f"{self._source!a}: line {line} has {len(row)} cells, not {wanted}: the file "
                    "was truncated, or contains output of the program (use --log-file of ncu)"
                )
            yield line, row

    def wide(self, rows: Sequence[tuple[int, list[str]]]) -> list[MeasuredLaunch]:
        """Return the launches of a file with one row per launch."""
        units: Mapping[int, str] = {}
        launches: list[MeasuredLaunch] = []
        for line, row in rows:
            is_units = not launches and not row[self.columns.kernel]
            if is_units:
                units = dict(enumerate(row))
                continue
            launch = self._launch(line, row, len(launches))
            for column in self.columns.counters:
                self._put(launch, self._heading[column], row[column], unit=units.get(column, ""))
            launches.append(launch)
        return launches

    def long(self, rows: Sequence[tuple[int, list[str]]]) -> list[MeasuredLaunch]:
        """Return the launches of a file with one row per launch and counter."""
        name, value, unit = self._long_columns()
        launches: dict[tuple[str, str], MeasuredLaunch] = {}
        order = self.columns.order
        for line, row in rows:
            key = (row[order] if order is not None else "", row[self.columns.kernel])
            if key not in launches:
                launches[key] = self._launch(line, row, len(launches))
            if row[name]:  # rules of the details page have no metric
                text = row[unit] if unit is not None else ""
                self._put(launches[key], row[name], row[value], unit=text)
        return list(launches.values())

    def _long_columns(self) -> tuple[int, int, int | None]:
        name, value, unit = self.columns.long or ("", "", "")
        if value not in self._heading:
            raise ProfileFormatError(f"{self._source!a} has a column {name} but no {value}")
        where = self._heading.index
        return where(name), where(value), where(unit) if unit in self._heading else None

    def _launch(self, line: int, row: list[str], order: int) -> MeasuredLaunch:
        columns = self.columns
        if not row[columns.kernel]:
            raise ProfileFormatError(f"{self._source!a}: line {line} names no kernel")
        grid = row[columns.grid] if columns.grid is not None else ""
        duration = 0.0
        if columns.times is not None:
            begin, end = (number(row[place]) or 0.0 for place in columns.times)
            duration = max(end - begin, 0.0)
        return MeasuredLaunch(row[columns.kernel], order, grid, duration)

    def _put(self, launch: MeasuredLaunch, name: str, text: str, *, unit: str) -> None:
        value = number(text, decimal_comma=self.decimal_commas)
        if value is None:
            return
        full, factor, is_time = _named(name, unit or ("%" if text.endswith("%") else ""))
        value *= factor
        launch.values.setdefault(full, value)
        if is_time and value > 0:
            launch.duration_ns = launch.duration_ns or value


@functools.lru_cache(maxsize=65536)
def _named(name: str, unit: str) -> tuple[str, float, bool]:
    """Return the full name of a counter, the factor to its unit, and whether it is a duration."""
    base, factor = base_unit(unit)
    is_time = base == "ns" and "duration" in name.lower()
    return f"{name} ({base})" if base else name, factor, is_time
