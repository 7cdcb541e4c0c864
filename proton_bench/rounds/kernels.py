"""The kernels of each round, from a session of its own that records them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from proton_bench.errors import ProtonError
from proton_bench.gate.machine import tick_of
from proton_bench.model.arrays import Array
from proton_bench.plugin.backend import Backend
from proton_bench.recording.profiled import profiled
from proton_bench.recording.session.options import CapturePlan
from proton_bench.recording.session.recording import live_sessions
from proton_bench.rounds.cuda import CudaTimer, as_graph
from proton_bench.rounds.measurement import (
    Around,
    CpuTimer,
    Device,
    Kernels,
    Measurement,
    Plan,
    measure,
    measure_coroutine,
)

_COPIES = "copies"  # option of a backend that records them only if asked


class KernelRecording(profiled):
    """Records the kernels of a block, beside whatever other sessions record.

    Args:
        backend: Backend; by default that of a live session, or the one for this machine.

    Attributes:
        problem: Why nothing is recorded, or no copies; "" if everything is.
    """

    def __init__(self, backend: str | None = None) -> None:
        super().__init__(shows=False, context="shadow", samples_host=False, backend=backend)
        self.problem = ""
        self._runs: dict[str, Any] = {}

    def __enter__(self) -> KernelRecording:
        """Begin to record, if that is possible."""
        try:
            if self._options["backend"] is None:
                self._options |= _backends_and_mode()
            super().__enter__()
        except ProtonError as error:
            self.problem = str(error)
        if self._session is not None:
            self._session.core.keep_runs()
            if _leaves_out_copies(self._session.plan):
                self.problem = "copies are left out, as in the recording around it"
        elif not self.problem:
            self.problem = "profiling is disabled"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the recording."""
        if self._session is not None and self._session.is_live:
            self._session.settle()
            self._runs = self._session.core.take_runs()
        super().__exit__(kind, error, traceback)

    def with_kernels(self, measurement: Measurement) -> Measurement:
        """Return a measurement in which the GPU's times are those of its kernels, if it has any."""
        if self.profile is None:
            return measurement
        found = kernels_of(self._runs, measurement.windows_ns, tick_of(self.profile, "ns"))
        if found is None:
            self.problem = _MORE if _is_full(self._runs) else "no kernel was recorded"
            return measurement
        sums = tuple(found.sums_ns.tolist())
        cpu_ns = measurement.cpu_ns[: len(sums)]
        return replace(measurement, cpu_ns=cpu_ns, gpu_ns=sums, kernels=found)


def timed(
    call: Callable[[], object], plan: Plan, *, device: Device, around: Around
) -> tuple[Measurement, KernelRecording | None]:
    """Time a function that has been called before, on a GPU by its kernels.

    Args:
        call: The function.
        plan: How to time it.
        device: Whose clock counts.
        around: As of `measure`.
    """
    if device is Device.CPU:
        return measure(call, CpuTimer(), plan, around=around), None
    with KernelRecording() as recording:
        timer = CudaTimer(around, flush_l2=plan.flush_l2)
        repeated = as_graph(call, around) if plan.cudagraph else call
        measurement = measure(repeated, timer, plan, around=around)
    return recording.with_kernels(measurement), recording


async def timed_coroutine(
    call: Callable[[], Awaitable[object]], plan: Plan, *, device: Device, around: Around
) -> Measurement:
    """Time an async function; otherwise as `timed`."""
    if device is Device.CPU:
        return await measure_coroutine(call, CpuTimer(), plan, around=around)
    with KernelRecording() as recording:
        timer = CudaTimer(around, flush_l2=plan.flush_l2)
        measurement = await measure_coroutine(call, timer, plan, around=around)
    return recording.with_kernels(measurement)


def kernels_of(
    runs: Mapping[str, Any], windows_ns: Sequence[tuple[int, int]], tick_ns: float
) -> Kernels | None:
    """Return the kernels that were launched in each window, None if none was, or none whole.

    Args:
        runs: What ran, as the native session keeps it.
        windows_ns: When each round began and when all of it had been launched.
        tick_ns: Smallest step of the times.
    """
    if not len(runs["launch"]):
        return None
    begins, ends = np.array(windows_ns, dtype=np.int64).T
    called_ns = _called_ns(runs)
    rounds = np.searchsorted(begins, called_ns, side="right") - 1
    inside = (rounds >= 0) & (called_ns <= ends[rounds])
    if not inside.any():
        return None
    rounds, names = rounds[inside], runs["name"][inside]
    # What ran later than the last that is kept is missing in its round.
    whole = int(rounds.max()) if _is_full(runs) else len(begins)
    if not whole:
        return None
    starts, stops = runs["start_ns"][inside], runs["end_ns"][inside]
    shape = (len(begins), len(runs["names"]))
    times, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(times, (rounds, names), stops - starts)
    np.add.at(counts, (rounds, names), 1)
    first, last = np.full(len(begins), np.iinfo(np.int64).max), np.zeros(len(begins), np.int64)
    np.minimum.at(first, rounds, starts)
    np.maximum.at(last, rounds, stops)
    times, counts, first, last = times[:whole], counts[:whole], first[:whole], last[:whole]
    order = [row for row in np.argsort(-times.sum(axis=0), kind="stable") if counts[:, row].any()]
    return Kernels(
        names=tuple(runs["names"][row] for row in order),
        times_ns=times[:, order],
        counts=counts[:, order].mean(axis=0),
        span_ns=np.where(last > 0, last - first, 0).astype(np.float64),
        tick_ns=tick_ns,
    )


_MOST_RUNS = 1 << 20  # that a native session keeps
_MORE = f"more kernels ran than the {_MOST_RUNS} that are kept: time a shorter call"


def _is_full(runs: Mapping[str, Any]) -> bool:
    return len(runs["launch"]) >= _MOST_RUNS


def _called_ns(runs: Mapping[str, Any]) -> Array:
    """Return when each was launched; the nodes of a graph all with their graph.

    That of the first kernel stands for a launch whose time is unknown.
    """
    _, launches = np.unique(runs["launch"], return_inverse=True)
    latest = np.zeros(launches.max() + 1, dtype=np.int64)
    np.maximum.at(latest, launches, runs["called_ns"])
    first = np.full(len(latest), np.iinfo(np.int64).max)
    np.minimum.at(first, launches, runs["start_ns"])
    found: Array = np.where(latest > 0, latest, first)[launches]
    return found


def _backends_and_mode() -> dict[str, Any]:
    """Return the backends and modes of a live session, else the default ones, with copies."""
    from proton_bench.plugin.manager import resolve_backend

    for session in live_sessions():
        plan = session.plan
        if any(kind != "CPU" for backend in plan.backends for kind in backend.device_kinds):
            modes = "+".join(mode.text for mode in plan.modes if mode.text)
            return {"backend": plan.backend_names, "mode": modes or None}
    return {"mode": f"{_COPIES}=on"} if _asks_for_copies(resolve_backend(None)) else {}


def _asks_for_copies(backends: Sequence[Backend]) -> bool:
    """Whether a backend records copies only where its mode says so."""
    return any(_COPIES in mode.options for backend in backends for mode in backend.modes)


def _leaves_out_copies(plan: CapturePlan) -> bool:
    has_copies = any(mode.options.get(_COPIES) == "on" for mode in plan.modes)
    return _asks_for_copies(plan.backends) and not has_copies
