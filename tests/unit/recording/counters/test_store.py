from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from fakes.mixtures import METRICS, burst_of, recorded_burst

from proton_bench.errors import SessionError
from proton_bench.recording.counters import store
from proton_bench.recording.counters.store import store_counters


class FakeSession:
    """A native session with bursts."""

    counter_metrics = METRICS

    def __init__(self, bursts: Mapping[int, list[dict[str, Any]]], times_ns: float = 0.0) -> None:
        self.bursts = dict(bursts)
        self.times_ns = times_ns
        self.lost = 0
        self.columns: dict[int, dict[str, dict[int, float]]] = {}
        self.readings: list[tuple[int, int, dict[str, list[float]], list[int]]] = []

    def live_phases(self) -> list[int]:
        return sorted(self.bursts)

    def take_bursts(self, phase: int) -> list[dict[str, Any]]:
        return self.bursts.pop(phase) if self.bursts[phase] else []

    def times_of_nodes(self, nodes: Any, phase: int) -> Any:
        return np.full(len(nodes), self.times_ns)

    def set_metric_of_nodes(self, name: str, nodes: Any, values: Any, *, phase: int) -> None:
        column = dict(zip(nodes.tolist(), values.tolist(), strict=True))
        self.columns.setdefault(phase, {})[name] = column

    def add_readings(self, device: int, readings: Any, at_ns: Any, *, phase: int) -> None:
        self.readings.append((phase, device, readings, at_ns))

    def lose_join(self) -> None:
        self.lost += 1


def test_estimates_become_times_of_the_whole_row() -> None:
    session = FakeSession({0: [recorded_burst("10us")]}, times_ns=1e9)

    store_counters(session, has_timeline=False)

    columns = session.columns[0]
    softmax = 8
    assert columns["counter_time (ns)"][softmax] == 1e9
    assert 0 < columns["counter_sampled (ns)"][softmax] < 1e9
    assert columns["dram_busy (ns)"][softmax] == pytest.approx(0.399e9, rel=0.01)
    assert columns["dram_variance (ns^2)"][softmax] ** 0.5 == pytest.approx(0.001e9, rel=1)
    assert columns["sm_cycles"][softmax] == pytest.approx(1.97e9, rel=0.01)
    assert session.readings == []


def test_a_row_stands_for_no_less_than_was_seen_of_it() -> None:
    session = FakeSession({0: [recorded_burst("10us")]}, times_ns=1.0)

    store_counters(session, has_timeline=False)

    columns = session.columns[0]
    sampled = columns["counter_sampled (ns)"]
    assert all(columns["counter_time (ns)"][node] >= ns for node, ns in sampled.items())


def test_each_phase_has_its_own_columns() -> None:
    kernels = [(5, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)]
    bursts = {phase: [four(burst_of(kernels))] for phase in (2, 3)}
    session = FakeSession({1: [], **bursts}, times_ns=1e7)

    store_counters(session, has_timeline=False)

    assert sorted(session.columns) == [2, 3]
    assert session.columns[3]["dram_busy (ns)"] == {5: pytest.approx(0.6e7, rel=0.02)}


def test_a_node_of_two_devices_has_the_sum() -> None:
    kernels = [(5, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)]
    others = [(5, at, at + 40_000, 0.2) for at in range(5_000, 1_900_000, 55_000)]
    bursts = [four(burst_of(kernels, device=0)), four(burst_of(others, device=1))]
    session = FakeSession({0: bursts}, times_ns=1e8)

    store_counters(session, has_timeline=False)

    assert session.columns[0]["counter_time (ns)"] == {5: pytest.approx(1e8)}
    assert session.columns[0]["dram_busy (ns)"] == {5: pytest.approx(0.4e8, rel=0.02)}


def test_samples_become_tracks_that_end_at_zero() -> None:
    kernels = [(5, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)]
    burst = four(burst_of(kernels, device=1))
    session = FakeSession({0: [burst]})

    store_counters(session, has_timeline=True)

    ((phase, device, readings, at_ns),) = session.readings
    assert (phase, device) == (0, 1)
    assert at_ns == [*burst["start_ns"].tolist(), int(burst["end_ns"][-1])]
    dram = readings["DRAM in bursts (%)"]
    assert dram[:-1] == pytest.approx(burst["counts"][:, 3].tolist())
    assert [values[-1] for values in readings.values()] == [0.0] * 3


def test_many_samples_are_shown_as_means_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MOST_SHOWN", 60)  # of 200, so four are put together
    burst = four(burst_of([(5, 0, 1_000_000, 0.6)]))
    session = FakeSession({0: [burst]})

    store_counters(session, has_timeline=True)

    ((_, _, readings, at_ns),) = session.readings
    assert len(at_ns) == 51
    assert at_ns[:-1] == burst["start_ns"][::4].tolist()
    assert readings["DRAM in bursts (%)"][24:26] == pytest.approx([60.0, 0.0])


def test_bursts_without_samples_store_nothing() -> None:
    burst = four(burst_of([(5, 0, 100, 0.5)]))
    burst["end_ns"] = burst["start_ns"]
    session = FakeSession({0: [burst]})

    store_counters(session, has_timeline=True)

    assert session.columns == {}
    assert session.readings == []


def test_a_phase_that_fails_does_not_take_the_counters_of_the_next_ones() -> None:
    broken = {**recorded_burst("10us"), "nodes": None}
    session = FakeSession({0: [broken], 1: [recorded_burst("10us")]}, times_ns=1e9)

    assert store_counters(session, has_timeline=False) != ""

    assert (sorted(session.columns), session.lost) == ([1], 1)


def test_a_phase_that_is_cleared_while_it_is_joined_is_no_loss() -> None:
    class Cleared(FakeSession):
        def times_of_nodes(self, nodes: Any, phase: int) -> Any:
            raise SessionError(f"Phase {phase} has no data")

    session = Cleared({0: [recorded_burst("10us")]})

    assert store_counters(session, has_timeline=False) == ""
    assert session.lost == 0


def test_nothing_heavy_is_loaded_without_bursts() -> None:
    program = (
        "import sys\n"
        "from proton_bench.recording.counters.store import store_counters\n"
        "class Session:\n"
        "    def live_phases(self): return [0]\n"
        "    def take_bursts(self, phase): return []\n"
        "store_counters(Session(), has_timeline=True)\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def four(burst: dict[str, Any]) -> dict[str, Any]:
    """Add the other metrics to a burst of DRAM's alone."""
    dram = burst["counts"][:, 0]
    cycles = np.full(len(dram), 18_000.0)
    burst["counts"] = np.column_stack([cycles, 0.5 * cycles, dram / 2, dram])
    return burst
