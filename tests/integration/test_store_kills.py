"""A store is whole whenever its writers are killed, and readers never notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.killers import run_killer

pytest.importorskip("deltalake", reason="needs the extra store")


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("writers", "commits", "kills"), [(3, 4, 4), (8, 100, 200)])
def test_killed_writers_leave_whole_commits(
    tmp_path: Path, writers: int, commits: int, kills: int
) -> None:
    done = run_killer("store_killer", tmp_path, writers, commits, kills, 7, timeout_s=1200)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{2 * writers * commits} profiles once" in done.stdout


def test_upkeep_at_once_counts_each_profile_once(tmp_path: Path) -> None:
    done = run_killer("store_race", tmp_path, 2, timeout_s=1200)

    assert (done.returncode, done.stderr) == (0, "")
    assert "18 profiles once" in done.stdout
