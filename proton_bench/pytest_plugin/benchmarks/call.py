"""The object that the fixture ``proton_bench`` returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.marker import Asked
from proton_bench.pytest_plugin.rounds.measurement import Measurement, measure, measure_coroutine
from proton_bench.pytest_plugin.rounds.plan import Device
from proton_bench.pytest_plugin.rounds.timer import Around, CpuTimer, Timer

__all__ = ["BenchmarkCall", "Surroundings"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a benchmark.

    Attributes:
        around: Opens nodes of the profile.
        measures: Whether to measure; else the function is called once.
        is_coroutine: Whether the test awaits what the fixture returns.
    """

    around: Around
    measures: bool
    is_coroutine: bool


class BenchmarkCall:
    """Times one function for one test.

    Attributes:
        extra_info: Extra values of the test for the JSON file.
        measurement: The measurement; None before it, or without measuring.
    """

    def __init__(self, test: str, asked: Asked, where: Surroundings) -> None:
        self.extra_info: dict[str, Any] = {}
        self.measurement: Measurement | None = None
        self._test = test
        self._asked = asked
        self._where = where
        self._is_used = False
        self._awaited: bool | None = None

    @property
    def was_forgotten(self) -> bool:
        """Whether a returned coroutine was never awaited."""
        return self._awaited is False

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function many times and return the result of its first call.

        Args:
            fn: A function or an async function; await the result in an asynchronous test.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Raises:
            UsageError: It is not a function, the test already timed one, or there is no such
                device.
        """
        if not callable(fn):
            raise UsageError(f"proton_bench takes a function and its arguments, not {fn!r}")
        if self._is_used:
            raise UsageError(
                f"{self._test} called proton_bench twice, but one test is one benchmark: write "
                "two tests or parametrize this one"
            )
        self._is_used = True
        call = functools.partial(fn, *args, **kwargs)
        if not _gives_coroutines(fn):
            return self._measured(call)
        self._awaited = False
        coroutine = self._measured_coroutine(call)
        if self._where.is_coroutine:
            return coroutine
        import asyncio

        return asyncio.run(coroutine)

    def _measured(self, call: Callable[[], Any]) -> Any:
        use = _use_of_cuda(call)
        result = call()
        if not self._where.measures:
            return result
        device = self._device(uses_cuda=use(result))
        timer = self._timer(device)
        plan = self._asked.plan
        repeated: Callable[[], object] = call
        if plan.cudagraph:
            from proton_bench.pytest_plugin.rounds.cuda import as_graph

            repeated = as_graph(call)
        self.measurement = measure(repeated, timer, plan, around=self._where.around)
        return result

    async def _measured_coroutine(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._awaited = True
        if self._asked.plan.cudagraph:
            raise UsageError(f"{self._test}: a coroutine cannot be captured into a CUDA graph")
        use = _use_of_cuda(call)
        result = await call()
        if not self._where.measures:
            return result
        timer = self._timer(self._device(uses_cuda=use(result)))
        self.measurement = await measure_coroutine(
            call, timer, self._asked.plan, around=self._where.around
        )
        return result

    def _device(self, *, uses_cuda: bool) -> Device:
        plan = self._asked.plan
        if plan.cudagraph and plan.device is Device.CPU:
            raise UsageError(f"{self._test}: cudagraph=True and device='cpu' exclude each other")
        if plan.device is not None:
            return plan.device
        return Device.CUDA if uses_cuda or plan.cudagraph else Device.CPU

    def _timer(self, device: Device) -> Timer:
        if device is Device.CPU:
            return CpuTimer()
        from proton_bench.pytest_plugin.rounds.cuda import CudaTimer

        return CudaTimer(self._where.around, flush_l2=self._asked.plan.flush_l2)


def _gives_coroutines(fn: Callable[..., Any]) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    if isinstance(fn, type) or inspect.iscoroutinefunction(fn):
        return not isinstance(fn, type)
    return inspect.iscoroutinefunction(type(fn).__call__)


def _use_of_cuda(call: Callable[[], Any]) -> Callable[[object], bool]:
    from proton_bench.pytest_plugin.rounds.cuda import UseOfCuda

    return UseOfCuda(call).seen
