from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.diagnosis.machine import (
    folder_section,
    interpreter_section,
    native_section,
)


def named(section: Section) -> dict[str, Finding]:
    return {finding.name: finding for finding in section.findings}


def loader(version: str) -> Callable[[str], Any]:
    return lambda _: types.SimpleNamespace(version=version, __file__="/x/_native.so")


def test_a_module_of_the_package_s_version_is_ok() -> None:
    (finding,) = native_section("1.2", loader("1.2")).findings

    assert (finding.status, finding.value) == (Status.OK, "1.2 (/x/_native.so)")
    assert finding.provides == ("native",)


def test_a_stale_module_is_a_problem_with_both_versions() -> None:
    (finding,) = native_section("1.3", loader("1.2")).findings

    assert finding.status is Status.PROBLEM
    assert finding.value == "version 1.2, but the package is 1.3"


def test_a_module_that_does_not_load_says_why() -> None:
    def fail(name: str) -> Any:
        raise ImportError("libstdc++.so.6: version `GLIBCXX_3.4.30' not found")

    (finding,) = native_section("1.2", fail).findings

    assert finding.status is Status.PROBLEM
    assert "GLIBCXX_3.4.30" in finding.value
    assert "analysis works" in finding.advice


def test_interpreter_mode_is_a_note() -> None:
    assert named(interpreter_section({}, ()))["TRITON_INTERPRET"].status is Status.OK

    finding = named(interpreter_section({"TRITON_INTERPRET": "1"}, ()))["TRITON_INTERPRET"]

    assert (finding.status, finding.value) == (Status.NOTE, "1")


def test_triton_that_was_imported_while_python_started_is_a_problem() -> None:
    finding = named(interpreter_section({}, {"triton", "os"}))["triton imported"]

    assert finding.status is Status.PROBLEM
    assert "sitecustomize" in finding.advice


@pytest.mark.parametrize(
    ("name", "has_gil", "status"),
    [
        ("cpython", True, Status.OK),
        ("cpython", False, Status.NOTE),
        ("pypy", True, Status.PROBLEM),
    ],
)
def test_recording_needs_cpython_and_reads_frames_best_with_its_lock(
    monkeypatch: pytest.MonkeyPatch, name: str, has_gil: bool, status: Status
) -> None:
    facts = {**vars(sys.implementation), "name": name}
    monkeypatch.setattr(sys, "implementation", types.SimpleNamespace(**facts))
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: has_gil, raising=False)

    finding = named(interpreter_section({}, ()))["implementation"]

    assert finding.status is status
    assert finding.value.endswith("GIL on" if has_gil else "GIL off")


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    findings = named(folder_section(str(tmp_path)))

    assert findings["current"].status is Status.OK
    assert findings["free space"].value.endswith("MiB")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["/proc/self", "/no/such/folder"])
def test_a_folder_that_cannot_be_written_is_a_problem(folder: str) -> None:
    (finding,) = folder_section(folder).findings

    assert finding.status is Status.PROBLEM
    assert "-o" in finding.advice
