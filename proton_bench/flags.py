"""Flags of this process, under upstream's name."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProfilerFlags", "flags"]


@dataclass
class ProfilerFlags:
    """State of this process.

    Attributes:
        profiling_on: At least one session is live. Informative: scopes ask the native module.
        instrumentation_on: Kernels are compiled with instrumentation.
        command_line: The ``proton`` command owns session 0; the script's own start is ignored.
        upstream_shape: Some session has upstream's tree.
    """

    profiling_on: bool = False
    instrumentation_on: bool = False
    command_line: bool = False
    upstream_shape: bool = False


flags = ProfilerFlags()
