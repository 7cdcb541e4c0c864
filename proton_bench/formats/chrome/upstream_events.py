"""Timelines of upstream Proton: every event has its call path."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from proton_bench.formats.chrome.event import TraceEvent, TraceHead, call_path, nanoseconds
from proton_bench.formats.path_tree import COUNT, TIME, Reading
from proton_bench.formats.timeline.device_time import (
    UNCALLED,
    DeviceWork,
    device_uses,
    is_waiting_kernel,
    with_uses,
)
from proton_bench.formats.timeline.launched_work import WAITING
from proton_bench.formats.timeline.metric_texts import MetricTexts
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.own_timeline import guessed_kind
from proton_bench.formats.timeline.ranges import MAX_NS, Columns, Timeline
from proton_bench.model.device import UNNAMED_KIND, Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["ProtonTraceReader", "is_proton_trace"]

_SCOPES = frozenset({"scope", "metric"})
_FLOW, _ASYNC, _CORE = "flow", "async", "core"
_CYCLES, _INSTANCES = "cycles", "instances"
_UNKNOWN_MHZ = 1000.0  # what upstream assumes for every device
_WARP = re.compile(r"(warp .*) \(line \d+\)")
_NO_PATH = "event without a call path: left out"
_NEGATIVE = "event without a duration, or with a negative one: left out"


def is_proton_trace(head: TraceHead, events: Iterable[TraceEvent]) -> bool:
    """Say whether the timeline is upstream's, from its first events; an empty one may be."""
    first = [event for event in events if event.ph == "X"]
    return any(event.arguments.call_stack is not None for event in first) or (
        not first and head.facts.get("displayTimeUnit") in {"us", "ns"}
    )


class ProtonTraceReader:
    """Takes batches of events of a timeline of kernels, or of one made inside kernels."""

    def __init__(self, source: str) -> None:
        self._reading = Reading(source)
        # Inside kernels scopes nest by time; all else has its path.
        self._timeline = Timeline(self._reading)
        self._tree = self._timeline.tree
        self._metrics = MetricTexts(self._tree, source)
        self._rows: dict[tuple[Any, ...], int] = {}
        self._roots: dict[int, int] = {}
        self._kernels = Columns(start="q", duration="q", name="i", scope="i")

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Take a batch.

        Raises:
            ProfileFormatError: A field has a value that it cannot have.
        """
        for event in events:
            if event.ph != "X":
                continue
            if event.cat == _CORE and isinstance(event.tid, str):
                continue  # a program on a processor; its scopes are other events
            stack = event.arguments.call_stack
            if stack is None:
                # Ranges of graphs on a device: their kernels have the time.
                self._reading.drop(_NO_PATH, event.cat not in _SCOPES or _has_metrics(event))
                continue
            path = call_path(stack, self._reading.source)
            duration = nanoseconds(event.dur)
            if duration is None or not 0 <= duration < MAX_NS:
                self._reading.drop(_NEGATIVE)
            elif isinstance(event.tid, str):
                self._add_device_scope(event, path, duration)
            elif event.cat == "kernel":
                self._add_kernel(event, path, duration)
            elif event.cat in _SCOPES:
                row = self._row(path, FrameKind.SCOPE)
                self._tree.add_range(row, duration)
                self._metrics.add(row, event.arguments.metrics)
            else:
                self._reading.drop("event of an unknown category: left out")

    def _row(self, path: tuple[str, ...], kind: FrameKind) -> int:
        """Return the row of a path, whose last name is of this kind."""
        key = (kind, *path)
        found = self._rows.get(key)
        if found is None:
            found, index = 0, self._tree.strings.index
            for name in path[:-1]:
                found = self._tree.row(found, index(name), guessed_kind(name))
            if path:
                last = guessed_kind(path[-1]) if kind is FrameKind.SCOPE else kind
                found = self._tree.row(found, index(path[-1]), last)
            self._rows[key] = found
        return found

    def _add_kernel(self, event: TraceEvent, path: tuple[str, ...], duration: int) -> None:
        # Kernels that collect metrics are called <metric>, and their path may end at the scope.
        if path[-1:] != (event.name,):
            path = (*path, event.name)
        start = nanoseconds(event.ts)
        if start is not None and not self._timeline.is_possible("kernel", start, start + duration):
            return
        row = self._row(path, FrameKind.KERNEL)
        self._tree.add(row, TIME, duration)
        self._tree.add(row, COUNT, 1)
        if start is not None:
            index = self._tree.strings.index
            scope = index(path[0]) if len(path) > 1 else -1
            self._kernels.add(start, duration, index(event.name), scope)
        if is_waiting_kernel(event.name):
            self._tree.declare(WAITING, Aggregation.PROPERTY)
            self._tree.put(row, WAITING, 1)
        self._metrics.add(row, event.arguments.metrics)

    def _add_device_scope(self, event: TraceEvent, path: tuple[str, ...], duration: int) -> None:
        if event.cat == _FLOW and not duration:
            return  # the two ends of an asynchronous event; it has no time of its own
        if event.ts is None or event.dur is None:
            self._reading.drop(_NEGATIVE)
            return
        start = self._clock(float(event.ts), event)
        end = self._clock(float(event.ts) + event.dur, event)
        lane = _WARP.fullmatch(str(event.tid))
        warp = lane[1] if lane else event.tid
        is_async = event.cat == _ASYNC and path[-1:] != (_ASYNC,)
        # Asynchronous events overlap what runs beside them, so each is alone.
        key = (event.pid, warp, path, len(self._timeline.ranges) if is_async else -1)
        thread = self._timeline.number(key)
        self._roots[thread] = self._row(path, FrameKind.KERNEL)
        self._timeline.add_range(thread, event.name, FrameKind.SCOPE, start_ns=start, end_ns=end)

    def _clock(self, microseconds: float, event: TraceEvent) -> int:
        """Return what the clock that counted the cycles had reached."""
        mhz = event.arguments.frequency_mhz
        is_known = isinstance(mhz, int | float) and math.isfinite(mhz) and mhz > 0
        cycles = microseconds * (float(mhz) if is_known else _UNKNOWN_MHZ)
        return nanoseconds(cycles / 1e3) or 0

    def profile(self, head: TraceHead) -> Profile:
        """Return the profile of all that was added.

        Raises:
            ProfileFormatError: Values of a metric do not fit one another.
        """
        place_ranges(self._timeline, roots=self._roots, own=_CYCLES)
        self._count_instances()
        # Only 3.9.0 and later say when ts 0 was; what 3.6.0 writes is one document per stream.
        base = head.facts.get("baseTimeNanoseconds")
        self._reading.provenance = {"tool": "triton.profiler", "format": "chrome_trace"}
        if type(base) is int:
            self._reading.provenance["base_time_ns"] = base
        profile = self._tree.build(self._reading)
        if not len(self._kernels):
            return profile
        # The timeline names no devices, so all kernels count as those of one, and no row has it.
        device = Device(UNNAMED_KIND, 0)
        uses = device_uses(self._device_work(), self._tree.strings.texts())
        return with_uses(replace(profile, devices=(device,)), uses, {0: device})

    def _count_instances(self) -> None:
        rows, counts = np.unique(self._timeline.range_rows, return_counts=True)
        if len(rows):
            self._tree.declare(_INSTANCES, Aggregation.EXCLUSIVE)
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            self._tree.put(row, _INSTANCES, count)

    def _device_work(self) -> DeviceWork:
        kernels, texts = self._kernels, self._tree.strings.texts()
        nothing = np.zeros(len(kernels), dtype=np.int64)
        waiting = np.array([is_waiting_kernel(text) for text in texts], dtype=np.bool_)
        return DeviceWork(
            device=nothing,
            scope=kernels["scope"].astype(np.int64),
            start=kernels["start"],
            end=kernels["start"] + kernels["duration"],
            called=nothing + UNCALLED,
            is_timed=nothing > 0,
            is_waiting=waiting[kernels["name"]],
        )


def _has_metrics(event: TraceEvent) -> bool:
    return bool(event.arguments.metrics)
