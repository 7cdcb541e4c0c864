"""Means of hardware counters over windows of time (GPM), for the whole run.

NVIDIA's management library has them for Hopper and newer GPUs. They need no privilege and cost the
program nothing, and they are of the whole device, with what other processes do on it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proton_bench.recording.gpu.nvml_devices import NvmlDevices
from proton_bench.recording.native import native

PERIOD_S = 0.2
ALL = -1  # instead of the number of a device
# Values of shorter windows are often not numbers.
_SHORTEST_NS = 100_000_000
_OPTION = "counters"
_PER_MIB = float(1 << 20)
# Key in the provenance: constant of the library without its prefix, name of the counter, factor.
_METRICS = {
    "graphics_active_pct": ("GRAPHICS_UTIL", "graphics active (%)", 1.0),
    "sm_active_pct": ("SM_UTIL", "SM active (%)", 1.0),
    "sm_occupancy_pct": ("SM_OCCUPANCY", "SM occupancy (%)", 1.0),
    "tensor_pct": ("ANY_TENSOR_UTIL", "tensor (%)", 1.0),
    "dram_pct": ("DRAM_BW_UTIL", "DRAM (%)", 1.0),
    "fp64_pct": ("FP64_UTIL", "FP64 (%)", 1.0),
    "fp32_pct": ("FP32_UTIL", "FP32 (%)", 1.0),
    "fp16_pct": ("FP16_UTIL", "FP16 (%)", 1.0),
    "pcie_sent_bytes_per_s": ("PCIE_TX_PER_SEC", "PCIe sent (bytes/s)", _PER_MIB),
    "pcie_received_bytes_per_s": ("PCIE_RX_PER_SEC", "PCIe received (bytes/s)", _PER_MIB),
    "nvlink_sent_bytes_per_s": ("NVLINK_TOTAL_TX_PER_SEC", "NVLink sent (bytes/s)", _PER_MIB),
    "nvlink_received_bytes_per_s": (
        "NVLINK_TOTAL_RX_PER_SEC",
        "NVLink received (bytes/s)",
        _PER_MIB,
    ),
}
_MIG = "a slice of a GPU (MIG) has no counters of its own here"
_OLD_LIBRARY = "the driver or nvidia-ml-py is too old for GPM"
_OLD_GPU = "this GPU has no GPM: Hopper and newer have it"


class _Mode(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, str]: ...


def wants_gpm(modes: Sequence[_Mode]) -> bool:
    """Return whether a session with these modes asks for hardware counters."""
    return any(mode.name == _OPTION or _OPTION in mode.options for mode in modes)


def wants_bursts(modes: Sequence[_Mode]) -> bool:
    """Return whether it asks for those of kernels too."""
    return any(mode.name == _OPTION for mode in modes)


@dataclass(frozen=True, slots=True)
class GpmWindow:
    """Means of one device over a window.

    Attributes:
        ordinal: Number of the device in CUDA.
        began_ns: Begin of the window, of CLOCK_MONOTONIC.
        ended_ns: End of the window.
        values: Percent or bytes per second, by key; those that are not numbers are left out.
    """

    ordinal: int
    began_ns: int
    ended_ns: int
    values: Mapping[str, float]

    def named(self) -> list[tuple[str, float]]:
        """Return the values by the names of counters in timelines."""
        return [(_METRICS[key][1], value) for key, value in self.values.items()]


@dataclass(slots=True)
class _OpenWindow:
    """The samples of a device: the older one is of the window's begin."""

    device: Any
    begin: Any
    end: Any
    began_ns: int


@dataclass(slots=True)
class _DeviceTotals:
    windows: int = 0
    sampled_ns: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    weights_ns: dict[str, int] = field(default_factory=dict)


class GpmReadings:
    """Windows of the GPUs that the program has used. Only one thread may use it at a time.

    Args:
        ordinals: Returns the numbers in CUDA of the GPUs to read; None takes all that were used.

    Attributes:
        refusals: Why a device has no values, by its number in CUDA, or `ALL`.
    """

    def __init__(self, ordinals: Callable[[], Sequence[int]] | None = None) -> None:
        self.refusals: dict[int, str] = {}
        self._ordinals = ordinals or native.cuda_ordinals
        self._devices = NvmlDevices()
        self._open: dict[int, _OpenWindow] = {}
        self._metrics: dict[str, int] = {}

    def read(self) -> Iterator[GpmWindow]:
        """End the window of each device that is long enough, and begin the next."""
        if not self._devices.open():
            self.refusals[ALL] = self._devices.missing
            return
        for ordinal in self._ordinals():
            if ordinal in self.refusals:
                continue
            try:
                window = self._window(ordinal)
            except AttributeError:  # of the module pynvml
                self.refusals[ordinal] = _OLD_LIBRARY
            except self._devices.nvml.NVMLError as error:
                self.refusals[ordinal] = f"NVML: {error}"
            else:
                if window is not None:
                    yield window

    def close(self) -> None:
        """Release the samples and the library."""
        opened, self._open = self._open, {}
        nvml = self._devices.nvml
        for each in opened.values():
            for sample in (each.begin, each.end):
                with contextlib.suppress(nvml.NVMLError):
                    nvml.nvmlGpmSampleFree(sample)
        self._devices.close()

    def _window(self, ordinal: int) -> GpmWindow | None:
        opened = self._open.get(ordinal)
        if opened is None:
            self._begin(ordinal)
            return None
        nvml, now_ns = self._devices.nvml, time.monotonic_ns()
        if now_ns - opened.began_ns < _SHORTEST_NS:
            return None
        nvml.nvmlGpmSampleGet(opened.device, opened.end)
        values = self._values(opened)
        window = GpmWindow(ordinal, opened.began_ns, now_ns, values)
        opened.begin, opened.end = opened.end, opened.begin
        opened.began_ns = now_ns
        return window

    def _begin(self, ordinal: int) -> None:
        device = self._devices.find(ordinal)
        if device is None:
            return
        nvml = self._devices.nvml
        if device.handle is None or device.is_slice:
            unknown = "NVML does not know this GPU"
            self.refusals[ordinal] = _MIG if device.is_slice else unknown
            return
        if not nvml.nvmlGpmQueryDeviceSupport(device.handle).isSupportedDevice:
            self.refusals[ordinal] = _OLD_GPU
            return
        for key, (constant, _, _) in _METRICS.items():
            number = getattr(nvml, f"NVML_GPM_METRIC_{constant}", None)
            if number is not None:
                self._metrics[key] = number
        begin, end = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        self._open[ordinal] = _OpenWindow(device.handle, begin, end, time.monotonic_ns())
        nvml.nvmlGpmSampleGet(device.handle, begin)

    def _values(self, opened: _OpenWindow) -> dict[str, float]:
        nvml = self._devices.nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(self._metrics)
        asked.sample1, asked.sample2 = opened.begin, opened.end
        for place, number in enumerate(self._metrics.values()):
            asked.metrics[place].metricId = number
        nvml.nvmlGpmMetricsGet(asked)
        values = {}
        for place, key in enumerate(self._metrics):
            answer = asked.metrics[place]
            # A metric that this GPU lacks has an error of its own.
            if answer.nvmlReturn == 0 and math.isfinite(answer.value):
                values[key] = answer.value * _METRICS[key][2]
        return values


class GpmTotals:
    """Means of the windows of a session, weighted by their lengths."""

    def __init__(self) -> None:
        self._began_ns = time.monotonic_ns()
        self._devices: dict[int, _DeviceTotals] = {}

    def add(self, window: GpmWindow) -> None:
        """Count a window that began within the session."""
        if window.began_ns < self._began_ns or not window.values:
            return
        totals = self._devices.setdefault(window.ordinal, _DeviceTotals())
        length_ns = window.ended_ns - window.began_ns
        totals.windows += 1
        totals.sampled_ns += length_ns
        for key, value in window.values.items():
            totals.sums[key] = totals.sums.get(key, 0.0) + value * length_ns
            totals.weights_ns[key] = totals.weights_ns.get(key, 0) + length_ns

    def facts(self, refusals: Mapping[int, str]) -> list[dict[str, Any]]:
        """Return an entry per device for the provenance.

        It has ``device`` (its number in CUDA, or `ALL`), and ``windows``, ``sampled_ns`` and
        ``means`` (percent of the unit's peak, or bytes per second, by key); and ``missing``, why
        there are none, or no more.

        Args:
            refusals: Those of the readings.
        """
        found: list[dict[str, Any]] = []
        for ordinal in sorted({*self._devices, *refusals}):
            facts: dict[str, Any] = {"device": ordinal}
            totals = self._devices.get(ordinal)
            if totals is not None:
                facts["windows"], facts["sampled_ns"] = totals.windows, totals.sampled_ns
                sums, weights_ns = totals.sums, totals.weights_ns
                facts["means"] = {key: sums[key] / weights_ns[key] for key in sums}
            if ordinal in refusals:
                facts["missing"] = refusals[ordinal]
            found.append(facts)
        return found
