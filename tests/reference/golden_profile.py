"""The profile behind tests/data/golden; run this module to write those files again.

``PYTHONPATH=.:tests python -m reference.golden_profile``
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proton_bench.formats.registry import FORMATS, find_format
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

GOLDEN = Path(__file__).parent.parent / "data" / "golden"


def golden_profile() -> Profile:
    """Return a profile with one of everything that a file can hold."""
    builder = ProfileBuilder()
    for name, aggregation in (
        ("time (ns)", Aggregation.INCLUSIVE),
        ("wall (ns)", Aggregation.EXCLUSIVE),
        ("registers", Aggregation.PROPERTY),
        ("own", Aggregation.EXCLUSIVE),
    ):
        builder.declare(name, aggregation)
    gpu = Device("CUDA", 0, "90", 132, 1980000, 2619000, 6144)
    test = builder.add(0, "test_step[8]", FrameKind.TEST, metrics={"wall (ns)": 9000})
    scope = builder.add(test, "forward\n[red]\x00é", FrameKind.SCOPE, metrics={"own": 2.5})
    for code, value in (("a1", 1000), ("b2", 3000)):
        row = builder.add(
            scope,
            "matmul<float, 4>",
            FrameKind.KERNEL,
            metrics={"time (ns)": value, "count": 2, "flops16": value / 8, "registers": 64},
            device=gpu,
            variant=_variant(code),
        )
        builder.set_distribution(row, "time (ns)", Distribution.from_samples([value / 2] * 2))
    op = builder.add(test, "aten::add", FrameKind.OP, device=Device("CPU", 0))
    samples = [1000.0 + 7 * i for i in range(70)]
    builder.set(op, "time (ns)", round(sum(samples)))
    builder.set(op, "count", len(samples))
    builder.set(op, "bytes", 2**53 + 1)  # no float64 holds it
    builder.set(op, "experts", [1, 2, 3])
    builder.set(op, "weights", [0.5, 0.25])
    builder.set(op, "layout", "nhwc")
    builder.set_distribution(op, "time (ns)", Distribution.from_samples(samples))
    builder.add(0, "/srv/model.py:12@forward", FrameKind.PYTHON)
    built = builder.build(
        provenance={"backend": "replay", "versions": {"triton": "3.7.1"}, "argv": ["x.py", "-v"]},
        dropped={"buffer full": 3},
    )
    whole = DeviceUse(
        *(None, 0, 7500, 2500, 400, 500, 10, 3, 1, 31_000, 0, 20_000),
        latency_first_bucket=80,
        latency_buckets=(1, 0, 0, 2),
    )
    return replace(built, device_use=(whole, replace(whole, scope="test_step[8]", idle_ns=100)))


def _variant(code: str) -> Variant:
    return Variant(
        *(code, (8, 2, 1), (128, 1, 1), 49152, "*fp16,*fp16,i32", 64, "_Z4gemm"),
        local_bytes=128,
        instructions={"global loads": 64, "mma": 32},
    )


def main() -> None:
    """Write every golden file."""
    GOLDEN.mkdir(exist_ok=True)
    for name in FORMATS:
        chosen = find_format(name)
        path = GOLDEN / f"profile{chosen.suffixes[0]}"
        path.write_bytes(chosen.encode(golden_profile()))


if __name__ == "__main__":
    main()
