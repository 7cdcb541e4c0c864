"""What a run left behind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

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
