"""Profiles with PC samples: lines below kernels, as the mode ``pcsampling`` records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)
REASONS = (
    "branch_resolving", "no_instruction", "short_scoreboard", "wait", "long_scoreboard",
    "tex_throttle", "barrier", "membar", "imc_miss", "mio_throttle", "math_pipe_throttle", "drain",
    "lg_throttle", "not_selected", "misc", "dispatch_stall", "sleeping", "selected",
)  # fmt: skip
# The backend's facts of a run: one sample per 1024 cycles, 1490 of 1538.
FACTS = {
    "cupti": {
        "pc_sampling": {
            "period_cycles": 1024,
            "is_automatic": False,
            "attribution": "estimated by GPU time",
            "samples": 1490,
            "not_issued": 510,
            "dropped": 48,
            "doubled": 0,
            "error": "",
            "drain_ns": 1_500_000,
            "publish_ns": 500_000,
            "most_bytes": 1 << 20,
        }
    }
}


@dataclass(frozen=True)
class Line:
    """A line of a kernel.

    Attributes:
        place: ``dir/file:line@function``.
        reasons: Samples by reason.
        not_issued: The part in which its scheduler issued nothing.
    """

    place: str
    reasons: Mapping[str, int]
    not_issued: int = 0

    def metrics(self) -> dict[str, int]:
        """Return the values of its row."""
        return samples(self.reasons, self.not_issued)


def samples(reasons: Mapping[str, int], not_issued: int = 0) -> dict[str, int]:
    """Return the metrics of PC samples; every reason is there, as the collector writes them."""
    stalled = sum(reasons.values())
    found = {"num_samples": stalled + not_issued, "num_stalled_samples": stalled}
    return found | {f"stalled_{name}": reasons.get(name, 0) for name in REASONS}


SOFTMAX = (
    Line("/src/softmax.py:12@softmax_kernel", {"long_scoreboard": 600, "wait": 100}, 300),
    Line("/src/softmax.py:14@softmax_kernel", {"barrier": 150, "selected": 50}, 100),
    Line("/src/softmax.py:17@softmax_kernel", {"lg_throttle": 40, "selected": 10}),
)
LIBRARY = samples({"math_pipe_throttle": 300, "selected": 200}, 100)


def sampled_profile(
    lines: tuple[Line, ...] = SOFTMAX, *, facts: Mapping[str, Any] | None = None
) -> Profile:
    """Return train > forward > softmax_kernel with lines, and a library's kernel without."""
    builder = ProfileBuilder()
    scope = builder.add(0, "train", FrameKind.SCOPE)
    forward = builder.add(scope, "forward", FrameKind.SCOPE)
    kernel = builder.add(
        forward,
        "softmax_kernel",
        FrameKind.KERNEL,
        metrics={"time (ns)": 8_000_000, "count": 40, **samples({"wait": 40}, 10)},
        device=GPU,
    )
    for line in lines:
        builder.add(kernel, line.place, FrameKind.LINE, metrics=line.metrics())
    builder.add(
        scope,
        "sm90_xmma_gemm_f16",
        FrameKind.KERNEL,
        metrics={"time (ns)": 4_000_000, "count": 10, **LIBRARY},
        device=GPU,
    )
    return builder.build(provenance={"backend": "cupti", "collectors": facts or FACTS})
