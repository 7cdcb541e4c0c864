"""Made-up programs with kernels and scopes that have an elapsed time, and runs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fakes.timed import GPU, H200

from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation

SECOND_NS = 1_000_000_000
Changes = dict[str, Sequence[float] | None]


@dataclass(frozen=True)
class Program:
    """What one process does, without noise: times in ns of all launches, and of all entries.

    ``between`` is the noise of a process. A path with ``None`` is left out.
    """

    kernels: Mapping[str, Sequence[float] | None]
    walls: Mapping[str, Sequence[float]] = field(default_factory=dict)
    kinds: Mapping[str, FrameKind] = field(default_factory=dict)
    between: float = 0.002
    within: float = 0.005

    def but(self, changes: Changes, **facts: Any) -> Program:
        """Return the program with other times for some paths."""
        return replace(self, kernels={**self.kernels, **changes}, **facts)


def recorded(program: Program, noise: np.random.Generator, at: int) -> Run:
    """Return one run that began at second ``at`` and lasted half a second."""
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    rows = {"": 0}

    def place(path: str, kind: FrameKind) -> int:
        if path not in rows:
            above, _, name = path.rpartition("/")
            parent = place(above, FrameKind.SCOPE)
            kind = program.kinds.get(path, kind)
            launched = kind in {FrameKind.KERNEL, FrameKind.COPY}
            rows[path] = builder.add(parent, name, kind, device=H200 if launched else None)
        return rows[path]

    common = noise.normal(0.0, 0.001)
    for metric, values in (("wall (ns)", program.walls), ("time (ns)", program.kernels)):
        is_kernel = metric == "time (ns)"
        for path, times in values.items():
            if times is None:
                continue
            row = place(path, FrameKind.KERNEL if is_kernel else FrameKind.SCOPE)
            factor = np.exp(common + noise.normal(0.0, program.between))
            each = np.asarray(times) * factor
            each = each * np.exp(noise.normal(0.0, program.within, len(times)))
            builder.set(row, metric, float(each.sum()))
            builder.set_distribution(row, metric, Distribution.from_samples(each.tolist()))
            if is_kernel:
                builder.set(row, "count", len(times))
    span = {"start_time_ns": at * SECOND_NS, "end_time_ns": at * SECOND_NS + SECOND_NS // 2}
    return Run(builder.build(provenance={"host": "here", "gpus_at_start": [GPU], **span}), str(at))
