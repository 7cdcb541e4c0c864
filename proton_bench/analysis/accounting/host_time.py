"""What the main thread of a run did: recorded work, or something else, and while the GPU waited."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from proton_bench.analysis.accounting.device_use import runs_on_devices
from proton_bench.analysis.metrics.formula import SECONDS, find_metric
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.model import preorder
from proton_bench.model.arrays import Floats, Indexes, Integers, Mask
from proton_bench.model.frame import COLLECTION_NAME, FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import WALL, Ranges, is_span, ranges_of
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL, steps_in


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded time and the duration of the run.

    Attributes:
        run_ns: From the start of the recording to its end, of all processes together.
        work_ns: Time of all launches and operators, summed over devices, streams and threads: it
            may exceed the run.
        scopes_ns: Time in outermost scopes, summed over threads; None if none was timed.
    """

    run_ns: int
    work_ns: float
    scopes_ns: float | None = None

    @property
    def share(self) -> float:
        """The work as a share of the run."""
        return self.work_ns / self.run_ns

    @property
    def parts(self) -> dict[str, float]:
        """Where the run went, by name; the times add up to it.

        {} if work or scopes lasted longer than the run, because several ran at the same time.
        """
        covered_ns = max(self.work_ns, self.scopes_ns or 0.0)
        if covered_ns > self.run_ns:
            return {}
        return {
            "in recorded work": self.work_ns,
            "elsewhere in scopes": covered_ns - self.work_ns,
            "not recorded": self.run_ns - covered_ns,
        }


def recorded_of(profile: Profile) -> Recorded | None:
    """Return the recorded times of a run, None if the file does not say its duration."""
    length = run_ns(profile)
    if length is None:
        return None
    work = 0.0
    full = find_metric("time", profile.columns)
    if full is not None and profile.columns[full].kind.is_number:
        unit = SECONDS.get(profile.columns[full].spec.unit, 0.0) / SECONDS["ns"]
        work = float(profile.inclusive(full)[0]) * unit
    return Recorded(length, work, _outermost_ns(profile))


def run_ns(profile: Profile) -> int | None:
    """Return the duration of a recording without its pauses, None if unknown.

    Durations of merged processes are added up.
    """
    parts = profile.provenance.get("parts")
    lengths = [_length(part) for part in (parts if isinstance(parts, tuple) else ())]
    if not lengths:
        return _length(profile.provenance)
    return sum(filter(None, lengths)) if all(lengths) else None


def _length(facts: Any) -> int | None:
    if not isinstance(facts, Mapping):
        return None
    recorded = facts.get("recorded_ns")  # without pauses
    if type(recorded) is int:
        return recorded if 0 < recorded < _MOST_NS else None
    started, ended = (facts.get(f"{what}_time_ns") for what in ("start", "end"))
    if type(started) is not int or type(ended) is not int:  # a flag is an int too
        return None
    windows = facts.get("windows")
    length = ended - started
    if isinstance(windows, tuple):
        # Only the newest are kept.
        length = _windows_ns(windows, ended) if facts.get("window_count") == len(windows) else 0
    return length if 0 < length < _MOST_NS else None


def _windows_ns(windows: tuple[Any, ...], ended: int) -> int:
    """Return the length of windows, of which the last one was open when the file was written."""
    known = [window for window in windows if isinstance(window, Mapping)]
    bounds = [(window.get("begin_ns"), window.get("end_ns", ended)) for window in known]
    return sum(end - begin for begin, end in bounds if type(begin) is type(end) is int)


def _outermost_ns(profile: Profile) -> float | None:
    """Return the sum of wall times of rows without an ancestor with a wall time."""
    column = next(filter(is_span, profile.columns.values()), None)
    if column is None or not column.known.any():
        return None
    timed = np.flatnonzero(column.known)
    ends = np.maximum.accumulate(np.append(0, profile.subtree_end[timed]))[:-1]
    outermost = timed[timed >= ends]
    total = float(column.values[outermost].astype(np.float64).sum())
    return total * SECONDS[column.spec.unit] / SECONDS["ns"]


IDLE = "idle (ns)"
OTHER_THREADS = "other_threads (ns)"
NOT_RECORDED = "<not recorded>"
IMPORTS = "imports"

_SPAN = MetricSpec(WALL, Aggregation.EXCLUSIVE)
_USUAL_HZ, _SLACK = 100.0, 2.0
_MADE = "<string>:"  # such as the methods of a dataclass
_TOP_LEVEL = "<module>"
_INPUT, _COMPILATION = "enumerate(DataLoader)#", " (dynamo_timed)"  # in names of torch's ranges
# Frames of these run a program, or a cell of a notebook, whose top level is not imported.
_RUNNERS = re.compile(
    r"<frozen runpy>|.*/runpy\.py|.*/(IPython|ipykernel)/.*"
    r"|.*/proton_bench/(cli/notebook|recording/profiled)\.py",
    re.DOTALL,
)

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


@functools.lru_cache(maxsize=2)  # most reports ask several times
def with_measured_times(profile: Profile) -> Profile:
    """Return the profile with measured times of the host in place of samples, where rows have them.

    `HOST_WALL` is time of the main thread then, which adds up to the run, and `OTHER_THREADS` time
    of the others. What was timed on both is split by their samples. Rows without a time of their
    own share what is left of the timed row, or of the run, around them by their samples, which
    are some milliseconds apart.
    """
    sampled = profile.columns.get(HOST_WALL)
    if sampled is None or not sampled.kind.is_number or runs_on_devices(profile):
        return profile
    ranges = ranges_of(profile, _walls(profile))
    is_measured = (ranges.is_timed | (ranges.work > 0)) & ~_below(profile, _tops(profile))
    is_measured[0] = False
    if not bool(is_measured.any()):
        return profile
    zones = _zones(profile.parents, is_measured)
    main, others = own_numbers(profile, HOST_WALL), own_numbers(profile, OTHER_THREADS)
    on_main = _parts_on_main(profile, ranges, zones=zones, main=main, others=others)
    own = _own_times(ranges, np.where(is_measured, on_main, 0.0))
    own_ns = float(own.sum())
    # Samples begin a little later than the run.
    total_ns = max(float(main.sum()), min(own_ns, float(run_ns(profile) or 0)))
    own *= min(total_ns / own_ns, 1.0) if own_ns > 0 else 1.0
    own[0] = max(total_ns - float(own.sum()), 0.0)
    beside = _own_times(ranges, np.where(is_measured, 1.0 - on_main, 0.0))
    beside[0] = others[zones == 0].sum()
    columns = dict(profile.columns)
    for name, values, known in (
        (HOST_WALL, _spread(own, main, zones), main > 0),
        (OTHER_THREADS, _spread(beside, others, zones), others > 0),
    ):
        part = on_main if name == HOST_WALL else 1.0 - on_main
        valid = known | (values > 0) | (is_measured & (part > 0))
        if bool(valid.any()):
            whole_ns = np.rint(values).astype(np.int64)
            spec = MetricSpec(name, Aggregation.INCLUSIVE)
            columns[name] = MetricColumn(spec, ValueKind.INT, whole_ns, valid)
    return replace(profile, columns=columns)


def _walls(profile: Profile) -> MetricColumn:
    """Return the wall times of rows, without a value if none was recorded."""
    column = profile.columns.get(WALL)
    if column is not None and is_span(column):
        return column
    nothing = np.zeros(len(profile), dtype=np.int64)
    return MetricColumn(_SPAN, ValueKind.INT, nothing, nothing > 0)


def _zones(parents: Indexes, is_measured: Mask) -> Integers:
    """Return for each row itself if it was measured, else the nearest such row above, else 0."""
    zones = list(range(len(parents)))
    flags = is_measured.tolist()
    for row, above in enumerate(parents.tolist()):
        if above >= 0 and not flags[row]:
            zones[row] = zones[above]
    return np.array(zones, dtype=np.int64)


def _parts_on_main(
    profile: Profile, ranges: Ranges, *, zones: Integers, main: Floats, others: Floats
) -> Floats:
    """Return which part of the time of each measured row was on the main thread, from 0 to 1.

    Its own samples tell, or else those below it, or else the row around it: threads inherit the
    scopes that are open where they begin. Outermost rows without samples are on the main thread as
    far as the samples of other rows leave time for them there.
    """
    size = len(profile)
    parts = np.full(size, np.nan)
    for on_main, beside in (
        (np.bincount(zones, main, size), np.bincount(zones, others, size)),
        (preorder.sums(profile.parents, main), preorder.sums(profile.parents, others)),
    ):
        total = on_main + beside
        of_these = np.divide(on_main, total, out=np.full(size, np.nan), where=total > 0)
        parts = np.where(np.isnan(parts), of_these, parts)
    parts[0] = 1.0
    outer = zones[profile.parents]
    is_free = np.isnan(parts) & (outer == 0)
    free_ns = float((ranges.wall + ranges.work)[is_free].sum())
    parts[is_free] = 1.0
    if free_ns > 0 and bool((others[zones > 0] > 0).any()):
        known_ns = float(_own_times(ranges, np.where(is_free, 0.0, np.nan_to_num(parts))).sum())
        room_ns = max(float(main[zones > 0].sum()) - known_ns, 0.0) + _SLACK * _period_ns(profile)
        parts[is_free] = min(room_ns / free_ns, 1.0)
    for row in np.flatnonzero(np.isnan(parts)).tolist():
        parts[row] = parts[outer[row]]
    return parts


def _own_times(ranges: Ranges, part: Floats) -> Floats:
    """Return this part of the time of each row, without the rows inside it.

    Where the rows inside are longer together, because tasks take turns, they share its time.
    """
    times = replace(ranges, wall=ranges.wall * part, work=ranges.work * part)
    own = times.own()
    inside = times.wall + times.work - own
    is_over = times.is_timed & (own < 0) & (times.wall > 0)
    shrunk = np.divide(times.wall, inside, out=np.ones(len(own)), where=is_over)
    factors = [1.0] * len(own)
    shrinks = shrunk.tolist()
    for row, owner in enumerate(ranges.owners.tolist()[1:], 1):
        factors[row] = factors[owner] * shrinks[owner]
    own_times: Floats = np.maximum(own, 0.0) * np.array(factors)
    return own_times


def _spread(own: Floats, sampled: Floats, zones: Integers) -> Floats:
    """Return the time of each measured row spread over its rows by their samples, if it has any."""
    totals = np.bincount(zones, sampled, len(own))
    rates = np.divide(own, totals, out=np.zeros(len(own)), where=totals > 0)
    return np.where(totals[zones] > 0, sampled * rates[zones], own)


def _period_ns(profile: Profile) -> float:
    """Return the time for which one sample of the host stands; less in the mean of many steps."""
    rate_hz = profile.provenance.get("host_rate_hz")
    if not (isinstance(rate_hz, int | float) and 0 < rate_hz < math.inf):
        rate_hz = _USUAL_HZ
    return 1e9 / rate_hz / steps_in(profile)


def run_time_of(profile: Profile) -> RunTime:
    """Return where the time of a run went."""
    profile = with_measured_times(profile)
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
    profile = with_measured_times(profile)
    total_ns = _total(profile, HOST_WALL)
    if total_ns is None:
        return None
    return max(0, total_ns - _own(profile, HOST_WALL, _outside(profile)))


def recorded_times(profile: Profile) -> tuple[Floats, Floats]:
    """Return the time of each row of recorded work alone in ns: on the main thread and on others.

    Args:
        profile: A profile with `HOST_WALL`.
    """
    profile = with_measured_times(profile)
    inside = ~_outside(profile)
    return own_numbers(profile, HOST_WALL) * inside, own_numbers(profile, OTHER_THREADS) * inside


def _outside(profile: Profile) -> Mask:
    """Return for each row whether it is outside of recorded work."""
    outside = _below(profile, _tops(profile)) | _below(profile, _collections(profile))
    outside[0] = True
    return outside


def other_threads(profile: Profile) -> tuple[int, int, int]:
    """Return where threads besides the main one were: time in ns in recorded work and elsewhere.

    The third number is the row of recorded work with most of it. All are 0 without samples.
    """
    profile = with_measured_times(profile)
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


def is_input(name: str) -> bool:
    """Return whether a row is torch's own range in which a batch of a DataLoader is read."""
    return name.startswith(_INPUT)


def is_compilation(name: str) -> bool:
    """Return whether a row is a recorded range of torch in which it compiled."""
    return name.endswith(_COMPILATION)


def host_paths(profile: Profile, *, by: Literal["idle", "wall"] = "wall") -> tuple[HostPath, ...]:
    """Return the places below ``<not recorded>`` where the main thread was, largest first.

    Args:
        profile: A profile with samples of the host; others have no such places.
        by: Order by all time, or by the part in which no device worked.
    """
    profile = with_measured_times(profile)
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
    imports, paths = import_rows(profile), _paths_below_tops(profile)
    return tuple(
        HostPath(
            row=int(row),
            path=paths[int(row)],
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
    spent = own_line_times(profile, by=by)
    texts = {IMPORTS: IMPORTS, **frame_texts(spent, Places.of(profile.provenance))}
    longest = sorted(spent.items(), key=lambda each: -each[1])[:_MOST_LINES]
    return [(name, texts[name], time) for name, time in longest if time >= _LEAST_LINE * span_ns]


def own_line_times(
    profile: Profile, *, by: Literal["idle", "wall"] = "idle", leave_out: str = ""
) -> dict[str, int]:
    """Return the times of all such lines in ns, by their names as recorded.

    Args:
        profile: The profile as it was recorded.
        by: As above.
        leave_out: A part of names of files: no time that was spent there, or below.
    """
    places = Places.of(profile.provenance)
    spent: dict[str, int] = {}
    for found in host_paths(profile, by=by):
        frames = [each for each in found.path if parse_frame(each)]
        if leave_out and any(leave_out in each for each in frames):
            continue
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
    return spent


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


def _paths_below_tops(profile: Profile) -> dict[int, tuple[str, ...]]:
    parents, frames = profile.parents.tolist(), profile.frames.tolist()
    paths: dict[int, tuple[str, ...]] = {}
    for top in _tops(profile):
        paths[top] = ()
        for row in range(top + 1, int(profile.subtree_end[top])):
            paths[row] = (*paths[parents[row]], profile.strings[frames[row]])
    return paths


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
