"""``proton_bench.bench``: how long a function takes, kernel by kernel."""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton_bench.errors import UsageError
from proton_bench.model.frame import FrameKind
from proton_bench.recording.native import native
from proton_bench.recording.session.output import check_writable
from proton_bench.recording.session.output_name import split_suffix
from proton_bench.rounds.cuda import UseOfCuda
from proton_bench.rounds.in_profile import profile_of
from proton_bench.rounds.kernels import KernelRecording, timed
from proton_bench.rounds.measurement import (
    ROUNDS,
    Device,
    Kernels,
    Measurement,
    Plan,
    interval_of,
    median_of,
)
from proton_bench.rounds.record import BenchmarkRecord
from proton_bench.support.units import count_text, duration_text

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile

SCHEMA = "proton_bench.bench"
VERSION = (1, 0)
_BUDGET_S = 0.1
_CACHES = ("cold", "warm")
_CLOCKS = {
    "kernels": "kernels",
    "gpu": "between events of the GPU, which include pauses",
    "cpu": "on the CPU's clock",
}
_MOST_KERNELS = 10
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Times:
    """Times of one thing in all rounds, for one call.

    Attributes:
        median_ns: Their median.
        interval_ns: The 95 % interval of the median, over the rounds of this process.
    """

    median_ns: float
    interval_ns: tuple[float, float]

    @classmethod
    def of(cls, times_ns: Sequence[float], tick_ns: float = 0.0) -> Times:
        """Return the times of rounds by a clock with this smallest step."""
        return cls(median_of(times_ns, tick_ns), interval_of(times_ns, tick_ns))

    def __str__(self) -> str:
        low, high = (duration_text(each) for each in self.interval_ns)
        return f"{duration_text(self.median_ns)} [{low}, {high}]"

    def to_document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"median_ns": self.median_ns, "interval_ns": list(self.interval_ns)}


@dataclass(frozen=True, slots=True)
class KernelTimes(Times):
    """Times of one kernel, or kind of copy, in one call.

    Attributes:
        count: How often it runs in a call, on average.
    """

    count: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class BenchResult:
    """What `bench` measured; ``float()`` of it is the median in milliseconds.

    Attributes:
        name: Name of the benchmark.
        clock: What the times are: ``kernels`` (the sum of the times of all kernels and copies of a
            call, where those that overlap count twice), ``gpu`` (between two events, where no
            backend records kernels) or ``cpu`` (of a function that uses no GPU).
        cache: ``cold``, ``warm``, or "" on the CPU.
        graph: Whether replays of a CUDA graph were timed.
        total: Times of a call.
        span: From the start of the first kernel to the end of the last; None without kernels.
        kernels: Times of each kernel, the longest first.
        times_ns: Time of a call in each round.
        warmup_rounds: Calls before the rounds.
        note: Why kernels or copies were not recorded, "" if they were or there is no GPU.
        profile: The rounds and their kernels, as the gate reads them.
    """

    name: str
    clock: str
    cache: str
    graph: bool
    total: Times
    span: Times | None
    kernels: Mapping[str, KernelTimes]
    times_ns: tuple[float, ...]
    warmup_rounds: int
    note: str
    profile: Profile

    @property
    def median_ns(self) -> float:
        """Median time of a call."""
        return self.total.median_ns

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the median, in ns."""
        return self.total.interval_ns

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.times_ns)

    def __float__(self) -> float:
        return self.median_ns / 1e6

    def __str__(self) -> str:
        how = [_CLOCKS[self.clock], *([f"{self.cache} L2"] if self.cache else [])]
        how += ["graph"] if self.graph else []
        rounds = f"{count_text(self.rounds, 'round')} after {self.warmup_rounds} to warm up"
        lines = [f"{self.name}: {self.total} {', '.join(how)}; {rounds}"]
        for name, each in list(self.kernels.items())[:_MOST_KERNELS]:
            short = name if len(name) <= _WIDTH else f"{name[: _WIDTH - 3]}..."
            lines.append(f"  {each}  {each.count:g} x {short}")
        if len(self.kernels) > _MOST_KERNELS:
            lines.append(f"  and {count_text(len(self.kernels) - _MOST_KERNELS, 'more kernel')}")
        if self.span is not None:
            lines.append(f"  {self.span}  from the first start to the last end")
        lines += [f"  {self.note}"] if self.note else []
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a profile that `proton gate`, `diff` and `view` read, and return its file.

        Args:
            path: File to write; without the suffix of a format ``.proton`` is added.

        Raises:
            UsageError: It names no file, or its format is read but not written.
            OutputError: It cannot be written.
        """
        from proton_bench.formats.registry import output_file, write_profile

        file = output_file(path)
        write_profile(self.profile, file)
        return file

    def to_document(self) -> dict[str, Any]:
        """Return plain values for JSON, schema ``proton_bench.bench``."""
        return {
            "schema": SCHEMA,
            "version": list(VERSION),
            "name": self.name,
            "clock": self.clock,
            "cache": self.cache,
            "graph": self.graph,
            **self.total.to_document(),
            "span": None if self.span is None else self.span.to_document(),
            "kernels": [
                {"name": name, "count": each.count, **each.to_document()}
                for name, each in self.kernels.items()
            ],
            "times_ns": list(self.times_ns),
            "warmup_rounds": self.warmup_rounds,
            "note": self.note,
        }


def bench(  # noqa: PLR0913 - what replaces do_bench takes as much
    fn: Callable[..., object],
    /,
    *args: Any,
    cache: str = "cold",
    graph: bool = False,
    max_time: float = _BUDGET_S,
    rounds: int | None = None,
    name: str | None = None,
    output: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> BenchResult:
    """Measure how long a function takes on the GPU, or on the CPU if it uses none.

    It is called until its times are steady, and then in rounds.

    Args:
        fn: The function.
        *args: Its arguments.
        cache: ``cold`` overwrites the GPU's L2 cache before each round, ``warm`` leaves it.
        graph: Capture one call into a CUDA graph and time its replays.
        max_time: Time of all rounds, in seconds; at least 5 rounds run, and at most 1000.
        rounds: Number of rounds instead.
        name: Name of the benchmark; that of the function by default.
        output: File for `BenchResult.save`.
        **kwargs: Its named arguments; those named as arguments of this function need a
            ``functools.partial``.

    Raises:
        UsageError: It is not a function, an argument is wrong, or a graph is being captured.
        OutputError: The file cannot be written.
    """
    plan = _plan(cache, graph=graph, max_time=max_time, rounds=rounds)
    _check(fn)
    if output is not None:
        _check_output(output)
    call = functools.partial(fn, *args, **kwargs)
    use = UseOfCuda(call)
    result = call()
    device = Device.CUDA if plan.cudagraph or use.seen(result) else Device.CPU
    del result
    name = _name(fn) if name is None else name

    @contextmanager
    def around(step: str) -> Iterator[None]:
        with native.scope(name), native.scope(step):  # the session begins after a scope around all
            yield

    measurement, recording = timed(call, plan, device=device, around=around)
    found = _result(name, plan, measurement, recording=recording)
    if output is not None:
        found.save(output)
    return found


def _plan(cache: str, *, graph: bool, max_time: float, rounds: int | None) -> Plan:
    if cache not in _CACHES:
        raise UsageError(f"cache={cache!r}: expected 'cold' or 'warm'")
    if not (hasattr(max_time, "__float__") and 0.0 < max_time < math.inf):
        raise UsageError(f"max_time={max_time!r}: expected a number of seconds above 0")
    if rounds is not None and not (hasattr(rounds, "__index__") and rounds >= 1):
        raise UsageError(f"rounds={rounds!r}: expected a whole number, 1 or more")
    return Plan(rounds=rounds, max_time_s=max_time, flush_l2=cache == "cold", cudagraph=graph)


def _check_output(output: str | os.PathLike[str]) -> None:
    from proton_bench.formats.registry import output_file

    stem, _ = split_suffix(os.path.abspath(output_file(output)))
    check_writable(stem)


def _check(fn: Callable[..., object]) -> None:
    if not callable(fn):
        raise UsageError(f"bench takes a function and its arguments, not {fn!r}")
    if inspect.iscoroutinefunction(fn):
        raise UsageError(
            "bench calls plain functions: give one that runs the coroutine, such as "
            "lambda: asyncio.run(main())"
        )
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and torch.cuda.is_initialized()
        and torch.cuda.is_current_stream_capturing()
    ):
        raise UsageError("bench waits for the GPU, which a graph capture forbids: call it outside")


def _name(fn: Callable[..., object]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__qualname__", None) or type(fn).__qualname__)


def _result(
    name: str, plan: Plan, measurement: Measurement, *, recording: KernelRecording | None
) -> BenchResult:
    on_gpu = measurement.device is Device.CUDA
    record = BenchmarkRecord.of(
        name, plan, measurement, path=((name, FrameKind.SCOPE), (ROUNDS, FrameKind.SCOPE))
    )
    own = _facts() if recording is None else recording.profile
    rows, kernels = profile_of([record]), measurement.kernels
    return BenchResult(
        name=name,
        clock=record.clock,
        cache=("cold" if plan.flush_l2 else "warm") if on_gpu else "",
        graph=plan.cudagraph,
        total=Times.of(record.gated_ns, record.tick_ns),
        span=None if kernels is None else Times.of(kernels.span_ns.tolist(), kernels.tick_ns),
        kernels={} if kernels is None else _kernel_times(kernels),
        times_ns=record.gated_ns,
        warmup_rounds=measurement.warmup_calls // measurement.calls,
        note="" if recording is None else recording.problem,
        profile=rows if own is None else type(own).merge([own, rows]),
    )


def _facts() -> Profile | None:
    """Return a profile of nothing, which says where and when this process ran."""
    with KernelRecording("cpu") as recording:
        pass
    return recording.profile


def _kernel_times(kernels: Kernels) -> dict[str, KernelTimes]:
    found = {}
    for place, name in enumerate(kernels.names):
        times = Times.of(kernels.times_ns[:, place].tolist(), kernels.tick_ns)
        count = float(kernels.counts[place])
        found[name] = KernelTimes(times.median_ns, times.interval_ns, count)
    return found
