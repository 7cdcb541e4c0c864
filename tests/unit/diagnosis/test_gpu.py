from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.diagnosis.gpu import gpu_section
from proton_bench.diagnosis.gpu_survey import GpuProcess, GpuState, GpuSurvey

FACTS = {
    "name": "NVIDIA H200",
    "uuid": "GPU-1",
    "capability": "9.0",
    "sm_mhz": 345,
    "most_sm_mhz": 1980,
    "memory_mhz": 3201,
    "throttle": 1,
    "persistence": True,
    "mig": False,
    "compute_mode": "Default",
    "processes": (),
}


def named(section: Section) -> dict[str, Finding]:
    return {finding.name: finding for finding in section.findings}


def section_of(tmp_path: Path, **facts: Any) -> dict[str, Finding]:
    gpu = GpuState(0, {**FACTS, **facts})
    return named(gpu_section(lambda: GpuSurvey((gpu,), "580.95", "13.0"), tmp_path))


def test_a_missing_driver_is_absent_and_names_the_sources(tmp_path: Path) -> None:
    (finding,) = gpu_section(lambda: GpuSurvey(unasked=("a", "b")), tmp_path).findings

    assert (finding.status, finding.provides) == (Status.ABSENT, ("gpu",))
    assert finding.advice == "a; b"


def test_a_gpu_in_order_is_ok_throughout(tmp_path: Path) -> None:
    found = section_of(tmp_path)

    assert {finding.status for finding in found.values()} == {Status.OK}
    assert found["NVIDIA driver"].value == "580.95, CUDA up to 13.0"
    assert found["NVIDIA 0"].value == "NVIDIA H200, GPU-1, compute capability 9.0"
    assert found["NVIDIA 0"].provides == ("gpu",)
    assert found["NVIDIA 0 clocks"].value == "SM 345 MHz of 1980, memory 3201 MHz"
    assert found["NVIDIA 0 throttling"].value == "none, the GPU is idle"


@pytest.mark.parametrize(
    ("fact", "value", "about", "status", "advice"),
    [
        ("throttle", 0x48, "throttling", Status.PROBLEM, "cooling"),
        ("throttle", 0x4, "throttling", Status.NOTE, "nvidia-smi -lgc"),
        ("throttle", 0x2, "throttling", Status.NOTE, "nvidia-smi -rac"),
        ("persistence", False, "persistence", Status.NOTE, "nvidia-smi -pm 1"),
        ("mig", True, "MIG", Status.NOTE, "CUDA_VISIBLE_DEVICES=MIG-"),
        ("compute_mode", "Prohibited", "compute mode", Status.PROBLEM, "nvidia-smi -c DEFAULT"),
        ("compute_mode", "Exclusive_Process", "compute mode", Status.NOTE, "one process"),
        (
            "processes",
            (GpuProcess(7, "x", None),),
            "processes",
            Status.NOTE,
            "delays the measured kernels",
        ),
    ],
)
def test_what_disturbs_comes_with_what_to_do(
    tmp_path: Path, fact: str, value: Any, about: str, status: Status, advice: str
) -> None:
    finding = section_of(tmp_path, **{fact: value})[f"NVIDIA 0 {about}"]

    assert finding.status is status
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("unasked", "status", "value"),
    [((), Status.OK, "clocks, power"), (("no library",), Status.NOTE, "memory of the process")],
)
def test_it_says_which_counters_timelines_will_have(
    tmp_path: Path, unasked: tuple[str, ...], status: Status, value: str
) -> None:
    survey = GpuSurvey((GpuState(0, FACTS),), unasked=unasked)

    finding = named(gpu_section(lambda: survey, tmp_path))["counters in timelines"]

    assert finding.status is status
    assert finding.value.startswith(value)
    assert all(reason in finding.advice for reason in unasked)


def test_many_processes_are_counted(tmp_path: Path) -> None:
    many = tuple(GpuProcess(pid, "train", None) for pid in range(1_000_000, 1_000_006))

    value = section_of(tmp_path, processes=many)["NVIDIA 0 processes"].value

    assert value.startswith("train (pid 1000000), ")
    assert value.endswith(", 2 more")


def test_what_is_not_known_says_why(tmp_path: Path) -> None:
    gpu = GpuState(0, {"name": "GPU"}, {"mig": "Not Supported"})
    survey = GpuSurvey((gpu,), unasked=("no library",))

    found = named(gpu_section(lambda: survey, tmp_path))

    assert found["NVIDIA driver"].value == "unknown, CUDA up to unknown"
    assert "because no library" in found["NVIDIA driver"].advice
    assert found["NVIDIA 0 MIG"].value == "unknown: Not Supported"
    assert found["NVIDIA 0 clocks"].value == "unknown: the driver does not tell it"
    assert found["NVIDIA 0 MIG"].status is Status.NOTE


def test_a_driver_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").touch()

    (finding,) = gpu_section(GpuSurvey, tmp_path).findings

    assert (finding.status, finding.provides) == (Status.PROBLEM, ())


@pytest.mark.parametrize(("version", "value"), [("6.16.6\n", "driver 6.16.6"), (None, "driver")])
def test_an_amd_driver_is_found(tmp_path: Path, version: str | None, value: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    if version is not None:
        (tmp_path / "sys/module/amdgpu").mkdir(parents=True)
        (tmp_path / "sys/module/amdgpu/version").write_text(version)

    (finding,) = gpu_section(GpuSurvey, tmp_path).findings

    assert (finding.name, finding.value, finding.status) == ("AMD", value, Status.OK)
