"""Partial files of a recording in progress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile

SECOND_NS = 10**9


def partial_at(
    second: float,
    *,
    kernels: Mapping[str, int] | None = None,
    layer: str = "model.0 (Linear)",
    kind: FrameKind = FrameKind.LAYER,
    busy_ns: int = 0,
    steps: int = 0,
    pid: int | None = None,
) -> Profile:
    """Return what was recorded until a second: times of kernels below a layer."""
    builder = ProfileBuilder()
    builder.device(Device("CUDA", 0))
    above = builder.add(0, layer, kind)
    for name, time_ns in (kernels or {}).items():
        builder.add(
            above,
            name,
            FrameKind.KERNEL,
            metrics={"time (ns)": time_ns, "count": time_ns // 1_000_000},
            device=Device("CUDA", 0),
        )
    profile = builder.build(
        partial=True,
        provenance={
            "host": os.uname().nodename,
            "pid": os.getpid() if pid is None else pid,
            "end_time_ns": round(second * SECOND_NS),
            "steps_begun": steps,
        },
    )
    return replace(profile, device_use=(DeviceUse(None, 0, busy_ns=busy_ns),))


def write(profile: Profile, file: Path) -> None:
    """Replace a file, so that it has another state even within one tick of the clock."""
    beside = file.with_name("beside.proton")
    write_profile(profile, beside)
    beside.replace(file)
