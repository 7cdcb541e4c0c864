"""The same stream of libcupti's double gives upstream's profiler and ours the same tree.

Upstream is the native module of Triton's wheel, in a process of its own. What differs on purpose
is named here: scopes that hold no kernel, and frames without numbers (kernels while they are
captured), stand in upstream's files only; `theirs` says what else upstream makes of a program.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

UNSUPPORTED = 77  # how a program says that this upstream cannot do it
PROGRAMS = Path(__file__).with_name("cupti_programs.py")
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

Tree = dict[str, tuple[int, int, str]]


@dataclass(frozen=True)
class Case:
    """A program and its tree: ``path: (count, time ns, device)`` of every node with numbers.

    Attributes:
        theirs: Upstream's tree where it differs on purpose: see docs/compatibility.md.
    """

    name: str
    tree: Tree
    theirs: Tree | None = field(default=None)

    def of(self, face: str) -> Tree:
        return self.theirs if face == "upstream" and self.theirs is not None else self.tree

    def __str__(self) -> str:
        return self.name


def kernels(count: int, device: str = "0", each_ns: int = 1000) -> tuple[int, int, str]:
    return count, count * each_ns, device


CASES = [
    Case(
        "launches",
        {
            "at top": kernels(1),
            "outer > kernel 0": kernels(3),
            "outer > kernel 1": kernels(4),
            "outer > inner > kernel 0": (2, 1005, "0"),
            "outer > elsewhere": kernels(1, "1"),
        },
    ),
    Case("many", {f"part {number} > kernel": kernels(4000) for number in range(3)}),
    Case("refused", {"outer > kernel": kernels(2)}),
    Case(
        "ranges",
        {
            "outer > kernel": kernels(1),
            "outer > range > kernel": kernels(1),
            "outer > range > nested > kernel": kernels(1),
            "outer > range > inner > kernel": kernels(1),
        },
    ),
    Case("threads", {f"thread {number} > kernel": kernels(50) for number in range(3)}),
    Case("inherited", {"outer > kernel": kernels(1)}),
    Case("window", {"before > kernel": kernels(1), "after > kernel": kernels(1)}),
    Case("copies", {"outer > kernel": kernels(1)}),
    Case(
        "graph",
        {
            f"replay {name} > <captured_at> > captured > {kernel}": kernels(times * nodes)
            for name, times in (("a", 3), ("b", 2))
            for kernel, nodes in (("first", 1), ("side > second", 2), ("third", 1))
        },
    ),
    Case(
        "graph_clone",
        {
            "replay > <captured_at> > captured > first": kernels(1),
            "replay > <captured_at> > captured > second": kernels(1),
            "replay > plain": kernels(1),
        },
    ),
    Case(
        "graph_update",
        {
            f"replay {number} > <captured_at> > capture {number} > kernel {number}": kernels(1)
            for number in range(2)
        },
        theirs={
            f"replay {number} > <captured_at> > capture 0 > kernel 0": kernels(1)
            for number in range(2)
        },
    ),
    Case(
        "graph_child",
        {
            "replay > <captured_at> > captured > first": kernels(1),
            "replay > <captured_at> > captured > second": kernels(1),
        },
        theirs={},
    ),
    Case(
        "graph_late",
        {
            "replay > <captured_at> > first": kernels(2),
            "replay > <captured_at> > second": kernels(2),
        },
        theirs={},
    ),
    Case(
        "graph_pause",
        {
            f"{replay} > <captured_at> > {kernel}": kernels(1)
            for replay in ("replay", "replay again")
            for kernel in ("seen > first", "second")
        },
        theirs={
            f"{replay} > <captured_at> > seen > first": kernels(1)
            for replay in ("replay", "replay again")
        },
    ),
    Case(
        "two_graphs",
        {
            f"replay {number} > <captured_at> > capture {number} > kernel {number}": kernels(1)
            for number in range(2)
        },
    ),
]


def run(face: str, program: str, doubles: Doubles, folder: Path) -> dict[str, Any]:
    """Run a program under a profiler and return the root of its tree."""
    output = folder / face
    command = [sys.executable, str(PROGRAMS), face, program, str(output)]
    environment = doubles.environment(FAKE_CUDA_DEVICES="2")
    # Small, so that several buffers are completed on the library's own thread.
    environment["TRITON_PROFILE_BUFFER_SIZE"] = "262144"
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode == UNSUPPORTED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    root: dict[str, Any] = json.loads(output.with_suffix(".hatchet").read_text())[0]
    return root


def numbers(root: dict[str, Any]) -> Tree:
    """Return every node that has a time, siblings of one name and device added up."""
    found: Tree = {}
    stack = [(child, child["frame"]["name"]) for child in root["children"]]
    while stack:
        node, path = stack.pop()
        metrics = node["metrics"]
        if "time (ns)" in metrics and metrics.get("count"):
            count, time, device = found.get(path, (0, 0, str(metrics["device_id"])))
            found[path] = (count + metrics["count"], time + metrics["time (ns)"], device)
        stack += [(child, f"{path} > {child['frame']['name']}") for child in node["children"]]
    return found


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
    "graph_late": "<captured_at>",  # upstream loses kernels of graphs that it did not see made
    "graph_changes": "<captured_at>",  # and child graphs, and updates
}


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
