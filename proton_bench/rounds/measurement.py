"""Times a function: calls until a round is long enough and times are steady, then rounds."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from proton_bench.model.benchmark_columns import WARM_UP

if TYPE_CHECKING:
    from proton_bench.model.arrays import Floats


class Device(StrEnum):
    """The device whose clock times a round."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a function is to be timed.

    Attributes:
        rounds: Number of rounds; None means as many as fit into ``max_time_s``.
        warmup: Calls before the first round, at least 1; None means until times are steady.
        max_time_s: Time limit of all rounds, if ``rounds`` is None.
        min_round_ns: Least time of a round on the CPU, which sets the number of calls.
        flush_l2: Whether the L2 cache of a GPU is emptied before each round.
        cudagraph: Whether a CUDA graph of one call is timed instead of the call.
        device: Device whose clock counts; None finds out.
    """

    rounds: int | None = None
    warmup: int | None = None
    max_time_s: float = 0.5
    min_round_ns: float = 100_000.0
    flush_l2: bool = True
    cudagraph: bool = False
    device: Device | None = None


# Returns a context manager for a named step.
Around = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class RoundTime:
    """Times of one round.

    Attributes:
        cpu_ns: On the CPU: until the work was done, or with a GPU's timer until it was submitted.
        gpu_ns: On the GPU; None if its clock was not read.
        window_ns: When it began and ended, by the clock of `time.monotonic_ns`.
    """

    cpu_ns: float
    gpu_ns: float | None = None
    window_ns: tuple[int, int] = (0, 0)

    @property
    def decisive_ns(self) -> float:
        """The GPU's time if there is one, else the CPU's."""
        return self.cpu_ns if self.gpu_ns is None else self.gpu_ns


class Timer(Protocol):
    """Begins and ends rounds."""

    @property
    def device(self) -> Device:
        """Whose clock counts."""

    def prepare(self) -> None:
        """Prepare a round, untimed."""

    def begin(self) -> None:
        """Begin a round."""

    def end(self) -> RoundTime:
        """End the round, wait until its work is done, and return its time."""


class CpuTimer:
    """Reads a clock of the CPU and waits for work given to a GPU."""

    device = Device.CPU
    clock = staticmethod(time.monotonic_ns)

    def __init__(self) -> None:
        self._begun_ns = 0

    def prepare(self) -> None:
        """Do nothing: rounds on the CPU need no preparation."""

    def begin(self) -> None:
        """Begin a round."""
        self._begun_ns = self.clock()

    def end(self) -> RoundTime:
        """End the round and return its time."""
        wait_for_gpu()
        return RoundTime(float(self.clock() - self._begun_ns))


def wait_for_gpu() -> None:
    """Wait for work that torch gave to a GPU; does nothing before there was any."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


# Warm-up is over once the medians of some batches of rounds are alike: the clock of a GPU rises
# with work, and falls some ten milliseconds later where it takes too much power.
_BATCH_NS = 10e6
_FEWEST_OF_BATCH, _MOST_OF_BATCH = 3, 50
_FEWEST_BATCHES, _MOST_BATCHES = 4, 10
_COMPARED = 3
_ALIKE = 1.01
_LEAST_ROUNDS = 5
_MOST_ROUNDS = 1000
_MOST_CALLS = 1 << 20
ROUNDS = "rounds"
_OUTSIDE = 0.025  # of an interval, at either end


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Kernels and copies of rounds.

    Attributes:
        names: Their names, those with the longest time first.
        times_ns: Time of each in each round; shape (rounds, names).
        counts: How often each ran in a round, on average.
        span_ns: Of each round, from the start of the first to the end of the last.
        tick_ns: Smallest step of the times.
    """

    names: tuple[str, ...]
    times_ns: Floats
    counts: Floats
    span_ns: Floats
    tick_ns: float

    @property
    def sums_ns(self) -> Floats:
        """Time of all in each round; what runs side by side counts twice."""
        found: Floats = self.times_ns.sum(axis=1)
        return found


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of the rounds of one process. All of them together are one replicate.

    Attributes:
        device: Whose clock counts.
        calls: Calls in each round.
        cpu_ns: Time of one call on the CPU, of each round.
        gpu_ns: Time of one call on the GPU, of each round; empty without a GPU's timer.
        warmup_calls: Calls to warm up and to find out how many make a round.
        windows_ns: When each round began and ended, by the clock of `time.monotonic_ns`.
        kernels: The kernels of each round, whose sums ``gpu_ns`` is; None where none was recorded.
    """

    device: Device
    calls: int
    cpu_ns: tuple[float, ...]
    gpu_ns: tuple[float, ...] = ()
    warmup_calls: int = 0
    windows_ns: tuple[tuple[int, int], ...] = ()
    kernels: Kernels | None = None


# Yields where calls belong and how many make a round, receives the time of each round.
_Schedule = Generator[tuple[str, int], RoundTime, Measurement]


def measure(
    call: Callable[[], object],
    timer: Timer,
    plan: Plan,
    *,
    around: Around,
) -> Measurement:
    """Time a function that has been called before.

    Args:
        call: The function.
        timer: Measures rounds.
        plan: How to time it.
        around: Returns a context manager for calls before the rounds (``"warm-up"``) or a round
            (``"rounds"``).
    """
    schedule = _schedule(timer.device, plan)
    name, calls = next(schedule)
    while True:
        timer.prepare()
        with around(name):
            timer.begin()
            for _ in repeat(None, calls):
                call()
            took = timer.end()
        try:
            name, calls = schedule.send(took)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def measure_coroutine(
    call: Callable[[], Awaitable[object]],
    timer: Timer,
    plan: Plan,
    *,
    around: Around,
) -> Measurement:
    """Time an async function; otherwise as `measure`."""
    schedule = _schedule(timer.device, plan)
    name, calls = next(schedule)
    while True:
        timer.prepare()
        with around(name):
            timer.begin()
            for _ in repeat(None, calls):
                await call()
            took = timer.end()
        try:
            name, calls = schedule.send(took)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _schedule(device: Device, plan: Plan) -> _Schedule:
    warmup = 0
    if plan.warmup is not None and plan.warmup > 1:  # the function has been called once
        warmup = plan.warmup - 1
        yield WARM_UP, warmup
    calls = 1
    took = yield WARM_UP, calls
    # On a GPU one call makes a round.
    while device is Device.CPU and took.cpu_ns < plan.min_round_ns and calls < _MOST_CALLS:
        calls *= 2
        took = yield WARM_UP, calls
    warmup += 2 * calls - 1
    typical_ns = took.decisive_ns
    if plan.warmup is None:
        typical_ns, rounds = yield from _until_steady(plan, calls)
        warmup += rounds * calls
    times = []
    for _ in repeat(None, plan.rounds or _rounds_that_fit(typical_ns, plan)):
        took = yield ROUNDS, calls
        times.append(took)
    return Measurement(
        device,
        calls,
        cpu_ns=tuple(each.cpu_ns / calls for each in times),
        gpu_ns=tuple(each.gpu_ns / calls for each in times if each.gpu_ns is not None),
        warmup_calls=warmup,
        windows_ns=tuple(each.window_ns for each in times),
    )


def _until_steady(
    plan: Plan, calls: int
) -> Generator[tuple[str, int], RoundTime, tuple[float, int]]:
    """Warm up until rounds take equally long, or for as long as all that count may take.

    Returns:
        The last median, and how many rounds that were.
    """
    medians: list[float] = []
    spent_ns, rounds = 0.0, 0
    while True:
        times: list[float] = []
        while len(times) < _FEWEST_OF_BATCH or (
            len(times) < _MOST_OF_BATCH and sum(times) < _BATCH_NS
        ):
            took = yield WARM_UP, calls
            times.append(took.decisive_ns)
        medians.append(statistics.median(times))
        rounds += len(times)
        spent_ns += sum(times)
        last = medians[-_COMPARED:]
        is_steady = len(medians) >= _FEWEST_BATCHES and max(last) <= min(last) * _ALIKE
        if is_steady or len(medians) == _MOST_BATCHES or spent_ns >= plan.max_time_s * 1e9:
            return medians[-1], rounds


def _rounds_that_fit(round_ns: float, plan: Plan) -> int:
    fitting = plan.max_time_s * 1e9 / round_ns if round_ns > 0.0 else math.inf
    return int(min(max(fitting, _LEAST_ROUNDS), _MOST_ROUNDS))


def median_of(times_ns: Sequence[float], tick_ns: float = 0.0) -> float:
    """Return the median as the gate computes it: one between ticks where values are rounded.

    Args:
        times_ns: The times, at least one.
        tick_ns: Smallest step of the clock.
    """
    return _quantiles(times_ns, (0.5,), tick_ns)[0]


def interval_of(times_ns: Sequence[float], tick_ns: float = 0.0) -> tuple[float, float]:
    """Return the 95 % interval of the median: between two times whose ranks the binomial law gives.

    Fewer than 6 times have no such interval: it is that of all of them.

    Args:
        times_ns: The times, at least one.
        tick_ns: Smallest step of the clock.
    """
    count, rank = len(times_ns), 0
    below = _chance(0, count)  # that no more of the times than `rank` are below the median
    while below <= _OUTSIDE:
        rank += 1
        below += _chance(rank, count)
    q = max(rank - 0.5, 0.0) / count
    low, high = _quantiles(times_ns, (q, 1.0 - q), tick_ns)
    return low, high


def _chance(rank: int, count: int) -> float:
    log = math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1)
    return math.exp(log - count * math.log(2.0))


def _quantiles(times_ns: Sequence[float], points: Sequence[float], tick_ns: float) -> list[float]:
    from proton_bench.gate.statistics.location import Sample, grouped_quantile

    sample = Sample.of_values(times_ns)
    return [grouped_quantile(sample, q, tick_ns) for q in points]
