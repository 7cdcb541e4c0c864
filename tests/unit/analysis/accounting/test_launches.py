from __future__ import annotations

import pytest

from proton_bench.analysis.metrics.derive import derive
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind


def test_operators_and_copies_are_not_launches() -> None:
    builder = ProfileBuilder()
    op = builder.add(0, "aten::mm", FrameKind.OP, metrics={"count": 7})
    builder.add(op, "gemm", FrameKind.KERNEL, metrics={"count": 3})
    builder.add(op, "copy", FrameKind.COPY, metrics={"count": 5})

    (launches,) = derive(builder.build(), ["launches"])

    assert launches.title == "launches (inc)"
    assert launches.to_list() == [3, 3, 3, None]


def test_unnamed_rows_with_a_device_are_launches() -> None:
    builder = ProfileBuilder()
    builder.add(0, "gemm", metrics={"count": 3}, device=Device("CUDA", 0))

    assert derive(builder.build(), ["launches"])[0].to_list() == [3, 3]


def test_launches_need_counts() -> None:
    builder = ProfileBuilder()
    builder.add(0, "gemm", metrics={"time (ns)": 3})

    with pytest.raises(MetricError, match=r"count .* time"):
        derive(builder.build(), ["launches"])
