"""Times a function: some calls to warm up, calls until a round is long enough, then rounds."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from itertools import repeat

from proton_bench.model.benchmark_columns import WARM_UP
from proton_bench.pytest_plugin.rounds.plan import Device, Plan
from proton_bench.pytest_plugin.rounds.timer import Around, RoundTime, Timer

__all__ = ["Measurement", "measure", "measure_coroutine"]

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
