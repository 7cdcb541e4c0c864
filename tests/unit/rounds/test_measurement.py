from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from proton_bench.rounds.measurement import (
    CpuTimer,
    Device,
    Plan,
    RoundTime,
    measure,
    measure_coroutine,
)


class Scripted:
    """A timer whose rounds take the given times, and then always the last one."""

    def __init__(self, times: Sequence[RoundTime], device: Device = Device.CPU) -> None:
        self.device = device
        self.rounds = 0
        self.prepared = 0
        self._times = times

    def prepare(self) -> None:
        self.prepared += 1

    def begin(self) -> None:
        self.rounds += 1

    def end(self) -> RoundTime:
        return self._times[min(self.rounds, len(self._times)) - 1]


class Counted:
    """A function, and which parts of the measurement called it."""

    def __init__(self) -> None:
        self.part = ""
        self.parts: list[str] = []

    def __call__(self) -> None:
        self.parts.append(self.part)

    async def wait(self) -> None:
        self()

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        self.part = name
        yield
        self.part = ""


def cpu(*nanoseconds: float) -> Scripted:
    return Scripted([RoundTime(each) for each in nanoseconds])


@pytest.fixture
def function() -> Counted:
    return Counted()


def test_calls_of_a_round_double_until_it_is_long_enough(function: Counted) -> None:
    timer = cpu(30_000.0, 60_000.0, 120_000.0)

    found = measure(function, timer, Plan(rounds=2, warmup=1), around=function.around)

    assert found.calls == 4
    assert found.cpu_ns == (30_000.0, 30_000.0)
    assert timer.prepared == timer.rounds == 5
    assert function.parts == ["warm-up"] * 7 + ["rounds"] * 8


def test_calls_of_a_round_stop_doubling_for_a_clock_that_stands(function: Counted) -> None:
    plan = Plan(rounds=1, warmup=1, min_round_ns=1.0)

    found = measure(lambda: None, cpu(0.0), plan, around=function.around)

    assert found.calls == 1 << 20
    assert found.cpu_ns == (0.0,)


def test_warm_up_counts_the_call_that_came_before(function: Counted) -> None:
    measure(function, cpu(1e6), Plan(rounds=1, warmup=5), around=function.around)

    assert function.parts == ["warm-up"] * 5 + ["rounds"]


@pytest.mark.parametrize(
    ("batches_ms", "batches"),
    [
        ([5.0], 4),
        ([9.0, 7.0, 6.0, 5.0], 6),  # compiled, and at full clocks
        ([5.0, 5.0, 5.5, 6.0], 6),  # throttled
        ([5.0, 6.0] * 50, 10),  # never steady
    ],
)
def test_warm_up_ends_once_rounds_take_equally_long(
    function: Counted, batches_ms: list[float], batches: int
) -> None:
    per_batch = 3  # rounds of 5 ms and more; the first round is the calibration
    times = [batches_ms[0], *(each for each in batches_ms for _ in range(per_batch))]
    timer = cpu(*(each * 1e6 for each in times))

    found = measure(function, timer, Plan(rounds=1, max_time_s=10.0), around=function.around)

    assert found.warmup_calls == 1 + batches * per_batch


def test_warm_up_takes_no_longer_than_the_rounds_may(function: Counted) -> None:
    found = measure(function, cpu(4e8), Plan(max_time_s=1.0), around=function.around)

    assert found.warmup_calls == 1 + 3


@pytest.mark.parametrize(
    ("round_ns", "rounds"), [(1e6, 500), (1e5, 1000), (2e8, 5), (1e12, 5), (2e7, 25)]
)
def test_as_many_rounds_as_fit_into_the_time(
    function: Counted, round_ns: float, rounds: int
) -> None:
    found = measure(function, cpu(round_ns), Plan(max_time_s=0.5), around=function.around)

    assert len(found.cpu_ns) == rounds


def test_on_a_gpu_one_call_makes_a_round_and_its_clock_decides(function: Counted) -> None:
    timer = Scripted([RoundTime(10.0, 1e8)], Device.CUDA)

    found = measure(function, timer, Plan(max_time_s=1.0), around=function.around)

    assert found.calls == 1
    assert found.gpu_ns == (1e8,) * 10
    assert found.cpu_ns == (10.0,) * 10


def test_coroutines_are_awaited_as_often_as_functions_are_called() -> None:
    plain, awaited = Counted(), Counted()
    plan = Plan(rounds=3, warmup=2)

    one = measure(plain, cpu(60_000.0, 2e5), plan, around=plain.around)
    other = asyncio.run(
        measure_coroutine(awaited.wait, cpu(60_000.0, 2e5), plan, around=awaited.around)
    )

    assert other == one
    assert awaited.parts == plain.parts


def test_an_error_of_the_function_ends_the_measurement(function: Counted) -> None:
    def fail() -> None:
        raise KeyError("wrong")

    with pytest.raises(KeyError, match="wrong"):
        measure(fail, cpu(1.0), Plan(), around=function.around)


def test_cpu_timer_reads_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    timer = CpuTimer()
    monkeypatch.setattr(timer, "clock", iter([5, 12]).__next__)

    timer.begin()

    assert timer.end() == RoundTime(7.0)
