"""Switches of this process, under the name that upstream's scripts look at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProfilerFlags", "flags"]


@dataclass
class ProfilerFlags:
    """What is going on in this process.

    Attributes:
        profiling_on: At least one session is live. Informative: scopes ask the native module.
        instrumentation_on: Kernels are compiled with instrumentation.
        command_line: The ``proton`` command owns session 0; the script's own start is ignored.
        upstream_shape: The tree of some live session is to look as upstream's.
    """

    profiling_on: bool = False
    instrumentation_on: bool = False
    command_line: bool = False
    upstream_shape: bool = False


flags = ProfilerFlags()
