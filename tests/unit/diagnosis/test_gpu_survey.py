from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fakes.nvml import Error, FakeNvml, process, write_smi

from proton_bench.diagnosis.gpu_survey import GpuProcess, survey_gpus

GPU = {
    "index": "0",
    "name": "NVIDIA H200",
    "uuid": "GPU-1",
    "driver_version": "580.95",
    "compute_cap": "9.0",
    "clocks.sm": "345",
    "clocks.max.sm": "1980",
    "clocks.mem": "3201",
    "persistence_mode": "Enabled",
    "mig.mode.current": "Disabled",
    "compute_mode": "Default",
    "clocks_event_reasons.active": "0x0000000000000004",
}


def without_nvml(name: str) -> Any:
    raise ImportError(name)


def test_the_management_library_is_asked_first_and_closed() -> None:
    nvml = FakeNvml(DeviceGetComputeRunningProcesses=[process(7)])

    survey = survey_gpus(lambda name: nvml, "/no/nvidia-smi")

    (gpu,) = survey.gpus
    assert (survey.driver, survey.cuda, survey.unasked) == ("580.95", "13.0", ())
    assert gpu.facts["name"] == "NVIDIA H200"
    assert gpu.facts["capability"] == "9.0"
    assert (gpu.facts["throttle"], gpu.facts["mig"], gpu.facts["persistence"]) == (1, False, True)
    assert gpu.facts["compute_mode"] == "Default"
    assert gpu.facts["processes"] == (GpuProcess(7, "python", 1 << 30),)
    assert gpu.unknown == {}
    assert not nvml.is_open


def test_a_fact_that_is_refused_says_why_and_the_others_stand() -> None:
    nvml = FakeNvml(
        DeviceGetMigMode=Error("Not Supported"),
        DeviceGetComputeRunningProcesses=Error("Insufficient Permissions"),
    )

    (gpu,) = survey_gpus(lambda name: nvml).gpus

    assert gpu.unknown == {"mig": "Not Supported", "processes": "Insufficient Permissions"}
    assert gpu.facts["sm_mhz"] == 1980


@pytest.mark.parametrize(
    "load", [without_nvml, lambda name: FakeNvml(Init=Error("Driver Not Loaded"))]
)
def test_nvidia_smi_is_asked_where_the_library_does_not_answer(load: Any, tmp_path: Path) -> None:
    head = "| Driver Version: 580.95   CUDA Version: 13.0 |"
    smi = write_smi(tmp_path, GPU, "GPU-1, 7, /bin/train, 512\nGPU-2, 8, x, 1\n", head)

    survey = survey_gpus(load, str(smi))

    (gpu,) = survey.gpus
    assert (survey.driver, survey.cuda) == ("580.95", "13.0")
    assert len(survey.unasked) == 1
    assert (gpu.facts["capability"], gpu.facts["sm_mhz"], gpu.facts["throttle"]) == ("9.0", 345, 4)
    assert (gpu.facts["persistence"], gpu.facts["mig"]) == (True, False)
    assert gpu.facts["processes"] == (GpuProcess(7, "/bin/train", 512 << 20),)


def test_an_older_nvidia_smi_knows_the_reasons_by_another_name(tmp_path: Path) -> None:
    fields = {**GPU, "clocks_throttle_reasons.active": "0x08", "mig.mode.current": "[N/A]"}
    del fields["clocks_event_reasons.active"]

    (gpu,) = survey_gpus(without_nvml, str(write_smi(tmp_path, fields))).gpus

    assert gpu.facts["throttle"] == 8
    assert gpu.unknown == {"mig": "nvidia-smi says [N/A]"}


def test_a_very_old_nvidia_smi_answers_what_it_can(tmp_path: Path) -> None:
    known = {name: GPU[name] for name in ("index", "name", "uuid", "driver_version")}

    (gpu,) = survey_gpus(without_nvml, str(write_smi(tmp_path, known))).gpus

    assert gpu.facts["name"] == "NVIDIA H200"
    assert gpu.unknown["persistence"] == "nvidia-smi does not show it"


def test_without_a_source_both_reasons_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PATH", "/no/folder")

    survey = survey_gpus(without_nvml)

    assert survey.gpus == ()
    assert survey.unasked == ("nvidia-ml-py is not installed", "nvidia-smi: not in PATH")


def test_an_nvidia_smi_that_fails_is_reported(tmp_path: Path) -> None:
    survey = survey_gpus(without_nvml, str(write_smi(tmp_path, {})))

    assert survey.gpus == ()
    assert "exit status 2" in survey.unasked[1]
