"""Estimates of counters as metrics of rows, which add up over rows, ranks and runs.

A share of a peak cannot be added up, but the time in which the unit would have done the same work
at its peak can: share x time of the row. Errors are stored as variances of that time, and their
part that is the same in all rows and runs as times: variances of these would get too small in a
sum.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from proton_bench.errors import SessionError
from proton_bench.model.metrics.counter_columns import (
    COUNTED_TIME,
    CYCLES,
    SAMPLED_TIME,
    bias_column,
    busy_column,
    variance_column,
)
from proton_bench.support.fork_lock import ForkLock

_MOST_SHOWN = 50_000  # samples of a phase in a timeline, each on up to thirteen tracks
# Names of tracks. Other counters of a device are of the whole run, these only of bursts.
_TRACKS = {
    "sm_active": "SM active in bursts (%)",
    "tensor": "tensor in bursts (%)",
    "dram": "DRAM in bursts (%)",
    "l2": "L2 in bursts (%)",
    "l2_requests": "L2 requests in bursts (%)",
    "l2_slice": "L2 requests, busiest slice, in bursts (%)",
    "issue": "issue in bursts (%)",
    "fp32": "FP32 in bursts (%)",
    "alu": "integers in bursts (%)",
    "xu": "special functions in bursts (%)",
    "fp64": "FP64 in bursts (%)",
    "l1": "L1 in bursts (%)",
    "shared": "shared memory in bursts (%)",
}


class CounterSession(Protocol):
    """What storing needs of a native session."""

    @property
    def counter_metrics(self) -> Sequence[str]:
        """NVIDIA's names of what was sampled."""

    def live_phases(self) -> Sequence[int]:
        """Return the phases that are not written yet."""

    def take_bursts(self, phase: int) -> Sequence[Mapping[str, Any]]:
        """Return the bursts beside which kernels of a phase ran, with all that ran then."""

    def times_of_nodes(self, nodes: Any, phase: int) -> Any:
        """Return the whole kernel time of each node in ns."""

    def set_metric_of_nodes(self, name: str, nodes: Any, values: Any, *, phase: int) -> None:
        """Add a value to a metric of each node."""

    def add_readings(
        self, device: int, readings: Mapping[str, Any], at_ns: Any, *, phase: int
    ) -> None:
        """Add readings of a device at these times to the timeline, a list for each name."""

    def lose_join(self) -> None:
        """Count that a phase goes without its counters."""


def store_counters(session: CounterSession, *, has_timeline: bool) -> str:
    """Compute metrics of kernels from the samples of each phase, and add them to its rows.

    Args:
        session: A session whose records were all consumed, before its files are written.
        has_timeline: Also add the samples to the session's timeline.

    Returns:
        Why the first phase that could not be joined has no counters, "" if all could.
    """
    said = [
        store_phase(session, phase, has_timeline=has_timeline) for phase in session.live_phases()
    ]
    return next(filter(None, said), "")


def store_phase(session: CounterSession, phase: int, *, has_timeline: bool) -> str:
    """Do so with one phase, which goes without counters if that fails.

    Heavy libraries are loaded only if something was sampled.

    Args:
        session: A session that has consumed all records of the phase.
        phase: Its number.
        has_timeline: Also add the samples to the session's timeline.

    Returns:
        Why it could not be joined, "" if it could.
    """
    try:
        bursts = session.take_bursts(phase)
        if bursts:
            if has_timeline:
                _show(session, phase, bursts)
            _store(session, phase, bursts)
    except SessionError:
        return ""  # the program cleared the phase meanwhile
    except Exception as error:  # noqa: BLE001 - all else that was recorded must not be lost
        session.lose_join()
        return f"{type(error).__name__}: {error}"
    return ""


def _store(session: CounterSession, phase: int, bursts: Sequence[Mapping[str, Any]]) -> None:
    import numpy as np

    from proton_bench.recording.counters.join import join_bursts

    found = join_bursts(bursts, session.counter_metrics)
    if not found:
        return
    nodes, place = np.unique(np.concatenate([each.nodes for each in found]), return_inverse=True)
    seen_ns = np.concatenate([each.time_ns for each in found])
    whole_ns = np.asarray(session.times_of_nodes(nodes, phase), dtype=np.float64)
    # A node may have run on several devices; its time is split as it was in the bursts.
    seen_of_node = np.bincount(place, seen_ns)
    times = np.split(
        np.maximum(whole_ns, seen_of_node)[place] * seen_ns / seen_of_node[place],
        np.cumsum([len(each.nodes) for each in found])[:-1],
    )
    columns: dict[str, list[Any]] = {}
    for each, time_ns in zip(found, times, strict=True):
        columns.setdefault(COUNTED_TIME, []).append(time_ns)
        columns.setdefault(SAMPLED_TIME, []).append(each.sampled_ns)
        if each.cycles_per_ns is not None:
            columns.setdefault(CYCLES, []).append(each.cycles_per_ns * time_ns)
        for name, shares in each.shares.items():
            columns.setdefault(busy_column(name), []).append(shares * time_ns)
            variance = (each.errors[name] * time_ns) ** 2
            columns.setdefault(variance_column(name), []).append(variance)
        for name, biases in each.biases.items():
            columns.setdefault(bias_column(name), []).append(biases * time_ns)
    for name, parts in columns.items():
        sums = np.bincount(place, np.concatenate(parts))
        session.set_metric_of_nodes(name, nodes, sums, phase=phase)


def _show(session: CounterSession, phase: int, bursts: Sequence[Mapping[str, Any]]) -> None:
    """Add the samples to the timeline, with zeros after each burst: nothing is known there.

    Of very many samples neighbours are put together, so that a timeline stays readable.
    """
    import numpy as np

    from proton_bench.recording.counters.bursts import bursts_by_device, shares_of

    by_device = bursts_by_device(bursts)
    samples = sum(len(burst.start_ns) for each in by_device.values() for burst in each)
    together = -(-samples // _MOST_SHOWN)
    for device, of_device in by_device.items():
        for burst in of_device:
            first = np.arange(0, len(burst.start_ns), together)
            sizes = np.diff(np.append(first, len(burst.start_ns)))
            at_ns = [*burst.start_ns[first].tolist(), int(burst.end_ns[-1])]
            readings = {
                _TRACKS[name]: [*(100.0 * np.add.reduceat(shares, first) / sizes).tolist(), 0.0]
                for name, shares in shares_of(burst, session.counter_metrics).items()
            }
            session.add_readings(device, readings, at_ns, phase=phase)


_PERIOD_S = 0.1  # the native writer looks for phases as often

# Held while a phase is joined, so that a forked child inherits no lock of an import or a library.
_joining = ForkLock()


class PhasedSession(CounterSession, Protocol):
    """What joining needs of a native session that writes phases while it records."""

    def next_to_join(self) -> int | None:
        """Return a phase that waits to be joined; those with bursts do from the first call on."""

    def end_joins(self) -> None:
        """Have no phase wait any more."""


class PhaseJoiner:
    """Joins the phases of one session, on a thread that runs until `end`.

    Attributes:
        problem: Why the first phase that could not be joined has no counters; "" if all could.
    """

    def __init__(self, session: PhasedSession, *, has_timeline: bool) -> None:
        """Start the thread.

        Args:
            session: A session that is not active yet.
            has_timeline: Also add the samples to the session's timeline.
        """
        self.problem = ""
        self._session = session
        self._has_timeline = has_timeline
        self._ended = threading.Event()
        session.next_to_join()
        self._thread = threading.Thread(target=self._run, name="proton_bench phases", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the thread, which leaves what is not joined yet; those phases still wait."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            while not self._ended.is_set() and (phase := self._session.next_to_join()) is not None:
                self._join(phase)

    def _join(self, phase: int) -> None:
        with _joining.held():
            problem = store_phase(self._session, phase, has_timeline=self._has_timeline)
        self.problem = self.problem or problem
