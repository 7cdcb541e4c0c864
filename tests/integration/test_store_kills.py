"""A store is whole whenever its writers are killed, and readers never notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="needs the extra store")

TESTS = Path(__file__).parents[1]


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("writers", "commits", "kills"), [(3, 4, 4), (8, 100, 200)])
def test_killed_writers_leave_whole_commits(
    tmp_path: Path, writers: int, commits: int, kills: int
) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("store_killer.py"))]
        + [str(tmp_path), str(writers), str(commits), str(kills), "7"],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
            # Forks of a process with one thread.
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{2 * writers * commits} profiles once" in done.stdout
