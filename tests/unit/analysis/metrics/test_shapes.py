from __future__ import annotations

import pytest

from proton_bench.analysis.metrics.derive import available_metrics
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0)
SMALL, LARGE = "f32[2,4]", "f32[8,4]"


@pytest.fixture
def profile() -> Profile:
    """A layer with two shapes, each with the same kernel in two grids, on two paths."""
    builder = ProfileBuilder()
    for layer in ("a", "b"):
        above = builder.add(0, layer, FrameKind.LAYER)
        for signature, time in ((SMALL, 10), (LARGE, 40)):
            op = builder.add(
                above, "aten::mm", FrameKind.OP, variant=Variant(signature=signature),
                metrics={"flops16": time * 100},
            )  # fmt: skip
            for grid in (1, 2):
                builder.add(
                    op, "gemm", FrameKind.KERNEL, device=GPU, variant=Variant(grid=(grid, 1, 1)),
                    metrics={"time (ns)": time, "count": 1},
                )  # fmt: skip
    return builder.build()


def rows(tree: MetricTree) -> list[tuple[str, ...]]:
    values = zip(*(metric.to_list() for metric in tree.metrics), strict=True)
    return [(tree.name(row), *each) for row, each in enumerate(values)]


def test_rows_of_other_shapes_stay_apart_where_shapes_are_shown(profile: Profile) -> None:
    tree = build_tree(profile, ["time/ns", "flops16", "shapes"], Selection())

    below_a = rows(tree)[1:6]
    assert below_a == [
        ("a", 100.0, 5000, None),
        ("aten::mm", 20.0, 1000, SMALL),
        ("gemm", 20.0, None, None),
        ("aten::mm", 80.0, 4000, LARGE),
        ("gemm", 80.0, None, None),
    ]


def test_rows_of_other_shapes_are_one_elsewhere(profile: Profile) -> None:
    tree = build_tree(profile, ["time/ns"], Selection())

    assert rows(tree)[1:4] == [("a", 100.0), ("aten::mm", 100.0), ("gemm", 100.0)]


def test_a_table_has_a_row_for_each_shape() -> None:
    builder = ProfileBuilder()
    for layer in ("a", "b"):
        above = builder.add(0, layer, FrameKind.LAYER)
        for signature, time in ((SMALL, 10), (LARGE, 40)):
            builder.add(
                above, "aten::mm", FrameKind.OP, variant=Variant(signature=signature),
                metrics={"time (ns)": time, "count": 1},
            )  # fmt: skip

    tree = build_tree(builder.build(), ["time/ns", "shapes"], Selection(flat=True))

    assert rows(tree)[1:] == [("aten::mm", 80.0, LARGE), ("aten::mm", 20.0, SMALL)]


def test_shapes_are_offered_where_they_were_recorded(profile: Profile) -> None:
    assert "shapes" in available_metrics(profile).derivable
    assert "shapes" not in available_metrics(profile.fold_variants()).derivable


def test_a_profile_without_shapes_says_how_to_record_them(profile: Profile) -> None:
    with pytest.raises(MetricError, match="-c shapes"):
        build_tree(profile.fold_variants(), ["shapes"], Selection())
