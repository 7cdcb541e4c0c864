"""`.pftrace`: timelines in Perfetto's format, plain or in gzip members, read as call paths."""

from __future__ import annotations

from typing import IO

from proton_bench.formats.base import TimelineFile
from proton_bench.formats.perfetto.stream import looks_like_packets
from proton_bench.model.profile import Profile


class PerfettoFile(TimelineFile):
    """Timelines of ours, and track events of other tools."""

    name = "perfetto"
    suffixes = (".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz")

    def sniff(self, content: bytes) -> bool:
        """Say whether the content begins with a packet, maybe in a gzip member."""
        return looks_like_packets(content)

    def read_stream(self, stream: IO[bytes], source: str) -> Profile:
        """Return the profile; one that was cut off is read as far as it goes and is partial."""
        from proton_bench.formats.perfetto.reader import read_timeline  # slow to load

        return read_timeline(stream, source)
