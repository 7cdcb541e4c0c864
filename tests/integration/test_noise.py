"""`proton noise` records the noise of a machine, and `proton ab` uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proton_bench.errors import TargetFailedError
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.progress import Lines
from proton_bench.gate.experiment.replicates import record_runs
from proton_bench.gate.machine.noise import Noise
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import TargetKind

TESTS = Path(__file__).parents[1]
BENCH = f"""
import sys
sys.path.append({str(TESTS)!r})
from fakes.synthetic import THIRTY, record_times
record_times(THIRTY)
"""
Proton = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path


def proton(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proton_bench", *words], cwd=project, capture_output=True, text=True
    )


def test_noise_is_kept_for_its_machine_and_shown(project: Path) -> None:
    done = proton(project, "noise", "-b", "cpu", "--json", "noise.json", "--", "bench.py")

    assert done.returncode == 0, done.stderr
    (file,) = (project / ".proton" / "noise").glob("*.json")
    kept = Noise.from_document(json.loads(file.read_text()), "x")
    assert kept.runs == 10
    assert len({each.path for each in kept.paths if each.path[1:]}) == 28  # two are too small
    said = json.loads((project / "noise.json").read_text())
    assert said["file"] == str(file)
    assert said["false_alarms"]["gates"] == 1000
    first, second, *paths = done.stdout.splitlines()
    assert first.startswith("the gate failed ")
    assert "noisiest paths first" in second
    assert "layer" in paths[0]

    too_few = proton(project, "ab", "-b", "cpu", "--base", "bench.py", "--runs", "1", "bench.py")

    assert too_few.returncode == 3, too_few.stdout  # known noise does not replace runs
    assert "with  stored noise of this machine, measured with 10 runs" in too_few.stdout


def test_the_whole_run_has_a_name_among_the_paths(project: Path) -> None:
    (project / "bench.py").write_text(
        "import proton_bench\nwith proton_bench.scope('only'):\n    sum(range(10**5))\n"
    )

    done = proton(project, "noise", "-b", "cpu", "--runs", "8", "--", "bench.py")

    _, _, *paths = done.stdout.splitlines()
    assert {line.split("  ")[-1] for line in paths} == {"only", "whole run"}


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
        runs = record_runs(command, count, folder=project / "runs", progress=Lines(said, "gate"))
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
    with pytest.raises(TargetFailedError, match=r"run 4 of bench\.py"):
        record_runs(command, 4, folder=project / "runs", progress=Lines(said, "gate"))
    said.close()


@pytest.mark.usefixtures("project")
def test_too_few_runs_are_refused(proton_here: Proton) -> None:
    done = proton_here("noise", "--runs", "3", "--", "bench.py")

    assert done.returncode == 2
    assert "8" in done.stderr
