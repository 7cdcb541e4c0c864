from __future__ import annotations

import subprocess
import sys
import threading

from fakes.mixtures import burst_of

from proton_bench.recording.counters.store import PhaseJoiner

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
