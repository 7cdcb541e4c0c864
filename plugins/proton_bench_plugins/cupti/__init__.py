"""The ``cupti`` backend: every kernel of NVIDIA GPUs, also in CUDA graphs, and copies on request.

``-b cupti [-m copies=on:graph=launch:buffer_bytes=N:flush_period_ms=N]``. It is the default if an
NVIDIA GPU is visible. Graphs and NVTX: docs/explanation/graphs.md. Where in a kernel the time goes:
``-m pcsampling[:interval=CYCLES][:exact=scope|launch]``, docs/how-to/pc_sampling.md. Why it is
slow: ``-m counters[:metrics=SET]``, and ``counters=gpm`` as an option.
"""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.plugin import (
    Availability,
    Backend,
    Collector,
    Mode,
    ModeSpec,
    hookimpl,
)
from proton_bench.plugin.canary import Canary
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench_plugins.cupti.availability import find_obstacle, find_reason
from proton_bench_plugins.cupti.settings import (
    COUNTERS,
    COUNTERS_OPTIONS,
    OPTIONS,
    PC_SAMPLING,
    PC_SAMPLING_OPTIONS,
    read_settings,
)


def _availability() -> Availability:
    obstacle = find_obstacle()
    if obstacle is not None:
        return Availability(available=False, reason=obstacle)
    return Availability(available=True, reason=find_reason())


def _open(mode: Mode) -> Collector:
    settings = read_settings(mode)
    from proton_bench_plugins.cupti.collector import GpuCollector

    return GpuCollector(settings)


def _canary() -> Canary:
    from proton_bench_plugins.cupti.canary.torch_canary import TorchCanary

    return TorchCanary()


BACKEND = Backend(
    name="cupti",
    summary="kernels and copies on NVIDIA GPUs",
    availability=_availability,
    open=_open,
    modes=(
        ModeSpec("", options=OPTIONS, summary="every kernel, or one entry per launch of a graph"),
        PERIODIC_FLUSHING,
        ModeSpec(
            PC_SAMPLING,
            options={**PC_SAMPLING_OPTIONS, **OPTIONS},
            summary="every kernel, and PC samples of where in it the time goes",
        ),
        ModeSpec(
            COUNTERS,
            options={
                **COUNTERS_OPTIONS,
                **{key: text for key, text in OPTIONS.items() if key != COUNTERS},
            },
            summary="every kernel, and hardware counters of how it uses the GPU",
        ),
    ),
    data=("tree", "trace"),
    device_kinds=("CUDA",),
    canary=_canary,
)


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``cupti``."""
    return [BACKEND]


@hookimpl
def proton_default_backend() -> str | None:
    """Return "cupti" if an NVIDIA GPU is visible and CUPTI can be loaded."""
    return "cupti" if find_obstacle() is None else None
