"""The call paths of a timeline in Perfetto's format: ours, or of another tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.event import Track, TrackEvent
from proton_bench.formats.perfetto.stream import PacketStream
from proton_bench.formats.perfetto.trace import PerfettoTrace, Slice
from proton_bench.formats.protobuf import DamagedMessage, read_fields, varint
from proton_bench.formats.timeline.own_timeline import (
    EmbeddedProfiles,
    SessionTimelines,
    embedded_or,
)
from proton_bench.formats.timeline.slices import (
    HOST,
    REPEATS,
    CallPath,
    Take,
    TimelineSlice,
    copied_bytes,
    counted,
    is_further_lane,
    not_ours,
)
from proton_bench.model.device import UNNAMED_KIND
from proton_bench.model.frame import CAPTURED_NAME, FrameKind
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

# What packets about a session hold.
SESSION_MARK = b"proton_bench: "
START_OF_SESSION, _END = "proton_bench: start of session", "proton_bench: end of session"
_STACK, _CORRELATION, _OPEN = "call_stack", "correlation", "open"
_OF_EVENTS = frozenset((_CORRELATION, _OPEN))  # unless they are texts, which a program gave
_STREAM = re.compile(r"Stream (\d{1,9})")
_DEVICE = re.compile(r"(GPU|CPU device|Device|[A-Z]{2,8}:?) ?(\d{1,9})")
_KINDS = {"GPU": UNNAMED_KIND, "Device": UNNAMED_KIND, "CPU device": "CPU"}
_PROCESS = re.compile(r"(?:rank (?P<rank>\d{1,9}) ?)?(?:host (?P<host>\S+))?: (?P<program>.*)")
_MOST_PARENTS = 16
_GRAPH_LAUNCHES = 1 << 40  # have numbers of their own
_INT64 = range(2**63)
_NO_PATH = CallPath()
_decode_map = msgspec.json.Decoder(dict[str, Any]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode


def read_perfetto_slices(file: Path, take: Take) -> Reading:
    """Hand over every slice of a file, and return what could not be read of it.

    Raises:
        UsageError: It is not a timeline of proton_bench.
        ProfileFormatError: It is damaged.
        OSError: It cannot be read.
    """
    reading = Reading(visible(file))

    def refuse(found: Slice) -> None:
        if found.sequence not in slices.processes:
            raise not_ours(reading.source)

    slices = PerfettoSlices(reading, take, refuse)
    with open_file(file) as stream:
        slices.trace.add(PacketStream(stream, reading.source))
    slices.trace.finish()
    if not slices.processes:
        raise not_ours(reading.source)
    return reading


@dataclass(slots=True)
class _Process:
    """One recorded process: its facts, and whether its session reached its end."""

    origin: Origin
    facts: dict[str, Any]
    has_ended: bool = False


@dataclass(slots=True)
class _Place:
    """Where a track lies: its device and stream, or its thread."""

    device: int = HOST
    device_kind: str = UNNAMED_KIND
    lane: int = 0
    name: str = ""


class PerfettoSlices:
    """Takes packets, by its `trace`, and hands over the slices of sessions and all others.

    Args:
        reading: Receives what could not be read, and losses of sessions.
        take: Receives each slice with a call path, unless it repeats another.
        take_other: Receives slices without a session or a call path.
    """

    def __init__(self, reading: Reading, take: Take, take_other: Callable[[Slice], None]) -> None:
        self.trace = PerfettoTrace(self, reading)
        self.processes: dict[int, _Process] = {}
        self._take = take
        self._take_other = take_other
        self._places: dict[int, _Place] = {}
        self._paths: dict[str, CallPath] = {}
        self._first_flows: dict[int, int] = {}

    def add_instant(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        """Take an event without a length; those of sessions describe them."""
        before = self.processes.get(sequence)
        if event.name == START_OF_SESSION:
            facts = before.facts if before is not None else {"start_time_ns": at_ns}
            facts = {**facts, **self._start_facts(event)}
            source = Path(self.trace.reading.source).name
            self.processes[sequence] = _Process(Origin.of(facts, source), facts)
            self.trace.ordered.add(sequence)
        elif event.name == _END and before is not None:
            before.has_ended = not event.annotations.get("is_partial")
            before.facts |= self._end_facts(event.annotations)

    def add_slice(self, found: Slice) -> None:
        """Take a slice that ended."""
        duration = found.end_ns - found.start_ns
        if duration < 0:
            self.trace.reading.drop("slice that ends before it starts: left out")
            return
        process = self.processes.get(found.sequence)
        annotations = found.annotations
        path = self._path(annotations.get(_STACK))
        if process is None or not path:
            self._take_other(found)
            return
        if found.category in REPEATS:
            return
        place = self._place(found.track)
        self._take(
            TimelineSlice(
                origin=process.origin,
                path=path,
                program=str(process.facts.get("program") or ""),
                kind=found.category or "scope",
                name=_call_name(found.name) if found.category == "launch" else found.name,
                start_ns=found.start_ns,
                duration_ns=duration,
                device=place.device,
                row=found.track,
                device_kind=place.device_kind,
                lane=place.lane,
                lane_name=place.name,
                correlation=self._correlation(found),
                moved_bytes=copied_bytes(annotations),
                # Nearly all have their call path alone.
                values={} if len(annotations) == 1 else _given_values(annotations),
                is_open=annotations.get(_OPEN) is True,
            )
        )

    def facts(self) -> dict[Origin, dict[str, Any]]:
        """Return the facts of each process, by the origin of its slices."""
        return {process.origin: process.facts for process in self.processes.values()}

    @property
    def is_unfinished(self) -> bool:
        """Whether some session did not reach its end."""
        return not all(process.has_ended for process in self.processes.values())

    def _path(self, text: Any) -> CallPath:
        """Return the call path that an event gives as JSON, an empty one where it gives none."""
        found = self._paths.get(text) if isinstance(text, str) else _NO_PATH
        if found is None:
            try:
                names = _decode_names(text)
            except msgspec.MsgspecError:
                names = []
            found = self._paths[text] = CallPath.of(names)
        return found

    def _correlation(self, found: Slice) -> int:
        """Return the id that a launch and its work share, 0 for none.

        Graphs have the number of their launch; all else has one arrow.
        """
        launch = counted(found.annotations.get(_CORRELATION))
        if launch:
            return (launch + _GRAPH_LAUNCHES) % 2**62
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
        place = _Place()
        track: Track | None = self.trace.tracks.get(number)
        is_line = track is not None and is_further_lane(track.name)
        for _ in range(_MOST_PARENTS):
            if track is None or (track.process_id is not None and track.thread_id is None):
                break
            stream, device = _STREAM.fullmatch(track.name), _DEVICE.fullmatch(track.name)
            if track.thread_id is not None:
                if not place.name:
                    # Lanes beside the first are not threads of the system.
                    place.lane = number % 2**31 if is_line else track.thread_id
                    place.name = track.name
            elif stream is not None:
                place.lane = int(stream[1])
            elif device is not None and place.device == HOST:
                kind = device[1].rstrip(":")
                place.device, place.device_kind = int(device[2]), _KINDS.get(kind, kind)
            track = self.trace.tracks.get(track.parent)
        return place

    def _start_facts(self, event: TrackEvent) -> dict[str, Any]:
        """Return the facts of a process, from its track where its session does not give them."""
        track = self.trace.tracks.get(event.track)
        if track is not None and track.process_id is None:  # the session has a track of its own
            track = self.trace.tracks.get(track.parent)
        match = _PROCESS.fullmatch(track.name) if track is not None else None
        found: dict[str, Any] = {"tool": "proton_bench", "format": "perfetto"}
        if match is not None:
            found |= {key: text for key, text in match.groupdict().items() if text}
            if match["rank"]:
                found["rank"] = int(match["rank"])
        given = dict(event.annotations)
        for name, ours in (("process_id", "pid"), ("process_name", "program")):
            if name in given:
                given[ours] = given.pop(name)
        return plain_map({**found, **given}, self.trace.reading.source)

    def _end_facts(self, annotations: dict[str, Any]) -> dict[str, Any]:
        dropped = annotations.get("dropped")
        for reason, count in (dropped if isinstance(dropped, dict) else {}).items():
            if type(count) is int and count in _INT64:
                self.trace.reading.drop(reason, count)
        found: dict[str, Any] = {}
        provenance = annotations.get("provenance")  # of earlier versions
        if isinstance(provenance, str):
            found = decoded(lambda: _decode_map(provenance), self.trace.reading.source)
        drift_ns = annotations.get("clock_drift_ns")
        if type(drift_ns) is int:
            found["clock_drift_ns"] = drift_ns
        return plain_map(found, self.trace.reading.source)


def _given_values(annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in annotations.items()
        if key != _STACK and (isinstance(value, str) or key not in _OF_EVENTS)
    }


def _call_name(work: str) -> str:
    """Return the name that torch.profiler gives the call that launched something."""
    if work.startswith("launch "):
        work = work.removeprefix("launch ")
    if "memset" in work:
        return "cudaMemsetAsync"
    if "memcpy" in work:
        return "cudaMemcpyAsync"
    return "cudaGraphLaunch" if work in (CAPTURED_NAME, "<graph>") else "cudaLaunchKernel"


_START = START_OF_SESSION.encode()
_SEQUENCE, _PROFILE, _REST, _PIECE = 10, 1984, 1, 2
_PROFILE_KEY = varint(_PROFILE << 3 | 2)
_KEY_ENDS = 16  # behind the number of the sequence
_BEFORE_SESSION = 1000  # packets: a session begins with a few of them
_UNNAMED = "(unnamed)"
_OTHERS = {"tool": "perfetto", "format": "perfetto"}


def read_timeline(stream: IO[bytes], source: str) -> Profile:
    """Return the profile; one that was cut off is read as far as it goes and is partial.

    Arguments and errors as for `Format.decode`.
    """
    try:
        return embedded_or(
            lambda: _embedded_profile(stream, source),
            lambda: _profile_of_slices(stream, source),
        )
    except (OverflowError, MemoryError) as error:
        raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _embedded_profile(stream: IO[bytes], source: str) -> Profile | None:
    """Return the profile that sessions wrote into the file, None unless all of them did.

    Of a timeline of another tool, only the beginning is read.
    """
    profiles, sessions = EmbeddedProfiles(source), 0
    try:
        for place, packet in enumerate(PacketStream(stream, source)):
            if _PROFILE_KEY in packet[:_KEY_ENDS]:
                _add_piece(profiles, packet)
            elif _START in packet:
                sessions += 1
            elif not sessions and place >= _BEFORE_SESSION:
                return None
    except DamagedMessage as error:
        raise corrupt(source, f"a packet is damaged: {error}") from None
    return profiles.profile(sessions) if sessions else None


def _add_piece(profiles: EmbeddedProfiles, packet: bytes) -> None:
    fields = dict(read_fields(packet))
    content = fields.get(_PROFILE)
    inner = dict(read_fields(content)) if isinstance(content, bytes) else {}
    piece, rest = inner.get(_PIECE), inner.get(_REST, 0)
    if isinstance(piece, bytes) and isinstance(rest, int):
        profiles.add(fields.get(_SEQUENCE), piece, rest)


def _profile_of_slices(stream: IO[bytes], source: str) -> Profile:
    timelines = SessionTimelines(source)

    def nest(found: Slice) -> None:
        timeline = timelines.of(Origin()).timeline
        timeline.add_range(
            timeline.number(found.track),
            found.name or _UNNAMED,
            FrameKind.SCOPE,
            start_ns=found.start_ns,
            end_ns=found.end_ns,
        )

    slices = PerfettoSlices(timelines.reading, timelines.add, nest)
    stream.seek(0)
    packets = PacketStream(stream, source)
    slices.trace.add(packets)
    slices.trace.finish()
    facts = slices.facts() or {Origin(): _OTHERS}
    return timelines.profile(facts, is_partial=packets.is_cut or slices.is_unfinished)
