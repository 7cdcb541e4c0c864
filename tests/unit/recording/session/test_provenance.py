"""Facts about a run in its profile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from capture_fixtures import FakeBackends

import proton_bench as proton
from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.recording.session import provenance
from proton_bench.recording.session.options import SessionOptions, plan_capture
from proton_bench.recording.session.provenance import (
    RecordCosts,
    end_facts,
    estimated_cost_ns,
    git_facts,
    start_facts,
)


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_start_names_what_records_and_where(
    fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    plan = plan_capture(SessionOptions(name="x", backend="gpu+cpu", mode="fast"))

    facts = start_facts(plan)

    assert facts["backend"] == "gpu+cpu"
    assert facts["mode"] == "fast"
    assert facts["host"] == socket.gethostname()
    assert facts["pid"] == os.getpid()
    assert facts["directory"] == str(tmp_path)
    assert facts["command"] == sys.orig_argv
    assert (facts["rank"], facts["world_size"]) == (3, 8)
    assert facts["start_time_ns"] - facts["realtime_base_ns"] <= time.monotonic_ns()


def test_command_line_may_be_given(fakes: FakeBackends) -> None:
    plan = plan_capture(SessionOptions(name="x", command=("proton", "train.py")))

    assert start_facts(plan)["command"] == ["proton", "train.py"]


_COUNTS = {
    "launches": 0, "metrics": 0, "operators": 0, "nodes": 0, "calls_ns": 30, "drain_ns": 70,
}  # fmt: skip


def test_cost_of_recording_grows_with_the_events(fakes: FakeBackends) -> None:
    many = estimated_cost_ns({**_COUNTS, "launches": 10**9})

    assert estimated_cost_ns(_COUNTS) == 100
    assert many > 10**9  # one event takes more than a nanosecond


@pytest.mark.parametrize(
    ("costs", "expected"), [(RecordCosts(operator_ns=2.0, node_ns=5.0), 100 + 20 + 15), (None, 100)]
)
def test_records_that_torch_made_are_part_of_the_cost(
    fakes: FakeBackends,
    monkeypatch: pytest.MonkeyPatch,
    costs: RecordCosts | None,
    expected: int,
) -> None:
    monkeypatch.setattr(provenance, "measure_record_costs", lambda has_nodes: costs)

    assert estimated_cost_ns({**_COUNTS, "operators": 10, "nodes": 3}) == expected


def test_end_knows_what_the_target_imported(
    fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ModuleType("torch")
    library.__dict__["__version__"] = "9.9"
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setitem(
        sys.modules,
        "torch.version",
        SimpleNamespace(cuda="13.0", hip=None),
    )
    started = start_facts(plan_capture(SessionOptions(name="x")))

    facts = end_facts(started, _COUNTS, time.monotonic_ns())

    assert facts["torch"] == "9.9"
    assert facts["cuda"] == "13.0"
    assert "hip" not in facts
    assert facts["end_time_ns"] >= facts["start_time_ns"]


def test_nothing_is_imported_for_a_fact(tmp_path: Path) -> None:
    program = (
        "import sys, proton_bench as proton\n"
        "proton.start(sys.argv[1], backend='cpu'); proton.finalize(output_format='proton')\n"
        "heavy = {'torch', 'triton', 'numpy', 'pandas', 'rich', 'typer', 'msgspec', 'hatchet'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x")],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"


def test_revision_and_changes_of_the_work_tree(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    (tmp_path / "a").write_text("1")
    (tmp_path / "inner").mkdir()
    _git(tmp_path, "add", "a")
    _git(tmp_path, "commit", "--quiet", "-m", "first")
    revision = _git(tmp_path, "rev-parse", "HEAD")

    clean = git_facts(str(tmp_path / "inner"))
    git_facts.cache_clear()
    (tmp_path / "a").write_text("2")
    changed = git_facts(str(tmp_path))

    assert clean == {"revision": revision, "dirty": False}
    assert changed == {"revision": revision, "dirty": True}


def test_settings_of_a_repository_start_no_program(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\ncat\n")
    script.chmod(0o755)
    folder = tmp_path / "repository"
    _git(tmp_path, "init", "--quiet", str(folder))
    (folder / ".gitattributes").write_text("* filter=own\n")
    (folder / "a").write_text("1")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "first")
    for name in ("core.fsmonitor", "filter.own.clean", "filter.own.process"):
        _git(folder, "config", name, str(script))
    _git(folder, "config", "filter.own.required", "true")
    (folder / "a").write_text("2")

    facts = git_facts(str(folder))

    assert facts["dirty"]
    assert not (tmp_path / "started").exists()


def test_folder_outside_of_a_work_tree_has_no_revision(tmp_path: Path) -> None:
    assert git_facts(str(tmp_path)) == {}


def test_git_that_does_not_answer_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()

    def hang(*arguments: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("git", 2.0)

    monkeypatch.setattr(subprocess, "run", hang)

    assert git_facts(str(tmp_path)) == {}


def test_file_holds_the_facts(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x", backend="fake")
    proton.finalize(session, "proton")

    provenance = proton.open_profile(tmp_path / "x.proton").provenance

    assert provenance["backend"] == "fake"
    assert provenance["end_time_ns"] >= provenance["start_time_ns"]
    assert provenance["command"] == tuple(sys.orig_argv)


def test_no_driver_means_no_gpu_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", "/no/such/driver")

    assert gpu_facts() == []


def test_gpu_facts_leave_out_what_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    class NVMLError(Exception):
        pass

    def refuse(*arguments: object) -> int:
        raise NVMLError("not supported")

    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: b"580.1",
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda device: "H200",
        nvmlDeviceGetUUID=lambda device: b"GPU-1",
        nvmlDeviceGetClockInfo=lambda device, kind: 1000 * kind,
        nvmlDeviceGetCurrentClocksThrottleReasons=refuse,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("proton_bench.recording.gpu.nvidia._DRIVER", os.devnull)

    assert gpu_facts() == [
        {
            "driver": "580.1",
            "name": "H200",
            "uuid": "GPU-1",
            "sm_clock_mhz": 1000,
            "memory_clock_mhz": 2000,
        }
    ]
