"""The findings of ``proton doctor`` about CUPTI."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.plugin import Finding, Status
from proton_bench_plugins.cupti.examination import (
    counter_finding,
    library_findings,
    sampling_finding,
    subscriber_finding,
    trial_finding,
)
from proton_bench_plugins.cupti.privileges import Permission

__all__ = ["cupti_doubles"]


class Answers:
    """Runs nothing: answers commands by their last word."""

    def __init__(self, **answers: tuple[int, str, str]) -> None:
        self._answers = answers

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        code, stdout, stderr = self._answers.get(Path(command[-1]).stem, (1, "", "OSError: none"))
        return subprocess.CompletedProcess(list(command), code, stdout, stderr)


def trial(doubles: Doubles, **variables: str) -> Finding:
    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=doubles.environment(**variables),
            capture_output=True,
            check=False,
            text=True,
            timeout=300,
        )

    return trial_finding([(str(doubles.cupti), "test", False)], None, run)


def test_each_library_comes_with_its_version_and_the_taken_one_with_why() -> None:
    candidates = [
        ("libcupti.so.13", "already in the process", True),
        ("/a/broken.so", "wheel a", False),
        ("/b/first.so", "wheel b", False),
        ("/c/second.so", "wheel c", False),
        ("libcupti.so", "search of the system", False),
    ]
    run = Answers(
        first=(0, "26 /b/first.so\n", ""),
        second=(0, "130001 /c/second.so\n", ""),
        libcupti=(0, "130001 /c/second.so\n", ""),
    )

    broken, first, second = library_findings(candidates, run)

    assert (broken.status, broken.advice) == (Status.ABSENT, "does not load: OSError: none")
    assert (first.value, first.status) == ("CUDA 12.8, /b/first.so", Status.OK)
    assert first.advice.startswith("wheel b: used, the first that loads")
    assert (second.value, second.advice) == (
        "CUDA 13.0, /c/second.so",
        "wheel c: not used, an earlier one loads",
    )


def test_a_library_that_is_taken_and_too_old_is_a_problem() -> None:
    run = Answers(old=(0, "21 /a/old.so\n", ""))

    (finding,) = library_findings([("/a/old.so", "wheel a", False)], run)

    assert finding.status is Status.PROBLEM
    assert "12.4 is the oldest" in finding.advice


def test_a_library_that_kills_its_process_is_reported() -> None:
    run = Answers(bad=(-11, "", ""))

    (finding,) = library_findings([("/a/bad.so", "PROTON_BENCH_CUPTI_LIB", False)], run)

    assert finding.advice == "does not load: died of signal 11"


def test_no_library_at_all_is_absent() -> None:
    (finding,) = library_findings([("libcupti.so", "search of the system", False)], Answers())

    assert (finding.status, finding.value) == (Status.ABSENT, "none found")


def test_the_version_is_asked_of_the_file_in_a_process_of_its_own(cupti_doubles: Doubles) -> None:
    path = str(cupti_doubles.cupti)

    (finding,) = library_findings([(path, "PROTON_BENCH_CUPTI_LIB", False)])

    assert finding.value == f"CUDA 12.8, {path}"
    assert finding.advice == "used: PROTON_BENCH_CUPTI_LIB names it"


@pytest.mark.parametrize(
    ("environ", "status"),
    [
        ({}, Status.OK),
        ({"LD_PRELOAD": "/usr/lib/libasan.so"}, Status.OK),
        ({"NVTX_INJECTION64_PATH": "/a/libcupti.so.12"}, Status.OK),
        ({"CUDA_INJECTION64_PATH": "/nsys/libToolsInjection64.so"}, Status.NOTE),
        ({"NVTX_INJECTION64_PATH": "/nsys/libToolsInjection64.so"}, Status.NOTE),
        ({"LD_PRELOAD": "/a.so:/nsys/libToolsInjection64.so"}, Status.NOTE),
    ],
)
def test_tools_that_are_loaded_into_programs_are_named(
    environ: dict[str, str], status: Status
) -> None:
    finding = subscriber_finding(environ)

    assert finding.status is status
    assert ("libToolsInjection64.so" in finding.value) == (status is Status.NOTE)


@pytest.mark.parametrize(
    ("restricted", "capabilities", "status", "text"),
    [
        ("0", 0, Status.OK, "allowed to every user"),
        ("1", 1 << 21, Status.OK, "CAP_SYS_ADMIN"),
        ("1", 1 << 38, Status.OK, "CAP_PERFMON"),
        ("1", 1 << 20, Status.NOTE, "this process is not one"),
        ("", 0, Status.NOTE, "does not say"),
    ],
)
def test_the_privilege_to_sample(
    tmp_path: Path, restricted: str, capabilities: int, status: Status, text: str
) -> None:
    setting = f"RmProfilingAdminOnly: {restricted}\n" if restricted else ""
    (tmp_path / "params").write_text(f"ResmanDebugLevel: 4294967295\n{setting}")
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")

    finding = sampling_finding(tmp_path / "params", tmp_path / "status")

    assert finding.status is status
    assert text in finding.value


def test_the_privilege_is_unknown_without_a_driver(tmp_path: Path) -> None:
    finding = sampling_finding(tmp_path / "params", tmp_path / "status")

    assert "unknown" in finding.value
    assert os.strerror(errno.ENOENT) in finding.value


def test_a_kernel_that_is_recorded_makes_the_backend_work(cupti_doubles: Doubles) -> None:
    finding = trial(cupti_doubles, FAKE_CUDA_LAUNCHES="1")

    assert (finding.status, finding.provides) == (Status.OK, ("cupti",))
    assert finding.value == "works (libcupti 12.8, driver of CUDA 13.0)"


@pytest.mark.parametrize(
    ("variables", "status", "text"),
    [
        ({"FAKE_CUPTI_FAIL": "cuptiSubscribe=39"}, Status.PROBLEM, "another profiler"),
        ({"FAKE_CUPTI_FAIL": "cuptiActivityEnable=35"}, Status.PROBLEM, "to administrators"),
        (
            {"FAKE_CUPTI_FAIL": "cuptiActivityFlushAll=999"},
            Status.PROBLEM,
            "its record did not arrive",
        ),
        ({"FAKE_CUDA_DEVICES": "0"}, Status.NOTE, "cuInit failed: fake CUDA error 100"),
        ({"FAKE_CUDA_FAIL": "cuModuleLoadData=222"}, Status.NOTE, "cuModuleLoadData failed"),
        ({"FAKE_CUDA_FAIL": "cuLaunchKernel=2"}, Status.NOTE, "cuLaunchKernel failed"),
    ],
)
def test_a_trial_that_fails_says_why(
    cupti_doubles: Doubles, variables: dict[str, str], status: Status, text: str
) -> None:
    finding = trial(cupti_doubles, FAKE_CUDA_LAUNCHES="1", **variables)

    assert finding.status is status
    assert text in finding.value


def test_a_trial_that_dies_is_a_problem() -> None:
    answer = subprocess.CompletedProcess([], -11, "", "")

    finding = trial_finding([], None, lambda command: answer)

    assert (finding.status, finding.value) == (Status.PROBLEM, "the test died of signal 11")


def test_what_others_print_does_not_disturb_the_trial(cupti_doubles: Doubles) -> None:
    noise = 'proton_bench selftest: {"error": "said by the last line"}'
    answer = subprocess.CompletedProcess([], 0, f"tool: hello\n{noise}\n", "tool: bye\n")

    finding = trial_finding([], None, lambda command: answer)

    assert finding.value == "said by the last line"


def test_an_obstacle_that_is_known_is_not_tried() -> None:
    finding = trial_finding([], "no NVIDIA driver", pytest.fail)

    assert (finding.status, finding.advice) == (Status.ABSENT, "no NVIDIA driver")


def test_the_doctor_fails_for_a_backend_that_cannot_record(cupti_doubles: Doubles) -> None:
    def doctor(**variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "proton_bench", "doctor", "--json", "--require", "cupti"],
            env=cupti_doubles.environment(FAKE_CUDA_LAUNCHES="1", **variables),
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )

    works, fails = doctor(), doctor(FAKE_CUPTI_FAIL="cuptiSubscribe=39")

    assert works.returncode == 0, works.stderr
    assert json.loads(works.stdout)["required"] == {"cupti": True}
    assert fails.returncode == 69
    assert json.loads(fails.stdout)["required"] == {"cupti": False}
    assert fails.stderr.startswith(
        "proton: error: --require: cupti: recording a kernel: cuptiSubscribe"
    )


BOTH = "130001 /a/both.so\nsampling ranges\n"


@pytest.mark.parametrize(
    ("stdout", "facts", "status", "has", "lacks"),
    [
        (BOTH, {}, Status.OK, ["sampling", "exact", "GPM"], ["not more"]),
        (BOTH, {"gpm_obstacle": "old GPU"}, Status.OK, ["exact", "old GPU"], ["GPM"]),
        (BOTH, {"permission": Permission.REFUSED}, Status.NOTE, ["GPM", "admin"], ["exact"]),
        (BOTH, {"without": "no driver"}, Status.NOTE, ["no driver"], ["exact"]),
        (BOTH, {"gpus": [{"mig": "1g.18gb"}]}, Status.NOTE, ["GPM", "MIG"], ["exact"]),
        ("26 /a/both.so\nranges\n", {}, Status.OK, ["exact", "GPM"], ["by sampling"]),
        ("22 /a/both.so\n\n", {}, Status.NOTE, ["libcupti", "GPM"], ["exact"]),
        ("22 /a/both.so\n", {"gpm_obstacle": "old GPU"}, Status.NOTE, ["none", "old"], ["GPM"]),
    ],
)
def test_the_ways_to_read_counters_are_told(
    stdout: str, facts: dict[str, Any], status: Status, has: list[str], lacks: list[str]
) -> None:
    candidates = [("libcupti.so.13", "loaded", True), ("/a/both.so", "wheel", False)]
    usual = {"gpm_obstacle": "", "gpus": [{"mig": "off"}, {}], "permission": Permission.EVERY_USER}
    asked: dict[str, Any] = {"without": None, **usual, **facts}

    finding = counter_finding(candidates, run=Answers(both=(0, stdout, "")), **asked)

    assert finding.status is status
    assert [word for word in has if word not in finding.value] == []
    assert [word for word in lacks if word in finding.value] == []
