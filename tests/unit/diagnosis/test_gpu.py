from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.diagnosis import calibration
from proton_bench.diagnosis.finding import Status
from proton_bench.diagnosis.gpu import gpu_section

H100 = {"name": "NVIDIA H100", "driver": "570.1", "uuid": "GPU-7"}


@pytest.fixture(autouse=True)
def uncalibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "load_ceilings", lambda file: {})


def test_without_a_driver_there_is_no_gpu(tmp_path: Path) -> None:
    (finding,) = gpu_section([], tmp_path).findings

    assert (finding.status, finding.value, finding.provides) == (
        Status.ABSENT,
        "none found",
        ("gpu",),
    )


def test_gpus_are_shown_with_their_driver_and_ceilings_once_per_kind(tmp_path: Path) -> None:
    first, second, ceilings = gpu_section([H100, H100], tmp_path).findings

    assert (first.name, first.value) == ("NVIDIA 0", "NVIDIA H100, driver 570.1")
    assert (second.name, second.provides) == ("NVIDIA 1", ("gpu",))
    assert ceilings.name == "ceilings of NVIDIA H100"
    assert "--calibrate" in ceilings.advice


def test_a_driver_without_a_gpu_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("570")

    (finding,) = gpu_section([], tmp_path).findings

    assert finding.status is Status.PROBLEM


@pytest.mark.parametrize(("version", "value"), [("6.12\n", "driver 6.12"), (None, "driver")])
def test_an_amd_gpu_is_found_by_its_node(tmp_path: Path, version: str | None, value: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    if version is not None:
        (tmp_path / "sys/module/amdgpu").mkdir(parents=True)
        (tmp_path / "sys/module/amdgpu/version").write_text(version)

    (finding,) = gpu_section([], tmp_path).findings

    assert (finding.name, finding.value, finding.provides) == ("AMD", value, ("gpu",))
