from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.call_path_oracle import CallPathOracle
from reference.profile_view import inclusive_by_path, profiles, view

from proton_bench.errors import MetricError
from proton_bench.model import regroup
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import (
    Stack,
    fold_into_ancestors,
    group_equal_rows,
    order_siblings,
)


def with_variants() -> Profile:
    builder = ProfileBuilder()
    builder.declare("regs", Aggregation.PROPERTY)
    for signature, device, value in (("a", 0, 1), ("b", 0, 10), ("a", 1, 100)):
        row = builder.add(
            0,
            "k",
            FrameKind.KERNEL,
            metrics={"time (ns)": value, "v": [value, 1], "regs": value, "w": "n" + signature},
            device=Device("CUDA", device),
            variant=Variant(signature=signature),
        )
        builder.set_distribution(row, "time (ns)", Distribution.from_samples([value]))
    return builder.build()


def test_variants_are_summed_per_device() -> None:
    folded = with_variants().fold_variants()

    folded.self_check()
    assert len(folded) == 3
    assert folded.column("time (ns)").to_list() == [None, 11, 100]
    assert folded.column("v").to_list() == [None, (11, 2), (100, 1)]
    assert folded.column("regs").to_list() == [None, 10, 100]
    assert folded.column("w").to_list() == [None, "nb", "na"]
    assert folded.variants == ()
    assert [folded.device(row) for row in (1, 2)] == [Device("CUDA", 0), Device("CUDA", 1)]


def test_distributions_of_variants_are_merged() -> None:
    table = with_variants().fold_variants().distributions["time (ns)"]

    entries = {row: entry.samples.tolist() for row, entry in table}

    assert entries == {1: [1.0, 10.0], 2: [100.0]}


def test_children_of_equal_siblings_come_together() -> None:
    builder = ProfileBuilder()
    for value in (1, 2):
        parent = builder.add(0, "p")
        builder.add(parent, "c", metrics={"x": value})
        builder.add(0, f"between{value}")

    folded = builder.build().fold_variants()

    assert [folded.path(row) for row in range(5)] == [
        (), ("p",), ("p", "c"), ("between1",), ("between2",),
    ]  # fmt: skip
    assert folded.inclusive("x").tolist() == [3, 3, 3, 0, 0]


def test_integer_sums_beyond_64_bits_become_floats() -> None:
    builder = ProfileBuilder()
    for _ in range(3):
        builder.add(0, "k", metrics={"x": 2**62})

    column = builder.build().fold_variants().column("x")

    assert column.to_list() == [None, 3 * 2.0**62]


def test_vectors_of_different_length_are_summed_by_element() -> None:
    builder = ProfileBuilder()
    for value in ([1], [1, 2], [0, 5, 7]):
        builder.add(0, "k", metrics={"v": value})

    column = builder.build().fold_variants().column("v")

    assert column.to_list() == [None, (2, 7, 7)]


def test_deep_rows_are_summed_into_their_ancestor() -> None:
    builder = ProfileBuilder()
    a = builder.add(0, "a", metrics={"x": 1})
    b = builder.add(a, "b", metrics={"x": 2})
    builder.add(b, "c", metrics={"x": 4})
    builder.add(a, "d", metrics={"x": 8})

    folded = builder.build().fold_below(1)

    assert [folded.path(row) for row in range(2)] == [(), ("a",)]
    assert folded.column("x").to_list() == [None, 15]


def test_shallow_profiles_are_not_folded() -> None:
    profile = with_variants()

    assert profile.fold_below(1) is profile


@given(profile=profiles(), data=st.data())
def test_rows_that_go_count_in_the_nearest_row_above_that_stays(
    profile: Profile, data: st.DataObject
) -> None:
    gone = np.zeros(len(profile), dtype=np.bool_)
    for row in data.draw(st.lists(st.integers(0, len(profile) - 1))):
        if row > 0:
            gone[row : profile.subtree_end[row]] = True

    folded = fold_into_ancestors(profile, gone)

    folded.self_check()
    kept = np.flatnonzero(~gone)
    assert [folded.path(row) for row in range(len(folded))] == [profile.path(row) for row in kept]
    for name in {"time (ns)", "flops"} & set(profile.columns):
        np.testing.assert_allclose(
            folded.inclusive(name), profile.inclusive(name)[kept], rtol=1e-9, atol=1e-3
        )


@given(profile=profiles())
def test_folding_keeps_totals(profile: Profile) -> None:
    folded = profile.fold_variants().fold_below(2)

    folded.self_check()
    for name in ("time (ns)", "flops"):
        if name in profile.columns:
            np.testing.assert_allclose(
                folded.inclusive(name)[0], profile.inclusive(name)[0], rtol=1e-9, atol=1e-3
            )


@given(profile=profiles())
def test_folding_twice_changes_nothing(profile: Profile) -> None:
    once = profile.fold_variants()

    assert view(once.fold_variants()) == view(once)


def test_siblings_are_sorted_by_key_with_everything_below_them() -> None:
    builder = ProfileBuilder()
    late = builder.add(0, "late", metrics={"x": 1, "v": [1]})
    builder.add(late, "child", metrics={"x": 2, "note": "text"})
    early = builder.add(0, "early", metrics={"x": 4, "v": [2, 3]})
    builder.add(0, "also early", metrics={"x": 8})
    builder.set_distribution(early, "x", Distribution.from_samples([4.0]))
    profile = builder.build()

    ordered = order_siblings(profile, np.array([0, 9, 0, 1, 1]))

    ordered.self_check()
    assert [ordered.path(row) for row in range(5)] == [
        (), ("early",), ("also early",), ("late",), ("late", "child"),
    ]  # fmt: skip
    assert ordered.column("x").to_list() == [None, 4, 8, 1, 2]
    assert ordered.column("v").to_list() == [None, (2, 3), None, (1,), None]
    assert ordered.column("note").get(4) == "text"
    assert [row for row, _ in ordered.distributions["x"]] == [1]


@given(profile=profiles())
def test_sorting_by_equal_keys_changes_nothing(profile: Profile) -> None:
    ordered = order_siblings(profile, np.zeros(len(profile), dtype=np.int64))

    assert view(ordered) == view(profile)


entries = st.lists(
    st.tuples(st.lists(st.sampled_from("ab"), max_size=5), st.integers(0, 9)), max_size=12
)


@given(entries=entries, depth=st.integers(0, 4))
def test_folding_by_depth_is_that_of_the_oracle(
    entries: list[tuple[list[str], int]], depth: int
) -> None:
    oracle, builder = CallPathOracle(), ProfileBuilder()
    builder.declare("x", Aggregation.INCLUSIVE)
    builder.set(0, "x", 0)
    oracle.add((), {"x": 0})
    for path, value in entries:
        oracle.add(path, {"x": value})
        row = 0
        for name in path:
            row = builder.add(row, name)
        builder.set(row, "x", value + (0 if row else builder.build().column("x").get(0)))

    folded = builder.build().fold_variants().fold_below(depth)

    assert inclusive_by_path(folded, "x") == oracle.folded(depth).inclusive("x")


@given(profile=profiles())
def test_paths_are_numbered_alike_by_level_and_by_row(profile: Profile) -> None:
    stack = Stack.of(profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regroup, "_ROWS_PER_LEVEL", 0)
        by_level = group_equal_rows(stack)
        patch.setattr(regroup, "_ROWS_PER_LEVEL", len(profile) + 1)
        by_row = group_equal_rows(stack)

    assert by_level.tolist() == by_row.tolist()
    assert by_level.dtype == by_row.dtype


@given(profile=profiles(), other=profiles())
def test_several_trees_are_merged_alike_by_level_and_by_row(
    profile: Profile, other: Profile
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regroup, "_ROWS_PER_LEVEL", 0)
        by_level = merged_or_refused(profile, other)
        patch.setattr(regroup, "_ROWS_PER_LEVEL", 10**6)
        by_row = merged_or_refused(profile, other)

    assert by_level == by_row


def merged_or_refused(*merged: Profile) -> object:
    """Return what the merged profile shows, or why the metrics do not fit each other."""
    try:
        return view(Profile.merge(merged))
    except MetricError as error:
        return str(error)
