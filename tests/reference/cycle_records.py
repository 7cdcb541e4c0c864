"""Oracle: the totals of the records in the buffer of one launch, read one by one in Python."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PREAMBLE = 0xDEADBEEF
HEADER_BYTES = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """How a launch wrote its buffer.

    Attributes:
        stride: Bytes of one program.
        warps: Warps of a program.
        warp_ids: Those that record; none means all.
        wide_clock: Records hold 43 bits of the clock, not 32.
    """

    stride: int
    warps: int
    warp_ids: tuple[int, ...] = ()
    wide_clock: bool = True


@dataclass(slots=True)
class Found:
    """The records of a launch.

    Attributes:
        durations: Cycles of each instance, by id of the scope.
        lost: Records that newer ones replaced.
        kept: Records that were read.
        unpaired: Kept records without a partner.
        words: Words that each warp of each program wrote.
    """

    durations: dict[int, list[int]] = field(default_factory=dict)
    lost: int = 0
    kept: int = 0
    unpaired: int = 0
    words: list[tuple[int, ...]] = field(default_factory=list)


def read_records(buffer: bytes, layout: Layout) -> Found:
    """Read the buffer; whether a program's preamble was cleared since does not matter.

    Args:
        buffer: All programs of one launch.
        layout: How they wrote.
    """
    found = Found()
    for begin in range(0, len(buffer), layout.stride):
        block = buffer[begin : begin + layout.stride]
        capacity = struct.unpack_from("<I", block, 12)[0]
        words = struct.unpack_from(f"<{layout.warps}I", block, HEADER_BYTES)
        found.words.append(words)
        recording = layout.warp_ids or tuple(range(layout.warps))
        size = capacity // len(recording)
        for place, warp in enumerate(recording):
            start = HEADER_BYTES + 4 * layout.warps + place * size
            records = list(_in_order(block[start : start + size], words[warp]))
            found.kept += len(records)
            found.lost += words[warp] // 2 - len(records)
            _pair(records, found, modulus=1 << (43 if layout.wide_clock else 32))
    return found


def _in_order(segment: bytes, words: int) -> Iterator[tuple[bool, int, int]]:
    """Yield (is an end, scope, clock) from the oldest kept record on."""
    slots = len(segment) // 8
    written = words // 2
    for number in range(max(0, written - slots), written):
        tag, low = struct.unpack_from("<II", segment, number % slots * 8)
        yield bool(tag >> 31), tag >> 23 & 0xFF, (tag & 0x7FF) << 32 | low


def _pair(records: Sequence[tuple[bool, int, int]], found: Found, *, modulus: int) -> None:
    opened: dict[int, int] = {}
    for is_end, scope, clock in records:
        if not is_end:
            found.unpaired += scope in opened
            opened[scope] = clock
        elif scope in opened:
            cycles = (clock - opened.pop(scope)) % modulus
            found.durations.setdefault(scope, []).append(cycles)
        else:
            found.unpaired += 1
    found.unpaired += len(opened)
