"""Packets that repeat earlier ones: only their times, and maybe arrows, are new.

Nearly all packets of a long timeline are begins and ends of slices whose bytes, up to a time at
their end, were read before. What those bytes said is kept, so that they are read once.
"""

from __future__ import annotations

import re

import msgspec

from proton_bench.formats.perfetto.event import BEGIN, END, TrackEvent
from proton_bench.formats.perfetto.sequence import Sequence
from proton_bench.formats.protobuf import DamagedMessage, read_fields

__all__ = ["Plan", "PlanBook"]

# A packet whose last field is its timestamp, and how many bytes a flow takes at an event's end.
_TIMED = re.compile(rb"(.*)\x40([\x80-\xff]{0,9}[\x00-\x7f])", re.DOTALL)
_FLOW_KEY, _FLOW_BYTES, _FLOW_NUMBER = b"\xf9\x02", 10, 8
_SEQUENCE, _TRACK_EVENT, _FLOW, _TRACK = 10, 11, 47, 11
_PLAIN = [_SEQUENCE, _TRACK_EVENT]
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
