"""Programs under the profiler that a test talks to while they run."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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


def on_cpu(words: Sequence[str]) -> list[str]:
    """Return words of `proton ab` with the backend in front of the command after ``--``."""
    mark = [*words, "--"].index("--")
    return [*words[: mark + 1], *(("-b", "cpu") if mark < len(words) else ()), *words[mark + 1 :]]


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


def wait_for_line(running: subprocess.Popen[str], ending: str = "ready") -> str:
    """Wait for a line of stdout with this end, and return it; pytest writes in front of it."""
    assert running.stdout is not None
    return _wait_for(running.stdout, lambda line: line.rstrip().endswith(ending), ending)


def wait_for_text(running: subprocess.Popen[str], text: str) -> None:
    """Wait for a line of stderr that contains a text."""
    assert running.stderr is not None
    _wait_for(running.stderr, lambda line: text in line, text)


def _wait_for(stream: IO[str], fits: Callable[[str], bool], what: str) -> str:
    """Read lines until one fits, byte by byte, because `communicate` reads what follows it."""
    deadline = time.monotonic() + PATIENCE_S
    lines = [b""]
    while not (lines[-1].endswith(b"\n") and fits(lines[-1].decode())):
        if lines[-1].endswith(b"\n"):
            lines.append(b"")
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        byte = os.read(stream.fileno(), 1) if ready else b""
        if not byte:
            why = "ended" if ready else f"printed nothing more in {PATIENCE_S} s"
            raise AssertionError(
                f"{why} without {what!r}: {b''.join(lines).decode(errors='replace')}"
            )
        lines[-1] += byte
    return lines[-1].decode()


def ended(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end; return the exit code, the rest of stdout, and stderr."""
    out, err = running.communicate(timeout=PATIENCE_S)
    return running.returncode, out, err
