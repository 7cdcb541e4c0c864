"""The ``roctracer`` backend: as ``rocprofiler``, for ROCm without rocprofiler-sdk.

``-b roctracer [-m copies=on:buffer_bytes=N:flush_period_ms=N]``. AMD has deprecated roctracer. It
is the default if an AMD GPU is visible and ``rocprofiler`` cannot run. See docs/reference/amd.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.plugin import Backend, hookimpl
from proton_bench_plugins.rocm.availability import ROCTRACER
from proton_bench_plugins.rocm.backend import RocmBackend

_ROCTRACER = RocmBackend(
    "roctracer",
    "kernels and copies on AMD GPUs, with roctracer, which AMD has deprecated",
    "RoctracerCollector",
    ROCTRACER,
)
BACKEND = _ROCTRACER.declare()


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``roctracer``."""
    return [BACKEND]


@hookimpl
def proton_default_backend() -> str | None:
    """Return "roctracer" if an AMD GPU is visible, after ``rocprofiler``."""
    return "roctracer" if _ROCTRACER.obstacle() is None else None
