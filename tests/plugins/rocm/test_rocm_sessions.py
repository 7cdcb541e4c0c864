"""Sessions of the backends of AMD GPUs: when they may start, and their errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.amd_doubles import AmdDoubles
from fakes.fixtures import rocm_doubles
from fakes.program_runs import run_proton, run_python

from proton_bench.formats.registry import read_profile

__all__ = ["rocm_doubles"]

BACKENDS = ("rocprofiler", "roctracer")
LIBRARIES = {"rocprofiler": "librocprofiler-sdk.so", "roctracer": "libroctracer64.so"}
PROGRAM = """
from fakes.amd_doubles import Amd
import proton_bench as proton
gpu = Amd()
with proton.scope("step"):
    gpu.launch_with("_Z6matmulPfS_i", grid=(4, 2, 1), block=(256, 1, 1))
    gpu.launch_with("add_kernel", shared_bytes=512)
    gpu.copy(1, 4096, 7)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, rocm_doubles: AmdDoubles) -> Run:
    """Return ``run(program, *options, **variables)``: proton on the doubles."""

    def run_program(
        program: str, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return run_proton(rocm_doubles.environment(**variables), tmp_path, program, *options)

    return run_program


@pytest.mark.parametrize("backend", BACKENDS)
def test_provenance_says_where_records_came_from(backend: str, run: Run, tmp_path: Path) -> None:
    run(PROGRAM, "-b", backend)

    facts = read_profile(tmp_path / "out.proton").provenance["collectors"][backend]
    assert Path(facts["library"]).name == LIBRARIES[backend]
    assert facts["library_origin"] == f"PROTON_BENCH_{backend.upper()}_LIB"
    assert facts["version"] == {"rocprofiler": "1.2.1", "roctracer": "4.1"}[backend]
    assert facts["driver"] == "7.1.25424"
    assert facts["devices"][0]["name"] == "AMD Instinct MI300X"


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_use_of_the_gpu_by_the_program_is_not_too_early(
    backend: str, run: Run, tmp_path: Path
) -> None:
    started = PROGRAM.replace("gpu = Amd()", "gpu = Amd()\ngpu.start_runtime()")

    done = run(started, "-b", backend)

    assert done.returncode == 0, done.stderr
    assert "add_kernel" in read_profile(tmp_path / "out.proton").strings


LATE = """
from fakes.amd_doubles import Amd
import proton_bench as proton
gpu = Amd()
gpu.launch("before", 7)
session = proton.start("lib", backend={backend!r})
gpu.launch("after", 7)
proton.finalize(session, "proton")
"""


def test_a_late_session_that_the_library_takes_says_why_it_saw_nothing(
    rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    done = run_python(
        rocm_doubles.environment(FAKE_ROCPROFILER_LATE="silent"),
        tmp_path,
        LATE.format(backend="rocprofiler"),
    )

    assert done.returncode == 0, done.stderr
    (warning,) = done.stderr.strip().splitlines()
    assert "no kernel record arrived" in warning


def test_a_late_session_of_roctracer_is_as_good_as_an_early_one(
    rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    done = run_python(rocm_doubles.environment(), tmp_path, LATE.format(backend="roctracer"))

    assert done.returncode == 0, done.stderr
    strings = read_profile(tmp_path / "lib.proton").strings
    assert "after" in strings
    assert "before" not in strings


@pytest.mark.parametrize("backend", BACKENDS)
def test_sessions_can_follow_each_other(
    backend: str, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    program = f"""
from fakes.amd_doubles import Amd
import proton_bench as proton
gpu = Amd()
for number in range(3):
    session = proton.start(f"lib{{number}}", backend={backend!r})
    gpu.launch(f"kernel {{number}}", 7)
    proton.finalize(session, "hatchet")
    gpu.launch("between", 7)
"""

    done = run_python(rocm_doubles.environment(), tmp_path, program)

    assert done.returncode == 0, done.stderr
    for number in range(3):
        (root, *_) = json.loads((tmp_path / f"lib{number}.hatchet").read_text())
        assert [child["frame"]["name"] for child in root["children"]] == [f"kernel {number}"]


def test_lost_records_are_shown(run: Run) -> None:
    program = PROGRAM + "gpu.drop(5)\nfor _ in range(8):\n    gpu.launch('k', 7)\n"

    done = run(program, "-b", "rocprofiler")

    assert done.returncode == 0
    assert "5 records were lost" in done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_launches_whose_record_never_came_are_shown(backend: str, run: Run) -> None:
    program = PROGRAM + "gpu.drop(2)\ngpu.launch('k', 7)\ngpu.launch('k', 7)\n"

    done = run(program, "-b", backend)

    assert done.returncode == 0
    assert "2 " in done.stderr
    assert "lost" in done.stderr or "record" in done.stderr


def test_kernels_whose_code_was_not_seen_have_a_node(run: Run, tmp_path: Path) -> None:
    program = PROGRAM + "gpu.hide_kernels(1)\ngpu.launch('unseen', 7)\n"

    done = run(program, "-b", "rocprofiler")

    assert done.returncode == 0, done.stderr
    assert sum(read_profile(tmp_path / "out.proton").inclusive("count")[:1]) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_forked_child_is_refused_and_its_parent_goes_on(
    backend: str, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    program = f"""
import os
from fakes.amd_doubles import Amd
import proton_bench as proton
from proton_bench.errors import BackendUnavailableError
gpu = Amd()
session = proton.start("lib", backend={backend!r})
gpu.launch("k", 7)
child = os.fork()
if child == 0:
    try:
        proton.start("child", backend={backend!r})
    except BackendUnavailableError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
gpu.launch("k", 7)
proton.finalize(session, "proton")
"""

    done = run_python(rocm_doubles.environment(), tmp_path, program)

    assert done.returncode == 0, done.stderr
    assert "k" in read_profile(tmp_path / "lib.proton").strings


@pytest.mark.parametrize(
    ("backend", "variables", "message"),
    [
        ("rocprofiler", {"FAKE_AMD_FAIL": "rocprofiler_start_context=12"}, "end that one first"),
        ("roctracer", {"FAKE_AMD_FAIL": "roctracer_open_pool_expl=-5"}, "end that one first"),
        ("rocprofiler", {"PROTON_BENCH_ROCPROFILER_LIB": "/nowhere/it.so"}, "does not exist"),
        ("roctracer", {"PROTON_BENCH_ROCTRACER_LIB": "/nowhere/it.so"}, "does not exist"),
        ("rocprofiler", {"HIP_VISIBLE_DEVICES": "-1"}, "HIP_VISIBLE_DEVICES"),
        ("roctracer", {"ROCR_VISIBLE_DEVICES": ""}, "ROCR_VISIBLE_DEVICES"),
    ],
)
def test_what_is_in_the_way_is_said_in_one_line(
    backend: str, variables: dict[str, str], message: str, run: Run
) -> None:
    done = run(PROGRAM, "-b", backend, **variables)

    assert done.returncode == 69, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
