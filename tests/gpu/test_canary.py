"""Runs for a gate on a GPU record its clock, apart from the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.gate.experiment import fresh_runs
from proton_bench.gate.processes import Command
from proton_bench.model.profile import Profile
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import TargetKind

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

BENCH = """
import torch
from proton_bench import scope
matrix = torch.ones(2048, 2048, device="cuda")
with scope("user"):
    for _ in range(50):
        matrix = torch.mm(matrix, matrix) * 0.0
torch.cuda.synchronize()
"""
WITHOUT = "import torch\nfrom proton_bench import scope\nwith scope('user'): pass\n"


@pytest.fixture
def folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    return tmp_path


def record(folder: Path, program: str, count: int) -> list[Profile]:
    (folder / "bench.py").write_text(program)
    options = RunOptions(
        kind=TargetKind.SCRIPT,
        target="bench.py",
        name="",
        formats=(),
        folder=str(folder),
        backend="cupti",
    )
    with fresh_runs(Command(options), folder=folder / "runs") as made:
        return [run.profile for run in made.first(count)]


def launches(profile: Profile, *path: str) -> float:
    (row,) = [row for row in range(len(profile)) if profile.path(row) == path]
    found = profile.columns["count"].get(row)
    assert isinstance(found, int | float)
    return found


def test_a_run_has_canaries_at_its_start_and_end(folder: Path) -> None:
    for profile in record(folder, BENCH, 2):
        canary = profile.provenance["canary"]
        assert canary["launches"] == 20
        assert 0.2e9 < canary["sm_clock_hz"] < 4e9
        assert launches(profile, "<canary>", "proton_canary") == 20
        assert launches(profile, "<canary>", "<warm-up>", "proton_canary") >= 16
        row = [profile.path(row) for row in range(len(profile))].index(
            ("<canary>", "proton_canary")
        )
        cycles = profile.columns["time (ns)"].get(row) * canary["sm_clock_hz"] / 20e9  # type: ignore[operator]
        assert 6000 * 16 * 4 <= cycles < 2 * 6000 * 16 * 8  # four to eight cycles for an FMA


def test_a_program_without_a_gpu_starts_none(folder: Path) -> None:
    from proton_bench.errors import TargetFailedError

    with pytest.raises(TargetFailedError, match="recorded nothing: no launch and no scope"):
        record(folder, WITHOUT, 1)
