"""Messages of a recorded process on its stderr."""

from __future__ import annotations

import contextlib
import os
import sys

from proton_bench.support.text import visible

QUIET = "PROTON_BENCH_QUIET"
_TRUE = ("1", "on", "true")


def is_quiet() -> bool:
    """Whether only errors are printed: ``PROTON_BENCH_QUIET`` or ``--quiet``."""
    return os.environ.get(QUIET, "").lower() in _TRUE


def say(text: str, *, is_error: bool = False) -> None:
    """Write to the process's stderr, even if the target replaced or closed ``sys.stderr``.

    Args:
        text: One line.
        is_error: Also printed with ``PROTON_BENCH_QUIET`` or ``--quiet``.
    """
    stream = sys.__stderr__
    if stream is None or (not is_error and is_quiet()):
        return
    with contextlib.suppress(OSError, ValueError):
        stream.write(f"proton: {visible(text)}\n")
        stream.flush()


def warn(text: str) -> None:
    """Print a warning."""
    say(f"warning: {text}")


def shown_path(path: str, folder: str) -> str:
    """Return a path relative to the folder of the command, "" if unknown."""
    return min(os.path.relpath(path, folder), path, key=len) if folder else path
