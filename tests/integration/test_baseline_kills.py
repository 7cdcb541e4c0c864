"""A store of baselines is whole whenever its writers are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("kills", [30, 200])
def test_killed_writers_leave_the_store_whole(tmp_path: Path, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("baseline_killer.py"))]
        + [str(tmp_path / ".proton"), str(kills), "7"],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
            # Forks of a process with one thread.
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{kills} kills, left over: []\n"
