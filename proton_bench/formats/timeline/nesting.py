"""From a timeline to call paths: ranges of a thread nest by time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.formats.path_tree import WALL
from proton_bench.formats.timeline.ranges import Timeline
from proton_bench.model.metrics.metric import Aggregation

__all__ = ["place_ranges"]

_CHUNK = 1 << 15

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
        roots: Row below which the ranges of a thread stand, by thread; else the root.
        own: Name of an inclusive metric that receives each range's duration less that of the
            ranges right below. None: ``wall (ns)`` receives the whole duration.
    """
    tree, above = timeline.tree, roots or {}
    found = np.zeros(len(timeline.launches), dtype=np.int64)
    total = len(timeline.ranges)
    range_rows = np.zeros(total, dtype=np.int64)
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
        # Ranges that end before this one are never innermost again.
        del stack[place + 1 :]
        parent = stack[place].row
        row = tree.row(parent, name, kind)
        range_rows[index] = row
        stack.append(_Open(row, end))
        tree.add(row, own or WALL, end - start)
        if own is not None and place:
            tree.add(parent, own, start - end)
    timeline.overlapping, timeline.range_rows = overlapping, range_rows
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
    # Of ranges that start together the longer one is the outer one, else the one that came first.
    order = np.lexsort((-end, is_launch, start, thread))
    for first in range(0, len(order), _CHUNK):
        part = order[first : first + _CHUNK]
        columns = (part, thread[part], start[part], end[part], name[part], kind[part])
        yield from zip(*(column.tolist() for column in columns), strict=True)
