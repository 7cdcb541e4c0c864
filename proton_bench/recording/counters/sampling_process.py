"""How the process that samples counters for a recorded program starts.

While libcupti switches counters or evaluates them, launches of its process stand still, so the
native core starts ``sampling_program.py`` in a process of its own. It ends when the recorded
program does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from proton_bench import _native

__all__ = ["sampling_command", "sampling_environment"]

_PROGRAM = Path(__file__).with_name("sampling_program.py")
# GPUs are found by UUID, also those hidden from the program. Another tool that records the program
# by injection must not come into the process that samples.
_LEFT_OUT = (b"CUDA_VISIBLE_DEVICES", b"CUDA_INJECTION64_PATH")


def sampling_command() -> list[bytes]:
    """Return the words that start the process; none if this program has no interpreter for it.

    The interpreter looks at no folder of packages, so that nothing starts with it.
    """
    if not _has_interpreter():
        return []
    words = [sys.executable, "-S", "-P", str(_PROGRAM), _native.__file__]
    if sys.flags.ignore_environment:
        words.insert(1, "-E")
    return [os.fsencode(word) for word in words]


def sampling_environment() -> list[bytes]:
    """Return its environment, as ``NAME=value``: this one's, with few exceptions."""
    return [name + b"=" + value for name, value in os.environb.items() if name not in _LEFT_OUT]


def _has_interpreter() -> bool:
    # The executable of a frozen program, or of one that embeds Python, would start once more.
    if getattr(sys, "frozen", False) or not sys.executable:
        return False
    return "py" in os.path.basename(sys.executable).lower()
