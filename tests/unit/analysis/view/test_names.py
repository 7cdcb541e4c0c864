from __future__ import annotations

import pytest

from proton_bench.analysis.view.names import stable_name, with_stable_names
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def compiled_profile() -> Profile:
    builder = ProfileBuilder()
    step = builder.add(0, "step", kind=FrameKind.SCOPE)
    for number, name in enumerate(("triton_poi_fused_add_0", "triton_poi_fused_add_3", "gemm_4")):
        metrics = {"time (ns)": 10 * (number + 1)}
        builder.add(step, name, kind=FrameKind.KERNEL, metrics=metrics)
    return builder.build()


@pytest.mark.parametrize(
    ("raw", "stable"),
    [
        ("triton_poi_fused_add_0", "triton_poi_fused_add"),
        ("triton_red_fused__softmax_mul_17", "triton_red_fused__softmax_mul"),
        ("triton_per_fused_native_layer_norm_2_3", "triton_per_fused_native_layer_norm_2"),
        ("triton_tem_fused_mm_12", "triton_tem_fused_mm"),
        ("triton_for_fused_5", "triton_for_fused"),
        ("cpp_fused_add_relu_1", "cpp_fused_add_relu"),
    ],
)
def test_the_running_number_of_inductor_is_left_out(raw: str, stable: str) -> None:
    assert stable_name(raw) == stable


@pytest.mark.parametrize(
    "name",
    [
        "triton_poi_fused_conv2d",
        "triton_kernel_0",
        "my_fused_add_0",
        "matmul_128",
        "void cutlass::Kernel2<cutlass_80_fused_0>(int)",
        "triton_poi_fused_add_0 (copy)",
        "",
    ],
)
def test_other_names_stay(name: str) -> None:
    assert stable_name(name) == name


def test_kernels_that_share_a_stable_name_are_still_rows_apart() -> None:
    profile = with_stable_names(compiled_profile())

    assert [profile.name(row) for row in range(len(profile))][2:] == [
        "triton_poi_fused_add",
        "triton_poi_fused_add",
        "gemm_4",
    ]


def test_profile_without_such_names_is_returned_as_it_is() -> None:
    builder = ProfileBuilder()
    builder.add(0, "matmul", metrics={"time (ns)": 1})
    profile = builder.build()

    assert with_stable_names(profile) is profile


def test_tree_shows_stable_names_in_one_row_unless_raw_ones_are_asked_for() -> None:
    shown = build_tree(compiled_profile(), ["time/ns"], Selection())
    raw = build_tree(compiled_profile(), ["time/ns"], Selection(raw_names=True))

    assert [shown.name(row) for row in range(len(shown))] == [
        "ROOT",
        "step",
        "triton_poi_fused_add",
        "gemm_4",
    ]
    assert shown.metrics[0].to_list() == [60, 60, 30, 30]
    assert [raw.name(row) for row in range(2, len(raw))] == [
        "triton_poi_fused_add_0",
        "triton_poi_fused_add_3",
        "gemm_4",
    ]
