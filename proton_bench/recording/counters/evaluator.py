"""The process that evaluates samples of counters for a recorded program, and how it starts.

While libcupti turns counts into metrics, launches of its process stand still, so the native core
starts this module in a process of its own. It ends when the recorded program does.
"""

from __future__ import annotations

import os
import sys

from proton_bench import _native

__all__ = ["evaluator_command", "evaluator_environment"]

# As the native core starts it: its end of a pair of sockets, and memory that both processes share.
_SOCKET = 0
_MEMORY = 3


def evaluator_command() -> list[bytes]:
    """Return the words that start the process."""
    return [os.fsencode(word) for word in (sys.executable, "-P", "-m", __name__)]


def evaluator_environment() -> list[bytes]:
    """Return its environment, as ``NAME=value``: this one's, but the process is not recorded."""
    return [
        name + b"=" + value
        for name, value in os.environb.items()
        if name != b"PROTON_BENCH_AUTOSTART"
    ]


if __name__ == "__main__":
    _native.serve_evaluations(_SOCKET, _MEMORY)
