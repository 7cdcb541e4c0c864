"""Track events and track descriptors of a Perfetto file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from proton_bench.formats.perfetto.sequence import Sequence
from proton_bench.formats.protobuf import read_fields, signed, text_of

__all__ = [
    "BEGIN",
    "COUNTER",
    "END",
    "INSTANT",
    "Track",
    "TrackEvent",
    "read_event",
    "read_track",
]

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
