"""Programs under the profiler that a test talks to while they run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Far above what any step takes; only a hang meets it.
PATIENCE_S = 120

# The main thread sits in C: with Python's lock (PyDLL) or without (CDLL).
IN_C = """
    import ctypes, os, sys
    import proton_bench as proton

    def sit_in_c(library):
        while True:
            library(None).sleep(60)

    def ready():
        os.write(1, b"ready\\n")
"""


def source(*parts: str) -> str:
    return "\n".join(textwrap.dedent(part) for part in parts)


@contextmanager
def started(
    words: Sequence[str], folder: Path, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Run Python with words in a folder; whatever is left of it is killed at the end."""
    clean = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    running = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        try:
            yield running
        finally:
            running.kill()


def wait_for_line(running: subprocess.Popen[str], wanted: str = "ready") -> None:
    assert running.stdout is not None
    for line in running.stdout:
        if line.rstrip().endswith(wanted):  # pytest writes in front of it
            return
    assert running.stderr is not None
    raise AssertionError(f"ended without saying {wanted!r}: {running.stderr.read()}")


def wait_for_text(running: subprocess.Popen[str], wanted: str) -> None:
    """Wait for a line of stderr that contains a text."""
    assert running.stderr is not None
    seen = []
    for line in running.stderr:
        if wanted in line:
            return
        seen.append(line)
    raise AssertionError(f"ended without saying {wanted!r}: {seen}")


def ended(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end; return the exit code, the rest of stdout, and stderr."""
    out, err = running.communicate(timeout=PATIENCE_S)
    return running.returncode, out, err
