"""The ``rocprofiler`` backend: kernels of AMD GPUs, also in HIP graphs, and copies on request.

``-b rocprofiler [-m copies=on:buffer_bytes=N:flush_period_ms=N]``, through rocprofiler-sdk. It is
the default if an AMD GPU is visible and ROCm has that library. See docs/reference/amd.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.plugin import Backend, hookimpl
from proton_bench_plugins.rocm.availability import ROCPROFILER
from proton_bench_plugins.rocm.backend import RocmBackend

_ROCPROFILER = RocmBackend(
    "rocprofiler",
    "kernels and copies on AMD GPUs, with rocprofiler-sdk",
    "RocprofilerCollector",
    ROCPROFILER,
)
BACKEND = _ROCPROFILER.declare()


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``rocprofiler``."""
    return [BACKEND]


@hookimpl
def proton_default_backend() -> str | None:
    """Return "rocprofiler" if an AMD GPU is visible and rocprofiler-sdk is installed."""
    return "rocprofiler" if _ROCPROFILER.obstacle() is None else None
