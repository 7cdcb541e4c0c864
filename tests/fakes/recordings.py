"""Recordings that the backend `replay` feeds to a session."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_KINDS = ("", "scope_enter", "scope_exit", "launch", "kernel", "failed", "dropped")
_EVENT = struct.Struct("<IIIiIIIIQqqQQ6I")
_NO_TEXT = 0xFFFFFFFF


def write_recording(path: Path | str, events: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write events with the fields of ``RecordedEvent``; ``event`` is its kind."""
    texts: dict[str, int] = {}

    def text(value: str | None) -> int:
        return _NO_TEXT if value is None else texts.setdefault(value, len(texts))

    packed = [
        _EVENT.pack(
            _KINDS.index(event["event"]),
            text(event.get("name")),
            text(event.get("device_kind")),
            event.get("device_index", 0),
            event.get("stream", 0),
            *(0, _NO_TEXT, 0),  # no variant
            event.get("correlation_id", 0),
            event.get("start_ns", 0),
            event.get("end_ns", 0),
            event.get("count", 0),
            *(0, 1, 1, 1, 1, 1, 1),
        )
        for event in events
    ]
    table = b"".join(struct.pack("<I", len(each.encode())) + each.encode() for each in texts)
    head = b"PBRECORD" + struct.pack("<IIQ", 1, len(texts), len(packed))
    Path(path).write_bytes(head + table + b"".join(packed))
