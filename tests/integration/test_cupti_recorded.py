"""Streams with graphs and NVTX from an H200 give these trees: tests/data/cupti/README.md."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAMS = Path(__file__).with_name("device_programs.py")
STREAMS = Path(__file__).parents[1] / "data" / "cupti"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("proton_bench_plugins.cupti") is None,
    reason="the cupti backend is not built",
)

TORCH = "void at::native::vectorized_elementwise_kernel"  # however its template goes on


def counts(root: dict[str, Any]) -> Counter[str]:
    """Return the launches below each path; torch's kernels count under the start of their name."""
    found: Counter[str] = Counter()
    stack = [(child, "") for child in root["children"]]
    while stack:
        node, above = stack.pop()
        name = node["frame"]["name"]
        path = above + (TORCH if name.startswith(TORCH) else name)
        found[path] += node["metrics"].get("count", 0)
        stack += [(child, f"{path} > ") for child in node["children"]]
    return +found


def replay(name: str, doubles: Doubles, folder: Path, mode: str = "") -> tuple[Counter[str], str]:
    """Replay a stream; return the tree's counts and what stood on stderr."""
    stream, output = folder / "stream.cupti", folder / "ours"
    stream.write_bytes(gzip.decompress((STREAMS / f"{name}.cupti.gz").read_bytes()))
    command = [sys.executable, str(PROGRAMS), "ours", str(stream), str(output)]
    environment = doubles.environment(DEVICE_PROGRAM_MODE=mode)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return counts(json.loads(output.with_suffix(".hatchet").read_text())[0]), done.stderr


PLAIN = {"capture > add_kernel": 2, f"capture > {TORCH}": 8}
CAPTURED = "replays > <captured_at> > capture >"


def test_a_captured_graph_of_two_streams(cupti_doubles: Doubles, tmp_path: Path) -> None:
    tree, stderr = replay("graph", cupti_doubles, tmp_path)

    captured = {"add_kernel": 60, TORCH: 20, "<memcpy D2D>": 20}
    assert tree == {**PLAIN, **{f"{CAPTURED} {name}": count for name, count in captured.items()}}
    assert "captured before" not in stderr


@pytest.mark.parametrize(("mode", "others"), [("", 0), ("copies=on", 6)])
def test_copies_outside_of_graphs_are_asked_for(
    mode: str, others: int, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    tree, _ = replay("copies", cupti_doubles, tmp_path, mode)

    assert sum(count for path, count in tree.items() if "<mem" in path) == others


def test_one_entry_per_launch_of_a_graph(cupti_doubles: Doubles, tmp_path: Path) -> None:
    tree, _ = replay("graph_traced", cupti_doubles, tmp_path, "graph=launch")

    assert tree == {**PLAIN, "replays > <graph>": 20}


def test_updates_clones_and_child_graphs(cupti_doubles: Doubles, tmp_path: Path) -> None:
    tree, _ = replay("graph_changes", cupti_doubles, tmp_path)

    assert tree == {
        "capture > <captured_at> > capture > add_kernel": 4,
        "update > <captured_at> > update > add_kernel": 4,
        "clone > <captured_at> > capture > add_kernel": 4,
        "child > <captured_at> > capture > add_kernel": 4,
    }


def test_an_earlier_graph_is_reported_once(cupti_doubles: Doubles, tmp_path: Path) -> None:
    tree, stderr = replay("graph_late", cupti_doubles, tmp_path)

    assert tree == {
        "replays > <captured_at> > add_kernel": 9,
        f"replays > <captured_at> > {TORCH}": 3,
        "replays > <captured_at> > memcpy32_post": 3,
    }
    assert stderr.count("captured before profiling began") == 1


def test_nvtx_ranges_are_scopes(cupti_doubles: Doubles, tmp_path: Path) -> None:
    tree, _ = replay("nvtx", cupti_doubles, tmp_path)

    assert tree == {
        "outer > add_kernel": 1,
        "outer > inner > add_kernel": 1,
        "outer > second > add_kernel": 1,
        "add_kernel": 1,
    }


def test_nvtx_ranges_are_not_scopes_where_a_variable_says_so(
    cupti_doubles: Doubles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_ENABLE_NVTX", "0")

    tree, _ = replay("nvtx", cupti_doubles, tmp_path)

    assert tree == {"add_kernel": 4}
