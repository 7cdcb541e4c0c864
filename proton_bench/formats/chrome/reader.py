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
    Arguments,
    TraceEvent,
    TraceHead,
    call_path,
    nanoseconds,
    read_trace,
)
from proton_bench.formats.chrome.slices import is_session_timeline, read_session_profile, unpacked
from proton_bench.formats.chrome.split import MAX_PIECE, InvalidJsonError, Readable
from proton_bench.formats.path_tree import COUNT, TIME, Reading
from proton_bench.formats.timeline.launched_work import (
    UNCALLED,
    WAITING,
    DeviceWork,
    device_uses,
    is_waiting_kernel,
    place_work,
    with_uses,
)
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.own_timeline import MetricTexts, guessed_kind
from proton_bench.formats.timeline.ranges import MAX_NS, Columns, Timeline, Work
from proton_bench.model.device import UNNAMED_KIND, Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile

_HEAD_KEYS = frozenset({"schemaVersion", "deviceProperties"})
_RANGES = {
    "cpu_op": FrameKind.OP,
    "operator": FrameKind.OP,
    "python_function": FrameKind.PYTHON,
    "user_annotation": FrameKind.SCOPE,
}
_WORK = {
    "kernel": FrameKind.KERNEL,
    "gpu_memcpy": FrameKind.COPY,
    "gpu_memset": FrameKind.COPY,
    # Before torch 1.12:
    "Kernel": FrameKind.KERNEL,
    "Memcpy": FrameKind.COPY,
    "Memset": FrameKind.COPY,
}
# torch before 1.8 wrote a list of events without categories.
_OF_PROCESSES = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
_CALLS = re.compile(r".*_(runtime|driver)|Runtime|CUDA API")
# What repeats other events, or says nothing of paths and times.
_IGNORED = frozenset({"Trace", "overhead", "gpu_user_annotation", "cpu_instant_event"})
_IGNORED_PHASES = frozenset("MisftC")
_PYTHON = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_MAX_CATEGORIES = 20
_ROUNDING_NS = 1000  # older files hold whole microseconds
_FACTS = {
    "host_name": "host",
    "trace_id": "trace_id",
    "distributedInfo": "distributed",
    "with_stack": "with_stack",
    "record_shapes": "record_shapes",
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver",
    "hip_runtime_version": "hip_runtime",
    "hip_driver_version": "hip_driver",
    "schemaVersion": "schema_version",
}
_INT32 = range(2**31)
_INT64 = range(2**63)


def is_kineto(head: TraceHead, events: Iterable[TraceEvent]) -> bool:
    """Say whether the timeline is Kineto's, from the keys before its events and its first ones."""
    return not _HEAD_KEYS.isdisjoint(head.facts) or any(
        event.cat in _RANGES
        or (event.cat in _WORK and event.arguments.correlation is not None)
        or event.pid in _OF_PROCESSES
        for event in events
    )


class KinetoReader:
    """Takes batches of events, and makes a profile of them at the end."""

    def __init__(self, source: str) -> None:
        self._reading = Reading(source)
        self._timeline = Timeline(self._reading, _ROUNDING_NS)
        self._names: dict[str, str] = {}
        self._devices: set[int] = set()
        self._is_hip = False
        self._ignored = 0  # events that have no duration

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Take a batch.

        Raises:
            ProfileFormatError: A field has a value that it cannot have.
        """
        for event in events:
            if event.ph == "X":
                self._add_slice(event)
            elif event.ph not in _IGNORED_PHASES:
                self._reading.drop("event that is not a slice: left out")
            else:
                self._ignored += event.ph in "iC"

    def _add_slice(self, event: TraceEvent) -> None:
        category = event.cat = event.cat or _OF_PROCESSES.get(str(event.pid), "")
        if category in _IGNORED:
            return
        start = nanoseconds(event.ts)
        duration = nanoseconds(event.dur)
        if start is None or duration is None:
            self._reading.drop("slice without time or duration: left out")
        elif category in _RANGES:
            self._add_range(event, start, duration)
        elif category in _WORK:
            self._add_work(event, start, duration)
        elif _CALLS.fullmatch(category):
            self._add_call(event, start, duration)
        else:
            self._drop_category(category)

    def _add_range(self, event: TraceEvent, start: int, duration: int) -> None:
        name = event.name
        if event.cat == "python_function":
            name = self._python_name(name)
        is_added = self._timeline.add_range(
            self._timeline.number((event.pid, event.tid)),
            name,
            _RANGES[event.cat],
            start_ns=start,
            end_ns=start + duration,
        )
        if not is_added:
            return
        if _RANGES[event.cat] is FrameKind.OP:
            range_id = self._external_id(event)
            if range_id is not None:
                self._timeline.name_range(range_id)
            return
        call, caller = event.arguments.python_id, event.arguments.python_parent_id
        if type(call) is int and call in _INT64:
            self._timeline.name_call(call)
        if type(caller) is int and caller in _INT64:
            self._timeline.name_caller(caller)

    def _external_id(self, event: TraceEvent) -> int | None:
        """Return the id that an operator shares with the device work it launched, None for none.

        Ids of other tools in this place may be anything, so any other value counts as none.
        """
        found = event.arguments.external_id
        if found is None:
            found = event.arguments.external_id_before
        return found if type(found) is int and found > 0 and found in _INT64 else None

    def _python_name(self, name: str) -> str:
        """Return ``file:line@function``, as everywhere else in profiles."""
        found = self._names.get(name)
        if found is None:
            match = _PYTHON.fullmatch(name)
            found = f"{match['file']}:{match['line']}@{match['function']}" if match else name
            self._names[name] = found
        return found

    def _add_call(self, event: TraceEvent, start: int, duration: int) -> None:
        correlation = self._integer(event.arguments.correlation, "correlation", _INT64)
        self._is_hip = self._is_hip or event.name.startswith("hip")
        if correlation:
            thread = self._timeline.number((event.pid, event.tid))
            self._timeline.add_launch(0, correlation, thread, start_ns=start, duration_ns=duration)

    def _add_work(self, event: TraceEvent, start: int, duration: int) -> None:
        arguments, tree = event.arguments, self._timeline.tree
        device = self._integer(arguments.device, "device", _INT32)
        if device is not None:
            self._devices.add(device)
        correlation = self._integer(arguments.correlation, "correlation", _INT64)
        variant = self._variant(arguments)
        moved = None
        if _WORK[event.cat] is FrameKind.COPY:
            moved = self._integer(arguments.bytes, "bytes", _INT64)
        self._timeline.add_work(
            Work(
                process=0,
                correlation=correlation or -1,
                name=tree.strings.index(event.name),
                kind=_WORK[event.cat],
                start_ns=start,
                duration_ns=duration,
                device=-1 if device is None else device,
                variant=-1 if variant is None else tree.variant(variant),
                moved_bytes=-1 if moved is None else moved,
                range_id=self._external_id(event) or -1,
            )
        )

    def _variant(self, arguments: Arguments) -> Variant | None:
        if arguments.grid is None and arguments.block is None:
            return None
        return Variant(
            grid=self._extent(arguments.grid, "grid"),
            block=self._extent(arguments.block, "block"),
            shared_bytes=self._integer(arguments.shared_bytes, "shared memory", _INT64) or 0,
            registers=self._integer(arguments.registers, "registers per thread", _INT32) or 0,
        )

    def _extent(self, value: Any, what: str) -> tuple[int, int, int]:
        if not isinstance(value, list) or len(value) != 3:
            what = f"the {what} of a kernel is not a list of 3 numbers"
            raise corrupt(self._reading.source, what)
        x, y, z = (self._integer(each, what, _INT32) or 0 for each in value)
        return x, y, z

    def _integer(self, value: Any, what: str, allowed: range) -> int | None:
        if value is None:
            return None
        if type(value) is not int:
            raise corrupt(
                self._reading.source, f"{what} is {str(value)[:60]!r}, not a number of it"
            )
        return value if value in allowed else None

    def _drop_category(self, category: str) -> None:
        reason = f"slice of the unknown category {category[:40]!r}: left out"
        if len(self._reading.dropped) > _MAX_CATEGORIES and reason not in self._reading.dropped:
            reason = "slice of another unknown category: left out"
        self._reading.drop(reason)

    def profile(self, head: TraceHead) -> Profile:
        """Return the profile of all that was added.

        Raises:
            ProfileFormatError: Devices or numbers are invalid.
        """
        timeline, reading = self._timeline, self._reading
        if type(head.facts.get("baseTimeNanoseconds")) is int:
            timeline.first_ns = 0  # times count from there
        work = place_work(timeline, place_ranges(timeline))
        reading.provenance = _provenance(head.facts)
        reading.provenance["overlapping_ranges"] = timeline.overlapping
        names, devices = self._device_table(head.facts.get("deviceProperties"))
        if names:
            reading.provenance["device_names"] = names
        if len(timeline.tree) == 1:  # say what the file holds instead
            reading.drop("event without a duration: left out", self._ignored)
        profile = timeline.tree.build(reading, devices)
        return with_uses(profile, device_uses(work, timeline.tree.strings.texts()), devices)

    def _device_table(self, properties: Any) -> tuple[dict[str, str], dict[int, Device]]:
        kind = "HIP" if self._is_hip else "CUDA"
        devices = {index: Device(kind, index) for index in sorted(self._devices)}
        names: dict[str, str] = {}
        if not isinstance(properties, list | None):
            raise corrupt(self._reading.source, "deviceProperties is not a list")
        for each in properties or ():
            if not isinstance(each, dict) or type(index := each.get("id")) is not int:
                raise corrupt(self._reading.source, "deviceProperties has an invalid device")
            names[f"{kind}:{index}"] = str(each.get("name", ""))
            if index in devices:
                major, minor = each.get("computeMajor"), each.get("computeMinor")
                sms = self._integer(each.get("numSms"), "numSms", _INT32)
                is_known = type(major) is int and type(minor) is int and not self._is_hip
                devices[index] = Device(
                    kind, index, arch=f"{major}{minor}" if is_known else "", num_sms=sms or 0
                )
        return names, devices


def _provenance(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"tool": "torch.profiler", "format": "kineto"}
    found.update({ours: facts[key] for key, ours in _FACTS.items() if key in facts})
    base = facts.get("baseTimeNanoseconds")
    if type(base) is int:
        found["base_time_ns"] = base
    distributed = facts.get("distributedInfo")
    if isinstance(distributed, dict) and type(distributed.get("rank")) is int:
        found["rank"] = distributed["rank"]
    return found


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
