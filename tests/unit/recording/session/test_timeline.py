from __future__ import annotations

import pytest

from proton_bench.recording.session.recording import drift_of


@pytest.mark.parametrize(
    ("collectors", "drift_ns"),
    [
        ({}, 0),
        ({"cpu": {}}, 0),
        ({"cpu": {}, "cupti": {"clock_drift_ns": -40}}, -40),
        ({"one": {"clock_drift_ns": 30}, "other": {"clock_drift_ns": -40}}, -40),
    ],
)
def test_the_largest_drift_of_a_collector_counts(
    collectors: dict[str, dict[str, int]], drift_ns: int
) -> None:
    assert drift_of(collectors) == drift_ns
