from __future__ import annotations

import math
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.nvml import Error, FakeNvml, GpmRequest

from proton_bench.plugin.backend import parse_mode
from proton_bench.recording.counters import gpm
from proton_bench.recording.counters.gpm import (
    ALL,
    GpmReadings,
    GpmTotals,
    GpmWindow,
    wants_bursts,
    wants_gpm,
)

SM, TENSOR, DRAM, PCIE = 2, 5, 10, 20
MS = 1_000_000


class Gpu:
    """A double of one GPU with GPM, its library and the clock.

    Attributes:
        values: What the library measures, by the number of a metric.
        errors: Numbers of metrics that this GPU lacks.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, uuid: str = "GPU-0a") -> None:
        self.now_ns = 1000 * MS
        self.values = {SM: 30.0, TENSOR: 5.0, DRAM: 12.0, PCIE: 1.0}
        self.errors: set[int] = set()
        self.freed = 0
        self.nvml = FakeNvml(
            DeviceGetHandleByUUID="handle",
            GpmQueryDeviceSupport=SimpleNamespace(isSupportedDevice=1),
            GpmSampleAlloc="sample",
            GpmSampleGet=None,
        )
        self.nvml.nvmlGpmMetricsGet = self._measure
        self.nvml.nvmlGpmSampleFree = self._free
        devices = SimpleNamespace(cuda_ordinals=lambda: [1], cuda_uuid=lambda _ordinal: uuid)
        monkeypatch.setitem(sys.modules, "pynvml", self.nvml)  # type: ignore[arg-type]
        for module in ("counters.gpm", "gpu.nvml_devices"):
            monkeypatch.setattr(f"proton_bench.recording.{module}.native", devices)
        monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull)
        monkeypatch.setattr(gpm, "time", SimpleNamespace(monotonic_ns=lambda: self.now_ns))

    def windows(self, readings: GpmReadings, length_ms: int = 200) -> list[GpmWindow]:
        """Let some time pass and read."""
        self.now_ns += length_ms * MS
        return list(readings.read())

    def _measure(self, request: GpmRequest) -> None:
        assert request.sample1 == request.sample2 == "sample"
        for metric in request.metrics[: request.numMetrics]:
            metric.value = self.values.get(metric.metricId, 0.0)
            metric.nvmlReturn = 3 if metric.metricId in self.errors else 0

    def _free(self, _sample: object) -> None:
        self.freed += 1


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    return Gpu(monkeypatch)


def test_windows_follow_each_other(gpu: Gpu) -> None:
    readings = GpmReadings()

    assert gpu.windows(readings) == []
    (first,), (second,) = gpu.windows(readings), gpu.windows(readings, 300)

    assert (first.ordinal, first.began_ns, first.ended_ns) == (1, 1200 * MS, 1400 * MS)
    assert (second.began_ns, second.ended_ns) == (1400 * MS, 1700 * MS)
    assert first.values == {
        "sm_active_pct": 30.0,
        "tensor_pct": 5.0,
        "dram_pct": 12.0,
        "pcie_sent_bytes_per_s": float(1 << 20),
    }
    assert first.named()[2] == ("DRAM (%)", 12.0)


def test_a_window_that_is_too_short_goes_on(gpu: Gpu) -> None:
    readings = GpmReadings()
    gpu.windows(readings)

    assert gpu.windows(readings, 99) == []
    (window,) = gpu.windows(readings, 1)

    assert window.ended_ns - window.began_ns == 100 * MS


def test_values_that_are_no_numbers_are_left_out(gpu: Gpu) -> None:
    gpu.values[SM] = math.nan
    gpu.errors = {PCIE}
    readings = GpmReadings()
    gpu.windows(readings)

    (window,) = gpu.windows(readings)

    assert window.values == {"tensor_pct": 5.0, "dram_pct": 12.0}


def test_totals_are_weighted_by_the_length_of_windows(gpu: Gpu) -> None:
    totals = GpmTotals()

    for began_ms, ended_ms, value in ((1000, 1100, 10.0), (1100, 1400, 50.0)):
        totals.add(GpmWindow(1, began_ms * MS, ended_ms * MS, {"dram_pct": value}))
    totals.add(GpmWindow(1, 1400 * MS, 1500 * MS, {}))

    assert totals.facts({}) == [
        {"device": 1, "windows": 2, "sampled_ns": 400 * MS, "means": {"dram_pct": 40.0}}
    ]


def test_a_window_from_before_the_session_is_not_its_own(gpu: Gpu) -> None:
    totals = GpmTotals()

    totals.add(GpmWindow(1, 999 * MS, 1200 * MS, {"dram_pct": 10.0}))

    assert totals.facts({}) == []


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"GpmQueryDeviceSupport": SimpleNamespace(isSupportedDevice=0)}, "Hopper"),
        ({"GpmQueryDeviceSupport": Error("Function Not Found")}, "Function Not Found"),
        ({"GpmSampleGet": Error("GPU is lost")}, "GPU is lost"),
        ({"DeviceGetHandleByUUID": Error("Not Found")}, "does not know"),
    ],
)
def test_a_refusal_is_told_and_final(gpu: Gpu, answers: dict[str, Any], reason: str) -> None:
    gpu.nvml.answer(**answers)
    readings = GpmReadings()

    assert gpu.windows(readings) == []
    assert reason in readings.refusals[1]

    gpu.nvml.answer(
        GpmQueryDeviceSupport=SimpleNamespace(isSupportedDevice=1),
        GpmSampleGet=None,
        DeviceGetHandleByUUID="handle",
    )
    assert gpu.windows(readings) == gpu.windows(readings) == []


def test_slices_of_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(monkeypatch, uuid="MIG-0a")
    readings = GpmReadings()

    assert gpu.windows(readings) == []
    assert "MIG" in readings.refusals[1]


def test_an_older_module_has_no_windows(gpu: Gpu) -> None:
    def missing(*_arguments: object) -> None:
        raise AttributeError("nvmlGpmQueryDeviceSupport")

    gpu.nvml.nvmlGpmQueryDeviceSupport = missing
    readings = GpmReadings()

    assert gpu.windows(readings) == []
    assert "too old" in readings.refusals[1]


def test_what_was_measured_stays_when_a_gpu_is_lost(gpu: Gpu) -> None:
    readings, totals = GpmReadings(), GpmTotals()
    gpu.windows(readings)
    for window in gpu.windows(readings):
        totals.add(window)

    gpu.nvml.answer(GpmSampleGet=Error("GPU is lost"))
    assert gpu.windows(readings) == []

    (facts,) = totals.facts(readings.refusals)
    assert facts["means"]["dram_pct"] == 12.0
    assert "GPU is lost" in facts["missing"]


def test_without_a_driver_the_reason_is_told(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull + "/missing")
    readings = GpmReadings()

    assert gpu.windows(readings) == []
    assert list(readings.refusals) == [ALL]


def test_samples_and_library_are_released(gpu: Gpu) -> None:
    readings = GpmReadings()
    gpu.windows(readings)

    readings.close()

    assert gpu.freed == 2
    assert not gpu.nvml.is_open


@pytest.mark.parametrize(
    ("mode", "gpm_too", "bursts"),
    [("", False, False), ("copies=on", False, False), ("pcsampling", False, False)]
    + [("counters", True, True), ("counters:interval=10", True, True)]
    + [("counters=gpm", True, False)],
)
def test_modes_with_counters_want_it(mode: str, gpm_too: bool, bursts: bool) -> None:
    modes = [parse_mode(""), parse_mode(mode)]
    assert (wants_gpm(modes), wants_bursts(modes)) == (gpm_too, bursts)
