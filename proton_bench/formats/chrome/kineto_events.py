"""Timelines of torch.profiler (Kineto): operators, Python functions, launches and device work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.event import Arguments, TraceEvent, TraceHead, nanoseconds
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.device_time import device_uses, with_uses
from proton_bench.formats.timeline.launched_work import place_work
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.ranges import Timeline, Work
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

__all__ = ["KinetoReader", "is_kineto"]

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
