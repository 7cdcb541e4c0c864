"""Recordings of the backends of AMD GPUs, through ``proton`` and the library, on the doubles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.amd_doubles import AmdDoubles
from fakes.fixtures import rocm_doubles

from proton_bench.formats.registry import read_profile

__all__ = ["rocm_doubles"]

HEAD = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
PROGRAM = """
from fakes.amd_doubles import Amd
import proton_bench as proton
gpu = Amd()
with proton.scope("step"):
    gpu.launch_with("_Z6matmulPfS_i", grid=(4, 2, 1))
    gpu.launch_with("add_kernel", shared_bytes=512)
    gpu.copy(1, 4096, 7)
"""
CONTRACT = """
import itertools, sys
from fakes.amd_doubles import Amd
from proton_bench.recording.session.session import SessionOptions, open_session
from proton_bench.plugin.contract import assert_backend_contract
from proton_bench.plugin.manager import get_plugin_manager
gpu, numbers, name = Amd(), itertools.count(), sys.argv[1]
assert_backend_contract(
    get_plugin_manager().backends()[name].backend,
    modes=("copies=on:buffer_bytes=65536:flush_period_ms=0", ""),
    open_session=lambda: open_session(SessionOptions(name=f"s{next(numbers)}", backend=name)),
    workload=lambda: gpu.launch("kernel", 7),
)
print("kept")
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]
both = pytest.mark.parametrize("backend", ["rocprofiler", "roctracer"])


@pytest.fixture
def run(tmp_path: Path, rocm_doubles: AmdDoubles) -> Run:
    """Return ``run(program, *options, **variables)``: proton on the doubles."""

    def run_program(
        program: str, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(HEAD + program, encoding="utf-8")
        command = [sys.executable, "-m", "proton_bench", "-n", "out", *options, str(script)]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=rocm_doubles.environment(**variables),
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run_program


@both
def test_kernels_and_copies_stand_below_their_scope(run: Run, tmp_path: Path, backend: str) -> None:
    done = run(PROGRAM, "-b", backend, "-m", "copies=on")

    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "out.proton")
    names = [profile.strings[frame] for frame in profile.frames]
    assert names == [
        "ROOT",
        "step",
        "matmul(float*, float*, int)",
        "add_kernel",
        "<memcpy H2D>",
    ]
    assert (profile.devices[0].kind, profile.devices[0].arch) == ("HIP", "gfx942")
    assert profile.inclusive("bytes")[0] == 4096
    facts = profile.provenance["collectors"][backend]
    assert facts["library_origin"] == f"PROTON_BENCH_{backend.upper()}_LIB"
    assert facts["devices"][0]["name"]


def test_a_launch_has_its_shape_from_rocprofiler(run: Run, tmp_path: Path) -> None:
    run(PROGRAM, "-b", "rocprofiler")

    first, second = read_profile(tmp_path / "out.proton").variants
    assert (first.grid, first.block, first.raw_name) == ((4, 2, 1), (64, 1, 1), "_Z6matmulPfS_i")
    assert second.shared_bytes == 512


def test_a_workgroup_that_is_not_full_is_one_of_the_grid(run: Run, tmp_path: Path) -> None:
    run(PROGRAM.replace("grid=(4, 2, 1)", "missing_items=1"), "-b", "rocprofiler")

    first, _ = read_profile(tmp_path / "out.proton").variants
    assert (first.grid, first.block) == ((1, 1, 1), (64, 1, 1))


@both
def test_timelines_are_written(run: Run, tmp_path: Path, backend: str) -> None:
    done = run(PROGRAM, "-b", backend, "-d", "trace")

    assert done.returncode == 0, done.stderr
    assert "add_kernel" in {
        name for timeline in [read_profile(tmp_path / "out.pftrace")] for name in timeline.strings
    }


def test_rocprofiler_is_the_default_where_an_amd_gpu_is_visible(run: Run, tmp_path: Path) -> None:
    done = run(PROGRAM)

    assert done.returncode == 0, done.stderr
    assert read_profile(tmp_path / "out.proton").provenance["backend"] == "rocprofiler"


@both
def test_sampling_is_refused_with_the_reason(run: Run, backend: str) -> None:
    done = run(PROGRAM, "-b", backend, "-m", "pcsampling")

    assert done.returncode == 2
    assert "PC sampling of AMD GPUs is not collected" in done.stderr


@both
def test_an_empty_profile_is_a_warning(run: Run, backend: str) -> None:
    done = run("pass", "-b", backend)

    assert done.returncode == 0
    assert "no kernel was recorded" in done.stderr


def test_rocprofiler_after_hip_is_refused_with_what_to_do(
    rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    program = """
from fakes.amd_doubles import Amd
import proton_bench as proton
Amd()._functions["start_runtime"]()
proton.start("late", backend="rocprofiler")
"""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        cwd=tmp_path,
        env=rocm_doubles.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 1
    assert "proton run -b rocprofiler" in done.stderr


@both
def test_the_backend_keeps_the_contract(
    rocm_doubles: AmdDoubles, tmp_path: Path, backend: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + CONTRACT, backend],
        cwd=tmp_path,
        env=rocm_doubles.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.stdout.strip() == "kept", done.stderr


@both
def test_doctor_starts_a_backend_that_is_required(
    rocm_doubles: AmdDoubles, tmp_path: Path, backend: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "doctor", "--require", backend],
        cwd=tmp_path,
        env=rocm_doubles.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout
    assert backend in done.stdout
