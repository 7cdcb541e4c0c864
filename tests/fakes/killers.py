"""Programs beside the tests that kill writers and look at what is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def run_killer(name: str, *words: object, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run ``integration/<name>.py``, which can import the project and the tests."""
    return subprocess.run(
        [sys.executable, str(TESTS / "integration" / f"{name}.py"), *map(str, words)],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
            # Forks of a process with one thread.
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
