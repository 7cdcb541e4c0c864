"""The collectors of AMD GPUs: the native ones, with libraries found in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from proton_bench import _native
from proton_bench_plugins.libraries import note_start
from proton_bench_plugins.rocm.availability import (
    HIP,
    HSA,
    ROCTX,
    RocmLibrary,
)
from proton_bench_plugins.rocm.settings import Settings


def remark_on(counts: Mapping[str, int], facts: Mapping[str, Any]) -> str | None:
    """Return one line on kernels that are missing, or None.

    Args:
        counts: The session's counts.
        facts: Facts of the collector.
    """
    if counts["records"] > 0 or counts["cleared"] > 0:
        return None
    launches = counts["launches"] - counts["failed"]
    if launches > 0:
        return (
            f"{launches} launches were seen, but no kernel record arrived: {facts['library']} may "
            "belong to another ROCm than the program's HIP"
        )
    reasons = (
        "the process launched none while the session was active",
        "a first use of the GPU started HIP before the session: record with `proton run`, or "
        "start the session earlier",
        "they ran in other processes, such as children that are not recorded",
    )
    return f"no kernel was recorded: {', or '.join(reasons)}"


_Native = type[_native.RocprofilerCollector] | type[_native.RoctracerCollector]


class RocmCollector:
    """Records the work of AMD GPUs from ``start`` on.

    Args:
        native: Class of the compiled module.
        library: The profiler's library that it needs.
        settings: How to collect.
    """

    def __init__(self, native: _Native, library: RocmLibrary, settings: Settings) -> None:
        libraries = _native.RocmLibraries(
            profiler=library.find_candidates(),
            hip=HIP.find_candidates(),
            hsa=HSA.find_candidates(),
            roctx=ROCTX.find_candidates() if settings.ranges else [],
        )
        self._native = native(
            libraries,
            buffer_bytes=settings.buffer_bytes,
            flush_period_ms=settings.flush_period_ms,
            copies=settings.copies,
            ranges=settings.ranges,
        )
        self._process_id = 0

    def start(self) -> None:
        """Begin to collect; rocprofiler-sdk must start before HIP."""
        self._native.start()
        self._process_id = os.getpid()
        note_start()

    def flush(self) -> None:
        """Wait for all launched work, and record it."""
        self._native.flush()

    def stop(self) -> None:
        """Flush, and ignore later records of the library."""
        if os.getpid() == self._process_id:
            self._native.stop()

    def facts(self) -> dict[str, Any]:
        """Return library, versions and the devices seen, for the profile's provenance."""
        return self._native.facts()

    def remark(self, counts: Mapping[str, int]) -> str | None:
        """Return why kernels are missing from a session with these counts, or None."""
        return remark_on(counts, self.facts())
