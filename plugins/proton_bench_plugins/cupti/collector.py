"""The collector of the ``cupti`` backend: the native one, with libcupti found by Python's rules."""

from __future__ import annotations

from typing import Any

from proton_bench import _native
from proton_bench_plugins.cupti.availability import started_in_this_process
from proton_bench_plugins.cupti.library import find_candidates
from proton_bench_plugins.cupti.settings import Settings

__all__ = ["GpuCollector"]


class GpuCollector:
    """Records what NVIDIA GPUs run, from ``start`` on.

    Args:
        settings: How to collect.
    """

    def __init__(self, settings: Settings) -> None:
        self._native = _native.CuptiCollector(
            find_candidates(),
            buffer_bytes=settings.buffer_bytes,
            flush_period_ms=settings.flush_period_ms,
            copies=settings.copies,
            vendor_clock=settings.vendor_clock,
            finalizes=settings.finalizes,
        )

    def start(self) -> None:
        """Begin to collect; on an exception nothing is left switched on."""
        self._native.start()
        started_in_this_process()

    def flush(self) -> None:
        """Wait for all work that was launched, and have it recorded."""
        self._native.flush()

    def stop(self) -> None:
        """Flush, and switch CUPTI off."""
        self._native.stop()

    def facts(self) -> dict[str, Any]:
        """Return library, versions, clock, and the devices seen, for the profile's provenance."""
        return self._native.facts()
