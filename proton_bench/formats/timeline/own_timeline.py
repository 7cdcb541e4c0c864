"""Timelines whose events tell their call paths, as recorded sessions write them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.formats.budget import Limit, take
from proton_bench.formats.path_tree import COUNT, TIME, WALL, PathTree, Reading
from proton_bench.formats.timeline.device_time import device_uses, with_uses
from proton_bench.formats.timeline.launched_work import place_work
from proton_bench.formats.timeline.metric_texts import ToldMetrics
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.ranges import MAX_NS, Columns, Timeline, Work
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["SessionTimeline", "guessed_kind"]

_CAPTURED = "<captured_at>"
_PYTHON_FRAME = re.compile(r".*:\d+@.*", re.DOTALL)
_IMPOSSIBLE = "slice with impossible times: left out"
_CHUNK = 1 << 15
# Deeper than programs are: what shows a row goes over all rows above it.
_DEEP = 1000
_Path = tuple[str, ...]


def guessed_kind(name: str) -> FrameKind:
    """Return what a frame in the middle of a call path probably stands for."""
    if name == _CAPTURED:
        return FrameKind.GRAPH
    return FrameKind.PYTHON if _PYTHON_FRAME.fullmatch(name) else FrameKind.SCOPE


class SessionTimeline:
    """Takes events in any order, and makes a profile of them at the end.

    Attributes:
        reading: Receives what cannot be placed.
        timeline: Receives ranges that tell no path, by `Timeline.add_range`, and launches.
    """

    def __init__(self, source: str) -> None:
        self.reading = Reading(source)
        self.timeline = Timeline(self.reading)
        self._paths: dict[_Path, int] = {}  # those that were asked for
        self._frames: dict[tuple[int, str], int] = {}  # each by the path above and its name
        self._kinds: dict[int, FrameKind] = {}
        self._walls: dict[int, int] = {}
        self._metrics = PathTree()  # of paths instead of rows
        self._told = ToldMetrics(self._metrics, source)
        self._work_metrics = PathTree()  # of kinds of work instead of rows
        self._told_of_work = ToldMetrics(self._work_metrics, source)
        self._work_kinds: dict[tuple[int, int, FrameKind, int], int] = {}
        self._ops = Columns(thread="i", start="q", end="q", path="i")
        self._parents = array("i")  # paths above the work of the timeline

    def path(self, names: Sequence[str]) -> int:
        """Return the number of a call path below the root."""
        key = tuple(names)
        found = self._paths.get(key)
        if found is None:
            take(Limit.PATHS, len(key) * (1 + len(key) // _DEEP))
            found = 0
            for name in key:
                found = self._frames.setdefault((found, name), len(self._frames) + 1)
            self._paths[key] = found
        return found

    def add_scope(self, path: int, kind: FrameKind, duration_ns: int | None) -> None:
        """Add a scope of a host thread.

        Args:
            path: Number of its path.
            kind: What it is.
            duration_ns: Its length, None for one whose end is not known.
        """
        self._kinds.setdefault(path, kind)
        if duration_ns is not None:
            self._walls[path] = self._walls.get(path, 0) + duration_ns

    def add_metrics(self, path: int, metrics: Any) -> None:
        """Add what the program told of a scope; see `ToldMetrics.add`."""
        self._told.add(path, metrics)

    def add_op(
        self, thread: int, path: int, kind: FrameKind, *, start_ns: int, end_ns: int
    ) -> None:
        """Add an operator, or a kernel that ran on a host thread; its time is its own.

        That is what it took less the operators and kernels inside of it on its thread.
        """
        if not -MAX_NS < start_ns <= end_ns < MAX_NS:
            self.reading.drop(_IMPOSSIBLE)
            return
        self._kinds.setdefault(path, kind)
        self._ops.add(thread, start_ns, end_ns, path)

    def add_work(self, parent: int, text: str, work: Work, *, metrics: Any = None) -> None:
        """Add what ran on a device.

        Args:
            parent: Number of the path that it stands below.
            text: Its name.
            work: The rest; its name is not looked at.
            metrics: What is told of it; see `ToldMetrics.add`.
        """
        name = self.timeline.tree.strings.index(text)
        if not self.timeline.add_work(work, name):
            return
        self._parents.append(parent)
        if metrics:
            key = (parent, name, work.kind, work.device)
            number = self._work_kinds.setdefault(key, len(self._work_kinds))
            self._told_of_work.add(number, metrics)

    def profile(self, devices: Mapping[int, Device], host_device: int) -> Profile:
        """Return the profile of all that was added.

        Args:
            devices: The device of each number.
            host_device: Number of the device that operators run on.

        Raises:
            ProfileFormatError: Numbers are not what they can be.
        """
        timeline = self.timeline
        rows = self._rows(host_device)
        self._add_host_values(rows)
        launches = place_ranges(timeline)
        parents = rows[np.frombuffer(self._parents, dtype=np.int32)] if self._parents else None
        nothing = np.zeros(0, dtype=np.int64)
        work = place_work(
            timeline, np.zeros_like(launches), told_parents=nothing if parents is None else parents
        )
        self._add_work_values(rows)
        profile = timeline.tree.build(self.reading, devices)
        return with_uses(profile, device_uses(work, timeline.tree.strings.texts()), devices)

    def _rows(self, host_device: int) -> npt.NDArray[np.int64]:
        """Add the rows of all paths but those of work, and return the row of each."""
        rows = [0]  # numbers of paths count up
        row, index = self.timeline.tree.row, self.timeline.tree.strings.index
        named: dict[str, tuple[int, int]] = {}  # position of each name, and what it may stand for
        for (parent, name), number in self._frames.items():
            known = named.get(name)
            if known is None:
                known = named[name] = (index(name), int(guessed_kind(name)))
            kind = self._kinds.get(number)
            if kind is None:
                rows.append(row(rows[parent], *known))
                continue
            is_op = kind in (FrameKind.OP, FrameKind.KERNEL)
            device = host_device if is_op else -1
            rows.append(row(rows[parent], known[0], kind, device=device))
        return np.array(rows, dtype=np.int64)

    def _add_host_values(self, rows: npt.NDArray[np.int64]) -> None:
        tree = self.timeline.tree
        if self._walls:
            tree.declare(WALL, Aggregation.EXCLUSIVE)
        for path, wall_ns in self._walls.items():
            tree.add(int(rows[path]), WALL, wall_ns)
        _add_told(tree, self._metrics, rows.tolist())
        if not len(self._ops):
            return
        paths = self._ops["path"].astype(np.int64)
        counts = np.bincount(paths)
        times = np.zeros(len(counts), dtype=np.int64)
        np.add.at(times, paths, self._own_times())
        for path in np.flatnonzero(counts).tolist():
            tree.add(int(rows[path]), TIME, int(times[path]))
            tree.add(int(rows[path]), COUNT, int(counts[path]))

    def _add_work_values(self, rows: npt.NDArray[np.int64]) -> None:
        tree = self.timeline.tree
        places = [
            tree.row(int(rows[parent]), name, kind, device=device)
            for parent, name, kind, device in self._work_kinds
        ]
        _add_told(tree, self._work_metrics, places)

    def _own_times(self) -> npt.NDArray[np.int64]:
        """Return of each operator its length less that of those right inside of it."""
        thread, start, end = (self._ops[name] for name in ("thread", "start", "end"))
        own: npt.NDArray[np.int64] = end - start
        order = np.lexsort((-end, start, thread))
        open_ops: list[tuple[int, int]] = []  # their ends, and which they are
        current = -1
        for first in range(0, len(order), _CHUNK):
            part = order[first : first + _CHUNK]
            columns = (part, thread[part], start[part], end[part])
            for op, on, since, until in zip(*(c.tolist() for c in columns), strict=True):
                if on != current:
                    current = on
                    open_ops.clear()
                while open_ops and open_ops[-1][0] <= since:
                    open_ops.pop()
                if open_ops and until <= open_ops[-1][0]:
                    own[open_ops[-1][1]] -= until - since
                open_ops.append((until, op))
        return np.maximum(own, 0)


def _add_told(tree: PathTree, told: PathTree, rows: Sequence[int]) -> None:
    """Add what events told to rows; a number adds to what the row has, as while recording."""
    for metric, aggregation, cells in told.cells():
        if aggregation is not None:
            tree.declare(metric, aggregation)
        is_sum = aggregation is not None and aggregation is not Aggregation.PROPERTY
        for place, value in cells.items():
            add = tree.add if is_sum and isinstance(value, int | float) else tree.put
            add(rows[place], metric, value)
