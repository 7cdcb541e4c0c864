"""Read recorded streams of libcupti; the format is described in stream_format.h."""

from __future__ import annotations

import gzip
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MAGIC: Final = b"PBCUPTI1"
MARK: Final = 255
DRIVER, RUNTIME, RESOURCE, NVTX = 1, 2, 3, 5
KINDS: Final = {1: "memcpy", 2: "memset", 3: "kernel", 10: "kernel", 22: "peer", 51: "graph"}
_CALL: Final = struct.Struct("<BBHIqIIiiii3I3IIIIIIiQQQQII")
_BUFFER: Final = struct.Struct("<IIQqII")
_NAMES: Final = (
    # of struct Call
    *("domain", "site", "thread", "cbid", "time_ns", "correlation", "context", "function"),
    *("symbol", "text", "result", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("shared_bytes", "stream", "graph", "original_graph", "graph_exec", "node_type", "node"),
    *("original_node", "cubin_size", "cubin_crc", "module", "stream_id"),
)


@dataclass(slots=True)
class Record:
    """One activity record: its kind and bytes; ``name`` is the string it pointed to."""

    kind: int
    data: bytes
    name: str | None

    def u32(self, offset: int) -> int:
        """Return the 32-bit field at ``offset``."""
        return int.from_bytes(self.data[offset : offset + 4], "little")

    def u64(self, offset: int) -> int:
        """Return the 64-bit field at ``offset``."""
        return int.from_bytes(self.data[offset : offset + 8], "little")


@dataclass(slots=True)
class Call:
    """One callback; ``fields`` has the names of struct Call, strings resolved."""

    fields: dict[str, int]
    function: str | None
    symbol: str | None
    text: str | None


@dataclass(slots=True)
class Stream:
    """A recorded stream; ``events`` holds calls and lists of records in their order."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    events: list[Call | list[Record]] = field(default_factory=list)
    dropped: int = 0

    def fact(self, key: str) -> str | None:
        """Return the last fact of this name."""
        return next((value for name, value in reversed(self.facts) if name == key), None)

    def calls(self) -> list[Call]:
        """Return the callbacks and marks."""
        return [event for event in self.events if isinstance(event, Call)]

    def records(self) -> list[Record]:
        """Return the activity records."""
        return [record for event in self.events if not isinstance(event, Call) for record in event]

    def kernels(self) -> Counter[str]:
        """Return how many kernel records there are of each name."""
        return Counter(record.name or "?" for record in self.records() if record.kind in {3, 10})


def _call(payload: bytes, texts: list[str]) -> Call:
    fields = dict(zip(_NAMES, _CALL.unpack(payload), strict=True))

    def text(key: str) -> str | None:
        return texts[fields[key]] if fields[key] >= 0 else None

    return Call(fields, text("function"), text("symbol"), text("text"))


def _records(payload: bytes, texts: list[str]) -> tuple[int, list[Record]]:
    _, _, dropped, _, count, size = _BUFFER.unpack_from(payload)
    sizes = struct.unpack_from(f"<{count}I", payload, _BUFFER.size)
    at = _BUFFER.size + 4 * count
    if at + size != len(payload) or sum(sizes) != size:
        raise ValueError("the sizes of a buffer's records do not add up")
    records = []
    for length in sizes:
        data = payload[at : at + length]
        at += length
        record = Record(int.from_bytes(data[:4], "little"), data, None)
        pointer = {3: 104, 10: 104, 8: 136}.get(record.kind)
        number = record.u64(pointer) if pointer is not None else 0
        records.append(Record(record.kind, data, texts[number - 1] if number else None))
    return dropped, records


def read_stream(path: Path) -> Stream:
    """Read the stream at ``path``, gzipped or not.

    Raises:
        ValueError: The file is not a recorded stream, or is cut short.
    """
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:8] != MAGIC:
        raise ValueError(f"{path} is not a recorded stream")
    stream, texts, at = Stream(), list[str](), len(MAGIC)
    while at < len(data):
        tag, size = struct.unpack_from("<II", data, at)
        payload = data[at + 8 : at + 8 + size]
        if len(payload) != size:
            raise ValueError(f"{path} is cut at byte {at}")
        at += 8 + size
        if tag == 1:
            texts.append(payload.decode("utf-8", "replace"))
        elif tag == 2:
            key, _, value = payload.decode("utf-8", "replace").partition("=")
            stream.facts.append((key, value))
        elif tag == 3:
            stream.events.append(_call(payload, texts))
        elif tag == 4:
            dropped, records = _records(payload, texts)
            stream.dropped += dropped
            stream.events.append(records)
    return stream
