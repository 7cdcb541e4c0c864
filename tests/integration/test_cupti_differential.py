"""The same stream of libcupti's double gives upstream's profiler and ours the same tree.

Upstream is the native module of Triton's wheel, in a process of its own. What differs on purpose
is named here: scopes that hold no kernel, and frames without numbers (kernels while they are
captured), stand in upstream's files only; `theirs` says what else upstream makes of a program.
"""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from device_cases import CASES, Case, Tree, numbers, run_program
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

STREAMS = sorted((Path(__file__).parents[1] / "data" / "cupti").glob("*.cupti.gz"))
HAS_UPSTREAM = importlib.util.find_spec("triton") is not None
HAS_OURS = importlib.util.find_spec("proton_bench_plugins.cupti") is not None
FACES = [
    pytest.param(
        "upstream", marks=pytest.mark.skipif(not HAS_UPSTREAM, reason="Triton is not installed")
    ),
    pytest.param(
        "ours", marks=pytest.mark.skipif(not HAS_OURS, reason="the cupti backend is not built")
    ),
]


def run(face: str, program: str, doubles: Doubles, folder: Path) -> dict[str, Any]:
    """Run a program under a profiler and return the root of its tree."""
    environment = doubles.environment(FAKE_CUDA_DEVICES="2")
    # Small, so that several buffers are completed on the library's own thread.
    environment["TRITON_PROFILE_BUFFER_SIZE"] = "262144"
    return run_program(face, program, environment, folder)


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tree_is_that_of_the_program(
    case: Case, face: str, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    root = run(face, case.name, cupti_doubles, tmp_path)

    assert numbers(root) == case.of(face)


def demangled(names: list[str]) -> list[str]:
    """Return names of C++ functions as they are shown to people."""
    import ctypes

    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    shown = []
    for name in names:
        status = ctypes.c_int()
        text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
        value = ctypes.cast(text, ctypes.c_char_p).value if text else None
        shown.append(value.decode() if value is not None else name)
    return shown


def with_demangled_names(tree: Tree) -> Tree:
    """Add up nodes by their path with readable names, which is how ours shows them."""
    result: Tree = {}
    for path, (count, time, device) in tree.items():
        readable = " > ".join(demangled(path.split(" > ")))
        old_count, old_time, _ = result.get(readable, (0, 0, device))
        result[readable] = (old_count + count, old_time + time, device)
    return result


def without(tree: Tree, part: str) -> Tree:
    """Leave out the nodes whose path has this part."""
    return {path: value for path, value in tree.items() if part not in path}


# Part of the paths of a recorded stream that stand in one of the two trees only.
DIFFERENCES = {
    "graph": "<memcpy",  # upstream has no copies of graphs
    "graph_late": "<captured_at>",  # upstream loses kernels of graphs that it did not see made
    "graph_changes": "<captured_at>",  # and child graphs, and updates
}


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name.split(".")[0])
@pytest.mark.skipif(not (HAS_UPSTREAM and HAS_OURS), reason="one of the two is not installed")
def test_a_recorded_stream_gives_both_the_same_tree(
    stream: Path, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    plain = tmp_path / "stream.cupti"
    plain.write_bytes(gzip.decompress(stream.read_bytes()))

    theirs = numbers(run("upstream", str(plain), cupti_doubles, tmp_path))
    ours = numbers(run("ours", str(plain), cupti_doubles, tmp_path))

    name = stream.name.split(".")[0]
    if name in DIFFERENCES:
        part = DIFFERENCES[name]
        assert without(ours, part) == with_demangled_names(without(theirs, part))
    else:
        assert ours == with_demangled_names(theirs)
    assert sum(count for count, _, _ in ours.values()) > 0
