"""Slices of a timeline of ours in Perfetto's format, one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.call_paths import START_OF_SESSION
from proton_bench.formats.perfetto.event import Track, TrackEvent
from proton_bench.formats.perfetto.stream import PacketStream
from proton_bench.formats.perfetto.trace import PerfettoTrace, Slice
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
from proton_bench.model.origin import Origin
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

__all__ = ["read_perfetto_slices"]

_MOST_PARENTS = 16
_OF_SLICES = frozenset(("call_stack", "correlation", "bytes", "open", "stream"))
_STREAM, _DEVICE = re.compile(r"Stream (\d{1,9})"), re.compile(r"(?:GPU|Device) (\d{1,9})")
_GRAPH_LAUNCHES = 1 << 40  # are told by numbers of their own


def read_perfetto_slices(file: Path, take: Take) -> Reading:
    """Hand over every slice of a file, and return what could not be read of it.

    Raises:
        UsageError: It is no timeline of proton_bench.
        ProfileFormatError: It is damaged.
        OSError: It cannot be read.
    """
    return _PerfettoSlices(visible(file), take).read(file)


@dataclass(slots=True)
class _Place:
    """Where a track lies: its device and stream, or its thread."""

    device: int = HOST
    lane: int = 0
    name: str = ""


class _PerfettoSlices:
    def __init__(self, source: str, take: Take) -> None:
        self.trace = PerfettoTrace(self, Reading(source))
        self._take = take
        self._file_name = ""
        self._processes: dict[int, tuple[Origin, str]] = {}
        self._places: dict[int, _Place] = {}
        self._first_flows: dict[int, int] = {}

    def read(self, file: Path) -> Reading:
        """Hand over the slices of a file."""
        self._file_name = file.name
        with open_file(file) as stream:
            self.trace.add(PacketStream(stream, self.trace.reading.source))
        self.trace.finish()
        if not self._processes:
            raise not_ours(self.trace.reading.source)
        return self.trace.reading

    def add_instant(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        """Take an event without a length; that which begins a session tells of its process."""
        del at_ns
        if event.name == START_OF_SESSION:
            told = {**event.annotations, "pid": event.annotations.get("process_id")}
            program = event.annotations.get("process_name")
            origin = Origin.of(told, self._file_name)
            self._processes[sequence] = (origin, program if isinstance(program, str) else "")

    def add_slice(self, found: Slice) -> None:
        """Take a slice that ended."""
        if found.sequence not in self._processes:
            raise not_ours(self.trace.reading.source)
        duration = found.end_ns - found.start_ns
        if duration < 0:
            self.trace.reading.drop("slice that ends before it starts: left out")
            return
        if found.category in REPEATS or "call_stack" not in found.annotations:
            return
        origin, program = self._processes[found.sequence]
        place = self._place(found.track)
        annotations = found.annotations
        self._take(
            TimelineSlice(
                origin=origin,
                program=program,
                kind=found.category,
                name=_call_name(found.name) if found.category == "launch" else found.name,
                start_ns=found.start_ns,
                duration_ns=duration,
                device=place.device,
                lane=place.lane,
                lane_name=place.name,
                correlation=self._correlation(found),
                moved_bytes=told_bytes(annotations),
                values={key: annotations[key] for key in annotations if key not in _OF_SLICES},
            )
        )

    def _correlation(self, found: Slice) -> int:
        told = counted(found.annotations.get("correlation"))
        if told:
            return told + _GRAPH_LAUNCHES
        if not found.flow:
            return 0
        # Numbers of launches are hidden below a key of the process, their first byte last.
        first = self._first_flows.setdefault(found.sequence, found.flow)
        return int.from_bytes((found.flow ^ first).to_bytes(8, "little"), "big") % 2**62 + 1

    def _place(self, number: int) -> _Place:
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = self._found_place(number)
        return place

    def _found_place(self, number: int) -> _Place:
        place = _Place(name="")
        track: Track | None = self.trace.tracks.get(number)
        is_line = track is not None and is_further_lane(track.name)
        for _ in range(_MOST_PARENTS):
            if track is None:
                break
            stream, device = _STREAM.fullmatch(track.name), _DEVICE.fullmatch(track.name)
            if track.thread_id is not None and not place.name:
                # Lanes beside the first are no thread of the system's.
                place.lane = number % 2**31 if is_line else track.thread_id
                place.name = track.name
            elif stream is not None:
                place.lane = int(stream[1])
            elif device is not None:
                place.device = int(device[1])
            track = self.trace.tracks.get(track.parent)
        return place


def _call_name(work: str) -> str:
    """Return the name that torch.profiler gives the call that launched something."""
    if work.startswith("launch "):
        work = work.removeprefix("launch ")
    if "memset" in work:
        return "cudaMemsetAsync"
    if "memcpy" in work:
        return "cudaMemcpyAsync"
    return "cudaGraphLaunch" if work in ("<captured_at>", "<graph>") else "cudaLaunchKernel"
