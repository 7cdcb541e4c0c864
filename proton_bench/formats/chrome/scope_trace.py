"""Chrome's trace format for scopes inside kernels, as upstream writes it, in true nanoseconds."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.support.text import json_text

# Chrome's names of colours; a scope's id chooses one.
_COLOURS = (
    "cq_build_passed",
    "cq_build_failed",
    "thread_state_iowait",
    "thread_state_running",
    "thread_state_runnable",
    "thread_state_unknown",
    "rail_response",
    "rail_idle",
    "rail_load",
    "cq_build_attempt_passed",
    "cq_build_attempt_failed",
)
_UNKNOWN_CLOCK_HZ = 1_000_000_000  # as upstream takes it for all devices
_LEAST_CLOCK_HZ = 1_000_000  # below it 43 bits of clock cannot be a time
_WRAP = (1 << 64) - 1  # times come from a device's memory and may be anything


class Program(msgspec.Struct, array_like=True, gc=False):
    """When one program of a kernel ran, on the device's timer, and which instances are its own."""

    program: int
    processor: int
    init_ns: int
    pre_final_ns: int
    post_final_ns: int
    first: int
    count: int
    last_cycle: int
    is_lossy: int


@dataclass(frozen=True, slots=True)
class ScopeLaunch:
    """One launch of an instrumented kernel.

    Attributes:
        path: Names from ROOT to the kernel.
        device: Position of the device, below 0 if unknown.
        device_name: Kind and index, ``CUDA:1``; "" if unknown.
        clock_hz: Rate of the clock that counts cycles; 0 if unknown.
        scope_names: Name of each scope.
        programs: Fields of each `Program`.
        instances: A row for each scope: start cycle, cycles, warp, warp of the end, scope, and
            whether it is asynchronous.
    """

    path: Sequence[str]
    device: int
    device_name: str
    clock_hz: int
    scope_names: Sequence[str]
    programs: Sequence[Sequence[int]]
    instances: npt.NDArray[np.uint64]

    @property
    def hz(self) -> int:
        """Rate of the clock, upstream's guess if it is not known."""
        return self.clock_hz if self.clock_hz >= _LEAST_CLOCK_HZ else _UNKNOWN_CLOCK_HZ

    @property
    def device_suffix(self) -> str:
        """What rows of all devices but the first have in their names."""
        return f" {self.device_name}" if self.device > 0 and self.device_name else ""

    def ran(self) -> list[Program]:
        """Return the programs."""
        return [Program(*fields) for fields in self.programs]


def write_scope_trace(launches: Sequence[ScopeLaunch], *, upstream_shape: bool) -> bytes:
    """Return the whole file, with one event per scope, in a lane of its warp.

    Args:
        launches: What was recorded, in order.
        upstream_shape: Leave out the events of programs in lanes of their processors.
    """
    times = (program.init_ns for launch in launches for program in launch.ran())
    trace = _Trace(min(times, default=0))
    events = itertools.chain.from_iterable(map(trace.launch, launches))
    if not upstream_shape:
        events = itertools.chain(events, trace.processors(launches))
    base = f'"baseTimeNanoseconds":{_signed(trace.base_ns)},' if trace.base_ns else ""
    content = io.BytesIO()
    content.write(f'{{{base}"displayTimeUnit":"ns","traceEvents":['.encode())
    comma = ""
    for event in events:
        content.write(f"{comma}{event}".encode())
        comma = ","
    content.write(b"]}\n")
    return content.getvalue()


@dataclass(frozen=True, slots=True)
class _Row:
    """What events of one program or processor share, as JSON."""

    arguments: str
    process: str

    def event(
        self, words: tuple[str, str, str], times_ps: tuple[int, int], *, colour: int, mark: str = ""
    ) -> str:
        """Return an event of a name, a category and a thread, from one time for another."""
        name, category, thread = words
        start_ps, duration_ps = times_ps
        return (
            f'{{"args":{{{self.arguments}}},{mark}"cat":{category},'
            f'"cname":"{_COLOURS[colour % len(_COLOURS)]}","dur":{_microseconds(duration_ps)},'
            f'"name":{name},"ph":"X","pid":{self.process},"tid":"{thread}",'
            f'"ts":{_microseconds(start_ps)}}}'
        )


class _Trace:
    """Writes the events of one file."""

    def __init__(self, base_ns: int) -> None:
        self.base_ns = base_ns
        self._links = 0

    def launch(self, launch: ScopeLaunch) -> Iterator[str]:
        """Yield the events of scopes."""
        path = json_text(msgspec.json.encode(list(launch.path)).decode())
        for program in launch.ran():
            arguments = {
                "Finalization Time (ns)": _signed(program.post_final_ns - program.pre_final_ns),
                "Frequency (MHz)": launch.hz / 1e6,
                "Init Time (ns)": _signed(program.init_ns),
                "Post Final Time (ns)": _signed(program.post_final_ns),
            }
            process = f"{launch.path[-1]} Core{program.processor} CTA{program.program}"
            row = _Row(
                ",".join(f'"{key}":{value!r}' for key, value in arguments.items())
                + f',"call_stack":{path}',
                _quoted(process + launch.device_suffix),
            )
            yield from self._scopes(launch, program, row)

    def _scopes(self, launch: ScopeLaunch, program: Program, row: _Row) -> Iterator[str]:
        hz, origin_ps = launch.hz, self._first_cycle_ps(launch, program)
        kernel, names = _quoted(launch.path[-1]), [_quoted(name) for name in launch.scope_names]
        own = launch.instances[program.first : program.first + program.count].tolist()
        lanes, warp = _Lanes(), 0
        for start, cycles, own_warp, end_warp, scope, is_async in sorted(
            own, key=lambda each: (each[2], each[0], -each[1])
        ):
            if own_warp != warp:
                lanes, warp = _Lanes(), own_warp
            start_ps, end_ps = _picoseconds(start, hz), _picoseconds(start + cycles, hz)
            if own_warp == end_warp:
                lane = lanes.place(start, start + cycles)
                category = '"async"' if is_async else kernel
                words = names[scope], category, f"warp {warp} (line {lane})"
                yield row.event(words, (origin_ps + start_ps, end_ps - start_ps), colour=scope)
                continue
            self._links += 1  # two marks, which viewers join by an arrow
            for way, at_warp, at_ps in (("out", own_warp, start_ps), ("in", end_warp, end_ps)):
                words = names[scope], '"flow"', f"warp {at_warp} (line 0)"
                mark = f'"bind_id":{self._links},"flow_{way}":true,'
                yield row.event(words, (origin_ps + at_ps, 0), colour=scope, mark=mark)

    def _first_cycle_ps(self, launch: ScopeLaunch, program: Program) -> int:
        """Return where cycle 0 is.

        The first record closely follows the reading of ``init_ns``; if it was replaced, the last
        record precedes ``pre_final_ns``.
        """
        init_ps = self._from_base_ps(program.init_ns)
        if not program.is_lossy or program.pre_final_ns < program.init_ns:
            return init_ps
        final_ps = self._from_base_ps(program.pre_final_ns)
        return max(init_ps, final_ps - min(_picoseconds(program.last_cycle, launch.hz), final_ps))

    def _from_base_ps(self, time_ns: int) -> int:
        return (time_ns - self.base_ns) * 1000 & _WRAP

    def processors(self, launches: Sequence[ScopeLaunch]) -> Iterator[str]:
        """Yield which programs each processor ran, and when."""
        runs: dict[tuple[int, int], list[tuple[ScopeLaunch, Program]]] = {}
        for launch in launches:
            for program in launch.ran():
                if program.post_final_ns >= program.init_ns:
                    place = (launch.device, program.processor)
                    runs.setdefault(place, []).append((launch, program))
        for (_, processor), its_runs in sorted(runs.items()):
            row = _Row("", _quoted(f"Cores{its_runs[0][0].device_suffix}"))
            lanes = _Lanes()
            for launch, program in sorted(its_runs, key=lambda run: run[1].init_ns):
                name = _quoted(f"{launch.path[-1]} CTA{program.program}")
                lane = lanes.place(program.init_ns, program.post_final_ns)
                start_ps = self._from_base_ps(program.init_ns)
                duration_ps = (program.post_final_ns - program.init_ns) * 1000 & _WRAP
                words = name, '"core"', f"Core {processor} (line {lane})"
                yield row.event(words, (start_ps, duration_ps), colour=program.program & 0xFF)


class _Lanes:
    """Ranges that overlap in time are in different lanes: a range goes to the first free one."""

    def __init__(self) -> None:
        self._ends: list[int] = []

    def place(self, start: int, end: int) -> int:
        """Return the lane of a range; they come by ascending start, the longer one first."""
        for lane, busy_until in enumerate(self._ends):
            if busy_until <= start:
                self._ends[lane] = end
                return lane
        self._ends.append(end)
        return len(self._ends) - 1


def _picoseconds(cycles: int, hz: int) -> int:
    return (2 * cycles * 10**12 + hz) // (2 * hz)


def _microseconds(picoseconds: int) -> str:
    whole, rest = divmod(picoseconds & _WRAP, 1_000_000)
    return f"{whole}.{f'{rest:06}'.rstrip('0') or '0'}"


def _signed(number: int) -> int:
    number &= _WRAP
    return number - (1 << 64) if number >> 63 else number


def _quoted(text: str) -> str:
    return json_text(msgspec.json.encode(text).decode())
