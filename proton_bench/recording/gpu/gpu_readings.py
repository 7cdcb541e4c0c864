"""Repeated readings of the GPUs that a process uses, from NVIDIA's management library."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proton_bench.recording.gpu.nvml_devices import NvmlDevices
from proton_bench.recording.native import native

__all__ = ["GpuReadings"]

_MILLI = 1e-3
_Question = Callable[[], float]


class GpuReadings:
    """Readings of the GPUs that the program has used. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._devices = NvmlDevices()
        self._questions: dict[int, Mapping[str, _Question]] = {}

    def read(self) -> Iterator[tuple[int, int, list[tuple[str, float]]]]:
        """Yield the CUDA number of each GPU, the time of reading, and names with values.

        Names end in their unit; times are of CLOCK_MONOTONIC, in ns. Values that a driver refuses
        at first are not read again; later refusals are left out.
        """
        for ordinal in native.cuda_ordinals():
            questions = self._questions_of(ordinal)
            values = []
            for name, ask in questions.items():
                with contextlib.suppress(self._devices.nvml.NVMLError):
                    values.append((name, float(ask())))
            if values:
                yield ordinal, time.monotonic_ns(), values

    def close(self) -> None:
        """Release the library."""
        self._devices.close()
        self._questions.clear()

    def _questions_of(self, ordinal: int) -> Mapping[str, _Question]:
        known = self._questions.get(ordinal)
        if known is not None:
            return known
        device = self._devices.find(ordinal)
        if device is None:
            return {}
        found = {} if device.handle is None else _answered(self._devices.nvml, device.handle)
        self._questions[ordinal] = found
        return found


def _answered(nvml: Any, device: Any) -> Mapping[str, _Question]:
    """Return the values of a device that its driver provides."""
    questions: dict[str, _Question] = {
        "SM clock (MHz)": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
        "memory clock (MHz)": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
        "power (W)": lambda: nvml.nvmlDeviceGetPowerUsage(device) * _MILLI,
        "temperature (°C)": lambda: nvml.nvmlDeviceGetTemperature(
            device, nvml.NVML_TEMPERATURE_GPU
        ),
        "utilisation (%)": lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu,
        "memory used (bytes)": lambda: nvml.nvmlDeviceGetMemoryInfo(device).used,
    }
    answered = {}
    for name, ask in questions.items():
        # Older libraries lack some, and drivers differ.
        with contextlib.suppress(nvml.NVMLError, AttributeError, TypeError, ValueError):
            float(ask())
            answered[name] = ask
    return answered
