"""Profiles of kernels with counters, launches and use of the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile

H200 = Device("CUDA", 0, "90", 132, 1_980_000, 3_201_000, 6144)
SECOND = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One row.

    Attributes:
        path: Names from the outermost layer down to the kernel, with ``/`` between them.
        time_ns: Its time.
        count: Its launches.
        units: Fractions of the peaks of units; counters stand for all of its time.
        error: Standard error of each fraction.
        variant: How it was launched.
        metrics: Further metrics.
        kind: What the last row of the path is.
        device: Where it ran.
    """

    path: str
    time_ns: float = 1e6
    count: int = 10
    units: Mapping[str, float] = field(default_factory=dict)
    error: float = 0.0
    variant: Variant | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    kind: FrameKind = FrameKind.KERNEL
    device: Device | None = H200

    def values(self) -> dict[str, float]:
        """Return its metrics."""
        found: dict[str, float] = {"time (ns)": self.time_ns, "count": self.count, **self.metrics}
        if self.units:
            found["counter_time (ns)"] = found["counter_sampled (ns)"] = self.time_ns
        for unit, fraction in self.units.items():
            found[f"{unit}_busy (ns)"] = fraction * self.time_ns
            found[f"{unit}_variance (ns^2)"] = (self.error * self.time_ns) ** 2
        return found


def counted_profile(
    *kernels: Kernel, use: DeviceUse | None = None, run_ns: int = SECOND, **provenance: Any
) -> Profile:
    """Return a profile of these rows, whose layers are rows above them."""
    builder = ProfileBuilder()
    if use is not None:
        builder.device(H200)
    rows = {"": 0}
    for kernel in kernels:
        *layers, name = kernel.path.split("/")
        above = ""
        for layer in layers:
            here = f"{above}/{layer}"
            if here not in rows:
                kind = FrameKind.OP if "::" in layer else FrameKind.LAYER
                rows[here] = builder.add(rows[above], layer, kind)
            above = here
        builder.add(
            rows[above],
            name,
            kernel.kind,
            metrics=kernel.values(),
            device=kernel.device,
            variant=kernel.variant,
        )
    times = {"start_time_ns": 1, "end_time_ns": 1 + run_ns}
    profile = builder.build(provenance={**times, **provenance})
    return replace(profile, device_use=(use,)) if use is not None else profile
