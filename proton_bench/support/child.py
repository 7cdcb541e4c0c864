"""Runs a program of ours in a process of its own, such as a test that may crash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

__all__ = ["run_child"]


def run_child(
    command: Sequence[str], *, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Return how a program ended and what it printed; code 1 and a text if it took too long.

    It is not recorded: it has no session and is not a child of a recorded program.

    Args:
        command: The program and its arguments.
        timeout_s: After so long it is killed.
    """
    environ = {key: value for key, value in os.environ.items() if key != "PROTON_BENCH_AUTOSTART"}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            check=False,
            encoding="utf-8",
            env=environ,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        text = f"did not end within {timeout_s:.0f} s"
        return subprocess.CompletedProcess(command, 1, "", text)
