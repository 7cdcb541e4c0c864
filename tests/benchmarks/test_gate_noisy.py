from __future__ import annotations

from pathlib import Path

import pytest
from fakes.gated import Kernel, session

from benchmarks.studies.gate.noisy.__main__ import drawn_gates, summary
from proton_bench.formats.registry import write_profile


def test_only_the_slower_path_counts_as_found() -> None:
    known = {"pairs": 4, "seconds": 60.0}
    results = [
        {"slow": "", "code": 0, "regressed": []},
        {"slow": "", "code": 3, "regressed": []},
        {"slow": "exp", "code": 1, "regressed": ["exp", "exp"]},
        {"slow": "exp", "code": 1, "regressed": ["sin"]},
        {"slow": "exp", "code": 2, "regressed": []},
        {"slow": "exp", "code": 4, "regressed": ["exp", "whole run"]},
    ]

    shown = summary([{**each, **known} for each in results])

    _, _, alike, slower, *rest = shown.splitlines()
    assert not rest
    assert alike.split("|")[2:6] == [" 2 ", " 1 ", " 0 ", " 1 "]
    assert slower.split("|")[2:8] == [" 4 ", " 0 ", " 2 ", " 0 ", " 1 ", " 1 "]


@pytest.mark.parametrize(("command", "runs"), [("program.py", 16), ("program.py --slow exp", 8)])
def test_gates_are_drawn_from_the_runs_of_the_unchanged_program(
    tmp_path: Path, command: str, runs: int
) -> None:
    folder = tmp_path / ".proton" / "ab" / "one"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(command)
    kernels = [Kernel(f"{name}/kernel", between=0.001) for name in ("exp", "sin", "tanh", "log")]
    for side, recorded in zip(("base", "new"), session(kernels, pairs=8), strict=True):
        for pair, run in enumerate(recorded, 1):
            write_profile(run.profile, folder / f"pair-{pair:03d}-{side}.proton")

    told, *lines = drawn_gates(tmp_path, gates=3, pairs=4, threshold="3%")

    assert told.startswith(f"{runs} runs")
    in_turn, apart = (line.split("|")[2:7] for line in lines[-2:])
    assert in_turn == apart == [" 3 ", " 3 ", " 0 ", " 0 ", " 0 "]
