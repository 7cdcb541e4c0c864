"""Every entry point of AMD's libraries fails at every call: a clear error or a reported loss.

The program records a graph of two streams; on the doubles, whose exports are the entry points.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from device_cases import CASES, numbers
from fakes.amd_doubles import AmdDoubles
from fakes.fixtures import rocm_doubles

__all__ = ["rocm_doubles"]

PROGRAM = Path(__file__).with_name("device_programs.py")
LIBRARIES = {
    "rocprofiler": "librocprofiler-sdk.so",
    "roctracer": "libroctracer64.so",
}
ENTRY_POINT = re.compile(r"\b(?:hip|hsa_|rocprofiler_|roctracer_)\w+")
GRAPH = next(case for case in CASES if case.name == "graph")
KERNELS = sum(count for count, _, _ in GRAPH.tree.values())
LOSS = re.compile(r"no kernel record arrived|lost|missing|dropped", re.IGNORECASE)

# Without these there is nothing to record.
NEEDED = {"rocprofiler_force_configure", "rocprofiler_start_context", "roctracer_open_pool_expl"}


def entry_points(doubles: AmdDoubles, library: str) -> list[str]:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", str(doubles.folder / library)],
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(set(ENTRY_POINT.findall(done.stdout)))


def record(
    doubles: AmdDoubles, backend: str, entry_point: str, output: Path
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run the program; return how it ended, and how many kernels its profile has."""
    environment = doubles.environment(
        DEVICE_PROGRAM_BACKEND=backend, FAKE_AMD_FAIL=f"{entry_point}=1"
    )
    command = [sys.executable, str(PROGRAM), "ours", GRAPH.name, str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    file = output.with_suffix(".hatchet")
    tree = numbers(json.loads(file.read_text())[0]) if file.exists() else {}
    return done, sum(count for count, _, _ in tree.values())


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("backend", LIBRARIES)
def test_a_failing_entry_point_ends_in_an_error_or_a_reported_loss(
    backend: str, part: int, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    if importlib.util.find_spec(f"proton_bench_plugins.{backend}") is None:
        pytest.skip(f"there is no backend {backend}")
    if shutil.which("nm") is None:
        pytest.skip("no nm, which names the entry points")
    libraries = (LIBRARIES[backend], "libamdhip64.so", "libhsa-runtime64.so.1")
    names = [name for library in libraries for name in entry_points(rocm_doubles, library)]
    assert len(names) > 40

    for name in names[part::4]:
        done, kernels = record(rocm_doubles, backend, name, tmp_path / name)
        printed = done.stderr.strip().splitlines()
        assert done.returncode != 0 or name not in NEEDED, name
        if done.returncode == 0:
            assert kernels == KERNELS or LOSS.search(done.stderr), (name, kernels, done.stderr)
        else:
            assert done.returncode == 1, (name, done.returncode, done.stderr)
            assert printed[-1].startswith("proton_bench.errors."), (name, done.stderr)
            assert name in printed[-1], (name, printed[-1])
