"""From the tables of an export of Nsight Systems to a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.nsys.facts import GpuTable, nsys_provenance
from proton_bench.formats.nsys.schema import NsysTables
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.device_time import device_uses, with_uses
from proton_bench.formats.timeline.launched_work import place_work
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.ranges import MAX_NS, Timeline, Work
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible

__all__ = ["read_export"]

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

    Recorded ranges have the same names (``native/src/collector/gpu/launches/marker_ranges.cpp``).
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
