"""A few attempts of the fuzzer of readers: `make fuzz` makes more, nightly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_changed_files_end_commands_cleanly(tmp_path: Path) -> None:
    # The machine may be busy with other tests: the limits on time are for `make fuzz`.
    words = ["--seed", "7", "--jobs", "1", "--attempts", "8", "--patience", "5"]

    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 attempts, 0 failures" in done.stdout
