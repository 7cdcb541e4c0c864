"""The process that samples counters for a recorded program, and how it starts.

While libcupti switches counters or evaluates them, launches of its process stand still, so the
native core starts this module in a process of its own. It ends when the recorded program does.
"""

from __future__ import annotations

import os
import sys

from proton_bench import _native

__all__ = ["sampling_command", "sampling_environment"]

_SOCKET = 0  # file descriptor of its end of a pair, set by the native core
# The process must not record itself, and finds GPUs by UUID, also those hidden from the program.
_LEFT_OUT = (b"PROTON_BENCH_AUTOSTART", b"CUDA_VISIBLE_DEVICES")


def sampling_command() -> list[bytes]:
    """Return the words that start the process."""
    return [os.fsencode(word) for word in (sys.executable, "-P", "-m", __name__)]


def sampling_environment() -> list[bytes]:
    """Return its environment, as ``NAME=value``: this one's, with few exceptions."""
    return [name + b"=" + value for name, value in os.environb.items() if name not in _LEFT_OUT]


if __name__ == "__main__":
    _native.serve_counter_samples(_SOCKET)
