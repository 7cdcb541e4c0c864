from __future__ import annotations

from typing import Any

from proton_bench.analysis.metrics.derived_flops import FlopsDifference, flops_differences
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.words.header import losses


def profile(*rows: tuple[str, dict[str, Any]]) -> Profile:
    """A scope with rows below each other."""
    builder = ProfileBuilder()
    above = builder.add(0, "run", FrameKind.SCOPE, metrics={"time (ns)": 1})
    for name, metrics in rows:
        above = builder.add(above, name, FrameKind.KERNEL, metrics=metrics)
    return builder.build()


def test_a_kernel_with_another_count_than_its_code_is_named() -> None:
    found = profile(("gemm", {"flops16": 100, "derived_flops": 110}))

    assert flops_differences(found) == (FlopsDifference("gemm", 100, 110),)
    assert any(line.startswith("FLOPS: gemm") for line in losses(found))


def test_two_percent_are_alike() -> None:
    found = profile(("gemm", {"flops16": 100, "derived_flops": 102}))

    assert flops_differences(found) == ()
    assert not any(line.startswith("FLOPS") for line in losses(found))


def test_an_operator_is_compared_with_what_its_kernels_declare() -> None:
    found = profile(("aten::mm", {"derived_flops": 50}), ("gemm", {"flops": 100}))

    assert flops_differences(found) == (FlopsDifference("aten::mm", 100, 50),)


def test_a_scope_is_compared_with_the_operators_inside() -> None:
    found = profile(("forward", {"flops32": 100}), ("aten::mm", {"derived_flops": 300}))

    assert flops_differences(found) == (FlopsDifference("forward", 100, 300),)


def test_what_nobody_declared_is_no_difference() -> None:
    assert flops_differences(profile(("gemm", {"flops16": 100}))) == ()
