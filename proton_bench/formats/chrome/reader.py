"""Which tool wrote a timeline in Chrome's format, and its call paths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Any

import numpy as np

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.event import (
    TraceEvent,
    TraceHead,
    call_path,
    nanoseconds,
    read_trace,
)
from proton_bench.formats.chrome.kineto_events import KinetoReader, is_kineto
from proton_bench.formats.chrome.own_facts import is_session_timeline
from proton_bench.formats.chrome.slices import read_session_profile
from proton_bench.formats.chrome.split import MAX_PIECE, InvalidJsonError, Readable
from proton_bench.formats.chrome.stream import unpacked
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
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile

__all__ = ["Repaired", "empty_profile", "read_timeline"]

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


_AHEAD = 1 << 16  # so much of a text and of what comes behind it is looked at, if there is more
# What lies between texts, without a comma before a closing bracket.
_BETWEEN = rb'[^",]*+(?:,(?!\s*[}\]])[^",]*+)*+'
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE = rb"(?:(?<=:)|(?<=: ))" + _TEXT + rb'(?=\s*(?:}\s*(?:[,}\]{[]|\Z)|,\s*(?:"[^"\\]*"\s*:|})))'
_OTHER = rb"(?<!:)(?<!: )" + _TEXT + rb'(?=\s*(?:[:}\]]|,\s*["{\[\d\-tfn}\]]))'
_SOUND = re.compile(rb"(?:" + _BETWEEN + rb"(?:" + _VALUE + rb"|" + _OTHER + rb"))*+", re.DOTALL)
_GAP = re.compile(_BETWEEN)
# A name ends before the next key of an event, another value of a map before any key, and both
# before closing brackets. All else ends before any mark.
_CLOSED = rb'(?<!\\)"(?=\s*,?\s*}\s*(?:[,}\]]|\Z))'
_ENDS_NAME = re.compile(rb'"(?=\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:)|' + _CLOSED)
_ENDS_VALUE = re.compile(rb'"(?=\s*,\s*"[^"\\]*"\s*:)|' + _CLOSED)
_ENDS_OTHER = re.compile(rb'(?<!\\)"(?=\s*[:,\]}])')
_OF_NAME = re.compile(rb'"name"\s*:\s*\Z')
_OF_VALUE = re.compile(rb":\s*\Z")
_KEY_BYTES = 64
# All but a quote and a backslash at the end are left to `event.read_trace`.
_UNESCAPED = re.compile(rb'(\\.)|"|\\\Z', re.DOTALL)


# Some profilers do not escape quotes in names, or leave a comma at the end. What comes behind a
# quote says if a text ends there; other quotes in it are escaped.
class Repaired:
    """A stream whose texts are escaped, without commas before closing brackets.

    Attributes:
        repairs: How many texts and commas were changed so far.
    """

    def __init__(self, stream: Readable) -> None:
        self.repairs = 0
        self._stream = stream
        self._rest = b""
        self._before = b""  # what comes before the rest, as far as that matters
        self._has_ended = False

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, about as many as asked for, none at the end."""
        while not self._has_ended:
            block = self._stream.read(max(size, len(self._rest)))
            self._has_ended = not block
            self._rest += block
            found = self._repaired()
            if found:
                return found
        return b""

    def _repaired(self) -> bytes:
        """Return what of the rest is complete, and keep the remainder."""
        content, place = self._rest, 0
        pieces: list[bytes] = []

        def give(stop: int, piece: bytes) -> None:
            nonlocal place
            pieces.append(piece)
            place = stop
            self._before = (self._before + piece[-_KEY_BYTES:])[-_KEY_BYTES:]

        while True:
            stop = _end(_SOUND, content, place)
            give(stop, content[place:stop])
            stop = _end(_GAP, content, place)
            if not self._has_ended and len(content) - place < _AHEAD:
                break
            give(stop, content[place:stop])
            if stop == len(content):
                break
            if content[stop : stop + 1] == b",":
                self.repairs += 1
                place += 1
                continue
            end = self._end_of_text(content, stop)
            if end < 0:
                if not self._has_ended and len(content) - stop < MAX_PIECE:
                    break
                give(len(content), content[stop:])
                break
            give(end, self._escaped(content[stop + 1 : end - 1]))
        self._rest = content[place:]
        return b"".join(pieces)

    def _end_of_text(self, content: bytes, start: int) -> int:
        """Return where the text that begins at a quote ends, -1 if it is not there."""
        ends = _ENDS_VALUE if _OF_VALUE.search(self._before) else _ENDS_OTHER
        if _OF_NAME.search(self._before):
            ends = _ENDS_NAME
        found = ends.search(content, start + 1)
        return found.end() if found else -1

    def _escaped(self, text: bytes) -> bytes:
        escaped = _UNESCAPED.sub(lambda match: match[1] or b"\\" + match[0], text)
        self.repairs += escaped != text
        return b'"' + escaped + b'"'


def _end(pattern: re.Pattern[bytes], content: bytes, place: int) -> int:
    found = pattern.match(content, place)
    return found.end() if found else place


_MOST_NAMED = 5
_REPAIRED = "text or comma that is not JSON: read as what it stands for"


def empty_profile(source: str) -> Profile:
    """Return what upstream's file without any content holds."""
    return ProtonTraceReader(source).profile(TraceHead())


def read_timeline(stream: IO[bytes], source: str) -> Profile:
    """Return the profile in a stream; arguments and errors as for `Format.decode`."""
    try:
        return _read(stream, unpacked(stream, source), source)
    except InvalidJsonError as error:
        repaired = Repaired(unpacked(stream, source))
        try:
            found = _read(stream, repaired, source)
        except InvalidJsonError:
            raise error from None
    return replace(found, dropped={**found.dropped, _REPAIRED: repaired.repairs})


def _read(stream: IO[bytes], content: Readable, source: str) -> Profile:
    is_partial = is_partial_name(source)
    head = TraceHead()
    reader: KinetoReader | ProtonTraceReader | None = None
    for events in read_trace(content, source, head, may_be_cut=is_partial):
        if reader is None and is_session_timeline(head):
            break
        if reader is None:
            reader = _reader_of(head, events, source)
        reader.add(events)
    if reader is None and is_session_timeline(head):
        return read_session_profile(stream, source)
    chosen = reader if reader is not None else _reader_of(head, [], source)
    return chosen.profile(head)


def _reader_of(
    head: TraceHead, events: list[TraceEvent], source: str
) -> KinetoReader | ProtonTraceReader:
    if is_kineto(head, events):
        return KinetoReader(source)
    if is_proton_trace(head, events):
        return ProtonTraceReader(source)
    categories = dict.fromkeys(repr(event.cat[:40]) for event in events if event.ph == "X")
    named = ", ".join([*categories][:_MOST_NAMED])
    held = f"events of the categories {named}" if categories else "no events with a duration"
    raise corrupt(
        source,
        f"the timeline holds {held}, and is of no known tool (proton_bench, triton.profiler, "
        "torch.profiler)",
        "open it at https://ui.perfetto.dev",
    )
