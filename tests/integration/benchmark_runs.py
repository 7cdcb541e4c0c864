"""Test files with benchmarks, timed by a clock that a test winds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published import published

# Each reading of the clock is one step later; the step is the length of a round.
CLOCK = """
    import os
    import pytest
    from proton_bench.rounds.measurement import CpuTimer

    now = 0
    def tick():
        global now
        now += int(os.environ.get("CLOCK_STEP_NS", 200_000))
        return now

    def pytest_configure(config):
        patch = pytest.MonkeyPatch()
        patch.setattr(CpuTimer, "clock", staticmethod(tick))
        config.add_cleanup(patch.undo)
"""
TIMED = ("-pclock", "--proton-backend=cpu")


def make(pytester: pytest.Pytester, **files: str) -> None:
    """Write a clock and test files."""
    pytester.makepyfile(clock=CLOCK, **files)
    pytester.syspathinsert()


def document(path: Path) -> dict[str, Any]:
    """Return a JSON document of `--proton-json`."""
    found: dict[str, Any] = published(path.read_text(encoding="ascii"))
    return found
