"""The process that samples counters for a recorded program.

While libcupti switches counters or evaluates them, launches of its process stand still, so
``sampling_program.py`` does that in a process of its own. It ends when its socket is closed, at the
latest when the recorded program ends.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from proton_bench import _native
from proton_bench.errors import BackendUnavailableError

_PROGRAM = Path(__file__).with_name("sampling_program.py")
# GPUs are found by UUID, also those hidden from the program. Another tool that records the program
# by injection must not come into the process that samples.
_LEFT_OUT = ("CUDA_VISIBLE_DEVICES", "CUDA_INJECTION64_PATH")
_END_SECONDS = 10.0  # a GPU's driver may take long to let go


class SamplingProcess:
    """A process that answers requests for counters, started at once.

    It has a process group of its own, so that Ctrl-C does not end it before the program is done.

    Attributes:
        socket: Our end, for ``CuptiCollector.start_counters``.
        number: Of the process.

    Raises:
        BackendUnavailableError: It cannot be started.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    _command(),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={key: value for key, value in os.environ.items() if key not in _LEFT_OUT},
                    process_group=0,
                )
        except (OSError, subprocess.SubprocessError) as error:
            ours.close()
            raise BackendUnavailableError(
                f"the process that samples counters did not start: {error}; record with "
                "counters=gpm"
            ) from error
        self.socket = ours.detach()
        self.number = self._process.pid

    def end(self) -> int:
        """Wait until it has ended, after its socket was closed, and return its exit code."""
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _command() -> list[str]:
    """Return its words; the interpreter looks at no folder of packages."""
    # The executable of a frozen program, or of one that embeds Python, would start once more.
    name = os.path.basename(sys.executable or "")
    if getattr(sys, "frozen", False) or "py" not in name.lower():
        raise FileNotFoundError(f"sys.executable is not a Python interpreter: {name or 'unknown'}")
    words = [sys.executable, "-S", "-P", str(_PROGRAM), _native.__file__]
    if sys.flags.ignore_environment:
        words.insert(1, "-E")
    return words
