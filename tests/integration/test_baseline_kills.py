"""A store of baselines is whole whenever its writers are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.killers import run_killer


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("kills", [30, 200])
def test_killed_writers_leave_the_store_whole(tmp_path: Path, kills: int) -> None:
    done = run_killer("baseline_killer", tmp_path / ".proton", kills, 7, timeout_s=600)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{kills} kills, left over: []\n"
