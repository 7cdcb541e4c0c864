"""`.chrome_trace` and `.json`: timelines in Chrome's trace format, read as call paths."""

from __future__ import annotations

import re
import zlib
from typing import IO

from proton_bench.formats.base import UTF8_MARK, TimelineFile, corrupt
from proton_bench.model.profile import Profile

_GZIP = b"\x1f\x8b"
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
        start = _first_bytes(content).removeprefix(UTF8_MARK)
        head = start.lstrip()[:1]
        return (head == b"{" and _EVENTS.search(start) is not None) or (
            head == b"[" and b'"ph"' in start and b'"frame"' not in start
        )

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; files of Triton 3.6.0 to 3.9.0 and of torch.profiler."""
        if not content:
            from proton_bench.formats.chrome.reader import empty_profile  # slow to load

            return empty_profile(source)
        return super().decode(content, source)

    def read_stream(self, stream: IO[bytes], source: str) -> Profile:
        """Return the profile in a stream."""
        from proton_bench.formats.chrome.reader import read_timeline  # slow to load

        try:
            return read_timeline(stream, source)
        except (OverflowError, MemoryError) as error:
            raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _first_bytes(content: bytes) -> bytes:
    if content[:2] != _GZIP:
        return content[:_SNIFFED]
    try:
        return zlib.decompressobj(wbits=31).decompress(content[:_SNIFFED], _SNIFFED)
    except zlib.error:
        return b""
