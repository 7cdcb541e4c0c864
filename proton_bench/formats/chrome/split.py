"""Cutting a stream of Chrome's trace format into batches of events, in bounded memory.

msgspec decodes whole documents only, and a timeline is one document of hundreds of megabytes. So
the brackets of each block are found with numpy, and what lies between them is handed on in pieces
that are documents of their own: batches of events, and what stands around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import corrupt
from proton_bench.model.arrays import Integers

BLOCK = 1 << 20
MAX_PIECE = 1 << 23
MAX_DEPTH = 512

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_EVENTS_KEY = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\Z')
_KEY_BYTES = 256
_BLANK = b" \t\r\n"
_QUOTE = ord('"')
_CLASS = np.zeros(256, dtype=np.int8)
_CLASS[[ord("{"), ord("[")]] = 1
_CLASS[[ord("}"), ord("]")]] = -1
_CLASS[_QUOTE] = 2


class InvalidJsonError(ProfileFormatError):
    """A file is not JSON; with its texts escaped it may be."""


def invalid(source: str, what: str, advice: str = "") -> InvalidJsonError:
    """Return the error for a file that is not JSON: what is wrong, where, and what to do."""
    advice = advice or "correct that place, or write the file with a later version of the tool"
    return InvalidJsonError(f"{source}: {what}; {advice}")


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, ``size`` at most, none at the end."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A JSON array of events.

    Attributes:
        content: The array.
        start: Where it stands in the stream.
    """

    content: bytes
    start: int


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the events of one document, with ``[]`` in their place.

    Attributes:
        content: A JSON document if ``is_whole``, else what came before its events.
        is_whole: Whether the document has ended.
    """

    content: bytes
    is_whole: bool


def split_trace(
    stream: Readable, source: str, *, may_be_cut: bool = False
) -> Iterator[Batch | Frame]:
    """Yield the pieces of a timeline: one JSON document, or several one after the other.

    A document is an object with ``traceEvents``, or an array of events. Each comes as a `Frame`
    as soon as its events begin, its `Batch` es, and a whole `Frame` at its end.

    Args:
        stream: Where to read.
        source: Name of the file, for messages.
        may_be_cut: The stream may end anywhere behind the start of its events, as that of a
            program that was killed does; what is whole is yielded.

    Raises:
        ProfileFormatError: Brackets do not match, the stream ends early, or a piece is too large.
    """
    splitter = _Splitter(source)
    wanted = BLOCK
    while block := stream.read(wanted):
        before = len(splitter.rest)
        splitter.rest += block
        yield from splitter.pieces()
        # A piece that is larger than a block is not looked through again with every block.
        wanted = max(BLOCK, len(splitter.rest)) if len(splitter.rest) > before else BLOCK
        if len(splitter.rest) > MAX_PIECE:
            raise invalid(source, f"one value of it is larger than {MAX_PIECE >> 20} MiB")
    splitter.finish(may_be_cut=may_be_cut)


class _Splitter:
    """What is known at the start of ``rest``, which never lies inside a text."""

    def __init__(self, source: str) -> None:
        self.rest = b""
        self._source = source
        self._start = 0  # of the rest in the stream
        self._depth = 0
        self._events_depth = 0  # of the array of events that is open, 0 for none
        self._is_first = True  # no event of this array was seen
        self._has_events = False  # an array of events has begun
        self._around: list[bytes] = []
        self._around_bytes = 0

    def pieces(self) -> Iterator[Batch | Frame]:
        """Yield what is complete in ``rest`` and keep the remainder."""
        content = self.rest
        plain = _ESCAPED.sub(b"__", content) if b"\\" in content else content
        places, after = _brackets(plain, self._depth)
        if len(after) and int(after.min()) < 0:
            raise invalid(self._source, "JSON has a closing bracket too many")
        if len(after) and int(after.max()) > MAX_DEPTH:
            raise corrupt(self._source, f"values are nested deeper than {MAX_DEPTH} levels")
        before = np.concatenate([[self._depth], after[:-1]]) if len(after) else after
        start = 0
        for index in np.flatnonzero(np.minimum(before, after) <= 1).tolist():
            place, depth = int(places[index]), int(after[index])
            if self._events_depth:
                if depth == self._events_depth - 1:
                    yield from self._batch(content[start:place], start, is_last=True)
                    start = place
            elif depth > int(before[index]) and _opens_events(plain, start, place, depth=depth):
                self._keep(content[start : place + 1])
                yield Frame(b"".join(self._around), is_whole=False)
                self._events_depth, self._is_first = depth, True
                self._has_events = True
                start = place + 1
            if depth == 0:
                self._keep(content[start : place + 1])
                yield Frame(b"".join(self._around), is_whole=True)
                self._around, self._around_bytes = [], 0
                start = place + 1
        yield from self._remainder(start, places, after)

    def _remainder(self, start: int, places: Integers, after: Integers) -> Iterator[Batch]:
        """Take what is complete of an array or frame that goes on; ``rest`` is what is left."""
        content, first = self.rest, int(np.searchsorted(places, start))
        depth = int(after[first - 1]) if first else self._depth
        last = len(places) - 1
        if self._events_depth:
            ends = np.flatnonzero(after[first:] == self._events_depth)
            last = first + int(ends[-1]) if len(ends) else -1
        if last >= first:
            stop, depth = int(places[last]) + 1, int(after[last])
            if self._events_depth:
                yield from self._batch(content[start:stop], start, is_last=False)
            else:
                self._keep(content[start:stop])
            start = stop
        self.rest, self._depth = content[start:], depth
        self._start += start

    def _batch(self, events: bytes, start: int, *, is_last: bool) -> Iterator[Batch]:
        start += len(events) - len(events.lstrip(_BLANK)) - 1
        events = events.strip(_BLANK)
        if events and not self._is_first:
            if events[:1] != b",":
                raise invalid(self._source, "JSON has no comma between two events")
            events, start = events[1:], start + 1
        if events:
            yield Batch(b"[" + events + b"]", self._start + start)
            self._is_first = False
        if is_last:
            self._events_depth = 0

    def _keep(self, around: bytes) -> None:
        self._around.append(around)
        self._around_bytes += len(around)
        if self._around_bytes > MAX_PIECE:
            raise corrupt(
                self._source, f"more than {MAX_PIECE >> 20} MiB of it stand beside the events"
            )

    def finish(self, *, may_be_cut: bool) -> None:
        """Raise ProfileFormatError if the stream ended inside a document, and may not have."""
        if may_be_cut and self._has_events:
            return
        if self._depth or self._around or self.rest.strip(_BLANK):
            raise invalid(
                self._source,
                "JSON ends too early",
                "the tool that wrote it had not finished; write it again",
            )


def _brackets(plain: bytes, depth: int) -> tuple[Integers, Integers]:
    """Return where brackets outside of texts stand, and the depth behind each."""
    classes = _CLASS[np.frombuffer(plain, dtype=np.uint8)]
    places = np.flatnonzero(classes)
    found = classes[places]
    outside = (np.cumsum(found == 2) & 1) == 0
    kept = outside & (found != 2)
    return places[kept], depth + np.cumsum(found[kept], dtype=np.int64)


def _opens_events(plain: bytes, start: int, place: int, *, depth: int) -> bool:
    if plain[place] != ord("["):
        return False
    if depth == 1:
        return True
    return depth == 2 and bool(_EVENTS_KEY.search(plain, max(start, place - _KEY_BYTES), place))
