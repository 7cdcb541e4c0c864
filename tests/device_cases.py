"""The programs of integration/device_programs.py, and their trees on any vendor's doubles."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_PROGRAMS = Path(__file__).parent / "integration" / "device_programs.py"
_UNSUPPORTED = 77  # how a program says that this upstream cannot do it

Tree = dict[str, tuple[int, int, str]]


@dataclass(frozen=True)
class Case:
    """A program and its tree: ``path: (count, time ns, device)`` of every node with numbers.

    Attributes:
        theirs: Upstream's tree where it differs on purpose: see docs/reference/compatibility.md.
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


def run_program(
    face: str, program: str, environment: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """Run a program under a profiler and return the root of its tree; skip what it cannot do."""
    output = folder / face
    command = [sys.executable, str(_PROGRAMS), face, program, str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == _UNSUPPORTED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    root: dict[str, Any] = json.loads(output.with_suffix(".hatchet").read_text())[0]
    return root
