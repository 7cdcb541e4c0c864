"""What packets of a Perfetto file count on: interned texts and clocks, one set per sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proton_bench.formats.limits import take_items
from proton_bench.formats.protobuf import read_fields, text_of

__all__ = ["BOOT_CLOCK", "Clocks", "Sequence"]

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
