"""Profiles of kernels with given times; without the gate, so that programs start fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile

H200 = Device("CUDA", 0, "90", 132)
GPU = {"name": "NVIDIA H200", "uuid": "GPU-1", "driver": "570.1", "throttle_reasons": 0}


def profile_of_times(
    times: Mapping[str, Sequence[float]],
    *,
    codes: Mapping[str, str] | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    provenance: Mapping[str, Any] | None = None,
    device: Device = H200,
) -> Profile:
    """Return a profile of kernels below scopes, each with the times of its launches in ns."""
    builder = ProfileBuilder()
    scopes = {"": 0}
    for path, launches in times.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            here, above = "/".join(parts[:depth]), "/".join(parts[: depth - 1])
            if here not in scopes:
                scopes[here] = builder.add(scopes[above], parts[depth - 1], FrameKind.SCOPE)
        code = (codes or {}).get(path, "")
        row = builder.add(
            scopes["/".join(parts[:-1])],
            parts[-1],
            FrameKind.KERNEL,
            metrics={
                "time (ns)": float(np.sum(launches)),
                "count": len(launches),
                **(metrics or {}).get(path, {}),
            },
            device=device,
            variant=Variant(code_hash=code) if code else None,
        )
        builder.set_distribution(row, "time (ns)", Distribution.from_samples(launches))
    return builder.build(provenance={"host": "here", "gpus_at_start": [GPU], **(provenance or {})})
