"""Events of Chrome's trace format, typed, from the pieces of a stream."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import UTF8_MARK, corrupt, decoded, plain_map
from proton_bench.formats.chrome.split import BLOCK, Batch, Readable, invalid, split_trace
from proton_bench.formats.limits import take_items
from proton_bench.formats.timeline.ranges import MAX_NS
from proton_bench.formats.timeline.slices import CallPath

_MAX_MICROSECONDS = MAX_NS / 1000
_EXACT = 2**43  # floats of microseconds up to here are exact to a nanosecond
_SMALL = 2.0**40  # and up to here also as floats of nanoseconds


class Arguments(msgspec.Struct, gc=False):
    """Fields of ``args`` that readers use; checked there, because tools differ."""

    name: Any = None
    call_stack: Any = None
    metrics: Any = None
    correlation: Any = None
    device: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(default=None, name="registers per thread")
    shared_bytes: Any = msgspec.field(default=None, name="shared memory")
    bytes: Any = None
    stream: Any = None
    thread_id: Any = None
    thread_name: Any = None
    open: Any = None
    external_id: Any = msgspec.field(default=None, name="External id")
    external_id_before: Any = msgspec.field(default=None, name="external id")  # torch 1.12
    python_id: Any = msgspec.field(default=None, name="Python id")
    python_parent_id: Any = msgspec.field(default=None, name="Python parent id")
    frequency_mhz: Any = msgspec.field(default=None, name="Frequency (MHz)")
    profile: Any = None
    rest: Any = None


_NO_ARGUMENTS = Arguments()


class TraceEvent(msgspec.Struct, gc=False):
    """One event; times are microseconds."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    args: Arguments | None = None

    @property
    def arguments(self) -> Arguments:
        """The arguments, empty where there are none."""
        return self.args if self.args is not None else _NO_ARGUMENTS


class _ExactEvent(TraceEvent, gc=False):
    ts: Decimal | None = None  # type: ignore[assignment]


@dataclass(slots=True)
class TraceHead:
    """The keys beside the events, of all documents so far; the first value of a key counts.

    Attributes:
        facts: Values by key.
        documents: Documents that have ended.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    documents: int = 0


T = TypeVar("T")
_ESCAPE = re.compile(
    r'(\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\"
)
_BYTE = re.compile(r" \(byte (\d+)\)\Z")
_decode_events = msgspec.json.Decoder(list[TraceEvent]).decode
_decode_exactly = msgspec.json.Decoder(list[_ExactEvent]).decode
_decode_frame = msgspec.json.Decoder(dict[str, Any] | list[Any]).decode
_INT64_LIMIT = 2.0**63


def read_trace(
    stream: Readable,
    source: str,
    head: TraceHead,
    *,
    may_be_cut: bool = False,
    holding: bytes = b"",
) -> Iterator[list[TraceEvent]]:
    """Yield the events of a timeline in batches, and fill ``head`` before, between and after them.

    Args:
        stream: Where to read.
        source: Name of the file, for messages.
        head: What to fill.
        may_be_cut: The program that wrote it may have been killed; what is whole is read.
        holding: Only batches in which these bytes stand are decoded.

    Raises:
        ProfileFormatError: The stream is not a timeline, or damaged.
    """
    for piece in split_trace(stream, source, may_be_cut=may_be_cut):
        content = piece.content
        if isinstance(piece, Batch) and holding not in content:
            continue
        if not isinstance(piece, Batch) or len(content) > 2 * BLOCK:
            # A piece larger than some events may hold anything.
            take_items(content.count(b"[") + content.count(b"{"))
        if isinstance(piece, Batch):
            events = _decoded(_exact_events, content, source, start=piece.start)
            take_items(len(events))
            yield events
            continue
        content = content.removeprefix(UTF8_MARK)
        # Before its last piece, a frame lacks the brackets that close its events and itself.
        closed = content if piece.is_whole else content + _closing(content)
        frame = _decoded(
            lambda text: plain_map(_decode_frame(text), source),
            closed,
            source,
            start=-1 if head.facts else 0,
        )
        if isinstance(frame, dict):
            if not isinstance(frame.pop("traceEvents", None), list):
                raise corrupt(source, "it has no traceEvents", "it is not a timeline")
            head.facts = frame | head.facts
        head.documents += piece.is_whole
    if not head.documents and not may_be_cut:
        raise corrupt(source, "it holds no JSON document", "it is not a timeline")


def _decoded(decode: Callable[[bytes], T], content: bytes, source: str, *, start: int = 0) -> T:
    """Return what a piece of a file holds; the error says where in the file it is not JSON.

    Args:
        decode: What decodes a piece.
        content: The piece.
        source: Name of the file, for messages.
        start: Where the piece begins in the file, -1 for several places.
    """
    try:
        return decoded(lambda: decode(content), source)
    except ProfileFormatError as error:
        with suppress(ProfileFormatError):
            return decoded(lambda: decode(_strict(content)), source)
        cause = error.__context__
        if isinstance(cause, UnicodeDecodeError):
            raise invalid(source, f"a text is not UTF-8: {cause.reason}") from None
        if type(cause) is not msgspec.DecodeError:
            raise
        what = _BYTE.sub(lambda at: f" (byte {int(at[1]) + start})" * (start >= 0), str(cause))
        raise invalid(source, what) from None


def _strict(content: bytes) -> bytes:
    """Return what Python's parser reads of a piece, which is more than JSON, as JSON.

    Numbers that are not finite and integers beyond 64 bits are null, halves of surrogate pairs
    U+FFFD. Bytes that are not UTF-8, control characters and backslashes that escape nothing stand
    for themselves.
    """
    text = _ESCAPE.sub(_escape, content.decode(errors="backslashreplace"))
    value = json.loads(
        text,
        strict=False,
        parse_int=lambda digits: _number(digits, _INT64_LIMIT),
        parse_float=_number,
        parse_constant=lambda _: None,
    )
    return msgspec.json.encode(value)


def _escape(match: re.Match[str]) -> str:
    return match[1] or ("\\ufffd" if match[2] else "\\\\")


def _number(digits: str, limit: float = math.inf) -> msgspec.Raw | None:
    return msgspec.Raw(digits.encode()) if -limit < float(digits) < limit else None


def _exact_events(content: bytes) -> list[TraceEvent]:
    """Return the events of a batch, with every digit of their times."""
    events = _decode_events(content)
    if any(type(event.ts) is float and abs(event.ts) > _EXACT for event in events):
        return list(_decode_exactly(content))
    return events


def _closing(content: bytes) -> bytes:
    return b"]" if content.lstrip()[:1] == b"[" else b"]}"


def nanoseconds(microseconds: float | Decimal | None) -> int | None:
    """Return a time in ns, None where there is none.

    One that does not fit 64 bits is 2^62 or -2^62, which no reader takes for a time.
    """
    if type(microseconds) is float and -_SMALL < microseconds < _SMALL:
        return round(microseconds * 1e3)
    if microseconds is None:
        return None
    if not -_MAX_MICROSECONDS < microseconds < _MAX_MICROSECONDS:
        return MAX_NS if microseconds > 0 else -MAX_NS
    # As one product, times of today would be multiples of 256 ns.
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)


def call_path(stack: Any, source: str) -> CallPath:
    """Return the call path that an event gives, an empty one where it gives none.

    Raises:
        ProfileFormatError: It is not a list of names.
    """
    if stack is None:
        return CallPath()
    if not isinstance(stack, list) or not all(isinstance(name, str) for name in stack):
        raise corrupt(source, "a call_stack is not a list of names")
    return CallPath.of(stack)
