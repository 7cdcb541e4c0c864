from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.gate.noisy.__main__ import summary, verdict_of

PAIRS, PATHS = 10, 12


def runs(deviation: float) -> np.ndarray:
    return np.random.default_rng(2).normal(10.0, deviation, (2 * PAIRS, PATHS))


@pytest.mark.parametrize(
    ("deviation", "slow", "told"),
    [
        (0.002, None, ("PASS", False)),
        (0.002, 3, ("FAIL", True)),
        (0.2, None, ("INCONCLUSIVE", False)),
        (0.2, 3, ("INCONCLUSIVE", False)),
    ],
)
def test_consecutive_runs_are_judged_as_an_experiment(
    deviation: float, slow: int | None, told: tuple[str, bool]
) -> None:
    assert verdict_of(runs(deviation), threshold=0.08, slow=slow, percent=10.0) == told


def test_only_the_slower_path_counts_as_found() -> None:
    results = [
        {"slow": "", "code": 0, "regressed": []},
        {"slow": "", "code": 3, "regressed": []},
        {"slow": "exp", "code": 1, "regressed": ["exp"]},
        {"slow": "exp", "code": 1, "regressed": ["sin"]},
        {"slow": "exp", "code": 2, "regressed": []},
    ]

    _, _, alike, slower, *rest = summary(results).splitlines()
    assert not rest
    assert alike.split("|")[2:6] == [" 2 ", " 1 ", " 0 ", " 1 "]
    assert slower.split("|")[2:7] == [" 3 ", " 0 ", " 2 ", " 0 ", " 1 "]
