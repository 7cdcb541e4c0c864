from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.nvml import Error, FakeNvml

from proton_bench.recording.gpu.counters import GpuReadings

ANSWERS = {
    "DeviceGetHandleByUUID": "handle",
    "DeviceGetPowerUsage": 699_500,
    "DeviceGetTemperature": 41,
    "DeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=3),
    "DeviceGetMemoryInfo": SimpleNamespace(total=150 << 30, used=2 << 30),
}
READ = {
    "SM clock (MHz)": 1980.0,
    "memory clock (MHz)": 1980.0,
    "power (W)": 699.5,
    "temperature (°C)": 41.0,
    "utilisation (%)": 97.0,
    "memory used (bytes)": float(2 << 30),
}


class Devices:
    """The native module's devices: ordinals with their UUIDs."""

    def __init__(self, **uuids: str) -> None:
        self.uuids = {int(name.removeprefix("gpu")): uuid for name, uuid in uuids.items()}

    def cuda_ordinals(self) -> list[int]:
        return list(self.uuids)

    def cuda_uuid(self, ordinal: int) -> str:
        return self.uuids[ordinal]


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    found = Devices(gpu3="GPU-0a")
    for module in ("counters", "nvml_devices"):
        monkeypatch.setattr(f"proton_bench.recording.gpu.{module}.native", found)
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull)
    return found


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install_answers(**answers: Any) -> FakeNvml:
        nvml = FakeNvml(**{**ANSWERS, **answers})
        monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
        return nvml

    return install_answers


def read(readings: GpuReadings) -> dict[int, dict[str, float]]:
    return {ordinal: dict(values) for ordinal, _, values in readings.read()}


def test_a_gpu_is_read_by_its_number_in_cuda(devices: Devices, install: Any) -> None:
    nvml = install()
    readings = GpuReadings()

    assert read(readings) == {3: READ}
    assert nvml.is_open

    readings.close()
    assert not nvml.is_open


def test_gpus_are_read_once_cuda_was_started(devices: Devices, install: Any) -> None:
    install()
    devices.uuids = {0: ""}
    readings = GpuReadings()

    assert read(readings) == {}

    devices.uuids = {0: "GPU-0a", 1: "GPU-0b"}
    assert read(readings) == {0: READ, 1: READ}


def test_what_a_driver_refuses_is_left_out(devices: Devices, install: Any) -> None:
    nvml = install(DeviceGetPowerUsage=Error("Not Supported"), DeviceGetMemoryInfo=None)
    readings = GpuReadings()
    without = {name: READ[name] for name in READ if name[:5] not in ("power", "memor")}
    clocks = {"memory clock (MHz)": 1980.0}

    assert read(readings) == {3: without | clocks}

    nvml.answer(DeviceGetPowerUsage=1, DeviceGetClockInfo=Error("GPU is lost"))
    assert read(readings) == {3: {name: without[name] for name in without if "clock" not in name}}


def test_slices_of_gpus_are_found_by_their_other_name(devices: Devices, install: Any) -> None:
    asked = []

    def by_uuid(name: str) -> str:
        asked.append(name)
        if not name.startswith("MIG-"):
            raise Error("Not Found")
        return "slice"

    install().nvmlDeviceGetHandleByUUID = by_uuid

    assert read(GpuReadings()) == {3: READ}
    assert asked == ["GPU-0a", "MIG-0a"]


def test_an_unknown_gpu_is_not_asked_again(devices: Devices, install: Any) -> None:
    nvml = install(DeviceGetHandleByUUID=Error("Not Found"))
    readings = GpuReadings()
    assert read(readings) == {}

    nvml.answer(DeviceGetHandleByUUID="handle")
    assert read(readings) == {}


@pytest.mark.parametrize("missing", ["driver", "library", "start"])
def test_nothing_is_read_without_a_driver_or_library(
    missing: str, devices: Devices, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = install(Init=Error("Driver Not Loaded") if missing == "start" else None)
    if missing == "driver":
        monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull + "/missing")
    if missing == "library":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    readings = GpuReadings()

    assert read(readings) == read(readings) == {}
    readings.close()
    assert not nvml.is_open
