"""What the main thread of a run did: recorded work, or something else, and while the GPU waited."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.recorded import run_ns
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.model import preorder
from proton_bench.model.frame import COLLECTION_NAME, FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.spans import Spans, is_span, spans_of
from proton_bench.model.profile import Profile

__all__ = [
    "HOST_METRICS",
    "HOST_WALL",
    "IDLE",
    "IMPORTS",
    "NOT_RECORDED",
    "OTHER_THREADS",
    "HostPath",
    "RunTime",
    "host_paths",
    "host_recorded_ns",
    "host_spans",
    "import_rows",
    "is_runner",
    "other_threads",
    "own_lines",
    "run_time_of",
]

HOST_WALL = "host_wall (ns)"
IDLE = "idle (ns)"
OTHER_THREADS = "other_threads (ns)"
NOT_RECORDED = "<not recorded>"
IMPORTS = "imports"
# Samples say where the main thread was, also in a program that launched and entered nothing.
HOST_METRICS = frozenset({HOST_WALL, IDLE, OTHER_THREADS})

_WALL = "wall (ns)"
_SPAN = MetricSpec(_WALL, Aggregation.EXCLUSIVE)
_MADE = "<string>:"  # such as the methods of a dataclass
_TOP_LEVEL = "<module>"
# Frames of these run a program, or a cell of a notebook, whose top level is not imported.
_RUNNERS = re.compile(
    r"<frozen runpy>|.*/runpy\.py|.*/(IPython|ipykernel)/.*"
    r"|.*/proton_bench/(cli/notebook|recording/profiled)\.py",
    re.DOTALL,
)
Mask = npt.NDArray[np.bool_]

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
        host_not_recorded_ns: Time of the main thread outside of them: the rows ``<not recorded>``,
            and pytest's collection of tests.
        imports_ns: The part of it in imports and in the collection.
        before_ns: From the start of the process to the start of the recording. How long the
            process goes on after the end is not known when the file is written.
    """

    wall_ns: int | None = None
    gpu_busy_ns: int | None = None
    gpu_idle_ns: int | None = None
    host_recorded_ns: int | None = None
    host_not_recorded_ns: int | None = None
    imports_ns: int | None = None
    before_ns: int | None = None

    @property
    def is_sampled(self) -> bool:
        """Whether the main thread was sampled."""
        return self.host_not_recorded_ns is not None

    @property
    def host_parts(self) -> dict[str, int]:
        """What the main thread did, by name; the times add up to the run.

        Without samples there are none. ``not sampled`` is time while the session did not record.
        """
        if self.host_recorded_ns is None or self.host_not_recorded_ns is None:
            return {}
        imports_ns = self.imports_ns or 0
        parts = {
            "in recorded work": self.host_recorded_ns,
            f"in {IMPORTS}": imports_ns,
            "in other code": self.host_not_recorded_ns - imports_ns,
        }
        known_ns = sum(parts.values())
        left_ns = (self.wall_ns or 0) - known_ns
        return {**parts, "not sampled": left_ns} if left_ns > _LEAST_LINE * known_ns else parts


@dataclass(frozen=True, slots=True)
class HostPath:
    """A place in Python code at which the main thread was outside of recorded work.

    Attributes:
        row: Its row.
        path: Names of its frames, ``file:line@function``, outermost first; empty where none is
            known, such as after the last line of the program.
        wall_ns: Time of the main thread at this line, without that in frames below it.
        idle_ns: The part of it in which no device worked; None if no device was recorded.
        is_import: Whether it is in an import.
    """

    row: int
    path: tuple[str, ...]
    wall_ns: int
    idle_ns: int | None
    is_import: bool = False


def host_spans(profile: Profile) -> Spans:
    """Return the wall time of each row: measured where it was timed, by samples elsewhere.

    Samples of the main thread are some milliseconds apart, and other threads have none. What ran on
    several threads at the same time was timed on each: it has the samples of the main thread, so
    that no row has more than the run. The root has the length of the run.

    Args:
        profile: A profile with `HOST_WALL`.
    """
    sampled = profile.columns[HOST_WALL]
    nothing = np.zeros(len(profile), dtype=np.int64)
    is_timed = _WALL in profile.columns and is_span(profile.columns[_WALL])
    wall = (
        profile.columns[_WALL]
        if is_timed
        else MetricColumn(_SPAN, ValueKind.INT, nothing, nothing > 0)
    )
    spans = spans_of(profile, wall)
    timed = spans.has_own & ~_below(profile, _tops(profile))
    on_main = profile.inclusive(HOST_WALL)
    timed &= ~(_is_on_others(profile) & ((on_main > 0) | (spans.whole > on_main[0])))
    timed[0] = False
    own = np.where(timed, spans.own, np.where(sampled.known, sampled.values, 0))
    whole = np.where(timed, spans.whole, preorder.sums(profile.parents, own))
    whole[0] = on_main[0]
    has_own = timed | sampled.known
    return Spans(own, whole, has_own, preorder.sums(profile.parents, has_own) > 0)


def _is_on_others(profile: Profile) -> Mask:
    """Return for each row whether it or a row below it was seen on another thread."""
    column = profile.columns.get(OTHER_THREADS)
    if column is None or not column.kind.is_number:
        return np.zeros(len(profile), dtype=np.bool_)
    found: Mask = profile.inclusive(OTHER_THREADS) > 0
    return found


def run_time_of(profile: Profile) -> RunTime:
    """Return where the time of a run went."""
    wall_ns = run_ns(profile)
    total_ns, idle_ns = _total(profile, HOST_WALL), _total(profile, IDLE)
    busy = [use.busy_ns for use in profile.device_use if use.scope is None]
    busy_ns = sum(busy) if busy else None
    if len(busy) == 1 and wall_ns is not None and _is_one(profile):
        idle_ns = max(0, wall_ns - busy[0])  # samples are coarser
    recorded_ns = host_recorded_ns(profile)
    other_ns = imports_ns = None
    if total_ns is not None and recorded_ns is not None:
        other_ns = total_ns - recorded_ns
        imports_ns = _own(profile, HOST_WALL, import_rows(profile))
    before_ns = _before_ns(profile)
    return RunTime(wall_ns, busy_ns, idle_ns, recorded_ns, other_ns, imports_ns, before_ns)


def host_recorded_ns(profile: Profile) -> int | None:
    """Return the time of the main thread in recorded work, None if it was not sampled."""
    total_ns = _total(profile, HOST_WALL)
    if total_ns is None:
        return None
    outside = _below(profile, _tops(profile)) | _below(profile, _collections(profile))
    return max(0, total_ns - _own(profile, HOST_WALL, outside))


def other_threads(profile: Profile) -> tuple[int, int, int]:
    """Return where threads besides the main one were: time in ns in recorded work and elsewhere.

    The third number is the row of recorded work with most of it. All are 0 without samples.
    """
    column = profile.columns.get(OTHER_THREADS)
    if column is None or not column.kind.is_number:
        return 0, 0, 0
    outside = _below(profile, _tops(profile))
    spent = np.where(column.known & ~outside, column.values, 0)
    return int(spent.sum()), _own(profile, OTHER_THREADS, outside), int(spent.argmax())


def import_rows(profile: Profile) -> Mask:
    """Return for each row whether it is time in an import, or in pytest's collection of tests.

    Modules are imported where their top level runs below another frame.
    """
    found = _below(profile, _collections(profile))
    parents, frames, strings = profile.parents.tolist(), profile.frames.tolist(), profile.strings
    for top in _tops(profile):
        for row in range(top + 1, int(profile.subtree_end[top])):
            above = parents[row]
            is_import, is_top_level, _ = _import_traits(strings[frames[row]])
            if is_top_level and above != top:
                is_import |= not _import_traits(strings[frames[above]])[2]
            found[row] = found[above] or is_import
    return found


def is_runner(name: str) -> bool:
    """Return whether a frame only runs a program, or a cell of a notebook."""
    frame = parse_frame(name)
    return frame is not None and _RUNNERS.fullmatch(frame.file) is not None


@functools.lru_cache(maxsize=1 << 14)
def _import_traits(name: str) -> tuple[bool, bool, bool]:
    """Return whether a frame imports, is the top level of a module, and runs programs."""
    frame = parse_frame(name)
    if frame is None:
        return name == IMPORTS, False, False  # the import system itself, as it was recorded
    is_top_level = frame.function == _TOP_LEVEL and not frame.file.startswith("<")
    is_package = is_top_level and frame.file.endswith("/__init__.py")
    is_importlib = frame.function == "import_module" and "/importlib/" in frame.file
    return is_package or is_importlib, is_top_level, is_runner(name)


def host_paths(profile: Profile, *, by: Literal["idle", "wall"] = "wall") -> tuple[HostPath, ...]:
    """Return the places below ``<not recorded>`` where the main thread was, largest first.

    Args:
        profile: A profile with samples of the host; others have no such places.
        by: Order by all time, or by the part in which no device worked.
    """
    wall = profile.columns.get(HOST_WALL)
    if wall is None or not wall.kind.is_number:
        return ()
    idle = profile.columns.get(IDLE)
    idle = idle if idle is not None and idle.kind.is_number else None
    rows = np.flatnonzero(_below(profile, _tops(profile)) & wall.known)
    order = wall.values[rows]
    if by == "idle":
        if idle is None:
            return ()
        order = np.where(idle.known[rows], idle.values[rows], 0)
        rows, order = rows[order > 0], order[order > 0]
    chosen = rows[np.argsort(-order, kind="stable")]
    imports = import_rows(profile)
    return tuple(
        HostPath(
            row=int(row),
            path=_path_below_top(profile, int(row)),
            wall_ns=int(wall.values[row]),
            idle_ns=None if idle is None else int(idle.values[row]) if idle.known[row] else 0,
            is_import=bool(imports[row]),
        )
        for row in chosen
    )


def own_lines(
    profile: Profile, span_ns: float, *, by: Literal["idle", "wall"] = "idle"
) -> list[tuple[str, str, int]]:
    """Return the few lines of own code where the main thread was longest.

    Each has its name as recorded, its name to show, and its time in ns.

    Time in a library, and in code that it made, counts for the innermost line of own code that
    called it, or else for its outermost line. All imports are one line. Lines with less than 1 %
    of the run are left out.

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
            line = IMPORTS if found.is_import else own[-1] if own else frames[0]
            spent[line] = spent.get(line, 0) + time_ns
    texts = {IMPORTS: IMPORTS, **frame_texts(spent, places)}
    longest = sorted(spent.items(), key=lambda each: -each[1])[:_MOST_LINES]
    return [(name, texts[name], time) for name, time in longest if time >= _LEAST_LINE * span_ns]


def _tops(profile: Profile) -> list[int]:
    """Return the rows ``<not recorded>``: one, or one of each merged process."""
    return _named(profile, NOT_RECORDED)


def _collections(profile: Profile) -> list[int]:
    rows = _named(profile, COLLECTION_NAME)
    return [row for row in rows if profile.kinds[row] == FrameKind.TEST]


def _named(profile: Profile, name: str) -> list[int]:
    is_name = np.array([text == name for text in profile.strings], dtype=np.bool_)
    rows: list[int] = np.flatnonzero(is_name[profile.frames]).tolist()
    return rows


def _below(profile: Profile, tops: Sequence[int]) -> Mask:
    """Return for each row whether it is one of these or below one."""
    found = np.zeros(len(profile), dtype=np.bool_)
    for top in tops:
        found[top : int(profile.subtree_end[top])] = True
    return found


def _path_below_top(profile: Profile, row: int) -> tuple[str, ...]:
    path = profile.path(row)
    return path[path.index(NOT_RECORDED) + 1 :]


def _own(profile: Profile, name: str, rows: Mask) -> int:
    column = profile.columns[name]
    return int(column.values[rows & column.known].sum())


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
