"""`.chrome_trace` and `.json`: timelines in Chrome's trace format, read as call paths."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import IO, Protocol

from proton_bench.errors import UsageError
from proton_bench.formats.base import corrupt
from proton_bench.formats.kineto_trace import KinetoReader, is_kineto
from proton_bench.formats.proton_trace import ProtonTraceReader, is_proton_trace
from proton_bench.formats.trace_event import TraceEvent, TraceHead, read_trace
from proton_bench.profile.profile import Profile

__all__ = ["ChromeTrace"]

_GZIP = b"\x1f\x8b"
_SNIFFED = 1 << 16
_EVENTS = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')


class _Reader(Protocol):
    def add(self, events: list[TraceEvent]) -> None: ...

    def profile(self, head: TraceHead) -> Profile: ...


class ChromeTrace:
    """Timelines of upstream Proton and of torch.profiler, plain or compressed by gzip."""

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
        return _read(io.BytesIO(content), source)

    def read(self, path: Path, source: str) -> Profile:
        """Return the profile in a file without holding the file in memory."""
        with path.open("rb") as stream:
            return _read(stream, source)

    def encode(self, profile: Profile) -> bytes:
        """Refuse: a profile holds no events.

        Raises:
            UsageError: Always.
        """
        del profile
        raise UsageError(
            "chrome_trace: a profile has no times of single events, so no timeline can be made of "
            "it; write proton, hatchet, hatchet_msgpack or json"
        )


def _first_bytes(content: bytes) -> bytes:
    if content[:2] != _GZIP:
        return content[:_SNIFFED]
    try:
        return zlib.decompressobj(wbits=31).decompress(content[:_SNIFFED], _SNIFFED)
    except zlib.error:
        return b""


def _read(stream: IO[bytes], source: str) -> Profile:
    is_packed = stream.read(2) == _GZIP
    stream.seek(0)
    if not is_packed:
        return _profile(stream, source)
    try:
        with gzip.GzipFile(fileobj=stream) as unpacked:
            return _profile(unpacked, source)  # type: ignore[arg-type]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise corrupt(source, f"gzip: {error}") from None


def _profile(stream: IO[bytes], source: str) -> Profile:
    head = TraceHead()
    reader: _Reader | None = None
    try:
        for events in read_trace(stream, source, head):
            if reader is None:
                reader = _reader_of(head, events, source)
            reader.add(events)
        chosen = reader if reader is not None else _reader_of(head, [], source)
        return chosen.profile(head)
    except (OverflowError, MemoryError) as error:
        raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _reader_of(head: TraceHead, events: list[TraceEvent], source: str) -> _Reader:
    if is_kineto(head, events):
        return KinetoReader(source)
    if is_proton_trace(head, events):
        return ProtonTraceReader(source)
    raise corrupt(
        source,
        "the timeline is of no known tool (triton.profiler, torch.profiler)",
        "open it at https://ui.perfetto.dev",
    )
