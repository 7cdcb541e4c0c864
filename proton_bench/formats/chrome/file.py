"""`.chrome_trace` and `.json`: timelines in Chrome's trace format, read as call paths."""

from __future__ import annotations

import re
import zlib
from typing import IO

from proton_bench.formats.base import TimelineFile, corrupt
from proton_bench.formats.chrome.event import TraceEvent, TraceHead, read_trace
from proton_bench.formats.chrome.kineto_events import KinetoReader, is_kineto
from proton_bench.formats.chrome.own_facts import is_session_timeline
from proton_bench.formats.chrome.slices import read_session_profile
from proton_bench.formats.chrome.stream import GZIP, unpacked
from proton_bench.formats.chrome.upstream_events import ProtonTraceReader, is_proton_trace
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile

__all__ = ["ChromeTrace"]

_SNIFFED = 1 << 16
_EVENTS = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')


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
        try:
            return _profile(stream, source)
        except (OverflowError, MemoryError) as error:
            raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _first_bytes(content: bytes) -> bytes:
    if content[:2] != GZIP:
        return content[:_SNIFFED]
    try:
        return zlib.decompressobj(wbits=31).decompress(content[:_SNIFFED], _SNIFFED)
    except zlib.error:
        return b""


def _profile(stream: IO[bytes], source: str) -> Profile:
    is_partial = is_partial_name(source)
    head = TraceHead()
    reader: KinetoReader | ProtonTraceReader | None = None
    for events in read_trace(unpacked(stream, source), source, head, may_be_cut=is_partial):
        if reader is None and is_session_timeline(head):
            break
        if reader is None:
            reader = _reader_of(head, events, source)
        reader.add(events)
    if reader is None and is_session_timeline(head):
        return read_session_profile(stream, source)
    chosen = reader if reader is not None else _reader_of(head, [], source)
    return chosen.profile(head)


def _reader_of(
    head: TraceHead, events: list[TraceEvent], source: str
) -> KinetoReader | ProtonTraceReader:
    if is_kineto(head, events):
        return KinetoReader(source)
    if is_proton_trace(head, events):
        return ProtonTraceReader(source)
    raise corrupt(
        source,
        "the timeline is of no known tool (proton_bench, triton.profiler, torch.profiler)",
        "open it at https://ui.perfetto.dev",
    )
