"""The cupti backend beside torch.profiler, without kernels, and where a program fails, on a GPU.

Every program runs in its own process, because the effects of a profiler on CUPTI stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

HEAD = """
import sys
import torch
import proton_bench as proton
from torch.profiler import ProfilerActivity, profile
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
source = torch.ones(1 << 20, device="cuda")
def work(count):
    for _ in range(count):
        source.sin()
    torch.cuda.synchronize()
def kernels(profiler):
    return sum(e.count for e in profiler.key_averages() if "sin_kernel" in e.key)
"""
PAUSED = "proton: warning: torch.profiler records the GPU from here on"
KEPT = "torch.profiler has ended and keeps CUPTI"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return ``run(program, *options)``: proton with the cupti backend; none runs plain Python."""

    def run_program(program: str, *options: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(HEAD + program, encoding="utf-8")
        proton = ["-m", "proton_bench", "-n", "out", "-b", "cupti", *options] if options else []
        return subprocess.run(
            [sys.executable, *proton, str(script)],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
            timeout=300,
        )

    return run_program


def sines(path: Path) -> int:
    """Return how many kernels of the programs a profile holds."""
    profile = read_profile(path)
    counts = profile.columns["count"]
    rows = [row for row in range(len(profile)) if "sin_kernel" in profile.name(row)]
    return sum(int(counts.get(row) or 0) for row in rows)


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("proton: warning")]


def test_torch_profiler_gets_its_kernels_and_ours_are_reported_missing(
    run: Run, tmp_path: Path
) -> None:
    program = """
work(10)
with profile(activities=both) as profiler:
    work(20)
work(40)
print(kernels(profiler))
"""

    done = run(program, "--strict")

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["20"]
    warnings = said(done)
    assert warnings[0].startswith(PAUSED)
    if len(warnings) == 1:  # torch let go of CUPTI
        assert sines(tmp_path / "out.proton") == 50
    else:
        assert len(warnings) == 2
        assert KEPT in warnings[1]
        assert sines(tmp_path / "out.proton") == 10


def test_torch_profiler_with_a_schedule_gets_every_cycle(run: Run) -> None:
    program = """
cycles = []
schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
def ready(profiler):
    cycles.append(kernels(profiler))
with profile(activities=both, schedule=schedule, on_trace_ready=ready) as profiler:
    for _ in range(8):
        work(5)
        profiler.step()
print(*cycles)
"""

    done = run(program, "--strict")

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["10", "10"]
    assert said(done)[0].startswith(PAUSED)


def test_a_session_is_refused_while_torch_profiler_records_the_gpu(run: Run) -> None:
    program = """
with profile(activities=both) as profiler:
    work(10)
    try:
        proton.start("lib", backend="cupti")
    except RuntimeError as error:
        print(error)
    work(10)
print(kernels(profiler))
"""

    done = run(program)

    assert done.returncode == 0, done.stderr
    message, count = done.stdout.splitlines()
    assert message.startswith("torch.profiler records the GPU in this process")
    assert count == "20"


def test_a_session_after_torch_profiler_works_or_names_the_holder_of_cupti(
    run: Run, tmp_path: Path
) -> None:
    program = """
with profile(activities=both):
    work(10)
try:
    session = proton.start("lib", backend="cupti")
except RuntimeError as error:
    print(error)
else:
    work(10)
    proton.finalize(session, "proton")
"""

    done = run(program)

    assert done.returncode == 0, done.stderr
    if done.stdout:
        assert "another profiler of this process" in done.stdout
    else:
        assert sines(tmp_path / "lib.proton") == 10


def test_torch_profiler_of_the_cpu_goes_beside_a_session(run: Run, tmp_path: Path) -> None:
    program = """
with profile(activities=[ProfilerActivity.CPU]):
    work(10)
"""

    done = run(program, "--strict")

    assert (done.returncode, said(done)) == (0, [])
    assert sines(tmp_path / "out.proton") == 10


def test_a_session_without_kernels_ends_with_one_warning(run: Run) -> None:
    program = """
session = proton.start("lib", backend="cupti")
proton.finalize(session)
"""

    done = run(program)

    assert done.returncode == 0, done.stderr
    (warning,) = said(done)
    assert "no kernel was recorded" in warning


def test_a_program_that_raises_leaves_its_profile(run: Run, tmp_path: Path) -> None:
    done = run("work(10)\nraise SystemExit(5)\n", "--strict")

    assert done.returncode == 5
    assert sines(tmp_path / "out.proton") == 10


def test_the_doctor_knows_the_gpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "doctor", "--json", "--require", "cupti"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    sections = {each["name"]: each["findings"] for each in json.loads(done.stdout)["sections"]}
    backends = {each["name"]: each["status"] for each in sections["backends"]}
    assert backends["cupti"] == "ok"
    assert any(torch.cuda.get_device_name(0) in each["name"] for each in sections["calibration"])
