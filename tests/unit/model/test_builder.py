from __future__ import annotations

import pytest

from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation


def test_empty_builder_is_a_root() -> None:
    profile = ProfileBuilder().build()

    profile.self_check()
    assert len(profile) == 1
    assert profile.name(0) == "ROOT"
    assert profile.kind(0) is FrameKind.ROOT


def test_rows_added_in_any_order_stand_in_preorder() -> None:
    builder = ProfileBuilder()
    a, b = builder.add(0, "a"), builder.add(0, "b")
    builder.add(b, "b1", metrics={"x": 1})
    builder.add(a, "a1", metrics={"x": 2})

    profile = builder.build()

    assert [profile.path(row) for row in range(5)] == [
        (), ("a",), ("a", "a1"), ("b",), ("b", "b1"),
    ]  # fmt: skip
    assert profile.column("x").to_list() == [None, None, 2, None, 1]


def test_numbers_are_inclusive_and_texts_properties_unless_declared() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={"time (ns)": 1, "note": "x", "wall (ns)": 3})

    columns = builder.build().columns

    assert {name: column.spec.aggregation for name, column in columns.items()} == {
        "time (ns)": Aggregation.INCLUSIVE,
        "note": Aggregation.PROPERTY,
        "wall (ns)": Aggregation.EXCLUSIVE,
    }


def test_devices_and_variants_are_stored_once() -> None:
    builder = ProfileBuilder()
    gpu, variant = Device("CUDA", 0), Variant("ab")
    for name in ("k", "l"):
        builder.add(0, name, FrameKind.KERNEL, device=gpu, variant=variant)

    profile = builder.build()

    assert profile.devices == (gpu,)
    assert profile.variants == (variant,)
    assert [profile.device(row) for row in range(3)] == [None, gpu, gpu]
    assert [profile.variant(row) for row in range(3)] == [None, variant, variant]


@pytest.mark.parametrize("parent", [-1, 1, 99])
def test_parent_must_exist(parent: int) -> None:
    with pytest.raises(UsageError, match="rows are 0 to 0"):
        ProfileBuilder().add(parent, "a")


def test_mixed_types_of_one_metric_become_the_widest() -> None:
    builder = ProfileBuilder()
    first = builder.add(0, "a", metrics={"m": 1})
    second = builder.add(0, "b", metrics={"m": "text"})
    column = builder.build().columns["m"]
    assert [column.get(first), column.get(second)] == ["1", "text"]


def test_metric_on_a_missing_row_is_refused() -> None:
    builder = ProfileBuilder()
    builder.set(5, "m", 1)

    with pytest.raises(MetricError, match="row"):
        builder.build()


def test_hostile_names_survive() -> None:
    builder = ProfileBuilder()
    names = ["", "a\x00b", "x\ny", "[red]", "\udc80", "n" * 1_000_000]
    for name in names:
        builder.add(0, name)

    profile = builder.build()

    assert [profile.name(row) for row in profile.children(0)] == [
        *names[:4], "\\udc80", names[5],
    ]  # fmt: skip
