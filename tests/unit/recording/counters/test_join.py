from __future__ import annotations

import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest
from fakes.mixtures import DRAM, METRICS, burst_of, made_bursts
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.recording.counters import join as join_module
from proton_bench.recording.counters.join import DeviceEstimates, join_bursts
from proton_bench.recording.counters.store import PhaseJoiner

_WIDEST = 0.06 / 1.96


_LENGTHS_NS = (4_000, 9_000, 15_000, 30_000, 90_000)


seeds = st.integers(0, 2**32 - 1)


shares = st.floats(0.0, 0.95)


def only(found: list[DeviceEstimates]) -> DeviceEstimates:
    (estimates,) = found
    return estimates


def holds(estimates: DeviceEstimates, rates: list[float]) -> list[bool]:
    """Whether each 95 % interval has the true rate."""
    truth = np.array(rates)[estimates.nodes]
    halves = 1.96 * estimates.errors["dram"]
    return (np.abs(estimates.shares["dram"] - truth) <= halves + 1e-6).tolist()


@settings(max_examples=how_many(200, 15), deadline=None)
@given(seed=seeds, rates=st.lists(shares, min_size=5, max_size=5))
def test_rates_of_random_mixes_are_found(seed: int, rates: list[float]) -> None:
    bursts = made_bursts(np.random.default_rng(seed), lengths_ns=_LENGTHS_NS, rates=rates)

    estimates = only(join_bursts(bursts, [DRAM]))

    assert estimates.nodes.tolist() == [0, 1, 2, 3, 4]
    # Four standard errors of the made noise at the most.
    assert estimates.shares["dram"][2:] == pytest.approx(rates[2:], abs=0.02)
    assert (estimates.biases["dram"] <= estimates.errors["dram"]).all()
    assert (estimates.errors["dram"][3:] < _WIDEST).all()


def test_kernels_of_another_phase_are_no_idle_time_and_get_no_estimate() -> None:
    # Every second kernel is of the other phase, under the same number.
    kernels = [(3, at, at + 25_000, 0.2 if at % 2 == 0 else 0.9) for at in _begins()]
    burst = burst_of(kernels)
    burst["is_own"] = np.array([rate < 0.5 for *_, rate in kernels])

    estimates = only(join_bursts([burst], [DRAM]))

    own_ns = 25_000 * int(burst["is_own"].sum())
    assert estimates.nodes.tolist() == [3]
    assert estimates.sampled_ns.tolist() == [own_ns]
    assert estimates.shares["dram"] == pytest.approx([0.2], abs=0.01)
    burst["is_own"] = np.zeros(len(kernels), dtype=np.bool_)
    assert join_bursts([burst], [DRAM]) == []


def _begins() -> list[int]:
    return [at + at // 55_000 % 2 for at in range(6_000, 1_900_000, 55_000)]


@pytest.mark.parametrize("in_order", [False, True], ids=["at random", "by turns"])
@pytest.mark.parametrize("spread", [0.0, 0.03], ids=["alike", "differing by burst"])
def test_most_intervals_hold_the_truth(spread: float, *, in_order: bool) -> None:
    random = np.random.default_rng(7)
    held: list[bool] = []
    for _ in range(how_many(200, 20)):
        rates = random.uniform(0.0, 0.9, 5).tolist()
        bursts = made_bursts(
            random, lengths_ns=_LENGTHS_NS, rates=rates, spread=spread, in_order=in_order
        )
        held += holds(only(join_bursts(bursts, [DRAM])), rates)

    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("spread", [0.0, 0.03], ids=["alike", "differing by burst"])
def test_intervals_hold_without_the_allowance_for_edges(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The made samples have exact edges, so curvature and clusters must do alone."""
    monkeypatch.setattr(join_module, "EDGE_NS", 0.0)
    monkeypatch.setattr(join_module, "FOLLOWED_NS", 0.0)
    random = np.random.default_rng(11)
    held: list[bool] = []
    for _ in range(how_many(200, 20)):
        rates = random.uniform(0.05, 0.9, 5).tolist()
        bursts = made_bursts(random, lengths_ns=_LENGTHS_NS, rates=rates, spread=spread)
        held += holds(only(join_bursts(bursts, [DRAM])), rates)

    assert np.mean(held) >= 0.9


def test_counts_that_come_late_are_allowed_for_where_neighbours_repeat() -> None:
    random = np.random.default_rng(13)
    held: list[bool] = []
    for _ in range(how_many(200, 20)):
        rates = random.uniform(0.0, 0.9, 5).tolist()
        bursts = made_bursts(
            random, lengths_ns=[5_000, 6_000, 8_000, 11_000, 14_000], rates=rates, in_order=True
        )
        for burst in bursts:  # as if all counts were half a microsecond late
            burst["kernel_start_ns"] = burst["kernel_start_ns"] - 500
            burst["kernel_end_ns"] = burst["kernel_end_ns"] - 500
        held += holds(only(join_bursts(bursts, [DRAM])), rates)

    assert np.mean(held) >= 0.9


@settings(max_examples=how_many(100, 15), deadline=None)
@given(first=shares, second=shares, noise=st.sampled_from([0.0, 0.02]), seed=seeds)
def test_nodes_that_always_share_their_samples_are_withheld(
    first: float, second: float, noise: float, seed: int
) -> None:
    # Each sample has 2 us of both, so that only their sum is known.
    pairs = [
        (node, at + node * 2_000, at + node * 2_000 + 2_000, (first, second)[node])
        for at in range(1_000, 2_000_000, 10_000)
        for node in (0, 1)
    ]
    random = np.random.default_rng(seed)
    bursts = [
        burst_of(pairs, start_ns=10**9 * n, noise=random.normal(0.0, noise, 200)) for n in (1, 2, 3)
    ]

    estimates = only(join_bursts(bursts, [DRAM]))

    assert all(holds(estimates, [first, second]))
    if noise == 0.0:
        assert float(estimates.shares["dram"].sum()) == pytest.approx(first + second, abs=0.02)
    if max(first, second) > 0.3:
        assert (estimates.errors["dram"] > _WIDEST).all()
        assert (estimates.biases["dram"] > _WIDEST).all()  # the same in the next run


def test_a_unit_that_nobody_uses_is_known_even_beside_a_twin() -> None:
    pairs = [
        (node, at + node * 2_000, at + node * 2_000 + 2_000, 0.0)
        for at in range(1_000, 2_000_000, 10_000)
        for node in (0, 1)
    ]

    estimates = only(join_bursts([burst_of(pairs), burst_of(pairs, start_ns=5 * 10**9)], [DRAM]))

    assert estimates.shares["dram"] == pytest.approx([0.0, 0.0], abs=0.001)
    assert (estimates.errors["dram"] < _WIDEST).all()


def test_kernels_of_two_streams_each_count_with_their_whole_time() -> None:
    kernels = []
    random = np.random.default_rng(3)
    for node, rate in ((0, 0.2), (1, 0.5)):
        at = 0
        while at < 2_000_000:
            at += int(random.integers(5_000, 60_000))
            kernels.append((node, at, at + 30_000, rate))
            at += 30_000

    estimates = only(join_bursts([burst_of(kernels)], [DRAM]))

    assert estimates.shares["dram"] == pytest.approx([0.2, 0.5], abs=0.01)
    assert estimates.sampled_ns[0] > 500_000


def test_what_others_do_between_kernels_does_not_count_for_them() -> None:
    # 30 % of the bandwidth belong to another process, which is stopped while kernels of ours run.
    kernels = [(0, at, at + 25_000, 0.4) for at in range(3_000, 2_000_000, 61_000)]
    gaps = [(1, end, at, 0.3) for (_, _, end, _), (_, at, _, _) in itertools.pairwise(kernels)]
    burst = burst_of([*kernels, *gaps])
    ours = burst["nodes"] == 0
    for name in ("nodes", "is_own", "kernel_start_ns", "kernel_end_ns"):
        burst[name] = burst[name][ours]

    estimates = only(join_bursts([burst], [DRAM]))

    assert estimates.shares["dram"] == pytest.approx([0.4], abs=0.01)


@given(rate=shares, length_ns=st.sampled_from([15_000, 70_000, 1_900_000]))
@settings(max_examples=how_many(100, 15), deadline=None)
def test_a_kernel_alone_is_known(rate: float, length_ns: int) -> None:
    starts = range(1_000, 2_000_000, length_ns + 17_000)

    estimates = only(join_bursts([burst_of([(7, t, t + length_ns, rate) for t in starts])], [DRAM]))

    assert estimates.nodes.tolist() == [7]
    assert estimates.shares["dram"] == pytest.approx([rate], abs=0.005)
    assert estimates.time_ns[0] >= estimates.sampled_ns[0] > 0


def test_a_device_without_kernels_has_no_estimates() -> None:
    burst = burst_of([(0, 0, 50_000, 0.5)])
    for name in ("nodes", "is_own", "kernel_start_ns", "kernel_end_ns"):
        burst[name] = burst[name][:0]

    assert join_bursts([burst], [DRAM]) == []
    assert join_bursts([], [DRAM]) == []


def test_metrics_of_unknown_meaning_give_no_estimates() -> None:
    burst = burst_of([(0, 0, 500_000, 0.5)])
    assert join_bursts([burst], ["pcie__read_bytes.sum"]) == []


def test_samples_without_time_and_bad_counts_are_left_out() -> None:
    kernels = [(0, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)]
    burst = burst_of(kernels)
    burst["end_ns"] = burst["end_ns"].copy()
    burst["end_ns"][50] = burst["start_ns"][50]
    burst["start_ns"] = burst["start_ns"].copy()
    burst["start_ns"][60] = burst["end_ns"][60] = 0
    burst["counts"][70] = np.nan
    burst["counts"][50] = burst["counts"][60] = 1e9

    estimates = only(join_bursts([burst], [DRAM]))

    assert estimates.shares["dram"] == pytest.approx([0.6], abs=0.01)


def test_nodes_of_each_device_are_joined_with_its_own_samples() -> None:
    kernels = [(3, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)]
    others = [(4, at, at + 40_000, 0.2) for at in range(5_000, 1_900_000, 55_000)]

    found = join_bursts([burst_of(others, device=1), burst_of(kernels, device=0)], [DRAM])

    assert [(each.device, each.nodes.tolist()) for each in found] == [(0, [3]), (1, [4])]
    assert [each.shares["dram"][0] for each in found] == pytest.approx([0.6, 0.2], abs=0.01)


def test_nodes_beyond_the_largest_have_no_estimate_and_do_not_bias_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(join_module, "_MOST_NODES", 2)
    random = np.random.default_rng(5)
    bursts = made_bursts(
        random, lengths_ns=[40_000, 30_000, 12_000, 11_000], rates=[0.7, 0.1, 0.4, 0.4]
    )

    estimates = only(join_bursts(bursts, [DRAM]))

    assert estimates.nodes.tolist() == [0, 1]
    assert estimates.shares["dram"] == pytest.approx([0.7, 0.1], abs=0.01)


def test_shares_are_of_the_cycles_that_passed_in_the_kernel() -> None:
    # The clock drops by a sixth while node 0 runs, whose tensor pipes are busy in half its cycles.
    random = np.random.default_rng(9)
    bursts = []
    for burst in made_bursts(random, lengths_ns=[25_000, 25_000], rates=[1.0, 0.0], noise=0.0):
        part = burst["counts"][:, 0] / 100.0  # of the sample in which node 0 runs
        cycles = 10_000 * (1.5 * part + 1.8 * (1 - part))
        tensor = 100.0 * 0.5 * part * 15_000 / cycles
        burst["counts"] = np.column_stack([cycles, 0.9 * cycles, tensor, 10 * part])
        bursts.append(burst)

    estimates = only(join_bursts(bursts, METRICS))

    assert estimates.cycles_per_ns == pytest.approx([1.5, 1.8], rel=0.005)
    assert estimates.shares["tensor"] == pytest.approx([0.5, 0.0], abs=0.005)
    assert estimates.shares["sm_active"] == pytest.approx([0.9, 0.9], abs=0.01)
    assert estimates.shares["dram"] == pytest.approx([0.1, 0.0], abs=0.005)


PATIENCE_S = 60


FORKED = """
import os, threading
from proton_bench.recording.counters import store
from proton_bench.support import fork_lock

taking, go_on = threading.Event(), threading.Event()

class Session:
    phases = [None, 0]
    def next_to_join(self): return self.phases.pop(0) if self.phases else None
    def take_bursts(self, phase): taking.set(); go_on.wait(); return []

fork_lock._MAX_WAIT_S = 0.01
joiner = store.PhaseJoiner(Session(), has_timeline=False)
taking.wait()
child = os.fork()
if child == 0:
    os._exit(store._joining.locked())
go_on.set()
joiner.end()
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class FakeSession:
    """A native session whose phases wait to be joined.

    Attributes:
        waiting: These, in order.
        broken: Phases whose bursts cannot be taken.
        columns: Names of metrics that were stored, by phase.
        lost: Phases that were counted as lost.
    """

    counter_metrics = ("dram__throughput.avg.pct_of_peak_sustained_elapsed",)

    def __init__(self, waiting: list[int], broken: tuple[int, ...] = ()) -> None:
        self.waiting = waiting
        self.broken = broken
        self.columns: dict[int, list[str]] = {}
        self.lost = 0
        self.calls = 0
        self.is_done = threading.Event()

    def next_to_join(self) -> int | None:
        self.calls += 1
        if self.calls == 1:
            return None  # the session is not active yet
        if not self.waiting:
            self.is_done.set()
            return None
        return self.waiting[0]

    def take_bursts(self, phase: int) -> list[dict[str, object]]:
        assert self.waiting.pop(0) == phase
        if phase in self.broken:
            raise ArithmeticError(f"no inverse of {phase}")
        return [burst_of([(5, at, at + 40_000, 0.6) for at in range(5_000, 1_900_000, 55_000)])]

    def times_of_nodes(self, nodes: list[int], phase: int) -> list[float]:
        del phase
        return [1e9] * len(nodes)

    def set_metric_of_nodes(self, name: str, nodes: object, values: object, *, phase: int) -> None:
        del nodes, values
        self.columns.setdefault(phase, []).append(name)

    def lose_join(self) -> None:
        self.lost += 1

    def live_phases(self) -> list[int]:
        raise AssertionError

    def add_readings(self, device: int, readings: object, at_ns: object, *, phase: int) -> None:
        raise AssertionError

    def end_joins(self) -> None:
        raise AssertionError


def joined(session: FakeSession) -> PhaseJoiner:
    joiner = PhaseJoiner(session, has_timeline=False)
    assert session.is_done.wait(PATIENCE_S)
    joiner.end()
    return joiner


def test_phases_that_wait_are_joined_one_after_the_other() -> None:
    session = FakeSession([1, 2, 4])

    assert joined(session).problem == ""

    assert sorted(session.columns) == [1, 2, 4]
    assert "dram_busy (ns)" in session.columns[4]


def test_a_phase_that_cannot_be_joined_does_not_keep_the_next_ones() -> None:
    session = FakeSession([1, 2, 3, 4], broken=(2, 4))

    assert joined(session).problem == "ArithmeticError: no inverse of 2"

    assert sorted(session.columns) == [1, 3]
    assert session.lost == 2


def test_a_child_of_a_fork_finds_no_lock_taken() -> None:
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
