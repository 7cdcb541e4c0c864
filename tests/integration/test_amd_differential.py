"""The same program gives the trees of the cupti backend on the doubles of AMD's libraries too.

Upstream's profiler runs on the same doubles, from every Triton that there is to test with: its
backend roctracer in all of them, rocprofiler from 3.9.0 on. Where it differs is named here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from device_cases import CASES, Case, Tree, kernels, numbers, run_program
from fakes.amd_doubles import AmdDoubles
from fakes.fixtures import rocm_doubles
from fakes.tritons import TRITONS

__all__ = ["rocm_doubles"]

BACKENDS = ("rocprofiler", "roctracer")
HAS_UPSTREAM = importlib.util.find_spec("triton") is not None


def has_backend(name: str) -> bool:
    return importlib.util.find_spec(f"proton_bench_plugins.{name}") is not None


OURS = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(not has_backend(name), reason=f"there is no {name}")
        )
        for name in BACKENDS
    ],
)

# Made before the session: by then HIP has started, and rocprofiler-sdk takes no tool any more.
TOO_LATE = {("rocprofiler", "graph_late")}


def flat(tree: Tree) -> Tree:
    """Put kernels of graphs right under the scope of the launch, as upstream's roctracer does."""
    found: Tree = {}
    for path, (count, time, device) in tree.items():
        parts = path.split(" > ")
        if "<captured_at>" in parts:
            parts = [*parts[: parts.index("<captured_at>")], parts[-1]]
        before = found.get(" > ".join(parts), (0, 0, device))
        found[" > ".join(parts)] = (before[0] + count, before[1] + time, device)
    return found


def without_graphs(tree: Tree) -> Tree:
    return {path: value for path, value in tree.items() if "<captured_at>" not in path}


# Of a graph of two streams it takes as many kernels as one of the streams was given.
TWO_STREAMS = {
    f"replay {name} > {kernel}": kernels(times)
    for name, times in (("a", 3), ("b", 2))
    for kernel in ("first", "second")
}


def of_upstream(backend: str, case: Case) -> Tree:
    """Return upstream's tree of a case."""
    if backend == "rocprofiler":  # sees no launches of graphs
        return without_graphs(case.tree)
    return TWO_STREAMS if case.name == "graph" else flat(case.tree)


@pytest.mark.nightly(keep=3)
@pytest.mark.skipif(not HAS_UPSTREAM, reason="Triton is not installed")
@pytest.mark.parametrize("triton", TRITONS, ids=lambda folder: Path(folder).name or "installed")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_upstream_on_the_doubles(
    case: Case, backend: str, triton: str, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    environment = rocm_doubles.environment(DEVICE_PROGRAM_BACKEND=backend, PYTHONPATH=triton)

    root = run_program("upstream", case.name, environment, tmp_path)

    assert numbers(root) == of_upstream(backend, case)


@pytest.mark.nightly(keep=6)
@OURS
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tree_is_that_of_the_program(
    case: Case, backend: str, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    if (backend, case.name) in TOO_LATE:
        pytest.skip("rocprofiler-sdk takes no tool after HIP has started")
    environment = rocm_doubles.environment(DEVICE_PROGRAM_BACKEND=backend)

    root = run_program("ours", case.name, environment, tmp_path)

    assert numbers(root) == case.tree


@pytest.mark.nightly(keep=3)
@OURS
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_order_of_kernels_and_records_changes_nothing(
    case: Case, backend: str, rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    if (backend, case.name) in TOO_LATE:
        pytest.skip("rocprofiler-sdk takes no tool after HIP has started")
    environment = rocm_doubles.environment(DEVICE_PROGRAM_BACKEND=backend, FAKE_AMD_DISORDER="1")

    root = run_program("ours", case.name, environment, tmp_path)

    assert numbers(root) == case.tree


LAUNCHES = next(case for case in CASES if case.name == "launches")  # on the devices 0 and 1
UUIDS = [f"GPU-{0x7A1C0000D0000000 + 0x1111 * (index + 1):016x}" for index in range(4)]


@pytest.mark.nightly(keep=3)
@OURS
@pytest.mark.parametrize(
    "variables",
    [
        {"HIP_VISIBLE_DEVICES": "3,1"},
        {"CUDA_VISIBLE_DEVICES": "2,0,1"},
        {"HIP_VISIBLE_DEVICES": "1,2", "CUDA_VISIBLE_DEVICES": "0,3"},
        {"ROCR_VISIBLE_DEVICES": "2,3"},
        {"ROCR_VISIBLE_DEVICES": "3,2,0", "HIP_VISIBLE_DEVICES": "2,0"},
        {"ROCR_VISIBLE_DEVICES": f"{UUIDS[2]},{UUIDS[0]}"},
        {"ROCR_VISIBLE_DEVICES": "3,1,0", "HIP_VISIBLE_DEVICES": f"{UUIDS[0]},{UUIDS[3]}"},
    ],
    ids=lambda variables: " ".join(f"{name[:4]}={value}" for name, value in variables.items()),
)
def test_devices_are_those_of_the_program(
    backend: str, variables: dict[str, str], rocm_doubles: AmdDoubles, tmp_path: Path
) -> None:
    environment = rocm_doubles.environment(
        DEVICE_PROGRAM_BACKEND=backend, FAKE_AMD_GPUS="4", **variables
    )

    root = run_program("ours", LAUNCHES.name, environment, tmp_path)

    assert numbers(root) == LAUNCHES.tree
