"""What a recorded process says of itself, on its own stderr."""

from __future__ import annotations

import contextlib
import os
import sys

__all__ = ["say", "shown_path"]


def say(text: str) -> None:
    """Write to the process' own stderr, also where the target replaced or closed ``sys.stderr``."""
    stream = sys.__stderr__
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(f"proton: {text}\n")
            stream.flush()


def shown_path(path: str, folder: str) -> str:
    """Shorten a path for someone in the folder where the command was given, "" for unknown."""
    return min(os.path.relpath(path, folder), path, key=len) if folder else path
