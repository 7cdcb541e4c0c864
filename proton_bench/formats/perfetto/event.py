"""Track events and track descriptors of a Perfetto file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from proton_bench.formats.limits import take_items
from proton_bench.formats.protobuf import read_fields, signed, text_of

BOOT_CLOCK = 6
_OWN_CLOCKS = range(64, 128)  # of one sequence each
_MASK = 2**64 - 1
# Fields of InternedData, and of each entry.
_CATEGORIES, _EVENT_NAMES, _ANNOTATION_NAMES, _ANNOTATION_TEXTS = 1, 2, 3, 29
_IID, _TEXT = 1, 2
# Of TracePacketDefaults and its TrackEventDefaults.
_DEFAULT_EVENT, _DEFAULT_CLOCK, _DEFAULT_TRACK = 11, 58, 11
# Of a ClockSnapshot and its Clock.
_CLOCKS = 1
_CLOCK_ID, _CLOCK_TIME, _IS_INCREMENTAL, _MULTIPLIER = 1, 2, 3, 4


@dataclass(slots=True)
class _Clock:
    """A clock of one sequence.

    Attributes:
        now_ns: Where an incremental clock stands.
        offset_ns: What to add to get the time of the trace.
        is_incremental: Times are steps from the one before.
        unit_ns: Length of one of its units.
    """

    now_ns: int
    offset_ns: int
    is_incremental: bool
    unit_ns: int


class Clocks:
    """Clocks that all sequences share."""

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}

    def to_trace(self, clock: int, time_ns: int) -> int:
        """Return a time in nanoseconds of the trace's clock."""
        return time_ns + self._offsets.get(clock, 0)

    def observe(self, snapshot: bytes, sequence: Sequence) -> None:
        """Take a ClockSnapshot."""
        readings: dict[int, tuple[int, bool, int]] = {}
        fields = read_fields(snapshot)
        take_items(len(fields))
        for number, value in fields:
            if number != _CLOCKS or not isinstance(value, bytes):
                continue
            found = {key: each for key, each in read_fields(value) if isinstance(each, int)}
            time_ns, unit_ns = found.get(_CLOCK_TIME, 0), found.get(_MULTIPLIER, 0) or 1
            is_incremental = bool(found.get(_IS_INCREMENTAL))
            readings[found.get(_CLOCK_ID, 0)] = (time_ns, is_incremental, unit_ns)
        if not readings:
            return
        reference = BOOT_CLOCK if BOOT_CLOCK in readings else min(readings)
        reference_ns = readings[reference][0] + self._offsets.get(reference, 0)
        for clock, (time, is_incremental, unit_ns) in readings.items():
            offset_ns = reference_ns - time * unit_ns
            if clock in _OWN_CLOCKS:
                sequence.clocks[clock] = _Clock(time * unit_ns, offset_ns, is_incremental, unit_ns)
            elif clock != BOOT_CLOCK:
                self._offsets.setdefault(clock, offset_ns)


@dataclass(slots=True)
class Sequence:
    """The state of one sequence of packets.

    Attributes:
        number: Its trusted_packet_sequence_id.
        names: Names of events by their numbers.
        categories: Categories by their numbers.
        keys: Names of annotations by their numbers.
        texts: Texts of annotations by their numbers.
        clock: Clock of packets that name none.
        track: Track of events that name none.
        clocks: Clocks of its own.
        is_valid: Nothing that its packets count on was lost.
        annotations: Short annotations that were read before, by their bytes.
        generation: Changes when what was read before may mean something else.
    """

    number: int
    names: dict[int, str] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    clock: int = 0
    track: int = 0
    clocks: dict[int, _Clock] = field(default_factory=dict)
    is_valid: bool = False
    annotations: dict[bytes, tuple[str, Any]] = field(default_factory=dict)
    generation: int = 0

    def clear(self) -> None:
        """Forget everything: what follows counts on nothing before."""
        for texts in (self.names, self.categories, self.keys, self.texts):
            texts.clear()
        self._forget_read()
        self.clocks.clear()
        self.clock = self.track = 0
        self.is_valid = True

    def time_ns(self, time: int, clock: int, shared: Clocks) -> int:
        """Return the time of a packet in nanoseconds of the trace's clock.

        Args:
            time: What the packet holds; an incremental clock goes on by it.
            clock: The clock that the packet names, 0 for none.
            shared: Clocks of all sequences.
        """
        chosen = clock or self.clock
        own = self.clocks.get(chosen)
        if own is None:
            return shared.to_trace(chosen, time)
        before_ns = own.now_ns if own.is_incremental else 0
        # A step back is one of nearly 2^64.
        own.now_ns = (time * own.unit_ns + before_ns) & _MASK
        return own.now_ns + own.offset_ns

    def take_defaults(self, content: bytes) -> None:
        """Take TracePacketDefaults."""
        found = dict(read_fields(content))
        clock, event = found.get(_DEFAULT_CLOCK), found.get(_DEFAULT_EVENT)
        if isinstance(clock, int):
            self.clock = clock
        if isinstance(event, bytes):
            track = dict(read_fields(event)).get(_DEFAULT_TRACK)
            self.track = track if isinstance(track, int) else 0

    def take_interned(self, content: bytes) -> None:
        """Take InternedData."""
        tables = {
            _CATEGORIES: self.categories,
            _EVENT_NAMES: self.names,
            _ANNOTATION_NAMES: self.keys,
            _ANNOTATION_TEXTS: self.texts,
        }
        fields = read_fields(content)
        take_items(len(fields))
        for number, value in fields:
            table = tables.get(number)
            if table is None or not isinstance(value, bytes):
                continue
            entry = dict(read_fields(value))
            iid = entry.get(_IID, 0)
            if isinstance(iid, int):
                text = text_of(entry.get(_TEXT, b""))
                if table.setdefault(iid, text) != text:
                    table[iid] = text
                    self._forget_read()

    def _forget_read(self) -> None:
        self.annotations.clear()
        self.generation += 1


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4

# Fields of TrackEvent.
_CATEGORY_IID, _ANNOTATION, _LEGACY, _TYPE, _NAME_IID, _TRACK = 3, 4, 6, 9, 10, 11
_CATEGORY, _NAME, _FLOW = 22, 23, 47
# Of DebugAnnotation.
_KEY_IID, _BOOL, _UINT, _INT, _DOUBLE, _STRING, _POINTER = 1, 2, 3, 4, 5, 6, 7
_JSON, _KEY, _ENTRIES, _ELEMENTS, _STRING_IID = 9, 10, 11, 12, 17
# Of TrackDescriptor, and of what it holds.
_UUID, _TRACK_NAME, _PROCESS, _THREAD, _PARENT = 1, 2, 3, 4, 5
_STATIC_NAME, _ATRACE_NAME = 10, 13
_PID, _PROCESS_NAME, _TID, _THREAD_NAME = 1, 6, 2, 5
_MOST_DEPTH = 16
_SHORT, _MOST_KNOWN = 12, 1 << 16


class TrackEvent(msgspec.Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        type: `BEGIN`, `END`, `INSTANT`, `COUNTER`, or 0.
        track: Number of its track.
        name: Its name, "" where it has none.
        category: Its first category.
        annotations: Its values by name.
        is_legacy: It has the form of Chrome's old events.
        flow: Number of the first arrow that begins or ends at it, 0 for none.
    """

    type: int
    track: int
    name: str
    category: str
    annotations: dict[str, Any]
    is_legacy: bool = False
    flow: int = 0


@dataclass(frozen=True, slots=True)
class Track:
    """One track.

    Attributes:
        uuid: Its number in the file.
        parent: Number of the track that it belongs to, 0 for none.
        name: Its name.
        process_id: Number of the process that the track stands for.
        thread_id: Number of the thread that the track stands for.
    """

    uuid: int
    parent: int = 0
    name: str = ""
    process_id: int | None = None
    thread_id: int | None = None


def read_event(content: bytes, sequence: Sequence) -> TrackEvent:
    """Return a TrackEvent.

    Raises:
        DamagedMessage: The bytes are damaged.
    """
    annotations: dict[str, Any] = {}
    found: dict[int, int | bytes] = {}
    for number, value in read_fields(content):
        if number == _ANNOTATION and isinstance(value, bytes):
            key, annotation = sequence.annotations.get(value) or _read_annotation(value, sequence)
            annotations.setdefault(key, annotation)  # a program may call a value like one of ours
        else:
            found.setdefault(number, value)
    return TrackEvent(
        type=_number(found.get(_TYPE)),
        track=_number(found.get(_TRACK), sequence.track),
        name=_text(found, (_NAME, _NAME_IID), sequence.names),
        category=_text(found, (_CATEGORY, _CATEGORY_IID), sequence.categories),
        annotations=annotations,
        is_legacy=_LEGACY in found,
        flow=_number(found.get(_FLOW)),
    )


def _read_annotation(content: bytes, sequence: Sequence) -> tuple[str, Any]:
    """Read an annotation, and keep one that is short: call paths come again and again."""
    found = _annotation(content, sequence, 0)
    if len(content) <= _SHORT and len(sequence.annotations) < _MOST_KNOWN:
        sequence.annotations[content] = found
    return found


def _annotation(content: bytes, sequence: Sequence, depth: int) -> tuple[str, Any]:
    entries: list[tuple[str, Any]] = []
    elements: list[Any] = []
    found: dict[int, int | bytes] = {}
    for number, value in read_fields(content):
        if number in (_ENTRIES, _ELEMENTS) and isinstance(value, bytes) and depth < _MOST_DEPTH:
            inner = _annotation(value, sequence, depth + 1)
            entries.append(inner)
            elements.append(inner[1])
        else:
            found[number] = value
    key = _text(found, (_KEY, _KEY_IID), sequence.keys)
    if entries:
        return key, dict(entries) if any(name for name, _ in entries) else elements
    return key, _value_of(found, sequence)


def _value_of(found: dict[int, int | bytes], sequence: Sequence) -> Any:
    """Return the value of an annotation."""
    for number, value in found.items():
        convert = _CONVERSIONS.get(number)
        if convert is not None and isinstance(value, int):
            return convert(value)
        if number in (_STRING, _JSON):
            return text_of(value)
        if number == _STRING_IID:
            return sequence.texts.get(value, "") if isinstance(value, int) else ""
    return None


_CONVERSIONS: dict[int, Callable[[int], Any]] = {
    _BOOL: bool,
    _UINT: int,
    _POINTER: int,
    _INT: signed,
    _DOUBLE: lambda value: struct.unpack("<d", value.to_bytes(8, "little"))[0],
}


def _text(found: dict[int, int | bytes], fields: tuple[int, int], texts: dict[int, str]) -> str:
    """Return a text that stands in the message, or that it names by a number."""
    own, interned = fields
    if own in found:
        return text_of(found[own])
    number = found.get(interned)
    return texts.get(number, "") if isinstance(number, int) else ""


def _number(value: int | bytes | None, default: int = 0) -> int:
    return value if isinstance(value, int) else default


def read_track(content: bytes) -> Track:
    """Return a TrackDescriptor.

    Raises:
        DamagedMessage: The bytes are damaged.
    """
    found = dict(read_fields(content))
    inner: dict[int, int | bytes] = {}
    for each in (_PROCESS, _THREAD):
        held = found.get(each)
        if isinstance(held, bytes):
            inner = dict(read_fields(held))
    is_thread = _THREAD in found
    names = [found.get(each) for each in (_TRACK_NAME, _STATIC_NAME, _ATRACE_NAME)]
    names.append(inner.get(_THREAD_NAME if is_thread else _PROCESS_NAME))
    return Track(
        uuid=_number(found.get(_UUID)),
        parent=_number(found.get(_PARENT)),
        name=next((text_of(each) for each in names if each), ""),
        process_id=_small(inner.get(_PID)),
        thread_id=_small(inner.get(_TID)) if is_thread else None,
    )


def _small(value: int | bytes | None) -> int | None:
    return value if isinstance(value, int) and value < 2**31 else None
