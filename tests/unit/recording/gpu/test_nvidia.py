from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes.nvml import Error, FakeNvml, process, write_smi

from proton_bench.recording.gpu.nvidia import gpu_facts, newest_capability


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    newest_capability.cache_clear()
    yield
    newest_capability.cache_clear()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    nvml = FakeNvml(
        DeviceGetMemoryInfo=SimpleNamespace(total=150 << 30),
        DeviceGetEccMode=(1, 0),
        DeviceGetEnforcedPowerLimit=699_600,
        DeviceGetTemperature=41,
        DeviceGetComputeRunningProcesses=[process(os.getpid()), process(1 << 30)],
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull)
    return nvml


def test_what_a_gpu_is_and_how_it_is(answers: FakeNvml) -> None:
    assert gpu_facts() == [
        {
            "driver": "580.95",
            "name": "NVIDIA H200",
            "uuid": "GPU-1",
            "sm_clock_mhz": 1980,
            "memory_clock_mhz": 1980,
            "throttle_reasons": 1,
            "memory_bytes": 150 << 30,
            "ecc": "on",
            "mig": "off",
            "power_limit_w": 700,
            "temperature_c": 41,
            "other_processes": [],
        }
    ]


def test_a_divided_gpu_names_its_instances(
    answers: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    def instance(_device: object, index: int) -> int:
        if index == 1:
            raise Error("Not Found")
        return index

    names = {"device": "NVIDIA H200", 0: "NVIDIA H200 MIG 2g.35gb", 2: b"NVIDIA H200 MIG 1g.18gb"}
    monkeypatch.setattr(answers, "nvmlDeviceGetMigMode", lambda _device: (1, 1), raising=False)
    monkeypatch.setattr(answers, "nvmlDeviceGetMaxMigDeviceCount", lambda _device: 3, raising=False)
    monkeypatch.setattr(answers, "nvmlDeviceGetMigDeviceHandleByIndex", instance, raising=False)
    monkeypatch.setattr(answers, "nvmlDeviceGetName", names.__getitem__, raising=False)

    (gpu,) = gpu_facts()

    assert gpu["mig"] == "1g.18gb, 2g.35gb"


def test_answers_of_other_shapes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = FakeNvml(DeviceGetEccMode=None, DeviceGetMemoryInfo=3, DeviceGetEnforcedPowerLimit="x")
    monkeypatch.setitem(sys.modules, "pynvml", odd)  # type: ignore[arg-type]
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull)

    (gpu,) = gpu_facts()

    assert not {"ecc", "memory_bytes", "power_limit_w", "temperature_c"} & set(gpu)


def test_the_management_library_knows_the_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(DeviceGetCudaComputeCapability=(10, 3))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]

    assert newest_capability() == 103
    assert not nvml.is_open


@pytest.mark.parametrize(("answer", "capability"), [("12.0", 120), ("[N/A]", 0)])
def test_nvidia_smi_is_asked_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, capability: int
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(Init=Error("none")))  # type: ignore[arg-type]
    write_smi(tmp_path, {"compute_cap": answer})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert newest_capability() == capability


def test_without_a_source_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", "/no/folder")

    assert newest_capability() == 0
