"""`.chrome_trace` and `.json`: timelines in Chrome's trace format, read as call paths."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from proton_bench.formats.base import TimelineFile, corrupt
from proton_bench.formats.budget import Limit, decoding, take, take_unpacked
from proton_bench.formats.chrome.event import TraceEvent, TraceHead, read_trace
from proton_bench.formats.chrome.kineto_events import KinetoReader, is_kineto
from proton_bench.formats.chrome.own_events import SessionTraceReader, is_session_trace
from proton_bench.formats.chrome.split import Readable
from proton_bench.formats.chrome.upstream_events import ProtonTraceReader, is_proton_trace
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

__all__ = ["ChromeTrace", "opened_trace"]

_GZIP = b"\x1f\x8b"
_SNIFFED = 1 << 16
_EVENTS = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')


class _Reader(Protocol):
    def add(self, events: list[TraceEvent]) -> None: ...

    def profile(self, head: TraceHead) -> Profile: ...


class ChromeTrace(TimelineFile):
    """Timelines of ours, of upstream Proton and of torch.profiler, plain or compressed by gzip."""

    name = "chrome_trace"
    suffixes = (
        ".chrome_trace",
        ".pt.trace.json",
        ".pt.trace.json.gz",
        ".chrome_trace.gz",
        ".json.gz",
    )

    def sniff(self, content: bytes) -> bool:
        """Say whether events or the keys before them are in sight."""
        start = _first_bytes(content)
        head = start.lstrip()[:1]
        return (head == b"{" and _EVENTS.search(start) is not None) or (
            head == b"[" and b'"ph"' in start and b'"frame"' not in start
        )

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; files of Triton 3.6.0 to 3.9.0 and of torch.profiler."""
        if not content:
            return ProtonTraceReader(source).profile(TraceHead())
        return super().decode(content, source)

    def read_stream(self, stream: IO[bytes], source: str) -> Profile:
        """Return the profile in a stream."""
        return _profile(_unpacked(stream, source), source)


def _first_bytes(content: bytes) -> bytes:
    if content[:2] != _GZIP:
        return content[:_SNIFFED]
    try:
        return zlib.decompressobj(wbits=31).decompress(content[:_SNIFFED], _SNIFFED)
    except zlib.error:
        return b""


@contextmanager
def opened_trace(file: Path) -> Iterator[Readable]:
    """Open a trace, plain or compressed by gzip; one called partial may end anywhere."""
    with open_file(file) as stream:
        size = file.stat().st_size
        with decoding(size, visible(file)):
            yield _unpacked(stream, visible(file))


def _unpacked(stream: IO[bytes], source: str) -> Readable:
    is_packed = stream.read(2) == _GZIP
    stream.seek(0)
    return _Unpacked(stream, source) if is_packed else stream


class _Unpacked:
    """A compressed stream, which may end where it was cut off."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._packed = stream
        self._place = 0
        self._stream = gzip.GzipFile(fileobj=_Watched(stream))
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end.

        Raises:
            ProfileFormatError: They are damaged, or more than a file of its size may have.
        """
        pieces: list[bytes] = []
        try:
            # What is asked for at once grows with a value that is larger than a block.
            while size > 0 and (piece := self._stream.read1(size)):
                pieces.append(piece)
                size -= len(piece)
                self._count(len(piece))
        except EOFError as error:
            if not is_partial_name(self._source):
                raise corrupt(self._source, f"gzip: {error}") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise corrupt(self._source, f"gzip: {error}") from None
        return b"".join(pieces)

    def _count(self, found: int) -> None:
        place = self._packed.tell()
        take_unpacked(place - self._place, found)
        self._place = place


class _Watched:
    """A compressed stream that looks at the clock: members may hold nothing at all."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            ProfileFormatError: The file has taken too long.
        """
        take(Limit.BYTES, 0)
        return self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _profile(stream: Readable, source: str) -> Profile:
    head = TraceHead()
    reader: _Reader | None = None
    try:
        is_partial = is_partial_name(source)
        for events in read_trace(stream, source, head, may_be_cut=is_partial):
            if reader is None:
                reader = _reader_of(head, events, source)
            reader.add(events)
        chosen = reader if reader is not None else _reader_of(head, [], source)
        return chosen.profile(head)
    except (OverflowError, MemoryError) as error:
        raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _reader_of(head: TraceHead, events: list[TraceEvent], source: str) -> _Reader:
    if is_session_trace(head):
        return SessionTraceReader(source)
    if is_kineto(head, events):
        return KinetoReader(source)
    if is_proton_trace(head, events):
        return ProtonTraceReader(source)
    raise corrupt(
        source,
        "the timeline is of no known tool (proton_bench, triton.profiler, torch.profiler)",
        "open it at https://ui.perfetto.dev",
    )
