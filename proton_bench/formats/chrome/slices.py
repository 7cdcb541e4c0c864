"""Slices of a timeline of ours in Chrome's format, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proton_bench.formats.chrome.event import TraceEvent, TraceHead, nanoseconds, read_trace
from proton_bench.formats.chrome.file import opened_trace
from proton_bench.formats.chrome.own_events import is_session_trace, process_facts
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.slices import (
    HOST,
    REPEATS,
    Take,
    TimelineSlice,
    counted,
    is_further_lane,
    not_ours,
    told_bytes,
)
from proton_bench.model.origin import Origin, is_partial_name
from proton_bench.support.text import visible

__all__ = ["read_chrome_slices"]

_KINDS = {"cpu_op": "op", "cuda_runtime": "launch", "gpu_memcpy": "copy", "gpu_memset": "copy"}
_PROCESS = re.compile(r"(?:rank (\d{1,9}) ?)?(?:host (\S+) ?)?(?:process (\d{1,9}))?.*", re.DOTALL)


def read_chrome_slices(file: Path, take: Take) -> Reading:
    """Hand over every slice of a file, and return what could not be read of it.

    Raises:
        UsageError: It is no timeline of proton_bench.
        ProfileFormatError: It is damaged.
        OSError: It cannot be read.
    """
    return _ChromeSlices(file, take).read()


class _ChromeSlices:
    def __init__(self, file: Path, take: Take) -> None:
        self.reading = Reading(visible(file))
        self._file = file
        self._take = take
        self._base_ns: int | None = None  # None: the head was not read yet
        self._origin = Origin()
        self._program = ""
        self._origins: dict[object, Origin] = {}  # of the processes of a merged file
        self._threads: dict[object, tuple[int, str]] = {}
        self._is_merged = False

    def read(self) -> Reading:
        """Hand over the slices of the file."""
        head = TraceHead()
        is_partial = is_partial_name(self._file.name)
        with opened_trace(self._file) as stream:
            batches = read_trace(stream, self.reading.source, head, may_be_cut=is_partial)
            for batch in batches:
                self._take_head(head)
                self._add_all(batch)
        self._take_head(head)
        return self.reading

    def _take_head(self, head: TraceHead) -> None:
        if self._base_ns is not None:
            return
        if not is_session_trace(head):
            raise not_ours(self.reading.source)
        facts = process_facts(head.facts)
        self._base_ns = int(head.facts["baseTimeNanoseconds"])
        self._origin = Origin.of(facts, self._file.name)
        self._program = str(facts.get("program") or "")
        self._is_merged = "process_id" not in head.facts

    def _add_all(self, events: Iterable[TraceEvent]) -> None:
        for event in events:
            if event.ph == "M":
                self._add_name(event)
            elif event.ph == "X" and event.cat not in REPEATS:
                self._add_slice(event)

    def _add_name(self, event: TraceEvent) -> None:
        arguments = event.arguments
        name = arguments.name if isinstance(arguments.name, str) else ""
        if event.name == "process_name" and self._is_merged:
            match = _PROCESS.fullmatch(name)
            rank, host, process = match.groups() if match is not None else (None, None, None)
            self._origins[event.pid] = Origin(
                host=host or "",
                process_id=int(process) if process else None,
                rank=int(rank) if rank else None,
                world_size=self._origin.world_size,
            )
        elif event.name == "thread_name" and type(arguments.thread_id) is int:
            # Lanes beside the first are no thread of the system's.
            number = event.tid if is_further_lane(name) else arguments.thread_id
            called = arguments.thread_name if isinstance(arguments.thread_name, str) else name
            self._threads[event.pid, event.tid] = (number if type(number) is int else 0, called)

    def _add_slice(self, event: TraceEvent) -> None:
        source, arguments = self.reading.source, event.arguments
        start, duration = nanoseconds(event.ts, source), nanoseconds(event.dur, source)
        if start is None or duration is None or duration < 0:
            self.reading.drop("slice without a time, or of negative length: left out")
            return
        if arguments.call_stack is None:
            return  # a row of a graph
        device = arguments.device if type(arguments.device) is int else HOST
        lane, called = arguments.stream, ""
        if device == HOST:
            own = event.tid if type(event.tid) is int else 0
            lane, called = self._threads.get((event.pid, event.tid), (own, ""))
        self._take(
            TimelineSlice(
                origin=self._origins.get(event.pid, self._origin),
                program=self._program,
                kind=_KINDS.get(event.cat, event.cat),
                name=_plain_name(event.name, arguments.metrics),
                start_ns=(self._base_ns or 0) + start,
                duration_ns=duration,
                device=device,
                lane=lane if type(lane) is int else 0,
                lane_name=called,
                correlation=counted(arguments.correlation),
                moved_bytes=told_bytes(arguments.metrics, arguments.bytes),
                values=arguments.metrics if isinstance(arguments.metrics, dict) else {},
            )
        )


def _plain_name(name: str, metrics: Any) -> str:
    """Return the name of a scope without the values that stand behind it."""
    if not isinstance(metrics, dict) or not metrics:
        return name
    behind = ", ".join(f"<{key}, {value}>" for key, value in sorted(metrics.items()))
    return name.removesuffix(f": {behind}")
