"""Kernels whose configuration is not the same in all runs."""

from __future__ import annotations

from collections.abc import Mapping

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment import flipped_paths
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind


def run(configs: Mapping[str, tuple[str, ...]], *, trial: str = "") -> Run:
    builder = ProfileBuilder()
    scope = builder.add(0, "fwd", FrameKind.SCOPE)
    for name, chosen in configs.items():
        for config in chosen:
            variant = Variant(config=config, code_hash=config)
            builder.add(scope, name, FrameKind.KERNEL, metrics={"count": 1}, variant=variant)
    if trial:
        state = builder.add(scope, "<autotune>", FrameKind.STATE)
        variant = Variant(config=trial)
        builder.add(state, "matmul", FrameKind.KERNEL, metrics={"count": 1}, variant=variant)
    return Run(builder.build(), "x")


def test_another_choice_is_a_flip() -> None:
    runs = [run({"matmul": (block,), "add": ("a",)}) for block in ("64", "64", "128")]

    assert flipped_paths(runs) == {("fwd", "matmul"): ("128", "64")}


def test_several_choices_for_several_shapes_are_no_choice() -> None:
    assert flipped_paths([run({"matmul": ("64", "128")})] * 2) == {}


def test_trials_and_untuned_kernels_are_no_choice() -> None:
    assert flipped_paths([run({"add": ("",)}, trial=block) for block in ("64", "128")]) == {}
