"""Each attack of the siege, for a few attempts: `make siege` makes more.

Attacks on native readers are separate tests: fuzz_read_* of ctest. Atheris is left out, because its
start takes longer than all other attacks together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from siege.attacks import ATTACKS
from siege.attacks.disks import can_mount

ROOT = Path(__file__).parents[2]
SEED = 7
ATTEMPTS = {"readers": 10, "settings": 8, "stores": 5, "bombs": 2, "kills": 12, "disks": 8}
FEW = 2


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("name", sorted(ATTACKS.keys() - {"native", "guided"}))
def test_attack_finds_nothing(name: str, tmp_path: Path) -> None:
    if name == "disks" and not can_mount():
        pytest.skip("no process may mount a file system here")
    # The machine may be busy with other tests: `make siege` checks the time limit.
    words = ["--attack", name, "--seed", str(SEED), "--patience", "5"]
    words += ["--attempts", str(ATTEMPTS.get(name, FEW))]

    done = subprocess.run(
        [sys.executable, "-m", "tests.siege", *words],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[0])["seed"] == SEED
