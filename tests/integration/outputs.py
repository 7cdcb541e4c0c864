"""The files of a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind

# Searched and not imported: `pytester` drops imports of a test at its end, and a second import
# of torch into one process ends that process.
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

RunPytest = Callable[..., pytest.RunResult]

SCOPED = """
    import proton_bench as proton
    with proton.scope("outer"):
        with proton.scope("inner", metrics={"items": 3}):
            pass
"""


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".py"}


def stderr_of_target(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("proton: "))


def frame_names(path: Path) -> list[str]:
    """Names of all frames of a ``.hatchet`` file, in pre-order."""
    names: list[str] = []
    stack = [json.loads(path.read_text())[0]]
    while stack:
        node = stack.pop()
        names.append(node["frame"]["name"])
        stack += reversed(node["children"])
    return names


def paths(file: Path) -> list[tuple[str, ...]]:
    """Paths of all rows of a profile, in pre-order."""
    profile = read_profile(file)
    return [profile.path(row) for row in range(1, len(profile))]


def below_file(file: Path) -> set[tuple[str, ...]]:
    """Paths below the only test file, without the nodes above it."""
    return {path[2:] for path in paths(file) if len(path) > 2}


def nodes_of_tests(file: Path) -> list[tuple[str, ...]]:
    """Paths of the nodes of a test run, in pre-order, without that of the collection."""
    profile = read_profile(file)
    rows = [row for row in range(1, len(profile)) if profile.kind(row) is FrameKind.TEST]
    found = [profile.path(row) for row in rows]
    assert found[1] == ("session", "collection")
    return [path for path in found if "collection" not in path]


def slice_names(path: Path) -> set[str]:
    """Names of the slices of a ``.chrome_trace`` file, also of a partial one."""
    # Behind the document of the last flush may stand the beginning of what was being written.
    document, _ = json.JSONDecoder().raw_decode(path.read_text())
    return {event["name"] for event in document["traceEvents"] if event["ph"] == "X"}
