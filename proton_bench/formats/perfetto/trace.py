"""From packets of a Perfetto file to slices with their tracks and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from proton_bench.formats.base import corrupt
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.event import (
    BEGIN,
    END,
    INSTANT,
    Clocks,
    Sequence,
    Track,
    TrackEvent,
    read_event,
    read_track,
)
from proton_bench.formats.protobuf import DamagedMessage, read_fields

# A packet whose last field is its timestamp, and how many bytes a flow takes at an event's end.
_TIMED = re.compile(rb"(.*)\x40([\x80-\xff]{0,9}[\x00-\x7f])", re.DOTALL)
_FLOW_KEY, _FLOW_BYTES, _FLOW_NUMBER = b"\xf9\x02", 10, 8
_FLOW, _TRACK = 47, 11
_PLAIN = [10, 11]  # sequence and event
_MOST_PLANS = 1 << 16
_LONGEST = 512  # bytes of a packet that is kept
_SHORTEST = 3
_TIME, _TIME_KEY = b"\x40", 0x40
_MORE, _LOW, _MASK = 128, 127, 2**64 - 1


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What the bytes of a packet before its time say.

    Attributes:
        event: Its event; the flow of one whose flow is new each time is 0.
        sequence: The sequence that it belongs to.
        generation: That of the sequence when the bytes were read.
        has_track: The event names its track.
    """

    event: TrackEvent
    sequence: Sequence
    generation: int
    has_track: bool


class PlanBook:
    """Plans by the bytes that they are of."""

    def __init__(self) -> None:
        self._whole: dict[bytes, Plan] = {}
        self._before_flow: dict[bytes, Plan] = {}

    def find(self, packet: bytes) -> tuple[Plan, int, int] | None:
        """Return the plan of a packet, its flow and its time, None for no plan."""
        if len(packet) < _SHORTEST:
            return None
        # Times of one and two bytes are steps of up to 16 us.
        last = packet[-1]
        if last >= _MORE:
            return None
        if packet[-2] == _TIME_KEY:
            head, time = packet[:-2], last
        elif packet[-3:-2] == _TIME and packet[-2] >= _MORE:
            head, time = packet[:-3], last << 7 | packet[-2] & _LOW
        else:
            match = _TIMED.fullmatch(packet)
            if match is None:
                return None
            head, time = match[1], _number_of(match[2])
        flow = 0
        plan = self._whole.get(head)
        if plan is None:
            plan = self._before_flow.get(head[:-_FLOW_BYTES])
            if plan is None or head[-_FLOW_BYTES:-_FLOW_NUMBER] != _FLOW_KEY:
                return None
            flow = int.from_bytes(head[-_FLOW_NUMBER:], "little")
        return (plan, flow, time) if plan.generation == plan.sequence.generation else None

    def learn(self, packet: bytes, event: TrackEvent, sequence: Sequence) -> None:
        """Keep what the bytes of a packet say, if others may begin with the same.

        Args:
            packet: The packet.
            event: The event that it holds.
            sequence: Its sequence.
        """
        is_slice = event.type in (BEGIN, END) and not event.is_legacy
        match = _TIMED.fullmatch(packet) if is_slice and len(packet) <= _LONGEST else None
        if match is None or len(self._whole) + len(self._before_flow) >= _MOST_PLANS:
            return
        head = match[1]
        fields = _whole_fields(head)
        # A text that comes later would be missing for good.
        texts = (event.name, event.category, *event.annotations, *event.annotations.values())
        is_known = event.type == END or "" not in texts
        if [number for number, _ in fields] != _PLAIN or not is_known:
            return
        content = fields[1][1]
        if not isinstance(content, bytes):
            return
        if not event.flow:
            has_track = any(number == _TRACK for number, _ in _whole_fields(content))
            self._whole[head] = Plan(event, sequence, sequence.generation, has_track)
            return
        before = _whole_fields(content[:-_FLOW_BYTES])
        if content[-_FLOW_BYTES:-_FLOW_NUMBER] == _FLOW_KEY and before:
            numbers = [number for number, _ in before]
            if _FLOW not in numbers:
                plain = msgspec.structs.replace(event, flow=0)
                plan = Plan(plain, sequence, sequence.generation, _TRACK in numbers)
                self._before_flow[head[:-_FLOW_BYTES]] = plan


def _whole_fields(content: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a message, none if the bytes are not whole ones."""
    try:
        return read_fields(content)
    except DamagedMessage:
        return []


def _number_of(encoded: bytes) -> int:
    value = 0
    for byte in reversed(encoded):
        value = value << 7 | byte & _LOW
    return value & _MASK


# Fields of TracePacket.
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT = 6, 8, 10, 11
_INTERNED, _FLAGS, _CLEARED, _LOST_BEFORE = 12, 13, 41, 42
_CLOCK, _DEFAULTS, _DESCRIPTOR = 58, 59, 60
_FLAG_CLEARED, _FLAG_NEEDS_STATE = 1, 2
# What packets hold that changes how others are read.
_STATE = frozenset(
    (_CLOCK_SNAPSHOT, _INTERNED, _FLAGS, _CLEARED, _LOST_BEFORE, _DEFAULTS, _DESCRIPTOR)
)
_MOST_OPEN = 4096  # slices of one track
_NO_END = "slice without an end: left out"


class Slice(msgspec.Struct, frozen=True, gc=False):
    """One slice of one track.

    Attributes:
        track: Number of the track.
        sequence: Number of its sequence of packets.
        name: Its name.
        category: Its first category, "" for none.
        annotations: Its values by name.
        start_ns: Start, in nanoseconds of the trace's clock.
        end_ns: End.
        flow: Number of the first arrow that begins or ends at it, 0 for none.
    """

    track: int
    sequence: int
    name: str
    category: str
    annotations: dict[str, Any]
    start_ns: int
    end_ns: int
    flow: int = 0


# An event, its flow, the number of its sequence, and its time.
_Timed: TypeAlias = tuple[TrackEvent, int, int, int]


class SliceReader(Protocol):
    """Takes what is read."""

    def add_slice(self, found: Slice) -> None:
        """Take a slice that ended."""

    def add_instant(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        """Take an event without a length."""


@dataclass(slots=True)
class PerfettoTrace:
    """Takes packets one by one and hands out slices.

    Sequences of packets stand in a file in any order, and one may end what another one began. So
    events wait for the end of the file, except those of sequences that are known to be in order.

    Attributes:
        reader: Receives slices.
        reading: Receives what cannot be placed.
        tracks: Every track that was described, by its number.
        ordered: Numbers of sequences that alone write their tracks, in the order of time.
    """

    reader: SliceReader
    reading: Reading
    tracks: dict[int, Track] = field(default_factory=dict)
    ordered: set[int] = field(default_factory=set)
    _waiting: dict[int, list[_Timed]] = field(default_factory=dict)
    _sequences: dict[int, Sequence] = field(default_factory=dict)
    _clocks: Clocks = field(default_factory=Clocks)
    _plans: PlanBook = field(default_factory=PlanBook)
    _open: dict[int, list[_Timed]] = field(default_factory=dict)

    def add(self, packets: Iterable[bytes]) -> None:
        """Take packets.

        Raises:
            ProfileFormatError: One is damaged.
        """
        find, clocks = self._plans.find, self._clocks
        try:
            for packet in packets:
                found = find(packet)
                if found is None:
                    self._add(packet)
                    continue
                plan, flow, packet_ns = found
                event, sequence = plan.event, plan.sequence
                at_ns = sequence.time_ns(packet_ns, 0, clocks)
                track = event.track if plan.has_track else sequence.track
                self._take(track, (event, flow or event.flow, sequence.number, at_ns))
        except DamagedMessage as error:
            raise corrupt(self.reading.source, f"a packet is damaged: {error}") from None

    def finish(self) -> None:
        """Hand out the slices of events that waited, and count what never ended."""
        for track, events in self._waiting.items():
            for found in sorted(events, key=_time):
                self._pair(track, found)
        self._waiting.clear()
        self.reading.drop(_NO_END, sum(map(len, self._open.values())))
        self._open.clear()

    def _add(self, content: bytes) -> None:
        packet = dict(read_fields(content))
        sequence = self._sequence(number_field(packet, _SEQUENCE))
        flags = number_field(packet, _FLAGS) if _FLAGS in packet else 0
        if not _STATE.isdisjoint(packet):
            self._add_state(packet, sequence, is_cleared=bool(flags & _FLAG_CLEARED))
        event = packet.get(_TRACK_EVENT)
        if not isinstance(event, bytes):
            return
        if flags & _FLAG_NEEDS_STATE and not sequence.is_valid:
            self.reading.drop("event that counts on packets which are not in the file: left out")
            return
        packet_ns, clock = number_field(packet, _TIMESTAMP), number_field(packet, _CLOCK)
        at_ns = sequence.time_ns(packet_ns, clock, self._clocks)
        found = read_event(event, sequence)
        self._plans.learn(content, found, sequence)
        self._add_event(found, sequence.number, at_ns)

    def _add_state(
        self, packet: dict[int, int | bytes], sequence: Sequence, *, is_cleared: bool
    ) -> None:
        if is_cleared or number_field(packet, _CLEARED):
            sequence.clear()
        if number_field(packet, _LOST_BEFORE):
            self.reading.drop("packets that the tool lost, at least", 1)
        for number, take_state in (
            (_DEFAULTS, sequence.take_defaults),
            (_INTERNED, sequence.take_interned),
            (_CLOCK_SNAPSHOT, lambda content: self._clocks.observe(content, sequence)),
            (_DESCRIPTOR, self._add_track),
        ):
            content = packet.get(number)
            if isinstance(content, bytes):
                take_state(content)

    def _add_track(self, content: bytes) -> None:
        found = read_track(content)
        before = self.tracks.get(found.uuid)
        # A later description says what is new; its parent stays.
        if before is None or found.parent or not before.parent:
            self.tracks[found.uuid] = found

    def _sequence(self, number: int) -> Sequence:
        found = self._sequences.get(number)
        if found is None:
            found = self._sequences[number] = Sequence(number)
        return found

    def _add_event(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        if event.is_legacy:
            self.reading.drop("event in the form of Chrome's old tracing: left out")
        elif event.type in (BEGIN, END):
            self._take(event.track, (event, event.flow, sequence, at_ns))
        elif event.type == INSTANT:
            self.reader.add_instant(event, sequence, at_ns)

    def _take(self, track: int, found: _Timed) -> None:
        if found[2] in self.ordered:
            self._pair(track, found)
        else:
            self._waiting.setdefault(track, []).append(found)

    def _pair(self, track: int, found: _Timed) -> None:
        if found[0].type == BEGIN:
            self._begin(track, found)
        else:
            self._end(track, found[0].annotations, found[3])

    def _begin(self, track: int, begun: _Timed) -> None:
        stack = self._open.get(track)
        if stack is None:
            stack = self._open[track] = []
        if len(stack) >= _MOST_OPEN:
            self.reading.drop(_NO_END)
            stack.pop(0)
        stack.append(begun)

    def _end(self, track: int, annotations: dict[str, Any], at_ns: int) -> None:
        opened = self._open.get(track)
        if not opened:
            self.reading.drop("end of a slice that did not begin: left out")
            return
        begun, flow, sequence, start_ns = opened.pop()
        merged = {**begun.annotations, **annotations} if annotations else begun.annotations
        self.reader.add_slice(
            Slice(track, sequence, begun.name, begun.category, merged, start_ns, at_ns, flow)
        )


def _time(found: _Timed) -> int:
    return found[3]


def number_field(packet: dict[int, int | bytes], field_number: int) -> int:
    """Return a number of a message, 0 if it has none in this field."""
    found = packet.get(field_number, 0)
    return found if isinstance(found, int) else 0
