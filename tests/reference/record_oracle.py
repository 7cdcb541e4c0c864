"""Profile buffers of instrumented kernels, written and read in plain Python: slow and obvious."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PREAMBLE = 0xDEADBEEF
HEADER = struct.Struct("<IIIIQQQ")
# Program, scope, warp, warp of the end, asynchronous, clocks of start and end, cycles.
ROW = tuple[int, int, int, int, bool, int, int, int]
TOTALS = (
    *("launches", "programs", "skipped_programs", "corrupt_programs"),
    *("records", "lost_records", "unpaired_records", "lossy_programs", "lossy_warps"),
)


@dataclass(frozen=True)
class Record:
    """One record; clocks are cut to the width that the buffer has."""

    scope: int
    is_end: bool
    clock: int
    is_async: bool = False

    @classmethod
    def unpacked(cls, tag: int, low: int) -> Record:
        return cls(
            tag >> 23 & 0xFF, bool(tag >> 31), (tag & 0x7FF) << 32 | low, bool(tag >> 22 & 1)
        )

    def packed(self) -> bytes:
        tag = self.is_end << 31 | self.scope << 23 | self.is_async << 22 | self.clock >> 32 & 0x7FF
        return struct.pack("<II", tag, self.clock & 0xFFFFFFFF)


@dataclass(frozen=True)
class Layout:
    """The buffer's layout, as a kernel's metadata gives it."""

    warps: int
    scopes: int
    slots: int = 16
    warp_ids: tuple[int, ...] = ()
    short_clock: bool = False
    record_cost_cycles: int = 0
    scratch_bytes: int = 4096

    @property
    def recording(self) -> tuple[int, ...]:
        return self.warp_ids or tuple(range(self.warps))

    @property
    def modulus(self) -> int:
        return 1 << (32 if self.short_clock else 43)

    def attributes(self) -> dict[str, object]:
        return {
            "scratch_bytes": self.scratch_bytes,
            "warps": self.warps,
            "warp_ids": self.warp_ids,
            "scopes": self.scopes,
            "short_clock": self.short_clock,
            "record_cost_cycles": self.record_cost_cycles,
        }


@dataclass(frozen=True)
class Program:
    """All records of each warp that records."""

    number: int
    segments: tuple[tuple[Record, ...], ...]
    processor: int = 0
    times: tuple[int, int, int] = (1000, 5000, 5100)

    def packed(self, layout: Layout) -> bytes:
        words, data = [0] * layout.warps, b""
        for warp, records in zip(layout.recording, self.segments, strict=True):
            words[warp] = 2 * len(records)
            slots = [bytes(8)] * layout.slots
            for place, record in enumerate(records):
                slots[place % layout.slots] = record.packed()
            data += b"".join(slots)
        head = HEADER.pack(PREAMBLE, self.number, self.processor, len(data), *self.times)
        return (head + struct.pack(f"<{len(words)}I", *words) + data).ljust(
            layout.scratch_bytes, b"\0"
        )


@dataclass
class RecordOracle:
    """Totals of programs: instances, and numbers of records of each kind."""

    layout: Layout
    instances: list[ROW] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program) -> None:
        self.counts["programs"] += 1
        lossy, events = 0, []
        for warp, written in zip(self.layout.recording, program.segments, strict=True):
            kept = written[-self.layout.slots :]
            self.counts["records"] += len(kept)
            self.counts["lost_records"] += len(written) - len(kept)
            lossy += len(written) > len(kept)
            known = [
                (place, each) for place, each in enumerate(kept) if each.scope < self.layout.scopes
            ]
            self.counts["unpaired_records"] += len(kept) - len(known)
            events += [(warp, each) for _, each in known if each.is_async]
            self._pair(program.number, warp, [item for item in known if not item[1].is_async])
        self.counts["lossy_warps"] += lossy
        self.counts["lossy_programs"] += bool(lossy)
        self._pair_events(program.number, events)

    def _pair(self, program: int, warp: int, records: Sequence[tuple[int, Record]]) -> None:
        opened: dict[int, tuple[int, Record]] = {}
        for place, record in records:
            start = opened.pop(record.scope, None)
            if not record.is_end:
                opened[record.scope] = (place, record)
            if not record.is_end or start is None:
                self.counts["unpaired_records"] += record.is_end or start is not None
                continue
            cycles = self._cycles(start[1], record, place - start[0])
            self._found(program, (start[1], warp), (record, warp), cycles)
        self.counts["unpaired_records"] += len(opened)

    def _pair_events(self, program: int, events: list[tuple[int, Record]]) -> None:
        if not events:
            return
        begin = events[0][1].clock - self.layout.modulus // 2
        opened: list[tuple[int, Record]] = []
        for warp, record in sorted(
            events, key=lambda event: (event[1].clock - begin) % self.layout.modulus
        ):
            alike = [each for each in opened if each[1].scope == record.scope]
            own = [each for each in alike if each[0] == warp]
            if not record.is_end and not own:
                opened.append((warp, record))
            elif record.is_end and alike:
                start = (own or alike)[0]
                opened.remove(start)
                cycles = self._cycles(start[1], record, 1)
                self._found(program, (start[1], start[0]), (record, warp), cycles)
            else:
                self.counts["unpaired_records"] += 1
        self.counts["unpaired_records"] += len(opened)

    def _cycles(self, start: Record, end: Record, records: int) -> int:
        between = (end.clock - start.clock) % self.layout.modulus
        return max(0, between - records * self.layout.record_cost_cycles)

    def _found(
        self, program: int, start: tuple[Record, int], end: tuple[Record, int], cycles: int
    ) -> None:
        clocks = start[0].clock % self.layout.modulus, end[0].clock % self.layout.modulus
        which = (program, start[0].scope, start[1], end[1], start[0].is_async)
        self.instances.append((*which, *clocks, cycles))


def reduced(content: bytes, layout: Layout) -> tuple[dict[str, int], list[dict[str, object]]]:
    """Return the sums of a launch and of each scope, as ``InstrumentationRuntime.take`` does."""
    oracle = RecordOracle(layout)
    oracle.counts["launches"] = 1
    for at in range(0, len(content), layout.scratch_bytes):
        block = content[at : at + layout.scratch_bytes]
        preamble, number, *_ = HEADER.unpack_from(block)
        if preamble == PREAMBLE:
            oracle.add(Program(number, tuple(_segments(block, layout))))
        else:
            oracle.counts["corrupt_programs" if preamble else "skipped_programs"] += 1
    cycles: list[list[int]] = [[] for _ in range(layout.scopes)]
    for row in oracle.instances:
        cycles[row[1]].append(row[7])
    scopes: list[dict[str, object]] = [
        {
            "count": len(own),
            "cycles": sum(own),
            "min_cycles": min(own, default=0),
            "max_cycles": max(own, default=0),
            "buckets": dict(Counter(map(_bucket, own))),
        }
        for own in cycles
    ]
    return {name: oracle.counts[name] for name in TOTALS}, scopes


def _segments(block: bytes, layout: Layout) -> Iterator[tuple[Record, ...]]:
    """Yield all records of each warp; in place of those that were overwritten stand newer ones."""
    words = struct.unpack_from(f"<{layout.warps}I", block, HEADER.size)
    at = HEADER.size + 4 * layout.warps
    for warp in layout.recording:
        ring = list(struct.iter_unpack("<II", block[at : at + 8 * layout.slots]))
        yield tuple(Record.unpacked(*ring[i % layout.slots]) for i in range(words[warp] // 2))
        at += 8 * layout.slots


def _bucket(cycles: int) -> int:
    """Below 16 the value itself, above it 16 per octave."""
    octave = max(cycles.bit_length() - 5, 0)
    return cycles if cycles < 16 else 16 * (octave + 1) + (cycles >> octave) % 16
