"""Reads a timeline in Chrome's format the plain way, to compare it with the tree of its run."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from proton_bench.model.profile import Profile

Path_ = tuple[str, ...]
Sums = dict[Path_, tuple[int, int]]

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# A tree measures time on the host by the processor's counter, at a rate that was found when the
# session started; a timeline shows it by the clock of the host. The two are apart by this part of a
# time at most: a greater difference is not a drift (aggregate/times/tick_anchors.cpp).
_RATE_SHARE = 1000


@dataclass(frozen=True)
class Slice:
    """A slice; times in ns since the file's base time."""

    name: str
    category: str
    lane: str
    start_ns: int
    end_ns: int
    arguments: dict[str, Any] = field(compare=False)

    @property
    def path(self) -> Path_:
        """Names from below the root to this."""
        return tuple(self.arguments.get("call_stack", ())[1:])  # runs of graphs have none

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns

    def contains(self, other: Slice) -> bool:
        """Whether the other one lies in it, in time."""
        return self.start_ns <= other.start_ns and other.end_ns <= self.end_ns


class ChromeTimeline:
    """A file, plain or packed.

    Attributes:
        facts: The keys beside the events.
        slices: By start; the longer first if they start together.
        flows: Pairs of slices that an arrow joins.
        counters: Readings by name: time in ns, and values by key.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        self.facts = json.loads(text, parse_float=Decimal)  # every digit of a time counts
        events = self.facts.pop("traceEvents")
        lanes = {
            event["tid"]: event["args"]["name"]
            for event in events
            if (event["ph"], event["name"]) == ("M", "thread_name")
        }
        self.slices = sorted(
            (_slice(event, lanes) for event in events if event["ph"] == "X"),
            key=lambda each: (each.start_ns, -each.end_ns),
        )
        self.flows = self._join([e for e in events if e["ph"] in ("s", "f")], lanes)
        self.counters: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)
        for event in events:
            if event["ph"] == "C":
                self.counters[event["name"]].append((_ns(event["ts"]), event["args"]))

    def of(self, *categories: str) -> list[Slice]:
        """Return the slices of these categories."""
        return [each for each in self.slices if each.category in categories]

    def named(self, name: str) -> list[Slice]:
        """Return the slices with this name."""
        return [each for each in self.slices if each.name == name]

    def sums(self, *categories: str) -> Sums:
        """Return count and time of the slices of these categories, by path."""
        found: dict[Path_, list[int]] = defaultdict(lambda: [0, 0])
        for each in self.of(*categories):
            found[each.path][0] += 1
            found[each.path][1] += each.duration_ns
        return {path: (count, time_ns) for path, (count, time_ns) in found.items()}

    def crossing(self) -> list[tuple[Slice, Slice]]:
        """Return pairs of one lane that overlap and do not nest: viewers drop them."""
        found = []
        for lane in {each.lane for each in self.slices}:
            opened: list[Slice] = []
            for each in (s for s in self.slices if s.lane == lane):
                while opened and opened[-1].end_ns <= each.start_ns:
                    opened.pop()
                if opened and not opened[-1].contains(each):
                    found.append((opened[-1], each))
                opened.append(each)
        return found

    def _join(
        self, marks: Iterable[dict[str, Any]], lanes: dict[int, str]
    ) -> list[tuple[Slice, Slice]]:
        at = {(each.lane, each.start_ns): each for each in self.slices}  # the innermost stays
        starts: dict[Any, Slice] = {}
        ends: list[tuple[Any, Slice]] = []
        for mark in marks:
            slice_ = at[lanes[mark["tid"]], _ns(mark["ts"])]
            if mark["ph"] == "s":
                starts[mark["id"]] = slice_
            else:
                ends.append((mark["id"], slice_))
        return [(starts[number], end) for number, end in ends]


def same_host_time(shown_ns: int, measured_ns: int, count: int) -> bool:
    """Whether a timeline's slices last as long as a tree says.

    Args:
        shown_ns: Of all slices together, in a timeline.
        measured_ns: The same in a tree.
        count: How many slices; begin and end of each are cut to nanoseconds.
    """
    return abs(shown_ns - measured_ns) <= count + measured_ns // _RATE_SHARE


def work_of(profile: Profile) -> Sums:
    """Return count and time of every kernel and copy in a profile, by path."""
    times, counts = profile.columns.get("time (ns)"), profile.columns.get("count")
    found: dict[Path_, list[int]] = defaultdict(lambda: [0, 0])
    for row in range(1, len(profile)) if times is not None and counts is not None else ():
        if counts.get(row):  # variants of a kernel have rows of their own
            found[profile.path(row)][0] += int(counts.get(row))
            found[profile.path(row)][1] += int(times.get(row))
    return {path: (count, time_ns) for path, (count, time_ns) in found.items()}


def walls_of(profile: Profile) -> dict[Path_, int]:
    """Return how long each scope was open, all its instances together, by path."""
    walls = profile.columns.get("wall (ns)")
    rows = range(1, len(profile)) if walls is not None else ()
    return {profile.path(row): int(walls.get(row)) for row in rows if walls.get(row)}


def _slice(event: dict[str, Any], lanes: dict[int, str]) -> Slice:
    start_ns = _ns(event["ts"])
    end_ns = start_ns + _ns(event["dur"])
    lane = lanes[event["tid"]]
    category = "graph run" if lane.startswith("Graph") else event["cat"]
    return Slice(event["name"], category, lane, start_ns, end_ns, event.get("args", {}))


def _ns(microseconds: Decimal | int) -> int:
    return int(microseconds * 1000)
