from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.counters.exact import join_ranges
from proton_bench.recording.counters.metric_sets import (
    ELAPSED_CYCLES,
    METRIC_SETS,
    RANGE_TIME,
    metric_candidates,
    range_candidates,
)

PERCENT = ".avg.pct_of_peak_sustained_elapsed"
METRICS = [
    RANGE_TIME,
    ELAPSED_CYCLES,
    f"dram__throughput{PERCENT}",
    f"sm__pipe_tensor_cycles_active{PERCENT}",
]
US = 1000


def burst(ranges: list[tuple[int, list[float]]], kernels: list[tuple[int, int, int]]) -> Any:
    """Return ranges of 100 us that begin at these us, and kernels: node, begin and length in us.

    A node below zero is that of another phase.
    """
    starts = np.array([US * at for at, _ in ranges])
    return {
        "device": 0,
        "start_ns": starts,
        "end_ns": starts + 100 * US,
        "counts": np.array([values for _, values in ranges]),
        "nodes": np.array([abs(node) for node, _, _ in kernels]),
        "is_own": np.array([node >= 0 for node, _, _ in kernels]),
        "kernel_start_ns": np.array([US * at for _, at, _ in kernels]),
        "kernel_end_ns": np.array([US * (at + length) for _, at, length in kernels]),
    }


def test_counts_are_put_over_the_time_of_the_kernel() -> None:
    # The range took 20 us, of which the kernel ran for 8: its units were busy 2.5 times as much.
    counts = [20.0 * US, 30.0 * US, 20.0, 10.0]

    (found,) = join_ranges([burst([(0, counts)], [(7, 40, 8)])], METRICS)

    assert found.nodes.tolist() == [7]
    assert found.time_ns.tolist() == found.sampled_ns.tolist() == [8.0 * US]
    assert found.shares["dram"] == pytest.approx([0.5])
    assert found.shares["tensor"] == pytest.approx([0.25])
    assert found.cycles_per_ns == pytest.approx([1.5])
    assert found.errors["dram"].tolist() == [0.0]


def test_kernels_of_another_phase_have_their_part_of_a_range() -> None:
    counts = [20.0 * US, 20.0 * US, 20.0, 0.0]
    kernels = [(7, 40, 4), (-7, 44, 4)]

    (found,) = join_ranges([burst([(0, counts)], kernels)], METRICS)

    assert found.nodes.tolist() == [7]
    assert found.sampled_ns.tolist() == [4.0 * US]
    assert found.shares["dram"] == pytest.approx([0.5])
    assert join_ranges([burst([(0, counts)], kernels[1:])], METRICS) == []


def test_launches_of_a_node_are_weighted_by_their_times() -> None:
    ranges = [(0, [10.0 * US, 10.0 * US, 40.0, 0.0]), (200, [30.0 * US, 30.0 * US, 80.0, 0.0])]

    (found,) = join_ranges([burst(ranges, [(7, 10, 10), (7, 220, 30)])], METRICS)

    assert found.shares["dram"] == pytest.approx([(4 + 24) / 40])


def test_kernels_of_one_range_share_its_counts() -> None:
    ranges = [(0, [40.0 * US, 40.0 * US, 50.0, 0.0])]

    (found,) = join_ranges([burst(ranges, [(3, 10, 30), (4, 60, 10)])], METRICS)

    assert found.nodes.tolist() == [3, 4]
    assert found.shares["dram"] == pytest.approx([0.5, 0.5])
    assert found.time_ns.tolist() == [30.0 * US, 10.0 * US]


def test_kernels_outside_of_ranges_have_no_counts() -> None:
    ranges = [(0, [10.0 * US, 10.0 * US, 50.0, 0.0]), (300, [10.0 * US, 10.0 * US, 10.0, 0.0])]
    kernels = [(3, 10, 10), (4, 150, 10), (5, 320, 10), (6, 600, 10)]

    (found,) = join_ranges([burst(ranges, kernels)], METRICS)

    assert found.nodes.tolist() == [3, 5]
    assert found.shares["dram"] == pytest.approx([0.5, 0.1])


def test_a_share_is_never_above_the_peak() -> None:
    ranges = [(0, [50.0 * US, 50.0 * US, 90.0, 0.0])]

    (found,) = join_ranges([burst(ranges, [(3, 10, 10)])], METRICS)

    assert found.shares["dram"].tolist() == [1.0]


def test_without_kernels_or_ranges_there_is_nothing() -> None:
    assert join_ranges([], METRICS) == []
    assert join_ranges([burst([(0, [1.0, 1.0, 1.0, 1.0])], [])], METRICS) == []
    assert join_ranges([burst([(0, [0.0, 0.0, 0.0, 0.0])], [(3, 10, 10)])], METRICS) == []


def test_every_set_counts_the_time_of_ranges() -> None:
    for name in METRIC_SETS:
        assert {each[0] for each in range_candidates(name)} == {RANGE_TIME}
        assert RANGE_TIME not in {metric for each in metric_candidates(name) for metric in each}
    assert not any("Triage" in metric for each in range_candidates() for metric in each)
    with pytest.raises(UsageError):
        range_candidates("moon")
