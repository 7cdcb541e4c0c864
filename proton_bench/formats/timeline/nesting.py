"""From a timeline to call paths: ranges of a thread nest by time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from proton_bench.formats.base import corrupt
from proton_bench.formats.path_tree import COUNT, HOST, RANGES, TIME
from proton_bench.formats.timeline.ranges import MAX_NS, Timeline
from proton_bench.model.arrays import Integers
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.metrics.wall_times import WALL

CUT = "Python call that seems to outlive its caller: its end was cut off"
POINT = -1  # instead of a `FrameKind`: a moment, which nothing stands in
_CHUNK = 1 << 15
_FOREVER = 2**63
# Profilers may note the end of a call some microseconds late; one that they missed lasts on and on.
_LATE_NS = 50_000


class Nesting:
    """How ranges of threads lie in one another.

    A range stands in the innermost one of its thread that holds all of it; one that overlaps
    another's end stands beside that. A Python call ends with its caller at the latest.

    Args:
        thread: Number of the thread of each range.
        start: Start in ns.
        end: End in ns.
        kind: `FrameKind` of each range, or `POINT`.
        rounding_ns: A range may seem to end so much after the one that it stands in.

    Attributes:
        order: The ranges by thread and time.
        above: The range that each one stands in, -1 for none.
        end: When each one ended, in ns.
        own_ns: Time in which each one was the innermost of its thread, in ns.
        overlapping: How many overlap the end of another one.
        cut: How many Python calls seemed to outlive their caller.
    """

    def __init__(
        self,
        *,
        thread: Integers,
        start: Integers,
        end: Integers,
        kind: Integers,
        rounding_ns: int = 0,
    ) -> None:
        # Of ranges that start together the longer one is the outer one, else the first one.
        self.order = np.lexsort((-end, kind == POINT, start, thread))
        self.overlapping = self.cut = 0
        self._rounding_ns = rounding_ns
        self._above = array("q", [-1]) * len(end)
        self._end = array("q", end.astype(np.int64).tobytes())
        self._own_ns = array("q", bytes(8 * len(end)))
        self._opened: list[tuple[int, int]] = []  # the end of each, and its number
        self._calls: list[int] = []  # ends of open Python calls
        self._now = current = 0
        for index, on, since, until, what in _columns(self.order, thread, start, end, kind):
            if on != current:
                self._close(_FOREVER)
                current, self._now, self._calls = on, since, []
            self._close(since)
            if what == FrameKind.PYTHON:
                self._open(index, self._cut(index, since, until))
            elif what != POINT:
                self._open(index, until)
            elif self._opened:
                self._above[index] = self._opened[-1][1]
        self._close(_FOREVER)
        self.above, self.end, self.own_ns = (
            np.frombuffer(each, dtype=np.int64) for each in (self._above, self._end, self._own_ns)
        )

    def _close(self, now: int) -> None:
        """Close what has ended, and give the time since the last range to the innermost ones."""
        opened, at = self._opened, self._now
        while opened and opened[-1][0] <= now:
            until, index = opened.pop()
            self._own_ns[index] += max(0, until - at)
            at = max(at, until)
        if opened and at < now:
            self._own_ns[opened[-1][1]] += now - at
        self._now = now

    def _cut(self, index: int, since: int, until: int) -> int:
        """Return when a Python call ended: with its caller at the latest."""
        calls = self._calls
        while calls and calls[-1] <= since + _LATE_NS:
            calls.pop()
        if calls and until > calls[-1] + _LATE_NS:
            until = self._end[index] = calls[-1]
            self.cut += 1
        calls.append(until)
        return until

    def _open(self, index: int, until: int) -> None:
        opened = self._opened
        place = len(opened)
        while place and opened[place - 1][0] + self._rounding_ns < until:
            place -= 1
        if place < len(opened):
            self.overlapping += 1
            del opened[place:]  # they end before this one, so they are never innermost again
        if opened:
            self._above[index] = opened[-1][1]
        opened.append((until, index))


def _columns(order: Integers, *columns: Integers) -> Iterator[tuple[int, ...]]:
    """Yield the number of each range and its values, in this order."""
    for first in range(0, len(order), _CHUNK):
        part = order[first : first + _CHUNK]
        yield from zip(part.tolist(), *(each[part].tolist() for each in columns), strict=True)


def place_ranges(
    timeline: Timeline, *, roots: dict[int, int] | None = None, own: str | None = None
) -> Integers:
    """Add the rows of all ranges, and return the row of each launch.

    A launch belongs to the innermost range that is open when it starts. ``wall (ns)`` receives the
    duration of each range. Where nothing ran on a device, the ranges are the work: ``time (ns)``
    receives the time in which each one was the innermost of its thread, and ``count`` how many
    there were; else ``range_count`` does.

    Args:
        timeline: What to place.
        roots: Row below which the ranges of a thread stand, by thread; else the root.
        own: Name of an inclusive metric that receives the time of each range without those in it,
            and nothing else is added.
    """
    timeline.leave_out_untimed()
    tree, above = timeline.tree, roots or {}
    ranges, launches, total = timeline.ranges, timeline.launches, len(timeline.ranges)
    points = np.full(len(launches), POINT, dtype=np.int64)
    thread = np.concatenate([ranges["thread"], launches["thread"]]).astype(np.int64)
    start = np.concatenate([ranges["start"], launches["start"]])
    known_ends, cut = _ended_calls(timeline)
    end = np.concatenate([known_ends, launches["start"]])
    kind = np.concatenate([ranges["kind"], points])
    name = np.concatenate([ranges["name"], points])
    nesting = Nesting(
        thread=thread, start=start, end=end, kind=kind, rounding_ns=timeline.rounding_ns
    )
    is_work = own is None and not len(timeline.work)
    device = HOST if is_work else -1
    rows = array("q", bytes(8 * len(thread)))
    columns = (thread, nesting.above, name, kind)
    for index, on, parent, called, what in _columns(nesting.order, *columns):
        row = rows[parent] if parent >= 0 else above.get(on, 0)
        rows[index] = row if what == POINT else tree.row(row, called, what, device=device)
    placed = np.frombuffer(rows, dtype=np.int64)
    timeline.overlapping, timeline.range_rows = nesting.overlapping, placed[:total]
    timeline.reading.drop(CUT, nesting.cut + cut)
    if own is not None:
        _add(timeline, own, nesting.own_ns[:total])
        return placed[total:]
    tree.declare(WALL, Aggregation.EXCLUSIVE)
    _add(timeline, WALL, (nesting.end - start)[:total])
    if is_work:
        _add(timeline, TIME, nesting.own_ns[:total])
    counts = COUNT if is_work else RANGES
    if counts == RANGES:
        tree.declare(RANGES, Aggregation.EXCLUSIVE)
    _add(timeline, counts, np.ones(total, dtype=np.int64))
    return placed[total:]


def _ended_calls(timeline: Timeline) -> tuple[Integers, int]:
    """Return when ranges ended, and of how many only another call tells.

    A call has ended when its caller calls the next one. One that starts with its caller ends with
    it at the latest: as the longer one it would seem to be the outer one.
    """
    ranges, callers = timeline.ranges, timeline.callers
    end, places = ranges["end"].copy(), callers["range"]
    thread, start = ranges["thread"][places], ranges["start"][places]
    order = np.lexsort((start, callers["id"], thread))
    before, after = places[order[:-1]], places[order[1:]]
    is_next = (np.diff(callers["id"][order]) == 0) & (np.diff(thread[order]) == 0)
    is_late = is_next & (end[before] > ranges["start"][after] + _LATE_NS)
    end[before[is_late]] = ranges["start"][after[is_late]]
    cut = int(is_late.sum())
    for call, caller in _calls_at_once(timeline):
        if end[call] > end[caller]:
            end[call] = end[caller]
            cut += 1
    return end, cut


def _calls_at_once(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Yield Python calls that start with their caller, and the caller, in the file's order."""
    ranges, calls, callers = timeline.ranges, timeline.calls, timeline.callers
    if not len(calls):
        return
    order = np.argsort(calls["id"], kind="stable")
    ids = calls["id"][order]
    place = np.minimum(np.searchsorted(ids, callers["id"]), len(ids) - 1)
    inner, outer = callers["range"], calls["range"][order[place]]
    is_at_once = ids[place] == callers["id"]
    for column in ("thread", "start"):
        is_at_once &= ranges[column][inner] == ranges[column][outer]
    yield from zip(inner[is_at_once].tolist(), outer[is_at_once].tolist(), strict=True)


def _add(timeline: Timeline, metric: str, values: Integers) -> None:
    """Add the values of all ranges to their rows."""
    if float(values.sum(dtype=np.float64)) >= MAX_NS:
        raise corrupt(timeline.reading.source, "its times add up to more than 64 bits hold")
    rows, places = np.unique(timeline.range_rows, return_inverse=True)
    sums = np.zeros(len(rows), dtype=np.int64)
    np.add.at(sums, places, values)
    for row, value in zip(rows.tolist(), sums.tolist(), strict=True):
        timeline.tree.add(row, metric, value)
