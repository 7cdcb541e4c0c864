from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.gated import Kernel, session

from benchmarks.studies.gate.noisy.__main__ import drawn_gates, summary, verdict_of
from proton_bench.formats.registry import write_profile

PAIRS, PATHS = 10, 12
ORDER = np.array([1.0, -1.0] * (PAIRS // 2))


def sides(deviation: float, shared: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    loads = rng.uniform(0.5, 1.5, PATHS)
    base, new = rng.normal(10.0, deviation, (2, PAIRS, PATHS))
    return base, new + rng.normal(0.0, shared, (PAIRS, 1)) * loads, ORDER


@pytest.mark.parametrize("plainly", [False, True])
@pytest.mark.parametrize(
    ("deviation", "slow", "told"),
    [
        (0.002, None, "PASS"),
        (0.002, 3, "FAIL"),
        (0.2, None, "INCONCLUSIVE"),
        (0.2, 3, "INCONCLUSIVE"),
    ],
)
def test_pairs_are_judged_as_an_experiment(
    plainly: bool, deviation: float, slow: int | None, told: str
) -> None:
    base, new, order = sides(deviation)
    new[:, slow] += 0.1 if slow is not None else 0.0

    verdict, worse = verdict_of(base, new, order, threshold=0.08, plainly=plainly)

    assert verdict == told
    assert np.flatnonzero(worse).tolist() == ([slow] if told == "FAIL" else [])


def test_noise_that_all_paths_share_hides_no_single_slow_down() -> None:
    base, new, order = sides(0.005, shared=0.1)
    new[:, 3] += 0.2

    plain, own = (
        verdict_of(base, new, order, threshold=0.08, plainly=each)[1] for each in (True, False)
    )

    assert not plain.any()
    assert np.flatnonzero(own).tolist() == [3]


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

    told, *lines = drawn_gates(tmp_path, gates=3, pairs=4, threshold="3%", percent=3.0)

    assert told.startswith(f"{runs} runs")
    in_turn, apart = (line.split("|")[2:7] for line in lines[-2:])
    assert in_turn == apart == [" 3 ", " 3 ", " 0 ", " 0 ", " 0 "]
