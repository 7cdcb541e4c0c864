"""From the tables of an export of Nsight Systems to a profile."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import Limits, reading, take_items
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.launched_work import device_uses, place_work, with_uses
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.ranges import MAX_NS, Timeline, Work
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

_EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_VERSIONS = {
    "EXPORT_PRODUCT_VERSION": "tool_version",
    "NSIGHT_SYSTEMS_VERSION": "tool_version",
    "EXPORT_SCHEMA_VERSION": "schema_version",
}
_PID_BITS = 0xFFFFFF
_PID_SHIFT = 24
_KIND = "CUDA"
_POSITIVE_INT32 = range(2**31)


class GpuTable:
    """The GPUs of an export, with the machine's numbers.

    A process may see other numbers (``CUDA_VISIBLE_DEVICES``); newer exports say which.
    """

    def __init__(self, tables: NsysTables) -> None:
        self._gpus: dict[int, tuple[str, Device]] = {}
        self._used: set[int] = set()
        facts = {"name": None, "smCount": None, "computeMajor": None, "computeMinor": None}
        if tables.has("TARGET_INFO_GPU", "id"):
            for index, name, *numbers in tables.rows("TARGET_INFO_GPU", ("id",), facts):
                if _is_index(index):
                    self._gpus[index] = (str(name or ""), _device(index, numbers))
        self._physical: dict[tuple[Any, Any], int] = {}
        if tables.has("TARGET_INFO_CUDA_DEVICE", "cudaId"):
            for visible, gpu, pid in tables.rows(
                "TARGET_INFO_CUDA_DEVICE", ("cudaId",), {"gpuId": None, "pid": None}
            ):
                if _is_index(visible) and _is_index(gpu) and gpu in self._gpus:
                    self._physical[visible, pid] = gpu

    def number(self, visible: int, global_process: int | None) -> int:
        """Return the machine's number of the device with this number in a process."""
        pid = None if global_process is None else global_process >> _PID_SHIFT & _PID_BITS
        found = self._physical.get((visible, pid), visible)
        if found not in _POSITIVE_INT32:
            return -1
        self._used.add(found)
        return found

    def devices(self) -> dict[int, Device]:
        """Return the devices that rows name, by number."""
        return {
            index: self._gpus[index][1] if index in self._gpus else Device(_KIND, index)
            for index in sorted(self._used)
        }

    def names(self) -> dict[str, str]:
        """Return the name of each GPU of the machine."""
        return {f"{_KIND}:{index}": name for index, (name, _) in sorted(self._gpus.items())}


def _is_index(value: Any) -> bool:
    return type(value) is int and value in _POSITIVE_INT32


def _device(index: int, facts: list[Any]) -> Device:
    sms, major, minor = facts
    is_known = _is_index(major) and _is_index(minor) and major > 0
    return Device(
        _KIND,
        index,
        arch=f"{major}{minor}" if is_known else "",
        num_sms=sms if _is_index(sms) else 0,
    )


def nsys_provenance(tables: NsysTables, gpus: GpuTable) -> dict[str, Any]:
    """Return tool, versions, host, start and names of GPUs, as far as the file has them."""
    found: dict[str, Any] = {"tool": "nsys", "format": "nsys_sqlite"}
    for table in _EXPORT_TABLES:
        for name, value in _pairs(tables, table):
            if name in _VERSIONS:
                found.setdefault(_VERSIONS[name], str(value))
    for name, value in _pairs(tables, "TARGET_INFO_SYSTEM_ENV"):
        if name == "Hostname":
            found.setdefault("host", str(value))
    if tables.has("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"):
        for (start,) in tables.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
            if type(start) is int:
                found.setdefault("start_time_ns", start)
    if gpus.names():
        found["device_names"] = gpus.names()
    return found


def _pairs(tables: NsysTables, table: str) -> list[tuple[Any, Any]]:
    if not tables.has(table, "name") or not tables.has(table, "value"):
        return []
    return [(name, value) for name, value in tables.rows(table, ("name", "value"))]


_ROWS = 1 << 8  # read at once; each may hold a text of the greatest length
_MOST_TEXT = 1 << 20
_STEPS = 100_000  # of SQLite's machine between two looks at the clock: a millisecond or two
_HEADER = 100
_DIGITS = 4
_VERSIONED = re.compile(r"(.+?)_?[vV]([0-9]{1,4})", re.DOTALL)
_ADVICE = "the file is damaged; export it again with nsys"


class NsysTables:
    """The tables of an export, by the names of tables and columns in the file.

    A table may have a version in its name (``NVTX_EVENTS_V2``): it is found by the name without.

    Attributes:
        source: Name of the file, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, source: str) -> None:
        self.source = source
        self._connection = connection
        self._columns: dict[str, frozenset[str]] = {}
        self._texts: dict[int, str | None] = {}
        self._has_all_texts = False
        # Views and virtual tables could compute endlessly; nsys writes only plain tables.
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' "
            "AND typeof(name) = 'text'"
        )
        self._tables: dict[str, str] = {}  # the name in the file of each
        self._names = [name for (name,) in found]
        for name in sorted(self._names, key=_version):
            match = _VERSIONED.fullmatch(name)
            self._tables[match[1] if match else name] = name

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def unread(self, known: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield tables that are called like one of these and not read, and their rows."""
        for name in self._names:
            if name.startswith(tuple(known)) and name not in self._tables.values():
                (count,) = self._connection.execute(f"SELECT count(*) FROM {_quoted(name)}")
                yield name, count[0]

    def has(self, table: str, column: str) -> bool:
        """Return whether there is such a column."""
        return column in self._columns_of(table)

    def _columns_of(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            found = self._described(table) if table in self._tables else []
            self._columns[table] = frozenset(column[1] for column in found)
        return self._columns[table]

    def _described(self, table: str) -> list[tuple[Any, ...]]:
        """Return number, name, type, and so on, of each column."""
        name = _quoted(self._tables[table])
        return self._connection.execute(f"PRAGMA table_info({name})").fetchall()

    def rows(
        self, table: str, wanted: Sequence[str], optional: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the wanted and then the optional columns of every row.

        Args:
            table: Its name; no rows if the table does not exist.
            wanted: Columns that must exist.
            optional: Columns that may be missing, with their default.

        Raises:
            ProfileFormatError: A wanted column is missing.
        """
        if table not in self._tables:
            return
        known = self._columns_of(table)
        missing = [name for name in wanted if name not in known]
        if missing:
            raise corrupt(
                self.source,
                f"table {self._tables[table]} has no column {', '.join(missing)}",
                "this version of nsys is not known; export it with another one",
            )
        chosen = [_quoted(name) for name in wanted]
        chosen += [
            _quoted(name) if name in known else _literal(value)
            for name, value in (optional or {}).items()
        ]
        name = _quoted(self._tables[table])
        cursor = self._connection.execute(f"SELECT {', '.join(chosen)} FROM {name}")
        while rows := cursor.fetchmany(_ROWS):
            take_items(len(rows))
            yield from rows

    def text(self, number: Any) -> str | None:
        """Return the text with this number in the table of texts, or None."""
        if type(number) is not int:
            return None
        if number not in self._texts and not self._has_all_texts:
            self._texts[number] = self._find_text(number)
        return self._texts.get(number)

    def _find_text(self, number: int) -> str | None:
        if not self.has("StringIds", "id") or not self.has("StringIds", "value"):
            return None
        if not any(column[1] == "id" and column[5] == 1 for column in self._described("StringIds")):
            # Without a key each query would scan all of them.
            for known, text in self.rows("StringIds", ("id", "value")):
                if type(known) is int and isinstance(text, str):
                    self._texts.setdefault(known, text)
            self._has_all_texts = True
            return self._texts.get(number)
        question = f"SELECT value FROM {_quoted(self._tables['StringIds'])} WHERE id = ?"
        found = self._connection.execute(question, (number,)).fetchone()
        return found[0] if found is not None and isinstance(found[0], str) else None


def _version(table: str) -> int:
    """Return what sorts versions of one table: the one without a version is the last."""
    match = _VERSIONED.fullmatch(table)
    return int(match[2]) if match else 10**_DIGITS


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    return "NULL" if value is None else str(int(value))


@contextmanager
def opened_file(path: Path, source: str) -> Iterator[NsysTables]:
    """Open a file for reading; nothing is written beside it.

    Raises:
        ProfileFormatError: It is not a database, or damaged.
    """
    with open_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        _check_size(stream.read(_HEADER), size, source)
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with _tables(lambda: sqlite3.connect(address, uri=True), size, source) as found:
        yield found


@contextmanager
def opened_content(content: bytes, source: str) -> Iterator[NsysTables]:
    """Open the content of a file.

    Raises:
        ProfileFormatError: It is not a database, or damaged.
    """
    _check_size(content[:_HEADER], len(content), source)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(content)
        return connection

    with _tables(connect, len(content), source) as found:
        yield found


def _check_size(header: bytes, size: int, source: str) -> None:
    """Raise unless all pages exist: SQLite notices only missing pages that it needs."""
    if len(header) < _HEADER:
        raise corrupt(source, "SQLite: the file is too short", _ADVICE)
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    is_counted = header[24:28] == header[92:96]
    if is_counted and size < pages * (65536 if page_bytes == 1 else page_bytes):
        raise corrupt(source, "SQLite: the file was truncated", _ADVICE)


@contextmanager
def _tables(
    connect: Callable[[], sqlite3.Connection], size: int, source: str
) -> Iterator[NsysTables]:
    connection: sqlite3.Connection | None = None
    try:
        with reading(size, source) as limits:
            connection = connect()
            yield _opened(connection, limits)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        limits.check_time()  # which is what interrupts a question
        raise corrupt(source, f"SQLite: {str(error)[:200]}", _ADVICE) from None
    finally:
        if connection is not None:
            connection.close()


def _opened(connection: sqlite3.Connection, limits: Limits) -> NsysTables:
    """Return the tables of a database, whose pages may be shared or circular."""

    def text(content: bytes) -> str:
        limits.take_bytes(len(content))
        return content.decode(errors="backslashreplace")

    connection.text_factory = text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
    connection.set_progress_handler(lambda: limits.is_late, _STEPS)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return NsysTables(connection, limits.source)


_PREFIX = "CUPTI_ACTIVITY_KIND_"
_KERNEL, _GRAPH = f"{_PREFIX}KERNEL", f"{_PREFIX}GRAPH_TRACE"
_COPY, _SET = f"{_PREFIX}MEMCPY", f"{_PREFIX}MEMSET"
_CALLS = (f"{_PREFIX}RUNTIME", f"{_PREFIX}DRIVER")
_WORK = (_KERNEL, _COPY, _SET, _GRAPH)
_NVTX = "NVTX_EVENTS"
_PUSH_POP, _START_END = 59, 60
_PROCESS_SHIFT = 24  # of a global process or thread id; the thread is in the bits below
_TIMES = ("start", "end", "correlationId")
_PLACE = {"globalPid": None, "deviceId": None}
_RANGE_FACTS = {
    "eventType": _PUSH_POP,
    "globalTid": 0,
    "endGlobalTid": None,
    "text": None,
    "textId": None,
}
_SHAPE = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("staticSharedMemory", "dynamicSharedMemory", "registersPerThread", "localMemoryPerThread"),
)
_COPY_KINDS = ("", " H2D", " D2H", " H2A", " A2H", " A2A", " A2D", " D2A", " D2D", " H2H", " P2P")
_NUMBER = re.compile(r"-?[0-9]+(?=, |\Z)")
_INT32 = range(-(2**31), 2**31)


def name_of_range(text: str) -> str:
    """Return NAME of ``NAME, seq = N, op_id = N, ...``: emit_nvtx of torch numbers every call.

    Recorded ranges have the same names (``native/src/collector/gpu/launches/launch_thread.cpp``).
    """
    name, is_torch = text, False
    for key in (", op_id = ", ", seq = "):
        at = name.find(key)
        is_torch = is_torch or "::" in name[: max(at, 0)] or "Backward" in name[: max(at, 0)]
        if at > 0 and _NUMBER.match(name, at + len(key)) and (is_torch or key == ", op_id = "):
            name, is_torch = name[:at], True
    return name


def read_export(tables: NsysTables) -> Profile:
    """Return the profile of an export.

    Raises:
        ProfileFormatError: It is not an export of nsys, or a value is invalid for its column.
    """
    if not any(table in tables for table in (*_WORK, *_CALLS, _NVTX)):
        raise corrupt(
            tables.source,
            "the database has no table of Nsight Systems for kernels, calls or NVTX ranges",
            "make one with: nsys export --type sqlite REPORT",
        )
    return _Export(tables).profile()


class _Export:
    """Reads table by table into a timeline."""

    def __init__(self, tables: NsysTables) -> None:
        self._tables = tables
        self._reading = Reading(tables.source)
        self._timeline = Timeline(self._reading)
        self._gpus = GpuTable(tables)
        self._names: dict[Any, int] = {}
        self._last_ns = 0
        self._names_process = all(
            tables.has(table, "globalPid") for table in _WORK if table in tables
        )

    def profile(self) -> Profile:
        for table in _CALLS:
            self._add_calls(table)
        for row in self._kernels():
            self._add_work(*row)
        for row in self._copies():
            self._add_work(*row)
        self._add_ranges()
        timeline = self._timeline
        work = place_work(timeline, place_ranges(timeline))
        self._reading.provenance = nsys_provenance(self._tables, self._gpus)
        self._reading.provenance["overlapping_ranges"] = self._timeline.overlapping
        for table, rows in self._tables.unread((*_WORK, *_CALLS, _NVTX)):
            self._reading.drop(f"row of the table {visible(table[:80])}, which is not read", rows)
        devices = self._gpus.devices()
        profile = timeline.tree.build(self._reading, devices)
        return with_uses(profile, device_uses(work, timeline.tree.strings.texts()), devices)

    def _add_ranges(self) -> None:
        unended: list[tuple[int, str, int]] = []
        for row in self._tables.rows(_NVTX, ("start", "end"), _RANGE_FACTS):
            start, end, event, thread, last_thread, text, number = row
            if event not in (_PUSH_POP, _START_END):
                continue
            if event == _START_END and last_thread not in (None, 0, thread):
                self._reading.drop("NVTX range that ended on another thread: left out")
                continue
            self._check(_NVTX, start, thread)
            name = text if isinstance(text, str) else self._tables.text(number) or ""
            name = name_of_range(name) or "<no text>"
            on = self._timeline.number(("thread", thread))
            if end is None:
                unended.append((on, name, start))
                continue
            self._check(_NVTX, end)
            if self._timeline.add_range(on, name, FrameKind.SCOPE, start_ns=start, end_ns=end):
                self._last_ns = max(self._last_ns, end)
        for on, name, start in unended:  # open until the recording ended
            end = max(self._last_ns, start)
            self._timeline.add_range(on, name, FrameKind.SCOPE, start_ns=start, end_ns=end)

    def _add_calls(self, table: str) -> None:
        places: dict[int, tuple[int, int]] = {}
        for start, thread, correlation, end in self._tables.rows(
            table, ("start", "globalTid", "correlationId"), {"end": None}
        ):
            if correlation is None:
                continue
            until = start + 1 if end is None else end
            self._check(table, start, thread, correlation, until)
            if correlation > 0:
                place = places.get(thread)
                if place is None:
                    on = self._timeline.number(("thread", thread))
                    place = places[thread] = (self._process(thread), on)
                self._timeline.add_launch(
                    place[0], correlation, place[1], start_ns=start, duration_ns=until - start
                )
                if start < MAX_NS:
                    self._last_ns = max(self._last_ns, start)

    def _process(self, global_id: int | None) -> int:
        """Return the number of a process; one for all if the file does not say."""
        is_known = self._names_process and global_id is not None
        key = global_id >> _PROCESS_SHIFT if is_known and global_id is not None else None
        return self._timeline.number(key)

    def _kernels(self) -> Iterator[tuple[Any, ...]]:
        names = {"demangledName": None, "shortName": None}
        shape = {**dict.fromkeys(_SHAPE, 0), _SHAPE[-1]: -1}
        variants: dict[tuple[Any, ...], int] = {}
        for row in self._tables.rows(_KERNEL, _TIMES, {**_PLACE, **names, **shape}):
            variant = variants.get(row[7:])
            if variant is None:
                variant = variants[row[7:]] = self._variant(row[7:])
            yield *row[:5], self._kernel_name(*row[5:7]), FrameKind.KERNEL, variant, None

    def _kernel_name(self, demangled: Any, short: Any) -> str:
        for name in (demangled, short):
            found = name if isinstance(name, str) else self._tables.text(name)
            if found:
                return found
        return "<unnamed kernel>"

    def _variant(self, shape: tuple[Any, ...]) -> int:
        self._check(_KERNEL, *(each for each in shape if each is not None))
        numbers = [0 if each is None or each not in _INT32 else each for each in shape]
        return self._timeline.tree.variant(
            Variant(
                grid=(numbers[0], numbers[1], numbers[2]),
                block=(numbers[3], numbers[4], numbers[5]),
                shared_bytes=numbers[6] + numbers[7],
                registers=numbers[8],
                local_bytes=numbers[9],
            )
        )

    def _copies(self) -> Iterator[tuple[Any, ...]]:
        for row in self._tables.rows(_COPY, _TIMES, {**_PLACE, "copyKind": 0, "bytes": None}):
            kind = row[5] if row[5] in range(len(_COPY_KINDS)) else 0
            yield *row[:5], f"<memcpy{_COPY_KINDS[kind]}>", FrameKind.COPY, -1, row[6]
        for row in self._tables.rows(_SET, _TIMES, {**_PLACE, "bytes": None}):
            yield *row[:5], "<memset>", FrameKind.COPY, -1, row[5]
        # Graph records that replace their kernels.
        for row in self._tables.rows(_GRAPH, _TIMES, {**_PLACE, "graphId": None}):
            name = "<graph>" if row[5] is None else f"<graph {str(row[5])[:40]}>"
            yield *row[:5], name, FrameKind.GRAPH, -1, None

    def _add_work(self, *row: Any) -> None:
        start, end, correlation, process, device, name, kind, variant, moved = row
        numbers = (each for each in (correlation, process, device, moved) if each is not None)
        self._check("a table of device work", start, end, *numbers)
        is_added = self._timeline.add_work(
            Work(
                process=self._process(process),
                correlation=correlation if correlation is not None and correlation > 0 else -1,
                name=self._timeline.tree.strings.index(name),
                kind=kind,
                start_ns=start,
                duration_ns=end - start,
                device=-1 if device is None else self._gpus.number(device, process),
                variant=variant,
                moved_bytes=moved if moved is not None and moved >= 0 else -1,
            )
        )
        if is_added:
            self._last_ns = max(self._last_ns, end)

    def _check(self, table: str, *numbers: Any) -> None:
        for number in numbers:
            if type(number) is not int:
                what = f"{table} holds {str(number)[:60]!r} for a number"
                raise corrupt(self._tables.source, what)
