"""Recordings of the backend, through ``proton`` and the library, on the doubles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti13_doubles, cupti_doubles
from fakes.program_runs import run_proton

from proton_bench.formats.registry import read_profile

__all__ = ["cupti13_doubles", "cupti_doubles"]

TESTS = Path(__file__).parents[2]
HEAD = f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
PROGRAM = """
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
with proton.scope("step"):
    gpu.launch_with("_Z6matmulPfS_i", grid=(4, 2, 1), registers=40, local_bytes=64)
    gpu.launch_with("add_kernel", shared_bytes=512)
    gpu.copy(1, 4096, 7)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return ``run(doubles, program, *options, **variables)``: proton with the cupti backend."""

    def run_program(
        doubles: Doubles, program: str, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return run_proton(doubles.environment(**variables), tmp_path, program, *options)

    return run_program


def test_kernels_under_scopes(run: Run, cupti_doubles: Doubles, tmp_path: Path) -> None:
    done = run(cupti_doubles, PROGRAM, "-b", "cupti")

    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "out.proton")
    names = [profile.strings[frame] for frame in profile.frames]
    assert names == ["ROOT", "step", "matmul(float*, float*, int)", "add_kernel"]
    first, second = profile.variants
    assert (first.grid, first.registers, first.raw_name) == ((4, 2, 1), 40, "_Z6matmulPfS_i")
    assert (second.shared_bytes, second.raw_name) == (512, "")
    assert (first.local_bytes, second.local_bytes) == (64, 0)
    assert profile.devices[0].arch == "90"
    assert profile.devices[0].num_sms == 132


def test_copies_beside_kernels_and_operators(
    run: Run, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    done = run(cupti_doubles, PROGRAM, "-b", "cupti+cpu", "-m", "copies=on")

    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "out.proton")
    names = [profile.strings[frame] for frame in profile.frames]
    assert "<memcpy H2D>" in names
    assert profile.inclusive("bytes")[0] == 4096


def test_provenance_says_where_records_came_from(
    run: Run, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    run(cupti_doubles, PROGRAM, "-b", "cupti")

    facts = read_profile(tmp_path / "out.proton").provenance["collectors"]["cupti"]
    assert Path(facts["library"]).name == "libcupti.so"
    assert facts["library_origin"] == "PROTON_BENCH_CUPTI_LIB"
    assert (facts["version"], facts["driver"], facts["clock"]) == ("12.8", "13.0", "monotonic")
    assert facts["devices"][0]["name"] == "Fake GPU 0"


def test_it_is_the_default_where_an_nvidia_gpu_is_visible(
    run: Run, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    done = run(cupti_doubles, PROGRAM)

    assert done.returncode == 0, done.stderr
    assert read_profile(tmp_path / "out.proton").provenance["backend"] == "cupti"


def test_lost_records_are_shown(run: Run, cupti_doubles: Doubles) -> None:
    program = PROGRAM + "gpu.drop(5)\ngpu.launch('k', 7)\n"

    done = run(cupti_doubles, program, "-b", "cupti")

    assert "5 records were lost" in done.stderr


def test_a_forked_child_is_refused_and_its_parent_goes_on(
    run: Run, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    program = """
import os
from fakes.doubles import Cupti
import proton_bench as proton
from proton_bench.errors import BackendUnavailableError
gpu = Cupti()
session = proton.start("lib", backend="cupti")
gpu.launch("k", 7)
child = os.fork()
if child == 0:
    try:
        proton.start("child", backend="cupti")
    except BackendUnavailableError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
gpu.launch("k", 7)
proton.finalize(session, "proton")
"""
    script = tmp_path / "program.py"
    script.write_text(HEAD + program, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert "k" in read_profile(tmp_path / "lib.proton").strings


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"FAKE_CUPTI_FAIL": "cuptiSubscribe=39"}, "another profiler of this process"),
        ({"FAKE_CUPTI_FAIL": "cuptiActivityEnable=35"}, "RestrictProfilingToAdminUsers"),
        ({"FAKE_CUPTI_VERSION": "21"}, "is of CUDA 12.3, and 12.4 is the oldest"),
        ({"PROTON_BENCH_CUPTI_LIB": "/nowhere/libcupti.so"}, "which does not exist"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES hides"),
    ],
)
def test_what_is_in_the_way_is_said_in_one_line(
    run: Run, cupti_doubles: Doubles, variables: dict[str, str], message: str
) -> None:
    done = run(cupti_doubles, PROGRAM, "-b", "cupti", **variables)

    assert done.returncode == 69
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_a_library_is_refused(
    run: Run, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    (tmp_path / "libcupti.so").write_text("no library", encoding="utf-8")

    done = run(cupti_doubles, PROGRAM, "-b", "cupti", PROTON_BENCH_CUPTI_LIB=str(tmp_path))

    assert done.returncode == 69
    assert "cannot load libcupti; tried" in done.stderr


def test_a_foreign_subscriber_is_named(run: Run, cupti13_doubles: Doubles) -> None:
    program = """
from fakes.doubles import Cupti
import proton_bench as proton
Cupti().other_subscriber("Kineto")
try:
    proton.start("x", backend="cupti")
except RuntimeError as error:
    print(error)
"""
    script = HEAD + program
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=cupti13_doubles.environment(FAKE_CUPTI_VERSION="130000"),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert "held by 'Kineto'" in done.stdout, done.stderr


def test_other_clients_may_record_beside_a_shared_session(
    run: Run, cupti13_doubles: Doubles, tmp_path: Path
) -> None:
    program = """
from fakes.doubles import Cupti
gpu = Cupti()
gpu.launch("alone", 7)
print(gpu.other_client("CUPTI for XLA"))
gpu.launch("both", 7)
print(gpu.other_client(None), gpu.other_client_records())
"""

    versions = {"FAKE_CUPTI_VERSION": "130300", "FAKE_CUDA_VERSION": "13030"}
    done = run(cupti13_doubles, program, "-m", "shared=on", **versions)

    assert (done.returncode, done.stdout) == (0, "0\n0 1\n"), done.stderr
    profile = read_profile(tmp_path / "out.proton")
    assert {"alone", "both"} <= set(profile.strings)
    assert profile.provenance["collectors"]["cupti"]["shared_with"] == ""


@pytest.mark.parametrize(
    ("mode", "version", "message"),
    [
        ("shared=on", "130300", "shared=on takes 13.3"),  # lacks the entry points
        ("shared=on", "26", "is of CUDA 12.8"),
        ("shared=on:graph=launch", "130300", "leave out shared=on"),
    ],
)
def test_a_shared_session_that_cannot_be_is_refused(
    run: Run, cupti_doubles: Doubles, mode: str, version: str, message: str
) -> None:
    versions = {"FAKE_CUPTI_VERSION": version, "FAKE_CUDA_VERSION": "13030"}
    done = run(cupti_doubles, PROGRAM, "-b", "cupti", "-m", mode, **versions)

    assert done.returncode == 69
    assert message in done.stderr


def test_without_a_driver_the_real_library_ends_in_a_clear_error(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "lib" / "cupti"
    candidates = [(str(path), "wheel triton", False) for path in folder.glob("libcupti.so.1*")]
    if not candidates or Path("/dev/nvidiactl").exists():
        pytest.skip("no library of the wheel, or a driver is here")
    from proton_bench import _native
    from proton_bench.errors import BackendUnavailableError

    collector = _native.CuptiCollector(candidates)

    with pytest.raises(BackendUnavailableError, match=r"NVIDIA's driver; tried libcuda\.so\.1"):
        collector.start()


def test_hardware_trace_is_on_only_if_asked_for(run: Run, cupti_doubles: Doubles) -> None:
    program = PROGRAM + "print('asked', gpu.calls('cuptiActivityEnableHWTrace'))\n"

    assert "asked 0" in run(cupti_doubles, program, "-b", "cupti").stdout
    asked = run(cupti_doubles, program, "-b", "cupti", TRITON_ENABLE_HW_TRACE="1")
    assert "asked 1" in asked.stdout
    refused = run(
        cupti_doubles,
        program,
        *("-b", "cupti"),
        TRITON_ENABLE_HW_TRACE="1",
        FAKE_CUPTI_FAIL="cuptiActivityEnableHWTrace=27",
    )
    assert refused.returncode == 69
    assert "cuptiActivityEnableHWTrace" in refused.stderr
