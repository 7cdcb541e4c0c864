"""The cost of one record, measured on the device with empty scopes.

A scope reads the clock when it is entered, writes a record, and reads the clock again when it is
left. So an empty scope measures the cost that each record adds to outer scopes. The measuring
kernel uses the same passes, buffers and reduction as every other.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from proton_bench.recording.kernels import kernel_records
from proton_bench.recording.stderr import warn

KERNEL = "proton_bench_empty_scopes"

_LAUNCHES = 3  # the first one fetches the code

# By mode and device, for the life of the process: Triton loads the kernel only once.
_measured: dict[tuple[str, int], int] = {}


class Measures(Protocol):
    """The part of the native runtime that a calibration needs."""

    def take(
        self, function: int, stream: int
    ) -> tuple[dict[str, int], list[dict[str, Any]]] | None:
        """Return totals and scopes of a private kernel's launches, None without launches."""

    def is_capturing(self, stream: int) -> bool:
        """Return whether a graph is being captured on the stream."""


class Calibration:
    """The cost of a record in cycles, per device, measured on first use.

    Args:
        runtime: Reduces the launches that measure.
        num_warps: Warps of the program that measures, a power of two.
    """

    def __init__(self, runtime: Measures, num_warps: int = 4) -> None:
        self._runtime = runtime
        self._num_warps = num_warps
        self._costs: dict[tuple[str, int], int | None] = {}
        self._function: int | None = None
        self._is_measuring = False

    def cost(self, mode: str) -> int | None:
        """Return the cost on the current device; None if it cannot be measured (yet).

        Args:
            mode: The mode that Triton compiles kernels for while this is called.
        """
        if self._is_measuring:
            return None
        from triton.runtime import driver

        active: Any = driver.active
        device = active.get_current_device()
        key = (mode, device)
        if key in self._costs:
            return self._costs[key]
        if key not in _measured:
            stream = active.get_current_stream(device)
            if self._runtime.is_capturing(stream):
                return None  # its launches would become part of the graph
            cost = self._measure(stream)
            if cost is not None:
                _measured[key] = cost
        self._costs[key] = _measured.get(key)
        return self._costs[key]

    def note(self, function: int) -> None:
        """Note that the kernel that measures was loaded.

        Args:
            function: Its handle.
        """
        self._function = function

    def facts(self) -> dict[str, Any]:
        """Return the cost of a record on each device that was measured, in cycles."""
        known = {str(key[1]): cost for key, cost in self._costs.items() if cost is not None}
        return {"record_cost_cycles": known} if known else {}

    def _measure(self, stream: int) -> int | None:
        self._is_measuring = True
        try:
            with _unseen(), _accepting_triton():
                costs = self._launch(stream)
        except Exception as error:  # noqa: BLE001 - the user's kernel must run nevertheless
            warn(f"the cost of a record was not measured: {type(error).__name__}: {error}")
            return None
        finally:
            self._is_measuring = False
        return round(statistics.median(costs)) if costs else None

    def _launch(self, stream: int) -> list[float]:
        kernels = importlib.import_module("proton_bench_plugins.instrumentation.empty_scopes")
        taken = None
        for _ in range(_LAUNCHES):
            getattr(kernels, KERNEL)[1,](kernels.SCOPES, num_warps=self._num_warps)
            if self._function is not None:
                taken = self._runtime.take(self._function, stream)
        scopes = taken[1] if taken is not None else []
        return [each["cycles"] / each["count"] for each in scopes if each["count"]]


@contextmanager
def _unseen() -> Iterator[None]:
    """Keep launches out of the tree, because they are not the target's."""
    from proton_bench import _native

    _native.mute_launches()
    try:
        yield
    finally:
        _native.unmute_launches()


@contextmanager
def _accepting_triton() -> Iterator[None]:
    """Enable records in kernels of Triton's own language."""
    was_accepted = kernel_records.accepts("triton")
    kernel_records.accept("triton")
    try:
        yield
    finally:
        if not was_accepted:
            kernel_records.refuse("triton")
