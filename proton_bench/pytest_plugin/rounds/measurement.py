"""Times a function: some calls to warm up, calls until a round is long enough, then rounds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Protocol

from proton_bench.model.benchmark_columns import WARM_UP


class Device(StrEnum):
    """The device whose clock times a round."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a function is to be timed.

    Attributes:
        rounds: Number of rounds; None means as many as fit into ``max_time_s``.
        warmup: Calls before the first round, at least 1.
        max_time_s: Time limit of all rounds, if ``rounds`` is None.
        min_round_ns: Least time of a round on the CPU, which sets the number of calls.
        flush_l2: Whether the L2 cache of a GPU is emptied before each round.
        cudagraph: Whether a CUDA graph of one call is timed instead of the call.
        device: Device whose clock counts; None finds out.
    """

    rounds: int | None = None
    warmup: int = 3
    max_time_s: float = 0.5
    min_round_ns: float = 100_000.0
    flush_l2: bool = True
    cudagraph: bool = False
    device: Device | None = None


# Returns a context manager for a named step.
Around = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class RoundTime:
    """Times of one round.

    Attributes:
        cpu_ns: On the CPU: until the work was done, or with a GPU's timer until it was submitted.
        gpu_ns: On the GPU; None if its clock was not read.
    """

    cpu_ns: float
    gpu_ns: float | None = None

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
    clock = staticmethod(time.perf_counter_ns)

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


_LEAST_ROUNDS = 5
_MOST_ROUNDS = 1000
_MOST_CALLS = 1 << 20

# Yields numbers of calls, receives the time of each round, and returns the calls of a round and the
# rounds that count.
_Schedule = Generator[int, RoundTime, tuple[int, tuple[RoundTime, ...]]]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of the rounds of one process. All of them together are one replicate.

    Attributes:
        device: Whose clock counts.
        calls: Calls in each round.
        cpu_ns: Time of one call on the CPU, of each round.
        gpu_ns: Time of one call on the GPU, of each round; empty without a GPU's timer.
        warmup_calls: Calls to warm up and to find out how many make a round.
    """

    device: Device
    calls: int
    cpu_ns: tuple[float, ...]
    gpu_ns: tuple[float, ...] = ()
    warmup_calls: int = 0

    @property
    def decisive_ns(self) -> tuple[float, ...]:
        """The GPU's times if there are any, else the CPU's."""
        return self.gpu_ns or self.cpu_ns


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
        around: Returns a context manager for a trial (``"warm-up"``) or a round (``"rounds"``).
    """
    with around(WARM_UP):
        for _ in repeat(None, _further_calls(plan)):
            call()

    def drive(schedule: _Schedule, name: str) -> tuple[int, tuple[RoundTime, ...]]:
        calls = next(schedule)
        while True:
            timer.prepare()
            with around(name):
                timer.begin()
                for _ in repeat(None, calls):
                    call()
                took = timer.end()
            try:
                calls = schedule.send(took)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    calls, first = drive(_calibrate(timer.device, plan), WARM_UP)
    _, times = drive(_rounds(calls, plan, first), "rounds")
    return _measured(timer.device, plan, calls=calls, times=times)


async def measure_coroutine(
    call: Callable[[], Awaitable[object]],
    timer: Timer,
    plan: Plan,
    *,
    around: Around,
) -> Measurement:
    """Time an async function; otherwise as `measure`."""
    with around(WARM_UP):
        for _ in repeat(None, _further_calls(plan)):
            await call()

    async def drive(schedule: _Schedule, name: str) -> tuple[int, tuple[RoundTime, ...]]:
        calls = next(schedule)
        while True:
            timer.prepare()
            with around(name):
                timer.begin()
                for _ in repeat(None, calls):
                    await call()
                took = timer.end()
            try:
                calls = schedule.send(took)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    calls, first = await drive(_calibrate(timer.device, plan), WARM_UP)
    _, times = await drive(_rounds(calls, plan, first), "rounds")
    return _measured(timer.device, plan, calls=calls, times=times)


def _further_calls(plan: Plan) -> int:
    return max(plan.warmup - 1, 0)


def _calibrate(device: Device, plan: Plan) -> _Schedule:
    """Double the calls of a round until it is long enough; on a GPU one call makes a round."""
    calls = 1
    while True:
        took = yield calls
        if device is not Device.CPU or took.cpu_ns >= plan.min_round_ns or calls >= _MOST_CALLS:
            return calls, (took,)
        calls *= 2


def _rounds(calls: int, plan: Plan, first: tuple[RoundTime, ...]) -> _Schedule:
    count = plan.rounds or _rounds_that_fit(first[0].decisive_ns, plan)
    times = []
    for _ in repeat(None, count):
        took = yield calls
        times.append(took)
    return calls, tuple(times)


def _rounds_that_fit(round_ns: float, plan: Plan) -> int:
    fitting = plan.max_time_s * 1e9 / round_ns if round_ns > 0.0 else math.inf
    return int(min(max(fitting, _LEAST_ROUNDS), _MOST_ROUNDS))


def _measured(
    device: Device, plan: Plan, *, calls: int, times: tuple[RoundTime, ...]
) -> Measurement:
    on_gpu = tuple(each.gpu_ns / calls for each in times if each.gpu_ns is not None)
    # Calibration made 1, 2, 4, ... calls, up to those of a round.
    warmup = _further_calls(plan) + 2 * calls - 1
    return Measurement(device, calls, tuple(each.cpu_ns / calls for each in times), on_gpu, warmup)
