"""Runs of one command in fresh processes go on where they were interrupted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proton_bench.errors import TargetFailedError
from proton_bench.gate.experiment import fresh_runs
from proton_bench.gate.processes import Command
from proton_bench.gate.progress import Lines
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import TargetKind

TESTS = Path(__file__).parents[1]
BENCH = f"""\
import sys
sys.path.append({str(TESTS)!r})
from fakes.synthetic import THIRTY, record_times
record_times(THIRTY)
"""


@pytest.fixture
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path


def test_interrupted_measurements_go_on_in_their_folder(project: Path) -> None:
    command = Command(
        RunOptions(
            kind=TargetKind.SCRIPT,
            target="bench.py",
            name="",
            formats=(),
            folder=str(project),
            backend="cpu",
        )
    )
    said = (project / "said").open("w+")
    for count in (1, 3):
        with fresh_runs(command, folder=project / "runs", progress=Lines(said, "gate")) as made:
            runs = made.first(count)
        assert len(runs) == count
    said.seek(0)
    # A loaded machine is announced too.
    lines = [line for line in said if line.startswith("proton gate: run")]
    assert [line.split(",")[0].strip() for line in lines] == [
        "proton gate: run 1 of 1",
        "proton gate: run 1 of 2",
        "proton gate: run 2 of 2",
    ]
    assert len({run.source for run in runs}) == 3
    os.unlink(project / "bench.py")
    with (
        pytest.raises(TargetFailedError, match=r"run 4 of bench\.py"),
        fresh_runs(command, folder=project / "runs", progress=Lines(said, "gate")) as made,
    ):
        made.first(4)
    said.close()
