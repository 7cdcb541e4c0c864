"""The driver that replaces a GPU's while Triton interprets its kernels.

Programs, the autotuner and ``triton.testing.do_bench`` ask Triton's active driver for a device,
events and a benchmark. Without a GPU there is none, so this one uses the host's clock.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from proton_bench_plugins.cpu.gpu_driver import find_gpu_driver

_TRIALS = 3  # interpreted launches take milliseconds and vary little
_NS_PER_MS = 1e6


class HostEvent:
    """Replaces a GPU's timing event: on the host work is done when its call returns."""

    def __init__(self, **_options: object) -> None:
        self.time_ns = 0

    def record(self, stream: object = None) -> None:
        """Take the time."""
        self.time_ns = time.perf_counter_ns()

    def elapsed_time(self, end: HostEvent) -> float:
        """Return milliseconds from this event to ``end``, never 0: callers divide by it."""
        return max(end.time_ns - self.time_ns, 1) / _NS_PER_MS

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: object = None) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Return that the event has passed."""
        return True


class HostDeviceInterface:
    """The part of ``torch.cuda`` that benchmarks ask a driver for."""

    Event = HostEvent

    @staticmethod
    def synchronize(device: object = None) -> None:
        """Return at once: host work is done when its call returns."""

    @staticmethod
    def current_device() -> int:
        """Return the only device."""
        return 0

    @staticmethod
    def device_count() -> int:
        """Return the number of devices."""
        return 1


class HostProperties:
    """Properties for ``driver.active.utils``."""

    @staticmethod
    def get_device_properties(device: object = None) -> dict[str, int]:
        """Describe the host in the terms of a GPU; sizes in bytes."""
        return {
            "multiprocessor_count": os.cpu_count() or 1,
            "max_shared_mem": 1 << 16,
            "max_num_regs": 1 << 16,
            "warpSize": 1,
        }


class InterpreterDriver:
    """Driver of the interpreter, as far as autotuner, benchmarks and programs ask."""

    def __init__(self) -> None:
        self.utils = HostProperties()

    @staticmethod
    def is_active() -> bool:
        """Return that this driver works here."""
        return True

    def get_current_target(self) -> Any:
        """Return the target: backend "cpu", so that programs do not treat it as a GPU."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cpu", "interpreter", 1)

    def get_active_torch_device(self) -> Any:
        """Return torch's device for tensors."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> HostDeviceInterface:
        """Return the replacement of ``torch.cuda``."""
        return HostDeviceInterface()

    def get_current_device(self) -> int:
        """Return the only device."""
        return 0

    def set_current_device(self, device: object) -> None:
        """Do nothing: there is one device."""

    def get_current_stream(self, device: object = None) -> int:
        """Return the only stream."""
        return 0

    def get_empty_cache_for_benchmark(self) -> None:
        """Return nothing: interpreted kernels do not depend on a cold L2 cache."""

    def clear_cache(self, cache: object) -> None:
        """Do nothing, see above."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return the autotuner's benchmark."""
        return benchmark


def benchmark(
    kernel_call: Callable[[], object],
    *,
    quantiles: Sequence[float] | None = None,
    **_options: object,
) -> list[float] | float:
    """Time a launch a few times.

    Args:
        kernel_call: Launches the kernel.
        quantiles: Points in [0, 1] to return; None returns the mean.

    Returns:
        Milliseconds.
    """
    kernel_call()
    times = []
    for _ in range(_TRIALS):
        start, end = HostEvent(), HostEvent()
        start.record()
        kernel_call()
        end.record()
        times.append(start.elapsed_time(end))
    if quantiles is None:
        return statistics.fmean(times)
    return [_quantile(sorted(times), point) for point in quantiles]


def _quantile(ordered: Sequence[float], point: float) -> float:
    position = point * (len(ordered) - 1)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower])


def install_driver(module: ModuleType) -> bool:
    """Make the interpreter's driver the active one if there is no other.

    It stays for the rest of the process: a program that could autotune while it was profiled must
    not fail once profiling is paused.

    Args:
        module: ``triton.runtime.driver``.

    Returns:
        True if the driver was installed.
    """
    from triton import knobs

    config = module.driver
    if not knobs.runtime.interpret or config._active is not None or find_gpu_driver() is not None:
        return False
    config.set_active(InterpreterDriver())
    return True
