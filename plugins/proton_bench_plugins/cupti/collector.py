"""The collector of the ``cupti`` backend: the native one, with libcupti found by Python's rules."""

from __future__ import annotations

import os
from typing import Any

from proton_bench import _native
from proton_bench_plugins.cupti.availability import started_in_this_process
from proton_bench_plugins.cupti.library import find_candidates
from proton_bench_plugins.cupti.settings import Settings

__all__ = ["GpuCollector"]

# Where NVTX, which is compiled into each library that uses it, looks at its first call of the
# process for a library that receives the calls.
_INJECTION = "NVTX_INJECTION64_PATH"


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
            whole_graphs=settings.whole_graphs,
            nvtx=settings.nvtx,
            vendor_clock=settings.vendor_clock,
            finalizes=settings.finalizes,
        )
        self._nvtx = settings.nvtx
        self._injected: str | None = None

    def start(self) -> None:
        """Begin to collect; on an exception nothing is left switched on."""
        self._native.start()
        started_in_this_process()
        if self._nvtx and _INJECTION not in os.environ:
            self._injected = os.environ[_INJECTION] = str(self._native.facts()["library"])

    def flush(self) -> None:
        """Wait for all work that was launched, and have it recorded."""
        self._native.flush()

    def stop(self) -> None:
        """Flush, and switch CUPTI off."""
        self._native.stop()
        if self._injected is not None and os.environ.get(_INJECTION) == self._injected:
            del os.environ[_INJECTION]
        self._injected = None

    def facts(self) -> dict[str, Any]:
        """Return library, versions, clock, and the devices seen, for the profile's provenance."""
        return self._native.facts()
