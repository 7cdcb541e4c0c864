"""Writes Perfetto traces: with the fields of proton_bench's encoder, or as another tool does."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable, Sequence

from proton_bench.formats.protobuf import Message, varint

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
START_NS = 1_790_000_000_000_000_000
_STEP_CLOCK, _BOOT, _REAL = 64, 6, 1


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def packed(packets: Iterable[Message]) -> bytes:
    """Return packets as a trace without compression."""
    trace = Message()
    for packet in packets:
        trace.message(1, packet)
    return bytes(trace)


def member(packets: Iterable[Message]) -> bytes:
    return gzip.compress(packed(packets), mtime=0)


class SessionTrace:
    """The file of one recorded process, step by step; times are nanoseconds since its start."""

    def __init__(
        self,
        rank: int | None = None,
        *,
        host: str = "node",
        process_id: int = 7,
        world_size: int | None = None,
        start_ns: int = START_NS,
    ) -> None:
        self.packets: list[Message] = []
        self.process_id = process_id
        self.sequence = hash((rank, host, process_id, start_ns)) % 2**29 | 1
        self._uuid = self.sequence << 20
        self._texts: dict[tuple[int, str], int] = {}
        self._now_ns = 0
        self._head(start_ns)
        label = "" if rank is None else f"rank {rank} "
        self.process = self.track(f"{label}host {host}: python", process=process_id)
        facts: dict[str, object] = {"process_id": process_id, "host": host}
        if rank is not None:
            facts |= {"rank": rank, "local_rank": rank}
        if world_size is not None:
            facts["world_size"] = world_size
        self.event(INSTANT, self.process, 0, name="proton_bench: start of session", values=facts)

    def _head(self, start_ns: int) -> None:
        snapshot = Message()
        for clock in (_BOOT, _REAL, _STEP_CLOCK):
            entry = Message().number(1, clock).number(2, start_ns)
            snapshot.message(1, entry.number(3, clock == _STEP_CLOCK))
        packet = Message().number(10, self.sequence).number(13, 1)
        packet.message(59, Message().number(58, _STEP_CLOCK))
        self.packets.append(packet.message(6, snapshot))

    def track(self, name: str, *, parent: int = 0, process: int = 0, thread: int = 0) -> int:
        self._uuid += 1
        found = Message().number(1, self._uuid).number(5, parent)
        if process:
            found.message(3, Message().number(1, process).text(6, name))
        elif thread:
            inner = Message().number(1, self.process_id).number(2, thread)
            found.message(4, inner.text(5, name))
        else:
            found.text(2, name)
        self.packets.append(Message().number(10, self.sequence).message(60, found))
        return self._uuid

    def thread(self, number: int = 11) -> int:
        return self.track(f"thread {number}", parent=self.process, thread=number)

    def stream(self, device: str = "GPU 0", number: int = 7) -> int:
        parent = self.track(device, parent=self.process)
        return self.track(f"Stream {number}", parent=parent)

    def event(
        self,
        kind: int,
        track: int,
        at_ns: int,
        *,
        name: str = "",
        category: str = "",
        path: Sequence[str] = (),
        values: dict[str, object] | None = None,
        flow: int = 0,
    ) -> None:
        found = Message().number(9, kind).number(11, track)
        if category:
            found.number(3, self._interned(1, category))
        if name and kind == INSTANT:
            found.text(23, name)
        elif name:
            found.number(10, self._interned(2, name))
        if path:
            stack = json.dumps(["ROOT", *path])
            item = Message().number(1, self._interned(3, "call_stack"))
            found.message(4, item.number(17, self._interned(29, stack)))
        for key, value in (values or {}).items():
            item = Message().text(10, key)
            found.message(4, item.text(6, value) if isinstance(value, str) else _uint(item, value))
        packet = Message().number(8, at_ns - self._now_ns).number(10, self.sequence)
        content = bytes(found) + (fixed64(47, flow) if flow else b"")
        self._now_ns = at_ns
        self.packets.append(packet.packed(11, content))

    def slice(
        self,
        track: int,
        start_ns: int,
        end_ns: int,
        path: Sequence[str],
        category: str,
        *,
        launch: int = 0,
        **values: object,
    ) -> None:
        """Add a slice without others inside; a launch and its kernel have one number."""
        self.event(
            BEGIN, track, start_ns, name=path[-1], category=category, path=path, values=values,
            flow=(self.sequence << 32 ^ launch) + 2**63 if launch else 0,
        )  # fmt: skip
        self.event(END, track, end_ns)

    def embed(self, profile: bytes, *, piece: int = 1 << 20) -> None:
        """Add an encoded profile, as sessions do at their end."""
        for at in range(0, len(profile), piece):
            content = profile[at : at + piece]
            inner = Message().number(1, len(profile) - at - len(content)).packed(2, content)
            self.packets.append(Message().number(10, self.sequence).message(1984, inner))

    def finish(self, *, is_partial: bool = False, facts: dict[str, object] | None = None) -> bytes:
        self.event(
            INSTANT,
            self.process,
            self._now_ns,
            name="proton_bench: end of session",
            values={"is_partial": int(is_partial), **(facts or {})},
        )
        return self.unfinished()

    def unfinished(self, members: int = 3) -> bytes:
        """Return the file so far, in gzip members."""
        size = max(1, len(self.packets) // members)
        return b"".join(
            member(self.packets[first : first + size])
            for first in range(0, len(self.packets), size)
        )

    def _interned(self, field: int, text: str) -> int:
        key = (field, text)
        if key not in self._texts:
            self._texts[key] = sum(1 for known, _ in self._texts if known == field) + 1
            entry = Message().number(1, self._texts[key]).text(2, text)
            inner = Message().message(field, entry)
            self.packets.append(Message().number(10, self.sequence).message(12, inner))
        return self._texts[key]


def _uint(message: Message, value: object) -> Message:
    # Writes a 0 too, which `number` leaves out.
    return message.packed(6, b"") if value is None else _raw(message, int(str(value)))


def _raw(message: Message, value: int) -> Message:
    message._content += varint(3 << 3) + varint(value)
    return message


def foreign(slices: Iterable[tuple[int, int, str, str]]) -> bytes:
    """Return a trace of another tool: kind, time, name and track name, times absolute."""
    packets, uuids = [], {}
    for kind, at_ns, name, track in slices:
        if track not in uuids:
            uuids[track] = len(uuids) + 1
            found = Message().number(1, uuids[track]).text(2, track)
            packets.append(Message().number(10, 1).message(60, found))
        event = Message().number(9, kind).number(11, uuids[track])
        if name:
            event.text(23, name)
        packets.append(Message().number(8, at_ns).number(10, 1).message(11, event))
    return packed(packets)
