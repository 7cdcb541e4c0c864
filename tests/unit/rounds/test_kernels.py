from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proton_bench.rounds.kernels import kernels_of

WINDOWS = [(100, 200), (300, 400)]


def runs(*kernels: tuple[str, int, int, int, int]) -> dict[str, Any]:
    """Return kernels as the native session keeps them: name, launch, called, start, end."""
    names = sorted({each[0] for each in kernels})
    columns = list(zip(*kernels, strict=True)) or [()] * 5
    return {
        "names": dict(enumerate(names)),
        "name": np.array([names.index(name) for name in columns[0]], dtype=np.int32),
        "launch": np.array(columns[1], dtype=np.uint64),
        "called_ns": np.array(columns[2], dtype=np.int64),
        "start_ns": np.array(columns[3], dtype=np.int64),
        "end_ns": np.array(columns[4], dtype=np.int64),
    }


def test_a_kernel_belongs_to_the_round_that_launched_it_however_late_it_ran() -> None:
    found = kernels_of(
        runs(("a", 1, 110, 450, 460), ("a", 2, 310, 470, 475), ("b", 3, 390, 480, 490)), WINDOWS, 1
    )

    assert found is not None
    assert found.sums_ns.tolist() == [10.0, 15.0]
    assert dict(zip(found.names, found.counts.tolist(), strict=True)) == {"a": 1.0, "b": 0.5}
    assert found.span_ns.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("called_ns", [50, 250, 401])
def test_what_was_launched_between_rounds_belongs_to_none(called_ns: int) -> None:
    assert kernels_of(runs(("flush", 1, called_ns, 310, 320)), WINDOWS, 1) is None


def test_nodes_of_a_graph_belong_to_the_round_of_its_launch() -> None:
    found = kernels_of(runs(("a", 7, 150, 410, 420), ("b", 7, 0, 425, 430)), WINDOWS, 1)

    assert found is not None
    assert found.sums_ns.tolist() == [15.0, 0.0]


def test_a_launch_of_unknown_time_belongs_where_it_ran() -> None:
    found = kernels_of(runs(("a", 1, 0, 310, 320)), WINDOWS, 1)

    assert found is not None
    assert found.sums_ns.tolist() == [0.0, 10.0]


def test_kernels_side_by_side_count_twice_in_the_sum_and_once_in_the_span() -> None:
    found = kernels_of(runs(("a", 1, 110, 120, 150), ("b", 2, 111, 130, 160)), WINDOWS[:1], 1)

    assert found is not None
    assert (found.sums_ns.tolist(), found.span_ns.tolist()) == ([60.0], [40.0])


@pytest.mark.parametrize(("kept", "rounds"), [(3, 1), (2, None)])
def test_a_round_of_which_not_all_is_kept_is_left_out(
    kept: int, rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proton_bench.rounds.kernels._MOST_RUNS", kept)
    kernels = [("a", 1, 110, 120, 150), ("a", 2, 111, 150, 160), ("a", 3, 310, 320, 330)]

    found = kernels_of(runs(*kernels[:kept]), WINDOWS, 1)

    assert (found and len(found.sums_ns)) == rounds


def test_without_kernels_there_are_none() -> None:
    assert kernels_of(runs(), WINDOWS, 1) is None
