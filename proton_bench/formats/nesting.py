"""From a timeline to call paths: ranges nest by time, work stands where it was launched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.formats.base import corrupt
from proton_bench.formats.path_tree import COUNT, TIME, WALL
from proton_bench.formats.timeline import MAX_NS, Timeline
from proton_bench.profile.frame import FrameKind
from proton_bench.profile.metric import Aggregation

__all__ = ["AMBIGUOUS", "UNMATCHED", "place_ranges", "place_work"]

UNMATCHED = "device work whose launch is not in the file: kept under ROOT"
AMBIGUOUS = "device work whose id several launches share: kept under ROOT"

LATENCY_SUM = "launch_latency_sum (ns)"
LATENCY_COUNT = "launch_latency_count"

_CHUNK = 1 << 15
_NONE, _SEVERAL = -1, -2

Rows = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Open:
    """A range that has not ended."""

    row: int
    end: int


def place_ranges(
    timeline: Timeline, *, roots: dict[int, int] | None = None, own: str | None = None
) -> Rows:
    """Add the rows of all ranges, and return the row of each launch.

    A range stands below the innermost one of its thread that holds all of it; one that overlaps
    another's end stands beside that and is counted. A launch belongs to the innermost range that
    is open when it starts.

    Args:
        timeline: What to place.
        roots: Row below which the ranges of a thread stand; the root where it names none.
        own: Name of an inclusive metric that receives each range's duration less that of the
            ranges right below. None: ``wall (ns)`` receives the whole duration.
    """
    tree, above = timeline.tree, roots or {}
    found = np.zeros(len(timeline.launches), dtype=np.int64)
    total = len(timeline.ranges)
    current, stack = -1, [_Open(0, 0)]
    overlapping = 0
    if own is None:
        tree.declare(WALL, Aggregation.EXCLUSIVE)
    for index, thread, start, end, name, kind in _by_time(timeline):
        if thread != current:
            current, stack = thread, [_Open(above.get(thread, 0), 2**63)]
        while stack[-1].end <= start and len(stack) > 1:
            stack.pop()
        if index >= total:
            found[index - total] = stack[-1].row
            continue
        place = len(stack) - 1
        while stack[place].end + timeline.rounding_ns < end:
            place -= 1
        overlapping += place < len(stack) - 1
        # What this range outlives is never again the innermost one.
        del stack[place + 1 :]
        parent = stack[place].row
        row = tree.row(parent, name, FrameKind(kind))
        stack.append(_Open(row, end))
        tree.add(row, own or WALL, end - start)
        if own is not None and place:
            tree.add(parent, own, start - end)
    timeline.overlapping = overlapping
    return found


def _by_time(timeline: Timeline) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield ranges and launches by thread and time; launches are numbered after the ranges."""
    ranges, launches = timeline.ranges, timeline.launches
    count = len(launches)
    blank = np.zeros(count, dtype=np.int8)
    thread = np.concatenate([ranges["thread"], launches["thread"]])
    start = np.concatenate([ranges["start"], launches["start"]])
    end = np.concatenate([ranges["end"], launches["start"]])
    is_launch = np.concatenate([np.zeros(len(ranges), dtype=np.int8), blank + 1])
    name = np.concatenate([ranges["name"], blank])
    kind = np.concatenate([ranges["kind"], blank])
    # Of ranges that start together the longer one is the outer one, else the one told first.
    order = np.lexsort((-end, is_launch, start, thread))
    for first in range(0, len(order), _CHUNK):
        part = order[first : first + _CHUNK]
        columns = (part, thread[part], start[part], end[part], name[part], kind[part])
        yield from zip(*(column.tolist() for column in columns), strict=True)


def place_work(timeline: Timeline, launch_rows: Rows) -> None:
    """Add the rows of device work below the rows of their launches, with time and count."""
    work = timeline.work
    if not len(work):
        return
    launch = _launch_of(timeline, launch_rows)
    timeline.reading.drop(UNMATCHED, int((launch == _NONE).sum()))
    timeline.reading.drop(AMBIGUOUS, int((launch == _SEVERAL).sum()))
    known = launch >= 0
    parents = np.zeros(len(work), dtype=np.int64)
    parents[known] = launch_rows[launch[known]]
    latency = np.full(len(work), -1, dtype=np.int64)
    latency[known] = work["start"][known] - timeline.launches["start"][launch[known]]
    _add_sums(timeline, parents, latency)


def _add_sums(timeline: Timeline, parents: Rows, latency: Rows) -> None:
    """Add what is equal in path, device and variant as one, in order of first appearance."""
    tree, work = timeline.tree, timeline.work
    keys = (*(work[name] for name in ("variant", "device", "kind", "name")), parents)
    order = np.lexsort(keys)
    differs = np.zeros(len(order), dtype=np.bool_)
    differs[0] = True
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    heads = np.flatnonzero(differs)
    is_timed = latency >= 0
    values = {
        TIME: work["duration"],
        COUNT: np.ones(len(order), dtype=np.int64),
        LATENCY_SUM: np.where(is_timed, latency, 0),
        LATENCY_COUNT: is_timed.astype(np.int64),
    }
    sums = {name: _sums(timeline, each[order], heads) for name, each in values.items()}
    firsts = order[heads]  # the sort is stable, so each head came first
    for group in np.argsort(firsts).tolist():
        cells = (int(key[firsts[group]]) for key in keys)
        variant, device, kind, name, parent = cells
        row = tree.row(parent, name, FrameKind(kind), device=device, variant=variant)
        for metric, column in sums.items():
            if metric in (TIME, COUNT) or sums[LATENCY_COUNT][group]:
                tree.add(row, metric, column[group])


def _sums(timeline: Timeline, values: Rows, heads: Rows) -> list[int]:
    if float(values.sum(dtype=np.float64)) >= MAX_NS:
        raise corrupt(timeline.reading.source, "its times add up to more than 64 bits hold")
    found: list[int] = np.add.reduceat(values, heads).tolist()
    return found


def _launch_of(timeline: Timeline, launch_rows: Rows) -> Rows:
    """Return for each piece of work its launch, `_NONE`, or `_SEVERAL` if they differ in path."""
    launches, work = timeline.launches, timeline.work
    split = len(launches)
    ids = np.concatenate([launches["correlation"], work["correlation"]])
    processes = np.concatenate([launches["process"], work["process"]])
    _, numbers = np.unique(ids, return_inverse=True)
    keys = processes.astype(np.int64) * (len(ids) + 1) + numbers
    order = np.argsort(keys[:split], kind="stable")
    sorted_keys = keys[:split][order]
    heads = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])[:split])
    found = np.full(len(work), _NONE, dtype=np.int64)
    if not split:
        return found
    rows = launch_rows[order]
    is_clear = np.minimum.reduceat(rows, heads) == np.maximum.reduceat(rows, heads)
    place = np.minimum(np.searchsorted(sorted_keys[heads], keys[split:]), len(heads) - 1)
    matches = (sorted_keys[heads][place] == keys[split:]) & (work["correlation"] >= 0)
    found[matches] = np.where(is_clear[place], order[heads[place]], _SEVERAL)[matches]
    return found
