"""Upstream's profiler as a reference: its session and its scopes, on a machine without a GPU too.

Its instrumentation backend starts without a driver; scopes enter its tree in the same way with
every backend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import triton.profiler as upstream
from triton._C.libproton import proton as library
from triton.profiler.flags import flags

__all__ = ["library", "session", "upstream"]


@contextlib.contextmanager
def session(folder: Path, name: str = "upstream") -> Iterator[None]:
    """Record with upstream; ``<folder>/<name>.hatchet`` is written at the end."""
    number = library.start(str(folder / name), "shadow", "tree", "instrumentation", "cuda")
    flags.profiling_on = True
    try:
        yield
    finally:
        flags.profiling_on = False
        library.finalize(number, "hatchet")
