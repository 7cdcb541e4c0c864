from __future__ import annotations

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import fold_shapes


def profile(context: str) -> Profile:
    """An operator in two shapes, with a kernel in two grids and two shapes each."""
    builder = ProfileBuilder()
    for shapes in ("f32[2]", "f32[8]"):
        op = builder.add(0, "aten::mm", FrameKind.OP, variant=Variant(signature=shapes))
        for grid in (1, 2):
            builder.add(
                op,
                "gemm",
                FrameKind.KERNEL,
                variant=Variant(grid=(grid, 1, 1), signature=shapes),
                metrics={"time (ns)": 10 * grid},
            )
    return builder.build(provenance={"context": context})


def test_rows_that_differ_in_shapes_alone_are_summed() -> None:
    folded = fold_shapes(profile("layers+ops+shapes"))

    assert [folded.name(row) for row in range(len(folded))] == ["ROOT", "aten::mm", "gemm", "gemm"]
    assert [folded.variant(row) for row in (1, 2, 3)] == [
        None,
        Variant(grid=(1, 1, 1)),
        Variant(grid=(2, 1, 1)),
    ]
    assert folded.columns["time (ns)"].values.tolist()[2:] == [20, 40]


def test_a_run_without_shapes_stays_as_it_is() -> None:
    recorded = profile("layers")

    assert fold_shapes(recorded) is recorded
