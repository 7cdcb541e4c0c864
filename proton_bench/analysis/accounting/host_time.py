"""What the main thread of a run did: recorded work, or something else, and while the GPU waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from proton_bench.analysis.accounting.recorded import run_ns
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.model.profile import Profile

__all__ = [
    "HOST_METRICS",
    "HOST_WALL",
    "IDLE",
    "NOT_RECORDED",
    "OTHER_THREADS",
    "HostPath",
    "RunTime",
    "host_paths",
    "own_lines",
    "run_time_of",
]

HOST_WALL = "host_wall (ns)"
IDLE = "idle (ns)"
OTHER_THREADS = "other_threads (ns)"
NOT_RECORDED = "<not recorded>"
# Samples say where the main thread was, also in a program that launched and entered nothing.
HOST_METRICS = frozenset({HOST_WALL, IDLE, OTHER_THREADS})

_MADE = "<string>:"  # such as the methods of a dataclass
_MOST_NS = 2**63
_MOST_LINES, _LEAST_LINE = 3, 0.01


@dataclass(frozen=True, slots=True)
class RunTime:
    """Where the time of a run went, in nanoseconds; None where the file does not say.

    Of merged processes each is a sum.

    Attributes:
        wall_ns: From the start of the recording to its end.
        gpu_busy_ns: Time of work on devices, without overlaps, summed over devices.
        gpu_idle_ns: Time in which no device worked, also before the first work and after the last.
        host_recorded_ns: Time of the main thread inside recorded operators and timed scopes.
        host_not_recorded_ns: Time of the main thread outside of them: the row ``<not recorded>``.
        before_ns: From the start of the process to the start of the recording. How long the
            process goes on after the end is not known when the file is written.
    """

    wall_ns: int | None = None
    gpu_busy_ns: int | None = None
    gpu_idle_ns: int | None = None
    host_recorded_ns: int | None = None
    host_not_recorded_ns: int | None = None
    before_ns: int | None = None

    @property
    def is_sampled(self) -> bool:
        """Whether the main thread was sampled."""
        return self.host_not_recorded_ns is not None


@dataclass(frozen=True, slots=True)
class HostPath:
    """A place in Python code at which the main thread was outside of recorded work.

    Attributes:
        row: Its row.
        path: Names of its frames, ``file:line@function``, outermost first; empty where none is
            known, such as after the last line of the program.
        wall_ns: Time of the main thread at this line, without that in frames below it.
        idle_ns: The part of it in which no device worked; None if no device was recorded.
    """

    row: int
    path: tuple[str, ...]
    wall_ns: int
    idle_ns: int | None


def run_time_of(profile: Profile) -> RunTime:
    """Return where the time of a run went."""
    wall_ns = run_ns(profile)
    total_ns, idle_ns = _total(profile, HOST_WALL), _total(profile, IDLE)
    busy = [use.busy_ns for use in profile.device_use if use.scope is None]
    busy_ns = sum(busy) if busy else None
    if idle_ns is None and len(busy) == 1 and wall_ns is not None and _is_one(profile):
        idle_ns = max(0, wall_ns - busy[0])
    recorded_ns = not_recorded_ns = None
    if total_ns is not None:
        row = _row(profile)
        not_recorded_ns = 0 if row is None else int(profile.inclusive(HOST_WALL)[row])
        recorded_ns = total_ns - not_recorded_ns
    return RunTime(wall_ns, busy_ns, idle_ns, recorded_ns, not_recorded_ns, _before_ns(profile))


def host_paths(
    profile: Profile, *, by: Literal["idle", "wall"] = "wall", most: int | None = None
) -> tuple[HostPath, ...]:
    """Return the places below ``<not recorded>`` where the main thread was, largest first.

    Args:
        profile: A profile with samples of the host; others have no such places.
        by: Order by all time, or by the part in which no device worked.
        most: At most so many.
    """
    top = _row(profile)
    wall = profile.columns.get(HOST_WALL)
    if top is None or wall is None or not wall.kind.is_number:
        return ()
    idle = profile.columns.get(IDLE)
    idle = idle if idle is not None and idle.kind.is_number else None
    rows = np.arange(top, int(profile.subtree_end[top]))
    rows = rows[wall.known[rows]]
    order = wall.values[rows]
    if by == "idle":
        if idle is None:
            return ()
        order = np.where(idle.known[rows], idle.values[rows], 0)
        rows, order = rows[order > 0], order[order > 0]
    chosen = rows[np.argsort(-order, kind="stable")][:most]
    return tuple(
        HostPath(
            row=int(row),
            path=tuple(profile.path(int(row))[1:]),
            wall_ns=int(wall.values[row]),
            idle_ns=None if idle is None else int(idle.values[row]) if idle.known[row] else 0,
        )
        for row in chosen
    )


def own_lines(
    profile: Profile, span_ns: float, *, by: Literal["idle", "wall"] = "idle"
) -> list[tuple[str, int]]:
    """Return the few lines of own code where the main thread was longest, with their times in ns.

    Time in a library, and in code that it made, counts for the innermost line of own code that
    called it, or else for its outermost line. Lines with less than 1 % of the run are left out.

    Args:
        profile: The profile as it was recorded.
        span_ns: How long the run took.
        by: Time in which no device worked, or all time outside of recorded work.
    """
    places = Places.of(profile.provenance)
    spent: dict[str, int] = {}
    for found in host_paths(profile, by=by):
        frames = [each for each in found.path if parse_frame(each)]
        in_library = [bool(places.library_of(each)) for each in frames]
        own = [
            each
            for number, each in enumerate(frames)
            if not in_library[number] and not (each.startswith(_MADE) and any(in_library[:number]))
        ]
        time_ns = found.idle_ns if by == "idle" else found.wall_ns
        if frames and time_ns:
            line = own[-1] if own else frames[0]
            spent[line] = spent.get(line, 0) + time_ns
    texts = frame_texts(spent, places)
    longest = sorted(spent.items(), key=lambda each: -each[1])[:_MOST_LINES]
    return [(texts[name], time) for name, time in longest if time >= _LEAST_LINE * span_ns]


def _row(profile: Profile) -> int | None:
    rows = (int(row) for row in profile.children(0))
    return next((row for row in rows if profile.name(row) == NOT_RECORDED), None)


def _total(profile: Profile, name: str) -> int | None:
    column = profile.columns.get(name)
    if column is None or not column.kind.is_number or not column.valid.any():
        return None
    total = float(profile.inclusive(name)[0])
    return int(total) if 0 <= total < _MOST_NS else None


def _is_one(profile: Profile) -> bool:
    return not profile.provenance.get("parts")


def _before_ns(profile: Profile) -> int | None:
    facts: Mapping[str, object] = profile.provenance
    began, started = facts.get("process_start_time_ns"), facts.get("start_time_ns")
    if type(began) is not int or type(started) is not int or not 0 <= started - began < _MOST_NS:
        return None
    return started - began
