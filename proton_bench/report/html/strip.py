"""The strip of a timeline: how busy each device was over time, and what the host did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proton_bench.errors import UsageError
from proton_bench.formats.chrome.file import ChromeTrace
from proton_bench.formats.perfetto.file import PerfettoFile
from proton_bench.formats.timeline.file import read_slices
from proton_bench.formats.timeline.slices import HOST, CallPath, TimelineSlice
from proton_bench.model.arrays import Floats
from proton_bench.support.text import visible

BINS = 800  # about one for each pixel of a narrow window
_MAX_TRACKS = 16
_MAX_LEVELS = 12
_MAX_NAME = 160
_SUFFIXES = (*ChromeTrace.suffixes, *PerfettoFile.suffixes)
_WORK = frozenset(("kernel", "copy", "graph"))

Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Strip:
    """A window of time in bins of equal length.

    Attributes:
        span_ns: Length of the window in ns.
        tracks: Busy share of each bin, 0 to 1, by device; that of the host where none was used.
        paths: Distinct call paths of the host, from the outermost name to the innermost.
        host: Which of ``paths`` the host was in at the middle of each bin, -1 for none.
        hidden: Devices that are left out as too many.
    """

    span_ns: int
    tracks: Mapping[str, Sequence[float]]
    paths: Sequence[tuple[str, ...]]
    host: Sequence[int]
    hidden: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        tracks = [{"name": name, "busy": list(busy)} for name, busy in self.tracks.items()]
        return {
            "span": self.span_ns,
            "tracks": tracks,
            "paths": list(self.paths),
            "host": list(self.host),
            "hidden": self.hidden,
        }


@dataclass(slots=True)
class TimelineTimes:
    """Collects slices of a timeline."""

    devices: dict[str, Spans] = field(default_factory=dict)
    calls: dict[CallPath, Spans] = field(default_factory=dict)

    def take(self, found: TimelineSlice) -> None:
        """Take one slice; work of devices and what the host did are kept."""
        if found.is_open or found.duration_ns <= 0:
            return
        span = (found.start_ns, found.start_ns + found.duration_ns)
        if found.device == HOST:
            self.calls.setdefault(found.path, []).append(span)
        elif found.kind in _WORK:
            name = f"{found.device_kind}:{found.device}"
            if found.origin.rank is not None:
                name = f"rank {found.origin.rank} {name}"
            self.devices.setdefault(visible(name, _MAX_NAME), []).append(span)

    def strip(self) -> Strip | None:
        """Return the strip, None if nothing has a length."""
        host = [span for spans in self.calls.values() for span in spans]
        found = dict(sorted(self.devices.items())) or ({"host": host} if host else {})
        every = [span for spans in found.values() for span in spans] + host
        if not every:
            return None
        begin, end = min(start for start, _ in every), max(stop for _, stop in every)
        edges = np.linspace(0, end - begin, BINS + 1)
        paths, places = self._host((edges[:-1] + edges[1:]) / 2, begin)
        shown = list(found.items())[:_MAX_TRACKS]
        return Strip(
            span_ns=end - begin,
            tracks={name: _busy_shares(spans, edges, begin) for name, spans in shown},
            paths=paths,
            host=places,
            hidden=len(found) - len(shown),
        )

    def _host(self, middles: Floats, begin: int) -> tuple[tuple[tuple[str, ...], ...], list[int]]:
        """Return paths of the host, and the deepest one at each point in time."""
        ordered = sorted(self.calls, key=len)
        deepest = np.full(len(middles), -1)
        for place, path in enumerate(ordered):
            spans = np.array(self.calls[path], dtype=np.int64) - begin
            for first, last in np.searchsorted(middles, spans).tolist():
                deepest[first:last] = place  # deeper paths come later
        used, places = np.unique(deepest, return_inverse=True)
        shown = [place for place in used.tolist() if place >= 0]
        offset = len(used) - len(shown)
        return tuple(_shown_path(ordered[place]) for place in shown), (places - offset).tolist()


def read_strip(file: Path) -> Strip | None:
    """Return the strip of a timeline of a session; None for any other file.

    Raises:
        ProfileFormatError: It is damaged.
    """
    if not file.name.endswith(_SUFFIXES):
        return None
    times = TimelineTimes()
    try:
        read_slices(file, times.take)
    except UsageError:
        return None
    return times.strip()


def _busy_shares(spans: Spans, edges: Floats, begin: int) -> list[float]:
    """Return the share of each bin in which at least one span runs."""
    sorted_spans = np.array(sorted(spans), dtype=np.int64) - begin
    starts, until = sorted_spans[:, 0], np.maximum.accumulate(sorted_spans[:, 1])
    heads = np.flatnonzero(np.append(True, starts[1:] > until[:-1]))
    block_ends = until[np.append(heads[1:], len(until)) - 1]
    # The busy time until each start and end; it grows evenly in between.
    lengths = block_ends - starts[heads]
    before = np.cumsum(lengths) - lengths
    times = np.column_stack((starts[heads], block_ends)).ravel()
    covered = np.column_stack((before, before + lengths)).ravel()
    shares = np.diff(np.interp(edges, times, covered)) / np.diff(edges)
    return np.clip(np.round(shares, 3), 0.0, 1.0).tolist()  # type: ignore[no-any-return]


def _shown_path(path: CallPath) -> tuple[str, ...]:
    cut = [f"({len(path) - _MAX_LEVELS} more)"] if len(path) > _MAX_LEVELS else []
    return (*cut, *(visible(name, _MAX_NAME) for name in path[-_MAX_LEVELS:]))
