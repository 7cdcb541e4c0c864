"""Runs the text of a program on the doubles of a vendor's libraries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_HEAD = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"


def run_proton(
    environment: Mapping[str, str], folder: Path, program: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a program under ``proton -n out`` in a folder; it can import the doubles' controls."""
    script = folder / "program.py"
    script.write_text(_HEAD + program, encoding="utf-8")
    return _run(environment, folder, "-m", "proton_bench", "-n", "out", *options, str(script))


def run_python(
    environment: Mapping[str, str], folder: Path, program: str
) -> subprocess.CompletedProcess[str]:
    """Run a program that starts its sessions itself."""
    return _run(environment, folder, "-c", _HEAD + program)


def _run(
    environment: Mapping[str, str], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
