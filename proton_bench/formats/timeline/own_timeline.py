"""The profile of the slices of sessions, where a timeline holds no embedded profile."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import take_bytes, take_items
from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.path_tree import COUNT, HOST, TIME, PathTree, Reading
from proton_bench.formats.timeline.launched_work import device_uses, place_work, with_uses
from proton_bench.formats.timeline.nesting import Nesting, place_ranges
from proton_bench.formats.timeline.ranges import Columns, Timeline, Work
from proton_bench.formats.timeline.slices import HOST as ON_HOST
from proton_bench.formats.timeline.slices import CallPath, TimelineSlice
from proton_bench.model.arrays import Integers
from proton_bench.model.device import Device
from proton_bench.model.frame import CAPTURED_NAME, FrameKind
from proton_bench.model.members import Member, merge_members
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile


class EmbeddedProfiles:
    """Joins the pieces of the profiles in a timeline.

    Args:
        source: Name of the file, for messages.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._pieces: dict[Hashable, list[bytes]] = {}
        self._whole: list[bytes] = []

    def add(self, process: Hashable, piece: bytes, rest: int) -> None:
        """Add a piece.

        Args:
            process: The process that wrote it.
            piece: Bytes of a `.proton` file.
            rest: How many bytes of it come later.
        """
        self._pieces.setdefault(process, []).append(piece)
        if not rest:
            self._whole.append(b"".join(self._pieces.pop(process)))

    def profile(self, sessions: int) -> Profile | None:
        """Return the profile of all sessions, None unless each of them wrote its own.

        Args:
            sessions: How many there are.

        Raises:
            ProfileFormatError: A profile is damaged.
        """
        if len(self._whole) != sessions:
            return None
        found = [NativeFile().decode(content, self._source) for content in self._whole]
        if len(found) == 1:
            return found[0]
        return merge_members(
            [
                Member(self._source, Origin.of(each.provenance, "", is_partial=each.partial), each)
                for each in found
            ]
        )


def embedded_or(embedded: Callable[[], Profile | None], other: Callable[[], Profile]) -> Profile:
    """Return the embedded profile of a file, or the other one, for which it is read once more."""
    found = embedded()
    return found if found is not None else other()


_SUFFIXES = {"(exc)": Aggregation.EXCLUSIVE, "(pty)": Aggregation.PROPERTY}
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_MAX_DIGITS = 400
_BYTES_OF_NUMBER = 64
_MOST_KNOWN = 4096  # the same names and values come again and again


class MetricTexts:
    """Adds metrics of events to rows; ``(exc)`` and ``(pty)`` in a name say how they add up.

    Args:
        tree: Where the rows are.
        source: Name of the file, for messages.
    """

    def __init__(self, tree: PathTree, source: str) -> None:
        self._tree = tree
        self._source = source

    def add(self, row: int, metrics: Any) -> None:
        """Add the metrics of an event.

        Args:
            row: Row of the event's scope or kernel.
            metrics: Values by name, also as texts of numbers and vectors; None for none.

        Raises:
            ProfileFormatError: They are not a map, or a metric changes its type.
        """
        if metrics is None:
            return
        if not isinstance(metrics, dict):
            raise corrupt(self._source, "the metrics of an event are not a map")
        for key, text in metrics.items():
            name, aggregation = _name_and_aggregation(key)
            value, before = _value(text), self._tree.value(row, name)
            if value is None:
                continue
            if isinstance(value, str) and aggregation is Aggregation.INCLUSIVE:
                aggregation = Aggregation.PROPERTY  # of timelines that other tools wrote
            is_replaced = aggregation is Aggregation.PROPERTY or isinstance(before, str)
            if isinstance(value, str) or is_replaced:
                self._tree.declare(name, aggregation)
                self._tree.put(row, name, value)
            elif before is not None and not _are_alike(before, value):
                raise corrupt(self._source, f"metric {name!r} changes its type")
            elif isinstance(value, tuple):
                take_bytes(_BYTES_OF_NUMBER * len(value))  # a few bytes may repeat it
                self._tree.put(row, name, _vector_sum(before or (), value))
            else:
                self._tree.declare(name, aggregation)
                self._tree.add(row, name, value)


def _vector_sum(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    longer, shorter = sorted((one, other), key=len, reverse=True)
    padded = (*shorter, *(0 for _ in longer[len(shorter) :]))
    return tuple(left + right for left, right in zip(longer, padded, strict=True))


@lru_cache(maxsize=_MOST_KNOWN)
def _name_and_aggregation(key: str) -> tuple[str, Aggregation]:
    for suffix, meant in _SUFFIXES.items():
        if key.endswith(suffix):
            return key.removesuffix(suffix).rstrip(), meant
    return key, Aggregation.INCLUSIVE


def _are_alike(one: Any, other: Any) -> bool:
    return isinstance(one, tuple) == isinstance(other, tuple)


def _value(text: Any) -> int | float | str | tuple[float, ...] | None:
    """Return what a metric's text stands for; None for NaN and infinity, which are not values."""
    if isinstance(text, str):
        return _value_of_text(text)
    return _finite(text) if isinstance(text, int | float) else None


@lru_cache(maxsize=_MOST_KNOWN)
def _value_of_text(text: str) -> int | float | str | tuple[float, ...] | None:
    if text in {"nan", "-nan", "inf", "-inf"}:
        return None
    if _NUMBER.fullmatch(text) and len(text) < _MAX_DIGITS:
        return _finite(int(text) if text.lstrip("-").isdigit() else float(text))
    if text.startswith("[") and text.endswith("]"):
        parts = [_value(part) for part in text[1:-1].split(",")] if len(text) > 2 else []
        if all(isinstance(part, int | float) for part in parts):
            return tuple(part for part in parts if isinstance(part, int | float))
    return text


def _finite(number: float) -> float | None:
    """Return a number that floats hold, or None."""
    return number if abs(number) <= sys.float_info.max else None


_SCOPES = {"scope": FrameKind.SCOPE, "metric": FrameKind.SCOPE, "test": FrameKind.TEST}
_OPS = {"op": FrameKind.OP, "kernel": FrameKind.KERNEL}
_WORK = {"kernel": FrameKind.KERNEL, "copy": FrameKind.COPY, "graph": FrameKind.GRAPH}

_PYTHON_FRAME = re.compile(r".*:\d+@.*", re.DOTALL)


def guessed_kind(name: str) -> FrameKind:
    """Return what a frame in the middle of a call path probably stands for."""
    if name == CAPTURED_NAME:
        return FrameKind.GRAPH
    return FrameKind.PYTHON if _PYTHON_FRAME.fullmatch(name) else FrameKind.SCOPE


class SessionTimelines:
    """Takes the slices of any number of processes, and makes one profile of them.

    Attributes:
        reading: Receives what cannot be placed.
    """

    def __init__(self, source: str) -> None:
        self.reading = Reading(source)
        self._timelines: dict[Origin, SessionTimeline] = {}

    def of(self, origin: Origin) -> SessionTimeline:
        """Return the timeline of a process."""
        found = self._timelines.get(origin)
        if found is None:
            found = self._timelines[origin] = SessionTimeline(self.reading)
        return found

    def add(self, found: TimelineSlice) -> None:
        """Add a slice to the timeline of its process."""
        self.of(found.origin).add(found)

    def profile(self, facts: Mapping[Origin, Mapping[str, Any]], *, is_partial: bool) -> Profile:
        """Return the profile of all that was added.

        Args:
            facts: Provenance of processes, also of processes without slices.
            is_partial: Some of the file is missing.

        Raises:
            ProfileFormatError: Numbers are out of range.
        """
        members = []
        for origin in facts:
            self.of(origin)
        for origin, timeline in self._timelines.items():
            self.reading.provenance = dict(facts.get(origin, {}))
            members.append(Member(self.reading.source, origin, timeline.profile()))
        found = members[0].profile
        if found is None or len(members) > 1:
            found = merge_members(members)
        dropped = {reason: count for reason, count in self.reading.dropped.items() if count}
        return replace(found, dropped=dropped, partial=is_partial)


class SessionTimeline:
    """Takes what one process did in any order, and makes a profile of it at the end.

    Attributes:
        timeline: Receives ranges without a call path, by `Timeline.add_range`.
    """

    def __init__(self, reading: Reading) -> None:
        self.timeline = Timeline(reading)
        self._reading = reading
        self._paths: dict[CallPath, int] = {}  # asked for so far
        self._frames: dict[tuple[int, str], int] = {}  # each by the path above and its name
        self._kinds: dict[int, FrameKind] = {}
        self._walls: dict[int, tuple[int, int]] = {}  # time in ranges, and their number
        self._metrics = PathTree()  # of paths instead of rows
        self._texts = MetricTexts(self._metrics, reading.source)
        self._work_metrics = PathTree()  # of kinds of work instead of rows
        self._work_texts = MetricTexts(self._work_metrics, reading.source)
        self._work_kinds: dict[tuple[int, int, FrameKind, int], int] = {}
        self._ops = Columns(thread="i", start="q", end="q", path="i")
        self._devices: dict[tuple[str, int], int] = {}

    def add(self, found: TimelineSlice) -> None:
        """Add a slice.

        Raises:
            ProfileFormatError: A value is invalid.
            OverflowError: A number is too large.
        """
        if found.device != ON_HOST:
            self._add_work(found)
        elif found.kind == "launch":
            if found.correlation:
                self.timeline.add_launch(0, found.correlation, 0, start_ns=found.start_ns)
        elif found.kind in _OPS:
            self._add_op(found)
        elif found.kind in _SCOPES:
            path = self._path(found.path)
            self._kinds.setdefault(path, _SCOPES[found.kind])
            end_ns = found.start_ns + found.duration_ns
            if not found.is_open and self.timeline.is_possible("scope", found.start_ns, end_ns):
                wall_ns, count = self._walls.get(path, (0, 0))
                self._walls[path] = wall_ns + found.duration_ns, count + 1
            self._texts.add(path, found.values)
        else:
            self._reading.drop("slice of an unknown category: left out")

    def _path(self, names: CallPath) -> int:
        """Return the number of a call path below the root."""
        found = self._paths.get(names)
        if found is None:
            take_items(len(names))
            found = 0
            for name in names:
                found = self._frames.setdefault((found, name), len(self._frames) + 1)
            self._paths[names] = found
        return found

    def _add_op(self, found: TimelineSlice) -> None:
        """Add an operator, or a kernel that ran on a host thread; its time is its own.

        That is what it took less the operators and kernels inside of it on its thread.
        """
        end_ns = found.start_ns + found.duration_ns
        if not self.timeline.is_possible(found.kind, found.start_ns, end_ns):
            return
        path = self._path(found.path)
        self._kinds.setdefault(path, _OPS[found.kind])
        self._ops.add(self.timeline.number(found.row), found.start_ns, end_ns, path)

    def _add_work(self, found: TimelineSlice) -> None:
        kind = _WORK.get(found.kind)
        if kind is None:
            self._reading.drop("device work of an unknown category: left out")
            return
        device = (found.device_kind, found.device)
        work = Work(
            process=0,
            correlation=found.correlation or -1,
            name=self.timeline.tree.strings.index(found.path[-1]),
            kind=kind,
            start_ns=found.start_ns,
            duration_ns=found.duration_ns,
            device=self._devices.setdefault(device, len(self._devices)),
        )
        if not self.timeline.add_work(work):
            return
        parent = self._path(found.path.parent)
        self.timeline.paths.add(len(self.timeline.work) - 1, parent)
        if found.values:
            key = (parent, work.name, kind, work.device)
            number = self._work_kinds.setdefault(key, len(self._work_kinds))
            self._work_texts.add(number, found.values)

    def profile(self) -> Profile:
        """Return the profile of all that was added.

        Raises:
            ProfileFormatError: Numbers are out of range.
        """
        timeline = self.timeline
        devices = {number: Device(*device) for device, number in self._devices.items()}
        rows = self._rows()
        self._add_host_values(rows)
        launches = place_ranges(timeline)
        work = place_work(timeline, np.zeros_like(launches), path_rows=rows)
        self._add_work_values(rows)
        profile = timeline.tree.build(self._reading, devices)
        return with_uses(profile, device_uses(work, timeline.tree.strings.texts()), devices)

    def _rows(self) -> Integers:
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
            device = HOST if is_op else -1
            rows.append(row(rows[parent], known[0], kind, device=device))
        return np.array(rows, dtype=np.int64)

    def _add_host_values(self, rows: Integers) -> None:
        tree = self.timeline.tree
        for path, ranges in self._walls.items():
            tree.add_range(int(rows[path]), *ranges)
        _add_metrics(tree, self._metrics, rows.tolist())
        if not len(self._ops):
            return
        paths = self._ops["path"].astype(np.int64)
        counts = np.bincount(paths)
        times = np.zeros(len(counts), dtype=np.int64)
        thread, start, end = (self._ops[name] for name in ("thread", "start", "end"))
        nesting = Nesting(thread=thread, start=start, end=end, kind=np.zeros_like(paths))
        np.add.at(times, paths, nesting.own_ns)
        for path in np.flatnonzero(counts).tolist():
            tree.add(int(rows[path]), TIME, int(times[path]))
            tree.add(int(rows[path]), COUNT, int(counts[path]))

    def _add_work_values(self, rows: Integers) -> None:
        tree = self.timeline.tree
        places = [
            tree.row(int(rows[parent]), name, kind, device=device)
            for parent, name, kind, device in self._work_kinds
        ]
        _add_metrics(tree, self._work_metrics, places)


def _add_metrics(tree: PathTree, metrics: PathTree, rows: Sequence[int]) -> None:
    """Add metrics of events to rows; a number adds to what the row has, as while recording."""
    for metric, aggregation, cells in metrics.cells():
        if aggregation is not None:
            tree.declare(metric, aggregation)
        is_sum = aggregation is not None and aggregation is not Aggregation.PROPERTY
        for place, value in cells.items():
            add = tree.add if is_sum and isinstance(value, int | float) else tree.put
            add(rows[place], metric, value)
