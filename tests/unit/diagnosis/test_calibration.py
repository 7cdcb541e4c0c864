from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from proton_bench.diagnosis import calibration_program
from proton_bench.diagnosis.calibration import calibrate, ceiling_section
from proton_bench.diagnosis.calibration_program import MARK, measure
from proton_bench.diagnosis.finding import Finding, Status
from proton_bench.recording.counters.gpm import GpmWindow

GPU = {"gpu": "NVIDIA H200", "driver": "580.95"}
GPUS = [{"name": GPU["gpu"], "driver": GPU["driver"]}]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def calibrated(stdout: str = "", stderr: str = "", code: int = 0) -> Finding:
    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert command == [sys.executable, "-P", "-m", calibration_program.__name__]
        return subprocess.CompletedProcess(list(command), code, stdout, stderr)

    (finding,) = calibrate(run).findings
    return finding


def answer(**fields: Any) -> str:
    return "a library says hello\n" + MARK + json.dumps({**GPU, "missing": {}, **fields}) + "\n"


def test_what_was_measured_is_told_and_kept() -> None:
    (before,) = ceiling_section(GPUS).findings
    assert "--calibrate" in before.advice

    finding = calibrated(answer(ceilings={"dram": 0.9}, missing={"fp64": "no Triton"}))

    assert (finding.status, finding.advice) == (Status.OK, "fp64: no Triton")
    assert "dram 90 %" in finding.value
    (after,) = ceiling_section(GPUS).findings
    assert "dram 90 %" in after.value
    assert after.advice == ""


@pytest.mark.parametrize(
    ("stdout", "status"),
    [
        (MARK + '{"error": "the kernels need torch"}\n', Status.ABSENT),
        ("", Status.PROBLEM),
        (answer(ceilings={}), Status.PROBLEM),
        (answer(ceilings={"dram": 0.0}), Status.PROBLEM),
    ],
)
def test_without_a_measurement_nothing_is_kept(stdout: str, status: Status) -> None:
    assert calibrated(stdout, "OSError: no memory", 1).status is status
    assert "--calibrate" in ceiling_section(GPUS).findings[0].advice


def test_a_cache_that_cannot_be_written_is_a_problem(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("a file where the folder should be")

    assert calibrated(answer(ceilings={"dram": 0.9})).status is Status.PROBLEM


def test_each_kind_of_gpu_has_one_finding() -> None:
    found = ceiling_section([*GPUS, *GPUS, {"name": "NVIDIA L4", "driver": "580.95"}, {}]).findings

    assert [finding.name for finding in found] == [
        "NVIDIA H200, driver 580.95",
        "NVIDIA L4, driver 580.95",
    ]


class Readings:
    """Windows with one value each; the first reading only begins one."""

    def __init__(self, *values: float | None) -> None:
        self._values = iter((None, *values))

    def read(self) -> Iterator[GpmWindow]:
        value = next(self._values)
        yield GpmWindow(0, 0, 1, {} if value is None else {"dram_pct": value})


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(calibration_program, "_WARM_UP_S", 0.0)
    monkeypatch.setattr(calibration_program, "_WINDOW_S", 1e-6)
    return []


def test_a_ceiling_is_the_median_of_windows(launches: list[str]) -> None:
    readings: Any = Readings(80.0, 10.0, None, 84.0, 90.0)

    found = measure(
        readings,
        "dram_pct",
        kernel=kernel_of(launches),
        synchronize=lambda: launches.append("wait"),
    )

    assert found == pytest.approx(0.82)
    assert launches[0] == "launch"
    assert launches[-1] == "wait"


def test_a_gpu_without_the_value_has_no_ceiling(launches: list[str]) -> None:
    readings: Any = Readings(*[None] * 5)

    with pytest.raises(LookupError):
        measure(readings, "dram_pct", kernel=kernel_of(launches), synchronize=lambda: None)


def kernel_of(launches: list[str]) -> Callable[[], None]:
    return lambda: launches.append("launch")


def test_the_program_says_why_it_cannot_measure() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", calibration_program.__name__],
        capture_output=True,
        check=False,
        env={"CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin"},
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.removeprefix(MARK))["error"]
