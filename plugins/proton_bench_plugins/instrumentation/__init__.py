"""The ``instrumentation`` backend: cycles of scopes inside Triton and Gluon kernels.

``-b instrumentation [-m default:key=value...]``, alone or as ``cupti+instrumentation``. Kernels are
compiled with records of the clock, which the GPU itself reduces between launches.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from proton_bench.plugin import (
    Availability,
    Backend,
    Collector,
    Mode,
    ModeSpec,
    hookimpl,
)
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench.plugin.kernel_mode import KernelMode
from proton_bench.recording.stderr import warn
from proton_bench_plugins.instrumentation.availability import find_obstacle
from proton_bench_plugins.instrumentation.settings import OPTIONS, read_settings

_TRUE = ("1", "true", "on", "yes", "y")
_CUSTOM_OPTIONS = ("cta", "byte_limit", "compare")


def _availability() -> Availability:
    obstacle = find_obstacle()
    if obstacle is not None:
        return Availability(available=False, reason=obstacle)
    return Availability(available=True, reason="Triton's compiler and an NVIDIA driver were found")


def _open(mode: Mode) -> Collector:
    settings = read_settings(mode, _custom_modes())
    if os.environ.get("TRITON_INTERPRET", "").lower() in _TRUE:
        warn(
            "kernels have no records because TRITON_INTERPRET makes Triton interpret them; unset "
            "it, or record with `-b cpu`, where the same scopes measure host time"
        )
    from proton_bench_plugins.instrumentation.collector import InstrumentationCollector

    return InstrumentationCollector(settings)


BACKEND = Backend(
    name="instrumentation",
    summary="cycles of scopes inside Triton and Gluon kernels",
    availability=_availability,
    open=_open,
    modes=(
        ModeSpec("", options=OPTIONS, summary="scopes of the source and of passes"),
        ModeSpec("default", options=OPTIONS, summary="the same, by its name"),
        ModeSpec("mma", options=OPTIONS, summary="the same, by upstream's other name"),
        PERIODIC_FLUSHING,
    ),
    data=("tree", "trace"),
    device_kinds=("CUDA",),
    trace_option="trace",
    passes_mode="default",
)


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``instrumentation``, with the modes of plugins."""
    own = {key: OPTIONS[key] for key in _CUSTOM_OPTIONS}
    specs = [
        ModeSpec(mode.name, {**own, **mode.options}, mode.summary)
        for mode in _custom_modes().values()
    ]
    return [replace(BACKEND, modes=(*BACKEND.modes, *specs))]


def _custom_modes() -> Mapping[str, KernelMode]:
    from proton_bench.plugin.manager import get_plugin_manager

    taken = {spec.name for spec in BACKEND.modes}
    found: dict[str, KernelMode] = {}
    for plugin, modes in get_plugin_manager().call("proton_instrumentation_modes"):
        for mode in modes if isinstance(modes, Sequence) else [modes]:
            if not isinstance(mode, KernelMode) or mode.name in taken:
                warn(
                    f"plugin {plugin!r} offers {mode!r}, which is not a new mode of instrumentation"
                )
            else:
                found.setdefault(mode.name, mode)
    return found
